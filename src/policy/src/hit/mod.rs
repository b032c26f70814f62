//! `hit`: tasks by stable matching against servers, and the boxes that every flow passes (Yang et al., *Joint
//! Optimization of MapReduce Scheduling and Network Policy in Hierarchical Data Centers*, §3–5).
//!
//! From a random placement with random lists of the right types (§5.2.1), and from what YARN would do, two steps take
//! turns until neither gains: every flow moves one switch of its list at a time to the best of Eq. 4's candidates by
//! Eqs 5 and 7, and tasks are matched against servers, many to one within room (§5.1.3): a task prefers servers by
//! Eq. 10 with the end switch chosen anew, a server the traffic that it would keep below its switch; preferences are
//! frozen for the round. Gains are taken in the state left by the move before, so cost never rises: a matching that
//! would make it rise is taken apart into the moves that gain. Later waves, whose other end runs already, are placed
//! greedily, those that send most first (§5.2.2): by what senders that came have for them, and receivers get, where it is
//! known.
//!
//! "Switches" of a list are middleboxes: where no chain asks for any, the list is empty, and a flow goes by shortest
//! paths. Without a network, or where nobody talks, `container` places.
//!
//! # Code map
//! `params`; `round`, the two steps; `route`, flows told one by one.

mod params;
mod round;
mod route;
#[cfg(test)]
mod tests;

pub use params::HitParams;
pub(crate) use params::check_seconds;

use super::baselines::capacity::Capacity;
use super::baselines::random::Random;
use super::budget::Work;
use super::chained::{ChainedProblem, End, List, NONE, SearchState, Settings, routes};
use super::container::Container;
use super::place::readable;
use super::{Budget, Capabilities, Definition, Ended, Objective, Place, PlaceError, PlaceProblem, Placement};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;

/// Its name.
pub const NAME: &str = "hit";

/// bit/s × links in the unit of the objective.
const GIGABIT: f64 = 1e9;

/// Work that the objective of another policy's placement may take where nobody bounds it.
pub(crate) const OBJECTIVE_WORK: u64 = 1 << 26;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Hit {
    params: HitParams,
}

impl Definition for Hit {
    type Params = HitParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str =
        "chooses hosts, and routes through the middleboxes that the traffic has to pass, together";

    fn new(params: HitParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &HitParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), route: Some(self), ..Capabilities::default() }
    }
}

impl Hit {
    /// The best fixed point of all starts.
    fn search<'g, 'p>(
        &self,
        compiled: &'g ChainedProblem<'p>,
        budget: &Budget<'_>,
    ) -> Result<SearchState<'g, 'p>, PlaceError> {
        let problem = compiled.problem;
        let (mut best, mut error): (Option<SearchState<'_, '_>>, _) = (None, None);
        for start in 0..=self.params.starts {
            if best.is_some() && (budget.stopped() || budget.left() == 0) {
                break;
            }
            // A start that was cut short would be none.
            let mut never = || false;
            let mut all = Budget::new(u64::MAX, &mut never);
            let seed = problem.seed.wrapping_add(u64::from(start));
            let from = if start == 0 {
                Capacity::default().place(problem, &mut all)?
            } else {
                Random::default().place(&PlaceProblem { seed, ..problem.clone() }, &mut all)?
            };
            let mut search_state = SearchState::new(compiled);
            search_state.place_as(&from.groups);
            match first_lists(&mut search_state, (start > 0).then_some(seed), budget) {
                Ok(()) => {}
                Err(broken) => {
                    error = Some(broken);
                    continue;
                }
            }
            self.run(&mut search_state, budget);
            if best.as_ref().is_none_or(|best| better(&search_state, best)) {
                best = Some(search_state);
            }
        }
        best.ok_or_else(|| error.expect("a start without a state has an error"))
    }

    /// To the fixed point.
    fn run(&self, search_state: &mut SearchState<'_, '_>, budget: &Budget<'_>) {
        for _ in 0..self.params.rounds {
            let moves = search_state.improve_lists(|| budget.step()) + round::assign(search_state, budget);
            if moves == 0 || budget.stopped() || budget.left() == 0 {
                break;
            }
        }
    }

    /// Tasks of a later wave, those that send most first, each where it costs least (§5.2.2).
    fn later_wave<'g, 'p>(
        compiled: &'g ChainedProblem<'p>,
        budget: &Budget<'_>,
    ) -> Result<SearchState<'g, 'p>, PlaceError> {
        let mut search_state = SearchState::new(compiled);
        let rate = |task: u32| -> u64 {
            compiled.own.flows_of[task as usize].iter().map(|&flow| compiled.own.flows[flow as usize].rate).sum()
        };
        let mut order: Vec<u32> = (0..compiled.group_of.len() as u32).collect();
        order.sort_by_key(|&task| (std::cmp::Reverse(rate(task)), task));
        for task in order {
            if budget.over() || !budget.work(seat_work(compiled, task)) {
                break;
            }
            search_state.seat_cheapest(task);
        }
        first_lists(&mut search_state, None, budget)?;
        search_state.improve_lists(|| budget.step());
        Ok(search_state)
    }
}

