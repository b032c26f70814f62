//! The file format `hintd.network/1`: a network as JSON or TOML.

use super::check;
use super::graph::{Link, Network, VertexKind};
use super::optical::OpticalSection;
use super::problem::{LEAST_CAPACITY, NETWORK_FORMAT, NetworkProblem, Severity};
use super::tier::Tier;
use crate::units::{BitsPerSec, HostName, LinkName, VertexIdx};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// A network as it stands in a file or on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkDocument {
    /// [`NETWORK_FORMAT`].
    pub format: String,
    /// Switches of all tiers.
    #[serde(default)]
    pub switches: Vec<SwitchEntry>,
    /// Hosts, by YARN's names.
    #[serde(default)]
    pub hosts: Vec<HostEntry>,
    /// Links; their order decides which of a multi-homed host's links is its first.
    #[serde(default)]
    pub links: Vec<LinkEntry>,
    /// How the circuits of an optical switch are chosen; left out: there is none, or it stays dark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optical: Option<OpticalSection>,
}

/// One switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchEntry {
    /// Its name, unique among switches and hosts.
    pub name: String,
    /// Its layer.
    pub tier: Tier,
    /// Whether it is up; left out when it is.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub up: bool,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostEntry {
    /// Its name as YARN spells it, unique among switches and hosts.
    pub name: HostName,
}

/// One undirected, full-duplex link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEntry {
    /// Its id, unique.
    pub id: LinkName,
    /// Name of one end.
    pub a: String,
    /// Name of the other end.
    pub b: String,
    /// Capacity of each direction, bits per second. Signed, so that a negative one is a problem with the link's
    /// name on it and not a parser's complaint.
    #[serde(deserialize_with = "whole_number")]
    pub bits_per_s: i64,
    /// Whether the link is up; left out when it is.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub up: bool,
    /// Whether only packets from `a` to `b` were seen to pass, as discovery finds where a fibre is broken or a port is
    /// set wrongly; left out where both ways work. Such a link is refused: routes, rates and distances need both.
    #[serde(default, skip_serializing_if = "is_no")]
    pub one_way: bool,
}

impl NetworkDocument {
    /// Reads a document entry by entry, so that what is wrong with one does not hide what is wrong with the others or
    /// with the whole. In place of a broken entry stands what can be read of it, so that others are not called broken
    /// for its sake.
    #[must_use]
    pub fn from_value(document: &serde_json::Value) -> (Self, Vec<NetworkProblem>) {
        let mut problems = Vec::new();
        let mut broken = |place: String, message: String| problems.push(NetworkProblem::Broken { place, message });
        let mut read = Self::empty("");
        let Some(fields) = document.as_object() else {
            broken("document".to_owned(), "is no table of format, switches, hosts and links".to_owned());
            read.format = NETWORK_FORMAT.to_owned();
            return (read, problems);
        };
        match fields.get("format").and_then(serde_json::Value::as_str) {
            Some(format) => format.clone_into(&mut read.format),
            None => {
                broken("format".to_owned(), format!("must say \"{NETWORK_FORMAT}\""));
                read.format = NETWORK_FORMAT.to_owned();
            }
        }
        for field in fields.keys().filter(|field| !FIELDS.contains(&&***field)) {
            broken(field.clone(), "is an unknown field of a network".to_owned());
        }
        let text = |entry: &serde_json::Value, field: &str| entry.get(field)?.as_str().map(str::to_owned);
        read.switches = entries(fields, "switches", &mut broken, |entry| {
            Some(SwitchEntry { name: text(entry, "name")?, tier: Tier::Edge, up: true })
        });
        read.hosts = entries(fields, "hosts", &mut broken, |entry| {
            Some(HostEntry { name: text(entry, "name")?.as_str().into() })
        });
        read.links = entries(fields, "links", &mut broken, |entry| {
            let [id, a, b] = ["id", "a", "b"].map(|field| text(entry, field));
            let bits_per_s = LEAST_CAPACITY.0 as i64;
            Some(LinkEntry { id: id?.as_str().into(), a: a?, b: b?, bits_per_s, up: true, one_way: false })
        });
        match fields.get("optical").map(OpticalSection::deserialize) {
            Some(Ok(section)) => read.optical = Some(section),
            Some(Err(error)) => broken("optical".to_owned(), error.to_string()),
            None => {}
        }
        (read, problems)
    }

    fn empty(format: &str) -> Self {
        let (switches, hosts, links) = (Vec::new(), Vec::new(), Vec::new());
        Self { format: format.to_owned(), switches, hosts, links, optical: None }
    }
}

const FIELDS: [&str; 5] = ["format", "switches", "hosts", "links", "optical"];

