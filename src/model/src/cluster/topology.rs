//! Where nodes hang in the network, and how far apart they are; racks stand in where no topology is known.

use super::node::NodeStatics;
use crate::network::chains::Chains;
use crate::network::{Distances, EcmpTable, EdgeIdx, Network, PathTable, PathTableOptions};
use crate::units::{LinkIdx, NodeIdx, VertexIdx};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The network as seen from the nodes. Shared by snapshots until topology or racks change.
#[derive(Debug, Clone)]
pub struct Topology {
    /// The SDN's graph; `None`: never heard, distances come from rack paths.
    pub network: Option<Arc<Network>>,
    /// Hops above the edge layer between attachment switches (or racks).
    pub distances: Arc<Distances>,
    /// Attachment by node; `None`: the node hangs nowhere.
    pub edge: Vec<Option<EdgeIdx>>,
    /// Vertex by node; `None`: the network does not name it.
    pub vertex: Vec<Option<VertexIdx>>,
    /// Middleboxes and chains, placed in this version of the network (without one, boxes hang nowhere); `None`: none are
    /// declared.
    pub chains: Option<Arc<Chains>>,
    /// What equal-cost multipath needs: read off the distances.
    ecmp: Option<EcmpTable>,
    /// Built when first asked for, and followed from then on. Shared while no link gains or loses its use.
    paths: Arc<LatePaths>,
}

/// A path table that is made when first asked for: from an earlier version's, if somebody asked for that, else anew.
/// Whoever asks waits for no more than [`STEPS_AT_ONCE`]: where a whole table takes more, it has a lazy one, with the same
/// paths, until somebody with time has built the whole.
#[derive(Debug, Default)]
struct LatePaths {
    /// What whoever asks first makes.
    at_once: OnceLock<Option<Arc<PathTable>>>,
    /// What somebody with time made.
    whole: OnceLock<Arc<PathTable>>,
    /// The last earlier version's that was there; this version's once it is.
    before: Mutex<Option<Arc<PathTable>>>,
    /// Somebody builds the whole.
    building: AtomicBool,
}

/// Steps that a path table may take while somebody waits for it, some tens of milliseconds.
pub const STEPS_AT_ONCE: u64 = 1 << 22;

impl Default for Topology {
    /// That of no nodes.
    fn default() -> Self {
        Self::new(None, &NodeStatics::default())
    }
}

impl Topology {
    /// Places every node in `network`, or by rack path where there is none or it does not know the node.
    #[must_use]
    pub fn new(network: Option<Arc<Network>>, nodes: &NodeStatics) -> Self {
        // A network with more edge switches than a table holds is as good as none: racks are coarse, not wrong.
        let built = network.and_then(|network| Distances::build(&network).ok().map(|distances| (network, distances)));
        match built {
            Some((network, distances)) => Self::placed(Some(network), Arc::new(distances), nodes),
            None => Self::placed(None, Arc::new(Distances::from_racks(&nodes.racks)), nodes),
        }
    }

    /// Places every node where the distances are known already: those of `network`, or of the racks without one.
    #[must_use]
    pub fn placed(network: Option<Arc<Network>>, distances: Arc<Distances>, nodes: &NodeStatics) -> Self {
        let (vertex, edge) = match &network {
            None => (vec![None; nodes.len()], nodes.rack.iter().map(|rack| Some(EdgeIdx(rack.0))).collect()),
            Some(known) => {
                let vertex = vertices(known, nodes);
                let edge = edges(&distances, &vertex);
                (vertex, edge)
            }
        };
        let ecmp = EcmpTable::of(&distances);
        Self { distances, edge, vertex, network, chains: None, ecmp, paths: Arc::default() }
    }

    /// The same nodes in a later version of the network, which differs in the state of `links`, among them all links
    /// of switches whose state changed. Tables are followed where they change and shared where they do not.
    #[must_use]
    pub fn follow(&self, network: Arc<Network>, links: &[LinkIdx], nodes: &NodeStatics) -> Self {
        let followed = self.network.is_some().then(|| self.distances.follow(&network, links));
        let Some(Ok(distances)) = followed else {
            return Self::new(Some(network), nodes).with_chains(self.chains.as_deref());
        };
        let edge = edges(&distances, &self.vertex);
        let ecmp = EcmpTable::of(&distances);
        let paths = Arc::new(LatePaths { before: Mutex::new(self.paths.latest()), ..LatePaths::default() });
        let (vertex, chains) = (self.vertex.clone(), self.chains.clone());
        Self { network: Some(network), distances: Arc::new(distances), edge, vertex, chains, ecmp, paths }
    }

