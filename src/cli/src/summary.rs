//! A decision in two plain sentences: where its containers were hinted to and why, and where they came.

use super::adherence;
use super::answers;
use super::cost_links;
use super::output;
use super::why_not;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// Hosts named in a sentence.
const HOSTS_NAMED: usize = 3;

/// What is known of what became of a decision: all of it, or how many were followed, which is kept for longer; and what it was
/// made of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome<'a> {
    pub(super) all: Option<&'a v1::DecisionOutcome>,
    pub(super) counts: Option<&'a v1::Followed>,
    /// Why nobody has its answer; empty: somebody has.
    pub(super) late: &'a str,
    pub(super) leases: &'a [v1::LeaseState],
    /// The part of the time of YARN's own placement by which hints had to be better, where that is known.
    pub(super) guard_margin: Option<f64>,
    /// Whether `hintctl doctor` knows what a ResourceManager shows.
    pub(super) resource_manager_asked: bool,
}

impl<'a> Outcome<'a> {
    pub(super) fn of(answer: &'a v1::ExplainResponse) -> Self {
        Self {
            all: answer.outcome.as_ref(),
            counts: answer.followed.as_ref(),
            late: &answer.late,
            leases: &answer.leases,
            guard_margin: answer.guard_margin,
            resource_manager_asked: answer.resource_manager_asked,
        }
    }
}

/// Where and why against YARN's own placement; followed or not.
#[must_use]
pub(super) fn sentences(set: &v1::HintSet, outcome: Outcome<'_>) -> String {
    let (waiting, hinted): (Vec<_>, Vec<_>) =
        set.hints.iter().cloned().partition(|hint| answers::only_waits(set, hint));
    let [waits, leads] = [&waiting, &hinted].map(|hints| hints.iter().map(|hint| hint.count).sum::<u32>());
    if !outcome.late.is_empty() {
        let would = match leads {
            0 => "It had no hints.".to_owned(),
            leads => {
                let leads = output::count(leads.into(), "container");
                format!("It would have been: {leads}, {}; {}.", places(&hinted), why(set))
            }
        };
        return too_late(set, &would, outcome);
    }
    if waits + leads == 0 {
        return nothing_hinted(set, outcome.guard_margin);
    }
    if leads == 0 {
        let whole = if waits == 1 { "the container has" } else { "the containers have" };
        let first = format!("No lease: {}; {whole} only places to wait at.", answers::no_room(set));
        return match outcome.all {
            None => format!("{first}\nWhether these are used is not followed."),
            Some(_) => format!("{first}\n{}", followed(set, outcome)),
        };
    }
    let more = match waits {
        0 => String::new(),
        waits => format!(" Without a lease: {waits} more, told only where to wait, for {}.", answers::no_room(set)),
    };
    let first = format!("{}: {}; {}.{more}", containers(u64::from(leads), set.mode()), places(&hinted), why(set));
    format!("{first}\n{}", followed(set, outcome))
}

fn containers(count: u64, mode: v1::Mode) -> String {
    match (mode, count) {
        (v1::Mode::Shadow, 1) => "1 container would have been hinted (shadow)".to_owned(),
        (v1::Mode::Shadow, _) => format!("{} would have been hinted (shadow)", output::count(count, "container")),
        (_, 1) => "1 container is hinted".to_owned(),
        _ => format!("{count} containers are hinted"),
    }
}

/// Of an answer that nobody has: why, what it would have been, and what is left of it.
fn too_late(set: &v1::HintSet, would: &str, outcome: Outcome<'_>) -> String {
    let (why, look) = match outcome.late {
        "deadline" => (
            "after the request's deadline had passed",
            "\nwhat to look at: hintctl doctor (refused); the deadline that the request names; hintd_request_seconds by stage",
        ),
        _ => ("after its caller had hung up", ""),
    };
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    outcome.leases.iter().for_each(|lease| *states.entry(&lease.state).or_default() += 1);
    let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let live = outcome.leases.iter().any(|lease| answers::is_live(&lease.state));
    let leases = match (states.as_slice(), live) {
        ([], _) => String::new(),
        (states, true) => {
            format!(" Its leases: {}; what is held stays until it expires.", states.join(", "))
        }
        (states, false) => format!(" Its leases are over: {}.", states.join(", ")),
    };
    format!(
        "Too late: the answer was made {why}. YARN never saw it and placed the containers by itself, so it counts as neither hinted \
         nor followed.\n{would}{leases} A repeat of request {} within leases.answers_kept gets it.{look}",
        set.request_id
    )
}

