//! One MapReduce ApplicationMaster: asks for hints, sends YARN the table it got, follows advice, reports its tasks.

use super::cluster::resource;
use super::event::EmulationEvent;
use super::jobs::{JobPlan, MAP_MB, REDUCE_MB, TASK_VCORES};
use super::shared::Shared;
use super::yarn::{self, Allocation, AskTable, MasterMessage};
use hintd_client::wire::{v1, yarn as proto};
use hintd_client::{Advice, Client, ClientError, Follower, Hinted};
use hintd_model::units::{AttemptId, ContainerId, SchedulerKey};
use hintd_simulator::Task;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// MapReduce's own priorities: reduces before maps, so that freed room goes to the older stage's successors.
const PRIORITIES: [(&str, i32, u64); 2] = [("map", 20, MAP_MB), ("reduce", 10, REDUCE_MB)];
const MAP: usize = 0;
const REDUCE: usize = 1;

/// Why hints come for tasks that waited for them.
const DISPATCHED: [&str; 2] = ["offer", "max_wait"];

/// How long a master that follows waits for a daemon that went away; then it goes on without advice.
const AWAY: Duration = Duration::from_secs(10);

/// One group of tasks.
#[derive(Debug)]
struct Group {
    /// Tasks without a container.
    waiting: VecDeque<u32>,
    /// Tasks that were never hinted: a later wave's.
    unhinted: u32,
    /// Tasks that the daemon holds back: their hints come on Follow, and YARN is not asked for them before.
    pending: u32,
    /// Containers to ask for by row, as the hints say; `*` is computed when asking.
    rows: BTreeMap<String, u32>,
    /// Leases not yet used, by host.
    leases: BTreeMap<String, VecDeque<u64>>,
    /// Hosts hinted, with how many containers are still expected there.
    hinted: BTreeMap<String, u32>,
    /// Hosts hinted as next best.
    fallbacks: BTreeSet<String>,
    /// Tasks that ended.
    ended: u32,
    /// All tasks.
    count: u32,
}

/// Where YARN put a container, beside where it was hinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    Preferred,
    Fallback,
    Elsewhere,
}

#[derive(Debug, Clone)]
struct Running {
    group: usize,
    task: u32,
    host: String,
    since: Instant,
    /// When it ends; a reduce has no end before the last map has.
    ends: Option<Instant>,
}

struct Master {
    shared: Arc<Shared>,
    job: usize,
    attempt: AttemptId,
    groups: [Group; 2],
    running: BTreeMap<ContainerId, Running>,
    ends: BTreeSet<(Instant, ContainerId)>,
    client: Client,
    follow: Option<Follower>,
    requests: u32,
    unhinted_run: bool,
}

/// Runs job `job` of the workload to its end, as the application with this sequence number.
pub async fn run(shared: Arc<Shared>, job: usize, sequence: u32) {
    let submitted = Instant::now();
    let attempt = shared.yarn().attempt(sequence);
    let plan = &shared.workload.jobs[job];
    let mut news = shared.register_master(attempt, plan.maps.saturating_add(plan.reduces));
    let mut master = Master::new(Arc::clone(&shared), job, attempt);
    master.ask_for_hints().await;
    master.ask_yarn();
    while !master.done() {
        master.step(&mut news).await;
    }
    master.report(v1::task_event::What::Done(v1::ApplicationDone { failed: false }), "", "").await;
    shared.remove_master(attempt);
    shared.yarn().finish_application(attempt);
    shared.tally().jobs_ended += 1;
    shared.tell(EmulationEvent::Ended { job: master.plan().number, took: submitted.elapsed() });
}

impl Group {
    fn new(count: u32) -> Self {
        Self {
            waiting: (0..count).collect(),
            unhinted: count,
            pending: 0,
            rows: BTreeMap::new(),
            leases: BTreeMap::new(),
            hinted: BTreeMap::new(),
            fallbacks: BTreeSet::new(),
            ended: 0,
            count,
        }
    }

