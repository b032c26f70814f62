//! `hintctl holdout`: what hints are worth in production, by recurring key, and keys that may have hints again.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line;
use clap::{Args, Subcommand};
use hintd_client::wire::v1;
use serde::Serialize;

/// See the module.
#[derive(Debug, Clone, Subcommand)]
pub enum HoldoutCommand {
    /// Queues and recurring keys: completion times of hinted ÷ held-out runs, stopped keys first
    List(ListArgs),
    /// Let a recurring key have hints again that was stopped; its runs are counted anew
    Allow(AllowArgs),
}

/// Keys to list.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl holdout list\n  \
    hintctl --json holdout list --stopped | jq -r '.keys[].name'\n\n\
    A ratio below 1: hinted runs are faster. Nothing is told below `worth.runs` runs of either side. Of queues the interval\n\
    has 95 %, of keys 99.9 %: there are many of them, and each is looked at after every run.")]
pub struct ListArgs {
    /// Only keys that get no hints
    #[arg(long)]
    stopped: bool,
    /// So many keys at most; 0: all
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

/// A key to allow.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  hintctl holdout allow 'mapreduce:ann:etl #'")]
pub struct AllowArgs {
    /// The recurring job's key, as `hintctl holdout list` shows it
    key: String,
}

/// `hintctl holdout`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or nothing is known of the key.
pub fn run(command: &HoldoutCommand, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    match command {
        HoldoutCommand::List(args) => list(args, daemon, output),
        HoldoutCommand::Allow(args) => allow(args, daemon, output),
    }
}

fn list(args: &ListArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let asked = v1::ListHoldoutRequest { stopped_only: args.stopped, limit: args.limit };
    let found = daemon.ask(async |mut admin| admin.list_holdout(asked).await)?;
    output.sorted_answer(&found, |found| {
        let mut lines = Vec::new();
        if !found.queues.is_empty() {
            lines.push(format!("{}\n", table("queue", &found.queues)));
        }
        lines.push(format!("{} of {} recurring keys", found.keys.len(), found.total));
        if !found.keys.is_empty() {
            lines.push(table("key", &found.keys));
        }
        lines.join("\n")
    })
}

fn allow(args: &AllowArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Allowed<'a> {
        key: &'a str,
        allowed: bool,
    }
    let asked = v1::AllowKeyRequest { key: args.key.clone() };
    daemon.ask(async |mut admin| admin.allow_key(asked).await)?;
    let allowed = Allowed { key: &args.key, allowed: true };
    output.sorted(&allowed, || format!("{} gets hints again; its runs are counted anew", one_line(&args.key)))
}

/// Queues as `status` shows them; empty if nobody is held out.
#[must_use]
pub fn text(status: &v1::StatusResponse) -> String {
    if status.holdout.is_empty() && status.keys_stopped == 0 {
        return String::new();
    }
    let stopped = match status.keys_stopped {
        0 => String::new(),
        keys => {
            format!("\n{keys} recurring keys get no hints, for these made them slower: hintctl holdout list --stopped")
        }
    };
    let awaited = status.completions_awaited;
    format!(
        "what hints are worth: completion times of hinted applications ÷ held-out ones; the end of {awaited} is awaited\n\
         {}{stopped}",
        table("queue", &status.holdout)
    )
}

fn table(what: &str, views: &[v1::ComparedView]) -> String {
    let rows = views.iter().map(|view| {
        let interval = match (view.ratio, view.low, view.high) {
            (Some(ratio), Some(low), Some(high)) => {
                format!("{} ({} to {})", output::digits(ratio), output::digits(low), output::digits(high))
            }
            _ => "-".to_owned(),
        };
        let share = format!("{} %", output::digits(view.holdout * 100.0));
        [view.name.clone(), said(view), share, view.hinted.to_string(), view.held_out.to_string(), interval]
    });
    output::table([what, "", "share held out", "runs hinted", "runs held out", "ratio"], 2, rows)
}

/// The verdict in words.
fn said(view: &v1::ComparedView) -> String {
    let fewest = view.hinted.min(view.held_out);
    let verdict = match view.verdict.as_str() {
        "faster" => "hints make it faster".to_owned(),
        "slower" => "hints make it SLOWER".to_owned(),
        _ if fewest < view.needed => {
            format!("can't tell yet: {fewest} of {} applications of either side", view.needed)
        }
        _ => "can't tell yet: the interval spans 1".to_owned(),
    };
    if view.stopped_at_ms.is_some() { format!("STOPPED; {verdict}") } else { verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, verdict: &str, hinted: u64, held_out: u64) -> v1::ComparedView {
        let ratio = (verdict != "cant_tell").then_some(0.5);
        v1::ComparedView {
            name: name.to_owned(),
            holdout: 0.1,
            hinted,
            held_out,
            ratio,
            low: ratio.map(|ratio| ratio - 0.1),
            high: ratio.map(|ratio| ratio + 0.1),
            verdict: verdict.to_owned(),
            needed: 8,
            stopped_at_ms: None,
        }
    }

    #[test]
    fn a_queue_with_three_jobs_says_that_it_can_not_tell_yet() {
        let status = v1::StatusResponse {
            holdout: vec![view("etl", "cant_tell", 2, 1), view("live", "faster", 90, 10)],
            keys_stopped: 2,
            completions_awaited: 7,
            ..Default::default()
        };
        let said = text(&status);
        assert!(said.contains("can't tell yet: 1 of 8 applications of either side"), "{said}");
        assert!(said.contains("hints make it faster") && said.contains("0.5 (0.4 to 0.6)"), "{said}");
        assert!(said.contains("the end of 7 is awaited") && said.contains("2 recurring keys get no hints"), "{said}");
        for head in ["share held out", "runs hinted", "runs held out"] {
            assert!(said.contains(head), "{head}: {said}");
        }
        assert_eq!(text(&v1::StatusResponse::default()), "", "nothing is said where nobody is held out");
        let wide =
            v1::ComparedView { ratio: Some(1.0), low: Some(0.8), high: Some(1.2), ..view("q", "cant_tell", 9, 9) };
        assert!(super::said(&wide).contains("the interval spans 1"));
    }
}
