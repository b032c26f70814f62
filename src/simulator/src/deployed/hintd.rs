//! The engine in virtual time: what the daemon's threads do around it, without threads.

use super::Deployed;
use super::master::REDUCES;
use crate::yarn::SimCluster;
use hintd_engine::prediction::Run;
use hintd_engine::{
    Answer, CommitOutcome, EdgeHistory, Effect, Engine, EngineSettings, LearnedGroup, LearnedRun, Mode, Rows,
    SelectedPolicy, TaskEvent, TaskWhat, Token, propose,
};
use hintd_model::cluster::{
    Change, EdgePattern, Gang, Heartbeat, HintRequest, LinkLoad, NamedResource, NodeState, Registration, Resource,
    Snapshot, TaskGroup, WhenFull,
};
use hintd_model::units::{AttemptId, Bytes, ContainerId, HostName, LeaseId, LinkName, Micros, NodeIdx, Timestamp};
use hintd_policy::advise::EarlierRun;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nobody falls silent here: heartbeats that tell nothing new are left out.
const NEVER: Micros = Micros::from_secs(1_000_000_000);

/// Reduces that hosts are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reduces {
    pub(super) count: u32,
    /// All that the application asked for so far, where the processor may hold some of them; else 0.
    pub(super) whole: u32,
}

/// Who asks for hosts, and for which reduces.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReducesAsk<'a> {
    pub(super) attempt: AttemptId,
    /// Whose attempt it is.
    pub(super) user: &'a Arc<str>,
    pub(super) reduces: Reduces,
}

#[derive(Debug)]
pub(super) struct Hintd {
    engine: Engine,
    /// What nodes last reported.
    known: Vec<Resource>,
    /// What it was told of links.
    loads: Arc<BTreeMap<LinkName, LinkLoad>>,
    asked: u64,
    /// Keys of attempts that ran before.
    keys: BTreeMap<AttemptId, Arc<str>>,
    /// Leases of hints for which no container came yet, oldest first.
    hinted: BTreeMap<AttemptId, Vec<(HostName, LeaseId)>>,
}

impl Hintd {
    pub(super) fn new(cluster: &SimCluster) -> Self {
        let settings = EngineSettings { stale_after: NEVER, lost_after: NEVER, ..EngineSettings::default() };
        let snapshot = &cluster.snapshot;
        let rules = (*snapshot.rules).clone();
        let started = Engine::new(settings, rules, Rows::new(), Timestamp(0));
        let (mut engine, _) = started.expect("an empty journal is read");
        for node in snapshot.statics.indexes() {
            let at = node.at();
            let total = named(&snapshot.statics.total[at]);
            let registration = Registration {
                host: snapshot.host(node).clone(),
                rack: snapshot.statics.racks[snapshot.rack(node).at()].clone(),
                total,
                labels: Vec::new(),
                attributes: Default::default(),
                class: "".into(),
                aliases: Vec::new(),
                disk_read: snapshot.statics.disk_read[at],
                state: NodeState::Running,
            };
            engine.change(Change::Register(registration), Timestamp(0)).expect("the cluster's nodes are sound");
        }
        let network = snapshot.topology.network.clone();
        engine.change(Change::Network(network), Timestamp(0)).expect("the cluster's network is sound");
        // Limits by node that its size does not show are taken for occupied.
        let mut hintd = Self {
            engine,
            known: vec![Resource::ZERO; snapshot.nodes()],
            loads: Arc::default(),
            asked: 0,
            keys: BTreeMap::new(),
            hinted: BTreeMap::new(),
        };
        hintd.report(snapshot, Timestamp(0));
        hintd.engine.publish(Timestamp(0));
        hintd
    }

    /// Nodes report what they hold now.
    fn report(&mut self, snapshot: &Snapshot, now: Timestamp) {
        for node in snapshot.statics.indexes() {
            if self.asked == 0 || self.known[node.at()] != snapshot.occupied[node.at()] {
                self.tell_used(node, snapshot, now);
            }
        }
    }

    /// A node's heartbeat. Leases end by what each of them says: what comes and goes between two questions is not to be missed.
    pub(super) fn heartbeat(&mut self, node: NodeIdx, snapshot: &Snapshot, now: Timestamp) {
        if self.known[node.at()] != snapshot.occupied[node.at()] {
            self.tell_used(node, snapshot, now);
            self.engine.publish(now);
        }
    }

