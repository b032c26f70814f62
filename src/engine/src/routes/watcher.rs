//! One watcher: what it was told, what waits for its acknowledgement, and what it may have missed.

use super::Cause;
use super::messages::{
    NamedRoute, Phase, RouteUpdate, RuleChange, WatchScope, WatchedPair, WatcherProgress, WatcherState,
};
use super::rules::PairRules;
use crate::circuits::messages::WantedCircuits;
use crate::flows::settings::RouteSettings;
use crate::refusal::Refusal;
use hintd_model::units::{Micros, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A watcher.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) pairs: BTreeSet<WatchedPair>,
    pub(super) flows: bool,
    pub(super) installs: bool,
    pub(super) circuits: bool,
    /// Circuits that are wanted, where it watches them.
    pub(super) wanted: Option<Arc<WantedCircuits>>,
    since: Timestamp,
    /// Since when no stream carries its updates.
    detached: Option<Timestamp>,
    number: u64,
    acknowledged: u64,
    told: BTreeMap<WatchedPair, InstalledPair>,
    /// Pairs told that have a route.
    routed: usize,
    refused: BTreeMap<WatchedPair, Arc<str>>,
    /// Updates that end with the last one, or what came since a snapshot.
    log: VecDeque<Arc<RouteUpdate>>,
    /// Until when something is to be acknowledged.
    deadline: Option<Timestamp>,
    tries: u32,
    silent: bool,
    /// So often a later Watch of the name began while this one's stream was open.
    pub(super) replaced: u64,
}

#[derive(Debug, Default)]
struct InstalledPair {
    /// `None`: it has none any more, but its rules may not be gone yet.
    route: Option<NamedRoute>,
    rules: PairRules,
}

/// A pair's new route, none: default forwarding.
pub(super) type RouteChange = (WatchedPair, Option<NamedRoute>);

/// What has become of a watcher that did not acknowledge.
pub(super) enum AckTimeout {
    /// It is sent all of it again.
    Resync(Arc<RouteUpdate>),
    /// It is given up.
    Silent(String),
}

impl Watcher {
    /// A new watch, after an earlier one of the same name. Numbers go on from that one's, and from what the watcher
    /// knows.
    pub(super) fn new(scope: &WatchScope, earlier: Option<Self>, now: Timestamp) -> Self {
        let number = earlier.as_ref().map_or(0, |earlier| earlier.number).max(scope.resume_after.unwrap_or(0));
        let replaced = earlier.as_ref().map_or(0, |earlier| earlier.replaced);
        let told = earlier.filter(|earlier| earlier.installs && scope.installs).map(|earlier| earlier.told);
        let told = told.unwrap_or_default();
        Self {
            routed: told.values().filter(|told| told.route.is_some()).count(),
            pairs: scope.pairs.iter().cloned().collect(),
            flows: scope.flows,
            installs: scope.installs,
            circuits: scope.circuits,
            wanted: None,
            since: now,
            detached: None,
            number,
            acknowledged: number,
            told,
            refused: BTreeMap::new(),
            log: VecDeque::new(),
            deadline: None,
            tries: 0,
            silent: false,
            replaced,
        }
    }

    /// Whether a stream of this scope can be taken up again: after which number. `None` where the log does not reach
    /// back, or it is another watch.
    pub(super) fn resumes(&self, scope: &WatchScope) -> Option<u64> {
        let after = scope.resume_after?;
        let same = (scope.flows, scope.installs, scope.circuits) == (self.flows, self.installs, self.circuits)
            && scope.pairs.iter().cloned().collect::<BTreeSet<_>>() == self.pairs;
        let first = self.log.front();
        let reaches = after == self.number
            || (after < self.number && first.is_some_and(|first| first.snapshot || first.number <= after + 1));
        (same && !self.silent && reaches).then_some(after)
    }

