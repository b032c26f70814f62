//! The network that a file and the hosts that YARN knows make together.

use super::super::document::{HostEntry, LinkEntry, NetworkDocument, SwitchEntry};
use super::super::graph::Network;
use super::super::problem::{NETWORK_FORMAT, NetworkProblem};
use super::super::tier::Tier;
use super::document::{NetworkFile, RacksDocument, SwitchRow, rack_row, tier};
use super::places::{KnownHosts, Places};
use super::spellings::Named;
use super::unused::patterns_unused;
use super::{CORE, UNLIMITED, matches};
use crate::units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file's network with hosts in it.
#[derive(Debug, Clone, Default)]
pub struct Expanded {
    /// The network; `None`: nothing hangs anywhere yet.
    pub network: Option<Network>,
    /// Hosts that the file names and YARN does not know, by the file's names, ascending.
    pub unknown_hosts: Vec<String>,
    /// Racks with hosts that no key of the file means, ascending: their links are unlimited.
    pub racks_left_out: Vec<String>,
    /// Racks that the file names and that have no host, ascending.
    pub racks_unused: Vec<String>,
    /// Hosts that are called as a switch is, ascending: they have no place.
    pub hosts_left_out: Vec<String>,
    /// Hosts that the file names twice, in two spellings, and which one counts.
    pub hosts_twice: Vec<String>,
    /// Patterns, and names in `above`, that mean nothing that is there, with their keys.
    pub patterns_unused: Vec<String>,
    /// Switches that nothing joins, and the rack's switch that each hangs on for want of a core.
    pub racks_on_racks: Vec<String>,
}

impl NetworkFile {
    /// The network with these hosts in it. A graph has the hosts that it names, whoever knows them.
    ///
    /// # Errors
    /// All problems at once: switches that nothing joins; in a graph, whatever is wrong with it.
    pub fn expand(&self, known: &KnownHosts) -> Result<Expanded, Vec<NetworkProblem>> {
        match self {
            Self::Racks(document) => Plan::new(document).expand(known),
            Self::Graph(document) => {
                let unknown = document.hosts.iter().filter(|host| known.find(host.name.as_str()).is_none());
                let mut unknown_hosts: Vec<_> = unknown.map(|host| host.name.to_string()).collect();
                unknown_hosts.sort_unstable();
                let network = Some(Network::from_document(document)?).filter(|network| network.vertex_rows() > 0);
                Ok(Expanded { network, unknown_hosts, ..Expanded::default() })
            }
        }
    }
}

/// What a racks file makes of hosts.
pub(super) struct Plan<'d> {
    document: &'d RacksDocument,
    /// Racks and switches are there without hosts as well, and examples of racks that are not named.
    whole: bool,
}

impl<'d> Plan<'d> {
    const fn new(document: &'d RacksDocument) -> Self {
        Self { document, whole: false }
    }

    /// For a check of the file by itself.
    pub(super) const fn whole(document: &'d RacksDocument) -> Self {
        Self { document, whole: true }
    }

    pub(super) fn expand(&self, known: &KnownHosts) -> Result<Expanded, Vec<NetworkProblem>> {
        let (mut places, unknown_hosts) = self.places(known);
        let (mut document, mut racks_on_racks) = Wiring::new(self, &places).document();
        // Nobody can call a node otherwise because of a switch: the others have their network. What the file does to itself
        // is an error of the file.
        let hosts_left_out = if self.whole { Vec::new() } else { places.called_as_switches(&document) };
        if !hosts_left_out.is_empty() {
            places.leave_out(&hosts_left_out);
            (document, racks_on_racks) = Wiring::new(self, &places).document();
        }
        let left_out = places.own.iter().filter(|(_, row)| row.is_none()).map(|(path, _)| path.clone()).collect();
        let named = self.document.racks.keys().filter(|path| !path.ends_with('*'));
        let unused = named.filter(|path| !places.used_racks.contains(*path)).cloned().collect();
        let patterns_unused = patterns_unused(self.document, &places, &document, known);
        let network = match document.switches.is_empty() {
            true => None,
            false => Some(Network::from_document(&document).map_err(|problems| self.relevant(problems))?),
        };
        Ok(Expanded {
            network,
            unknown_hosts,
            racks_left_out: left_out,
            racks_unused: unused,
            hosts_left_out,
            hosts_twice: places.twice,
            patterns_unused,
            racks_on_racks,
        })
    }

