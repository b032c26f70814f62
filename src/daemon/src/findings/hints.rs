//! Checks of hints: whether anybody asks, what they are worth, who is refused.

use super::check::{Check, count, page, some};
use super::quantities;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// Time after a start in which silence says nothing yet.
const EARLY_MS: u64 = 10 * 60 * 1_000;
/// So many refused requests, and none answered, are more than somebody's mistakes.
const REFUSED_MANY: u64 = 20;
/// A larger share of refused requests is no few clients' mistakes.
const REFUSED_SHARE: f64 = 0.1;
/// Refusals that are longer ago say nothing of now.
const RECENT_MS: u64 = 15 * 60 * 1_000;
const REFUSED_ADVICE: &str = "Common refusals in docs/operations.md says what each reason means.";
/// What to look at, by the reason.
const ADVICE: [(&str, &str); 3] = [
    (
        "deadline",
        "deadline: the answer came too late. Hold the deadline that requests name (deadline_ms, or deadline-ms of the processor's \
         file; placer.deadline_default) against hintd_request_seconds by stage: queue: load, more cores or fewer placer.steps; \
         place: the search, fewer placer.steps; journal: the disk.",
    ),
    (
        "unavailable",
        "unavailable: load or the journal (hintd_request_seconds by stage, HintdOverloaded in docs/operations.md).",
    ),
    ("full", "full: the cluster had no room, and these requests want to be refused then."),
];

