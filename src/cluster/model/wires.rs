//! The network of the model: states and capacities change here, distances follow when a snapshot needs them.

use super::super::node::NodeStatics;
use super::super::topology::Topology;
use super::fact::{Applied, ModelError};
use crate::network::Network;
use crate::units::{BitsPerSec, LinkIdx, LinkName};
use std::sync::Arc;

/// The network and the last topology made of it.
#[derive(Debug, Default)]
pub(super) struct Wires {
    pub(super) network: Option<Arc<Network>>,
    topology: Arc<Topology>,
    /// Some link gained or lost its use, or the network is another one.
    paths_changed: bool,
    /// Only states or capacities that no path depends on changed.
    touched: bool,
    /// Racks that the distances were counted for, where there is no network.
    racks: usize,
}

impl Wires {
    pub(super) fn replace(&mut self, network: Option<Arc<Network>>) -> Applied {
        self.network = network;
        self.paths_changed = true;
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
        let before = [(index, network.is_usable(index), known.capacity)];
        Arc::make_mut(network).set_link(index, up, capacity);
        Ok(self.changed(&before))
    }

    pub(super) fn remove_link(&mut self, link: &LinkName) -> Result<Applied, ModelError> {
        let (network, index) = self.link(link)?;
        let before = [(index, network.is_usable(index), network.link_at(index).capacity)];
        Arc::make_mut(network).remove_link(index);
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
        let mut before: Vec<_> = links.map(|(index, link)| (index, network.is_usable(index), link.capacity)).collect();
        before.sort_unstable_by_key(|(index, ..)| *index);
        Arc::make_mut(network).set_switch(switch, up);
        // A switch without usable links is still a place that distances are counted from.
        self.paths_changed = true;
        Ok(self.changed(&before))
    }

    pub(super) fn has_link(&self, link: &LinkName) -> bool {
        self.network.as_ref().is_some_and(|network| network.link(link.as_str()).is_some())
    }

    /// The topology of now; shares what did not change with the one before.
    pub(super) fn topology(&mut self, nodes: &NodeStatics, moved: bool) -> Arc<Topology> {
        let (paths_changed, touched) = (std::mem::take(&mut self.paths_changed), std::mem::take(&mut self.touched));
        let racks_added = self.network.is_none() && self.racks != nodes.racks.len();
        self.racks = nodes.racks.len();
        // A network too large for a table is left out of the topology, which then counts by racks.
        let left_out = self.network.is_some() && self.topology.network.is_none() && (moved || touched);
        if paths_changed || racks_added || left_out {
            self.topology = Arc::new(Topology::new(self.network.clone(), nodes));
        } else if moved {
            let distances = Arc::clone(&self.topology.distances);
            self.topology = Arc::new(Topology::placed(self.network.clone(), distances, nodes));
        } else if touched {
            self.topology = Arc::new(Topology { network: self.network.clone(), ..Topology::clone(&self.topology) });
        }
        Arc::clone(&self.topology)
    }

    fn link(&mut self, link: &LinkName) -> Result<(&mut Arc<Network>, LinkIdx), ModelError> {
        let unknown = || ModelError::UnknownVertex { what: "link", name: link.to_string() };
        let network = self.network.as_mut().ok_or_else(unknown)?;
        let index = network.link(link.as_str()).ok_or_else(unknown)?;
        Ok((network, index))
    }

    /// Which of these links (use and capacity before) are another now.
    fn changed(&mut self, before: &[(LinkIdx, bool, BitsPerSec)]) -> Applied {
        self.touched = true;
        let Some(network) = &self.network else { return Applied::Quiet };
        let mut links = Vec::new();
        for &(index, usable, capacity) in before {
            let now = network.is_usable(index);
            self.paths_changed |= usable != now;
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
    use crate::network::Tier;
    use crate::units::NodeIdx;

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
    fn a_removed_link_takes_its_counters_along() {
        let mut model = model();
        let load = LinkLoad { a_to_b: BitsPerSec(1), b_to_a: BitsPerSec(2) };
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
}
