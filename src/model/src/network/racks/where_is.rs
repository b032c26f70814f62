//! The rack that a file itself says a host is in, whatever YARN says.

use super::document::{NetworkFile, RacksDocument};
use std::collections::BTreeMap;

/// Racks by the file's word alone: made once, asked often.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RacksSaid {
    /// By host's name in small letters.
    hosts: BTreeMap<String, String>,
    /// By the beginning that a pattern wants.
    patterns: BTreeMap<String, String>,
}

impl NetworkFile {
    /// Where the file puts hosts. A graph says nothing of racks but where its edge switches are called as racks are.
    #[must_use]
    pub fn rack_of(&self) -> RacksSaid {
        match self {
            Self::Racks(document) => of_racks(document),
            Self::Graph(document) => {
                let hosts = document.hosts.iter().map(|host| (host.name.as_str(), ()));
                let hosts: BTreeMap<_, ()> = hosts.collect();
                let ends = document
                    .links
                    .iter()
                    .flat_map(|link| [(link.a.as_str(), link.b.as_str()), (link.b.as_str(), link.a.as_str())]);
                let hung = ends.filter(|(host, switch)| hosts.contains_key(host) && switch.starts_with('/'));
                let hosts = hung.map(|(host, switch)| (host.to_lowercase(), switch.to_owned()));
                RacksSaid { hosts: hosts.collect(), ..RacksSaid::default() }
            }
        }
    }

    /// The rack of each declared switch that is the switch of one rack only.
    #[must_use]
    pub fn racks_of_switches(&self) -> BTreeMap<String, String> {
        match self {
            Self::Racks(document) => of_switches(document),
            Self::Graph(_) => BTreeMap::new(),
        }
    }
}

/// The only rack that names a switch as its own, by switch.
fn of_switches(document: &RacksDocument) -> BTreeMap<String, String> {
    let mut found: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for (path, row) in &document.racks {
        if let Some(switch) = &row.switch {
            let path = (!path.ends_with('*')).then_some(path.as_str());
            found.entry(switch).and_modify(|rack| *rack = None).or_insert(path);
        }
    }
    found.into_iter().filter_map(|(switch, rack)| Some((switch.to_owned(), rack?.to_owned()))).collect()
}

fn of_racks(document: &RacksDocument) -> RacksSaid {
    let mut said = RacksSaid::default();
    let of_switch = of_switches(document);
    for (path, row) in &document.racks {
        for name in &row.hosts {
            match name.strip_suffix('*') {
                Some(begin) => said.patterns.insert(begin.to_owned(), path.clone()),
                None => said.hosts.insert(name.to_lowercase(), path.clone()),
            };
        }
    }
    for (name, row) in &document.hosts {
        let by_switch = || of_switch.get(row.switch.as_deref()?);
        if let Some(rack) = row.rack.as_ref().or_else(by_switch) {
            said.hosts.insert(name.to_lowercase(), rack.clone());
        }
    }
    said
}

impl RacksSaid {
    /// The rack of a host by one of its names; `None`: the file does not say.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&str> {
        let own = self.hosts.get(&name.to_lowercase());
        // The longest beginning first.
        let ends = (0..=name.len()).rev().filter(|&end| name.is_char_boundary(end));
        let meant = || ends.map(|end| &name[..end]).find_map(|begin| self.patterns.get(begin));
        own.or_else(meant).map(String::as_str)
    }

    /// Whether the file says of no host where it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.patterns.is_empty()
    }
}
