//! `hintctl policies`: which there are, and one of them with its parameters and what it learnt.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::one_line;
use super::view::PlainViewArgs;
use clap::Args;
use hintd_client::wire::v1;
use hintd_model::solve::nearest;
use hintd_model::units::{Calendar, Micros, Timestamp};

/// All of them, or one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl policies\n  hintctl policies --show scale_up_out\n  \
    hintctl --json policies | jq -r '.policies[].params_toml'\n\nWhat a policy learnt (scale_up_out) is judged on jobs that it \
    was not trained from.")]
pub struct PoliciesArgs {
    /// Only this one: its parameters in force, and what it learnt from jobs that finished
    #[arg(long, value_name = "POLICY")]
    show: Option<String>,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// `hintctl policies`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or has no such policy.
pub fn run(args: &PoliciesArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    let answer = daemon.ask(async |mut admin| admin.list_policies(v1::ListPoliciesRequest {}).await)?;
    let Some(name) = &args.show else {
        return output.sorted_answer(&answer, |answer| {
            let rows = answer.policies.iter().map(|policy| {
                let star = if policy.name == answer.default_policy { " (default)" } else { "" };
                [format!("{}{star}", policy.name), policy.capabilities.join(" "), policy.summary.clone()]
            });
            output::table(["policy", "can", "what it is"], 3, rows)
        });
    };
    let Some(policy) = answer.policies.iter().find(|policy| policy.name == *name) else {
        let names = answer.policies.iter().map(|policy| policy.name.as_str());
        let meant = nearest(name, names).map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        return Err(Failure::Input(format!("--show {name}: the daemon has no such policy{meant}")));
    };
    output.sorted_with_file(policy, || said(policy), || parameters(policy))
}

/// What it is, whom it serves and what it learnt.
fn said(policy: &v1::PolicyView) -> String {
    let listed = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    let mut lines = vec![
        format!("{}: {}", policy.name, policy.summary),
        format!("can: {}", policy.capabilities.join(" ")),
        format!("queues: {}; frameworks: {}", listed(&policy.queues), listed(&policy.frameworks)),
    ];
    lines.extend(policy.training.iter().flat_map(learnt));
    one_by_one(&lines)
}

/// As they may be copied into a configuration.
fn parameters(policy: &v1::PolicyView) -> String {
    let mut lines = vec!["parameters:".to_owned()];
    lines.extend(policy.params_toml.lines().map(|line| format!("  {line}")));
    one_by_one(&lines)
}

fn one_by_one(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| line.lines()).map(|line| one_line(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn learnt(training: &v1::PolicyLearnt) -> Vec<String> {
    let mut lines = Vec::new();
    if training.jobs == 0 {
        lines.push("learnt from: nothing yet; it goes by its parameters".to_owned());
    } else {
        let when = match training.trained_at_ms {
            0 => "before the daemon's start".to_owned(),
            at => format!("at {}", clock(Timestamp(0).plus(Micros::from_millis(at)))),
        };
        let v1::PolicyLearnt { jobs, small_jobs, timed_on_class, timed_elsewhere, .. } = training;
        lines.push(format!("learnt from: {jobs} finished jobs, {small_jobs} of them small, {when}"));
        let off = match training.task_time_error {
            Some(error) => format!("; a predicted time is off by {} (median)", percent(error)),
            None => String::new(),
        };
        lines.push(format!("task times: of {timed_on_class} jobs on its machines, {timed_elsewhere} on others{off}"));
        let head = ["jobs held out", "shuffle", "jobs", "wrong", "error", "large called small"];
        lines.push(match training.held_out.iter().any(|row| row.jobs > 0) {
            true => output::table(head, 2, rows(training)),
            false => "jobs held out: none, for too few of one kind would be left to learn from".to_owned(),
        });
    }
    let also = [
        ("not trained since", &training.problem),
        ("trained, and what it learnt is not kept", &training.not_kept),
        ("damaged file", &training.damaged_file),
    ];
    let also = also.iter().filter(|(_, why)| !why.is_empty());
    lines.extend(also.map(|(what, why)| format!("{what}: {why}")));
    lines
}

fn rows(training: &v1::PolicyLearnt) -> impl Iterator<Item = [String; 6]> {
    training.held_out.iter().map(|row| {
        let shuffle = if row.shuffle_known { "known" } else { "taken to be 0" };
        let error = percent(row.wrong as f64 / row.jobs.max(1) as f64);
        let counts = [row.jobs, row.wrong].map(|count| count.to_string());
        let [jobs, wrong] = counts;
        [row.classifier.clone(), shuffle.to_owned(), jobs, wrong, error, row.large_called_small.to_string()]
    })
}

fn clock(at: Timestamp) -> String {
    let Calendar { year, month, day, hour, minute, second } = at.calendar(0);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(policy: &v1::PolicyView) -> String {
        format!("{}\n{}", said(policy), parameters(policy))
    }

    fn policy(training: v1::PolicyLearnt) -> v1::PolicyView {
        v1::PolicyView {
            name: "scale_up_out".to_owned(),
            summary: "small and large".to_owned(),
            capabilities: vec!["place".to_owned(), "dispatch".to_owned()],
            params_toml: "speed = 1.7\nsteal = \"never\"\n".to_owned(),
            training: Some(training),
            ..v1::PolicyView::default()
        }
    }

    #[test]
    fn what_was_learnt_is_said_with_its_error_and_what_was_not_with_the_reason() {
        let row = |classifier: &str, wrong| v1::HeldOutJobs {
            classifier: classifier.to_owned(),
            shuffle_known: true,
            jobs: 80,
            wrong,
            large_called_small: 1,
        };
        let learnt = v1::PolicyLearnt {
            jobs: 400,
            small_jobs: 380,
            timed_on_class: 120,
            timed_elsewhere: 250,
            task_time_error: Some(0.123),
            held_out: vec![row("support vectors", 2), row("regression", 4)],
            ..v1::PolicyLearnt::default()
        };
        let unjudged = v1::HeldOutJobs { jobs: 0, wrong: 0, ..row("support vectors", 0) };
        let text = shown(&policy(v1::PolicyLearnt { held_out: vec![unjudged], ..learnt.clone() }));
        assert!(text.contains("jobs held out: none, for too few of one kind") && !text.contains("0.0 %"), "{text}");
        let text = shown(&policy(learnt));
        for part in [
            "learnt from: 400 finished jobs, 380 of them small, before the daemon's start",
            "task times: of 120 jobs on its machines, 250 on others; a predicted time is off by 12.3 % (median)",
            "2.5 %",
            "5.0 %",
            "  speed = 1.7\n  steal = \"never\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let problem = "49 finished jobs, fewer than 50".to_owned();
        let text = shown(&policy(v1::PolicyLearnt { problem, ..v1::PolicyLearnt::default() }));
        assert!(
            text.contains("nothing yet") && text.contains("not trained since: 49 finished jobs, fewer than 50"),
            "{text}"
        );
    }

    #[test]
    fn what_was_trained_and_only_not_kept_is_not_called_untrained() {
        let not_kept = "journal.scale_up_out: No space left on device; the next start learns anew".to_owned();
        let damaged_file = "journal.scale_up_out: its check sum is 1, not 2; it is trained anew".to_owned();
        let learnt = v1::PolicyLearnt { jobs: 60, not_kept, damaged_file, ..v1::PolicyLearnt::default() };
        let text = shown(&policy(learnt));
        assert!(!text.contains("not trained since"), "{text}");
        for line in [
            "trained, and what it learnt is not kept: journal.scale_up_out: No space left on device; the next start learns anew",
            "damaged file: journal.scale_up_out: its check sum is 1, not 2; it is trained anew",
        ] {
            assert!(text.lines().any(|said| said == line), "{line}: {text}");
        }
    }
}