/// Gives all flows their first boxes: drawn among those with room (§5.1.1), or of fewest hops. If that leaves one
/// without, all go to the boxes with most room left, largest flows first; if that does too, the chain is broken. Once
/// `work` says to stop, flows that have none stay so.
pub(crate) fn first_lists(
    search_state: &mut SearchState<'_, '_>,
    seed: Option<u64>,
    work: &dyn Work,
) -> Result<(), PlaceError> {
    let mut random = seed.map(ChaCha8Rng::seed_from_u64);
    let drawn = search_state
        .give_lists(work, |search_state, at| random.as_mut().and_then(|random| draw(search_state, at, random)));
    if drawn.is_ok() {
        return Ok(());
    }
    search_state.clear_lists();
    search_state.give_lists(work, roomiest).map_err(|flow| {
        let compiled = search_state.compiled;
        let flow = &compiled.own.flows[flow as usize];
        let why = format!("its middleboxes have no {} bit/s left for one of the flows", flow.rate);
        compiled.broken(flow.class, why)
    })
}

/// What seating a task where it costs least takes: its flows on every slot, by all boxes of their types.
fn seat_work(compiled: &ChainedProblem<'_>, task: u32) -> u64 {
    let flows = &compiled.own.flows_of[task as usize];
    let boxes = |kind: &hintd_model::network::chains::BoxKind| compiled.own.chains.of_kind(*kind).len() as u64;
    let each = |&at: &u32| {
        let kinds = compiled.kinds(&compiled.own.flows[at as usize]);
        let steps: u64 = kinds.windows(2).map(|pair| boxes(&pair[0]) * boxes(&pair[1])).sum();
        1 + steps + kinds.iter().map(boxes).sum::<u64>()
    };
    // Flows of a task are of few classes, told one after the other: what comes in, what goes out.
    let most = flows.first().into_iter().chain(flows.last()).map(each).max().unwrap_or(1);
    compiled.slots.len() as u64 * flows.len() as u64 * most
}

fn draw(search_state: &SearchState<'_, '_>, at: u32, random: &mut ChaCha8Rng) -> Option<List> {
    let flow = &search_state.compiled.own.flows[at as usize];
    let mut list = List::new();
    for &kind in search_state.compiled.kinds(flow) {
        let open: Vec<u32> = search_state.choices(at, kind).collect();
        list.push(*open.choose(random)?);
    }
    is_way(search_state, at, &list).then_some(list)
}

fn roomiest(search_state: &SearchState<'_, '_>, at: u32) -> Option<List> {
    let flow = &search_state.compiled.own.flows[at as usize];
    let left = |index: &u32| search_state.compiled.own.boxes[*index as usize].room - search_state.box_load(*index);
    let most = |&kind| search_state.choices(at, kind).max_by_key(|index| (left(index), std::cmp::Reverse(*index)));
    let list: List = search_state.compiled.kinds(flow).iter().map(most).collect::<Option<_>>()?;
    is_way(search_state, at, &list).then_some(list)
}

fn is_way(search_state: &SearchState<'_, '_>, at: u32, list: &List) -> bool {
    search_state.hops_by(&search_state.compiled.own.flows[at as usize], list) < super::chained::FAR
}

/// More containers with a place, then less cost.
fn better(a: &SearchState<'_, '_>, b: &SearchState<'_, '_>) -> bool {
    let missing = |search_state: &SearchState<'_, '_>| search_state.at.iter().filter(|slot| **slot == NONE).count();
    (missing(a), a.cost()) < (missing(b), b.cost())
}

/// The objective of a state.
pub(crate) fn objective_of(search_state: &SearchState<'_, '_>) -> Objective {
    let parts = vec![("mean_hops".to_owned(), search_state.mean_hops())];
    Objective { value: search_state.cost() as f64 / GIGABIT, parts }
}

/// The placement that a state is.
pub(crate) fn finish(mut search_state: SearchState<'_, '_>, budget: &Budget<'_>) -> Placement {
    let table = search_state.compiled.own.topology.paths();
    let routes = table.map(|table| routes(&mut search_state, table, budget)).unwrap_or_default();
    let Objective { value, parts } = objective_of(&search_state);
    let ended = if budget.stopped() { Ended::Deadline } else { Ended::Budget };
    Placement { groups: search_state.shares(), routes, objective: value, parts, ended, gap: None, steps: budget.used() }
}

/// The objective of any placement of the problem: flows by the lists of fewest hops that its boxes can carry; without
/// flows `container`'s. `None` where there is none, and where `work` says to stop first.
pub(crate) fn objective_by(
    problem: &PlaceProblem<'_>,
    settings: &Settings,
    placement: &Placement,
    work: &dyn Work,
) -> Option<Objective> {
    let Some(compiled) = ChainedProblem::compile_for(problem, settings, &placement.groups).ok()? else {
        return Container::default().objective(&readable(&Container::default(), problem), placement);
    };
    let mut search_state = SearchState::new(&compiled);
    search_state.place_as(&placement.groups);
    first_lists(&mut search_state, None, work).ok()?;
    let boxes = compiled.own.boxes.len() as u64;
    search_state.improve_lists(|| work.work(1 + boxes));
    work.work(1).then(|| objective_of(&search_state))
}

impl Place for Hit {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let Some(compiled) = ChainedProblem::compile(problem, &self.params.settings())? else {
            return Container::default().place(&readable(&Container::default(), problem), budget);
        };
        let fixed = |end: End| matches!(end, End::Fixed { .. });
        let search_state = if compiled.own.flows.iter().all(|flow| fixed(flow.from) || fixed(flow.to)) {
            Self::later_wave(&compiled, budget)?
        } else {
            self.search(&compiled, budget)?
        };
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
