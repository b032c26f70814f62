//! Where nodes hang in the network, and how far apart they are; racks stand in where no topology is known.

use super::node::NodeStatics;
use crate::network::{Distances, EdgeIdx, Network};
use crate::units::{NodeIdx, VertexIdx};
use std::sync::Arc;

/// The network as seen from the nodes. Shared by snapshots until topology or racks change.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    /// The SDN's graph; `None`: never heard, distances come from rack paths.
    pub network: Option<Arc<Network>>,
    /// Hops above the edge layer between attachment switches (or racks).
    pub distances: Arc<Distances>,
    /// Attachment by node; `None`: the node hangs nowhere.
    pub edge: Vec<Option<EdgeIdx>>,
    /// Vertex by node; `None`: the network does not name it.
    pub vertex: Vec<Option<VertexIdx>>,
}

impl Topology {
    /// Places every node in `network`, or by rack path where there is none or it does not know the node.
    #[must_use]
    pub fn new(network: Option<Arc<Network>>, nodes: &NodeStatics) -> Self {
        match network {
            Some(network) => Self::from_network(network, nodes),
            None => Self {
                distances: Arc::new(Distances::from_racks(&nodes.racks)),
                edge: nodes.rack.iter().map(|rack| Some(EdgeIdx(rack.0))).collect(),
                vertex: vec![None; nodes.len()],
                network: None,
            },
        }
    }

    fn from_network(network: Arc<Network>, nodes: &NodeStatics) -> Self {
        let distances = Distances::build(&network);
        let mut vertex: Vec<Option<VertexIdx>> = vec![None; nodes.len()];
        for (at, host) in nodes.host.iter().enumerate() {
            vertex[at] = network.vertex(host.as_str());
        }
        // The SDN may know a host by another of its names.
        for (alias, node) in &nodes.by_alias {
            if let Some(found) = network.vertex(alias) {
                vertex[node.at()].get_or_insert(found);
            }
        }
        let edge = vertex.iter().map(|vertex| vertex.and_then(|vertex| distances.edge_of(vertex))).collect();
        Self { distances: Arc::new(distances), edge, vertex, network: Some(network) }
    }

    /// Switches above the edge layer between two nodes: 0 under one switch; `None`: unknown or cut off.
    #[must_use]
    pub fn core_hops(&self, a: NodeIdx, b: NodeIdx) -> Option<u8> {
        let (a, b) = (self.edge.get(a.at()).copied().flatten()?, self.edge.get(b.at()).copied().flatten()?);
        self.distances.core_hops(a, b)
    }
}
