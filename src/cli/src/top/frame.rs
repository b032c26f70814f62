//! The figures of one frame: the daemon at its second look, and rates since the first.

use super::super::links::{
    Called, Sends, above_measured, busier, busier_load, busiest, is_measured, largest, measured_now, no_users, part,
    share, unknown, unknown_part, user_text, whose,
};
use super::super::readiness;
use super::Sort;
use hintd_client::view;
use hintd_client::wire::v1;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

/// What the daemon said at one moment.
pub(super) struct Look {
    pub(super) at: Instant,
    pub(super) status: v1::StatusResponse,
    pub(super) links: v1::LinksResponse,
    pub(super) attempts: v1::ListAttemptsResponse,
}

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    pub(super) version: String,
    pub(super) ready: bool,
    pub(super) not_ready_reason: String,
    pub(super) degraded: Vec<String>,
    /// All of that in words, with how much else wants a look.
    #[serde(skip)]
    pub(super) standing: String,
    pub(super) uptime_ms: u64,
    /// Time between the two looks; 0: there was one, and rates are 0.
    pub(super) interval_ms: u64,
    pub(super) nodes: u32,
    pub(super) nodes_usable: u32,
    pub(super) racks: u32,
    pub(super) resident_bytes: u64,
    /// Cores that the process used.
    pub(super) cpu_cores: f64,
    pub(super) rates: Rates,
    /// Tasks that wait for a dispatch policy.
    pub(super) waiting_tasks: u64,
    pub(super) leases: u64,
    pub(super) decisions_watched: u64,
    pub(super) sort: Sort,
    pub(super) links_total: u32,
    pub(super) links_down: u32,
    /// The first few of these, the longest first.
    pub(super) down: Vec<v1::DownLinkView>,
    pub(super) links: Vec<LinkRow>,
    pub(super) applications_total: u32,
    pub(super) applications: Vec<ApplicationRow>,
    pub(super) queues: Vec<QueueRow>,
}

/// Per second.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rates {
    /// Requests for hints.
    pub(super) answered: f64,
    pub(super) refused: f64,
    /// Containers.
    pub(super) hinted: f64,
    pub(super) withheld: f64,
}

/// A link; rates are bits per second.
#[derive(Debug, Serialize)]
pub(super) struct LinkRow {
    pub(super) id: String,
    pub(super) a: String,
    pub(super) b: String,
    pub(super) up: bool,
    /// For how long it has carried nothing.
    pub(super) down_ms: Option<u64>,
    pub(super) bits_per_s: u64,
    pub(super) a_to_b_bits_per_s: u64,
    pub(super) b_to_a_bits_per_s: u64,
    /// Of the capacity, in the busier direction.
    pub(super) share: f64,
    /// That direction: `a_to_b`, `b_to_a`.
    pub(super) busier: &'static str,
    /// measured, modelled
    pub(super) load_source: Option<&'static str>,
    #[serde(skip)]
    pub(super) load_from: v1::LoadSource,
    /// How old a measured load is.
    pub(super) load_age_ms: Option<u64>,
    /// The application that sends most in that direction, as it is modelled.
    pub(super) top_user: Option<String>,
    /// Its modelled rate each way, bits per second.
    pub(super) top_user_a_to_b_bits_per_s: Option<u64>,
    pub(super) top_user_b_to_a_bits_per_s: Option<u64>,
    /// Of the load in the busier direction; above 1: more than is measured.
    pub(super) top_user_share: Option<f64>,
    /// In the busier direction that is above what is measured.
    pub(super) top_user_above_measured: bool,
    /// Of the load in the busier direction what is nobody's whom hintd knows, where it is worth being named.
    pub(super) unknown_share: Option<f64>,
    #[serde(skip)]
    pub(super) top: String,
    /// In few words: the busier direction's load, and whose it is, with IDs as in [`Called::ALL`].
    #[serde(skip)]
    pub(super) load: String,
    #[serde(skip)]
    pub(super) whose: [String; 3],
    /// Why there is none: down, no_load, others; empty: there is.
    pub(super) users_reason: String,
}