    /// Takes a stream of the same scope up again: what it missed, or `None` where it can't be.
    pub(super) fn resume(
        &mut self,
        scope: &WatchScope,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Option<Vec<Arc<RouteUpdate>>> {
        let after = self.resumes(scope)?;
        (self.since, self.detached) = (now, None);
        self.deadline = self.waits().then(|| now.plus(settings.ack_timeout));
        Some(self.log.iter().filter(|update| update.number > after).cloned().collect())
    }

    /// All routes at once; what was told before and is not among them goes.
    pub(super) fn snapshot(
        &mut self,
        routes: Vec<NamedRoute>,
        phase: Phase,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Arc<RouteUpdate> {
        self.number += 1;
        let mut rules = Vec::new();
        let named: BTreeSet<WatchedPair> = routes.iter().map(|route| route.pair.clone()).collect();
        let others: Vec<WatchedPair> = self.told.keys().filter(|pair| !named.contains(pair)).cloned().collect();
        for route in &routes {
            self.tell(&route.pair, Some(route.clone()), How::Anew, &mut rules);
        }
        for pair in others {
            self.tell(&pair, None, How::Anew, &mut rules);
        }
        let cause = Cause { what: if phase == Phase::Resync { "resync" } else { "initial" }, subject: "".into() };
        self.log.clear();
        let draft = Draft { snapshot: true, routes, rules, circuits: self.wanted.clone(), ..Draft::new(phase, 0) };
        self.send(draft, &cause, settings, now)
    }

    /// Tells which circuits are wanted from now on; `None`: it does not watch them.
    pub(super) fn circuits(
        &mut self,
        wanted: &Arc<WantedCircuits>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Option<Arc<RouteUpdate>> {
        if !self.circuits {
            return None;
        }
        self.wanted = Some(Arc::clone(wanted));
        if self.silent {
            return None;
        }
        self.number += 1;
        let cause = Cause::new("circuits", wanted.cause);
        let draft = Draft { circuits: self.wanted.clone(), ..Draft::new(Phase::Make, self.routes() as u64) };
        Some(self.send(draft, &cause, settings, now))
    }

    /// The same circuits with what is expected of them now, for the next time that it is told all.
    pub(super) fn renew_circuits(&mut self, wanted: &Arc<WantedCircuits>) {
        if let Some(told) = &mut self.wanted {
            *told = Arc::clone(wanted);
        }
    }

    /// Tells what is news to it; `None`: nothing is.
    pub(super) fn update(
        &mut self,
        news: Vec<RouteChange>,
        phase: Phase,
        cause: &Cause,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Option<Arc<RouteUpdate>> {
        if self.silent {
            return None;
        }
        let mut changed: BTreeMap<WatchedPair, Option<NamedRoute>> = BTreeMap::new();
        for (pair, route) in news {
            let route = route.filter(|_| !self.refused.contains_key(&pair));
            if self.route(&pair) != route.as_ref() {
                changed.insert(pair, route);
            }
        }
        if changed.is_empty() {
            return None;
        }
        self.number += 1;
        let (mut routes, mut removed, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        let how = if phase == Phase::Make { How::Beside } else { How::Instead };
        for (pair, route) in changed {
            self.tell(&pair, route.clone(), how, &mut rules);
            match route {
                Some(route) => routes.push(route),
                None => removed.push(pair),
            }
        }
        let untouched = (self.routes() - routes.len()) as u64;
        Some(self.send(Draft { routes, removed, rules, ..Draft::new(phase, untouched) }, cause, settings, now))
    }

    /// Notes a pair's new route and what its switches have to do.
    fn tell(&mut self, pair: &WatchedPair, route: Option<NamedRoute>, how: How, rules: &mut Vec<RuleChange>) {
        let told = self.told.entry(pair.clone()).or_default();
        self.routed = self.routed - usize::from(told.route.is_some()) + usize::from(route.is_some());
        if self.installs {
            let number = self.number;
            // Rules tell pairs apart by their ends, and one switch has one for each: a way through boxes may pass it twice.
            match route.as_ref().filter(|route| !route.links.is_empty() && route.stops.is_empty()) {
                None => told.rules.clear(pair, number, rules),
                Some(route) => told.rules.install(route, number, how == How::Anew, rules),
            }
            match how {
                How::Beside => {}
                How::Instead => told.rules.drop_old(pair, number, rules),
                How::Anew => told.rules.sweep(pair, number, rules),
            }
        }
        told.route = route;
        if told.route.is_none() && told.rules.is_empty() {
            self.told.remove(pair);
        }
    }

    fn send(&mut self, draft: Draft, cause: &Cause, settings: &RouteSettings, now: Timestamp) -> Arc<RouteUpdate> {
        let update = Arc::new(RouteUpdate {
            number: self.number,
            snapshot: draft.snapshot,
            routes: draft.routes,
            removed: draft.removed,
            rules: draft.rules,
            phase: draft.phase,
            cause: cause.what,
            subject: Arc::clone(&cause.subject),
            untouched: draft.untouched,
            circuits: draft.circuits,
        });
        self.log.push_back(Arc::clone(&update));
        while self.log.len() > settings.updates_keep.max(1) {
            self.log.pop_front();
        }
        if self.installs && self.detached.is_none() {
            self.deadline.get_or_insert(now.plus(settings.ack_timeout));
        }
        update
    }

    /// Whether an acknowledgement makes sense.
    pub(super) fn check(&self, name: &str, number: u64, refused: &[(WatchedPair, String)]) -> Result<(), Refusal> {
        let invalid = |field: &str, message| Err(Refusal::Invalid { field: field.to_owned(), message });
        if number == 0 || number > self.number {
            return invalid(
                "number",
                format!("update {number} was not sent to \"{name}\"; the last was {}", self.number),
            );
        }
        if number <= self.acknowledged {
            return invalid("number", format!("update {number} of \"{name}\" is acknowledged already"));
        }
        // A later update that is on its way may have taken a refused route back.
        let gone = |pair: &WatchedPair| {
            let mut later = self.log.iter().rev().take_while(|update| update.number > number);
            later.any(|update| update.snapshot || update.removed.contains(pair))
        };
        for (at, (pair, _)) in refused.iter().enumerate() {
            if self.route(pair).is_none() && !gone(pair) {
                let message = format!("\"{name}\" has no route from \"{}\" to \"{}\"", pair.src, pair.dst);
                return invalid(&format!("refused[{at}]"), message);
            }
        }
        Ok(())
    }

    /// Takes an acknowledgement that makes sense. The update that follows from it, if one does: what no route uses any
    /// more goes.
    pub(super) fn acknowledge(
        &mut self,
        number: u64,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Option<Arc<RouteUpdate>> {
        self.acknowledged = number;
        self.tries = 0;
        self.deadline = self.waits().then(|| now.plus(settings.ack_timeout));
        let mut loose = Vec::new();
        self.told.retain(|pair, told| {
            if told.rules.acknowledged(number) {
                loose.push(pair.clone());
            }
            told.route.is_some() || !told.rules.is_empty()
        });
        if loose.is_empty() {
            return None;
        }
        self.number += 1;
        let mut rules = Vec::new();
        for pair in loose {
            let told = self.told.get_mut(&pair).expect("it was found above");
            told.rules.break_old(&pair, number, self.number, &mut rules);
        }
        let draft = Draft { rules, ..Draft::new(Phase::Break, self.routes() as u64) };
        let cause = Cause { what: "acknowledged", subject: number.to_string().into() };
        Some(self.send(draft, &cause, settings, now))
    }

    /// Notes that it could not install a pair's route, if the pair still has one.
    pub(super) fn refuse(&mut self, pair: WatchedPair, reason: &str) {
        if self.route(&pair).is_some() {
            self.refused.insert(pair, reason.into());
        }
    }

    /// Forgets that a pair was refused.
    pub(super) fn forgive(&mut self, pair: &WatchedPair) {
        self.refused.remove(pair);
    }

    /// Whether its time to acknowledge, or to come back, has passed.
    pub(super) fn overdue(&self, settings: &RouteSettings, now: Timestamp) -> bool {
        // Who installs is waited for as long as for an acknowledgement: its routes stand in for switches meanwhile.
        let tries = u64::from(settings.ack_tries) + 1;
        let patience =
            if self.installs { Micros(settings.ack_timeout.0.saturating_mul(tries)) } else { settings.keep_flows };
        let gone = self.detached.is_some_and(|since| now.since(since) >= patience);
        !self.silent && (gone || self.deadline.is_some_and(|deadline| deadline <= now))
    }

    /// What follows from being overdue; `routes` are all that it should have.
    pub(super) fn give_up(
        &mut self,
        routes: impl FnOnce(&Self) -> Vec<NamedRoute>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> AckTimeout {
        if self.detached.is_none() && self.tries < settings.ack_tries {
            self.tries += 1;
            self.deadline = Some(now.plus(settings.ack_timeout));
            let routes = routes(self);
            return AckTimeout::Resync(self.snapshot(routes, Phase::Resync, settings, now));
        }
        let reason = match self.detached {
            Some(_) => "its stream broke and it did not come back".to_owned(),
            None => format!(
                "update {} was never acknowledged, nor {} snapshots after it",
                self.acknowledged + 1,
                self.tries
            ),
        };
        (self.silent, self.deadline) = (true, None);
        self.detached.get_or_insert(now);
        self.log.clear();
        AckTimeout::Silent(reason)
    }

    /// Its stream ended.
    pub(super) fn detach(&mut self, now: Timestamp) {
        self.detached.get_or_insert(now);
        self.deadline = None; // nobody is there to be late
    }

    pub(super) const fn attached(&self) -> bool {
        self.detached.is_none()
    }

    pub(super) const fn detached_since(&self) -> Option<Timestamp> {
        self.detached
    }

    pub(super) const fn is_silent(&self) -> bool {
        self.silent
    }

    pub(super) const fn outstanding(&self) -> u64 {
        self.number - self.acknowledged
    }

    const fn waits(&self) -> bool {
        self.installs && self.outstanding() > 0
    }

    fn route(&self, pair: &WatchedPair) -> Option<&NamedRoute> {
        self.told.get(pair)?.route.as_ref()
    }

    pub(super) fn is_refused(&self, pair: &WatchedPair) -> bool {
        self.refused.contains_key(pair)
    }

    /// Pairs that it has a route of.
    pub(super) fn told_pairs(&self) -> impl Iterator<Item = &WatchedPair> {
        self.told.iter().filter(|(_, told)| told.route.is_some()).map(|(pair, _)| pair)
    }

    const fn routes(&self) -> usize {
        self.routed
    }

    pub(super) fn state(&self, name: &Arc<str>) -> WatcherState {
        let progress = match () {
            () if self.silent => WatcherProgress::Silent,
            () if self.waits() => WatcherProgress::Waiting,
            () => WatcherProgress::Current,
        };
        WatcherState {
            name: Arc::clone(name),
            installs: self.installs,
            sent: self.number,
            acknowledged: self.acknowledged,
            since: self.since,
            progress,
            away_since: self.detached,
            routes: self.routes(),
            refused: self.refused.iter().map(|(pair, reason)| (pair.clone(), Arc::clone(reason))).collect(),
        }
    }
}

/// How new rules come to be beside old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Old ones stay for now.
    Beside,
    /// Old ones go in the same update.
    Instead,
    /// As if nothing were there, and whatever may be there goes.
    Anew,
}

/// An update before it has number and cause.
struct Draft {
    snapshot: bool,
    routes: Vec<NamedRoute>,
    removed: Vec<WatchedPair>,
    rules: Vec<RuleChange>,
    phase: Phase,
    untouched: u64,
    circuits: Option<Arc<WantedCircuits>>,
}

impl Draft {
    /// Nothing but its phase, and how many watched pairs it does not touch.
    const fn new(phase: Phase, untouched: u64) -> Self {
        Self {
            snapshot: false,
            routes: Vec::new(),
            removed: Vec::new(),
            rules: Vec::new(),
            phase,
            untouched,
            circuits: None,
        }
    }
}
