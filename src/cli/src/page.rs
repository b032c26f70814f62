//! `hintctl page`: the way to the operator's page.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use clap::Args;
use hintd_client::wire::v1;

/// Nothing to say.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl page\n  xdg-open \"$(hintctl --json page | jq -r .url)\"\n  \
    ssh -L 9470:127.0.0.1:9470 HOST      from another machine: then open the address there\n\n\
    The address opens the page once, within a minute, for one browser; it may look for page.session_time then. Whoever\n\
    has the address first is let in: do not pass it on. The page changes nothing. It is off unless page.enabled is true.")]
pub struct PageArgs {}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers, or its page is off.
pub fn run(PageArgs {}: &PageArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = daemon.ask(async |mut admin| admin.open_page(v1::OpenPageRequest {}).await)?;
    output.sorted_answer(&answer, |answer| {
        let v1::OpenPageResponse { url, valid_ms, session_ms } = answer;
        let (valid, session) = (output::whole_time(*valid_ms), output::whole_time(*session_ms));
        format!("{url}\nfor one browser, within {valid}; it may look for {session} then")
    })
}
