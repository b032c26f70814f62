//! The world: an engine in its shell, what is true outside, what is under way between both, and what was promised.

use super::book::Book;
use super::disk::{Disk, Leaving, Reply};
use super::event::APPS;
use super::naive::Nodes;
use crate::testing::attempt;
use crate::tests::flows::controller::{Controller, NAME};
use crate::tests::harness::START;
use crate::{
    Answer, Counter, Effect, Effects, Engine, EngineSettings, FollowBody, Generation, Mode, PlacerSettings, Proposal,
    RebalanceSettings, RouteSettings, Rows, SelectedPolicy, TaskEvent, Token,
};
use hintd_model::cluster::{
    Calculator, Change, HintRequest, NamedBlock, NamedContainer, NamedDataset, NodeState, SizeRules,
};
use hintd_model::network::Network;
use hintd_model::network::build::{self, BuiltNetwork, FatTreeSpec, TreeSpec};
use hintd_model::units::{
    AttemptId, Bytes, ContainerId, DecisionId, HostName, LeaseId, LinkName, Micros, RequestId, SchedulerKey,
    SnapshotVersion, Timestamp,
};
use hintd_policy::{Policy, registry};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// A node as it really is.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) rack: String,
    pub(super) mb: u64,
    pub(super) labelled: bool,
    pub(super) state: NodeState,
    pub(super) foreign_mb: u64,
    pub(super) runs: BTreeMap<ContainerId, (NamedContainer, Arc<str>)>,
    pub(super) alive: bool,
}

/// On its way to the daemon.
#[derive(Debug, Clone)]
pub(super) enum Message {
    Fact(Change),
    Task(TaskEvent),
}

/// Which call of the engine did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Fact,
    Task,
    Publish,
    Tick,
    Commit,
    Undo,
    Release,
    Other,
    Start,
}

/// A request as its application means it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) request: Arc<HintRequest>,
    pub(super) policy: usize,
    pub(super) mode: Mode,
    pub(super) follows: bool,
    pub(super) digest: u64,
}

/// A proposal that waits for its commit.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) asked: Asked,
    pub(super) proposal: Proposal,
}

/// A lease that its application knows of and has used for nothing yet.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    pub(super) lease: LeaseId,
    pub(super) attempt: AttemptId,
    pub(super) host: String,
    pub(super) group: Arc<str>,
    pub(super) key: SchedulerKey,
    pub(super) size: hintd_model::cluster::NamedResource,
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Timestamp,
    pub(super) start: Timestamp,
    pub(super) settings: EngineSettings,
    pub(super) rules: SizeRules,
    pub(super) placer: PlacerSettings,
    pub(super) policies: Vec<(&'static str, Arc<dyn Policy>)>,
    pub(super) disk: Disk,
    pub(super) book: Book,
    /// As told, and as told when the engine settled last.
    pub(super) nodes: Nodes,
    pub(super) settled: Rc<Nodes>,
    pub(super) version: SnapshotVersion,
    /// What generations were made of.
    pub(super) pictures: BTreeMap<u64, Rc<Nodes>>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) hosts: Vec<String>,
    pub(super) flight: Vec<Message>,
    pub(super) network: Option<Arc<Network>>,
    pub(super) links: Vec<LinkName>,
    pub(super) switches: Vec<Arc<str>>,
    pub(super) asked: Vec<Asked>,
    pub(super) pending: Vec<Pending>,
    pub(super) due: VecDeque<Arc<HintRequest>>,
    pub(super) sent: BTreeMap<RequestId, Arc<Answer>>,
    pub(super) promises: Vec<Promise>,
    pub(super) returned: BTreeSet<LeaseId>,
    pub(super) replaced: BTreeMap<RequestId, AttemptId>,
    pub(super) tokens: BTreeMap<AttemptId, Token>,
    pub(super) controller: Controller,
    pub(super) attached: bool,
    /// The declaration of middleboxes and chains that is told after a start; `None`: this world knows of none.
    pub(super) declared: Option<u8>,
    /// Moves that applications were told of, and when each container was named last.
    pub(super) moves: BTreeMap<ContainerId, Timestamp>,
    pub(super) next: u64,
    pub(super) steps: u64,
    pub(super) totals: BTreeMap<Counter, u64>,
    hasher: DefaultHasher,
}

