//! What flows and their watchers do to each other, and to the outside: the engine's side of both.

use super::Refusal;
use super::decision::{Decision, Mode, RememberedRequest};
use super::effects::{Counter, Effect, FollowBody};
use super::engine::Engine;
use super::flows::{NewJob, ProposedFlows, TOO_MANY_PAIRS, UnderChains, shares};
use super::monitor;
use super::placer::{self, Row};
use super::routes::{Cause, Occasion, Out, Phase, RouteUpdate, View, WatchScope, WatchedPair};
use hintd_model::cluster::NodePair;
use hintd_model::network::Pair;
use hintd_model::units::{AttemptId, BoxIdx, DecisionId, LinkIdx, NodeIdx, RequestId, Timestamp};
use hintd_policy::Share;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why an application is told that its traffic under a chain stands still.
const CHAIN_BROKEN: &str = "chain_broken";
/// Why it is told that all of it goes again.
const CHAIN_RESTORED: &str = "chain_restored";

impl Engine {
    /// Watches routes; a watcher of the same name is replaced. What it is to be sent first: a snapshot, or what it
    /// missed since [`WatchScope::resume_after`]. Later updates are effects.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a host that neither the network nor the cluster names; [`Refusal::Invalid`] (field
    /// `installs`) while another watcher installs, (field `resume_after`) for a number that no update comes to.
    #[expect(clippy::needless_pass_by_value, reason = "the scope is the watch's from now on")]
    pub fn watch(
        &mut self,
        watcher: &str,
        scope: WatchScope,
        now: Timestamp,
    ) -> Result<Vec<Arc<RouteUpdate>>, Refusal> {
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        self.routes.check(watcher, &scope, &view)?;
        if scope.installs && !self.routes.resumes(watcher, &scope) {
            self.flows.speak(watcher, (&self.snapshot, &self.settings.routes));
            self.tell_flows(now);
        }
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        let first = self.routes.watch(watcher, &scope, &view, &self.settings.routes, now);
        // Whoever begins anew may know no more what it said: it says it again.
        self.controller_left(watcher, now);
        self.note_flows();
        Ok(first)
    }

    /// Takes an acknowledgement of every update up to `number`, and which pairs' routes the controller could not
    /// install, with its reasons: those go by default forwarding. How many updates are outstanding then.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a stranger; [`Refusal::Invalid`] for a number that was not sent or is acknowledged
    /// already, and for a refused pair that it was not told of.
    pub fn acknowledge(
        &mut self,
        watcher: &str,
        number: u64,
        refused: Vec<(WatchedPair, String)>,
        now: Timestamp,
    ) -> Result<u64, Refusal> {
        let pairs: Vec<WatchedPair> = refused.iter().map(|(pair, _)| pair.clone()).collect();
        let (outstanding, update) = self.routes.acknowledge(watcher, number, refused, &self.settings.routes, now)?;
        if let Some(update) = update {
            self.effects.out.push(Effect::Routes { watcher: watcher.into(), update });
        }
        if pairs.is_empty() {
            return Ok(outstanding);
        }
        self.effects.count(Counter::RoutesRefused, pairs.len() as u64);
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        // Refused of a class is its route only: the pair's other traffic goes on as it does.
        let pairs = pairs.iter().filter(|pair| pair.class.is_empty());
        let (nodes, named): (Vec<_>, Vec<_>) = pairs.map(|pair| (view.nodes(pair), view.vertices(pair))).unzip();
        for pair in nodes.into_iter().flatten() {
            self.flows.refuse(pair, (&self.snapshot, &self.settings.routes));
        }
        self.tell_flows(now);
        let named: Vec<Pair> = named.into_iter().flatten().collect();
        self.tell_named(&named, &Occasion { phase: Phase::Break, cause: Cause::new("refused", "") }, now);
        self.note_flows();
        Ok(outstanding)
    }

    /// What is to be counted, and whether generations change by it.
    pub(super) fn note_flows(&mut self) {
        for (counter, by) in self.flows.take_counts() {
            self.effects.count(counter, by);
        }
        for (attempt, chain, pairs) in self.flows.take_standstills() {
            let cause = if pairs > 0 { CHAIN_BROKEN } else { CHAIN_RESTORED };
            let message = FollowBody::Chain { chain, pairs };
            self.effects.out.push(Effect::Follow { attempt, message, cause });
        }
        self.changed |= self.flows.changed();
    }

