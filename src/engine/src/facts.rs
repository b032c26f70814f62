//! Facts: the model of the cluster, the snapshot of it that decisions are checked against, and what came since.

use super::placer::SnapshotScans;
use super::routes::Cause;
use hintd_model::cluster::{Applied, Change, Model, ModelError, SizeRules, Snapshot};
use hintd_model::network::latency::LatencySettings;
use hintd_model::units::Timestamp;
use std::sync::Arc;

/// The model and its last snapshot.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) model: Model,
    /// What commits are checked against.
    pub(crate) snapshot: Arc<Snapshot>,
    /// What requests work out of that snapshot.
    pub(crate) scans: Arc<SnapshotScans>,
    /// What facts did since that snapshot.
    pending: Vec<PendingFact>,
}

/// What one fact did to the model.
#[derive(Debug)]
pub(crate) struct PendingFact {
    pub(crate) applied: Applied,
    /// What routes that change by it are said to change for.
    pub(crate) cause: Option<Cause>,
}

impl Facts {
    pub(crate) fn new(rules: SizeRules, latency: LatencySettings, now: Timestamp) -> Self {
        let mut model = Model::new(rules);
        model.configure_latency(latency);
        let snapshot = model.publish(now);
        Self { model, snapshot, scans: Arc::default(), pending: Vec::new() }
    }

    /// Takes a fact in; the snapshot stays as it is.
    pub(crate) fn apply(&mut self, change: Change, now: Timestamp) -> Result<(), ModelError> {
        let cause = Cause::of(&change);
        let applied = self.model.apply(change, now)?;
        if applied != Applied::Quiet {
            self.pending.push(PendingFact { applied, cause });
        }
        Ok(())
    }

    /// Whether facts came since the snapshot whose consequences are still to be drawn.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Makes the model's present the snapshot: the snapshot before it, and what came between the two.
    pub(crate) fn publish(&mut self, now: Timestamp) -> (Arc<Snapshot>, Vec<PendingFact>) {
        let before = std::mem::replace(&mut self.snapshot, self.model.publish(now));
        self.scans = Arc::default();
        (before, std::mem::take(&mut self.pending))
    }
}