impl World {
    /// The world of a seed: its size, its rules and its settings are the seed's, what happens in it is not.
    pub(super) fn new(seed: u64) -> Self {
        let built = network(seed);
        let calculator = if seed.is_multiple_of(3) { Calculator::Dominant } else { Calculator::Default };
        let rules = SizeRules { calculator, ..SizeRules::default() };
        let settings = settings((seed / 7 % 4) as u8);
        let (engine, _) = Engine::new(settings.clone(), rules.clone(), Rows::new(), START).unwrap();
        let names = registry::entries().iter().map(|entry| entry.name);
        let policies = names.map(|name| (name, registry::with_defaults(name).unwrap().into())).collect();
        let wired = !seed.is_multiple_of(5);
        let mut world = Self {
            version: engine.current_snapshot().version,
            engine,
            now: START,
            start: START,
            settings,
            rules,
            placer: PlacerSettings { steps: 200, ..PlacerSettings::default() },
            policies,
            disk: Disk::new(),
            book: Book::default(),
            nodes: Nodes::default(),
            settled: Rc::default(),
            pictures: BTreeMap::new(),
            machines: machines(&built),
            hosts: built.racks.iter().flat_map(|(_, hosts)| hosts).map(ToString::to_string).collect(),
            flight: Vec::new(),
            links: built.network.links().map(|(_, link)| link.name.clone()).collect(),
            switches: switches(&built.network),
            network: wired.then(|| Arc::new(built.network)),
            asked: Vec::new(),
            pending: Vec::new(),
            due: VecDeque::new(),
            sent: BTreeMap::new(),
            promises: Vec::new(),
            returned: BTreeSet::new(),
            replaced: BTreeMap::new(),
            tokens: BTreeMap::new(),
            controller: Controller::default(),
            attached: false,
            declared: (wired && seed % 3 == 1).then_some((seed % 7 % 4) as u8),
            moves: BTreeMap::new(),
            next: 2,
            steps: 0,
            totals: BTreeMap::new(),
            hasher: DefaultHasher::new(),
        };
        world.did(Call::Start, None, Reply::Nobody);
        world.tell_all();
        world
    }

    /// Every machine and the network make themselves known, as after a start.
    pub(super) fn tell_all(&mut self) {
        if let Some(network) = self.network.clone() {
            self.hear(Message::Fact(Change::Network(Some(network))));
        }
        if let Some(declared) = self.declared.and_then(|which| self.declaration(which)) {
            self.hear(Message::Fact(declared));
        }
        for host in self.hosts.clone() {
            if self.machines[&host].alive {
                self.hear(Message::Fact(Change::Register(self.registration(&host))));
                self.hear(Message::Fact(Change::Heartbeat(self.heartbeat(&host, true))));
            }
        }
        for at in 0..3_usize {
            let block = |id: usize| NamedBlock {
                id: (at * 8 + id) as u64,
                bytes: Bytes(1 << 20),
                hosts: (0..2).map(|copy| self.hosts[(id + at + copy * 3) % self.hosts.len()].as_str().into()).collect(),
            };
            let dataset = NamedDataset { path: format!("/in/{at}").into(), blocks: (0..4 + at).map(block).collect() };
            self.hear(Message::Fact(Change::Dataset(Arc::new(dataset))));
        }
        self.publish();
    }

    /// What follows from a call of the engine: everything is checked, written and sent.
    pub(super) fn did(&mut self, call: Call, decision: Option<DecisionId>, reply: Reply) {
        let effects = self.engine.take_effects();
        self.note(&effects);
        self.check_moves(&effects.out);
        let turn = self.book.take(&effects, call == Call::Start);
        for (counter, by) in &turn.counts {
            *self.totals.entry(*counter).or_default() += by;
        }
        let version = self.engine.current_snapshot().version;
        let moved = version != self.version;
        if moved {
            self.version = version;
            self.settled = Rc::new(self.nodes.clone());
        }
        self.check_turn(call, &turn, moved);
        if moved {
            (self.nodes.touched, self.nodes.left, self.nodes.appeared) = Default::default();
        }
        let leaving = self.disk.enter(effects, decision, reply);
        self.leave(leaving);
    }

    /// What left the daemon arrives.
    pub(super) fn leave(&mut self, leaving: Leaving) {
        for effect in leaving.out {
            self.arrive(effect);
        }
        for reply in leaving.replies {
            self.reply(reply);
        }
        if !leaving.undo.is_empty() {
            for decision in leaving.undo {
                self.engine.undo(decision, self.now);
            }
            self.did(Call::Undo, None, Reply::Nobody);
        }
    }

