//! Links for the boxes that were chosen, by pair of nodes and chain.

use super::compiled::{End, NONE};
use super::search_state::{List, SearchState};
use crate::budget::Work;
use crate::place::{BoxStop, ChosenRoute};
use hintd_model::cluster::NodePair;
use hintd_model::network::PathTable;
use hintd_model::network::chains::{WaypointInputs, route_through};
use hintd_model::units::{BitsPerSec, BoxIdx, NodeIdx};
use std::collections::BTreeMap;

/// One route for each pair of nodes, chain and list of boxes, ascending. Flows of one pair and chain first come together
/// on the list of fewest hops, where its boxes can carry all of them. Once `work` says to stop, the others have none.
pub(crate) fn routes(search_state: &mut SearchState<'_, '_>, table: &PathTable, work: &dyn Work) -> Vec<ChosenRoute> {
    gather(search_state);
    let compiled = search_state.compiled;
    let mut rates: BTreeMap<(NodePair, u32, List), u64> = BTreeMap::new();
    for (at, flow) in
        compiled.own.flows.iter().enumerate().filter(|(_, flow)| flow.class != NONE && search_state.is_there(flow))
    {
        let key = (pair(search_state, at), flow.class, search_state.lists[at].clone());
        *rates.entry(key).or_default() += flow.rate;
    }
    let ways = WaypointInputs { network: compiled.own.network, table, chains: compiled.own.chains, work: Some(work) };
    let vertex = |node: NodeIdx| compiled.own.topology.vertex.get(node.at()).copied().flatten();
    let mut found = Vec::new();
    for ((pair, class, list), rate) in rates {
        let boxes: Vec<BoxIdx> = list.iter().copied().map(BoxIdx).collect();
        let (Some(from), Some(to)) = (vertex(pair.from), vertex(pair.to)) else { continue };
        if !work.work(1 + boxes.len() as u64) {
            work.note_cut_short_paths();
            break;
        }
        let Some(route) = route_through(&ways, (from, to), &boxes) else { continue };
        let stop = |(&index, &after): (&BoxIdx, &u16)| BoxStop { index, after };
        found.push(ChosenRoute {
            pair,
            stops: route.boxes.iter().zip(&route.stops).map(stop).collect(),
            links: route.links.into(),
            chain: Some(compiled.own.classes[class as usize].chain),
            rate: BitsPerSec(rate),
        });
    }
    found
}

fn pair(search_state: &SearchState<'_, '_>, flow: usize) -> NodePair {
    let node = |end: End| match end {
        End::Fixed { node, .. } => node,
        End::Task(task) => search_state.compiled.slots[search_state.at[task as usize] as usize].node,
    };
    let flow = &search_state.compiled.own.flows[flow];
    NodePair { from: node(flow.from), to: node(flow.to) }
}

/// Brings flows of one pair and chain onto one list, as far as boxes allow and no flow's way gets longer.
fn gather(search_state: &mut SearchState<'_, '_>) {
    let mut alike: BTreeMap<(NodePair, u32), Vec<u32>> = BTreeMap::new();
    for (at, flow) in search_state.compiled.own.flows.iter().enumerate() {
        if flow.class != NONE && search_state.is_there(flow) {
            alike.entry((pair(search_state, at), flow.class)).or_default().push(at as u32);
        }
    }
    for flows in alike.into_values() {
        let hops = |at: u32| {
            search_state.hops_by(&search_state.compiled.own.flows[at as usize], &search_state.lists[at as usize])
        };
        let best = flows.iter().copied().min_by_key(|&at| (hops(at), search_state.lists[at as usize].clone()));
        let Some(best) = best.map(|at| search_state.lists[at as usize].clone()) else { continue };
        for at in flows {
            let kinds = search_state.compiled.kinds(&search_state.compiled.own.flows[at as usize]);
            let open = |index: &u32| {
                search_state.choices(at, search_state.compiled.own.boxes[*index as usize].kind).any(|one| one == *index)
            };
            if best != search_state.lists[at as usize] && best.len() == kinds.len() && best.iter().all(open) {
                search_state.set_list(at, best.clone());
            }
        }
    }
}
