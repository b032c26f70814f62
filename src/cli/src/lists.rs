//! `hintctl decisions`, `leases` and `applications`: what was decided, what is promised, and for whom; newest first.

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::filter::FilterArgs;
use super::moments::{WhenArgs, moment};
use super::output::{self, Output};
use super::printable::one_line;
use super::sorting::{Column, SortArgs};
use super::turn::turn_cell;
use super::view::ViewArgs;
use clap::Args;
use hintd::findings::hints::refused_since_start;
use hintd_client::wire::{v1, yarn};
use hintd_model::solve::nearest;
use std::collections::BTreeSet;

/// Rows that a daemon lists at most.
const ROWS_MAX: u32 = 10_000;
/// Queues named where one is not there.
const QUEUES_NAMED: usize = 20;

/// Decisions to list.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  hintctl decisions\n  hintctl decisions --queue etl --limit 10 -o wide\n  hintctl decisions --sort -gain\n  \
    hintctl decisions --at 04:35          what was decided about then, in UTC\n  hintctl decisions --since 10m --refused\n  \
    hintctl --json decisions | jq -r '.decisions[] | select(.outcome == \"refused\") | .reason'\n\n\
    Recorded decisions and refusals, newest first: those since the daemon's start that records have room for. `hintctl explain`\n\
    tells all of one. A host is named by hints only. outcome: hinted; waits: no room, so that hints only say where to wait;\n\
    withheld or refused, with the reason; shadow: would have been hinted, in a queue whose mode is that; off, likewise; late:\n\
    the answer was made after the request's deadline, or its caller had hung up, so that YARN never saw it.\n\
    followed: how many of the hinted containers came to their host, 3/12; `awaited`: containers that were not seen yet; -: no hints,\n\
    or too long ago. -o wide has the moment of each, in UTC, as the daemon's log has it; the expected gain (of the time until\n\
    the busiest link is done, or of what the policy places by); the share of bytes that was saved, which is no time, and - where they\n\
    are fewer than a block of HDFS; and how long finding it took, without its commit."
)]
pub struct DecisionsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    when: WhenArgs,
    /// Only refusals
    #[arg(long)]
    refused: bool,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// Leases to list.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl leases\n  hintctl leases --host rack7 --limit 0\n  \
    hintctl --json leases | jq -r '.leases[] | select(.state == \"confirmed\") | .container_id'\n\n\
    Live leases, newest first. held: no container is known; confirmed: YARN has allocated it, and its node does not report it yet.")]
pub struct LeasesArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// Applications to list.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl applications\n  hintctl applications --queue etl --watch\n  \
    hintctl explain application_1700000000000_0007\n\n\
    Applications that asked for hints and are not over, the one that asked last first, and such as were refused whatever they\n\
    asked, as long as that is kept (refused: with the reason; whether these are over is not known). `hintctl attempts` has them\n\
    by attempt. asked >5 s: before the daemon's last start, 5 s ago, at a time that is not kept; its outcome is not kept either (-), nor\n\
    where records have no room for it any more. off: its queue is off; shadow: hints were found and not sent. Without\n\
    a ResourceManager an application is over once nothing was heard of it for limits.attempt_silence (1 h). receivers (-o wide),\n\
    where a queue holds them: behind 2: two heavy shuffles with fewer bytes left go first; up to 20: it may hold 20 containers.")]
