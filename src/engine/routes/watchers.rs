//! Watched routes: the shortest path of each watched pair, kept current by changes of the network.

use super::told::{NamedRoute, Phase, RouteUpdate, WatchScope, WatchedPair, WatcherState};
use crate::cluster::{Change, Snapshot};
use crate::engine::decision::Refusal;
use crate::network::{Network, Pair, Path, PathIndex};
use crate::units::{HostName, LinkIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Watchers and the paths of what they watch.
#[derive(Debug)]
pub(crate) struct Watchers {
    index: PathIndex,
    watchers: BTreeMap<Arc<str>, Watcher>,
    /// Who watches a pair of vertices, and under which names.
    by_pair: BTreeMap<Pair, BTreeSet<(Arc<str>, WatchedPair)>>,
}

#[derive(Debug, Default)]
struct Watcher {
    /// Updates sent.
    number: u64,
    routes: BTreeMap<WatchedPair, NamedRoute>,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { index: PathIndex::new(0), watchers: BTreeMap::new(), by_pair: BTreeMap::new() }
    }
}

impl Watchers {
    /// Watches pairs under a name, instead of what it watched before; the snapshot of its routes.
    pub(crate) fn watch(
        &mut self,
        name: &str,
        scope: WatchScope,
        snapshot: &Snapshot,
    ) -> Result<Vec<Arc<RouteUpdate>>, Refusal> {
        let pairs = scope.pairs;
        for pair in &pairs {
            check(&pair.src, snapshot)?;
            check(&pair.dst, snapshot)?;
        }
        self.unwatch(name);
        let name: Arc<str> = name.into();
        let mut watcher = Watcher { number: 1, routes: BTreeMap::new() };
        for pair in pairs {
            let route = self.insert(&name, &pair, snapshot);
            watcher.routes.insert(pair, route);
        }
        let update = RouteUpdate {
            number: 1,
            snapshot: true,
            routes: watcher.routes.values().cloned().collect(),
            removed: Vec::new(),
            rules: Vec::new(),
            phase: Phase::Initial,
            cause: "initial",
            subject: "".into(),
            untouched: 0,
        };
        self.watchers.insert(name, watcher);
        Ok(vec![Arc::new(update)])
    }

    /// Takes an acknowledgement of every update up to `number`; how many are outstanding.
    pub(crate) fn acknowledge(&mut self, name: &str, number: u64) -> Result<u64, Refusal> {
        let unknown = || Refusal::Unknown { what: "watcher", name: name.to_owned(), nearest: None };
        let watcher = self.watchers.get_mut(name).ok_or_else(unknown)?;
        Ok(watcher.number.saturating_sub(number))
    }

    /// How watchers stand, by name.
    pub(crate) fn states(&self) -> Vec<WatcherState> {
        Vec::new()
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&mut self, name: &str) {
        if self.watchers.remove(name).is_none() {
            return;
        }
        let index = &mut self.index;
        self.by_pair.retain(|&pair, watching| {
            watching.retain(|(watcher, _)| **watcher != *name);
            if watching.is_empty() {
                index.remove(pair);
            }
            !watching.is_empty()
        });
    }

    /// Watched routes of one watcher.
    pub(crate) fn watched_by(&self, name: &str) -> usize {
        self.watchers.get(name).map_or(0, |watcher| watcher.routes.len())
    }

    /// Watched routes, of all watchers.
    pub(crate) fn len(&self) -> usize {
        self.watchers.values().map(|watcher| watcher.routes.len()).sum()
    }

    /// These links changed: pairs on them get the shortest path left, and nobody else's route is looked at.
    pub(crate) fn links_changed(
        &mut self,
        links: &[LinkIdx],
        cause: Cause,
        snapshot: &Snapshot,
    ) -> Vec<(Arc<str>, Arc<RouteUpdate>)> {
        let Some(network) = snapshot.topology.network.as_deref() else { return Vec::new() };
        let mut changed: BTreeMap<Arc<str>, Vec<NamedRoute>> = BTreeMap::new();
        for (pair, path) in self.index.on_change(network, links).changed {
            for (watcher, watched) in self.by_pair.get(&pair).into_iter().flatten() {
                changed.entry(Arc::clone(watcher)).or_default().push(named(watched, path.as_ref(), network));
            }
        }
        self.updates(changed, &cause)
    }

