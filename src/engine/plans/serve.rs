//! The engine's side: what operators do with plans, and what policies that dispatch are told.

use super::{Examined, KeptPlan, check_name};
use crate::cluster::Snapshot;
use crate::engine::decision::Refusal;
use crate::engine::effects::Counter;
use crate::engine::engine::Engine;
use crate::engine::prediction::Runs;
use crate::policy::plan::PlanCounts;
use crate::units::{RackIdx, Timestamp};
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

impl Engine {
    /// Keeps a plan that was looked at, and changes nothing else.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for the name; [`Refusal::Plan`] where it is another plan's already, or too many are kept.
    pub fn keep_plan(
        &mut self,
        name: &str,
        examined: Examined,
        (replace, origin): (bool, &str),
        now: Timestamp,
    ) -> Result<(), Refusal> {
        check_name(name)?;
        let kept = KeptPlan::new(name.into(), examined.plan, now, origin, examined.warnings);
        let ops = self.plans.keep(kept, replace, self.settings.plans.kept_max, now)?;
        self.effects.journal.extend(ops);
        Ok(())
    }

    /// Puts a kept plan in force; `replace`: also where another is.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where it has expired, names racks without a usable node, or another is in
    /// force.
    pub fn activate_plan(&mut self, name: &str, replace: bool, now: Timestamp) -> Result<(), Refusal> {
        let plan = Arc::clone(self.plans.get(name)?);
        fits(&plan, &self.snapshot, now)?;
        let ops = self.plans.activate(name, replace, now)?;
        if !ops.is_empty() {
            self.effects.journal.extend(ops);
            self.effects.count(Counter::PlansActivated, 1);
            self.tell_plan(now);
        }
        Ok(())
    }

    /// Puts the plan before the one in force in force again, where it may still be, or none: which it is.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where none is in force.
    pub fn roll_back_plan(&mut self, to_none: bool, now: Timestamp) -> Result<Option<Arc<str>>, Refusal> {
        // A rack that died meanwhile is no reason to go on with what is to be left: its part goes as without a plan.
        let ops = self.plans.roll_back(to_none, |plan| !plan.has_expired(now))?;
        self.effects.journal.extend(ops);
        self.effects.count(Counter::PlansRolledBack, 1);
        self.tell_plan(now);
        Ok(self.plans.in_force().map(|(plan, _)| Arc::clone(&plan.name)))
    }

    /// Forgets a plan that is not in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`] where it is in force.
    pub fn remove_plan(&mut self, name: &str) -> Result<(), Refusal> {
        let ops = self.plans.remove(name)?;
        self.effects.journal.extend(ops);
        Ok(())
    }

    /// Runs of recurring jobs that finished here.
    #[must_use]
    pub fn runs(&self) -> Arc<Runs> {
        Arc::clone(self.run_book.runs())
    }

    /// A kept plan.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] with the nearest name.
    pub fn plan(&self, name: &str) -> Result<Arc<KeptPlan>, Refusal> {
        self.plans.get(name).map(Arc::clone)
    }

    /// All kept plans, by name.
    pub fn plans(&mut self, now: Timestamp) -> Vec<PlanView> {
        let followed = self.dispatching.plan_counts(now);
        let in_force = self.plans.in_force().map(|(plan, since)| (Arc::clone(plan), since));
        let view = |kept: &Arc<KeptPlan>| {
            let since = in_force.as_ref().filter(|(plan, _)| plan.name == kept.name).map(|(_, since)| *since);
            PlanView {
                kept: Arc::clone(kept),
                in_force_since: since,
                before: self.plans.is_before(&kept.name),
                expired: kept.has_expired(now),
                followed: if since.is_some() { followed.clone() } else { Vec::new() },
            }
        };
        self.plans.iter().map(view).collect()
    }

    /// Policies hear which plan is in force, and the next generation carries it.
    pub(in crate::engine) fn tell_plan(&mut self, now: Timestamp) {
        let plan = self.plans.in_force().map(|(plan, _)| Arc::clone(plan));
        self.planned_racks = plan.as_ref().map(|plan| live_racks(plan, &self.snapshot)).unwrap_or_default();
        self.dispatched_plan(plan, now);
        self.changed = true;
    }

    /// A rack of the plan that was dead or not heard of, after a restart all of them, has nodes: policies that gave it up
    /// hear of the plan again. To be called about once a second.
    pub(in crate::engine) fn tick_plans(&mut self, now: Timestamp) {
        if now.since(self.plans_looked_at) < LOOK_EVERY {
            return;
        }
        self.plans_looked_at = now;
        // Told anew, policies would take no more of an expired plan; what follows it goes on.
        let Some((plan, _)) = self.plans.in_force().filter(|(plan, _)| !plan.has_expired(now)) else { return };
        let live = live_racks(plan, &self.snapshot);
        let back = live.difference(&self.planned_racks).next().is_some();
        if back {
            self.tell_plan(now);
        } else {
            self.planned_racks = live;
        }
    }
}

/// Between two looks for racks of the plan in force that are back.
const LOOK_EVERY: crate::units::Micros = crate::units::Micros::from_secs(1);

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
    let dead = |row: &&crate::policy::plan::PlannedRack| {
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
