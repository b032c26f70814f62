//! Metrics of plans: whether one is in force, how old it is, and how it is followed.

use super::metrics::Metrics;
use crate::policy::plan::PlanCounts;
use metrics::Gauge;
use std::time::Duration;

pub(super) const PLAN_IN_FORCE: &str = "hintd_plan_in_force";
pub(super) const PLAN_AGE: &str = "hintd_plan_age_seconds";
pub(super) const PLAN_LEFT: &str = "hintd_plan_left_seconds";
pub(super) const PLAN_FOLLOWED: &str = "hintd_plan_followed";

/// Records plans.
#[derive(Clone)]
pub struct PlanMetrics {
    in_force: Gauge,
    age: Gauge,
    left: Gauge,
    metrics: Metrics,
}

impl Metrics {
    /// Handles for plans.
    pub fn plans(&self) -> PlanMetrics {
        PlanMetrics {
            in_force: self.gauge(PLAN_IN_FORCE, &[]),
            age: self.gauge(PLAN_AGE, &[]),
            left: self.gauge(PLAN_LEFT, &[]),
            metrics: self.clone(),
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
        let PlanCounts { followed, missed, expected, unplanned, released, deviating } = *counts;
        for (what, count) in [
            ("followed", followed),
            ("missed", missed),
            ("expected", expected),
            ("unplanned", unplanned),
            ("released", released),
            ("deviating", deviating),
        ] {
            self.metrics.gauge(PLAN_FOLLOWED, &[("what", what)]).set(f64::from(count));
        }
    }
}