    /// Declared switches that are not in the network, ascending.
    pub(super) fn unjoined(&self) -> Vec<&'d str> {
        let (places, _) = self.places(&KnownHosts::default());
        let joined = Wiring::new(self, &places).document().0.switches;
        let joined: BTreeSet<_> = joined.into_iter().map(|switch| switch.name).collect();
        // What nothing else joins hangs on the core, once there is something.
        let declared = self.document.switches.iter().filter(|(_, row)| tier(row) != Tier::Core);
        declared.map(|(name, _)| name.as_str()).filter(|name| !joined.contains(*name)).collect()
    }

    /// A switch that is declared ahead of its racks is no problem of the file.
    fn relevant(&self, mut problems: Vec<NetworkProblem>) -> Vec<NetworkProblem> {
        problems.retain(|problem| !self.whole || !matches!(problem, NetworkProblem::OrphanHost { .. }));
        problems
    }

    /// Where every host hangs that YARN or the file names, and which of them YARN does not know.
    fn places(&self, known: &KnownHosts) -> (Places<'d>, Vec<String>) {
        let document = self.document;
        let mut places = Places::default();
        // By YARN's name: what [hosts] and racks say of it.
        let spelled = |name: &str| known.find(name).cloned().unwrap_or_else(|| name.into());
        let mut rows = Named::default();
        document.hosts.iter().for_each(|(name, row)| rows.add(spelled(name), name, row));
        let mut listed = Named::default();
        let mut patterns = Vec::new();
        for (path, row) in &document.racks {
            for name in &row.hosts {
                match name.ends_with('*') {
                    true => patterns.push((name.as_str(), path.as_str())),
                    false => listed.add(spelled(name), name, path.as_str()),
                }
            }
        }
        patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
        let named: BTreeSet<Arc<str>> = rows.hosts().chain(listed.hosts()).cloned().collect();
        let mut unknown = Vec::new();
        for host in named.iter().chain(known.racks.keys().filter(|host| !named.contains(*host))) {
            let row = rows.get(host).copied();
            let by_pattern = || patterns.iter().find(|(pattern, _)| matches(pattern, host)).map(|(_, path)| *path);
            let yarns = known.racks.get(host).map(|rack| &**rack);
            if yarns.is_none() {
                unknown.push(host.to_string());
            }
            let nic = row.and_then(|row| row.nic.as_ref());
            if let Some(switch) = row.and_then(|row| row.switch.as_deref()) {
                places.put(switch, host, nic.or(document.nic.as_ref()));
                continue;
            }
            let said = row.and_then(|row| row.rack.as_deref()).or_else(|| listed.get(host).copied());
            // A host that nobody has put anywhere waits for YARN to say where it is.
            let Some(rack) = said.or_else(by_pattern).or(yarns) else { continue };
            let entry = *places.rows.entry(rack.to_owned()).or_insert_with(|| rack_row(document, rack));
            let nic = nic.or_else(|| entry?.1.nic.as_ref()).or(document.nic.as_ref());
            places.used_racks.insert(rack.to_owned());
            let switch = places.switch_of(rack, entry);
            places.put(&switch, host, nic);
        }
        places.twice = rows.twice.into_iter().chain(listed.twice).collect();
        if self.whole {
            self.examples(&mut places);
        }
        (places, unknown)
    }

    /// Every switch that hosts could hang on by what the file says.
    fn examples(&self, places: &mut Places<'d>) {
        let example = |pattern: &str| match pattern.strip_suffix('*') {
            Some(begin) if begin.ends_with('/') || begin.is_empty() => format!("{}example", begin),
            Some(begin) => format!("{begin}-example"),
            None => pattern.to_owned(),
        };
        let upper = self.document.switches.values().flat_map(|row| &row.above);
        let upper = upper.filter(|pattern| pattern.starts_with('/') || *pattern == "*");
        for path in self.document.racks.keys().chain(upper) {
            let path = example(path);
            let path = if path.starts_with('/') { path } else { format!("/{path}") };
            let entry = rack_row(self.document, &path);
            let switch = places.switch_of(&path, entry);
            places.edges.entry(switch).or_default();
        }
        for (name, _) in self.document.switches.iter().filter(|(_, row)| tier(row) == Tier::Edge) {
            places.edges.entry(name.clone()).or_default();
        }
    }
}

