//! Lists for operators: decisions, leases, applications; newest first, bounded. Each function asks for what there is, and
//! gives the work that makes the list of it: for a thread that serves no sockets.

use super::convert::{self, resource_to_wire};
use crate::runtime::refused_table::RefusedApplication;
use crate::runtime::{Daemon, ListedRecords, RefusalCount};
use crate::times::micros;
use hintd_client::wire::v1;
use hintd_engine::records::{Record, RecordFilter};
use hintd_engine::{AttemptHeld, Followed, LeaseFilter, LeaseHeld, Mode, Refusal};
use hintd_model::units::{ApplicationId, DecisionId, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows of a list.
const ROWS_MAX: usize = 10_000;

/// Hosts named of a decision.
const HOSTS_NAMED: usize = 100;

fn most(limit: u32) -> usize {
    if limit == 0 { ROWS_MAX } else { ROWS_MAX.min(limit as usize) }
}

fn application(id: &str) -> Result<Option<ApplicationId>, Refusal> {
    if id.is_empty() { Ok(None) } else { convert::application(id).map(Some) }
}

/// Recorded decisions and refusals.
///
/// # Errors
/// [`Refusal::Invalid`] for what is no application id; [`Refusal::Unavailable`] when the daemon shuts down.
pub(super) async fn decisions(
    daemon: &Daemon,
    wire: v1::ListDecisionsRequest,
) -> Result<impl FnOnce() -> v1::ListDecisionsResponse + Send + 'static, Refusal> {
    let filter = RecordFilter {
        application: application(&wire.application_id)?,
        attempt: wire.attempt,
        queue: wire.queue,
        host: wire.host,
        from: moment(wire.from_ms),
        until: moment(wire.until_ms),
        refused_only: wire.refused_only,
    };
    let ListedRecords { records, total, kept } = daemon.records_listed(filter, most(wire.limit)).await?;
    let refused = daemon.refusals().await?.into_iter().map(refused_count).collect();
    let followed = daemon.followed(records.iter().map(|record| record.decision()).collect()).await?;
    let now = daemon.clock().now();
    Ok(move || {
        let rows = records.iter().zip(followed);
        let decisions = rows.map(|(record, followed)| decision_view(record, followed, now)).collect();
        v1::ListDecisionsResponse { decisions, total: total as u64, kept, refused }
    })
}

/// A moment of the wire; 0: none.
fn moment(ms: u64) -> Option<Timestamp> {
    (ms > 0).then(|| Timestamp(ms.saturating_mul(1_000)))
}

/// Refusals of one reason since the start, and those of them that are recorded.
pub(super) fn refused_count(count: RefusalCount) -> v1::RefusedCount {
    v1::RefusedCount { reason: count.reason.to_owned(), requests: count.requests, recorded: count.recorded }
}

/// Live leases.
///
/// # Errors
/// As [`decisions`].
pub(super) async fn leases(
    daemon: &Daemon,
    wire: v1::ListLeasesRequest,
) -> Result<impl FnOnce() -> v1::ListLeasesResponse + Send + 'static, Refusal> {
    let application = application(&wire.application_id)?;
    let filter = LeaseFilter { application, queue: wire.queue, host: wire.host, most: most(wire.limit) };
    let (leases, total) = daemon.leases_held(filter).await?;
    let now = daemon.clock().now();
    Ok(move || {
        let leases = leases.iter().map(|lease| lease_view(lease, now)).collect();
        v1::ListLeasesResponse { leases, total: total as u64 }
    })
}

