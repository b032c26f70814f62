//! Pairs of nodes that talk: their routes, who carries them, and the rules that this takes on switches.

use super::settings::RouteSettings;
use crate::routes::view::{ends, undirected};
use hintd_model::cluster::{NodePair, PairRoute, Shards};
use hintd_model::network::Network;
use hintd_model::units::{Bytes, DirectedLinkIdx, LinkIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A route; empty: there is no path.
pub(super) type Links = Arc<[DirectedLinkIdx]>;

/// One pair.
#[derive(Debug, Clone)]
pub(super) struct ActivePair {
    pub(super) route: Links,
    /// Its first route, while it has another because something failed.
    pub(super) home: Option<Links>,
    pub(super) carried: ForwardingMode,
    pub(super) task_pairs: u64,
    pub(super) bytes: u128,
    /// Jobs.
    pub(super) users: u32,
}

/// Who carries a pair: rules of its own, or default forwarding, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ForwardingMode {
    /// Rules of its own.
    Rules,
    /// It sends little.
    Small,
    /// Some switch on its route has as many rules as it may.
    Crowded,
    /// The controller could not install its route.
    Refused,
    /// Who installed routes has gone silent.
    Silent,
}

/// All pairs.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) all: BTreeMap<NodePair, ActivePair>,
    /// As generations have them.
    pub(super) published: Shards<NodePair, Arc<PairRoute>>,
    /// Pairs away from home, by the links of their home.
    homes: BTreeMap<LinkIdx, BTreeSet<NodePair>>,
    /// Pairs without a path.
    pub(super) cut: BTreeSet<NodePair>,
    /// Pairs that wait for rules.
    pub(super) crowded: BTreeSet<NodePair>,
    /// By vertex.
    rules: Vec<u32>,
    /// Rules went since somebody last looked.
    pub(super) freed: bool,
}

/// A pair's new state.
#[derive(Debug, Clone)]
pub(super) struct PairUpdate {
    pub(super) route: Links,
    pub(super) home: Option<Links>,
    pub(super) carried: ForwardingMode,
}

/// What a pair carries more or less than before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Difference {
    pub(super) task_pairs: i64,
    pub(super) bytes: i128,
    /// Jobs.
    pub(super) users: i32,
}

