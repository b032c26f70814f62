//! Jobs come and go, and with them pairs; a pair's first route.

use super::Flows;
use super::chained::{self, Found};
use super::choose::RoutingContext;
use super::job::{self, Job, Moves, NewJob, RoutesHad, Sends};
use super::pairs::{ForwardingMode, Links, PairUpdate};
use super::settings::RouteSettings;
use super::work::{Want, is_free};
use crate::effects::Counter;
use crate::routes::{Cause, Phase};
use hintd_model::cluster::{NodePair, Snapshot, Traffic};
use hintd_model::units::{AttemptId, DecisionId, NodeIdx, RequestId, Timestamp};
use hintd_policy::ChosenRoute;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Routes that somebody has chosen for what a job sends.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) chosen: &'a [ChosenRoute],
    pub(super) ways: &'a Found,
}

impl Wanted<'static> {
    /// None.
    pub(super) const NONE: Self = Self { chosen: &[], ways: &NO_WAYS };
}

static NO_WAYS: Found = Found::new();

/// What is seen of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Seen,
    Unseen,
    /// Nobody has its answer, and nobody can fetch it any more.
    Forgotten,
}

impl Flows {
    /// A decision's flows begin, on the routes that its policy chose where that did. Those of tasks placed anew join
    /// the job of `original`, the request that they were first of. Without edges there are none.
    pub fn enter(
        &mut self,
        new: NewJob,
        request: &RequestId,
        original: &RequestId,
        chosen: &[ChosenRoute],
        (snapshot, settings): (&Snapshot, &RouteSettings),
    ) {
        let cause = Cause::new("placed", new.decision.to_string());
        if let Some(host) = self.job_of_request(original, new.attempt).filter(|_| request != original) {
            let wanted = Wanted { chosen, ways: &new.chains.ways };
            self.join(host, &new, wanted, &cause, (snapshot, settings));
            return;
        }
        self.end_request(request, new.attempt, (snapshot, settings));
        if new.edges.is_empty() {
            return;
        }
        if job::most_pairs(&new.edges, &new.shares) > settings.pairs_max {
            self.count(Counter::FlowsEvicted, 1);
            return;
        }
        let placed = new.shares.iter().map(|shares| job::tasks(shares)).collect();
        let chains = snapshot.topology.chains.as_deref();
        let of = new.chains.of.as_deref();
        let classes = of.map(|of| chained::classes(chains, of, &new.edges, settings.chains.port));
        let classes = classes.unwrap_or_else(|| vec![None; new.edges.len()]);
        let job = Job {
            attempt: new.attempt,
            request: request.clone(),
            groups: new.groups,
            edges: new.edges,
            parts: BTreeMap::from([(new.decision, new.shares)]),
            unheard: BTreeMap::new(),
            placed,
            moves: Moves::new(),
            before: new.came,
            followed: None,
            traffic: Traffic::default(),
            chained: BTreeMap::new(),
            classes,
            of: new.chains.of,
            slot: None,
            idle: None,
            stale: true,
        };
        let sends = job.first_sends(new.traffic, &new.chains.classes);
        if sends.is_empty() {
            return;
        }
        self.by_request.insert(request.clone(), new.decision);
        self.by_attempt.entry(new.attempt).or_default().insert(new.decision);
        self.job_of.insert(new.decision, new.decision);
        for share in job.shares().iter().flatten() {
            self.by_node.entry(share.node).or_default().insert(new.decision);
        }
        self.jobs.insert(new.decision, job);
        let wanted = Wanted { chosen, ways: &new.chains.ways };
        self.sends(new.decision, sends, wanted, &cause, (snapshot, settings));
        self.enforce_limit(new.decision, (snapshot, settings));
    }

    /// The job of an attempt's request: whoever else names that request has no part in it.
    fn job_of_request(&self, request: &RequestId, attempt: AttemptId) -> Option<DecisionId> {
        let decision = *self.by_request.get(request)?;
        self.jobs.get(&decision).filter(|job| job.attempt == attempt).map(|_| decision)
    }