/// Applications that asked and are not over, and those that were refused whatever they asked.
///
/// # Errors
/// As [`decisions`].
pub(super) async fn applications(
    daemon: &Daemon,
    wire: v1::ListApplicationsRequest,
) -> Result<impl FnOnce() -> v1::ListApplicationsResponse + Send + 'static, Refusal> {
    let meant = application(&wire.application_id)?;
    let attempts = daemon.attempts_held().await?;
    let leased = match &*wire.host {
        "" => None,
        host => {
            let filter = LeaseFilter { application: meant, host: host.to_owned(), ..LeaseFilter::default() };
            Some(daemon.applications_with_leases(filter).await?)
        }
    };
    let ListedRecords { records, .. } = daemon.records_listed(RecordFilter::default(), usize::MAX).await?;
    let hinted = match &*wire.host {
        "" => Vec::new(),
        host => {
            let filter = RecordFilter { application: meant, host: host.to_owned(), ..RecordFilter::default() };
            daemon.records_listed(filter, usize::MAX).await?.records
        }
    };
    let now = daemon.clock().now();
    let refused_table = daemon.metrics().refused_applications();
    Ok(move || {
        let hinted = hinted.iter().map(|record| record.request().attempt.application);
        let on_host = leased.map(|leased| leased.into_iter().chain(hinted).collect::<BTreeSet<_>>());
        let refused = refused_only(&records, &attempts, &refused_table, now);
        let mut found: Vec<Asked> = by_application(attempts).into_iter().map(Asked::held).chain(refused).collect();
        found.retain(|asked| {
            meant.is_none_or(|meant| asked.id == meant)
                && (wire.queue.is_empty() || asked.queue() == wire.queue)
                && on_host.as_ref().is_none_or(|on| on.contains(&asked.id))
        });
        found.sort_by_key(Asked::order);
        let total = found.len() as u64;
        found.truncate(most(wire.limit));
        let mut last = last_decisions(records, found.iter().map(|asked| asked.id).collect());
        let view = |asked: Asked| v1::ApplicationView {
            application_id: asked.id.to_string(),
            attempt: asked.attempt(),
            queue: asked.queue().to_owned(),
            asked_ms: asked.last.map_or(0, |last| now.since(last).as_millis()),
            asked_at_ms: asked.last.filter(|_| !asked.before_start).map_or(0, Timestamp::as_millis),
            first_asked_at_ms: asked.first().map_or(0, Timestamp::as_millis),
            asked_before_start: asked.before_start,
            leases: asked.attempts.iter().map(|held| held.leases as u64).sum(),
            requests: asked.attempts.iter().map(|held| held.requests as u64).sum(),
            last_decision: last.remove(&asked.id).map(|record| decision_view(&record, None, now)),
            refused: asked.refused.as_ref().map(|refused| refused.reason.to_owned()).unwrap_or_default(),
            refused_requests: asked.refused.map_or(0, |refused| refused.requests),
        };
        v1::ListApplicationsResponse { applications: found.into_iter().map(view).collect(), total }
    })
}

/// How many containers of each application's last decision came to their host.
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub(super) async fn add_followed(daemon: &Daemon, found: &mut v1::ListApplicationsResponse) -> Result<(), Refusal> {
    let last = found.applications.iter_mut().filter_map(|row| row.last_decision.as_mut());
    // Each is an id that this daemon has just written.
    let (ids, rows): (Vec<_>, Vec<_>) =
        last.filter_map(|row| Some((row.decision_id.parse::<DecisionId>().ok()?, row))).unzip();
    for (row, followed) in rows.into_iter().zip(daemon.followed(ids).await?) {
        row.followed = followed.map(convert::followed);
    }
    Ok(())
}

/// An application that asked.
struct Asked {
    id: ApplicationId,
    /// Before the daemon's start, and not since.
    before_start: bool,
    last: Option<Timestamp>,
    /// Ascending; none where all that it asked was refused.
    attempts: Vec<AttemptHeld>,
    refused: Option<RefusedOnly>,
}

/// Of an application that got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusedOnly {
    /// Why the last time: the token.
    reason: &'static str,
    requests: u64,
    /// The last attempt that is recorded; 0: none is.
    attempt: u32,
    /// Empty: it is not kept.
    queue: String,
}

impl Asked {
    fn held((id, attempts): (ApplicationId, Vec<AttemptHeld>)) -> Self {
        let (before_start, last) = asked(&attempts);
        Self { id, before_start, last, attempts, refused: None }
    }

    fn attempt(&self) -> u32 {
        let refused = self.refused.as_ref().map_or(0, |refused| refused.attempt);
        self.attempts.last().map_or(refused, |newest| newest.attempt.attempt)
    }

    /// When its first attempt that is held asked first; `None`: before the daemon's start, or none is held.
    fn first(&self) -> Option<Timestamp> {
        // Of one that asked before the start nobody knows when: it is least.
        self.attempts.iter().map(|held| held.first).min().flatten()
    }

    fn queue(&self) -> &str {
        self.refused.as_ref().map_or_else(|| queue_of(&self.attempts), |refused| &refused.queue)
    }

    /// The one that asked last first, those before the start after all others.
    fn order(&self) -> (bool, Reverse<(Option<Timestamp>, ApplicationId)>) {
        (self.before_start, Reverse((self.last, self.id)))
    }
}

