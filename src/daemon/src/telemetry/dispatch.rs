//! Metrics of dispatch: what policies were offered, what they launched, and why groups wait.

use super::registry::{Metrics, SharedCounter};
use metrics::Gauge;

pub(super) const DISPATCH_OFFERS: &str = "hintd_dispatch_offers_total";
pub(super) const DISPATCH_LAUNCHES: &str = "hintd_dispatch_launches_total";
pub(super) const DISPATCH_LATE: &str = "hintd_dispatch_late_total";
pub(super) const DISPATCH_NOT_YET: &str = "hintd_dispatch_not_yet_total";
pub(super) const DISPATCH_WAITING: &str = "hintd_dispatch_waiting_tasks";

/// Records dispatch.
#[derive(Clone)]
pub struct DispatchMetrics {
    offers: SharedCounter,
    launches: SharedCounter,
    late: SharedCounter,
    waiting: Gauge,
    metrics: Metrics,
}

impl Metrics {
    /// Handles for dispatch.
    pub fn dispatch(&self) -> DispatchMetrics {
        DispatchMetrics {
            offers: self.counter(DISPATCH_OFFERS, &[]),
            launches: self.counter(DISPATCH_LAUNCHES, &[]),
            late: self.counter(DISPATCH_LATE, &[]),
            waiting: self.gauge(DISPATCH_WAITING, &[]),
            metrics: self.clone(),
        }
    }
}

impl DispatchMetrics {
    /// Nodes were offered to policies.
    pub fn offers(&self, count: u64) {
        self.offers.add(count);
    }

    /// Policies launched tasks.
    pub fn launches(&self, count: u64) {
        self.launches.add(count);
    }

    /// Tasks waited for too long.
    pub fn late(&self, count: u64) {
        self.late.add(count);
    }

    /// An application was told why a group waits; reasons are tokens of policies, a few each.
    pub fn not_yet(&self, reason: &str) {
        self.metrics.counter(DISPATCH_NOT_YET, &[("reason", reason)]).add(1);
    }

    /// Tasks that wait.
    pub fn waiting(&self, tasks: u64) {
        self.waiting.set(tasks as f64);
    }
}
