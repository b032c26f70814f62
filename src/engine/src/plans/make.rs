//! A plan of what is expected by the runs that finished here.

use crate::prediction::{Errors, KeyForecast, PredictionSettings, RecurrenceStatus, Runs, forecast_within};
use crate::refusal::Refusal;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{BitsPerSec, Timestamp};
use hintd_policy::plan::{Objective, PLAN_WORK, Plan, PlanError, PlanProblem, fabric_or, rack_rooms};
use hintd_policy::{Budget, Policy};
use std::sync::Arc;

/// What to plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRequest {
    /// Jobs expected from here on …
    pub from: Timestamp,
    /// … and before this.
    pub until: Timestamp,
    /// What to keep small.
    pub objective: Objective,
    /// Size of the containers that racks are counted in; none: YARN's smallest.
    pub unit: Option<Resource>,
    /// Capacity of a rack's uplinks where no network that joins racks is known; `None`: nothing is planned then.
    pub uplink: Option<BitsPerSec>,
    /// How runs are predicted.
    pub prediction: PredictionSettings,
    /// Seed of every random draw.
    pub seed: u64,
}

/// A plan, and what it rests on.
#[derive(Debug, Clone)]
pub struct GeneratedPlan {
    /// It.
    pub plan: Plan,
    /// Every key of which runs are known, ascending.
    pub keys: Vec<KeyForecast>,
    /// How far predictions of earlier runs were off.
    pub errors: Errors,
}

/// Keys by what they count as: recurring, too few runs, unsteady.
#[must_use]
pub fn recurrence_counts(keys: &[KeyForecast]) -> [usize; 3] {
    let count = |status: RecurrenceStatus| keys.iter().filter(|key| key.status == status).count();
    [RecurrenceStatus::Recurring, RecurrenceStatus::TooFew, RecurrenceStatus::Unsteady].map(count)
}

/// Why there is nothing to plan, though keys are known.
#[must_use]
pub fn none_expected(keys: &[KeyForecast], settings: &PredictionSettings) -> String {
    let [recur, few, unsteady] = recurrence_counts(keys);
    format!(
        "no run is expected: of {} jobs with known runs {recur} recur, {few} have too few runs (fewer than {}) and \
         {unsteady} are too unlike from run to run{}",
        keys.len(),
        settings.runs_min.max(2),
        if recur > 0 { "; those that recur have no run within the horizon" } else { "" }
    )
}

/// Predicts the jobs of a horizon and plans them on the racks that have usable nodes now. Takes as long as planning
/// does, until `stop` says to end it: not for a thread that others wait for.
///
/// # Errors
/// [`Refusal::Plan`] where no job is expected, none can be planned, or not all had racks when it was over;
/// [`Refusal::MissingFeed`] without nodes or
/// network; [`Refusal::Invalid`] for a policy that does not plan.
pub fn make(
    runs: &Runs,
    snapshot: &Snapshot,
    policy: &Arc<dyn Policy>,
    ask: &PlanRequest,
    stop: &mut dyn FnMut() -> bool,
) -> Result<GeneratedPlan, Refusal> {
    let mut budget = Budget::with_work(0, PLAN_WORK, stop);
    let refuse = |why: String| Refusal::Plan { name: Arc::default(), why };
    let Some(planner) = policy.as_plan() else {
        let message = format!("\"{}\" does not plan", policy.name());
        return Err(Refusal::Invalid { field: "policy".to_owned(), message });
    };
    let found = forecast_within(runs, (ask.from, ask.until), &ask.prediction, &budget);
    let over = || {
        refuse("predicting the jobs was ended: its time was over; a shorter horizon takes less of it, or plan.time may allow more".to_owned())
    };
    let found = found.ok_or_else(over)?;
    if found.jobs.is_empty() {
        return Err(refuse(none_expected(&found.keys, &ask.prediction)));
    }
    let missing = |feed: &'static str, message: &str| Refusal::MissingFeed { feed, message: message.to_owned() };
    let unit = ask.unit.unwrap_or(snapshot.rules.minimum);
    let racks = rack_rooms(snapshot, &unit);
    if racks.is_empty() {
        return Err(missing("heartbeats", "no rack has room for a container of that size"));
    }
    let unknown = "no network is known that joins the racks, and plan.uplink_bits_per_s says nothing in its place";
    let fabric = fabric_or(snapshot, ask.uplink).ok_or_else(|| missing("topology", unknown))?;
    let (errors, made) = (found.errors, ask.from);
    let PlanRequest { from, until, objective, seed, .. } = *ask;
    let prediction_error = (errors.runs > 0).then_some(errors.mean);
    let problem = PlanProblem { racks, fabric, jobs: found.jobs, objective, made, from, until, prediction_error, seed };
    let plan = planner.plan(&problem, &mut budget).map_err(|error| match error {
        PlanError::CutShort { .. } => refuse(format!("{error}, or plan.time may allow more")),
        _ => refuse(error.to_string()),
    })?;
    Ok(GeneratedPlan { plan, keys: found.keys, errors })
}
