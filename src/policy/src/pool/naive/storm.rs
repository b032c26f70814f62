//! Random events that a dispatcher and its oracle are both told, and offers that they must answer alike.

use super::{State, World};
use crate::dispatch::{Advice, DispatchEvent, DynDispatch, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::sample::{Sample, cluster};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// A dispatcher that looks at everything.
pub(crate) trait Naive {
    /// Before the world takes the event in.
    fn observe(&mut self, world: &World, event: &DispatchEvent, view: &View<'_>);
    fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef>;
}

struct Storm<'d> {
    random: ChaCha8Rng,
    sample: Sample,
    world: World,
    dispatch: &'d dyn DynDispatch,
    state: crate::dispatch::DispatchState,
    naive: &'d mut dyn Naive,
    next: u32,
    now: u64,
    launches: usize,
}

/// So few that each is met often.
const JOBS_MAX: usize = 8;

const UNIT: Resource = Resource::new(1024, 1);

/// Both hear the same and must launch the same, and the State goes through JSON on the way. Gives the launches.
pub(crate) fn agree(dispatch: &dyn DynDispatch, naive: &mut dyn Naive, seed: u64, steps: usize) -> usize {
    let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(3), Bytes(1));
    let (random, state) = (ChaCha8Rng::seed_from_u64(seed), dispatch.start());
    let world = World::default();
    let mut storm = Storm { random, sample, world, dispatch, state, naive, next: 0, now: 0, launches: 0 };
    for _ in 0..steps {
        storm.step();
    }
    storm.launches
}

impl Storm<'_> {
    fn step(&mut self) {
        self.now += 1;
        match self.random.random_range(0..100) {
            0..8 => self.submit(),
            8..60 => self.offer(),
            60..80 => self.end(false),
            80..84 => self.end(true),
            84..88 => self.lose(),
            88..90 => self.done(),
            90..92 => self.tell_again(),
            92..96 => self.rack_use(),
            _ => self.through_json(),
        }
    }

    fn tell(&mut self, event: DispatchEvent) {
        let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
        let view = View { snapshot, leases, now: Timestamp(self.now), explain: false };
        self.naive.observe(&self.world, &event, &view);
        self.world.observe(&event);
        self.dispatch.observe(&mut self.state, &event, &view);
    }

    fn inputs(&mut self, count: u32) -> Vec<TaskInput> {
        let nodes = self.sample.snapshot.nodes() as u32;
        let known = if self.random.random_bool(0.8) { count } else { self.random.random_range(0..=count) };
        let alike = self.random.random_bool(0.5);
        let mut input = || {
            let bytes = if alike { 100 } else { self.random.random_range(0..4) * 50 };
            // Now and then without a replica, or with one on a node that the cluster has not.
            let replicas = self.random.random_range(0..4);
            let mut nodes: Vec<NodeIdx> =
                (0..replicas).map(|_| NodeIdx(self.random.random_range(0..nodes + 1))).collect();
            nodes.sort_unstable();
            nodes.dedup();
            TaskInput { bytes: Bytes(bytes), nodes: nodes.into() }
        };
        (0..known).map(|_| input()).collect()
    }

    fn group(&mut self, attempt: AttemptId, user: &Arc<str>, role: &str) -> WaitingGroup {
        let count = self.random.random_range(0..7);
        let size = UNIT.times(if self.random.random_bool(0.9) { 1 } else { 2 });
        let inputs = if role == "reduce" { Vec::new() } else { self.inputs(count) };
        let output_ratio = self.random.random_bool(0.2).then_some(0.5);
        let (user, queue, since) = (Arc::clone(user), "q".into(), Timestamp(self.now));
        WaitingGroup {
            attempt,
            user,
            queue,
            group: role.into(),
            role: role.into(),
            count,
            size,
            inputs,
            output_ratio,
            since,
        }
    }

    fn submit(&mut self) {
        if self.world.jobs.len() == JOBS_MAX {
            return self.done();
        }
        self.next += 1;
        let attempt =
            AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: self.next }, attempt: 1 };
        let user: Arc<str> = ["ann", "bob", "cat"][self.random.random_range(0..3)].into();
        let roles: &[&str] = [&["map", "reduce"][..], &["map"], &["stage-1", "stage-2"], &["reduce", "map"]]
            [self.random.random_range(0..4)];
        for role in roles {
            let group = self.group(attempt, &user, role);
            self.tell(DispatchEvent::Waiting(group));
        }
    }

    fn tell_again(&mut self) {
        if self.world.groups.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.world.groups.len());
        let old = self.world.groups[at].told.clone();
        let new = self.group(old.attempt, &old.user, &old.role);
        self.tell(DispatchEvent::Waiting(WaitingGroup { output_ratio: old.output_ratio, ..new }));
    }

    fn offer(&mut self) {
        let node = NodeIdx(self.random.random_range(0..self.sample.snapshot.nodes() as u32));
        let offer = Offer { node, free: UNIT.times(self.random.random_range(0..3)) };
        for _ in 0..3 {
            let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
            let view = View { snapshot, leases, now: Timestamp(self.now), explain: false };
            let expected = self.naive.offer(&self.world, &offer, &view);
            let advice = self.dispatch.offer(&mut self.state, &offer, &view);
            assert_eq!(advice, expected.clone().map(Advice::Launch).into_iter().collect::<Vec<_>>(), "{offer:?}");
            let Some(task) = expected else { return };
            self.launches += 1;
            // Now and then nobody follows the advice.
            if self.random.random_bool(0.9) {
                self.tell(DispatchEvent::Launched { task, node });
            }
        }
    }

    fn pick(&mut self, which: impl Fn(&State) -> bool) -> Option<(TaskRef, State, Bytes)> {
        let tasks: Vec<_> = self.world.all().filter(|(_, state)| which(state)).collect();
        let (at, state) = *tasks.get(self.random.random_range(0..tasks.len().max(1)))?;
        Some((self.world.name(at), state, self.world.input(at)))
    }

    fn end(&mut self, failed: bool) {
        let Some((task, State::Runs(node), input)) = self.pick(|state| matches!(state, State::Runs(_))) else { return };
        let (duration, output) = (Micros(5), Bytes(self.random.random_range(0..300)));
        self.tell(DispatchEvent::Finished { task, node, duration, input, output, failed });
    }

    fn lose(&mut self) {
        if let Some((task, ..)) = self.pick(|state| matches!(state, State::Done(..))) {
            self.tell(DispatchEvent::Lost(task));
        }
    }

    fn done(&mut self) {
        if let Some(&job) = self.world.jobs.get(self.random.random_range(0..8)) {
            self.tell(DispatchEvent::Done(job));
        }
    }

    fn rack_use(&mut self) {
        let rack = RackIdx(self.random.random_range(0..self.sample.snapshot.statics.racks.len() as u32));
        let per_mille = self.random.random_range(600..1_000);
        self.tell(DispatchEvent::RackUse { rack, per_mille });
    }

    fn through_json(&mut self) {
        self.state = self.dispatch.restore(&self.state.to_json().unwrap()).unwrap();
    }
}
