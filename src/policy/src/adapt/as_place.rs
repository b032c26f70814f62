//! A dispatcher answers a request: free nodes are offered in turn until everything is launched or nothing
//! more is taken.

use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, TaskInput, View, WaitingGroup};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::problem::InputBlock;
use crate::{Budget, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, NodeIdx, Timestamp};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes a *place* of a *dispatch*. Each request is seen alone, from an empty State, and its groups without roles:
/// what the dispatcher would learn from other applications, or as tasks end, it does not know here. Nodes are offered in the order of heartbeats, which
/// starts anywhere (the seed); a round in which every offer is declined still counts, so that a dispatcher
/// that waits a number of offers gets them, up to `idle_rounds` rounds in a row.
#[derive(Debug, Clone)]
pub struct OfferInTurn<D> {
    dispatcher: D,
    idle_rounds: u32,
}

impl<D: Dispatch> OfferInTurn<D> {
    /// Of `dispatcher`, given up after so many rounds without a launch; at least 1.
    #[must_use]
    pub const fn new(dispatcher: D, idle_rounds: u32) -> Self {
        Self { dispatcher, idle_rounds: if idle_rounds == 0 { 1 } else { idle_rounds } }
    }
}

/// The request's attempt: dispatchers tell applications apart, and here there is one.
const ATTEMPT: AttemptId = AttemptId { application: ApplicationId { cluster_timestamp: 0, sequence: 0 }, attempt: 1 };

impl<D: Dispatch> Place for OfferInTurn<D> {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let view = View { snapshot: problem.snapshot, leases: problem.leases, now: Timestamp(0), explain: false };
        let mut state = self.dispatcher.start();
        let mut waiting: BTreeMap<(Arc<str>, u32), usize> = BTreeMap::new();
        for group in by_priority(problem) {
            let event = DispatchEvent::Waiting(waiting_group(problem, group));
            self.dispatcher.observe(&mut state, &event, &view);
            let tasks = 0..problem.groups[group].count;
            waiting.extend(tasks.map(|task| ((Arc::clone(&problem.groups[group].name), task), group)));
        }
        let nodes = turn(problem);
        let mut filling = PlacementBuilder::new(problem);
        let mut idle = 0;
        while !waiting.is_empty() && !nodes.is_empty() && idle < self.idle_rounds {
            idle += 1;
            for &node in &nodes {
                if waiting.is_empty() || !budget.step() {
                    return Ok(filling.finish(budget));
                }
                let offer = Offer { node, free: filling.room(node) };
                for advice in self.dispatcher.offer(&mut state, &offer, &view) {
                    let Advice::Launch(task) = advice else { continue };
                    let key = (Arc::clone(&task.group), task.index);
                    let Some(&group) = waiting.get(&key) else { continue };
                    if !launchable(problem, &filling, group, node) {
                        continue;
                    }
                    waiting.remove(&key);
                    filling.put(group, task.index, node);
                    self.dispatcher.observe(&mut state, &DispatchEvent::Launched { task, node }, &view);
                    idle = 0;
                }
            }
        }
        Ok(filling.finish(budget))
    }
}

/// Dispatchers know room, not the request's own bounds: those are held here.
fn launchable(problem: &PlaceProblem<'_>, filling: &PlacementBuilder<'_, '_>, group: usize, node: NodeIdx) -> bool {
    problem.groups[group].candidates.binary_search(&node).is_ok() && filling.fits(group, node)
}

/// Candidates of any group, from the seed's on.
fn turn(problem: &PlaceProblem<'_>) -> Vec<NodeIdx> {
    let mut nodes: Vec<NodeIdx> = problem.groups.iter().flat_map(|group| group.candidates.iter().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let start = problem.seed.checked_rem(nodes.len() as u64).unwrap_or(0);
    nodes.rotate_left(start as usize);
    nodes
}

/// As an ApplicationMaster would say it: task i reads the i-th equal run of blocks.
fn waiting_group(problem: &PlaceProblem<'_>, group: usize) -> WaitingGroup {
    let asked = &problem.groups[group];
    let count = asked.count as usize;
    let input = |run: &[InputBlock]| {
        let mut nodes: SmallVec<[NodeIdx; 3]> = run.iter().flat_map(|block| block.nodes.iter().copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        TaskInput { bytes: Bytes(run.iter().map(|block| block.bytes.0).sum()), nodes }
    };
    WaitingGroup {
        attempt: ATTEMPT,
        user: "".into(),
        queue: "".into(),
        group: Arc::clone(&asked.name),
        // All of a request runs at once, so nothing waits for a share of its maps: roles would make reduces wait.
        role: "".into(),
        count: asked.count,
        size: asked.size,
        inputs: if asked.input.is_empty() {
            Vec::new()
        } else {
            (0..count).map(|task| input(asked.input.of_task(task, count))).collect()
        },
        output_ratio: None,
        since: Timestamp(0),
    }
}
