//! Answers as people read them: tables without surprises. What scripts read is `hintd_client::view`.

use super::blocked::{blocked_text, under};
use super::cost_links as links;
use super::{by_class, output, realised};
use hintd_client::view::ended;
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// Said of a request that was answered before: what has become of its leases.
#[must_use]
pub fn repeat_text(leases: &[v1::LeaseState]) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for lease in leases {
        *states.entry(&lease.state).or_default() += 1;
    }
    let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let states = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
    let over = if leases.iter().any(|lease| is_live(&lease.state)) { "" } else { "; none is live any more" };
    format!("a repeat: answered before, as it was then; its leases now: {states}{over}")
}

/// Whether a lease in this state promises room still.
pub(super) fn is_live(state: &str) -> bool {
    matches!(state, "held" | "confirmed")
}

/// How much of an answer is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    /// Routes that carry no bytes as well.
    pub(super) routes_without_bytes: bool,
    /// That nothing was ruled out, where nothing was.
    pub(super) nothing_ruled_out: bool,
    /// Rows of a table that grows with the job.
    pub(super) rows: usize,
}

/// One answer for people.
#[must_use]
pub fn text(set: &v1::HintSet) -> String {
    text_with(set, Detail { routes_without_bytes: true, nothing_ruled_out: false, rows: usize::MAX })
}

/// The same, as detailed as is wanted.
#[must_use]
pub(super) fn text_with(set: &v1::HintSet, detail: Detail) -> String {
    let hinted = match set.hints.iter().map(|hint| hint.count).sum::<u32>() {
        0 => "no container hinted".to_owned(),
        count => {
            let hosts = by_host(&set.hints, None).len() as u64;
            format!("{} on {}", output::count(count.into(), "container"), output::count(hosts, "host"))
        }
    };
    let mut lines = vec![format!(
        "{}: policy {}, {hinted}, {} after {} steps in {}",
        if set.decision_id.is_empty() { &set.request_id } else { &set.decision_id },
        set.policy,
        ended(set.ended()),
        set.steps,
        output::seconds(set.elapsed_ms / 1e3),
    )];
    match set.mode() {
        v1::Mode::Off => lines.push("the queue is off: no hints".to_owned()),
        v1::Mode::Shadow => lines.push(
            "the queue is in shadow: this would have been hinted; nothing is leased, asks stay as they were".to_owned(),
        ),
        v1::Mode::On | v1::Mode::Unspecified => {}
    }
    lines.extend(withheld_text(set));
    let rows = set.hints.iter().take(detail.rows).map(|hint| {
        let wait = hint.expected_wait_ms.map_or_else(String::new, |wait| output::seconds(wait as f64 / 1e3));
        let rack = hint.racks.first().cloned().unwrap_or_default();
        [hint.group.clone(), hint.count.to_string(), hint.host.clone(), rack, hint.fallbacks.join(" "), wait]
    });
    if !set.hints.is_empty() {
        lines.push(String::new());
        lines.push(output::table(["group", "count", "host", "rack", "or else", "wait"], 5, rows));
        lines.extend(more_rows(set.hints.len(), detail.rows));
    }
    lines.push(String::new());
    lines.push(terms_table(set));
    lines.extend(by_class::text(set).map(|line| format!("\n{line}")));
    if let Some(gain) = set.expected_gain {
        let (gain, objective) = (output::digits(gain * 100.0), realised::objective(set));
        lines.push(format!("\nexpected gain over the default placement: {gain} % {objective}"));
    }
    lines.extend(links::why_all_the_same(set));
    lines.extend(set.terms_of_whole.as_ref().map(whole_text));
    lines.extend(set.round.as_ref().map(round_text));
    lines.extend((set.without_room > 0).then(|| no_room_now(set)));
    lines.extend((set.next_wave > 0).then(|| {
        let under = under(&set.blocked);
        format!("{} containers wait for a later wave: the empty cluster holds no more{under}", set.next_wave)
    }));
    let carry = |route: &&v1::HintRoute| detail.routes_without_bytes || route.bytes > 0;
    let routes: Vec<v1::HintRoute> = set.routes.iter().filter(carry).cloned().collect();
    if !routes.is_empty() {
        lines.push(format!("\n{}", routes_text(&routes)));
    }
    if routes.len() < set.routes.len() {
        lines.push(format!(
            "routes on which no bytes are known to go: {}; --all shows them",
            set.routes.len() - routes.len()
        ));
    }
    if detail.nothing_ruled_out && set.exclusions.is_empty() && set.blocked.is_empty() {
        lines.push("\nnothing was ruled out".to_owned());
    }
    if !set.exclusions.is_empty() {
        let rows = set.exclusions.iter().map(|exclusion| {
            [
                exclusion.group.clone(),
                exclusion.reason.clone(),
                exclusion.examples.join(" "),
                exclusion.count.to_string(),
            ]
        });
        lines.push(String::new());
        lines.push(output::table(["group", "ruled out because", "for example", "nodes"], 3, rows));
    }
    if !set.blocked.is_empty() {
        lines.push(format!("\n{}", blocked_text(&set.blocked)));
    }
    if !set.degraded.is_empty() {
        lines.push(format!("\ndecided without: {}", set.degraded.join(", ")));
    }
    if let Some(note) = &set.plan {
        lines.push(format!("\n{}", plan_text(note)));
    }
    if !set.history.is_empty() {
        lines.push(format!("history: {}", set.history));
    }
    lines.join("\n")
}

