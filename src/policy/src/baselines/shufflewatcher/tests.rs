//! `shufflewatcher` against its description, which looks at everything.

use super::*;
use crate::dispatch::TaskRef;
use crate::pool::naive::{At, Naive, World, agree};
use crate::sample::cluster;
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Micros, NodeIdx, Timestamp};
use proptest::prelude::*;
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};

struct Described {
    params: ShuffleWatcherParams,
    skips: BTreeMap<AttemptId, u32>,
    plans: BTreeMap<AttemptId, RackPlan>,
    congested: BTreeSet<RackIdx>,
}

impl Described {
    fn planned(&self, job: AttemptId, rack: RackIdx) -> bool {
        self.plans.get(&job).is_none_or(|plan| plan.racks.has(rack.at()))
    }

    /// `told` is what the event tells, which the world does not have yet.
    fn plan(&mut self, world: &World, (maps, told): (&WaitingGroup, &WaitingGroup), ratio: f64, view: &View<'_>) {
        if maps.inputs.is_empty() {
            return;
        }
        let input: f64 = maps.inputs.iter().map(|input| input.bytes.as_f64()).sum();
        let others = world.groups.iter().map(|group| &group.told);
        let others = others.filter(|other| other.attempt == told.attempt && other.group != told.group);
        let groups = others.chain([told]);
        let of = ["map", "reduce"].map(|role| groups.clone().filter(|group| *group.role == *role).collect::<Vec<_>>());
        let sizes = of.each_ref().map(|of| of.first().map_or_else(Resource::default, |group| group.size));
        let tasks = of.each_ref().map(|of| of.iter().map(|group| group.count).sum());
        let places = Places::of(view.snapshot, turn(maps.attempt), sizes, tasks);
        let plan = least_traffic(&maps.inputs, input * ratio, &places);
        self.plans.insert(maps.attempt, plan);
    }

    fn plan_anew(&mut self, world: &World, told: Option<&WaitingGroup>, job: AttemptId, ratio: f64, view: &View<'_>) {
        let maps = world.groups.iter().find(|group| group.told.attempt == job && &*group.told.role == "map");
        if let Some(maps) = maps {
            self.plan(world, (&maps.told, told.unwrap_or(&maps.told)), ratio, view);
        }
    }

    fn remote(&self, world: &World, at: At) -> bool {
        let told = &world.groups[at.0].told;
        let of_plan = self.plans.get(&told.attempt).map(|plan| plan.remote.contains(&(at.1 as u32)));
        &*told.role == "map" && of_plan.unwrap_or(false)
    }

    fn map(&mut self, world: &World, jobs: &[AttemptId], offer: &Offer, view: &View<'_>) -> Option<At> {
        let ShuffleWatcherParams { node_skips, rack_skips, .. } = self.params;
        for job in jobs.iter().copied().filter(|&job| !world.waiting(job, false).is_empty()) {
            let skips = self.skips.get(&job).copied().unwrap_or(0);
            let ripe = skips >= node_skips + rack_skips;
            let near = |reach| world.map_within(job, offer, view, reach);
            let found = if self.planned(job, view.snapshot.rack(offer.node)) {
                let remote = || {
                    let mut waiting = world.waiting(job, false);
                    waiting.retain(|&at| self.remote(world, at));
                    waiting.first().copied().filter(|&at| world.fits(at, offer, view))
                };
                near(0).or_else(remote).or_else(|| near(u8::from(skips >= node_skips) + u8::from(ripe)))
            } else if ripe {
                near(2)
            } else {
                None
            };
            if found.is_some() {
                return found;
            }
            *self.skips.entry(job).or_insert(0) += 1;
        }
        None
    }

    fn reduce(
        &self,
        world: &World,
        jobs: &[AttemptId],
        (offer, view): (&Offer, &View<'_>),
        by_share: bool,
    ) -> Option<At> {
        let rack = view.snapshot.rack(offer.node);
        let wanted = |&&job: &&AttemptId| {
            let by_rack = world.output_by_rack(job, view);
            let all: u64 = by_rack.values().sum();
            let here = by_rack.get(&rack).copied().unwrap_or(0);
            let reduces = world.of(job).filter(|(at, _)| world.is_reduce(*at)).count() as u64;
            !by_share || all == 0 || (world.reduces_in(job, rack, view) as u64) < (reduces * here).div_ceil(all)
        };
        let shares = (self.params.slow_start, self.params.early_reduces);
        jobs.iter().filter(wanted).find_map(|&job| world.reduce(job, offer, view, shares))
    }
}

impl Naive for Described {
    fn observe(&mut self, world: &World, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(told) if &*told.role == "map" => {
                self.plans.remove(&told.attempt);
                // Telling anew replaces what was told; what was learnt of the ratio stays.
                let ratio = told.output_ratio.or_else(|| world.ratio(told.attempt)).unwrap_or(1.0);
                let reduces = world.of(told.attempt).any(|(at, _)| world.is_reduce(at));
                self.plan(world, (told, told), if reduces { ratio } else { 0.0 }, view);
            }
            DispatchEvent::Waiting(told) if &*told.role == "reduce" => {
                let ratio = world.ratio(told.attempt).unwrap_or(1.0);
                self.plan_anew(world, Some(told), told.attempt, if told.count > 0 { ratio } else { 0.0 }, view);
            }
            DispatchEvent::Finished { task, input, output, failed: false, .. } => {
                let (job, at) = (task.attempt, world.find(task));
                let first = world.ratio(job).is_none() && &*world.groups[at.0].told.role == "map" && input.0 > 0;
                if first && world.of(job).any(|(at, _)| world.is_reduce(at)) {
                    self.plan_anew(world, None, job, output.as_f64() / input.as_f64(), view);
                }
            }
            DispatchEvent::Launched { task, node } => {
                let at = world.find(task);
                let local = world.distance(at, *node, view) == 0 || self.remote(world, at);
                if !world.is_reduce(at) && local && self.planned(task.attempt, view.snapshot.rack(*node)) {
                    self.skips.remove(&task.attempt);
                }
            }
            DispatchEvent::Done(job) => {
                self.skips.remove(job);
                self.plans.remove(job);
            }
            DispatchEvent::RackUse { rack, per_mille } => {
                let from = self.params.congested_per_mille;
                if *per_mille >= from {
                    self.congested.insert(*rack);
                } else if *per_mille < from - self.params.relief_per_mille {
                    self.congested.remove(rack);
                }
            }
            _ => {}
        }
    }

    fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        let all = world.fair_jobs();
        let planned = if self.congested.contains(&view.snapshot.rack(offer.node)) {
            self.map(world, &all, offer, view).or_else(|| self.reduce(world, &all, (offer, view), true))
        } else {
            world.by_user().into_iter().find_map(|jobs| {
                let reduce = self.reduce(world, &jobs, (offer, view), true);
                reduce.or_else(|| self.map(world, &jobs, offer, view))
            })
        };
        let found = planned.or_else(|| self.reduce(world, &all, (offer, view), false));
        found.map(|at| world.name(at))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn it_launches_what_the_description_does(
        seed: u64,
        node_skips in 0_u32..6,
        rack_skips in 0_u32..4,
        congested_per_mille in 700_u32..900,
    ) {
        let params = ShuffleWatcherParams { node_skips, rack_skips, congested_per_mille, ..ShuffleWatcherParams::default() };
        let (skips, plans, congested) = Default::default();
        let mut described = Described { params: params.clone(), skips, plans, congested };
        let launches = agree(&ShuffleWatcher { params }, &mut described, seed, 300);
        prop_assert!(launches > 10, "{launches}");
    }
}

/// How many racks a job may run in, each rack having the input of one map and the first that of
/// two, after a map has ended with that output: a shuffle as large as the input draws it into the first.
fn racks_planned(reduces: u32, ended_with: Option<u64>) -> usize {
    // One node has containers for all its tasks.
    let sample = cluster(&tree(&TreeSpec::default()).unwrap(), Resource::new(64 * 1024, 64), Bytes(1));
    let snapshot = &sample.snapshot;
    let view = View { snapshot, leases: &sample.leases, now: Timestamp(0), explain: false };
    let first_of = |rack: &Vec<NodeIdx>| TaskInput { bytes: Bytes(100), nodes: smallvec![rack[0]] };
    let members = &snapshot.statics.members;
    let inputs: Vec<TaskInput> = members.iter().chain(&members[..1]).map(first_of).collect();
    let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
    let group = |role: &str, count: u32, inputs: Vec<TaskInput>| {
        let (user, queue, size) = ("ann".into(), "q".into(), Resource::new(1024, 1));
        let (group, role, output_ratio, since) = (role.into(), role.into(), None, Timestamp(0));
        WaitingGroup { attempt, user, queue, group, role, count, size, inputs, output_ratio, since }
    };
    let policy = ShuffleWatcher::default();
    let mut state = Dispatch::start(&policy);
    let mut tell = |event| Dispatch::observe(&policy, &mut state, &event, &view);
    tell(DispatchEvent::Waiting(group("map", inputs.len() as u32, inputs)));
    if reduces > 0 {
        tell(DispatchEvent::Waiting(group("reduce", reduces, Vec::new())));
    }
    if let Some(output) = ended_with {
        let (task, node) = (TaskRef { attempt, group: "map".into(), index: 0 }, NodeIdx(0));
        tell(DispatchEvent::Launched { task: task.clone(), node });
        let (duration, input, output) = (Micros(1), Bytes(100), Bytes(output));
        tell(DispatchEvent::Finished { task, node, duration, input, output, failed: false });
    }
    let job = state.pool.find(attempt).unwrap();
    (0..snapshot.statics.racks.len()).filter(|&rack| state.plans.has(job, RackIdx::new(rack))).count()
}

#[test]
fn the_racks_of_a_job_are_found_anew_when_its_first_map_tells_the_ratio() {
    assert_eq!(racks_planned(1, None), 1, "as much as its input, as far as is known");
    assert_eq!(racks_planned(1, Some(0)), TreeSpec::default().racks, "nothing: maps run where their input is");
    assert_eq!(racks_planned(1, Some(1_000)), 1, "ten times its input");
}

#[test]
fn a_job_without_reduces_runs_where_its_input_is() {
    assert_eq!(racks_planned(0, None), TreeSpec::default().racks);
}
