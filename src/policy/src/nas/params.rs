//! Parameters of `nas`: which mechanisms work, and their thresholds.

use super::skips::Bound;
use crate::params::{Invalid, Params};
use crate::pool;
use hintd_model::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

/// How long a user may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipBy {
    /// So many times: `map_skips`, `reduce_skips` (the paper's simulation).
    Count,
    /// So long: `skip_ms` (its Hadoop version).
    Time,
}

/// Until when CR-RTS holds back maps of heavier jobs on a congested rack (§3.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldMaps {
    /// Until their user was passed over D^m times (policies.md).
    UntilDue,
    /// "Until the network is not congested", whatever the counters say: such maps are out of Algorithm 2's sight there,
    /// and nobody is passed over for them.
    UntilClear,
}

/// Settings; defaults are those of paper 004 §3.3.1 where it states one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NasParams {
    /// Algorithm 2; else maps go as `fair` sends them.
    pub mts: bool,
    /// Algorithm 3; else reduces go as `fair` sends them, the oldest job of a user first.
    pub ca_rts: bool,
    /// Algorithm 4; else a congested rack is like any other.
    pub cr_rts: bool,
    /// Whether maps on a node are bounded by Eq. 3.3 (off: the paper's "w/o TT").
    pub traffic_threshold: bool,
    /// Whether Eq. 3.5 sets the share of maps after which reduces may start (off: the paper's "w/o MCT").
    pub adaptive_threshold: bool,
    /// That share where it is not adaptive, and without CA-RTS, to which Eq. 3.5 belongs.
    pub fixed_threshold: f64,
    /// T_min: that share for the job of largest shuffle.
    pub t_min: f64,
    /// T_max: that share for the job of smallest shuffle.
    pub t_max: f64,
    /// What bounds skipping.
    pub skip_by: SkipBy,
    /// Until when CR-RTS holds maps back.
    pub hold_maps: HoldMaps,
    /// D^m: times that a user is passed over for maps.
    pub map_skips: u32,
    /// D^r: times that a user is passed over for reduces on congested racks.
    pub reduce_skips: u32,
    /// How long a user is passed over, milliseconds, where time bounds it.
    pub skip_ms: u64,
    /// Use of a rack's uplink or downlink from which it is congested, as a share; it is no more 5 points below.
    pub congestion_threshold: f64,
    /// Jobs that read less are small-input jobs, bytes.
    pub small_input_bytes: u64,
    /// Jobs that shuffle less are shuffle-light, bytes.
    pub light_bytes: u64,
    /// Jobs that shuffle more are shuffle-heavy, bytes.
    pub heavy_bytes: u64,
    /// Largest share of the cluster's containers for reduces of jobs that have waiting maps.
    pub early_reduces: f64,
    /// How often Eq. 3.3 and the S_min and S_max of Eq. 3.5 are found anew, milliseconds. The paper says
    /// "periodically"; a map of 128 MiB takes about so long.
    pub refresh_ms: u64,
}

impl Default for NasParams {
    fn default() -> Self {
        Self {
            mts: true,
            ca_rts: true,
            cr_rts: true,
            traffic_threshold: true,
            adaptive_threshold: true,
            fixed_threshold: 0.2,
            t_min: 0.2,
            t_max: 0.5,
            skip_by: SkipBy::Count,
            hold_maps: HoldMaps::UntilDue,
            map_skips: 135,
            reduce_skips: 135,
            skip_ms: 5_000,
            congestion_threshold: 0.8,
            small_input_bytes: 10 << 20,
            light_bytes: 1 << 20,
            heavy_bytes: 100 << 20,
            early_reduces: pool::EARLY_REDUCES,
            refresh_ms: 5_000,
        }
    }
}

impl NasParams {
    /// Per mille of use from which a rack is congested.
    pub(super) fn enter_per_mille(&self) -> u32 {
        per_mille(self.congestion_threshold)
    }

    /// Per mille of use below which it is no more (policies.md: 5 points lower).
    pub(super) fn leave_per_mille(&self) -> u32 {
        self.enter_per_mille().saturating_sub(50)
    }

    /// Class of a job that shuffles so much (§3.2.1).
    pub(super) fn class(&self, shuffle: Bytes) -> Shuffle {
        if shuffle.0 < self.light_bytes {
            Shuffle::Light
        } else if shuffle.0 > self.heavy_bytes {
            Shuffle::Heavy
        } else {
            Shuffle::Medium
        }
    }

    /// D^m.
    pub(super) const fn map_bound(&self) -> Bound {
        self.bound(self.map_skips)
    }

    /// D^r.
    pub(super) const fn reduce_bound(&self) -> Bound {
        self.bound(self.reduce_skips)
    }

    const fn bound(&self, times: u32) -> Bound {
        match self.skip_by {
            SkipBy::Count => Bound::Count(times),
            SkipBy::Time => Bound::Time(Micros::from_millis(self.skip_ms)),
        }
    }

    /// Time between two refreshes.
    pub(super) const fn refresh(&self) -> Micros {
        Micros::from_millis(self.refresh_ms)
    }
}

fn per_mille(share: f64) -> u32 {
    (share * 1000.0).round() as u32
}

/// How much a job shuffles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Shuffle {
    /// Below `light_bytes`.
    Light,
    /// Between.
    Medium,
    /// Above `heavy_bytes`.
    Heavy,
}

impl Params for NasParams {
    fn validate(&self) -> Result<(), Invalid> {
        let shares = [
            ("fixed_threshold", self.fixed_threshold),
            ("t_min", self.t_min),
            ("t_max", self.t_max),
            ("congestion_threshold", self.congestion_threshold),
            ("early_reduces", self.early_reduces),
        ];
        for (key, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(Invalid { key, message: format!("{value} is not within [0, 1]") });
            }
        }
        if self.t_min > self.t_max {
            let message = format!("t_min = {} is above t_max = {}", self.t_min, self.t_max);
            return Err(Invalid { key: "t_min", message });
        }
        if self.light_bytes > self.heavy_bytes {
            let message = format!("light_bytes = {} is above heavy_bytes = {}", self.light_bytes, self.heavy_bytes);
            return Err(Invalid { key: "light_bytes", message });
        }
        for (key, value) in [("refresh_ms", self.refresh_ms), ("skip_ms", self.skip_ms)] {
            if value == 0 {
                return Err(Invalid { key, message: "0 is no span of time".to_owned() });
            }
        }
        Ok(())
    }
}
