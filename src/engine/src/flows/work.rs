//! Routes changed because of the network: a bounded number at a time, failures before what is planned.

use super::Flows;
use super::choose::RoutingContext;
use super::pairs::{ForwardingMode, Links, PairUpdate, is_whole};
use super::settings::RouteSettings;
use crate::effects::Counter;
use crate::routes::view::undirected;
use crate::routes::{Cause, Phase};
use hintd_model::cluster::{NodePair, Snapshot};
use hintd_model::units::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Pairs of default forwarding looked at in one go: they change no rule, only what is known of them.
const PLAIN_MAX: usize = 20_000;

/// What is to be done for a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    /// Rules, where there is room for them now.
    Rules,
    /// A better route, if there is one.
    Better,
    /// Its first route, where that is whole again.
    Home,
    /// Any route.
    Route,
}

/// A route change that waits.
#[derive(Debug)]
struct PairWork {
    pair: NodePair,
    want: Want,
    cause: Cause,
}

/// Pairs in the order in which they came, each once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: VecDeque<NodePair>,
    wants: BTreeMap<NodePair, (Want, Cause)>,
}

impl Queue {
    pub(super) fn push(&mut self, pair: NodePair, want: Want, cause: &Cause) {
        match self.wants.get_mut(&pair) {
            Some(known) if known.0 >= want => {}
            Some(known) => *known = (want, cause.clone()),
            None => {
                self.wants.insert(pair, (want, cause.clone()));
                self.order.push_back(pair);
            }
        }
    }

    pub(super) fn remove(&mut self, pair: NodePair) {
        self.wants.remove(&pair); // its place in the order is passed over
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wants.is_empty()
    }

    #[cfg(test)]
    pub(super) fn is_waiting(&self, pair: NodePair) -> bool {
        self.wants.contains_key(&pair)
    }

    fn pop(&mut self) -> Option<PairWork> {
        loop {
            let pair = self.order.pop_front()?;
            if let Some((want, cause)) = self.wants.remove(&pair) {
                return Some(PairWork { pair, want, cause });
            }
        }
    }
}

impl Flows {
    /// Whether route changes wait.
    pub fn waits(&self) -> bool {
        !self.failed.is_empty() || !self.planned.is_empty()
    }

    /// Goes on with what waits, calms links down, and gives rules to pairs that there was no room for.
    pub fn tick(&mut self, at: (&Snapshot, &RouteSettings), now: Timestamp) {
        if self.table.is_some() {
            self.table = at.0.topology.shared_paths().cloned();
        }
        self.tick_chained(at);
        for link in self.damping.calm(at.1, now) {
            self.changed = true;
            let subject = self.network.as_ref().map_or_else(|| "".into(), |known| known.link_at(link).name.0.clone());
            let cause = Cause::new("link_quiet", subject);
            for pair in self.pairs.default_pairs_on(link) {
                self.planned.push(pair, Want::Home, &cause);
            }
        }
        if std::mem::take(&mut self.pairs.freed) {
            for &pair in &self.pairs.crowded {
                self.planned.push(pair, Want::Rules, &Cause::new("rules_freed", ""));
            }
        }
        if self.waits() {
            self.work(at, now);
        }
    }

    /// Changes as many routes as may be changed now.
    pub(super) fn work(&mut self, (snapshot, settings): (&Snapshot, &RouteSettings), now: Timestamp) {
        let Some(ways) = RoutingContext::of(snapshot, settings, &mut self.table) else { return };
        let tokens = self.bucket.tokens(settings.changes_per_s, now);
        let (ruled, plain) = self.due(true, tokens);
        self.replan_plain(plain, &ways);
        let failed = self.fail_over(ruled, &ways);
        self.count(Counter::RoutesFailedOver, failed);
        let left = tokens.saturating_sub(failed);
        let mut planned = 0;
        if self.failed.is_empty() {
            let (ruled, plain) = self.due(false, left);
            self.replan_plain(plain, &ways);
            planned = self.plan(ruled, &ways);
            self.count(Counter::RoutesPlanned, planned);
        }
        self.bucket.take(failed + planned);
    }

