//! What happens outside of the daemon: machines, YARN, channels, links; and what of it gets through.

use super::disk::Reply;
use super::event::{Event, Pick, Word};
use super::state::{Call, Message, Promise, World};
use crate::testing::attempt;
use crate::tests::harness::registration;
use crate::{TaskEvent, TaskWhat};
use hintd_model::cluster::{Change, Heartbeat, LinkLoad, NamedContainer, NamedResource, NodeState, Registration};
use hintd_model::network::Network;
use hintd_model::network::chains::{BoxEntry, ChainEntry, ChainsDocument, Direction, WhenBroken};
use hintd_model::units::{AttemptId, BitsPerSec, Bytes, ContainerId, LeaseId, Micros, SchedulerKey};
use std::sync::Arc;

/// What a changed file makes of a network.
fn other_network(network: &Network, which: u8) -> Option<Arc<Network>> {
    let mut document = network.to_document();
    let hosts = document.hosts.len();
    match which % 3 {
        0 => return None,
        1 => {
            let kept: Vec<_> = document.hosts.drain(..).take(hosts / 2).collect();
            let is_gone = |name: &str| {
                let vertex = network.vertex(name).expect("it is of the document");
                network.vertex_at(vertex).is_host() && !kept.iter().any(|host| host.name.as_str() == name)
            };
            document.links.retain(|link| !is_gone(&link.a) && !is_gone(&link.b));
            document.hosts = kept;
        }
        _ => document.links.iter_mut().for_each(|link| link.bits_per_s /= 4),
    }
    Some(Arc::new(Network::from_document(&document).expect("it has its switches and links")))
}

