//! What facts do, at the moment in which their snapshot becomes current; those of nodes to leases and attempts here.

use super::attempt_end::AttemptHandler;
use super::binding;
use super::effects::{Counter, Effect, Effects};
use super::engine::Engine;
use super::facts::PendingFact;
use super::generation::Release;
use super::history::History;
use super::lease::{Lease, LeaseEnd};
use super::monitor;
use super::release::Expected;
use super::routes::Cause;
use super::worth::book::Worth;
use hintd_model::cluster::{Applied, NodeState, ReportedContainer, Resource};
use hintd_model::units::{AttemptId, BoxIdx, LeaseId, LinkIdx, NodeIdx, RequestId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Engine {
    /// Makes the model's present the snapshot that commits are checked against, and lets follow what follows.
    pub(crate) fn apply_facts(&mut self, now: Timestamp) {
        let (before, pending) = self.publish_snapshot(now);
        let moved = !Arc::ptr_eq(&before.topology, &self.current_snapshot().topology);
        let Consequences { looked_at, networks, chains } = self.apply_to_nodes(pending, now);
        for &node in &looked_at {
            self.node_handler().withdraw_pushed_out(node, now);
        }
        let mut routes = self.route_handler();
        routes.network_changed(networks, moved, now);
        let whole = chains.iter().rposition(|(boxes, _)| boxes.is_empty());
        for (boxes, cause) in chains.into_iter().skip(whole.unwrap_or(0)) {
            routes.chains_changed(&boxes, cause, now);
        }
        self.commit_handler().offer(&looked_at, now);
    }

    /// When a node was last heard.
    #[must_use]
    pub fn last_heard(&self, node: NodeIdx) -> Option<Timestamp> {
        self.facts().model.last_heard(node)
    }

    /// Names of replicas that no node claims: the first few, and how many there are.
    #[must_use]
    pub fn unknown_names(&self) -> (Vec<String>, u64) {
        self.facts().model.unknown_names()
    }

    fn apply_to_nodes(&mut self, pending: Vec<PendingFact>, now: Timestamp) -> Consequences {
        let mut left = Consequences::default();
        for PendingFact { applied, cause } in pending {
            match applied {
                Applied::Quiet => {}
                Applied::NodeUp { node, was } => {
                    self.node_handler().node_up(was);
                    left.looked_at.insert(node);
                }
                Applied::NodeReported { node, was, appeared, ended, named, used, .. } => {
                    let report = NodeReport { was, appeared, ended, named, used };
                    self.node_handler().node_reported(node, &report, now);
                    left.looked_at.insert(node);
                }
                Applied::NodeGone { node, containers } => {
                    self.node_handler().node_left(node, &containers, "node_gone", now);
                }
                Applied::NetworkChanged { links } => left.networks.push((links, cause)),
                Applied::ChainsChanged { boxes } => left.chains.push((boxes, cause)),
            }
        }
        left
    }
}

/// What facts came to that concerns more than one node.
#[derive(Debug, Default)]
struct Consequences {
    /// Nodes that reported.
    looked_at: BTreeSet<NodeIdx>,
    networks: Vec<(Vec<LinkIdx>, Option<Cause>)>,
    chains: Vec<(Vec<BoxIdx>, Option<Cause>)>,
}

/// A heartbeat, as the model applied it.
pub(crate) struct NodeReport {
    pub(crate) was: NodeState,
    pub(crate) appeared: Vec<ReportedContainer>,
    pub(crate) ended: Vec<ReportedContainer>,
    pub(crate) named: bool,
    pub(crate) used: (Resource, Resource),
}

/// How nodes have reported since the start.
#[derive(Debug, Default)]
pub(crate) struct NodeReports {
    /// Nodes whose first report was seen: only from then on does a rise of use mean something.
    reported: Vec<bool>,
    /// Nodes whose last report named its containers; means something where one was seen.
    naming: Vec<bool>,
}

impl NodeReports {
    /// Has a row for each node.
    pub(crate) fn resize(&mut self, nodes: usize) {
        self.reported.resize(nodes, false);
        self.naming.resize(nodes, false);
    }

    /// Whether the node has reported, and does not name its containers.
    pub(crate) fn names_none(&self, node: NodeIdx) -> bool {
        let is = |known: &[bool]| known.get(node.at()).copied().unwrap_or(false);
        is(&self.reported) && !is(&self.naming)
    }
}

/// Containers that failed with their node, by group: what is to be placed anew of each request.
type LostContainers = BTreeMap<(AttemptId, RequestId), BTreeMap<usize, u32>>;

/// Nodes that report, and nodes that are gone: containers that came end leases and tasks, what was lost is placed anew.
/// Beside what [`AttemptHandler`] borrows it writes how nodes have reported and which containers are expected to end, and
/// reads the history, and who is held out.
pub(crate) struct NodeHandler<'e> {
    pub(crate) attempts: AttemptHandler<'e>,
    pub(crate) reports: &'e mut NodeReports,
    pub(crate) expected: &'e mut Expected,
    pub(crate) history: &'e History,
    pub(crate) worth: &'e Worth,
}

