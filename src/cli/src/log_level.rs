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
    Modules are hintd's, as hintd::MODULE; of others, as h2 or tonic, hintd does not know whether they log.\n\
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
    if let Some(note) = args.level.as_deref().and_then(of_others) {
        output.progress(&note);
    }
    output.sorted(&answer, || {
        let (level, before) = (one_line(&answer.level), one_line(&answer.before));
        if args.level.is_some() { format!("{level} (before: {before})") } else { level.into_owned() }
    })
}

/// What of a level is for modules that are not hintd's: nobody knows whether a line will ever come of it.
fn of_others(level: &str) -> Option<String> {
    let modules = level.split(',').filter_map(|directive| Some(directive.split_once('=')?.0.trim()));
    let others: Vec<&str> = modules.filter(|module| *module != "hintd" && !module.starts_with("hintd::")).collect();
    let are =
        if others.len() == 1 { "is no module of hintd's: it logs" } else { "are no modules of hintd's: they log" };
    (!others.is_empty())
        .then(|| format!("{} {are} if such a library is in it and has something to say", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_others_are_noted() {
        assert_eq!([of_others("info"), of_others("hintd=debug,hintd::store=trace")], [None, None]);
        let said = of_others("info, h2=debug,hintd::store=debug").unwrap();
        assert!(said.starts_with("h2 is no module of hintd's: it logs if "), "{said}");
        assert!(of_others("h2=debug,tonic=info").unwrap().starts_with("h2, tonic are no modules"));
    }
}
