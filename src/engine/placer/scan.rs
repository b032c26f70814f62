//! The scan of all nodes for those that can take a container: the hot part of every request.

use crate::cluster::{LabelBits, Overlay, Resource, SizeRules, Snapshot};
use crate::policy::Reason;
use crate::policy::problem::Exclusion;
use crate::units::{NodeIdx, RackIdx};
use smallvec::SmallVec;
use std::sync::Arc;

/// Which nodes a group may use, whatever room they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Size of a container, as YARN would allocate it.
    pub(crate) size: Resource,
    /// `None`: only nodes without labels.
    pub(crate) label: Option<LabelBits>,
    /// Ascending.
    avoid_hosts: Vec<NodeIdx>,
    /// Ascending.
    avoid_racks: Vec<RackIdx>,
}

/// What a scan found.
#[derive(Debug, Clone)]
pub(crate) struct Scanned {
    pub(crate) filter: Arc<Filter>,
    pub(crate) candidates: Arc<[NodeIdx]>,
    pub(crate) exclusions: Vec<Exclusion>,
}

/// Scans, each kind of filter once.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    snapshot: &'a Snapshot,
    leases: &'a Overlay,
    done: Vec<Scanned>,
}

/// Reasons in the order in which they are looked at.
const REASONS: [Reason; 7] = [
    Reason::NodeNotRunning,
    Reason::LabelMismatch,
    Reason::AvoidedHost,
    Reason::AvoidedRack,
    Reason::NodeTooSmall,
    Reason::NoRoom,
    Reason::Leased,
];

/// Examples named for a reason.
const EXAMPLES: usize = 3;

impl Filter {
    pub(crate) fn new(
        size: Resource,
        label: Option<LabelBits>,
        mut avoid_hosts: Vec<NodeIdx>,
        mut avoid_racks: Vec<RackIdx>,
    ) -> Self {
        avoid_hosts.sort_unstable();
        avoid_racks.sort_unstable();
        Self { size, label, avoid_hosts, avoid_racks }
    }

    /// Why the node can never take the group's containers, its size aside.
    pub(crate) fn rules_out(&self, snapshot: &Snapshot, node: NodeIdx) -> Option<Reason> {
        let has = snapshot.statics.labels[node.at()].0;
        let labelled = self.label.map_or(has == 0, |label| has & label.0 != 0);
        if !labelled {
            return Some(Reason::LabelMismatch);
        }
        if !self.avoid_hosts.is_empty() && self.avoid_hosts.binary_search(&node).is_ok() {
            return Some(Reason::AvoidedHost);
        }
        if !self.avoid_racks.is_empty() && self.avoid_racks.binary_search(&snapshot.rack(node)).is_ok() {
            return Some(Reason::AvoidedRack);
        }
        None
    }

    /// Nodes that could take the group's containers if they were empty and running, ascending.
    pub(crate) fn eligible<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = NodeIdx> + 'a {
        let there = |node: &NodeIdx| !snapshot.state[node.at()].gone() && !snapshot.statics.total[node.at()].is_zero();
        snapshot.statics.indexes().filter(there).filter(|&node| self.rules_out(snapshot, node).is_none())
    }
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(snapshot: &'a Snapshot, leases: &'a Overlay) -> Self {
        Self { snapshot, leases, done: Vec::new() }
    }

    /// Candidates and exclusions under `filter`.
    pub(crate) fn scan(&mut self, filter: Filter) -> &Scanned {
        let position = self.done.iter().position(|scanned| *scanned.filter == filter).unwrap_or_else(|| {
            let scanned = scan(self.snapshot, self.leases, filter);
            self.done.push(scanned);
            self.done.len() - 1
        });
        &self.done[position]
    }
}

fn scan(snapshot: &Snapshot, leases: &Overlay, filter: Filter) -> Scanned {
    let mut candidates = Vec::with_capacity(snapshot.nodes());
    let mut counts = [0_u32; REASONS.len()];
    let mut examples: [SmallVec<[NodeIdx; EXAMPLES]>; REASONS.len()] = Default::default();
    for at in 0..snapshot.nodes() {
        let node = NodeIdx(at as u32);
        let Some(reason) = reason(snapshot, leases, &filter, node) else {
            candidates.push(node);
            continue;
        };
        let reason = reason as usize;
        counts[reason] += 1;
        if examples[reason].len() < EXAMPLES {
            examples[reason].push(node);
        }
    }
    let found = REASONS.into_iter().zip(counts).zip(examples).filter(|((_, count), _)| *count > 0);
    Scanned {
        filter: Arc::new(filter),
        candidates: candidates.into(),
        exclusions: found.map(|((reason, count), examples)| Exclusion { reason, count, examples }).collect(),
    }
}

/// Why the node can't take one more container now.
fn reason(snapshot: &Snapshot, leases: &Overlay, filter: &Filter, node: NodeIdx) -> Option<Reason> {
    if !snapshot.state[node.at()].usable() {
        return Some(Reason::NodeNotRunning);
    }
    if let Some(reason) = filter.rules_out(snapshot, node) {
        return Some(reason);
    }
    let rules: &SizeRules = &snapshot.rules;
    let free = snapshot.unoccupied(node);
    if rules.feasible(&filter.size, &free.minus(&leases.leased(node))) {
        return None;
    }
    Some(if !rules.feasible(&filter.size, &snapshot.statics.total[node.at()]) {
        Reason::NodeTooSmall
    } else if !rules.feasible(&filter.size, &free) {
        Reason::NoRoom
    } else {
        Reason::Leased
    })
}
