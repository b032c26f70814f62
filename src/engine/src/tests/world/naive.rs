//! What the daemon was told, kept as plainly as it can be: an oracle for nodes, written without looking at the model's.

use hintd_model::cluster::{Calculator, Change, Heartbeat, NamedResource, NodeState, Registration, SizeRules};
use hintd_model::units::{ContainerId, Micros, SchedulerKey, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// MB and vcores.
pub(super) type Amount = (u64, u64);

pub(super) fn amount(of: &NamedResource) -> Amount {
    (of.memory_mb, of.vcores)
}

pub(super) fn sum(a: Amount, b: Amount) -> Amount {
    (a.0 + b.0, a.1 + b.1)
}

/// Whether so much is within so much, in the kinds that YARN's calculator looks at.
pub(super) fn within(a: Amount, b: Amount, rules: &SizeRules) -> bool {
    a.0 <= b.0 && (rules.calculator == Calculator::Default || a.1 <= b.1)
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) total: Amount,
    pub(super) rack: String,
    pub(super) labels: BTreeSet<String>,
    pub(super) state: NodeState,
    used: Amount,
    pub(super) containers: BTreeMap<ContainerId, (Amount, SchedulerKey)>,
    heard: Timestamp,
    named: Option<Timestamp>,
}

impl Node {
    pub(super) fn occupied(&self) -> Amount {
        let known = self.containers.values().fold((0, 0), |all, (size, _)| sum(all, *size));
        (known.0.max(self.used.0), known.1.max(self.used.1))
    }

    pub(super) fn free(&self) -> Amount {
        let occupied = self.occupied();
        (self.total.0.saturating_sub(occupied.0), self.total.1.saturating_sub(occupied.1))
    }

    fn leave(&mut self, state: NodeState) {
        (self.state, self.used, self.named) = (state, (0, 0), None);
        self.containers.clear();
    }
}

/// Nodes by host, and what has become of them since the last settling.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    pub(super) all: BTreeMap<String, Node>,
    /// Hosts that said anything or went silent.
    pub(super) touched: BTreeSet<String>,
    /// Hosts that left, if only for a moment.
    pub(super) left: BTreeSet<String>,
    /// Containers that were not there before, by host; of reports that name none: any number.
    pub(super) appeared: BTreeMap<String, usize>,
}

impl Nodes {
    /// Whether the fact is taken; what is none of a node's is not looked at.
    pub(super) fn take(&mut self, change: &Change, now: Timestamp) -> Option<bool> {
        match change {
            Change::Register(registration) => self.register(registration, now),
            Change::Heartbeat(heartbeat) => return Some(self.beat(heartbeat, now)),
            Change::Gone(host) => {
                let Some(node) = self.all.get_mut(host.as_str()) else { return Some(false) };
                node.leave(NodeState::Decommissioned);
                self.left.insert(host.to_string());
                self.touched.insert(host.to_string());
            }
            _ => return None,
        }
        Some(true)
    }

    fn register(&mut self, registration: &Registration, now: Timestamp) {
        let host = registration.host.to_string();
        self.touched.insert(host.clone());
        let labels = registration.labels.iter().map(ToString::to_string).collect();
        let (total, rack) = (amount(&registration.total), registration.rack.to_string());
        let empty = Node {
            total,
            rack: String::new(),
            labels: BTreeSet::new(),
            state: NodeState::Unregistered,
            used: (0, 0),
            containers: BTreeMap::new(),
            heard: now,
            named: None,
        };
        let node = self.all.entry(host).or_insert(empty);
        (node.total, node.rack, node.labels, node.heard) = (total, rack, labels, now);
        if registration.state.gone() {
            node.leave(registration.state);
            self.left.insert(registration.host.to_string());
        } else {
            node.state = registration.state;
        }
    }

    fn beat(&mut self, heartbeat: &Heartbeat, now: Timestamp) -> bool {
        let Some(node) = self.all.get_mut(heartbeat.host.as_str()) else { return false };
        if matches!(node.state, NodeState::Decommissioned | NodeState::Shutdown) {
            return false;
        }
        let host = heartbeat.host.to_string();
        self.touched.insert(host.clone());
        node.heard = now;
        if heartbeat.state.gone() {
            node.leave(heartbeat.state);
            self.left.insert(host);
            return true;
        }
        (node.state, node.used) = (heartbeat.state, amount(&heartbeat.used));
        let remembered = node.named.is_some_and(|at| now.since(at) <= Micros::from_secs(60));
        match &heartbeat.containers {
            Some(containers) => {
                node.named = Some(now);
                let before = std::mem::take(&mut node.containers);
                node.containers = containers.iter().map(|one| (one.id, (amount(&one.size), one.key))).collect();
                let new = node.containers.keys().filter(|id| !before.contains_key(id)).count();
                *self.appeared.entry(host).or_default() += new;
            }
            None if remembered => {}
            None => {
                node.containers.clear();
                self.appeared.insert(host, 1_000_000);
            }
        }
        true
    }

    /// What follows from silence; `leased`: a host that never registered has leases.
    pub(super) fn silence(&mut self, stale: Micros, lost: Micros, start: Timestamp, now: Timestamp) {
        for (host, node) in &mut self.all {
            let silence = now.since(node.heard.max(start));
            let there = !node.state.gone();
            if there && silence > lost {
                node.leave(NodeState::Lost);
                self.left.insert(host.clone());
                self.touched.insert(host.clone());
            } else if node.state == NodeState::Running && silence > stale {
                node.state = NodeState::Stale;
            }
        }
    }
}
