//! Metrics of what hints are worth: completion times of hinted applications ÷ those of held-out ones, by queue.

use super::metric::{Kind, Metric, metric};
use super::registry::Metrics;
use metrics::{Gauge, Unit};
use std::collections::BTreeSet;

const WORTH_RATIO: &str = "hintd_worth_ratio";
const WORTH_LOW: &str = "hintd_worth_ratio_low";
const WORTH_HIGH: &str = "hintd_worth_ratio_high";
const WORTH_RUNS: &str = "hintd_worth_applications";
const WORTH_STOPPED: &str = "hintd_worth_stopped_keys";
const WORTH_AWAITED: &str = "hintd_worth_awaited_applications";

/// Their entries in the list of all.
pub(super) const ROWS: &[Metric] = &[
    metric(
        WORTH_RATIO,
        Kind::Gauge,
        Unit::Count,
        "Completion times of hinted applications / held-out ones; NaN: too few.",
    ),
    metric(WORTH_LOW, Kind::Gauge, Unit::Count, "Where the ratio's 95 % interval begins."),
    metric(WORTH_HIGH, Kind::Gauge, Unit::Count, "Where the ratio's 95 % interval ends."),
    metric(WORTH_RUNS, Kind::Gauge, Unit::Count, "Applications that succeeded and are compared, by queue and side."),
    metric(WORTH_STOPPED, Kind::Gauge, Unit::Count, "Recurring keys without hints, for these made them slower."),
    metric(WORTH_AWAITED, Kind::Gauge, Unit::Count, "Applications that are compared and have not ended."),
];

/// Queues with series of their own: they stay as long as the process does.
const QUEUES_MAX: usize = 256;

/// Records what hints are worth.
pub struct WorthMetrics {
    metrics: Metrics,
    stopped: Gauge,
    awaited: Gauge,
    queues: BTreeSet<String>,
}

/// One queue's figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueWorth {
    /// Hinted applications that succeeded.
    pub hinted: u64,
    /// Those held out.
    pub held_out: u64,
    /// Ratio, and the ends of its interval; `None`: there are too few to tell.
    pub ratio: Option<[f64; 3]>,
}

impl Metrics {
    /// Handles for what hints are worth.
    pub fn worth(&self) -> WorthMetrics {
        WorthMetrics {
            metrics: self.clone(),
            stopped: self.gauge(WORTH_STOPPED, &[]),
            awaited: self.gauge(WORTH_AWAITED, &[]),
            queues: BTreeSet::new(),
        }
    }
}

impl WorthMetrics {
    /// Recurring keys that are stopped, and applications whose end is awaited.
    pub fn counts(&self, stopped: usize, awaited: usize) {
        self.stopped.set(stopped as f64);
        self.awaited.set(awaited as f64);
    }

    /// A queue of the configuration; beyond so many, further ones are left out.
    pub fn queue(&mut self, queue: &str, worth: QueueWorth) {
        if !self.queues.contains(queue) {
            if self.queues.len() >= QUEUES_MAX {
                return;
            }
            self.queues.insert(queue.to_owned());
        }
        let names = [WORTH_RATIO, WORTH_LOW, WORTH_HIGH];
        for (name, value) in names.into_iter().zip(worth.ratio.unwrap_or([f64::NAN; 3])) {
            self.metrics.gauge(name, &[("queue", queue)]).set(value);
        }
        for (side, count) in [("hinted", worth.hinted), ("held_out", worth.held_out)] {
            self.metrics.gauge(WORTH_RUNS, &[("queue", queue), ("side", side)]).set(count as f64);
        }
    }
}
