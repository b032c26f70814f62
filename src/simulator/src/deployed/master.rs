//! MapReduce's ApplicationMaster, as `RMContainerAllocator` asks.

use hintd_engine::holding::Shuffle;
use hintd_model::units::{Bytes, NodeIdx, RackIdx, SchedulerKey, Timestamp};
use hintd_policy::capacity_scheduler::{AppIdx, ContainerNo, Place};
use hintd_policy::dispatch::TaskInput;
use hintd_policy::pool::SLOW_START;
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
    waiting_reduces: BTreeSet<u32>,
    reduces_in_all: u32,
    /// Reduces that have all of their bytes.
    pub(super) received: u32,
    pub(super) completed: u32,
    /// Containers by kind of task and number.
    pub(super) containers: BTreeMap<(bool, u32), (ContainerNo, NodeIdx)>,
    /// Rows of maps that stand at YARN.
    pub(super) asked: BTreeMap<Place, u32>,
    /// Reduces that it asked for and has not.
    pub(super) asked_reduces: u32,
    /// Those of them that the processor let through to YARN.
    pub(super) passed: u32,
    /// What finished maps wrote.
    pub(super) map_output: Bytes,
}

impl Master {
    pub(super) fn new(app: AppIdx, user: Arc<str>, first_beat: Timestamp) -> Self {
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
            waiting_reduces: BTreeSet::new(),
            reduces_in_all: 0,
            received: 0,
            completed: 0,
            containers: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_reduces: 0,
            passed: 0,
            map_output: Bytes::ZERO,
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
        }
    }

    pub(super) fn reduce_waits(&mut self, reduce: u32) {
        self.waiting_reduces.insert(reduce);
    }

    /// Which map goes into a container on that node: one with a replica there, else in its rack, else any.
    pub(super) fn assign_map(&mut self, node: NodeIdx, rack: impl Fn(NodeIdx) -> RackIdx) -> Option<u32> {
        let on_host = self.by_host.get(&node).and_then(|maps| maps.first().copied());
        let in_rack = || {
            let near = self.by_host.iter().filter(|(host, _)| rack(**host) == rack(node));
            near.filter_map(|(_, maps)| maps.first().copied()).min()
        };
        let map = on_host.or_else(in_rack).or_else(|| self.waiting_maps.first().copied())?;
        self.takes_map(map);
        Some(map)
    }

    /// The map waits no more.
    pub(super) fn takes_map(&mut self, map: u32) {
        self.waiting_maps.remove(&map);
        for host in self.inputs.get(map as usize).into_iter().flat_map(|input| &input.nodes) {
            if let Some(maps) = self.by_host.get_mut(host) {
                maps.remove(&map);
                if maps.is_empty() {
                    self.by_host.remove(host);
                }
            }
        }
    }

    pub(super) fn assign_reduce(&mut self) -> Option<u32> {
        self.asked_reduces = self.asked_reduces.saturating_sub(1);
        self.passed = self.passed.saturating_sub(1);
        self.waiting_reduces.pop_first()
    }

    /// Rows of all maps that wait.
    pub(super) fn map_rows(&self, rack: impl Fn(NodeIdx) -> RackIdx) -> BTreeMap<Place, u32> {
        let mut rows: BTreeMap<Place, u32> = BTreeMap::new();
        rows.insert(Place::Any, self.waiting_maps.len() as u32);
        let mut racks: BTreeMap<RackIdx, BTreeSet<u32>> = BTreeMap::new();
        for (&host, maps) in &self.by_host {
            rows.insert(Place::Host(host), maps.len() as u32);
            racks.entry(rack(host)).or_default().extend(maps);
        }
        rows.extend(racks.into_iter().map(|(rack, maps)| (Place::Rack(rack), maps.len() as u32)));
        rows
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
        self.containers.keys().filter(|(map, _)| !map).count() as u32
    }

    /// What its maps send in all, as far as finished ones tell; none before the first of them.
    pub(super) fn shuffle(&self) -> Option<Shuffle> {
        let each = self.map_output.0.checked_div(u64::from(self.completed))?;
        let bytes = Bytes(each.saturating_mul(self.inputs.len().max(1) as u64));
        Some(Shuffle { bytes, receivers: self.reduces_in_all, received: self.received, fetched: Bytes::ZERO })
    }

    /// How many more reduces are to be asked for, where `free` containers are free in the cluster and jobs with waiting maps
    /// may hold `early` more.
    pub(super) fn more_reduces(&mut self, free: u32, early: u32) -> u32 {
        let total = self.inputs.len().max(1) as f64;
        if f64::from(self.completed) < (SLOW_START * total).ceil() {
            return 0;
        }
        let unasked = (self.waiting_reduces.len() as u32).saturating_sub(self.asked_reduces);
        if self.waiting_maps.is_empty() {
            return unasked;
        }
        let running = |map: bool| self.containers.keys().filter(|(kind, _)| *kind == map).count() as f64;
        let (maps, reduces) = (running(true), running(false));
        let limit = f64::from(free) + maps + reduces;
        let ideal = (limit * (f64::from(self.completed) / total)).min(RAMP_UP * limit);
        let maps_wanted = self.waiting_maps.len() as f64 + maps;
        let allowed = if limit - ideal >= maps_wanted { limit - maps_wanted } else { ideal };
        let more = (allowed - reduces - f64::from(self.asked_reduces)).max(0.0).floor() as u32;
        more.min(unasked).min(early)
    }
}