    /// Tells watchers of routes of flows that changed.
    pub(super) fn tell_flows(&mut self, now: Timestamp) {
        for (occasion, pairs) in self.flows.take_news() {
            let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
            let out = self.routes.tell(&pairs, &[], &occasion, &view, &self.settings.routes, now);
            self.send(out);
        }
        for (occasion, keys) in self.flows.take_chained_news() {
            let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
            let out = self.routes.tell_chained(&keys, &occasion, &view, &self.settings.routes, now);
            self.send(out);
        }
        self.note_flows();
    }

    /// Follows what became of middleboxes, or another declaration of them.
    pub(super) fn chains_changed(&mut self, boxes: &[BoxIdx], cause: Option<Cause>, now: Timestamp) {
        let cause = cause.unwrap_or_else(|| Cause::new("chains", ""));
        self.flows.chains_changed(boxes, &cause, (&self.snapshot, &self.settings.routes));
        self.tell_flows(now);
    }

    fn tell_named(&mut self, pairs: &[Pair], occasion: &Occasion, now: Timestamp) {
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        let out = self.routes.tell(&[], pairs, occasion, &view, &self.settings.routes, now);
        self.send(out);
    }

    fn send(&mut self, out: Out) {
        for (watcher, update) in out {
            self.effects.count(Counter::RoutesChanged, (update.routes.len() + update.removed.len()) as u64);
            self.effects.out.push(Effect::Routes { watcher, update });
        }
    }

    /// Follows what the network did: flows first, then pairs that are watched by name.
    pub(super) fn network_changed(&mut self, changes: Vec<(Vec<LinkIdx>, Option<Cause>)>, moved: bool, now: Timestamp) {
        // Links of a network that was replaced meanwhile mean nothing in the one that is.
        let whole = changes.iter().rposition(|(links, _)| links.is_empty());
        if moved && whole.is_none() {
            self.flows.nodes_moved((&self.snapshot, &self.settings.routes), now);
        }
        for (links, cause) in changes.into_iter().skip(whole.unwrap_or(0)) {
            let cause = cause.unwrap_or_else(|| Cause::new("topology", ""));
            if links.is_empty() {
                self.network_replaced(cause, now);
            } else {
                self.links_changed(&links, &cause, now);
            }
        }
        self.tell_flows(now);
    }

    fn network_replaced(&mut self, cause: Cause, now: Timestamp) {
        self.flows.network_changed(&cause, (&self.snapshot, &self.settings.routes), now);
        self.flows.take_news(); // all is told below
        self.flows.take_chained_news();
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        self.routes.network_changed(&view);
        let occasion = Occasion { phase: Phase::Failover, cause };
        let out = self.routes.tell_all(&occasion, &view, &self.settings.routes, now);
        self.send(out);
        self.note_flows();
    }

    fn links_changed(&mut self, links: &[LinkIdx], cause: &Cause, now: Timestamp) {
        self.flows.links_changed(links, cause, (&self.snapshot, &self.settings.routes), now);
        self.tell_flows(now);
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        let named = self.routes.links_changed(links, &view);
        for phase in [Phase::Failover, Phase::Make] {
            let pairs: Vec<Pair> = named.iter().filter(|(_, of)| *of == phase).map(|(pair, _)| *pair).collect();
            self.tell_named(&pairs, &Occasion { phase, cause: cause.clone() }, now);
        }
    }

    /// Goes on with route changes that wait, ends what nothing is seen of, and looks for watchers that are late.
    pub(super) fn tick_flows(&mut self, now: Timestamp) {
        if now.since(self.flows_looked_at) >= hintd_model::units::Micros::from_secs(1) {
            self.flows_looked_at = now;
            let (ledger, applications) = (&self.ledger, &self.snapshot.applications);
            let seen = |attempt: AttemptId, decisions: &BTreeSet<DecisionId>| {
                applications.get(&attempt).is_some_and(|application| !application.containers.is_empty())
                    || ledger.of_attempt(attempt).any(|lease| decisions.contains(&lease.decision))
            };
            self.flows.end_idle(seen, (&self.snapshot, &self.settings.routes), now);
        }
        self.flows.tick((&self.snapshot, &self.settings.routes), now);
        self.tell_flows(now);
        let view = View { snapshot: &self.snapshot, routes: self.flows.routes(), chained: self.flows.chained() };
        let ticked = self.routes.tick(&view, &self.settings.routes, now);
        for (watcher, update) in ticked.updates {
            self.effects.count(Counter::RoutesResynced, 1);
            self.effects.out.push(Effect::Routes { watcher, update });
        }
        for (watcher, reason) in ticked.silent {
            self.effects.count(Counter::WatchersSilent, 1);
            self.flows.silence(&watcher, (&self.snapshot, &self.settings.routes));
            self.controller_left(&watcher, now);
            self.effects.out.push(Effect::WatchEnded { watcher, reason });
            self.tell_flows(now);
        }
        self.note_flows();
    }

