//! `pna`: probabilistic network-aware scheduling, the baseline of 002 §7, as its text describes it.
//!
//! Jobs are asked in `fair`'s order, reduces before maps. Each offers its waiting task of lowest transmission cost on
//! the offered node, which is launched with the probability
//!
//! p = 1 − exp(−mean ÷ cost), and 1 where the cost is 0,
//!
//! `mean` being that task's mean cost over all nodes with room for it; so p falls from 1 as the cost exceeds the mean
//! and is 0.63 at the mean. A task that was drawn against waits for another offer, and the next job is asked. 002 does
//! not print the formula: this one is stated here. Cost is bytes × hops on static paths: 0 hops on the node, 2 within
//! a rack, 4 between racks. A map reads its nearest replica; a reduce reads its part of what the job's ended maps put
//! out, rack by rack; in a request that tells what its groups send, what its placed maps will put out (`gang`). Draws
//! come from the seed and a count of draws.

mod gang;

use crate::adapt::OfferInTurn;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, View};
use crate::params::{Invalid, Params};
use crate::pool::{self, HoldReason, JobIdx, Kind, OfferedNode, Pick, Pool, Task, not_yet};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::cluster::Resource;
use hintd_model::units::{NodeIdx, RackIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, OnceCell};

/// Its name.
pub const NAME: &str = "pna";

/// Rounds of offers in which a request's tasks are drawn for: in a cluster of n free nodes the last ones are accepted
/// with at least 1 − exp(−1 ÷ n).
const ROUNDS: u32 = 100;

/// The seed of draws, and when reduces may be launched.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PnaParams {
    /// Seed of the draws.
    pub seed: u32,
    /// As of [`FairParams`](super::fair::FairParams).
    pub slow_start: f64,
    /// As of [`FairParams`](super::fair::FairParams).
    pub early_reduces: f64,
    /// Slots of a node that a gang with edges is offered before it is the next node's turn.
    pub gang_slots: u32,
}

impl Default for PnaParams {
    fn default() -> Self {
        Self { seed: 1, slow_start: pool::SLOW_START, early_reduces: pool::EARLY_REDUCES, gang_slots: u32::MAX }
    }
}

impl Params for PnaParams {
    fn validate(&self) -> Result<(), Invalid> {
        if self.gang_slots == 0 {
            return Err(Invalid { key: "gang_slots", message: "0 slots would offer nothing".to_owned() });
        }
        super::share("slow_start", self.slow_start)?;
        super::share("early_reduces", self.early_reduces)
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Pna {
    params: PnaParams,
}

impl Definition for Pna {
    type Params = PnaParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "puts a task where its data is cheap to move: the cheaper, the more likely";

    fn new(params: PnaParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &PnaParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), dispatch: Some(self), ..Capabilities::default() }
    }
}

/// What waits, and how often was drawn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PnaState {
    pool: Pool,
    draws: u64,
}

impl Place for Pna {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        if problem.edges.is_empty() {
            return OfferInTurn::new(self.clone(), ROUNDS).place(problem, budget);
        }
        Ok(gang::place(self, problem, budget))
    }
}

impl Dispatch for Pna {
    type State = PnaState;

    fn start(&self) -> PnaState {
        let pool = Pool::new(self.params.slow_start, self.params.early_reduces);
        PnaState { pool, draws: 0 }
    }

    fn observe(&self, state: &mut PnaState, event: &DispatchEvent, view: &View<'_>) {
        state.pool.observe(event, view);
    }

    fn offer(&self, state: &mut PnaState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        let dice = Dice { seed: u64::from(self.params.seed), draws: Cell::new(state.draws) };
        let free = FreeNodes::default();
        let reduce = |pool: &Pool, job| {
            pool.reduce(job, &slot).is_some_and(|task| {
                let cost = |rack| reduce_cost(pool, job, rack);
                dice.accepts(cost(slot.spot.rack), || free.of(&pool.size_of(task), &slot).mean_by_rack(cost))
            })
        };
        let map = |pool: &Pool, job| {
            let (task, cost) = cheapest_map(pool, job, &slot)?;
            let mean = || free.of(&pool.size_of(task), &slot).mean_by_node(|node| map_cost(pool, task, node, view));
            dice.accepts(cost, mean).then_some(task)
        };
        let reduce = state.pool.first_reduce(&slot, reduce);
        let pool = &state.pool;
        let jobs = pool.with_maps_before(reduce).flat_map(|user| pool.map_jobs(user));
        let task = { jobs }.find_map(|job| map(pool, job)).or(reduce);
        state.draws = dice.draws.get();
        match task {
            Some(task) => vec![Advice::Launch(state.pool.name(task))],
            None if view.explain => not_yet(&mut state.pool, &slot, |_, _, _: Kind| HoldReason::TransferDear),
            None => Vec::new(),
        }
    }
}

