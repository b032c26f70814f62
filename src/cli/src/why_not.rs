//! Why containers are not where they were hinted, in words: what was known of each when it came.

use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// What is known where YARN had a choice.
const BY_DELAYS: &str = ": YARN did not wait for it for long enough, or was not asked for it";
/// Where hintd knows what a ResourceManager shows, and where it does not.
const SEE_DOCTOR: &str = " (hintctl doctor: delays, processor)";
const SEE_YARN: &str = "; which of them hintd can't tell, for it asks no ResourceManager ([resource_manager] of its configuration). \
                        Look at node-locality-delay and rack-locality-additional-delay in capacity-scheduler.xml and at the mode of \
                        the queue in the processor's file (docs/yarn.md)";

/// A line a reason, the most frequent first; empty where all is as hinted.
pub(super) fn lines(outcome: &v1::DecisionOutcome, resource_manager_asked: bool) -> String {
    let mut misses: BTreeMap<&str, u64> = BTreeMap::new();
    let of_hints = outcome.hints.iter().flat_map(|hint| &hint.misses);
    of_hints.for_each(|(reason, count)| *misses.entry(reason).or_default() += count);
    let mut misses: Vec<(&str, u64)> = misses.into_iter().collect();
    misses.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let said = |(reason, count): &(&str, u64)| format!("\nwhy not: {}", words(reason, *count, resource_manager_asked));
    misses.iter().map(said).collect()
}

/// `2, although their host had room by what its node said (yarn_chose): …`
fn words(reason: &str, count: u64, resource_manager_asked: bool) -> String {
    let known = match reason {
        "no_room" => "for their host was full when they came",
        "expired" => "for they came after their lease had ended (leases.time_to_live)",
        "withdrawn" => "for others had taken their room, or their node was gone, before they came",
        "yarn_chose" => "although their host had room when they came, by what its node told",
        "late_hint" => "for YARN had allocated them before the hint was given",
        "node_not_running" => "for their host was not RUNNING when they came",
        "released" => "for the application gave their lease back before they came",
        "attempt_done" => "for the application ended before they came",
        "not_seen" => "for nobody told of them within leases.watched",
        "forgotten" => "for they were watched no longer: too many decisions were (limits.decisions_watched)",
        _ => "for a reason that this hintctl does not know",
    };
    let more = match (reason, resource_manager_asked) {
        ("yarn_chose", true) => [BY_DELAYS, SEE_DOCTOR].concat(),
        ("yarn_chose", false) => [BY_DELAYS, SEE_YARN].concat(),
        _ => String::new(),
    };
    format!("{count}, {known} ({reason}){more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_engine::Miss;

    #[test]
    fn each_reason_has_words_and_the_most_frequent_stands_first() {
        for miss in Miss::ALL {
            assert!(!words(miss.as_str(), 1, true).contains("does not know"), "{miss:?} has none");
        }
        let hint = |misses: &[(&str, u64)]| v1::HintOutcome {
            misses: misses.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            ..v1::HintOutcome::default()
        };
        let hints = vec![hint(&[("no_room", 2), ("yarn_chose", 1)]), hint(&[("yarn_chose", 4)])];
        let outcome = v1::DecisionOutcome { hints, ..v1::DecisionOutcome::default() };
        let said = lines(&outcome, true);
        let said: Vec<&str> = said.lines().collect();
        assert!(said[1].starts_with("why not: 5, although their host had room when they came"), "{said:?}");
        assert!(said[1].contains("hintctl doctor") && said[1].contains("(yarn_chose)"), "{said:?}");
        assert_eq!(said[2], "why not: 2, for their host was full when they came (no_room)");
        let unknown = lines(&outcome, false);
        assert!(!unknown.contains("doctor") && unknown.contains("capacity-scheduler.xml"), "no dead end: {unknown}");
        assert_eq!(lines(&v1::DecisionOutcome::default(), true), "");
    }
}