/// An attempt that asked for hints.
#[derive(Debug, Serialize)]
pub(super) struct ApplicationRow {
    pub(super) application_id: String,
    pub(super) attempt: u32,
    pub(super) leases: u64,
    pub(super) requests: u64,
    /// Since the look before.
    pub(super) new_requests: u64,
    /// Since it last asked.
    pub(super) asked_ms: u64,
    /// That was before the daemon's start, at a time that is not kept.
    pub(super) asked_before_start: bool,
    /// The busiest link that it is a large user of.
    pub(super) busiest_link: Option<String>,
    /// The direction in which it sends there: `a_to_b`, `b_to_a`; of both the more loaded one. The figures below are of it.
    pub(super) busiest_way: Option<&'static str>,
    /// The link's load, of its capacity.
    pub(super) busiest_share: Option<f64>,
    /// Whether that is measured; a link with a measured load goes before one with a modelled one.
    pub(super) busiest_measured: Option<bool>,
    /// What it sends over that link, as it is modelled; bits per second.
    pub(super) busiest_bits_per_s: Option<u64>,
}

/// Adherence of one policy, queue and mode since the start.
#[derive(Debug, Serialize)]
pub(super) struct QueueRow {
    pub(super) policy: String,
    pub(super) queue: String,
    pub(super) mode: &'static str,
    pub(super) decisions: u64,
    /// Hinted containers, and where they came.
    pub(super) hinted: u64,
    pub(super) on_host: u64,
    pub(super) in_rack: u64,
    pub(super) elsewhere: u64,
    pub(super) never: u64,
}

impl Frame {
    /// Of two looks; of one that is given twice all rates are 0.
    pub(super) fn of(before: &Look, now: &Look, sort: Sort, rows: usize) -> Self {
        let status = &now.status;
        let interval = now.at.saturating_duration_since(before.at);
        let per_s = |by: f64| if interval.is_zero() { 0.0 } else { by.max(0.0) / interval.as_secs_f64() };
        let counted = |name: &str| {
            let of = |look: &Look| look.status.counters.get(name).copied().unwrap_or(0);
            per_s(of(now).saturating_sub(of(before)) as f64)
        };
        Self {
            version: status.version.clone(),
            ready: status.ready,
            not_ready_reason: status.not_ready_reason.clone(),
            degraded: status.degraded.clone(),
            standing: readiness::counted(status),
            uptime_ms: status.uptime_ms,
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            nodes: status.nodes,
            nodes_usable: status.nodes_usable,
            racks: status.racks,
            resident_bytes: status.resident_bytes,
            cpu_cores: per_s(status.process_cpu_s - before.status.process_cpu_s),
            rates: Rates {
                answered: counted("requests_answered"),
                refused: counted("requests_refused"),
                hinted: counted("hints_issued"),
                withheld: counted("hints_withheld"),
            },
            waiting_tasks: status.waiting_tasks,
            leases: status.leases,
            decisions_watched: status.decisions_watched,
            sort,
            links_total: now.links.total,
            links_down: status.links_down,
            down: status.down.clone(),
            links: links(&now.links.links, sort, rows),
            applications_total: now.attempts.total,
            applications: applications(before, now, sort, rows),
            queues: status.adherence.iter().take(rows).map(queue).collect(),
        }
    }
}

fn greater_load(link: &v1::LinkView) -> u64 {
    link.a_to_b_bits_per_s.max(link.b_to_a_bits_per_s)
}

fn links(all: &[v1::LinkView], sort: Sort, rows: usize) -> Vec<LinkRow> {
    let mut all: Vec<&v1::LinkView> = all.iter().collect();
    // The daemon gives them by id, which decides among equals.
    match sort {
        // A model fills some link whenever anybody sends: what is measured stands first.
        Sort::Load | Sort::Leases => {
            all.sort_by(|a, b| measured_now(b).cmp(&measured_now(a)).then_with(|| share(b).total_cmp(&share(a))));
        }
        Sort::Rate => all.sort_by_key(|link| Reverse((measured_now(link), greater_load(link)))),
        Sort::Name => {}
    }
    all.into_iter().take(rows).map(link_row).collect()
}

