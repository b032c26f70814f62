//! A placement that waits for its commit.

use crate::adherence::Trial;
use crate::decision::Decision;
use crate::dispatching::{DispatchRequest, ImmediateRequest};
use crate::flows::ProposedFlows;
use crate::proof::Proof;
use crate::worth::Part;
use hintd_model::cluster::{Dataset, HintRequest, Resource};
use hintd_model::units::{DecisionId, Micros, NodeIdx, SchedulerKey};
use std::sync::Arc;

/// A placement that waits for its commit. The caller sets [`Proposal::decision`], [`Proposal::digest`], [`Proposal::proof`],
/// [`Proposal::conflicts`], [`Proposal::elapsed`], [`Proposal::at_once`], [`Proposal::part`] and [`Proposal::last_try`]; the rest is the placer's.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// What was asked.
    pub request: Arc<HintRequest>,
    /// Id that the caller drew from [`Engine::next_decision`](crate::Engine::next_decision) on; `None`: the
    /// engine gives one.
    pub decision: Option<DecisionId>,
    /// Stable hash of the request's body, for idempotency.
    pub digest: u64,
    /// What its sender shows.
    pub proof: Proof,
    /// Commits that lost before this one.
    pub conflicts: u32,
    /// Time from receipt to now.
    pub elapsed: Micros,
    /// There will be no further proposal: what finds no room any more is advised without a lease.
    pub last_try: bool,
    /// Generation it was computed on.
    pub generation: u64,
    /// Set by the caller: what the application is in the comparison of hinted and held-out ones; `None`: it takes no part.
    pub part: Option<Part>,
    pub(crate) draft: Decision,
    pub(crate) rows: Vec<Row>,
    pub(crate) flows: Option<ProposedFlows>,
    /// What it takes to cost where its containers really go.
    pub(crate) trial: Option<Box<Trial>>,
    /// Input paths that were found.
    pub(crate) read: Vec<Arc<Dataset>>,
    /// Set by the caller where the request's run is to take its place in the plan that it is placed by.
    pub at_once: Option<Box<ImmediateRequest>>,
    /// The engine is to have a dispatcher decide.
    pub(crate) waits: Option<Box<DispatchRequest>>,
}

/// Containers of one hint.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) group: usize,
    pub(crate) node: NodeIdx,
    pub(crate) count: u32,
    pub(crate) size: Resource,
    pub(crate) key: SchedulerKey,
    pub(crate) lease: bool,
}

impl Proposal {
    /// The decision as it would be, without leases: what-if.
    #[must_use]
    pub fn preview(&self) -> Decision {
        Decision { conflicts: self.conflicts, elapsed: self.elapsed, ..self.draft.clone() }
    }

    /// Whether a dispatcher is to decide, in the engine.
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Containers that want a lease.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.rows.iter().filter(|row| row.lease).map(|row| u64::from(row.count)).sum()
    }
}
