//! `hintctl replay`: a recorded decision made again, and by another policy beside it.

use super::answers;
use super::asked::{Asked, application_of, decision_of, decisions_of, nothing_of, whole_id};
use super::connect::{DaemonArgs, block_on};
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
#[command(after_help = "Examples:\n  hintctl replay 0000019a000000015c0e2f9b7d3a8146\n  \
    hintctl replay 0000019a000000015c0e2f9b7d3a8146 --policy container\n\n\
    It is made again from its record alone, by the policy as it was configured then: the answer must come out the same\n\
    byte by byte, and exit code 1 says that it did not. --policy runs a policy as it is configured now on what the\n\
    decision read. Nothing is leased. How far back records go is bounded by records.bytes.")]
pub struct ReplayArgs {
    /// The id of a decision or a refusal, or its first 16 digits; or the newest of an application (application_…), or of its
    /// attempt (appattempt_…), MapReduce job (job_…) or container (container_…)
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
    let decision = match application_of(&args.decision)? {
        Some(asked) => newest_of(&asked, daemon)?,
        None => {
            let id = decision_of(&args.decision)?;
            block_on(async { whole_id(&mut daemon.operator().await?, &id).await })?
        }
    };
    let policy = args.policy.clone().unwrap_or_default();
    let request = v1::ReplayRequest { decision_id: decision.clone(), policy };
    let answer = daemon.ask(async |mut admin| admin.replay(request).await)?;
    output.sorted(&Replayed { decision_id: &decision, answer: &answer }, || {
        let newest = !decision.starts_with(&args.decision.to_ascii_lowercase());
        let of = if newest { format!("the newest, {decision}:\n") } else { String::new() };
        of + &text(&one_line_strings(&answer), args)
    })?;
    if answer.same {
        return Ok(());
    }
    Err(Failure::work(format!("decision {decision} came out otherwise than it was answered")))
}

/// The newest recorded decision of an application, or of an attempt.
fn newest_of(asked: &Asked, daemon: &DaemonArgs) -> Result<String, Failure> {
    block_on(async {
        let mut admin = daemon.operator().await?;
        let list = decisions_of(&mut admin, asked, 1).await?;
        match list.decisions.first() {
            Some(newest) => Ok(newest.decision_id.clone()),
            None => Err(nothing_of(&mut admin, asked, &list.kept).await?),
        }
    })
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
    let none = [recorded, other].map(no_hints);
    let count = |at: usize, host: &str| match (sets[at].iter().find(|(known, _)| known == host), &none[at]) {
        (Some((_, count)), _) => count.to_string(),
        (None, Some(why)) => why.clone(),
        (None, None) => "0".to_owned(),
    };
    let rows = hosts.into_iter().map(|host| [host.clone(), count(0, host), count(1, host)]);
    let header = |first: &'static str| [first, recorded.policy.as_str(), name];
    let mut lines = vec![format!("{} beside {name}", recorded.policy)];
    for (set, policy) in [(recorded, recorded.policy.as_str()), (other, name)] {
        lines.extend(why_no_hints(set).map(|why| format!("{policy}: {why}")));
    }
    if none[1].is_some() {
        lines.push(format!("The costs of {name} below are those of its placement, which it would not hint."));
    }
    for rated in answer.rated.iter().filter(|rated| rated.recorded.is_none() && rated.other.is_none()) {
        lines.push(match answers::waits_for_room(recorded) {
            true => format!("{}: no container has room, so that there is no placement to score", rated.policy),
            false => format!("{}: it has no objective, and gives no placement a score", rated.policy),
        });
    }
    lines.push(format!("\n{}", output::table(header("containers on"), 1, rows)));
    let [then, now] = [&answer.recorded_terms, &answer.other_terms].map(|terms| {
        let terms = terms.as_ref().map(terms_by_name).unwrap_or_default();
        terms.into_iter().filter(|(name, _)| name != "objective" && !name.starts_with("part.")).collect::<Vec<_>>()
    });
    let rows = then.iter().map(|(name, value)| {
        let beside = now.iter().find(|(known, _)| known == name);
        let beside = beside.map_or_else(|| "-".to_owned(), |(_, value)| output::in_units(name, *value));
        [output::term(name), output::in_units(name, *value), beside]
    });
    lines.push(format!("\n{}", output::table(header("cost"), 1, rows)));
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), score);
    let rated = answer.rated.iter().filter(|rated| rated.recorded.is_some() || rated.other.is_some());
    let rows =
        rated.map(|rated| [format!("of {}", rated.policy), show(rated.recorded), show(rated.other), gain(rated.gain)]);
    let header = ["objective", recorded.policy.as_str(), name, "gain"];
    lines.push(format!("\n{}", output::table(header, 1, rows)));
    lines.join("\n")
}