    /// Takes pairs from a queue: those with rules of their own, at most `tokens`, and the others.
    fn due(&mut self, failed: bool, tokens: u64) -> (Vec<PairWork>, Vec<NodePair>) {
        let (mut ruled, mut plain) = (Vec::new(), Vec::new());
        while (ruled.len() as u64) < tokens && plain.len() < PLAIN_MAX {
            let queue = if failed { &mut self.failed } else { &mut self.planned };
            let Some(work) = queue.pop() else { break };
            match self.pairs.all.get(&work.pair).map(|talking| talking.carried) {
                None => {}
                Some(ForwardingMode::Rules) => ruled.push(work),
                Some(ForwardingMode::Crowded) if work.want == Want::Rules => ruled.push(work),
                Some(_) => plain.push(work.pair),
            }
        }
        (ruled, plain)
    }

    /// Default forwarding finds its way by itself: the shortest path stands for it.
    fn replan_plain(&mut self, pairs: Vec<NodePair>, ways: &RoutingContext<'_>) {
        let Some(index) = &mut self.index else { return };
        index.hold();
        for pair in pairs {
            if ways.is_spent() {
                self.failed.push(pair, Want::Route, &Cause::new("topology", ""));
                continue;
            }
            let talking = &self.pairs.all[&pair];
            let route = ways.first(pair);
            if route == talking.route {
                continue;
            }
            let home = talking.home.clone().or_else(|| Some(Arc::clone(&talking.route)).filter(|old| !old.is_empty()));
            let carried = talking.carried;
            index.set_route(pair, Some(&route));
            self.pairs.lay(pair, PairUpdate { route, home, carried }, Some(ways.network));
            self.changed = true;
        }
        index.recompute_rates();
    }

    /// Gives pairs whose route is broken another: their first one, if that is whole, else what is left. How many
    /// routes changed.
    fn fail_over(&mut self, pairs: Vec<PairWork>, ways: &RoutingContext<'_>) -> u64 {
        let Some(index) = &mut self.index else { return 0 };
        let mut changed: Vec<(NodePair, Links)> = Vec::new();
        let (mut open, mut causes) = (Vec::new(), BTreeMap::new());
        index.hold();
        for PairWork { pair, cause, .. } in pairs {
            let talking = &self.pairs.all[&pair];
            if is_whole(ways.network, &talking.route) {
                continue; // it came back before its turn
            }
            causes.insert(pair, cause);
            let free = |home: &&Links| is_whole(ways.network, home) && is_free(home, self.damping.avoided());
            match talking.home.as_ref().filter(free) {
                Some(home) => {
                    index.set_route(pair, Some(home));
                    changed.push((pair, Arc::clone(home)));
                }
                None => open.push(pair),
            }
        }
        index.recompute_rates();
        changed.extend(ways.choose(index, &open, self.damping.avoided(), false));
        if ways.is_spent() {
            let lacking = |pair: &&NodePair| index.route(**pair).is_none_or(<[_]>::is_empty);
            for pair in open.iter().filter(lacking) {
                let cause = causes.get(pair).cloned().unwrap_or_else(|| Cause::new("topology", ""));
                self.failed.push(*pair, Want::Route, &cause);
            }
        }
        let number = changed.len() as u64;
        for (pair, route) in changed {
            let talking = &self.pairs.all[&pair];
            let home = talking.home.clone().or_else(|| Some(Arc::clone(&talking.route)).filter(|old| !old.is_empty()));
            self.install(pair, PairUpdate { route, home, carried: ForwardingMode::Rules }, ways);
            let cause = causes.remove(&pair).unwrap_or_else(|| Cause::new("topology", ""));
            self.tell(pair, Phase::Failover, &cause);
        }
        number
    }

