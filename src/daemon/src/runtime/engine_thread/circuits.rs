//! An optical switch's controller at the engine thread: what it reports is taken in, and what of it is new is logged.

use super::super::command::Reply;
use super::EngineThread;
use hintd_engine::{CircuitReport, PortReport, Refusal};
use hintd_model::network::optical::PortState;
use hintd_model::units::Timestamp;
use std::sync::Arc;

/// Of the ports that a report changes so many are logged: `hintctl circuits` has all.
const PORTS_LOGGED: usize = 20;

impl EngineThread {
    pub(in crate::runtime) fn report_circuits(
        &mut self,
        watcher: &Arc<str>,
        report: CircuitReport,
        reply: Reply<Result<u64, Refusal>>,
        now: Timestamp,
    ) {
        let taken = self.engine.report_circuits(watcher, report, now);
        match &taken {
            Ok(taken) => {
                if taken.another {
                    tracing::info!(%watcher, wanted_version = taken.wanted_version, "a controller reports circuits");
                }
                self.log_ports(watcher, &taken.ports);
            }
            Err(refusal) => self.shared.metrics.report_refused(watcher, refusal),
        }
        let _ = reply.send(taken.map(|taken| taken.wanted_version));
        self.effects(None, Box::new(|_| ()));
    }

    /// Ports that are otherwise than before. Of reports that change some again and again only one in a while is told of.
    fn log_ports(&self, watcher: &str, ports: &[PortReport]) {
        let due = if ports.is_empty() { None } else { self.shared.metrics.ports_changed() };
        let Some(reports) = due else { return };
        for PortReport { port, state, reason } in ports.iter().take(PORTS_LOGGED) {
            match state {
                PortState::Works => tracing::info!(%watcher, %port, reports, "an optical port works again"),
                PortState::Failed => tracing::warn!(%watcher, %port, %reason, reports, "an optical port has failed"),
                PortState::Stuck => tracing::warn!(%watcher, %port, %reason, reports, "an optical port is stuck"),
            }
        }
    }
}

/// What it said is set is not believed any longer.
pub(in crate::runtime) fn log_left(watcher: &str) {
    tracing::warn!(
        watcher,
        "the optical switch's controller is gone, or has to report anew: nobody sets circuits until then"
    );
}