/// Joins switches, from the hosts upwards.
struct Wiring<'p, 'd> {
    plan: &'p Plan<'d>,
    places: &'p Places<'d>,
    switches: BTreeMap<String, Tier>,
    links: Vec<LinkEntry>,
    /// Rate of the links from below, by switch; `None`: one of them is unlimited.
    below: BTreeMap<String, Option<BitsPerSec>>,
    /// Declared switches that are above others, or core.
    upper: Vec<(&'d str, &'d SwitchRow)>,
    /// Switches that a declared link leads up from.
    led_up: BTreeSet<&'d str>,
    /// Switches that a declared link joins to others of their tier.
    peers: BTreeSet<&'d str>,
    /// Switches that hang on a rack's.
    on_racks: Vec<String>,
}

impl<'p, 'd> Wiring<'p, 'd> {
    fn new(plan: &'p Plan<'d>, places: &'p Places<'d>) -> Self {
        let (switches, links, below) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let upper = plan.document.switches.iter().filter(|(_, row)| tier(row) > Tier::Edge);
        let upper = upper.map(|(name, row)| (name.as_str(), row)).collect();
        Self {
            plan,
            places,
            switches,
            links,
            below,
            upper,
            led_up: BTreeSet::new(),
            peers: BTreeSet::new(),
            on_racks: Vec::new(),
        }
    }

    /// The network, and what hangs on a rack's switch for want of a core.
    fn document(mut self) -> (NetworkDocument, Vec<String>) {
        let mut hosts = Vec::new();
        for (switch, under) in &self.places.edges {
            self.switches.insert(switch.clone(), Tier::Edge);
            for (host, nic) in under {
                hosts.push(HostEntry { name: host.as_ref().into() });
                self.link(format!("{host}--{switch}"), host, switch, *nic);
            }
        }
        if !self.switches.is_empty() {
            self.declared_links();
            for height in [Tier::Edge, Tier::Aggregation].map(Tier::height) {
                let here: Vec<String> =
                    self.switches.iter().filter(|(_, tier)| tier.height() == height).map(|(n, _)| n.clone()).collect();
                here.iter().for_each(|name| self.join(name, height));
            }
        }
        let mut switches: Vec<_> =
            self.switches.into_iter().map(|(name, tier)| SwitchEntry { name, tier, up: true }).collect();
        switches.sort_by_key(|switch| switch.tier);
        let (links, format) = (self.links, NETWORK_FORMAT.to_owned());
        (NetworkDocument { format, switches, hosts, links, optical: None }, self.on_racks)
    }

