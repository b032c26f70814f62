//! The ledger: live leases by node, attempt and end, and the room they take.
//!
//! # Invariants
//! - The overlay's row of a node is the sum of its live leases, kind by kind.
//! - A lease is in every index or in none.

use super::generation::{HeldByAttempt, HeldContainers};
use super::lease::Lease;
use hintd_model::cluster::{Overlay, Resource, Snapshot};
use hintd_model::units::{AttemptId, ContainerId, LeaseId, NodeIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Live leases.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Boxed: ids ascend, so that a third of the map's places stays empty, and a lease has 208 bytes.
    leases: BTreeMap<LeaseId, Box<Lease>>,
    /// Ascending by id, which is oldest first.
    by_node: Vec<Vec<LeaseId>>,
    by_attempt: BTreeMap<AttemptId, BTreeSet<LeaseId>>,
    due: BTreeSet<(Timestamp, LeaseId)>,
    overlay: Overlay,
    held: HeldByAttempt,
    /// Attempts whose entry in `held` is older than their leases.
    unheld: BTreeSet<AttemptId>,
}

impl Ledger {
    /// Takes a lease in. Its id must be new.
    pub fn insert(&mut self, lease: Lease) {
        let (id, node) = (lease.id, lease.node);
        if self.by_node.len() <= node.at() {
            self.by_node.resize_with(node.at() + 1, Vec::new);
        }
        let on_node = &mut self.by_node[node.at()];
        let position = on_node.partition_point(|&other| other < id);
        on_node.insert(position, id);
        self.by_attempt.entry(lease.attempt).or_default().insert(id);
        self.due.insert((lease.expires, id));
        self.overlay.set(node, self.overlay.leased(node).plus(&lease.size));
        self.unheld.insert(lease.attempt);
        let before = self.leases.insert(id, Box::new(lease));
        debug_assert!(before.is_none(), "lease {id} was granted twice");
    }

    /// Ends a lease; `None`: it had ended.
    pub fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.by_node[lease.node.at()].retain(|&other| other != id);
        if let Some(of_attempt) = self.by_attempt.get_mut(&lease.attempt) {
            of_attempt.remove(&id);
            if of_attempt.is_empty() {
                self.by_attempt.remove(&lease.attempt);
            }
        }
        self.due.remove(&(lease.expires, id));
        self.overlay.set(lease.node, self.overlay.leased(lease.node).minus(&lease.size));
        self.unheld.insert(lease.attempt);
        Some(*lease)
    }

    /// Notes the container that YARN allocated for a lease, and until when it has to show itself. Returns the lease.
    pub fn confirm(&mut self, id: LeaseId, container: ContainerId, expires: Timestamp) -> Option<&Lease> {
        let lease = self.leases.get_mut(&id)?;
        self.unheld.insert(lease.attempt);
        lease.confirmed = Some(container);
        self.due.remove(&(lease.expires, id));
        lease.expires = expires;
        self.due.insert((expires, id));
        Some(lease)
    }

    /// A live lease.
    #[must_use]
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id).map(Box::as_ref)
    }

    /// Live leases with ids from `first` to `last`, oldest first.
    pub fn between(&self, first: LeaseId, last: LeaseId) -> impl Iterator<Item = &Lease> {
        self.leases.range(first..=last).map(|(_, lease)| &**lease)
    }

    /// Live leases, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().map(Box::as_ref)
    }

    /// So many live leases at most, newest first.
    pub fn newest(&self, most: usize) -> impl Iterator<Item = &Lease> {
        self.leases.values().rev().take(most).map(Box::as_ref)
    }

    /// Leases on a node, oldest first.
    pub fn on_node(&self, node: NodeIdx) -> impl DoubleEndedIterator<Item = &Lease> {
        self.by_node.get(node.at()).into_iter().flatten().map(|id| &*self.leases[id])
    }

    /// Leases of an attempt, oldest first.
    pub fn of_attempt(&self, attempt: AttemptId) -> impl Iterator<Item = &Lease> {
        self.by_attempt.get(&attempt).into_iter().flatten().map(|id| &*self.leases[id])
    }

    /// How many leases each attempt has that has any, ascending by attempt.
    pub fn by_attempt(&self) -> impl Iterator<Item = (usize, AttemptId)> + '_ {
        self.by_attempt.iter().map(|(&attempt, leases)| (leases.len(), attempt))
    }

    /// Whether the attempt has live leases.
    #[must_use]
    pub fn holds(&self, attempt: AttemptId) -> bool {
        self.by_attempt.contains_key(&attempt)
    }

    /// Leases whose time has passed, soonest first.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<LeaseId> {
        self.due.iter().take_while(|(expires, _)| *expires <= now).map(|(_, id)| *id).collect()
    }

    /// Nodes with leases, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIdx> {
        self.by_node.iter().enumerate().filter(|(_, leases)| !leases.is_empty()).map(|(at, _)| NodeIdx::new(at))
    }

    /// Live leases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether nothing is leased.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Room taken, by node.
    #[must_use]
    pub const fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Leases by attempt, group and node, for generations.
    pub fn held(&mut self) -> HeldByAttempt {
        for attempt in std::mem::take(&mut self.unheld) {
            let mut by_place: BTreeMap<(&Arc<str>, NodeIdx), (u32, u32)> = BTreeMap::new();
            for lease in self.of_attempt(attempt) {
                let (count, awaited) = by_place.entry((&lease.group, lease.node)).or_default();
                *count += 1;
                *awaited += u32::from(lease.confirmed.is_none());
            }
            let places = by_place.into_iter();
            let held: Arc<[HeldContainers]> = places
                .map(|((group, node), (count, awaited))| HeldContainers {
                    group: Arc::clone(group),
                    node,
                    count,
                    awaited,
                })
                .collect();
            self.held.set(&attempt, (!held.is_empty()).then_some(held));
        }
        self.held.clone()
    }
}

/// What a commit wants on a node, summed up while it is checked.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    snapshot: &'a Snapshot,
    leases: &'a Overlay,
    taken: BTreeMap<NodeIdx, Resource>,
}

impl<'a> Wanted<'a> {
    pub(crate) const fn new(snapshot: &'a Snapshot, leases: &'a Overlay) -> Self {
        Self { snapshot, leases, taken: BTreeMap::new() }
    }

    /// How many of `count` containers of `size` the node has room for; those are taken.
    pub(crate) fn take(&mut self, node: NodeIdx, size: &Resource, count: u32) -> u32 {
        if !self.snapshot.state.get(node.at()).is_some_and(|state| state.usable()) {
            return 0;
        }
        let taken = self.taken.entry(node).or_default();
        let room = self.snapshot.room(node, self.leases).minus(taken);
        let rules = &self.snapshot.rules;
        let fits = if rules.feasible(&size.times(u64::from(count)), &room) {
            count
        } else {
            count.min(rules.how_many(size, &room))
        };
        *taken = taken.plus(&size.times(u64::from(fits)));
        fits
    }
}
