//! What became of hints, to the wire.

use super::wire_mode;
use hintd_client::wire::v1;
use hintd_engine::{DecisionOutcome, HintOutcome, Miss, Outcomes, Tally, TallyKey, Term, TermCompared};
use std::collections::BTreeMap;

/// Figures of one policy, queue and mode.
pub(in crate::server) fn adherence_view(key: &TallyKey, tally: &Tally) -> v1::AdherenceView {
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
    }
}

/// What became of one decision.
pub(in crate::server) fn outcome(outcome: &DecisionOutcome) -> v1::DecisionOutcome {
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

fn misses(outcomes: &Outcomes) -> BTreeMap<String, u64> {
    let all = Miss::ALL.into_iter().map(|why| (why.as_str().to_owned(), outcomes.missed(why)));
    all.filter(|(_, count)| *count > 0).collect()
}
