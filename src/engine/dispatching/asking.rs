//! Requests that are answered at once, of applications that wait for nothing here: where a plan is in force they take their
//! place in it, and are placed by it.

use super::desk::Desk;
use super::view;
use crate::cluster::HintRequest;
use crate::engine::engine::Engine;
use crate::engine::plans::{KeptPlan, PlannedRun, run_key, stage_of};
use crate::policy::Policy;
use crate::units::{AttemptId, Timestamp};
use std::sync::Arc;

/// A request that is to be answered at once.
#[derive(Clone)]
pub struct Asks {
    attempt: AttemptId,
    key: Arc<str>,
    /// Maps and reduces.
    tasks: [u32; 2],
    policy: Arc<dyn Policy>,
    /// The policy's name.
    name: Arc<str>,
    /// Its run takes its place in the plan; else it is only looked which that would be.
    takes: bool,
}

/// How much a request counts in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Its run takes its place, and its tasks are the run's.
    All,
    /// Its run takes its place; its tasks were asked for before.
    Place,
    /// Nothing of it does: what-if.
    Nothing,
}

impl Asks {
    /// What to ask the engine of a request that is answered at once by a policy that follows plans; how it stands where
    /// the engine need not be asked: the request has no key.
    pub fn of(
        request: &HintRequest,
        plan: &KeptPlan,
        (policy, name): (&Arc<dyn Policy>, &str),
        counts: Counts,
    ) -> Result<Self, PlannedRun> {
        let key = run_key(request, Some(plan)).ok_or_else(|| PlannedRun::without_key(plan))?;
        let mut tasks = [0_u32; 2];
        for group in request.groups.iter().filter(|_| counts == Counts::All) {
            let sum = &mut tasks[stage_of(&group.role) as usize];
            *sum = sum.saturating_add(group.count);
        }
        let (policy, name, takes) = (Arc::clone(policy), name.into(), counts != Counts::Nothing);
        Ok(Self { attempt: request.attempt, key, tasks, policy, name, takes })
    }
}

impl Engine {
    /// How the run of a request that is answered at once stands to the plan in force; `None`: there is none, or its policy
    /// follows none.
    pub fn ask_plan(&mut self, asks: &Asks, now: Timestamp) -> Option<PlannedRun> {
        let plan = Arc::clone(self.dispatching.plan.as_ref()?);
        if !self.dispatching.desks.contains_key(&asks.name) {
            let desk = self.new_desk((&asks.policy, &asks.name), now).ok()?;
            self.dispatching.desks.insert(Arc::clone(&asks.name), desk);
        }
        let view = view(&self.snapshot, &self.ledger, now);
        let desk = self.dispatching.desks.get_mut(&asks.name)?;
        let ask = |desk: &mut Desk| desk.ask((asks.attempt, &asks.key), asks.tasks, &view);
        let (stand, until) = if asks.takes { ask(desk) } else { ask(&mut desk.clone()) }?;
        let patience = self.settings.plans.patience;
        Some(PlannedRun::new(&plan, stand, until.map(|until| Some(until?.plus(patience)))))
    }
}
