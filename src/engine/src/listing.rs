//! What operators list: live leases and attempts, filtered and bounded.

use super::attempts::{Attempt, Attempts};
use super::engine::Engine;
use super::holding::Holding;
use super::lease::Lease;
use super::ledger::Ledger;
use super::results::{AttemptHeld, LeaseHeld};
use hintd_model::cluster::{NamedResource, Snapshot};
use hintd_model::units::{ApplicationId, AttemptId, LeaseId, NodeIdx, QueueName};
use std::collections::BTreeSet;

/// Which leases.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaseFilter {
    /// Only of this application.
    pub application: Option<ApplicationId>,
    /// Only of this queue; empty: of any.
    pub queue: String,
    /// Only on hosts whose names contain this.
    pub host: String,
    /// At most so many.
    pub most: usize,
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Promised<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) attempts: &'a Attempts,
    pub(crate) holding: &'a Holding,
    pub(crate) snapshot: &'a Snapshot,
}

impl Promised<'_> {
    fn queue(&self, attempt: AttemptId) -> Option<&QueueName> {
        self.attempts.get(attempt)?.requests.back().map(|request| &request.queue)
    }

    fn attempt(&self, attempt: AttemptId, known: &Attempt) -> AttemptHeld {
        AttemptHeld {
            attempt,
            leases: self.ledger.of_attempt(attempt).count(),
            requests: known.requests.len(),
            legacy: known.secrets.nonce.is_none(),
            queue: self.queue(attempt).cloned(),
            first: known.first_asked(),
            touched: known.asked().at,
            asked_before_start: known.asked().before,
            turn: self.holding.tally(attempt).copied(),
        }
    }

    /// Newest first.
    fn newest(&self, mut ids: Vec<LeaseId>, most: usize) -> Vec<LeaseHeld> {
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids.iter().take(most).filter_map(|id| self.ledger.get(*id)).map(|lease| self.held(lease)).collect()
    }

    fn held(&self, lease: &Lease) -> LeaseHeld {
        LeaseHeld {
            id: lease.id,
            decision: lease.decision,
            request: lease.request.clone(),
            attempt: lease.attempt,
            queue: self.queue(lease.attempt).cloned(),
            group: lease.group.clone(),
            host: self.snapshot.host(lease.node).clone(),
            rack: self.snapshot.statics.racks[self.snapshot.rack(lease.node).at()].clone(),
            size: NamedResource::from_row(&lease.size, &self.snapshot.kinds),
            expires: lease.expires,
            container: lease.confirmed,
        }
    }

    /// Ids of the leases that are meant. The narrowest of the ledger's indexes is walked, and never one lease twice.
    fn meant(&self, filter: &LeaseFilter) -> Vec<LeaseId> {
        let in_queue = |attempt: AttemptId| {
            filter.queue.is_empty() || self.queue(attempt).is_some_and(|queue| queue.as_str() == filter.queue)
        };
        let on_host = |node: NodeIdx| self.snapshot.host(node).as_str().contains(&filter.host);
        if filter.application.is_none() && !filter.host.is_empty() {
            let nodes = self.ledger.nodes().filter(|node| on_host(*node));
            let leases = nodes.flat_map(|node| self.ledger.on_node(node)).filter(|lease| in_queue(lease.attempt));
            return leases.map(|lease| lease.id).collect();
        }
        let of_application = |attempt: &AttemptId| filter.application.is_none_or(|meant| attempt.application == meant);
        let attempts = self.attempts.ids().filter(|attempt| of_application(attempt) && in_queue(*attempt));
        let leases = attempts.flat_map(|attempt| self.ledger.of_attempt(attempt));
        leases.filter(|lease| on_host(lease.node)).map(|lease| lease.id).collect()
    }
}

impl Engine {
    /// Live leases, newest first, and how many there are in all of those that are meant.
    #[must_use]
    pub fn leases_held(&self, filter: &LeaseFilter) -> (Vec<LeaseHeld>, usize) {
        let promised = self.promised();
        let all = filter.application.is_none() && filter.queue.is_empty() && filter.host.is_empty();
        if all {
            let newest = promised.ledger.newest(filter.most).map(|lease| lease.id).collect();
            return (promised.newest(newest, filter.most), promised.ledger.len());
        }
        let meant = promised.meant(filter);
        let total = meant.len();
        (promised.newest(meant, filter.most), total)
    }

    /// Applications with such a lease; `most` counts for nothing.
    #[must_use]
    pub fn applications_with_leases(&self, filter: &LeaseFilter) -> BTreeSet<ApplicationId> {
        let promised = self.promised();
        let leases = promised.meant(filter);
        leases.iter().filter_map(|id| promised.ledger.get(*id)).map(|lease| lease.attempt.application).collect()
    }

    /// Attempts that asked and are not over, ascending, and what each holds.
    #[must_use]
    pub fn attempts_held(&self) -> Vec<AttemptHeld> {
        let promised = self.promised();
        promised.attempts.iter().map(|(attempt, known)| promised.attempt(attempt, known)).collect()
    }

    /// The `most` of these that hold most leases, and of as many the newest first; and how many there are in all. Looks closely
    /// at none of the others: a page asks each second, and there may be tens of thousands.
    #[must_use]
    pub fn attempts_that_hold_most(&self, most: usize) -> (Vec<AttemptHeld>, usize) {
        let promised = self.promised();
        let mut ranked: Vec<(usize, AttemptId)> =
            promised.ledger.by_attempt().filter(|(_, attempt)| promised.attempts.get(*attempt).is_some()).collect();
        if ranked.len() > most {
            ranked.select_nth_unstable_by(most, |one, other| other.cmp(one));
            ranked.truncate(most);
        }
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        let left = most - ranked.len();
        let others = promised.attempts.ids().rev().filter(|attempt| !promised.ledger.holds(*attempt)).take(left);
        let ids = ranked.into_iter().map(|(_, attempt)| attempt).chain(others);
        let held = ids.filter_map(|attempt| Some(promised.attempt(attempt, promised.attempts.get(attempt)?)));
        (held.collect(), promised.attempts.len())
    }
}
