//! Whether hints of the newest decisions were followed: what sums by queue hide, as small jobs beside large ones, and what changed
//! within the hour.

use super::super::output::digits;
use hintd::findings::followed::{self, FOLLOWED};
use hintd::findings::{Check, page, some};
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// So many of them are judged, those whose containers were all seen.
const JUDGED: usize = 20;
/// Fewer say nothing.
const ENOUGH: usize = 10;

/// Nothing where too few are known, or where the daemon is of before this: it does not tell who came to the hinted host's rack.
pub(super) fn latest(
    status: &v1::StatusResponse,
    decisions: &Result<v1::ListDecisionsResponse, String>,
) -> Option<Check> {
    let list = decisions.as_ref().ok()?;
    status.adherence_last_hour.iter().find(|row| !row.groups.is_empty())?;
    let settled = |row: &&v1::DecisionView| {
        row.mode == "on" && row.followed.as_ref().is_some_and(|of| of.settled && of.hinted > 0)
    };
    let rows: Vec<&v1::DecisionView> = list.decisions.iter().filter(settled).take(JUDGED).collect();
    let none: Vec<&v1::DecisionView> =
        rows.iter().copied().filter(|row| of(row).on_host + of(row).in_rack == 0).collect();
    if rows.len() < ENOUGH {
        return None;
    }
    let sum = |part: fn(&v1::Followed) -> u64| rows.iter().map(|row| part(&of(row))).sum::<u64>();
    let (on_host, near, all) = (sum(|of| of.on_host), sum(|of| of.on_host + of.in_rack), sum(|of| of.hinted));
    let share = |part: u64| digits(part as f64 * 100.0 / all.max(1) as f64);
    let figures = format!(
        "of the newest {} decisions whose containers were all seen, {} had none of them on its host or in its rack; of all {all} \
         containers {} % came to their host, {} % there or to its rack",
        rows.len(),
        none.len(),
        share(on_host),
        share(near)
    );
    if none.len() * 2 <= rows.len() {
        return Some(Check::ok(FOLLOWED, page::FOLLOWED, format!("Lately {figures}.")));
    }
    let named: Vec<String> = none.iter().map(|row| format!("{} 0 of {}", row.application_id, of(row).hinted)).collect();
    let finding = format!("Lately most hints are not followed: {figures}. Not followed: {}.", some(&named));
    let advice = format!("{} hintctl explain of one shows where its containers came.", followed::remedy(most(&none)));
    Some(Check::warning(FOLLOWED, page::FOLLOWED, finding, advice))
}

fn of(row: &v1::DecisionView) -> v1::Followed {
    row.followed.clone().unwrap_or_default()
}

/// The most frequent reason.
fn most<'a>(rows: &[&'a v1::DecisionView]) -> &'a str {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        let reason = row.followed.as_ref().map_or("", |of| &*of.reason);
        *reasons.entry(reason).or_default() += 1;
    }
    reasons.into_iter().max_by_key(|(_, count)| *count).map_or("", |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd::findings::Verdict;

    fn row(at: usize, on_host: u64, in_rack: u64, hinted: u64) -> v1::DecisionView {
        let followed = v1::Followed {
            on_host,
            in_rack,
            hinted,
            settled: true,
            reason: "yarn_chose".into(),
            ..v1::Followed::default()
        };
        v1::DecisionView {
            application_id: format!("application_1_{at:04}"),
            mode: "on".into(),
            followed: Some(followed),
            ..v1::DecisionView::default()
        }
    }

    fn tells_groups() -> v1::StatusResponse {
        let row = v1::AdherenceView { groups: vec![v1::GroupAdherence::default()], ..v1::AdherenceView::default() };
        v1::StatusResponse { adherence_last_hour: vec![row], ..v1::StatusResponse::default() }
    }

    fn found(rows: Vec<v1::DecisionView>) -> Option<Check> {
        latest(
            &tells_groups(),
            &Ok(v1::ListDecisionsResponse { decisions: rows, ..v1::ListDecisionsResponse::default() }),
        )
    }

    #[test]
    fn small_jobs_that_are_never_followed_are_found_beside_a_large_one_that_is() {
        let mut rows: Vec<v1::DecisionView> = (0..12).map(|at| row(at, 0, 0, 2)).collect();
        rows.insert(3, row(99, 150, 6, 160));
        let check = found(rows.clone()).unwrap();
        assert_eq!(check.verdict, Verdict::Warning);
        assert!(
            check.finding.contains("the newest 13 decisions whose containers were all seen, 12 had none"),
            "{check:?}"
        );
        assert!(check.finding.contains("of all 184 containers 81.5 % came to their host, 84.8 % there"), "{check:?}");
        assert!(
            check.finding.contains("Not followed: application_1_0000 0 of 2, ") && check.finding.contains("and 7 more")
        );
        assert!(check.advice.contains("rack-locality-additional-delay"), "{check:?}");
        rows.truncate(9);
        assert_eq!(found(rows), None, "nine say nothing");
    }

    #[test]
    fn decisions_that_are_followed_in_their_racks_are_well_and_those_that_are_watched_still_do_not_count() {
        let rows: Vec<v1::DecisionView> = (0..25).map(|at| row(at, 0, u64::from(at % 2 == 0), 1)).collect();
        let check = found(rows.clone()).unwrap();
        assert_eq!(check.verdict, Verdict::Ok);
        assert!(check.finding.starts_with("Lately of the newest 20 decisions"), "{check:?}");
        let open = rows.into_iter().map(|mut row| {
            row.followed.as_mut().unwrap().settled = false;
            row
        });
        assert_eq!(found(open.collect()), None);
        assert_eq!(latest(&tells_groups(), &Err("no answer".into())), None);
        let rows = (0..25).map(|at| row(at, 0, 0, 1)).collect();
        let rows = Ok(v1::ListDecisionsResponse { decisions: rows, ..v1::ListDecisionsResponse::default() });
        assert_eq!(latest(&v1::StatusResponse::default(), &rows), None, "a daemon of before tells nothing of racks");
    }
}
