//! `hintctl topology`: network files.

mod build;
mod paths;

use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use clap::Subcommand;
use hintd_model::network::{Network, NetworkDocument, NetworkProblem, NetworkSummary, Severity, check, summary};
use hintd_model::units::BitsPerSec;
use serde::Serialize;
use std::path::PathBuf;

/// What to do with a network.
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Generate a network file
    #[command(subcommand)]
    Build(build::Kind),
    /// Check a network file: connectivity, orphans, oversubscription
    #[command(
        after_help = "Examples:\n  hintctl topology check net.json\n  hintctl --json topology check net.toml\n\n\
        Exit code 2 if the network would be refused; warnings alone give 0."
    )]
    Check {
        /// The file, .json or .toml
        file: PathBuf,
    },
    /// Build the table of k shortest paths and say what it takes
    #[command(
        after_help = "Examples:\n  hintctl topology paths net.json\n  hintctl --json topology paths net.json --k 4\n\n\
        Pairs are of switches that have hosts. With more than 1,024 of those, paths are computed when asked for, and\n\
        the figures are of the table before anyone asks."
    )]
    Paths(paths::PathsArgs),
}

#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    ok: bool,
    problems: Vec<Problem>,
    #[serde(flatten)]
    summary: Option<NetworkSummary>,
}

#[derive(Serialize)]
struct Problem {
    severity: Severity,
    reason: &'static str,
    message: String,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for shapes that can't be built and networks that would be refused.
pub fn run(command: TopologyCommand, output: Output) -> Result<(), Failure> {
    match command {
        TopologyCommand::Build(kind) => build::run(kind, output),
        TopologyCommand::Check { file } => check_file(file, output),
        TopologyCommand::Paths(args) => paths::run(&args, output),
    }
}

fn check_file(file: PathBuf, output: Output) -> Result<(), Failure> {
    let (document, mut problems) = NetworkDocument::from_value(&files::read(&file)?);
    let network = Network::from_document(&document);
    match &network {
        Ok(network) => problems.extend(check(network)),
        Err(found) => problems.extend(found.iter().cloned()),
    }
    let row = |problem: &NetworkProblem| Problem {
        severity: problem.severity(),
        reason: problem.reason(),
        message: problem.to_string(),
    };
    let errors = problems.iter().filter(|problem| problem.severity() == Severity::Error).count();
    let checked = Checked {
        ok: errors == 0,
        problems: problems.iter().map(row).collect(),
        summary: network.as_ref().ok().map(summary),
        file,
    };
    output.result(&checked, || text(&checked))?;
    if errors > 0 {
        return Err(Failure::in_file(&checked.file, format!("{errors} errors: the network would be refused")));
    }
    Ok(())
}

fn text(checked: &Checked) -> String {
    let word = |severity| if severity == Severity::Error { "error" } else { "warning" };
    let mut lines: Vec<String> =
        checked.problems.iter().map(|problem| format!("{}: {}", word(problem.severity), problem.message)).collect();
    if let Some(summary) = &checked.summary {
        let NetworkSummary { hosts, switches, links, .. } = summary;
        lines.push(format!("{}: {hosts} hosts, {switches} switches, {links} links", checked.file.display()));
        let rows = summary.tiers.iter().map(|tier| {
            let ratio =
                tier.oversubscription.map_or_else(|| "-".to_owned(), |ratio| format!("{}:1", output::digits(ratio)));
            let rate = |rate: BitsPerSec| output::rate(rate.as_f64());
            [tier.tier.to_string(), tier.switches.to_string(), rate(tier.down), rate(tier.up), ratio]
        });
        lines.push(output::table(["tier", "switches", "to hosts", "to core", "oversubscribed"], 1, rows));
    }
    lines.join("\n")
}
