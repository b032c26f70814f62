//! `hintctl explain`: why there, why not here, why nowhere.

use super::answers::Detail;
use super::asked::{Asked, application_of, decision_of, decisions_of, nothing_of, whole_id};
use super::connect::{DaemonArgs, TokenArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::printable::{one_line, one_line_strings};
use super::turn::turn_text;
use super::view::PlainViewArgs;
use super::{adherence, answers, in_short, lists, moments, predicted, realised, summary};
use clap::Args;
use hintd_client::wire::v1;
use hintd_client::{AdminClient, ClientError};
use serde::Serialize;
use std::collections::BTreeMap;
use tonic::Code;

/// A decision.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl explain 0000019a000000015c0e2f9b7d3a8146\n  \
    hintctl --json explain 0000019a000000015c0e2f9b7d3a8146 | jq '.exclusions[] | select(.reason == \"no_room\")'\n  \
    hintctl explain application_1700000000000_0007      its last decisions, and all of the newest\n  hintctl explain job_1700000000000_0007              the same, by the job's id\n\n\
    Answers are remembered for leases.answers_kept after their last lease, and as long as records go back; refusals\n\
    as long as records go back. Asked over the admin socket; with a token over the gRPC address.")]
pub struct ExplainArgs {
    /// The id of a decision or a refusal, or its first 16 digits; of an application (application_…), or of its attempt
    /// (appattempt_…), MapReduce job (job_…) or container (container_…)
    decision: String,
    /// Of an application, show at most COUNT decisions, the newest
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// All rows of all tables, and routes on which no bytes are known to go as well
    #[arg(long)]
    all: bool,
    /// Each lease, and not only how many there are by host and state
    #[arg(long)]
    leases: bool,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// What of an answer is shown in full.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// All rows, and routes on which no bytes are known to go as well.
    all: bool,
    /// Each lease.
    leases: bool,
}

/// Rows that each table has at first: the answer stands before them.
const ROWS: usize = 10;

impl Shown {
    const fn rows(self) -> usize {
        if self.all { usize::MAX } else { ROWS }
    }
}

impl ExplainArgs {
    const fn shown(&self) -> Shown {
        Shown { all: self.all, leases: self.leases }
    }
}

/// `hintctl explain`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it does not know the decision.
pub fn run(args: &ExplainArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    if let Some(asked) = application_of(&args.decision)? {
        return application(args, &asked, daemon, output);
    }
    let (answer, links) = block_on(ask(args, daemon, output))?;
    output.answer(&answer, |answer| text(answer, &links, args.shown()))
}

/// Users that are asked for of each link: who sends least does not fill it.
const USERS: u32 = 16;

/// All links, for what went wrong since the decision; none where the daemon does not tell, nor for scripts, which read them of
/// `hintctl links`.
async fn links(admin: &mut AdminClient, output: Output) -> Vec<v1::LinkView> {
    if output.is_json() {
        return Vec::new();
    }
    let asked = v1::LinksRequest { users: USERS, ..v1::LinksRequest::default() };
    admin.links(asked).await.map(|found| found.into_inner().links).unwrap_or_default()
}

/// An application's last decisions, or those of one attempt, and why the newest of them came out as it did.
fn application(args: &ExplainArgs, asked: &Asked, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        list: &'a v1::ListDecisionsResponse,
        newest: &'a v1::ExplainResponse,
        /// What it was told about its receivers' turn; left out where it never asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        turn: Option<&'a v1::ShuffleTurnView>,
    }
    let (list, newest, links, turn) = block_on(async {
        let mut admin = daemon.operator().await?;
        let list = decisions_of(&mut admin, asked, args.last).await?;
        let Some(newest) = list.decisions.first() else { return Err(nothing_of(&mut admin, asked, &list.kept).await?) };
        let asked = v1::ExplainRequest { decision_id: newest.decision_id.clone(), ..v1::ExplainRequest::default() };
        let newest = admin.explain(asked).await?.into_inner();
        let links = links(&mut admin, output).await;
        let turn = turn(&mut admin, &list.decisions[0]).await;
        Ok((list, newest, links, turn))
    })?;
    output.result(&Document { list: &list, newest: &newest, turn: turn.as_ref() }, || {
        let table = lists::decisions_text(&one_line_strings(&list), false);
        let turn = turn.as_ref().map(|turn| format!("\nits receivers: {}", turn_text(turn))).unwrap_or_default();
        format!("{table}{turn}\n\nthe newest:\n{}", text(&one_line_strings(&newest), &links, args.shown()))
    })
}

