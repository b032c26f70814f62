//! What flows and their watchers do to each other, and to the outside.

use super::Refusal;
use super::answers::Answers;
use super::arrivals::ArrivedView;
use super::attempts::Attempts;
use super::circuits::Circuits;
use super::decision::{Decision, Mode, RememberedRequest};
use super::effects::{Counter, Effect, FollowBody, Output};
use super::engine::Engine;
use super::flows::settings::RouteSettings;
use super::flows::{Flows, NewJob, ProposedFlows, Sight, Standstill, TOO_MANY_PAIRS, UnderChains, shares};
use super::history::History;
use super::ledger::Ledger;
use super::monitor;
use super::placer::{self, Row};
use super::routes::{Cause, ChangeBatch, Out, Phase, RouteUpdate, View, WatchScope, WatchedPair, Watchers};
use hintd_model::cluster::{Model, NodePair, Snapshot};
use hintd_model::network::Pair;
use hintd_model::units::{AttemptId, BoxIdx, DecisionId, LinkIdx, Micros, NodeIdx, RequestId, Timestamp};
use hintd_policy::Share;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why an application is told that its traffic under a chain stands still.
const CHAIN_BROKEN: &str = "chain_broken";
/// Why it is told that all of it goes again.
const CHAIN_RESTORED: &str = "chain_restored";
/// Between two looks for jobs that nothing is seen of, where somebody ticks.
const LOOK_EVERY: Micros = Micros::from_secs(1);

impl Engine {
    /// Whether middleboxes and chains are the operator's, so that feeds may not declare any.
    #[must_use]
    pub fn owns_chains(&self) -> bool {
        !self.settings().chains.is_empty()
    }

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
        self.watch_handler().watch(watcher, &scope, now)
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
        self.route_handler().acknowledge(watcher, number, refused, now)
    }

    /// A watch's stream ended. What it was told is kept for a time, so that it may come back and go on.
    pub fn unwatch(&mut self, watcher: &str, now: Timestamp) {
        self.watch_handler().unwatch(watcher, now);
    }
}

/// Flows, their routes, and who is told of both. Writes flows and watchers; reads the snapshot and the settings of routes.
pub(crate) struct RouteHandler<'e> {
    pub(crate) flows: &'e mut Flows,
    pub(crate) watchers: &'e mut Watchers,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) settings: &'e RouteSettings,
    /// Where containers came.
    pub(crate) arrived: &'e ArrivedView,
    pub(crate) out: &'e mut Output,
}

/// Watches that begin, end or go silent: a watcher may be the one that sets circuits, so that beside what [`RouteHandler`]
/// borrows circuits are written. Reads the ledger and answers for flows that nothing is seen of.
pub(crate) struct WatchHandler<'e> {
    pub(crate) routes: RouteHandler<'e>,
    pub(crate) circuits: &'e mut Circuits,
    pub(crate) ledger: &'e Ledger,
    pub(crate) answers: &'e Answers,
    /// When jobs that nothing is seen of were last looked for.
    pub(crate) looked_at: &'e mut Timestamp,
}

#[cfg(test)]
impl Engine {
    /// Work of searches for ways under chains so far.
    pub(crate) fn chain_work(&mut self) -> u64 {
        self.route_handler().flows.chain_work()
    }

    /// Allows so much of it between two ticks.
    pub(crate) fn bound_chain_work(&mut self, most: u64) {
        self.route_handler().flows.bound_chain_work(most);
    }

    /// Whether ways under chains are still to be looked for.
    pub(crate) fn waits_for_ways(&mut self) -> bool {
        self.route_handler().flows.waits_for_ways()
    }

    /// Whether paths of watched pairs are still to be looked for.
    pub(crate) fn waits_for_paths(&mut self) -> bool {
        self.route_handler().watchers.searches().0
    }

