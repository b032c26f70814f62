//! What facts do to leases, attempts and routes, at the moment in which their snapshot becomes current.

use super::attempts;
use super::binding;
use super::decision::RememberedRequest;
use super::effects::{Counter, Effect, FollowBody};
use super::engine::Engine;
use super::generation::Release;
use super::lease::{Lease, LeaseEnd};
use super::monitor;
use hintd_model::cluster::{Applied, NodeState, ReportedContainer, Resource};
use hintd_model::units::{AttemptId, LeaseId, NodeIdx, RequestId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A heartbeat, as the model applied it.
struct Report {
    was: NodeState,
    appeared: Vec<ReportedContainer>,
    ended: Vec<ReportedContainer>,
    named: bool,
    used: (Resource, Resource),
}

impl Engine {
    /// Makes the model's present the snapshot that commits are checked against, and lets follow what follows.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let before = std::mem::replace(&mut self.snapshot, self.model.publish(now));
        let moved = !Arc::ptr_eq(&before.topology, &self.snapshot.topology);
        self.changed = true;
        self.reported.resize(self.snapshot.nodes(), false);
        self.naming.resize(self.snapshot.nodes(), false);
        let (mut networks, mut chains) = (Vec::new(), Vec::new());
        let mut looked_at = BTreeSet::new();
        for (applied, cause) in std::mem::take(&mut self.pending) {
            match applied {
                Applied::Quiet => {}
                Applied::NodeUp { node, was } => {
                    self.note_back(was);
                    looked_at.insert(node);
                }
                Applied::NodeReported { node, was, appeared, ended, named, used, .. } => {
                    self.node_reported(node, &Report { was, appeared, ended, named, used }, now);
                    looked_at.insert(node);
                }
                Applied::NodeGone { node, containers } => self.node_left(node, &containers, "node_gone", now),
                Applied::NetworkChanged { links } => networks.push((links, cause)),
                Applied::ChainsChanged { boxes } => chains.push((boxes, cause)),
            }
        }
        for &node in &looked_at {
            self.withdraw_pushed_out(node, now);
        }
        self.network_changed(networks, moved, now);
        let whole = chains.iter().rposition(|(boxes, _)| boxes.is_empty());
        for (boxes, cause) in chains.into_iter().skip(whole.unwrap_or(0)) {
            self.chains_changed(&boxes, cause, now);
        }
        self.offer(&looked_at, now);
    }

    fn note_back(&mut self, was: NodeState) {
        if matches!(was, NodeState::Stale | NodeState::Lost) {
            self.effects.count(Counter::NodesBack, 1);
        }
    }

    fn node_reported(&mut self, node: NodeIdx, report: &Report, now: Timestamp) {
        self.note_back(report.was);
        for container in &report.ended {
            self.expected.remove(node, container.id);
        }
        self.dispatched_vanished(&report.ended, now);
        let rules = Arc::clone(&self.snapshot.rules);
        for container in &report.appeared {
            self.expect_end(node, container, now);
            let lease = binding::bound_by(&self.ledger, node, container, &rules);
            // After a start every container appears, those that ran before it as well.
            if lease.is_some() || self.reported[node.at()] {
                self.hint_met(node, container, lease);
                self.dispatched_appeared(node, container, lease, now);
                self.move_met(node, container, now);
            }
            if let Some(id) = lease {
                self.end_lease(id, LeaseEnd::Bound, now);
            }
        }
        self.naming[node.at()] = report.named;
        // The first report after a start tells what ran before it, too: nothing rose.
        let first = !std::mem::replace(&mut self.reported[node.at()], true);
        if !report.named && !first {
            for id in binding::bound_by_use(&self.ledger, node, report.used, &rules) {
                self.hint_met_unseen(id, now);
                self.end_lease(id, LeaseEnd::Bound, now);
            }
        }
    }

    fn expect_end(&mut self, node: NodeIdx, container: &ReportedContainer, now: Timestamp) {
        let known = self.attempts.get(container.id.attempt);
        let Some((request, group)) = known.and_then(|known| known.request_of(container.key)) else { return };
        let job = request.recurring_key.as_ref().and_then(|key| self.history.view().get(key));
        let group = job.and_then(|job| job.groups.get(&request.groups[group].name));
        if let Some(duration) = group.and_then(super::history::GroupHistory::duration) {
            self.expected.insert(node, container.id, Release { at: now.plus(duration), size: container.size });
        }
    }

    fn withdraw_pushed_out(&mut self, node: NodeIdx, now: Timestamp) {
        let out = binding::pushed_out(&self.ledger, &self.snapshot, node);
        self.withdraw(node, out, "foreign_use", now);
    }

    /// Ends leases of one node and tells their applications.
    fn withdraw(&mut self, node: NodeIdx, leases: Vec<LeaseId>, reason: &'static str, now: Timestamp) -> Vec<Lease> {
        let ended: Vec<Lease> =
            leases.into_iter().filter_map(|id| self.end_lease(id, LeaseEnd::Withdrawn, now)).collect();
        let mut by_attempt: BTreeMap<AttemptId, Vec<LeaseId>> = BTreeMap::new();
        for lease in &ended {
            by_attempt.entry(lease.attempt).or_default().push(lease.id);
        }
        for (attempt, leases) in by_attempt {
            let message = FollowBody::Withdraw { leases, host: self.snapshot.host(node).clone(), reason };
            self.effects.out.push(Effect::Follow { attempt, message, cause: reason });
        }
        ended
    }

    /// A node is gone: its leases end, and what ran there or was to run there is placed anew, once.
    pub(super) fn node_left(
        &mut self,
        node: NodeIdx,
        containers: &[ReportedContainer],
        cause: &'static str,
        now: Timestamp,
    ) {
        self.effects.count(Counter::NodesLost, 1);
        self.reported[node.at()] = false;
        for container in containers {
            self.expected.remove(node, container.id);
        }
        self.flows_left(node);
        let leases: Vec<LeaseId> = self.ledger.on_node(node).map(|lease| lease.id).collect();
        let dispatched: BTreeSet<LeaseId> = leases.iter().copied().filter(|&id| self.dispatching.holds(id)).collect();
        let mut ended = self.withdraw(node, leases, cause, now);
        ended.retain(|lease| !dispatched.contains(&lease.id)); // their tasks wait again
        let mut hit: BTreeMap<(AttemptId, RequestId), BTreeMap<usize, u32>> = BTreeMap::new();
        let mut unknown = 0;
        for container in containers {
            let attempt = container.id.attempt;
            let waits_again = self.dispatched_lost(container.id, now);
            let Some(known) = self.attempts.get_mut(attempt) else {
                unknown += 1;
                continue;
            };
            let Some((request, group)) = known.request_of(container.key) else {
                unknown += 1;
                continue;
            };
            let key = (attempt, request.id.clone());
            if known.replaced(container.id) && !waits_again {
                *hit.entry(key).or_default().entry(group).or_default() += 1;
            }
        }
        for lease in ended {
            let waits_again = lease.confirmed.is_some_and(|container| self.dispatched_lost(container, now));
            // A confirmed lease's container never showed itself; should it, it is not to be placed again.
            let Some(known) = self.attempts.get_mut(lease.attempt) else { continue };
            let Some(request) = known.request(&lease.request) else { continue };
            let Some(group) = request.groups.iter().position(|group| group.name == lease.group) else { continue };
            if lease.confirmed.is_none_or(|container| known.replaced(container)) && !waits_again {
                *hit.entry((lease.attempt, lease.request)).or_default().entry(group).or_default() += 1;
            }
        }
        self.effects.count(Counter::TasksUnknown, unknown);
        self.replace(node, hit, cause);
    }

    fn replace(
        &mut self,
        node: NodeIdx,
        hit: BTreeMap<(AttemptId, RequestId), BTreeMap<usize, u32>>,
        cause: &'static str,
    ) {
        let host = self.snapshot.host(node).clone();
        for ((attempt, id), groups) in hit {
            let known = self.attempts.get_mut(attempt).expect("hits are counted by known attempts");
            let request = known.request(&id).cloned().expect("hits are counted by remembered requests");
            let answers = &self.answers;
            let taken =
                |id: &RequestId| answers.contains(id) || known.has_replacement(id) || known.request(id).is_some();
            let again = Arc::new(monitor::replacement(&request, &groups, &host, taken));
            known.replaces_by(again.id.clone());
            self.effects.count(Counter::TasksReplaced, again.containers());
            self.effects.out.push(Effect::Replace { request: again, cause, node: host.clone() });
        }
    }

    /// Remembers a request of an attempt, in memory and, if `written`, in the journal. Its ask table was answered
    /// and is the application's to know: placing anew makes rows from groups.
    pub(super) fn remember(&mut self, request: &RememberedRequest, written: bool) {
        let most = self.settings.requests_per_attempt;
        let Some(known) = self.attempts.get_mut(request.attempt) else { return };
        let kept = if request.asks.is_empty() { Arc::clone(request) } else { Arc::new(request.without_asks()) };
        if written {
            self.effects.journal.push(attempts::put_request(&kept));
        }
        for gone in known.remember(kept, most) {
            self.effects.journal.push(attempts::delete_request(request.attempt, &gone));
        }
    }
}
