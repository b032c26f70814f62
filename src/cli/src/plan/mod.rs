//! `hintctl plan`: racks for recurring jobs ahead of time: made, checked, compared, drawn.
//!
//! A plan is made as a file that people review. `kept` talks to the daemon that keeps it and puts it in force.

mod gantt;
mod history;
pub(crate) mod kept;
pub(crate) mod objective;

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::files;
use super::new_file::ReplaceArg;
use super::output::{self, Output};
use super::policy;
use super::simulate::{ContainerArgs, TraceArgs, cluster, in_trace, skipped, unpacked};
use crate::plots::provenance::Provenance;
use clap::{Args, Subcommand};
use hintd::config::{UPLINK_MIN, utc_offset};
use hintd_client::wire::v1::PlanForecast;
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};
use hintd_policy::plan::{
    Defect, ExpectedJob, Facts, HORIZON_MAX, Objective, PLAN_WORK, Plan, PlanProblem, check, diff, nothing_planned,
};
use hintd_policy::{Budget, Policy, registry};
use hintd_simulator::shape::Joined;
use hintd_simulator::yarn::forecast::{InputPaths, expected_jobs, input_paths, problem, rack_rooms};
use hintd_simulator::{JobModel, TraceFacts, TraceJob, TraceOptions, TraceReader};
use objective::ObjectiveArg;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A plan made of a trace, or what to do with plans that are there.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:\n  \
    hintctl plan --trace FB-2010.tsv.gz --jobs 1000 --cluster jobpacker --policy jobpacker -o plan.json --gantt plan.svg\n  \
    hintctl plan --trace jobs.jsonl --cluster jobpacker --policy corral --objective batch -o corral.json\n  \
    hintctl plan --trace jobs.jsonl --cluster cluster.json --start now --horizon 24h -o plan.json\n  \
    hintctl plan --history weeks.jsonl --cluster cluster.json --start now --horizon 24h -o plan.json\n  \
    hintctl plan check plan.json --cluster jobpacker\n  \
    hintctl plan diff plan.json corral.json\n  \
    hintctl plan --daemon --horizon 24h -o plan.json --gantt plan.svg\n  \
    hintctl plan submit plan.json --name monday\n  \
    hintctl plan activate monday\n\n\
    A trace's jobs are planned as if each were expected exactly so, as recurring jobs of their names; times count from\n\
    the trace's start unless --start says when that is: only such plans can be put in force. Of a history's jobs those that\n\
    recur are predicted. The same command writes the same bytes, unless --start lies ahead.")]
pub struct PlanArgs {
    #[command(subcommand)]
    command: Option<PlanCommand>,
    #[command(flatten)]
    make: MakeArgs,
}

/// What to do with plans.
#[derive(Debug, Subcommand)]
enum PlanCommand {
    /// What is wrong with a plan: by itself, and on a cluster
    #[command(
        after_help = "Examples:\n  hintctl plan check plan.json\n  hintctl plan check plan.json --cluster jobpacker\n\n\
        Exit code 2 if anything is wrong, one line for each."
    )]
    Check(CheckArgs),
    /// How one plan differs from another
    #[command(after_help = "Example:\n  hintctl plan diff today.json tomorrow.json\n\n\
        Times of jobs count from each plan's beginning, so that a day's plan can be compared with the next.")]
    Diff(DiffArgs),
    /// Hand a plan to the running daemon, which keeps it under a name
    Submit(kept::SubmitArgs),
    /// Plans that the running daemon keeps: state, age, horizon
    #[command(after_help = "Example:\n  hintctl plan list")]
    List,
    /// One of them: what it forecasts, how it is followed
    Show(kept::ShowArgs),
    /// Put one of them in force
    Activate(kept::ActivateArgs),
    /// Put the plan before the one in force in force again, or none
    Rollback(kept::RollBackArgs),
    /// Forget one that is not in force
    Remove(kept::RemoveArgs),
}