pub struct ApplicationsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// `hintctl decisions`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or what the list is narrowed by is known nowhere.
pub fn decisions(args: &DecisionsArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let [application, queue, host] = args.filter.texts();
    let limit = args.filter.limit;
    let order = args.sort.of(DECISION_COLUMNS, limit)?;
    check_queue(&queue, daemon)?;
    let (from_ms, until_ms) = args.when.bounds()?;
    if args.refused || (from_ms, until_ms) != (0, 0) {
        block_on(knows_times_and_refusals(daemon))?;
    }
    let all = application.is_empty() && queue.is_empty() && host.is_empty() && (from_ms, until_ms) == (0, 0);
    let asked = v1::ListDecisionsRequest {
        application_id: application,
        queue,
        host,
        limit: order.asks(),
        from_ms,
        until_ms,
        refused_only: args.refused,
        ..v1::ListDecisionsRequest::default()
    };
    let ask = async |mut admin: hintd_client::AdminClient| {
        let found = admin.list_decisions(asked.clone()).await?;
        args.filter.check_known(&mut admin, found.get_ref().total, &args.view, output).await?;
        order.answer(Ok(found), |found| (&mut found.decisions, found.total))
    };
    let text = |answer: &_, wide| {
        let table = decisions_text(answer, wide || order.is_wide(&DECISION_HEADER));
        // Of all applications, whatever the list is of: who asks for some looks for those.
        if all { table + &refusals_text(&answer.refused) } else { table }
    };
    let found = args.view.show(daemon, output, ask, text)?;
    order.warn(output);
    let more = [("--refused", args.refused), ("the time that is asked for", (from_ms, until_ms) != (0, 0))];
    args.filter.warn_empty(found.total, "decision is recorded", &more, output);
    Ok(())
}

/// `hintctl leases`.
///
/// # Errors
/// As [`decisions`].
pub fn leases(args: &LeasesArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let [application, queue, host] = args.filter.texts();
    let limit = args.filter.limit;
    let order = args.sort.of(LEASE_COLUMNS, limit)?;
    check_queue(&queue, daemon)?;
    let asked = v1::ListLeasesRequest { application_id: application, queue, host, limit: order.asks() };
    let ask = async |mut admin: hintd_client::AdminClient| {
        let found = admin.list_leases(asked.clone()).await?;
        args.filter.check_known(&mut admin, found.get_ref().total, &args.view, output).await?;
        order.answer(Ok(found), |found| (&mut found.leases, found.total))
    };
    let text = |answer: &_, wide| leases_text(answer, wide || order.is_wide(&LEASE_HEADER));
    let found = args.view.show(daemon, output, ask, text)?;
    order.warn(output);
    args.filter.warn_empty(found.total, "lease is live", &[], output);
    Ok(())
}

/// `hintctl applications`.
///
/// # Errors
/// As [`decisions`].
pub fn applications(args: &ApplicationsArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let [application, queue, host] = args.filter.texts();
    let limit = args.filter.limit;
    let order = args.sort.of(APPLICATION_COLUMNS, limit)?;
    check_queue(&queue, daemon)?;
    let asked = v1::ListApplicationsRequest { application_id: application, queue, host, limit: order.asks() };
    let ask = async |mut admin: hintd_client::AdminClient| {
        let found = admin.list_applications(asked.clone()).await?;
        args.filter.check_known(&mut admin, found.get_ref().total, &args.view, output).await?;
        order.answer(Ok(found), |found| (&mut found.applications, found.total))
    };
    let text = |answer: &_, wide| applications_text(answer, wide || order.is_wide(&APPLICATION_HEADER));
    let found = args.view.show(daemon, output, ask, text)?;
    order.warn(output);
    args.filter.warn_empty(found.total, "application is known that asked for hints and is not over", &[], output);
    Ok(())
}

/// A daemon of before knows neither times nor refusals alone, and would list all without a word: nothing was decided in 1970, and
/// what it lists of then shows that it does not look.
async fn knows_times_and_refusals(daemon: &DaemonArgs) -> Result<(), Failure> {
    let of_1970 = v1::ListDecisionsRequest { from_ms: 1, until_ms: 1, limit: 1, ..v1::ListDecisionsRequest::default() };
    let mut admin = daemon.operator().await?;
    if admin.list_decisions(of_1970).await?.into_inner().decisions.is_empty() {
        return Ok(());
    }
    let version = admin.status(v1::StatusRequest {}).await?.into_inner().version;
    Err(Failure::work(format!(
        "this daemon (hintd {}) is older than this hintctl and does not know --since, --at and --refused: it would list all \
         decisions; leave them out, or upgrade it (docs/operations.md#upgrade)",
        one_line(&version)
    )))
}

/// A queue that nobody knows is misspelled, more often than not: an empty list would not say so.
fn check_queue(queue: &str, daemon: &DaemonArgs) -> Result<(), Failure> {
    if queue.is_empty() {
        return Ok(());
    }
    let known = block_on(known_queues(queue, daemon))?;
    known_or_named(queue, &known)
}

