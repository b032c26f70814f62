//! Plans that the running daemon keeps: submitted, listed, put in force, rolled back.

use super::objective::ObjectiveArg;
use super::{ChartArgs, Facts, MakeArgs};
use crate::connect::{DaemonArgs, GATHERED_BYTES, block_on, gather};
use crate::failure::Failure;
use crate::files;
use crate::new_file::ReplaceArg;
use crate::output::{self, Output};
use clap::Args;
use hintd_client::wire::v1;
use hintd_policy::plan::Plan;
use serde_json::json;
use std::path::PathBuf;

/// What to keep.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl plan submit plan.json --name monday\n\n\
    The daemon checks it against its cluster and the time, and keeps it; nothing follows it before it is activated.")]
pub(super) struct SubmitArgs {
    /// The plan
    plan: PathBuf,
    /// Name that it is kept under: letters, digits, '.', '_' and '-'
    #[arg(long)]
    name: String,
    /// Instead of another plan of that name, unless that is in force
    #[arg(long)]
    replace: bool,
}

/// What to put in force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl plan activate monday\n  \
    hintctl plan activate tuesday --replace\n  hintctl plan activate tuesday --replace --file plan.json")]
pub(super) struct ActivateArgs {
    /// The plan's name
    name: String,
    /// Also where another plan is in force
    #[arg(long)]
    replace: bool,
    /// Submit this file under that name first
    #[arg(long, value_name = "FILE.json")]
    file: Option<PathBuf>,
}

/// What to go back to.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl plan rollback\n  hintctl plan rollback --to-none\n\n\
    To the last other plan before it that has not expired. Without such a plan none is in force then, which is said.")]
pub(super) struct RollBackArgs {
    /// To none, whatever was in force before
    #[arg(long)]
    to_none: bool,
}

/// What to look at.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl plan show monday\n  \
    hintctl plan show monday -o plan.json --gantt plan.svg")]
pub(super) struct ShowArgs {
    /// The plan's name
    name: String,
    /// Write it as it was submitted
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
    #[command(flatten)]
    replace: ReplaceArg,
    #[command(flatten)]
    chart: ChartArgs,
}

/// What to forget.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hintctl plan remove monday")]
pub(super) struct RemoveArgs {
    /// The plan's name; not the one in force
    name: String,
}

/// Bytes of a message that a plan is sent in.
const PIECE: usize = 256 * 1024;

pub(super) fn submit(args: &SubmitArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let plan = send(&args.plan, &args.name, args.replace, daemon)?;
    tell(&plan, output)
}

fn send(file: &std::path::Path, name: &str, replace: bool, daemon: &DaemonArgs) -> Result<v1::PlanView, Failure> {
    let text = files::read_text(file)?;
    Plan::from_json(&text).map_err(|error| Failure::in_file(file, error))?; // what is no plan is said with its file
    let mut pieces: Vec<v1::SubmitPlanRequest> = text
        .as_bytes()
        .chunks(PIECE)
        .map(|piece| v1::SubmitPlanRequest { json: piece.to_vec(), ..Default::default() })
        .collect();
    if let Some(first) = pieces.first_mut() {
        (first.name, first.replace) = (name.to_owned(), replace);
    }
    daemon.ask(async |mut admin| admin.submit_plan(tokio_stream::iter(pieces)).await)
}

/// A plan of what the daemon expects, as a file.
pub(super) fn make(args: &MakeArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let Some(file) = &args.output else {
        return Err(Failure::Input("plan: needs --output".to_owned()));
    };
    let objective = match args.objective {
        None => "",
        Some(ObjectiveArg::Batch) => "batch",
        Some(ObjectiveArg::Online) => "online",
    };
    let request = v1::MakePlanRequest {
        horizon_ms: args.horizon.map_or(0, |span| span.0.div_ceil(1_000)),
        policy: args.policy.clone().unwrap_or_default(),
        objective: objective.to_owned(),
    };
    let (text, forecast) = block_on(async {
        let pieces = daemon.operator().await?.make_plan(request).await?.into_inner();
        let mut forecast = None;
        let text = gather(pieces, GATHERED_BYTES, |piece| {
            forecast = forecast.take().or(piece.forecast);
            piece.json
        });
        Ok((text.await?, forecast.unwrap_or_default()))
    })?;
    let text = String::from_utf8(text).map_err(Failure::work)?;
    let plan = Plan::from_json(&text).map_err(Failure::work)?;
    args.chart.is_not(file)?;
    args.replace.write(file, &text)?;
    args.chart.draw(&plan)?;
    output.progress(&in_words(&forecast));
    super::tell(file, &plan, Some(&forecast), &Facts::default(), output)
}