/// The entries of a list; in place of one that is broken what `salvage` makes of it.
fn entries<T: serde::de::DeserializeOwned>(
    fields: &serde_json::Map<String, serde_json::Value>,
    list: &str,
    broken: &mut impl FnMut(String, String),
    salvage: impl Fn(&serde_json::Value) -> Option<T>,
) -> Vec<T> {
    let Some(value) = fields.get(list) else { return Vec::new() };
    let Some(values) = value.as_array() else {
        broken(list.to_owned(), "is no list".to_owned());
        return Vec::new();
    };
    let read = values.iter().enumerate().map(|(at, value)| match T::deserialize(value) {
        Ok(entry) => Some(entry),
        Err(error) => {
            broken(format!("{list}[{at}]"), error.to_string());
            salvage(value)
        }
    });
    read.flatten().collect()
}

impl Network {
    /// Reads a document.
    ///
    /// # Errors
    /// All problems at once, warnings among them, if at least one is an error. With warnings only the network is
    /// built; [`check::check`] names them.
    pub fn from_document(document: &NetworkDocument) -> Result<Self, Vec<NetworkProblem>> {
        let mut reader = Reader::default();
        reader.read(document);
        let Reader { network, mut problems, excused } = reader;
        check::check_links(&network, &mut problems);
        check::check_structure(&network, &excused, &mut problems);
        check::check_optical(&network, &mut problems);
        if problems.iter().any(|problem| problem.severity() == Severity::Error) { Err(problems) } else { Ok(network) }
    }

    /// The document that reads back as this network: switches, hosts and links in index order, without those removed.
    #[must_use]
    pub fn to_document(&self) -> NetworkDocument {
        let mut document = NetworkDocument::empty(NETWORK_FORMAT);
        document.optical = self.optical().cloned();
        for (index, vertex) in self.vertices() {
            match vertex.kind {
                VertexKind::Host => document.hosts.push(HostEntry { name: HostName(vertex.name.clone()) }),
                VertexKind::Switch(tier) => {
                    let entry = SwitchEntry { name: vertex.name.to_string(), tier, up: self.switch_up(index) };
                    document.switches.push(entry);
                }
            }
        }
        document.links.extend(self.links().map(|(_, link)| LinkEntry {
            id: link.name.clone(),
            a: self.vertex_at(link.a).name.to_string(),
            b: self.vertex_at(link.b).name.to_string(),
            bits_per_s: i64::try_from(link.capacity.0).unwrap_or(i64::MAX),
            up: link.up,
            one_way: false,
        }));
        document
    }
}

/// Builds what it can, so that the checks of the whole see links with a bad id or capacity as links and do not
/// report their ends as orphans too.
#[derive(Default)]
struct Reader {
    network: Network,
    problems: Vec<NetworkProblem>,
    /// Ends of links that could not be built: not to be called unlinked.
    excused: BTreeSet<VertexIdx>,
}

impl Reader {
    fn read(&mut self, document: &NetworkDocument) {
        if document.format != NETWORK_FORMAT {
            self.problems.push(NetworkProblem::UnknownFormat { found: document.format.clone() });
        }
        for switch in &document.switches {
            match self.network.add_switch(&switch.name, switch.tier) {
                Ok(index) => _ = self.network.set_switch(index, switch.up),
                Err(problem) => self.problems.push(problem),
            }
        }
        for host in &document.hosts {
            if let Err(problem) = self.network.add_host(host.name.as_str()) {
                self.problems.push(problem);
            }
        }
        for link in &document.links {
            self.read_link(link);
        }
        self.network.set_optical(document.optical.clone());
    }

    fn read_link(&mut self, entry: &LinkEntry) {
        let link = entry.id.clone();
        if link.as_str().is_empty() {
            self.problems.push(NetworkProblem::EmptyName { kind: "link" });
        } else if self.network.link(link.as_str()).is_some() {
            self.problems.push(NetworkProblem::DuplicateLink { link: link.clone() });
        }
        let [a, b] = [&entry.a, &entry.b].map(|name| {
            let end = self.network.vertex(name);
            if end.is_none() {
                self.problems.push(NetworkProblem::UnknownEnd { link: link.clone(), end: name.as_str().into() });
            }
            end
        });
        let capacity = u64::try_from(entry.bits_per_s).ok().map(BitsPerSec);
        if capacity.is_none() {
            self.problems.push(NetworkProblem::NegativeCapacity { link: link.clone(), bits_per_s: entry.bits_per_s });
        }
        if entry.one_way {
            let [from, to] = [&entry.a, &entry.b].map(|name| name.as_str().into());
            self.problems.push(NetworkProblem::OneWay { link: link.clone(), from, to });
        }
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                let capacity = capacity.unwrap_or(LEAST_CAPACITY);
                self.network.push_link(Link { name: link, a, b, capacity, up: entry.up });
            }
            (Some(a), Some(_)) => {
                self.problems.push(NetworkProblem::SelfLoop { link, vertex: entry.a.as_str().into() });
                self.excused.insert(a);
            }
            (a, b) => self.excused.extend(a.into_iter().chain(b)),
        }
    }
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_yes(up: &bool) -> bool {
    *up
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_no(one_way: &bool) -> bool {
    !*one_way
}

/// Takes any whole number, also one written `1e9`; what does not fit becomes the nearest that does, which the
/// check of capacities then names.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    struct WholeNumber;

    impl serde::de::Visitor<'_> for WholeNumber {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number of bits per second")
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<i64, E> {
            Ok(value)
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<i64, E> {
            Ok(i64::try_from(value).unwrap_or(i64::MAX))
        }

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<i64, E> {
            if value.is_finite() && value.fract() == 0.0 {
                Ok(value as i64) // saturates
            } else {
                Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
            }
        }
    }

    deserializer.deserialize_any(WholeNumber)
}

