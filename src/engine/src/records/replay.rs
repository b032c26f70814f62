//! A decision made again: the same bytes, or where they differ; and by another policy, side by side.

use super::record::{Probe, Record, StoredOutcome};
use crate::decision::{Decision, TermValues};
use crate::dispatching::DetachedDispatcher;
use crate::generation::Generation;
use crate::placer::{
    Rates, Row, SelectedPolicy, Side, is_chained, may_wait, propose, propose_together, propose_waiting, rate,
};
use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{DecisionId, Micros, Timestamp};
use hintd_policy::{Place, Policy};
use serde_json::Value;
use std::sync::Arc;

/// A decision made again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayResult {
    /// As it came out. Ids of decision and leases, and what happened between proposal and answer, are the record's:
    /// they are facts of the commit, not of the search.
    pub outcome: Result<Decision, Refusal>,
    /// Whether it is, byte for byte, what came out then.
    pub same: bool,
    /// Where it is not, the first few.
    pub differences: Vec<Difference>,
}

/// One value that came out otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which, as `hints[3].host`.
    pub field: String,
    /// Then, as JSON.
    pub then: String,
    /// Now, as JSON.
    pub now: String,
}

/// The same request under another policy.
#[derive(Debug, Clone)]
pub struct PolicyComparison {
    /// What it would have been answered.
    pub other: Result<Decision, Refusal>,
    /// Cost terms of both placements, the recorded one's first, by the same measure; `None`: one of both placed nothing
    /// that could be measured.
    pub terms: Option<[TermValues; 2]>,
    /// Both placements under each policy's objective, the recorded policy's first.
    pub rated: Vec<ObjectiveComparison>,
}

/// Two placements under one policy's objective; absent where it has none.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectiveComparison {
    /// Whose objective; lower is better.
    pub policy: Arc<str>,
    /// Of the recorded placement.
    pub recorded: Option<f64>,
    /// Of the other policy's.
    pub other: Option<f64>,
    /// (recorded − other) ÷ recorded, where both place as many containers.
    pub gain: Option<f64>,
}

/// Differences that are named.
const NAMED: usize = 16;
/// Letters of a value that are shown.
const SHOWN: usize = 160;

impl Record {
    /// Makes the decision again, from the record alone; `live` lends its tables of paths where the network is the same.
    #[must_use]
    pub fn replay(&self, live: Option<&Snapshot>) -> ReplayResult {
        self.replay_until(live, &mut || false)
    }

    /// The same for somebody who may go away: once `gone` says so, the search ends and what comes of it means nothing.
    pub fn replay_until(&self, live: Option<&Snapshot>, gone: &mut dyn FnMut() -> bool) -> ReplayResult {
        let generation = self.generation(live);
        let mut recorded = self.stop();
        let mut stop = || recorded() || gone(); // looks are counted first
        let made = self.make(&generation, (&self.policy, &self.name), self.dispatcher(live), &mut stop);
        let made = made.map(|(decision, _)| decision);
        match (&self.came, made) {
            (StoredOutcome::Answered { answer, draft, .. }, Ok(made)) => {
                let said = &answer.decision;
                let before = draft.as_deref().unwrap_or(said);
                let differences = differ(&computed(before), &computed(&made));
                let same = differences.is_empty();
                let facts = |made: Decision| Decision {
                    id: said.id,
                    at: said.at,
                    conflicts: said.conflicts,
                    elapsed: said.elapsed,
                    ..made
                };
                let outcome = Ok(if same { said.clone() } else { facts(made) });
                ReplayResult { outcome, same, differences }
            }
            (StoredOutcome::Refused { refusal, .. }, Err(made)) if alike(refusal, &made) => {
                ReplayResult { outcome: Err(refusal.clone()), same: true, differences: Vec::new() }
            }
            (StoredOutcome::Answered { .. }, Err(made)) => other("hints".to_owned(), made.to_string(), Err(made)),
            (StoredOutcome::Refused { refusal, .. }, made) => {
                let now = made.as_ref().map_or_else(ToString::to_string, |_| "hints".to_owned());
                other(refusal.to_string(), now, made)
            }
        }
    }