    /// Tasks of a job that were placed anew.
    fn join(
        &mut self,
        host: DecisionId,
        new: &NewJob,
        wanted: Wanted<'_>,
        cause: &Cause,
        at: (&Snapshot, &RouteSettings),
    ) {
        let Some(job) = self.jobs.get_mut(&host) else { return };
        let mut shares = vec![Vec::new(); job.groups.len()];
        for (name, of) in new.groups.iter().zip(&new.shares) {
            if let Some(group) = job.groups.iter().position(|known| known == name) {
                shares[group] = of.clone();
            }
        }
        for share in shares.iter().flatten() {
            self.by_node.entry(share.node).or_default().insert(host);
        }
        job.parts.insert(new.decision, shares);
        job.followed = None;
        self.job_of.insert(new.decision, host);
        let sends = job.reckon();
        self.sends(host, sends, wanted, cause, at);
    }

    /// A job's traffic is this from now on.
    pub(super) fn sends(
        &mut self,
        decision: DecisionId,
        sends: Sends,
        wanted: Wanted<'_>,
        cause: &Cause,
        (snapshot, settings): (&Snapshot, &RouteSettings),
    ) {
        let Some(job) = self.jobs.get_mut(&decision) else { return };
        let old = std::mem::replace(&mut job.traffic, sends.traffic);
        job.stale = true;
        let before = std::mem::replace(&mut job.chained, sends.chained.clone());
        self.sends_chained((&before, &sends.chained), wanted.ways, cause, (snapshot, settings));
        let Some(job) = self.jobs.get_mut(&decision) else { return };
        let changes = job::differences(&old.flows, &job.traffic.flows);
        if let Some(index) = &mut self.index {
            index.hold();
            // The new one first: a pair that both use keeps its route.
            let slot = index.add_job(&job.traffic);
            if let Some(old) = job.slot.replace(slot) {
                index.remove_job(old);
            }
            index.recompute_rates();
        }
        (self.changed, self.jobs_changed) = (true, true);
        let (mut fresh, mut known) = (Vec::new(), Vec::new());
        for (pair, change) in changes {
            match self.pairs.add(pair, change, self.network.as_deref()) {
                None => self.left(pair, cause),
                Some(true) => fresh.push(pair),
                Some(false) => known.push(pair),
            }
        }
        self.begin(&fresh, wanted.chosen, cause, (snapshot, settings));
        self.promote(known, cause, (snapshot, settings));
    }

    /// Nobody sends over a pair any more.
    fn left(&mut self, pair: NodePair, cause: &Cause) {
        self.remembered.remove(&pair);
        self.remembered_homes.remove(&pair);
        self.failed.remove(pair);
        self.planned.remove(pair);
        self.tell(pair, Phase::Break, cause);
    }

    /// First routes.
    fn begin(
        &mut self,
        fresh: &[NodePair],
        chosen: &[ChosenRoute],
        cause: &Cause,
        (snapshot, settings): (&Snapshot, &RouteSettings),
    ) {
        let chosen: BTreeMap<NodePair, &Links> =
            chosen.iter().filter(|route| route.chain.is_none()).map(|route| (route.pair, &route.links)).collect();
        let ways = RoutingContext::of(snapshot, settings, &mut self.table);
        let (Some(ways), Some(index)) = (ways, &mut self.index) else {
            for &pair in fresh {
                let lay = PairUpdate { route: Arc::from([]), home: None, carried: self.wanted(pair, settings) };
                self.pairs.lay(pair, lay, None);
            }
            return;
        };
        index.hold();
        let (mut routes, mut homes): (BTreeMap<NodePair, Links>, BTreeMap<NodePair, Links>) = Default::default();
        let mut later = Vec::new();
        for &pair in fresh {
            if ways.is_spent() && !chosen.contains_key(&pair) {
                later.push(pair);
                routes.insert(pair, Arc::from([]));
                continue;
            }
            let talking = &self.pairs.all[&pair];
            // Policies know of no link that flaps.
            let policys =
                chosen.get(&pair).filter(|links| ways.is_route(pair, links) && is_free(links, self.damping.avoided()));
            let route = match policys {
                // Nobody installs it now; it is home to whoever does again.
                Some(&links) if self.silent => {
                    homes.insert(pair, Arc::clone(links));
                    ways.first(pair)
                }
                None if self.silent => ways.first(pair),
                Some(&links) => Arc::clone(links),
                None if talking.bytes < u128::from(settings.min_bytes.0) => ways.first(pair),
                None => continue,
            };
            index.set_route(pair, Some(&route));
            routes.insert(pair, route);
        }
        index.recompute_rates();
        let open: Vec<NodePair> = fresh.iter().copied().filter(|pair| !routes.contains_key(pair)).collect();
        routes.extend(ways.choose(index, &open, self.damping.avoided(), false));
        if ways.is_spent() {
            later.extend(open.iter().filter(|pair| routes.get(pair).is_none_or(|route| route.is_empty())));
        }
        for pair in later {
            self.failed.push(pair, Want::Route, cause);
        }
        for &pair in fresh {
            let route = routes.remove(&pair).unwrap_or_else(|| Arc::from([]));
            let lay = PairUpdate { route, home: homes.remove(&pair), carried: self.wanted(pair, settings) };
            self.install(pair, lay, &ways);
            self.tell(pair, Phase::Make, cause);
        }
    }