/// Applications of which no attempt is held and no answer recorded, and that were refused: by records, newest first, and by the
/// table of refusals, which knows those that leave no record.
fn refused_only(
    records: &[Arc<Record>],
    attempts: &[AttemptHeld],
    table: &[RefusedApplication],
    now: Timestamp,
) -> Vec<Asked> {
    let held = attempts.iter().map(|held| held.attempt.application);
    let answered =
        records.iter().filter(|record| record.answered().is_ok()).map(|record| record.request().attempt.application);
    let others: BTreeSet<ApplicationId> = held.chain(answered).collect();
    let mut found: BTreeMap<ApplicationId, (Timestamp, RefusedOnly)> = BTreeMap::new();
    for record in records.iter().filter(|record| !others.contains(&record.request().attempt.application)) {
        let Err(refusal) = record.answered() else { continue };
        let (queue, attempt) = (record.request().queue.to_string(), record.request().attempt.attempt);
        let only = || RefusedOnly { reason: refusal.token(), requests: 0, attempt, queue };
        let (_, refused) = found.entry(record.request().attempt.application).or_insert_with(|| (record.at(), only()));
        refused.requests += u64::from(refused.reason == refusal.token());
    }
    for row in table.iter().filter(|row| !others.contains(&row.application)) {
        let at = Timestamp(now.0.saturating_sub(micros(row.since).0));
        let only = || RefusedOnly { reason: row.reason, requests: 0, attempt: 0, queue: String::new() };
        let (last, refused) = found.entry(row.application).or_insert_with(|| (at, only()));
        if at > *last && refused.reason != row.reason {
            (refused.reason, refused.requests) = (row.reason, 0);
        }
        *last = at.max(*last);
        if refused.reason == row.reason {
            refused.requests = refused.requests.max(row.requests);
        }
    }
    let listed = |(id, (last, refused)): (ApplicationId, (Timestamp, RefusedOnly))| Asked {
        id,
        before_start: false,
        last: Some(last),
        attempts: Vec::new(),
        refused: Some(refused),
    };
    found.into_iter().map(listed).collect()
}

/// Whether all attempts asked before the start, and when one asked last. Of those that did, only the start is known: it
/// counts where no attempt asked since.
fn asked(attempts: &[AttemptHeld]) -> (bool, Option<Timestamp>) {
    let before_start = attempts.iter().all(|held| held.asked_before_start);
    let known = attempts.iter().filter(|held| before_start || !held.asked_before_start);
    (before_start, known.map(|held| held.touched).max())
}

/// Attempts of each application, ascending.
fn by_application(attempts: Vec<AttemptHeld>) -> Vec<(ApplicationId, Vec<AttemptHeld>)> {
    let mut by_id: BTreeMap<ApplicationId, Vec<AttemptHeld>> = BTreeMap::new();
    for held in attempts {
        by_id.entry(held.attempt.application).or_default().push(held);
    }
    by_id.into_iter().collect()
}

/// Of the last attempt of which a request is remembered; empty: of none is one.
fn queue_of(attempts: &[AttemptHeld]) -> &str {
    attempts.iter().rev().find_map(|held| held.queue.as_ref()).map_or("", |queue| queue.as_str())
}

/// The newest record of each application; `records` are newest first.
fn last_decisions(
    records: Vec<Arc<Record>>,
    mut wanted: BTreeSet<ApplicationId>,
) -> BTreeMap<ApplicationId, Arc<Record>> {
    let newest = records.into_iter().filter_map(|record| {
        let application = record.request().attempt.application;
        wanted.remove(&application).then_some((application, record))
    });
    newest.collect()
}

fn decision_view(record: &Record, followed: Option<Followed>, now: Timestamp) -> v1::DecisionView {
    let request = record.request();
    let mut view = v1::DecisionView {
        decision_id: record.decision().to_string(),
        decided_at_ms: record.at().as_millis(),
        age_ms: now.since(record.at()).as_millis(),
        application_id: request.attempt.application.to_string(),
        attempt: request.attempt.attempt,
        request_id: request.id.to_string(),
        queue: request.queue.to_string(),
        policy: record.policy().0.to_string(),
        mode: record.mode().as_str().to_owned(),
        containers: request.groups.iter().map(|group| u64::from(group.count)).sum(),
        followed: followed.map(convert::followed),
        ..v1::DecisionView::default()
    };
    let answer = match record.answered() {
        Ok(answer) => answer,
        Err(refusal) => {
            view.outcome = "refused".to_owned();
            view.reason = refusal.token().to_owned();
            return view;
        }
    };
    let decision = &answer.decision;
    let hosts: BTreeSet<&str> = decision.hints.iter().map(|hint| hint.host.as_str()).collect();
    let waits = decision.waits_for_room();
    view.hinted = decision.hinted();
    view.hosts = hosts.iter().take(HOSTS_NAMED).map(|host| (*host).to_owned()).collect();
    view.hosts_total = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    view.expected_gain = decision.expected_gain;
    view.elapsed_ms = decision.elapsed.as_secs_f64() * 1e3;
    let (outcome, reason) = match (record.undelivered(), decision.mode, decision.withheld) {
        (Some(why), ..) => ("late", why.as_str()),
        (None, Mode::Off, _) => ("off", ""),
        (None, _, Some(withheld)) => ("withheld", withheld.reason.as_str()),
        (None, Mode::Shadow, None) => ("shadow", ""),
        (None, Mode::On, None) if waits => ("waits", "no_room"),
        (None, Mode::On, None) => ("hinted", ""),
    };
    (view.outcome, view.reason) = (outcome.to_owned(), reason.to_owned());
    view
}

