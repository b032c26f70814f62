//! One MapReduce ApplicationMaster: asks for hints, sends YARN the table it got, follows advice, reports its tasks.

use super::cluster::resource;
use super::event::EmulationEvent;
use super::group::{Followed, Group, host_rows, take_row};
use super::hdfs::BlockAt;
use super::jobs::{JobPlan, MAP_MB, REDUCE_MB, TASK_VCORES};
use super::running::{Phase, Running};
use super::shared::{Shared, TRANSFERS};
use super::traffic::TransferId;
use super::yarn::{self, Allocation, AskTable, MasterMessage};
use hintd_client::wire::{v1, yarn as proto};
use hintd_client::{Advice, Client, ClientError, Follower, Hinted};
use hintd_model::units::{AttemptId, Bytes, ContainerId, SchedulerKey};
use hintd_simulator::Task;
use std::collections::{BTreeMap, BTreeSet};
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

struct Master {
    shared: Arc<Shared>,
    job: usize,
    attempt: AttemptId,
    groups: [Group; 2],
    /// The blocks of its maps.
    input: Vec<BlockAt>,
    /// Maps that have ended, by node: their output lies there.
    outputs: BTreeMap<usize, u32>,
    running: BTreeMap<ContainerId, Running>,
    transfers: BTreeMap<TransferId, ContainerId>,
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
    let took = submitted.elapsed();
    {
        let mut tally = shared.tally();
        tally.jobs_ended += 1;
        tally.completions += took;
    }
    shared.tell(EmulationEvent::Ended { job: master.plan().number, took });
}

