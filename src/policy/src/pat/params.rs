//! Parameters of `pat`.

use super::NAME;
use crate::chained::Settings;
use crate::hit::check_seconds;
use crate::params::{Invalid, Params};
use serde::{Deserialize, Serialize};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatParams {
    /// Rounds of containers and boxes, at most; they end by themselves when nothing changes.
    pub rounds: u32,
    /// Containers whose episodes are under way at a time: more of them race for the same room.
    pub window: usize,
    /// Seconds within which bytes are to be moved: what a flow takes of each box is bytes ÷ seconds.
    pub transfer_s: f64,
    /// Port of the receiver, for chains that name ports: MapReduce's shuffle handler.
    pub port: u16,
    /// Nodes looked at in a large cluster.
    pub shortlist: usize,
    /// Pairs of tasks that are looked at one by one, at most.
    pub flows_max: usize,
}

impl Default for PatParams {
    fn default() -> Self {
        Self { rounds: 20, window: 64, transfer_s: 60.0, port: 13_562, shortlist: 2_000, flows_max: 200_000 }
    }
}

impl Params for PatParams {
    fn validate(&self) -> Result<(), Invalid> {
        check_seconds(self.transfer_s)?;
        let counts = [
            ("rounds", u64::from(self.rounds)),
            ("window", self.window as u64),
            ("shortlist", self.shortlist as u64),
            ("flows_max", self.flows_max as u64),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(Invalid { key, message: format!("0 is not a number to search with in {NAME}") }),
            None => Ok(()),
        }
    }
}

impl PatParams {
    pub(super) const fn settings(&self) -> Settings {
        Settings { transfer_s: self.transfer_s, port: self.port, shortlist: self.shortlist, flows_max: self.flows_max }
    }
}
