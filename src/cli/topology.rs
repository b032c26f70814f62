//! `hintctl topology`: network files.

use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use crate::network::build::{self, BuildError, BuiltNetwork, FatTreeSpec, TreeSpec};
use crate::network::{Network, NetworkDocument, NetworkProblem, NetworkSummary, Severity, check, summary};
use crate::units::BitsPerSec;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

/// What to do with a network.
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Generate a network file
    #[command(subcommand)]
    Build(Kind),
    /// Check a network file: connectivity, orphans, oversubscription
    #[command(
        after_help = "Examples:\n  hintctl topology check net.json\n  hintctl --json topology check net.toml\n\n\
        Exit code 2 if the network would be refused; warnings alone give 0."
    )]
    Check {
        /// The file, .json or .toml
        file: PathBuf,
    },
}

/// Which shape.
#[derive(Debug, Subcommand)]
pub enum Kind {
    /// Racks under core switches, or under aggregation switches by pod
    #[command(after_help = "Examples:\n  hintctl topology build tree --racks 5 --hosts-per-rack 8 --cores 2 \
        --oversubscription 5 -o net.json\n  hintctl topology build tree --racks 40 --racks-per-pod 10 \
        --aggregations-per-pod 2 --cores 4 -o net.toml")]
    Tree(TreeArgs),
    /// k-port switches: k^3/4 hosts, full bisection
    #[command(after_help = "Examples:\n  hintctl topology build fat-tree --ports 8 -o net.json\n  \
        hintctl topology build fat-tree --ports 16 --hosts 1000 -o net.json")]
    FatTree(FatTreeArgs),
}

/// Shape of a tree.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Racks, one edge switch each
    #[arg(long, default_value_t = 4)]
    racks: usize,
    /// Hosts of each rack
    #[arg(long, default_value_t = 10, conflicts_with = "hosts")]
    hosts_per_rack: usize,
    /// Hosts of the whole tree, a multiple of the racks
    #[arg(long)]
    hosts: Option<usize>,
    /// Core switches
    #[arg(long, default_value_t = 2)]
    cores: usize,
    /// Racks of each pod: builds three levels
    #[arg(long)]
    racks_per_pod: Option<usize>,
    /// Aggregation switches of each pod
    #[arg(long, default_value_t = 1, requires = "racks_per_pod")]
    aggregations_per_pod: usize,
    /// Capacity of a host's link, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    host_gbps: f64,
    /// Capacity of a rack's hosts divided by that of its uplinks
    #[arg(long, default_value_t = 5.0)]
    oversubscription: f64,
    /// Where to write it, .json or .toml
    #[arg(short, long)]
    output: PathBuf,
}

/// Shape of a fat-tree.
#[derive(Debug, Args)]
pub struct FatTreeArgs {
    /// Ports of each switch, an even number
    #[arg(long, short = 'k', default_value_t = 4)]
    ports: usize,
    /// Keep the first so many hosts and the switches between them
    #[arg(long)]
    hosts: Option<usize>,
    /// Capacity of every link, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    gbps: f64,
    /// Where to write it, .json or .toml
    #[arg(short, long)]
    output: PathBuf,
}

#[derive(Serialize)]
struct Built {
    hosts: usize,
    switches: usize,
    links: usize,
    file: PathBuf,
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
        TopologyCommand::Build(Kind::Tree(args)) => {
            let spec = args.spec()?;
            write(build::tree(&spec), args.output, output)
        }
        TopologyCommand::Build(Kind::FatTree(args)) => {
            let bits_per_s = gigabits("--gbps", args.gbps)?;
            let spec = FatTreeSpec { k: args.ports, hosts: args.hosts, bits_per_s };
            write(build::fat_tree(&spec), args.output, output)
        }
        TopologyCommand::Check { file } => check_file(file, output),
    }
}

impl TreeArgs {
    fn spec(&self) -> Result<TreeSpec, Failure> {
        let hosts_per_rack = match self.hosts {
            Some(hosts) if self.racks > 0 && hosts.is_multiple_of(self.racks) => hosts / self.racks,
            Some(hosts) => {
                return Err(Failure::Input(format!(
                    "--hosts: {hosts} hosts do not divide evenly into {} racks",
                    self.racks
                )));
            }
            None => self.hosts_per_rack,
        };
        if !(self.oversubscription.is_finite() && self.oversubscription > 0.0) {
            return Err(Failure::Input(format!("--oversubscription: {} is not above 0", self.oversubscription)));
        }
        let spec = TreeSpec {
            racks: self.racks,
            hosts_per_rack,
            racks_per_pod: self.racks_per_pod,
            aggregations_per_pod: self.aggregations_per_pod,
            cores: self.cores,
            host_bits_per_s: gigabits("--host-gbps", self.host_gbps)?,
            ..TreeSpec::default()
        };
        Ok(spec.with_edge_oversubscription(self.oversubscription))
    }
}

fn gigabits(flag: &str, gigabits: f64) -> Result<BitsPerSec, Failure> {
    if !(gigabits.is_finite() && gigabits > 0.0) {
        return Err(Failure::Input(format!("{flag}: {gigabits} is not above 0")));
    }
    Ok(BitsPerSec((gigabits * 1e9).round() as u64))
}

fn write(built: Result<BuiltNetwork, BuildError>, file: PathBuf, output: Output) -> Result<(), Failure> {
    let network = built.map_err(|error| Failure::Input(error.to_string()))?.network;
    files::write(&file, &network.to_document())?;
    let NetworkSummary { hosts, switches, links, .. } = summary(&network);
    let name = file.display().to_string();
    let built = Built { hosts, switches, links, file };
    output.result(&built, || format!("{name}: {hosts} hosts, {switches} switches, {links} links"))
}

fn check_file(file: PathBuf, output: Output) -> Result<(), Failure> {
    let document: NetworkDocument = files::read(&file)?;
    let network = Network::from_document(&document);
    let problems = match &network {
        Ok(network) => check(network),
        Err(problems) => problems.clone(),
    };
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
