//! Plans of recurring jobs: what operators do with them, on the engine's thread.

use super::super::command::{Command, EngineHandle, PlanCall, PlanProgress, Reply, RolledBack};
use super::{EngineThread, store_failed};
use hintd_engine::plans::KeptPlan;
use hintd_engine::{Effects, PlanChange, PlanView, Refusal};
use hintd_model::units::{Micros, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

/// Changes of plans on their way to the disk. One at a time: what is worked out stands on what is durable, so that
/// nothing is to be taken back where the journal fails, and nobody ever follows a plan that a crash would lose.
pub(in crate::runtime) struct PlanChangeQueue {
    engine_handle: EngineHandle,
    /// What waits for the journal.
    under_way: Option<(PlanChange, PendingPlanChange)>,
    /// What came meanwhile.
    waiting: VecDeque<PlanCall>,
    /// The plan in force, once its end was told: itself, for another may come by its name.
    expired: Option<Arc<KeptPlan>>,
}

/// Calls that wait for a change before theirs: operators are few, a disk that hangs is slow.
const WAITING_MAX: usize = 64;

/// Who asked for a change, and for what.
enum PendingPlanChange {
    Kept { name: String, origin: &'static str, reply: Reply<Result<PlanView, Refusal>> },
    Activated { name: String, reply: Reply<Result<PlanView, Refusal>> },
    RolledBack { from: Option<Arc<str>>, to: Option<Arc<str>>, reply: Reply<Result<RolledBack, Refusal>> },
    Removed { name: String, reply: Reply<Result<(), Refusal>> },
}

impl PlanChangeQueue {
    /// Before any change; of the plan in force it is known whether it has expired.
    pub(in crate::runtime) fn new(engine_handle: EngineHandle, in_force: Option<&PlanView>, now: Timestamp) -> Self {
        let expired = in_force.map(|view| &view.kept).filter(|plan| plan.has_expired(now)).cloned();
        Self { engine_handle, under_way: None, waiting: VecDeque::new(), expired }
    }

    /// Whether nobody waits for a change.
    pub(in crate::runtime) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// Puts a call behind those that wait, or refuses it where too many do.
    fn wait(&mut self, call: PlanCall) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(call);
        } else {
            call.refuse(Refusal::Unavailable {
                message: format!("{WAITING_MAX} changes of plans wait for the journal"),
                retry_after: Micros::from_secs(1),
            });
        }
    }

    /// Tells, once, that the plan in force guides no new runs any more.
    pub(in crate::runtime) fn look(&mut self, in_force: Option<&PlanView>, now: Timestamp) {
        let ended = in_force.filter(|view| view.expired).map(|view| &view.kept);
        if let Some(kept) = ended
            && !self.expired.as_ref().is_some_and(|told| Arc::ptr_eq(told, kept))
        {
            let ago_s = now.since(kept.plan.until).as_secs_f64();
            tracing::info!(plan = %kept.name, ago_s, "the plan in force has expired: it takes no more runs");
        }
        self.expired = ended.cloned();
    }
}

impl EngineThread {
    /// Does something with plans. What changes anything is in force, and answered, when it is durable.
    pub(in crate::runtime) fn plans(&mut self, call: PlanCall, now: Timestamp) {
        let changes = &mut self.plan_changes;
        match call {
            // The caller's deadline passed, perhaps while it waited: nothing is changed for nobody.
            call if call.is_closed() => {}
            PlanCall::List(reply) => drop(reply.send(self.engine.plans(now))),
            PlanCall::Progress { name, reply } => drop(reply.send(self.plan_progress(&name, now))),
            PlanCall::Runs(reply) => drop(reply.send(self.engine.runs())),
            call if !self.pending_batches.healthy() => call.refuse(store_failed()),
            call if changes.under_way.is_none() => self.change_plans(call, now),
            call => changes.wait(call),
        }
    }

    fn plan_progress(&mut self, name: &str, now: Timestamp) -> Option<PlanProgress> {
        let view = self.engine.plans(now).into_iter().find(|view| *view.kept.name == *name)?;
        let in_force = view.in_force_since.is_some();
        Some((view, if in_force { self.engine.plan_progress(now) } else { Vec::new() }))
    }