impl Pairs {
    /// Pairs away from a home that has the link.
    pub(super) fn default_pairs_on(&self, link: LinkIdx) -> impl Iterator<Item = NodePair> + '_ {
        self.homes.get(&link).into_iter().flatten().copied()
    }

    /// Rules on a switch, by its row.
    #[cfg(test)]
    pub(super) fn rules_at(&self, vertex: usize) -> u32 {
        self.rules.get(vertex).copied().unwrap_or(0)
    }

    /// Changes what a pair carries; `None`: nobody uses it any more, and it is gone. Else whether it is new.
    pub(super) fn add(&mut self, pair: NodePair, change: Difference, network: Option<&Network>) -> Option<bool> {
        let fresh = !self.all.contains_key(&pair);
        let talking = self.all.entry(pair).or_insert_with(|| ActivePair {
            route: Arc::from([]),
            home: None,
            carried: ForwardingMode::Small,
            task_pairs: 0,
            bytes: 0,
            users: 0,
        });
        talking.task_pairs = talking.task_pairs.saturating_add_signed(change.task_pairs);
        talking.bytes = talking.bytes.saturating_add_signed(change.bytes);
        talking.users = talking.users.saturating_add_signed(change.users);
        if talking.users == 0 {
            self.forget(pair, network);
            return None;
        }
        self.publish(pair);
        Some(fresh)
    }

    fn forget(&mut self, pair: NodePair, network: Option<&Network>) {
        if self.all.contains_key(&pair) {
            self.unlist(pair, network);
            self.all.remove(&pair);
            self.published.set(&pair, None);
        }
    }

    /// Gives a pair another route, home or carrier.
    pub(super) fn lay(&mut self, pair: NodePair, lay: PairUpdate, network: Option<&Network>) {
        if !self.all.contains_key(&pair) {
            return;
        }
        self.unlist(pair, network);
        let talking = self.all.get_mut(&pair).expect("it is there");
        let home = lay.home.filter(|home| *home != lay.route);
        (talking.route, talking.home, talking.carried) = (lay.route, home, lay.carried);
        self.list(pair, network);
        self.publish(pair);
    }

    /// Whether every switch of a route may have one rule more, those of the pair's own route not counted.
    pub(super) fn fits(
        &self,
        pair: NodePair,
        route: &[DirectedLinkIdx],
        network: &Network,
        settings: &RouteSettings,
    ) -> bool {
        let own = self.all.get(&pair).filter(|talking| talking.carried == ForwardingMode::Rules);
        let own: Vec<usize> = own.map_or_else(Vec::new, |talking| switches(network, &talking.route).collect());
        switches(network, route).all(|switch| {
            let others = self.rules.get(switch).copied().unwrap_or(0) - u32::from(own.contains(&switch));
            others < settings.rules_per_switch
        })
    }

    /// The network is another one: indexes of the old one mean nothing.
    pub(super) fn forget_network(&mut self) {
        self.homes.clear();
        self.rules.clear();
        self.cut = self.all.keys().copied().collect();
        self.freed = true;
        for talking in self.all.values_mut() {
            (talking.route, talking.home) = (Arc::from([]), None);
        }
        let all: Vec<NodePair> = self.all.keys().copied().collect();
        for pair in all {
            self.publish(pair);
        }
    }

    fn publish(&mut self, pair: NodePair) {
        let talking = &self.all[&pair];
        let route = PairRoute {
            links: Arc::clone(&talking.route),
            installed: talking.carried == ForwardingMode::Rules,
            task_pairs: talking.task_pairs,
            bytes: Bytes(u64::try_from(talking.bytes).unwrap_or(u64::MAX)),
        };
        if self.published.get(&pair).is_none_or(|known| **known != route) {
            self.published.set(&pair, Some(Arc::new(route)));
        }
    }

    fn list(&mut self, pair: NodePair, network: Option<&Network>) {
        let talking = &self.all[&pair];
        for link in talking.home.iter().flat_map(|home| home.iter()) {
            self.homes.entry(undirected(*link).0).or_default().insert(pair);
        }
        if talking.route.is_empty() {
            self.cut.insert(pair);
        }
        match (talking.carried, network) {
            (ForwardingMode::Crowded, _) => drop(self.crowded.insert(pair)),
            (ForwardingMode::Rules, Some(network)) => {
                for switch in switches(network, &talking.route) {
                    if self.rules.len() <= switch {
                        self.rules.resize(switch + 1, 0);
                    }
                    self.rules[switch] += 1;
                }
            }
            _ => {}
        }
    }

    fn unlist(&mut self, pair: NodePair, network: Option<&Network>) {
        let talking = &self.all[&pair];
        for link in talking.home.iter().flat_map(|home| home.iter()) {
            let link = undirected(*link).0;
            if let Some(pairs) = self.homes.get_mut(&link) {
                pairs.remove(&pair);
                if pairs.is_empty() {
                    self.homes.remove(&link);
                }
            }
        }
        self.cut.remove(&pair);
        self.crowded.remove(&pair);
        if let (ForwardingMode::Rules, Some(network)) = (talking.carried, network) {
            for switch in switches(network, &talking.route) {
                if let Some(rules) = self.rules.get_mut(switch) {
                    *rules = rules.saturating_sub(1);
                    self.freed = true;
                }
            }
        }
    }
}

/// Rows of the switches that a route passes.
pub(super) fn switches<'a>(network: &'a Network, route: &'a [DirectedLinkIdx]) -> impl Iterator<Item = usize> + 'a {
    route.iter().skip(1).map(|&link| ends(network, link).0.at())
}

/// Whether every link of a route carries traffic. A route without links is none.
pub(super) fn is_whole(network: &Network, route: &[DirectedLinkIdx]) -> bool {
    !route.is_empty() && route.iter().all(|&link| network.is_usable(undirected(link).0))
}
