//! `pat`: policy-aware task allocation under chains of middleboxes (Yang et al., *Joint Optimization of MapReduce
//! Scheduling and Network Policy in Hierarchical Data Centers*, §6).
//!
//! Flows pass boxes; a container is pulled at by the ingress boxes of what it sends and the egress boxes of what it
//! receives (Eq. 14, whose ∩ is ∪). It moves to the server where that costs least, of equal ones the one with most left,
//! by request, accept or reject, second check and release ([`protocol`]), until no candidate of anybody has a utility
//! above 0 (Eq. 15). Boxes are fixed while containers move; then every flow takes the boxes of fewest hops that have room
//! for it, and containers move again, until nothing changes. What a container costs hangs on no other container, so
//! every move lowers the cost of all by as much.
//!
//! As a placer it starts from what YARN would do, as a rebalancer from what runs. Flows without a chain between two
//! containers that may both move pull at nobody; a round that would make them cost more than it saves is taken back.
//!
//! # Code map
//! `params`; `protocol`, the two machines; `field`, the run until all is quiet; `rebalance`; `sample`, for benchmarks.

mod field;
mod params;
pub mod protocol;
mod rebalance;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
#[cfg(test)]
mod tests;

pub use params::PatParams;

use super::baselines::capacity::Capacity;
use super::budget::Work;
use super::chained::{ChainedProblem, End, NONE, SearchState};
use super::container::Container;
use super::hit::{OBJECTIVE_WORK, finish, first_lists, objective_by};
use super::load::kinds;
use super::place::readable;
use super::{Budget, Capabilities, Definition, Objective, Place, PlaceError, PlaceProblem, Placement};
use field::{Field, InOrder, Mover, NO_WAY, Run};
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::cluster::{Resource, Snapshot};
use std::collections::BTreeMap;

/// Its name.
pub const NAME: &str = "pat";

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Pat {
    params: PatParams,
}

impl Definition for Pat {
    type Params = PatParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "puts containers near the middleboxes that their traffic has to pass";

    fn new(params: PatParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &PatParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), rebalance: Some(self), ..Capabilities::default() }
    }
}

impl Pat {
    /// Containers move, then flows choose boxes, until nothing changes.
    fn run(&self, search_state: &mut SearchState<'_, '_>, budget: &Budget<'_>) {
        for _ in 0..self.params.rounds {
            let before = search_state.clone();
            let field = field_of(search_state);
            let mut run = Run::new(&field);
            run.play(self.params.window, &mut InOrder::default(), || budget.step());
            for &(task, slot) in &run.log {
                let task = placed(search_state)[task as usize];
                if search_state.fits(task, slot) {
                    search_state.relocate(task, slot);
                }
            }
            choose_lists(search_state, budget);
            if search_state.cost() >= before.cost() {
                *search_state = before;
                break;
            }
            if budget.stopped() || budget.left() == 0 {
                break;
            }
        }
    }
}

/// Tasks that have a place, by position in the field.
fn placed(search_state: &SearchState<'_, '_>) -> Vec<u32> {
    (0..search_state.at.len() as u32).filter(|&task| search_state.at[task as usize] != NONE).collect()
}

/// The list of fewest hops for every flow where that is fewer than it has, until `work` says to stop.
fn choose_lists(search_state: &mut SearchState<'_, '_>, work: &dyn Work) {
    for at in 0..search_state.lists.len() as u32 {
        let flow = search_state.compiled.own.flows[at as usize];
        let own = &search_state.lists[at as usize];
        if own.is_empty() {
            continue;
        }
        if !work.work(search_state.list_work(at)) {
            break;
        }
        let best = search_state.best_list(at).filter(|best| best.len() == own.len());
        if let Some(best) = best.filter(|best| search_state.hops_by(&flow, best) < search_state.hops_by(&flow, own)) {
            search_state.set_list(at, best);
        }
    }
}

/// The field that a state is: slots as servers, places of boxes and of ends that stay as what pulls.
fn field_of(search_state: &SearchState<'_, '_>) -> Field<KINDS_MAX> {
    let compiled = search_state.compiled;
    let snapshot = compiled.problem.snapshot;
    let mut switches: BTreeMap<u32, u32> = BTreeMap::new();
    let switch = |&point: &u32| {
        let seen = switches.len() as u32;
        *switches.entry(point).or_insert(seen)
    };
    let switch_of: Vec<u32> = compiled.own.point_of.iter().map(switch).collect();
    let mut points = vec![NONE; switches.len()];
    switches.iter().for_each(|(&point, &switch)| points[switch as usize] = point);
    let hops = |place: u32| -> Vec<u16> {
        let to = |&point: &u32| u16::try_from(compiled.hops(place, point)).unwrap_or(NO_WAY);
        points.iter().map(to).collect()
    };
    let allowed = (0..compiled.problem.groups.len()).map(|group| compiled.allowed_row(group).to_vec()).collect();
    let mover = |task: u32| {
        let mut pulls: BTreeMap<u32, u64> = BTreeMap::new();
        for &at in &compiled.own.flows_of[task as usize] {
            let (flow, list) = (&compiled.own.flows[at as usize], &search_state.lists[at as usize]);
            let sends = flow.from == End::Task(task);
            let other = if sends { flow.to } else { flow.from };
            let end = if sends { list.first() } else { list.last() };
            let place = match (end, other) {
                (Some(&index), _) => compiled.own.boxes[index as usize].point,
                (None, End::Fixed { point, .. }) => point,
                (None, End::Task(_)) => continue,
            };
            if search_state.is_there(flow) && place != NONE {
                *pulls.entry(place).or_default() += flow.rate;
            }
        }
        Mover {
            size: counted(snapshot, compiled.size_of(task)),
            server: search_state.at[task as usize],
            pulls: pulls.into_iter().collect(),
            set: compiled.group_of[task as usize],
        }
    };
    let tasks = placed(search_state).into_iter().map(mover).collect();
    let rooms = compiled.slots.iter().map(|slot| counted(snapshot, &slot.room)).collect();
    Field { switch_of, rooms, tasks, hops: (0..compiled.own.points as u32).map(hops).collect(), allowed }
}

/// Only what YARN's resource calculator looks at.
fn counted(snapshot: &Snapshot, resource: &Resource) -> [u64; KINDS_MAX] {
    let mut row = resource.0;
    row[kinds(snapshot)..].fill(0);
    row
}

impl Place for Pat {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let Some(compiled) = ChainedProblem::compile(problem, &self.params.settings())? else {
            return Container::default().place(&readable(&Container::default(), problem), budget);
        };
        // A start that was cut short would be none.
        let mut never = || false;
        let start = Capacity::default().place(problem, &mut Budget::new(u64::MAX, &mut never))?;
        let mut search_state = SearchState::new(&compiled);
        search_state.place_as(&start.groups);
        first_lists(&mut search_state, None, budget)?;
        self.run(&mut search_state, budget);
        Ok(finish(search_state, budget))
    }

    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        let mut never = || false;
        self.objective_within(problem, placement, &Budget::with_work(0, OBJECTIVE_WORK, &mut never))
    }

    fn objective_within(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        work: &dyn Work,
    ) -> Option<Objective> {
        objective_by(problem, &self.params.settings(), placement, work)
    }

    fn knows_senders(&self) -> bool {
        true
    }
}
