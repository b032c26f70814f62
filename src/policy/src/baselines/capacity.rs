//! `capacity`: what YARN's CapacityScheduler does by default, as one burst of heartbeats.
//!
//! Nodes report in a fixed order that starts anywhere (the seed) and goes on from group to group. At each heartbeat of a node with room the
//! scheduler looks for a task that may run there: node-local at once; rack-local after
//! `node-locality-delay` missed opportunities (capped by the cluster's size); anywhere once missed
//! opportunities exceed min(nodes, pending · min((locations asked for − 1) ÷ nodes, 1)). A node gets at most
//! one off-switch container a heartbeat, and as many local ones as fit. Asks without locality (`*` rows only)
//! are off-switch and never wait. Local allocations reset the count of missed opportunities, off-switch ones
//! don't. Rules: Hadoop 3 `RegularContainerAllocator`, capacity-scheduler defaults.
//!
//! A group with input asks as MapReduce does: task i reads the i-th equal run of blocks, in file order, and
//! names the hosts of all of them and their racks. Seen alone, the burst has no other applications in it.

use crate::params::{Invalid, Params};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{NodeIdx, RackIdx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Its name.
pub const NAME: &str = "capacity";

/// CapacityScheduler's own settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapacityParams {
    /// `yarn.scheduler.capacity.node-locality-delay`: heartbeats missed before a rack-local container is taken.
    /// -1: never wait. YARN's default.
    pub node_locality_delay: i64,
    /// `yarn.scheduler.capacity.rack-locality-additional-delay`: heartbeats missed beyond those before any node
    /// is taken; -1: by the formula above. YARN's default.
    pub rack_locality_additional_delay: i64,
}

impl Default for CapacityParams {
    fn default() -> Self {
        Self { node_locality_delay: 40, rack_locality_additional_delay: -1 }
    }
}

impl Params for CapacityParams {
    fn validate(&self) -> Result<(), Invalid> {
        let delays = [
            ("node_locality_delay", self.node_locality_delay),
            ("rack_locality_additional_delay", self.rack_locality_additional_delay),
        ];
        for (key, value) in delays {
            if value < -1 {
                return Err(Invalid { key, message: format!("{value} is neither -1 nor a number of heartbeats") });
            }
        }
        Ok(())
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Capacity {
    params: CapacityParams,
}

impl Definition for Capacity {
    type Params = CapacityParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "YARN's default: heartbeat order, node-local, then rack-local, then any, with delay";

    fn new(params: CapacityParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &CapacityParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), ..Capabilities::default() }
    }
}

impl Place for Capacity {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut filling = PlacementBuilder::new(problem);
        let cluster = problem.snapshot.state.iter().filter(|state| state.usable()).count() as u64;
        let mut last = None;
        for group in by_priority(problem) {
            let asks = Asks::of(problem, group);
            let mut burst = Burst { problem, group, params: &self.params, cluster, asks, missed: 0 };
            last = burst.run(&mut filling, last, budget).or(last);
        }
        Ok(filling.finish(budget))
    }

    fn knows_senders(&self) -> bool {
        true // stock YARN and the like go by none
    }
}

/// Rows of the ask table of one group, by task, as tasks still wait.
struct Asks {
    /// Whether task i still waits.
    waits: Vec<bool>,
    pending: u32,
    /// First task that may still wait.
    first: usize,
    /// Distinct hosts and racks asked for, and `*`.
    locations: u64,
    /// Tasks that asked for a rack.
    of_rack: BTreeMap<RackIdx, BTreeSet<u32>>,
}

impl Asks {
    fn of(problem: &PlaceProblem<'_>, group: usize) -> Self {
        let asked = &problem.groups[group];
        let mut of_rack: BTreeMap<RackIdx, BTreeSet<u32>> = BTreeMap::new();
        for (node, blocks) in &asked.input.by_node {
            let tasks = of_rack.entry(problem.snapshot.rack(*node)).or_default();
            tasks.extend(blocks.iter().map(|&block| reader(block, asked.input.blocks.len(), asked.count)));
        }
        Self {
            waits: vec![true; asked.count as usize],
            pending: asked.count,
            first: 0,
            locations: (asked.input.by_node.len() + of_rack.len() + 1) as u64,
            of_rack,
        }
    }

    fn take(&mut self, task: u32, racks: &[RackIdx]) {
        self.waits[task as usize] = false;
        self.pending -= 1;
        for rack in racks {
            if let Some(tasks) = self.of_rack.get_mut(rack) {
                tasks.remove(&task);
            }
        }
        while self.first < self.waits.len() && !self.waits[self.first] {
            self.first += 1;
        }
    }
}