fn nothing_hinted(set: &v1::HintSet, guard_margin: Option<f64>) -> String {
    let why = match (answers::withheld_text(set), set.mode()) {
        (Some(withheld), _) => withheld + &by_the_guard(set, guard_margin).unwrap_or_default(),
        (None, v1::Mode::Off) => "no hints: the queue is off".to_owned(),
        (None, _) if set.without_room + set.next_wave > 0 => format!("no hints: {}", answers::no_room(set)),
        (None, _) if !set.pending.is_empty() => "no hints at once: its tasks were left to a dispatch policy".to_owned(),
        (None, _) => "no hints".to_owned(),
    };
    let mut letters = why.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter();
    // What has no room is said whatever else keeps hints back.
    let room = if set.withheld.is_some() && set.without_room + set.next_wave > 0 {
        format!("; {}", answers::no_room(set))
    } else {
        String::new()
    };
    format!("{}{room}.\nYARN places the containers by itself.", first.chain(letters).collect::<String>())
}

/// `; that is 4 % sooner, and hints are given where it is more than 10 % sooner (placer.guard_margin)`; of times of which nobody
/// wants to know which is less, nothing.
fn by_the_guard(set: &v1::HintSet, margin: Option<f64>) -> Option<String> {
    let withheld =
        set.withheld.as_ref().filter(|withheld| withheld.reason == "no_gain" && !answers::is_little(withheld))?;
    let (hinted, default) = withheld.hinted_s.zip(withheld.default_s).filter(|(_, default)| *default > 0.0)?;
    let gain = 1.0 - hinted / default;
    let sooner = match (gain.abs() < 0.0005, gain > 0.0) {
        (true, _) => "no sooner".to_owned(),
        (false, true) => format!("{} sooner", output::percent(gain)),
        (false, false) => format!("{} later", output::percent(-gain)),
    };
    let least = margin.map_or_else(String::new, |margin| {
        format!(", and hints are given where it is more than {} sooner (placer.guard_margin)", output::percent(margin))
    });
    Some(format!("; that is {sooner}{least}"))
}

/// `5 on n1, 3 on n2, 2 on n3 and 4 on 2 other hosts`
fn places(hints: &[v1::Hint]) -> String {
    let hosts = answers::by_host(hints, None);
    let named: Vec<String> = hosts.iter().take(HOSTS_NAMED).map(|(host, count)| format!("{count} on {host}")).collect();
    let rest = hosts.get(HOSTS_NAMED..).unwrap_or_default();
    let more: u32 = rest.iter().map(|(_, count)| count).sum();
    match rest.len() {
        0 => named.join(", "),
        1 => format!("{} and {more} on another host", named.join(", ")),
        others => format!("{} and {more} on {}", named.join(", "), output::count(others as u64, "other host")),
    }
}

/// Why there and not where YARN puts them by itself: by the first figure that is known of both.
fn why(set: &v1::HintSet) -> String {
    let (hinted, default) = (set.terms.clone().unwrap_or_default(), set.baseline.clone().unwrap_or_default());
    // By what the gain is of, where there is that; the common term is another estimate.
    let busiest = |terms: &v1::Terms| terms.parts.get("busiest_link_s").copied();
    let links = [&set.links, &set.baseline_links];
    let by_busiest = busiest(&hinted).zip(busiest(&default));
    let by_busiest = by_busiest.map(|pair| (pair, links.map(cost_links::busiest_in_brackets)));
    let by_worst = || {
        let pair = hinted.worst_link_s.zip(default.worst_link_s)?;
        Some((pair, links.map(cost_links::worst_in_brackets)))
    };
    if let Some(((there, by_yarn), [link, yarns])) = by_busiest.or_else(by_worst) {
        let (there, by_yarn) = (output::seconds(there), output::seconds(by_yarn));
        return format!(
            "their busiest link{link} is done after {there}, where YARN puts them by itself{yarns} after {by_yarn}"
        );
    }
    if let (Some(there), Some(by_yarn)) = (hinted.remote_bytes, default.remote_bytes) {
        let (there, by_yarn) = (output::bytes(there), output::bytes(by_yarn));
        return format!("{there} of input come over the network, where YARN puts them by itself {by_yarn}");
    }
    match set.expected_gain {
        Some(gain) => {
            format!("by {} they cost {} less than where YARN puts them by itself", set.policy, output::percent(gain))
        }
        None => "how they compare with where YARN puts them by itself is not known".to_owned(),
    }
}