impl Master {
    fn new(shared: Arc<Shared>, job: usize, attempt: AttemptId) -> Self {
        let plan = &shared.workload.jobs[job];
        let groups = [Group::new(plan.maps), Group::new(plan.reduces)];
        let input = shared.namespace().input(&plan.input_paths);
        let client = shared.client.clone();
        Self {
            job,
            attempt,
            groups,
            input,
            outputs: BTreeMap::new(),
            running: BTreeMap::new(),
            transfers: BTreeMap::new(),
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
                MasterMessage::Arrived(transfer) => self.arrived(transfer).await,
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
        let rows = self.input_rows();
        self.groups[MAP].rows.extend(rows);
        for group in &mut self.groups {
            (group.unhinted, group.pending) = (0, 0);
        }
    }

    /// What MapReduce asks for by itself for maps that were not hinted.
    fn input_rows(&self) -> BTreeMap<String, u32> {
        let maps = &self.groups[MAP];
        maps.input_rows(maps.unhinted, &self.input, &self.shared.cluster)
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
            let near = if at == MAP { self.input_rows() } else { BTreeMap::new() };
            let group = &mut self.groups[at];
            let mut hinted = 0;
            for hint in hints.hints.iter().filter(|hint| hint.group == *name) {
                group.learn(hint);
                hinted += hint.count;
            }
            let pending: u32 = hints.pending.iter().filter(|held| held.group == *name).map(|held| held.count).sum();
            group.pending += pending;
            group.unhinted = group.unhinted.saturating_sub(hinted + pending);
            if hinted + pending == 0 || hints.mode() != v1::Mode::On {
                // Hints are kept back, or there are none to give: nothing is left to wait for, and YARN chooses.
                (group.unhinted, group.pending) = (0, 0);
                group.rows.extend(near);
                continue;
            }
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
        let input: &[BlockAt] = if at == MAP { &self.input } else { &[] };
        let Some(task) = self.groups[at].next_for(given.node, input, &self.shared.cluster) else {
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
        self.running.insert(given.container, Running::new(at, task, host.clone(), given.node));
        if at == MAP {
            self.read(given.container);
        } else if self.groups[MAP].ended == self.groups[MAP].count {
            self.fetch(given.container);
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
        if let Phase::Works(ends) = lost.phase {
            self.ends.remove(&(ends, container));
        }
        let (gone, kept) = self.transfers.iter().partition(|(_, of)| **of == container);
        let gone: BTreeMap<TransferId, ContainerId> = gone;
        self.transfers = kept;
        for id in gone.into_keys() {
            self.shared.change_traffic(|traffic, now_s| traffic.stop(now_s, id));
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

    /// A map gets its block from the nearest replica that is there; of equally near ones by its number.
    fn read(&mut self, container: ContainerId) {
        let Some(running) = self.running.get_mut(&container) else { return };
        running.phase = Phase::Reads;
        let (node, task) = (running.node, running.task);
        let (machines, stopped) = (&self.shared.cluster.machines, self.shared.stopped());
        let distance = |from: usize| match from == node {
            true => 0,
            false => 1 + u8::from(machines[from].rack_number != machines[node].rack_number),
        };
        let replicas = self.input.get(task as usize).map_or(&[][..], |block| &block.replicas);
        let there: Vec<usize> = replicas.iter().copied().filter(|from| !stopped.contains(from)).collect();
        let nearest = there.iter().map(|&from| distance(from)).min();
        let near: Vec<usize> = there.into_iter().filter(|&from| Some(distance(from)) == nearest).collect();
        match near.get(task as usize % near.len().max(1)) {
            Some(&from) if from != node => {
                let bytes = self.shared.workload.input(self.plan(), Task::Map(u64::from(task)));
                self.send(container, (from, node), bytes);
            }
            _ => self.work(container),
        }
    }

    /// A reduce gets its part of what the maps left on each node, from a few at a time.
    fn fetch(&mut self, container: ContainerId) {
        let (shuffle, maps, reduces) = (self.plan().shuffle.0, u64::from(self.plan().maps), self.plan().reduces);
        let Some(running) = self.running.get_mut(&container) else { return };
        running.phase = Phase::Reads;
        let part = |count: u32| Bytes(shuffle / u64::from(reduces.max(1)) * u64::from(count) / maps.max(1));
        let elsewhere = self.outputs.iter().filter(|(node, _)| **node != running.node);
        running.to_fetch = elsewhere.map(|(&node, &count)| (node, part(count))).collect();
        // Not all from the same first.
        let sources = running.to_fetch.len();
        running.to_fetch.rotate_left(running.task as usize % sources.max(1));
        self.fetch_on(container);
    }

    fn fetch_on(&mut self, container: ContainerId) {
        while let Some(running) = self.running.get_mut(&container).filter(|running| running.under_way < TRANSFERS) {
            let to = running.node;
            match running.to_fetch.pop() {
                Some((from, bytes)) => self.send(container, (from, to), bytes),
                None if running.under_way == 0 => return self.work(container),
                None => return,
            }
        }
    }

    fn send(&mut self, container: ContainerId, (from, to): (usize, usize), bytes: Bytes) {
        let transfer = self.shared.send(self.attempt, from, to, bytes);
        self.transfers.insert(transfer, container);
        self.running.entry(container).and_modify(|running| running.under_way += 1);
    }

    /// What was sent to a container, or by it, is there.
    async fn arrived(&mut self, transfer: TransferId) {
        let Some(container) = self.transfers.remove(&transfer) else { return };
        let Some(running) = self.running.get_mut(&container) else { return };
        running.under_way -= 1;
        if self.shared.is_dead(&running.host) {
            return; // YARN will tell
        }
        match (running.phase, running.group) {
            (Phase::Reads, MAP) => self.work(container),
            (Phase::Reads, _) => self.fetch_on(container),
            (Phase::Worked, _) if running.under_way == 0 => self.end(container).await,
            _ => {}
        }
    }

    /// The task has all its bytes and works through them; a reduce writes meanwhile, each replica to the next.
    fn work(&mut self, container: ContainerId) {
        let Some(running) = self.running.get(&container) else { return };
        let (group, number, node) = (running.group, u64::from(running.task), running.node);
        let task = if group == MAP { Task::Map(number) } else { Task::Reduce(number) };
        let ends = Instant::now() + self.shared.workload.task_time(self.plan(), task);
        self.running.entry(container).and_modify(|running| running.phase = Phase::Works(ends));
        self.ends.insert((ends, container));
        if group == REDUCE {
            let bytes = Bytes(self.plan().output.0 / u64::from(self.plan().reduces.max(1)));
            let stopped = self.shared.stopped();
            let mut replicas = self.shared.namespace().pipeline(node, &self.shared.cluster);
            replicas.retain(|replica| !stopped.contains(replica));
            for ends in replicas.windows(2) {
                self.send(container, (ends[0], ends[1]), bytes);
            }
        }
    }

    /// Tasks whose work is done end, unless they wait for what they wrote.
    async fn end_due(&mut self) {
        let now = Instant::now();
        while let Some(&(at, container)) = self.ends.first().filter(|(at, _)| *at <= now) {
            self.ends.remove(&(at, container));
            let Some(running) = self.running.get_mut(&container) else { continue };
            if self.shared.is_dead(&running.host) {
                continue; // the machine is gone with it: YARN will tell
            }
            running.phase = Phase::Worked;
            if running.under_way == 0 {
                self.end(container).await;
            }
        }
    }

    /// A task ends; with the last map reduces have something to fetch.
    async fn end(&mut self, container: ContainerId) {
        let Some(running) = self.running.remove(&container) else { return };
        self.groups[running.group].ended += 1;
        if running.group == MAP {
            *self.outputs.entry(running.node).or_default() += 1;
        }
        self.shared.yarn().finish(container);
        self.shared.tally().tasks_ended += 1;
        self.report_end(&running).await;
        if self.groups[MAP].ended == self.groups[MAP].count {
            let waits = |(container, running): (&ContainerId, &Running)| {
                (running.group == REDUCE && running.phase == Phase::Waits).then_some(*container)
            };
            let waiting: Vec<ContainerId> = self.running.iter().filter_map(waits).collect();
            waiting.into_iter().for_each(|container| self.fetch(container));
        }
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

pub(super) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