/// Rows that are not shown; `None`: all are.
pub(super) fn more_rows(all: usize, shown: usize) -> Option<String> {
    (all > shown).then(|| format!("and {} more; --all shows them", all - shown))
}

fn plan_text(note: &v1::PlanNote) -> String {
    let why = match note.deviations.join(", ") {
        why if why.is_empty() => String::new(),
        why => format!("; leaves it: {why}"),
    };
    match note.job.as_str() {
        "" => format!("not by plan \"{}\"{why}", note.plan),
        job => format!(
            "by plan \"{}\" as {job}: {} containers in its racks, {} elsewhere{why}",
            note.plan, note.as_planned, note.elsewhere
        ),
    }
}

/// What cost and gain are of, where containers are asked for in parts.
fn whole_text(whole: &v1::TermsOfWhole) -> String {
    let earlier = match whole.earlier {
        0 => String::new(),
        earlier => format!(", beside {earlier} that were asked for before"),
    };
    format!("cost and gain are of all {} containers that are placed as one{earlier}", whole.containers)
}

/// Whom it was decided with, and what that was worth.
fn round_text(round: &v1::RoundNote) -> String {
    let [together, in_turn] = [round.cost, round.cost_in_turn].map(output::digits);
    let others = round.requests.saturating_sub(1);
    let with = if others == 1 { "1 other request".to_owned() } else { format!("{others} other requests") };
    format!(
        "decided in a round of {}, with {with}: all of them cost {together}, one after the other {in_turn}",
        round.requests
    )
}

/// Whether a hint is only a place to wait at: there is no room, and nothing is leased.
pub(super) fn only_waits(set: &v1::HintSet, hint: &v1::Hint) -> bool {
    set.mode() == v1::Mode::On && set.without_room > 0 && hint.lease_ids.is_empty()
}

/// Whether none of its containers has room: hints only say where to wait.
pub(super) fn waits_for_room(set: &v1::HintSet) -> bool {
    set.mode() == v1::Mode::On && set.without_room > 0 && set.hints.iter().all(|hint| only_waits(set, hint))
}

/// Of a gang, how many would fit now: what is not blocked of what has no room.
fn no_room_now(set: &v1::HintSet) -> String {
    let blocked: u32 = set.blocked.iter().map(|blocked| blocked.count).sum();
    // What lost its room at its commit is not blocked, either: then others have leases, or it is told without what blocks.
    let leased = set.hints.iter().any(|hint| !hint.lease_ids.is_empty());
    let fit = match leased || set.blocked.is_empty() {
        true => 0,
        false => (set.without_room + set.next_wave).saturating_sub(blocked),
    };
    match fit {
        0 if set.without_room == 1 => "1 container finds no room now".to_owned(),
        0 => format!("{} containers find no room now", set.without_room),
        fit => format!(
            "{} containers find no room now: the gang is placed whole or not at all, and {fit} of it would fit",
            set.without_room
        ),
    }
}

/// What finds no room now, and what not even an empty cluster has room for.
pub(super) fn no_room(set: &v1::HintSet) -> String {
    let beyond = format!("{} are more than the empty cluster holds{}", set.next_wave, under(&set.blocked));
    match (set.without_room, set.next_wave) {
        (_, 0) => no_room_now(set),
        (0, _) => format!("of the containers {beyond}"),
        (_, _) => format!("{}, and {beyond}", no_room_now(set)),
    }
}

