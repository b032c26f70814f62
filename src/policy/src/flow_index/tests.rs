//! The index by hand, and against a reckoning from scratch after random changes.

use super::*;
use crate::dataflow::traffic;
use crate::place::Share;
use crate::problem::EdgeProblem;
use crate::sample::{Sample, cluster};
use hintd_model::cluster::EdgePattern;
use hintd_model::cluster::Resource;
use hintd_model::network::build::{FatTreeSpec, fat_tree};
use hintd_model::units::{Bytes, GroupIdx};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn sample() -> Sample {
    cluster(&fat_tree(&FatTreeSpec { k: 4, ..FatTreeSpec::default() }).unwrap(), Resource::new(1024, 1), Bytes(1))
}

fn index(sample: &Sample) -> FlowIndex {
    FlowIndex::new(sample.snapshot.topology.network.as_deref().unwrap(), &sample.snapshot.topology)
}

fn pair(from: u32, to: u32) -> NodePair {
    NodePair { from: NodeIdx(from), to: NodeIdx(to) }
}

fn links(of: &[u32]) -> Vec<DirectedLinkIdx> {
    of.iter().copied().map(DirectedLinkIdx).collect()
}

fn job(edges: &[(u32, u32, bool)], groups: &[Vec<(u32, u32)>]) -> Option<Traffic> {
    let edge = |&(from, to, every): &(u32, u32, bool)| {
        let pattern = if every { EdgePattern::AllToAll } else { EdgePattern::OneToOne };
        EdgeProblem { from: GroupIdx(from), to: GroupIdx(to), pattern, bytes: Bytes(1_000) }
    };
    let share = |&(node, count): &(u32, u32)| Share { node: NodeIdx(node), count };
    let groups: Vec<Vec<Share>> = groups.iter().map(|shares| shares.iter().map(share).collect()).collect();
    traffic(&edges.iter().map(edge).collect::<Vec<_>>(), &groups).ok()
}

/// What there is, in plain words.
#[derive(Default)]
struct World {
    capacity: Vec<f64>,
    nic: Vec<f64>,
    jobs: BTreeMap<u32, (JobSlot, Traffic)>,
    routes: BTreeMap<NodePair, Vec<DirectedLinkIdx>>,
}

impl World {
    fn load(&self, link: usize) -> u64 {
        let flows = self.jobs.values().flat_map(|(_, traffic)| &traffic.flows);
        let passes = |pair: &NodePair| self.routes.get(pair).is_some_and(|route| route.iter().any(|l| l.at() == link));
        flows.filter(|flow| passes(&flow.pair)).map(|flow| u64::from(flow.task_pairs)).sum()
    }

    fn rate(&self, pair: NodePair) -> f64 {
        let Some(route) = self.routes.get(&pair) else { return 0.0 };
        let share = |l: &DirectedLinkIdx| self.capacity[l.at()] / self.load(l.at()).max(1) as f64;
        route.iter().map(share).fold(f64::INFINITY, f64::min)
    }

    fn utility(&self, traffic: &Traffic) -> f64 {
        let inlet = |inlet: &u32| {
            let inlet = &traffic.inlets[*inlet as usize];
            let local = inlet.local.map_or(f64::INFINITY, |node| self.nic[node.at()]);
            inlet.flows.iter().map(|&row| self.rate(traffic.flows[row as usize].pair)).fold(local, f64::min)
        };
        let sinks = traffic.sinks.iter();
        sinks.map(|sink| f64::from(sink.count) * sink.inlets.iter().map(inlet).fold(f64::INFINITY, f64::min)).sum()
    }

    /// Nobody's pairs are forgotten with their routes.
    fn forget_unused(&mut self, of: &Traffic) {
        for flow in &of.flows {
            let used = self.jobs.values().any(|(_, other)| other.flows.iter().any(|f| f.pair == flow.pair));
            if !used {
                self.routes.remove(&flow.pair);
            }
        }
    }
}

#[test]
fn task_pairs_share_links_and_a_sink_waits_for_its_slowest() {
    let sample = sample();
    let mut index = index(&sample);
    let whole = index.capacity(DirectedLinkIdx(0));
    let slot = index.add_job(&job(&[(0, 1, true)], &[vec![(0, 2)], vec![(1, 1), (2, 1)]]).unwrap());
    assert_eq!(index.utility(), 0.0, "no routes yet");
    index.set_route(pair(0, 1), Some(&links(&[0, 2])));
    assert_eq!((index.utility(), index.load(DirectedLinkIdx(0))), (whole / 2.0, 2));
    index.set_route(pair(0, 2), Some(&links(&[0, 4])));
    assert_eq!(index.utility(), 2.0 * whole / 4.0, "four task pairs share the first link");
    index.set_capacity(DirectedLinkIdx(4), whole / 100.0);
    assert_eq!(index.job_utility(slot), whole / 4.0 + whole / 200.0);
    index.set_route(pair(0, 1), None);
    assert_eq!(index.utility(), whole / 200.0);
    assert_eq!(index.pairs_on(DirectedLinkIdx(0)).collect::<Vec<_>>(), [pair(0, 2)]);
    index.remove_job(slot);
    assert_eq!((index.utility(), index.load(DirectedLinkIdx(0)), index.route(pair(0, 2))), (0.0, 0, None));
}

