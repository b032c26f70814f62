//! The graph of hosts and switches, and what of it is up.

use super::optical::OpticalSection;
use super::problem::NetworkProblem;
use super::tier::Tier;
use crate::units::{BitsPerSec, LinkIdx, LinkName, VertexIdx};
use petgraph::graph::{EdgeIndex, NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VertexKind {
    /// A machine that runs containers. Never forwards.
    Host,
    /// A switch of some tier.
    Switch(Tier),
}

/// A host or switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// Its name; a host's is YARN's.
    pub name: Arc<str>,
    /// Host or switch.
    pub kind: VertexKind,
}

impl Vertex {
    /// Whether it is a host.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.kind == VertexKind::Host
    }

    /// Its tier; `None` for a host.
    #[must_use]
    pub const fn tier(&self) -> Option<Tier> {
        match self.kind {
            VertexKind::Host => None,
            VertexKind::Switch(tier) => Some(tier),
        }
    }

    /// Height above the hosts: 0 for a host, then as [`Tier::height`].
    pub(super) fn height(&self) -> u8 {
        self.tier().map_or(0, Tier::height)
    }
}

/// An undirected, full-duplex link: each direction has the whole capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its id from the topology feed.
    pub name: LinkName,
    /// One end.
    pub a: VertexIdx,
    /// The other end.
    pub b: VertexIdx,
    /// Capacity of each direction.
    pub capacity: BitsPerSec,
    /// Whether the link itself is up; see [`Network::is_usable`] for its ends.
    pub up: bool,
}

impl Link {
    /// The end that is not `end`.
    #[must_use]
    pub fn other(&self, end: VertexIdx) -> VertexIdx {
        if self.a == end { self.b } else { self.a }
    }
}

/// Hosts and switches joined by links.
///
/// A clone shares the names; states and capacities are its own. Parallel links are allowed.
#[derive(Debug, Clone, Default)]
pub struct Network {
    graph: UnGraph<Vertex, Link, u32>,
    names: Arc<Names>,
    /// By vertex; hosts are always up here, their state is YARN's.
    vertex_up: Vec<bool>,
    /// By link: removed links keep their index, so that tables of older versions stay addressable.
    removed: Vec<bool>,
    optical: Option<Arc<OpticalSection>>,
}

#[derive(Debug, Clone, Default)]
struct Names {
    vertices: BTreeMap<Arc<str>, VertexIdx>,
    links: BTreeMap<LinkName, LinkIdx>,
}

impl Network {
    /// A network without vertices.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How the circuits of its optical switch are chosen; `None`: there is none, or it stays dark.
    #[must_use]
    pub fn optical(&self) -> Option<&OpticalSection> {
        self.optical.as_deref()
    }

    /// Says how circuits are chosen; unchecked, as [`super::check()`] names what is wrong.
    pub fn set_optical(&mut self, section: Option<OpticalSection>) {
        self.optical = section.map(Arc::new);
    }

    /// Adds a host.
    ///
    /// # Errors
    /// [`NetworkProblem::EmptyName`], [`NetworkProblem::DuplicateVertex`].
    pub fn add_host(&mut self, name: &str) -> Result<VertexIdx, NetworkProblem> {
        self.add_vertex(name, VertexKind::Host)
    }

    /// Adds a switch that is up.
    ///
    /// # Errors
    /// [`NetworkProblem::EmptyName`], [`NetworkProblem::DuplicateVertex`].
    pub fn add_switch(&mut self, name: &str, tier: Tier) -> Result<VertexIdx, NetworkProblem> {
        self.add_vertex(name, VertexKind::Switch(tier))
    }

    /// Adds a link that is up; `capacity` is each direction's.
    ///
    /// # Errors
    /// [`NetworkProblem::EmptyName`], [`NetworkProblem::DuplicateLink`], [`NetworkProblem::SelfLoop`],
    /// [`NetworkProblem::HostToHost`], [`NetworkProblem::ZeroCapacity`].
    ///
    /// # Panics
    /// If `a` or `b` is not of this network.
    pub fn add_link(
        &mut self,
        name: LinkName,
        a: VertexIdx,
        b: VertexIdx,
        capacity: BitsPerSec,
    ) -> Result<LinkIdx, NetworkProblem> {
        if name.as_str().is_empty() {
            return Err(NetworkProblem::EmptyName { kind: "link" });
        }
        if self.names.links.contains_key(&name) {
            return Err(NetworkProblem::DuplicateLink { link: name });
        }
        let (end_a, end_b) = (self.vertex_at(a), self.vertex_at(b));
        if a == b {
            return Err(NetworkProblem::SelfLoop { link: name, vertex: end_a.name.clone() });
        }
        if end_a.is_host() && end_b.is_host() {
            return Err(NetworkProblem::HostToHost { link: name, a: end_a.name.clone(), b: end_b.name.clone() });
        }
        if capacity == BitsPerSec::ZERO {
            return Err(NetworkProblem::ZeroCapacity { link: name });
        }
        Ok(self.push_link(Link { name, a, b, capacity, up: true }))
    }