/// What the attempt of an application's newest decision was told about its receivers, if it is not over; none where the daemon
/// does not tell.
async fn turn(admin: &mut AdminClient, newest: &v1::DecisionView) -> Option<v1::ShuffleTurnView> {
    let asked = v1::ListApplicationsRequest { application_id: newest.application_id.clone(), ..Default::default() };
    let found = admin.list_applications(asked).await.ok()?.into_inner().applications.into_iter().next()?;
    found.turn.filter(|_| found.attempt == newest.attempt)
}

/// Of the admin socket, which explains anybody's decision, or of the gRPC address for who shows the attempt's token.
async fn ask(
    args: &ExplainArgs,
    daemon: &DaemonArgs,
    output: Output,
) -> Result<(v1::ExplainResponse, Vec<v1::LinkView>), Failure> {
    let (decision_id, token) = (decision_of(&args.decision)?, args.token.token());
    let mut asked = v1::ExplainRequest { decision_id, token, nonce: Vec::new() };
    if asked.token.is_empty() {
        let mut admin = daemon.admin().await?;
        asked.decision_id = whole_id(&mut admin, &asked.decision_id).await?;
        match admin.explain(asked.clone()).await {
            Ok(answer) => return Ok((answer.into_inner(), links(&mut admin, output).await)),
            // A daemon of version 0.1.0, which explains to everybody.
            Err(status) if status.code() == Code::Unimplemented => {}
            Err(status) => return Err(ClientError::from(status).into()),
        }
    }
    Ok((daemon.client().await?.explain_with(asked).await?, Vec::new()))
}

fn text(answer: &v1::ExplainResponse, links: &[v1::LinkView], detail: Shown) -> String {
    let set = answer.decision.clone().unwrap_or_default();
    let in_short = in_short::line(answer, links);
    let in_short = one_line(&in_short); // names of links are told by feeds
    if let Some(refused) = &answer.refused {
        return format!("{in_short}\n{}", refused_text(answer, &set, refused));
    }
    let all = answer.outcome.as_ref();
    let outcome = all
        .map_or_else(|| no_outcome(answer, &set).to_owned(), |outcome| adherence::outcome_text(outcome, detail.rows()));
    let first = summary::sentences(&set, summary::Outcome::of(answer));
    // Nobody could follow what came too late.
    let gain = realised::text(&set, all).filter(|_| answer.late.is_empty());
    let gain = gain.map_or_else(String::new, |gain| format!("\n{gain}"));
    let (decided, details) = (decided(answer, &set), explained_text(answer, &set, detail));
    format!("{in_short}\n\n{decided}\n{first}{gain}\n\ndetails\n{outcome}\n\n{details}")
}

/// Whose it is, when it was made, by which policy, and what it was to gain.
fn decided(answer: &v1::ExplainResponse, set: &v1::HintSet) -> String {
    let gain = set.expected_gain.map_or_else(
        || "expected gain not known".to_owned(),
        |gain| format!("expected gain {} % {}", output::digits(gain * 100.0), realised::objective(set)),
    );
    let by = match (set.policy.is_empty(), set.hints.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!(", by {}", set.policy),
        (false, false) => format!(", by {}, {gain}", set.policy),
    };
    let asked = asked_for(&answer.asked_for).map_or_else(String::new, |asked| format!("\n{asked}"));
    format!("{}\ndecided {}{by}{asked}", who(answer), moments::moment_and_age(answer.decided_at_ms, answer.age_ms))
}

/// `asked for 12 containers: 10 map, 2 reduce`; `None`: it is not recorded.
fn asked_for(groups: &[v1::AskedGroup]) -> Option<String> {
    let all: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    let what = output::count(all, "container");
    let shown = groups.iter().take(ROWS).map(|v1::AskedGroup { group, count }| format!("{count} {group}"));
    let more = groups.len().saturating_sub(ROWS);
    let more = if more > 0 { format!(", and {}", output::count(more as u64, "more group")) } else { String::new() };
    (all > 0).then(|| format!("asked for {what}: {}{more}", shown.collect::<Vec<_>>().join(", ")))
}

