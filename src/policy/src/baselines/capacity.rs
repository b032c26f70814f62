//! `capacity`: what YARN's CapacityScheduler does by default, as one burst of heartbeats.
//!
//! Nodes report in a fixed order that starts anywhere (the seed) and goes on from group to group. Who gets what at a
//! heartbeat is the model of YARN's scheduler ([`crate::capacity_scheduler`]) with one queue and one application:
//! node-local at once; rack-local and anywhere after its delays; one off-switch container a heartbeat, and as many
//! local ones as fit. A node has as much room as the problem says and takes no more than the group's bounds.
//!
//! A group with input asks as MapReduce does: task i reads the i-th equal run of blocks, in file order, and
//! names the hosts of all of them and their racks. Its rows follow what is placed. Seen alone, the burst has no other
//! applications in it, and a group asks when those before it are placed.

use crate::capacity_scheduler::{
    AppIdx, AppOrdering, AskRow, CapacityScheduler, Decision, NewNode, NodeType, Place as Row, QueueSettings,
    SchedulerSettings, Size, Submission,
};
use crate::params::{Invalid, Params};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::units::{NodeIdx, RackIdx, SchedulerKey};
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
    const SUMMARY: &'static str = "names the hosts that YARN's capacity scheduler would choose by itself: a node that reports gets local work at once, work of its rack and then any after delays";

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
        Ok(self.params.burst(problem, budget, false))
    }

    fn knows_senders(&self) -> bool {
        true // stock YARN and the like go by none
    }
}

impl CapacityParams {
    /// Groups in turn; `model`: the model decides even where it can decide in one way only.
    fn burst(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>, model: bool) -> Placement {
        let mut filling = PlacementBuilder::new(problem);
        // Its books are of all nodes: they are opened only for groups that ask for places.
        let mut books: Option<(CapacityScheduler, AppIdx)> = None;
        let mut last = None;
        for (priority, group) in by_priority(problem).into_iter().enumerate() {
            if problem.groups[group].input.is_empty() && !model {
                last = one_each(problem, group, &mut filling, last, budget).or(last);
                continue;
            }
            let (scheduler, app) = books.get_or_insert_with(|| self.scheduler(problem));
            let key = SchedulerKey { priority: priority as i32, allocation_request_id: -1 };
            let asked = &problem.groups[group].size;
            // The model's smallest container is of 1 MB.
            let size = Size::new((asked.memory_mb() as i64).max(1), asked.vcores() as i64);
            let asks = Asks::of(problem, group);
            let mut burst = Burst { problem, group, scheduler, app: *app, key, size, asks };
            last = burst.run(&mut filling, last, budget).or(last);
        }
        filling.finish(budget)
    }

    /// Every usable node, each without room until it reports, and one application.
    fn scheduler(&self, problem: &PlaceProblem<'_>) -> (CapacityScheduler, AppIdx) {
        let delay = |heartbeats: i64| i32::try_from(heartbeats).unwrap_or(i32::MAX / 2);
        let settings = SchedulerSettings {
            calculator: problem.snapshot.rules.calculator.into(),
            minimum: Size::new(1, 0),
            maximum: Size::new(i64::from(u32::MAX), i64::from(u32::MAX)),
            node_locality_delay: delay(self.node_locality_delay),
            rack_locality_additional_delay: delay(self.rack_locality_additional_delay),
            // Each container is put before the next is looked for.
            maximum_container_assignments: 1,
            ..SchedulerSettings::default()
        };
        let queue = QueueSettings { ordering: AppOrdering::Fifo, ..QueueSettings::new("root.default") };
        let mut scheduler =
            CapacityScheduler::single_queue(settings, queue).expect("these settings are within their ranges");
        let snapshot = problem.snapshot;
        let usable = snapshot.statics.indexes().filter(|node| snapshot.state[node.at()].usable());
        // Nothing is reserved here, so that hosts' names decide nothing.
        scheduler.add_nodes(usable.map(|node| NewNode {
            node,
            rack: snapshot.rack(node),
            id: ("", 0),
            total: Size::ZERO,
        }));
        let submission =
            Submission { queue: "root.default".to_owned(), user: "".into(), priority: 0, master: Size::ZERO };
        let app = scheduler.submit(submission).expect("the queue was made with the scheduler");
        (scheduler, app)
    }
}

/// The first node to report after the one that did last.
fn first_to_report(problem: &PlaceProblem<'_>, candidates: &[NodeIdx], last: Option<NodeIdx>) -> usize {
    match last {
        None => (problem.seed % candidates.len() as u64) as usize,
        Some(last) => candidates.partition_point(|&node| node <= last) % candidates.len(),
    }
}

/// A group that asks for `*` only: every heartbeat of a node with room gives one container, off-switch, and none waits.
fn one_each(
    problem: &PlaceProblem<'_>,
    group: usize,
    filling: &mut PlacementBuilder<'_, '_>,
    last: Option<NodeIdx>,
    budget: &mut Budget<'_>,
) -> Option<NodeIdx> {
    let candidates = &problem.groups[group].candidates;
    if candidates.is_empty() {
        return None;
    }
    let mut at = first_to_report(problem, candidates, last);
    let (mut reported, mut task, mut without_room) = (None, 0, 0);
    while task < problem.groups[group].count && without_room < candidates.len() && !budget.over() {
        let node = candidates[at];
        reported = Some(node);
        if filling.fits(group, node) {
            filling.put(group, task, node);
            (task, without_room) = (task + 1, 0);
        } else {
            without_room += 1;
        }
        at = (at + 1) % candidates.len();
    }
    reported
}