    /// A decision's flows begin; its routes are its answer's.
    pub(super) fn begin_flows(
        &mut self,
        request: &RememberedRequest,
        draft: &mut Decision,
        rows: &[Row],
        proposed: Option<ProposedFlows>,
        now: Timestamp,
    ) {
        draft.routes = Vec::new();
        if draft.degraded.iter().any(|token| token == TOO_MANY_PAIRS) {
            self.effects.count(Counter::FlowsEvicted, 1);
        }
        let original = monitor::original(&request.id);
        let shares = shares(rows, request.groups.len());
        let anew = || (original != request.id).then(|| ProposedFlows::bare(shares.clone()));
        let at = (&*self.snapshot, &self.settings.routes);
        let Some(proposed) = proposed.or_else(anew).filter(|_| draft.mode == Mode::On) else {
            if draft.mode == Mode::On {
                self.flows.end_request(&request.id, draft.attempt, at);
                self.tell_flows(now);
            }
            return;
        };
        let same = shares == proposed.shares;
        let new = NewJob {
            decision: draft.id,
            attempt: draft.attempt,
            groups: request.groups.iter().map(|group| Arc::clone(&group.name)).collect(),
            edges: proposed.edges,
            shares,
            traffic: same.then_some(proposed.traffic),
            chains: UnderChains { of: Some(Arc::clone(request)), classes: proposed.classes, ways: proposed.ways },
        };
        self.flows.enter(new, &request.id, &original, &proposed.chosen, at);
        draft.routes = self.flows.hinted(draft.id, &self.snapshot);
        self.tell_flows(now);
    }

    /// Flows of answers that the journal kept, as far as it kept their requests.
    pub(super) fn recover_flows(&mut self) {
        let of = |attempt, id: &RequestId| self.attempts.get(attempt)?.request(id).cloned();
        let known = self.answers.by_age().filter_map(|(decision, attempt, id)| Some((decision, of(attempt, id)?)));
        for (decision, request) in known.collect::<Vec<_>>() {
            let Some(answer) = self.answers.by_decision(decision) else { continue };
            let decision = &answer.decision;
            if decision.mode != Mode::On {
                continue;
            }
            let history = request.recurring_key.as_ref().and_then(|key| self.history.view().get(key)).map(Arc::as_ref);
            let Ok(edges) = placer::edges(&request, history, &mut Vec::new()) else { continue };
            let mut shares: Vec<Vec<Share>> = vec![Vec::new(); request.groups.len()];
            for hint in decision.hints.iter().filter(|hint| !hint.leases.is_empty()) {
                let Some(group) = request.groups.iter().position(|group| group.name == hint.group) else { continue };
                shares[group].push(Share { node: self.model.intern_host(&hint.host), count: hint.count });
            }
            let at = (&*self.snapshot, &self.settings.routes);
            let original = monitor::original(&request.id);
            // What was placed anew was on this host before.
            let lost = monitor::lost_host(&request.id).map(|host| self.model.intern_host(&host));
            let joins = lost.is_some_and(|node| self.flows.leave_node((decision.attempt, &original), node, at));
            let most = self.settings.routes.pairs_max;
            let bare = joins.then(|| ProposedFlows::bare(shares.clone()));
            let classes = vec![None; edges.len()]; // no chain is known yet
            let Some(proposed) = bare.or_else(|| ProposedFlows::new(&edges, classes, shares, Vec::new(), most)) else {
                continue;
            };
            let new = NewJob {
                decision: decision.id,
                attempt: decision.attempt,
                groups: request.groups.iter().map(|group| Arc::clone(&group.name)).collect(),
                edges: proposed.edges,
                shares: proposed.shares,
                traffic: Some(proposed.traffic),
                chains: UnderChains { of: Some(Arc::clone(&request)), ..UnderChains::default() },
            };
            self.flows.enter(new, &request.id, &original, &[], at);
            for route in decision.routes.iter().filter(|route| route.chain.is_none()) {
                let [from, to] = [&route.src, &route.dst].map(|host| self.model.intern_host(host));
                self.flows.had(NodePair { from, to }, route.links.clone());
            }
        }
        self.flows.take_news(); // nobody watches yet
        self.flows.take_chained_news();
    }

    /// A node's tasks are gone, and what they sent.
    pub(super) fn flows_left(&mut self, node: NodeIdx) {
        self.flows.node_left(node, (&self.snapshot, &self.settings.routes));
    }
}