/// Of times below this nobody wants to know which is less.
const LITTLE_S: f64 = 1e-3;

/// Whether both times are below a millisecond.
pub(super) fn is_little(withheld: &v1::Withheld) -> bool {
    [withheld.hinted_s, withheld.default_s].iter().all(|time| time.is_some_and(|time| time < LITTLE_S))
}

/// Why there are no hints; `None`: none are kept back.
pub(super) fn withheld_text(set: &v1::HintSet) -> Option<String> {
    let withheld = set.withheld.as_ref()?;
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "an unknown time".to_owned(), output::seconds);
    let said = match withheld.reason.as_str() {
        "nothing_known" => {
            "no hints: neither input nor traffic is known, so no place is better than another".to_owned()
        }
        "not_compared" => {
            "no hints: there was no time to tell whether they are better than YARN's own placement".to_owned()
        }
        "holdout" => {
            "no hints: the application is held out, so that others can be compared with it (worth.holdout)".to_owned()
        }
        "slower" => {
            "no hints: they made runs of this recurring job slower (hintctl holdout list; hintctl holdout allow KEY)"
                .to_owned()
        }
        _ if withheld.hinted_s == Some(0.0) && withheld.default_s == Some(0.0) => {
            "no hints: no link is used, with them or where YARN puts the containers by itself".to_owned()
        }
        _ if is_little(withheld) => {
            "no hints: so little traffic is known of it that the busiest link is done in less than 1 ms either way: with them, and \
             where YARN puts the containers by itself"
                .to_owned()
        }
        _ => {
            let [hinted, default] = [&set.links, &set.baseline_links].map(links::busiest_in_brackets);
            format!(
                "no hints: the busiest link would be done after {}{hinted}, and after {}{default} where YARN puts the containers by itself",
                time(withheld.hinted_s),
                time(withheld.default_s)
            )
        }
    };
    Some(said)
}

/// A refusal in words, with what blocks.
#[must_use]
pub fn refused_text(refused: &v1::Refused) -> String {
    let said = format!("refused ({}): {}", refused.reason, refused.message);
    if refused.blocked.is_empty() { said } else { format!("{said}\n{}", blocked_text(&refused.blocked)) }
}

/// Routes shown one by one; of more, the heaviest.
const ROUTES_SHOWN: usize = 20;

/// `src → dst via …`, a line a route; above 20 the heaviest and a summary.
#[must_use]
pub fn routes_text(routes: &[v1::HintRoute]) -> String {
    let mut shown: Vec<&v1::HintRoute> = routes.iter().collect();
    if routes.len() > ROUTES_SHOWN {
        shown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| (&a.src, &a.dst).cmp(&(&b.src, &b.dst))));
        shown.truncate(ROUTES_SHOWN);
    }
    let mut lines: Vec<String> = shown.into_iter().map(route_line).collect();
    let count = |what: fn(&v1::HintRoute) -> bool| routes.iter().filter(|route| what(route)).count();
    if routes.len() > ROUTES_SHOWN {
        lines.push(format!(
            "these are the heaviest of {} routes: {} to install, {} by default forwarding, {} cut off",
            routes.len(),
            count(|route| route.installed),
            count(|route| !route.installed && !route.vertices.is_empty()),
            count(|route| route.vertices.is_empty()),
        ));
    }
    lines.join("\n")
}

fn route_line(route: &v1::HintRoute) -> String {
    let v1::HintRoute { src, dst, task_pairs, .. } = route;
    let what = format!("{}, {}", output::count((*task_pairs).into(), "task pair"), output::bytes(route.bytes as f64));
    if let Some(chain) = &route.chain {
        return chain_line(route, chain, &what);
    }
    if route.vertices.is_empty() {
        return format!("{src} → {dst} has no path ({what}), cut by {}", route.cut.join(" "));
    }
    let default = if route.installed { "" } else { ", default forwarding" };
    format!("{src} → {dst} via {} ({what}{default})", via(&route.vertices))
}

