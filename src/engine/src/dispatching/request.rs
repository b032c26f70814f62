//! Requests as dispatchers and plans see them, and the ids of what is made of them later.

use crate::plans::kept::KeptPlan;
use crate::plans::{PlannedRun, run_key, stage_of};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{AttemptId, DecisionId, Micros, RequestId};
use hintd_policy::Policy;
use hintd_policy::dispatch::WaitingGroup;
use std::sync::Arc;

/// What a request wants from a dispatcher: made on the pool, taken in by the engine.
#[derive(Clone)]
pub(crate) struct DispatchRequest {
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) name: Arc<str>,
    /// In the request's order.
    pub(crate) groups: Vec<RequestedGroup>,
    /// Of its hints.
    pub(crate) confidence: f64,
}

impl std::fmt::Debug for DispatchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits").field("policy", &self.name).field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// One group of it.
#[derive(Debug, Clone)]
pub(crate) struct RequestedGroup {
    pub(crate) waiting: WaitingGroup,
    /// Until there is room for one of its tasks, where it can be told.
    pub(crate) expected_wait: Option<Micros>,
}

/// A request that is to be answered at once, as plans see it.
#[derive(Clone)]
pub struct ImmediateRequest {
    pub(super) attempt: AttemptId,
    pub(super) key: Arc<str>,
    /// Maps and reduces that it is the first to ask for.
    pub(super) tasks: [u32; 2],
    pub(super) policy: Arc<dyn Policy>,
    /// The policy's name.
    pub(super) name: Arc<str>,
}

impl std::fmt::Debug for ImmediateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtOnce").field("attempt", &self.attempt).field("key", &self.key).finish_non_exhaustive()
    }
}

impl ImmediateRequest {
    /// Of a request under a policy that follows plans; `again`: its tasks were asked for before.
    ///
    /// # Errors
    /// How it stands, where the engine need not be asked: it has no key.
    pub fn of(
        request: &HintRequest,
        plan: &KeptPlan,
        (policy, name): (&Arc<dyn Policy>, &str),
        again: bool,
    ) -> Result<Self, Box<PlannedRun>> {
        let Some(key) = run_key(request, Some(plan)) else {
            return Err(Box::new(PlannedRun::without_key(plan)));
        };
        let mut tasks = [0_u32; 2];
        let new = if again { &[][..] } else { &request.groups[..] };
        for group in new {
            let sum = &mut tasks[stage_of(&group.role) as usize];
            *sum = sum.saturating_add(group.count);
        }
        Ok(Self { attempt: request.attempt, key, tasks, policy: Arc::clone(policy), name: name.into() })
    }
}

/// Whether the decision was made for a node that was offered, and not for a request.
pub const fn is_pushed(decision: DecisionId) -> bool {
    decision.number & PUSHED != 0
}

/// Decisions that are pushed have ids from here on, above those that requests draw.
pub(crate) const PUSHED: u64 = 1 << 31;
/// Between a request's id and the number of what was pushed of it later.
pub(super) const OFFER: &str = "/offer/";
/// Between a request's id and the number of an ordinary placement of what waited too long.
pub(super) const LATE: &str = "/late/";

/// The request that a lease's request was made of by an offer; any other is its own.
pub(crate) fn asked(id: &RequestId) -> &str {
    id.as_str().split_once(OFFER).map_or(id.as_str(), |(asked, _)| asked)
}

/// The request whose tasks an ordinary placement is for; `None`: it is none of that kind.
pub fn late_of(id: &RequestId) -> Option<&str> {
    id.as_str().split_once(LATE).map(|(asked, _)| asked)
}
