//! What any placement costs under its chains, whichever policy made it: every flow by the boxes of fewest hops that
//! carry it, or by the nearest of each type in turn.

use super::compiled::{ChainedProblem, End, NONE};
use super::sample::SETTINGS;
use super::{List, SearchState, routes};
use crate::budget::Budget;
use crate::hit::first_lists;
use crate::place::{ChosenRoute, PlaceError, Placement};
use crate::problem::PlaceProblem;

/// Flows of a placement on their way.
#[derive(Debug, Clone, Default)]
pub struct Steered {
    /// By container, groups in order: Eq. 14, from and to its boxes, or to the other end where there are none;
    /// bit/s × links. Containers without a place or flows have 0.
    pub containers: Vec<u64>,
    /// Rate, bits/s, and links passed, of each flow whose ends have a place.
    pub flows: Vec<(u64, u32)>,
    /// What flows take of each box, bits/s.
    pub boxes: Vec<u64>,
    /// Routes of the flows under chains.
    pub routes: Vec<ChosenRoute>,
}

impl Steered {
    /// Eq. 2: Σ rate × links.
    pub fn cost(&self) -> u128 {
        self.flows.iter().map(|&(rate, hops)| u128::from(rate) * u128::from(hops)).sum()
    }
}

/// Who chooses boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// Of those with room the list of fewest hops, largest flows first.
    Fewest,
    /// The box of each type nearest to the stop before, whatever it carries: static paths.
    Nearest,
}

/// Steers the flows of a placement; `None` where nobody talks.
///
/// # Errors
/// [`PlaceError::Broken`] where boxes have too little left for a flow.
pub fn steered(
    problem: &PlaceProblem<'_>,
    placement: &Placement,
    steering: Steering,
) -> Result<Option<Steered>, PlaceError> {
    let Some(compiled) = ChainedProblem::compile_for(problem, &SETTINGS, &placement.groups)? else { return Ok(None) };
    let mut never = || false;
    let budget = Budget::new(u64::MAX, &mut never);
    let mut search_state = SearchState::new(&compiled);
    search_state.place_as(&placement.groups);
    match steering {
        Steering::Fewest => {
            first_lists(&mut search_state, None, &budget)?;
            search_state.improve_lists(|| true);
        }
        Steering::Nearest => {
            for at in 0..compiled.own.flows.len() as u32 {
                let list = nearest(&search_state, at);
                search_state.set_list(at, list);
            }
        }
    }
    let table = problem.snapshot.topology.paths();
    let routes = table.map(|table| routes(&mut search_state, table, &budget)).unwrap_or_default();
    let mut found = Steered { containers: vec![0; compiled.group_of.len()], routes, ..Steered::default() };
    for (at, flow) in compiled.own.flows.iter().enumerate().filter(|(_, flow)| search_state.is_there(flow)) {
        found.flows.push((flow.rate, search_state.hops_by(flow, &search_state.lists[at])));
        for (end, hops) in ends(&search_state, at) {
            if let End::Task(task) = end {
                found.containers[task as usize] += flow.rate * u64::from(hops);
            }
        }
    }
    found.boxes = (0..compiled.own.boxes.len() as u32).map(|index| search_state.box_load(index)).collect();
    Ok(Some(found))
}

/// Both ends of a flow with the links from each to its box, or to the other end.
fn ends(search_state: &SearchState<'_, '_>, at: usize) -> [(End, u32); 2] {
    let (compiled, flow, list) = (search_state.compiled, &search_state.compiled.own.flows[at], &search_state.lists[at]);
    let stop = |index: &u32| compiled.own.boxes[*index as usize].point;
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        let hops = search_state.hops_by(flow, list);
        return [(flow.from, hops), (flow.to, hops)];
    };
    let links = |end: End, index: &u32| 1 + compiled.hops(search_state.point(end), stop(index));
    [(flow.from, links(flow.from, first)), (flow.to, links(flow.to, last))]
}

fn nearest(search_state: &SearchState<'_, '_>, at: u32) -> List {
    let (compiled, flow) = (search_state.compiled, &search_state.compiled.own.flows[at as usize]);
    let mut list = List::new();
    if flow.class == NONE || !search_state.is_there(flow) {
        return list;
    }
    let mut here = search_state.point(flow.from);
    for &kind in compiled.kinds(flow) {
        let place = |index: u32| compiled.own.boxes[index as usize].point;
        let Some(index) = compiled.of_kind(kind).min_by_key(|&index| (compiled.hops(here, place(index)), index)) else {
            return List::new();
        };
        list.push(index);
        here = place(index);
    }
    list
}