    /// Whether a dispatcher decides, where no traffic is under a chain.
    fn waits(&self, chosen: &SelectedPolicy<'_>) -> bool {
        self.follows && self.settings.withhold.is_none() && may_wait(&self.request, chosen)
    }

    /// Makes the decision under another policy, on what the recorded one read; `stop` bounds its search beside the
    /// recorded steps. The placements are made once more to be rated, so this takes twice as long as the searches.
    ///
    /// # Errors
    /// [`Refusal`] where the request can't be compiled; what the other policy refuses is [`PolicyComparison::other`].
    pub fn compare_with(
        &self,
        name: &str,
        policy: &Arc<dyn Policy>,
        live: Option<&Snapshot>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<PolicyComparison, Refusal> {
        let generation = self.generation(live);
        let (own, chosen) = (self.chosen(&self.policy, &self.name), self.chosen(policy, name));
        let dispatcher = self.dispatcher(live).filter(|_| policy.as_dispatch().is_some());
        let dispatcher = dispatcher.map(|dispatcher| dispatcher.under(name, policy)).transpose();
        // The placement that is rated is the one that is shown: its search is made again, look by look, and not with
        // what the first left of the time.
        let mut probe = Probe::default();
        let made = dispatcher
            .and_then(|dispatcher| self.make(&generation, (policy, name), dispatcher, &mut || probe.look(stop())));
        let (other, rows) = match made {
            Ok((decision, rows)) => (decision, rows),
            Err(refusal) => {
                return Ok(PolicyComparison { other: Err(refusal), terms: None, rated: Vec::new() });
            }
        };
        let chained = is_chained(&generation, &self.request, &self.settings.chains);
        // What is not placed by a search of its own is rated as it came out.
        let waited = |chosen: &SelectedPolicy<'_>| self.waits(chosen) && !chained || self.is_of_round(chosen);
        let recorded = self.make(&generation, (&self.policy, &self.name), self.dispatcher(live), &mut self.stop());
        let recorded = recorded.map(|(_, rows)| rows).unwrap_or_default();
        let (mut again, mut likewise) = (self.stop(), stop_at(probe.stopped()));
        let sides = [
            Side { chosen: own, launched: waited(&own).then_some(&*recorded), stop: &mut again },
            Side { chosen, launched: waited(&chosen).then_some(&*rows), stop: &mut likewise },
        ];
        let rates = rate(&generation, &self.request, &self.settings, self.now, sides)?;
        let rated = self.rated(name, &rates);
        Ok(PolicyComparison { other: Ok(other), terms: Some(rates.terms), rated })
    }

    fn rated(&self, name: &str, rates: &Rates) -> Vec<ObjectiveComparison> {
        let names = [Arc::clone(&self.name), Arc::from(name)];
        let one = |(policy, [recorded, other]): (Arc<str>, [Option<f64>; 2])| {
            let pair = recorded.zip(other).filter(|(recorded, _)| rates.alike && *recorded > 0.0);
            ObjectiveComparison {
                policy,
                recorded,
                other,
                gain: pair.map(|(recorded, other)| (recorded - other) / recorded),
            }
        };
        names.into_iter().zip(rates.objectives).map(one).collect()
    }

    fn chosen<'a>(&'a self, policy: &'a Arc<dyn Policy>, name: &'a str) -> SelectedPolicy<'a> {
        SelectedPolicy { policy: &**policy, baseline: &*self.baseline, mode: self.mode, name }
    }

    /// Whether it is decided with the others of its round.
    fn is_of_round(&self, chosen: &SelectedPolicy<'_>) -> bool {
        let decides = chosen.policy.as_place().and_then(Place::as_together).is_some();
        self.round.is_some() && decides
    }

    /// The recorded probe: it says to stop from the same look on.
    fn stop(&self) -> impl FnMut() -> bool + use<> {
        stop_at(self.stopped)
    }

    /// The same path as a request's: compile, place or dispatch.
    fn make(
        &self,
        generation: &Generation,
        (policy, name): (&Arc<dyn Policy>, &str),
        dispatcher: Option<DetachedDispatcher>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(Decision, Vec<Row>), Refusal> {
        if !self.has_latency() && policy.as_place().is_some_and(Place::reads_latency) {
            return Err(Refusal::NotRecorded {
                decision: self.decision(),
                kept: format!(
                    "no measured latency was kept with it, for {} reads none, and {name} places by it",
                    self.name
                ),
            });
        }
        let chosen = self.chosen(policy, name);
        let chained = is_chained(generation, &self.request, &self.settings.chains);
        if let Some(round) = self.round.as_ref().filter(|_| self.is_of_round(&chosen)) {
            let made = propose_together(generation, &chosen, &round.inputs.members(), self.now, stop);
            let proposal = made.into_iter().nth(round.at).expect("it was one of the round")?;
            let placed = proposal.rows.iter().filter(|row| row.lease).cloned().collect();
            return Ok((proposal.preview(), placed));
        }
        if chained || !self.waits(&chosen) {
            let proposal = propose(generation, &self.request, &chosen, &self.settings, self.now, stop)?;
            return Ok((proposal.preview(), proposal.rows));
        }
        let mut proposal = propose_waiting(generation, &self.request, &chosen, policy, &self.settings, self.now)?;
        let waits = proposal.waits.take().expect("what waits was asked for");
        let dispatcher = dispatcher.ok_or_else(|| Refusal::Invalid {
            field: "policy".to_owned(),
            message: format!(
                "{name} places no request by itself: it decides which waiting task runs when a node has room, and which tasks \
                 waited was not kept, for {} decided",
                self.name
            ),
        })?;
        Ok(dispatcher.decide(proposal, &waits))
    }
}

