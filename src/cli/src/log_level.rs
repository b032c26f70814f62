//! `hintctl log-level`: the daemon's log level, while it runs.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::Output;
use super::printable::one_line;
use clap::Args;
use hintd_client::wire::v1;

/// A level, or none.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  hintctl log-level\n  hintctl log-level info,hintd::store=debug\n  hintctl log-level info\n\n\
    Levels are off, error, warn, info, debug and trace; MODULE=LEVEL is for one module, and several stand with commas between.\n\
    It holds until the next call or until the daemon stops: what is to stay goes into log.level of the configuration."
)]
pub struct LogLevelArgs {
    /// The level from now on; left out: the one in force is shown
    level: Option<String>,
}

/// `hintctl log-level`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it is no level.
pub fn run(args: &LogLevelArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    if args.level.as_deref().is_some_and(|level| level.trim().is_empty()) {
        return Err(Failure::Input("the level is empty: off, error, warn, info, debug, trace".to_owned()));
    }
    let set = args.level.clone().unwrap_or_default();
    let answer = daemon.ask(async |mut admin| admin.log_level(v1::LogLevelRequest { set }).await)?;
    output.sorted(&answer, || {
        let (level, before) = (one_line(&answer.level), one_line(&answer.before));
        if args.level.is_some() { format!("{level} (before: {before})") } else { level.into_owned() }
    })
}
