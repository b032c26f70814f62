//! A request that waits for a dispatcher: names to waiting groups, on the pool; the engine's thread does the rest.

use super::compile::{self, Compiled, compile};
use super::{PlacerSettings, Proposal, SelectedPolicy, blank, blocked, check_keys, hints, large, proposal, wait};
use crate::decision::Mode;
use crate::dispatching::{DispatchRequest, RequestedGroup};
use crate::flows::settings::ChainSettings;
use crate::flows::{Names, classes};
use crate::generation::Generation;
use crate::refusal::Refusal;
use hintd_model::cluster::{Constraints, Gang, HintRequest, WhenFull};
use hintd_model::units::{Bytes, Timestamp};
use hintd_policy::Policy;
use hintd_policy::dispatch::{TaskInput, WaitingGroup};
use hintd_policy::problem::InputBlock;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a dispatcher may decide: one launches tasks one by one, and knows sizes, inputs and room. It knows no labels, no
/// bounds and no avoided hosts, can't promise a whole gang or an answer at once, and strict asks are orders. Nor does it
/// know chains: see [`is_chained`].
#[must_use]
pub fn may_wait(request: &HintRequest, chosen: &SelectedPolicy<'_>) -> bool {
    let free = |constraints: &Constraints| *constraints == Constraints::default();
    let plain = |label: &Option<Arc<str>>| label.as_ref().is_none_or(|label| label.is_empty());
    chosen.mode == Mode::On
        && chosen.policy.as_dispatch().is_some()
        && request.gang == Gang::UpTo
        && request.when_full == WhenFull::Advise
        && free(&request.constraints)
        && request.groups.iter().all(|group| free(&group.constraints) && plain(&group.label))
        && request.asks.iter().all(|ask| ask.relax_locality)
}

/// Whether some traffic of the request is under a chain of middleboxes: then it is to be placed at once, and checked.
#[must_use]
pub fn is_chained(generation: &Generation, request: &HintRequest, settings: &ChainSettings) -> bool {
    let Some(chains) = generation.snapshot.topology.chains.as_deref() else { return false };
    let history = request.recurring_key.as_ref().and_then(|key| generation.history.get(key)).map(Arc::as_ref);
    let edges = compile::edges(request, history, &mut Vec::new()).unwrap_or_default();
    classes(Some(chains), request, &edges, settings.port).iter().any(Option::is_some)
}

/// The groups of a request as a dispatcher is told of them; `policy` is the chosen one. Its hints are the engine's to
/// make, when the proposal is committed.
///
/// # Errors
/// [`Refusal`] where the request can't be answered by hints.
pub fn propose_waiting(
    generation: &Generation,
    request: &Arc<HintRequest>,
    chosen: &SelectedPolicy<'_>,
    policy: &Arc<dyn Policy>,
    settings: &PlacerSettings,
    now: Timestamp,
) -> Result<Proposal, Refusal> {
    check_keys(&request.groups)?;
    let names = Names::of(request);
    let compiled = compile(generation, (request, names.both()), settings, now)?;
    large::check_sizes(&compiled)?;
    let mut draft = blank(generation, request, chosen);
    draft.seed = compiled.problem.seed;
    draft.exclusions = hints::exclusions(&compiled);
    draft.blocked = blocked::of_full_groups(&compiled);
    draft.ages = hints::ages(&compiled, settings, now);
    let known = compiled.problem.degraded.tokens().into_iter().chain(compiled.notes.iter().copied());
    let located = settings.located.iter().flat_map(|notes| notes.iter().cloned());
    draft.degraded = known.map(str::to_owned).chain(located).collect();
    draft.learnt = compiled.learnt.clone();
    draft.at = now;
    let beside = wait::Beside { taken: &BTreeMap::new(), kept: None };
    let wanted = |at: usize| {
        let advice = wait::advise((&compiled, generation), beside, (at, 1), now);
        let first = advice.rows.first().and_then(|row| row.wait);
        RequestedGroup { waiting: waiting(&compiled, request, at, now), expected_wait: first }
    };
    let groups = (0..request.groups.len()).map(wanted).collect();
    let confidence = hints::confidence(&compiled, settings, now);
    let waits = DispatchRequest { policy: Arc::clone(policy), name: chosen.name.into(), groups, confidence };
    let read = compiled.read;
    Ok(Proposal { waits: Some(Box::new(waits)), read, ..proposal(generation, request, draft, Vec::new()) })
}

/// Task i reads the i-th equal run of the group's blocks: of as many tasks as blocks, each its own.
fn waiting(compiled: &Compiled<'_>, request: &HintRequest, at: usize, now: Timestamp) -> WaitingGroup {
    let (group, wish) = (&compiled.problem.groups[at], &compiled.groups[at]);
    let count = wish.count as usize;
    let input = |run: &[InputBlock]| {
        let mut nodes: SmallVec<[_; 3]> = run.iter().flat_map(|block| block.nodes.iter().copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        TaskInput { bytes: Bytes(run.iter().map(|block| block.bytes.0).sum()), nodes }
    };
    WaitingGroup {
        attempt: request.attempt,
        user: Arc::clone(&request.user),
        queue: request.queue.as_str().into(),
        group: Arc::clone(&group.name),
        role: if group.role.is_empty() { Arc::clone(&group.name) } else { Arc::clone(&group.role) },
        count: wish.count,
        size: group.size,
        inputs: if group.input.is_empty() {
            Vec::new()
        } else {
            (0..count).map(|task| input(group.input.of_task(task, count))).collect()
        },
        output_ratio: output_ratio(compiled, at),
        since: now,
    }
}

/// What the group sends ÷ what it reads, where the request or the recurring job's history says both.
fn output_ratio(compiled: &Compiled<'_>, at: usize) -> Option<f64> {
    let edges = compiled.problem.edges.iter().filter(|edge| edge.from.at() == at);
    let sent: Vec<u64> = edges.map(|edge| edge.bytes.0).collect();
    let read = compiled.problem.groups[at].input.bytes;
    let sum = sent.iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
    (!sent.is_empty() && read > Bytes::ZERO).then(|| Bytes(sum).as_f64() / read.as_f64())
}

/// A seed for what belongs to a request.
pub(crate) fn seed_of(text: &str) -> u64 {
    compile::seed_of(text)
}
