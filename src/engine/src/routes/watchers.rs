//! All watchers: who is told of a change, and the paths of pairs that are watched by name.
//!
//! A pair's route is that of the running flows where it is to be installed, whoever watches it and under whatever
//! name; else, where the pair is watched by name, a shortest path that changes only when it must.

use super::cause::{Cause, ChangeBatch};
use super::messages::{NamedRoute, Phase, RouteUpdate, WatchScope, WatchedPair, WatcherState};
use super::view::View;
use super::watcher::{AckTimeout, RouteChange, Watcher};
use crate::circuits::messages::WantedCircuits;
use crate::flows::settings::RouteSettings;
use crate::refusal::Refusal;
use hintd_model::cluster::{ChainPair, NodePair};
use hintd_model::network::{Pair, PathIndex};
use hintd_model::units::{LinkIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Updates to send: whose, and what.
pub(crate) type Out = Vec<(Arc<str>, Arc<RouteUpdate>)>;

/// Watchers without a stream that are kept beside the one that installs.
const DETACHED_MAX: usize = 8;

/// Steps that searches for paths of pairs watched by name may take between two ticks: some hundredths of a second. A step is
/// a vertex or a link that is looked at. What is left over waits for the next tick.
pub(crate) const PATH_STEPS_IN_ONE_GO: u64 = 1 << 22;

/// Highest number that a watcher may say it knows: updates are counted on from there.
const NUMBER_MAX: u64 = u64::MAX / 2;

/// Watchers and the paths of what they watch by name.
#[derive(Debug)]
pub(crate) struct Watchers {
    index: PathIndex,
    watchers: BTreeMap<Arc<str>, Watcher>,
    /// Who watches a pair of vertices by name, and under which names.
    by_pair: BTreeMap<Pair, BTreeSet<(Arc<str>, WatchedPair)>>,
    /// Circuits that are wanted.
    circuits: Option<Arc<WantedCircuits>>,
    /// Steps that are left until the next tick.
    steps: u64,
    /// Pairs whose path was found later than their watch began, and nobody was told yet.
    found: Vec<Pair>,
}

/// What came of a tick.
#[derive(Debug, Default)]
pub(crate) struct Ticked {
    pub(crate) updates: Out,
    /// Watchers that went silent, and why. They installed.
    pub(crate) silent: Vec<(Arc<str>, String)>,
}

impl Default for Watchers {
    fn default() -> Self {
        Self {
            index: PathIndex::new(0),
            watchers: BTreeMap::new(),
            by_pair: BTreeMap::new(),
            circuits: None,
            steps: PATH_STEPS_IN_ONE_GO,
            found: Vec::new(),
        }
    }
}

impl Watchers {
    /// Whether a watch of this scope may begin.
    pub(crate) fn check(&self, name: &str, scope: &WatchScope, view: &View<'_>) -> Result<(), Refusal> {
        for host in scope.pairs.iter().flat_map(|pair| [&pair.src, &pair.dst]) {
            if !view.knows(host) {
                return Err(Refusal::Unknown { what: "host", name: host.to_string(), nearest: None });
            }
        }
        if let Some(after) = scope.resume_after.filter(|&after| after > NUMBER_MAX) {
            let message = format!("{after} is no update's number");
            return Err(Refusal::Invalid { field: "resume_after".to_owned(), message });
        }
        match self.installer().filter(|(other, _)| scope.installs && ***other != *name) {
            None => Ok(()),
            Some((other, _)) => {
                let message = format!("\"{other}\" installs routes already; one watcher does at a time");
                Err(Refusal::Invalid { field: "installs".to_owned(), message })
            }
        }
    }

    /// The watcher that installs, unless it is silent or away: then another may take its place.
    fn installer(&self) -> Option<(&Arc<str>, &Watcher)> {
        self.watchers.iter().find(|(_, watcher)| watcher.installs && watcher.attached() && !watcher.is_silent())
    }

    /// Whether a watch would go on where it broke off: what it was refused stays so.
    pub(crate) fn resumes(&self, name: &str, scope: &WatchScope) -> bool {
        self.watchers.get(name).is_some_and(|watcher| watcher.resumes(scope).is_some())
    }

    /// Watches under a name, instead of what it watched before: what it missed, or all its routes.
    pub(crate) fn watch(
        &mut self,
        name: &str,
        scope: &WatchScope,
        view: &View<'_>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Vec<Arc<RouteUpdate>> {
        if let Some(earlier) = self.watchers.get_mut(name).filter(|earlier| earlier.attached()) {
            earlier.replaced += 1;
        }
        let missed = self.watchers.get_mut(name).and_then(|watcher| watcher.resume(scope, settings, now));
        if let Some(missed) = missed {
            return missed;
        }
        let earlier = self.remove(name);
        if scope.installs {
            let others = self.watchers.iter().filter(|(_, watcher)| watcher.installs);
            let others: Vec<Arc<str>> = others.map(|(name, _)| Arc::clone(name)).collect();
            for name in others {
                self.remove(&name);
            }
        }
        let name: Arc<str> = name.into();
        let mut watcher = Watcher::new(scope, earlier, now);
        for pair in &scope.pairs {
            self.list(&name, pair, view);
        }
        self.search(view);
        watcher.wanted = self.circuits.clone().filter(|_| scope.circuits);
        let routes = self.all_of(&watcher, view);
        let first = watcher.snapshot(routes, Phase::Initial, settings, now);
        self.watchers.insert(name, watcher);
        vec![first]
    }

    /// A stream ended; what it was told is kept for a time.
    pub(crate) fn unwatch(&mut self, name: &str, now: Timestamp) {
        let Some(watcher) = self.watchers.get_mut(name) else { return };
        watcher.detach(now);
        let away = self.watchers.iter().filter(|(_, watcher)| !watcher.installs);
        let mut away: Vec<_> =
            away.filter_map(|(name, watcher)| Some((watcher.detached_since()?, name.clone()))).collect();
        away.sort_unstable();
        for (_, name) in away.iter().take(away.len().saturating_sub(DETACHED_MAX)) {
            self.remove(name);
        }
    }

    fn remove(&mut self, name: &str) -> Option<Watcher> {
        let watcher = self.watchers.remove(name)?;
        let index = &mut self.index;
        self.by_pair.retain(|&pair, watching| {
            watching.retain(|(watcher, _)| **watcher != *name);
            if watching.is_empty() {
                index.remove(pair);
            }
            !watching.is_empty()
        });
        Some(watcher)
    }

    /// How often a Watch of that name ended an earlier one whose stream was open.
    pub(crate) fn replaced(&self, name: &str) -> u64 {
        self.watchers.get(name).map_or(0, |watcher| watcher.replaced)
    }

    /// Whether that watcher watches circuits, with a stream.
    pub(crate) fn watches_circuits(&self, name: &str) -> bool {
        self.watchers.get(name).is_some_and(|watcher| watcher.circuits && watcher.attached())
    }

    /// Other circuits are wanted from now on: tells whoever watches them.
    pub(crate) fn tell_circuits(
        &mut self,
        wanted: Arc<WantedCircuits>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Out {
        let mut out = Out::new();
        for (name, watcher) in &mut self.watchers {
            let update = watcher.circuits(&wanted, settings, now).filter(|_| watcher.attached());
            out.extend(update.map(|update| (Arc::clone(name), update)));
        }
        self.circuits = Some(wanted);
        out
    }

    /// The same circuits are wanted, with what is expected of them now: for those who begin to watch, and are told all again.
    pub(crate) fn renew_circuits(&mut self, wanted: Option<&Arc<WantedCircuits>>) {
        let (Some(told), Some(wanted)) = (&mut self.circuits, wanted) else { return };
        if told.version != wanted.version {
            return;
        }
        *told = Arc::clone(wanted);
        self.watchers.values_mut().for_each(|watcher| watcher.renew_circuits(wanted));
    }

    /// Pairs that one watcher watches by name.
    pub(crate) fn watched_by(&self, name: &str) -> usize {
        self.watchers.get(name).filter(|watcher| watcher.attached()).map_or(0, |watcher| watcher.pairs.len())
    }

    /// Pairs watched by name, of all watchers with a stream.
    pub(crate) fn len(&self) -> usize {
        self.watchers.values().filter(|watcher| watcher.attached()).map(|watcher| watcher.pairs.len()).sum()
    }

    /// How watchers stand, by name.
    pub(crate) fn states(&self) -> Vec<WatcherState> {
        self.watchers.iter().map(|(name, watcher)| watcher.state(name)).collect()
    }

    /// Takes an acknowledgement, and what could not be installed: how many updates are outstanding.
    pub(crate) fn acknowledge(
        &mut self,
        name: &str,
        number: u64,
        refused: Vec<(WatchedPair, String)>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Result<(u64, Option<Arc<RouteUpdate>>), Refusal> {
        let unknown = || Refusal::Unknown { what: "watcher", name: name.to_owned(), nearest: None };
        let watcher = self.watchers.get_mut(name).filter(|watcher| !watcher.is_silent()).ok_or_else(unknown)?;
        watcher.check(name, number, &refused)?;
        for (pair, reason) in refused {
            watcher.refuse(pair, &reason);
        }
        let update = watcher.acknowledge(number, settings, now);
        Ok((watcher.outstanding(), update.filter(|_| watcher.attached())))
    }

    /// These links changed: pairs on them that are watched by name get the shortest path left, and nobody else's is
    /// looked at. Which pairs are to be told, and whether their old path is broken.
    pub(crate) fn links_changed(&mut self, links: &[LinkIdx], view: &View<'_>) -> Vec<(Pair, Phase)> {
        let Some(network) = view.network() else { return Vec::new() };
        let dead = links.iter().filter(|&&link| !network.is_usable(link));
        let mut broken: BTreeSet<Pair> = dead.flat_map(|&link| self.index.pairs_on(link)).collect();
        broken.extend(self.index.iter().filter(|(_, path)| path.is_none()).map(|(pair, _)| pair));
        let changed = self.index.on_change_within(network, links, &mut self.steps).changed;
        let phase = |pair: &Pair| {
            if broken.contains(pair) { Phase::Failover } else { Phase::Make }
        };
        changed.into_iter().map(|(pair, _)| (pair, phase(&pair))).collect()
    }

    /// The network is another one: every pair watched by name is looked for anew.
    pub(crate) fn network_changed(&mut self, view: &View<'_>) {
        self.index = PathIndex::new(0);
        self.by_pair.clear();
        let watched: Vec<(Arc<str>, WatchedPair)> = self
            .watchers
            .iter()
            .flat_map(|(name, watcher)| watcher.pairs.iter().map(move |pair| (Arc::clone(name), pair.clone())))
            .collect();
        for (name, pair) in watched {
            self.list(&name, &pair, view);
        }
        self.search(view);
        self.found.clear(); // all is told anew
    }

    /// Looks for paths of pairs that have been waiting for it, as far as there is time.
    fn search(&mut self, view: &View<'_>) {
        if let Some(network) = view.network().filter(|_| self.steps > 0) {
            self.found.extend(self.index.go_on(network, &mut self.steps));
        }
    }

    /// Goes on with paths that there was no time for. Whoever watches the pairs is told of what was found.
    pub(crate) fn go_on(&mut self, view: &View<'_>, settings: &RouteSettings, now: Timestamp) -> Out {
        self.steps = PATH_STEPS_IN_ONE_GO;
        self.search(view);
        let found = std::mem::take(&mut self.found);
        if found.is_empty() {
            return Out::new();
        }
        let occasion = ChangeBatch { phase: Phase::Make, cause: Cause::new("initial", "") };
        self.tell(&[], &found, &occasion, view, settings, now)
    }

    /// Whether paths are still to be looked for, and the steps of all searches so far.
    #[cfg(test)]
    pub(crate) fn searches(&self) -> (bool, u64) {
        (self.index.is_due(), self.index.steps())
    }

    fn list(&mut self, name: &Arc<str>, watched: &WatchedPair, view: &View<'_>) {
        let (Some(_), Some(pair)) = (view.network(), view.vertices(watched)) else { return };
        self.by_pair.entry(pair).or_default().insert((Arc::clone(name), watched.clone()));
        self.index.insert_later(pair);
    }

    /// Tells whoever watches these pairs what is news to them.
    pub(crate) fn tell(
        &mut self,
        flows: &[NodePair],
        named: &[Pair],
        occasion: &ChangeBatch,
        view: &View<'_>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Out {
        // What was refused was the route of traffic that is no more.
        for pair in flows.iter().filter(|pair| view.routes.get(pair).is_none()) {
            let pair = view.watched(*pair);
            self.watchers.values_mut().for_each(|watcher| watcher.forgive(&pair));
        }
        let mut news: BTreeMap<Arc<str>, Vec<RouteChange>> = BTreeMap::new();
        let by_name = flows.iter().filter_map(|pair| view.vertices_of(*pair)).chain(named.iter().copied());
        for (watcher, pair) in by_name.filter_map(|pair| self.by_pair.get(&pair)).flatten() {
            news.entry(Arc::clone(watcher)).or_default().push((pair.clone(), self.route(pair, view)));
        }
        let all: Vec<Arc<str>> =
            self.watchers.iter().filter(|(_, watcher)| watcher.flows).map(|(name, _)| Arc::clone(name)).collect();
        if !all.is_empty() {
            let routes: Vec<RouteChange> =
                flows.iter().map(|pair| (view.watched(*pair), view.flow_route(*pair))).collect();
            for name in all {
                let of = news.entry(Arc::clone(&name)).or_default();
                let watcher = &self.watchers[&name];
                of.extend(routes.iter().filter(|(pair, _)| !watcher.pairs.contains(pair)).cloned());
            }
        }
        self.send(news, occasion, settings, now)
    }

    /// Tells whoever watches these pairs under chains what is news to them.
    pub(crate) fn tell_chained(
        &mut self,
        keys: &[ChainPair],
        occasion: &ChangeBatch,
        view: &View<'_>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Out {
        let routes: Vec<RouteChange> =
            keys.iter().map(|key| (view.watched_chained(key), view.chained_route(key))).collect();
        for (pair, _) in routes.iter().filter(|(_, route)| route.is_none()) {
            self.watchers.values_mut().for_each(|watcher| watcher.forgive(pair));
        }
        let mut news: BTreeMap<Arc<str>, Vec<RouteChange>> = BTreeMap::new();
        for (name, watcher) in &self.watchers {
            let by_name = |(pair, _): &&RouteChange| watcher.pairs.contains(pair);
            let named = routes.iter().filter(by_name).map(|(pair, _)| (pair.clone(), self.route(pair, view)));
            let others = routes.iter().filter(|of| watcher.flows && !by_name(of)).cloned();
            news.insert(Arc::clone(name), named.chain(others).collect());
        }
        self.send(news, occasion, settings, now)
    }

    fn send(
        &mut self,
        news: BTreeMap<Arc<str>, Vec<RouteChange>>,
        occasion: &ChangeBatch,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Out {
        let mut out = Vec::new();
        for (name, news) in news {
            let Some(watcher) = self.watchers.get_mut(&name) else { continue };
            let update = watcher.update(news, occasion.phase, &occasion.cause, settings, now);
            out.extend(update.filter(|_| watcher.attached()).map(|update| (name, update)));
        }
        out
    }

    /// Tells every watcher whatever is news to it: the network is another one.
    pub(crate) fn tell_all(
        &mut self,
        occasion: &ChangeBatch,
        view: &View<'_>,
        settings: &RouteSettings,
        now: Timestamp,
    ) -> Out {
        let mut out = Vec::new();
        let names: Vec<Arc<str>> = self.watchers.keys().cloned().collect();
        for name in names {
            let mut news: BTreeMap<WatchedPair, Option<NamedRoute>> =
                self.watchers[&name].told_pairs().map(|pair| (pair.clone(), None)).collect();
            let routes = self.all_of(&self.watchers[&name], view);
            news.extend(routes.into_iter().map(|route| (route.pair.clone(), Some(route))));
            let watcher = self.watchers.get_mut(&name).expect("its name was just read");
            let update = watcher.update(news.into_iter().collect(), occasion.phase, &occasion.cause, settings, now);
            out.extend(update.filter(|_| watcher.attached()).map(|update| (name, update)));
        }
        out
    }

    /// Sends again what was not acknowledged in time, and gives up who never does.
    pub(crate) fn tick(&mut self, view: &View<'_>, settings: &RouteSettings, now: Timestamp) -> Ticked {
        let late = self.watchers.iter().filter(|(_, watcher)| watcher.overdue(settings, now));
        let late: Vec<Arc<str>> = late.map(|(name, _)| Arc::clone(name)).collect();
        let mut ticked = Ticked::default();
        for name in late {
            let Some(mut watcher) = self.watchers.remove(&name) else { continue };
            if !watcher.installs {
                self.watchers.insert(Arc::clone(&name), watcher);
                self.remove(&name);
                continue;
            }
            match watcher.give_up(|watcher| self.all_of(watcher, view), settings, now) {
                AckTimeout::Resync(update) => ticked.updates.push((Arc::clone(&name), update)),
                AckTimeout::Silent(reason) => ticked.silent.push((Arc::clone(&name), reason)),
            }
            self.watchers.insert(name, watcher);
        }
        ticked
    }

    /// All routes that a watcher should have, by pair.
    fn all_of(&self, watcher: &Watcher, view: &View<'_>) -> Vec<NamedRoute> {
        let mut routes: BTreeMap<WatchedPair, NamedRoute> = BTreeMap::new();
        if watcher.flows {
            let all = view.routes.iter().filter(|(_, route)| route.installed);
            routes
                .extend(all.map(|(pair, route)| (view.watched(*pair), view.named(view.watched(*pair), &route.links))));
        }
        if watcher.flows {
            let chained = view.chained.routes.iter().filter_map(|(key, _)| view.chained_route(key));
            routes.extend(chained.map(|route| (route.pair.clone(), route)));
        }
        for pair in &watcher.pairs {
            let route = self.route(pair, view);
            routes.extend(route.map(|route| (pair.clone(), route)));
        }
        routes.retain(|pair, _| !watcher.is_refused(pair));
        routes.into_values().collect()
    }

    /// The route of a pair that is watched by name.
    fn route(&self, watched: &WatchedPair, view: &View<'_>) -> Option<NamedRoute> {
        if let Some(route) = view.chained_by_name(watched) {
            return Some(route);
        }
        let of_flows = view.nodes(watched).and_then(|pair| view.flow_route(pair));
        let path = || view.vertices(watched).and_then(|pair| self.index.path(pair));
        let route = of_flows
            .map_or_else(|| view.named_path(watched, path()), |route| NamedRoute { pair: watched.clone(), ..route });
        Some(route)
    }
}
