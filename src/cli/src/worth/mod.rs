//! `hintctl worth`: what hints would be worth on an operator's own trace.
//!
//! # Code map
//! - `variants`: what is compared, one line each; `parts`: what can be left out of it, `lies`: what can be told wrong. `matrix`: cells and runs, read from the arguments. `keep`: runs in a
//!   folder. `outcome`: the measure over the runs that are there, which is also the JSON document, with a `hinted_view` for each policy and lever; `without`: what parts are worth in it, and what lies cost. `table`: the same for
//!   people. `page`: Markdown; docs/worth.md has `goals` beside what was found. `plot`: SVG. `glance`: the end of `hintctl demo`. The measure itself is `hintd_simulator::worth`.
//!
//! # Invariants
//! - Every run is compared with YARN alone of the same cell and seed, and no run hangs on another.
//! - A kept run is used by the same program for the same trace, cluster, settings, policy and seed only.

mod glance;
mod goals;
mod hinted_view;
mod keep;
mod lies;
mod matrix;
mod outcome;
mod page;
mod parts;
mod plot;
mod table;
#[cfg(test)]
mod tests;
mod variants;
mod without;

pub(super) use glance::Glance;

use super::failure::Failure;
use super::files;
use super::new_file::ReplaceArg;
use super::output::Output;
use super::simulate::{ContainerArgs, HoldArgs, SettingArgs, factor, history_error, threads, whole_share};
use crate::plots::provenance::{self, Provenance};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// In the folder of plots.
const PLOT: &str = "worth.svg";

/// On what, and what is compared.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    hintctl worth --trace FB-2010.tsv.gz --cluster nas-40\n  \
    hintctl worth --trace jobs.jsonl --cluster my.toml --loads 0.5,1 --seeds 5 --plots out/ --keep runs/\n  \
    hintctl worth --trace jobs.jsonl --cluster my.toml --keep runs/ --shard 2/3   # on the second of three machines\n\n\
    For each load and seed: YARN alone, the same under other phases of heartbeats (what chance does), YARN alone on links\n\
    that never are the bottleneck (what there is to win), and hints as they are deployed, by each policy. Ratios are against\n\
    YARN alone of the same seed. docs/worth.md has the measure.")]
#[command(group(ArgGroup::new("written").args(["output", "markdown", "plots"]).multiple(true)))]
pub struct WorthArgs {
    /// The jobs: SWIM's rows or JSON lines, gzip or not; repeatable
    #[arg(long, value_name = "FILE", required = true)]
    trace: Vec<PathBuf>,
    /// The cluster: a shipped one by name, a shape, or a whole cluster document; repeatable
    #[arg(long, value_name = "FILE|NAME", required = true)]
    cluster: Vec<String>,
    /// Policies that hint
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_value = "joint,container")]
    policy: Vec<String>,
    /// What hints may do; where: rows of hosts and racks; when: the same, and heavy shuffles take turns; history: recurring
    /// jobs are known by an earlier run; history-when: the same, and heavy shuffles take turns; data: as history, but input
    /// of recurring jobs is where the policy says, and none is gathered; data-when: the same, and heavy shuffles take turns
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_value = "where,when", value_parser = PossibleValuesParser::new(variants::names()))]
    levers: Vec<String>,
    /// Leave these parts out of the fullest lever, one at a time, to see what each is worth; all: each that it has
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(parts::names()))]
    without: Vec<String>,
    /// Tell levers with history wrong figures of all earlier runs, one lie at a time, to see what each costs. bytes-x10,
    /// bytes-x0.1: bytes and tasks by that factor; times-x5: times of tasks by that factor; all: each of them
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(lies::names()))]
    lies: Vec<String>,
    /// The share of recurring jobs, for levers with history [default: 0.7]
    #[arg(long, value_name = "SHARE", value_parser = whole_share)]
    recurring: Option<f64>,
    /// How far an earlier run is off: bytes and durations times a factor between 1/X and X, drawn for each, for levers with
    /// history [default: 2]
    #[arg(long, value_name = "X", value_parser = history_error)]
    history_error: Option<f64>,
    /// Do not run the trace's first N jobs, but learn from them: the last that read a path is the earlier run of each job that
    /// reads it, and other jobs have none; in place of --recurring and --history-error
    #[arg(long, value_name = "N", conflicts_with_all = ["recurring", "history_error"])]
    learn: Option<NonZeroU64>,
    /// A parameter of a policy, as in its [policies.NAME] of the configuration; repeatable
    #[arg(long = "param", value_name = "POLICY.KEY=VALUE")]
    params: Vec<String>,
    /// Factors on all bytes of jobs, a cell each
    #[arg(long, value_name = "X,...", value_delimiter = ',', default_value = "0.1,0.3,1", value_parser = factor)]
    loads: Vec<f64>,
    /// Only the first N jobs, after those of --learn
    #[arg(long, value_name = "N", default_value = "600")]
    jobs: NonZeroU64,
    /// Submit jobs X times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = factor)]
    speed: f64,
    /// Count bad lines instead of stopping at the first
    #[arg(long)]
    skip_bad: bool,
    /// Run with N seeds: 1, 2, ...
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Runs at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Keep each run in this folder as it ends, and take from there what this program made before
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Do only the I-th of N parts of the runs; the folders of all parts, copied together, are the whole
    #[arg(long, value_name = "I/N", requires = "keep", value_parser = shard)]
    shard: Option<Shard>,
    /// Write an SVG plot into this folder, which is made if it is not there, once all runs are there
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write the JSON document into this file as well
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files of --output, --markdown and --plots that are there already; their owner and mode stay
    #[arg(long, requires = "written")]
    force: bool,
    /// Write a page of Markdown into this file, once all runs are there
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// The source's commit. The page is one of hintd's own docs then: with the project's goals, and links to other pages
    #[arg(long, requires = "markdown")]
    commit: Option<String>,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    container: ContainerArgs,
    #[command(flatten)]
    settings: SettingArgs,
}

