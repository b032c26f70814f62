//! Algorithms 1–4 of paper 004 and policies.md written down plainly: every waiting task is looked at for every offer.
//! The oracle of the tests; the policy itself works from indexes.

use super::params::{HoldMaps, NasParams, Shuffle, SkipBy};
use super::rules::{self, Spread};
use crate::dispatch::{DispatchEvent, Offer, TaskRef, View, WaitingGroup};
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that is known.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    params: NasParams,
    /// In the order of submission.
    jobs: Vec<Job>,
    users: BTreeMap<Arc<str>, User>,
    launches: u64,
    congested: BTreeSet<RackIdx>,
    refreshed: Option<Timestamp>,
    /// ΣS, ΣK and the mean size of a map (Eq. 3.3), S_min and S_max (Eq. 3.5).
    shuffle: u128,
    maps: u64,
    unit: Resource,
    spread: Spread,
}

#[derive(Debug, Clone, Default)]
struct User {
    served: u64,
    maps: Skip,
    reduces: Skip,
}

#[derive(Debug, Clone, Default)]
struct Skip {
    count: u32,
    since: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Job {
    attempt: AttemptId,
    user: Arc<str>,
    groups: Vec<Group>,
    told: Option<f64>,
    /// Of every map that ended.
    ratios: Vec<f64>,
    delayed: bool,
}

#[derive(Debug, Clone)]
struct Group {
    name: Arc<str>,
    reduce: bool,
    size: Resource,
    tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
struct Task {
    input: Bytes,
    nodes: Vec<NodeIdx>,
    state: Is,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Is {
    Waiting,
    Running(NodeIdx),
    Done(NodeIdx, Bytes),
}

/// One waiting task, where it stands: job, group, number.
type At = (usize, usize, usize);

impl Job {
    fn tasks(&self, reduce: bool) -> impl Iterator<Item = &Task> {
        self.groups.iter().filter(move |group| group.reduce == reduce).flat_map(|group| &group.tasks)
    }

    fn count(&self, reduce: bool) -> u64 {
        self.tasks(reduce).count() as u64
    }

    fn done(&self) -> u64 {
        self.tasks(false).filter(|task| matches!(task.state, Is::Done(..))).count() as u64
    }

    fn waits(&self, reduce: bool) -> bool {
        self.tasks(reduce).any(|task| task.state == Is::Waiting)
    }

    fn running(&self) -> u64 {
        let all = self.tasks(false).chain(self.tasks(true));
        all.filter(|task| matches!(task.state, Is::Running(_))).count() as u64
    }

    fn predicted(&self) -> bool {
        self.told.is_some() || !self.ratios.is_empty()
    }

    /// §3.2.1; what a job without reduces puts out is not shuffled.
    fn ratio(&self) -> f64 {
        if self.count(true) == 0 {
            return 0.0;
        }
        let mean = || (!self.ratios.is_empty()).then(|| self.ratios.iter().sum::<f64>() / self.ratios.len() as f64);
        self.told.or_else(mean).unwrap_or(1.0)
    }

    fn input(&self) -> Bytes {
        Bytes(self.tasks(false).map(|task| task.input.0).sum())
    }

    /// S: what maps put out, and of the rest what is predicted.
    fn shuffle(&self) -> Bytes {
        if self.count(true) == 0 {
            return Bytes::ZERO;
        }
        let (mut output, mut rest) = (Bytes::ZERO, Bytes::ZERO);
        for task in self.tasks(false) {
            match task.state {
                Is::Done(_, bytes) => output = output.saturating_add(bytes),
                _ => rest = rest.saturating_add(task.input),
            }
        }
        output.saturating_add(Bytes((rest.as_f64() * self.ratio()) as u64))
    }

    fn group(&mut self, name: &str) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| &*group.name == name)
    }
}

impl Plain {
    pub(super) fn new(params: NasParams) -> Self {
        Self {
            params,
            jobs: Vec::new(),
            users: BTreeMap::new(),
            launches: 0,
            congested: BTreeSet::new(),
            refreshed: None,
            shuffle: 0,
            maps: 0,
            unit: Resource::ZERO,
            spread: Spread::default(),
        }
    }

