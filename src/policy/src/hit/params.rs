//! Parameters of `hit`.

use super::NAME;
use crate::chained::Settings;
use crate::params::{Invalid, Params};
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HitParams {
    /// Starts from random placements; one more start is what YARN would do.
    pub starts: u32,
    /// Rounds of switches and tasks from each start, at most; a fixed point comes earlier.
    pub rounds: u32,
    /// Seconds within which an edge's bytes are to be moved: what a flow takes of each box is bytes ÷ seconds.
    pub transfer_s: f64,
    /// Port of the receiver, for chains that name ports: MapReduce's shuffle handler.
    pub port: u16,
    /// Nodes searched in a large cluster.
    pub shortlist: usize,
    /// Pairs of tasks that are looked at one by one, at most.
    pub flows_max: usize,
}

impl Default for HitParams {
    fn default() -> Self {
        Self { starts: 3, rounds: 50, transfer_s: 60.0, port: 13_562, shortlist: 256, flows_max: 200_000 }
    }
}

impl Params for HitParams {
    fn validate(&self) -> Result<(), Invalid> {
        check_seconds(self.transfer_s)?;
        let counts = [
            ("rounds", u64::from(self.rounds)),
            ("shortlist", self.shortlist as u64),
            ("flows_max", self.flows_max as u64),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(Invalid { key, message: format!("0 is not a number to search with in {NAME}") }),
            None => Ok(()),
        }
    }
}

/// A rate needs a time above 0.
pub(crate) fn check_seconds(transfer_s: f64) -> Result<(), Invalid> {
    if transfer_s.is_finite() && transfer_s > 0.0 {
        return Ok(());
    }
    Err(Invalid { key: "transfer_s", message: format!("{transfer_s} is not above 0") })
}

impl HitParams {
    pub(super) const fn settings(&self) -> Settings {
        Settings { transfer_s: self.transfer_s, port: self.port, shortlist: self.shortlist, flows_max: self.flows_max }
    }
}
