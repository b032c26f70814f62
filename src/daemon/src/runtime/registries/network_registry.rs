//! The network as fed: known here as well, so that a change of an unknown link is refused at once.

use super::link_states::{DownLink, LinkStates, LinkTold, LostLinks};
use super::refusal::{ItemRefusal, Reason};
use hintd_engine::CarriedRoutes;
use hintd_model::cluster::{Change, LinkLoad};
use hintd_model::network::Network;
use hintd_model::units::{BitsPerSec, LinkIdx, LinkName};
use std::sync::Arc;
use std::time::Instant;

/// Who told of a network that was there at the start.
const CLUSTER_FILE: &str = "the cluster file";

/// Changes kept one by one; beyond, the network as a whole says the same in bounded space.
const WAITING_MAX: usize = 4_096;

/// The network and what the engine has not taken yet.
#[derive(Debug, Default)]
pub(super) struct NetworkRegistry {
    network: Option<Arc<Network>>,
    waiting: Vec<Change>,
    /// The configuration says what it is: feeds do not.
    owned: bool,
    /// Links that it has.
    links: usize,
    states: LinkStates,
}

impl NetworkRegistry {
    pub(super) fn network(&self) -> Option<Arc<Network>> {
        self.network.clone()
    }

    pub(super) const fn own(&mut self, owned: bool) {
        self.owned = owned;
    }

    pub(super) fn is_fed(&self) -> Result<(), ItemRefusal> {
        if !self.owned {
            return Ok(());
        }
        let message =
            "the configuration names a network file (network.file): a feed tells of link loads and middleboxes only";
        Err(ItemRefusal::new(Reason::NotOwner, message))
    }

    pub(super) fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.waiting)
    }

    /// Says whether the network is news.
    pub(super) fn observe(&mut self, network: Option<&Arc<Network>>) -> bool {
        let is_news = self.network.is_none() && self.waiting.is_empty() && network.is_some();
        if is_news {
            self.network = network.cloned();
            self.look_at_all(CLUSTER_FILE);
        }
        is_news
    }

    /// Links that carry nothing, the longest first.
    pub(super) fn links_down(&self) -> Vec<(LinkName, DownLink)> {
        self.states.all()
    }

    pub(super) fn link_told(&self, link: &LinkName) -> LinkTold {
        LinkTold {
            down: self.states.of(link).cloned(),
            last_outage: self.states.last_outage(link).cloned(),
            measured: self.states.measured(link),
        }
    }

    /// A link's load was measured; it is one of the network's.
    pub(super) fn measured(&mut self, link: &LinkName, load: LinkLoad) {
        self.states.note_measured(link, load, Instant::now());
    }

    /// Links of the network, and how many of them carry nothing.
    pub(super) fn count_links(&self) -> (usize, usize) {
        (self.links, self.states.len())
    }

    fn look_at_all(&mut self, said_by: &str) {
        self.links = self.network.as_ref().map_or(0, |network| network.links().count());
        self.states.whole(self.network.as_deref(), &said_by.into(), Instant::now());
    }

    pub(super) fn take_lost(&mut self) -> LostLinks {
        self.states.take_lost()
    }

    pub(super) fn carried(&mut self, link: &LinkName, carried: CarriedRoutes) {
        self.states.carried(link, carried);
    }

    pub(super) fn replace(&mut self, network: Option<Arc<Network>>, said_by: &str) {
        self.network.clone_from(&network);
        self.look_at_all(said_by);
        self.waiting = vec![Change::Network(network)];
    }

    pub(super) fn check_link(&self, link: &LinkName) -> Result<(), ItemRefusal> {
        let known = self.network.as_ref().is_some_and(|network| network.link(link.as_str()).is_some());
        if known { Ok(()) } else { Err(unknown_link(link)) }
    }

    /// Says whether anything changed.
    pub(super) fn set_link(
        &mut self,
        link: &LinkName,
        up: Option<bool>,
        capacity: Option<BitsPerSec>,
        said_by: &str,
    ) -> Result<bool, ItemRefusal> {
        let network = self.network.as_mut().ok_or_else(|| unknown_link(link))?;
        let index = network.link(link.as_str()).ok_or_else(|| unknown_link(link))?;
        let known = network.link_at(index);
        if up.is_none_or(|up| up == known.up) && capacity.is_none_or(|capacity| capacity == known.capacity) {
            return Ok(false);
        }
        let network = Arc::make_mut(network);
        network.set_link(index, up, capacity);
        self.states.link(network, index, &said_by.into(), Instant::now());
        self.push(Change::Link { link: link.clone(), up, capacity });
        Ok(true)
    }

    pub(super) fn remove_link(&mut self, link: &LinkName) -> Result<(), ItemRefusal> {
        let network = self.network.as_mut().ok_or_else(|| unknown_link(link))?;
        let index = network.link(link.as_str()).ok_or_else(|| unknown_link(link))?;
        Arc::make_mut(network).remove_link(index);
        self.links -= 1;
        self.states.removed(link);
        self.push(Change::LinkRemoved(link.clone()));
        Ok(())
    }

    /// Says whether anything changed.
    pub(super) fn set_switch(&mut self, name: &str, up: bool, said_by: &str) -> Result<bool, ItemRefusal> {
        let unknown = || ItemRefusal::new(Reason::UnknownSwitch, format!("the network has no switch \"{name}\""));
        let network = self.network.as_mut().ok_or_else(unknown)?;
        let switch = network.vertex(name).filter(|&vertex| !network.vertex_at(vertex).is_host()).ok_or_else(unknown)?;
        if network.switch_up(switch) == up {
            return Ok(false);
        }
        let network = Arc::make_mut(network);
        network.set_switch(switch, up);
        let links: Vec<LinkIdx> = network.links_of(switch).map(|(index, _)| index).collect();
        let named = (&network.vertex_at(switch).name, links.as_slice());
        self.states.switch(network, named, &said_by.into(), Instant::now());
        self.push(Change::Switch { name: name.into(), up });
        Ok(true)
    }

    fn push(&mut self, change: Change) {
        self.waiting.push(change);
        if self.waiting.len() > WAITING_MAX {
            self.waiting = vec![Change::Network(self.network.clone())];
        }
    }
}

fn unknown_link(link: &LinkName) -> ItemRefusal {
    ItemRefusal::new(Reason::UnknownLink, format!("the network has no link \"{link}\""))
}
