//! `hintctl solve`: the product's solvers on files of their own formats.

use super::failure::Failure;
use super::output::Output;
use clap::{Args, Subcommand, ValueEnum};
use hintd_model::solve::mincost::dimacs::{self, DimacsError, DimacsProblem};
use hintd_model::solve::mincost::{MinCostError, MinCostFlow, MinCostProblem, Simplex, scaling};
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, stdin};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to solve.
#[derive(Debug, Subcommand)]
pub enum SolveCommand {
    /// A minimum-cost flow in DIMACS's format
    #[command(
        after_help = "Examples:\n  hintctl solve mincost round.min\n  hintctl --json solve mincost --seconds 0.5 - < round.min\n\n\
        Prints `s COST` and a line `f FROM TO FLOW` for each arc that carries something; the time without reading and writing goes to\n\
        standard error. Exit code 1 if supplies can't all be met: what is printed is the cheapest flow that meets most, and\n\
        standard error says which nodes are cut off. docs/formats.md describes the file."
    )]
    Mincost(MinCostArgs),
}

/// Which problem, and how.
#[derive(Debug, Args)]
pub struct MinCostArgs {
    /// The file; -: standard input
    file: PathBuf,
    /// How
    #[arg(long, value_enum, default_value_t = Algorithm::Simplex)]
    algorithm: Algorithm,
    /// End the search after so long, with the best flow until then [default: never]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
}

/// How to solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    /// The network simplex
    Simplex,
    /// Cost scaling
    Scaling,
}

#[derive(Serialize)]
struct Solved {
    cost: i128,
    short: i64,
    unmet: i64,
    optimal: bool,
    gap: Option<i128>,
    steps: u64,
    solver_ms: f64,
    flows: Vec<FlowRow>,
}

#[derive(Serialize)]
struct FlowRow {
    from: u32,
    to: u32,
    flow: i64,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected: seconds, 0 or more".to_owned())
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with the file's line, or with what can't be solved; [`Failure::Work`] where supplies can't be met.
pub fn run(command: &SolveCommand, output: Output) -> Result<(), Failure> {
    let SolveCommand::Mincost(args) = command;
    let file = read(&args.file)?;
    let begun = Instant::now();
    let found = solve(args, &file.problem, begun).map_err(|error| Failure::in_file(&args.file, in_file(error)))?;
    let took = begun.elapsed();
    output.progress(&format!("{:.3} ms, {} steps", took.as_secs_f64() * 1e3, found.steps));
    if !found.optimal {
        let gap = found.gap.map_or_else(|| "nobody knows by how much".to_owned(), |gap| format!("by {gap} at most"));
        output.progress(&format!("ended after {:.3} s: this may not be the cheapest flow, {gap}", took.as_secs_f64()));
    }
    print(&file, &found, took, output)?;
    match (found.short == 0 && found.unmet == 0, found.optimal) {
        (true, _) => Ok(()),
        (false, true) => Err(Failure::work(not_met(&found))),
        (false, false) => Err(Failure::work("the search was ended before all supply had a way")),
    }
}

fn read(path: &Path) -> Result<DimacsProblem, Failure> {
    let read = if path == Path::new("-") {
        dimacs::read(stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| Failure::in_file(path, error))?;
        dimacs::read(BufReader::new(file))
    };
    read.map_err(|error| match error {
        DimacsError::Line { .. } => Failure::in_file(path, error),
        DimacsError::Io(error) => Failure::work(format!("{}: {error}", path.display())),
    })
}

/// Nodes of files count from 1.
const fn in_file(error: MinCostError) -> MinCostError {
    match error {
        MinCostError::NegativeCycle { from, to } => MinCostError::NegativeCycle { from: from + 1, to: to + 1 },
        other => other,
    }
}

fn solve(args: &MinCostArgs, problem: &MinCostProblem, begun: Instant) -> Result<MinCostFlow, MinCostError> {
    let most = args.seconds.unwrap_or(Duration::MAX);
    let mut stop = || begun.elapsed() >= most;
    match args.algorithm {
        Algorithm::Simplex => Simplex::new().solve(problem, &mut stop),
        Algorithm::Scaling => scaling::solve(problem, &mut stop),
    }
}

fn print(file: &DimacsProblem, found: &MinCostFlow, took: Duration, output: Output) -> Result<(), Failure> {
    let flows = || {
        let rows = file.problem.arcs().map(|(arc, row)| FlowRow {
            from: row.from.0 + 1,
            to: row.to.0 + 1,
            flow: file.flow(found, arc),
        });
        rows.filter(|row| row.flow != 0).collect()
    };
    if output.is_json() {
        let MinCostFlow { short, unmet, optimal, gap, steps, .. } = *found;
        let solver_ms = took.as_secs_f64() * 1e3;
        let (cost, flows) = (file.cost(found), flows());
        return output.document(&Solved { cost, short, unmet, optimal, gap, steps, solver_ms, flows });
    }
    let mut text = Vec::new();
    file.write(found, &mut text).map_err(|error| Failure::Work(error.into()))?;
    output.file(&(), &String::from_utf8_lossy(&text))
}

/// Most nodes that are named.
const NAMED: usize = 10;

fn not_met(found: &MinCostFlow) -> String {
    let mut said = Vec::new();
    if found.short > 0 {
        said.push(format!("{} of the supply reaches no demand", found.short));
    }
    if found.unmet > 0 {
        said.push(format!("{} of the demand is not met", found.unmet));
    }
    let said = said.join(", ");
    if found.cut.is_empty() {
        return said;
    }
    let named: Vec<String> = found.cut.iter().take(NAMED).map(|node| (node.0 + 1).to_string()).collect();
    let more = match found.cut.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{said}: all ways out of nodes {}{more} are full", named.join(", "))
}
