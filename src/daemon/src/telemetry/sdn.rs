//! Metrics of the adapter to an SDN controller: labels are closed sets of words.

use super::registry::{Metrics, SharedCounter};
use metrics::Gauge;

pub(super) const SDN_ASKED: &str = "hintd_sdn_requests_total";
pub(super) const SDN_CONNECTED: &str = "hintd_sdn_connected";
pub(super) const SDN_EVENTS: &str = "hintd_sdn_events_total";
pub(super) const SDN_RULES: &str = "hintd_sdn_rules_total";

/// What a controller was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Switches, links, hosts, ports.
    Topology,
    /// Port counters.
    Counters,
    /// To tell events.
    Events,
    /// To change or show entries of switches.
    Rules,
}

/// What became of an entry of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleResult {
    /// Sent to be added or replaced.
    Added,
    /// Sent to be removed.
    Removed,
    /// Not there when it was read back.
    Unconfirmed,
    /// Found missing or different later, and sent again.
    Mended,
    /// Ours and wanted by nobody; removed.
    Orphan,
}

/// Records what an SDN adapter does.
#[derive(Clone)]
pub struct SdnMetrics {
    metrics: Metrics,
    connected: Gauge,
}

impl std::fmt::Debug for SdnMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SdnMetrics").finish_non_exhaustive()
    }
}

impl SdnMetrics {
    /// The controller answered, or failed to for a reason out of a closed list.
    pub fn asked(&self, what: Asked, failure: Option<&'static str>) {
        let what = match what {
            Asked::Topology => "topology",
            Asked::Counters => "counters",
            Asked::Events => "events",
            Asked::Rules => "rules",
        };
        self.counter(SDN_ASKED, &[("what", what), ("result", failure.unwrap_or("answered"))]).add(1);
    }

    /// Whether the last poll was answered.
    pub fn connected(&self, connected: bool) {
        self.connected.set(f64::from(u8::from(connected)));
    }

    /// An event of a kind out of a closed list.
    pub fn event(&self, kind: &'static str) {
        self.counter(SDN_EVENTS, &[("event", kind)]).add(1);
    }

    /// Entries of switches.
    pub fn rules(&self, result: RuleResult, count: u64) {
        let result = match result {
            RuleResult::Added => "added",
            RuleResult::Removed => "removed",
            RuleResult::Unconfirmed => "unconfirmed",
            RuleResult::Mended => "mended",
            RuleResult::Orphan => "orphan",
        };
        self.counter(SDN_RULES, &[("result", result)]).add(count);
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> SharedCounter {
        self.metrics.counter(name, labels)
    }
}

impl Metrics {
    /// Handles for the adapter to an SDN controller.
    pub fn sdn(&self) -> SdnMetrics {
        SdnMetrics { connected: self.gauge(SDN_CONNECTED, &[]), metrics: self.clone() }
    }
}