/// Queues that the configuration names, or that asked for hints, as far as that is kept; of the last, `queue` in any case.
async fn known_queues(queue: &str, daemon: &DaemonArgs) -> Result<BTreeSet<String>, Failure> {
    let mut admin = daemon.operator().await?;
    let status = admin.status(v1::StatusRequest {}).await?.into_inner();
    let configured = status.queues.into_iter().map(|queue| queue.name).filter(|name| name != "*");
    let followed = status.adherence.into_iter().map(|row| row.queue);
    let mut known: BTreeSet<String> = configured.chain(followed).collect();
    if !known.contains(queue) {
        let asked = v1::ListApplicationsRequest { limit: ROWS_MAX, ..v1::ListApplicationsRequest::default() };
        let asking = admin.list_applications(asked).await?.into_inner().applications;
        known.extend(asking.into_iter().map(|row| row.queue));
    }
    if !known.contains(queue) {
        let asked =
            v1::ListDecisionsRequest { queue: queue.to_owned(), limit: 1, ..v1::ListDecisionsRequest::default() };
        known.extend(admin.list_decisions(asked).await?.into_inner().decisions.into_iter().map(|row| row.queue));
    }
    Ok(known)
}

fn known_or_named(queue: &str, known: &BTreeSet<String>) -> Result<(), Failure> {
    if known.contains(queue) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let there = match (nearest(queue, names.iter().copied()), names.as_slice()) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, []) => "none is configured by name, and none has asked for hints".to_owned(),
        (None, names) if names.len() <= QUEUES_NAMED => format!("there are: {}", names.join(", ")),
        (None, names) => {
            format!("there are: {} and {} more", names[..QUEUES_NAMED].join(", "), names.len() - QUEUES_NAMED)
        }
    };
    Err(Failure::Input(format!("--queue {queue}: no such queue is configured or has asked for hints; {there}")))
}

const DECISION_COLUMNS: &[Column<v1::DecisionView>] = &[
    ("decision", |row| (&*row.decision_id).into()),
    ("age", |row| row.age_ms.into()),
    ("at", |row| row.decided_at_ms.into()),
    ("application", |row| (&*row.application_id).into()),
    ("attempt", |row| row.attempt.into()),
    ("request", |row| (&*row.request_id).into()),
    ("queue", |row| (&*row.queue).into()),
    ("policy", |row| (&*row.policy).into()),
    ("mode", |row| (&*row.mode).into()),
    ("outcome", |row| (&*outcome(row)).into()),
    ("hosts", |row| row.hosts_total.into()),
    ("containers", |row| row.containers.into()),
    ("hinted", |row| row.hinted.into()),
    ("followed", |row| row.followed.as_ref().map(followed_share).into()),
    ("expected-gain|gain", |row| row.expected_gain.into()),
    ("bytes-saved|realised", |row| row.followed.as_ref().and_then(|of| of.realised_gain).into()),
    ("took", |row| (row.elapsed_ms > 0.0).then_some(row.elapsed_ms).into()),
];
const LEASE_COLUMNS: &[Column<v1::LeaseView>] = &[
    ("lease", |row| (&*row.lease_id.to_string()).into()),
    ("host", |row| (&*row.host).into()),
    ("rack", |row| (&*row.rack).into()),
    ("application", |row| (&*row.application_id).into()),
    ("attempt", |row| row.attempt.into()),
    ("queue", |row| (&*row.queue).into()),
    ("group", |row| (&*row.group).into()),
    ("state", |row| (&*row.state).into()),
    ("request", |row| (&*row.request_id).into()),
    ("decision", |row| (&*row.decision_id).into()),
    ("container", |row| (&*row.container_id).into()),
    ("MB|memory", |row| (size(&row.size).memory() as f64).into()),
    ("vcores", |row| f64::from(size(&row.size).virtual_cores()).into()),
    ("ends-in", |row| row.expires_in_ms.into()),
];
const APPLICATION_COLUMNS: &[Column<v1::ApplicationView>] = &[
    ("application", |row| (&*row.application_id).into()),
    ("queue", |row| (&*row.queue).into()),
    ("asked", |row| row.asked_ms.into()),
    ("asked-at", |row| row.asked_at_ms.into()),
    ("first-asked", |row| row.first_asked_at_ms.into()),
    ("last-decision", |row| row.last_decision.as_ref().map(|last| &*last.decision_id).into()),
    ("outcome", |row| (&*last_outcome(row)).into()),
    ("followed", |row| row.last_decision.as_ref().and_then(|last| last.followed.as_ref()).map(followed_share).into()),
    ("policy", |row| row.last_decision.as_ref().map(|last| &*last.policy).into()),
    ("hosts", |row| row.last_decision.as_ref().map(|last| last.hosts_total).into()),
    ("attempt", |row| row.attempt.into()),
    ("requests", |row| row.requests.max(row.refused_requests).into()),
    ("leases", |row| row.leases.into()),
    ("receivers", |row| row.turn.as_ref().map(|turn| turn.waited_ms as f64).into()),
];