    /// Works a change out and sends it to the disk.
    fn change_plans(&mut self, call: PlanCall, now: Timestamp) {
        let (found, asked) = match call {
            PlanCall::Keep { name, examined, replace, origin, reply } => {
                let found = self.engine.plan_kept(&name, examined, (replace, origin), now);
                (found, PendingPlanChange::Kept { name, origin, reply })
            }
            PlanCall::Activate { name, replace, reply } => {
                (self.engine.plan_activated(&name, replace, now), PendingPlanChange::Activated { name, reply })
            }
            PlanCall::RollBack { to_none, reply } => {
                let found = self.engine.plan_rolled_back(to_none, now);
                let from = self.engine.plan_in_force(now).map(|view| Arc::clone(&view.kept.name));
                let to = found.as_ref().ok().and_then(PlanChange::in_force);
                (found, PendingPlanChange::RolledBack { from, to, reply })
            }
            PlanCall::Remove { name, reply } => {
                (self.engine.plan_removed(&name), PendingPlanChange::Removed { name, reply })
            }
            PlanCall::List(_) | PlanCall::Progress { .. } | PlanCall::Runs(_) => return, // they change nothing
        };
        match found {
            Err(refusal) => asked.refuse(refusal),
            Ok(change) => {
                let effects = Effects { journal: change.ops().to_vec(), out: Vec::new() };
                let engine_handle = self.plan_changes.engine_handle.clone();
                self.plan_changes.under_way = Some((change, asked));
                let told = move |result: Result<(), Refusal>| engine_handle.tell(Command::PlansSettled(result.is_ok()));
                self.await_durable(effects, None, Box::new(told));
            }
        }
    }

    /// The change under way is durable, or is not.
    pub(in crate::runtime) fn plan_change_completed(&mut self, durable: bool, now: Timestamp) {
        let Some((change, asked)) = self.plan_changes.under_way.take() else { return };
        if durable {
            let changes = !change.ops().is_empty();
            self.engine.take_plans(change, now);
            self.publish(); // whoever hears of it finds it so
            if changes {
                asked.log();
            }
            let view = |name: &str| {
                let found = self.engine.plans(now).into_iter().find(|view| *view.kept.name == *name);
                found.expect("it was just kept or put in force")
            };
            asked.answer(view);
        } else {
            self.pending_batches.restore(self.engine.plans_as_before(&change));
            asked.refuse(store_failed());
        }
        while self.plan_changes.under_way.is_none()
            && let Some(next) = self.plan_changes.waiting.pop_front()
        {
            self.plans(next, now);
        }
    }
}

impl PendingPlanChange {
    fn answer(self, view: impl FnOnce(&str) -> PlanView) {
        match self {
            Self::Kept { name, reply, .. } | Self::Activated { name, reply } => drop(reply.send(Ok(view(&name)))),
            Self::RolledBack { from, to, reply } => drop(reply.send(Ok((from, to)))),
            Self::Removed { reply, .. } => drop(reply.send(Ok(()))),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Kept { reply, .. } | Self::Activated { reply, .. } => drop(reply.send(Err(refusal))),
            Self::RolledBack { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Removed { reply, .. } => drop(reply.send(Err(refusal))),
        }
    }

    fn log(&self) {
        let or_none = |name: &Option<Arc<str>>| name.as_deref().unwrap_or("none").to_owned();
        match self {
            Self::Kept { name, origin, .. } => tracing::info!(plan = %name, origin, "a plan was kept"),
            Self::Activated { name, .. } => tracing::info!(plan = %name, "a plan is in force"),
            Self::RolledBack { from, to, .. } => {
                tracing::info!(from = %or_none(from), to = %or_none(to), "the plan in force was rolled back");
            }
            Self::Removed { name, .. } => tracing::info!(plan = %name, "a plan was removed"),
        }
    }
}

impl PlanCall {
    /// Nobody waits for what comes of it.
    fn is_closed(&self) -> bool {
        match self {
            Self::Keep { reply, .. } | Self::Activate { reply, .. } => reply.is_closed(),
            Self::RollBack { reply, .. } => reply.is_closed(),
            Self::Remove { reply, .. } => reply.is_closed(),
            Self::List(reply) => reply.is_closed(),
            Self::Progress { reply, .. } => reply.is_closed(),
            Self::Runs(reply) => reply.is_closed(),
        }
    }

    /// Nobody's disk takes it.
    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Keep { reply, .. } | Self::Activate { reply, .. } => drop(reply.send(Err(refusal))),
            Self::RollBack { reply, .. } => drop(reply.send(Err(refusal))),
            Self::Remove { reply, .. } => drop(reply.send(Err(refusal))),
            Self::List(_) | Self::Progress { .. } | Self::Runs(_) => {} // they change nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::{self, error::TryRecvError};

    #[test]
    fn a_number_of_changes_wait_and_more_are_refused() {
        let mut changes = PlanChangeQueue::new(EngineHandle::new().0, None, Timestamp(0));
        let mut ask = || {
            let (reply, answer) = oneshot::channel();
            changes.wait(PlanCall::Remove { name: "monday".to_owned(), reply });
            answer
        };
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| ask()).collect();
        assert!(matches!(ask().try_recv(), Ok(Err(Refusal::Unavailable { .. }))));
        assert!(waiting.iter_mut().all(|answer| answer.try_recv() == Err(TryRecvError::Empty)));
        assert_eq!(changes.waiting.len(), WAITING_MAX);
    }
}
