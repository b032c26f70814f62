//! A move as it was told.

use super::round::ProposedMove;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{ContainerId, HostName, Timestamp};
use hintd_policy::advise::MovedPerformance;
use std::sync::Arc;

/// A container that would be better off elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct MoveNote {
    /// Which.
    pub container: ContainerId,
    /// Where it ran.
    pub from: HostName,
    /// Where to.
    pub to: HostName,
    /// As [`hintd_policy::advise::Move::gain`].
    pub gain: f64,
    /// The chain of middleboxes that most of its traffic is under; empty: none.
    pub chain: Arc<str>,
    /// Where its policy predicts it.
    pub performance: Option<MovedPerformance>,
    /// When it was told.
    pub at: Timestamp,
    /// Another of its kind has come up there.
    pub followed: bool,
}

impl MoveNote {
    /// In names.
    pub(super) fn of(step: &ProposedMove, snapshot: &Snapshot, at: Timestamp) -> Self {
        Self {
            container: step.container,
            from: snapshot.host(step.from).clone(),
            to: snapshot.host(step.to).clone(),
            gain: step.gain,
            chain: Arc::clone(&step.chain),
            performance: step.performance,
            at,
            followed: false,
        }
    }
}
