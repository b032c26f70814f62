//! The inventory under its names, and what of it changed: the items that `Feed.Topology` takes.

use super::inventory::{Cable, Inventory};
use super::model::{Dpid, Mac, PortAt};
use super::names::Names;
use hintd_client::wire::v1;
use std::collections::{BTreeMap, BTreeSet};
use v1::topology_item::Item;

/// Capacities where descriptions are not to be believed; 0: as described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacities {
    /// Links between switches, bits a second.
    pub links: u64,
    /// Links of hosts, bits a second.
    pub hosts: u64,
}

/// A link that nobody described: what most machines have had for long.
const UNTOLD: u64 = 1_000_000_000;

/// The network in names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Switches by name.
    pub switches: BTreeMap<String, SwitchAt>,
    /// Hosts by name, and their addresses by the links they hang on; in the order of the links' names.
    pub hosts: BTreeMap<String, BTreeMap<String, Mac>>,
    /// Links by name.
    pub links: BTreeMap<String, LinkAt>,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchAt {
    /// Its id.
    pub dpid: Dpid,
    /// A host hangs on it; else it is taken for core.
    pub edge: bool,
    /// Connected to its controller.
    pub up: bool,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAt {
    /// One end: a switch.
    pub a: PortAt,
    /// The other end.
    pub b: End,
    /// Its ends' names.
    pub names: [String; 2],
    /// Bits a second, each direction.
    pub bits_per_s: u64,
    /// Carries traffic.
    pub up: bool,
}

/// A link's second end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A switch.
    Switch(PortAt),
    /// A host.
    Host(Mac),
}

impl Graph {
    /// The network as the inventory has it. Names that two things would have are told; the first keeps it.
    #[must_use]
    pub fn new(inventory: &Inventory, names: &Names, capacities: Capacities) -> (Self, Vec<String>) {
        let (mut graph, mut twice) = (Self::default(), Vec::new());
        for (dpid, up) in inventory.switches() {
            let name = names.switch(dpid);
            if graph.switches.contains_key(&name) {
                twice.push(format!("switch \"{name}\""));
                continue;
            }
            graph.switches.insert(name, SwitchAt { dpid, edge: false, up });
        }
        for Cable { a, b, up } in inventory.cables() {
            let ends = [names.switch(a.switch), names.switch(b.switch)];
            let told = [a, b].into_iter().filter_map(|end| inventory.port(end)).map(|port| port.bits_per_s);
            let link = LinkAt { a, b: End::Switch(b), names: ends, bits_per_s: capacity(capacities.links, told), up };
            graph.links.insert(names.cable(a, b), link);
        }
        for host in inventory.hosts() {
            let (name, switch) = (names.host(host), names.switch(host.at.switch));
            if graph.switches.contains_key(&name) {
                twice.push(format!("host \"{name}\""));
                continue;
            }
            let Some(at) = graph.switches.get_mut(&switch) else { continue };
            at.edge = true;
            let port = inventory.port(host.at);
            let link = LinkAt {
                a: host.at,
                b: End::Host(host.mac),
                names: [switch, name.clone()],
                bits_per_s: capacity(capacities.hosts, port.map(|port| port.bits_per_s).into_iter()),
                up: port.is_none_or(|port| port.up),
            };
            let id = names.access(host.at, &name);
            if graph.links.insert(id.clone(), link).is_some() {
                twice.push(format!("link \"{id}\""));
            }
            graph.hosts.entry(name).or_default().insert(id, host.mac);
        }
        (graph, twice)
    }

