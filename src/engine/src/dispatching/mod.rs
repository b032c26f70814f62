//! Dispatch in the daemon: waiting tasks of applications that follow, offered the nodes that report with room.
//!
//! # Code map
//! - `group`: one waiting group and how its tasks stand.
//! - `dispatcher_instance`: one dispatch policy in use, its State and its groups; every event and every offer goes through it.
//! - `planned`: a dispatcher instance and the plan in force.
//! - `request`: what a request wants, and ids of what is made of it later.
//! - `immediate`: requests that wait for nothing, and their runs in the plan in force.
//! - `detached`: a dispatcher instance as it was at one moment, for what-if and replay.
//! - `settings`: what operators set.
//! - `layout`: launches to hints, rows of leases and ask tables.
//! - `racks`: how busy racks are, from counters or from the model of running flows.
//! - `shuffles`: what jobs have shuffled, by rack.
//! - `deciding`: what a request comes to in an instance. `serve`: what requests and offers come to in the engine; `offers` leases and pushes it, `late` is for what waits
//!   too long, `dispatch_events` for task events, reports and ends of leases.
//!
//! # Invariants
//! - A launch takes its room when it is advised, by the check that every lease passes; it is journalled before it is
//!   pushed.
//! - A State hears of a task what became of it: each launch once, each end once, in order.
//! - Nothing is offered while nothing waits, and an offer costs what its policy's indexes cost.
//! - States live in memory. After a restart an application is told of the gap in its numbers and asks again.

mod announced;
mod deciding;
mod detached;
mod dispatch_events;
mod dispatcher_instance;
mod group;
pub(crate) mod immediate;
mod late;
mod layout;
mod offers;
mod planned;
mod racks;
pub(crate) mod request;
mod serve;
pub(crate) mod settings;
mod shuffles;

use crate::effects::Effects;
use crate::ledger::Ledger;
use crate::plans::kept::KeptPlan;
use crate::settings::EngineSettings;
use crate::{Answer, Decision};
pub use detached::DetachedDispatcher;
pub(crate) use detached::StoredDispatcher;
use dispatcher_instance::DispatcherInstance;
pub(crate) use group::Group;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, ContainerId, LeaseId, Micros, Timestamp};
use hintd_policy::dispatch::{TaskRef, View};
use hintd_policy::plan::{JobProgress, PlanCounts};
use racks::RackUses;
pub(crate) use request::{DispatchRequest, PUSHED, RequestedGroup, asked};
pub use request::{ImmediateRequest, is_pushed, late_of};
use request::{LATE, OFFER};
pub use settings::DispatchSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a group waits.
#[derive(Debug, Clone)]
struct NotYet {
    /// Stable token.
    reason: Arc<str>,
    /// For how long, where it can be told.
    expected_wait: Option<Micros>,
}

/// A task and the policy that dispatches it.
pub(crate) type DispatchedTask = (Arc<str>, TaskRef);

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Dispatching {
    /// By the policy's name.
    dispatchers: BTreeMap<Arc<str>, DispatcherInstance>,
    /// Leases that no container is known for.
    by_lease: BTreeMap<LeaseId, DispatchedTask>,
    by_container: BTreeMap<ContainerId, DispatchedTask>,
    /// Containers that nodes no longer report, until when the application may say how they ended.
    ending: BTreeSet<(Timestamp, ContainerId)>,
    /// How often in a row an attempt let leases expire, and when it did last.
    unused: BTreeMap<AttemptId, (u32, Timestamp)>,
    racks: RackUses,
    /// The plan in force.
    plan: Option<Arc<KeptPlan>>,
    /// Decisions that were pushed so far.
    pushed: u64,
    /// The dispatcher instance that decided last, as it was before, where the decision is to be recorded.
    apart: Option<Box<DetachedDispatcher>>,
}

/// What policies read of the engine, its dispatcher instances borrowed apart.
pub(crate) fn view<'a>(snapshot: &'a Snapshot, ledger: &'a Ledger, now: Timestamp) -> View<'a> {
    View { snapshot, leases: ledger.overlay(), now, explain: false }
}

/// Waiting tasks and their dispatchers, over the cluster and its leases as they are. Writes nothing but [`Dispatching`] and
/// effects; what is to be leased is returned.
pub(crate) struct DispatchHandler<'e> {
    pub(crate) dispatching: &'e mut Dispatching,
    pub(crate) ledger: &'e Ledger,
    pub(crate) snapshot: &'e Arc<Snapshot>,
    pub(crate) settings: &'e EngineSettings,
    pub(crate) effects: &'e mut Effects,
}

impl<'e> DispatchHandler<'e> {
    /// What policies read.
    fn view(&self, now: Timestamp) -> View<'e> {
        view(self.snapshot, self.ledger, now)
    }
}

impl Dispatching {
    /// Tasks that wait.
    pub(crate) fn waiting(&self) -> u64 {
        self.dispatchers.values().map(DispatcherInstance::waiting).sum()
    }

    fn is_idle(&self) -> bool {
        self.dispatchers.values().all(|dispatcher| dispatcher.waiting() == 0)
    }

    /// How the plan in force is followed, by policies that follow it.
    pub(crate) fn plan_counts(&mut self, now: Timestamp) -> Vec<(Arc<str>, PlanCounts)> {
        let dispatchers = self.dispatchers.iter_mut();
        dispatchers.filter_map(|(name, dispatcher)| Some((Arc::clone(name), dispatcher.plan_counts(now)?))).collect()
    }

    /// How far jobs of the plan in force are, by policies that follow it.
    pub(crate) fn plan_progress(&mut self, now: Timestamp) -> Vec<(Arc<str>, Vec<JobProgress>)> {
        let dispatchers = self.dispatchers.iter_mut();
        dispatchers.filter_map(|(name, dispatcher)| Some((Arc::clone(name), dispatcher.plan_progress(now)?))).collect()
    }

    /// Whether tasks of the answer's request still wait: who asks again for them must not get others.
    pub(crate) fn waits(&self, answer: &Answer) -> bool {
        let Decision { attempt, request, pending, .. } = &answer.decision;
        !pending.is_empty() && self.dispatchers.values().any(|dispatcher| dispatcher.holds(*attempt, request))
    }

    /// Whether the lease is of a task that goes back to waiting where its node is lost.
    pub(crate) fn holds(&self, lease: LeaseId) -> bool {
        self.by_lease.contains_key(&lease)
    }
}

/// Of a group that no node with room was offered.
const NO_ROOM: &str = "no_room";
/// Why an offer's hints and reasons are sent.
const CAUSE: &str = "offer";
