//! A small cluster, YARN's side of it, and a journal, around one engine.

use crate::journal::{Op, Table};
use crate::testing::request;
use crate::{
    Answer, CommitOutcome, Counter, Effect, Engine, EngineSettings, Generation, Mode, PlacerSettings, Proof, Proposal,
    Refusal, Released, RoundMember, Rows, SelectedPolicy, TaskEvent, TaskWhat, Token, propose, propose_together,
};
use hintd_model::cluster::{
    Change, Heartbeat, HintRequest, NamedContainer, NamedResource, NodeState, Registration, SizeRules,
};
use hintd_model::units::{AttemptId, Bytes, ContainerId, HostName, LeaseId, Micros, SchedulerKey, Timestamp};
use hintd_policy::{Policy, registry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const START: Timestamp = Timestamp(1_700_000_000_000_000);

pub(super) struct EngineHarness {
    pub(super) engine: Engine,
    pub(super) settings: EngineSettings,
    pub(super) placer: PlacerSettings,
    /// What the journal holds.
    pub(super) rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    pub(super) out: Vec<Effect>,
    pub(super) counts: BTreeMap<Counter, u64>,
    pub(super) now: Timestamp,
    pub(super) mode: Mode,
    policy: Box<dyn Policy>,
    baseline: Box<dyn Policy>,
}

impl EngineHarness {
    pub(super) fn new() -> Self {
        let settings = EngineSettings::default();
        let (engine, _) = Engine::new(settings.clone(), SizeRules::default(), Rows::new(), START).unwrap();
        Self {
            engine,
            settings,
            placer: PlacerSettings::default(),
            rows: BTreeMap::new(),
            out: Vec::new(),
            counts: BTreeMap::new(),
            now: START,
            mode: Mode::On,
            policy: registry::with_defaults("spread").unwrap(),
            baseline: registry::with_defaults("capacity").unwrap(),
        }
    }

    /// `hosts` nodes `h0`, `h1`, … of `mb` each, two a rack, all reporting that nothing runs.
    pub(super) fn with_nodes(hosts: usize, mb: u64) -> Self {
        let mut harness = Self::new();
        for at in 0..hosts {
            harness.register(&format!("h{at}"), &format!("/r{}", at / 2), mb);
            harness.beat(&format!("h{at}"), 0, Some(&[]));
        }
        harness.publish();
        harness
    }

    pub(super) fn change(&mut self, change: Change) {
        self.engine.change(change, self.now).unwrap();
        self.drain();
    }

    pub(super) fn register(&mut self, host: &str, rack: &str, mb: u64) {
        self.change(Change::Register(registration(host, rack, mb)));
    }

    /// A heartbeat; `None`: the feed names no containers.
    pub(super) fn beat(&mut self, host: &str, used_mb: u64, containers: Option<&[NamedContainer]>) {
        let heartbeat = Heartbeat {
            host: host.into(),
            used: mb(used_mb),
            used_is_running: false,
            containers: containers.map(<[NamedContainer]>::to_vec),
            state: NodeState::Running,
        };
        self.change(Change::Heartbeat(heartbeat));
    }

    pub(super) fn publish(&mut self) -> Arc<Generation> {
        self.engine.publish(self.now);
        self.drain();
        self.engine.generation()
    }

    pub(super) fn pass(&mut self, span: Micros) {
        self.now = self.now.plus(span);
        self.engine.tick(self.now);
        self.drain();
    }

    /// By which policy what does not wait is placed from now on; `spread` until this is called.
    pub(super) fn places_by(&mut self, name: &str) {
        self.policy = registry::with_defaults(name).unwrap();
    }

    pub(super) fn propose(&self, request: &Arc<HintRequest>) -> Result<Proposal, Refusal> {
        self.propose_until(request, &mut || false)
    }

    /// With a probe that may stop it.
    pub(super) fn propose_until(
        &self,
        request: &Arc<HintRequest>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Proposal, Refusal> {
        let chosen = SelectedPolicy {
            policy: &*self.policy,
            baseline: &*self.baseline,
            mode: self.mode,
            name: self.policy.name(),
        };
        propose(&self.engine.generation(), request, &chosen, &self.placer, self.now, stop)
    }

    /// Requests of one round.
    pub(super) fn propose_together(&self, requests: &[Arc<HintRequest>]) -> Vec<Result<Proposal, Refusal>> {
        let chosen = SelectedPolicy {
            policy: &*self.policy,
            baseline: &*self.baseline,
            mode: self.mode,
            name: self.policy.name(),
        };
        let member = |request| RoundMember { request, settings: &self.placer };
        let members: Vec<RoundMember<'_>> = requests.iter().map(member).collect();
        propose_together(&self.engine.generation(), &chosen, &members, self.now, &mut || false)
    }

    pub(super) fn commit(&mut self, proposal: Proposal) -> CommitOutcome {
        let outcome = self.engine.commit(proposal, Token("secret".into()), self.now);
        self.drain();
        outcome
    }

    /// Proposes, commits and publishes; panics unless it is answered.
    pub(super) fn ask(&mut self, request: HintRequest) -> Arc<Answer> {
        let mut proposal = self.propose(&Arc::new(request)).unwrap();
        proposal.digest = 1; // an application's; the engine's own requests have none
        let outcome = self.commit(proposal);
        self.publish();
        match outcome {
            CommitOutcome::Committed(answer) => answer,
            other => panic!("not committed: {other:?}"),
        }
    }

    /// Gives leases back as their attempt; none named: all of it.
    pub(super) fn give_back(&mut self, attempt: AttemptId, leases: &[LeaseId]) -> Released {
        self.engine.release(attempt, &Proof::of_token(Token("secret".into())), leases, self.now).unwrap()
    }

    pub(super) fn refusal(&self, request: HintRequest) -> Refusal {
        self.propose(&Arc::new(request)).map(|_| ()).unwrap_err()
    }

    pub(super) fn event(&mut self, attempt: AttemptId, group: &str, what: TaskWhat) {
        let event =
            TaskEvent { attempt, group: group.into(), task: "t".into(), what, recurring_key: None, at: self.now };
        self.engine.event(event, self.now).unwrap();
        self.drain();
    }

    pub(super) fn allocated(&mut self, host: &str, container: ContainerId, lease: Option<LeaseId>) {
        let what = TaskWhat::Allocated { host: host.into(), container, lease };
        self.event(container.attempt, "map", what);
    }

    pub(super) fn finished(&mut self, attempt: AttemptId, group: &str, seconds: u64, output: u64) {
        let what = TaskWhat::Finished {
            host: "h0".into(),
            duration: Micros::from_secs(seconds),
            input: Bytes(0),
            output: Bytes(output),
            failed: false,
        };
        self.event(attempt, group, what);
    }

    pub(super) fn drain(&mut self) {
        let effects = self.engine.take_effects();
        apply(&mut self.rows, effects.journal);
        for effect in effects.out {
            match effect {
                Effect::Count(counter, by) => *self.counts.entry(counter).or_default() += by,
                other => self.out.push(other),
            }
        }
    }

    /// Tables with rows, the engine's own facts aside.
    pub(super) fn tables(&self) -> BTreeSet<Table> {
        self.rows.keys().map(|(table, _)| *table).filter(|table| *table != Table::Meta).collect()
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.counts.get(&counter).copied().unwrap_or(0)
    }

    /// The engine that the journal's rows give.
    pub(super) fn recovered(&self) -> Engine {
        let mut rows = Rows::new();
        for ((table, key), value) in &self.rows {
            rows.entry(*table).or_default().push((key.clone(), value.clone()));
        }
        Engine::new(self.settings.clone(), SizeRules::default(), rows, self.now).unwrap().0
    }

    pub(super) fn restart(&mut self) {
        self.engine = self.recovered();
        self.drain();
    }

    /// Live leases as (id, host, MB).
    pub(super) fn leases(&self) -> Vec<(LeaseId, String, u64)> {
        let host = |node| self.engine.current_snapshot().host(node).to_string();
        self.engine.leases().map(|lease| (lease.id, host(lease.node), lease.size.memory_mb())).collect()
    }

    pub(super) fn replaced(&self) -> Vec<Arc<HintRequest>> {
        let replaced = |effect: &Effect| match effect {
            Effect::Replace { request, .. } => Some(Arc::clone(request)),
            _ => None,
        };
        self.out.iter().filter_map(replaced).collect()
    }
}

pub(super) fn apply(rows: &mut BTreeMap<(Table, Vec<u8>), Vec<u8>>, batch: Vec<Op>) {
    for op in batch {
        match op {
            Op::Put { table, key, value } => drop(rows.insert((table, key), value)),
            Op::Delete { table, key } => drop(rows.remove(&(table, key))),
        }
    }
}

pub(crate) fn registration(host: &str, rack: &str, total_mb: u64) -> Registration {
    Registration {
        host: host.into(),
        rack: rack.into(),
        total: NamedResource { memory_mb: total_mb, vcores: 16, named: Vec::new() },
        labels: Vec::new(),
        attributes: BTreeMap::new(),
        class: "".into(),
        aliases: Vec::new(),
        disk_read: Bytes(0),
        state: NodeState::Running,
    }
}

pub(super) fn mb(memory_mb: u64) -> NamedResource {
    NamedResource { memory_mb, vcores: 0, named: Vec::new() }
}

pub(super) fn container(attempt: AttemptId, id: u64) -> ContainerId {
    ContainerId { attempt, id }
}

/// A running container of 1024 MB for the first group of a test request.
pub(super) fn running(id: ContainerId) -> NamedContainer {
    let size = NamedResource { memory_mb: 1024, vcores: 1, named: Vec::new() };
    NamedContainer { id, size, key: SchedulerKey { priority: 1, allocation_request_id: -1 } }
}

/// `count` containers of a group `map`.
pub(super) fn maps(id: &str, count: u32) -> HintRequest {
    request(id, &[("map", count)])
}

pub(super) fn hosts(answer: &Answer) -> Vec<HostName> {
    answer.decision.hints.iter().map(|hint| hint.host.clone()).collect()
}
