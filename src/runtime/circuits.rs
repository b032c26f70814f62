//! An optical switch's controller at the writer: what it reports is taken in, and what of it is new is logged.

use super::command::Reply;
use super::writer::Writer;
use crate::engine::{CircuitReport, PortReport, Refusal};
use crate::network::optical::PortState;
use crate::units::Timestamp;
use std::sync::Arc;

impl Writer {
    pub(super) fn report_circuits(
        &mut self,
        watcher: &Arc<str>,
        report: CircuitReport,
        reply: Reply<Result<u64, Refusal>>,
        now: Timestamp,
    ) {
        let taken = self.engine.report_circuits(watcher, report, now);
        if let Ok(taken) = &taken {
            if taken.another {
                tracing::info!(%watcher, wanted_version = taken.wanted_version, "a controller reports circuits");
            }
            taken.ports.iter().for_each(|port| log_port(watcher, port));
        }
        let _ = reply.send(taken.map(|taken| taken.wanted_version));
        self.effects(None, Box::new(|_| ()));
    }
}

/// What it said is set is not believed any longer.
pub(super) fn log_left(watcher: &str) {
    tracing::warn!(
        watcher,
        "the optical switch's controller is gone, or has to report anew: nobody sets circuits until then"
    );
}

fn log_port(watcher: &str, port: &PortReport) {
    let PortReport { port, state, reason } = port;
    match state {
        PortState::Works => tracing::info!(%watcher, %port, "an optical port works again"),
        PortState::Failed => tracing::warn!(%watcher, %port, %reason, "an optical port has failed"),
        PortState::Stuck => tracing::warn!(%watcher, %port, %reason, "an optical port is stuck"),
    }
}