/// What a plan rests on.
pub(super) fn in_words(forecast: &v1::PlanForecast) -> String {
    let v1::PlanForecast { recurring, too_few, unsteady, predicted_runs, mean_error, .. } = forecast;
    format!(
        "{recurring} recurring jobs, {too_few} with too few runs, {unsteady} too unlike from run to run; \
         {predicted_runs} runs predicted from earlier ones with a mean error of {:.1} %",
        100.0 * mean_error,
    )
}

/// Of the jobs that were predicted worst.
const KEYS_SHOWN: usize = 10;

/// How well each job's runs were predicted, as a table of the worst.
pub(super) fn by_key(keys: &[v1::KeyForecast]) -> String {
    let row = |key: &v1::KeyForecast| {
        let percent = |error: f64| match key.predicted_runs {
            0 => "-".to_owned(),
            _ => format!("{:.1} %", 100.0 * error),
        };
        let [mean, median] = [key.mean_error, key.median_error].map(percent);
        let known = [key.runs, key.predicted_runs].map(|runs| runs.to_string());
        let [runs, predicted] = known;
        [key.key.clone(), key.standing.clone(), runs, predicted, mean, median]
    };
    let table = output::table(
        ["recurring job", "counts as", "runs", "predicted", "mean error", "median error"],
        2,
        keys.iter().take(KEYS_SHOWN).map(row),
    );
    match keys.len().saturating_sub(KEYS_SHOWN) {
        0 => table,
        more => format!("{table}\n... and {more} more, all of them with --json"),
    }
}

pub(super) fn activate(args: &ActivateArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    if let Some(file) = &args.file {
        send(file, &args.name, args.replace, daemon)?;
    }
    let request = v1::ActivatePlanRequest { name: args.name.clone(), replace: args.replace };
    let plan = daemon.ask(async |mut admin| admin.activate_plan(request).await)?;
    tell(&plan, output)
}

pub(super) fn roll_back(args: &RollBackArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let request = v1::RollBackPlanRequest { to_none: args.to_none };
    let rolled = daemon.ask(async |mut admin| admin.roll_back_plan(request).await)?;
    output.sorted_answer(&rolled, |rolled| match rolled.to.as_str() {
        "" => format!("plan \"{}\" is deactivated; no plan is in force", rolled.from),
        to => format!("plan \"{}\" is deactivated; \"{to}\" is in force again", rolled.from),
    })
}

pub(super) fn remove(args: &RemoveArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let request = v1::RemovePlanRequest { name: args.name.clone() };
    daemon.ask(async |mut admin| admin.remove_plan(request).await)?;
    output.result(&json!({ "removed": args.name }), || format!("plan \"{}\" removed", args.name))
}

pub(super) fn show(args: &ShowArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let (plans, text) = block_on(async {
        let mut admin = daemon.operator().await?;
        let plans = admin.list_plans(v1::ListPlansRequest {}).await?.into_inner().plans;
        let pieces = admin.fetch_plan(v1::FetchPlanRequest { name: args.name.clone() }).await?.into_inner();
        Ok((plans, gather(pieces, GATHERED_BYTES, |piece| piece.json).await?))
    })?;
    let text = String::from_utf8(text).map_err(Failure::work)?;
    if let Some(file) = &args.output {
        args.chart.is_not(file)?;
        args.replace.write(file, &text)?;
    }
    if args.chart.gantt.is_some() {
        args.chart.draw(&Plan::from_json(&text).map_err(Failure::work)?)?;
    }
    let plan = plans.iter().find(|plan| plan.name == args.name);
    tell(plan.ok_or_else(|| Failure::work(format!("plan \"{}\" was removed meanwhile", args.name)))?, output)
}

