//! A policy of the registry on a trace, to its end.

use crate::yarn::{Progress, SimCluster, SimRun, simulate};
use crate::{JobModel, RunReport, SimSettings, TraceJob};
use hintd_policy::adapt::dispatcher_of;
use hintd_policy::{Policy, registry};
use std::ops::ControlFlow;
use toml::de::DeTable;

/// The policy of that name, with parameters as TOML.
pub(super) fn policy(name: &str, params: &str) -> Result<Box<dyn Policy>, String> {
    let entry = registry::find(name).ok_or_else(|| format!("no policy is called {name}"))?;
    let table = DeTable::parse(params).map_err(|error| format!("{params}: {error}"))?;
    let policy = (entry.build)(table).map_err(|error| error.to_string())?;
    policy.prepare();
    Ok(policy)
}

/// The report of a run in which every job fits.
pub(super) fn replay(
    policy: &dyn Policy,
    cluster: &SimCluster,
    model: &JobModel,
    settings: &SimSettings,
    jobs: &[TraceJob],
) -> Result<RunReport, String> {
    let dispatch = dispatcher_of(policy).ok_or_else(|| format!("{} can't dispatch", policy.name()))?;
    let places = policy.as_place_data();
    let run = SimRun { cluster, model, settings, policy: policy.name(), dispatch: &dispatch, places };
    let mut to_the_end = |_: Progress| ControlFlow::Continue(());
    let report = simulate(&run, &mut jobs.iter().cloned().map(Ok), &mut to_the_end).map_err(chain)?;
    if report.never_fit_count > 0 {
        return Err(format!("{} jobs do not fit the cluster: {:?}", report.never_fit_count, report.never_fit));
    }
    Ok(report)
}

fn chain(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
