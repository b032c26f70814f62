//! What recurring jobs will come, when, and how large: from runs that finished, for planners (004 Li §4.1.4, §4.2.3).
//!
//! Jobs are recognised by key. A key's runs are looked at by day of the week and time of the day: how many came on like
//! days and when, and how large those of like hours were. All is medians, so that a run that went astray moves nothing.
//! What can't be told well enough is not predicted at all: its runs go as if nobody knew them.
//!
//! The history's [`GroupHistory`](super::history::GroupHistory) tells what like tasks of the *last* runs did, for a
//! request that is here; this tells what runs to expect before anybody asks.

mod forecast;
mod key;
mod measure;
mod runs;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use forecast::{Forecast, KeyForecast, RecurrenceStatus, forecast, forecast_within};
pub use key::{derived_key, key_paths, steady_path};
pub use measure::Errors;
pub use runs::{ClassHash, ClassShare, Run, Runs};

use hintd_model::units::Micros;
use serde::{Deserialize, Serialize};

/// How runs are predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictionSettings {
    /// Runs of a key from which on it may be predicted.
    pub runs_min: usize,
    /// Like runs, the last ones, that medians are taken of.
    pub window: usize,
    /// Like days that are enough to go by: of the same weekday, else workdays or weekends, else any.
    pub days_min: usize,
    /// Runs that began no further apart in time of day are alike, milliseconds.
    pub alike_ms: u64,
    /// Median error of a key from which on it counts as ad-hoc.
    pub error_max: f64,
    /// The cluster's clock against UTC, seconds: days begin at its midnight.
    pub zone_offset_s: i64,
}

impl Default for PredictionSettings {
    fn default() -> Self {
        Self {
            runs_min: 3,
            window: 8,
            days_min: 2,
            // Half of the time between two runs of an hourly job, and a bit.
            alike_ms: 40 * 60_000,
            // Half as much or twice as much: a plan's racks are then as wrong as right (004 Figure 4.20a ends there).
            error_max: 0.5,
            zone_offset_s: 0,
        }
    }
}

impl PredictionSettings {
    const fn alike(&self) -> Micros {
        Micros::from_millis(self.alike_ms)
    }
}
