//! Routes for pairs that need one, or may get a better one.

use super::pairs::{Links, is_whole};
use super::settings::RouteSettings;
use crate::routes::view::ends;
use hintd_model::cluster::{NodePair, Snapshot};
use hintd_model::network::{Network, PathTable, host_paths};
use hintd_model::units::{DirectedLinkIdx, LinkIdx, VertexIdx};
use hintd_policy::Budget;
use hintd_policy::cross_layer::{Reroute, reroute};
use hintd_policy::flow_index::FlowIndex;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Steps of improvement while pairs without a route wait for it: a bound on the wait, below the configured one.
const URGENT_STEPS: u64 = 200;

/// Of ties and draws: ties are broken by pair as well, so that one seed spreads.
const SEED: u64 = 0;

/// The network of one moment, with its paths.
pub(super) struct RoutingContext<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) network: &'a Network,
    /// Of this version of the network, or of an earlier one: paths of it that are broken by now are passed over.
    pub(super) paths: Arc<PathTable>,
    /// Whether `paths` is an earlier version's; then this version's is asked for pairs that it has nothing for.
    pub(super) late: bool,
    pub(super) settings: &'a RouteSettings,
    /// Steps that lazy tables had taken when this began.
    since: u64,
}

/// Steps of path searches that one go on the engine's thread may take: some tenths of a second. What is left over waits
/// for the next tick. Whole tables take none: only what nobody has built yet, or what is too large to be whole, does.
const STEPS_IN_ONE_GO: u64 = 1 << 24;

