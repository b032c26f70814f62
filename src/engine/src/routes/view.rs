//! Names for indexes: hosts, vertices and links of one moment, and the routes that flows have in it.

use super::messages::{NamedRoute, NamedStop, WatchedPair};
use hintd_model::cluster::{ChainPair, ChainedFlows, NodePair, PairRoute, Shards, Snapshot};
use hintd_model::network::chains::{Chains, WaypointRoute};
use hintd_model::network::{Network, Pair, Path};
use hintd_model::units::{DirectedLinkIdx, HostName, LinkIdx, VertexIdx};
use std::sync::Arc;

/// A snapshot and the flows of the same moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) routes: &'a Shards<NodePair, Arc<PairRoute>>,
    /// Traffic under chains.
    pub(crate) chained: &'a ChainedFlows,
}

impl<'a> View<'a> {
    pub(crate) fn network(&self) -> Option<&'a Network> {
        self.snapshot.topology.network.as_deref()
    }

    /// Whether a host can be watched. Before a topology was heard, any may be one of it.
    pub(crate) fn knows(&self, host: &HostName) -> bool {
        self.network().is_none() || self.vertex(host).is_some() || self.snapshot.statics.find(host.as_str()).is_some()
    }

    /// A host's vertex, by the network's own name or that of its node.
    fn vertex(&self, host: &HostName) -> Option<VertexIdx> {
        let by_name = self.network().and_then(|network| network.vertex(host.as_str()));
        let of_node = || self.snapshot.topology.vertex.get(self.snapshot.statics.find(host.as_str())?.at()).copied();
        by_name.or_else(|| of_node().flatten())
    }

    pub(crate) fn vertices(&self, pair: &WatchedPair) -> Option<Pair> {
        Some(Pair { from: self.vertex(&pair.src)?, to: self.vertex(&pair.dst)? })
    }

    pub(crate) fn vertices_of(&self, pair: NodePair) -> Option<Pair> {
        let vertex =
            |node: hintd_model::units::NodeIdx| self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        Some(Pair { from: vertex(pair.from)?, to: vertex(pair.to)? })
    }

    pub(crate) fn nodes(&self, pair: &WatchedPair) -> Option<NodePair> {
        let find = |host: &HostName| self.snapshot.statics.find(host.as_str());
        Some(NodePair { from: find(&pair.src)?, to: find(&pair.dst)? })
    }

    /// A pair of nodes under their own names.
    pub(crate) fn watched(&self, pair: NodePair) -> WatchedPair {
        let host = |node| self.snapshot.host(node).clone();
        WatchedPair { src: host(pair.from), dst: host(pair.to), class: "".into() }
    }

    /// The route of running flows, if it is to be installed.
    pub(crate) fn flow_route(&self, pair: NodePair) -> Option<NamedRoute> {
        let route = self.routes.get(&pair).filter(|route| route.installed)?;
        Some(self.named(self.watched(pair), &route.links))
    }

    /// A pair under a chain, which is its class.
    pub(crate) fn watched_chained(&self, key: &ChainPair) -> WatchedPair {
        WatchedPair { class: Arc::clone(&key.chain), ..self.watched(key.pair) }
    }

    /// The route of a pair's traffic under a chain; one without vertices where there is no way, of the host alone where
    /// it stays on it; `None`: it sends nothing.
    pub(crate) fn chained_route(&self, key: &ChainPair) -> Option<NamedRoute> {
        let route = self.chained.routes.get(key)?;
        let pair = self.watched_chained(key);
        let chains = self.chained.chains.as_deref();
        let (Some(way), Some(chains)) = (&route.way, chains) else { return Some(self.named(pair, &[])) };
        if way.links.is_empty() {
            let vertices = vec![Arc::from(pair.src.as_str())];
            return Some(NamedRoute { vertices, ..self.named(pair, &[]) });
        }
        Some(NamedRoute { stops: stops(chains, way), ..self.named(pair, &way.links) })
    }

    /// Likewise of a pair that is watched by name, whose class is a chain.
    pub(crate) fn chained_by_name(&self, watched: &WatchedPair) -> Option<NamedRoute> {
        if watched.class.is_empty() {
            return None;
        }
        let key = ChainPair { pair: self.nodes(watched)?, chain: Arc::clone(&watched.class) };
        self.chained_route(&key).map(|route| NamedRoute { pair: watched.clone(), ..route })
    }

    /// A route of directed links, in names.
    pub(crate) fn named(&self, pair: WatchedPair, links: &[DirectedLinkIdx]) -> NamedRoute {
        let (mut vertices, mut names) = (Vec::new(), Vec::new());
        if let Some(network) = self.network() {
            (vertices, names) = names_of(network, links);
        }
        NamedRoute { pair, vertices, links: names, stops: Vec::new() }
    }

    pub(crate) fn named_path(&self, pair: &WatchedPair, path: Option<&Path>) -> NamedRoute {
        let (vertices, links) = path.map_or((&[][..], &[][..]), |path| (&path.vertices, &path.links));
        let network = self.network();
        let vertex = |&vertex| network.map(|network| Arc::clone(&network.vertex_at(vertex).name));
        let link = |&link| network.map(|network| network.link_at(link).name.clone());
        NamedRoute {
            pair: pair.clone(),
            vertices: vertices.iter().filter_map(vertex).collect(),
            links: links.iter().filter_map(link).collect(),
            stops: Vec::new(),
        }
    }
}

/// Boxes that a way passes, in names.
pub(crate) fn stops(chains: &Chains, way: &WaypointRoute) -> Vec<NamedStop> {
    let stop = |(&index, &after): (&hintd_model::units::BoxIdx, &u16)| {
        let known = &chains.boxes()[index.at()];
        NamedStop {
            name: Arc::clone(&known.name),
            kind: Arc::clone(chains.kind_name(known.kind)),
            at: Arc::clone(chains.switch_name(index)),
            after: after.into(),
        }
    };
    way.boxes.iter().zip(&way.stops).map(stop).collect()
}

/// The undirected link, and whether it is passed from its first end to its second.
pub(crate) const fn undirected(link: DirectedLinkIdx) -> (LinkIdx, bool) {
    (LinkIdx(link.0 / 2), link.0.is_multiple_of(2))
}

/// The ends of a directed link: tail, head.
pub(crate) fn ends(network: &Network, link: DirectedLinkIdx) -> (VertexIdx, VertexIdx) {
    let (index, forward) = undirected(link);
    let link = network.link_at(index);
    if forward { (link.a, link.b) } else { (link.b, link.a) }
}

/// Vertices and links of a route, in names.
pub(crate) fn names_of(
    network: &Network,
    links: &[DirectedLinkIdx],
) -> (Vec<Arc<str>>, Vec<hintd_model::units::LinkName>) {
    let name = |vertex| Arc::clone(&network.vertex_at(vertex).name);
    let first = links.first().map(|&link| name(ends(network, link).0));
    let heads = links.iter().map(|&link| name(ends(network, link).1));
    let names = links.iter().map(|&link| network.link_at(undirected(link).0).name.clone());
    (first.into_iter().chain(heads).collect(), names.collect())
}
