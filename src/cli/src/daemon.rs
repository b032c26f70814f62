//! `hintd`'s arguments: in the library, so that its man page and completions are made of what it really takes.

use clap::Parser;
use std::path::PathBuf;

/// Placement hints for Hadoop YARN.
#[derive(Debug, Parser)]
#[command(
    name = "hintd",
    version,
    after_help = "Signals: SIGHUP reloads the configuration, SIGTERM and SIGINT stop in order."
)]
pub struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "/etc/hintd/hintd.toml")]
    pub config: PathBuf,
    /// Check the configuration, say what is wrong with it, and end.
    #[arg(long)]
    pub check: bool,
}
