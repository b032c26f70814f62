//! All runs of a comparison, in a fixed order.

use super::super::failure::Failure;
use super::super::output::Output;
use super::inputs::{self, Trace};
use super::policies::Chosen;
use super::pool::{Pool, RunWatch};
use super::single::Single;
use hintd_policy::Budget;
use hintd_policy::plan::{self, Objective, PLAN_WORK};
use hintd_simulator::yarn::{SimCluster, forecast};
use hintd_simulator::{Authority, JobModel, NEVER_FIT_SHOWN, RunReport, SimSettings, TraceJob};
use std::sync::Arc;

/// What is run.
pub(super) struct Plan<'a> {
    pub(super) cluster: &'a SimCluster,
    pub(super) model: &'a JobModel,
    /// But for authority and seed.
    pub(super) settings: &'a SimSettings,
    pub(super) trace: &'a Trace,
    pub(super) policies: &'a [Chosen],
    /// What policies that plan are to keep small; none: they do not plan.
    pub(super) objective: Option<Objective>,
    pub(super) cases: Vec<Case>,
    pub(super) threads: usize,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    /// Position among the policies.
    pub(super) policy: usize,
    pub(super) authority: Authority,
    pub(super) seed: u64,
}

/// Every combination, in the order of results.
pub(super) fn cases(policies: usize, authorities: &[Authority], seeds: &[u64]) -> Vec<Case> {
    let one = |policy| {
        let of_authority = move |&authority| seeds.iter().map(move |&seed| Case { policy, authority, seed });
        authorities.iter().flat_map(of_authority)
    };
    (0..policies).flat_map(one).collect()
}

/// What the runs gave; `None` for those that were not begun.
pub(super) struct Runs {
    pub(super) reports: Vec<Option<RunReport>>,
    interrupted: bool,
}

impl Runs {
    /// Whether every run ended by itself.
    pub(super) fn complete(&self) -> bool {
        !self.interrupted
    }

    /// What happened that is no error, and that nobody should overlook.
    pub(super) fn warnings(&self) -> Vec<String> {
        let Some(report) = self.reports.iter().flatten().find(|report| report.never_fit_count > 0) else {
            return vec![];
        };
        let shown = report.never_fit.iter().take(NEVER_FIT_SHOWN.min(3)).map(String::as_str).collect::<Vec<_>>();
        let more = if report.never_fit_count > shown.len() as u64 { ", ..." } else { "" };
        let jobs =
            if report.never_fit_count == 1 { "1 job".to_owned() } else { format!("{} jobs", report.never_fit_count) };
        vec![format!("warning: {jobs} could never fit and did not run: {}{more}", shown.join(", "))]
    }

    /// Done, or the failure that an interrupt is.
    pub(super) fn finish(&self, cases: usize) -> Result<(), Failure> {
        if self.complete() {
            return Ok(());
        }
        let whole = self.reports.iter().flatten().filter(|report| report.unfinished == 0).count();
        Err(Failure::work(format!("interrupted: {whole} of {cases} runs ended")))
    }
}

impl Plan<'_> {
    /// Runs all cases, up to so many threads at a time.
    ///
    /// # Errors
    /// That of the first case, in their order, which failed.
    pub(super) fn run(&self, output: Output) -> Result<Runs, Failure> {
        let pool = Pool { runs: self.cases.len(), jobs: self.trace.facts.jobs, threads: self.threads };
        let pooled = pool.run(output, |at| self.name(at), |at, watch| self.one(at, watch))?;
        let reports = pooled.results;
        let interrupted =
            pooled.interrupted && reports.iter().any(|report| report.as_ref().is_none_or(|r| r.unfinished > 0));
        Ok(Runs { reports, interrupted })
    }

    /// A run in words, as `nas, seed 3`.
    pub(super) fn name(&self, at: usize) -> String {
        let case = self.cases[at];
        let authority = match case.authority {
            Authority::Policy => "",
            Authority::Hints => " by hints",
            Authority::Deployed => " as deployed",
        };
        format!("{}{authority}, seed {}", self.policies[case.policy].name, case.seed)
    }

    /// The plan that the policy makes of the whole trace, erring in nothing.
    fn planned(&self, chosen: &Chosen, seed: u64) -> Result<Option<Arc<plan::Plan>>, Failure> {
        let (Some(objective), Some(planner)) = (self.objective, chosen.planner()) else { return Ok(None) };
        let jobs: Result<Vec<TraceJob>, _> = self.trace.jobs()?.collect();
        let jobs = jobs.map_err(|error| inputs::in_trace(&self.trace.path, error))?;
        let expected = forecast::expected_jobs(&jobs, self.model);
        let no_network = || Failure::Input("no network joins the cluster's racks".to_owned());
        let problem = forecast::problem(self.cluster, expected, objective, None, None, seed).ok_or_else(no_network)?;
        let mut never = || false; // who waits for it presses Ctrl-C twice
        let plan = planner
            .plan(&problem, &mut Budget::with_work(0, PLAN_WORK, &mut never))
            .map_err(|error| Failure::in_file(&self.trace.path, error))?;
        Ok(Some(Arc::new(plan)))
    }

    fn one(&self, at: usize, watch: &RunWatch<'_>) -> Result<RunReport, Failure> {
        let case = self.cases[at];
        let chosen = &self.policies[case.policy];
        let plan = self.planned(chosen, case.seed)?;
        let settings = SimSettings { seed: case.seed, authority: case.authority, plan, ..self.settings.clone() };
        let single = Single {
            cluster: self.cluster,
            model: self.model,
            settings: &settings,
            trace: self.trace,
            chosen,
            places: chosen.places(),
            only: self.threads == 1,
        };
        single.run(watch, || self.name(at))
    }
}
