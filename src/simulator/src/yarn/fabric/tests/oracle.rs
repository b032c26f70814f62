//! The same shuffle, fetch by fetch: every reduce on its own, every fetch a flow of one member, and for every reduce
//! and map whether the one has the other's output.

use super::super::draw::draw;
use super::*;
use crate::FluidNetwork;
use hintd_model::units::{DirectedLinkIdx, FlowIdx};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What happens, and when.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) grain: FlowGrain,
    pub(super) racks: usize,
    pub(super) hosts: usize,
    pub(super) fetches: u32,
    pub(super) reduces: u32,
    /// Moment, node and bytes.
    pub(super) maps: Vec<(f64, NodeIdx, u64)>,
    /// Moment and node.
    pub(super) begins: Vec<(f64, NodeIdx)>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Map(u32),
    Begin(u32),
    Complete,
}

impl Case {
    fn settings(&self) -> SimSettings {
        SimSettings { fetches: self.fetches, ..exact(self.grain) }
    }

    fn steps(&self) -> Vec<(f64, Step)> {
        let mut steps: Vec<_> = (0..).zip(&self.maps).map(|(map, of)| (of.0, Step::Map(map))).collect();
        let last = self.maps.iter().map(|map| map.0).fold(0.0, f64::max);
        steps.extend((0..).zip(&self.begins).map(|(reduce, of)| (of.0, Step::Begin(reduce))));
        steps.push((last, Step::Complete));
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        steps
    }

    fn shuffle(&self) -> u64 {
        self.maps.iter().map(|map| map.2).sum()
    }

    /// Arrivals by reduce, and what was counted, as the fabric has them.
    pub(super) fn ours(&self) -> (Vec<f64>, FabricBytes) {
        let mut fabric = Fabric::new(&snapshot(self.racks, self.hosts), &self.settings()).unwrap();
        fabric.job(JOB, self.maps.len() as u64, u64::from(self.reduces), Bytes(self.shuffle()));
        let mut at = vec![f64::NAN; self.reduces as usize];
        let mut take = |fabric: &mut Fabric, to_s: f64| {
            while let Some(at_s) = fabric.next_s().filter(|&at_s| at_s <= to_s) {
                let mut arrived = Vec::new();
                fabric.advance(at_s, &mut arrived);
                for arrived in arrived {
                    let Arrived::Shuffle { reduce, .. } = arrived else { panic!("nobody reads") };
                    at[reduce as usize] = at_s;
                }
            }
        };
        for (now_s, step) in self.steps() {
            take(&mut fabric, now_s);
            match step {
                Step::Map(map) => {
                    let (_, node, bytes) = self.maps[map as usize];
                    fabric.map_done(now_s, JOB, map, node, Bytes(bytes));
                }
                Step::Begin(reduce) => fabric.reduce_begins(now_s, JOB, reduce, self.begins[reduce as usize].1),
                Step::Complete => fabric.maps_complete(now_s, JOB),
            }
        }
        take(&mut fabric, f64::INFINITY);
        assert_eq!((fabric.under_way(), fabric.stalled()), ((0, 0), 0));
        (at, fabric.bytes())
    }

    fn place(&self, node: NodeIdx) -> u32 {
        if self.grain == FlowGrain::Nodes { node.0 } else { node.0 / self.hosts as u32 }
    }
}

/// One reduce that fetches.
struct Reduce {
    place: u32,
    node: NodeIdx,
    begin_s: f64,
    /// Maps whose output it has or fetches.
    seen: BTreeSet<usize>,
    /// Source of each fetch under way.
    under: BTreeMap<FlowIdx, u32>,
    cursor: usize,
    arrived_s: Option<f64>,
}

struct Plain<'a> {
    case: &'a Case,
    wires: ActiveFlows,
    net: FluidNetwork,
    reduces: BTreeMap<u32, Reduce>,
    done: Vec<usize>,
    /// Places in the order of their first output.
    sources: Vec<u32>,
    complete: bool,
}