    fn row(&self, name: &str) -> Option<&'d SwitchRow> {
        self.plan.document.switches.get(name)
    }

    fn height(&self, name: &str) -> u8 {
        self.row(name).map_or(Tier::Edge, tier).height()
    }

    fn link(&mut self, id: String, a: &str, b: &str, rate: Option<BitsPerSec>) {
        let below = self.below.entry(b.to_owned()).or_insert(Some(BitsPerSec::ZERO));
        *below = below.and_then(|sum| Some(sum.saturating_add(rate?)));
        let bits_per_s = i64::try_from(rate.unwrap_or(UNLIMITED).0).unwrap_or(i64::MAX);
        self.links.push(LinkEntry { id: id.into(), a: a.into(), b: b.into(), bits_per_s, up: true, one_way: false });
    }

    fn declared_links(&mut self) {
        for row in &self.plan.document.links {
            let rate = row.rate.read().ok();
            // The lower end first, as everywhere: what it leads to counts what comes from below.
            let (a, b) = if self.height(&row.a) > self.height(&row.b) { (&row.b, &row.a) } else { (&row.a, &row.b) };
            match self.height(a) == self.height(b) {
                true => self.peers.extend([a.as_str(), b.as_str()]),
                false => _ = self.led_up.insert(a),
            }
            for end in [a, b] {
                let tier = self.row(end).map_or(Tier::Edge, tier);
                self.switches.insert(end.clone(), tier);
            }
            self.link(row.id(), a, b, rate);
        }
    }

    /// The links up of one switch.
    fn join(&mut self, name: &str, height: u8) {
        if self.led_up.contains(name) {
            return;
        }
        let mut uppers = self.above(name, height);
        if uppers.is_empty() && !self.peers.contains(name) {
            uppers = self.highest(name, height);
        }
        if uppers.is_empty() {
            return;
        }
        let rate = self.uplink(name);
        let each = rate.map(|rate| BitsPerSec(rate.0 / uppers.len() as u64));
        for upper in uppers {
            let own = upper != CORE && self.height(&upper) == Tier::Edge.height();
            if own {
                self.on_racks.push(format!("{name} on {upper}"));
            }
            let tier = if own { Tier::Edge } else { self.row(&upper).map_or(Tier::Core, tier) };
            self.switches.insert(upper.clone(), tier);
            self.link(format!("{name}--{upper}"), name, &upper, each);
        }
    }

    /// Rate of all links up together; `None`: nobody says.
    fn uplink(&self, name: &str) -> Option<BitsPerSec> {
        let own = self.places.own.get(name).copied().flatten().map(|(_, row)| (&row.uplink, row.oversubscription));
        let (uplink, ratio) = own.or_else(|| self.row(name).map(|row| (&row.uplink, row.oversubscription)))?;
        if let Some(uplink) = uplink {
            return uplink.read().ok();
        }
        let below = self.below.get(name).copied().flatten().filter(|below| *below > BitsPerSec::ZERO)?;
        Some(BitsPerSec((below.as_f64() / ratio?).round() as u64))
    }

    /// The lowest switches that say that they are above one.
    fn above(&self, name: &str, height: u8) -> Vec<String> {
        let mut above = self.upper.clone();
        above.retain(|(_, row)| tier(row).height() > height && row.above.iter().any(|pattern| matches(pattern, name)));
        if let Some(lowest) = above.iter().map(|(_, row)| tier(row).height()).min() {
            above.retain(|(_, row)| tier(row).height() == lowest);
        }
        above.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// What a switch is joined to that nothing else joins: the core.
    fn highest(&self, name: &str, height: u8) -> Vec<String> {
        let document = self.plan.document;
        let cores = self.upper.iter().filter(|(_, row)| tier(row) == Tier::Core);
        let cores: Vec<_> = cores.map(|(name, _)| (*name).to_owned()).collect();
        if !cores.is_empty() {
            return cores;
        }
        // Where links are declared and no core is, what nobody joins is joined to one of the highest: a leaf leads nothing
        // through.
        let linked = document.links.iter().flat_map(|row| [&row.a, &row.b]);
        let highest = linked.max_by_key(|end| (self.height(end), std::cmp::Reverse(*end)));
        match highest {
            Some(highest) if highest == name => Vec::new(),
            Some(highest) if self.height(highest) >= height => vec![highest.clone()],
            _ => vec![CORE.to_owned()],
        }
    }
}

#[cfg(test)]
mod tests;