#[test]
fn what_stays_on_a_node_gets_its_nic_rate_and_loads_nothing() {
    let sample = sample();
    let mut index = index(&sample);
    index.add_job(&job(&[(0, 1, true)], &[vec![(3, 2)], vec![(3, 2)]]).unwrap());
    assert_eq!(index.utility(), 2.0 * index.nic(NodeIdx(3)));
    assert!(index.nic(NodeIdx(3)) > 0.0 && (0..96).all(|link| index.load(DirectedLinkIdx(link)) == 0));
}

#[test]
fn changes_that_are_held_show_when_they_are_recomputed() {
    let sample = sample();
    let mut index = index(&sample);
    index.add_job(&job(&[(0, 1, true)], &[vec![(0, 1)], vec![(1, 1)]]).unwrap());
    index.hold();
    index.set_route(pair(0, 1), Some(&links(&[0])));
    assert_eq!(index.utility(), 0.0);
    index.recompute_rates();
    assert!(index.utility() > 0.0);
}

#[derive(Debug, Clone)]
enum Change {
    Add(u32, Vec<(u32, u32, bool)>, Vec<Vec<(u32, u32)>>),
    Remove(u32),
    Route(u32, u32, Vec<u32>),
    Capacity(u32, u32),
}

const NODES: u32 = 6;
const LINKS: u32 = 12;

fn change() -> impl Strategy<Value = Change> {
    let shares = prop::collection::vec((0..NODES, 1_u32..4), 0..4);
    let job =
        (0_u32..6, prop::collection::vec((0_u32..4, 0_u32..4, any::<bool>()), 1..6), prop::collection::vec(shares, 4));
    let route = prop::collection::btree_set(0..LINKS, 0..5).prop_map(|set| set.into_iter().collect());
    prop_oneof![
        3 => job.prop_map(|(at, edges, groups)| Change::Add(at, edges, groups)),
        1 => (0_u32..6).prop_map(Change::Remove),
        8 => (0..NODES, 0..NODES, route).prop_map(|(from, to, links)| Change::Route(from, to, links)),
        2 => (0..LINKS, 0_u32..5).prop_map(|(link, of)| Change::Capacity(link, of)),
    ]
}

fn apply(index: &mut FlowIndex, world: &mut World, change: &Change) {
    match change {
        Change::Add(at, edges, groups) => {
            let Some(traffic) = job(edges, groups) else { return };
            if !world.jobs.contains_key(at) {
                world.jobs.insert(*at, (index.add_job(&traffic), traffic));
            }
        }
        Change::Remove(at) => {
            if let Some((slot, traffic)) = world.jobs.remove(at) {
                index.remove_job(slot);
                world.forget_unused(&traffic);
            }
        }
        Change::Route(from, to, route) => {
            let route = links(route);
            index.set_route(pair(*from, *to), Some(&route));
            world.routes.remove(&pair(*from, *to));
            if !route.is_empty() {
                world.routes.insert(pair(*from, *to), route);
            }
        }
        Change::Capacity(link, of) => {
            index.set_capacity(DirectedLinkIdx(*link), f64::from(*of) * 1e8);
            world.capacity[*link as usize] = f64::from(*of) * 1e8;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_any_change_it_is_bit_for_bit_a_reckoning_from_scratch(
        changes in prop::collection::vec(change(), 1..40),
        held in prop::collection::vec(prop::bool::weighted(0.3), 40),
    ) {
        let sample = sample();
        let mut index = index(&sample);
        let nic = (0..NODES).map(|node| index.nic(NodeIdx(node))).collect();
        let capacity = (0..LINKS).map(|link| index.capacity(DirectedLinkIdx(link))).collect();
        let mut world = World { capacity, nic, ..World::default() };
        for (change, held) in changes.iter().zip(held) {
            if held {
                index.hold();
                apply(&mut index, &mut world, change);
                index.set_capacity(DirectedLinkIdx(3), world.capacity[3]);
                index.recompute_rates();
            } else {
                apply(&mut index, &mut world, change);
            }
            for (slot, traffic) in world.jobs.values() {
                prop_assert_eq!(index.job_utility(*slot), world.utility(traffic));
                for flow in &traffic.flows {
                    prop_assert_eq!(index.rate(flow.pair), world.rate(flow.pair));
                }
            }
            let sum: f64 = world.jobs.values().map(|(_, traffic)| world.utility(traffic)).sum();
            prop_assert!((index.utility() - sum).abs() <= 1e-12 * sum);
            for link in 0..LINKS {
                prop_assert_eq!(index.load(DirectedLinkIdx(link)), world.load(link as usize));
            }
            for (pair, route) in &world.routes {
                prop_assert_eq!(index.route(*pair), Some(&route[..]));
                for link in route {
                    prop_assert!(index.pairs_on(*link).any(|on| on == *pair));
                }
            }
        }
    }
}