    pub(super) fn observe(&mut self, event: &DispatchEvent) {
        match event {
            DispatchEvent::Waiting(group) => self.wait(group),
            DispatchEvent::Launched { task, node } => self.launched(task, *node),
            DispatchEvent::Finished { task, node, input, output, failed, .. } => {
                let Some(job) = self.jobs.iter_mut().find(|job| job.attempt == task.attempt) else { return };
                let Some(group) = job.group(&task.group) else { return };
                let reduce = group.reduce;
                let is = if *failed { Is::Waiting } else { Is::Done(*node, *output) };
                group.tasks[task.index as usize].state = is;
                if !failed && !reduce && *input > Bytes::ZERO {
                    job.ratios.push(output.as_f64() / input.as_f64());
                }
            }
            DispatchEvent::Lost(task) => {
                let job = self.jobs.iter_mut().find(|job| job.attempt == task.attempt);
                if let Some(group) = job.and_then(|job| job.group(&task.group)) {
                    group.tasks[task.index as usize].state = Is::Waiting;
                }
            }
            DispatchEvent::Done(attempt) => self.jobs.retain(|job| job.attempt != *attempt),
            DispatchEvent::RackUse { rack, per_mille } => {
                if *per_mille >= self.params.enter_per_mille() {
                    self.congested.insert(*rack);
                } else if *per_mille < self.params.leave_per_mille() {
                    self.congested.remove(rack);
                }
            }
            DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn wait(&mut self, group: &WaitingGroup) {
        let at = self.jobs.iter().position(|job| job.attempt == group.attempt).unwrap_or_else(|| {
            let (attempt, user) = (group.attempt, Arc::clone(&group.user));
            self.users.entry(Arc::clone(&user)).or_default();
            let (groups, told, ratios, delayed) = (Vec::new(), None, Vec::new(), false);
            self.jobs.push(Job { attempt, user, groups, told, ratios, delayed });
            self.jobs.len() - 1
        });
        let task = |index: u32| {
            let input = group.inputs.get(index as usize);
            let (bytes, nodes) = input.map_or((Bytes::ZERO, vec![]), |input| (input.bytes, input.nodes.to_vec()));
            Task { input: bytes, nodes, state: Is::Waiting }
        };
        let job = &mut self.jobs[at];
        job.told = group.output_ratio.or(job.told);
        let (name, reduce, tasks) = (Arc::clone(&group.group), &*group.role == "reduce", (0..group.count).map(task));
        job.groups.push(Group { name, reduce, size: group.size, tasks: tasks.collect() });
    }

    fn launched(&mut self, task: &TaskRef, node: NodeIdx) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.attempt == task.attempt) else { return };
        let user = Arc::clone(&job.user);
        let Some(group) = job.group(&task.group) else { return };
        group.tasks[task.index as usize].state = Is::Running(node);
        let reduce = group.reduce;
        self.launches += 1;
        let user = self.users.entry(user).or_default();
        user.served = self.launches;
        *(if reduce { &mut user.reduces } else { &mut user.maps }) = Skip::default();
    }

    /// Algorithm 1; of one user reduces go first, as in MapReduce.
    pub(super) fn offer(&mut self, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        if self.refreshed.is_none_or(|at| view.now.since(at) >= Micros::from_millis(self.params.refresh_ms)) {
            self.refresh(view.now);
        }
        let users = self.users(|job| self.ready(job) || job.waits(false));
        let room = self.room(offer, view);
        let chosen = users.iter().find_map(|user| {
            let reduce = self.reduce(user, offer, view);
            reduce.or_else(|| self.map(user, room, offer, view))
        });
        chosen.map(|(job, group, task)| TaskRef {
            attempt: self.jobs[job].attempt,
            group: Arc::clone(&self.jobs[job].groups[group].name),
            index: task as u32,
        })
    }

    fn refresh(&mut self, now: Timestamp) {
        self.refreshed = (!self.jobs.is_empty()).then_some(now);
        self.shuffle = self.jobs.iter().map(|job| u128::from(job.shuffle().0)).sum();
        self.maps = self.jobs.iter().map(|job| job.count(false)).sum();
        let mut size = [0_u128; hintd_model::cluster::resource::KINDS_MAX];
        for group in self.jobs.iter().flat_map(|job| &job.groups).filter(|group| !group.reduce) {
            for (sum, amount) in size.iter_mut().zip(group.size.0) {
                *sum += u128::from(amount) * group.tasks.len() as u128;
            }
        }
        self.unit = Resource(size.map(|sum| (sum / u128::from(self.maps.max(1))) as u64));
        let shuffles = || self.jobs.iter().map(Job::shuffle);
        let (least, most) = (shuffles().min().unwrap_or_default(), shuffles().max().unwrap_or_default());
        self.spread = Spread { least, most };
    }