/// A way under a chain, box by box: how many links lead to each, and what all of it costs.
fn chain_line(route: &v1::HintRoute, chain: &v1::ChainPath, what: &str) -> String {
    let v1::HintRoute { src, dst, .. } = route;
    let name = &chain.name;
    let Some(cost) = chain.cost.filter(|_| !route.vertices.is_empty()) else {
        return format!("{src} → {dst} under chain {name} has no way through its boxes ({what}): it must not flow");
    };
    if route.links.is_empty() {
        return format!(
            "{src} → {dst} under chain {name} stays on the host, past its boxes ({what}): the chain fails open"
        );
    }
    let mut walked = 0;
    let mut line = format!("{src} → {dst} under chain {name}: {src}");
    for stop in &chain.stops {
        let links = stop.after.saturating_sub(walked);
        line += &format!(" ─{links}→ {} ({} at {})", stop.r#box, stop.r#type, stop.at);
        walked = stop.after;
    }
    let all = route.links.len();
    let rate = output::rate(chain.rate_bits_per_s as f64);
    let left = all.saturating_sub(walked as usize);
    let past = match &chain.left_out[..] {
        [] => String::new(),
        kinds => format!("; past {}, of which none is left: the chain fails open", kinds.join(", ")),
    };
    line + &format!(" ─{left}→ {dst}; {rate} × {all} links costs {} ({what}){past}", output::rate(cost as f64))
}

/// The switches between the ends of a path.
#[must_use]
pub fn via(vertices: &[String]) -> String {
    match vertices {
        [_, between @ .., _] => between.join(" "),
        _ => String::new(),
    }
}

/// Terms beside the default placement's.
#[must_use]
pub fn terms_table(set: &v1::HintSet) -> String {
    let hinted = set.terms.as_ref().map(readable).unwrap_or_default();
    let default = set.baseline.as_ref().map(readable).unwrap_or_default();
    let absent = || "-".to_owned();
    let rows = hinted.iter().map(|(name, value)| {
        let other = default.iter().find(|(known, _)| known == name).map_or_else(absent, |(_, value)| value.clone());
        [name.clone(), value.clone(), other]
    });
    let mut table = output::table(["cost", "hinted", "default"], 1, rows);
    links::named(set).into_iter().for_each(|line| table += &format!("\n{line}"));
    let has = |name: &str| hinted.iter().any(|(known, value)| known == name && value != "-");
    match has("worst link") && has("  of which busiest link") {
        true => format!("{table}\n{TWO_LINKS}"),
        false => table,
    }
}

/// Two estimates of one matter: nobody is to take one for the other.
const TWO_LINKS: &str = "worst link: on the network's own paths, with nothing else on them; busiest link: by hosts' links and racks' uplinks\n\
    alone, beside what is there already: what placements are compared by";

/// Hosts with how many containers go there, most first, then by name; of one group or of all.
#[must_use]
pub fn by_host(hints: &[v1::Hint], group: Option<&str>) -> Vec<(String, u32)> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for hint in hints.iter().filter(|hint| group.is_none_or(|group| hint.group == group)) {
        *counts.entry(&hint.host).or_default() += hint.count;
    }
    let mut hosts: Vec<(String, u32)> = counts.into_iter().map(|(host, count)| (host.to_owned(), count)).collect();
    hosts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    hosts
}

/// Terms in words and units.
fn readable(terms: &v1::Terms) -> Vec<(String, String)> {
    // Seconds where it is made of the busiest link's; else it has no unit.
    let of_a_link = terms.parts.contains_key("busiest_link_s");
    let objective = |value: f64| if of_a_link { output::seconds(value) } else { output::digits(value) };
    let common = [
        ("remote_bytes", terms.remote_bytes.map(output::bytes)),
        ("cross_rack_bytes", terms.cross_rack_bytes.map(output::bytes)),
        ("core_hops", terms.core_hops.map(output::digits)),
        ("worst_link_s", terms.worst_link_s.map(output::seconds)),
        ("balance", terms.balance.map(output::digits)),
        ("objective", terms.objective.map(objective)),
    ];
    let common = common.into_iter().map(|(name, value)| (output::term(name), value.unwrap_or_else(|| "-".to_owned())));
    let parts =
        terms.parts.iter().map(|(name, value)| (format!("  of which {}", output::term(name)), part(name, *value)));
    common.chain(parts).collect()
}