fn lease_view(lease: &LeaseHeld, now: Timestamp) -> v1::LeaseView {
    v1::LeaseView {
        lease_id: lease.id.0,
        host: lease.host.to_string(),
        rack: lease.rack.to_string(),
        size: Some(resource_to_wire(&lease.size)),
        state: if lease.container.is_some() { "confirmed" } else { "held" }.to_owned(),
        expires_in_ms: lease.expires.since(now).as_millis(),
        application_id: lease.attempt.application.to_string(),
        attempt: lease.attempt.attempt,
        queue: lease.queue.as_ref().map(ToString::to_string).unwrap_or_default(),
        group: lease.group.to_string(),
        request_id: lease.request.to_string(),
        decision_id: lease.decision.to_string(),
        container_id: lease.container.map(|container| container.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(attempts: Vec<AttemptHeld>) -> Vec<Asked> {
        let mut found: Vec<Asked> = by_application(attempts).into_iter().map(Asked::held).collect();
        found.sort_by_key(Asked::order);
        found
    }

    #[test]
    fn who_is_refused_whatever_it_asks_is_found_where_it_leaves_no_record() {
        let application = |sequence| ApplicationId { cluster_timestamp: 1, sequence };
        let row = |sequence, reason, requests, seconds| RefusedApplication {
            application: application(sequence),
            reason,
            requests,
            since: std::time::Duration::from_secs(seconds),
        };
        let held = AttemptHeld {
            attempt: convert::attempt("application_1_0001", 1).unwrap(),
            leases: 0,
            requests: 1,
            legacy: false,
            queue: None,
            first: Some(Timestamp(0)),
            touched: Timestamp(0),
            asked_before_start: false,
        };
        let table = [row(1, "invalid", 9, 1), row(2, "invalid", 3, 5), row(2, "unavailable", 7, 2)];
        let found = refused_only(&[], &[held], &table, Timestamp(60_000_000));
        let shown: Vec<_> = found.iter().map(|asked| (asked.id.sequence, asked.last, asked.refused.clone())).collect();
        let refused = RefusedOnly { reason: "unavailable", requests: 7, attempt: 0, queue: String::new() };
        assert_eq!(shown, [(2, Some(Timestamp(58_000_000)), Some(refused))]);
    }

    #[test]
    fn lists_are_bounded_whatever_is_asked_for() {
        assert_eq!([0, 7, u32::MAX].map(most), [ROWS_MAX, 7, ROWS_MAX]);
    }

    #[test]
    fn the_application_that_asked_last_comes_first_and_its_last_attempt_with_a_queue_names_it() {
        let held = |sequence, attempt, touched, queue: Option<&str>| AttemptHeld {
            attempt: convert::attempt(&format!("application_1_{sequence:04}"), attempt).unwrap(),
            leases: 1,
            requests: 1,
            legacy: false,
            queue: queue.map(Into::into),
            first: Some(Timestamp(touched)),
            touched: Timestamp(touched),
            asked_before_start: false,
        };
        let found = in_order(vec![
            held(1, 1, 30, Some("old")),
            held(1, 2, 10, Some("etl")),
            held(1, 3, 5, None),
            held(2, 1, 20, None),
        ]);
        let shown: Vec<_> =
            found.iter().map(|asked| (asked.id.sequence, asked.attempts.len(), asked.queue())).collect();
        assert_eq!(shown, [(1, 3, "etl"), (2, 1, "")]);
    }
    #[test]
    fn an_attempt_from_before_the_start_says_nothing_of_when_its_application_asked() {
        let held = |sequence, attempt, touched, asked_before_start| AttemptHeld {
            attempt: convert::attempt(&format!("application_1_{sequence:04}"), attempt).unwrap(),
            leases: 0,
            requests: 0,
            legacy: false,
            queue: None,
            first: Some(Timestamp(touched)),
            touched: Timestamp(touched),
            asked_before_start,
        };
        // The daemon started at 100, which is when attempts from before count as touched.
        let (only_before, since, both) =
            (held(1, 1, 100, true), held(2, 1, 90, false), [held(3, 1, 100, true), held(3, 2, 80, false)]);
        let found = in_order([only_before, since].into_iter().chain(both).collect());
        let shown: Vec<_> = found.iter().map(|asked| (asked.id.sequence, (asked.before_start, asked.last))).collect();
        let at = |micros| Some(Timestamp(micros));
        assert_eq!(shown, [(2, (false, at(90))), (3, (false, at(80))), (1, (true, at(100)))]);
    }
}