/// Whether anybody asks for hints, and gets some.
#[must_use]
pub fn asked(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "requests";
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let [answered, refused, issued, withheld, held_out, stopped] =
        ["requests_answered", "requests_refused", "hints_issued", "hints_withheld", "hints_held_out", "hints_stopped"]
            .map(counter);
    let shadow = counter("shadow_agreed") + counter("shadow_differed");
    let [late, of_late] =
        [("answers_late", "answered too late (by deadline: refused as well)"), ("hints_late", "too late")].map(
            |(name, what)| {
                let count = counter(name);
                if count > 0 { format!(", {count} {what}") } else { String::new() }
            },
        );
    let finding = format!(
        "Requests since the start: {answered} answered, {refused} refused{late}; containers: {issued} hinted{of_late}, \
         {withheld} withheld, {held_out} held out, {stopped} of stopped keys."
    );
    match (answered + refused, status.uptime_ms) {
        (0, up) if up < EARLY_MS => {
            Check::not_checked(NAME, page::ASKED, "Nobody has asked for hints yet; the daemon has just started.")
        }
        (0, up) => Check::warning(
            NAME,
            page::ASKED,
            format!("Nobody has asked for hints in {}.", quantities::seconds(up as f64 / 1e3)),
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
        _ if many_refused(status) && is_recent(status) => {
            let share = quantities::digits(refused as f64 * 100.0 / (answered + refused) as f64);
            let finding = format!("{finding} {share} % were refused: {}.", refusals(status));
            Check::warning(NAME, page::REFUSED, finding, advice(status))
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

/// `9 for unknown (last 3 s ago; application_1_0001, application_1_0002), …`: all requests that were refused since the start, by
/// reason; when the last was, and which applications it was, of those that are kept.
fn refusals(status: &v1::StatusResponse) -> String {
    let told = by_reason(status).into_iter().map(|(reason, requests)| {
        let rows = || status.refused.iter().filter(move |client| client.reason == reason);
        let names = rows().filter(|client| client.kind == "application").map(|client| client.name.clone());
        let last = rows().map(|client| client.since_ms).min();
        let last = last.map(|last_ms| format!("last {} ago", quantities::age(last_ms)));
        let names: Vec<String> = names.collect();
        let names = (!names.is_empty()).then(|| some(&names));
        let more: Vec<String> = last.into_iter().chain(names).collect();
        if more.is_empty() {
            format!("{requests} for {reason}")
        } else {
            format!("{requests} for {reason} ({})", more.join("; "))
        }
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { "by whom and why is not kept".to_owned() } else { some(&told) }
}

/// How many requests were refused since the start by reason, the most first.
fn by_reason(status: &v1::StatusResponse) -> Vec<(&str, u64)> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for count in &status.refused_by_reason {
        *reasons.entry(&count.reason).or_default() += count.requests;
    }
    if reasons.is_empty() {
        // A daemon of before tells of a few clients alone: by who called, for a client can make up any number of applications.
        let of = |kind: &str| status.refused.iter().filter(|client| client.kind == kind).collect::<Vec<_>>();
        let (peers, applications) = (of("peer"), of("application"));
        for client in if peers.is_empty() { &applications } else { &peers } {
            *reasons.entry(&client.reason).or_default() += client.requests;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, requests)| std::cmp::Reverse(*requests));
    reasons
}

/// `13 requests were refused since the start (7 invalid, 4 unknown, 2 full); 5 of them are recorded`: what `status`, `decisions`
/// and `doctor` name alike. Empty: none was, or the daemon is too old to say.
#[must_use]
pub fn refused_since_start(counts: &[v1::RefusedCount]) -> String {
    let sum = |of: fn(&v1::RefusedCount) -> u64| counts.iter().map(of).sum::<u64>();
    let (all, recorded) = (sum(|row| row.requests), sum(|row| row.recorded));
    let mut rows: Vec<&v1::RefusedCount> = counts.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.requests));
    let reasons: Vec<String> = rows.iter().map(|row| format!("{} {}", row.requests, row.reason)).collect();
    match all {
        0 => String::new(),
        _ => format!("{} ({}); {}", refused_words(all), reasons.join(", "), recorded_words(all, recorded)),
    }
}

/// `1 request was refused since the start`.
fn refused_words(requests: u64) -> String {
    let were = if requests == 1 { "was" } else { "were" };
    format!("{} {were} refused since the start", count(requests, "request"))
}

/// Records are fewer: what is not well-formed leaves none, and the oldest go where there is no room.
fn recorded_words(requests: u64, recorded: u64) -> String {
    match (requests, recorded) {
        (1, 0) => "it is not recorded".to_owned(),
        (1, _) => "it is recorded".to_owned(),
        (_, 0) => "none of them is recorded".to_owned(),
        (_, 1) => "1 of them is recorded".to_owned(),
        (_, more) => format!("{more} of them are recorded"),
    }
}

/// When the last request was refused; `None`: of nobody who was is that kept.
fn last_refused(status: &v1::StatusResponse) -> Option<u64> {
    status.refused.iter().map(|client| client.since_ms).min()
}

/// Whether it says something of now.
fn is_recent(status: &v1::StatusResponse) -> bool {
    last_refused(status).is_none_or(|last_ms| last_ms <= RECENT_MS)
}

/// What to do about reasons of which the last refusal is recent.
fn advice(status: &v1::StatusResponse) -> String {
    let is_recent =
        |reason: &str| status.refused.iter().any(|client| client.reason == reason && client.since_ms <= RECENT_MS);
    let of_reasons = ADVICE.iter().filter(|(reason, _)| is_recent(reason)).map(|(_, advice)| *advice);
    std::iter::once(REFUSED_ADVICE).chain(of_reasons).collect::<Vec<_>>().join(" ")
}

/// Whether more are refused than a few clients' mistakes.
fn many_refused(status: &v1::StatusResponse) -> bool {
    let counter = |name: &str| status.counters.get(name).copied().unwrap_or(0) as f64;
    let (answered, refused) = (counter("requests_answered"), counter("requests_refused"));
    refused > REFUSED_SHARE * (answered + refused)
}

/// What hints are worth, and keys that get none any more.
#[must_use]
pub fn worth(status: &v1::StatusResponse) -> Vec<Check> {
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
    let ratio = queue.ratio.map_or_else(String::new, |ratio| format!(", time ratio {}", quantities::digits(ratio)));
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
#[must_use]
pub fn refused(status: &v1::StatusResponse) -> Option<Check> {
    const NAME: &str = "refused";
    let refused = status.counters.get("requests_refused").copied().unwrap_or(0);
    if refused == 0 && status.refused.is_empty() {
        return Some(Check::ok(NAME, page::REFUSED, "No request for hints was refused since the start."));
    }
    let recorded: u64 = status.refused_by_reason.iter().map(|count| count.recorded).sum();
    let recorded = match status.refused_by_reason.is_empty() {
        true => String::new(), // a daemon of before does not say
        false => format!("; {} (hintctl decisions --refused)", recorded_words(refused, recorded)),
    };
    let finding = format!("{}: {}{recorded}", refused_words(refused), refusals(status));
    match (is_recent(status), many_refused(status)) {
        (false, _) => {
            let within = quantities::whole_time(RECENT_MS);
            Some(Check::ok(NAME, page::REFUSED, format!("{finding}; none in the last {within}.")))
        }
        (true, true) => None,
        (true, false) => Some(Check::warning(NAME, page::REFUSED, format!("{finding}."), advice(status))),
    }
}

/// Lines of the log that are missing.
#[must_use]
pub fn log(status: &v1::StatusResponse) -> Check {
    const NAME: &str = "log";
    match status.counters.get("log_lines_dropped").copied().unwrap_or(0) {
        0 => Check::ok(NAME, page::LOG, "No line of the log was dropped."),
        dropped => Check::warning(
            NAME,
            page::LOG,
            format!("{} of the log are missing: whoever reads standard error is too slow.", count(dropped, "line")),
            "systemctl status systemd-journald, or the container's log driver; log.level may be too verbose.",
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

    /// `## Common refusals` is `common-refusals`.
    fn anchor(heading: &str) -> String {
        heading.to_lowercase().replace(' ', "-")
    }

    #[test]
    fn the_page_of_refusals_is_the_one_that_the_advice_names() {
        let (heading, _) = REFUSED_ADVICE.split_once(" in docs/operations.md").unwrap();
        assert_eq!(page::REFUSED, format!("docs/operations.md#{}", anchor(heading)));
        let reasons = ADVICE.map(|(reason, advice)| advice.starts_with(&format!("{reason}: ")));
        assert_eq!(reasons, [true; 3]);
    }

    #[test]
    fn refusals_of_long_ago_are_no_warning_and_recent_ones_say_what_to_look_at() {
        let status = |answered: u64, of: &[(&str, u64)]| v1::StatusResponse {
            counters: [("requests_answered", answered), ("requests_refused", of.len() as u64), ("answers_late", 1)]
                .map(|(name, of)| (name.to_owned(), of))
                .into(),
            refused: of
                .iter()
                .map(|(reason, since_ms)| v1::RefusedClient {
                    kind: "peer".into(),
                    reason: (*reason).to_owned(),
                    requests: 1,
                    since_ms: *since_ms,
                    ..v1::RefusedClient::default()
                })
                .collect(),
            ..v1::StatusResponse::default()
        };
        let just_now = refused(&status(99, &[("deadline", 3_000), ("full", RECENT_MS + 1)])).unwrap();
        assert_eq!(just_now.verdict, Verdict::Warning);
        assert!(just_now.advice.contains("hintd_request_seconds by stage"), "{just_now:?}");
        assert!(!just_now.advice.contains("full: "), "that one is long ago: {just_now:?}");
        let long_ago = status(99, &[("deadline", RECENT_MS + 1)]);
        let found = refused(&long_ago).unwrap();
        assert_eq!((found.verdict, &*found.advice), (Verdict::Ok, ""));
        assert!(found.finding.ends_with("1 for deadline (last 900 s ago); none in the last 15 min."), "{found:?}");
        // Many of few, but long ago: said once, and no warning.
        let many = status(1, &[("deadline", RECENT_MS + 1), ("full", RECENT_MS + 1)]);
        assert_eq!((asked(&many).verdict, refused(&many).unwrap().verdict), (Verdict::Ok, Verdict::Ok));
        let said = "2 refused, 1 answered too late (by deadline: refused as well); containers: ";
        assert!(asked(&many).finding.contains(said), "{:?}", asked(&many));
        let many = status(1, &[("deadline", RECENT_MS), ("full", RECENT_MS + 1)]);
        assert_eq!((asked(&many).verdict, refused(&many)), (Verdict::Warning, None));
        assert!(asked(&many).advice.contains("deadline: the answer came too late"), "{:?}", asked(&many));
    }

    #[test]
    fn all_refusals_are_told_by_reason_whoever_had_most_and_how_many_are_recorded() {
        let count = |reason: &str, requests, recorded| v1::RefusedCount { reason: reason.into(), requests, recorded };
        let status = |counts: Vec<v1::RefusedCount>| v1::StatusResponse {
            counters: [
                ("requests_answered".to_owned(), 1_000),
                ("requests_refused".to_owned(), counts.iter().map(|count| count.requests).sum::<u64>()),
            ]
            .into(),
            refused: vec![v1::RefusedClient {
                kind: "peer".into(),
                name: "10.0.0.1".into(),
                reason: "unknown".into(),
                requests: 2,
                since_ms: 3_000,
            }],
            refused_by_reason: counts,
            ..v1::StatusResponse::default()
        };
        let some = vec![count("full", 2, 2), count("unknown", 4, 3), count("invalid", 7, 0)];
        assert_eq!(
            refused(&status(some.clone())).unwrap().finding,
            "13 requests were refused since the start: 7 for invalid, 4 for unknown (last 3 s ago), 2 for full; 5 of them are \
             recorded (hintctl decisions --refused)."
        );
        assert_eq!(
            refused_since_start(&some),
            "13 requests were refused since the start (7 invalid, 4 unknown, 2 full); 5 of them are recorded"
        );
        let said = |requests, recorded| refused_since_start(&[count("full", requests, recorded)]);
        assert_eq!(said(1, 1), "1 request was refused since the start (1 full); it is recorded");
        assert_eq!(said(1, 0), "1 request was refused since the start (1 full); it is not recorded");
        assert_eq!(said(2, 0), "2 requests were refused since the start (2 full); none of them is recorded");
        assert_eq!(said(2, 1), "2 requests were refused since the start (2 full); 1 of them is recorded");
        assert_eq!((refused_since_start(&[]), said(0, 0)), (String::new(), String::new()));
        // Nobody's name is kept, and there were some all the same.
        let nobody = v1::StatusResponse { refused: Vec::new(), ..status(some) };
        assert!(refused(&nobody).unwrap().finding.starts_with("13 requests were refused"), "{:?}", refused(&nobody));
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
        assert_eq!(few.finding, format!("9 requests were refused since the start: {why}"));
    }
}
