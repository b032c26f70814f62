//! A controller whose switches are tables: applies updates rule by rule and sees where packets would go.

use super::super::harness::EngineHarness;
use super::updates;
use crate::{NamedRoute, Phase, RouteUpdate, RuleAction, WatchScope, WatchedPair};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(in crate::tests) const NAME: &str = "sdn";

/// By switch: link and next vertex.
type Table = BTreeMap<Arc<str>, (String, Arc<str>)>;

#[derive(Debug, Default)]
pub(in crate::tests) struct Controller {
    /// By pair.
    pub(in crate::tests) tables: BTreeMap<WatchedPair, Table>,
    pub(in crate::tests) routes: BTreeMap<WatchedPair, NamedRoute>,
    pub(in crate::tests) last: u64,
    pub(in crate::tests) acknowledged: u64,
    pub(in crate::tests) phases: BTreeMap<Phase, usize>,
}

/// Where a packet ends.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    Arrives,
    Dropped,
    Loops,
}

pub(in crate::tests) fn scope() -> WatchScope {
    WatchScope { flows: true, installs: true, ..WatchScope::default() }
}

impl Controller {
    /// Begins to watch.
    pub(in crate::tests) fn watch(&mut self, harness: &mut EngineHarness, resume: bool) {
        let scope = WatchScope { resume_after: resume.then_some(self.last), ..scope() };
        for update in harness.engine.watch(NAME, scope, harness.now).unwrap() {
            self.apply(&update);
        }
        harness.drain();
    }

    /// Applies what it was sent.
    pub(in crate::tests) fn hear(&mut self, harness: &mut EngineHarness) {
        for update in updates(harness, NAME) {
            self.apply(&update);
        }
    }

    pub(in crate::tests) fn acknowledge(&mut self, harness: &mut EngineHarness, number: u64) {
        harness.engine.acknowledge(NAME, number, Vec::new(), harness.now).unwrap();
        self.acknowledged = number;
        harness.drain();
    }

    /// Acknowledges until nothing follows.
    pub(in crate::tests) fn settle(&mut self, harness: &mut EngineHarness) {
        self.hear(harness);
        while self.acknowledged < self.last {
            self.acknowledge(harness, self.last);
            self.hear(harness);
        }
    }

    pub(in crate::tests) fn apply(&mut self, update: &RouteUpdate) {
        assert!(update.number > self.last, "numbers go up");
        if !update.snapshot && self.last > 0 {
            assert_eq!(update.number, self.last + 1, "no update is missed");
        }
        self.last = update.number;
        *self.phases.entry(update.phase).or_default() += 1;
        let arrived: BTreeSet<WatchedPair> =
            self.routes.keys().filter(|pair| self.way(pair) == Way::Arrives).cloned().collect();
        let keeps = matches!(update.phase, Phase::Make | Phase::Break);
        for change in &update.rules {
            let table = self.tables.entry(change.pair.clone()).or_default();
            match &change.action {
                RuleAction::Install { link, next } => {
                    table.insert(Arc::clone(&change.switch), (link.to_string(), Arc::clone(next)));
                }
                RuleAction::Remove => drop(table.remove(&change.switch)),
            }
            let way = self.way(&change.pair);
            assert_ne!(way, Way::Loops, "{change:?} of {update:?} makes a loop: {:?}", self.tables[&change.pair]);
            if keeps && arrived.contains(&change.pair) && !update.removed.contains(&change.pair) {
                assert_eq!(way, Way::Arrives, "{change:?} of {update:?} drops packets");
            }
        }
        if update.snapshot {
            let named: BTreeSet<&WatchedPair> = update.routes.iter().map(|route| &route.pair).collect();
            self.tables.retain(|pair, _| named.contains(pair));
            // A daemon that started anew knows nothing of rules that were there before: it names all that are to be.
            let installs = |pair: &WatchedPair, switch: &str| {
                let mut rules = update.rules.iter().filter(|rule| rule.pair == *pair && *rule.switch == *switch);
                rules.any(|rule| matches!(rule.action, RuleAction::Install { .. }))
            };
            for (pair, table) in &mut self.tables {
                table.retain(|switch, _| installs(pair, switch));
            }
            self.routes.retain(|pair, _| named.contains(pair));
        }
        self.tables.retain(|_, table| !table.is_empty());
        for route in &update.routes {
            self.routes.insert(route.pair.clone(), route.clone());
            let whole = if route.links.is_empty() || !route.stops.is_empty() { Way::Dropped } else { Way::Arrives };
            assert_eq!(self.way(&route.pair), whole, "what is told is what the rules do: {update:?}");
        }
        for pair in &update.removed {
            self.routes.remove(pair);
            assert!(!self.tables.contains_key(pair), "{pair:?} has rules and no route");
        }
    }

    /// From the sender's first switch on, whatever links are up.
    fn way(&self, pair: &WatchedPair) -> Way {
        let Some(table) = self.tables.get(pair).filter(|table| !table.is_empty()) else { return Way::Dropped };
        let first = self.routes.get(pair).and_then(|route| route.vertices.get(1));
        // A sender whose route is new hangs where the one rule is that no other leads to.
        let Some(first) = first.or_else(|| table.keys().find(|switch| table.values().all(|(_, next)| next != *switch)))
        else {
            return Way::Loops;
        };
        let mut here = Arc::clone(first);
        for _ in 0..=table.len() {
            let Some((_, next)) = table.get(&here) else { return Way::Dropped };
            if **next == *pair.dst.as_str() {
                return Way::Arrives;
            }
            here = Arc::clone(next);
        }
        Way::Loops
    }

    /// The tables have the rules of the routes and no other.
    pub(in crate::tests) fn check_clean(&self) {
        for (pair, route) in &self.routes {
            let rules = self.tables.get(pair).map_or(0, BTreeMap::len);
            let needed = if route.stops.is_empty() { route.vertices.len().saturating_sub(2) } else { 0 };
            assert_eq!(rules, needed, "stale rules of {pair:?}");
        }
        assert!(self.tables.keys().all(|pair| self.routes.contains_key(pair)), "rules of pairs that have no route");
    }
}