    fn add_vertex(&mut self, name: &str, kind: VertexKind) -> Result<VertexIdx, NetworkProblem> {
        if name.is_empty() {
            return Err(NetworkProblem::EmptyName { kind: if kind == VertexKind::Host { "host" } else { "switch" } });
        }
        if self.names.vertices.contains_key(name) {
            return Err(NetworkProblem::DuplicateVertex { name: name.into() });
        }
        let name: Arc<str> = name.into();
        let index = VertexIdx::new(self.graph.add_node(Vertex { name: name.clone(), kind }).index());
        self.vertex_up.push(true);
        Arc::make_mut(&mut self.names).vertices.insert(name, index);
        Ok(index)
    }

    /// Adds a link without checking it; the newest owner of a name is the one found by it.
    pub(super) fn push_link(&mut self, link: Link) -> LinkIdx {
        let name = link.name.clone();
        let index = LinkIdx::new(self.graph.add_edge(node(link.a), node(link.b), link).index());
        self.removed.push(false);
        Arc::make_mut(&mut self.names).links.insert(name, index);
        index
    }

    /// The vertex of that name.
    #[must_use]
    pub fn vertex(&self, name: &str) -> Option<VertexIdx> {
        self.names.vertices.get(name).copied()
    }

    /// The vertex at `index`.
    ///
    /// # Panics
    /// If `index` is not of this network.
    #[must_use]
    pub fn vertex_at(&self, index: VertexIdx) -> &Vertex {
        &self.graph[node(index)]
    }

    /// The link of that id, unless removed.
    #[must_use]
    pub fn link(&self, name: &str) -> Option<LinkIdx> {
        self.names.links.get(name).copied()
    }

    /// The link at `index`, removed or not.
    ///
    /// # Panics
    /// If `index` is not of this network.
    #[must_use]
    pub fn link_at(&self, index: LinkIdx) -> &Link {
        &self.graph[edge(index)]
    }

    /// All vertices in index order.
    pub fn vertices(&self) -> impl Iterator<Item = (VertexIdx, &Vertex)> {
        self.graph.node_weights().enumerate().map(|(position, vertex)| (VertexIdx::new(position), vertex))
    }

    /// All links that were not removed, up or down, in index order.
    pub fn links(&self) -> impl Iterator<Item = (LinkIdx, &Link)> {
        let all = self.graph.edge_weights().enumerate().map(|(position, link)| (LinkIdx::new(position), link));
        all.filter(|(index, _)| !self.removed[index.at()])
    }

    /// Links at `vertex` that were not removed, up or down; the newest first.
    pub fn links_of(&self, vertex: VertexIdx) -> impl Iterator<Item = (LinkIdx, &Link)> {
        let all = self.graph.edges(node(vertex)).map(|edge| (LinkIdx::new(edge.id().index()), edge.weight()));
        all.filter(|(index, _)| !self.removed[index.at()])
    }

