//! `hintctl reproduce`: the papers' experiments.

use super::failure::Failure;
use super::output::Output;
use crate::reproduce::{self, ReproduceError, RunContext, Scale, render};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::num::NonZeroUsize;

/// Which experiments, and how large.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl reproduce --list\n  hintctl --json reproduce --scale full > full.json")]
pub struct ReproduceArgs {
    /// Experiments by name; none: all
    names: Vec<String>,
    /// Say which there are, and how long each takes
    #[arg(long)]
    list: bool,
    /// Sample size
    #[arg(long, value_enum, default_value_t = ScaleArg::Quick)]
    scale: ScaleArg,
    /// How many seeds: 1, 2, ...
    #[arg(long, default_value_t = 5)]
    seeds: u64,
}

/// Sample size.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScaleArg {
    /// A stated sample, at most 30 s each
    Quick,
    /// As the papers
    Full,
}

#[derive(Serialize)]
struct Listed {
    entry: &'static str,
    paper: &'static str,
    figure: &'static str,
    quick_s: u64,
    full_s: u64,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] for unknown names and too few seeds, [`Failure::Work`] if an experiment breaks.
pub fn run(args: &ReproduceArgs, output: Output) -> Result<(), Failure> {
    let all = reproduce::experiments();
    if args.list {
        let entries: Vec<Listed> = all
            .iter()
            .map(|experiment| Listed {
                entry: experiment.name(),
                paper: experiment.paper(),
                figure: experiment.figure(),
                quick_s: experiment.expected_s(Scale::Quick),
                full_s: experiment.expected_s(Scale::Full),
            })
            .collect();
        return output.result(&serde_json::json!({ "entries": entries }), || render::list(all));
    }
    let chosen = reproduce::select(all, &args.names).map_err(failure)?;
    let seeds: Vec<u64> = (1..=args.seeds).collect();
    let scale = match args.scale {
        ScaleArg::Quick => Scale::Quick,
        ScaleArg::Full => Scale::Full,
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let progress = |line: &str| output.progress(line);
    let context = RunContext { scale, seeds: &seeds, threads, progress: &progress };
    let report = reproduce::run(&chosen, &context).map_err(failure)?;
    let text = || if report.entries.is_empty() { render::list(all) } else { render::text(&report) };
    output.result(&report, text)
}

fn failure(error: ReproduceError) -> Failure {
    match error {
        ReproduceError::Unknown { .. } | ReproduceError::Seeds { .. } => Failure::Input(error.to_string()),
        other => Failure::Work(other.into()),
    }
}
