//! How a daemon stands, in a line: ready or not, and what else wants a look.

use super::output;
use hintd::findings::{self, Check, Verdict, count};
use hintd_client::wire::v1;

/// Findings named in the line.
const NAMED: usize = 4;

/// `ready, 2 warnings: link l1 failed 41 s ago, followed (hintctl doctor)`, by what the daemon's status alone says.
#[must_use]
pub(super) fn named(status: &v1::StatusResponse) -> String {
    let found = found(status);
    let mut names: Vec<String> = found.iter().map(|check| check.name.to_owned()).collect();
    names.dedup();
    let mut all: Vec<String> = links(status).into_iter().chain(names).collect();
    if let Some(more) = all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        all.truncate(NAMED);
        all.push(format!("{more} more"));
    }
    match counts(status, &found) {
        counts if counts.is_empty() => state(status),
        counts => format!("{}, {counts}: {} (hintctl doctor)", state(status), all.join(", ")),
    }
}

/// The same without their names: `ready, 2 warnings (hintctl doctor)`
#[must_use]
pub(super) fn counted(status: &v1::StatusResponse) -> String {
    match counts(status, &found(status)) {
        counts if counts.is_empty() => state(status),
        counts => format!("{}, {counts} (hintctl doctor)", state(status)),
    }
}

fn state(status: &v1::StatusResponse) -> String {
    match (status.ready, &status.degraded[..]) {
        (false, _) => format!("NOT READY: {}", status.not_ready_reason),
        (true, []) => "ready".to_owned(),
        (true, without) => format!("ready, DEGRADED: {}", without.join(" ")),
    }
}

fn counts(status: &v1::StatusResponse, found: &[Check]) -> String {
    let of = |verdict| found.iter().filter(|check| check.verdict == verdict).count() as u64;
    let (problems, warnings) = (of(Verdict::Problem), of(Verdict::Warning) + u64::from(status.links_down > 0));
    let counts = [(problems, "problem"), (warnings, "warning")].into_iter().filter(|(number, _)| *number > 0);
    counts.map(|(number, what)| count(number, what)).collect::<Vec<_>>().join(", ")
}

/// Links that are down, which are one warning.
fn links(status: &v1::StatusResponse) -> Option<String> {
    let first = status.down.first().map(|link| (&link.id, output::age(link.down_ms)));
    match (status.links_down, first) {
        (0, _) => None,
        (1, Some((id, age))) => Some(format!("link {id} failed {age} ago")),
        (links, Some((id, age))) => Some(format!("link {id} and {} more failed, it {age} ago", links - 1)),
        (links, None) => Some(format!("{} down", count(links.into(), "link"))), // a daemon of before
    }
}

/// What was not asked for is not judged; and the first words say whether it is ready.
fn found(status: &v1::StatusResponse) -> Vec<Check> {
    const NOT_ASKED: &str = "status alone does not say";
    let (racks, network, down) = (Err(NOT_ASKED.into()), Err(NOT_ASKED.into()), Err(NOT_ASKED.into()));
    let mut found = findings::attention(findings::all(status, &racks, &network, &down));
    found.retain(|check| check.name != "ready");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> v1::StatusResponse {
        let heard = v1::SourceAge { source: "heartbeats".into(), age_ms: Some(100), ..v1::SourceAge::default() };
        v1::StatusResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            ready: true,
            nodes: 2,
            nodes_usable: 2,
            racks: 2,
            ages: vec![heard],
            ..v1::StatusResponse::default()
        }
    }

    #[test]
    fn a_link_that_is_down_stands_in_the_first_line_with_the_other_warnings() {
        assert_eq!(named(&well()), "ready");
        let down = v1::DownLinkView { id: "l1".into(), down_ms: 41_000, ..v1::DownLinkView::default() };
        let one = v1::StatusResponse { links_down: 1, down: vec![down], ..well() };
        assert_eq!(named(&one), "ready, 1 warning: link l1 failed 41 s ago (hintctl doctor)");
        assert_eq!(counted(&one), "ready, 1 warning (hintctl doctor)");
        let more = v1::StatusResponse { links_down: 3, nodes_usable: 0, ..one };
        let said = named(&more);
        assert_eq!(said, "ready, 1 problem, 1 warning: link l1 and 2 more failed, it 41 s ago, nodes (hintctl doctor)");
        let noted = v1::StatusResponse { notices: (0..7).map(|at| format!("notice {at}")).collect(), ..well() };
        assert_eq!(named(&noted), "ready, 7 warnings: notice (hintctl doctor)", "each name once");
        let not_ready = v1::StatusResponse { ready: false, not_ready_reason: "no node".into(), ..well() };
        assert_eq!(named(&not_ready), "NOT READY: no node");
    }
}
