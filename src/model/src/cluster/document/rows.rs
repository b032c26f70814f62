//! Entries of a cluster document.

use super::super::node::NodeState;
use super::super::resource::{Calculator, ResourceKinds, SizeRules};
use super::super::snapshot::LinkLoad;
use super::amount::Amount;
use super::text::Problems;
use crate::units::{BitsPerSec, ContainerId, LinkName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Sizes that YARN's scheduler allocates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RulesEntry {
    /// `default` or `dominant`.
    pub calculator: Calculator,
    /// Smaller asks grow to this.
    pub minimum: Amount,
    /// Asks grow to a multiple of this; 0 in a kind: no rounding.
    pub increment: Amount,
    /// Larger asks are refused; 0 in a kind: no bound.
    pub maximum: Amount,
}

impl Default for RulesEntry {
    /// YARN's own defaults.
    fn default() -> Self {
        Self::of(&SizeRules::default(), &ResourceKinds::default())
    }
}

impl RulesEntry {
    pub(super) fn of(rules: &SizeRules, kinds: &ResourceKinds) -> Self {
        Self {
            calculator: rules.calculator,
            minimum: Amount::of_row(&rules.minimum, kinds),
            increment: Amount::of_row(&rules.increment, kinds),
            maximum: Amount::of_row(&rules.maximum, kinds),
        }
    }

    pub(super) fn rules(&self, kinds: &mut ResourceKinds, problems: &mut Problems) -> SizeRules {
        let rows = [("minimum", &self.minimum), ("increment", &self.increment), ("maximum", &self.maximum)];
        let [minimum, increment, maximum] = rows.map(|(name, amount)| {
            let field = format!("rules.{name}");
            let row = amount.named(&field, problems).intern(kinds);
            problems.keep(field, row).unwrap_or_default()
        });
        SizeRules { calculator: self.calculator, minimum, increment, maximum }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeEntry {
    /// As `NodeId.host` spells it, unique.
    pub host: String,
    /// As YARN prints it; left out: `/default-rack`.
    #[serde(default = "default_rack")]
    pub rack: String,
    /// Offered memory, MB.
    pub memory_mb: u64,
    /// Offered virtual cores.
    #[serde(default)]
    pub vcores: u64,
    /// YARN's word for its state, or STALE or UNREGISTERED; left out: RUNNING.
    #[serde(default = "running")]
    pub state: NodeState,
    /// Machine class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Node labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Other names of the host: HDFS's, the SDN controller's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Sequential read rate of the local disks; 0: unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disk_read_bytes_per_s: u64,
    /// Offered, further kinds by YARN's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u64>,
    /// Node attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Used as reported; what its containers sum up to where that is more.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub used: Amount,
    /// Leased to applications by hints.
    #[serde(default, skip_serializing_if = "Amount::is_zero")]
    pub leased: Amount,
}

impl NodeEntry {
    /// What the node offers.
    #[must_use]
    pub fn total(&self) -> Amount {
        Amount { memory_mb: self.memory_mb, vcores: self.vcores, resources: self.resources.clone() }
    }
}

/// One container that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerEntry {
    /// YARN's id, unique.
    pub id: ContainerId,
    /// Its node.
    pub host: String,
    /// Scheduler key: priority.
    #[serde(default)]
    pub priority: i32,
    /// Scheduler key: allocation request id; left out: -1.
    #[serde(default = "no_request_id")]
    pub allocation_request_id: i64,
    /// Its size.
    pub size: Amount,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    /// As HDFS spells it, unique.
    pub path: String,
    /// In file order.
    #[serde(default)]
    pub blocks: Vec<BlockEntry>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockEntry {
    /// HDFS block id, unique in its path.
    pub id: u64,
    /// Its length.
    pub bytes: u64,
    /// Nodes with a replica, by host or alias.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Measured load of one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLoadEntry {
    /// Its id in `network`.
    pub link: String,
    /// Bits per second from its end `a` to its end `b`.
    pub a_to_b_bits_per_s: u64,
    /// The other way.
    pub b_to_a_bits_per_s: u64,
    /// As `a_to_b_bits_per_s`, in the mean of the last minutes; left out: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_a_to_b_bits_per_s: Option<u64>,
    /// The other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_b_to_a_bits_per_s: Option<u64>,
}

impl LinkLoadEntry {
    pub(super) fn of(link: &LinkName, load: &LinkLoad) -> Self {
        let apart = |mean: BitsPerSec, now: BitsPerSec| (mean != now).then_some(mean.0);
        Self {
            link: link.to_string(),
            a_to_b_bits_per_s: load.a_to_b.0,
            b_to_a_bits_per_s: load.b_to_a.0,
            mean_a_to_b_bits_per_s: apart(load.mean_a_to_b, load.a_to_b),
            mean_b_to_a_bits_per_s: apart(load.mean_b_to_a, load.b_to_a),
        }
    }

    pub(super) fn load(&self) -> LinkLoad {
        LinkLoad {
            a_to_b: BitsPerSec(self.a_to_b_bits_per_s),
            b_to_a: BitsPerSec(self.b_to_a_bits_per_s),
            mean_a_to_b: BitsPerSec(self.mean_a_to_b_bits_per_s.unwrap_or(self.a_to_b_bits_per_s)),
            mean_b_to_a: BitsPerSec(self.mean_b_to_a_bits_per_s.unwrap_or(self.b_to_a_bits_per_s)),
        }
    }
}

/// Measured latency of one pair of hosts, or of racks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyEntry {
    /// One host, or rack.
    pub a: String,
    /// The other one; a rack may stand with itself.
    pub b: String,
    /// Two-way, microseconds.
    pub rtt_us: u64,
}

fn default_rack() -> String {
    super::super::model::DEFAULT_RACK.to_owned()
}

const fn running() -> NodeState {
    NodeState::Running
}

pub(super) const fn no_request_id() -> i64 {
    -1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_zero(value: &u64) -> bool {
    *value == 0
}
