//! `hintctl topology paths`: what a table of shortest paths takes.

use crate::failure::Failure;
use crate::files;
use crate::output::{Output, digits};
use clap::Args;
use hintd_model::network::{Network, NetworkDocument, NetworkProblem, PathTable, PathTableOptions, Severity};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Which table.
#[derive(Debug, Args)]
pub struct PathsArgs {
    /// The file, .json or .toml
    file: PathBuf,
    /// Most paths of each pair
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=64))]
    k: u8,
    /// Seed of the choice among equal paths
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Serialize)]
struct Measured {
    hosts: usize,
    switches: usize,
    /// Pairs of switches that have hosts.
    pairs: usize,
    k: u8,
    build_s: f64,
    bytes: usize,
    /// Whether paths are computed when asked for: the figures are then those of an empty table.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lazy: bool,
}

/// Builds the table and says what it took.
///
/// # Errors
/// [`Failure`] for a file that is no network, with all that is wrong.
pub(super) fn run(args: &PathsArgs, output: Output) -> Result<(), Failure> {
    let document: NetworkDocument = files::read(&args.file)?;
    let network = Network::from_document(&document).map_err(|problems| {
        let errors = problems.iter().filter(|problem| problem.severity() == Severity::Error);
        let lines: Vec<String> = errors.map(NetworkProblem::to_string).collect();
        Failure::in_file(&args.file, lines.join("; "))
    })?;
    let k = NonZeroUsize::new(usize::from(args.k)).expect("its range begins at 1");
    let options = PathTableOptions { k, seed: args.seed, ..PathTableOptions::default() };
    let started = Instant::now();
    let table = PathTable::build(&network, &options);
    let measured = Measured {
        build_s: started.elapsed().as_secs_f64(),
        hosts: network.hosts(),
        switches: network.switches(),
        pairs: table.pairs(),
        k: args.k,
        bytes: table.bytes(),
        lazy: table.is_lazy(),
    };
    output.result(&measured, || {
        let Measured { hosts, switches, pairs, k, build_s, bytes, lazy } = &measured;
        let when = if *lazy { ", paths are computed when asked for" } else { "" };
        let took = digits(*build_s);
        format!("{hosts} hosts, {switches} switches: up to {k} paths for each of {pairs} pairs in {took} s and {bytes} bytes{when}")
    })
}
