//! `hintctl flows`: computes when flows complete that share links max-min fairly.

use super::failure::Failure;
use super::files;
use super::output::Output;
use clap::Args;
use hintd_simulator::FlowsDocument;
use std::path::PathBuf;

/// Which flows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl flows flows.json\n  \
    hintctl flows flows.json | jq -r '.completions[] | [.id, .completion_s] | @tsv'\n\n\
    Prints JSON with and without --json. docs/formats.md describes the file.")]
pub struct FlowsArgs {
    /// Links and flows with their paths, .json or .toml
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with all that is wrong with the file.
pub fn run(args: &FlowsArgs, output: Output) -> Result<(), Failure> {
    let document: FlowsDocument = files::read(&args.file)?;
    let result = document.run().map_err(|problems| files::problems(&args.file, &problems))?;
    output.document(&result)
}
