//! Random networks and naive oracles for the tests of this room.

use super::graph::Network;
use super::tier::Tier;
use crate::units::{BitsPerSec, LinkIdx, VertexIdx};
use petgraph::algo::dijkstra;
use petgraph::visit::{EdgeFiltered, NodeFiltered};
use proptest::prelude::*;

/// Capacity of every link of [`random_network`].
pub(super) const CAPACITY: BitsPerSec = BitsPerSec(1_000_000_000);

/// Up to 10 switches joined by a random tree and some more links (parallel ones too), up to 8 hosts of one or
/// two links; then a few links and perhaps a switch go down.
pub(super) fn random_network() -> impl Strategy<Value = Network> {
    let switches = prop::collection::vec(any::<prop::sample::Index>(), 1..10);
    let more = prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..10);
    let hosts = prop::collection::vec(any::<(prop::sample::Index, Option<prop::sample::Index>)>(), 1..8);
    let down = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
    let lost = prop::option::weighted(0.3, any::<prop::sample::Index>());
    (switches, more, hosts, down, lost).prop_map(|(parents, more, hosts, down, lost)| {
        let mut network = Network::new();
        let mut switches = vec![network.add_switch("s0", Tier::Edge).unwrap()];
        for (n, parent) in parents.iter().enumerate() {
            let new = network.add_switch(&format!("s{}", n + 1), Tier::Edge).unwrap();
            add(&mut network, *parent.get(&switches), new);
            switches.push(new);
        }
        for (n, (first, second)) in hosts.iter().enumerate() {
            let host = network.add_host(&format!("h{n}")).unwrap();
            for switch in std::iter::once(first).chain(second) {
                add(&mut network, host, *switch.get(&switches));
            }
        }
        for (a, b) in more.iter().map(|(a, b)| (*a.get(&switches), *b.get(&switches))).filter(|(a, b)| a != b) {
            add(&mut network, a, b);
        }
        for link in down {
            let link = LinkIdx::new(link.index(network.link_rows()));
            network.set_link(link, Some(false), None);
        }
        if let Some(switch) = lost {
            network.set_switch(*switch.get(&switches), false);
        }
        network
    })
}

fn add(network: &mut Network, a: VertexIdx, b: VertexIdx) {
    network.add_link(format!("l{}", network.link_rows()).into(), a, b, CAPACITY).unwrap();
}

/// Hops from `from` to every vertex by petgraph's Dijkstra over usable links, through switches only.
pub(super) fn hop_counts(network: &Network, from: VertexIdx) -> Vec<Option<u32>> {
    let mut counts = vec![None; network.vertex_rows()];
    if !network.switch_up(from) {
        return counts;
    }
    for (to, _) in network.vertices() {
        // Every other host is taken away, so that no path can lead through one.
        let stays = |node: petgraph::graph::NodeIndex<u32>| {
            let vertex = VertexIdx::new(node.index());
            vertex == from || vertex == to || !network.vertex_at(vertex).is_host()
        };
        let usable = |edge: petgraph::graph::EdgeReference<'_, _, u32>| {
            use petgraph::visit::EdgeRef as _;
            network.is_usable(LinkIdx::new(edge.id().index()))
        };
        let graph = EdgeFiltered::from_fn(network.graph(), usable);
        let graph = NodeFiltered::from_fn(&graph, stays);
        let found = dijkstra(&graph, (from.0).into(), Some((to.0).into()), |_| 1_u32);
        counts[to.at()] = found.get(&petgraph::graph::NodeIndex::<u32>::new(to.at())).copied();
    }
    counts
}
