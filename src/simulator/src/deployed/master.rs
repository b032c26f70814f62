//! MapReduce's ApplicationMaster, as `RMContainerAllocator` asks.

use hintd_engine::holding::Shuffle;
use hintd_model::units::{Bytes, NodeIdx, RackIdx, SchedulerKey, Timestamp};
use hintd_policy::capacity_scheduler::{AppIdx, ContainerNo, Place};
use hintd_policy::dispatch::TaskInput;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `PRIORITY_MAP`.
pub(super) const MAPS: SchedulerKey = SchedulerKey { priority: 20, allocation_request_id: -1 };
/// `PRIORITY_REDUCE`.
pub(super) const REDUCES: SchedulerKey = SchedulerKey { priority: 10, allocation_request_id: -1 };

/// `yarn.app.mapreduce.am.job.reduce.rampup.limit`.
const RAMP_UP: f64 = 0.5;

/// One application.
#[derive(Debug)]
pub(super) struct Master {
    pub(super) app: AppIdx,
    pub(super) user: Arc<str>,
    pub(super) maps: Arc<str>,
    pub(super) reduces: Arc<str>,
    /// Heartbeats come at this time and every second after.
    pub(super) first_beat: Timestamp,
    /// A heartbeat is on the agenda.
    pub(super) beats: bool,
    inputs: Vec<TaskInput>,
    waiting_maps: BTreeSet<u32>,
    /// Waiting maps by host with a replica.
    by_host: BTreeMap<NodeIdx, BTreeSet<u32>>,
    /// The same by rack. Rows are counted at every heartbeat, which must not cost something for each map that waits.
    by_rack: BTreeMap<RackIdx, BTreeSet<u32>>,
    /// By node.
    racks: Arc<[RackIdx]>,
    waiting_reduces: BTreeSet<u32>,
    reduces_in_all: u32,
    /// Reduces that have all of their bytes.
    pub(super) received: u32,
    pub(super) completed: u32,
    /// Containers by kind of task (whether it is a map) and number.
    containers: BTreeMap<(bool, u32), (ContainerNo, NodeIdx)>,
    /// Of these, how many are of maps.
    running_maps: u32,
    /// Rows of maps that stand at YARN.
    pub(super) asked: BTreeMap<Place, u32>,
    /// Reduces that it asked for and has not.
    pub(super) asked_reduces: u32,
    /// Those of them that the processor let through to YARN.
    pub(super) passed: u32,
    /// What finished maps wrote.
    pub(super) map_output: Bytes,
    /// Share of the maps that are done when reduces are asked for.
    slow_start: f64,
}

impl Master {
    pub(super) fn new(
        app: AppIdx,
        user: Arc<str>,
        racks: Arc<[RackIdx]>,
        (first_beat, slow_start): (Timestamp, f64),
    ) -> Self {
        Self {
            app,
            user,
            maps: "map".into(),
            reduces: "reduce".into(),
            first_beat,
            beats: false,
            inputs: Vec::new(),
            waiting_maps: BTreeSet::new(),
            by_host: BTreeMap::new(),
            by_rack: BTreeMap::new(),
            racks,
            waiting_reduces: BTreeSet::new(),
            reduces_in_all: 0,
            received: 0,
            completed: 0,
            containers: BTreeMap::new(),
            running_maps: 0,
            asked: BTreeMap::new(),
            asked_reduces: 0,
            passed: 0,
            map_output: Bytes::ZERO,
            slow_start,
        }
    }

    pub(super) fn has_maps(&mut self, inputs: &[TaskInput], count: u32) {
        self.inputs = inputs.to_vec();
        (0..count).for_each(|map| self.map_waits(map));
    }

    pub(super) fn has_reduces(&mut self, count: u32) {
        self.waiting_reduces = (0..count).collect();
        self.reduces_in_all = count;
    }

    pub(super) fn map_waits(&mut self, map: u32) {
        self.waiting_maps.insert(map);
        for node in self.inputs.get(map as usize).into_iter().flat_map(|input| &input.nodes) {
            self.by_host.entry(*node).or_default().insert(map);
            self.by_rack.entry(self.racks[node.at()]).or_default().insert(map);
        }
    }