fn link_row(link: &v1::LinkView) -> LinkRow {
    let top = largest(link);
    LinkRow {
        id: link.id.clone(),
        a: link.a.clone(),
        b: link.b.clone(),
        up: link.up,
        down_ms: link.down_ms,
        bits_per_s: link.bits_per_s,
        a_to_b_bits_per_s: link.a_to_b_bits_per_s,
        b_to_a_bits_per_s: link.b_to_a_bits_per_s,
        share: share(link),
        busier: WAYS[busier(link)],
        load_from: link.load_source(),
        load_source: view::load_source(link.load_source()),
        load_age_ms: link.load_age_ms,
        top_user_a_to_b_bits_per_s: top.map(|user| user.a_to_b_bits_per_s),
        top_user_b_to_a_bits_per_s: top.map(|user| user.b_to_a_bits_per_s),
        top_user_share: top.and_then(|user| part(link, user)),
        top_user_above_measured: top.is_some_and(|user| above_measured(link, user)[busier(link)]),
        unknown_share: unknown_part(link),
        top: top_in_words(link),
        load: busier_load(link),
        whose: Called::ALL.map(|called| whose(link, called)),
        users_reason: link.users_reason.clone(),
        top_user: top.map(|user| user.application_id.clone()),
    }
}

/// The directions' names in documents.
pub(super) const WAYS: [&str; 2] = ["a_to_b", "b_to_a"];

fn top_in_words(link: &v1::LinkView) -> String {
    let named: Vec<String> = largest(link).map(|user| user_text(link, user)).into_iter().chain(unknown(link)).collect();
    if named.is_empty() { no_users(&link.users_reason).to_owned() } else { named.join(", ") }
}

fn applications(before: &Look, now: &Look, sort: Sort, rows: usize) -> Vec<ApplicationRow> {
    let busiest = busiest(&now.links.links);
    let key = |attempt: &v1::AttemptView| (attempt.application_id.clone(), attempt.attempt);
    let earlier: BTreeMap<_, u64> =
        before.attempts.attempts.iter().map(|attempt| (key(attempt), attempt.requests)).collect();
    let mut all: Vec<ApplicationRow> = now
        .attempts
        .attempts
        .iter()
        .map(|attempt| {
            let busiest = busiest.get(attempt.application_id.as_str());
            ApplicationRow {
                application_id: attempt.application_id.clone(),
                attempt: attempt.attempt,
                leases: attempt.leases,
                requests: attempt.requests,
                asked_ms: attempt.asked_ms,
                asked_before_start: attempt.asked_before_start,
                new_requests: attempt.requests.saturating_sub(earlier.get(&key(attempt)).copied().unwrap_or(0)),
                busiest_link: busiest.map(|sends| sends.link.id.clone()),
                busiest_way: busiest.map(|sends| WAYS[sends.way]),
                busiest_share: busiest.map(|sends| sends.share),
                busiest_measured: busiest.map(|sends| is_measured(sends.link)),
                busiest_bits_per_s: busiest.map(|sends| sends.bits_per_s),
            }
        })
        .collect();
    // Among equals the one that asked last: what is live, and not what has the smaller name.
    let rank = |row: &ApplicationRow| busiest.get(&*row.application_id).map(Sends::rank);
    match sort {
        Sort::Load => {
            all.sort_by_key(|row| (Reverse((rank(row), row.leases)), row.asked_before_start, row.asked_ms));
        }
        Sort::Leases => all.sort_by_key(|row| (Reverse(row.leases), row.asked_before_start, row.asked_ms)),
        Sort::Rate => all.sort_by_key(|row| (Reverse(row.new_requests), row.asked_before_start, row.asked_ms)),
        Sort::Name => {}
    }
    all.truncate(rows);
    all
}

