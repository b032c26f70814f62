//! `hintctl reproduce`: the papers' experiments.

use super::failure::Failure;
use super::output::Output;
use clap::{Args, ValueEnum};
use hintd_simulator::reproduce::{self, KeptRuns, ReproduceError, RunContext, Scale, render};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
    /// Keep the results of full scale in this folder, and generate its reproduction.md
    #[arg(long, value_name = "DOCS")]
    save: Option<PathBuf>,
    /// Keep single runs of the long entries (nas-*, hybrid-*) here, and take from here what this very program made before
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,
    /// The source's commit, kept with them
    #[arg(long, requires = "save")]
    commit: Option<String>,
}

/// Sample size.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ScaleArg {
    /// A stated sample; --list says how long each takes
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
                entry: experiment.name,
                paper: experiment.paper,
                figure: experiment.figure,
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
    let kept = match &args.runs {
        Some(folder) => {
            Some(KeptRuns::new(folder).map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?)
        }
        None => None,
    };
    let context = RunContext { scale, seeds: &seeds, threads, progress: &progress, kept: kept.as_ref() };
    if args.save.is_some() && scale != Scale::Full {
        return Err(Failure::Input("--save: only results of --scale full are kept".to_owned()));
    }
    let mut report = reproduce::run(&chosen, &context).map_err(failure)?;
    if let Some(docs) = &args.save {
        let names: Vec<&str> = chosen.iter().map(|experiment| experiment.name).collect();
        let command = format!("hintctl reproduce {} --scale full --seeds {}", names.join(" "), args.seeds);
        (report.command, report.commit) = (Some(command), args.commit.clone());
        reproduce::keep(docs, &report).map_err(|error| Failure::Work(error.into()))?;
    }
    let text = || if report.entries.is_empty() { render::list(all) } else { render::text(&report) };
    output.result(&report, text)
}

fn failure(error: ReproduceError) -> Failure {
    match error {
        ReproduceError::Unknown { .. } | ReproduceError::Seeds { .. } => Failure::Input(error.to_string()),
        other => Failure::Work(other.into()),
    }
}
