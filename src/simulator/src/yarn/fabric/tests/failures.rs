//! Bytes stay whole, and every reduce gets its share, whatever is lost and when.

use super::*;
use hintd_model::units::LinkName;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A run that reruns what is lost, as a resource manager would, at once and elsewhere.
struct Run {
    fabric: Fabric,
    now_s: f64,
    nodes: usize,
    outputs: Vec<u64>,
    reduces: u32,
    /// Where outputs lie.
    lies: BTreeMap<u32, NodeIdx>,
    /// Maps that have to run, and those that were lost with no reduce in need.
    open: BTreeSet<u32>,
    complete: bool,
    runs: BTreeMap<u32, NodeIdx>,
    arrived: BTreeSet<u32>,
    down: BTreeSet<usize>,
}

impl Run {
    fn new(grain: FlowGrain, racks: usize, hosts: usize, outputs: Vec<u64>, reduces: u32) -> Self {
        let mut fabric = Fabric::new(&snapshot(racks, hosts), &exact(grain)).unwrap();
        fabric.job(JOB, outputs.len() as u64, u64::from(reduces), Bytes(outputs.iter().sum()));
        let open = (0..outputs.len() as u32).collect();
        Self {
            fabric,
            now_s: 0.0,
            nodes: racks * hosts,
            outputs,
            reduces,
            lies: BTreeMap::new(),
            open,
            complete: false,
            runs: BTreeMap::new(),
            arrived: BTreeSet::new(),
            down: BTreeSet::new(),
        }
    }

    fn a_node(&self, from: usize) -> NodeIdx {
        let there = (0..self.nodes).map(|step| (from + step) % self.nodes).find(|node| !self.down.contains(node));
        NodeIdx::new(there.expect("one is always up"))
    }

    fn pass(&mut self, to_s: f64) {
        let mut arrived = Vec::new();
        self.fabric.advance(to_s, &mut arrived);
        self.now_s = to_s;
        for what in arrived {
            let Arrived::Shuffle { reduce, .. } = what else { panic!("nobody reads") };
            assert!(self.runs.contains_key(&reduce), "only a reduce that runs arrives");
            assert!(self.arrived.insert(reduce), "once");
        }
    }

    fn map(&mut self, map: u32, from: usize) {
        if !self.open.remove(&map) {
            return;
        }
        let node = self.a_node(from);
        self.fabric.map_done(self.now_s, JOB, map, node, Bytes(self.outputs[map as usize]));
        self.lies.insert(map, node);
        if self.open.is_empty() {
            self.complete = true;
            self.fabric.maps_complete(self.now_s, JOB);
        }
    }

    fn begin(&mut self, reduce: u32, from: usize) {
        if self.runs.contains_key(&reduce) {
            return;
        }
        let node = self.a_node(from);
        self.runs.insert(reduce, node);
        // What was lost when nobody needed it is needed now.
        let missing: Vec<u32> = self.fabric.maps_missing(JOB).to_vec();
        self.open.extend(missing);
        self.fabric.reduce_begins(self.now_s, JOB, reduce, node);
    }

    fn lose(&mut self, node: usize, first_the_node: bool) {
        if self.down.contains(&node) || self.down.len() + 1 == self.nodes {
            return;
        }
        self.down.insert(node);
        let node = NodeIdx::new(node);
        if first_the_node {
            self.fabric.node(self.now_s, node, false);
        }
        let gone: Vec<u32> = self.runs.iter().filter(|(_, at)| **at == node).map(|(&reduce, _)| reduce).collect();
        for reduce in gone {
            self.fabric.reduce_stops(self.now_s, JOB, reduce);
            self.runs.remove(&reduce);
            self.arrived.remove(&reduce);
        }
        let lost: Vec<u32> = self.lies.iter().filter(|(_, at)| **at == node).map(|(&map, _)| map).collect();
        for map in lost {
            self.lies.remove(&map);
            if self.fabric.map_lost(self.now_s, JOB, map, node) {
                self.open.insert(map);
            }
        }
        if !first_the_node {
            self.fabric.node(self.now_s, node, false);
        }
    }

    fn end(&mut self) {
        for round in 0.. {
            assert!(round < 50, "it ends");
            (0..self.reduces).for_each(|reduce| self.begin(reduce, round + reduce as usize));
            self.open.clone().into_iter().for_each(|map| self.map(map, round));
            // All maps that were missing may be there again without a last one being told.
            self.fabric.maps_complete(self.now_s, JOB);
            while let Some(at_s) = self.fabric.next_s() {
                self.pass(at_s);
            }
            if self.arrived.len() == self.reduces as usize {
                return;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Pass(f64),
    Map(u32, usize),
    Begin(u32, usize),
    Stop(u32),
    Lose(usize, bool),
    Back(usize),
    Link(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0.0..3.0_f64).prop_map(Step::Pass),
        6 => (0_u32..12, 0_usize..6).prop_map(|(map, node)| Step::Map(map, node)),
        4 => (0_u32..7, 0_usize..6).prop_map(|(reduce, node)| Step::Begin(reduce, node)),
        1 => (0_u32..7).prop_map(Step::Stop),
        2 => (0_usize..6, any::<bool>()).prop_map(|(node, first)| Step::Lose(node, first)),
        2 => (0_usize..6).prop_map(Step::Back),
        1 => (0_usize..3, any::<bool>()).prop_map(|(rack, up)| Step::Link(rack, up)),
    ];
    prop::collection::vec(step, 10..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_reduce_gets_its_share_whatever_is_lost(
        by_rack in any::<bool>(),
        outputs in prop::collection::vec(0_u64..40_000_000, 12),
        steps in steps(),
    ) {
        let grain = if by_rack { FlowGrain::Racks } else { FlowGrain::Nodes };
        let mut run = Run::new(grain, 3, 2, outputs, 7);
        let (mut stopped, mut down) = (false, false);
        for step in steps {
            match step {
                Step::Pass(span_s) => run.pass(run.now_s + span_s),
                Step::Map(map, node) => run.map(map, node),
                Step::Begin(reduce, node) => run.begin(reduce, node),
                Step::Stop(reduce) => {
                    if run.runs.remove(&reduce).is_some() {
                        stopped = true;
                        run.arrived.remove(&reduce);
                        run.fabric.reduce_stops(run.now_s, JOB, reduce);
                    }
                }
                Step::Lose(node, first) => {
                    stopped |= run.runs.values().any(|at| at.at() == node);
                    run.lose(node, first);
                }
                Step::Back(node) => {
                    if run.down.remove(&node) {
                        run.fabric.node(run.now_s, NodeIdx::new(node), true);
                    }
                }
                Step::Link(rack, up) => {
                    down = true;
                    let link = LinkName(format!("edge-{:02}--core-1", rack + 1).into());
                    prop_assert!(run.fabric.link(run.now_s, &link, up));
                }
            }
        }
        if down {
            for rack in 1..=3 {
                run.fabric.link(run.now_s, &LinkName(format!("edge-{rack:02}--core-1").into()), true);
            }
        }
        run.end();
        let all = run.outputs.iter().sum::<u64>();
        prop_assert_eq!(run.fabric.under_way(), (0, 0));
        if stopped {
            prop_assert!(run.fabric.bytes().shuffle().0 >= all);
        } else {
            prop_assert_eq!(run.fabric.bytes().shuffle().0, all);
        }
        run.fabric.forget(JOB);
        prop_assert_eq!(run.fabric.next_s(), None);
    }
}
