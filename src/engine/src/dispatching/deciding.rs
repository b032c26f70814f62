//! What a request that waits comes to at once, in one dispatcher instance.

use super::dispatcher_instance::{DispatcherInstance, GroupKey, OfferContext, OfferOutcome};
use super::layout::{LaunchLayout, lay_out, table};
use super::request::DispatchRequest;
use super::{NO_ROOM, NotYet};
use crate::decision::Pending;
use crate::placer::Proposal;
use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, Micros, NodeIdx, RequestId};
use hintd_policy::dispatch::TaskRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes with room that a request is offered at once: one round of their heartbeats, of so many at most.
const ROUND_MAX: usize = 1_024;
/// Of a group whose policy gives no reason.
const HELD_BACK: &str = "held_back";

/// What a request that waits came to at once.
pub(super) struct Decided {
    pub(super) turn: OfferOutcome,
    /// Its own launches; the containers of its hints, in order.
    pub(super) tasks: Vec<TaskRef>,
    /// Launches of others that waited before.
    pub(super) others: BTreeMap<(AttemptId, RequestId), LaunchLayout>,
}

/// Takes a request's groups in and offers the nodes with room, those with their input first.
pub(super) fn decide(
    dispatcher: &mut DispatcherInstance,
    proposal: &mut Proposal,
    waits: &DispatchRequest,
    offer_context: &mut OfferContext,
    max_wait: Micros,
) -> Decided {
    let request = Arc::new(proposal.request.without_asks());
    let keys = dispatcher.wait(&request, &waits.groups, waits.confidence, max_wait, &offer_context.view());
    let mut turn = OfferOutcome::default();
    let nodes = round(waits, offer_context, proposal.draft.seed);
    for &node in &nodes {
        dispatcher.offer(node, offer_context, &mut turn);
    }
    let mut laid = lay_out(dispatcher, &turn.launched, &offer_context.snapshot);
    note_plan(dispatcher, &mut laid, &turn.launched, &offer_context.snapshot);
    let own = laid.remove(&(request.attempt, request.id.clone()));
    let (hints, tasks) = own.map(|own| (own.hints, own.tasks)).unwrap_or_default();
    proposal.draft.plan = dispatcher.note((request.attempt, &request.id), &turn.launched, &offer_context.snapshot);
    proposal.draft.pending = pending(dispatcher, &keys, waits, &turn, (&nodes, offer_context));
    proposal.draft.asks = table(&proposal.request, &hints);
    (proposal.draft.hints, proposal.rows) = (hints.hints, hints.rows);
    Decided { turn, tasks, others: laid }
}

/// Says of hints that are pushed how they stand to the plan in force.
pub(super) fn note_plan(
    dispatcher: &mut DispatcherInstance,
    laid: &mut BTreeMap<(AttemptId, RequestId), LaunchLayout>,
    launched: &[(TaskRef, NodeIdx)],
    snapshot: &Snapshot,
) {
    for ((attempt, request), laid) in laid {
        laid.plan = dispatcher.note((*attempt, request), launched, snapshot);
    }
}

/// What waits of a request's groups, and why: their applications know it from the answer.
fn pending(
    dispatcher: &mut DispatcherInstance,
    keys: &[GroupKey],
    waits: &DispatchRequest,
    turn: &OfferOutcome,
    (nodes, offer_context): (&[NodeIdx], &OfferContext),
) -> Vec<Pending> {
    let mut pending = Vec::new();
    for (key, wanted) in keys.iter().zip(&waits.groups) {
        let Some(group) = dispatcher.group_mut(key).filter(|group| group.waiting > 0) else {
            continue;
        };
        let fits = |node: &NodeIdx| offer_context.fits(*node, &group.told.size);
        let otherwise = if nodes.iter().any(fits) { HELD_BACK } else { NO_ROOM };
        let said = turn.not_yet.get(key).cloned();
        let unsaid = || NotYet { reason: otherwise.into(), expected_wait: wanted.expected_wait };
        let NotYet { reason, expected_wait } = said.unwrap_or_else(unsaid);
        group.reason = Some((Arc::clone(&reason), offer_context.now));
        pending.push(Pending { group: Arc::clone(&group.asked), count: group.waiting, reason, expected_wait });
    }
    pending
}

fn round(waits: &DispatchRequest, offer_context: &OfferContext, seed: u64) -> Vec<NodeIdx> {
    let inputs = waits.groups.iter().flat_map(|group| &group.waiting.inputs);
    let first: BTreeSet<NodeIdx> = inputs.flat_map(|input| input.nodes.iter().copied()).collect();
    let mut nodes: Vec<NodeIdx> = first.iter().copied().filter(|&node| offer_context.has_room(node)).collect();
    let count = offer_context.snapshot.nodes() as u64;
    let turned = (0..count).map(|at| NodeIdx::new(((seed % count.max(1) + at) % count) as usize));
    nodes.extend(turned.filter(|node| !first.contains(node) && offer_context.has_room(*node)));
    nodes.truncate(ROUND_MAX);
    nodes
}

pub(super) fn no_dispatcher(name: &str) -> Refusal {
    Refusal::Invalid { field: "policy".into(), message: format!("\"{name}\" does not dispatch") }
}
