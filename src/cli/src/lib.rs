//! `hintctl`: the command line. One file per group of commands; all words go out through [`output::Output`].
//!
//! # Invariants
//! - With `--json` standard output is one JSON document (of `watch` one a line) and nothing else; progress goes to standard error.
//! - Exit code 0: done; 1: the work failed; 2: bad usage or bad input, naming file, line or field.
//! - Words for people fit the terminal's columns, or those of COLUMNS; in a pipe without COLUMNS nothing is cut (`width`, `layout`).

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an edge: clocks, files and sockets are its work
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))] // a test that panics is a test that fails

pub mod adherence;
pub mod answers;
mod asked;
pub mod attempts;
pub mod bench;
mod blocked;
pub mod bundle;
mod by_class;
pub mod chains;
pub mod circuits;
mod colors;
pub mod config;
pub mod connect;
pub mod context;
mod cost_links;
pub mod csv;
pub mod daemon;
pub mod demo;
pub mod doctor;
pub mod drain;
pub mod emulate;
pub mod emulation;
pub mod explain;
pub mod failure;
pub mod files;
mod filter;
pub mod fit;
pub mod flows;
pub mod holdout;
mod in_short;
mod interrupt;
pub mod latency;
mod layout;
pub mod links;
pub mod lists;
pub mod log_level;
mod moments;
pub mod network;
mod new_file;
pub mod nodes;
pub mod operate;
pub mod output;
pub mod page;
mod pager;
mod pages;
pub mod place;
pub mod plan;
mod plots;
pub mod policies;
pub mod policy;
pub mod predicted;
pub mod printable;
pub mod racks;
mod readiness;
mod realised;
pub mod replay;
pub mod replicas;
pub mod reproduce;
pub mod request;
mod screen;
mod scroll;
mod secret;
pub mod servers;
pub mod shell;
pub mod simulate;
pub mod solve;
mod sorting;
mod summary;
pub mod top;
pub mod topology;
pub mod trace;
mod turn;
pub mod view;
pub mod watch;
mod why_not;
mod width;
pub mod worth;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use connect::DaemonArgs;
use failure::Failure;
use output::Output;
use std::io::Write as _;
use std::process::ExitCode;

/// Network-aware placement hints for Hadoop YARN
#[derive(Debug, Parser)]
#[command(name = "hintctl", version, after_help = EXAMPLES)]
struct Cli {
    /// One JSON document on standard output
    #[arg(long, global = true, help_heading = connect::GLOBAL)]
    json: bool,
    /// Print text that is longer than the terminal as it is, without a pager (HINTCTL_PAGER, PAGER, or less)
    #[arg(long, global = true, help_heading = connect::GLOBAL)]
    no_pager: bool,
    /// Whether what wants a look is in color
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, help_heading = connect::GLOBAL)]
    color: colors::When,
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  hintctl demo                      the daemon at work on an emulated cluster, in half a minute
  hintctl topology build fat-tree --ports 8 -o net.json
  hintctl place --cluster cluster.json --request job.json --policy container
  hintctl simulate --trace FB-2010.tsv.gz --cluster nas --policy fair,nas
  hintctl worth --trace FB-2010.tsv.gz --cluster nas-40
  hintctl --json status             the running daemon, for scripts
  hintctl doctor                    what is wrong, and what to do

Exit code 0: done; 1: the work failed; 2: bad usage or bad input.";

