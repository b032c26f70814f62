//! The network as fed: known here as well, so that a change of an unknown link is refused at once.

use super::refusal::{ItemRefusal, Reason};
use hintd_model::cluster::Change;
use hintd_model::network::Network;
use hintd_model::units::{BitsPerSec, LinkIdx, LinkName};
use std::sync::Arc;

/// Changes kept one by one; beyond, the network as a whole says the same in bounded space.
const WAITING_MAX: usize = 4_096;

/// The network and what the engine has not taken yet.
#[derive(Debug, Default)]
pub(super) struct NetworkRegistry {
    network: Option<Arc<Network>>,
    waiting: Vec<Change>,
    /// The configuration says what it is: feeds do not.
    owned: bool,
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

    pub(super) fn observe(&mut self, network: Option<&Arc<Network>>) {
        if self.network.is_none() && self.waiting.is_empty() {
            self.network = network.cloned();
        }
    }

    pub(super) fn replace(&mut self, network: Option<Arc<Network>>) {
        self.network.clone_from(&network);
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
    ) -> Result<bool, ItemRefusal> {
        let (network, index) = self.link(link)?;
        let known = network.link_at(index);
        if up.is_none_or(|up| up == known.up) && capacity.is_none_or(|capacity| capacity == known.capacity) {
            return Ok(false);
        }
        Arc::make_mut(network).set_link(index, up, capacity);
        self.push(Change::Link { link: link.clone(), up, capacity });
        Ok(true)
    }

    pub(super) fn remove_link(&mut self, link: &LinkName) -> Result<(), ItemRefusal> {
        let (network, index) = self.link(link)?;
        Arc::make_mut(network).remove_link(index);
        self.push(Change::LinkRemoved(link.clone()));
        Ok(())
    }

    /// Says whether anything changed.
    pub(super) fn set_switch(&mut self, name: &str, up: bool) -> Result<bool, ItemRefusal> {
        let unknown = || ItemRefusal::new(Reason::UnknownSwitch, format!("the network has no switch \"{name}\""));
        let network = self.network.as_mut().ok_or_else(unknown)?;
        let switch = network.vertex(name).filter(|&vertex| !network.vertex_at(vertex).is_host()).ok_or_else(unknown)?;
        if network.switch_up(switch) == up {
            return Ok(false);
        }
        Arc::make_mut(network).set_switch(switch, up);
        self.push(Change::Switch { name: name.into(), up });
        Ok(true)
    }

    fn push(&mut self, change: Change) {
        self.waiting.push(change);
        if self.waiting.len() > WAITING_MAX {
            self.waiting = vec![Change::Network(self.network.clone())];
        }
    }

    fn link(&mut self, link: &LinkName) -> Result<(&mut Arc<Network>, LinkIdx), ItemRefusal> {
        let network = self.network.as_mut().ok_or_else(|| unknown_link(link))?;
        let index = network.link(link.as_str()).ok_or_else(|| unknown_link(link))?;
        Ok((network, index))
    }
}

fn unknown_link(link: &LinkName) -> ItemRefusal {
    ItemRefusal::new(Reason::UnknownLink, format!("the network has no link \"{link}\""))
}