    fn tell_used(&mut self, node: NodeIdx, snapshot: &Snapshot, now: Timestamp) {
        let used = snapshot.occupied[node.at()];
        self.known[node.at()] = used;
        let heartbeat = Heartbeat {
            host: snapshot.host(node).clone(),
            used: named(&used),
            used_is_running: false,
            containers: None,
            state: if snapshot.state[node.at()].usable() { NodeState::Running } else { NodeState::Unhealthy },
        };
        self.engine.change(Change::Heartbeat(heartbeat), now).expect("a known node reports");
    }

    /// What a controller's counters say of links, where that is news.
    pub(super) fn counters(&mut self, snapshot: &Snapshot, now: Timestamp) {
        if Arc::ptr_eq(&self.loads, &snapshot.link_loads) {
            return;
        }
        for (link, load) in snapshot.link_loads.iter().filter(|&(link, load)| self.loads.get(link) != Some(load)) {
            self.engine.change(Change::LinkLoad(link.clone(), *load), now).expect("the network has its links");
        }
        self.loads = Arc::clone(&snapshot.link_loads);
        self.engine.publish(now);
    }

    /// The application is over.
    pub(super) fn done(&mut self, attempt: AttemptId, now: Timestamp) {
        self.told(attempt, ("", ""), TaskWhat::Done { failed: false }, now);
        self.keys.remove(&attempt);
        self.hinted.remove(&attempt);
    }

    /// A container of the attempt came.
    pub(super) fn came(
        &mut self,
        (attempt, id): (AttemptId, u64),
        map: bool,
        node: NodeIdx,
        snapshot: &Snapshot,
        now: Timestamp,
    ) {
        let (container, host) = (ContainerId { attempt, id }, snapshot.host(node).clone());
        // As the processor has it: a receiver on a host that was hinted at takes the oldest lease there.
        let lease = self.hinted.get_mut(&attempt).filter(|_| !map).and_then(|hinted| {
            let at = hinted.iter().position(|(hinted, _)| *hinted == host)?;
            Some(hinted.remove(at).1)
        });
        let what = TaskWhat::Allocated { host, container, lease };
        self.told(attempt, (group_of(map), &container.to_string()), what, now);
    }

    /// A container of the attempt ended.
    pub(super) fn ended(
        &mut self,
        (attempt, id): (AttemptId, u64),
        (map, failed): (bool, bool),
        node: NodeIdx,
        snapshot: &Snapshot,
        now: Timestamp,
    ) {
        let (duration, input, output) = (Micros::ZERO, Bytes::ZERO, Bytes::ZERO);
        let what = TaskWhat::Finished { host: snapshot.host(node).clone(), duration, input, output, failed };
        self.told(attempt, (group_of(map), &ContainerId { attempt, id }.to_string()), what, now);
    }

    /// The JobHistoryServer told of an earlier run of the attempt's job, in the rows that the daemon makes of such a run.
    pub(super) fn recurs(&mut self, attempt: AttemptId, run: &EarlierRun, now: Timestamp) {
        let group = |name: &str, count| LearnedGroup {
            name: name.into(),
            count,
            memory_mb: 0,
            input_paths: Vec::new(),
            input: Bytes::ZERO,
        };
        let (mut groups, mut edges) = (vec![group("p20", run.maps.0)], Vec::new());
        if run.reduces.0 > 0 {
            groups.push(group("p10", run.reduces.0));
            let pattern = EdgePattern::AllToAll;
            let edge = |from: &str, bytes| EdgeHistory { from: from.into(), to: "p10".into(), pattern, bytes };
            edges.extend([edge("p20", run.shuffle), edge("p5", Bytes::ZERO), edge("p19", Bytes::ZERO)]);
        }
        let whole = Run {
            submitted: now,
            maps: run.maps,
            reduces: run.reduces,
            input: run.input,
            shuffle: run.shuffle,
            application: None,
            counted: true,
            ran_on: None,
        };
        let learnt = LearnedRun { finished: now, groups, edges, whole: Some(whole) };
        self.engine.learnt(&run.key, &learnt, now);
        self.keys.insert(attempt, Arc::clone(&run.key));
    }

    /// As the ResourceManager's processor tells it: tasks are called as their containers are.
    fn told(&mut self, attempt: AttemptId, (group, task): (&str, &str), what: TaskWhat, now: Timestamp) {
        let event = TaskEvent { attempt, group: group.into(), task: task.into(), what, recurring_key: None, at: now };
        // What the engine knows nothing of it drops, as in production.
        _ = self.engine.event(event, now);
    }