    /// Users with such tasks to launch, fewest running containers first, then the least recently served, then by name.
    fn users(&self, has: impl Fn(&Job) -> bool) -> Vec<Arc<str>> {
        let with = |user: &Arc<str>| self.jobs.iter().any(|job| job.user == *user && has(job));
        let running = |user: &Arc<str>| -> u64 { self.jobs_of(user).map(|job| self.jobs[job].running()).sum() };
        let mut users: Vec<Arc<str>> = self.users.keys().filter(|user| with(user)).cloned().collect();
        users.sort_by_key(|user| (running(user), self.users[user].served));
        users
    }

    fn jobs_of(&self, user: &str) -> impl Iterator<Item = usize> + use<> {
        let of = self.jobs.iter().enumerate().filter(|(_, job)| &*job.user == user);
        of.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
    }

    /// Waiting tasks of the job that fit.
    fn waiting(&self, job: usize, reduce: bool, offer: &Offer, view: &View<'_>) -> Vec<At> {
        let mut found = Vec::new();
        for (at, group) in self.jobs[job].groups.iter().enumerate() {
            if group.reduce == reduce && view.snapshot.rules.feasible(&group.size, &offer.free) {
                let waits = group.tasks.iter().enumerate().filter(|(_, task)| task.state == Is::Waiting);
                found.extend(waits.map(|(task, _)| (job, at, task)));
            }
        }
        found
    }

    fn due(&self, skip: &Skip, most: u32, now: Timestamp) -> bool {
        match self.params.skip_by {
            SkipBy::Count => skip.count >= most,
            SkipBy::Time => skip.since.is_some_and(|since| now.since(since).as_millis() >= self.params.skip_ms),
        }
    }

    // Maps.

    fn task(&self, at: At) -> &Task {
        &self.jobs[at.0].groups[at.1].tasks[at.2]
    }

    fn output(&self, at: At) -> Bytes {
        rules::predicted(self.jobs[at.0].ratio(), self.task(at).input)
    }

    /// 0 on the node, 1 with input that is nowhere known (it reads as well there), 2 in the rack, 3 elsewhere.
    fn distance(&self, at: At, offer: &Offer, view: &View<'_>) -> u8 {
        let nodes = &self.task(at).nodes;
        let rack = view.snapshot.rack(offer.node);
        match nodes {
            _ if nodes.contains(&offer.node) => 0,
            _ if nodes.is_empty() => 1,
            _ if nodes.iter().any(|&node| view.snapshot.rack(node) == rack) => 2,
            _ => 3,
        }
    }

    /// TrafficThreshold − predicted output of maps running on the node; no bound without the threshold.
    fn room(&self, offer: &Offer, view: &View<'_>) -> Bytes {
        if !self.params.traffic_threshold {
            return Bytes(u64::MAX);
        }
        let containers = view.snapshot.rules.how_many(&self.unit, &view.snapshot.statics.total[offer.node.at()]);
        let mut room = rules::traffic_threshold(containers, self.shuffle, self.maps);
        for (at, job) in self.jobs.iter().enumerate() {
            for (group, row) in job.groups.iter().enumerate().filter(|(_, row)| !row.reduce) {
                let here = |task: &usize| row.tasks[*task].state == Is::Running(offer.node);
                for task in (0..row.tasks.len()).filter(here) {
                    room = room.saturating_sub(self.output((at, group, task)));
                }
            }
        }
        room
    }

    /// Algorithm 2 for one user.
    fn map(&mut self, user: &str, room: Bytes, offer: &Offer, view: &View<'_>) -> Option<At> {
        if !self.params.mts {
            return self.fair_map(user, offer, view);
        }
        let congested = self.params.cr_rts && self.congested.contains(&view.snapshot.rack(offer.node));
        let never = congested && self.params.hold_maps == HoldMaps::UntilClear;
        let of_user = |job: &Job| *job.user == *user && job.waits(false);
        if !self.jobs.iter().any(|job| of_user(job) && !(never && self.heavier(job))) {
            return None;
        }
        let due = self.due(&self.users[user].maps, self.params.map_skips, view.now);
        let local = self.local_map(user, room, never || congested && !due, offer, view);
        if local.is_some() || due {
            return local.or_else(|| self.forced_map(user, room, never, offer, view));
        }
        skip(&mut self.users.get_mut(user).unwrap().maps, view.now);
        None
    }

