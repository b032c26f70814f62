//! `hintctl explain`: why there, why not here, why nowhere.

use super::adherence;
use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::views::{self, AnswerView};
use clap::Args;
use hintd_client::wire::v1;
use serde::Serialize;
use serde_json::{Value, json};

/// A decision.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl explain 0000019a00000001\n  \
    hintctl --json explain 0000019a00000001 | jq '.exclusions[] | select(.reason == \"no_room\")'\n\n\
    Answers are remembered for leases.answers_kept after their last lease, and as long as records go back; refusals\n\
    as long as records go back.")]
pub struct ExplainArgs {
    /// The id of a decision, or of a refusal, 16 hexadecimal digits
    decision: String,
}

#[derive(Serialize)]
struct Explained {
    application_id: String,
    attempt: u32,
    queue: String,
    decided_at_ms: u64,
    /// Whether `hintctl replay` can make it again.
    recorded: bool,
    params_toml: String,
    leases: Vec<LeaseView>,
    ages: Vec<AgeView>,
    /// What became of its hints; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Value>,
    #[serde(flatten)]
    answer: AnswerView,
}

#[derive(Serialize)]
struct LeaseView {
    lease_id: u64,
    host: String,
    state: String,
}

#[derive(Serialize)]
struct AgeView {
    source: String,
    age_ms: Option<u64>,
    stale: bool,
}

/// `hintctl explain`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it does not know the decision.
pub fn run(args: &ExplainArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = block_on(async { Ok(daemon.client().await?.explain(&args.decision).await?) })?;
    let set = answer.decision.clone().unwrap_or_default();
    if let Some(refused) = &answer.refused {
        return output.result(&refused_document(&answer, &set, refused), || refused_text(&answer, &set, refused));
    }
    let lease = |lease: &v1::LeaseState| LeaseView {
        lease_id: lease.lease_id,
        host: lease.host.clone(),
        state: lease.state.clone(),
    };
    let age = |age: &v1::SourceAge| AgeView { source: age.source.clone(), age_ms: age.age_ms, stale: age.stale };
    let explained = Explained {
        application_id: answer.application_id.clone(),
        attempt: answer.attempt,
        queue: answer.queue.clone(),
        decided_at_ms: answer.decided_at_ms,
        recorded: answer.recorded,
        params_toml: answer.params_toml.clone(),
        leases: answer.leases.iter().map(lease).collect(),
        ages: set.ages.iter().map(age).collect(),
        outcome: answer.outcome.as_ref().map(adherence::outcome_document),
        answer: AnswerView::new(&set),
    };
    output.result(&explained, || {
        let outcome = answer.outcome.as_ref().map(|found| format!("\n\n{}", adherence::outcome_text(found)));
        format!("{}{}", explained_text(&explained, &set), outcome.unwrap_or_default())
    })
}

fn who(answer: &v1::ExplainResponse) -> String {
    format!("{}, attempt {}, queue {}", answer.application_id, answer.attempt, answer.queue)
}

fn refused_document(answer: &v1::ExplainResponse, set: &v1::HintSet, refused: &v1::Refused) -> Value {
    json!({
        "application_id": answer.application_id, "attempt": answer.attempt, "queue": answer.queue,
        "decided_at_ms": answer.decided_at_ms, "recorded": answer.recorded, "params_toml": answer.params_toml,
        "decision_id": set.decision_id, "request_id": set.request_id, "policy": set.policy,
        "refused": views::refused_document(refused),
    })
}

fn refused_text(answer: &v1::ExplainResponse, set: &v1::HintSet, refused: &v1::Refused) -> String {
    let v1::HintSet { decision_id, request_id, policy, .. } = set;
    let refusal = views::refused_text(refused);
    format!("{}\n{decision_id} of request {request_id} by {policy}: {refusal}", who(answer))
}

fn explained_text(explained: &Explained, set: &v1::HintSet) -> String {
    let Explained { application_id, attempt, queue, .. } = explained;
    let mut lines = vec![format!("{application_id}, attempt {attempt}, queue {queue}"), views::answer_text(set)];
    if !explained.leases.is_empty() {
        let rows =
            explained.leases.iter().map(|lease| [lease.lease_id.to_string(), lease.host.clone(), lease.state.clone()]);
        lines.push(format!("\n{}", output::table(["lease", "host", "state"], 3, rows)));
    }
    let rows = explained.ages.iter().map(|age| {
        let heard = age.age_ms.map_or_else(|| "never".to_owned(), |ms| output::seconds(ms as f64 / 1e3));
        [age.source.clone(), if age.stale { "too old" } else { "fresh" }.to_owned(), heard]
    });
    lines.push(format!("\n{}", output::table(["source", "", "heard before"], 2, rows)));
    if explained.recorded {
        lines.push(format!("\nhintctl replay {} makes it again", set.decision_id));
    }
    lines.join("\n")
}