/// What to plan.
#[derive(Debug, Args)]
struct MakeArgs {
    /// What the running daemon expects on its cluster from now on, by runs that finished there; needs no trace
    #[arg(long, conflicts_with_all = ["trace", "cluster", "start", "params", "seed"])]
    daemon: bool,
    /// The jobs: SWIM's rows or JSON lines, gzip or not
    #[arg(long, value_name = "FILE", required_unless_present_any = ["daemon", "history"])]
    trace: Option<PathBuf>,
    #[command(flatten)]
    history: history::HistoryArgs,
    /// The cluster: a shipped one by name, a shape, or a whole cluster document
    #[arg(long, value_name = "FILE|NAME", required_unless_present = "daemon")]
    cluster: Option<String>,
    /// What a rack's uplinks take together, where the cluster has no network (a plain Hadoop's snapshot), as the daemon's
    /// plan.uplink_bits_per_s
    #[arg(long, value_name = "BITS", conflicts_with = "daemon", value_parser = clap::value_parser!(u64).range(UPLINK_MIN..))]
    uplink_bits_per_s: Option<u64>,
    /// The policy that plans [default: jobpacker; the daemon's plan.policy]
    #[arg(long)]
    policy: Option<String>,
    /// A parameter of the policy, as in its [policies.NAME] of the configuration: early_reduces=0.2,
    /// first_replica=evenly; repeatable
    #[arg(long = "param", value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// What to keep small [default: online; the daemon's plan.objective]
    #[arg(long, value_enum)]
    objective: Option<ObjectiveArg>,
    /// Plan jobs that are submitted within this time of the trace's start, as 24h, 90m or 1d; a bare number is hours
    /// [default: all; with --history 24h]
    #[arg(long, value_name = "TIME", value_parser = horizon)]
    horizon: Option<Micros>,
    /// When the trace begins, or what a history tells of, so that the plan can be put in force: `now`, or seconds since 1970
    /// [default: times count from the trace's start; the history's end]
    #[arg(long, value_name = "now|SECONDS", value_parser = start)]
    start: Option<Timestamp>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The plan
    #[arg(short, long, value_name = "FILE.json", required = true)]
    output: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceArg,
    #[command(flatten)]
    chart: ChartArgs,
    #[command(flatten)]
    trace_options: TraceArgs,
    #[command(flatten)]
    container: ContainerArgs,
}

/// A picture of the plan.
#[derive(Debug, Args)]
struct ChartArgs {
    /// Draw it as a Gantt chart as well
    #[arg(long, value_name = "FILE.svg")]
    gantt: Option<PathBuf>,
    /// The cluster's clock against UTC: times of the chart are by it, and a history's days and hours
    #[arg(long, value_name = "+HH:MM", default_value = "+00:00", value_parser = utc_offset, allow_hyphen_values = true)]
    utc_offset: i64,
}

