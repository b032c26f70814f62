//! What controllers watch, acknowledge and report: routes, and an optical switch's circuits.

use super::super::command::Command;
use super::super::options::WatchLimits;
use super::super::watchers::{WatchCaller, Watching};
use super::Daemon;
use hintd_engine::{CircuitReport, CircuitsView, Proof, Refusal, WatchScope, WatchedPair};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Daemon {
    /// Watches routes, where all watchers together, and those of the peer, stay within `most`; what it begins with is a snapshot, or what was
    /// missed.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a host that neither the network nor the cluster names; [`Refusal::Invalid`]
    /// for too many pairs, or while another watcher installs; [`Refusal::NotHolder`] for a name that another has;
    /// [`Refusal::Unavailable`] where too many watch.
    pub async fn watch(&self, caller: WatchCaller, scope: WatchScope, most: WatchLimits) -> Result<Watching, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Watch { caller, scope, most, reply }).await?
    }

    /// A feed left a change of the network: routes are not to wait until the next publish.
    pub fn hurry(&self) {
        if !self.0.shared.urgent.swap(true, Ordering::AcqRel) {
            self.0.engine_handle.tell(Command::Urgent);
        }
    }

    /// A Watch's stream ended.
    pub fn unwatch(&self, watcher: Arc<str>, session: u64) {
        self.0.engine_handle.tell(Command::Unwatch { watcher, session });
    }

    /// Takes an acknowledgement of every update up to `number`, but for routes that could not be installed; returns how
    /// many updates are outstanding.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a stranger; [`Refusal::Invalid`] for a number that was not sent or is acknowledged
    /// already, and for a refused pair that it was not told of; [`Refusal::NotHolder`].
    pub async fn acknowledge(
        &self,
        watcher: Arc<str>,
        proof: Proof,
        number: u64,
        refused: Vec<(WatchedPair, String)>,
    ) -> Result<u64, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Acknowledge { watcher, proof, number, refused, reply }).await?
    }

    /// Takes in what a controller says of its optical switch; returns which version is wanted then.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a watcher that does not watch circuits; [`Refusal::Invalid`] for what can't be meant;
    /// [`Refusal::NotHolder`].
    pub async fn report_circuits(
        &self,
        watcher: Arc<str>,
        proof: Proof,
        report: CircuitReport,
    ) -> Result<u64, Refusal> {
        self.0.engine_handle.ask(|reply| Command::ReportCircuits { watcher, proof, report, reply }).await?
    }

    /// Circuits that an optical switch should have and has; `None`: there is no optical switch.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn circuits(&self) -> Result<Option<CircuitsView>, Refusal> {
        self.0.engine_handle.ask(Command::Circuits).await
    }
}