    /// Steps of searches for them so far.
    pub(crate) fn watch_steps(&mut self) -> u64 {
        self.route_handler().watchers.searches().1
    }
}

impl RouteHandler<'_> {
    fn acknowledge(
        &mut self,
        watcher: &str,
        number: u64,
        refused: Vec<(WatchedPair, String)>,
        now: Timestamp,
    ) -> Result<u64, Refusal> {
        let pairs: Vec<WatchedPair> = refused.iter().map(|(pair, _)| pair.clone()).collect();
        let (outstanding, update) = self.watchers.acknowledge(watcher, number, refused, self.settings, now)?;
        if let Some(update) = update {
            self.out.effects.out.push(Effect::Routes { watcher: watcher.into(), update });
        }
        if pairs.is_empty() {
            return Ok(outstanding);
        }
        self.out.effects.count(Counter::RoutesRefused, pairs.len() as u64);
        let view = view(self.flows, self.snapshot);
        // Refused of a class is its route only: the pair's other traffic goes on as it does.
        let pairs = pairs.iter().filter(|pair| pair.class.is_empty());
        let (nodes, named): (Vec<_>, Vec<_>) = pairs.map(|pair| (view.nodes(pair), view.vertices(pair))).unzip();
        for pair in nodes.into_iter().flatten() {
            self.flows.refuse(pair, (self.snapshot, self.settings));
        }
        self.tell(now);
        let named: Vec<Pair> = named.into_iter().flatten().collect();
        self.tell_named(&named, &ChangeBatch { phase: Phase::Break, cause: Cause::new("refused", "") }, now);
        self.note();
        Ok(outstanding)
    }

    /// What is to be counted, and whether generations change by it.
    pub(crate) fn note(&mut self) {
        for (counter, by) in self.flows.take_counts() {
            self.out.effects.count(counter, by);
        }
        for Standstill { attempt, chain, pairs } in self.flows.take_standstills() {
            let cause = if pairs > 0 { CHAIN_BROKEN } else { CHAIN_RESTORED };
            let message = FollowBody::Chain { chain, pairs };
            self.out.effects.out.push(Effect::Follow { attempt, message, cause });
        }
        self.out.changed |= self.flows.changed();
    }

    /// Tells watchers of routes of flows that changed.
    pub(crate) fn tell(&mut self, now: Timestamp) {
        for (occasion, pairs) in self.flows.take_news() {
            let view = view(self.flows, self.snapshot);
            let out = self.watchers.tell(&pairs, &[], &occasion, &view, self.settings, now);
            self.send(out);
        }
        for (occasion, keys) in self.flows.take_chained_news() {
            let view = view(self.flows, self.snapshot);
            let out = self.watchers.tell_chained(&keys, &occasion, &view, self.settings, now);
            self.send(out);
        }
        self.note();
    }

    /// Follows what became of middleboxes, or another declaration of them.
    pub(crate) fn chains_changed(&mut self, boxes: &[BoxIdx], cause: Option<Cause>, now: Timestamp) {
        let cause = cause.unwrap_or_else(|| Cause::new("chains", ""));
        self.flows.chains_changed(boxes, &cause, (self.snapshot, self.settings));
        self.tell(now);
    }

    fn tell_named(&mut self, pairs: &[Pair], occasion: &ChangeBatch, now: Timestamp) {
        let view = view(self.flows, self.snapshot);
        let out = self.watchers.tell(&[], pairs, occasion, &view, self.settings, now);
        self.send(out);
    }

    fn send(&mut self, out: Out) {
        for (watcher, update) in out {
            self.out.effects.count(Counter::RoutesChanged, (update.routes.len() + update.removed.len()) as u64);
            self.out.effects.out.push(Effect::Routes { watcher, update });
        }
    }

    /// Follows what the network did: flows first, then pairs that are watched by name.
    pub(crate) fn network_changed(&mut self, changes: Vec<(Vec<LinkIdx>, Option<Cause>)>, moved: bool, now: Timestamp) {
        // Links of a network that was replaced meanwhile mean nothing in the one that is.
        let whole = changes.iter().rposition(|(links, _)| links.is_empty());
        if moved && whole.is_none() {
            self.flows.nodes_moved((self.snapshot, self.settings), now);
        }
        for (links, cause) in changes.into_iter().skip(whole.unwrap_or(0)) {
            let cause = cause.unwrap_or_else(|| Cause::new("topology", ""));
            if links.is_empty() {
                self.network_replaced(cause, now);
            } else {
                self.links_changed(&links, &cause, now);
            }
        }
        self.tell(now);
    }

    fn network_replaced(&mut self, cause: Cause, now: Timestamp) {
        self.flows.network_changed(&cause, (self.snapshot, self.settings), now);
        self.flows.take_news(); // all is told below
        self.flows.take_chained_news();
        let view = view(self.flows, self.snapshot);
        self.watchers.network_changed(&view);
        let occasion = ChangeBatch { phase: Phase::Failover, cause };
        let out = self.watchers.tell_all(&occasion, &view, self.settings, now);
        self.send(out);
        self.note();
    }

    fn links_changed(&mut self, links: &[LinkIdx], cause: &Cause, now: Timestamp) {
        self.flows.links_changed(links, cause, (self.snapshot, self.settings), now);
        self.tell(now);
        let view = view(self.flows, self.snapshot);
        let named = self.watchers.links_changed(links, &view);
        for phase in [Phase::Failover, Phase::Make] {
            let pairs: Vec<Pair> = named.iter().filter(|(_, of)| *of == phase).map(|(pair, _)| *pair).collect();
            self.tell_named(&pairs, &ChangeBatch { phase, cause: cause.clone() }, now);
        }
    }

    /// Whether what is to be sent under chains finds its ways through boxes still: others may have taken their room.
    pub(crate) fn fits(&mut self, proposed: &ProposedFlows) -> Result<(), Refusal> {
        self.flows.fits(&proposed.chained, &proposed.ways, (self.snapshot, self.settings))
    }

    /// A decision's flows begin; its routes are its answer's.
    pub(crate) fn begin(
        &mut self,
        request: &RememberedRequest,
        draft: &mut Decision,
        rows: &[Row],
        proposed: Option<ProposedFlows>,
        now: Timestamp,
    ) {
        draft.routes = Vec::new();
        if draft.degraded.iter().any(|token| token == TOO_MANY_PAIRS) {
            self.out.effects.count(Counter::FlowsEvicted, 1);
        }
        let original = monitor::original(&request.id);
        let shares = shares(rows, request.groups.len());
        let anew = || (original != request.id).then(|| ProposedFlows::bare(shares.clone()));
        let at = (self.snapshot, self.settings);
        let Some(proposed) = proposed.or_else(anew).filter(|_| draft.mode == Mode::On) else {
            if draft.mode == Mode::On {
                self.flows.end_request(&request.id, draft.attempt, at);
                self.tell(now);
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
            came: self.arrived.get(&draft.attempt).cloned(),
        };
        self.flows.enter(new, &request.id, &original, &proposed.chosen, at);
        draft.routes = self.flows.hinted(draft.id, self.snapshot);
        self.tell(now);
    }

    /// The attempt is over: so are its flows.
    pub(crate) fn end_attempt(&mut self, attempt: AttemptId, now: Timestamp) {
        self.flows.end_attempt(attempt, (self.snapshot, self.settings));
        self.tell(now);
    }

    /// The decision was never promised: nor were its flows.
    pub(crate) fn undo(&mut self, decision: DecisionId, now: Timestamp) {
        self.flows.undo(decision, (self.snapshot, self.settings));
        self.tell(now);
    }

    /// Whether somebody has a decision's answer: what nobody was told of sends nothing. Whether that is news.
    pub(crate) fn reached(&mut self, decision: DecisionId, reached: bool, now: Timestamp) -> bool {
        let is_news = self.flows.reached(decision, reached, (self.snapshot, self.settings));
        if is_news {
            self.tell(now);
        }
        is_news
    }

    /// A node's tasks are gone, and what they sent.
    pub(crate) fn node_left(&mut self, node: NodeIdx) {
        self.flows.node_left(node, (self.snapshot, self.settings));
    }
}