impl ChartArgs {
    /// # Errors
    /// Where the chart would take the place of the plan's own file.
    fn is_not(&self, file: &Path) -> Result<(), Failure> {
        // Spelled otherwise, it is the same; links are not followed.
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match &self.gantt {
            Some(path) if whole(path) == whole(file) => {
                Err(Failure::Input(format!("--gantt {}: the plan itself is written there", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Draws the plan where that is wanted.
    fn draw(&self, plan: &Plan) -> Result<(), Failure> {
        let Some(path) = &self.gantt else { return Ok(()) };
        let facts = [("seed", plan.assumptions.seed.to_string())];
        files::write_text(path, &Provenance::of(facts).sign(&gantt::draw(plan, self.utc_offset)?)?)
    }
}

/// What to check.
#[derive(Debug, Args)]
struct CheckArgs {
    /// The plan
    plan: PathBuf,
    /// Also on this cluster: racks and their room
    #[arg(long, value_name = "FILE|NAME")]
    cluster: Option<String>,
    #[command(flatten)]
    chart: ChartArgs,
    #[command(flatten)]
    container: ContainerArgs,
}

/// What to compare.
#[derive(Debug, Args)]
struct DiffArgs {
    /// The plan before
    before: PathBuf,
    /// The plan after
    after: PathBuf,
}

/// A plan in a few figures.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    file: &'a Path,
    policy: &'a str,
    jobs: usize,
    heavy: usize,
    racks: usize,
    makespan_s: f64,
    mean_completion_s: f64,
    circuit_bytes: u64,
    /// Between racks: what could be on circuits.
    between_racks_bytes: u64,
    shuffle_bytes: u64,
    defects: Vec<String>,
    /// What keeps it from being put in force now, where that was asked.
    notes: Vec<String>,
    /// Time was over before all jobs' ends were forecast.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut_short: bool,
    /// Of a plan that the daemon made: how well each recurring job's runs were predicted, the worst first.
    #[serde(skip_serializing_if = "Option::is_none")]
    recurring_jobs: Option<serde_json::Value>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for files, names and parameters that are wrong, and for a plan that is; [`Failure::Work`] for a
/// file that can't be written.
pub fn run(args: &PlanArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let Some(command) = &args.command else {
        args.make.output.as_deref().map_or(Ok(()), |file| args.make.replace.check(file))?;
        if args.make.daemon {
            return kept::make(&args.make, daemon, output);
        }
        let MakeArgs { cluster: Some(cluster), output: Some(file), .. } = &args.make else {
            return Err(Failure::Input("plan: needs --cluster and --output".to_owned()));
        };
        return match (&args.make.trace, &args.make.history.history) {
            (_, Some(jobs)) => history::make(&args.make, Files { jobs, cluster, plan: file }, output),
            (Some(jobs), None) => make(&args.make, Files { jobs, cluster, plan: file }, output),
            (None, None) => Err(Failure::Input("plan: needs --trace or --history".to_owned())),
        };
    };
    match command {
        PlanCommand::Check(args) => {
            let plan = read(&args.plan)?;
            let racks = args.cluster.as_ref().map(|name| cluster(name, args.container, Joined::Somehow)).transpose()?;
            let racks = racks.map(|found| room(&rack_rooms(&found.cluster)));
            args.chart.is_not(&args.plan)?;
            args.chart.draw(&plan)?;
            let facts = Facts { racks, now: Some(now().map_err(Failure::work)?), policies: Some(registry::planners()) };
            tell(&args.plan, &plan, None, &facts, output)
        }
        PlanCommand::Diff(args) => {
            let found = diff(&read(&args.before)?, &read(&args.after)?);
            let text = if found.is_empty() { "no difference\n".to_owned() } else { found.to_string() };
            output.file(&found, &text)
        }
        PlanCommand::Submit(args) => kept::submit(args, daemon, output),
        PlanCommand::List => kept::list(daemon, output),
        PlanCommand::Show(args) => kept::show(args, daemon, output),
        PlanCommand::Activate(args) => kept::activate(args, daemon, output),
        PlanCommand::Rollback(args) => kept::roll_back(args, daemon, output),
        PlanCommand::Remove(args) => kept::remove(args, daemon, output),
    }
}

/// What a plan is made from and where it goes.
#[derive(Debug, Clone, Copy)]
struct Files<'a> {
    /// The trace, or the history.
    jobs: &'a Path,
    /// A file or a shipped one's name.
    cluster: &'a str,
    /// What is written.
    plan: &'a Path,
}

fn make(args: &MakeArgs, files: Files<'_>, output: Output) -> Result<(), Failure> {
    let model = JobModel::default();
    let read = read_trace(files.jobs, args.trace_options.options(), &model, output)?;
    let (jobs, input_paths) = (expected_jobs(&read, &model), input_paths(&read));
    let (horizon, start) = (args.horizon, args.start);
    let jobs = Jobs { of: files.jobs, jobs, input_paths, horizon, start, prediction_error: None };
    let (plan, facts) = planned(args, files.cluster, jobs)?;
    write(args, files.plan, &plan)?;
    tell(files.plan, &plan, None, &facts, output)
}

/// Jobs to plan, and when.
struct Jobs<'a> {
    /// The file that they come from.
    of: &'a Path,
    /// Their times count from 0.
    jobs: Vec<ExpectedJob>,
    /// What they read, by key, where the key does not say it.
    input_paths: InputPaths,
    /// Until then; all of them.
    horizon: Option<Micros>,
    /// When that begins.
    start: Option<Timestamp>,
    prediction_error: Option<f64>,
}

/// The plan of these jobs on the cluster of that name, and what it can be checked against.
fn planned(args: &MakeArgs, name: &str, jobs: Jobs<'_>) -> Result<(Plan, Facts), Failure> {
    let name_of_policy = args.policy.as_deref().unwrap_or("jobpacker");
    let planner = planner(name_of_policy, &args.params)?;
    let objective: Objective = args.objective.unwrap_or(ObjectiveArg::Online).into();
    let found = cluster(name, args.container, Joined::Somehow)?;
    let uplink = args.uplink_bits_per_s.map(BitsPerSec);
    let until = jobs.horizon.map(|span| Timestamp(0).plus(span));
    let unknown = "no network joins its racks, and --uplink-bits-per-s says nothing in its place";
    let no_network = || Failure::Input(format!("cluster \"{name}\": {unknown}"));
    let problem = problem(&found.cluster, jobs.jobs, objective, until, uplink, args.seed);
    let mut problem = problem.ok_or_else(no_network)?;
    problem.prediction_error = jobs.prediction_error;
    if let Some(start) = jobs.start {
        begin(&mut problem, start, now().map_err(Failure::work)?);
    }
    if problem.jobs.is_empty() {
        let words = "no job is submitted within the horizon";
        return Err(Failure::Input(format!("{}: {words}", jobs.of.display())));
    }
    let cannot = || Failure::Input(format!("policy \"{name_of_policy}\" does not plan"));
    let mut never = || false; // it runs in the foreground
    let mut budget = Budget::with_work(0, PLAN_WORK, &mut never);
    let plan = planner.as_plan().ok_or_else(cannot)?.plan(&problem, &mut budget);
    let mut plan = plan.map_err(|error| Failure::Input(format!("{}: {error}", jobs.of.display())))?;
    for job in &mut plan.jobs {
        job.input_paths = jobs.input_paths.get(&job.job.key).into_iter().flatten().cloned().collect();
    }
    Ok((plan, Facts { racks: Some(room(&problem.racks)), ..Facts::default() }))
}

fn write(args: &MakeArgs, file: &Path, plan: &Plan) -> Result<(), Failure> {
    args.chart.is_not(file)?;
    args.replace.write(file, &plan.to_json())?;
    args.chart.draw(plan)
}

/// When the year 9999 ends, seconds since 1970.
const YEAR_9999: u64 = 253_402_300_799;

/// A moment: `now`, or seconds since 1970.
fn start(text: &str) -> Result<Timestamp, String> {
    if text == "now" {
        return now();
    }
    let seconds: u64 = text.parse().map_err(|_| format!("\"{text}\" is neither `now` nor seconds since 1970"))?;
    if seconds > YEAR_9999 {
        return Err(format!("{text} s after 1970 is beyond the year 9999: are these milliseconds?"));
    }
    Ok(Timestamp(0).plus(Micros::from_secs(seconds)))
}

/// This second.
fn now() -> Result<Timestamp, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    Ok(Timestamp(0).plus(Micros::from_secs(now.as_secs())))
}

/// Lets a problem whose times count from 0 begin then. It is made now; or then, if that has passed, for the same command
/// to write the same bytes.
fn begin(problem: &mut PlanProblem, start: Timestamp, now: Timestamp) {
    let later = |at: Timestamp| start.plus(at.since(Timestamp(0)));
    (problem.made, problem.from, problem.until) = (start.min(now), later(problem.from), later(problem.until));
    problem.jobs.iter_mut().for_each(|job| job.arrival = later(job.arrival));
}

/// A time with its unit: `90m`, `24h`, `1d`; a bare number is hours.
fn horizon(text: &str) -> Result<Micros, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" | "" => 3_600,
        "d" => 86_400,
        _ => return Err(format!("\"{text}\" is no time as 24h, 90m or 1d")),
    };
    let number: u64 = number.parse().map_err(|_| format!("\"{text}\" is no time as 24h, 90m or 1d"))?;
    let span = number.checked_mul(seconds).filter(|span| *span > 0 && Micros::from_secs(*span) <= HORIZON_MAX);
    span.map(Micros::from_secs).ok_or_else(|| format!("{text} is not from 1s to 366d"))
}

fn planner(name: &str, params: &[String]) -> Result<Box<dyn Policy>, Failure> {
    let form = |param: &String| Failure::Input(format!("--param {param}: not of the form KEY=VALUE"));
    let pairs = params.iter().map(|param| param.split_once('=').ok_or_else(|| form(param)));
    policy::built(name, &pairs.collect::<Result<Vec<_>, _>>()?, str::to_owned)
}

fn read_trace(trace: &Path, options: TraceOptions, model: &JobModel, output: Output) -> Result<Vec<TraceJob>, Failure> {
    let wrong = |error| in_trace(trace, error);
    let facts = TraceFacts::read(unpacked(trace)?, options, model).map_err(wrong)?;
    if let Some(warning) = skipped(trace, &facts) {
        output.progress(&warning);
    }
    TraceReader::new(unpacked(trace)?, options).collect::<Result<_, _>>().map_err(wrong)
}

fn read(path: &Path) -> Result<Plan, Failure> {
    let text = files::read_text(path)?;
    Plan::from_json(&text).map_err(|error| Failure::in_file(path, error))
}

fn room(racks: &[hintd_policy::plan::RackRoom]) -> BTreeMap<hintd_model::units::RackPath, u32> {
    racks.iter().map(|rack| (rack.rack.clone(), rack.containers)).collect()
}

/// The plan in a few figures; fails if anything is wrong with it.
fn tell(
    file: &Path,
    plan: &Plan,
    forecast: Option<&PlanForecast>,
    facts: &Facts,
    output: Output,
) -> Result<(), Failure> {
    let (mut notes, defects): (Vec<Defect>, Vec<Defect>) =
        check(plan, facts).into_iter().partition(Defect::only_bars_force);
    notes.extend(facts.now.and_then(|_| nothing_planned(plan)));
    let words = |found: Vec<Defect>| found.iter().map(ToString::to_string).collect::<Vec<String>>();
    let late = plan.jobs.iter().filter(|job| job.forecast.is_none()).count();
    let (circuit, between) = plan.circuit_bytes();
    let shuffle = plan.jobs.iter().map(|job| job.shuffle).fold(Bytes::ZERO, Bytes::saturating_add);
    let summary = Summary {
        file,
        policy: &plan.policy,
        jobs: plan.jobs.len(),
        heavy: plan.jobs.iter().filter(|job| job.heavy).count(),
        racks: plan.racks.len(),
        makespan_s: plan.makespan().as_secs_f64(),
        mean_completion_s: plan.mean_completion().as_secs_f64(),
        circuit_bytes: circuit.0,
        between_racks_bytes: between.0,
        shuffle_bytes: shuffle.0,
        defects: words(defects),
        notes: words(notes),
        cut_short: plan.cut_short,
        recurring_jobs: forecast.map(|forecast| output::sorted(&forecast.keys)).transpose()?,
    };
    output.result(&summary, || {
        let mut text = output::pairs(&[
            ("plan", format!("{} by {}", file.display(), summary.policy)),
            ("jobs", format!("{}, {} heavy, on {} racks", summary.jobs, summary.heavy, summary.racks)),
            ("makespan", output::seconds(summary.makespan_s)),
            ("mean completion", output::seconds(summary.mean_completion_s)),
            (
                "on circuits",
                format!("{} of {} between racks", output::bytes(circuit.as_f64()), output::bytes(between.as_f64())),
            ),
        ]);
        for note in &summary.notes {
            text.push_str(&format!("\nnote: {note}: the daemon would refuse it now"));
        }
        if plan.cut_short {
            text.push_str(&format!(
                "\nnote: the time or work for planning was over before {late} jobs' ends were forecast"
            ));
        }
        if let Some(forecast) = forecast {
            text.push_str(&format!("\n\n{}", kept::by_key(&forecast.keys)));
        }
        text
    })?;
    if summary.defects.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = summary.defects.iter().map(|defect| format!("{}: {defect}", file.display())).collect();
    Err(Failure::Input(lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_horizon_has_a_unit_or_is_in_hours() {
        for (text, seconds) in [("24h", 86_400), ("90m", 5_400), ("1d", 86_400), ("24", 86_400), ("45s", 45)] {
            assert_eq!(horizon(text), Ok(Micros::from_secs(seconds)), "{text}");
        }
        for text in ["", "h", "0h", "24 h", "-1h", "1.5h", "3w", "400d", "99999999999999999999h"] {
            assert!(horizon(text).is_err(), "{text}");
        }
    }
}