    /// Planned changes; none of them makes utility fall. How many routes changed.
    fn plan(&mut self, pairs: Vec<PairWork>, ways: &RoutingContext<'_>) -> u64 {
        let (mut home, mut better, mut causes) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut number = 0;
        for PairWork { pair, want, cause } in pairs {
            match want {
                Want::Rules => number += u64::from(self.give_rules(pair, &cause, ways)),
                Want::Home => home.push(pair),
                Want::Better | Want::Route => better.push(pair),
            }
            causes.insert(pair, cause);
        }
        let mut changed = self.return_to_default_path(home, ways);
        if let Some(index) = &mut self.index {
            changed.extend(ways.choose(index, &better, self.damping.avoided(), true));
        }
        for (pair, route) in changed {
            let talking = &self.pairs.all[&pair];
            if !self.pairs.fits(pair, &route, ways.network, ways.settings) {
                let old = Arc::clone(&talking.route);
                if let Some(index) = &mut self.index {
                    index.set_route(pair, Some(&old));
                }
                continue;
            }
            // A better route found at home is the new home.
            let home = talking.home.clone();
            self.pairs.lay(pair, PairUpdate { route, home, carried: ForwardingMode::Rules }, Some(ways.network));
            self.tell(pair, Phase::Make, &causes[&pair]);
            number += 1;
        }
        number
    }

    /// A pair that there was no room for.
    fn give_rules(&mut self, pair: NodePair, cause: &Cause, ways: &RoutingContext<'_>) -> bool {
        let talking = &self.pairs.all[&pair];
        let route = Arc::clone(&talking.route);
        if !is_whole(ways.network, &route) || !self.pairs.fits(pair, &route, ways.network, ways.settings) {
            return false;
        }
        let home = talking.home.clone();
        if home.is_some() {
            self.planned.push(pair, Want::Home, cause); // it may have come back while there was no room
        }
        self.pairs.lay(pair, PairUpdate { route, home, carried: ForwardingMode::Rules }, Some(ways.network));
        self.tell(pair, Phase::Make, cause);
        true
    }

    /// Pairs whose home is whole again return to it, all of them if utility does not fall by it, else those by which it
    /// does not.
    fn return_to_default_path(&mut self, pairs: Vec<NodePair>, ways: &RoutingContext<'_>) -> Vec<(NodePair, Links)> {
        let Some(index) = &mut self.index else { return Vec::new() };
        let avoided = self.damping.avoided();
        let home = |pair: NodePair| {
            let home = self.pairs.all[&pair].home.as_ref()?;
            (is_whole(ways.network, home) && is_free(home, avoided)).then(|| (pair, Arc::clone(home)))
        };
        let homes: Vec<(NodePair, Links)> = pairs.into_iter().filter_map(home).collect();
        let before = index.utility();
        index.hold();
        for (pair, home) in &homes {
            index.set_route(*pair, Some(home));
        }
        index.recompute_rates();
        if index.utility() >= before {
            return homes;
        }
        index.hold();
        for (pair, _) in &homes {
            index.set_route(*pair, Some(&self.pairs.all[pair].route));
        }
        index.recompute_rates();
        let mut returned = Vec::new();
        for (pair, home) in homes {
            let before = index.utility();
            index.set_route(pair, Some(&home));
            if index.utility() >= before {
                returned.push((pair, home));
            } else {
                index.set_route(pair, Some(&self.pairs.all[&pair].route));
            }
        }
        returned
    }

    /// The controller could not install a pair's route: default forwarding has it. Whether that is news.
    pub(crate) fn refuse(&mut self, pair: NodePair, (snapshot, settings): (&Snapshot, &RouteSettings)) -> bool {
        let ruled = self.pairs.all.get(&pair).is_some_and(|talking| talking.carried == ForwardingMode::Rules);
        if let (true, Some(ways)) = (ruled, RoutingContext::of(snapshot, settings, &mut self.table)) {
            self.by_default(pair, ForwardingMode::Refused, &ways);
            self.tell(pair, Phase::Break, &Cause::new("refused", ""));
        }
        ruled
    }

