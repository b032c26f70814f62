//! Parameters of `jobpacker` and of `corral`.

use super::offline::latency::ShuffleTerm;
use super::online::FirstReplica;
use crate::params::{Invalid, Params};
use crate::pool;
use serde::{Deserialize, Serialize};

/// Settings of `jobpacker`; defaults are those of 004 §4.3 where it states one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobPackerParams {
    /// B: sub-batches into which a batch is divided.
    pub sub_batches: u32,
    /// Containers held for a job beyond its tasks, as a share of them: 0 where all jobs are recurring, 1 in a mix.
    pub over_provisioning: f64,
    /// The shuffle's part of Eq. 4.1.
    pub shuffle_term: ShuffleTerm,
    /// How long plans take a circuit to stay once it is chosen, milliseconds; none: the network's `interval_ms`. 0:
    /// circuits change at once, as Eq. 4.1 takes it.
    pub circuit_round_ms: Option<u64>,
    /// Whether ends are forecast on links that jobs share, nodes' links among them; false: by Eq. 4.1 alone.
    pub node_links: bool,
    /// Share of a job's maps done before its reduces may be launched.
    pub slow_start: f64,
    /// Largest share of the cluster's containers for reduces of unplanned jobs that have waiting maps.
    pub early_reduces: f64,
    /// Jobs without a plan that read more count as shuffle-heavy, bytes.
    pub heavy_input_bytes: u64,
    /// How long a shuffle is told to wait at most for its rack pair to reach the threshold, milliseconds. The paper
    /// names no bound; by then a job of the usual sizes has all its maps.
    pub shuffle_wait_ms: u64,
    /// How long a node that has launched its even part of a stage leaves the rest to others of its rack, milliseconds;
    /// 0: not at all. Within a heartbeat of a second all have asked.
    pub spread_ms: u64,
    /// How long a rack that has no waiting map of a planned job that reads in it leaves the rest to the job's other
    /// racks, milliseconds; 0: it reads from afar at once.
    pub locality_ms: u64,
    /// How far from its expected arrival a run may come and still take its place in the plan, milliseconds. The paper
    /// tries 200 s; a plan is no more than an order, so that an hour does no harm.
    pub late_ms: u64,
    /// How the racks of first replicas are drawn.
    pub first_replica: FirstReplica,
}

impl Default for JobPackerParams {
    fn default() -> Self {
        Self {
            sub_batches: 5,
            over_provisioning: 0.0,
            shuffle_term: ShuffleTerm::ByWidth,
            circuit_round_ms: None,
            node_links: true,
            slow_start: 0.7,
            early_reduces: pool::EARLY_REDUCES,
            heavy_input_bytes: 1_000_000_000,
            shuffle_wait_ms: 600_000,
            spread_ms: 1_000,
            locality_ms: 3_000,
            late_ms: 3_600_000,
            first_replica: FirstReplica::ByMaps,
        }
    }
}

impl Params for JobPackerParams {
    fn validate(&self) -> Result<(), Invalid> {
        planning(self.sub_batches, self.over_provisioning)?;
        dispatching(self.slow_start, self.early_reduces)
    }
}

/// Settings of `corral`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CorralParams {
    /// Containers held for a job beyond its tasks, as a share of them.
    pub over_provisioning: f64,
    /// Share of a job's maps done before its reduces may be launched: as `jobpacker`'s, so that comparisons are of
    /// racks and circuits alone.
    pub slow_start: f64,
    /// Largest share of the cluster's containers for reduces of unplanned jobs that have waiting maps.
    pub early_reduces: f64,
    /// How long a rack that has no waiting map of a planned job that reads in it leaves the rest to the job's other
    /// racks, milliseconds.
    pub locality_ms: u64,
    /// How far from its expected arrival a run may come and still take its place in the plan, milliseconds.
    pub late_ms: u64,
    /// How the racks of first replicas are drawn.
    pub first_replica: FirstReplica,
}

impl Default for CorralParams {
    fn default() -> Self {
        let JobPackerParams {
            over_provisioning, slow_start, early_reduces, late_ms, locality_ms, first_replica, ..
        } = JobPackerParams::default();
        Self { over_provisioning, slow_start, early_reduces, locality_ms, late_ms, first_replica }
    }
}

impl Params for CorralParams {
    fn validate(&self) -> Result<(), Invalid> {
        planning(1, self.over_provisioning)?;
        dispatching(self.slow_start, self.early_reduces)
    }
}

/// More would leave no room for anybody: surely a slip.
const SPARE_MAX: f64 = 100.0;

fn planning(sub_batches: u32, over_provisioning: f64) -> Result<(), Invalid> {
    if sub_batches == 0 {
        return Err(Invalid { key: "sub_batches", message: "0 sub-batches hold no job".to_owned() });
    }
    if !(0.0..=SPARE_MAX).contains(&over_provisioning) {
        let message = format!("{over_provisioning} is not within [0, {SPARE_MAX}]");
        return Err(Invalid { key: "over_provisioning", message });
    }
    Ok(())
}

fn dispatching(slow_start: f64, early_reduces: f64) -> Result<(), Invalid> {
    for (key, value) in [("slow_start", slow_start), ("early_reduces", early_reduces)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(Invalid { key, message: format!("{value} is not within [0, 1]") });
        }
    }
    Ok(())
}