    /// The network is another one: every pair is looked for anew, and watchers hear of those that differ.
    pub(crate) fn network_changed(&mut self, cause: Cause, snapshot: &Snapshot) -> Vec<(Arc<str>, Arc<RouteUpdate>)> {
        self.index = PathIndex::new(0);
        self.by_pair.clear();
        let mut changed: BTreeMap<Arc<str>, Vec<NamedRoute>> = BTreeMap::new();
        let names: Vec<Arc<str>> = self.watchers.keys().cloned().collect();
        for name in names {
            let pairs: Vec<WatchedPair> = self.watchers[&name].routes.keys().cloned().collect();
            for pair in pairs {
                let route = self.insert(&name, &pair, snapshot);
                if self.watchers[&name].routes[&pair] != route {
                    changed.entry(Arc::clone(&name)).or_default().push(route);
                }
            }
        }
        self.updates(changed, &cause)
    }

    fn insert(&mut self, name: &Arc<str>, watched: &WatchedPair, snapshot: &Snapshot) -> NamedRoute {
        let ends = (vertex(&watched.src, snapshot), vertex(&watched.dst, snapshot));
        let (Some(network), (Some(from), Some(to))) = (snapshot.topology.network.as_deref(), ends) else {
            return NamedRoute { pair: watched.clone(), vertices: Vec::new(), links: Vec::new() };
        };
        let pair = Pair { from, to };
        self.by_pair.entry(pair).or_default().insert((Arc::clone(name), watched.clone()));
        named(watched, self.index.insert(network, pair), network)
    }

    fn updates(
        &mut self,
        changed: BTreeMap<Arc<str>, Vec<NamedRoute>>,
        cause: &Cause,
    ) -> Vec<(Arc<str>, Arc<RouteUpdate>)> {
        let mut updates = Vec::new();
        for (name, mut routes) in changed {
            routes.sort_by(|a, b| a.pair.cmp(&b.pair));
            let watcher = self.watchers.get_mut(&name).expect("pairs of watchers that ended are not listed");
            watcher.number += 1;
            for route in &routes {
                watcher.routes.insert(route.pair.clone(), route.clone());
            }
            let untouched = (watcher.routes.len() - routes.len()) as u64;
            let (cause, subject) = (cause.what, Arc::clone(&cause.subject));
            updates.push((
                name,
                Arc::new(RouteUpdate {
                    number: watcher.number,
                    snapshot: false,
                    routes,
                    removed: Vec::new(),
                    rules: Vec::new(),
                    phase: Phase::Failover,
                    cause,
                    subject,
                    untouched,
                }),
            ));
        }
        updates
    }
}

/// Why the network changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) what: &'static str,
    pub(crate) subject: Arc<str>,
}

impl Cause {
    /// The cause that a change of the model is, if it is one of the network.
    pub(crate) fn of(change: &Change) -> Option<Self> {
        let cause = |what, subject: &Arc<str>| Some(Self { what, subject: Arc::clone(subject) });
        match change {
            Change::Link { link, up: Some(true), .. } => cause("link_up", &link.0),
            Change::Link { link, up: Some(false), .. } => cause("link_down", &link.0),
            Change::Link { link, up: None, .. } => cause("link_capacity", &link.0),
            Change::LinkRemoved(link) => cause("link_removed", &link.0),
            Change::Switch { name, up: true } => cause("switch_up", name),
            Change::Switch { name, up: false } => cause("switch_down", name),
            Change::Network(_) => cause("topology", &"".into()),
            _ => None,
        }
    }
}

/// A host's vertex, by the network's own name or that of its node.
fn vertex(host: &HostName, snapshot: &Snapshot) -> Option<VertexIdx> {
    let topology = &snapshot.topology;
    let by_name = topology.network.as_deref().and_then(|network| network.vertex(host.as_str()));
    by_name.or_else(|| topology.vertex.get(snapshot.statics.find(host.as_str())?.at()).copied().flatten())
}

/// Before a topology was heard, any host may be one of it.
fn check(host: &HostName, snapshot: &Snapshot) -> Result<(), Refusal> {
    let known = snapshot.topology.network.is_none()
        || vertex(host, snapshot).is_some()
        || snapshot.statics.find(host.as_str()).is_some();
    if known { Ok(()) } else { Err(Refusal::Unknown { what: "host", name: host.to_string(), nearest: None }) }
}

fn named(watched: &WatchedPair, path: Option<&Path>, network: &Network) -> NamedRoute {
    let (vertices, links) = path.map_or((&[][..], &[][..]), |path| (&path.vertices, &path.links));
    NamedRoute {
        pair: watched.clone(),
        vertices: vertices.iter().map(|&vertex| Arc::clone(&network.vertex_at(vertex).name)).collect(),
        links: links.iter().map(|&link| network.link_at(link).name.clone()).collect(),
    }
}
