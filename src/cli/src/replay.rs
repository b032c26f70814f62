//! `hintctl replay`: a recorded decision made again, and by another policy beside it.

use super::answers;
use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line_strings;
use clap::Args;
use hintd_client::view::terms_by_name;
use hintd_client::wire::v1;
use hintd_client::wire::v1::outcome::Outcome;
use serde::Serialize;

/// A decision, and perhaps another policy.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl replay 0000019a00000001\n  \
    hintctl replay 0000019a00000001 --policy container\n\n\
    It is made again from its record alone, by the policy as it was configured then: the answer must come out the same\n\
    byte by byte, and exit code 1 says that it did not. --policy runs a policy as it is configured now on what the\n\
    decision read. Nothing is leased. How far back records go is bounded by records.bytes.")]
pub struct ReplayArgs {
    /// The id of a decision, or of a refusal, 16 hexadecimal digits
    decision: String,
    /// Another policy, to stand beside
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
}

/// A decision made again, with its id.
#[derive(Serialize)]
struct Replayed<'a> {
    decision_id: &'a str,
    #[serde(flatten)]
    answer: &'a v1::ReplayResponse,
}

/// `hintctl replay`.
///
/// # Errors
/// [`Failure`] where no daemon answers, the decision is not recorded, or it comes out otherwise.
pub fn run(args: &ReplayArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let request =
        v1::ReplayRequest { decision_id: args.decision.clone(), policy: args.policy.clone().unwrap_or_default() };
    let answer = daemon.ask(async |mut admin| admin.replay(request).await)?;
    output.sorted(&Replayed { decision_id: &args.decision, answer: &answer }, || {
        text(&one_line_strings(&answer), args)
    })?;
    if answer.same {
        return Ok(());
    }
    Err(Failure::work(format!("decision {} came out otherwise than it was answered", args.decision)))
}

fn outcome(outcome: Option<&v1::Outcome>) -> Option<&Outcome> {
    outcome?.outcome.as_ref()
}

fn outcome_text(of: Option<&v1::Outcome>) -> String {
    match outcome(of) {
        Some(Outcome::Hints(set)) => answers::text(set),
        Some(Outcome::Refused(refused)) => answers::refused_text(refused),
        None => String::new(),
    }
}

fn text(answer: &v1::ReplayResponse, args: &ReplayArgs) -> String {
    let mut lines = vec![outcome_text(answer.replayed.as_ref())];
    if answer.same {
        lines.push("\nsame bytes as it was answered".to_owned());
    } else {
        lines.push("\nNOT as it was answered:".to_owned());
        let rows = answer.differences.iter().map(|found| [found.field.clone(), found.then.clone(), found.now.clone()]);
        lines.push(output::table(["field", "then", "now"], 3, rows));
    }
    if let Some(name) = &args.policy {
        lines.push(format!("\n{}", side_by_side(answer, name)));
    }
    lines.join("\n")
}

/// Containers by host, cost terms, and both objectives, in three columns.
fn side_by_side(answer: &v1::ReplayResponse, name: &str) -> String {
    let (recorded, other) = match (outcome(answer.recorded.as_ref()), outcome(answer.other.as_ref())) {
        (_, Some(Outcome::Refused(refused))) => return format!("{name}: {}", answers::refused_text(refused)),
        (Some(Outcome::Hints(recorded)), Some(Outcome::Hints(other))) => (recorded, other),
        (_, Some(Outcome::Hints(other))) => return answers::text(other),
        (_, None) => return String::new(),
    };
    let sets = [recorded, other].map(|set| answers::by_host(&set.hints, None));
    let mut hosts: Vec<&String> = sets.iter().flatten().map(|(host, _)| host).collect();
    hosts.sort();
    hosts.dedup();
    let count = |set: &[(String, u32)], host: &str| {
        set.iter().find(|(known, _)| known == host).map_or_else(|| "-".to_owned(), |(_, count)| count.to_string())
    };
    let rows = hosts.into_iter().map(|host| [host.clone(), count(&sets[0], host), count(&sets[1], host)]);
    let header = |first: &'static str| [first, recorded.policy.as_str(), name];
    let mut lines = vec![output::table(header("containers on"), 1, rows)];
    let [then, now] = [&answer.recorded_terms, &answer.other_terms].map(|terms| {
        let terms = terms.as_ref().map(terms_by_name).unwrap_or_default();
        terms.into_iter().filter(|(name, _)| name != "objective" && !name.starts_with("part.")).collect::<Vec<_>>()
    });
    let number = |value: &f64| if value.is_finite() { output::digits(*value) } else { "-".to_owned() };
    let rows = then.iter().map(|(name, value)| {
        let beside =
            now.iter().find(|(known, _)| known == name).map_or_else(|| "-".to_owned(), |(_, value)| number(value));
        [name.clone(), number(value), beside]
    });
    lines.push(format!("\n{}", output::table(header("cost"), 1, rows)));
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), output::digits);
    let gain =
        |gain: Option<f64>| gain.map_or_else(|| "-".to_owned(), |gain| format!("{} %", output::digits(gain * 100.0)));
    let rows = answer
        .rated
        .iter()
        .map(|rated| [format!("of {}", rated.policy), show(rated.recorded), show(rated.other), gain(rated.gain)]);
    let header = ["objective", recorded.policy.as_str(), name, "gain"];
    lines.push(format!("\n{}", output::table(header, 1, rows)));
    lines.join("\n")
}
