//! What operators do with plans, and what policies that dispatch are told.

use super::kept::KeptPlan;
use super::{PlanSettings, Plans, ValidatedPlan, check_name};
use crate::dispatching::DispatchHandler;
use crate::effects::Counter;
use crate::engine::Engine;
use crate::journal::Op;
use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{RackIdx, Timestamp};
use hintd_policy::plan::{JobProgress, PlanCounts};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A plan as operators see it.
#[derive(Debug, Clone)]
pub struct PlanView {
    /// It, and what is known of it.
    pub kept: Arc<KeptPlan>,
    /// Since when it is in force, where it is.
    pub in_force_since: Option<Timestamp>,
    /// Rolling back would come to it.
    pub before: bool,
    /// No more jobs are expected by it.
    pub expired: bool,
    /// How it is followed, by policy; only of the one in force, and of policies that dispatch now.
    pub followed: Vec<(Arc<str>, PlanCounts)>,
}

/// A change of plans, worked out and not in force: it comes into force once the journal has it.
#[derive(Debug)]
pub struct PlanChange {
    /// All plans as they are with it.
    plans: Plans,
    /// What makes it durable; empty: it changes nothing.
    ops: Vec<Op>,
    /// What it is counted as, where it changes which plan is in force.
    guides: Option<Counter>,
}

impl PlanChange {
    /// What makes it durable.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The plan that is in force with it.
    #[must_use]
    pub fn in_force(&self) -> Option<Arc<str>> {
        self.plans.in_force().map(|(plan, _)| Arc::clone(&plan.name))
    }
}

impl Engine {
    /// A plan kept that was looked at, and nothing else changed.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for the name; [`Refusal::Plan`] where it is another plan's already, or too many are kept.
    pub fn plan_kept(
        &self,
        name: &str,
        examined: ValidatedPlan,
        (replace, origin): (bool, &str),
        now: Timestamp,
    ) -> Result<PlanChange, Refusal> {
        self.plan_reader().kept(name, examined, (replace, origin), now)
    }

    /// A kept plan put in force; `replace`: also where another is.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where it has expired, names racks without a usable node, or another is in
    /// force.
    pub fn plan_activated(&self, name: &str, replace: bool, now: Timestamp) -> Result<PlanChange, Refusal> {
        self.plan_reader().activated(name, replace, now)
    }

    /// The plan before the one in force put in force again, where it may still be, or none.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where none is in force.
    pub fn plan_rolled_back(&self, to_none: bool, now: Timestamp) -> Result<PlanChange, Refusal> {
        self.plan_reader().rolled_back(to_none, now)
    }

    /// A plan that is not in force forgotten.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where it is in force.
    pub fn plan_removed(&self, name: &str) -> Result<PlanChange, Refusal> {
        self.plan_reader().removed(name)
    }

    /// Takes a change in force that is durable. No other was taken since it was worked out.
    pub fn take_plans(&mut self, change: PlanChange, now: Timestamp) {
        self.plan_handler().take(change, now);
    }

    /// Rows as they are without a change that the journal did not take: written after its own, which may be on the disk
    /// all the same or come there late, they leave what holds.
    #[must_use]
    pub fn plans_as_before(&self, change: &PlanChange) -> Vec<Op> {
        self.plan_reader().as_before(change)
    }

    /// A kept plan.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] with the nearest name.
    pub fn plan(&self, name: &str) -> Result<Arc<KeptPlan>, Refusal> {
        self.plan_reader().state.plans.get(name).map(Arc::clone)
    }

    /// The plan in force, as operators see it.
    pub fn plan_in_force(&mut self, now: Timestamp) -> Option<PlanView> {
        self.plan_handler().in_force(now)
    }

    /// How far jobs of the plan in force are, by each policy that follows it.
    pub fn plan_progress(&mut self, now: Timestamp) -> Vec<(Arc<str>, Vec<JobProgress>)> {
        self.plan_handler().dispatch.dispatching.plan_progress(now)
    }

    /// All kept plans, by name.
    pub fn plans(&mut self, now: Timestamp) -> Vec<PlanView> {
        self.plan_handler().all(now)
    }
}

/// Plans, and how far policies know of them.
#[derive(Debug)]
pub(crate) struct PlanState {
    pub(crate) plans: Plans,
    /// Racks of the plan in force that had nodes when policies were told of it, or since.
    live_racks: BTreeSet<RackIdx>,
    /// When these were last looked for.
    looked_at: Timestamp,
}

impl PlanState {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { plans: Plans::default(), live_racks: BTreeSet::new(), looked_at: now }
    }

    /// The plan in force, unless nobody is to follow it.
    pub(crate) fn followed(&self, settings: &PlanSettings) -> Option<&Arc<KeptPlan>> {
        self.plans.in_force().map(|(plan, _)| plan).filter(|_| settings.follow)
    }
}

/// Works changes of plans out, and writes nothing.
pub(crate) struct PlanReader<'e> {
    pub(crate) state: &'e PlanState,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) settings: &'e PlanSettings,
}