fn followed(set: &v1::HintSet, Outcome { all: outcome, counts, resource_manager_asked, .. }: Outcome<'_>) -> String {
    if set.mode() == v1::Mode::Shadow {
        let came = outcome.map_or_else(String::new, |outcome| {
            format!(" By itself it did this: {}.{}", came(outcome), adherence::by_group(outcome))
        });
        return format!("YARN was not told, for the queue is in shadow.{came}");
    }
    match outcome {
        None => counted(counts),
        Some(outcome) => {
            let sum = |of: fn(&v1::HintOutcome) -> u64| outcome.hints.iter().map(of).sum::<u64>();
            let missed = sum(|hint| hint.in_rack) + sum(|hint| hint.elsewhere) + sum(|hint| hint.never);
            let word = whether(sum(|hint| hint.on_host), missed);
            let why_not = why_not::lines(outcome, resource_manager_asked);
            format!("{word}: {}.{}{why_not}", came(outcome), adherence::by_group(outcome))
        }
    }
}

const fn whether(on_host: u64, missed: u64) -> &'static str {
    match (on_host, missed) {
        (0, 0) => "Not known yet whether they are followed",
        (_, 0) => "Followed",
        (0, _) => "Not followed",
        _ => "Followed in part",
    }
}

/// Where only sums are kept.
fn counted(counts: Option<&v1::Followed>) -> String {
    let Some(v1::Followed { on_host, hinted, awaited, reason, .. }) = counts else {
        return "Whether they were followed is not known: nothing was seen of the containers, or it is no longer kept."
            .to_owned();
    };
    let missed = hinted.saturating_sub(*on_host).saturating_sub(*awaited);
    let awaited = if *awaited > 0 { format!(", {awaited} are awaited still") } else { String::new() };
    let most = if reason.is_empty() { String::new() } else { format!(", most of the others for {reason}") };
    format!(
        "{}: {on_host} of {hinted} came to their host{awaited}{most}; where the others came is no longer kept.",
        whether(*on_host, missed)
    )
}