    /// Nobody installs routes any more: all go by default forwarding, those that begin later too.
    pub(crate) fn silence(&mut self, watcher: &str, (snapshot, settings): (&Snapshot, &RouteSettings)) {
        self.silent = true;
        let ways = RoutingContext::of(snapshot, settings, &mut self.table);
        // What waits for room gets none that anybody would fill.
        let lost = |carried| matches!(carried, ForwardingMode::Rules | ForwardingMode::Crowded);
        let all = self.pairs.all.iter().filter(|(_, talking)| lost(talking.carried));
        let all: Vec<NodePair> = all.map(|(pair, _)| *pair).collect();
        let cause = Cause::new("silent", watcher);
        for pair in all {
            match &ways {
                Some(ways) => self.by_default(pair, ForwardingMode::Silent, ways),
                None => self.carry(pair, ForwardingMode::Silent),
            }
            self.tell(pair, Phase::Break, &cause);
        }
    }

    /// Without a network there are no routes, but who should carry them.
    fn carry(&mut self, pair: NodePair, carried: ForwardingMode) {
        self.pairs.lay(pair, PairUpdate { route: Arc::from([]), home: None, carried }, None);
    }

    fn by_default(&mut self, pair: NodePair, carried: ForwardingMode, ways: &RoutingContext<'_>) {
        let talking = &self.pairs.all[&pair];
        let home = talking.home.clone().or_else(|| Some(Arc::clone(&talking.route)).filter(|old| !old.is_empty()));
        let news = talking.carried != ForwardingMode::Crowded;
        let spent = ways.is_spent();
        let route = if spent { Arc::clone(&talking.route) } else { ways.first(pair) };
        if let Some(index) = &mut self.index {
            index.set_route(pair, Some(&route));
        }
        self.pairs.lay(pair, PairUpdate { route, home, carried }, Some(ways.network));
        if spent {
            self.failed.push(pair, Want::Route, &Cause::new("topology", "")); // default forwarding's way is found later
        }
        self.count(Counter::RoutesToDefault, u64::from(news));
    }

    /// Somebody installs routes anew: what was refused, or lost to silence, gets rules again, on its first route where
    /// that is whole.
    pub(crate) fn speak(&mut self, watcher: &str, (snapshot, settings): (&Snapshot, &RouteSettings)) {
        self.silent = false;
        let waiting = |carried| matches!(carried, ForwardingMode::Refused | ForwardingMode::Silent);
        let all = self.pairs.all.iter().filter(|(_, talking)| waiting(talking.carried));
        let all: Vec<NodePair> = all.map(|(pair, _)| *pair).collect();
        let Some(ways) = RoutingContext::of(snapshot, settings, &mut self.table) else {
            for pair in all {
                self.carry(pair, self.wanted(pair, settings));
            }
            return;
        };
        let back: BTreeMap<NodePair, Links> = self.return_to_default_path(all.clone(), &ways).into_iter().collect();
        let cause = Cause::new("initial", watcher);
        for pair in all {
            let talking = &self.pairs.all[&pair];
            let route = back.get(&pair).unwrap_or(&talking.route).clone();
            let lay = PairUpdate { route, home: talking.home.clone(), carried: self.wanted(pair, settings) };
            self.install(pair, lay, &ways);
            self.tell(pair, Phase::Make, &cause);
        }
    }
}

/// Whether a route passes none of these links.
pub(super) fn is_free(
    route: &[hintd_model::units::DirectedLinkIdx],
    avoided: &BTreeSet<hintd_model::units::LinkIdx>,
) -> bool {
    avoided.is_empty() || route.iter().all(|&link| !avoided.contains(&undirected(link).0))
}
