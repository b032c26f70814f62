//! What became of hints, to the wire.

use super::wire_mode;
use hintd_client::wire::v1;
use hintd_engine::{
    DecisionOutcome, Followed, GroupTallies, GroupTally, HintOutcome, Miss, Outcomes, Tally, TallyKey, Term,
    TermCompared,
};
use hintd_model::cluster::Snapshot;
use hintd_model::units::NodeIdx;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Groups told of one policy, queue and mode: all names that are kept, and the others.
const GROUPS_TOLD: usize = 17;

/// Figures of one policy, queue and mode.
pub(in crate::server) fn adherence_view(
    key: &TallyKey,
    tally: &Tally,
    groups: Option<&GroupTallies>,
) -> v1::AdherenceView {
    let outcomes = &tally.outcomes;
    let terms = Term::ALL.into_iter().filter(|term| tally.term(*term).decisions > 0).map(|term| {
        let sums = tally.term(term);
        v1::TermAdherence {
            term: term.as_str().to_owned(),
            decisions: sums.decisions,
            hinted: sums.hinted,
            realised: sums.realised,
            beside: sums.beside,
            default_placement: sums.default,
            expected_gain: sums.expected_gain(),
            realised_gain: sums.realised_gain(),
            had_followed: sums.had_followed(),
        }
    });
    v1::AdherenceView {
        policy: key.policy.to_string(),
        queue: key.queue.to_string(),
        mode: wire_mode(key.mode).into(),
        decisions: tally.decisions,
        compared: tally.compared,
        on_host: outcomes.on_host,
        in_rack: outcomes.in_rack,
        elsewhere: outcomes.elsewhere,
        never: outcomes.never,
        misses: misses(outcomes),
        terms: terms.collect(),
        input_bytes: tally.input_bytes,
        objective_gain: (tally.objective_gains > 0).then(|| tally.objective_gain / tally.objective_gains as f64),
        objective_gains: tally.objective_gains,
        not_followed: tally.not_followed,
        groups: groups.map(by_group).unwrap_or_default(),
    }
}

/// Those with most containers first.
fn by_group(groups: &GroupTallies) -> Vec<v1::GroupAdherence> {
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|(_, of)| std::cmp::Reverse(of.outcomes.all()));
    let view = |(name, of): (&Arc<str>, &GroupTally)| v1::GroupAdherence {
        group: name.to_string(),
        decisions: of.decisions,
        not_followed: of.not_followed,
        on_host: of.outcomes.on_host,
        in_rack: of.outcomes.in_rack,
        elsewhere: of.outcomes.elsewhere,
        never: of.outcomes.never,
    };
    groups.into_iter().take(GROUPS_TOLD).map(view).collect()
}

/// How many of a decision's containers came to their host.
pub(in crate::server) fn followed(followed: Followed) -> v1::Followed {
    let Followed { on_host, in_rack, hinted, awaited, settled, why, realised_gain } = followed;
    let reason = why.map(Miss::as_str).unwrap_or_default().to_owned();
    v1::Followed { on_host, in_rack, hinted, awaited, settled, reason, realised_gain }
}

/// What became of one decision.
pub(in crate::server) fn outcome(outcome: &DecisionOutcome, snapshot: &Snapshot) -> v1::DecisionOutcome {
    let came_to = |node: NodeIdx, count: u64| v1::CameTo {
        host: snapshot.host(node).to_string(),
        rack: snapshot.statics.racks[snapshot.rack(node).at()].to_string(),
        count,
    };
    let places = |hint: &HintOutcome| {
        let own = snapshot.statics.by_host.get(&hint.host).map(|node| came_to(*node, hint.outcomes.on_host));
        let others = hint.came.iter().filter(|(node, _)| node.at() < snapshot.nodes());
        let others = others.map(|(node, count)| came_to(*node, u64::from(*count)));
        own.into_iter().filter(|own| own.count > 0).chain(others).collect::<Vec<_>>()
    };
    let hint = |hint: &HintOutcome| v1::HintOutcome {
        group: hint.group.to_string(),
        host: hint.host.to_string(),
        count: hint.count,
        on_host: hint.outcomes.on_host,
        in_rack: hint.outcomes.in_rack,
        elsewhere: hint.outcomes.elsewhere,
        never: hint.outcomes.never,
        open: hint.open,
        misses: misses(&hint.outcomes),
        came_to: places(hint),
        came_to_unknown: came_to_unknown(hint),
    };
    let term = |found: &TermCompared| v1::TermOutcome {
        term: found.term.as_str().to_owned(),
        hinted: found.hinted,
        realised: found.realised,
        default_placement: found.default,
    };
    v1::DecisionOutcome {
        settled: outcome.settled,
        hints: outcome.hints.iter().map(hint).collect(),
        terms: outcome.terms.iter().map(term).collect(),
    }
}

/// Containers of a hint that came beside its host, to nodes that are not kept.
fn came_to_unknown(hint: &HintOutcome) -> u64 {
    let known: u64 = hint.came.iter().map(|(_, count)| u64::from(*count)).sum();
    (hint.outcomes.in_rack + hint.outcomes.elsewhere).saturating_sub(known)
}

fn misses(outcomes: &Outcomes) -> BTreeMap<String, u64> {
    let all = Miss::ALL.into_iter().map(|why| (why.as_str().to_owned(), outcomes.missed(why)));
    all.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_beside_its_host_and_is_not_kept_came_to_an_unknown_host() {
        let hint = |in_rack, elsewhere, came| HintOutcome {
            group: "map".into(),
            host: "h1".into(),
            count: 300,
            open: 0,
            outcomes: Outcomes { on_host: 7, in_rack, elsewhere, ..Outcomes::default() },
            came,
        };
        assert_eq!(came_to_unknown(&hint(20, 270, vec![(NodeIdx(1), 200), (NodeIdx(2), 56)])), 34);
        assert_eq!(came_to_unknown(&hint(1, 2, vec![(NodeIdx(1), 3)])), 0);
    }
}