#[cfg(test)]
mod tests {
    use super::super::build::{self, FatTreeSpec, TreeSpec};
    use super::*;

    #[test]
    fn a_network_reads_back_as_it_was_written_in_json_and_toml() {
        let mut network = build::tree(&TreeSpec::default()).unwrap().network;
        network.set_switch(network.vertex("core-2").unwrap(), false);
        network.set_link(crate::units::LinkIdx(3), Some(false), Some(BitsPerSec(7_000_000)));
        let document = network.to_document();
        let json = serde_json::to_string(&document).unwrap();
        let toml = toml::to_string(&document).unwrap();
        for read in [serde_json::from_str::<NetworkDocument>(&json).unwrap(), toml::from_str(&toml).unwrap()] {
            assert_eq!(read, document);
            let again = Network::from_document(&read).unwrap();
            assert_eq!(again.to_document(), document);
            assert!(again.vertices().eq(network.vertices()), "indexes are the same");
            assert!(again.links().eq(network.links()));
            assert!(!again.switch_up(again.vertex("core-2").unwrap()));
        }
    }

    #[test]
    fn generated_networks_have_no_problems() {
        for k in [2, 4, 6] {
            let network = build::fat_tree(&FatTreeSpec { k, ..FatTreeSpec::default() }).unwrap().network;
            assert_eq!(check(&network), []);
            assert!(Network::from_document(&network.to_document()).is_ok());
        }
    }

    #[test]
    fn unknown_fields_and_broken_numbers_are_refused() {
        let with = |link: &str| {
            serde_json::from_str::<NetworkDocument>(&format!(r#"{{"format": "hintd.network/1", "links": [{link}]}}"#))
        };
        let entry = |bits: &str| format!(r#"{{"id": "l", "a": "x", "b": "y", "bits_per_s": {bits}}}"#);
        assert_eq!(with(&entry("1e9")).unwrap().links[0].bits_per_s, 1_000_000_000);
        assert_eq!(with(&entry("18446744073709551615")).unwrap().links[0].bits_per_s, i64::MAX);
        assert_eq!(with(&entry("-5")).unwrap().links[0].bits_per_s, -5);
        assert!(with(&entry("1.5")).unwrap_err().to_string().contains("whole number"));
        assert!(with(&entry("\"fast\"")).is_err());
        assert!(with(r#"{"id": "l", "a": "x", "b": "y", "bits_per_s": 1, "colour": 1}"#).is_err());
    }

    #[test]
    fn a_document_is_read_entry_by_entry_past_what_is_broken() {
        let mut value = serde_json::to_value(build::tree(&TreeSpec::default()).unwrap().network.to_document()).unwrap();
        let (document, problems) = NetworkDocument::from_value(&value);
        assert_eq!((document.links.len(), problems), (16, vec![]));
        let break_in = |value: &mut serde_json::Value| {
            value["switches"][1]["tier"] = "middle".into();
            value["hosts"][0]["rack"] = "/r1".into();
            value["links"][2]["bits_per_s"] = "fast".into();
            value["links"][5]["b"] = "edge-99".into();
            value["links"][6]["one_way"] = true.into();
            value["colour"] = "blue".into();
        };
        break_in(&mut value);
        let (document, mut problems) = NetworkDocument::from_value(&value);
        problems.extend(Network::from_document(&document).unwrap_err());
        let found: Vec<_> = problems.iter().map(|problem| (problem.reason(), problem.to_string())).collect();
        let reasons: Vec<_> = found.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(reasons, ["broken-entry", "broken-entry", "broken-entry", "broken-entry", "unknown-end", "one-way"]);
        let starts =
            ["colour: ", "switches[1]: unknown variant `middle`", "hosts[0]: unknown field `rack`", "links[2]: "];
        for (start, (_, message)) in starts.into_iter().zip(&found) {
            assert!(message.starts_with(start), "{message}");
        }
        assert_eq!(found[5].1, "link \"host-0007--edge-04\" leads one way only, from \"host-0007\" to \"edge-04\"");
        for bad in ["[]", r#"{"links": 5}"#, "null"] {
            let (_, problems) = NetworkDocument::from_value(&serde_json::from_str(bad).unwrap());
            assert!(!problems.is_empty(), "{bad}");
        }
    }
}