    /// Hosts for reduces; none where hints are kept back or refused.
    pub(super) fn ask(
        &mut self,
        deployed: &Deployed<'_>,
        asks: ReducesAsk<'_>,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Vec<(NodeIdx, u32)> {
        let id = format!("{:?}-{}", asks.attempt, self.asked + 1);
        let answer = self.decide(deployed, (&id, asks), snapshot, now);
        drop(self.engine.take_effects());
        let Some(answer) = answer else { return Vec::new() };
        let place = |hint: &hintd_engine::Hint| {
            let node = snapshot.statics.find(hint.host.as_str())?;
            (hint.expected_wait.is_none()).then_some((node, hint.count))
        };
        answer.decision.hints.iter().filter_map(place).collect()
    }

    /// What hintd answers to a request for reduces, by that id; none where it refuses.
    pub(super) fn decide(
        &mut self,
        deployed: &Deployed<'_>,
        (id, asks): (&str, ReducesAsk<'_>),
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Option<Arc<Answer>> {
        let (policy, baseline) = deployed.hintd?;
        self.report(snapshot, now);
        self.asked += 1;
        self.engine.tick(now);
        self.engine.publish(now);
        let request = Arc::new(self.request(id, asks, &deployed.cluster.container));
        let attempt = asks.attempt;
        let chosen = SelectedPolicy { policy, baseline, mode: Mode::On, name: policy.name() };
        let generation = self.engine.generation();
        let mut proposal = propose(&generation, &request, &chosen, &deployed.placer, now, &mut || false).ok()?;
        (proposal.last_try, proposal.digest) = (true, self.asked);
        let outcome = self.engine.commit(proposal, Token(format!("{attempt:?}").into()), now);
        self.engine.publish(now);
        let answer = match outcome {
            CommitOutcome::Committed(answer) => answer,
            CommitOutcome::Answered(answer) => answer.unpack(),
            CommitOutcome::Conflict { .. } | CommitOutcome::Refused(_) => return None,
        };
        let leases = |hint: &hintd_engine::Hint| hint.leases.iter().map(|lease| (hint.host.clone(), *lease)).collect();
        let given: Vec<Vec<(HostName, LeaseId)>> = answer.decision.hints.iter().map(leases).collect();
        self.hinted.entry(attempt).or_default().extend(given.into_iter().flatten());
        Some(answer)
    }

    /// What calls left behind since the last time, and leases by attempt.
    pub(super) fn left_behind(&mut self) -> (Vec<Effect>, BTreeMap<AttemptId, usize>) {
        let held = self.engine.attempts_held().into_iter().map(|held| (held.attempt, held.leases));
        let held = held.filter(|(_, leases)| *leases > 0).collect();
        (self.engine.take_effects().out, held)
    }

    fn request(&self, id: &str, asks: ReducesAsk<'_>, size: &Resource) -> HintRequest {
        let ReducesAsk { attempt, user, reduces: of } = asks;
        let group = TaskGroup {
            name: "p10".into(),
            role: "reduce".into(),
            count: of.count,
            whole: of.whole,
            size: named(size),
            key: REDUCES,
            label: None,
            input_paths: Vec::new(),
            constraints: Default::default(),
        };
        HintRequest {
            id: id.into(),
            attempt,
            queue: "root.default".into(),
            user: Arc::clone(user),
            framework: "mapreduce".into(),
            groups: vec![group],
            edges: Vec::new(),
            input_paths: Vec::new(),
            recurring_key: self.keys.get(&attempt).cloned(),
            constraints: Default::default(),
            policy: None,
            seed: None,
            gang: Gang::UpTo,
            when_full: WhenFull::Advise,
            am_host: None,
            asks: Vec::new(),
            survivors: Vec::new(),
        }
    }
}

/// As requests for the kind of task name their group.
const fn group_of(map: bool) -> &'static str {
    if map { "p20" } else { "p10" }
}

fn named(resource: &Resource) -> NamedResource {
    NamedResource { memory_mb: resource.memory_mb(), vcores: resource.0[1], named: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shipped;
    use hintd_model::units::BitsPerSec;

    #[test]
    fn it_knows_what_counters_say_of_links() {
        let cluster = Shipped::find("nas-40").unwrap().shape().unwrap().to_cluster().unwrap();
        let network = cluster.snapshot.topology.network.clone().unwrap();
        let mut hintd = Hintd::new(&cluster);
        let mut seen = cluster.snapshot.clone();
        for (seconds, load) in [(5, 900_000_000), (10, 0)] {
            let load = LinkLoad::steady(BitsPerSec(load), BitsPerSec(load / 3));
            seen.link_loads = Arc::new(network.links().map(|(_, link)| (link.name.clone(), load)).collect());
            hintd.counters(&seen, Timestamp(seconds * 1_000_000));
            assert_eq!(hintd.engine.generation().snapshot.link_loads, seen.link_loads);
        }
    }
}
