//! All runs of a comparison, several at once, results in a fixed order.

use super::super::failure::Failure;
use super::super::output::Output;
use super::inputs::{self, Trace};
use super::policies::Chosen;
use super::progress::{Interrupt, ProgressState};
use hintd_policy::DynDispatch;
use hintd_policy::plan::{self, Objective};
use hintd_simulator::capacity::HintedYarn;
use hintd_simulator::deployed::Deployed;
use hintd_simulator::yarn::{Progress, SimCluster, SimError, SimRun, forecast, simulate};
use hintd_simulator::{Authority, JobModel, NEVER_FIT_SHOWN, RunReport, SimSettings, TraceJob};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

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
        let interrupt = Interrupt::listen()?;
        let board = ProgressState::new(self.cases.len(), self.trace.facts.jobs);
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Result<RunReport, Failure>>>> =
            Mutex::new(std::iter::repeat_with(|| None).take(self.cases.len()).collect());
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= self.cases.len() || interrupt.came() || board.failed() {
                    break;
                }
                let result = self.one(at, &board, &interrupt);
                board.ended(at, result.is_err());
                results.lock().expect("no holder of this lock panics: it only stores")[at] = Some(result);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.threads.clamp(1, self.cases.len().max(1))).map(|_| scope.spawn(work)).collect();
            board.show(output, || workers.iter().all(std::thread::ScopedJoinHandle::is_finished), |at| self.name(at));
        });
        let results = results.into_inner().expect("the scope has joined every thread");
        let reports = results.into_iter().map(Option::transpose).collect::<Result<Vec<_>, _>>()?;
        let interrupted =
            interrupt.came() && reports.iter().any(|report| report.as_ref().is_none_or(|r| r.unfinished > 0));
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
        let plan = planner.plan(&problem).map_err(|error| Failure::in_file(&self.trace.path, error))?;
        Ok(Some(Arc::new(plan)))
    }

    fn one(&self, at: usize, board: &ProgressState, interrupt: &Interrupt) -> Result<RunReport, Failure> {
        let case = self.cases[at];
        let chosen = &self.policies[case.policy];
        let plan = self.planned(chosen, case.seed)?;
        let settings = SimSettings { seed: case.seed, authority: case.authority, plan, ..self.settings.clone() };
        let policy = chosen.dispatcher()?;
        let deployed = chosen.deployed(self.cluster, &settings)?;
        let yarn = chosen.yarn(&policy, &settings).filter(|_| deployed.is_none());
        let dispatch: &dyn DynDispatch = match (&deployed, &yarn) {
            (Some(deployed), _) => deployed,
            (None, Some(yarn)) => yarn,
            (None, None) => &policy,
        };
        let run = SimRun {
            cluster: self.cluster,
            model: self.model,
            settings: &settings,
            policy: chosen.name,
            dispatch,
            places: chosen.places(),
        };
        let mut jobs = self.trace.jobs()?;
        let mut watch = |progress: Progress| {
            board.note(at, progress.done, progress.now);
            if interrupt.came() || board.failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if self.threads == 1 {
            forget_peak();
        }
        let began = Instant::now();
        let report = simulate(&run, &mut jobs, &mut watch).map_err(|error| self.failure(at, error))?;
        let hints = yarn.filter(HintedYarn::hints).map(|yarn| yarn.outcome());
        let hints = hints.or_else(|| deployed.filter(Deployed::hints).map(|deployed| deployed.outcome()));
        let (wall_s, peak_rss_bytes) = (began.elapsed().as_secs_f64(), peak_rss_bytes());
        Ok(RunReport { wall_s, peak_rss_bytes, hints, ..report })
    }

    fn failure(&self, at: usize, error: SimError) -> Failure {
        match error {
            SimError::Trace(error) => inputs::in_trace(&self.trace.path, error),
            SimError::Settings { .. } | SimError::Model(_) => Failure::Input(error.to_string()),
            other => Failure::work(format!("{}: {other}", self.name(at))),
        }
    }
}

/// Lets the kernel measure peaks anew, where it can: with one thread, a peak then is the run's and not that of those
/// before it.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5"); // not on this kernel: peaks are the process's
}

/// Peak resident memory of the process, bytes; 0 where the system does not say.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")).and_then(|number| number.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
