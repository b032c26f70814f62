//! `hintctl doctor`: what is wrong with a daemon and what it needs, what that means, and what to do.
//!
//! # Code map
//! - `facts`: everything that is looked at, once.
//! - `host`: checks of this machine; `process`: what the system says of a process.
//! - `policy`: the check of policies and modes; `latest`: whether the newest decisions' hints were followed.
//! - What the daemon's answers show is judged by `hintd::findings`, as on the page.

mod facts;
mod host;
mod latest;
mod policy;
mod process;

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::Output;
use super::printable::one_line;
use super::view::PlainViewArgs;
use clap::Args;
use facts::{Facts, Unanswered};
use hintd::findings::cluster::CONFIGURATION;
use hintd::findings::followed::FOLLOWED;
use hintd::findings::{self, Check, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The shipped configuration's place.
const CONFIG_FILE: &str = "/etc/hintd/hintd.toml";

/// What to look at.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl doctor\n  hintctl --json doctor | jq -r '.checks[] | select(.verdict == \"problem\") | .finding'\n\n\
    Looks and changes nothing. Each check ends as ok, warning, problem, or not checked; the last two columns of a warning or\n\
    problem say what to do and which page tells more. Run it on the daemon's machine as root or as the user hintd.\n\
    What is ok is counted, and so is what was not checked where a daemon answers; --all shows it.\n\
    Exit code 0: no problem, warnings or not; 1: a problem; 2: no daemon answers, and what can be checked without it is said."
)]
pub struct DoctorArgs {
    /// The daemon's configuration [default: what the daemon says, else /etc/hintd/hintd.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show also what is ok, and what was not checked
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// How many checks ended how.
#[derive(Debug, Default, Serialize)]
struct Counts {
    ok: usize,
    not_checked: usize,
    warning: usize,
    problem: usize,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    /// The worst of all; `not_checked` is none.
    verdict: Verdict,
    /// Whether a daemon answers.
    daemon: bool,
    socket: PathBuf,
    config_file: PathBuf,
    counts: Counts,
    checks: Vec<Check>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Work`] where there is a problem, [`Failure::Input`] where no daemon answers.
pub fn run(args: &DoctorArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    let facts = block_on(facts::facts(daemon, args.config.as_deref()))?;
    let report = Report::of(&facts);
    output.result(&report, || report.text(args.all))?;
    match (&facts.answers, report.counts.problem) {
        (Err(Unanswered { why, .. }), _) => Err(Failure::Input(format!("no daemon answers: {why}"))),
        (Ok(_), 0) => Ok(()),
        (Ok(_), 1) => Err(Failure::work("1 problem")),
        (Ok(_), problems) => Err(Failure::work(format!("{problems} problems"))),
    }
}

/// The report as a document, and the configuration that was looked at.
///
/// # Errors
/// [`Failure::Input`] where a daemon is named that can't be asked.
pub(super) async fn report(daemon: &DaemonArgs, config: Option<&Path>) -> Result<(impl Serialize, PathBuf), Failure> {
    let facts = facts::facts(daemon, config).await?;
    Ok((Report::of(&facts), facts.config_file.clone()))
}

fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![host::socket(facts)];
    let Ok(answers) = &facts.answers else {
        checks.extend([host::unit(facts), host::configuration(facts), host::exposure(facts), host::journal(facts)]);
        return checks;
    };
    let mut found = findings::all(&answers.status, &answers.racks, &answers.network, &answers.down);
    // Whoever can read the file says more of it than the daemon does.
    found.retain(|check| check.name != CONFIGURATION);
    checks.extend([host::configuration(facts), host::exposure(facts), policy::policy(answers, &facts.on_disk)]);
    checks.extend(policy::classes(answers));
    // Beside what is said of queues.
    let beside = found.iter().rposition(|check| check.name == FOLLOWED).map_or(found.len(), |at| at + 1);
    if let Some(check) = latest::latest(&answers.status, &answers.latest) {
        found.insert(beside, check);
    }
    checks.extend(found);
    checks.extend(host::process(facts, answers));
    checks.push(host::journal(facts));
    checks
}

impl Report {
    fn of(facts: &Facts) -> Self {
        let checks = checks(facts);
        let mut counts = Counts::default();
        for check in &checks {
            *match check.verdict {
                Verdict::Ok => &mut counts.ok,
                Verdict::NotChecked => &mut counts.not_checked,
                Verdict::Warning => &mut counts.warning,
                Verdict::Problem => &mut counts.problem,
            } += 1;
        }
        let worst = checks.iter().map(|check| check.verdict).filter(|verdict| *verdict != Verdict::NotChecked).max();
        Self {
            verdict: worst.unwrap_or(Verdict::NotChecked),
            daemon: facts.answers.is_ok(),
            socket: facts.socket.clone(),
            config_file: facts.config_file.clone(),
            counts,
            checks,
        }
    }

    fn text(&self, all: bool) -> String {
        let Counts { ok, not_checked, warning, problem } = self.counts;
        // The worst first, each kind in the order of the checks: a cause stands before what comes of it.
        let of = |wanted: fn(&Check) -> bool| self.checks.iter().filter(move |check| wanted(check));
        let worst = of(|check| check.verdict == Verdict::Problem).chain(of(|check| check.verdict == Verdict::Warning));
        let mut blocks: Vec<String> = Vec::new();
        blocks.extend(block(worst.clone().map(text)));
        // Without a daemon, what could not be checked may be why.
        let is_shown = |check: &&Check| all || (!self.daemon && check.verdict == Verdict::NotChecked);
        blocks.extend(block(of(|check| check.verdict < Verdict::Warning).filter(is_shown).map(text)));
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (problems, warnings) = (counted(problem, "problem"), counted(warning, "warning"));
        let mut names: Vec<&str> = worst.map(|check| check.name).collect();
        names.dedup();
        let named = if names.is_empty() { String::new() } else { format!(" (above: {})", names.join(", ")) };
        let rest = if all { "" } else { " (--all shows them)" };
        blocks.push(format!("{problems}, {warnings}{named}, {ok} ok, {not_checked} not checked{rest}"));
        blocks.join("\n\n")
    }
}

fn block(lines: impl Iterator<Item = String>) -> Option<String> {
    let lines = lines.collect::<Vec<_>>().join("\n");
    (!lines.is_empty()).then_some(lines)
}

/// For people: verdict, name and finding; below it what to do and where to read more, unless all is well.
fn text(check: &Check) -> String {
    let Check { name, verdict, finding, advice, page } = check;
    let first = format!("{:<11}  {name:<16}  {}", verdict.words(), one_line(finding));
    if *verdict < Verdict::Warning {
        return first;
    }
    let advice = one_line(advice);
    format!("{first}\n{:<31}-> {advice} ({page})", "")
}
