//! The network of the model: states and capacities change here, the topology follows when a snapshot needs it.

use super::super::node::NodeStatics;
use super::super::topology::Topology;
use super::fact::{Applied, ModelError};
use crate::network::Network;
use crate::network::chains::{ChainProblem, Chains, ChainsDocument};
use crate::units::{BitsPerSec, LinkIdx, LinkName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The network and the last topology made of it.
#[derive(Debug, Default)]
pub(super) struct NetworkState {
    pub(super) network: Option<Arc<Network>>,
    /// Middleboxes and chains, on the last network that was known when they or it came.
    pub(super) chains: Option<Chains>,
    /// They, or a box of theirs, changed since the topology was made.
    rechained: bool,
    topology: Arc<Topology>,
    /// The network is another one.
    replaced: bool,
    /// Links that gained or lost their use since the topology was made.
    moved_links: BTreeSet<LinkIdx>,
    /// A switch came up or went down since, with or without links.
    switched: bool,
    /// Only states or capacities that no path depends on changed.
    touched: bool,
    /// Racks that the distances were counted for, where there is no network.
    racks: usize,
}

/// A link as it was before a change.
#[derive(Debug, Clone, Copy)]
struct LinkBefore {
    index: LinkIdx,
    usable: bool,
    capacity: BitsPerSec,
}

impl LinkBefore {
    fn of(network: &Network, index: LinkIdx) -> Self {
        Self { index, usable: network.is_usable(index), capacity: network.link_at(index).capacity }
    }
}

impl NetworkState {
    /// A network like the one that is known changes nothing: feeds tell all of it whenever they begin anew.
    pub(super) fn replace(&mut self, network: Option<Arc<Network>>) -> Applied {
        let same = match (&self.network, &network) {
            (Some(known), Some(told)) => Arc::ptr_eq(known, told) || known.is_same(told),
            (None, None) => true,
            _ => false,
        };
        if same {
            return Applied::Quiet;
        }
        self.network = network;
        self.replaced = true;
        self.moved_links.clear();
        Applied::NetworkChanged { links: Vec::new() }
    }

    pub(super) fn set_link(
        &mut self,
        link: &LinkName,
        up: Option<bool>,
        capacity: Option<BitsPerSec>,
    ) -> Result<Applied, ModelError> {
        let (network, index) = self.link(link)?;
        let known = network.link_at(index);
        if up.is_none_or(|up| up == known.up) && capacity.is_none_or(|capacity| capacity == known.capacity) {
            return Ok(Applied::Quiet);
        }
        let before = [LinkBefore::of(network, index)];
        Arc::make_mut(network).set_link(index, up, capacity);
        Ok(self.changed(&before))
    }

    pub(super) fn remove_link(&mut self, link: &LinkName) -> Result<Applied, ModelError> {
        let (network, index) = self.link(link)?;
        let before = [LinkBefore::of(network, index)];
        Arc::make_mut(network).remove_link(index);
        // Whatever its use: a switch that has lost its last host is no place to count from any more.
        self.moved_links.insert(index);
        Ok(self.changed(&before))
    }

    pub(super) fn set_switch(&mut self, name: &str, up: bool) -> Result<Applied, ModelError> {
        let unknown = || ModelError::UnknownVertex { what: "switch", name: name.to_owned() };
        let network = self.network.as_mut().ok_or_else(unknown)?;
        let switch = network.vertex(name).filter(|&vertex| !network.vertex_at(vertex).is_host()).ok_or_else(unknown)?;
        if network.switch_up(switch) == up {
            return Ok(Applied::Quiet);
        }
        let links = network.links_of(switch);
        let mut before: Vec<_> = links.map(|(index, _)| LinkBefore::of(network, index)).collect();
        before.sort_unstable_by_key(|link| link.index);
        Arc::make_mut(network).set_switch(switch, up);
        // A switch without usable links is still a place that distances are counted from.
        self.switched = true;
        Ok(self.changed(&before))
    }

    /// Takes a declaration in place of the one before, whole or not at all.
    pub(super) fn set_chains(
        &mut self,
        document: &ChainsDocument,
        in_use: &BTreeMap<Arc<str>, u64>,
    ) -> Result<Applied, ModelError> {
        let none = Chains::default();
        let known = self.chains.as_ref().unwrap_or(&none);
        let next = known.replace(document, self.network.as_deref(), in_use).map_err(ModelError::Chains)?;
        let next = (!document.is_empty()).then_some(next);
        if next == self.chains {
            return Ok(Applied::Quiet);
        }
        (self.chains, self.rechained) = (next, true);
        Ok(Applied::ChainsChanged { boxes: Vec::new() })
    }

    pub(super) fn set_box(
        &mut self,
        name: &str,
        up: Option<bool>,
        capacity: Option<BitsPerSec>,
    ) -> Result<Applied, ModelError> {
        let refused = |problem| ModelError::Chains(vec![problem]);
        let unknown = || refused(ChainProblem::UnknownBox { name: name.into(), near: None });
        let chains = self.chains.as_mut().ok_or_else(unknown)?;
        let index = chains.find_box(name).map_err(refused)?;
        if capacity == Some(BitsPerSec::ZERO) {
            return Err(refused(ChainProblem::NoCapacity { name: name.into(), bits_per_s: 0 }));
        }
        if !chains.set_box(index, up, capacity) {
            return Ok(Applied::Quiet);
        }
        self.rechained = true;
        Ok(Applied::ChainsChanged { boxes: vec![index] })
    }

    pub(super) fn has_link(&self, link: &LinkName) -> bool {
        self.network.as_ref().is_some_and(|network| network.link(link.as_str()).is_some())
    }

    /// The topology of now; shares what did not change with the one before.
    pub(super) fn topology(&mut self, nodes: &NodeStatics, moved: bool) -> Arc<Topology> {
        let (replaced, switched) = (std::mem::take(&mut self.replaced), std::mem::take(&mut self.switched));
        let (links, touched) = (std::mem::take(&mut self.moved_links), std::mem::take(&mut self.touched));
        let rechained = std::mem::take(&mut self.rechained);
        let racks_added = self.network.is_none() && self.racks != nodes.racks.len();
        self.racks = nodes.racks.len();
        // A network too large for a table is left out of the topology, which then counts by racks.
        let left_out = self.network.is_some() && self.topology.network.is_none() && (moved || touched);
        if replaced || racks_added || left_out {
            let anew = Topology::new(self.network.clone(), nodes);
            self.topology = Arc::new(anew.with_chains(self.chains.as_ref()));
            return Arc::clone(&self.topology);
        }
        if rechained {
            self.topology = Arc::new(self.topology.with_chains(self.chains.as_ref()));
        }
        if let Some(network) = self.network.as_ref().filter(|_| switched || !links.is_empty()) {
            let links: Vec<LinkIdx> = links.into_iter().collect();
            self.topology = Arc::new(self.topology.follow(network.clone(), &links, nodes));
        } else if touched {
            self.topology = Arc::new(self.topology.with_network(self.network.clone()));
        }
        if moved {
            self.topology = Arc::new(self.topology.with_nodes(nodes));
        }
        Arc::clone(&self.topology)
    }

    fn link(&mut self, link: &LinkName) -> Result<(&mut Arc<Network>, LinkIdx), ModelError> {
        let unknown = || ModelError::UnknownVertex { what: "link", name: link.to_string() };
        let network = self.network.as_mut().ok_or_else(unknown)?;
        let index = network.link(link.as_str()).ok_or_else(unknown)?;
        Ok((network, index))
    }

    /// Which of these links are another now.
    fn changed(&mut self, before: &[LinkBefore]) -> Applied {
        self.touched = true;
        let Some(network) = &self.network else { return Applied::Quiet };
        let mut links = Vec::new();
        for &LinkBefore { index, usable, capacity } in before {
            let now = network.is_usable(index);
            if usable != now {
                self.moved_links.insert(index);
            }
            if usable != now || (now && capacity != network.link_at(index).capacity) {
                links.push(index);
            }
        }
        // An empty list would say that all of the network changed.
        if links.is_empty() { Applied::Quiet } else { Applied::NetworkChanged { links } }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, registration};
    use super::super::{Change, Model};
    use super::*;
    use crate::cluster::{LinkLoad, NodeStatics};
    use crate::network::build::{self, BCubeSpec, FatTreeSpec, JellyfishSpec};
    use crate::network::{Distances, EcmpTable, EdgeIdx, LinkLoads, Path, PathTable, PathTableOptions, Tier};
    use crate::units::NodeIdx;
    use proptest::prelude::*;

    /// Two racks of one host each, joined by two core switches; `b` has another name at the SDN.
    fn model() -> Model {
        let mut network = Network::new();
        let [a, b] = ["a", "sdn-b"].map(|host| network.add_host(host).unwrap());
        let [tor_a, tor_b] = ["tor-a", "tor-b"].map(|name| network.add_switch(name, Tier::Edge).unwrap());
        let cores = ["core-1", "core-2"].map(|name| network.add_switch(name, Tier::Core).unwrap());
        let capacity = BitsPerSec(1_000_000_000);
        for (name, from, to) in [
            ("a-tor", a, tor_a),
            ("b-tor", b, tor_b),
            ("a-1", tor_a, cores[0]),
            ("b-1", tor_b, cores[0]),
            ("a-2", tor_a, cores[1]),
            ("b-2", tor_b, cores[1]),
        ] {
            network.add_link(name.into(), from, to, capacity).unwrap();
        }
        let mut model = Model::default();
        let mut with_alias = registration("b", "/r2");
        with_alias.aliases = vec!["sdn-b".into()];
        for registration in [registration("a", "/r1"), with_alias] {
            model.apply(Change::Register(registration), T).unwrap();
        }
        let applied = model.apply(Change::Network(Some(Arc::new(network))), T);
        assert_eq!(applied, Ok(Applied::NetworkChanged { links: vec![] }));
        model
    }

    fn set(model: &mut Model, link: &str, up: Option<bool>, capacity: Option<u64>) -> Applied {
        model.apply(Change::Link { link: link.into(), up, capacity: capacity.map(BitsPerSec) }, T).unwrap()
    }

    fn switch(model: &mut Model, name: &str, up: bool) -> Applied {
        model.apply(Change::Switch { name: name.into(), up }, T).unwrap()
    }

    fn links(of: &[u32]) -> Applied {
        Applied::NetworkChanged { links: of.iter().map(|&link| LinkIdx(link)).collect() }
    }

    fn hops(topology: &Topology) -> Option<u8> {
        topology.core_hops(NodeIdx(0), NodeIdx(1))
    }

    #[test]
    fn losing_paths_shows_in_new_snapshots_and_not_in_old_ones() {
        let mut model = model();
        let whole = model.publish(T);
        assert_eq!(hops(&whole.topology), Some(1));
        assert_eq!(set(&mut model, "a-1", Some(false), None), links(&[2]));
        assert_eq!(set(&mut model, "a-1", Some(false), None), Applied::Quiet, "told twice");
        assert_eq!(hops(&model.publish(T).topology), Some(1), "the other core serves");
        assert_eq!(switch(&mut model, "core-2", false), links(&[4, 5]));
        let cut = model.publish(T);
        assert_eq!((hops(&cut.topology), hops(&whole.topology)), (None, Some(1)));
        assert!(whole.topology.network.as_ref().unwrap().is_usable(LinkIdx(2)));
        assert_eq!(switch(&mut model, "core-1", false), links(&[3]), "a-1 was of no use already");
        assert_eq!(set(&mut model, "a-1", Some(true), None), Applied::Quiet, "core-1 is still down");
        assert_eq!(switch(&mut model, "core-1", true), links(&[2, 3]));
        assert_eq!(hops(&model.publish(T).topology), Some(1));
    }

    #[test]
    fn a_switch_without_links_is_a_place_until_it_goes_down() {
        let mut model = model();
        for link in ["a-tor", "a-1", "a-2"] {
            set(&mut model, link, Some(false), None);
        }
        let here = |model: &mut Model| model.publish(T).topology.distances.core_hops(EdgeIdx(0), EdgeIdx(0));
        assert_eq!(here(&mut model), Some(0));
        assert_eq!(switch(&mut model, "tor-a", false), Applied::Quiet, "no link lost its use");
        assert_eq!(here(&mut model), None);
        switch(&mut model, "tor-a", true);
        assert_eq!(here(&mut model), Some(0));
    }

    #[test]
    fn a_switch_whose_last_host_was_removed_is_no_place_any_more() {
        let mut model = model();
        set(&mut model, "a-tor", Some(false), None);
        assert_eq!(model.publish(T).topology.distances.edges(), 2);
        let removed = model.apply(Change::LinkRemoved("a-tor".into()), T).unwrap();
        assert_eq!(removed, Applied::Quiet, "it was of no use already");
        let topology = &model.publish(T).topology;
        assert_eq!((topology.distances.edges(), topology.edge[1]), (1, Some(EdgeIdx(0))));
    }

    #[test]
    fn a_capacity_changes_no_distance() {
        let mut model = model();
        let before = model.publish(T);
        assert_eq!(set(&mut model, "a-2", None, Some(5)), links(&[4]));
        let after = model.publish(T);
        assert!(Arc::ptr_eq(&before.topology.distances, &after.topology.distances));
        let capacity = |topology: &Topology| topology.network.as_ref().unwrap().link_at(LinkIdx(4)).capacity.0;
        assert_eq!((capacity(&before.topology), capacity(&after.topology)), (1_000_000_000, 5));
        model.apply(Change::Register(registration("new", "/r1")), T).unwrap();
        let grown = model.publish(T);
        assert!(Arc::ptr_eq(&before.topology.distances, &grown.topology.distances));
        assert_eq!((grown.topology.edge.len(), grown.topology.edge[2]), (3, None));
    }

    #[test]
    fn the_network_that_is_known_told_again_changes_nothing() {
        let mut model = model();
        let load = LinkLoad::steady(BitsPerSec(1), BitsPerSec(2));
        model.apply(Change::LinkLoad("a-1".into(), load), T).unwrap();
        let before = model.publish(T);
        let known = before.topology.network.clone().unwrap();
        let again = |network: Network| Change::Network(Some(Arc::new(network)));
        assert_eq!(model.apply(again((*known).clone()), T), Ok(Applied::Quiet));
        let after = model.publish(T);
        assert!(Arc::ptr_eq(&before.topology, &after.topology) && after.link_loads.is_empty());
        let mut other = (*known).clone();
        other.set_link(LinkIdx(2), Some(false), None);
        assert_eq!(model.apply(again(other), T), Ok(links(&[])));
        assert!(model.publish(T).link_loads.is_empty());
        assert_eq!(model.apply(Change::Network(None), T), Ok(links(&[])));
        assert_eq!(model.apply(Change::Network(None), T), Ok(Applied::Quiet));
    }

    #[test]
    fn a_removed_link_takes_its_counters_along() {
        let mut model = model();
        let load = LinkLoad::steady(BitsPerSec(1), BitsPerSec(2));
        model.apply(Change::LinkLoad("a-1".into(), load), T).unwrap();
        assert_eq!(model.publish(T).link_loads.len(), 1);
        assert_eq!(model.apply(Change::LinkRemoved("a-1".into()), T), Ok(links(&[2])));
        assert!(model.publish(T).link_loads.is_empty());
        assert!(model.apply(Change::LinkRemoved("a-1".into()), T).is_err(), "it is no more");
        assert!(model.apply(Change::Switch { name: "a".into(), up: false }, T).is_err(), "a host is no switch");
    }

    #[test]
    fn without_its_network_a_cluster_has_racks() {
        let mut model = model();
        model.apply(Change::Network(None), T).unwrap();
        let snapshot = model.publish(T);
        assert_eq!(hops(&snapshot.topology), hops(&Topology::new(None, &snapshot.statics)));
        assert_eq!(Topology::new(None, &NodeStatics::default()).edge, []);
    }

    fn built(kind: u8) -> Network {
        match kind {
            0 => build::fat_tree(&FatTreeSpec::default()),
            1 => build::jellyfish(&JellyfishSpec { switches: 8, ports: 5, to_switches: 3, ..JellyfishSpec::default() }),
            _ => build::bcube(&BCubeSpec::default()),
        }
        .unwrap()
        .network
    }

    /// The paths of every pair of attachment switches.
    fn all_paths(table: &PathTable) -> Vec<Vec<Path>> {
        let pairs = table.ends().iter().flat_map(|&a| table.ends().iter().map(move |&b| (a, b)));
        pairs.map(|(a, b)| table.paths(a, b).iter().collect()).collect()
    }

    /// Everything that a topology says, against what is built from its network alone.
    fn assert_as_built(topology: &Topology, nodes: &NodeStatics) {
        let network = topology.network.as_ref().unwrap();
        let fresh = Topology::new(Some(network.clone()), nodes);
        assert_eq!((&topology.edge, &topology.vertex), (&fresh.edge, &fresh.vertex));
        let distances = Distances::build(network).unwrap();
        assert_eq!(topology.distances.diameter(), distances.diameter());
        let edges = || (0..distances.edges() as u32).map(EdgeIdx);
        let ecmp = EcmpTable::build(network).unwrap();
        let (mut followed, mut anew) = (LinkLoads::new(network), LinkLoads::new(network));
        for (a, b) in edges().flat_map(|a| edges().map(move |b| (a, b))) {
            assert_eq!(topology.distances.core_hops(a, b), distances.core_hops(a, b));
            let bytes = f64::from(1 + a.0 + 3 * b.0);
            let there = topology.ecmp().unwrap().spread_bytes(a, b, bytes, &mut followed);
            assert_eq!(there, ecmp.spread_bytes(a, b, bytes, &mut anew));
        }
        assert!(network.links().all(|(link, _)| followed.of(link) == anew.of(link)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn after_any_changes_the_topology_is_what_a_new_one_would_be(
            kind in 0_u8..3,
            steps in prop::collection::vec(
                (prop::collection::vec((0_u8..8, any::<prop::sample::Index>()), 1..4), any::<bool>()), 1..8),
        ) {
            let network = built(kind);
            let mut model = Model::default();
            model.apply(Change::Network(Some(Arc::new(network.clone()))), T).unwrap();
            for (_, host) in network.vertices().filter(|(_, vertex)| vertex.is_host()).step_by(2) {
                model.apply(Change::Register(registration(&host.name, "/r1")), T).unwrap();
            }
            let mut newcomers = 0;
            for (changes, asked) in steps {
                for (what, at) in changes {
                    let now = model.publish(T).topology.network.clone().unwrap();
                    let links: Vec<_> = now.links().map(|(_, link)| (link.name.clone(), link.up)).collect();
                    let switches: Vec<_> = now.vertices().filter(|(_, vertex)| !vertex.is_host()).collect();
                    let (link, up) = at.get(&links).clone();
                    let (switch, vertex) = *at.get(&switches);
                    let change = match what {
                        0..3 => Change::Link { link, up: Some(!up), capacity: None },
                        3 => Change::Link { link, up: None, capacity: Some(BitsPerSec(at.index(2) as u64)) },
                        4..6 => Change::Switch { name: vertex.name.clone(), up: !now.switch_up(switch) },
                        6 => Change::LinkRemoved(link),
                        _ => {
                            newcomers += 1;
                            Change::Register(registration(&format!("host-{:04}", 2 * newcomers), "/r2"))
                        }
                    };
                    model.apply(change, T).unwrap();
                }
                let snapshot = model.publish(T);
                assert_as_built(&snapshot.topology, &snapshot.statics);
                // Whoever asks only now and then gets the same.
                if asked {
                    let network = snapshot.topology.network.as_ref().unwrap();
                    let anew = PathTable::build(network, &PathTableOptions::default());
                    prop_assert_eq!(all_paths(snapshot.topology.paths().unwrap()), all_paths(&anew));
                }
            }
        }
    }

    #[test]
    fn paths_are_followed_from_the_last_version_that_somebody_asked() {
        let mut model = Model::default();
        model.apply(Change::Network(Some(Arc::new(built(0)))), T).unwrap();
        let first = model.publish(T);
        let first = first.topology.paths().unwrap();
        let link = |up| Change::Link { link: "agg-1-1--core-1".into(), up: Some(up), capacity: None };
        model.apply(link(false), T).unwrap();
        model.publish(T); // nobody asks this one
        model
            .apply(Change::Link { link: "agg-1-2--core-3".into(), up: None, capacity: Some(BitsPerSec(5)) }, T)
            .unwrap();
        let (second, again) = (model.publish(T), model.publish(T));
        let second = second.topology.paths().unwrap();
        assert!(std::ptr::eq(second, again.topology.paths().unwrap()), "made once for a version");
        let anew = PathTable::build(again.topology.network.as_ref().unwrap(), &PathTableOptions::default());
        assert_eq!(all_paths(second), all_paths(&anew));
        assert_ne!(all_paths(second), all_paths(first), "the one before stays what it was");
        // Rows that nothing happened to are the same memory: only a table that followed has them.
        assert!(second.shared_rows(first) > 0 && anew.shared_rows(first) == 0);
    }
}