/// A policy's score of a placement: three digits, however small.
fn score(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:.2e}") } else { output::digits(value) }
}

/// What another placement would gain of a score. Of next to nothing there is no share that says anything.
fn gain(gain: Option<f64>) -> String {
    match gain {
        None => "-".to_owned(),
        Some(gain) if gain < -10.0 => "more than 10 times worse".to_owned(),
        Some(gain) => format!("{} %", output::digits(gain * 100.0)),
    }
}

/// In a cell: why a decision has no hints at all; `None`: it has.
fn no_hints(set: &v1::HintSet) -> Option<String> {
    let why = match (&set.withheld, set.mode()) {
        _ if !set.hints.is_empty() => return None,
        (Some(withheld), _) => format!("no hints: {}", withheld.reason),
        (None, v1::Mode::Off) => "no hints: off".to_owned(),
        (None, _) if set.without_room > 0 => "no hints: no_room".to_owned(),
        (None, _) => "no hints".to_owned(),
    };
    Some(why)
}

/// The same in a sentence.
fn why_no_hints(set: &v1::HintSet) -> Option<String> {
    match (answers::withheld_text(set), no_hints(set)) {
        (Some(withheld), Some(_)) => Some(withheld),
        (None, Some(_)) if set.without_room > 0 => Some("no hints: the containers find no room".to_owned()),
        (_, none) => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_of_next_to_nothing_is_shown_and_no_share_of_it() {
        assert_eq!([score(0.0), score(7.27e-10), score(0.215)], ["0", "7.27e-10", "0.215"]);
        assert_eq!([gain(None), gain(Some(-0.075)), gain(Some(-3e8))], ["-", "-7.5 %", "more than 10 times worse"]);
    }

    #[test]
    fn a_policy_that_would_give_no_hints_says_why_and_whose_costs_are_shown() {
        let hint = |host: &str| v1::Hint { group: "map".into(), host: host.into(), count: 2, ..v1::Hint::default() };
        let outcome = |set| Some(v1::Outcome { outcome: Some(Outcome::Hints(set)) });
        let recorded =
            v1::HintSet { policy: "joint".into(), hints: vec![hint("n1"), hint("n2")], ..v1::HintSet::default() };
        let withheld = v1::Withheld { reason: "no_gain".into(), hinted_s: Some(0.3214), default_s: Some(0.3222) };
        let other = v1::HintSet { withheld: Some(withheld), ..v1::HintSet::default() };
        let terms = |bytes| Some(v1::Terms { remote_bytes: Some(bytes), ..v1::Terms::default() });
        let rated = |policy: &str, value| v1::Rated {
            policy: policy.into(),
            recorded: value,
            other: value,
            ..v1::Rated::default()
        };
        let answer = v1::ReplayResponse {
            recorded: outcome(recorded.clone()),
            other: outcome(other),
            recorded_terms: terms(34_351_815.0),
            other_terms: terms(536_870_912.0),
            rated: vec![rated("joint", Some(1.0)), rated("spread", None)],
            ..v1::ReplayResponse::default()
        };
        let text = side_by_side(&answer, "spread");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("spread: no hints: the busiest link would be done after 321 ms, and after 322 ms"),
            "{text}"
        );
        assert!(words.contains("n1 2 no hints: no_gain n2 2 no hints: no_gain"), "{text}");
        assert!(words.contains("34.4 MB 537 MB") && words.contains("The costs of spread below"), "{text}");
        assert!(words.contains("spread: it has no objective") && !words.contains("of spread - -"), "{text}");
        let both = v1::ReplayResponse { other: outcome(v1::HintSet { hints: vec![hint("n1")], ..recorded }), ..answer };
        let text = side_by_side(&both, "container");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains("n1 2 2 n2 2 0"), "{text}");
        assert!(!text.contains("no hints"), "{text}");
    }
}
