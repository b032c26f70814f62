//! Who believes what of hosts' racks: YARN, HDFS, the network.

use super::super::graph::Network;
use super::places::KnownHosts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A host's rack by each of those who have a word on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRacks {
    /// YARN's name of the host; of one that YARN does not know, HDFS's.
    pub host: Arc<str>,
    /// `None`: YARN does not know the host.
    pub yarn: Option<Arc<str>>,
    /// `None`: not heard.
    pub hdfs: Option<Arc<str>>,
    /// The rack of the switch that it hangs on, or the switch's name; `None`: it hangs nowhere.
    pub network: Option<Arc<str>>,
    /// Whether two of them contradict each other.
    pub differs: bool,
}

/// Racks of hosts that YARN or HDFS knows, by host. `hdfs`: rack by host, as far as heard; `switches`: the rack of a switch
/// that is not called as its rack is. Where only a switch's name is known, it stands for the rack that most of its hosts
/// are in, if that rack has no other switch with more.
#[must_use]
pub fn audit(
    network: Option<&Network>,
    known: &KnownHosts,
    hdfs: &BTreeMap<Arc<str>, Arc<str>>,
    switches: &BTreeMap<String, String>,
) -> Vec<HostRacks> {
    let hung = hung(network, known, switches);
    let strangers = hdfs.keys().filter(|host| known.find(host).is_none());
    let hosts: BTreeSet<&Arc<str>> = known.racks.keys().chain(strangers).collect();
    let mut by_names: BTreeMap<&str, Arc<str>> = BTreeMap::new();
    for (name, rack) in hdfs {
        by_names.insert(known.find(name).map_or(&**name, |host| host), rack.clone());
    }
    let pairs = pairs(known, &hung);
    let row = |host: &Arc<str>| {
        let yarn = known.racks.get(host).cloned();
        let (hdfs, network) = (by_names.get(&**host).cloned(), hung.get(host).cloned());
        let apart = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| matches!((a, b), (Some(a), Some(b)) if a != b);
        let off = match &network {
            Some(rack) if rack.starts_with('/') => apart(&yarn, &network) || apart(&hdfs, &network),
            Some(switch) => yarn.as_ref().is_some_and(|rack| pairs.get(switch) != Some(rack)),
            None => false,
        };
        HostRacks { host: host.clone(), differs: off || apart(&yarn, &hdfs), yarn, hdfs, network }
    };
    hosts.into_iter().map(row).collect()
}

/// The rack, or the switch, of hosts that hang somewhere.
fn hung(
    network: Option<&Network>,
    known: &KnownHosts,
    switches: &BTreeMap<String, String>,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let Some(network) = network else { return BTreeMap::new() };
    let hosts = network.vertices().filter(|(_, vertex)| vertex.is_host());
    let placed = hosts.filter_map(|(index, vertex)| {
        let switch = &network.vertex_at(network.attachment(index)?).name;
        let rack = switches.get(&**switch).map_or_else(|| switch.clone(), |rack| rack.as_str().into());
        Some((known.find(&vertex.name).unwrap_or(&vertex.name).clone(), rack))
    });
    placed.collect()
}

/// Switches without a rack's name, and the rack that each stands for: most hosts first, each rack and switch once.
fn pairs(known: &KnownHosts, hung: &BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut counts: BTreeMap<(&Arc<str>, &Arc<str>), usize> = BTreeMap::new();
    for (host, switch) in hung.iter().filter(|(_, switch)| !switch.starts_with('/')) {
        if let Some(rack) = known.racks.get(host) {
            *counts.entry((switch, rack)).or_default() += 1;
        }
    }
    let mut order: Vec<_> = counts.into_iter().collect();
    order.sort_by_key(|(pair, count)| (std::cmp::Reverse(*count), *pair));
    let mut racks = BTreeSet::new();
    let mut found: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    for ((switch, rack), _) in order {
        if !found.contains_key(switch) && racks.insert(rack) {
            found.insert(switch.clone(), rack.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::NetworkFile;
    use super::*;

    fn known(hosts: &str) -> KnownHosts {
        let rows = hosts.split_whitespace().map(|word| word.split_once('@').unwrap());
        KnownHosts { racks: rows.map(|(host, rack)| (host.into(), rack.into())).collect(), aliases: BTreeMap::new() }
    }

    fn differing(text: &str, hosts: &str, hdfs: &str) -> Vec<String> {
        let file = NetworkFile::read_toml(&format!("format = \"hintd.racks/1\"\n{text}")).unwrap();
        let known = known(hosts);
        let network = file.expand(&known).unwrap().network;
        let hdfs = hdfs.split_whitespace().map(|word| word.split_once('@').unwrap());
        let hdfs = hdfs.map(|(host, rack)| (host.into(), rack.into())).collect();
        let rows = audit(network.as_ref(), &known, &hdfs, &file.racks_of_switches());
        let differing = rows.iter().filter(|row| row.differs);
        let shown = |rack: &Option<Arc<str>>| rack.as_deref().unwrap_or("-").to_owned();
        differing
            .map(|row| format!("{} {} {} {}", row.host, shown(&row.yarn), shown(&row.hdfs), shown(&row.network)))
            .collect()
    }

    #[test]
    fn who_differs_is_told_and_who_says_nothing_does_not() {
        let text = "[racks.\"/r2\"]\nhosts = [\"n2\"]\n[racks.\"*\"]\n";
        assert_eq!(
            differing(text, "n1@/r1 n2@/r1 n3@/r3", "n1@/r1 n3@/r9 far@/r4"),
            ["n2 /r1 - /r2", "n3 /r3 /r9 /r3"]
        );
        assert_eq!(differing(text, "n1@/r1 n2@/r2", ""), Vec::<String>::new());
    }

    #[test]
    fn a_switch_by_its_own_name_stands_for_the_rack_of_its_hosts() {
        let text = "[switches.a]\n[switches.b]\n[hosts.n1]\nswitch = \"a\"\n[hosts.n2]\nswitch = \"a\"\n[hosts.n3]\n\
                    switch = \"b\"\n[hosts.n4]\nswitch = \"b\"\n";
        assert_eq!(differing(text, "n1@/r1 n2@/r1 n3@/r2 n4@/r2", ""), Vec::<String>::new());
        assert_eq!(differing(text, "n1@/r1 n2@/r1 n3@/r1 n4@/r2", ""), ["n3 /r1 - b"]);
        let one = differing(text, "n1@/d n2@/d n3@/d n4@/d", "");
        assert_eq!(one, ["n3 /d - b", "n4 /d - b"], "one rack of YARN's is two switches");
        let named = "[switches.a]\n[racks.\"/r1\"]\nswitch = \"a\"\n[hosts.n2]\nswitch = \"a\"\n";
        assert_eq!(differing(named, "n1@/r1 n2@/r2", ""), ["n2 /r2 - /r1"]);
    }
}