/// Routes as they are.
fn view<'a>(flows: &'a Flows, snapshot: &'a Snapshot) -> View<'a> {
    View { snapshot, routes: flows.routes(), chained: flows.chained() }
}

impl WatchHandler<'_> {
    fn watch(&mut self, watcher: &str, scope: &WatchScope, now: Timestamp) -> Result<Vec<Arc<RouteUpdate>>, Refusal> {
        let routes = &mut self.routes;
        routes.watchers.check(watcher, scope, &view(routes.flows, routes.snapshot))?;
        if scope.installs && !routes.watchers.resumes(watcher, scope) {
            routes.flows.speak(watcher, (routes.snapshot, routes.settings));
            routes.tell(now);
        }
        let view = view(routes.flows, routes.snapshot);
        let first = routes.watchers.watch(watcher, scope, &view, routes.settings, now);
        // Whoever begins anew may know no more what it said: it says it again.
        self.controller_left(watcher, now);
        self.routes.note();
        Ok(first)
    }

    fn unwatch(&mut self, watcher: &str, now: Timestamp) {
        self.routes.watchers.unwatch(watcher, now);
        self.controller_left(watcher, now);
    }

    /// That watcher's stream has ended, or is another one: if it is the controller, it is believed no more.
    fn controller_left(&mut self, watcher: &str, now: Timestamp) {
        if let Some(watcher) = self.circuits.left(watcher, now) {
            self.routes.out.effects.out.push(Effect::ControllerLeft { watcher });
        }
    }

    /// Goes on with route changes that wait, ends what nothing is seen of, follows containers, and looks for watchers that are late.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        if now.since(*self.looked_at) >= LOOK_EVERY {
            *self.looked_at = now;
            self.end_idle(now);
            let RouteHandler { flows, snapshot, settings, arrived, .. } = &mut self.routes;
            flows.follow_containers(arrived, (*snapshot, *settings));
        }
        let routes = &mut self.routes;
        routes.flows.tick((routes.snapshot, routes.settings), now);
        routes.tell(now);
        let found = routes.watchers.go_on(&view(routes.flows, routes.snapshot), routes.settings, now);
        routes.send(found);
        let ticked = routes.watchers.tick(&view(routes.flows, routes.snapshot), routes.settings, now);
        for (watcher, update) in ticked.updates {
            routes.out.effects.count(Counter::RoutesResynced, 1);
            routes.out.effects.out.push(Effect::Routes { watcher, update });
        }
        for (watcher, reason) in ticked.silent {
            self.routes.out.effects.count(Counter::WatchersSilent, 1);
            self.routes.flows.silence(&watcher, (self.routes.snapshot, self.routes.settings));
            self.controller_left(&watcher, now);
            self.routes.out.effects.out.push(Effect::WatchEnded { watcher, reason });
            self.routes.tell(now);
        }
        self.routes.note();
    }

    /// Ends flows of jobs of which neither a container nor a lease is seen. Containers of an attempt are none of a job whose
    /// answer nobody has: of that leases are seen, until the answer is forgotten.
    fn end_idle(&mut self, now: Timestamp) {
        let RouteHandler { flows, snapshot, settings, .. } = &mut self.routes;
        let (ledger, answers, applications) = (self.ledger, self.answers, &snapshot.applications);
        let look = |attempt: AttemptId, decisions: &BTreeSet<DecisionId>, heard: bool| {
            let runs = || applications.get(&attempt).is_some_and(|application| !application.containers.is_empty());
            let is_leased = || ledger.of_attempt(attempt).any(|lease| decisions.contains(&lease.decision));
            match () {
                () if !heard && !decisions.iter().any(|decision| answers.keeps(*decision)) => Sight::Forgotten,
                () if (heard && runs()) || is_leased() => Sight::Seen,
                () => Sight::Unseen,
            }
        };
        flows.end_idle(look, (*snapshot, *settings), now);
    }
}

