//! Where nodes hang in the network, and how far apart they are; racks stand in where no topology is known.

use super::node::NodeStatics;
use crate::network::{Distances, EcmpTable, EdgeIdx, Network, PathTable, PathTableOptions};
use crate::units::{NodeIdx, VertexIdx};
use std::sync::{Arc, OnceLock};

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
    /// Built when first asked for: the model never needs it, placers price their answers with it. Shared while
    /// paths stay.
    pub(super) ecmp: Arc<OnceLock<Option<EcmpTable>>>,
    /// Built when first asked for, and followed from then on. Shared while paths stay.
    pub(super) paths: Arc<OnceLock<Option<PathTable>>>,
}

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
        let Some(known) = &network else {
            let edge = nodes.rack.iter().map(|rack| Some(EdgeIdx(rack.0))).collect();
            return Self {
                distances,
                edge,
                vertex: vec![None; nodes.len()],
                network,
                ecmp: Arc::default(),
                paths: Arc::default(),
            };
        };
        let mut vertex: Vec<_> = nodes.host.iter().map(|host| known.vertex(host.as_str())).collect();
        // The SDN may know a host by another of its names; of several, the first vertex, whatever the map's order.
        let aliases = nodes.by_alias.iter().filter_map(|(alias, node)| Some((*node, known.vertex(alias)?)));
        let mut by_alias: Vec<_> = aliases.collect();
        by_alias.sort_unstable();
        for (node, found) in by_alias {
            vertex[node.at()].get_or_insert(found);
        }
        let edge = vertex.iter().map(|vertex| vertex.and_then(|vertex| distances.edge_of(vertex))).collect();
        Self { distances, edge, vertex, network, ecmp: Arc::default(), paths: Arc::default() }
    }

    /// Hops for equal-cost multipath over the network; `None` without one.
    #[must_use]
    pub fn ecmp(&self) -> Option<&EcmpTable> {
        self.ecmp.get_or_init(|| EcmpTable::build(self.network.as_deref()?).ok()).as_ref()
    }

    /// TOPOLOGY-MAP (000 §2): the k shortest paths between attachment switches; `None` without a network.
    #[must_use]
    pub fn paths(&self) -> Option<&PathTable> {
        let build = || Some(PathTable::build(self.network.as_deref()?, &PathTableOptions::default()));
        self.paths.get_or_init(build).as_ref()
    }

    /// Switches above the edge layer between two nodes: 0 under one switch; `None`: unknown or cut off.
    #[must_use]
    pub fn core_hops(&self, a: NodeIdx, b: NodeIdx) -> Option<u8> {
        let (a, b) = (self.edge.get(a.at()).copied().flatten()?, self.edge.get(b.at()).copied().flatten()?);
        self.distances.core_hops(a, b)
    }
}