/// Where the plot is from.
fn provenance(args: &WorthArgs, matrix: &matrix::Matrix) -> Provenance {
    let traces: Vec<String> = args.trace.iter().map(|trace| provenance::file(trace)).collect();
    Provenance::of([
        ("commit", args.commit.clone().unwrap_or_default()),
        ("trace", traces.join(", ")),
        ("cluster", args.cluster.join(", ")),
        ("seeds", provenance::seeds(&matrix.seeds)),
    ])
}

impl WorthArgs {
    /// Whether the page is one of the project's own, beside its other pages.
    const fn is_for_docs(&self) -> bool {
        self.commit.is_some()
    }

    /// The share of recurring jobs, and how far earlier runs are off. Those that the trace tells are not drawn.
    fn recurring(&self) -> (f64, f64) {
        if self.learn.is_some() {
            return (1.0, 1.0);
        }
        (self.recurring.unwrap_or(0.7), self.history_error.unwrap_or(2.0))
    }
}

/// One of several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    /// From 0.
    part: usize,
    of: usize,
}

impl Shard {
    /// Whether the run of this number is its.
    const fn has(self, run: usize) -> bool {
        run % self.of == self.part
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let form = || "not of the form I/N, as 2/3".to_owned();
    let (part, of) = text.split_once('/').ok_or_else(form)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| form());
    let (part, of) = (number(part)?, number(of)?);
    if part == 0 || part > of {
        return Err(format!("there is no part {part} of {of}: parts are 1 to {of}"));
    }
    Ok(Shard { part: part - 1, of })
}

/// Refuses to run where a file of the result is there and is not to be replaced.
fn check_places(args: &WorthArgs) -> Result<(), Failure> {
    let (replace, plot) = (ReplaceArg::of(args.force), args.plots.as_ref().map(|folder| folder.join(PLOT)));
    let files =
        [("--output", args.output.as_deref()), ("--markdown", args.markdown.as_deref()), ("--plots", plot.as_deref())];
    for (option, file) in files {
        file.map_or(Ok(()), |file| replace.check(file)).map_err(|failure| failure.of_option(option))?;
    }
    Ok(())
}

/// Writes one of them: they were looked at before the runs, which are not lost for them now.
fn write(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    files::write_text(path, text).map_err(|failure| failure.of_option(option))
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for files, names and parameters that are wrong and for a folder that can't be written to;
/// [`Failure::Work`] where a run breaks, was interrupted (what ended before is kept), or a file can't be written.
pub fn run(args: &WorthArgs, output: Output) -> Result<(), Failure> {
    check_places(args)?;
    let matrix = matrix::Matrix::read(args, output)?;
    let kept = args.keep.as_deref().map(keep::KeptRuns::open).transpose()?;
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).map_err(|error| Failure::in_file(folder, error).of_option("--plots"))?;
    }
    let runs = matrix.run(kept.as_ref(), args.shard, threads(args.threads), output)?;
    let outcome = outcome::Outcome::of(&matrix, &runs)?;
    if let Some(path) = &args.output {
        let text = serde_json::to_string_pretty(&outcome).map_err(|error| Failure::Work(error.into()))?;
        write("--output", path, &(text + "\n"))?;
    }
    // What shows the whole waits for it, so that the same command goes on with a series that was interrupted.
    let not_yet = |path: &Path| output.progress(&format!("{}: not written, for runs are missing", path.display()));
    match args.plots.as_ref().map(|folder| folder.join(PLOT)) {
        Some(plot) if outcome.complete => {
            write("--plots", &plot, &provenance(args, &matrix).sign(&plot::draw(&outcome)?)?)?;
        }
        Some(plot) => not_yet(&plot),
        None => {}
    }
    match &args.markdown {
        Some(path) if outcome.complete => write("--markdown", path, &page::page(&outcome, args))?,
        Some(path) => not_yet(path),
        None => {}
    }
    output.result(&outcome, || table::text(&outcome))?;
    if let Some(warning) = runs.warning() {
        output.progress(&warning);
    }
    if runs.interrupted {
        let kept = args.keep.as_ref().map_or_else(String::new, |folder| format!(", kept in {}", folder.display()));
        let (there, all) = (outcome.runs - outcome.runs_missing, outcome.runs);
        return Err(Failure::work(format!("interrupted: {there} of {all} runs are there{kept}")));
    }
    Ok(())
}
