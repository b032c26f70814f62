//! What a simulated run says of itself: one row of the comparison, and what the plots draw.

use super::capacity::HintOutcome;
use super::settings::Authority;
use serde::{Deserialize, Serialize};

/// One run. Everything but [`RunReport::wall_s`] and [`RunReport::peak_rss_bytes`], which the caller measures, is a
/// function of cluster, trace, settings and policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The policy.
    pub policy: String,
    /// Who allocated.
    pub authority: Authority,
    /// The seed.
    pub seed: u64,
    /// Jobs that ended.
    pub jobs: u64,
    /// Jobs that could never fit, by name, at most [`NEVER_FIT_SHOWN`] of them.
    pub never_fit: Vec<String>,
    /// How many could never fit.
    pub never_fit_count: u64,
    /// Jobs under way or waiting when the run was interrupted; 0 in a whole run.
    pub unfinished: u64,
    /// From the first submission to the last end, seconds.
    pub makespan_s: f64,
    /// Jobs ended ÷ makespan (004 §3.3.2).
    pub throughput_jobs_per_hour: f64,
    /// Mean of the completion times, seconds, from submission to the end of the last task.
    pub mean_jct_s: f64,
    /// Their median.
    pub median_jct_s: f64,
    /// Their 95th percentile.
    pub p95_jct_s: f64,
    /// Bytes of map input and shuffle that crossed racks.
    pub cross_rack_bytes: u64,
    /// Shuffle's part of them.
    pub cross_rack_shuffle_bytes: u64,
    /// All bytes of shuffle, those that stayed on a node too.
    pub shuffle_bytes: u64,
    /// Maps by where their input lay: on the node, in the rack, in another rack.
    #[serde(with = "by_locality")]
    pub maps_by_locality: [u64; 3],
    /// Seconds of congestion, summed over racks.
    pub congested_s: f64,
    /// Entries into congestion, summed over racks.
    pub congestions: u64,
    /// Mean over jobs with reduces of the share of maps done when the first reduce was launched.
    pub map_progress_at_first_reduce: f64,
    /// Mean share of nodes whose running maps' output exceeds m·ΣS/ΣK (Eq. 3.3), by seconds.
    pub nodes_over_traffic_threshold: f64,
    /// Completion times by shuffle class: light (< 1 MiB), medium, heavy (> 100 MiB).
    #[serde(with = "by_shuffle")]
    pub classes: [ClassReport; 3],
    /// Seconds of one container's time spent: maps, reduces that wait for shuffle, reduces that run.
    #[serde(with = "by_work")]
    pub container_s: [f64; 3],
    /// Use of links by tier over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierUse>,
    /// What became of hints, under [`Authority::Hints`]; the caller says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<HintOutcome>,
    /// What circuits did, where an optical switch was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<CircuitReport>,
    /// Each job that ended, where the run was told to say so: in the trace's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_job: Vec<JobReport>,
    /// By rack, where the run was told to say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rack_bytes: Vec<RackBytes>,
    /// Events handled.
    pub events: u64,
    /// Offers made to the policy.
    pub offers: u64,
    /// Wall time, seconds; 0 until the caller says.
    pub wall_s: f64,
    /// Peak resident memory of the process, bytes; 0 until the caller says.
    pub peak_rss_bytes: u64,
    /// Completion time of every job that ended, seconds, in the trace's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jct_s: Vec<f64>,
}

/// A job that ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobReport {
    /// In the trace, from 0.
    pub number: u64,
    /// From its submission to its end, seconds.
    pub jct_s: f64,
    /// From the start of a map's container to its end, the mean, seconds.
    pub map_s: f64,
    /// From the start of a reduce's container to the moment at which it has all its bytes, the mean, seconds.
    pub shuffle_s: f64,
    /// Maps by rack.
    pub maps: Vec<u32>,
    /// Reduces by rack.
    pub reduces: Vec<u32>,
}

/// What left a rack and came in: map input and shuffle, as links carried it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RackBytes {
    /// Out of it.
    pub out: u64,
    /// Into it.
    #[serde(rename = "in")]
    pub into: u64,
}

/// How many names of jobs that never fit a report holds.
pub const NEVER_FIT_SHOWN: usize = 20;

/// Jobs of one shuffle class.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassReport {
    /// Jobs that ended.
    pub jobs: u64,
    /// Mean completion time, seconds.
    pub mean_jct_s: f64,
    /// Jobs ÷ (last end − first submission) of the class.
    pub throughput_jobs_per_hour: f64,
}

/// What the circuits of an optical switch did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CircuitReport {
    /// Bytes that they carried.
    pub bytes: u64,
    /// The same as a share of all bytes that crossed racks, 0..1 (Figures 4.10 and 4.12).
    pub share: f64,
    /// Times at which circuits changed; each paused all of them.
    pub changes: u64,
    /// Elephants that went by packets, for want of a circuit or of a port.
    pub elephants_by_packets: u64,
    /// Racks without a port.
    pub racks_without_port: u64,
}

/// Use of the links of one tier.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TierUse {
    /// `host`, `rack`, `core`.
    pub tier: String,
    /// Length of each sample, seconds.
    pub step_s: f64,
    /// Mean use over the tier's links and directions, 0..1, by sample.
    pub mean: Vec<f64>,
    /// Use of the busiest link, by sample.
    pub max: Vec<f64>,
}

/// Documents name three figures of a kind; reports hold them in a row.
macro_rules! named {
    ($module:ident: $names:expr) => {
        mod $module {
            use serde::de::{Deserialize, Deserializer, Error as _};
            use serde::ser::{Serialize, SerializeMap as _, Serializer};
            use std::collections::BTreeMap;

            const NAMES: [&str; 3] = $names;

            pub(super) fn serialize<T: Serialize, S: Serializer>(figures: &[T; 3], to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(Some(NAMES.len()))?;
                for (name, figure) in NAMES.iter().zip(figures) {
                    map.serialize_entry(name, figure)?;
                }
                map.end()
            }

            pub(super) fn deserialize<'d, T: Deserialize<'d>, D: Deserializer<'d>>(
                from: D,
            ) -> Result<[T; 3], D::Error> {
                let mut map = BTreeMap::<String, T>::deserialize(from)?;
                let [first, second, third] =
                    NAMES.map(|name| map.remove(name).ok_or_else(|| D::Error::missing_field(name)));
                Ok([first?, second?, third?])
            }
        }
    };
}

named!(by_locality: ["node_local", "rack_local", "off_rack"]);
named!(by_shuffle: ["light", "medium", "heavy"]);
named!(by_work: ["maps", "reduces_that_wait", "reduces_that_run"]);