/// Rows of the ask table of one group, and its tasks as they still wait.
struct Asks {
    /// Whether task i still waits.
    waits: Vec<bool>,
    /// First task that may still wait.
    first: usize,
    /// Containers asked for, by place.
    rows: BTreeMap<Row, u32>,
    /// Tasks that asked for a rack.
    of_rack: BTreeMap<RackIdx, BTreeSet<u32>>,
}

impl Asks {
    fn of(problem: &PlaceProblem<'_>, group: usize) -> Self {
        let asked = &problem.groups[group];
        let mut of_rack: BTreeMap<RackIdx, BTreeSet<u32>> = BTreeMap::new();
        let mut rows = BTreeMap::from([(Row::Any, asked.count)]);
        for (node, blocks) in &asked.input.by_node {
            let readers = blocks.iter().map(|&block| reader(block, asked.input.blocks.len(), asked.count));
            let tasks: BTreeSet<u32> = readers.collect();
            rows.insert(Row::Host(*node), tasks.len() as u32);
            of_rack.entry(problem.snapshot.rack(*node)).or_default().extend(tasks);
        }
        rows.extend(of_rack.iter().map(|(&rack, tasks)| (Row::Rack(rack), tasks.len() as u32)));
        Self { waits: vec![true; asked.count as usize], first: 0, rows, of_rack }
    }

    fn pending(&self) -> u32 {
        self.rows.get(&Row::Any).copied().unwrap_or(0)
    }

