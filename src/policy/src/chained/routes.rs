//! Links for the boxes that were chosen, by pair of nodes and chain.

use super::board::{Board, List};
use super::compiled::{End, NONE};
use crate::place::{BoxStop, ChosenRoute};
use hintd_model::cluster::NodePair;
use hintd_model::network::PathTable;
use hintd_model::network::chains::{Ways, route_through};
use hintd_model::units::{BitsPerSec, BoxIdx, NodeIdx};
use std::collections::BTreeMap;

/// One route for each pair of nodes, chain and list of boxes, ascending. Flows of one pair and chain first come together
/// on the list of fewest hops, where its boxes can carry all of them.
pub(crate) fn routes(board: &mut Board<'_, '_>, table: &PathTable) -> Vec<ChosenRoute> {
    gather(board);
    let ground = board.ground;
    let mut rates: BTreeMap<(NodePair, u32, List), u64> = BTreeMap::new();
    for (at, flow) in ground.own.flows.iter().enumerate().filter(|(_, flow)| flow.class != NONE && board.is_there(flow))
    {
        let key = (pair(board, at), flow.class, board.lists[at].clone());
        *rates.entry(key).or_default() += flow.rate;
    }
    let ways = Ways { network: ground.own.network, table, chains: ground.own.chains };
    let vertex = |node: NodeIdx| ground.own.topology.vertex.get(node.at()).copied().flatten();
    let mut found = Vec::new();
    for ((pair, class, list), rate) in rates {
        let boxes: Vec<BoxIdx> = list.iter().copied().map(BoxIdx).collect();
        let (Some(from), Some(to)) = (vertex(pair.from), vertex(pair.to)) else { continue };
        let Some(route) = route_through(&ways, (from, to), &boxes) else { continue };
        let stop = |(&index, &after): (&BoxIdx, &u16)| BoxStop { index, after };
        found.push(ChosenRoute {
            pair,
            stops: route.boxes.iter().zip(&route.stops).map(stop).collect(),
            links: route.links.into(),
            chain: Some(ground.own.classes[class as usize].chain),
            rate: BitsPerSec(rate),
        });
    }
    found
}

fn pair(board: &Board<'_, '_>, flow: usize) -> NodePair {
    let node = |end: End| match end {
        End::Fixed { node, .. } => node,
        End::Task(task) => board.ground.slots[board.at[task as usize] as usize].node,
    };
    let flow = &board.ground.own.flows[flow];
    NodePair { from: node(flow.from), to: node(flow.to) }
}

/// Brings flows of one pair and chain onto one list, as far as boxes allow and no flow's way gets longer.
fn gather(board: &mut Board<'_, '_>) {
    let mut alike: BTreeMap<(NodePair, u32), Vec<u32>> = BTreeMap::new();
    for (at, flow) in board.ground.own.flows.iter().enumerate() {
        if flow.class != NONE && board.is_there(flow) {
            alike.entry((pair(board, at), flow.class)).or_default().push(at as u32);
        }
    }
    for flows in alike.into_values() {
        let hops = |at: u32| board.hops_by(&board.ground.own.flows[at as usize], &board.lists[at as usize]);
        let best = flows.iter().copied().min_by_key(|&at| (hops(at), board.lists[at as usize].clone()));
        let Some(best) = best.map(|at| board.lists[at as usize].clone()) else { continue };
        for at in flows {
            let kinds = board.ground.kinds(&board.ground.own.flows[at as usize]);
            let open =
                |index: &u32| board.choices(at, board.ground.own.boxes[*index as usize].kind).any(|one| one == *index);
            if best != board.lists[at as usize] && best.len() == kinds.len() && best.iter().all(open) {
                board.set_list(at, best.clone());
            }
        }
    }
}