    /// Who should carry a pair, by what it sends and whether anybody installs.
    pub(super) fn wanted(&self, pair: NodePair, settings: &RouteSettings) -> ForwardingMode {
        match self.pairs.all[&pair].bytes {
            bytes if bytes < u128::from(settings.min_bytes.0) => ForwardingMode::Small,
            _ if self.silent => ForwardingMode::Silent,
            _ => ForwardingMode::Rules,
        }
    }

    /// Lays a route with rules, if its switches have room for them: else it is default forwarding's.
    pub(super) fn install(&mut self, pair: NodePair, lay: PairUpdate, ways: &RoutingContext<'_>) {
        let crowded =
            lay.carried == ForwardingMode::Rules && !self.pairs.fits(pair, &lay.route, ways.network, ways.settings);
        if !crowded {
            self.pairs.lay(pair, lay, Some(ways.network));
            return;
        }
        let spent = ways.is_spent();
        let route = if spent { lay.route } else { ways.first(pair) };
        if let Some(index) = &mut self.index {
            index.set_route(pair, Some(&route));
        }
        if spent {
            self.failed.push(pair, Want::Route, &Cause::new("topology", "")); // default forwarding's way is found later
        }
        self.pairs.lay(
            pair,
            PairUpdate { route, home: lay.home, carried: ForwardingMode::Crowded },
            Some(ways.network),
        );
        self.count(Counter::RoutesToDefault, 1);
    }

    /// Pairs that sent little and send enough now.
    fn promote(&mut self, pairs: Vec<NodePair>, cause: &Cause, (snapshot, settings): (&Snapshot, &RouteSettings)) {
        let Some(ways) = RoutingContext::of(snapshot, settings, &mut self.table) else { return };
        for pair in pairs {
            let talking = &self.pairs.all[&pair];
            if talking.carried == ForwardingMode::Small && talking.bytes >= u128::from(settings.min_bytes.0) {
                let carried = self.wanted(pair, settings);
                let lay = PairUpdate { route: Arc::clone(&talking.route), home: talking.home.clone(), carried };
                self.install(pair, lay, &ways);
                self.tell(pair, Phase::Make, cause);
            }
        }
    }

    /// Of too many pairs the oldest decisions' go, the newest's last. Routes that are kept for a repeat count, and go first.
    pub(super) fn enforce_limit(&mut self, newest: DecisionId, at: (&Snapshot, &RouteSettings)) {
        while self.len() + self.routes_had > at.1.pairs_max {
            if self.routes_had > 0 && self.forget_oldest_routes_had() {
                continue;
            }
            // One that nobody heard of has no pairs to leave.
            let mut others = self.jobs.iter().filter(|(decision, job)| **decision != newest && !job.is_unheard());
            let Some((&oldest, _)) = others.next() else { return };
            self.count(Counter::FlowsEvicted, 1);
            self.end(oldest, &Cause::new("pairs_max", oldest.to_string()), at);
        }
    }

    /// A job ends.
    fn end(&mut self, decision: DecisionId, cause: &Cause, at: (&Snapshot, &RouteSettings)) {
        self.sends(decision, Sends::default(), Wanted::NONE, cause, at);
        let Some(job) = self.jobs.remove(&decision) else { return };
        self.routes_had -= job.unheard.values().map(RoutesHad::pairs).sum::<usize>();
        if let (Some(index), Some(slot)) = (&mut self.index, job.slot) {
            index.remove_job(slot);
        }
        for part in job.parts.keys() {
            self.job_of.remove(part);
        }
        for node in job.nodes() {
            self.forget_node(node, decision);
        }
        // Another attempt may have taken the name meanwhile.
        if self.by_request.get(&job.request) == Some(&decision) {
            self.by_request.remove(&job.request);
        }
        if let Some(of) = self.by_attempt.get_mut(&job.attempt) {
            of.remove(&decision);
            if of.is_empty() {
                self.by_attempt.remove(&job.attempt);
            }
        }
    }