impl NodeHandler<'_> {
    fn effects(&mut self) -> &mut Effects {
        &mut self.attempts.leases.out.effects
    }

    /// A node registered, or came back.
    pub(crate) fn node_up(&mut self, was: NodeState) {
        if matches!(was, NodeState::Stale | NodeState::Lost) {
            self.effects().count(Counter::NodesBack, 1);
        }
    }

    /// A node reported.
    pub(crate) fn node_reported(&mut self, node: NodeIdx, report: &NodeReport, now: Timestamp) {
        self.node_up(report.was);
        for container in &report.ended {
            self.expected.remove(node, container.id);
            self.attempts.arrivals.ended(container.id);
        }
        self.attempts.leases.dispatch().vanished(&report.ended, now);
        for container in &report.appeared {
            self.appeared(node, container, now);
        }
        self.reports.naming[node.at()] = report.named;
        // The first report after a start tells what ran before it, too: nothing rose.
        let first = !std::mem::replace(&mut self.reports.reported[node.at()], true);
        if !report.named && !first {
            self.use_rose(node, report.used, now);
        }
    }

    fn appeared(&mut self, node: NodeIdx, container: &ReportedContainer, now: Timestamp) {
        self.expect_end(node, container, now);
        let leases = &mut self.attempts.leases;
        let lease = binding::bound_by(leases.ledger, node, container, &leases.snapshot.rules);
        // After a start every container appears, those that ran before it as well.
        if lease.is_some() || self.reports.reported[node.at()] {
            leases.adherence().met(node, container, lease);
            leases.dispatch().appeared(node, container, lease, now);
            if lease.is_none()
                && let Some(known) = self.attempts.known.get_mut(container.id.attempt)
            {
                known.appeared_astray(container.id);
            }
            let cools = now.plus(leases.settings.rebalance.cool_down);
            let moved = self.attempts.rebalancing.met(node, container, cools);
            leases.out.effects.count(Counter::MovesFollowed, moved.into());
        }
        if let Some(id) = lease {
            leases.end(id, LeaseEnd::Bound, now);
        }
    }

    /// On a node that names no containers, a rise of use ends leases.
    fn use_rose(&mut self, node: NodeIdx, used: (Resource, Resource), now: Timestamp) {
        let leases = &mut self.attempts.leases;
        for id in binding::bound_by_use(leases.ledger, node, used, &leases.snapshot.rules) {
            leases.adherence().met_unseen(id, now);
            leases.end(id, LeaseEnd::Bound, now);
        }
    }

    fn expect_end(&mut self, node: NodeIdx, container: &ReportedContainer, now: Timestamp) {
        let known = self.attempts.known.get(container.id.attempt);
        let Some((request, group)) = known.and_then(|known| known.request_of(container.key)) else { return };
        let job = request.recurring_key.as_ref().and_then(|key| self.history.view().get(key));
        let group = job.and_then(|job| job.groups.get(&request.groups[group].name));
        if let Some(duration) = group.and_then(super::history::GroupHistory::duration) {
            self.expected.insert(node, container.id, Release { at: now.plus(duration), size: container.size });
        }
    }

    /// Withdraws leases whose room others have taken on the node.
    pub(crate) fn withdraw_pushed_out(&mut self, node: NodeIdx, now: Timestamp) {
        let leases = &mut self.attempts.leases;
        let out = binding::pushed_out(leases.ledger, leases.snapshot, node);
        leases.withdraw(node, out, "foreign_use", now);
    }

    /// A node is gone: its leases end, and what ran there or was to run there is placed anew, once.
    pub(crate) fn node_left(
        &mut self,
        node: NodeIdx,
        containers: &[ReportedContainer],
        cause: &'static str,
        now: Timestamp,
    ) {
        self.effects().count(Counter::NodesLost, 1);
        self.reports.reported[node.at()] = false;
        for container in containers {
            self.expected.remove(node, container.id);
        }
        self.attempts.routes().node_left(node);
        let leases = &mut self.attempts.leases;
        let on_node: Vec<LeaseId> = leases.ledger.on_node(node).map(|lease| lease.id).collect();
        let dispatched: BTreeSet<LeaseId> =
            on_node.iter().copied().filter(|&id| leases.dispatching.holds(id)).collect();
        let mut ended = leases.withdraw(node, on_node, cause, now);
        ended.retain(|lease| !dispatched.contains(&lease.id)); // their tasks wait again
        let mut lost = LostContainers::new();
        let unknown = containers.iter().filter(|container| !self.container_lost(container, &mut lost, now)).count();
        for lease in ended {
            self.lease_lost(lease, &mut lost, now);
        }
        self.effects().count(Counter::TasksUnknown, unknown as u64);
        self.replace(node, lost, cause);
    }

    /// A container went with its node; false: nobody knows whose task it ran.
    fn container_lost(&mut self, container: &ReportedContainer, lost: &mut LostContainers, now: Timestamp) -> bool {
        let attempt = container.id.attempt;
        let waits_again = self.attempts.leases.dispatch().lost(container.id, now);
        let Some(known) = self.attempts.known.get_mut(attempt) else { return false };
        let Some((request, group)) = known.request_of(container.key) else { return false };
        let key = (attempt, request.id.clone());
        if known.replaced(container.id) && !waits_again {
            *lost.entry(key).or_default().entry(group).or_default() += 1;
        }
        true
    }

    /// A lease went with its node.
    fn lease_lost(&mut self, lease: Lease, lost: &mut LostContainers, now: Timestamp) {
        let mut dispatch = self.attempts.leases.dispatch();
        let waits_again = lease.confirmed.is_some_and(|container| dispatch.lost(container, now));
        // A confirmed lease's container never showed itself; should it, it is not to be placed again.
        let Some(known) = self.attempts.known.get_mut(lease.attempt) else { return };
        let Some(request) = known.request(&lease.request) else { return };
        let Some(group) = request.groups.iter().position(|group| group.name == lease.group) else { return };
        if lease.confirmed.is_none_or(|container| known.replaced(container)) && !waits_again {
            *lost.entry((lease.attempt, lease.request)).or_default().entry(group).or_default() += 1;
        }
    }

    fn replace(&mut self, node: NodeIdx, lost: LostContainers, cause: &'static str) {
        let snapshot = self.attempts.leases.snapshot;
        let (host, chained) = (snapshot.host(node).clone(), snapshot.topology.chains.is_some());
        for ((attempt, id), groups) in lost {
            let known = self.attempts.known.get_mut(attempt).expect("losses are counted by known attempts");
            let request = known.request(&id).cloned().expect("losses are counted by remembered requests");
            if self.worth.is_kept_back(&request, chained) {
                continue;
            }
            let answers = &*self.attempts.leases.answers;
            let taken =
                |id: &RequestId| answers.contains(id) || known.has_replacement(id) || known.request(id).is_some();
            let again = Arc::new(monitor::replacement_request(&request, &groups, &host, taken));
            known.replaces_by(again.id.clone());
            self.effects().count(Counter::TasksReplaced, again.containers());
            self.effects().out.push(Effect::Replace { request: again, cause, node: host.clone() });
        }
    }
}
