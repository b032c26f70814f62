//! A dispatcher and the plan in force: what it was told of plans and runs, and what it says of them.

use super::announced::{AnnouncedRun, AskedAtOnce, Planned};
use super::dispatcher_instance::{DispatcherInstance, GroupKey, dispatcher};
use crate::plans::{HintedContainers, KeptPlan, PlanNote, PlannedRun, stage_of};
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, Micros, NodeIdx, RequestId, Timestamp};
use hintd_policy::dispatch::{DispatchEvent, PlanReservation, ShuffleAdvice, ShuffleAsk, TaskRef, View};
use hintd_policy::plan::{Deviation, JobProgress, PlanCounts, RunPlanStatus};
use std::sync::Arc;

impl DispatcherInstance {
    /// The plan, and those of the runs that the policy was told of.
    pub(super) fn planned(&self, of: impl Fn(AttemptId) -> bool) -> Planned {
        let runs = self.planned.runs.iter().filter(|(attempt, _)| of(**attempt));
        let runs = runs.map(|(&attempt, run)| (attempt, run.clone())).collect();
        Planned { plan: self.planned.plan.clone(), runs }
    }

    /// Another plan is in force, or none.
    pub(super) fn follow(&mut self, plan: Option<Arc<KeptPlan>>, view: &View<'_>) {
        let told = plan.as_ref().map(|plan| Arc::clone(&plan.plan));
        self.planned.plan = plan;
        self.tell(&DispatchEvent::Plan(told), view);
    }

    /// How the attempt stands to the plan in force; `None`: there is none, or the policy follows none.
    fn plan_status(&mut self, attempt: AttemptId) -> Option<RunPlanStatus> {
        dispatcher(&self.policy).as_follows_plan()?.plan_status(&mut self.state, attempt)
    }

    /// How what was just hinted to the attempt stands to the plan in force; `None`: there is none, or the policy follows
    /// none.
    pub(super) fn note(
        &mut self,
        (attempt, request): (AttemptId, &RequestId),
        launched: &[(TaskRef, NodeIdx)],
        snapshot: &Snapshot,
    ) -> Option<PlanNote> {
        let plan = Arc::clone(self.planned.plan.as_ref()?);
        let stand = self.plan_status(attempt)?;
        let groups = &self.groups;
        let hinted = launched.iter().filter(|(task, _)| task.attempt == attempt).filter_map(|(task, node)| {
            let group = groups.get(&(attempt, Arc::clone(&task.group)))?;
            let hinted = HintedContainers { role: &group.told.role, node: *node, count: 1 };
            (group.request.id == *request).then_some(hinted)
        });
        Some(PlannedRun::new(&plan, stand, [None; 2]).note(hinted, snapshot))
    }

    /// The same of an ordinary placement of what waited for too long.
    pub(super) fn note_late<'a>(
        &mut self,
        attempt: AttemptId,
        hinted: impl Iterator<Item = HintedContainers<'a>>,
        snapshot: &Snapshot,
    ) -> Option<PlanNote> {
        let plan = Arc::clone(self.planned.plan.as_ref()?);
        let mut stand = self.plan_status(attempt)?;
        if stand.place.is_some() {
            stand.deviations.push(Deviation::WaitedTooLong); // the last of all, so that they stay in order
        }
        Some(PlannedRun::new(&plan, stand, [None; 2]).note(hinted, snapshot))
    }

    /// The attempt's place in the plan that the policy follows, where the policy times shuffles and knows the attempt.
    pub(super) fn times_shuffles_of(&mut self, attempt: AttemptId) -> Option<u32> {
        dispatcher(&self.policy).as_times_shuffles()?;
        self.of_attempt(attempt).next()?;
        self.plan_status(attempt)?.place
    }

    /// Whether what is gathered of a shuffle should start.
    pub(super) fn shuffle(&mut self, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        let times = dispatcher(&self.policy).as_times_shuffles();
        times.map_or(ShuffleAdvice::Start, |times| times.shuffle(&mut self.state, ask, view))
    }

    /// How the plan in force is followed.
    pub(super) fn plan_counts(&mut self, now: Timestamp) -> Option<PlanCounts> {
        dispatcher(&self.policy).as_follows_plan()?.plan_counts(&mut self.state, now)
    }

    /// How far each job of the plan in force is.
    pub(super) fn plan_progress(&mut self, now: Timestamp) -> Option<Vec<JobProgress>> {
        dispatcher(&self.policy).as_follows_plan()?.plan_progress(&mut self.state, now)
    }

    /// The attempt is a run of that job.
    pub(super) fn tell_run(&mut self, attempt: AttemptId, key: &Arc<str>, view: &View<'_>) {
        let known = self.planned.runs.get_mut(&attempt);
        if known.as_ref().is_some_and(|run| run.key == *key) {
            return;
        }
        match known {
            Some(run) => run.key = Arc::clone(key),
            None => drop(self.planned.runs.insert(attempt, AnnouncedRun { key: Arc::clone(key), asked: None })),
        }
        self.tell(&DispatchEvent::Run { attempt, key: Arc::clone(key) }, view);
    }

    /// How a run of the key stands, or would stand, to the plan in force.
    pub(super) fn preview_plan_status(
        &mut self,
        run: (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation> {
        dispatcher(&self.policy).as_follows_plan()?.preview_plan_status(&mut self.state, run, came, now)
    }

    /// A request of the run, which first asked at `came`, is answered at once: it takes its place.
    pub(super) fn ask(
        &mut self,
        (attempt, key): (AttemptId, &Arc<str>),
        came: Timestamp,
        tasks: [u32; 2],
        view: &View<'_>,
    ) {
        self.tell_run(attempt, key, view);
        if let Some(run) = self.planned.runs.get_mut(&attempt) {
            let asked = run.asked.get_or_insert(AskedAtOnce { came, tasks: [0; 2] });
            asked.tasks.iter_mut().zip(tasks).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        self.tell(&DispatchEvent::Asks { attempt, came, tasks }, view);
    }

    /// Until when the plan in force keeps the group's waiting tasks for its racks; `None`: it does not.
    pub(super) fn planned_until(&mut self, key: &GroupKey, patience: Micros) -> Option<Timestamp> {
        let stage = stage_of(&self.groups.get(key)?.told.role);
        let follows = dispatcher(&self.policy).as_follows_plan()?;
        Some(follows.planned_until(&mut self.state, key.0, stage)?.plus(patience))
    }
}