impl PlanReader<'_> {
    fn kept(
        &self,
        name: &str,
        examined: ValidatedPlan,
        (replace, origin): (bool, &str),
        now: Timestamp,
    ) -> Result<PlanChange, Refusal> {
        check_name(name)?;
        let kept = KeptPlan::new(name.into(), examined.plan, now, origin, examined.warnings);
        let mut plans = self.state.plans.clone();
        let ops = plans.keep(kept, replace, self.settings.kept_max, now)?;
        Ok(PlanChange { plans, ops, guides: None })
    }

    fn activated(&self, name: &str, replace: bool, now: Timestamp) -> Result<PlanChange, Refusal> {
        fits(self.state.plans.get(name)?, self.snapshot, now)?;
        let mut plans = self.state.plans.clone();
        let ops = plans.activate(name, replace, now)?;
        let guides = (!ops.is_empty()).then_some(Counter::PlansActivated);
        Ok(PlanChange { plans, ops, guides })
    }

    fn rolled_back(&self, to_none: bool, now: Timestamp) -> Result<PlanChange, Refusal> {
        let mut plans = self.state.plans.clone();
        // A rack that died meanwhile is no reason to go on with what is to be left: its part goes as without a plan.
        let ops = plans.roll_back(to_none, now)?;
        Ok(PlanChange { plans, ops, guides: Some(Counter::PlansRolledBack) })
    }

    fn removed(&self, name: &str) -> Result<PlanChange, Refusal> {
        let mut plans = self.state.plans.clone();
        let ops = plans.remove(name)?;
        Ok(PlanChange { plans, ops, guides: None })
    }

    fn as_before(&self, change: &PlanChange) -> Vec<Op> {
        change.ops.iter().filter_map(|op| self.state.plans.row(op.key())).collect()
    }
}

/// Plans that come into force, and what policies that dispatch hear of them. Writes plans and what [`DispatchHandler`] may;
/// says that generations change.
pub(crate) struct PlanHandler<'e> {
    pub(crate) state: &'e mut PlanState,
    pub(crate) dispatch: DispatchHandler<'e>,
    pub(crate) changed: &'e mut bool,
}

impl PlanHandler<'_> {
    fn take(&mut self, change: PlanChange, now: Timestamp) {
        self.state.plans = change.plans;
        if let Some(counter) = change.guides {
            self.dispatch.effects.count(counter, 1);
            self.tell(now);
        }
    }

    fn in_force(&mut self, now: Timestamp) -> Option<PlanView> {
        let (kept, since) = self.state.plans.in_force().map(|(plan, since)| (Arc::clone(plan), since))?;
        let followed = self.dispatch.dispatching.plan_counts(now);
        let expired = kept.has_expired(now);
        Some(PlanView { kept, in_force_since: Some(since), before: false, expired, followed })
    }

    fn all(&mut self, now: Timestamp) -> Vec<PlanView> {
        let followed = self.dispatch.dispatching.plan_counts(now);
        let in_force = self.state.plans.in_force().map(|(plan, since)| (Arc::clone(plan), since));
        let view = |kept: &Arc<KeptPlan>| {
            let since = in_force.as_ref().filter(|(plan, _)| plan.name == kept.name).map(|(_, since)| *since);
            PlanView {
                kept: Arc::clone(kept),
                in_force_since: since,
                before: self.state.plans.is_before(&kept.name, now),
                expired: kept.has_expired(now),
                followed: if since.is_some() { followed.clone() } else { Vec::new() },
            }
        };
        self.state.plans.iter().map(view).collect()
    }

    fn followed(&self) -> Option<&Arc<KeptPlan>> {
        self.state.followed(&self.dispatch.settings.plans)
    }

    /// Policies hear which plan is in force, and the next generation carries it.
    pub(crate) fn tell(&mut self, now: Timestamp) {
        let plan = self.followed().cloned();
        self.state.live_racks = plan.as_ref().map(|plan| live_racks(plan, self.dispatch.snapshot)).unwrap_or_default();
        self.dispatch.follow(plan, now);
        *self.changed = true;
    }

    /// A rack of the plan that was dead or not heard of, after a restart all of them, has nodes: policies that gave it up
    /// hear of the plan again. To be called about once a second.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        if now.since(self.state.looked_at) < LOOK_EVERY {
            return;
        }
        self.state.looked_at = now;
        // Told anew, policies would take no more of an expired plan; what follows it goes on.
        let Some(plan) = self.followed().filter(|plan| !plan.has_expired(now)) else { return };
        let live = live_racks(plan, self.dispatch.snapshot);
        let back = live.difference(&self.state.live_racks).next().is_some();
        if back {
            self.tell(now);
        } else {
            self.state.live_racks = live;
        }
    }
}

/// Between two looks for racks of the plan in force that are back.
const LOOK_EVERY: hintd_model::units::Micros = hintd_model::units::Micros::from_secs(1);

/// Racks of the plan with a usable node.
fn live_racks(plan: &KeptPlan, snapshot: &Snapshot) -> BTreeSet<RackIdx> {
    let usable = |rack: &RackIdx| {
        let nodes = snapshot.statics.members.get(rack.at());
        nodes.is_some_and(|nodes| {
            nodes.iter().any(|node| snapshot.state.get(node.at()).is_some_and(|state| state.usable()))
        })
    };
    let racks = plan.plan.racks.iter().filter_map(|row| snapshot.statics.by_rack.get(&row.rack).copied());
    racks.filter(usable).collect()
}

/// Whether a plan may be in force now. It was examined when it was kept: what may have changed are racks and the time.
fn fits(plan: &KeptPlan, snapshot: &Snapshot, now: Timestamp) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::Plan { name: Arc::clone(&plan.name), why });
    if plan.has_expired(now) {
        let ago = now.since(plan.plan.until).in_words();
        return refuse(format!("has expired: its horizon ended {ago} ago"));
    }
    let live = live_racks(plan, snapshot);
    let dead = |row: &&hintd_policy::plan::PlannedRack| {
        snapshot.statics.by_rack.get(&row.rack).is_none_or(|rack| !live.contains(rack))
    };
    let gone: Vec<String> = plan.plan.racks.iter().filter(dead).map(|row| row.rack.to_string()).collect();
    match gone.len() {
        0 => Ok(()),
        count => {
            let named = gone.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            refuse(format!("names {count} racks without a usable node in the cluster now: {named}"))
        }
    }
}
