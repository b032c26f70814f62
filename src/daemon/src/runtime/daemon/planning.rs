//! The daemon's own planning: at its times, and when an operator asks.

use super::super::command::{Command, PlanCall};
use super::super::options::{Planning, When};
use super::Daemon;
use hintd_engine::plans::{GeneratedPlan, PlanRequest, make};
use hintd_engine::{Refusal, plans};
use hintd_model::units::{Calendar, Micros, Timestamp};
use hintd_policy::plan::Objective;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Between two looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const DAY: i64 = 86_400_000_000;

/// Plans at the configured times until the daemon stops.
pub(in crate::runtime) async fn run(daemon: Daemon) {
    let mut last = daemon.clock().now();
    let mut when = daemon.settings().planning.when;
    loop {
        tokio::select! {
            () = daemon.stopping().cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let planning = daemon.settings().planning.clone();
        let now = daemon.clock().now();
        if planning.when != when {
            // Who sets two o'clock at noon means the next one.
            (when, last) = (planning.when, now);
        }
        if !due(&planning, last, now) {
            continue;
        }
        last = now;
        match daemon.plan_ahead(&planning, now).await {
            Ok(name) => {
                daemon.metrics().add("plans_made", 1);
                tracing::info!(plan = %name, activated = planning.activate, "planned ahead");
            }
            Err(refusal) => {
                daemon.metrics().add("plans_failed", 1);
                tracing::warn!(%refusal, "nothing was planned ahead");
            }
        }
    }
}

/// Whether a time to plan has come since `last`.
fn due(planning: &Planning, last: Timestamp, now: Timestamp) -> bool {
    match planning.when {
        None => false,
        Some(When::Every(span)) => now.since(last) >= span,
        Some(When::At(time)) => {
            let zone = planning.prediction.zone_offset_s.saturating_mul(1_000_000);
            let time = i64::try_from(time.0).unwrap_or(0);
            let day = |at: Timestamp| {
                let local = i64::try_from(at.0).unwrap_or(i64::MAX).saturating_add(zone);
                local.saturating_sub(time).div_euclid(DAY)
            };
            // A clock that is set back plans nothing twice.
            day(now) > day(last)
        }
    }
}

/// `scheduled-20261122T020000Z`.
fn name_of(now: Timestamp) -> String {
    let Calendar { year, month, day, hour, minute, second } = now.calendar(0);
    format!("scheduled-{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

impl Daemon {
    /// Plans what is expected of a time from now on by the runs that finished here, with the configured settings where
    /// nothing else is given.
    ///
    /// # Errors
    /// As [`make`]; [`Refusal::Unknown`] for a policy that there is not; [`Refusal::Unavailable`].
    pub async fn make_plan(
        &self,
        horizon: Option<Micros>,
        policy: Option<&str>,
        objective: Option<Objective>,
    ) -> Result<GeneratedPlan, Refusal> {
        let settings = self.settings();
        let planning = &settings.planning;
        let name = policy.unwrap_or(planning.policy);
        let policy = settings.policies.built.get(name).map(Arc::clone).ok_or_else(|| {
            let nearest = hintd_model::solve::nearest(name, settings.policies.built.keys().copied()).map(str::to_owned);
            Refusal::Unknown { what: "policy", name: name.to_owned(), nearest }
        })?;
        let runs = self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Runs(reply))).await?;
        let (snapshot, from) = (Arc::clone(&self.generation().snapshot), self.clock().now());
        let ask = PlanRequest {
            from,
            until: from.plus(horizon.unwrap_or(planning.horizon)),
            objective: objective.unwrap_or(planning.objective),
            unit: planning.unit,
            uplink: planning.uplink,
            prediction: planning.prediction,
            seed: 1,
        };
        let (until, stopping) = (Instant::now() + planning.time, self.stopping().clone());
        // Who no longer waits for it ends it.
        let gone = CancellationToken::new();
        let _waits = gone.clone().drop_guard();
        let mut stop = move || stopping.is_cancelled() || gone.is_cancelled() || Instant::now() >= until;
        let made = tokio::task::spawn_blocking(move || make(&runs, &snapshot, &policy, &ask, &mut stop)).await;
        made.unwrap_or_else(|_| {
            let message = "planning ended in a panic".to_owned();
            Err(Refusal::Unavailable { message, retry_after: Micros::from_secs(1) })
        })
    }

    /// Makes a plan, keeps it, and puts it in force where that is wanted: its name.
    async fn plan_ahead(&self, planning: &Planning, now: Timestamp) -> Result<String, Refusal> {
        let made = self.make_plan(None, None, None).await?;
        let name = name_of(now);
        let (called, generation, looked_at) = (name.clone(), self.generation(), self.clock().now());
        let plan = Arc::new(made.plan);
        let examined =
            tokio::task::spawn_blocking(move || plans::validate_plan(&called, plan, &generation.snapshot, looked_at))
                .await;
        let examined = examined.unwrap_or_else(|_| {
            let message = "checking the plan ended in a panic".to_owned();
            Err(Refusal::Unavailable { message, retry_after: Micros::from_secs(1) })
        })?;
        self.keep_plan(&name, examined, true, plans::SCHEDULE).await?;
        if planning.activate {
            self.activate_plan(&name, true).await?;
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_engine::prediction::PredictionSettings;

    fn planning(when: Option<When>, zone_offset_s: i64) -> Planning {
        Planning {
            when,
            horizon: Micros::from_secs(86_400),
            policy: "jobpacker",
            objective: Objective::Online,
            time: Duration::from_secs(1),
            activate: false,
            unit: None,
            uplink: None,
            prediction: PredictionSettings { zone_offset_s, ..PredictionSettings::default() },
        }
    }

    #[test]
    fn a_time_of_day_comes_once_a_day_by_the_clusters_clock() {
        let hour = |hours: u64| Timestamp(0).plus(Micros::from_secs(hours * 3_600));
        let at_two = planning(Some(When::At(Micros::from_secs(2 * 3_600))), 0);
        let times: Vec<u64> = (1..72).filter(|&at| due(&at_two, hour(at - 1), hour(at))).collect();
        assert_eq!(times, [2, 26, 50]);
        let east = planning(Some(When::At(Micros::from_secs(2 * 3_600))), 3_600);
        let times: Vec<u64> = (1..72).filter(|&at| due(&east, hour(at - 1), hour(at))).collect();
        assert_eq!(times, [1, 25, 49]);
        assert!(due(&at_two, hour(1), hour(60)), "a daemon that slept plans once");
        assert!(!due(&at_two, hour(26), hour(20)), "a clock that went back");
        assert!(!due(&planning(None, 0), hour(0), hour(100)));
        let every = planning(Some(When::Every(Micros::from_secs(7_200))), 0);
        assert!(!due(&every, hour(5), hour(6)) && due(&every, hour(5), hour(7)));
    }

    #[test]
    fn names_are_dates_and_sort_as_they_come() {
        for (seconds, name) in [
            (0, "scheduled-19700101T000000Z"),
            (951_868_799, "scheduled-20000229T235959Z"),
            (1_795_312_800, "scheduled-20261122T020000Z"),
        ] {
            assert_eq!(name_of(Timestamp(0).plus(Micros::from_secs(seconds))), name);
        }
    }
}