/// What says most stands first: a terminal of 80 columns has whose it is, what came of it, and whether it was followed.
const DECISION_HEADER: [&str; 10] =
    ["application", "age", "outcome", "followed", "queue", "decision", "policy", "hosts", "containers", "hinted"];
const LEASE_HEADER: [&str; 8] = ["host", "application", "queue", "group", "state", "MB", "ends in", "lease"];
const APPLICATION_HEADER: [&str; 7] = ["application", "queue", "asked", "outcome", "followed", "requests", "leases"];

fn size(size: &Option<yarn::ResourceProto>) -> yarn::ResourceProto {
    size.clone().unwrap_or_default()
}

/// Hosts named of a decision in a table.
const HOSTS_SHOWN: usize = 3;

pub(super) fn decisions_text(answer: &v1::ListDecisionsResponse, wide: bool) -> String {
    let decisions = &answer.decisions;
    let table = if wide {
        let header = [
            "decision",
            "age",
            "at",
            "application",
            "attempt",
            "request",
            "queue",
            "policy",
            "mode",
            "outcome",
            "followed",
            "hosts",
            "containers",
            "hinted",
            "expected gain",
            "bytes saved",
            "took",
        ];
        output::table(header, 12, decisions.iter().map(wide_decision))
    } else {
        output::table(DECISION_HEADER, 8, decisions.iter().map(decision))
    };
    format!("{table}\n{} of {} decisions; {}", decisions.len(), answer.total, answer.kept)
}

/// Refusals since the start, and where those are that the list can't have. Empty: none was refused.
fn refusals_text(refused: &[v1::RefusedCount]) -> String {
    let left = |row: &v1::RefusedCount| row.requests.saturating_sub(row.recorded);
    let mut others: Vec<&v1::RefusedCount> = refused.iter().filter(|row| left(row) > 0).collect();
    others.sort_by_key(|row| std::cmp::Reverse(left(row)));
    let said = match refused_since_start(refused) {
        none if none.is_empty() => return none,
        said => format!("\n{said}"),
    };
    if others.is_empty() {
        return said;
    }
    let named = others.iter().map(|row| format!("{} {}", left(row), row.reason)).collect::<Vec<_>>().join(", ");
    format!("{said}; the others ({named}) left no record, or it went to make room: hintctl status says whose they are")
}

/// `3/12`, `3/12, 9 awaited`; `-`: not known.
fn followed(followed: Option<&v1::Followed>) -> String {
    match followed {
        None => "-".to_owned(),
        Some(of) if of.awaited > 0 => format!("{}/{}, {} awaited", of.on_host, of.hinted, of.awaited),
        Some(of) => format!("{}/{}", of.on_host, of.hinted),
    }
}

fn followed_share(of: &v1::Followed) -> f64 {
    of.on_host as f64 / of.hinted.max(1) as f64
}

/// Since it last asked; `>46.9 s` where that was before the daemon's start and is not kept.
pub(super) fn asked(ms: u64, before_start: bool) -> String {
    format!("{}{}", if before_start { ">" } else { "" }, output::age(ms))
}

/// What came of a decision, and why.
fn outcome(decision: &v1::DecisionView) -> String {
    match (&*decision.outcome, &*decision.reason) {
        ("shadow", "") => "shadow: would have been hinted".to_owned(),
        (outcome, "") => outcome.to_owned(),
        (outcome, reason) => format!("{outcome}: {reason}"),
    }
}