    /// Tasks that YARN is asked for.
    fn open(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX).saturating_sub(self.unhinted).saturating_sub(self.pending)
    }

    /// Takes hints in: where containers are expected, and with which leases.
    fn learn(&mut self, hint: &v1::Hint) {
        *self.hinted.entry(hint.host.clone()).or_default() += hint.count;
        self.leases.entry(hint.host.clone()).or_default().extend(&hint.lease_ids);
        self.fallbacks.extend(hint.fallbacks.iter().cloned());
    }

    /// A container came on `host`: what of the hints that follows, and the lease it uses up.
    fn use_hint(&mut self, host: &str) -> (Followed, u64) {
        let followed = match self.hinted.get_mut(host) {
            Some(count) if *count > 0 => {
                *count -= 1;
                Followed::Preferred
            }
            _ if self.fallbacks.contains(host) => Followed::Fallback,
            _ => Followed::Elsewhere,
        };
        let lease = self.leases.get_mut(host).and_then(VecDeque::pop_front).unwrap_or(0);
        (followed, lease)
    }

    /// Forgets what was hinted on hosts that are gone.
    fn forget(&mut self, gone: &BTreeSet<String>) {
        self.rows.retain(|name, _| !gone.contains(name));
        self.hinted.retain(|name, _| !gone.contains(name));
        self.leases.retain(|name, _| !gone.contains(name));
    }
}

impl Master {
    fn new(shared: Arc<Shared>, job: usize, attempt: AttemptId) -> Self {
        let plan = &shared.workload.jobs[job];
        let groups = [Group::new(plan.maps), Group::new(plan.reduces)];
        let client = shared.client.clone();
        Self {
            job,
            attempt,
            groups,
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            client,
            follow: None,
            requests: 0,
            unhinted_run: false,
            shared,
        }
    }

    fn plan(&self) -> &JobPlan {
        &self.shared.workload.jobs[self.job]
    }

    fn done(&self) -> bool {
        self.groups.iter().all(|group| group.ended == group.count)
    }