/// Flows of answers that the journal kept, after a start: writes flows, names hosts to the model, reads what was restored.
pub(crate) struct FlowRecovery<'e> {
    pub(crate) flows: &'e mut Flows,
    pub(crate) model: &'e mut Model,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) settings: &'e RouteSettings,
    pub(crate) answers: &'e Answers,
    pub(crate) attempts: &'e Attempts,
    pub(crate) history: &'e History,
}

impl FlowRecovery<'_> {
    /// Begins those flows anew, as far as the journal kept their requests.
    pub(crate) fn recover(&mut self) {
        let of = |attempt, id: &RequestId| self.attempts.get(attempt)?.request(id).cloned();
        let known = self.answers.by_age().filter_map(|known| Some((known.decision, of(known.attempt, known.request)?)));
        for (decision, request) in known.collect::<Vec<_>>() {
            let Some(answer) = self.answers.by_decision(decision) else { continue };
            if answer.decision.mode == Mode::On {
                self.begin(&answer.decision, &request);
            }
        }
        self.flows.take_news(); // nobody watches yet
        self.flows.take_chained_news();
    }

    fn begin(&mut self, decision: &Decision, request: &RememberedRequest) {
        let history = request.recurring_key.as_ref().and_then(|key| self.history.view().get(key)).map(Arc::as_ref);
        let Ok(edges) = placer::edges(request, history, &mut Vec::new()) else { return };
        let shares = self.shares(decision, request);
        let at = (self.snapshot, self.settings);
        let original = monitor::original(&request.id);
        // What was placed anew was on this host before.
        let lost = monitor::lost_host(&request.id).map(|host| self.model.intern_host(&host));
        let joins = lost.is_some_and(|node| self.flows.leave_node((decision.attempt, &original), node, at));
        let bare = joins.then(|| ProposedFlows::bare(shares.clone()));
        let classes = vec![None; edges.len()]; // no chain is known yet
        let most = self.settings.pairs_max;
        let Some(proposed) = bare.or_else(|| ProposedFlows::new(&edges, classes, shares, Vec::new(), most)) else {
            return;
        };
        let new = NewJob {
            decision: decision.id,
            attempt: decision.attempt,
            groups: request.groups.iter().map(|group| Arc::clone(&group.name)).collect(),
            edges: proposed.edges,
            shares: proposed.shares,
            traffic: Some(proposed.traffic),
            chains: UnderChains { of: Some(Arc::clone(request)), ..UnderChains::default() },
            came: None, // not known of before the start
        };
        self.flows.enter(new, &request.id, &original, &[], at);
        for route in decision.routes.iter().filter(|route| route.chain.is_none()) {
            let [from, to] = [&route.src, &route.dst].map(|host| self.model.intern_host(host));
            self.flows.had(NodePair { from, to }, route.links.clone());
        }
    }

    /// Where the decision's leased containers are, by group.
    fn shares(&mut self, decision: &Decision, request: &RememberedRequest) -> Vec<Vec<Share>> {
        let mut shares: Vec<Vec<Share>> = vec![Vec::new(); request.groups.len()];
        for hint in decision.hints.iter().filter(|hint| !hint.leases.is_empty()) {
            let Some(group) = request.groups.iter().position(|group| group.name == hint.group) else { continue };
            shares[group].push(Share { node: self.model.intern_host(&hint.host), count: hint.count });
        }
        shares
    }
}
