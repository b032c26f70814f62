//! Metrics of an optical switch: circuits, ports, demand.

use super::registry::{Metrics, SharedCounter};
use metrics::Gauge;

pub(super) const CIRCUITS: &str = "hintd_circuits";
pub(super) const CIRCUIT_PORTS: &str = "hintd_circuit_ports";
pub(super) const CIRCUIT_DEMAND: &str = "hintd_circuit_demand_bytes";
pub(super) const CIRCUIT_CHANGES: &str = "hintd_circuit_changes_total";
pub(super) const SHUFFLES: &str = "hintd_shuffles_told_total";

/// Records an optical switch.
#[derive(Clone)]
pub struct CircuitMetrics {
    demand: Gauge,
    changes: SharedCounter,
    started: SharedCounter,
    held: SharedCounter,
    metrics: Metrics,
}

impl Metrics {
    /// Handles for an optical switch.
    pub fn circuits(&self) -> CircuitMetrics {
        CircuitMetrics {
            demand: self.gauge(CIRCUIT_DEMAND, &[]),
            changes: self.counter(CIRCUIT_CHANGES, &[]),
            started: self.counter(SHUFFLES, &[("what", "start")]),
            held: self.counter(SHUFFLES, &[("what", "wait")]),
            metrics: self.clone(),
        }
    }
}

impl CircuitMetrics {
    /// Circuits that are wanted, those of them that are set, and pairs of racks with demand that get none.
    pub fn circuits(&self, wanted: u64, set: u64, unserved: u64) {
        for (state, count) in [("wanted", wanted), ("set", set), ("unserved", unserved)] {
            self.metrics.gauge(CIRCUITS, &[("state", state)]).set(count as f64);
        }
    }

    /// Ports by how they are.
    pub fn ports(&self, works: u64, failed: u64, stuck: u64) {
        for (state, count) in [("works", works), ("failed", failed), ("stuck", stuck)] {
            self.metrics.gauge(CIRCUIT_PORTS, &[("state", state)]).set(count as f64);
        }
    }

    /// What elephants have left to send between racks.
    pub fn demand(&self, bytes: u64) {
        self.demand.set(bytes as f64);
    }

    /// Shuffles between two racks were told to start.
    pub fn started(&self, times: u64) {
        self.started.add(times);
    }

    /// And to wait.
    pub fn held(&self, times: u64) {
        self.held.add(times);
    }

    /// Other circuits were wanted so many times.
    pub fn changed(&self, times: u64) {
        self.changes.add(times);
    }
}
