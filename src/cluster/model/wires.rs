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
        if paths_changed || racks_added {
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