/// The task that reads a block: equal runs in file order.
fn reader(block: u32, blocks: usize, tasks: u32) -> u32 {
    (u64::from(block) * u64::from(tasks) / (blocks as u64).max(u64::from(tasks))) as u32
}

/// Heartbeats until a group is placed or nothing more fits.
struct Burst<'p, 's> {
    problem: &'p PlaceProblem<'s>,
    group: usize,
    params: &'p CapacityParams,
    cluster: u64,
    asks: Asks,
    /// Heartbeats of nodes with room that were let go by.
    missed: u64,
}

impl Burst<'_, '_> {
    /// Goes on after the node that reported `last` to the group before; the node that did to this one.
    fn run(
        &mut self,
        filling: &mut PlacementBuilder<'_, '_>,
        last: Option<NodeIdx>,
        budget: &mut Budget<'_>,
    ) -> Option<NodeIdx> {
        let candidates = &self.problem.groups[self.group].candidates;
        if candidates.is_empty() {
            return None;
        }
        let mut at = match last {
            None => (self.problem.seed % candidates.len() as u64) as usize,
            Some(last) => candidates.partition_point(|&node| node <= last) % candidates.len(),
        };
        let mut reported = None;
        // Ends when a whole round met no room: waiting alone is bounded by the delays.
        let mut without_room = 0;
        while self.asks.pending > 0 && without_room < candidates.len() && !budget.over() {
            let node = candidates[at];
            reported = Some(node);
            if filling.fits(self.group, node) {
                without_room = 0;
                self.heartbeat(node, filling);
            } else {
                without_room += 1;
            }
            at = (at + 1) % candidates.len();
        }
        reported
    }

    fn heartbeat(&mut self, node: NodeIdx, filling: &mut PlacementBuilder<'_, '_>) {
        let mut local = false;
        while self.asks.pending > 0 && filling.fits(self.group, node) {
            let task = self.node_local(node).or_else(|| self.rack_local(node));
            let Some(task) = task else { break };
            self.give(task, node, filling);
            local = true;
        }
        if local {
            self.missed = 0;
        } else if self.off_switch_allowed() {
            self.give(self.asks.first as u32, node, filling);
        } else {
            self.missed += 1;
        }
    }

    fn give(&mut self, task: u32, node: NodeIdx, filling: &mut PlacementBuilder<'_, '_>) {
        filling.put(self.group, task, node);
        let input = &self.problem.groups[self.group].input;
        let count = self.problem.groups[self.group].count;
        let mine = |block: &usize| reader(*block as u32, input.blocks.len(), count) == task;
        // Runs are in file order: search only around the task's own.
        let guess = (u64::from(task) * (input.blocks.len() as u64).max(u64::from(count)) / u64::from(count)) as usize;
        let run = (guess.saturating_sub(1)..input.blocks.len()).skip_while(|block| !mine(block)).take_while(mine);
        let mut racks: Vec<RackIdx> = run
            .flat_map(|block| input.blocks[block].nodes.iter().map(|&node| self.problem.snapshot.rack(node)))
            .collect();
        racks.sort_unstable();
        racks.dedup();
        self.asks.take(task, &racks);
    }

    fn node_local(&self, node: NodeIdx) -> Option<u32> {
        let group = &self.problem.groups[self.group];
        let readers = group.input.on(node).iter().map(|&block| reader(block, group.input.blocks.len(), group.count));
        readers.into_iter().find(|&task| self.asks.waits[task as usize])
    }

    fn rack_local(&self, node: NodeIdx) -> Option<u32> {
        let delay = self.params.node_locality_delay.min(self.cluster as i64);
        if self.missed as i64 <= delay {
            return None;
        }
        self.asks.of_rack.get(&self.problem.snapshot.rack(node))?.first().copied()
    }

    fn off_switch_allowed(&self) -> bool {
        if self.asks.locations == 1 {
            return true;
        }
        let additional = self.params.rack_locality_additional_delay;
        if additional >= 0 {
            let delay = self.params.node_locality_delay.max(0) + additional;
            return self.missed as i64 > delay.min(self.cluster as i64);
        }
        let nodes = self.cluster.max(1) as f64;
        let factor = ((self.asks.locations - 1) as f64 / nodes).min(1.0);
        self.missed as f64 > (f64::from(self.asks.pending) * factor).min(nodes)
    }
}