#[derive(Debug, Subcommand)]
enum Command {
    /// The daemon at work: an emulated cluster, a trace's jobs, a dying node, a failing link
    Demo(demo::DemoArgs),
    /// An emulated cluster that feeds a running daemon and asks it for hints
    Emulate(emulation::EmulateArgs),
    /// One placement, offline: hints, costs, the default's costs, what was ruled out
    Place(place::PlaceArgs),
    /// Network files: generate and check
    #[command(subcommand)]
    Topology(topology::TopologyCommand),
    /// Compute flow completion times, links shared max-min fairly
    Flows(flows::FlowsArgs),
    /// A performance curve for policy nomora from measured latency and performance
    Fit(fit::FitArgs),
    /// The product's solvers on files of their own formats
    #[command(subcommand)]
    Solve(solve::SolveCommand),
    /// A trace replayed on a cluster under policies side by side: which one, with which settings?
    Simulate(Box<simulate::SimulateArgs>),
    /// What hints would be worth on one's own trace, against YARN alone
    Worth(Box<worth::WorthArgs>),
    /// Recurring jobs ahead of time: plan, check, compare, draw; plans in the daemon: submit, activate, roll back
    Plan(Box<plan::PlanArgs>),
    /// Job traces: generate and check
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Load on a running daemon
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Ask the running daemon for hints: takes leases
    Request(request::RequestArgs),
    /// Give leases of an attempt back
    Release(attempts::ReleaseArgs),
    /// Attempts that asked for hints and are not over, and what they hold
    Attempts(attempts::AttemptsArgs),
    /// End an attempt, as its ResourceManager would: its leases are given back
    End(attempts::EndArgs),
    /// What hints are worth in production, and recurring keys that get none, for these made them slower
    #[command(subcommand)]
    Holdout(holdout::HoldoutCommand),
    /// Decisions and refusals, newest first
    Decisions(lists::DecisionsArgs),
    /// Live leases, newest first
    Leases(lists::LeasesArgs),
    /// Applications that asked for hints and are not over, with their last decisions
    Applications(lists::ApplicationsArgs),
    /// A decision or a refusal that the running daemon remembers, or an application's last ones: terms, what was ruled out, ages, leases, why it did not fit
    Explain(explain::ExplainArgs),
    /// A recorded decision made again: the same bytes, or by another policy side by side
    Replay(replay::ReplayArgs),
    /// Try something on the running daemon without taking it
    #[command(subcommand, name = "whatif")]
    WhatIf(request::WhatIfCommand),
    /// What the daemon is and how fresh its model is
    Status(operate::StatusArgs),
    /// What is wrong with the daemon and what it needs, what that means, and what to do
    Doctor(doctor::DoctorArgs),
    /// What somebody who helps wants to see of the daemon, in a folder, without secrets
    Bundle(bundle::BundleArgs),
    /// The daemon's log level: show it, or set it while the daemon runs
    LogLevel(log_level::LogLevelArgs),
    /// Links, applications, queues and rates, live
    Top(top::TopArgs),
    /// A one-time address of the operator's page, for a browser on the daemon's machine
    Page(page::PageArgs),
    /// Nodes as the daemon knows them: all, those in a state, or all of one
    Nodes(nodes::NodesArgs),
    /// Links: capacity, load both ways, who uses them
    Links(links::LinksArgs),
    /// Round trips as agents measured them: between racks, or of one host
    Latency(latency::LatencyArgs),
    /// The network in force, and network files: show, compare, load, import
    #[command(subcommand)]
    Network(network::NetworkCommand),
    /// Racks of hosts by YARN, by HDFS and by the network, and where they differ
    Racks(racks::RacksArgs),
    /// Middleboxes and chains in force; `check`: which chains can't be met, by which cut
    Chains(chains::ChainsArgs),
    /// Circuits that the optical switch should have and has, and demand without one
    #[command(after_help = circuits::HELP)]
    Circuits,
    /// Routes as they change, until interrupted
    Watch(watch::WatchArgs),
    /// Where replicas of data that a planned or recurring job will read should go
    Replicas(replicas::ReplicasArgs),
    /// Policies, which is default, what each can do
    Policies(policies::PoliciesArgs),
    /// The daemon's configuration, made from what a cluster already says
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Several daemons by name, one of them current
    #[command(subcommand)]
    Context(context::ContextCommand),
    /// Read the configuration again: all or nothing
    #[command(
        after_help = "Example:\n  hintctl reload\n\nA file that does not pass changes nothing: file, line, key and why are said."
    )]
    Reload,
    /// Save the live model as a cluster file
    Snapshot(operate::SnapshotArgs),
    /// Weights of `container` that suit an application
    Calibrate(operate::CalibrateArgs),
    /// The papers' experiments, ours beside theirs
    Reproduce(reproduce::ReproduceArgs),
    #[command(flatten)]
    Shell(shell::ShellCommand),
}

/// Runs what the process was called with.
#[must_use]
pub fn main() -> ExitCode {
    let parsed = with_negative_numbers(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|mut found| Cli::from_arg_matches_mut(&mut found)) {
        Ok(cli) => cli,
        Err(error) => {
            say(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "hintctl: {}", printable::printable(&failure.to_string()));
            failure.code()
        }
    }
}

/// Help, or what was wrong with the arguments. Help is as long as other texts and paged as they are; its own arguments are not known.
fn say(error: &clap::Error) {
    let color = colors::among(std::env::args_os().skip(1));
    colors::choose(color);
    let said = error.render();
    let painted = if colors::wanted() { said.ansi().to_string() } else { said.to_string() };
    let is_help = error.kind() == clap::error::ErrorKind::DisplayHelp;
    if is_help && !std::env::args_os().any(|arg| arg == "--no-pager") && pager::shows(&said.to_string(), &painted) {
        return;
    }
    // A closed terminal hears nothing.
    let _ = match (color, error.use_stderr()) {
        (colors::When::Auto, _) => error.print(),
        (_, true) => write!(std::io::stderr(), "{painted}"),
        (_, false) => write!(std::io::stdout(), "{painted}"),
    };
}

/// Options take "-1" for their value, to say why it is none, and not for another option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes = |arg: clap::Arg| match arg.get_long().is_some() && arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(takes).mut_subcommands(with_negative_numbers)
}

fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { json, no_pager, color, daemon, command } = cli;
    colors::choose(color);
    // What goes on while it is read is not held up by who reads it.
    let goes_on = matches!(command, Command::Demo(_) | Command::Emulate(_) | Command::Bench(_) | Command::Watch(_));
    let output = Output::new(json).paged(!no_pager && !goes_on);
    match command {
        Command::Demo(args) => demo::run(args, output),
        Command::Emulate(args) => emulation::run(&args, &daemon, output),
        Command::Place(args) => place::run(&args, output),
        Command::Flows(args) => flows::run(&args, output),
        Command::Fit(args) => fit::run(&args, output),
        Command::Solve(command) => solve::run(&command, output),
        Command::Simulate(args) => simulate::run(&args, output),
        Command::Worth(args) => worth::run(&args, output),
        Command::Plan(args) => plan::run(&args, &daemon, output),
        Command::Trace(command) => trace::run(&command, output),
        Command::Request(args) => request::request(&args, &daemon, output),
        Command::Release(args) => attempts::release(&args, &daemon, output),
        Command::Attempts(args) => attempts::list(&args, &daemon, output),
        Command::End(args) => attempts::end(&args, &daemon, output),
        Command::Holdout(command) => holdout::run(&command, &daemon, output),
        Command::Decisions(args) => lists::decisions(&args, &daemon, output),
        Command::Leases(args) => lists::leases(&args, &daemon, output),
        Command::Applications(args) => lists::applications(&args, &daemon, output),
        Command::Explain(args) => explain::run(&args, &daemon, output),
        Command::Replay(args) => replay::run(&args, &daemon, output),
        Command::WhatIf(command) => request::what_if(&command, &daemon, output),
        Command::Topology(command) => topology::run(command, output),
        Command::Bench(command) => bench::run(command, &daemon, output),
        Command::Status(args) => operate::status(&args, &daemon, output),
        Command::Doctor(args) => doctor::run(&args, &daemon, output),
        Command::Bundle(args) => bundle::run(&args, &daemon, output),
        Command::LogLevel(args) => log_level::run(&args, &daemon, output),
        Command::Top(args) => top::run(&args, &daemon, output),
        Command::Page(args) => page::run(&args, &daemon, output),
        Command::Nodes(args) => nodes::nodes(&args, &daemon, output),
        Command::Links(args) => links::links(&args, &daemon, output),
        Command::Latency(args) => latency::run(&args, &daemon, output),
        Command::Network(command) => network::run(&command, &daemon, output),
        Command::Racks(args) => racks::run(&args, &daemon, output),
        Command::Chains(args) => chains::run(&args, &daemon, output),
        Command::Circuits => circuits::run(&daemon, output),
        Command::Watch(args) => watch::run(args, &daemon, output),
        Command::Replicas(args) => replicas::run(&args, &daemon, output),
        Command::Policies(args) => policies::run(&args, &daemon, output),
        Command::Config(command) => config::run(&command, output),
        Command::Context(command) => context::run(&command, &daemon, output),
        Command::Reload => operate::reload(&daemon, output),
        Command::Snapshot(args) => operate::snapshot(&args, &daemon, output),
        Command::Calibrate(args) => operate::calibrate(&args, &daemon, output),
        Command::Reproduce(args) => reproduce::run(&args, output),
        Command::Shell(command) => shell::run(&command, output),
    }
}

/// Names of all commands, groups' members with their group's name before them.
#[must_use]
pub fn commands() -> Vec<Vec<String>> {
    fn walk(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            let path = [path, &[sub.get_name().to_owned()]].concat();
            walk(sub, &path, all);
            all.push(path);
        }
    }
    let mut all = Vec::new();
    walk(&Cli::command(), &[], &mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_value_is_refused_for_what_it_is() {
        for (command, option) in [("worth", "--loads"), ("simulate", "--seeds"), ("worth", "--seeds")] {
            let args = ["hintctl", command, option, "-1"];
            let said = with_negative_numbers(Cli::command()).try_get_matches_from(args).unwrap_err().to_string();
            assert!(said.contains("'-1'") && said.contains(option) && !said.contains("unexpected"), "{said}");
        }
    }

    #[test]
    fn help_has_the_options_of_all_commands_apart_from_a_commands_own() {
        let mut root = Cli::command();
        root.build();
        let command = root.find_subcommand_mut("nodes").unwrap();
        let help = command.render_help().to_string();
        let (own, global) = help.split_once("\nGlobal options:\n").unwrap();
        for option in ["--json", "--no-pager", "--color", "--context", "--address", "--admin-socket", "--secret-file"] {
            assert!(global.contains(option) && !own.contains(&format!("{option} ")), "{option}: {help}");
        }
        assert!(own.contains("--sort") && own.contains("--limit"), "{help}");
    }
}
