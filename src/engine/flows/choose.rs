//! Routes for pairs that need one, or may get a better one.

use super::pairs::{Links, is_whole};
use super::settings::RouteSettings;
use crate::cluster::{NodePair, Snapshot};
use crate::engine::routes::view::ends;
use crate::network::{Network, PathTable, host_paths};
use crate::policy::Budget;
use crate::policy::cross_layer::{Reroute, reroute};
use crate::policy::flow_index::FlowIndex;
use crate::units::{DirectedLinkIdx, LinkIdx, VertexIdx};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of ties and draws: ties are broken by pair as well, so that one seed spreads.
const SEED: u64 = 0;

/// The network of one moment, with its paths.
#[derive(Clone, Copy)]
pub(super) struct Ways<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) network: &'a Network,
    pub(super) paths: &'a PathTable,
    pub(super) settings: &'a RouteSettings,
}

impl<'a> Ways<'a> {
    /// `None`: there is no network.
    pub(super) fn of(snapshot: &'a Snapshot, settings: &'a RouteSettings) -> Option<Self> {
        let topology = &snapshot.topology;
        Some(Self { snapshot, network: topology.network.as_deref()?, paths: topology.paths()?, settings })
    }

    fn vertices(&self, pair: NodePair) -> Option<(VertexIdx, VertexIdx)> {
        let vertex = |node: crate::units::NodeIdx| self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        Some((vertex(pair.from)?, vertex(pair.to)?))
    }

    /// What stands for default forwarding: the table's first path; empty where there is none.
    pub(super) fn first(&self, pair: NodePair) -> Links {
        let ends = self.vertices(pair);
        let path = ends.and_then(|(from, to)| host_paths(self.network, self.paths, from, to).next());
        path.map_or_else(|| Arc::from([]), |path| Arc::from(&*path))
    }

    /// Whether links are a route of the pair that can be taken now: one after the other, over switches only, no
    /// vertex twice, all of them up.
    pub(super) fn is_route(&self, pair: NodePair, links: &[DirectedLinkIdx]) -> bool {
        let Some((from, to)) = self.vertices(pair) else {
            return false;
        };
        if links.iter().any(|link| link.at() / 2 >= self.network.link_rows()) || !is_whole(self.network, links) {
            return false;
        }
        let (mut here, mut passed) = (from, BTreeSet::from([from]));
        for (at, &link) in links.iter().enumerate() {
            let (tail, head) = ends(self.network, link);
            let inner = at + 1 < links.len();
            if tail != here || !passed.insert(head) || (inner && self.network.vertex_at(head).is_host()) {
                return false;
            }
            here = head;
        }
        here == to
    }

    /// Routes for pairs: those that have none that is whole get one whatever comes of it; of a `planned` change only
    /// what makes utility rise is kept. The pairs whose route is another now.
    pub(super) fn choose(
        &self,
        index: &mut FlowIndex,
        pairs: &[NodePair],
        avoid: &BTreeSet<LinkIdx>,
        planned: bool,
    ) -> Vec<(NodePair, Links)> {
        let what = Reroute {
            network: self.network,
            paths: self.paths,
            topology: &self.snapshot.topology,
            pairs,
            avoid,
            seed: SEED,
            planned,
        };
        let mut never = || false;
        let changed = reroute(index, &what, &mut Budget::new(self.settings.steps, &mut never));
        changed.into_iter().map(|(pair, route)| (pair, route.unwrap_or_else(|| Arc::from([])))).collect()
    }
}