    fn arrive(&mut self, effect: Effect) {
        match effect {
            Effect::Follow { message: FollowBody::Withdraw { leases, .. }, .. } => {
                let live: Vec<_> = leases.iter().filter(|id| self.book.live.contains_key(id)).collect();
                assert!(live.is_empty(), "{live:?} were withdrawn and hold");
            }
            Effect::Follow { message: FollowBody::Move(told), .. } => self.proposed(told.container, told.gain),
            Effect::Follow { .. } | Effect::RunLeftOut { .. } | Effect::Count(..) | Effect::AdherenceFinalized(_) => {}
            Effect::Verdict(_) => panic!("nobody is held out here"),
            Effect::Hints { answer, .. } => self.reply(Reply::Answer(answer)),
            Effect::Late { request } => self.due.push_back(request),
            Effect::Rebalance(round) => self.rebalance(&round),
            Effect::Replace { request, .. } => {
                let before = self.replaced.insert(request.id.clone(), request.attempt);
                assert_eq!(before, None, "{} was to be placed twice", request.id);
                self.due.push_back(request);
            }
            Effect::Routes { watcher, update } if *watcher == *NAME => {
                if !self.attached {
                    self.engine.unwatch(NAME, self.now);
                } else if update.number > self.controller.last {
                    self.controller.apply(&update);
                }
            }
            Effect::Routes { .. } | Effect::ControllerLeft { .. } => {}
            Effect::WatchEnded { .. } => self.attached = false,
            Effect::AnswerForgotten(id) => {
                if !self.engine.answered(&id) {
                    self.sent.remove(&id);
                }
            }
            Effect::AttemptEnded(attempt) => self.replaced.retain(|_, of| *of != attempt),
            Effect::LegacyClient { .. } => panic!("the engine's own world shows everything"),
        }
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        match reply {
            Reply::Nobody => {}
            Reply::Released(leases) => self.returned.extend(leases),
            Reply::Answer(answer) => {
                let decision = &answer.decision;
                self.tokens.insert(decision.attempt, answer.token.clone());
                if decision.mode != Mode::On
                    || self.sent.insert(decision.request.clone(), Arc::clone(&answer)).is_some()
                {
                    return;
                }
                for id in answer.leases() {
                    if let Some(lease) = self.engine.leases().find(|lease| lease.id == id) {
                        self.promises.push(Promise {
                            lease: id,
                            attempt: lease.attempt,
                            host: self.engine.current_snapshot().host(lease.node).to_string(),
                            group: Arc::clone(&lease.group),
                            key: lease.key,
                            size: hintd_model::cluster::NamedResource::from_row(
                                &lease.size,
                                &self.engine.current_snapshot().kinds,
                            ),
                        });
                    }
                }
            }
        }
    }

    pub(super) fn publish(&mut self) {
        let published = self.engine.publish(self.now);
        self.did(Call::Publish, None, Reply::Nobody);
        if let Some(generation) = published {
            self.pictures.insert(generation.number, Rc::clone(&self.settled));
            while self.pictures.len() > 200 {
                self.pictures.pop_first();
            }
        }
    }

    pub(super) fn generation(&self) -> Arc<Generation> {
        self.engine.generation()
    }

    pub(super) fn chosen<'a>(&'a self, asked: &'a Asked) -> SelectedPolicy<'a> {
        let (name, policy) = &self.policies[asked.policy];
        let baseline = &self.policies.iter().find(|(name, _)| *name == "capacity").unwrap().1;
        SelectedPolicy { policy: &**policy, baseline: &**baseline, mode: asked.mode, name }
    }

    /// Everything that leaves an engine goes into one number.
    fn note(&mut self, effects: &Effects) {
        for op in &effects.journal {
            format!("{op:?}").hash(&mut self.hasher);
        }
        for effect in &effects.out {
            format!("{effect:?}").hash(&mut self.hasher);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// All applications, both attempts of each.
    pub(super) fn attempts() -> impl Iterator<Item = AttemptId> {
        (1..=APPS).flat_map(|app| [attempt(app, 1), attempt(app, 2)])
    }

    pub(super) fn host_name(&self, which: u16) -> String {
        self.hosts[usize::from(which) % self.hosts.len()].clone()
    }
}

/// Settings that differ in whatever may matter.
pub(super) fn settings(which: u8) -> EngineSettings {
    let secs = Micros::from_secs;
    let rebalance = RebalanceSettings {
        enabled: true,
        latency: false,
        every: secs(5),
        gain_min_per_million: 50_000,
        moves_per_round: 3,
        moves_per_application: 2,
        cool_down: secs(40),
    };
    let usual = EngineSettings {
        rebalance,
        routes: RouteSettings { ack_timeout: secs(20), ..RouteSettings::default() },
        ..EngineSettings::default()
    };
    match which % 4 {
        0 => usual,
        1 => EngineSettings { lease_ttl: secs(5), answers_keep: secs(20), stale_after: secs(3), ..usual },
        2 => EngineSettings {
            answers_max: 6,
            attempts_max: 4,
            requests_per_attempt: 2,
            leases_max: 24,
            history_keys: 2,
            history_samples: 2,
            ..usual
        },
        _ => EngineSettings {
            lost_after: secs(15),
            routes: RouteSettings { rules_per_switch: 4, changes_per_s: 3, pairs_max: 40, ..usual.routes },
            ..usual
        },
    }
}

fn network(seed: u64) -> BuiltNetwork {
    if seed.is_multiple_of(4) {
        return build::fat_tree(&FatTreeSpec::default()).unwrap();
    }
    build::tree(&TreeSpec { racks: 3, hosts_per_rack: 2, cores: 2, ..TreeSpec::default() }).unwrap()
}

fn switches(network: &Network) -> Vec<Arc<str>> {
    network.vertices().filter(|(_, vertex)| !vertex.is_host()).map(|(_, vertex)| Arc::clone(&vertex.name)).collect()
}

fn machines(built: &BuiltNetwork) -> BTreeMap<String, Machine> {
    let machine = |rack: &str| Machine {
        rack: rack.to_owned(),
        mb: 4096,
        labelled: false,
        state: NodeState::Running,
        foreign_mb: 0,
        runs: BTreeMap::new(),
        alive: true,
    };
    let of = built.racks.iter().flat_map(|(rack, hosts)| hosts.iter().map(move |host: &HostName| (rack, host)));
    of.map(|(rack, host)| (host.to_string(), machine(rack.as_str()))).collect()
}