/// What came of an application's last request: the decision that is recorded, else why it was refused.
fn last_outcome(row: &v1::ApplicationView) -> String {
    match &row.last_decision {
        _ if !row.refused.is_empty() => format!("refused: {}", row.refused),
        Some(last) => outcome(last),
        None => "-".to_owned(),
    }
}

fn hosts(decision: &v1::DecisionView) -> String {
    let mut hosts = decision.hosts.iter().take(HOSTS_SHOWN).cloned().collect::<Vec<_>>().join(" ");
    let more = (decision.hosts_total as usize).saturating_sub(decision.hosts.len().min(HOSTS_SHOWN));
    if more > 0 {
        hosts += &format!(" and {more} more");
    }
    if hosts.is_empty() { "-".to_owned() } else { hosts }
}

fn decision(row: &v1::DecisionView) -> [String; 10] {
    [
        row.application_id.clone(),
        output::age(row.age_ms),
        outcome(row),
        followed(row.followed.as_ref()),
        row.queue.clone(),
        row.decision_id.clone(),
        row.policy.clone(),
        hosts(row),
        row.containers.to_string(),
        row.hinted.to_string(),
    ]
}

fn wide_decision(row: &v1::DecisionView) -> [String; 17] {
    let percent =
        |gain: Option<f64>| gain.map_or_else(|| "-".to_owned(), |gain| format!("{} %", output::digits(gain * 100.0)));
    let realised = row.followed.as_ref().and_then(|of| of.realised_gain);
    let took = if row.elapsed_ms > 0.0 { output::seconds(row.elapsed_ms / 1e3) } else { "-".to_owned() };
    [
        row.decision_id.clone(),
        output::age(row.age_ms),
        moment(row.decided_at_ms),
        row.application_id.clone(),
        row.attempt.to_string(),
        row.request_id.clone(),
        row.queue.clone(),
        row.policy.clone(),
        row.mode.clone(),
        outcome(row),
        followed(row.followed.as_ref()),
        hosts(row),
        row.containers.to_string(),
        row.hinted.to_string(),
        percent(row.expected_gain),
        percent(realised),
        took,
    ]
}

fn leases_text(answer: &v1::ListLeasesResponse, wide: bool) -> String {
    let leases = &answer.leases;
    let table = if wide {
        let header = [
            "lease",
            "host",
            "rack",
            "application",
            "attempt",
            "queue",
            "group",
            "state",
            "request",
            "decision",
            "container",
            "MB",
            "vcores",
            "ends in",
        ];
        output::table(header, 11, leases.iter().map(wide_lease))
    } else {
        output::table(LEASE_HEADER, 5, leases.iter().map(lease))
    };
    format!("{table}\n{} of {} leases", leases.len(), answer.total)
}

fn memory(size: &Option<yarn::ResourceProto>) -> String {
    size.as_ref().map_or(0, yarn::ResourceProto::memory).to_string()
}

fn lease(row: &v1::LeaseView) -> [String; 8] {
    [
        row.host.clone(),
        row.application_id.clone(),
        row.queue.clone(),
        row.group.clone(),
        row.state.clone(),
        memory(&row.size),
        output::age(row.expires_in_ms),
        row.lease_id.to_string(),
    ]
}

fn wide_lease(row: &v1::LeaseView) -> [String; 14] {
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    [
        row.lease_id.to_string(),
        row.host.clone(),
        row.rack.clone(),
        row.application_id.clone(),
        row.attempt.to_string(),
        row.queue.clone(),
        row.group.clone(),
        row.state.clone(),
        row.request_id.clone(),
        row.decision_id.clone(),
        or_none(&row.container_id),
        memory(&row.size),
        row.size.as_ref().map_or(0, yarn::ResourceProto::virtual_cores).to_string(),
        output::age(row.expires_in_ms),
    ]
}

