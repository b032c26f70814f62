//! One run, measured.

use super::super::failure::Failure;
use super::inputs::{self, Trace};
use super::policies::Chosen;
use super::pool::RunWatch;
use hintd_policy::{DynDispatch, PlaceData};
use hintd_simulator::capacity::HintedYarn;
use hintd_simulator::deployed::Deployed;
use hintd_simulator::yarn::{Progress, SimCluster, SimError, SimRun, simulate};
use hintd_simulator::{JobModel, RunReport, SimSettings};
use std::time::Instant;

/// All that a run hangs on.
pub(crate) struct Single<'a> {
    pub(crate) cluster: &'a SimCluster,
    pub(crate) model: &'a JobModel,
    /// With authority and seed.
    pub(crate) settings: &'a SimSettings,
    pub(crate) trace: &'a Trace,
    pub(crate) chosen: &'a Chosen,
    /// Who says where data goes; none: HDFS by itself.
    pub(crate) places: Option<&'a dyn PlaceData>,
    /// Whether no other run is under way, so that a peak of memory is this one's.
    pub(crate) only: bool,
}

impl Single<'_> {
    /// Replays the trace; `name` says the run in words.
    ///
    /// # Errors
    /// [`Failure::Input`] for a trace, policy or settings that are wrong, [`Failure::Work`] where the run breaks.
    pub(crate) fn run(&self, watch: &RunWatch<'_>, name: impl Fn() -> String) -> Result<RunReport, Failure> {
        let policy = self.chosen.dispatcher()?;
        let deployed = self.chosen.deployed(self.cluster, self.settings)?;
        let yarn = self.chosen.yarn(&policy, self.settings).filter(|_| deployed.is_none());
        let dispatch: &dyn DynDispatch = match (&deployed, &yarn) {
            (Some(deployed), _) => deployed,
            (None, Some(yarn)) => yarn,
            (None, None) => &policy,
        };
        let run = SimRun {
            cluster: self.cluster,
            model: self.model,
            settings: self.settings,
            policy: self.chosen.name,
            dispatch,
            places: self.places,
        };
        let mut jobs = self.trace.jobs()?;
        let mut note = |progress: Progress| watch.note(progress);
        if self.only {
            forget_peak();
        }
        let began = Instant::now();
        let report = simulate(&run, &mut jobs, &mut note).map_err(|error| self.failure(error, name))?;
        let hints = yarn.filter(HintedYarn::hints).map(|yarn| yarn.outcome());
        let hints = hints.or_else(|| deployed.filter(Deployed::hints).map(|deployed| deployed.outcome()));
        let (wall_s, peak_rss_bytes) = (began.elapsed().as_secs_f64(), peak_rss_bytes());
        Ok(RunReport { wall_s, peak_rss_bytes, hints, ..report })
    }

    fn failure(&self, error: SimError, name: impl Fn() -> String) -> Failure {
        match error {
            SimError::Trace(error) => inputs::in_trace(&self.trace.path, error),
            SimError::Settings { .. } | SimError::Model(_) => Failure::Input(error.to_string()),
            other => Failure::work(format!("{}: {other}", name())),
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