    pub(super) fn reduce_waits(&mut self, reduce: u32) {
        self.waiting_reduces.insert(reduce);
    }

    /// Which map goes into a container on that node: one with a replica there, else in its rack, else any.
    pub(super) fn assign_map(&mut self, node: NodeIdx) -> Option<u32> {
        let on_host = self.by_host.get(&node);
        let near = on_host.or_else(|| self.by_rack.get(&self.racks[node.at()]));
        let map = near.unwrap_or(&self.waiting_maps).first().copied()?;
        self.takes_map(map);
        Some(map)
    }

    /// The map waits no more.
    pub(super) fn takes_map(&mut self, map: u32) {
        self.waiting_maps.remove(&map);
        for host in self.inputs.get(map as usize).into_iter().flat_map(|input| &input.nodes) {
            take_out(&mut self.by_host, *host, map);
            take_out(&mut self.by_rack, self.racks[host.at()], map);
        }
    }

    /// A task has a container.
    pub(super) fn holds(&mut self, task: (bool, u32), at: (ContainerNo, NodeIdx)) {
        if self.containers.insert(task, at).is_none() {
            self.running_maps += u32::from(task.0);
        }
    }

    /// The container of a task, if it has one.
    pub(super) fn container(&self, task: (bool, u32)) -> Option<(ContainerNo, NodeIdx)> {
        self.containers.get(&task).copied()
    }

    /// A task has its container no more, which is returned.
    pub(super) fn gives_back(&mut self, task: (bool, u32)) -> Option<(ContainerNo, NodeIdx)> {
        let held = self.containers.remove(&task);
        self.running_maps -= u32::from(task.0 && held.is_some());
        held
    }

    /// Containers that its tasks hold.
    pub(super) fn running(&self) -> u32 {
        self.containers.len() as u32
    }

    pub(super) fn assign_reduce(&mut self) -> Option<u32> {
        self.asked_reduces = self.asked_reduces.saturating_sub(1);
        self.passed = self.passed.saturating_sub(1);
        self.waiting_reduces.pop_first()
    }

    /// Rows of all maps that wait.
    pub(super) fn map_rows(&self) -> BTreeMap<Place, u32> {
        let count = |maps: &BTreeSet<u32>| maps.len() as u32;
        let racks = self.by_rack.iter().map(|(&rack, maps)| (Place::Rack(rack), count(maps)));
        let hosts = self.by_host.iter().map(|(&host, maps)| (Place::Host(host), count(maps)));
        std::iter::once((Place::Any, count(&self.waiting_maps))).chain(racks).chain(hosts).collect()
    }

    pub(super) fn maps_wait(&self) -> bool {
        !self.waiting_maps.is_empty()
    }

    /// Reduces that hold containers or stand at YARN.
    pub(super) fn reduces_held(&self) -> u32 {
        self.passed + self.running_reduces()
    }

    /// Reduces that it asked for so far, those that came among them.
    pub(super) fn asked_in_all(&self) -> u32 {
        let unasked = (self.waiting_reduces.len() as u32).saturating_sub(self.asked_reduces);
        self.reduces_in_all.saturating_sub(unasked)
    }

    fn running_reduces(&self) -> u32 {
        self.running() - self.running_maps
    }

    /// What its maps send in all, as far as finished ones tell; none before the first of them.
    pub(super) fn shuffle(&self) -> Option<Shuffle> {
        let each = self.map_output.0.checked_div(u64::from(self.completed))?;
        let bytes = Bytes(each.saturating_mul(self.inputs.len().max(1) as u64));
        Some(Shuffle { bytes, receivers: self.reduces_in_all, received: self.received, fetched: Bytes::ZERO })
    }

    /// How many more reduces are to be asked for, where `free` containers are free in the cluster. While its maps wait, no
    /// more than jobs with waiting maps may still hold together.
    pub(super) fn more_reduces(&self, free: u32) -> u32 {
        let total = self.inputs.len().max(1) as f64;
        if f64::from(self.completed) < (self.slow_start * total).ceil() {
            return 0;
        }
        let unasked = (self.waiting_reduces.len() as u32).saturating_sub(self.asked_reduces);
        if self.waiting_maps.is_empty() {
            return unasked;
        }
        let (maps, reduces) = (f64::from(self.running_maps), f64::from(self.running_reduces()));
        let limit = f64::from(free) + maps + reduces;
        let ideal = (limit * (f64::from(self.completed) / total)).min(RAMP_UP * limit);
        let maps_wanted = self.waiting_maps.len() as f64 + maps;
        let allowed = if limit - ideal >= maps_wanted { limit - maps_wanted } else { ideal };
        let more = (allowed - reduces - f64::from(self.asked_reduces)).max(0.0).floor() as u32;
        more.min(unasked)
    }
}