    /// What the daemon is to be told, where it knows `before`: all of it if something is there that was not, or is
    /// another thing; else only what changed.
    #[must_use]
    pub fn changes_since(&self, before: Option<&Self>) -> Vec<Item> {
        match before {
            Some(before) if self.same_things(before) => {
                let mut items = Vec::new();
                for (name, link) in &self.links {
                    let was = &before.links[name];
                    if (was.up, was.bits_per_s) != (link.up, link.bits_per_s) {
                        let up = (was.up != link.up).then_some(link.up);
                        let bits = (was.bits_per_s != link.bits_per_s).then_some(link.bits_per_s);
                        items.push(Item::Link(v1::LinkChange { id: name.clone(), up, bits_per_s: bits }));
                    }
                }
                for (name, switch) in &self.switches {
                    if before.switches[name].up != switch.up {
                        items.push(Item::Switch(v1::SwitchChange { name: name.clone(), up: switch.up }));
                    }
                }
                items
            }
            _ => {
                let down = self.switches.iter().filter(|(_, switch)| !switch.up);
                let down = down.map(|(name, _)| Item::Switch(v1::SwitchChange { name: name.clone(), up: false }));
                std::iter::once(Item::Full(self.full())).chain(down).collect()
            }
        }
    }

    /// The port of a switch at which a link ends.
    #[must_use]
    pub fn port(&self, switch: &str, link: &str) -> Option<PortAt> {
        let at = self.switches.get(switch)?;
        let link = self.links.get(link)?;
        let ends = [Some(link.a), if let End::Switch(b) = link.b { Some(b) } else { None }];
        ends.into_iter().flatten().find(|end| end.switch == at.dpid)
    }

    /// The address that a host's packets carry: that of its first link that is up, as the network has it.
    #[must_use]
    pub fn address(&self, host: &str) -> Option<Mac> {
        let links = self.hosts.get(host)?;
        let up = links.iter().find(|(link, _)| self.links.get(*link).is_some_and(|link| link.up));
        up.or_else(|| links.first_key_value()).map(|(_, mac)| *mac)
    }

    /// Whether both have the same switches, hosts and links, whatever their state and capacity.
    fn same_things(&self, other: &Self) -> bool {
        let switches = |graph: &Self| -> Vec<(String, Dpid, bool)> {
            graph.switches.iter().map(|(name, switch)| (name.clone(), switch.dpid, switch.edge)).collect()
        };
        let same_links = self.links.len() == other.links.len()
            && self.links.iter().all(|(name, link)| {
                other.links.get(name).is_some_and(|was| (was.a, was.b, &was.names) == (link.a, link.b, &link.names))
            });
        same_links && self.hosts == other.hosts && switches(self) == switches(other)
    }

    fn full(&self) -> v1::NetworkGraph {
        let tier = |edge: bool| if edge { "edge" } else { "core" }.to_owned();
        let switches =
            self.switches.iter().map(|(name, at)| v1::NetworkSwitch { name: name.clone(), tier: tier(at.edge) });
        let links = self.links.iter().map(|(id, link)| v1::NetworkLink {
            id: id.clone(),
            a: link.names[0].clone(),
            b: link.names[1].clone(),
            bits_per_s: link.bits_per_s,
            up: Some(link.up),
        });
        v1::NetworkGraph {
            switches: switches.collect(),
            hosts: self.hosts.keys().map(|name| v1::NetworkHost { name: name.clone() }).collect(),
            links: links.collect(),
            optical: None,
        }
    }

    /// Ports of usable links between connected switches, by switch: the far end.
    #[must_use]
    pub fn live(&self) -> BTreeMap<Dpid, BTreeSet<(PortAt, PortAt)>> {
        let up: BTreeSet<Dpid> = self.switches.values().filter(|at| at.up).map(|at| at.dpid).collect();
        let mut live: BTreeMap<Dpid, BTreeSet<(PortAt, PortAt)>> =
            up.iter().map(|dpid| (*dpid, BTreeSet::new())).collect();
        for link in self.links.values().filter(|link| link.up) {
            let End::Switch(b) = link.b else { continue };
            for (from, to) in [(link.a, b), (b, link.a)] {
                if up.contains(&to.switch)
                    && let Some(links) = live.get_mut(&from.switch)
                {
                    links.insert((from, to));
                }
            }
        }
        live
    }
}

/// The configured capacity, else the least that its ends describe, else a guess.
fn capacity(configured: u64, told: impl Iterator<Item = u64>) -> u64 {
    let told = told.filter(|bits| *bits > 0).min().unwrap_or(UNTOLD);
    if configured > 0 { configured } else { told }
}

#[cfg(test)]
mod tests;