impl<'a> RoutingContext<'a> {
    /// With an earlier version's table where there is one and nobody has made this version's yet, for following a change through all pairs takes longer than
    /// those may wait whose link is dead. `None`: there is no network.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        settings: &'a RouteSettings,
        table: &mut Option<Arc<PathTable>>,
    ) -> Option<Self> {
        let network = snapshot.topology.network.as_deref()?;
        let made = snapshot.topology.made_paths();
        let late = made.is_none() && table.is_some();
        let paths = match (made, &mut *table) {
            (None, Some(known)) => Arc::clone(known),
            (Some(made), _) => Arc::clone(table.insert(Arc::clone(made))),
            (None, None) => Arc::clone(table.insert(Arc::clone(snapshot.topology.shared_paths()?))),
        };
        Some(Self::with(snapshot, network, paths, late, settings))
    }

    pub(super) fn with(
        snapshot: &'a Snapshot,
        network: &'a Network,
        paths: Arc<PathTable>,
        late: bool,
        settings: &'a RouteSettings,
    ) -> Self {
        let ways = Self { snapshot, network, paths, late, settings, since: 0 };
        Self { since: ways.steps(), ..ways }
    }

    /// Steps that lazy tables have taken.
    fn steps(&self) -> u64 {
        let newer = self.snapshot.topology.made_paths().filter(|_| self.late);
        self.paths.steps() + newer.map_or(0, |newer| newer.steps())
    }

    /// Steps that lazy tables have taken since this began.
    pub(super) fn steps_taken(&self) -> u64 {
        self.steps().saturating_sub(self.since)
    }

    /// Whether paths may not be looked for any more in this go.
    pub(super) fn is_spent(&self) -> bool {
        self.steps_taken() > STEPS_IN_ONE_GO
    }

    fn vertices(&self, pair: NodePair) -> Option<(VertexIdx, VertexIdx)> {
        let vertex =
            |node: hintd_model::units::NodeIdx| self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        Some((vertex(pair.from)?, vertex(pair.to)?))
    }

    /// What stands for default forwarding: the table's first path; empty where there is none.
    pub(super) fn first(&self, pair: NodePair) -> Links {
        let Some((from, to)) = self.vertices(pair) else { return Arc::from([]) };
        let whole = |paths: &PathTable| {
            let mut all = host_paths(self.network, paths, from, to);
            all.find(|path| is_whole(self.network, path)).map(|path| Arc::from(&*path))
        };
        let newer = || self.is_attached(pair).then(|| whole(self.newer()?)).flatten();
        whole(&self.paths).or_else(newer).unwrap_or_else(|| Arc::from([]))
    }

    /// Whether both ends have a usable link to a switch: if not, no table has a path.
    fn is_attached(&self, pair: NodePair) -> bool {
        let attached = |vertex| self.network.access_link(vertex).is_some();
        self.vertices(pair).is_some_and(|(from, to)| attached(from) && attached(to))
    }

    /// This version's table, if `paths` is another's.
    fn newer(&self) -> Option<&'a PathTable> {
        self.snapshot.topology.paths().filter(|_| self.late)
    }

    /// Whether links are a route of the pair that can be taken now: a way of it, all links up.
    pub(super) fn is_route(&self, pair: NodePair, links: &[DirectedLinkIdx]) -> bool {
        self.is_way(pair, links) && is_whole(self.network, links)
    }

    /// Whether links lead from one end of the pair to the other: one after the other, over switches only, no vertex
    /// twice.
    pub(super) fn is_way(&self, pair: NodePair, links: &[DirectedLinkIdx]) -> bool {
        let Some((from, to)) = self.vertices(pair) else {
            return false;
        };
        if links.iter().any(|link| link.at() / 2 >= self.network.link_rows()) {
            return false;
        }
        let mut here = from;
        let mut passed: SmallVec<[VertexIdx; 8]> = SmallVec::from_slice(&[from]); // few: looked through faster than hashed
        for (at, &link) in links.iter().enumerate() {
            let (tail, head) = ends(self.network, link);
            let inner = at + 1 < links.len();
            if tail != here || passed.contains(&head) || (inner && self.network.vertex_at(head).is_host()) {
                return false;
            }
            passed.push(head);
            here = head;
        }
        here == to
    }

    /// Routes for pairs: those that have none that is whole get one whatever comes of it; of a `planned` change only
    /// what makes utility rise is kept. The pairs whose route is another now. Once [`Self::is_spent`], the others have none:
    /// it is for the caller to come back.
    pub(super) fn choose(
        &self,
        index: &mut FlowIndex,
        pairs: &[NodePair],
        avoid: &BTreeSet<LinkIdx>,
        planned: bool,
    ) -> Vec<(NodePair, Links)> {
        let mut changed: BTreeMap<NodePair, Links> = BTreeMap::new();
        let mut choose = |index: &mut FlowIndex, paths: &PathTable, pairs: &[NodePair]| {
            let (network, topology) = (self.network, &self.snapshot.topology);
            let what = Reroute { network, paths, topology, pairs, avoid, seed: SEED, planned };
            let steps = if planned { self.settings.steps } else { self.settings.steps.min(URGENT_STEPS) };
            for (pair, route) in reroute(index, &what, &mut Budget::new(steps, &mut || self.is_spent())) {
                changed.insert(pair, route.unwrap_or_else(|| Arc::from([])));
            }
        };
        choose(index, &self.paths, pairs);
        if !planned && self.late {
            // A table takes a while to follow the network: nobody waits for it because of hosts that hang nowhere.
            let cut = |pair: &NodePair| index.route(*pair).is_none_or(<[_]>::is_empty) && self.is_attached(*pair);
            let cut: Vec<NodePair> = pairs.iter().copied().filter(cut).collect();
            if let Some(newer) = (!cut.is_empty()).then(|| self.newer()).flatten() {
                choose(index, newer, &cut);
            }
        }
        changed.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::harness::registration;
    use hintd_model::cluster::{Change, Model};
    use hintd_model::network::build::{self, FatTreeSpec};
    use hintd_model::units::{LinkName, NodeIdx, Timestamp};

    const T: Timestamp = Timestamp(0);

    #[test]
    fn a_new_table_is_waited_for_only_where_it_may_have_what_the_old_one_has_not() {
        let built = build::fat_tree(&FatTreeSpec::default()).unwrap();
        let mut model = Model::default();
        model.apply(Change::Network(Some(Arc::new(built.network))), T).unwrap();
        for (rack, hosts) in &built.racks {
            for host in hosts {
                model.apply(Change::Register(registration(host.as_str(), rack.as_str(), 1024)), T).unwrap();
            }
        }
        let (settings, mut table) = (RouteSettings::default(), None);
        let snapshot = model.publish(T);
        assert!(!RoutingContext::of(&snapshot, &settings, &mut table).unwrap().late, "it was made now");
        let again = RoutingContext::of(&snapshot, &settings, &mut table).unwrap();
        assert!(!again.late, "it is this version's");
        let pair = NodePair { from: NodeIdx(0), to: NodeIdx(9) };
        let access = |ways: &RoutingContext<'_>| ways.network.link_at(LinkIdx(ways.first(pair)[0].0 / 2)).name.clone();
        let down = |model: &mut Model, link: LinkName| {
            model.apply(Change::Link { link, up: Some(false), capacity: None }, T).unwrap();
            model.publish(T)
        };
        let cut = down(&mut model, access(&again));
        let ways = RoutingContext::of(&cut, &settings, &mut table).unwrap();
        let mut index = FlowIndex::new(ways.network, &cut.topology);
        assert!(ways.late && ways.first(pair).is_empty());
        assert_eq!(ways.choose(&mut index, &[pair], &BTreeSet::new(), false), []);
        assert!(cut.topology.made_paths().is_none(), "nobody asked for it");
        let made = cut.topology.shared_paths().unwrap();
        let ways = RoutingContext::of(&cut, &settings, &mut table).unwrap();
        assert!(!ways.late && Arc::ptr_eq(&ways.paths, made));
    }
}