/// Hops of a transfer between nodes of a rack, and between racks.
const IN_RACK: f64 = 2.0;
const BETWEEN_RACKS: f64 = 4.0;

/// The job's map of lowest cost there that fits; of equal ones the nearest.
fn cheapest_map(pool: &Pool, job: JobIdx, slot: &OfferedNode<'_>) -> Option<(Task, f64)> {
    if let Some(task) = pool.local_map(job, slot, Pick::Largest) {
        return Some((task, 0.0));
    }
    let priced = |task: Option<Task>| task.map(|task| (task, map_cost(pool, task, slot.spot.node, slot.view())));
    let in_rack = priced(pool.rack_map(job, slot, Pick::Smallest));
    let any = priced(pool.any_map(job, slot, Pick::Smallest));
    match (in_rack, any) {
        (Some(in_rack), Some(any)) => Some(if any.1 < in_rack.1 { any } else { in_rack }),
        (in_rack, any) => in_rack.or(any),
    }
}

fn map_cost(pool: &Pool, task: Task, node: NodeIdx, view: &View<'_>) -> f64 {
    let rack = view.snapshot.rack(node);
    let hops = pool.replicas_of(task).map(|spot| match spot {
        spot if spot.node == node => 0.0,
        spot if spot.rack == rack => IN_RACK,
        _ => BETWEEN_RACKS,
    });
    hops.reduce(f64::min).unwrap_or(0.0) * pool.input_of(task).as_f64()
}

/// A reduce's part of what ended maps of the job put out, by where that lies.
fn reduce_cost(pool: &Pool, job: JobIdx, rack: RackIdx) -> f64 {
    let (here, all) = (pool.output_in(job, rack).as_f64(), pool.output(job).as_f64());
    let reduces = f64::from(pool.reduces(job).all.max(1));
    (IN_RACK * here + BETWEEN_RACKS * (all - here)) / reduces
}

/// Nodes with room for a container of a size, for one offer.
#[derive(Default)]
struct FreeNodes(OnceCell<(Resource, Free)>);

struct Free {
    nodes: Vec<NodeIdx>,
    /// How many of them, by rack.
    by_rack: Vec<u32>,
}

impl FreeNodes {
    /// For the size first asked: sizes of an offer's tasks are alike but for those that fit less often.
    fn of(&self, size: &Resource, slot: &OfferedNode<'_>) -> &Free {
        &self.0.get_or_init(|| (*size, Free::of(size, slot))).1
    }
}

impl Free {
    fn of(size: &Resource, slot: &OfferedNode<'_>) -> Self {
        let View { snapshot, leases, .. } = *slot.view();
        let room = |&node: &NodeIdx| {
            let usable = snapshot.state[node.at()].usable();
            usable && snapshot.rules.feasible(size, &snapshot.room(node, leases)) || node == slot.spot.node
        };
        let nodes: Vec<NodeIdx> = snapshot.statics.indexes().filter(room).collect();
        let mut by_rack = vec![0; snapshot.statics.racks.len()];
        nodes.iter().for_each(|&node| by_rack[snapshot.rack(node).at()] += 1);
        Self { nodes, by_rack }
    }

    fn mean_by_node(&self, cost: impl Fn(NodeIdx) -> f64) -> f64 {
        self.nodes.iter().map(|&node| cost(node)).sum::<f64>() / self.nodes.len() as f64
    }

    fn mean_by_rack(&self, cost: impl Fn(RackIdx) -> f64) -> f64 {
        let racks = self.by_rack.iter().enumerate().filter(|(_, nodes)| **nodes > 0);
        let sum: f64 = racks.map(|(rack, nodes)| f64::from(*nodes) * cost(RackIdx::new(rack))).sum();
        sum / self.nodes.len() as f64
    }
}

/// Draws that the seed and their number tell.
struct Dice {
    seed: u64,
    draws: Cell<u64>,
}

impl Dice {
    fn accepts(&self, cost: f64, mean: impl FnOnce() -> f64) -> bool {
        if cost <= 0.0 {
            return true;
        }
        self.draws.set(self.draws.get() + 1);
        draw(self.seed, self.draws.get()) < 1.0 - (-mean() / cost).exp()
    }
}

fn draw(seed: u64, number: u64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random.random()
}

#[cfg(test)]
mod tests;
