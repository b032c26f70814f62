//! Checks of hints: which policy and mode, whether anybody asks, whether they are followed and what they are worth, who is refused.

use super::super::output;
use super::check::{Check, count, page, some};
use super::facts::{Answers, OnDisk};
use hintd_client::view;
use hintd_client::wire::v1;
use hintd_engine::Mode;
use std::collections::BTreeMap;

/// Time after a start in which silence says nothing yet.
const EARLY_MS: u64 = 10 * 60 * 1_000;
/// So many refused requests, and none answered, are more than somebody's mistakes.
const REFUSED_MANY: u64 = 20;
/// A larger share of refused requests is no few clients' mistakes.
const REFUSED_SHARE: f64 = 0.1;
const REFUSED_ADVICE: &str = "Common refusals in docs/operations.md says what each reason means.";
/// Containers on their host below this share: hints are made in vain.
const FOLLOWED: f64 = 0.5;

/// The policy, and modes by queue.
pub(super) fn policy(answers: &Answers, on_disk: &OnDisk) -> Check {
    const NAME: &str = "policy";
    let default = match &answers.policies {
        Ok(policies) => policies.default_policy.clone(),
        Err(why) => return Check::not_checked(NAME, page::CONFIGURE, format!("{why}.")),
    };
    let queues = modes(&answers.status, on_disk);
    if queues.is_empty() {
        let why = "modes of queues are in the configuration, which can't be read from here, or is wrong";
        return Check::ok(NAME, page::CONFIGURE, format!("The default policy is {default}; {why}."));
    }
    let mut by_mode: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, mode) in &queues {
        by_mode.entry(mode).or_default().push(name);
    }
    let modes: Vec<String> = by_mode.iter().map(|(mode, queues)| format!("{mode}: {}", queues.join(" "))).collect();
    let finding = format!("The default policy is {default}; queues by mode: {}.", modes.join(", "));
    match queues.iter().any(|(_, mode)| mode != Mode::Off.as_str()) {
        true if queues.iter().all(|(_, mode)| mode != Mode::On.as_str()) => {
            let finding = format!("{finding} Hints are computed and not given.");
            Check {
                advice: "After a day, look at \"potential saving\" in hintctl status.".to_owned(),
                ..Check::ok(NAME, page::FOLLOWED, finding)
            }
        }
        true => Check::ok(NAME, page::CONFIGURE, finding),
        false => Check::warning(
            NAME,
            page::CONFIGURE,
            format!("{finding} No queue gets hints."),
            match queues.iter().any(|(name, _)| name == "*") {
                true => "Set mode = \"shadow\" in [queues.\"*\"] to begin.",
                false => "Set mode = \"shadow\" in a queue's section to begin.",
            },
        ),
    }
}

