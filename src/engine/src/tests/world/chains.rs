//! Traffic under chains: every way passes usable boxes of the right types in order, none carries more than it can, and
//! what has no way could have none.

use super::state::World;
use hintd_model::cluster::{ChainPair, ChainedRoute, Topology};
use hintd_model::network::Network;
use hintd_model::network::chains::{Chains, WaypointRoute, WhenBroken};
use hintd_model::units::{BitsPerSec, BoxIdx, LinkIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl World {
    pub(super) fn check_chains(&self) {
        let topology = Arc::clone(&self.engine.current_snapshot().topology);
        let flows = self.engine.flows().chained();
        let (Some(network), Some(chains)) = (topology.network.as_deref(), topology.chains.as_deref()) else {
            assert!(flows.routes.iter().all(|(_, route)| route.way.is_none()), "a way without network or chains");
            return;
        };
        let mut loads: BTreeMap<BoxIdx, u64> = BTreeMap::new();
        for (key, route) in flows.routes.iter() {
            if let Some(way) = &route.way {
                check_way(network, chains, &topology, key, way);
                way.boxes.iter().for_each(|&index| *loads.entry(index).or_default() += route.rate.0);
            }
        }
        for (at, known) in chains.boxes().iter().enumerate() {
            let (index, load) = (BoxIdx::new(at), loads.get(&BoxIdx::new(at)).copied().unwrap_or_default());
            assert!(load <= known.capacity.0, "{} carries {load} of {:?}", known.name, known.capacity);
            assert_eq!(flows.loads.of(index), BitsPerSec(load), "what is reserved of {}", known.name);
        }
        for (key, route) in flows.routes.iter().filter(|(_, route)| route.way.is_none()) {
            check_cut(network, chains, &topology, (key, route), &loads);
        }
    }
}

fn vertices(topology: &Topology, key: &ChainPair) -> Option<[VertexIdx; 2]> {
    let vertex = |node: hintd_model::units::NodeIdx| topology.vertex.get(node.at()).copied().flatten();
    Some([vertex(key.pair.from)?, vertex(key.pair.to)?])
}

fn check_way(network: &Network, chains: &Chains, topology: &Topology, key: &ChainPair, way: &WaypointRoute) {
    let chain = chains.chain(chains.find_chain(&key.chain).expect("its chain is declared"));
    let kinds: Vec<_> = way.boxes.iter().map(|index| chains.boxes()[index.at()].kind).collect();
    let mut left = chain.sequence.iter();
    assert!(kinds.iter().all(|kind| left.any(|known| known == kind)), "{key:?}: {kinds:?} in order");
    assert!(kinds.len() == chain.sequence.len() || chain.when_broken == WhenBroken::Open, "{key:?} leaves boxes out");
    let [mut here, end] = vertices(topology, key).expect("both ends hang in the network");
    let mut stops = way.boxes.iter().zip(&way.stops).peekable();
    let mut passed = BTreeSet::from([here]);
    for (at, link) in way.links.iter().enumerate() {
        while let Some((index, _)) = stops.next_if(|(_, after)| usize::from(**after) == at) {
            let known = &chains.boxes()[index.at()];
            assert!(
                known.up && known.at == Some(here) && network.switch_up(here),
                "{key:?} enters {} here",
                known.name
            );
            passed = BTreeSet::from([here]);
        }
        let index = LinkIdx(link.0 / 2);
        let known = network.link_at(index);
        let (tail, head) = if link.0.is_multiple_of(2) { (known.a, known.b) } else { (known.b, known.a) };
        assert_eq!(tail, here, "{key:?} is whole");
        assert!(network.is_usable(index), "{key:?} uses a dead link");
        assert!(passed.insert(head) || head == end, "{key:?} loops between two boxes");
        here = head;
    }
    assert!(here == end && stops.next().is_none(), "{key:?} ends where it should, with all boxes passed");
}

/// No choice of boxes with room is joined to both ends.
fn check_cut(
    network: &Network,
    chains: &Chains,
    topology: &Topology,
    (key, route): (&ChainPair, &ChainedRoute),
    loads: &BTreeMap<BoxIdx, u64>,
) {
    let Some([from, to]) = vertices(topology, key) else { return };
    let (Some(start), Some(end)) = (network.attachment(from), network.attachment(to)) else { return };
    let chain = chains.chain(chains.find_chain(&key.chain).expect("its chain is declared"));
    let joined = reached(network, start);
    let free = |index: &BoxIdx| {
        let known = &chains.boxes()[index.at()];
        let room = known.capacity.0 - loads.get(index).copied().unwrap_or_default();
        let here = known.at.is_some_and(|at| joined.contains(&at) && network.switch_up(at));
        known.up && here && room >= route.rate.0
    };
    let met = chain.sequence.iter().all(|&kind| chains.of_kind(kind).iter().any(free));
    assert!(!met || !joined.contains(&end), "{key:?} has no way, and there is one");
}

/// Switches that usable links lead to.
fn reached(network: &Network, from: VertexIdx) -> BTreeSet<VertexIdx> {
    let (mut known, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(here) = open.pop() {
        for (index, link) in network.links_of(here).filter(|(index, _)| network.is_usable(*index)) {
            let _ = index;
            let other = link.other(here);
            if !network.vertex_at(other).is_host() && known.insert(other) {
                open.push(other);
            }
        }
    }
    known
}