    /// The same network with other nodes in it; what is known of its paths stays.
    #[must_use]
    pub fn with_nodes(&self, nodes: &NodeStatics) -> Self {
        let (paths, chains) = (self.paths.clone(), self.chains.clone());
        Self { paths, chains, ..Self::placed(self.network.clone(), self.distances.clone(), nodes) }
    }

    /// The same paths in a network whose links differ in capacity, or in states that no path hangs on.
    #[must_use]
    pub fn with_network(&self, network: Option<Arc<Network>>) -> Self {
        Self { network, ..self.clone() }
    }

    /// The same network with these middleboxes and chains, which find their switches in it. The path table is made anew
    /// if boxes hang on other switches than before: those are among its ends.
    #[must_use]
    pub fn with_chains(&self, chains: Option<&Chains>) -> Self {
        let placed = |chains: &Chains| match &self.network {
            Some(network) => chains.follow(network),
            None => chains.clone(),
        };
        let chains = chains.map(|chains| Arc::new(placed(chains)));
        let ends = |chains: &Option<Arc<Chains>>| chains.as_ref().map(|chains| chains.ends()).unwrap_or_default();
        let same = ends(&chains) == ends(&self.chains);
        let paths = if same { self.paths.clone() } else { Arc::default() };
        Self { chains, paths, ..self.clone() }
    }

    /// Hops for equal-cost multipath over the network; `None` without one.
    #[must_use]
    pub const fn ecmp(&self) -> Option<&EcmpTable> {
        self.ecmp.as_ref()
    }

    /// TOPOLOGY-MAP (000 §2): the k shortest paths between attachment switches; `None` without a network.
    ///
    /// The first to ask of a version waits until the table of an earlier one has followed, or is built, but for no more
    /// than [`STEPS_AT_ONCE`]: where that takes more, the table is a lazy one with the same paths.
    #[must_use]
    pub fn paths(&self) -> Option<&PathTable> {
        self.shared_paths().map(Arc::as_ref)
    }

    /// The same table, to be kept beyond this version of the network.
    #[must_use]
    pub fn shared_paths(&self) -> Option<&Arc<PathTable>> {
        self.paths.table(self.network.as_deref(), self.chains.as_deref())
    }

    /// The same table, if somebody has asked this version for it already: never waits.
    #[must_use]
    pub fn made_paths(&self) -> Option<&Arc<PathTable>> {
        self.paths.whole.get().or_else(|| self.paths.at_once.get()?.as_ref())
    }

    /// Whether the table could be more whole than it is, and nobody builds that: [`Self::build_paths`] does.
    #[must_use]
    pub fn are_paths_due(&self) -> bool {
        self.network.is_some() && !self.paths.is_built() && !self.paths.building.load(Ordering::Acquire)
    }

    /// Builds the whole table, for whoever asks from then on: as long as `stop` does not say to stop. Whether it is
    /// there now; not if somebody else builds it. Others may ask meanwhile.
    pub fn build_paths(&self, stop: &mut dyn FnMut() -> bool) -> bool {
        let Some(network) = self.network.as_deref() else { return true };
        self.paths.build(network, self.chains.as_deref(), stop)
    }

    /// Switches above the edge layer between two nodes: 0 under one switch; `None`: unknown or cut off.
    #[inline]
    #[must_use]
    pub fn core_hops(&self, a: NodeIdx, b: NodeIdx) -> Option<u8> {
        let (a, b) = (self.edge.get(a.at()).copied().flatten()?, self.edge.get(b.at()).copied().flatten()?);
        self.distances.core_hops(a, b)
    }
}