/// The map waits at that place no more. A place where none waits has no row.
fn take_out<P: Ord>(waiting: &mut BTreeMap<P, BTreeSet<u32>>, place: P, map: u32) {
    let Some(maps) = waiting.get_mut(&place) else { return };
    maps.remove(&map);
    if maps.is_empty() {
        waiting.remove(&place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Bytes;
    use hintd_policy::pool::SLOW_START;
    use proptest::prelude::*;

    /// Six nodes in three racks.
    const RACKS: [RackIdx; 6] = [RackIdx(0), RackIdx(0), RackIdx(1), RackIdx(1), RackIdx(2), RackIdx(2)];

    fn rack(node: NodeIdx) -> RackIdx {
        RACKS[node.at()]
    }

    /// Rows and the map that a node gets, found in the plainest way.
    struct Plain<'a> {
        inputs: &'a [TaskInput],
        waiting: BTreeSet<u32>,
    }

    impl Plain<'_> {
        fn near(&self, at: impl Fn(NodeIdx) -> bool) -> impl Iterator<Item = u32> {
            let at = move |map: &u32| self.inputs[*map as usize].nodes.iter().any(|&node| at(node));
            self.waiting.iter().copied().filter(at)
        }

        fn rows(&self) -> BTreeMap<Place, u32> {
            let hosts = (0..6).map(NodeIdx).map(|host| (Place::Host(host), self.near(|node| node == host).count()));
            let racks = (0..3).map(RackIdx).map(|of| (Place::Rack(of), self.near(|node| rack(node) == of).count()));
            let named = hosts.chain(racks).filter(|&(_, count)| count > 0);
            named.chain([(Place::Any, self.waiting.len())]).map(|(place, count)| (place, count as u32)).collect()
        }

        fn assign(&mut self, at: NodeIdx) -> Option<u32> {
            let on_host = self.near(|node| node == at).next();
            let in_rack = self.near(|node| rack(node) == rack(at)).next();
            let map = on_host.or(in_rack).or_else(|| self.waiting.first().copied())?;
            self.waiting.remove(&map);
            Some(map)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_and_nearness_are_those_of_the_maps_that_wait(
            replicas in prop::collection::vec(prop::collection::vec(0_u32..6, 0..3), 1..12),
            steps in prop::collection::vec((0_u32..6, any::<bool>()), 0..40),
        ) {
            let input = |nodes: &Vec<u32>| TaskInput { bytes: Bytes(1), nodes: nodes.iter().copied().map(NodeIdx).collect() };
            let inputs: Vec<TaskInput> = replicas.iter().map(input).collect();
            let mut master = Master::new(AppIdx(0), "user".into(), RACKS.as_slice().into(), (Timestamp(0), SLOW_START));
            master.has_maps(&inputs, inputs.len() as u32);
            let mut plain = Plain { inputs: &inputs, waiting: (0..inputs.len() as u32).collect() };
            let mut running = Vec::new();
            for (node, lost) in steps {
                if lost && let Some(map) = running.pop() {
                    prop_assert!(master.gives_back((true, map)).is_some() && master.container((true, map)).is_none());
                    master.map_waits(map);
                    plain.waiting.insert(map);
                } else if let Some(map) = master.assign_map(NodeIdx(node)) {
                    prop_assert_eq!(plain.assign(NodeIdx(node)), Some(map));
                    master.holds((true, map), (1, NodeIdx(node)));
                    running.push(map);
                } else {
                    prop_assert!(plain.waiting.is_empty());
                }
                prop_assert_eq!(master.map_rows(), plain.rows());
                let maps = master.containers.keys().filter(|(map, _)| *map).count();
                prop_assert_eq!((master.running_maps as usize, master.running_reduces()), (maps, 0));
            }
        }
    }
}