    /// Waits for whatever comes next and acts on it.
    async fn step(&mut self, news: &mut mpsc::Receiver<MasterMessage>) {
        let next_end = self.ends.first().map(|(at, _)| *at);
        let advice = async {
            match &mut self.follow {
                Some(follow) => follow.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(news) = news.recv() => match news {
                MasterMessage::Given(allocation) => self.begin(&allocation).await,
                MasterMessage::Lost(container) => self.lose(container),
            },
            advice = advice => match advice {
                Ok(message) if matches!(message.advice, Some(v1::follow_message::Advice::Gap(_))) => {
                    self.begin_again().await;
                }
                Ok(message) => self.take_advice(message),
                Err(error) => {
                    if let ClientError::Refused { .. } = error {
                        self.shared.tally().violations.push(format!("{} can't follow: {error}", self.attempt));
                    }
                    // Nothing will come: the job goes on without, and what waited for hints waits no more.
                    self.follow = None;
                    self.groups.iter_mut().for_each(|group| group.pending = 0);
                    self.ask_yarn();
                }
            },
            () = sleep_until(next_end) => self.end_due().await,
        }
    }

    /// Asks the daemon where the containers should go; without an answer the job runs as YARN likes.
    async fn ask_for_hints(&mut self) {
        self.requests += 1;
        let request = self.request();
        let asked = Instant::now();
        let deadline = Duration::from_millis(self.shared.behaviour.deadline_ms.into());
        let answer = self.client.hints_or_none(request, deadline).await;
        let took = asked.elapsed();
        let number = self.plan().number;
        match answer {
            Advice::Hinted(hinted) => {
                let Hinted { hints, token } = *hinted;
                self.shared.check(&hints);
                {
                    let mut tally = self.shared.tally();
                    tally.latencies.push(took);
                    tally.hinted += hints.hints.iter().map(|hint| u64::from(hint.count)).sum::<u64>();
                }
                self.take_first(&hints);
                self.shared.tell(EmulationEvent::Hinted { job: number, hints: Box::new(hints), took });
                if self.follow.is_none() {
                    self.start_following(token);
                }
            }
            Advice::Unhinted(unhinted) => self.go_unhinted(unhinted.to_string()),
        }
    }

    fn go_unhinted(&mut self, why: String) {
        self.unhinted_run = true;
        {
            let mut tally = self.shared.tally();
            tally.refused += 1;
            if tally.refused == 1 {
                tally.refused_first.clone_from(&why);
            }
        }
        self.shared.tell(EmulationEvent::Unhinted { job: self.plan().number, why });
        for group in &mut self.groups {
            (group.unhinted, group.pending) = (0, 0);
        }
    }

    /// What the job asks for: the tasks that were not hinted yet.
    fn request(&self) -> v1::RequestHintsRequest {
        let plan = self.plan();
        let group = |at: usize| {
            let (name, priority, memory_mb) = PRIORITIES[at];
            v1::TaskGroup {
                name: name.to_owned(),
                role: name.to_owned(),
                count: self.groups[at].unhinted,
                resource: Some(resource(memory_mb, TASK_VCORES)),
                priority,
                input_paths: if at == MAP { plan.input_paths.clone() } else { Vec::new() },
                ..v1::TaskGroup::default()
            }
        };
        let wanted: Vec<usize> = (0..PRIORITIES.len()).filter(|&at| self.groups[at].unhinted > 0).collect();
        let any = |at: &usize| {
            let (_, priority, memory_mb) = PRIORITIES[*at];
            proto::ResourceRequestProto {
                priority: Some(proto::PriorityProto { priority: Some(priority) }),
                resource_name: Some("*".to_owned()),
                capability: Some(resource(memory_mb, TASK_VCORES)),
                num_containers: Some(i32::try_from(self.groups[*at].unhinted).unwrap_or(i32::MAX)),
                ..proto::ResourceRequestProto::default()
            }
        };
        let shuffle = v1::GroupEdge {
            from: "map".to_owned(),
            to: "reduce".to_owned(),
            pattern: v1::EdgePattern::AllToAll.into(),
            bytes: plan.shuffle.0,
        };
        let both = wanted.len() == PRIORITIES.len();
        v1::RequestHintsRequest {
            request_id: format!("{}-{}", self.attempt, self.requests),
            application_id: self.attempt.application.to_string(),
            attempt: self.attempt.attempt,
            queue: "default".to_owned(),
            user: "demo".to_owned(),
            framework: "mapreduce".to_owned(),
            asks: wanted.iter().map(any).collect(),
            groups: wanted.iter().map(|&at| group(at)).collect(),
            edges: if both { vec![shuffle] } else { Vec::new() },
            recurring_job_key: plan.input_paths.first().cloned().unwrap_or_default(),
            policy: self.shared.behaviour.policy.clone().unwrap_or_default(),
            seed: Some(self.shared.behaviour.seed),
            follows: true,
            ..v1::RequestHintsRequest::default()
        }
    }

    /// Takes an answer's hints and its replacement table.
    fn take_first(&mut self, hints: &v1::HintSet) {
        for (at, (name, priority, _)) in PRIORITIES.iter().enumerate() {
            let group = &mut self.groups[at];
            let mut hinted = 0;
            for hint in hints.hints.iter().filter(|hint| hint.group == *name) {
                group.learn(hint);
                hinted += hint.count;
            }
            let pending: u32 = hints.pending.iter().filter(|held| held.group == *name).map(|held| held.count).sum();
            group.pending += pending;
            group.unhinted = group.unhinted.saturating_sub(hinted + pending);
            let table = yarn::tables(&hints.asks).into_iter().find(|table| table.key.priority == *priority);
            let rows = table.map_or_else(|| host_rows(hints, name), |table| table.rows);
            group.rows.extend(rows.into_iter().filter(|(name, _)| name != "*"));
        }
    }

    /// Sends YARN the tables: reduces once every map has its container, so that they never hold maps up.
    fn ask_yarn(&self) {
        let maps_given = self.groups[MAP].waiting.is_empty() && self.groups[MAP].unhinted == 0;
        for (at, (_, priority, memory_mb)) in PRIORITIES.iter().enumerate() {
            if at == REDUCE && !maps_given {
                continue;
            }
            let group = &self.groups[at];
            let mut rows = group.rows.clone();
            rows.insert("*".to_owned(), group.open());
            let key = SchedulerKey { priority: *priority, allocation_request_id: -1 };
            let table = AskTable { key, memory_mb: *memory_mb, vcores: TASK_VCORES, rows };
            self.shared.yarn().ask(self.attempt, table);
        }
    }

    /// A container came: the next task runs in it.
    async fn begin(&mut self, given: &Allocation) {
        let at = usize::from(given.key.priority == PRIORITIES[REDUCE].1);
        let host = self.shared.cluster.machines[given.node].host.to_string();
        let Some(task) = self.groups[at].waiting.pop_front() else {
            return self.shared.yarn().finish(given.container); // asked for before a loss was known
        };
        take_row(&mut self.groups[at].rows, &host);
        take_row(&mut self.groups[at].rows, self.shared.cluster.machines[given.node].rack.as_str());
        let (followed, lease_id) = self.groups[at].use_hint(&host);
        {
            let mut tally = self.shared.tally();
            tally.followed += u64::from(followed == Followed::Preferred);
            tally.on_fallback += u64::from(followed == Followed::Fallback);
        }
        let maps_done = self.groups[MAP].ended == self.groups[MAP].count;
        let since = Instant::now();
        let running = Running { group: at, task, host: host.clone(), since, ends: None };
        self.running.insert(given.container, running);
        if at == MAP || maps_done {
            self.schedule_end(given.container, since);
        }
        let what = v1::TaskAllocated { host, container_id: given.container.to_string(), lease_id };
        self.report(v1::task_event::What::Allocated(what), PRIORITIES[at].0, &task_name(at, task)).await;
        if at == MAP && self.groups[MAP].waiting.is_empty() && self.groups[MAP].unhinted == 0 {
            self.ask_yarn();
        }
        self.next_wave().await;
    }

    /// Asks for hints for what was left for a later wave, once the wave before has its containers.
    async fn next_wave(&mut self) {
        let open = |group: &Group| group.open() > 0;
        let left = self.groups.iter().any(|group| group.unhinted > 0);
        if left && !self.groups.iter().any(open) && !self.unhinted_run {
            self.ask_for_hints().await;
            self.ask_yarn();
        }
    }

    /// A node took a container with it: the task waits for another.
    fn lose(&mut self, container: ContainerId) {
        let Some(lost) = self.running.remove(&container) else { return };
        if let Some(ends) = lost.ends {
            self.ends.remove(&(ends, container));
        }
        self.groups[lost.group].waiting.push_front(lost.task);
        self.forget_dead();
        self.ask_yarn();
    }

    fn forget_dead(&mut self) {
        for group in &mut self.groups {
            let hosts = group.rows.keys().chain(group.hinted.keys()).cloned();
            let gone: BTreeSet<String> = hosts.filter(|host| self.shared.is_dead(host)).collect();
            group.forget(&gone);
        }
    }

    /// Advice came down the Follow stream.
    fn take_advice(&mut self, message: v1::FollowMessage) {
        let job = self.plan().number;
        match message.advice {
            Some(v1::follow_message::Advice::Hints(hints)) if DISPATCHED.contains(&message.cause.as_str()) => {
                self.shared.check(&hints);
                self.take_dispatched(&hints);
            }
            Some(v1::follow_message::Advice::NotYet(_)) => self.shared.tally().told_to_wait += 1,
            Some(v1::follow_message::Advice::Hints(hints)) => {
                self.shared.check(&hints);
                let from = self.leaving();
                self.forget_dead();
                self.take_again(&hints);
                self.shared.tally().replaced += hints.hints.iter().map(|hint| u64::from(hint.count)).sum::<u64>();
                let cause = message.cause;
                self.shared.tell(EmulationEvent::Replaced { job, from, hints: Box::new(hints), cause });
                self.ask_yarn();
            }
            Some(v1::follow_message::Advice::Withdraw(withdrawal)) => {
                let v1::Withdrawal { lease_ids, host, reason } = withdrawal;
                for group in &mut self.groups {
                    if let Some(leases) = group.leases.get_mut(&host) {
                        leases.retain(|lease| !lease_ids.contains(lease));
                    }
                }
                let leases = lease_ids.len();
                self.shared.tally().withdrawn += leases as u64;
                self.shared.tell(EmulationEvent::Withdrawn { job, host, leases, reason });
            }
            _ => {}
        }
    }

    /// Takes hints that replace earlier ones: their hosts are added to what is asked for.
    fn take_again(&mut self, hints: &v1::HintSet) {
        for (at, (name, ..)) in PRIORITIES.iter().enumerate() {
            for hint in hints.hints.iter().filter(|hint| hint.group == *name) {
                self.groups[at].learn(hint);
                *self.groups[at].rows.entry(hint.host.clone()).or_default() += hint.count;
            }
        }
    }

    /// What was to be told is lost: what waits is asked for anew.
    async fn begin_again(&mut self) {
        for group in &mut self.groups {
            group.unhinted += std::mem::take(&mut group.pending);
        }
        self.next_wave().await;
    }

    /// Hints for tasks that were held back until now: YARN is asked for them as well.
    fn take_dispatched(&mut self, hints: &v1::HintSet) {
        self.take_again(hints);
        let mut containers = 0;
        for (group, (name, ..)) in self.groups.iter_mut().zip(PRIORITIES) {
            let count: u32 = hints.hints.iter().filter(|hint| hint.group == name).map(|hint| hint.count).sum();
            group.pending = group.pending.saturating_sub(count);
            containers += u64::from(count);
        }
        let mut tally = self.shared.tally();
        tally.hinted += containers;
        tally.dispatched += containers;
        drop(tally);
        self.ask_yarn();
    }

    /// Dead hosts that the job's containers or hints are on.
    fn leaving(&self) -> Vec<String> {
        let running = self.running.values().map(|running| &running.host);
        let hinted = self.groups.iter().flat_map(|group| group.hinted.keys());
        let hosts: BTreeSet<&String> = running.chain(hinted).filter(|host| self.shared.is_dead(host)).collect();
        hosts.into_iter().cloned().collect()
    }

    /// Ends the tasks whose time has come.
    async fn end_due(&mut self) {
        let now = Instant::now();
        while let Some(&(at, container)) = self.ends.first().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, container));
            let Some(running) = self.running.get(&container).cloned() else { continue };
            if self.shared.is_dead(&running.host) {
                continue; // the machine is gone with it: YARN will tell
            }
            self.running.remove(&container);
            self.groups[running.group].ended += 1;
            self.shared.yarn().finish(container);
            self.shared.tally().tasks_ended += 1;
            self.report_end(&running).await;
        }
        if self.groups[MAP].ended == self.groups[MAP].count {
            let idle: Vec<ContainerId> =
                self.running.iter().filter(|(_, r)| r.ends.is_none()).map(|(&container, _)| container).collect();
            for container in idle {
                self.schedule_end(container, now);
            }
        }
    }

    fn schedule_end(&mut self, container: ContainerId, from: Instant) {
        let Some(running) = self.running.get(&container) else { return };
        let number = u64::from(running.task);
        let task = if running.group == MAP { Task::Map(number) } else { Task::Reduce(number) };
        let ends = from + self.shared.workload.task_time(self.plan(), task);
        self.running.entry(container).and_modify(|running| running.ends = Some(ends));
        self.ends.insert((ends, container));
    }

    async fn report_end(&mut self, running: &Running) {
        let plan = self.plan();
        let (bytes, of, output) = match running.group {
            MAP => (plan.input.0, plan.maps, plan.shuffle.0),
            _ => (plan.shuffle.0, plan.reduces, plan.output.0),
        };
        let share = u64::from(of.max(1));
        let what = v1::TaskFinished {
            host: running.host.clone(),
            duration_ms: u64::try_from(running.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            input_bytes: bytes / share,
            output_bytes: output / share,
            failed: false,
        };
        let name = task_name(running.group, running.task);
        self.report(v1::task_event::What::Finished(what), PRIORITIES[running.group].0, &name).await;
    }

    fn start_following(&mut self, token: String) {
        let start = v1::FollowStart {
            application_id: self.attempt.application.to_string(),
            attempt: self.attempt.attempt,
            token,
            resume_after: 0,
            nonce: Vec::new(),
        };
        self.follow = Some(self.client.follower(start, AWAY));
    }

    async fn report(&mut self, what: v1::task_event::What, group: &str, task: &str) {
        let event = v1::TaskEvent {
            application_id: self.attempt.application.to_string(),
            attempt: self.attempt.attempt,
            group: group.to_owned(),
            task: task.to_owned(),
            recurring_job_key: self.plan().input_paths.first().cloned().unwrap_or_default(),
            at_ms: 0,
            what: Some(what),
            token: String::new(),
            nonce: Vec::new(),
        };
        if let Some(follow) = &mut self.follow {
            // A stream that is over says why on its way down.
            let _ = follow.tell(vec![event]).await;
        }
    }
}

fn task_name(group: usize, task: u32) -> String {
    format!("{}-{task:06}", if group == MAP { "m" } else { "r" })
}

fn take_row(rows: &mut BTreeMap<String, u32>, name: &str) {
    if let Some(count) = rows.get_mut(name) {
        *count = count.saturating_sub(1);
    }
}

fn host_rows(hints: &v1::HintSet, group: &str) -> BTreeMap<String, u32> {
    let mut rows = BTreeMap::new();
    for hint in hints.hints.iter().filter(|hint| hint.group == group) {
        *rows.entry(hint.host.clone()).or_default() += hint.count;
    }
    rows
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