impl LatePaths {
    fn table(&self, network: Option<&Network>, chains: Option<&Chains>) -> Option<&Arc<PathTable>> {
        if let Some(whole) = self.whole.get() {
            return Some(whole);
        }
        let make = || {
            let network = network?;
            let before = self.before().clone(); // unlocked from here: the next version may ask meanwhile
            let was_whole = before.as_ref().is_some_and(|before| !before.is_lazy());
            let table = Self::within(before, network, chains, STEPS_AT_ONCE, &mut || false);
            let table = table.unwrap_or_else(|| Arc::new(PathTable::lazy(network, &options(chains))));
            // A whole one of an earlier version is the better one to follow from.
            if !(was_whole && table.is_lazy()) {
                *self.before() = Some(table.clone());
            }
            Some(table)
        };
        self.at_once.get_or_init(make).as_ref()
    }

    fn is_built(&self) -> bool {
        self.whole.get().is_some()
            || self.at_once.get().is_some_and(|table| table.as_ref().is_none_or(|table| !table.is_lazy()))
    }

    fn build(&self, network: &Network, chains: Option<&Chains>, stop: &mut dyn FnMut() -> bool) -> bool {
        if self.is_built() {
            return true;
        }
        if self.building.swap(true, Ordering::AcqRel) {
            return false;
        }
        let built = self.build_alone(network, chains, stop);
        self.building.store(false, Ordering::Release);
        built
    }

    fn build_alone(&self, network: &Network, chains: Option<&Chains>, stop: &mut dyn FnMut() -> bool) -> bool {
        let before = self.before().clone().filter(|before| !before.is_lazy());
        let followed = before.and_then(|before| Self::within(Some(before), network, chains, u64::MAX, stop));
        let table = followed.or_else(|| Self::within(None, network, chains, u64::MAX, stop));
        // One that may not be whole is lazy: that which is there keeps what it knows.
        let known = self.at_once.get().cloned().flatten();
        let table = table.map(|table| if table.is_lazy() { known.unwrap_or(table) } else { table });
        let Some(table) = table else { return false };
        *self.before() = Some(table.clone());
        let _ = self.whole.set(table); // another may have been faster, with the same
        true
    }

    /// The table of a version, from an earlier one's where there is one. `None`: it takes more.
    fn within(
        before: Option<Arc<PathTable>>,
        network: &Network,
        chains: Option<&Chains>,
        steps: u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Arc<PathTable>> {
        match before {
            Some(mut table) => {
                Arc::make_mut(&mut table).update_within(network, steps, stop)?;
                Some(table)
            }
            None => PathTable::build_within(network, &options(chains), steps, stop).map(Arc::new),
        }
    }

    /// This version's table if it is there, else the last earlier one that was.
    fn latest(&self) -> Option<Arc<PathTable>> {
        self.before().clone()
    }

    fn before(&self) -> MutexGuard<'_, Option<Arc<PathTable>>> {
        // Nothing panics while it is held.
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Middleboxes' switches are among the table's ends.
fn options(chains: Option<&Chains>) -> PathTableOptions {
    PathTableOptions { more_ends: chains.map(Chains::ends).unwrap_or_default(), ..PathTableOptions::default() }
}

/// By node: its vertex.
fn vertices(known: &Network, nodes: &NodeStatics) -> Vec<Option<VertexIdx>> {
    // A switch may be called as a host is.
    let host = |name: &str| known.vertex(name).filter(|&vertex| known.vertex_at(vertex).is_host());
    let mut vertex: Vec<_> = nodes.host.iter().map(|name| host(name.as_str())).collect();
    // The SDN may know a host by another of its names; of several, the first vertex, whatever the map's order.
    let aliases = nodes.by_alias.iter().filter_map(|(alias, node)| Some((*node, host(alias)?)));
    let mut by_alias: Vec<_> = aliases.collect();
    by_alias.sort_unstable();
    for (node, found) in by_alias {
        vertex[node.at()].get_or_insert(found);
    }
    vertex
}

/// By node: the switch that its vertex hangs on.
fn edges(distances: &Distances, vertex: &[Option<VertexIdx>]) -> Vec<Option<EdgeIdx>> {
    vertex.iter().map(|vertex| vertex.and_then(|vertex| distances.edge_of(vertex))).collect()
}
