//! `cross_layer`: tasks of a dataflow graph and the routes of the pairs that talk, together (Alkaff, Gupta:
//! *Cross-Layer Scheduling in Cloud Computing Systems*, §2).
//!
//! The application level anneals over servers of the new job's tasks; a move routes only the pairs of the moved task
//! anew, by the path heuristic, and the best few states get a pass over all their routes. Utility is that of all jobs
//! ([`FlowIndex`](super::FlowIndex)); running jobs keep place and route, and a pair that one of them uses keeps the
//! route it has. The objective is the time that all sinks together need for a gigabit, 10⁹ ÷ utility: positive and
//! lower when utility is higher, so that a gain over another placement is a share of it.
//!
//! Without a network or without edges there is no utility: then `container` places, by distances between racks.
//!
//! # Code map
//! - `params`; `world`, what a decision starts from, and the objective of any placement.
//! - `shortlist`, `compiled`: the nodes, groups and edges that the search stands on; `search_state`: its state and utility.
//! - `start`, `search`: packed starts, annealing, the routing pass.
//! - `candidates`, `routing`: routes of a pair, and the routing level for the engine ([`reroute`]);
//!   `first`: of what other policies placed.
//! - `advise`: the *route* capability. `nested`: the paper's own form, a reference. `sample`: its workloads.

mod advise;
mod candidates;
mod compiled;
mod first;
pub mod nested;
mod params;
mod routing;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
mod search;
mod search_state;
mod shortlist;
mod start;
#[cfg(test)]
mod tests;
mod world;

pub use first::first_routes;
pub use params::{Cooling, CrossLayerParams, RunMode};
pub use routing::{Reroute, reroute};

use super::baselines::random::Random;
use super::container::Container;
use super::dataflow::check_dataflow;
use super::{Budget, Capabilities, Definition, Ended, Objective, Place, PlaceError, PlaceProblem, Placement, Work};
use candidates::Candidates;
use compiled::DataflowProblem;
use hintd_model::units::NodeIdx;
use search_state::{Rule, SavedState, SearchState};
use world::World;

/// Its name.
pub const NAME: &str = "cross_layer";

/// Pairs of nodes that one job may have for its routes to be searched, or its utility told.
const PAIRS_MAX: u64 = 200_000;
/// Nodes that a search holds at most.
const NODES_MAX: usize = 1_024;
/// Moves tried in a run however few containers there are, if the parameters allow so many.
const LEAST_STEPS: u64 = 100;
/// Pairs of a random start beyond which the search does without one.
const RANDOM_PAIRS_MAX: u64 = 10_000;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct CrossLayer {
    params: CrossLayerParams,
}

impl Definition for CrossLayer {
    type Params = CrossLayerParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "chooses hosts for tasks that talk to each other, and the network routes between them, together";

    fn new(params: CrossLayerParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &CrossLayerParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), route: Some(self), ..Capabilities::default() }
    }
}

impl CrossLayer {
    /// Whether hosts are searched, and not drawn.
    fn searches(&self) -> bool {
        matches!(self.params.mode, RunMode::Application | RunMode::Both)
    }

    /// Whether routes are searched, and not drawn.
    fn routes(&self) -> bool {
        matches!(self.params.mode, RunMode::Routing | RunMode::Both)
    }

    /// Where there is no utility to look at, or too much: hosts alone, by another policy.
    fn without(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut placement = if self.searches() {
            Container::default().place(problem, budget)?
        } else {
            Random::default().place(problem, budget)?
        };
        if let Some(objective) = self.objective_within(problem, &placement, budget) {
            (placement.objective, placement.parts) = (objective.value, objective.parts);
        }
        Ok(placement)
    }

    fn search(
        &self,
        problem: &PlaceProblem<'_>,
        world: World<'_>,
        drawn: &Placement,
        budget: &Budget<'_>,
    ) -> Option<Placement> {
        let index = world.index(problem);
        let start_drawn = !self.searches() || world::pairs(problem, drawn) <= RANDOM_PAIRS_MAX;
        let mut nodes: Vec<NodeIdx> = Vec::new();
        if start_drawn {
            nodes.extend(drawn.groups.iter().flatten().map(|share| share.node));
        }
        if self.searches() {
            nodes = shortlist::shortlist(problem, world.network, &index, self.params.shortlist, &nodes);
        }
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() > NODES_MAX {
            return None;
        }
        let compiled = DataflowProblem::compile(problem, &nodes);
        let candidates = Candidates::new(world.network, world.table, world.topology, &world::NOTHING, self.params.k);
        let candidates = candidates.counted(budget);
        let mut search_state = SearchState::new(&compiled, index, candidates, Rule::Drawn);
        let mut states = Vec::new();
        if start_drawn {
            start::put(&mut search_state, &drawn.groups);
            states.push(self.first(&mut search_state, budget));
        }
        self.restart(&mut search_state, &mut states, budget);
        self.finish(&mut search_state, states, budget)
    }