/// Says to stop from this look on.
fn stop_at(stopped: Option<u64>) -> impl FnMut() -> bool {
    let mut looks = 0_u64;
    move || {
        looks += 1;
        stopped.is_some_and(|at| looks >= at)
    }
}

/// A decision without the facts of its commit.
fn computed(decision: &Decision) -> Decision {
    let mut computed =
        Decision { id: DecisionId::of(0), at: Timestamp(0), conflicts: 0, elapsed: Micros::ZERO, ..decision.clone() };
    for hint in &mut computed.hints {
        (hint.leases, hint.expires) = (Vec::new(), None);
    }
    computed
}

/// Whether two refusals say the same. A path's nearest name is looked for among paths that records do not keep.
fn alike(then: &Refusal, now: &Refusal) -> bool {
    match (then, now) {
        (Refusal::Unknown { what: "path", name, .. }, Refusal::Unknown { what: "path", name: other, .. }) => {
            name == other
        }
        _ => then == now,
    }
}

fn other(then: String, now: String, outcome: Result<Decision, Refusal>) -> ReplayResult {
    ReplayResult { outcome, same: false, differences: vec![Difference { field: "outcome".to_owned(), then, now }] }
}

/// Where two decisions, written down, differ; empty: nowhere.
fn differ(then: &Decision, now: &Decision) -> Vec<Difference> {
    let text =
        |decision: &Decision| serde_json::to_vec(decision).expect("a decision is written to the journal as well");
    let (then, now) = (text(then), text(now));
    if then == now {
        return Vec::new();
    }
    let value = |text: &[u8]| -> Value { serde_json::from_slice(text).expect("it was just written") };
    let mut found = Vec::new();
    walk("", &value(&then), &value(&now), &mut found);
    found
}

fn walk(path: &str, then: &Value, now: &Value, found: &mut Vec<Difference>) {
    if then == now || found.len() == NAMED {
        return;
    }
    match (then, now) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&path, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}[{at}]"), a, b, found);
            }
        }
        _ => {
            let show = |value: &Value| value.to_string().chars().take(SHOWN).collect::<String>();
            found.push(Difference { field: path.to_owned(), then: show(then), now: show(now) });
        }
    }
}