    pub(super) fn forget_node(&mut self, node: NodeIdx, decision: DecisionId) {
        if let Some(jobs) = self.by_node.get_mut(&node) {
            jobs.remove(&decision);
            if jobs.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }

    /// A request is asked anew after its answer was forgotten: what it placed before is no more.
    pub(crate) fn end_request(&mut self, request: &RequestId, attempt: AttemptId, at: (&Snapshot, &RouteSettings)) {
        if let Some(old) = self.job_of_request(request, attempt) {
            self.end(old, &Cause::new("ended", old.to_string()), at);
        }
    }

    /// An attempt is over.
    pub(crate) fn end_attempt(&mut self, attempt: AttemptId, at: (&Snapshot, &RouteSettings)) {
        let jobs = self.by_attempt.get(&attempt).cloned().unwrap_or_default();
        for decision in jobs {
            self.end(decision, &Cause::new("ended", decision.to_string()), at);
        }
    }

    /// A decision was never promised.
    pub(crate) fn undo(&mut self, decision: DecisionId, at: (&Snapshot, &RouteSettings)) {
        let Some(&host) = self.job_of.get(&decision) else { return };
        let cause = Cause::new("ended", decision.to_string());
        if host == decision {
            self.end(decision, &cause, at);
        } else if let Some(job) = self.jobs.get_mut(&host) {
            job.parts.remove(&decision);
            self.routes_had -= job.unheard.remove(&decision).map_or(0, |had| had.pairs());
            job.followed = None;
            self.job_of.remove(&decision);
            let sends = job.reckon();
            self.sends(host, sends, Wanted::NONE, &cause, at);
        }
    }

    /// A node is gone, and what its tasks sent and were sent.
    pub(crate) fn node_left(&mut self, node: NodeIdx, at: (&Snapshot, &RouteSettings)) {
        let jobs = self.by_node.remove(&node).unwrap_or_default();
        for decision in jobs {
            let Some(job) = self.jobs.get_mut(&decision) else { continue };
            if job.leave_node(node) {
                let sends = job.reckon();
                let cause = Cause::new("node_lost", at.0.host(node).0.clone());
                self.sends(decision, sends, Wanted::NONE, &cause, at);
            }
        }
    }

    /// Tasks of one request of an attempt left a node; whether the request has a job.
    pub(crate) fn leave_node(
        &mut self,
        (attempt, request): (AttemptId, &RequestId),
        node: NodeIdx,
        at: (&Snapshot, &RouteSettings),
    ) -> bool {
        let Some(decision) = self.job_of_request(request, attempt) else { return false };
        let Some(job) = self.jobs.get_mut(&decision) else { return false };
        if job.leave_node(node) {
            let sends = job.reckon();
            self.sends(decision, sends, Wanted::NONE, &Cause::new("node_lost", ""), at);
        }
        true
    }

    /// Ends jobs of which nothing was seen for too long, and those that nobody can be told of any more; `look` says what is
    /// seen of an attempt and these decisions, where somebody has (`true`) or nobody has the answer that they began with.
    pub(crate) fn end_idle(
        &mut self,
        look: impl Fn(AttemptId, &BTreeSet<DecisionId>, bool) -> Sight,
        at: (&Snapshot, &RouteSettings),
        now: Timestamp,
    ) {
        let mut over = Vec::new();
        for (&decision, job) in &mut self.jobs {
            let heard = !job.unheard.contains_key(&decision);
            match look(job.attempt, &job.parts.keys().copied().collect(), heard) {
                Sight::Seen => job.idle = None,
                Sight::Unseen if now.since(*job.idle.get_or_insert(now)) < at.1.keep_flows => {}
                Sight::Unseen | Sight::Forgotten => over.push(decision),
            }
        }
        for decision in over {
            self.end(decision, &Cause::new("ended", decision.to_string()), at);
        }
    }
}
