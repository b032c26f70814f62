//! The file format `hintd.racks/1`, and files of either format.

use super::super::document::NetworkDocument;
use super::super::tier::Tier;
use super::matches;
use super::rate::RateEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What [`RacksDocument::format`] must say.
pub const RACKS_FORMAT: &str = "hintd.racks/1";

/// A network by rack, as it stands in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RacksDocument {
    /// [`RACKS_FORMAT`].
    pub format: String,
    /// Rate of hosts' links, where neither host nor rack says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<RateEntry>,
    /// Racks by path; with `*` at its end, all whose paths begin so and that no longer key means.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub racks: BTreeMap<String, RackRow>,
    /// Switches by name: those above racks, and racks' own where they have names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: BTreeMap<String, SwitchRow>,
    /// Hosts that are no others' like, by any of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostRow>,
    /// Links between switches where `above` does not say enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRow>,
}

/// A rack, or all that a pattern means.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackRow {
    /// Rate of all links up from its switch together, each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<RateEntry>,
    /// Instead: rate of its hosts' links together / rate of all links up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// Rate of its hosts' links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<RateEntry>,
    /// The declared switch that its hosts hang on; left out: one of its own, with the rack's path for a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Hosts that are in it whatever YARN says; with `*` at its end, all whose names begin so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchRow {
    /// Its layer; left out: edge, or of one that is `above` others aggregation with an uplink and core without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Rate of all links up together, each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<RateEntry>,
    /// Instead: rate of the links from below together / rate of all links up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// Racks, and switches of lower tiers, whose links up lead here; names, or their beginnings with `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRow {
    /// Rate of its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<RateEntry>,
    /// The rack that it is in, whatever YARN says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// Instead: the declared switch that it hangs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
}

/// A link between two switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRow {
    /// Its id; left out: made of its ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A declared switch, or the path of a rack that has none.
    pub a: String,
    /// The other.
    pub b: String,
    /// Rate of each direction.
    pub rate: RateEntry,
}

/// A checked network file.
#[derive(Debug, Clone, PartialEq)]
pub enum NetworkFile {
    /// By rack: `hintd.racks/1`.
    Racks(Box<RacksDocument>),
    /// Every switch, host and link: `hintd.network/1`.
    Graph(Box<NetworkDocument>),
}

impl LinkRow {
    /// Its id, or what stands for it.
    #[must_use]
    pub fn id(&self) -> String {
        self.id.clone().unwrap_or_else(|| format!("{}--{}", self.a, self.b))
    }
}

/// The tier that a switch has, or that follows from what it says.
pub(super) fn tier(row: &SwitchRow) -> Tier {
    let below_something = row.uplink.is_some() || row.oversubscription.is_some();
    row.tier.unwrap_or(match (row.above.is_empty(), below_something) {
        (true, _) => Tier::Edge,
        (false, true) => Tier::Aggregation,
        (false, false) => Tier::Core,
    })
}

/// The row that means a rack: its own, else the pattern that says most of it.
pub(super) fn rack_row<'d>(document: &'d RacksDocument, path: &str) -> Option<(&'d str, &'d RackRow)> {
    let own = document.racks.get_key_value(path);
    let meant = || {
        let patterns = document.racks.iter().filter(|(key, _)| key.ends_with('*') && matches(key, path));
        patterns.max_by_key(|(key, _)| key.len())
    };
    own.or_else(meant).map(|(key, row)| (key.as_str(), row))
}