impl World {
    /// A message arrives.
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            Message::Fact(change) => {
                let expected = self.nodes.take(&change, self.now);
                let before = self.fingerprint();
                let taken = self.engine.change(change.clone(), self.now);
                if let Some(expected) = expected {
                    assert_eq!(taken.is_ok(), expected, "{change:?}: {taken:?}");
                }
                if taken.is_err() {
                    assert_eq!(self.fingerprint(), before, "a refused fact changed something");
                }
                self.did(Call::Fact, None, Reply::Nobody);
            }
            Message::Task(event) => {
                let before = self.fingerprint();
                let taken = self.engine.event(event, self.now);
                if taken.is_err() {
                    assert_eq!(self.fingerprint(), before, "a refused event changed something");
                }
                self.did(Call::Task, None, Reply::Nobody);
            }
        }
    }

    pub(super) fn outside(&mut self, event: &Event) {
        match *event {
            Event::Register { host, mb, labelled, moved, word } => {
                let host = self.host_name(host);
                let rack =
                    if moved { self.machines[&self.hosts[0]].rack.clone() } else { self.machines[&host].rack.clone() };
                let machine = self.machines.get_mut(&host).unwrap();
                (machine.mb, machine.labelled, machine.rack, machine.alive) = (mb, labelled, rack, true);
                machine.state = state(word);
                let told = Change::Register(self.registration(&host));
                self.flight.push(Message::Fact(told));
            }
            Event::Beat { host, named, word } => {
                let host = self.host_name(host);
                self.machines.get_mut(&host).unwrap().state = state(word);
                self.beat(&host, named);
            }
            Event::Round => {
                for host in self.hosts.clone() {
                    self.beat(&host, true);
                }
            }
            Event::Foreign { host, mb } => {
                let host = self.host_name(host);
                self.machines.get_mut(&host).unwrap().foreign_mb = mb;
            }
            Event::Start { promise, elsewhere, told, with_lease } => {
                self.start_container(promise, elsewhere, told, with_lease);
            }
            Event::Stray { app, host, priority, told } => self.stray(app, host, priority, told),
            Event::Stop { which, failed, told } => self.stop(which, failed, told),
            Event::Dies { host, said } => {
                let host = self.host_name(host);
                let machine = self.machines.get_mut(&host).unwrap();
                machine.runs.clear();
                machine.alive = false;
                if said {
                    self.flight.push(Message::Fact(Change::Gone(host.as_str().into())));
                }
            }
            Event::Done { app, failed } => {
                let attempt = attempt(app, 1);
                for machine in self.machines.values_mut() {
                    machine.runs.retain(|id, _| id.attempt.application != attempt.application);
                }
                self.say(attempt, "", "", TaskWhat::Done { failed });
            }
            Event::Ready { app, which } => {
                let what = TaskWhat::Ready { input_paths: Vec::new(), input: Bytes(0) };
                self.say(attempt(app, 1), "g0", &format!("t{}", which % 8), what);
            }
            _ => self.wires(event),
        }
    }

    /// Two firewalls and an IPS, each of which a few jobs fill, and what is to pass them.
    pub(super) fn declaration(&self, which: u8) -> Option<Change> {
        let switches = &self.switches;
        let known = |(at, kind): (usize, &str)| BoxEntry {
            name: format!("box-{at}"),
            kind: kind.to_owned(),
            at: switches[at * (switches.len() - 1) / 2].to_string(),
            bits_per_s: 12_000_000,
            up: true,
        };
        let chain = |name: &str, sequence: &[&str]| ChainEntry {
            name: name.to_owned(),
            sequence: sequence.iter().map(|&kind| kind.to_owned()).collect(),
            ..ChainEntry::default()
        };
        let shuffle = |sequence| ChainEntry {
            group: Some("reduce".to_owned()),
            direction: Direction::In,
            ..chain("shuffle", sequence)
        };
        let first = ChainEntry {
            application: Some("job1".to_owned()),
            priority: 1,
            when_broken: WhenBroken::Open,
            ..chain("first", &["IPS"])
        };
        let chains = match which % 4 {
            0 => return Some(Change::Chains { document: Default::default(), in_use: Default::default() }),
            1 => vec![shuffle(&["FW", "IPS"])],
            2 => vec![shuffle(&["FW"]), first],
            _ => vec![shuffle(&["IPS"]), ChainEntry { priority: -1, ..chain("all", &["FW"]) }],
        };
        let boxes = [(0, "FW"), (1, "IPS"), (2, "FW")].map(known).to_vec();
        let document = Arc::new(ChainsDocument { boxes, chains, ..ChainsDocument::default() });
        Some(Change::Chains { document, in_use: Default::default() })
    }

    fn wires(&mut self, event: &Event) {
        let told = match *event {
            Event::Link { which, up } => Change::Link { link: self.link(which), up: Some(up), capacity: None },
            Event::Capacity { which, gbit } => {
                let capacity = Some(BitsPerSec(gbit * 1_000_000_000));
                Change::Link { link: self.link(which), up: None, capacity }
            }
            Event::Load { which, percent } => {
                let busy = BitsPerSec(percent * 100_000_000);
                Change::LinkLoad(self.link(which), LinkLoad::steady(busy, BitsPerSec(busy.0 / 2)))
            }
            Event::Switch { which, up } => {
                Change::Switch { name: Arc::clone(&self.switches[usize::from(which) % self.switches.len()]), up }
            }
            Event::Network => match self.network.clone() {
                Some(network) => Change::Network(Some(network)),
                None => return,
            },
            Event::OtherNetwork { which } => match &self.network {
                Some(network) => Change::Network(other_network(network, which)),
                None => return,
            },
            Event::Chains { which } => {
                let Some(declared) = self.declared.and_then(|_| self.declaration(which)) else { return };
                self.declared = Some(which);
                declared
            }
            Event::Middlebox { which, up } => {
                Change::Middlebox { name: format!("box-{}", which % 3).into(), up: Some(up), capacity: None }
            }
            Event::BoxCapacity { which, mbit } => {
                let capacity = Some(BitsPerSec(mbit * 1_000_000));
                Change::Middlebox { name: format!("box-{}", which % 3).into(), up: None, capacity }
            }
            _ => unreachable!("{event:?} is none of the outside's"),
        };
        self.flight.push(Message::Fact(told));
    }

    /// What channels do: in whatever order, or never, or more than once.
    pub(super) fn channels(&mut self, event: &Event) {
        match *event {
            Event::DeliverAll => {
                for message in std::mem::take(&mut self.flight) {
                    self.hear(message);
                }
            }
            Event::Deliver { which } if !self.flight.is_empty() => {
                let message = self.flight.remove(usize::from(which) % self.flight.len());
                self.hear(message);
            }
            Event::Lose { which } if !self.flight.is_empty() => {
                self.flight.remove(usize::from(which) % self.flight.len());
            }
            Event::Twice { which } if !self.flight.is_empty() => {
                let message = self.flight[usize::from(which) % self.flight.len()].clone();
                self.hear(message);
            }
            _ => {}
        }
    }

    fn link(&self, which: Pick) -> hintd_model::units::LinkName {
        self.links[usize::from(which) % self.links.len()].clone()
    }

    fn beat(&mut self, host: &str, named: bool) {
        if self.machines[host].alive {
            self.flight.push(Message::Fact(Change::Heartbeat(self.heartbeat(host, named))));
        }
    }

    pub(super) fn registration(&self, host: &str) -> Registration {
        let machine = &self.machines[host];
        Registration {
            labels: if machine.labelled { vec!["gpu".into()] } else { Vec::new() },
            state: machine.state,
            total: NamedResource { memory_mb: machine.mb, vcores: 8, named: Vec::new() },
            ..registration(host, &machine.rack, machine.mb)
        }
    }

    pub(super) fn heartbeat(&self, host: &str, named: bool) -> Heartbeat {
        let machine = &self.machines[host];
        let containers: Vec<NamedContainer> = machine.runs.values().map(|(container, _)| container.clone()).collect();
        let own: u64 = containers.iter().map(|container| container.size.memory_mb).sum();
        let cores: u64 = containers.iter().map(|container| container.size.vcores).sum();
        let used = NamedResource {
            memory_mb: own + machine.foreign_mb,
            vcores: cores + machine.foreign_mb / 1024,
            named: Vec::new(),
        };
        Heartbeat {
            host: host.into(),
            used,
            used_is_running: false,
            containers: named.then_some(containers),
            state: machine.state,
        }
    }

    fn start_container(&mut self, promise: Pick, elsewhere: Option<Pick>, told: bool, with_lease: bool) {
        if self.promises.is_empty() {
            return;
        }
        let Promise { lease, attempt, host, group, key, size } =
            self.promises.remove(usize::from(promise) % self.promises.len());
        let host = elsewhere.map_or(host, |other| self.host_name(other));
        self.run(&host, (attempt, key, size, group), told, with_lease.then_some(lease));
    }

    fn stray(&mut self, app: u32, host: Pick, priority: i32, told: bool) {
        let size = NamedResource { memory_mb: 1024, vcores: 1, named: Vec::new() };
        let key = SchedulerKey { priority, allocation_request_id: -1 };
        let group = format!("g{}", priority - 1).into();
        self.run(&self.host_name(host), (attempt(app, 1), key, size, group), told, None);
    }

    fn run(
        &mut self,
        host: &str,
        (attempt, key, size, group): (AttemptId, SchedulerKey, NamedResource, Arc<str>),
        told: bool,
        lease: Option<LeaseId>,
    ) {
        self.next += 1;
        let id = ContainerId { attempt, id: self.next };
        let machine = self.machines.get_mut(host).unwrap();
        if machine.alive {
            machine.runs.insert(id, (NamedContainer { id, size, key }, Arc::clone(&group)));
        }
        if told {
            let what = TaskWhat::Allocated { host: host.into(), container: id, lease };
            self.say(attempt, &group, &format!("t{}", self.next % 8), what);
        }
    }

    fn stop(&mut self, which: Pick, failed: bool, told: bool) {
        let all: Vec<(String, ContainerId)> = self
            .machines
            .iter()
            .flat_map(|(host, machine)| machine.runs.keys().map(|&id| (host.clone(), id)))
            .collect();
        let Some((host, id)) = all.get(usize::from(which) % all.len().max(1)) else { return };
        let (_, group) = self.machines.get_mut(host).unwrap().runs.remove(id).unwrap();
        if told {
            let what = TaskWhat::Finished {
                host: host.as_str().into(),
                duration: Micros::from_secs(id.id % 50),
                input: Bytes(1 << 20),
                output: Bytes(1 << 19),
                failed,
            };
            self.say(id.attempt, &group, &format!("t{}", id.id % 8), what);
        }
    }

    fn say(&mut self, attempt: AttemptId, group: &str, task: &str, what: TaskWhat) {
        let event =
            TaskEvent { attempt, group: group.into(), task: task.into(), what, recurring_key: None, at: self.now };
        self.flight.push(Message::Task(event));
    }
}

fn state(word: Word) -> NodeState {
    match word {
        Word::Running => NodeState::Running,
        Word::Unhealthy => NodeState::Unhealthy,
        Word::Decommissioning => NodeState::Decommissioning,
        Word::Shutdown => NodeState::Shutdown,
    }
}