    /// Number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.graph.node_weights().filter(|vertex| vertex.is_host()).count()
    }

    /// Number of switches.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.graph.node_count() - self.hosts()
    }

    /// Rows that a column by [`VertexIdx`] needs.
    #[must_use]
    pub fn vertex_rows(&self) -> usize {
        self.graph.node_count()
    }

    /// Rows that a column by [`LinkIdx`] needs: removed links keep theirs.
    #[must_use]
    pub fn link_rows(&self) -> usize {
        self.graph.edge_count()
    }

    /// The edge switch that `host` hangs on: the far end of [`Self::access_link`].
    #[must_use]
    pub fn attachment(&self, host: VertexIdx) -> Option<VertexIdx> {
        self.access_link(host).map(|link| self.link_at(link).other(host))
    }

    /// The link that carries `host`'s traffic: its first usable link by link order. `None` for a switch, for a
    /// host that is cut off, and for a host unknown here.
    #[must_use]
    pub fn access_link(&self, host: VertexIdx) -> Option<LinkIdx> {
        let is_host = self.graph.node_weight(node(host)).is_some_and(Vertex::is_host);
        let usable = self.links_of(host).filter(|(_, link)| !self.vertex_at(link.other(host)).is_host());
        let first = usable.map(|(index, _)| index).filter(|&index| self.is_usable(index)).min();
        first.filter(|_| is_host)
    }

    /// Whether the link carries traffic: not removed, up, of some capacity, and its end switches are up.
    #[must_use]
    pub fn is_usable(&self, index: LinkIdx) -> bool {
        let link = self.link_at(index);
        !self.removed[index.at()]
            && link.up
            && link.capacity > BitsPerSec::ZERO
            && self.vertex_up[link.a.at()]
            && self.vertex_up[link.b.at()]
    }

    /// Whether the switch is up; `true` for a host, whose state is YARN's affair.
    #[must_use]
    pub fn switch_up(&self, switch: VertexIdx) -> bool {
        self.vertex_up[switch.at()]
    }

    /// Whether the link was removed.
    #[must_use]
    pub fn is_removed(&self, index: LinkIdx) -> bool {
        self.removed[index.at()]
    }

    /// Whether the other has the same vertices and links in the same order, in the same states and with the same
    /// capacities, and chooses circuits alike. Removed links are of no account.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.vertex_up == other.vertex_up
            && self.optical == other.optical
            && self.graph.node_weights().eq(other.graph.node_weights())
            && self.links().map(|(_, link)| link).eq(other.links().map(|(_, link)| link))
    }

    /// Sets what is given of a link's state and says whether anything changed. A removed link never changes; a
    /// link of capacity zero is unusable.
    pub fn set_link(&mut self, index: LinkIdx, up: Option<bool>, capacity: Option<BitsPerSec>) -> bool {
        if self.removed[index.at()] {
            return false;
        }
        let link = &mut self.graph[edge(index)];
        let (up, capacity) = (up.unwrap_or(link.up), capacity.unwrap_or(link.capacity));
        let changed = (up, capacity) != (link.up, link.capacity);
        (link.up, link.capacity) = (up, capacity);
        changed
    }

    /// Takes a switch up or down and says whether that changed anything. A host's state never changes here.
    /// The links that gained or lost their use are [`Self::links_of`] the switch.
    pub fn set_switch(&mut self, switch: VertexIdx, up: bool) -> bool {
        let changed = !self.vertex_at(switch).is_host() && self.vertex_up[switch.at()] != up;
        if changed {
            self.vertex_up[switch.at()] = up;
        }
        changed
    }

    /// Removes a link for good. Its index stays addressable and unusable; its id may be given to a new link.
    pub fn remove_link(&mut self, index: LinkIdx) {
        let name = self.link_at(index).name.clone();
        if !std::mem::replace(&mut self.removed[index.at()], true) {
            Arc::make_mut(&mut self.names).links.remove(&name);
        }
    }

    /// The far ends of the usable links at `vertex`, with the links; the newest link first.
    pub(super) fn usable_hops(&self, vertex: VertexIdx) -> impl Iterator<Item = (LinkIdx, VertexIdx)> {
        self.links_of(vertex).filter(|(index, _)| self.is_usable(*index)).map(move |(i, link)| (i, link.other(vertex)))
    }

    /// The stored graph, for petgraph's algorithms; it includes what is down or removed.
    #[cfg(test)]
    pub(super) const fn graph(&self) -> &UnGraph<Vertex, Link, u32> {
        &self.graph
    }
}

fn node(index: VertexIdx) -> NodeIndex<u32> {
    NodeIndex::new(index.at())
}

