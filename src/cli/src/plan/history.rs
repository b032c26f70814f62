//! `hintctl plan --history`: the jobs of a horizon predicted from jobs that finished, which a trace tells of.

use super::{Files, Jobs, MakeArgs, kept, planned, read_trace, tell, write};
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, ValueEnum};
use hintd::server::convert::plan_forecast;
use hintd_engine::plans::none_expected;
use hintd_engine::prediction::{PredictionSettings, forecast};
use hintd_model::units::{Micros, Timestamp};
use hintd_simulator::JobModel;
use hintd_simulator::yarn::forecast::{InputPaths, KeyRule, finished_runs, input_paths};
use std::path::PathBuf;

/// What finished, and how jobs are known again.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// Jobs that finished, as a trace: those that recur are predicted from them, and planned. Their times are seconds since
    /// 1970, unless --began says otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["daemon", "trace"])]
    pub(super) history: Option<PathBuf>,
    /// When the history's times begin, seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0, conflicts_with_all = ["daemon", "trace"])]
    began: u64,
    /// How a job is known from run to run
    #[arg(long, value_enum, default_value_t = KeysArg::Derived, conflicts_with_all = ["daemon", "trace"])]
    keys: KeysArg,
}

/// What a job's key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeysArg {
    /// Name and input path, with dates, long numbers and ids left out
    Derived,
    /// The name as it stands
    Names,
}

/// Unless --horizon says otherwise.
const HORIZON: Micros = Micros::from_secs(86_400);

/// A history that ended so long before the plan begins is none of it, or its times are none since 1970.
const LONG_AGO: Micros = Micros::from_secs(28 * 86_400);

pub(super) fn make(args: &MakeArgs, files: Files<'_>, output: Output) -> Result<(), Failure> {
    let history = files.jobs;
    let HistoryArgs { began, keys, .. } = args.history;
    // Times that the trace leaves out are the model's, without noise: else that would be all that errors tell of.
    let model = JobModel { sigma: 0.0, ..JobModel::default() };
    let trace = read_trace(history, args.trace_options.options(), &model, output)?;
    let began = Timestamp(0).plus(Micros::from_secs(began));
    let (rule, input_paths) = match keys {
        KeysArg::Derived => (KeyRule::Derived, InputPaths::new()), // keys have them
        KeysArg::Names => (KeyRule::Name, input_paths(&trace)),
    };
    let runs = finished_runs(&trace, &model, began, rule);
    let ended = began.plus(trace.last().map_or(Micros::ZERO, |job| job.submit)).plus(Micros(1));
    let from = args.start.unwrap_or(ended);
    let horizon = args.horizon.unwrap_or(HORIZON);
    let settings = PredictionSettings { zone_offset_s: args.chart.utc_offset, ..PredictionSettings::default() };
    let found = forecast(&runs, from, from.plus(horizon), &settings);
    let rests_on = plan_forecast(&found.keys, &found.errors);
    output.progress(&kept::in_words(&rests_on));
    if found.jobs.is_empty() {
        let why = none_expected(&found.keys, &settings);
        let old = from.since(ended) > LONG_AGO;
        let hint = if old { "; it ended long before: its times count from --began, which is 1970 else" } else { "" };
        return Err(Failure::Input(format!("{}: {why}{hint}", history.display())));
    }
    let mut jobs = found.jobs;
    jobs.iter_mut().for_each(|job| job.arrival = Timestamp(job.arrival.since(from).0));
    let prediction_error = (found.errors.runs > 0).then_some(found.errors.mean);
    let (horizon, start) = (Some(horizon), Some(from));
    let jobs = Jobs { of: history, jobs, input_paths, horizon, start, prediction_error };
    let (plan, facts) = planned(args, files.cluster, jobs)?;
    write(args, files.plan, &plan)?;
    tell(files.plan, &plan, Some(&rests_on), &facts, output)
}
