//! `hintctl explain`: why there, why not here, why nowhere.

use super::answers::Detail;
use super::connect::{DaemonArgs, TokenArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::{one_line, one_line_strings};
use super::view::PlainViewArgs;
use super::{adherence, answers, lists, predicted, summary};
use clap::Args;
use hintd_client::ClientError;
use hintd_client::wire::v1;
use serde::Serialize;
use tonic::Code;

/// A decision.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl explain 0000019a000000015c0e2f9b7d3a8146\n  \
    hintctl --json explain 0000019a000000015c0e2f9b7d3a8146 | jq '.exclusions[] | select(.reason == \"no_room\")'\n  \
    hintctl explain application_1700000000000_0007      its last decisions, and all of the newest\n\n\
    Answers are remembered for leases.answers_kept after their last lease, and as long as records go back; refusals\n\
    as long as records go back. Asked over the admin socket; with a token over the gRPC address.")]
pub struct ExplainArgs {
    /// The id of a decision, of a refusal, or of an application
    decision: String,
    /// Of an application, so many decisions at most, the newest
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// Routes on which no bytes are known to go as well
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// `hintctl explain`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it does not know the decision.
pub fn run(args: &ExplainArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    if args.decision.starts_with("application_") {
        return application(args, daemon, output);
    }
    let answer = block_on(ask(args, daemon))?;
    output.answer(&answer, |answer| text(answer, args.all))
}

/// An application's last decisions, and why the newest of them came out as it did.
fn application(args: &ExplainArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        list: &'a v1::ListDecisionsResponse,
        newest: &'a v1::ExplainResponse,
    }
    let (application_id, limit) = (args.decision.clone(), args.last);
    let asked = v1::ListDecisionsRequest { application_id, limit, ..v1::ListDecisionsRequest::default() };
    let (list, newest) = block_on(async {
        let mut admin = daemon.operator().await?;
        let list = admin.list_decisions(asked).await?.into_inner();
        let Some(newest) = list.decisions.first() else {
            let (id, kept) = (one_line(&args.decision), one_line(&list.kept));
            return Err(Failure::Input(format!("no decision of {id} is recorded; {kept}")));
        };
        let asked = v1::ExplainRequest { decision_id: newest.decision_id.clone(), ..v1::ExplainRequest::default() };
        let newest = admin.explain(asked).await?.into_inner();
        Ok((list, newest))
    })?;
    output.result(&Document { list: &list, newest: &newest }, || {
        let table = lists::decisions_text(&one_line_strings(&list), false);
        format!("{table}\n\nthe newest:\n{}", text(&one_line_strings(&newest), args.all))
    })
}

/// Of the admin socket, which explains anybody's decision, or of the gRPC address for who shows the attempt's token.
async fn ask(args: &ExplainArgs, daemon: &DaemonArgs) -> Result<v1::ExplainResponse, Failure> {
    let (decision_id, token) = (args.decision.clone(), args.token.token());
    let asked = v1::ExplainRequest { decision_id, token, nonce: Vec::new() };
    if asked.token.is_empty() {
        match daemon.admin().await?.explain(asked.clone()).await {
            Ok(answer) => return Ok(answer.into_inner()),
            // A daemon of version 0.1.0, which explains to everybody.
            Err(status) if status.code() == Code::Unimplemented => {}
            Err(status) => return Err(ClientError::from(status).into()),
        }
    }
    Ok(daemon.client().await?.explain_with(asked).await?)
}

fn text(answer: &v1::ExplainResponse, all: bool) -> String {
    let set = answer.decision.clone().unwrap_or_default();
    if let Some(refused) = &answer.refused {
        return refused_text(answer, &set, refused);
    }
    let outcome = answer.outcome.as_ref().map(|found| format!("\n\n{}", adherence::outcome_text(found)));
    let first = summary::sentences(&set, answer.outcome.as_ref());
    format!("{first}\n\n{}{}", explained_text(answer, &set, all), outcome.unwrap_or_default())
}

fn who(answer: &v1::ExplainResponse) -> String {
    format!("{}, attempt {}, queue {}", answer.application_id, answer.attempt, answer.queue)
}

fn refused_text(answer: &v1::ExplainResponse, set: &v1::HintSet, refused: &v1::Refused) -> String {
    let v1::HintSet { decision_id, request_id, policy, .. } = set;
    let refusal = answers::refused_text(refused);
    format!("{}\n{decision_id} of request {request_id} by {policy}: {refusal}", who(answer))
}

fn explained_text(explained: &v1::ExplainResponse, set: &v1::HintSet, all: bool) -> String {
    let detail = Detail { routes_without_bytes: all, nothing_ruled_out: true };
    let mut lines = vec![who(explained), answers::text_with(set, detail)];
    if let Some(performance) = &explained.performance {
        lines.push(format!("\n{}", predicted::text(performance)));
    }
    if !explained.moves.is_empty() {
        lines.push(format!("\n{}", predicted::moves_text(&explained.moves)));
    }
    if !explained.leases.is_empty() {
        let rows =
            explained.leases.iter().map(|lease| [lease.lease_id.to_string(), lease.host.clone(), lease.state.clone()]);
        lines.push(format!("\n{}", output::table(["lease", "host", "state"], 3, rows)));
    }
    for homed in &explained.input_homes {
        let v1::HomedGroup { group, racks, at_home, elsewhere } = homed;
        let racks = racks.join(", ");
        lines.push(format!(
            "\n{group} was told to stay with its input in {racks}: {at_home} came there, {elsewhere} elsewhere"
        ));
    }
    let rows = set.ages.iter().map(|age| {
        let heard = age.age_ms.map_or_else(|| "-".to_owned(), output::age);
        let state = match (age.age_ms, age.stale) {
            (None, _) => "never received",
            (Some(_), true) => "too old",
            (Some(_), false) => "fresh",
        };
        [age.source.clone(), state.to_owned(), heard]
    });
    lines.push(format!("\n{}", output::table(["source", "", "heard before"], 2, rows)));
    if explained.recorded {
        lines.push(format!("\nhintctl replay {} makes it again", set.decision_id));
    }
    lines.join("\n")
}
