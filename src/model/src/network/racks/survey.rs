//! A network in rows, and what two networks differ in.

use super::super::graph::{Network, VertexKind};
use super::super::tier::Tier;
use super::UNLIMITED;
use super::places::KnownHosts;
use super::rate::show_rate;
use crate::units::{BitsPerSec, VertexIdx};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network's racks, and who has no place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// Edge switches, by name.
    pub racks: Vec<RackView>,
    /// Hosts that YARN knows and that hang nowhere, ascending.
    pub without_place: Vec<Arc<str>>,
    /// Hosts that hang somewhere and that YARN does not know, ascending.
    pub unknown_hosts: Vec<Arc<str>>,
}

/// An edge switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RackView {
    /// Its name.
    pub switch: Arc<str>,
    /// Hosts that hang on it.
    pub hosts: usize,
    /// Rate of the slowest of their links; `None`: unlimited, or no host.
    pub nic: Option<BitsPerSec>,
    /// Links to other switches, in the network's order.
    pub uplinks: Vec<Uplink>,
}

/// A link between switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uplink {
    /// Its id.
    pub link: Arc<str>,
    /// The switch at its other end.
    pub to: Arc<str>,
    /// Its rate, each direction; `None`: unlimited.
    pub rate: Option<BitsPerSec>,
}

/// The racks of a network, and where it and YARN differ. Without a network every host is without a place.
#[must_use]
pub fn survey(network: Option<&Network>, known: &KnownHosts) -> Survey {
    let Some(network) = network else {
        return Survey { without_place: known.racks.keys().cloned().collect(), ..Survey::default() };
    };
    let mut racks: Vec<_> = network
        .vertices()
        .filter(|(_, vertex)| vertex.tier() == Some(Tier::Edge))
        .map(|(index, vertex)| rack(network, index, &vertex.name))
        .collect();
    racks.sort_by(|a, b| a.switch.cmp(&b.switch));
    // A switch that is called as a host is no place of it.
    let placed = |host: &Arc<str>| network.vertex(host).is_some_and(|vertex| network.vertex_at(vertex).is_host());
    let by_alias: BTreeMap<&Arc<str>, bool> =
        known.aliases.iter().filter(|(alias, _)| placed(alias)).map(|(_, host)| (host, true)).collect();
    let without_place = known.racks.keys().filter(|host| !placed(host) && !by_alias.contains_key(host));
    let hosts = network.vertices().filter(|(_, vertex)| vertex.is_host());
    let mut unknown: Vec<_> =
        hosts.map(|(_, vertex)| &vertex.name).filter(|name| known.find(name).is_none()).cloned().collect();
    unknown.sort_unstable();
    Survey { racks, without_place: without_place.cloned().collect(), unknown_hosts: unknown }
}

/// A stated rate.
fn stated(rate: BitsPerSec) -> Option<BitsPerSec> {
    Some(rate).filter(|rate| *rate < UNLIMITED)
}

fn rack(network: &Network, switch: VertexIdx, name: &Arc<str>) -> RackView {
    let mut view = RackView { switch: name.clone(), hosts: 0, nic: None, uplinks: Vec::new() };
    let mut links: Vec<_> = network.links_of(switch).collect();
    links.sort_unstable_by_key(|(index, _)| *index);
    for (_, link) in links {
        let other = network.vertex_at(link.other(switch));
        if other.is_host() {
            view.hosts += 1;
            view.nic = view.nic.into_iter().chain(stated(link.capacity)).min();
        } else {
            let (link_name, rate) = (link.name.as_str().into(), stated(link.capacity));
            view.uplinks.push(Uplink { link: link_name, to: other.name.clone(), rate });
        }
    }
    view
}

/// One thing that two networks differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// switch, host or link.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// How it is in the first; `None`: it is not there.
    pub before: Option<String>,
    /// How it is in the second.
    pub after: Option<String>,
}

/// What is in one network and not in the other, or differs: switches, hosts, links, each by name. What is up or down does
/// not count: no file says so.
#[must_use]
pub fn differences(before: Option<&Network>, after: Option<&Network>) -> Vec<Difference> {
    let (before, after) = (rows(before), rows(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let row = |&&(order, ref name): &&(u8, String)| {
        let key = (order, name.clone());
        let (before, after) = (before.get(&key).cloned(), after.get(&key).cloned());
        let what = ["switch", "host", "link"][usize::from(order)];
        (before != after).then_some(Difference { what, name: key.1, before, after })
    };
    names.iter().filter_map(row).collect()
}

fn rows(network: Option<&Network>) -> BTreeMap<(u8, String), String> {
    let Some(network) = network else { return BTreeMap::new() };
    let vertices = network.vertices().map(|(_, vertex)| match vertex.kind {
        VertexKind::Switch(tier) => ((0, vertex.name.to_string()), tier.to_string()),
        VertexKind::Host => ((1, vertex.name.to_string()), "there".to_owned()),
    });
    let links = network.links().map(|(_, link)| {
        let ends = [link.a, link.b].map(|end| &network.vertex_at(end).name);
        let rate = stated(link.capacity).map_or_else(|| "unlimited".to_owned(), show_rate);
        ((2, link.name.to_string()), format!("{} - {} {rate}", ends[0], ends[1]))
    });
    vertices.chain(links).collect()
}
