//! Parameters of `cross_layer`.

use super::NAME;
use crate::params::{Invalid, Params};
use serde::{Deserialize, Serialize};

/// Which levels search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// Hosts by annealing, routes drawn at random.
    Application,
    /// Hosts drawn at random, routes improved.
    Routing,
    /// Both.
    #[default]
    Both,
    /// Hosts and routes drawn at random: what the paper compares with.
    Random,
}

/// How the temperature falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cooling {
    /// t ← 0.95·t.
    #[default]
    Geometric,
    /// t ← t^0.95 as Algorithm 1 prints it: from above 1 it never falls below 1, and from below 1 it rises.
    Printed,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrossLayerParams {
    /// `application`, `routing`, `both` or `random`.
    pub mode: RunMode,
    /// Annealing runs, each from another start; 5 in Algorithm 1.
    pub restarts: u32,
    /// `geometric` or `printed`; applied a hundred times a run.
    pub cooling: Cooling,
    /// First temperature, in units of what the new job's sinks get at the start.
    pub initial_temperature: f64,
    /// Moves tried in a run, for each container.
    pub steps_per_container: u64,
    /// Moves tried in a run at most.
    pub steps_max: u64,
    /// Pairs of nodes looked at in a run at most: moves of large jobs touch many.
    pub work_max: u64,
    /// Best states whose routes are all gone over at the end.
    pub states: usize,
    /// Routes tried then for each of them at most; no more than four for each pair.
    pub routing_steps: u64,
    /// Shortest paths of each pair that are candidates; the path table holds 10.
    pub k: usize,
    /// Nodes searched in a large cluster.
    pub shortlist: usize,
}

impl Default for CrossLayerParams {
    fn default() -> Self {
        Self {
            mode: RunMode::Both,
            restarts: 5,
            cooling: Cooling::Geometric,
            initial_temperature: 0.03,
            // `cargo bench --bench cross_layer -- quality`: four times the steps add 2 to 8 % of utility.
            steps_per_container: 8,
            steps_max: 150,
            work_max: 20_000,
            states: 2,
            routing_steps: 50,
            k: 10,
            shortlist: 32,
        }
    }
}

impl Params for CrossLayerParams {
    fn validate(&self) -> Result<(), Invalid> {
        let temperature = self.initial_temperature;
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(Invalid { key: "initial_temperature", message: format!("{temperature} is not above 0") });
        }
        let counts = [
            ("restarts", u64::from(self.restarts)),
            ("steps_per_container", self.steps_per_container),
            ("steps_max", self.steps_max),
            ("work_max", self.work_max),
            ("states", self.states as u64),
            ("k", self.k as u64),
            ("shortlist", self.shortlist as u64),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((key, _)) => Err(Invalid { key, message: format!("0 is not a number to search with in {NAME}") }),
            None => Ok(()),
        }
    }
}