fn edge(index: LinkIdx) -> EdgeIndex<u32> {
    EdgeIndex::new(index.at())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dual_homed() -> (Network, VertexIdx, [LinkIdx; 2]) {
        let mut network = Network::new();
        let [e1, e2] = ["e1", "e2"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let host = network.add_host("h1").unwrap();
        let first = network.add_link("l1".into(), host, e1, BitsPerSec(10)).unwrap();
        let second = network.add_link("l2".into(), host, e2, BitsPerSec(10)).unwrap();
        (network, host, [first, second])
    }

    #[test]
    fn a_host_hangs_on_the_first_switch_it_can_reach() {
        let (mut network, host, [first, second]) = dual_homed();
        let [e1, e2] = ["e1", "e2"].map(|name| network.vertex(name));
        assert_eq!(network.attachment(host), e1);
        assert!(network.set_link(first, Some(false), None));
        assert_eq!(network.attachment(host), e2);
        assert!(network.set_link(first, Some(true), None));
        assert!(network.set_switch(e1.unwrap(), false));
        assert_eq!(network.attachment(host), e2);
        network.remove_link(second);
        assert_eq!(network.attachment(host), None);
        assert_eq!(network.attachment(e1.unwrap()), None);
    }

    #[test]
    fn networks_are_the_same_by_what_they_are_made_of_and_what_of_it_is_up() {
        let (network, host, [first, second]) = dual_homed();
        assert!(network.is_same(&dual_homed().0) && !network.is_same(&Network::new()));
        let mut optical = network.clone();
        optical.set_optical(Some(OpticalSection::of("optical")));
        assert!(!network.is_same(&optical) && optical.is_same(&optical.clone()));
        let changes: [&dyn Fn(&mut Network); 6] = [
            &|other| assert!(other.set_link(first, Some(false), None)),
            &|other| assert!(other.set_link(second, None, Some(BitsPerSec(11)))),
            &|other| assert!(other.set_switch(other.link_at(first).other(host), false)),
            &|other| other.remove_link(second),
            &|other| drop(other.add_host("h2")),
            &|other| drop(other.add_link("l3".into(), host, other.link_at(first).other(host), BitsPerSec(10))),
        ];
        for change in changes {
            let mut other = network.clone();
            change(&mut other);
            assert!(!network.is_same(&other) && other.is_same(&other.clone()));
        }
        let mut other = network.clone();
        let third = other.add_link("l3".into(), host, other.link_at(first).other(host), BitsPerSec(10)).unwrap();
        other.remove_link(third);
        assert!(network.is_same(&other), "what was removed is no more");
    }

    #[test]
    fn setting_what_already_is_changes_nothing() {
        let (mut network, host, [first, _]) = dual_homed();
        assert!(!network.set_link(first, Some(true), Some(BitsPerSec(10))));
        assert!(!network.set_link(first, None, None));
        assert!(network.set_link(first, None, Some(BitsPerSec::ZERO)));
        assert!(!network.is_usable(first));
        assert!(!network.set_switch(host, false), "hosts have no state here");
        assert!(network.switch_up(host));
    }

    #[test]
    fn a_removed_link_keeps_its_index_and_frees_its_id() {
        let (mut network, host, [first, second]) = dual_homed();
        let before = network.clone();
        network.remove_link(first);
        assert_eq!(network.link("l1"), None);
        assert_eq!(network.link("l2"), Some(second));
        assert!(!network.is_usable(first) && !network.set_link(first, Some(true), None));
        assert_eq!(network.links().count(), 1);
        let again = network.add_link("l1".into(), host, network.vertex("e1").unwrap(), BitsPerSec(5)).unwrap();
        assert_eq!((network.link("l1"), again), (Some(LinkIdx(2)), LinkIdx(2)));
        assert_eq!(before.link("l1"), Some(first), "a clone does not follow");
        network.remove_link(first);
        assert_eq!(network.link("l1"), Some(again), "removing twice does not hit the namesake");
    }

    #[test]
    fn links_that_make_no_sense_are_refused() {
        let (mut network, host, _) = dual_homed();
        let other = network.add_host("h2").unwrap();
        let refused = |network: &mut Network, name: &str, a, b, bits| {
            network.add_link(name.into(), a, b, BitsPerSec(bits)).unwrap_err().reason()
        };
        let e1 = network.vertex("e1").unwrap();
        assert_eq!(refused(&mut network, "l1", host, e1, 1), "duplicate-link");
        assert_eq!(refused(&mut network, "x", e1, e1, 1), "self-loop");
        assert_eq!(refused(&mut network, "x", host, other, 1), "host-to-host");
        assert_eq!(refused(&mut network, "x", other, e1, 0), "zero-capacity");
        assert_eq!(network.add_host("e1").unwrap_err().reason(), "duplicate-vertex");
    }

    #[test]
    fn tiers_read_back_as_printed() {
        for tier in Tier::ALL {
            assert_eq!(tier.to_string().parse::<Tier>(), Ok(tier));
            assert_eq!(serde_json::to_string(&tier).unwrap(), format!("\"{tier}\""));
        }
        assert!("spine".parse::<Tier>().unwrap_err().to_string().contains("spine"));
    }
}