fn queue(row: &v1::AdherenceView) -> QueueRow {
    QueueRow {
        policy: row.policy.clone(),
        queue: row.queue.clone(),
        mode: view::mode(row.mode()),
        decisions: row.decisions,
        hinted: row.on_host + row.in_rack + row.elsewhere + row.never,
        on_host: row.on_host,
        in_rack: row.in_rack,
        elsewhere: row.elsewhere,
        never: row.never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn look(at: Instant, answered: u64, requests: u64) -> Look {
        let link = |id: &str, bits_per_s: u64, a_to_b: u64, b_to_a: u64| v1::LinkView {
            id: id.into(),
            up: true,
            bits_per_s,
            a_to_b_bits_per_s: a_to_b,
            b_to_a_bits_per_s: b_to_a,
            users: vec![v1::LinkUser {
                application_id: "application_1_0001".into(),
                bits_per_s: 1,
                ..v1::LinkUser::default()
            }],
            ..v1::LinkView::default()
        };
        let attempt = |id: &str, leases: u64, requests: u64| v1::AttemptView {
            application_id: id.into(),
            attempt: 1,
            leases,
            requests,
            ..v1::AttemptView::default()
        };
        let status = v1::StatusResponse {
            counters: [("requests_answered".to_owned(), answered)].into(),
            process_cpu_s: answered as f64 / 100.0,
            ..v1::StatusResponse::default()
        };
        let links = vec![link("l1", 100, 50, 0), link("l2", 1_000, 100, 300), link("l3", 0, 0, 0)];
        let attempts = vec![attempt("application_1_0001", 1, requests), attempt("application_1_0002", 5, 3)];
        Look {
            at,
            status,
            links: v1::LinksResponse { links, total: 3 },
            attempts: v1::ListAttemptsResponse { attempts, total: 2 },
        }
    }

    #[test]
    fn rates_are_between_looks_and_rows_in_the_order_that_was_asked_for() {
        let at = Instant::now();
        let (first, second) = (look(at, 100, 3), look(at + Duration::from_secs(2), 150, 9));
        let frame = Frame::of(&first, &second, Sort::Load, 2);
        assert_eq!((frame.rates.answered, frame.interval_ms, frame.rates.refused), (25.0, 2_000, 0.0));
        assert!((frame.cpu_cores - 0.25).abs() < 1e-9, "{}", frame.cpu_cores);
        let ids = |frame: &Frame| frame.links.iter().map(|link| link.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&frame), frame.links[0].share), (vec!["l1".to_owned(), "l2".to_owned()], 0.5));
        let first_of = |sort| Frame::of(&first, &second, sort, 2).applications[0].application_id.clone();
        assert_eq!(frame.applications[0].application_id, "application_1_0001", "it sends over the busiest link");
        assert_eq!(frame.applications[0].busiest_bits_per_s, Some(1));
        assert_eq!(first_of(Sort::Leases), "application_1_0002", "it has more leases");
        let by_rate = Frame::of(&first, &second, Sort::Rate, 1);
        assert_eq!(ids(&by_rate), ["l2"], "either direction counts");
        let app = &by_rate.applications[0];
        assert_eq!((app.new_requests, app.busiest_link.as_deref(), app.busiest_share), (6, Some("l1"), Some(0.5)));
        assert_eq!(ids(&Frame::of(&first, &second, Sort::Name, 3)), ["l1", "l2", "l3"]);
        // What was measured long ago, and what is down, stand among modelled loads.
        let link = |id: &str, load, age, up| v1::LinkView {
            id: id.to_owned(),
            bits_per_s: 100,
            a_to_b_bits_per_s: load,
            load_source: v1::LoadSource::Measured.into(),
            load_age_ms: Some(age),
            up,
            ..v1::LinkView::default()
        };
        let model = v1::LinkView { load_source: v1::LoadSource::Modelled.into(), ..link("model", 60, 0, true) };
        let all = [link("old", 50, 15_001, true), link("down", 0, 5, false), model, link("new", 10, 15_000, true)];
        let order: Vec<_> = links(&all, Sort::Load, 4).into_iter().map(|row| row.id).collect();
        assert_eq!(order, ["new", "model", "old", "down"]);
        // One look, and a daemon that began anew.
        assert_eq!(Frame::of(&second, &second, Sort::Load, 1).rates.answered, 0.0);
        let again = Frame::of(&second, &look(at + Duration::from_secs(4), 7, 1), Sort::Load, 1);
        assert_eq!((again.rates.answered, again.cpu_cores), (0.0, 0.0));
    }
}
