//! The scan of all nodes for those that can take a container: the hot part of every request.

use crate::holding::FabricScans;
use hintd_model::cluster::{LabelBits, Overlay, Resource, SizeRules, Snapshot};
use hintd_model::units::{NodeIdx, RackIdx};
use hintd_policy::problem::Exclusion;
use hintd_policy::terms::rack_rates::RackRates;
use hintd_policy::{Reason, load};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

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
    /// Of the snapshot.
    known: &'a SnapshotScans,
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

    /// All that keeps the node from ever taking the group's containers, its size aside.
    pub(crate) fn all_against(&self, snapshot: &Snapshot, node: NodeIdx) -> impl Iterator<Item = Reason> {
        let has = snapshot.statics.labels[node.at()].0;
        let label = !self.label.map_or(has == 0, |label| has & label.0 != 0);
        let host = self.avoid_hosts.binary_search(&node).is_ok();
        let rack = self.avoid_racks.binary_search(&snapshot.rack(node)).is_ok();
        let all = [(label, Reason::LabelMismatch), (host, Reason::AvoidedHost), (rack, Reason::AvoidedRack)];
        all.into_iter().filter_map(|(against, reason)| against.then_some(reason))
    }

    /// Nodes that could take the group's containers if they were empty and running, ascending.
    pub(crate) fn eligible<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = NodeIdx> + 'a {
        let there = |node: &NodeIdx| !snapshot.state[node.at()].gone() && !snapshot.statics.total[node.at()].is_zero();
        snapshot.statics.indexes().filter(there).filter(|&node| self.rules_out(snapshot, node).is_none())
    }
}

/// What requests read again and again of one snapshot, worked out once; a function of that snapshot alone.
#[derive(Debug, Default)]
pub struct SnapshotScans {
    loads: OnceLock<Vec<u32>>,
    /// What racks' uplinks can carry beside what is measured on them.
    rates: OnceLock<RackRates>,
    fabric: FabricScans,
    /// Scans without leases, for the first few kinds of filter. More kinds between two heartbeats are rare, and
    /// are scanned anew each time.
    scans: [OnceLock<Scanned>; SCANS_KEPT],
}

/// Kinds of filter remembered for a snapshot: 20 KiB each at 5,000 nodes.
const SCANS_KEPT: usize = 8;

impl SnapshotScans {
    /// Load by node without leases.
    pub(crate) fn loads(&self, snapshot: &Snapshot) -> &[u32] {
        self.loads.get_or_init(|| load::loads(snapshot))
    }

    /// What racks' uplinks can carry beside what is measured on them.
    pub(crate) fn rates(&self, snapshot: &Snapshot) -> &RackRates {
        self.rates.get_or_init(|| RackRates::of(snapshot))
    }

    /// What turns of heavy shuffles hang on.
    pub(crate) const fn fabric(&self) -> &FabricScans {
        &self.fabric
    }

    /// The scan without leases.
    fn scan(&self, snapshot: &Snapshot, filter: Filter) -> Scanned {
        let none = Overlay::default();
        for kept in &self.scans {
            // Of two that come at once one scans, and the other waits for it.
            let kept = kept.get_or_init(|| scan(snapshot, &none, filter.clone()));
            if *kept.filter == filter {
                return kept.clone();
            }
        }
        scan(snapshot, &none, filter)
    }
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(snapshot: &'a Snapshot, leases: &'a Overlay, known: &'a SnapshotScans) -> Self {
        Self { snapshot, leases, known, done: Vec::new() }
    }

    /// Candidates and exclusions under `filter`.
    pub(crate) fn scan(&mut self, filter: Filter) -> &Scanned {
        let position = self.done.iter().position(|scanned| *scanned.filter == filter).unwrap_or_else(|| {
            let scanned = without_leased(self.snapshot, self.leases, self.known.scan(self.snapshot, filter));
            self.done.push(scanned);
            self.done.len() - 1
        });
        &self.done[position]
    }
}

/// The scan with leases, from the one without: only nodes with leases can differ, and only by being too full.
fn without_leased(snapshot: &Snapshot, leases: &Overlay, mut scanned: Scanned) -> Scanned {
    let full = |&node: &NodeIdx| {
        let room = snapshot.room(node, leases);
        !snapshot.rules.feasible(&scanned.filter.size, &room) && scanned.candidates.binary_search(&node).is_ok()
    };
    let full: Vec<NodeIdx> = leases.nodes().filter(full).collect();
    if full.is_empty() {
        return scanned;
    }
    let mut left = Vec::with_capacity(scanned.candidates.len() - full.len());
    let mut next = full.iter().peekable();
    for &node in scanned.candidates.iter() {
        if next.next_if_eq(&&node).is_none() {
            left.push(node);
        }
    }
    scanned.candidates = left.into();
    let examples = full.iter().copied().take(EXAMPLES).collect();
    scanned.exclusions.push(Exclusion { reason: Reason::Leased, count: full.len() as u32, examples });
    scanned
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

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::NodeState;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;
    use hintd_policy::sample::cluster;
    use proptest::prelude::*;

    const UNIT: Resource = Resource::new(1024, 1);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_kept_scan_and_the_leases_say_what_a_scan_with_leases_says(
            seed in any::<u64>(), sizes in prop::collection::vec((1_u64..6, prop::collection::vec(0_u32..80, 0..4)), 1..20),
            leased in prop::collection::vec((0_u32..80, 0_u64..6), 0..30),
        ) {
            let spec = TreeSpec { racks: 8, hosts_per_rack: 10, ..TreeSpec::default() };
            let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
            sample.occupy(UNIT, 4, seed);
            sample.snapshot.state[(seed % 80) as usize] = NodeState::Lost;
            for (node, units) in leased {
                sample.leases.set(NodeIdx(node), UNIT.times(units));
            }
            let snapshot = &sample.snapshot;
            let known = SnapshotScans::default();
            let mut scanner = Scanner::new(snapshot, &sample.leases, &known);
            for (units, avoid) in sizes {
                let avoid: Vec<NodeIdx> = avoid.into_iter().map(NodeIdx).collect();
                let filter = Filter::new(UNIT.times(units), None, avoid, vec![RackIdx(2)]);
                let expected = scan(snapshot, &sample.leases, filter.clone());
                let found = scanner.scan(filter);
                prop_assert_eq!(&found.candidates, &expected.candidates);
                prop_assert_eq!(&found.exclusions, &expected.exclusions);
            }
        }
    }
}