impl Plain<'_> {
    /// What the source holds that the reduce has not seen.
    fn there(&self, reduce: &Reduce, source: u32) -> Vec<usize> {
        let of = |map: &&usize| self.case.place(self.case.maps[**map].1) == source && !reduce.seen.contains(map);
        self.done.iter().filter(of).copied().collect()
    }

    fn fetch_on(&mut self, now_s: f64) {
        let places =
            if self.case.grain == FlowGrain::Nodes { self.case.racks * self.case.hosts } else { self.case.racks };
        let expected = self.case.shuffle() / places.min(self.case.maps.len()) as u64;
        let least = if self.complete { 1 } else { expected.div_ceil(10) };
        let numbers: Vec<u32> = self.reduces.keys().copied().collect();
        for number in numbers {
            let mut reduce = self.reduces.remove(&number).unwrap();
            while reduce.begin_s <= now_s
                && reduce.arrived_s.is_none()
                && reduce.under.len() < self.case.fetches as usize
            {
                let count = self.sources.len();
                let bytes = |maps: &[usize]| maps.iter().map(|&map| self.case.maps[map].2).sum::<u64>();
                let next = (0..count).map(|step| (reduce.cursor + step) % count).find(|&at| {
                    let source = self.sources[at];
                    !reduce.under.values().any(|&under| under == source) && bytes(&self.there(&reduce, source)) >= least
                });
                let Some(at) = next else { break };
                reduce.cursor = at + 1;
                let maps = self.there(&reduce, self.sources[at]);
                let own = maps.iter().filter(|&&map| self.case.maps[map].1 == reduce.node).copied().collect::<Vec<_>>();
                let left = (bytes(&maps) - bytes(&own)) / u64::from(self.case.reduces);
                reduce.seen.extend(maps);
                if left > 0 {
                    let flow = self.start(&reduce, self.sources[at], left);
                    reduce.under.insert(flow, self.sources[at]);
                }
            }
            if self.complete
                && reduce.begin_s <= now_s
                && reduce.seen.len() == self.done.len()
                && reduce.under.is_empty()
            {
                reduce.arrived_s.get_or_insert(now_s);
            }
            self.reduces.insert(number, reduce);
        }
    }

    fn start(&mut self, reduce: &Reduce, source: u32, bytes: u64) -> FlowIdx {
        let (racks, cap) = (self.case.racks as u32, 250e6 / f64::from(self.case.fetches));
        let (way, cap) = match self.case.grain {
            FlowGrain::Nodes => {
                (self.wires.links.way(links::Ends::Nodes(NodeIdx(source), reduce.node)).to_vec(), f64::INFINITY)
            }
            FlowGrain::Racks => {
                let mut way: Vec<u32> = self.lone_sender(source).into_iter().collect();
                match source == reduce.place {
                    true => way.push(2 * racks + reduce.node.0),
                    false => way.extend([2 * source, 2 * reduce.place + 1]),
                }
                (way.into_iter().map(DirectedLinkIdx).collect(), cap)
            }
        };
        self.net.start_capped(&way, Bytes(bytes), 1, cap).unwrap()
    }

    /// The NIC upwards of a node that has all that its rack holds, if that is a second's worth of it or more.
    fn lone_sender(&self, rack: u32) -> Option<u32> {
        let maps = || self.done.iter().map(|&map| self.case.maps[map]).filter(|map| self.case.place(map.1) == rack);
        let nodes: BTreeSet<NodeIdx> = maps().map(|map| map.1).collect();
        let nics = 2 * self.case.racks as u32 + (self.case.racks * self.case.hosts) as u32;
        let long = maps().map(|map| map.2).sum::<u64>() as f64 * 8.0 >= 250e6;
        nodes.first().filter(|_| nodes.len() == 1 && long).map(|node| nics + node.0)
    }

    /// Lets flows end and reduces begin up to a moment, each event on its own.
    fn run(&mut self, to_s: f64) {
        loop {
            let begin = self.reduces.values().map(|reduce| reduce.begin_s).filter(|&at_s| at_s > self.net.now_s());
            let begin = begin.fold(f64::INFINITY, f64::min);
            let next = self.net.next_completion_s().unwrap_or(f64::INFINITY).min(begin);
            if next > to_s || next == f64::INFINITY {
                break;
            }
            let mut ended = Vec::new();
            self.net.advance(next, &mut ended);
            for end in ended {
                let reduce = self.reduces.values_mut().find(|reduce| reduce.under.contains_key(&end.flow)).unwrap();
                reduce.under.remove(&end.flow);
            }
            self.fetch_on(next);
        }
        if to_s.is_finite() {
            self.net.advance(to_s, &mut Vec::new());
        }
    }
}

