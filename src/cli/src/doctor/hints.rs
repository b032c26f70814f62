//! Checks of hints: which policy and mode, whether anybody asks, whether they are followed and what they are worth, who is refused.

use super::super::output;
use super::check::{Check, count, page};
use super::facts::{Answers, OnDisk};
use hintd_client::view;
use hintd_client::wire::v1;
use hintd_engine::Mode;
use std::collections::BTreeMap;

/// Time after a start in which silence says nothing yet.
const EARLY_MS: u64 = 10 * 60 * 1_000;
/// So many refused requests, and none answered, are more than somebody's mistakes.
const REFUSED_MANY: u64 = 20;
/// Containers on their host below this share: hints are made in vain.
const FOLLOWED: f64 = 0.5;

/// The policy, and modes by queue.
pub(super) fn policy(answers: &Answers, on_disk: &OnDisk) -> Check {
    const NAME: &str = "policy";
    let default = match &answers.policies {
        Ok(policies) => policies.default_policy.clone(),
        Err(why) => return Check::not_checked(NAME, page::CONFIGURE, format!("{why}.")),
    };
    let OnDisk::Sound(config) = on_disk else {
        let why = "modes of queues are in the configuration, which can't be read from here, or is wrong";
        return Check::ok(NAME, page::CONFIGURE, format!("The default policy is {default}; {why}."));
    };
    let queues = &config.options.settings.queues;
    let mut by_mode: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, queue) in queues {
        by_mode.entry(queue.mode.as_str()).or_default().push(name);
    }
    let modes: Vec<String> = by_mode.iter().map(|(mode, queues)| format!("{mode}: {}", queues.join(" "))).collect();
    let finding = format!("The default policy is {default}; queues by mode: {}.", modes.join(", "));
    match queues.values().any(|queue| queue.mode != Mode::Off) {
        true if queues.values().all(|queue| queue.mode != Mode::On) => {
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
            "Set mode = \"shadow\" in [queues.\"*\"] to begin.",
        ),
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
            let advice = "All requests are refused: hintctl status has the table of who was refused, and why.";
            match refused >= REFUSED_MANY {
                true => Check::problem(NAME, page::REFUSED, finding, advice),
                false => Check::warning(NAME, page::REFUSED, finding, advice),
            }
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
    let finding = format!("{} % of {all} hinted containers came to their host{why}.", output::digits(share * 100.0));
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

/// Who was refused most.
pub(super) fn refused(status: &v1::StatusResponse) -> Vec<Check> {
    const NAME: &str = "refused";
    let mut checks: Vec<Check> = status.refused.iter().map(client).collect();
    if checks.is_empty() {
        checks.push(Check::ok(NAME, page::REFUSED, "No request for hints was refused since the start."));
    }
    checks
}

fn client(client: &v1::RefusedClient) -> Check {
    let v1::RefusedClient { kind, name, reason, requests, since_ms } = client;
    let last = output::seconds(*since_ms as f64 / 1e3);
    let finding = format!("{kind} {name} was refused {requests} times for {reason}, last {last} ago.");
    Check::warning(
        "refused",
        page::REFUSED,
        finding,
        "Common refusals in docs/operations.md says what each reason means.",
    )
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
        let found = [(0, 0), (0, 1), (0, 19), (0, 20), (1, 20)].map(|(answered, refused)| verdict(answered, refused));
        let (warning, problem) = (Verdict::Warning, Verdict::Problem);
        assert_eq!(found, [Verdict::NotChecked, warning, warning, problem, Verdict::Ok]);
    }
}