/// A part of an objective, in the unit that its name ends with.
fn part(name: &str, value: f64) -> String {
    match name {
        name if name.ends_with("_bits_per_s") => output::rate(value),
        name if name.ends_with("_s") => output::seconds(value),
        "across_racks" => output::bytes(value),
        _ => output::digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_has_its_unit_where_it_has_one() {
        let terms = |parts: &[(&str, f64)]| v1::Terms {
            objective: Some(12.5),
            parts: parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            ..v1::Terms::default()
        };
        let shown = |parts: &[(&str, f64)]| {
            let set = v1::HintSet { terms: Some(terms(parts)), ..v1::HintSet::default() };
            terms_table(&set).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let joint = shown(&[("busiest_link_s", 12.5), ("across_racks", 2e9)]);
        assert!(joint.contains("objective 12.5 s -"), "{joint}");
        assert!(joint.contains("of which across-racks 2 GB") && joint.contains("busiest link 12.5 s"), "{joint}");
        let other = shown(&[("utility_bits_per_s", 1e9), ("mean_hops", 3.0)]);
        assert!(other.contains("objective 12.5 - ") && other.contains("of which utility 1 Gbit/s"), "{other}");
    }

    #[test]
    fn routes_without_bytes_are_counted_where_they_are_not_wanted_and_nothing_ruled_out_is_said() {
        let route =
            |src: &str, bytes| v1::HintRoute { src: src.into(), dst: "d".into(), bytes, ..v1::HintRoute::default() };
        let set = v1::HintSet { routes: vec![route("full", 5), route("empty", 0)], ..v1::HintSet::default() };
        let explained = text_with(&set, Detail { routes_without_bytes: false, nothing_ruled_out: true, rows: 9 });
        assert!(explained.contains("full → d") && !explained.contains("empty → d"), "{explained}");
        assert!(explained.contains("no bytes are known to go: 1; --all shows them"), "{explained}");
        assert!(explained.contains("nothing was ruled out"), "{explained}");
        let all = text(&set);
        assert!(all.contains("empty → d") && !all.contains("ruled out"), "{all}");
    }

    #[test]
    fn cost_and_gain_are_said_to_be_of_the_whole() {
        let set = |terms_of_whole| v1::HintSet { expected_gain: Some(0.5), terms_of_whole, ..v1::HintSet::default() };
        let said = |containers, earlier| text(&set(Some(v1::TermsOfWhole { containers, earlier })));
        let first = "cost and gain are of all 100 containers that are placed as one";
        assert!(said(100, 0).lines().any(|line| line == first));
        assert!(
            said(98, 2).contains("of all 98 containers that are placed as one, beside 2 that were asked for before")
        );
        assert!(!text(&set(None)).contains("placed as one"));
    }

    #[test]
    fn a_round_is_told_with_what_it_was_worth() {
        let round = |requests| v1::RoundNote { requests, cost: 12.5, cost_in_turn: 14.5 };
        let said = |round| text(&v1::HintSet { round, ..v1::HintSet::default() });
        let line = "decided in a round of 7, with 6 other requests: all of them cost 12.5, one after the other 14.5";
        assert!(said(Some(round(7))).lines().any(|said| said == line), "{}", said(Some(round(7))));
        assert!(said(Some(round(2))).contains("with 1 other request:") && !said(None).contains("round"));
    }

    #[test]
    fn many_routes_are_summed_up_after_the_heaviest() {
        let route = |number: u64| v1::HintRoute {
            src: format!("h{number}"),
            dst: "sink".into(),
            vertices: ["h", "s1", "s2", "sink"].map(str::to_owned).to_vec(),
            task_pairs: 2,
            bytes: number * 1_000_000,
            installed: number > 1,
            ..v1::HintRoute::default()
        };
        let few = routes_text(&[route(1), route(2)]);
        assert_eq!(
            few,
            "h1 → sink via s1 s2 (2 task pairs, 1 MB, default forwarding)\nh2 → sink via s1 s2 (2 task pairs, 2 MB)"
        );
        let mut many: Vec<_> = (0..29).map(route).collect();
        many.push(v1::HintRoute { vertices: vec![], cut: vec!["l1".into()], installed: false, ..route(99) });
        let text = routes_text(&many);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), ROUTES_SHOWN + 1);
        assert_eq!(lines[0], "h99 → sink has no path (2 task pairs, 99 MB), cut by l1");
        assert!(
            lines[ROUTES_SHOWN].ends_with("of 30 routes: 27 to install, 2 by default forwarding, 1 cut off"),
            "{text}"
        );
    }
}