/// Arrivals by reduce.
fn plain(case: &Case) -> Vec<f64> {
    let settings = case.settings();
    let links = Links::new(&snapshot(case.racks, case.hosts), case.grain, settings.seed).unwrap();
    let net = FluidNetwork::new(&links.capacities()).unwrap();
    let wires = ActiveFlows::new(links, 0.0, 1.0).unwrap();
    let mut plain =
        Plain { case, wires, net, reduces: BTreeMap::new(), done: vec![], sources: vec![], complete: false };
    for (now_s, step) in case.steps() {
        plain.run(now_s);
        match step {
            Step::Map(map) => {
                plain.done.push(map as usize);
                let place = case.place(case.maps[map as usize].1);
                if !plain.sources.contains(&place) {
                    plain.sources.push(place);
                }
            }
            Step::Begin(reduce) => {
                let node = case.begins[reduce as usize].1;
                let (place, second) = (case.place(node), now_s as u64 + 1);
                let cursor = draw(settings.seed, &[0, u64::from(place), second]) as u32 as usize;
                let (seen, under) = (BTreeSet::new(), BTreeMap::new());
                let begin_s = second as f64;
                plain.reduces.insert(reduce, Reduce { place, node, begin_s, seen, under, cursor, arrived_s: None });
            }
            Step::Complete => plain.complete = true,
        }
        plain.fetch_on(now_s);
    }
    plain.run(f64::INFINITY);
    plain.reduces.values().map(|reduce| reduce.arrived_s.unwrap()).collect()
}

/// Outputs are multiples of the number of reduces: then members of a batch fetch the same to the byte. In grain
/// `racks` a rack's reduces are on its first node: on several nodes a batch waits for the last, single reduces do not.
fn case() -> impl Strategy<Value = Case> {
    let map = (0.0..20.0_f64, any::<prop::sample::Index>(), 1_u64..20_000_000);
    let begin = (0.0..25.0_f64, any::<prop::sample::Index>());
    let shape = (any::<bool>(), 2_usize..5, 1_usize..4, 1_u32..6);
    (shape, prop::collection::vec(map, 1..30), prop::collection::vec(begin, 1..12)).prop_map(
        |((by_rack, racks, hosts, fetches), maps, begins)| {
            let grain = if by_rack { FlowGrain::Racks } else { FlowGrain::Nodes };
            let reduces = begins.len() as u32;
            let maps = maps
                .into_iter()
                .map(|(at_s, node, bytes)| (at_s, NodeIdx::new(node.index(racks * hosts)), bytes * u64::from(reduces)));
            let node = |at: prop::sample::Index| match by_rack {
                true => NodeIdx::new(at.index(racks) * hosts),
                false => NodeIdx::new(at.index(racks * hosts)),
            };
            let begins = begins.into_iter().map(|(at_s, at)| (at_s, node(at)));
            let (maps, begins) = (maps.collect(), begins.collect());
            Case { grain, racks, hosts, fetches, reduces, maps, begins }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reduces_arrive_when_a_simulation_fetch_by_fetch_says(case in case()) {
        let (ours, bytes) = case.ours();
        for (ours, plain) in ours.into_iter().zip(plain(&case)) {
            prop_assert!((ours - plain).abs() <= 1e-6 * plain, "{} is not {}", ours, plain);
        }
        prop_assert_eq!(bytes.shuffle(), Bytes(case.shuffle()));
        let by_hand = |far: &dyn Fn(NodeIdx, NodeIdx) -> bool| {
            let pairs = case.maps.iter().flat_map(|map| case.begins.iter().map(move |begin| (map, begin.1)));
            pairs.filter(|(map, to)| far(map.1, *to)).map(|(map, _)| map.2 / u64::from(case.reduces)).sum::<u64>()
        };
        let rack = |node: NodeIdx| node.at() / case.hosts;
        prop_assert_eq!(bytes.cross_rack_shuffle.0, by_hand(&|from, to| rack(from) != rack(to)));
        prop_assert_eq!(bytes.node_local_shuffle.0, by_hand(&|from, to| from == to));
    }
}
