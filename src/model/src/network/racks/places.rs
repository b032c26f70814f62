//! Hosts that YARN knows, and where a racks file has them hang.

use super::super::document::NetworkDocument;
use super::document::RackRow;
use super::rate::RateEntry;
use crate::units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Hosts that YARN knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownHosts {
    /// Rack by host, in YARN's spelling.
    pub racks: BTreeMap<Arc<str>, Arc<str>>,
    /// Host by any other of its names.
    pub aliases: BTreeMap<Arc<str>, Arc<str>>,
}

impl KnownHosts {
    /// YARN's spelling of a host that it knows.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<str>> {
        self.racks.get_key_value(name).map(|(host, _)| host).or_else(|| self.aliases.get(name))
    }
}

/// A host, and the rate of its link.
pub(super) type Hung = (Arc<str>, Option<BitsPerSec>);

/// Where hosts hang, with the rates of their links.
#[derive(Default)]
pub(super) struct Places<'d> {
    /// Hosts by edge switch.
    pub(super) edges: BTreeMap<String, Vec<Hung>>,
    /// The rack that an edge switch of its own is of.
    pub(super) own: BTreeMap<String, Option<(&'d str, &'d RackRow)>>,
    pub(super) used_racks: BTreeSet<String>,
    /// The row that means a rack, by rack.
    pub(super) rows: BTreeMap<String, Option<(&'d str, &'d RackRow)>>,
    /// Hosts that are named twice.
    pub(super) twice: Vec<String>,
}

impl<'d> Places<'d> {
    pub(super) fn switch_of(&mut self, rack: &str, entry: Option<(&'d str, &'d RackRow)>) -> String {
        if let Some(switch) = entry.and_then(|(_, row)| row.switch.clone()) {
            return switch;
        }
        self.own.insert(rack.to_owned(), entry);
        rack.to_owned()
    }

    /// Hosts that have the name of a switch, ascending.
    pub(super) fn called_as_switches(&self, document: &NetworkDocument) -> Vec<String> {
        let switches: BTreeSet<&str> = document.switches.iter().map(|switch| switch.name.as_str()).collect();
        let hosts = self.edges.values().flatten().map(|(host, _)| host);
        let mut found: Vec<_> = hosts.filter(|host| switches.contains(&***host)).map(ToString::to_string).collect();
        found.sort_unstable();
        found
    }

    /// Takes hosts away, and racks that have none left.
    pub(super) fn leave_out(&mut self, hosts: &[String]) {
        for under in self.edges.values_mut() {
            under.retain(|(host, _)| hosts.binary_search_by(|known| known.as_str().cmp(host)).is_err());
        }
        self.edges.retain(|_, under| !under.is_empty());
        self.own.retain(|switch, _| self.edges.contains_key(switch));
    }

    pub(super) fn put(&mut self, switch: &str, host: &Arc<str>, nic: Option<&RateEntry>) {
        let nic = nic.and_then(|nic| nic.read().ok());
        self.edges.entry(switch.to_owned()).or_default().push((host.clone(), nic));
    }
}