    /// The task waits no more: it read on those nodes.
    fn take(&mut self, task: u32, places: &BTreeSet<Row>) {
        self.waits[task as usize] = false;
        for place in places {
            if let Some(count) = self.rows.get_mut(place) {
                *count = count.saturating_sub(1);
            }
            if let Row::Rack(rack) = place
                && let Some(tasks) = self.of_rack.get_mut(rack)
            {
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
    scheduler: &'p mut CapacityScheduler,
    app: AppIdx,
    key: SchedulerKey,
    size: Size,
    asks: Asks,
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
        let mut at = first_to_report(self.problem, candidates, last);
        self.ask(&self.asks.rows.keys().copied().collect());
        let mut reported = None;
        // Ends when a whole round met no room. Waiting alone is bounded by the delays, and those by the nodes there are.
        let (mut without_room, mut waited) = (0, 0);
        let patience = self.problem.snapshot.nodes() + candidates.len() + 2;
        while self.asks.pending() > 0 && without_room < candidates.len() && waited < patience && !budget.over() {
            let node = candidates[at];
            reported = Some(node);
            if filling.fits(self.group, node) {
                without_room = 0;
                waited = if self.heartbeat(node, filling) { 0 } else { waited + 1 };
            } else {
                without_room += 1;
            }
            at = (at + 1) % candidates.len();
        }
        // What was not placed is asked for no more.
        let none = AskRow { key: self.key, place: Row::Any, size: self.size, count: 0, relax: true };
        self.scheduler.ask(self.app, &[none]);
        reported
    }

    /// One container after the other, until one was off-switch or none came; whether any did.
    fn heartbeat(&mut self, node: NodeIdx, filling: &mut PlacementBuilder<'_, '_>) -> bool {
        let mut any = false;
        while self.asks.pending() > 0 && filling.fits(self.group, node) {
            let used = self.scheduler.total_of(node).minus(self.scheduler.free_on(node));
            self.scheduler.resize_node(node, used.plus(self.size));
            let Some(decision) = self.scheduler.heartbeat(node).pop() else { break };
            self.give(&decision, filling);
            any = true;
            if decision.kind == NodeType::OffSwitch {
                break;
            }
        }
        any
    }

    /// The ApplicationMaster puts the task into the container whose input is nearest, and says what it asks for now.
    fn give(&mut self, decision: &Decision, filling: &mut PlacementBuilder<'_, '_>) {
        let node = decision.node;
        let rack = || self.rack_local(node).filter(|_| decision.kind != NodeType::OffSwitch);
        let task = self.node_local(node).or_else(rack).unwrap_or(self.asks.first as u32);
        filling.put(self.group, task, node);
        let mut changed = self.places(task);
        changed.insert(Row::Any);
        self.asks.take(task, &changed);
        // Rows that YARN lowered itself.
        changed.extend([Row::Host(node), Row::Rack(self.problem.snapshot.rack(node))]);
        self.ask(&changed);
    }

    /// Tells of rows as they stand.
    fn ask(&mut self, places: &BTreeSet<Row>) {
        let row = |(&place, &count)| AskRow { key: self.key, place, size: self.size, count, relax: true };
        let rows: Vec<AskRow> =
            places.iter().filter_map(|place| self.asks.rows.get_key_value(place)).map(row).collect();
        self.scheduler.ask(self.app, &rows);
    }

    /// Hosts of a task's input, and their racks.
    fn places(&self, task: u32) -> BTreeSet<Row> {
        let input = &self.problem.groups[self.group].input;
        let count = self.problem.groups[self.group].count;
        let mine = |block: &usize| reader(*block as u32, input.blocks.len(), count) == task;
        // Runs are in file order: search only around the task's own.
        let guess = (u64::from(task) * (input.blocks.len() as u64).max(u64::from(count)) / u64::from(count)) as usize;
        let run = (guess.saturating_sub(1)..input.blocks.len()).skip_while(|block| !mine(block)).take_while(mine);
        let nodes = run.flat_map(|block| input.blocks[block].nodes.iter().copied());
        nodes.flat_map(|node| [Row::Host(node), Row::Rack(self.problem.snapshot.rack(node))]).collect()
    }

    fn node_local(&self, node: NodeIdx) -> Option<u32> {
        let group = &self.problem.groups[self.group];
        let readers = group.input.on(node).iter().map(|&block| reader(block, group.input.blocks.len(), group.count));
        readers.into_iter().find(|&task| self.asks.waits[task as usize])
    }

    fn rack_local(&self, node: NodeIdx) -> Option<u32> {
        self.asks.of_rack.get(&self.problem.snapshot.rack(node))?.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{GroupProblem, InputBlock, InputBlocks};
    use crate::sample::{Sample, cluster};
    use hintd_model::cluster::Resource;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;
    use std::sync::Arc;

    const UNIT: Resource = Resource::new(1024, 1);

    /// Four racks of two nodes, four containers each.
    fn sample() -> Sample {
        cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(4), Bytes(1))
    }

    /// Containers on each node, from the first on.
    fn placed(sample: &Sample, group: GroupProblem) -> Vec<u32> {
        let problem = PlaceProblem { seed: 0, ..sample.problem(vec![group], vec![], vec![]) };
        let placement = Capacity::default().place(&problem, &mut Budget::new(u64::MAX, &mut || false)).unwrap();
        let mut on = vec![0; sample.snapshot.nodes()];
        placement.groups[0].iter().for_each(|share| on[share.node.at()] += share.count);
        on
    }

    #[test]
    fn asks_for_any_node_go_one_to_a_node_in_turn() {
        let sample = sample();
        assert_eq!(placed(&sample, sample.group("reduce", 11, UNIT)), [2, 2, 2, 1, 1, 1, 1, 1]);
        assert_eq!(placed(&sample, sample.group("reduce", 40, UNIT)), [4; 8], "no more than there is room");
        let bounded = GroupProblem { max_per_node: 1, ..sample.group("reduce", 11, UNIT) };
        assert_eq!(placed(&sample, bounded), [1; 8], "no more than the group's bound");
    }

    #[test]
    fn maps_fill_the_node_of_their_input_and_few_of_them_do_not_wait_for_it() {
        let sample = sample();
        let block = InputBlock { bytes: Bytes(10), nodes: smallvec::smallvec![NodeIdx(6)] };
        let maps = |count: u32| {
            let input = Arc::new(InputBlocks::new(vec![block.clone(); count as usize]));
            GroupProblem { input, ..sample.group("map", count, UNIT) }
        };
        // 1 outstanding x (3 places less one) / 8 nodes is less than the first offer.
        assert_eq!(placed(&sample, maps(1)), [1, 0, 0, 0, 0, 0, 0, 0]);
        // 16 x 2 / 8: four offers go by, the fifth and sixth node take one each, and the seventh is the input's: the count
        // begins anew. 10 x 2 / 8: two more go by, and then each node takes one.
        assert_eq!(placed(&sample, maps(16)), [1, 2, 2, 2, 2, 2, 4, 1]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

        #[test]
        fn what_asks_for_any_node_is_placed_as_by_the_model(
            seed in proptest::prelude::any::<u64>(), counts in proptest::collection::vec(1_u32..40, 1..4),
            blocks in 0_usize..6, per_node in 0_u32..4,
        ) {
            let spec = TreeSpec { racks: 3, hosts_per_rack: 4, ..TreeSpec::default() };
            let mut sample = cluster(&tree(&spec).unwrap(), Resource::new(1024, 1).times(5), Bytes(1));
            sample.occupy(Resource::new(1024, 1), 4, seed);
            let groups = counts.iter().enumerate().map(|(at, &count)| {
                let mut group = sample.group(&format!("g{at}"), count, Resource::new(1024, 1));
                group.max_per_node = if per_node == 0 { u32::MAX } else { per_node };
                if at == 1 {
                    group.input = sample.input(blocks, Bytes(64), seed);
                }
                group
            });
            let mut problem = sample.problem(groups.collect(), vec![], vec![]);
            problem.seed = seed;
            let placed = |model| {
                let mut never = || false;
                CapacityParams::default().burst(&problem, &mut Budget::new(u64::MAX, &mut never), model).groups
            };
            proptest::prop_assert_eq!(placed(false), placed(true));
        }
    }
}