/// Queues with their modes: as the daemon has them in force; of one that does not say, as they are on disk.
fn modes(status: &v1::StatusResponse, on_disk: &OnDisk) -> Vec<(String, String)> {
    match on_disk {
        _ if !status.queues.is_empty() => {
            status.queues.iter().map(|queue| (queue.name.clone(), queue.mode.clone())).collect()
        }
        OnDisk::Sound(config) => {
            let queues = config.options.settings.queues.iter();
            queues.map(|(name, queue)| (name.clone(), queue.mode.as_str().to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether anybody asks for hints, and gets some.
pub(super) fn asked(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "requests";
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let [answered, refused, issued, withheld, held_out, stopped] =
        ["requests_answered", "requests_refused", "hints_issued", "hints_withheld", "hints_held_out", "hints_stopped"]
            .map(counter);
    let shadow = counter("shadow_agreed") + counter("shadow_differed");
    let finding = format!(
        "Requests since the start: {answered} answered, {refused} refused; containers: {issued} hinted, {withheld} withheld, \
         {held_out} held out, {stopped} of stopped keys."
    );
    match (answered + refused, status.uptime_ms) {
        (0, up) if up < EARLY_MS => {
            Check::not_checked(NAME, page::ASKED, "Nobody has asked for hints yet; the daemon has just started.")
        }
        (0, up) => Check::warning(
            NAME,
            page::ASKED,
            format!("Nobody has asked for hints in {}.", output::seconds(up as f64 / 1e3)),
            "Install the ResourceManager's processor, or let ApplicationMasters ask.",
        ),
        _ if answered == 0 => {
            let finding = format!("{finding} Refused: {}.", refusals(status));
            let advice = "All requests are refused: hintctl status has the table of who was refused, and why.";
            match refused >= REFUSED_MANY {
                true => Check::problem(NAME, page::REFUSED, finding, advice),
                false => Check::warning(NAME, page::REFUSED, finding, advice),
            }
        }
        _ if many_refused(status) => {
            let share = output::digits(refused as f64 * 100.0 / (answered + refused) as f64);
            let finding = format!("{finding} {share} % were refused: {}.", refusals(status));
            Check::warning(NAME, page::REFUSED, finding, REFUSED_ADVICE)
        }
        _ if issued == 0 && withheld > 0 && shadow == 0 => Check::warning(
            NAME,
            page::ASKED,
            format!("{finding} All hints were withheld: YARN does as well by itself, by what is known."),
            "hintctl explain DECISION says why; rates of links and blocks of input are what hints are made of.",
        ),
        _ => Check::ok(NAME, page::ASKED, finding),
    }
}

/// `9 for unknown (last 3 s ago; application_1_0001, application_1_0002), …`: by who called, for a client can make up any
/// number of applications; and which applications it was, of those that are kept.
fn refusals(status: &v1::StatusResponse) -> String {
    let of = |kind: &str| status.refused.iter().filter(|client| client.kind == kind).collect::<Vec<_>>();
    let (peers, applications) = (of("peer"), of("application"));
    let mut reasons: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for client in if peers.is_empty() { &applications } else { &peers } {
        let (requests, last_ms) = reasons.entry(&client.reason).or_insert((0, u64::MAX));
        (*requests, *last_ms) = (*requests + client.requests, client.since_ms.min(*last_ms));
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, (requests, _))| std::cmp::Reverse(*requests));
    let told = reasons.into_iter().map(|(reason, (requests, last_ms))| {
        let names = applications.iter().filter(|client| client.reason == reason).map(|client| client.name.clone());
        let names: Vec<String> = names.collect();
        let names = if names.is_empty() { names.concat() } else { format!("; {}", some(&names)) };
        format!("{requests} for {reason} (last {} ago{names})", output::age(last_ms))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "by whom and why is not kept".to_owned() } else { some(&told) }
}

/// Whether more are refused than a few clients' mistakes.
fn many_refused(status: &v1::StatusResponse) -> bool {
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0) as f64;
    let (answered, refused) = (counter("requests_answered"), counter("requests_refused"));
    refused > REFUSED_SHARE * (answered + refused)
}

/// Whether hints are followed, of decisions under mode `on`.
pub(super) fn followed(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "followed";
    let on: Vec<&v1::AdherenceView> =
        status.adherence.iter().filter(|row| view::mode(row.mode()) == Mode::On.as_str()).collect();
    let sum = |of: fn(&v1::AdherenceView) -> u64| on.iter().map(|row| of(row)).sum::<u64>();
    let on_host = sum(|row| row.on_host);
    let all = on_host + sum(|row| row.in_rack) + sum(|row| row.elsewhere) + sum(|row| row.never);
    if all == 0 {
        let awaited = count(status.decisions_watched, "decision");
        return Check::not_checked(
            NAME,
            page::FOLLOWED,
            format!("No hint's containers were all seen yet; {awaited} are watched."),
        );
    }
    let mut misses: BTreeMap<&str, u64> = BTreeMap::new();
    on.iter().flat_map(|row| &row.misses).for_each(|(reason, count)| *misses.entry(reason).or_default() += count);
    let most = misses.into_iter().max_by_key(|(_, count)| *count);
    let why = most.map(|(reason, count)| format!("; most often for {reason} ({count})")).unwrap_or_default();
    let share = on_host as f64 / all as f64;
    let finding = format!(
        "Since the start {} % of {all} hinted containers came to their host{why}.",
        output::digits(share * 100.0)
    );
    if share >= FOLLOWED {
        return Check::ok(NAME, page::FOLLOWED, finding);
    }
    Check::warning(NAME, page::FOLLOWED, finding, remedy(most.map_or("", |(reason, _)| reason)))
}

fn remedy(reason: &str) -> &'static str {
    match reason {
        "yarn_chose" => "Send YARN the whole table of the answer; see yarn.scheduler.capacity.node-locality-delay.",
        "no_room" => "Others take the room first: heartbeats that come sooner, fewer applications without hints.",
        "expired" | "withdrawn" => "Containers come later than leases.time_to_live, or others take the room.",
        "late_hint" => "Ask for hints before asking YARN.",
        "node_not_running" => "Nodes fail or fall silent: see the finding on nodes.",
        _ => "Feed heartbeats that name containers, or task events, so that hintd sees where they run.",
    }
}

/// What hints are worth, and keys that get none any more.
pub(super) fn worth(status: &v1::StatusResponse) -> Vec<Check> {
    const NAME: &str = "worth";
    let mut checks: Vec<Check> = status.holdout.iter().map(queue).collect();
    if status.keys_stopped > 0 {
        checks.push(Check::warning(
            NAME,
            page::WORTH,
            format!(
                "{} get no hints, because hints made their runs slower.",
                count(status.keys_stopped, "recurring key")
            ),
            "hintctl holdout list --stopped shows them, hintctl holdout allow KEY lets one have hints again.",
        ));
    }
    if checks.is_empty() {
        checks.push(Check::not_checked(
            NAME,
            page::WORTH,
            "No queue holds applications out (worth.holdout is 0): nobody knows what hints are worth.",
        ));
    }
    checks
}

fn queue(queue: &v1::ComparedView) -> Check {
    const NAME: &str = "worth";
    let ratio = queue.ratio.map_or_else(String::new, |ratio| format!(", time ratio {}", output::digits(ratio)));
    let finding = format!(
        "Queue {}: {}; {} hinted and {} held-out runs{ratio}.",
        queue.name, queue.verdict, queue.hinted, queue.held_out
    );
    match queue.verdict.as_str() {
        "slower" => {
            Check::problem(NAME, page::WORTH, finding, "Hints make this queue slower: set its mode to shadow or off.")
        }
        _ => Check::ok(NAME, page::WORTH, finding),
    }
}

/// Who was refused, in one finding; `None` where [`asked`] says it.
pub(super) fn refused(status: &v1::StatusResponse) -> Option<Check> {
    const NAME: &str = "refused";
    let refused = status.counters.get("requests_refused").copied().unwrap_or(0);
    if status.refused.is_empty() {
        return Some(Check::ok(NAME, page::REFUSED, "No request for hints was refused since the start."));
    }
    if many_refused(status) {
        return None;
    }
    let finding = format!("{} refused since the start: {}.", count(refused, "request"), refusals(status));
    Some(Check::warning(NAME, page::REFUSED, finding, REFUSED_ADVICE))
}

/// Lines of the log that are missing.
pub(super) fn log(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "log";
    match status.counters.get("log_lines_dropped").copied().unwrap_or(0) {
        0 => Check::ok(NAME, page::LOG, "No line of the log was dropped."),
        dropped => Check::warning(
            NAME,
            page::LOG,
            format!("{} of the log are missing: whoever reads standard error is too slow.", count(dropped, "line")),
            "systemctl status systemd-journald, or the container's log driver; log.level may be too talkative.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_few_refused_requests_are_no_problem() {
        let verdict = |answered: u64, refused: u64| {
            let counters = [("requests_answered", answered), ("requests_refused", refused)];
            let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
            let check = asked(&v1::StatusResponse { counters, ..Default::default() });
            assert_eq!(check.advice.contains("hintctl status"), answered == 0 && refused > 0);
            check.verdict
        };
        let found = [(0, 0), (0, 1), (0, 19), (0, 20), (1, 20), (90, 10), (89, 10)]
            .map(|(answered, refused)| verdict(answered, refused));
        let (warning, problem) = (Verdict::Warning, Verdict::Problem);
        assert_eq!(found, [Verdict::NotChecked, warning, warning, problem, warning, Verdict::Ok, warning]);
    }

    #[test]
    fn refusals_are_one_line_with_their_reasons_whether_they_are_many_or_few() {
        let client = |kind: &str, name: &str, reason: &str, requests| v1::RefusedClient {
            kind: kind.into(),
            name: name.into(),
            reason: reason.into(),
            requests,
            since_ms: 3_000,
        };
        let status = |answered: u64| v1::StatusResponse {
            counters: [("requests_answered", answered), ("requests_refused", 9)]
                .map(|(name, of)| (name.to_owned(), of))
                .into(),
            refused: vec![
                client("peer", "10.0.0.1", "unknown", 4),
                client("peer", "10.0.0.2", "unknown", 3),
                client("peer", "10.0.0.1", "full", 2),
                client("application", "application_1_0001", "unknown", 1),
                client("application", "application_1_0003", "unknown", 1),
                client("application", "application_1_0002", "full", 2),
            ],
            ..v1::StatusResponse::default()
        };
        let why = "7 for unknown (last 3 s ago; application_1_0001, application_1_0003), \
                   2 for full (last 3 s ago; application_1_0002).";
        let many = asked(&status(14));
        assert_eq!((many.verdict, refused(&status(14))), (Verdict::Warning, None));
        assert!(many.finding.ends_with(&format!("39.1 % were refused: {why}")), "{}", many.finding);
        let few = refused(&status(1_000)).unwrap();
        assert_eq!((few.verdict, asked(&status(1_000)).verdict), (Verdict::Warning, Verdict::Ok));
        assert_eq!(few.finding, format!("9 requests refused since the start: {why}"));
    }

    #[test]
    fn modes_are_those_in_force_whatever_is_on_disk() {
        let queue =
            |name: &str, mode: &str| v1::QueueView { name: name.into(), mode: mode.into(), policy: String::new() };
        let status =
            v1::StatusResponse { queues: vec![queue("*", "off"), queue("etl", "shadow")], ..Default::default() };
        let answers = |status| {
            let policies = Ok(v1::ListPoliciesResponse { default_policy: "joint".into(), ..Default::default() });
            Answers { status, network: nothing_of(), racks: nothing_of(), policies, down: nothing_of() }
        };
        let check = policy(&answers(status), &OnDisk::Wrong("hintd.toml:3: leeses".to_owned()));
        assert!(check.finding.contains("queues by mode: off: *, shadow: etl. Hints are computed"), "{}", check.finding);
        for (name, words) in [("*", "in [queues.\"*\"]"), ("etl", "in a queue's section")] {
            let status = v1::StatusResponse { queues: vec![queue(name, "off")], ..Default::default() };
            let advice = policy(&answers(status), &OnDisk::Wrong(String::new())).advice;
            assert!(advice.contains(words), "{name}: {advice}");
        }
    }

    fn nothing_of<T>() -> Result<T, String> {
        Err("not asked".to_owned())
    }
}