pub(super) fn list(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let kept = daemon.ask(async |mut admin| admin.list_plans(v1::ListPlansRequest {}).await)?;
    output.sorted_answer(&kept, |kept| {
        let plans = &kept.plans;
        if plans.is_empty() {
            return "no plan is kept".to_owned();
        }
        let rows = plans.iter().map(|plan| {
            [
                plan.name.clone(),
                state(plan),
                plan.policy.clone(),
                plan.origin.clone(),
                plan.jobs.to_string(),
                plan.racks.to_string(),
                output::age(plan.age_ms),
                horizon(plan),
                left(plan),
            ]
        });
        output::table(["plan", "state", "policy", "from", "jobs", "racks", "age", "horizon", "left"], 4, rows)
    })
}

fn state(plan: &v1::PlanView) -> String {
    match (plan.state.as_str(), plan.expired, plan.before) {
        ("active", true, _) => "active, expired".to_owned(),
        ("active", false, _) => "active".to_owned(),
        (state, _, true) => format!("{state}, the one before"),
        (state, ..) => state.to_owned(),
    }
}

fn horizon(plan: &v1::PlanView) -> String {
    output::seconds(plan.until_ms.saturating_sub(plan.from_ms) as f64 / 1e3)
}

/// What is left of the horizon, by the daemon's clock.
fn left(plan: &v1::PlanView) -> String {
    if plan.expired { "expired".to_owned() } else { output::age(plan.left_ms) }
}

/// The plan in force in a line, for `hintctl status`.
pub(crate) fn in_force(plan: Option<&v1::PlanView>) -> String {
    let Some(plan) = plan else { return "none in force".to_owned() };
    let stands = match plan.expired {
        true => "in force and expired, so that no more runs find a place in it".to_owned(),
        false => format!("in force for another {}", left(plan)),
    };
    let by = |by: &v1::PlanFollowed| {
        let v1::PlanFollowed { policy, followed, expected, missed, deviating, unplanned, .. } = by;
        format!(
            "; runs by {policy}: {followed} follow it ({deviating} deviating), {expected} expected, {missed} missed, \
             {unplanned} unplanned"
        )
    };
    let followed: String = match &plan.followed[..] {
        [] => "; no application of a policy that follows it has asked since the start".to_owned(),
        all => all.iter().map(by).collect(),
    };
    format!("{}, {stands}{followed}", plan.name)
}

fn tell(plan: &v1::PlanView, output: Output) -> Result<(), Failure> {
    output.sorted_answer(plan, |plan| {
        let mut lines = vec![output::pairs(&[
            ("plan", format!("{}, {}", plan.name, state(plan))),
            ("made by", format!("{} ({}), {} ago", plan.policy, plan.objective, output::age(plan.age_ms))),
            ("jobs", format!("{}, {} heavy, on {} racks", plan.jobs, plan.heavy, plan.racks)),
            ("horizon", format!("{}, left: {}", horizon(plan), left(plan))),
            ("makespan", output::seconds(plan.makespan_s)),
            ("mean completion", output::seconds(plan.mean_completion_s)),
        ])];
        lines.extend(plan.warnings.iter().map(|warning| format!("note: {warning}")));
        if !plan.followed.is_empty() {
            let rows = plan.followed.iter().map(|by| {
                [
                    by.policy.clone(),
                    by.followed.to_string(),
                    by.expected.to_string(),
                    by.missed.to_string(),
                    by.deviating.to_string(),
                    by.unplanned.to_string(),
                    by.released.to_string(),
                ]
            });
            let header = ["followed by", "jobs", "expected", "missed", "deviating", "unplanned", "released stages"];
            lines.push(format!("\n{}", output::table(header, 1, rows)));
        }
        lines.join("\n")
    })
}
