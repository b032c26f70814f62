//! First routes of the pairs of a placement whose policy chose hosts alone.

use super::routing::{Reroute, reroute};
use super::world::{self, World};
use crate::budget::{Budget, Work};
use crate::place::ChosenRoute;
use crate::problem::PlaceProblem;
use hintd_model::cluster::{Flow, Traffic};
use hintd_model::units::Bytes;

/// Of ties and draws: those who choose routes later have the same.
const SEED: u64 = 0;

/// Work that looking up the way of a pair that sends little counts for.
const PAIR_WORK: u64 = 256;

/// Adds routes, by [`reroute`], for those pairs of `traffic` that send at least `min_bytes` and that neither a running
/// job nor `chosen`, ascending by pair, has one for. Stays ascending; without a network nothing is added.
pub fn first_routes(
    problem: &PlaceProblem<'_>,
    traffic: &Traffic,
    chosen: &mut Vec<ChosenRoute>,
    min_bytes: Bytes,
    budget: &mut Budget<'_>,
) {
    let at = |chosen: &[ChosenRoute], flow: &Flow| chosen.binary_search_by_key(&flow.pair, |route| route.pair);
    let runs = |flow: &Flow| problem.running.is_some_and(|running| running.routes.get(&flow.pair).is_some());
    let fresh: Vec<&Flow> = traffic.flows.iter().filter(|flow| !runs(flow)).collect();
    let open = |flow: &&&Flow| flow.bytes >= min_bytes && at(chosen, flow).is_err();
    let open: Vec<_> = fresh.iter().filter(open).map(|flow| flow.pair).collect();
    let Some(world) = (!open.is_empty()).then(|| World::of(problem)).flatten() else { return };
    let mut index = world.index(problem);
    index.hold();
    index.add_job(traffic);
    for flow in fresh {
        if let Ok(at) = at(chosen, flow) {
            index.set_route(flow.pair, Some(&chosen[at].links));
        } else if flow.bytes < min_bytes && !budget.work(PAIR_WORK) {
            budget.note_cut_short_paths();
        } else if flow.bytes < min_bytes
            && let Some(path) = world.default_path(flow.pair)
        {
            index.set_route(flow.pair, Some(path.as_ref()));
        }
    }
    index.recompute_rates();
    let World { network, table: paths, topology } = world;
    let what = Reroute { network, paths, topology, pairs: &open, avoid: &world::NOTHING, seed: SEED, planned: false };
    let found = reroute(&mut index, &what, budget).into_iter();
    chosen.extend(found.filter_map(|(pair, links)| Some(ChosenRoute::plain(pair, links?))));
    chosen.sort_by_key(|route| route.pair);
}
