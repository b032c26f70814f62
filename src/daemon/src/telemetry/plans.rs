//! Metrics of plans: whether one is in force, how old it is, and how it is followed.

use super::registry::Metrics;
use hintd_policy::plan::PlanCounts;
use metrics::Gauge;
use std::time::Duration;

pub(super) const PLAN_IN_FORCE: &str = "hintd_plan_in_force";
pub(super) const PLAN_AGE: &str = "hintd_plan_age_seconds";
pub(super) const PLAN_LEFT: &str = "hintd_plan_left_seconds";
pub(super) const PLAN_FOLLOWED: &str = "hintd_plan_followed";
pub(super) const REPLICAS: &str = "hintd_replicas_total";
pub(super) const INPUT_HOMES: &str = "hintd_input_homes_total";
pub(super) const HOMED_CONTAINERS: &str = "hintd_homed_containers_total";

/// Of what [`PLAN_FOLLOWED`] tells, in the order of [`figures`].
const WHAT: [&str; 6] = ["followed", "missed", "expected", "unplanned", "released", "deviating"];

const fn figures(counts: &PlanCounts) -> [u32; 6] {
    let PlanCounts { followed, missed, expected, unplanned, released, deviating } = *counts;
    [followed, missed, expected, unplanned, released, deviating]
}

/// Records plans.
#[derive(Clone)]
pub struct PlanMetrics {
    in_force: Gauge,
    age: Gauge,
    left: Gauge,
    followed: [Gauge; 6],
}

impl Metrics {
    /// Counts an answer to a question for replicas; `reason` is one of a closed list.
    pub fn replicas_advised(&self, reason: &'static str) {
        self.counter(REPLICAS, &[("reason", reason)]).add(1);
    }

    /// Counts an answer to a question for homes of an application's input; `reason` is one of a closed list.
    pub fn input_homes(&self, reason: &'static str) {
        self.counter(INPUT_HOMES, &[("reason", reason)]).add(1);
    }

    /// Counts a container of a group that was told of homes of its input.
    pub fn homed_container(&self, at_home: bool) {
        self.counter(HOMED_CONTAINERS, &[("place", if at_home { "at_home" } else { "elsewhere" })]).add(1);
    }

    /// Handles for plans. All are there from now on: an alert finds 0, not nothing.
    pub fn plans(&self) -> PlanMetrics {
        PlanMetrics {
            in_force: self.gauge(PLAN_IN_FORCE, &[]),
            age: self.gauge(PLAN_AGE, &[]),
            left: self.gauge(PLAN_LEFT, &[]),
            followed: WHAT.map(|what| self.gauge(PLAN_FOLLOWED, &[("what", what)])),
        }
    }
}

impl PlanMetrics {
    /// The age of the plan in force and what is left of its horizon; `None`: none is.
    pub fn in_force(&self, plan: Option<(Duration, Duration)>) {
        self.in_force.set(if plan.is_some() { 1.0 } else { 0.0 });
        let (age, left) = plan.unwrap_or_default();
        self.age.set(age.as_secs_f64());
        self.left.set(left.as_secs_f64());
    }

    /// How it is followed, all policies together.
    pub fn followed(&self, counts: &PlanCounts) {
        for (gauge, count) in self.followed.iter().zip(figures(counts)) {
            gauge.set(f64::from(count));
        }
    }
}