fn applications_text(answer: &v1::ListApplicationsResponse, wide: bool) -> String {
    let applications = &answer.applications;
    let last = |row: &v1::ApplicationView| row.last_decision.clone().unwrap_or_default();
    let requests = |row: &v1::ApplicationView| row.requests.max(row.refused_requests).to_string();
    let table = if wide {
        let rows = applications.iter().map(|row| {
            [
                row.application_id.clone(),
                row.queue.clone(),
                asked(row.asked_ms, row.asked_before_start),
                moment(row.asked_at_ms),
                moment(row.first_asked_at_ms),
                last(row).decision_id,
                last(row).policy,
                last_outcome(row),
                followed(last(row).followed.as_ref()),
                hosts(&last(row)),
                row.attempt.to_string(),
                requests(row),
                row.leases.to_string(),
                row.turn.as_ref().map_or_else(|| "-".to_owned(), turn_cell),
            ]
        });
        let header = [
            "application",
            "queue",
            "asked",
            "asked at",
            "first asked",
            "last decision",
            "policy",
            "outcome",
            "followed",
            "hosts",
            "attempt",
            "requests",
            "leases",
            "receivers",
        ];
        output::table(header, 10, rows)
    } else {
        let rows = applications.iter().map(|row| {
            [
                row.application_id.clone(),
                row.queue.clone(),
                asked(row.asked_ms, row.asked_before_start),
                last_outcome(row),
                followed(last(row).followed.as_ref()),
                requests(row),
                row.leases.to_string(),
            ]
        });
        output::table(APPLICATION_HEADER, 5, rows)
    };
    format!("{table}\n{} of {} applications", applications.len(), answer.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> v1::DecisionView {
        v1::DecisionView {
            decision_id: "0a".into(),
            age_ms: 1_500,
            application_id: "application_1_0001".into(),
            queue: "etl".into(),
            policy: "joint".into(),
            outcome: "withheld".into(),
            reason: "no_gain".into(),
            containers: 8,
            hosts: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            hosts_total: 9,
            ..v1::DecisionView::default()
        }
    }

    #[test]
    fn a_decision_that_came_too_late_says_so_and_a_settled_one_what_was_realised_and_how_long_it_took() {
        let late = v1::DecisionView { outcome: "late".into(), reason: "deadline".into(), ..decision() };
        let followed = v1::Followed { on_host: 8, hinted: 8, realised_gain: Some(0.25), ..v1::Followed::default() };
        let row =
            v1::DecisionView { followed: Some(followed), expected_gain: Some(0.5), elapsed_ms: 12.0, ..decision() };
        let answer = v1::ListDecisionsResponse { decisions: vec![late, row], ..v1::ListDecisionsResponse::default() };
        let text = decisions_text(&answer, true);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(" late: deadline - ") && words.contains(" - - -"), "{text}");
        assert!(words.contains(" 50 % 25 % 12 ms"), "{text}");
    }

    #[test]
    fn a_queue_that_nobody_knows_is_refused_with_those_that_there_are() {
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert!(known_or_named("etl", &known(&["etl", "live"])).is_ok());
        let refused = |names: &[&str]| known_or_named("elt", &known(names)).unwrap_err().to_string();
        assert!(refused(&["live", "etl"]).ends_with("has asked for hints; did you mean etl?"));
        assert!(refused(&["live", "batch"]).ends_with("has asked for hints; there are: batch, live"));
        assert!(refused(&[]).ends_with("none is configured by name, and none has asked for hints"));
        let many: Vec<String> = (0..25).map(|at| format!("q{at:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(&many).ends_with("q19 and 5 more"), "{}", refused(&many));
    }

    #[test]
    fn a_decision_says_what_came_of_it_why_and_how_many_hosts_are_not_named() {
        let answer = v1::ListDecisionsResponse {
            decisions: vec![decision()],
            total: 7,
            kept: "records go back 9 s".into(),
            refused: vec![],
        };
        let text = decisions_text(&answer, false);
        assert!(text.contains("withheld: no_gain") && text.contains("a b c and 6 more"), "{text}");
        assert!(text.ends_with("1 of 7 decisions; records go back 9 s"), "{text}");
        assert!(decisions_text(&answer, true).contains("mode"), "wide has more columns");
    }

    #[test]
    fn a_decision_says_how_many_of_its_hints_were_followed_and_when_it_was() {
        let of = |on_host, awaited| Some(v1::Followed { on_host, hinted: 12, awaited, ..v1::Followed::default() });
        let row = |followed| v1::DecisionView { followed, decided_at_ms: 1_795_843_810_000, ..decision() };
        let rows = vec![row(of(3, 0)), row(of(3, 9)), row(None)];
        let answer = v1::ListDecisionsResponse { decisions: rows, ..v1::ListDecisionsResponse::default() };
        let text = decisions_text(&answer, false);
        assert!(text.contains(" 3/12  ") && text.contains(" 3/12, 9 awaited"), "{text}");
        assert!(decisions_text(&answer, true).contains("2026-11-28 05:30:10 UTC"));
        let last = v1::ApplicationView { last_decision: Some(row(of(5, 0))), ..v1::ApplicationView::default() };
        let answer = v1::ListApplicationsResponse { applications: vec![last], total: 1 };
        assert!(applications_text(&answer, false).contains(" 5/12 "), "{}", applications_text(&answer, false));
    }

    #[test]
    fn refusals_that_the_list_can_not_have_are_said_by_reason() {
        let count = |reason: &str, requests, recorded| v1::RefusedCount { reason: reason.into(), requests, recorded };
        assert_eq!(refusals_text(&[]), "");
        assert_eq!(
            refusals_text(&[count("unknown", 4, 4)]),
            "\n4 requests were refused since the start (4 unknown); 4 of them are recorded"
        );
        let some = refusals_text(&[count("unknown", 4, 3), count("invalid", 7, 0), count("full", 2, 2)]);
        let said =
            "\n13 requests were refused since the start (7 invalid, 4 unknown, 2 full); 5 of them are recorded; ";
        assert!(some.starts_with(said), "{some}");
        assert!(some.contains("the others (7 invalid, 1 unknown) left no record"), "{some}");
    }

    #[test]
    fn a_table_has_the_column_that_it_is_sorted_by() {
        fn check<R>(columns: &'static [Column<R>], narrow: &[&str], wide: &str) {
            let headers: Vec<&str> = wide.lines().next().unwrap().split("  ").map(str::trim).collect();
            for (names, _) in columns {
                let name = names.split('|').next().unwrap();
                let shown = name.replace('-', " ");
                match SortArgs::by(name).of(columns, 0).unwrap().is_wide(narrow) {
                    true => assert!(headers.contains(&&*shown), "{name} is in no table: {headers:?}"),
                    false => assert!(narrow.contains(&&*shown), "{name}: {narrow:?}"),
                }
            }
        }
        check(DECISION_COLUMNS, &DECISION_HEADER, &decisions_text(&v1::ListDecisionsResponse::default(), true));
        check(LEASE_COLUMNS, &LEASE_HEADER, &leases_text(&v1::ListLeasesResponse::default(), true));
        let applications = applications_text(&v1::ListApplicationsResponse::default(), true);
        check(APPLICATION_COLUMNS, &APPLICATION_HEADER, &applications);
    }

    #[test]
    fn ids_of_64_bits_are_texts_in_json() {
        let lease = v1::LeaseView { lease_id: u64::MAX, ..v1::LeaseView::default() };
        assert_eq!(serde_json::json!(lease)["lease_id"], u64::MAX.to_string());
        let text = leases_text(&v1::ListLeasesResponse { leases: vec![lease], total: 1 }, true);
        assert!(text.contains(&u64::MAX.to_string()) && text.ends_with("1 of 1 leases"), "{text}");
    }

    #[test]
    fn an_application_without_a_recorded_decision_has_a_row() {
        let row = v1::ApplicationView { application_id: "application_1_0001".into(), ..v1::ApplicationView::default() };
        let refused = v1::ApplicationView { refused: "invalid".into(), refused_requests: 7, ..row.clone() };
        let answer = v1::ListApplicationsResponse { applications: vec![row, refused], total: 2 };
        for wide in [false, true] {
            let text = applications_text(&answer, wide);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("application_1_0001") && words.contains("refused: invalid"), "{text}");
            assert!(words.contains(" 7 0 "), "its refused requests are counted: {text}");
        }
    }

    #[test]
    fn in_shadow_nothing_was_hinted() {
        let row = v1::DecisionView { outcome: "shadow".into(), ..v1::DecisionView::default() };
        assert_eq!(outcome(&row), "shadow: would have been hinted");
    }
}