/// `3 of 6 came to their host, 1 elsewhere, 2 are awaited still`
fn came(outcome: &v1::DecisionOutcome) -> String {
    let sum = |of: fn(&v1::HintOutcome) -> u64| outcome.hints.iter().map(of).sum::<u64>();
    let on_host = sum(|hint| hint.on_host);
    let others = [
        (sum(|hint| hint.in_rack), "to its rack or a next best host"),
        (sum(|hint| hint.elsewhere), "elsewhere"),
        (sum(|hint| hint.never), "never"),
        (sum(|hint| hint.open), "are awaited still"),
    ];
    let all = on_host + others.iter().map(|(count, _)| count).sum::<u64>();
    let mut said = format!("{on_host} of {all} came to their host");
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        said += &format!(", {count} {what}");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> v1::HintSet {
        let hint =
            |host: &str, count| v1::Hint { group: "map".into(), host: host.into(), count, ..v1::Hint::default() };
        let seconds = |worst_link_s| Some(v1::Terms { worst_link_s: Some(worst_link_s), ..v1::Terms::default() });
        v1::HintSet {
            policy: "joint".into(),
            mode: v1::Mode::On.into(),
            hints: vec![hint("n1", 5), hint("n2", 3), hint("n3", 2), hint("n4", 1), hint("n5", 1)],
            terms: seconds(12.0),
            baseline: seconds(20.0),
            ..v1::HintSet::default()
        }
    }

    fn outcome(on_host: u64, elsewhere: u64, open: u64) -> v1::DecisionOutcome {
        let mut hint = v1::HintOutcome { on_host, elsewhere, open, ..v1::HintOutcome::default() };
        if elsewhere > 0 {
            hint.misses.insert("yarn_chose".to_owned(), elsewhere);
        }
        v1::DecisionOutcome { settled: open == 0, hints: vec![hint], terms: vec![] }
    }

    #[test]
    fn two_sentences_say_where_why_and_whether_it_was_followed() {
        let said = |all: Option<&v1::DecisionOutcome>| {
            sentences(&set(), Outcome { all, resource_manager_asked: true, ..Outcome::default() })
        };
        assert_eq!(
            said(Some(&outcome(10, 2, 0))),
            "12 containers are hinted: 5 on n1, 3 on n2, 2 on n3 and 2 on 2 other hosts; their busiest link is done after 12 s, \
             where YARN puts them by itself after 20 s.\n\
             Followed in part: 10 of 12 came to their host, 2 elsewhere.\n\
             why not: 2, although their host had room when they came, by what its node told (yarn_chose): YARN did not wait for \
             it for long enough, or was not asked for it (hintctl doctor: delays, processor)"
        );
        assert!(said(Some(&outcome(12, 0, 0))).ends_with("Followed: 12 of 12 came to their host."));
        assert!(said(Some(&outcome(0, 12, 0))).contains("\nNot followed: 0 of 12 came to their host, 12 elsewhere"));
        assert!(said(Some(&outcome(0, 0, 12))).contains("\nNot known yet whether they are followed: "));
        assert!(said(None).contains("\nWhether they were followed is not known"));
        let shadow = v1::HintSet { mode: v1::Mode::Shadow.into(), ..set() };
        let counts = v1::Followed { on_host: 3, hinted: 12, reason: "no_room".into(), ..v1::Followed::default() };
        let kept = sentences(&set(), Outcome { counts: Some(&counts), ..Outcome::default() });
        assert!(
            kept.contains("Followed in part: 3 of 12 came to their host, most of the others for no_room; "),
            "{kept}"
        );
        let said = sentences(&shadow, Outcome::default());
        assert!(said.starts_with("12 containers would have been hinted (shadow): 5 on n1"), "{said}");
        assert!(said.ends_with("YARN was not told, for the queue is in shadow."), "{said}");
    }

    #[test]
    fn an_answer_that_nobody_has_is_no_hint_and_says_what_it_would_have_been_and_what_is_left_of_it() {
        let lease = |state: &str| v1::LeaseState { state: state.into(), ..v1::LeaseState::default() };
        let leases = [lease("held"), lease("held"), lease("expired")];
        let set = v1::HintSet { request_id: "r7".into(), ..set() };
        let outcome = Outcome { late: "deadline", leases: &leases, ..Outcome::default() };
        let said = sentences(&set, outcome);
        assert!(
            said.starts_with(
                "Too late: the answer was made after the request's deadline had passed. YARN never saw it"
            ),
            "{said}"
        );
        assert!(
            said.contains(
                "\nIt would have been: 12 containers, 5 on n1, 3 on n2, 2 on n3 and 2 on 2 other hosts; their"
            ),
            "{said}"
        );
        assert!(
            said.contains(
                " Its leases: 1 expired, 2 held; what is held stays until it expires. A repeat of request r7 within \
                 leases.answers_kept gets it."
            ),
            "{said}"
        );
        assert!(said.contains("hintctl doctor (refused)") && !said.contains("ollowed:"), "{said}");
        let gone = Outcome { late: "hung_up", leases: &leases[2..], ..Outcome::default() };
        let said = sentences(&v1::HintSet { hints: vec![], ..set }, gone);
        assert!(said.contains("after its caller had hung up.") && !said.contains("deadline"), "{said}");
        assert!(said.contains("\nIt had no hints. Its leases are over: 1 expired. "), "{said}");
    }

    #[test]
    fn what_the_guard_keeps_back_says_both_times_and_by_how_much_it_had_to_be_sooner() {
        let said = |hinted_s, default_s, guard_margin| {
            let withheld = v1::Withheld { reason: "no_gain".into(), hinted_s, default_s };
            let set = v1::HintSet { hints: vec![], withheld: Some(withheld), ..set() };
            sentences(&set, Outcome { guard_margin, ..Outcome::default() })
        };
        assert_eq!(
            said(Some(9.6), Some(10.0), Some(0.1)),
            "No hints: the busiest link would be done after 9.6 s, and after 10 s where YARN puts the containers by itself; that is \
             4 % sooner, and hints are given where it is more than 10 % sooner (placer.guard_margin).\n\
             YARN places the containers by itself."
        );
        assert!(said(Some(11.0), Some(10.0), None).contains("; that is 10 % later.\n"));
        assert!(said(Some(10.0), Some(10.0), None).contains("; that is no sooner.\n"));
        // Of so little nobody wants to know by how much it is sooner.
        assert_eq!(
            said(Some(4.8e-8), Some(5e-8), Some(0.1)),
            "No hints: so little traffic is known of it that the busiest link is done in less than 1 ms either way: with them, and \
             where YARN puts the containers by itself.\nYARN places the containers by itself."
        );
    }

    #[test]
    fn the_links_that_are_done_last_have_their_names() {
        let links = |id: &str| {
            let (links, from, to) = (vec![id.to_owned()], "edge-1".to_owned(), "core-1".to_owned());
            let worst = Some(v1::CostLink { links, links_total: 1, from, to, seconds: 1.0 });
            Some(v1::CostLinks { busiest: None, worst })
        };
        let named = v1::HintSet { links: links("l1"), baseline_links: links("l2"), ..set() };
        let said = "their busiest link (l1, edge-1 to core-1) is done after 12 s, where YARN puts them by itself (l2, edge-1 to \
                    core-1) after 20 s";
        assert_eq!(why(&named), said);
    }

    #[test]
    fn the_first_figure_that_is_known_of_both_placements_says_why() {
        let input = |bytes| Some(v1::Terms { remote_bytes: Some(bytes), ..v1::Terms::default() });
        let by_input = v1::HintSet { terms: input(1e9), baseline: input(3e9), ..set() };
        assert!(why(&by_input).starts_with("1 GB of input come over the network, where YARN"), "{}", why(&by_input));
        let by_gain = v1::HintSet { terms: None, expected_gain: Some(0.25), ..set() };
        assert_eq!(why(&by_gain), "by joint they cost 25 % less than where YARN puts them by itself");
        assert!(why(&v1::HintSet { terms: None, ..set() }).ends_with("is not known"));
    }

    #[test]
    fn no_hints_have_their_reason() {
        let none = v1::HintSet { hints: vec![], ..set() };
        let withheld = v1::Withheld { reason: "nothing_known".into(), ..v1::Withheld::default() };
        let said = sentences(&v1::HintSet { withheld: Some(withheld), ..none.clone() }, Outcome::default());
        assert!(
            said.starts_with("No hints: neither input nor traffic is known") && said.ends_with("by itself."),
            "{said}"
        );
        let gang = v1::HintSet {
            without_room: 79,
            hints: vec![v1::Hint { host: "n1".into(), count: 32, ..v1::Hint::default() }],
            blocked: vec![v1::Blocked { group: "g".into(), count: 47, ..v1::Blocked::default() }],
            ..none.clone()
        };
        let said = sentences(&gang, Outcome::default());
        assert!(
            said.starts_with(
                "No lease: 79 containers find no room now: the gang is placed whole or not at all, and 32 of"
            ),
            "{said}"
        );
        // Of some there is room: what only waits is not among those that are hinted.
        let part = v1::HintSet {
            without_room: 4,
            hints: vec![
                v1::Hint { host: "n1".into(), count: 2, lease_ids: vec![7, 8], ..v1::Hint::default() },
                v1::Hint { host: "n1".into(), count: 3, ..v1::Hint::default() },
            ],
            ..set()
        };
        let said = sentences(&part, Outcome::default());
        assert!(said.starts_with("2 containers are hinted: 2 on n1; "), "{said}");
        assert!(
            said.contains(" Without a lease: 3 more, told only where to wait, for 4 containers find no room now."),
            "{said}"
        );
        let pending = vec![v1::Pending { group: "map".into(), count: 4, ..v1::Pending::default() }];
        let waits = sentences(&v1::HintSet { pending, ..none.clone() }, Outcome::default());
        assert!(waits.starts_with("No hints at once: its tasks were left to a dispatch policy.\n"), "{waits}");
        let off = sentences(&v1::HintSet { mode: v1::Mode::Off.into(), ..none }, Outcome::default());
        assert!(off.starts_with("No hints: the queue is off.\n"), "{off}");
    }
}