/// Why nobody can say where the containers came.
fn no_outcome(answer: &v1::ExplainResponse, set: &v1::HintSet) -> &'static str {
    if !answer.late.is_empty() {
        return "what became of it: nothing, for nobody has the answer";
    }
    if answer.followed.is_some() {
        return "what became of it by host is no longer kept (leases.answers_kept)";
    }
    match set.hints.is_empty() || answers::waits_for_room(set) {
        true if set.mode() == v1::Mode::Off => "what became of it: nothing was computed, for its queue is off",
        true => "what became of it: containers without hints are not watched, so that hintd can't say where they came",
        false => {
            "what became of it is not known: it was decided before the daemon's last start, or longer ago than leases.answers_kept"
        }
    }
}

/// Leases by host and state, or each.
fn leases_text(leases: &[v1::LeaseState], each: bool, most: usize) -> String {
    if each {
        let rows = leases.iter().map(|lease| [lease.lease_id.to_string(), lease.host.clone(), lease.state.clone()]);
        return output::table(["lease", "host", "state"], 3, rows);
    }
    let mut folded: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for lease in leases {
        *folded.entry((&lease.host, &lease.state)).or_default() += 1;
    }
    let more = answers::more_rows(folded.len(), most).map_or_else(String::new, |more| format!("\n{more}"));
    let rows = folded.iter().take(most);
    let rows = rows.map(|((host, state), count)| [(*host).to_owned(), (*state).to_owned(), count.to_string()]);
    let table = output::table(["leased on", "state", "leases"], 2, rows);
    format!("{table}{more}\n{}; --leases shows each", output::count(leases.len() as u64, "lease"))
}

fn who(answer: &v1::ExplainResponse) -> String {
    format!("{}, attempt {}, queue {}", answer.application_id, answer.attempt, answer.queue)
}

fn refused_text(answer: &v1::ExplainResponse, set: &v1::HintSet, refused: &v1::Refused) -> String {
    let v1::HintSet { decision_id, request_id, policy, .. } = set;
    let refusal = answers::refused_text(refused);
    let by = if policy.is_empty() { String::new() } else { format!(" by {policy}") };
    let at = moments::moment_and_age(answer.decided_at_ms, answer.age_ms);
    let asked = asked_for(&answer.asked_for).map_or_else(String::new, |asked| format!("\n{asked}"));
    format!("{}{asked}\n{decision_id} of request {request_id}{by}, {at}: {refusal}", who(answer))
}

/// Where YARN would put the containers by itself: what the default's costs are of.
fn baseline_text(found: &v1::BaselinePlaces, most: usize) -> Option<String> {
    let v1::BaselinePlaces { places, more_containers, more_hosts } = found;
    let rows = places
        .iter()
        .take(most)
        .map(|place| [place.group.clone(), place.host.clone(), place.rack.clone(), place.count.to_string()]);
    let table = output::table(["group", "host", "rack", "containers"], 3, rows);
    let more = match more_hosts {
        _ if places.len() > most => format!("\n{}", answers::more_rows(places.len(), most).unwrap_or_default()),
        0 => String::new(),
        hosts => format!("\nand {} on {hosts} more", output::count(*more_containers, "container")),
    };
    (!places.is_empty())
        .then(|| format!("\nwhere YARN would put them by itself, as estimated (the default above)\n{table}{more}"))
}

fn explained_text(explained: &v1::ExplainResponse, set: &v1::HintSet, shown: Shown) -> String {
    let detail = Detail { routes_without_bytes: shown.all, nothing_ruled_out: true, rows: shown.rows() };
    let mut lines = vec![answers::text_with(set, detail)];
    lines.extend(explained.baseline_places.as_ref().and_then(|found| baseline_text(found, shown.rows())));
    if let Some(performance) = &explained.performance {
        lines.push(format!("\n{}", predicted::text(performance, &set.hints)));
    }
    if !explained.moves.is_empty() {
        lines.push(format!("\n{}", predicted::moves_text(&explained.moves)));
    }
    if !explained.leases.is_empty() {
        lines.push(format!("\n{}", leases_text(&explained.leases, shown.leases, shown.rows())));
    }
    for homed in &explained.input_homes {
        let v1::HomedGroup { group, racks, at_home, elsewhere } = homed;
        let racks = racks.join(", ");
        lines.push(format!(
            "\n{group} was told to stay with its input in {racks}: {at_home} came there, {elsewhere} elsewhere"
        ));
    }
    lines.push(format!("\n{}", sources_text(&set.ages)));
    if explained.recorded {
        lines.push(format!("\nhintctl replay {} makes it again", set.decision_id));
    }
    lines.join("\n")
}