    fn heavier(&self, job: &Job) -> bool {
        self.params.class(job.shuffle()) != Shuffle::Light
    }

    fn maps_of(&self, user: &str, offer: &Offer, view: &View<'_>) -> Vec<At> {
        self.jobs_of(user).flat_map(|job| self.waiting(job, false, offer, view)).collect()
    }

    /// Lines 3–4: unpredicted jobs first, then the output closest to the room.
    fn local_map(&self, user: &str, room: Bytes, held: bool, offer: &Offer, view: &View<'_>) -> Option<At> {
        let can = |at: &At| {
            let job = &self.jobs[at.0];
            self.distance(*at, offer, view) <= 1
                && rules::qualified(job.ratio(), self.task(*at).input, room)
                && !(held && self.heavier(job))
        };
        self.maps_of(user, offer, view).into_iter().filter(can).min_by_key(|&at| {
            let job = &self.jobs[at.0];
            let inside = (self.distance(at, offer, view), Reverse(self.task(at).input), at.2);
            // Within a job, its best; then the best of jobs.
            let best = self.best_output(at, room, offer, view);
            (job.predicted(), Reverse(best), at.0, at.1, inside)
        })
    }

    /// Output of the task that its group would give.
    fn best_output(&self, at: At, room: Bytes, offer: &Offer, view: &View<'_>) -> Bytes {
        let same = (0..self.jobs[at.0].groups[at.1].tasks.len()).map(|task| (at.0, at.1, task));
        let can = |other: &At| {
            self.task(*other).state == Is::Waiting
                && self.distance(*other, offer, view) <= 1
                && rules::qualified(self.jobs[at.0].ratio(), self.task(*other).input, room)
        };
        let near =
            same.filter(can).min_by_key(|&other| (self.distance(other, offer, view), Reverse(self.task(other).input)));
        near.map_or(Bytes::ZERO, |near| self.output(near))
    }

    /// Lines 7–16.
    fn forced_map(&self, user: &str, room: Bytes, never: bool, offer: &Offer, view: &View<'_>) -> Option<At> {
        let mut all = self.maps_of(user, offer, view);
        all.retain(|at| !(never && self.heavier(&self.jobs[at.0])));
        let distance = |at: At| self.distance(at, offer, view);
        let qualified = |at: &&At| rules::qualified(self.jobs[at.0].ratio(), self.task(**at).input, room);
        let nearest = all.iter().filter(qualified).min_by_key(|&&at| {
            let (job, input) = (&self.jobs[at.0], self.task(at).input.0);
            let large = job.input().0 >= self.params.small_input_bytes;
            let gamma = distance(at).saturating_sub(1);
            let inside = if gamma == 0 {
                (distance(at), Reverse(input), at.2)
            } else {
                (distance(at), Reverse(input), usize::MAX - at.2)
            };
            let cost = u64::from(gamma).saturating_mul(input);
            // Of a group's local ones, all without cost, those on the node come before those that read anywhere.
            let output = if gamma == 0 { self.best_output(at, room, offer, view) } else { self.output(at) };
            (large, job.predicted(), cost, Reverse(output), at.0, at.1, gamma, inside)
        });
        let small = |at: &&At| (self.output(**at), at.0, at.1, distance(**at), self.task(**at).input, Reverse(at.2));
        let smallest_local = || {
            all.iter().filter(|at| distance(**at) <= 1).min_by_key(|at| {
                // The group's own first choice is what lies on the node.
                let same = all.iter().filter(|other| (other.0, other.1) == (at.0, at.1) && distance(**other) <= 1);
                let first = same.min_by_key(|other| (distance(**other), self.task(**other).input)).copied();
                (
                    first.map(|first| self.output(first)),
                    at.0,
                    at.1,
                    distance(**at),
                    self.task(**at).input,
                    Reverse(at.2),
                )
            })
        };
        let smallest = || {
            all.iter().min_by_key(|at| {
                let (output, job, group, _, input, number) = small(at);
                (output, job, group, input, number)
            })
        };
        nearest.or_else(smallest_local).or_else(smallest).copied()
    }