    /// From the random start.
    fn first(&self, search_state: &mut SearchState<'_, '_>, budget: &Budget<'_>) -> SavedState {
        if !self.searches() {
            let utility = search_state.utility();
            return search_state.state(utility);
        }
        if self.routes() {
            search_state.rule = Rule::Heuristic;
        }
        search::anneal(search_state, &self.params, self.steps(search_state), 0, budget)
    }

    /// From packed starts.
    fn restart(&self, search_state: &mut SearchState<'_, '_>, states: &mut Vec<SavedState>, budget: &Budget<'_>) {
        if !self.searches() {
            return;
        }
        search_state.rule = if self.routes() { Rule::Heuristic } else { Rule::Drawn };
        let done = states.len() as u32;
        for run in done..self.params.restarts.max(done + 1) {
            // The first placement is made whatever the budget says.
            if !states.is_empty()
                && (budget.stopped() || budget.left() == 0 || search_state.work > 2 * self.params.work_max)
            {
                break;
            }
            search_state.clear();
            start::pack(search_state, (run - done) as usize);
            states.push(search::anneal(search_state, &self.params, self.steps(search_state), u64::from(run), budget));
        }
    }

    fn steps(&self, search_state: &SearchState<'_, '_>) -> u64 {
        let containers = search_state.compiled.problem.containers();
        self.params.steps_per_container.saturating_mul(containers).max(LEAST_STEPS).min(self.params.steps_max)
    }

    /// The best state, after a pass over the routes of the best few.
    fn finish(
        &self,
        search_state: &mut SearchState<'_, '_>,
        mut states: Vec<SavedState>,
        budget: &Budget<'_>,
    ) -> Option<Placement> {
        states.sort_by(search::better);
        states.dedup();
        if self.routes() {
            for (run, state) in states.iter_mut().take(self.params.states).enumerate() {
                search_state.restore(state);
                *state = search::route(search_state, self.params.routing_steps, run as u64, budget);
            }
            states.sort_by(search::better);
        }
        search_state.restore(states.first()?);
        let (utility, own) = (search_state.utility(), search_state.own());
        let Objective { value, parts } = world::objective(utility, own);
        let ended = match self.params.mode {
            _ if budget.stopped() => Ended::Deadline,
            RunMode::Random => Ended::Complete,
            _ => Ended::Budget,
        };
        let (groups, routes) = (search_state.shares(), search_state.routes());
        Some(Placement { groups, routes, objective: value, parts, ended, gap: None, steps: budget.used() })
    }
}

/// Whether any sink of the job gets anything: not where only the first wave of a job finds room, and none of its sinks.
fn delivers(found: &Placement) -> bool {
    found.parts.iter().any(|(name, value)| name == world::OWN && *value > 0.0)
}

impl Place for CrossLayer {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        check_dataflow(&problem.edges).map_err(|error| {
            let name = |group: &hintd_model::units::GroupIdx| problem.groups[group.at()].name.clone();
            PlaceError::Dataflow { lacks: error.lacks(), groups: error.groups().iter().map(name).collect() }
        })?;
        let Some(world) = World::of(problem).filter(|_| !problem.edges.is_empty()) else {
            return self.without(problem, budget);
        };
        // A start that was cut short would be none.
        let mut never = || false;
        let drawn = Random::default().place(problem, &mut Budget::new(u64::MAX, &mut never))?;
        match self.search(problem, world, &drawn, budget) {
            Some(found) if world::pairs(problem, &found) <= PAIRS_MAX && delivers(&found) => Ok(found),
            _ => self.without(problem, budget),
        }
    }

    /// `None` as well where looking the ways up takes more than `world::OBJECTIVE_WORK`: nobody can stop it.
    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        let mut never = || false;
        self.objective_within(problem, placement, &Budget::with_work(0, world::OBJECTIVE_WORK, &mut never))
    }

    fn objective_within(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        work: &dyn Work,
    ) -> Option<Objective> {
        if problem.edges.is_empty() || World::of(problem).is_none() {
            return Container::default().objective(problem, placement);
        }
        world::rate(problem, placement, work)
    }
}
