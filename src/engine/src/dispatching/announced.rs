//! What a dispatcher was told of plans and runs.

use crate::plans::KeptPlan;
use hintd_model::units::{AttemptId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plan and the runs that a policy was told of.
#[derive(Debug, Clone, Default)]
pub(super) struct Planned {
    pub(super) plan: Option<Arc<KeptPlan>>,
    /// Attempts that are runs of recurring jobs.
    pub(super) runs: BTreeMap<AttemptId, AnnouncedRun>,
}

/// A run that a policy was told of.
#[derive(Debug, Clone)]
pub(super) struct AnnouncedRun {
    pub(super) key: Arc<str>,
    /// What it asked for at once.
    pub(super) asked: Option<AskedAtOnce>,
}

/// What requests of a run asked for that were answered at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AskedAtOnce {
    /// When the run first asked.
    pub(super) came: Timestamp,
    /// Maps and reduces of all such requests.
    pub(super) tasks: [u32; 2],
}