/// How old each source was: those that were fresh, those that were too old, those that were never heard.
fn sources_text(ages: &[v1::SourceAge]) -> String {
    let of = |state: &str, meant: fn(&v1::SourceAge) -> bool| {
        let said = |age: &v1::SourceAge| match age.age_ms {
            Some(ms) => format!("{} {}", age.source, output::age(ms)),
            None => age.source.clone(),
        };
        let named: Vec<String> = ages.iter().filter(|age| meant(age)).map(said).collect();
        (!named.is_empty()).then(|| format!("{state}: {}", named.join(", ")))
    };
    let fresh = of("sources, heard so long before", |age| age.age_ms.is_some() && !age.stale);
    let old = of("too old", |age| age.age_ms.is_some() && age.stale);
    let never = of("never received", |age| age.age_ms.is_none());
    [fresh, old, never].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_it_stands_before_leases_which_are_counted_by_host() {
        let lease = |lease_id, host: &str| v1::LeaseState { lease_id, host: host.into(), state: "confirmed".into() };
        let hint = v1::Hint { group: "map".into(), host: "n1".into(), count: 3, ..v1::Hint::default() };
        let place = |host: &str, count| v1::CameTo { host: host.into(), rack: "/r1".into(), count };
        let became = v1::HintOutcome {
            group: "map".into(),
            host: "n1".into(),
            count: 4,
            on_host: 1,
            elsewhere: 2,
            never: 1,
            came_to: vec![place("n1", 1), place("n7", 2)],
            ..v1::HintOutcome::default()
        };
        let answer = v1::ExplainResponse {
            decision: Some(v1::HintSet { hints: vec![hint], ..v1::HintSet::default() }),
            leases: vec![lease(1, "n1"), lease(2, "n1"), lease(3, "n2")],
            outcome: Some(v1::DecisionOutcome { settled: true, hints: vec![became], terms: vec![] }),
            ..v1::ExplainResponse::default()
        };
        let place = |count| v1::BaselinePlace { host: "n9".into(), count, ..v1::BaselinePlace::default() };
        let found = v1::BaselinePlaces { places: vec![place(4)], more_containers: 7, more_hosts: 3 };
        let said = baseline_text(&found, 10).unwrap();
        assert!(said.contains("n9") && said.ends_with("and 7 containers on 3 more"), "{said}");
        assert_eq!(baseline_text(&v1::BaselinePlaces::default(), 10), None, "nothing found room");
        let text = |leases| text(&answer, &[], Shown { all: false, leases });
        let folded = text(false);
        assert!(folded.contains("n1, n7 2; 1 nobody told of"), "{folded}");
        assert!(folded.find("came to").unwrap() < folded.find("leased on").unwrap(), "{folded}");
        let words = folded.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("n1 confirmed 2 n2 confirmed 1 3 leases; --leases shows each"), "{folded}");
        assert!(text(true).split_whitespace().collect::<Vec<_>>().join(" ").contains("3 n2 confirmed"));
        let row = |at: u64| v1::HintOutcome { host: format!("h{at}"), ..v1::HintOutcome::default() };
        let outcome = v1::DecisionOutcome { hints: (0..12).map(row).collect(), ..v1::DecisionOutcome::default() };
        let (decided_at_ms, age_ms) = (1_795_843_810_000, 90_000);
        let large = v1::ExplainResponse { outcome: Some(outcome), decided_at_ms, age_ms, ..answer.clone() };
        let short = super::text(&large, &[], Shown { all: false, leases: false });
        assert!(short.lines().nth(3).unwrap().starts_with("decided 2026-11-28 05:30:10 UTC, 90 s ago"), "{short}");
        assert!(short.contains(" h9 ") && !short.contains(" h10 ") && short.contains("and 2 more; --all"), "{short}");
        assert!(super::text(&large, &[], Shown { all: true, leases: false }).contains(" h11 "));
        let unknown = v1::ExplainResponse { outcome: None, ..answer.clone() };
        let said = super::text(&unknown, &[], Shown { all: false, leases: false });
        assert!(said.contains("what became of it is not known: it was decided before"), "{said}");
    }
}