    /// Without MTS: the job with fewest running containers, its nearest map.
    fn fair_map(&self, user: &str, offer: &Offer, view: &View<'_>) -> Option<At> {
        self.maps_of(user, offer, view).into_iter().min_by_key(|&at| {
            let distance = self.distance(at, offer, view);
            (self.jobs[at.0].running(), at.0, at.1, distance, Reverse(self.task(at).input), at.2)
        })
    }

    // Reduces.

    fn ready(&self, job: &Job) -> bool {
        let p = &self.params;
        let threshold = if p.adaptive_threshold && p.ca_rts {
            rules::completion_threshold(job.shuffle(), self.spread, p.t_min, p.t_max)
        } else {
            p.fixed_threshold
        };
        job.waits(true) && rules::reached(job.done(), job.count(false), threshold)
    }

    /// Whether a reduce of so much memory may be launched although maps of its job wait: such reduces hold at most
    /// their share of the cluster.
    fn early(&self, group: &Group, view: &View<'_>) -> bool {
        let waits = |job: &&Job| job.waits(false);
        let runs = |task: &Task| matches!(task.state, Is::Running(_));
        let held = |group: &Group| group.size.memory_mb() * group.tasks.iter().filter(|task| runs(task)).count() as u64;
        let groups = self.jobs.iter().filter(waits).flat_map(|job| &job.groups).filter(|group| group.reduce);
        let held: u64 = groups.map(held).sum();
        let all: u64 = view.snapshot.statics.total.iter().map(Resource::memory_mb).sum();
        held + group.size.memory_mb() <= (self.params.early_reduces * all as f64) as u64
    }

    /// Algorithms 1 (lines 4–8), 3 and 4 for one user.
    fn reduce(&mut self, user: &str, offer: &Offer, view: &View<'_>) -> Option<At> {
        let rack = view.snapshot.rack(offer.node);
        let ready: Vec<usize> = self.jobs_of(user).filter(|&job| self.ready(&self.jobs[job])).collect();
        if !(self.params.cr_rts && self.congested.contains(&rack)) {
            return self.best_reduce(user, false, offer, view);
        }
        if ready.is_empty() {
            return None;
        }
        if self.due(&self.users[user].reduces, self.params.reduce_skips, view.now) {
            return self.best_reduce(user, false, offer, view);
        }
        for job in ready {
            self.jobs[job].delayed |= self.heavier(&self.jobs[job]);
        }
        let light = self.best_reduce(user, true, offer, view);
        if light.is_none() {
            skip(&mut self.users.get_mut(user).unwrap().reduces, view.now);
        }
        light
    }

    /// A user's reduce in the order of Algorithm 3, lines 3–8; without CA-RTS the job with fewest containers first.
    fn best_reduce(&self, user: &str, light: bool, offer: &Offer, view: &View<'_>) -> Option<At> {
        let rack = view.snapshot.rack(offer.node);
        let can = |job: &usize| {
            let row = &self.jobs[*job];
            let class = self.params.class(row.shuffle());
            self.ready(row) && (!light || class == Shuffle::Light)
        };
        let waits = self.jobs_of(user).filter(can).flat_map(|job| self.waiting(job, true, offer, view));
        let waits = waits.filter(|at| {
            let job = &self.jobs[at.0];
            !job.waits(false) || self.early(&job.groups[at.1], view)
        });
        waits.min_by_key(|&at| {
            let job = &self.jobs[at.0];
            if !self.params.ca_rts {
                return (job.running(), false, at);
            }
            let class = self.params.class(job.shuffle()) as u64;
            let category = if self.below_reduce_num(job, rack, view) { 2 - class } else { 3 + class };
            (category, !(job.delayed || job.done() == job.count(false)), at)
        })
    }

    /// Eq. 3.4: whether fewer of its reduces were launched in the rack than its share of map output.
    fn below_reduce_num(&self, job: &Job, rack: RackIdx, view: &View<'_>) -> bool {
        let (mut here, mut total) = (0, 0);
        for task in job.tasks(false) {
            if let Is::Done(node, output) = task.state {
                total += output.0;
                here += if view.snapshot.rack(node) == rack { output.0 } else { 0 };
            }
        }
        let launched = job.tasks(true).filter(
            |task| matches!(task.state, Is::Running(node) | Is::Done(node, _) if view.snapshot.rack(node) == rack),
        );
        (launched.count() as u64) < rules::reduce_num(job.count(true), here, total)
    }
}

fn skip(skip: &mut Skip, now: Timestamp) {
    skip.count = skip.count.saturating_add(1);
    skip.since.get_or_insert(now);
}
