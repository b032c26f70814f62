//! The placer: one request and one generation to one proposal. Pure; runs on the worker pool.

use super::decision::{Decision, Mode, Refusal};
use super::generation::Generation;
use super::settings::SourceAges;
use crate::cluster::{HintRequest, Resource};
use crate::policy::Policy;
use crate::units::{Micros, NodeIdx, SchedulerKey, Timestamp};
use std::sync::Arc;

/// What decides.
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    /// The policy.
    pub policy: &'a dyn Policy,
    /// The default placement, for comparison.
    pub baseline: &'a dyn Policy,
    /// What the queue gets.
    pub mode: Mode,
    /// The name under which configuration or request chose the policy.
    pub name: &'a str,
}

/// Settings of the placer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacerSettings {
    /// Steps a search may take.
    pub steps: u64,
    /// Next best hosts named beside each hint's.
    pub fallbacks: usize,
    /// Whether the default placement is computed as well, time allowing.
    pub baseline: bool,
    /// Containers one request may ask for.
    pub containers_max: u64,
    /// Ages beyond which a source counts as old.
    pub max_age: SourceAges,
}

impl Default for PlacerSettings {
    fn default() -> Self {
        Self { steps: 100_000, fallbacks: 3, baseline: true, containers_max: 100_000, max_age: SourceAges::default() }
    }
}

/// A placement that waits for its commit. The caller sets [`Proposal::digest`], [`Proposal::conflicts`],
/// [`Proposal::elapsed`] and [`Proposal::last_try`]; the rest is the placer's.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// What was asked.
    pub request: Arc<HintRequest>,
    /// Stable hash of the request's body, for idempotency.
    pub digest: u64,
    /// Commits that lost before this one.
    pub conflicts: u32,
    /// Time from receipt to now.
    pub elapsed: Micros,
    /// There will be no further proposal: what finds no room any more is advised without a lease.
    pub last_try: bool,
    /// Generation it was computed on.
    pub generation: u64,
    pub(crate) draft: Decision,
    pub(crate) rows: Vec<Row>,
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

/// Decides where the containers of `request` should go.
///
/// # Errors
/// [`Refusal`] where the request can't be answered by hints.
#[allow(clippy::unimplemented, unused_variables)] // skeleton
pub fn propose(
    generation: &Generation,
    request: &Arc<HintRequest>,
    chosen: &Chosen<'_>,
    settings: &PlacerSettings,
    now: Timestamp,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Proposal, Refusal> {
    unimplemented!()
}

impl Proposal {
    /// The decision as it would be, without leases: what-if.
    #[must_use]
    pub fn preview(&self) -> Decision {
        self.draft.clone()
    }
}
