//! Whether hints were followed and what came of it, as people read it of `status`, `explain` and `demo`.

use super::{answers, output};
use hintd_client::view::{Locality, locality, mode};
use hintd_client::wire::v1;
use std::collections::BTreeMap;

/// The same for people: what became of hinted containers, then what their places cost. Empty if nothing is settled.
#[must_use]
pub fn text(views: &[v1::AdherenceView], watched: u64) -> String {
    if views.is_empty() {
        return String::new();
    }
    let rows = views.iter().map(|view| {
        let all = hinted(view);
        [
            view.queue.clone(),
            view.decisions.to_string(),
            share(view.on_host, all),
            share(view.in_rack, all),
            share(view.elsewhere, all),
            share(view.never, all),
            reasons(&view.misses),
            mode(view.mode()).to_owned(),
            view.policy.clone(),
        ]
    });
    let header =
        ["queue", "decisions", "on host", "in rack", "elsewhere", "never", "not on its host because", "mode", "policy"];
    let mut lines = vec![
        format!(
            "whether hints were followed, of decisions that are settled; {} watched still",
            if watched == 1 { "1 is".to_owned() } else { format!("{watched} are") }
        ),
        output::table(header, 1, rows),
    ];
    if views.iter().any(|view| view.mode() == v1::Mode::Shadow) {
        lines.push(
            "shadow: nothing was sent to YARN; on host is what it put by itself where it would have been hinted"
                .to_owned(),
        );
    }
    let costs: Vec<[String; 10]> = views.iter().flat_map(cost_rows).collect();
    if !costs.is_empty() {
        let header = [
            "queue",
            "cost",
            "hinted",
            "realised",
            "expected gain",
            "realised gain",
            "potential saving",
            "decisions",
            "mode",
            "policy",
        ];
        lines.push(format!("\n{}", output::table(header, 2, costs)));
        lines.push(
            "gains: share of the default placement's cost that is saved; potential saving: share of the real cost that \
             following every hint would have saved"
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// The same by group, of the last hour: a sum of all hides that reduces, or small jobs, are not followed. Empty where there are
/// no groups to be told apart.
#[must_use]
pub fn groups_text(lately: &[v1::AdherenceView]) -> String {
    let rows = lately.iter().flat_map(|view| view.groups.iter().map(move |group| (view, group)));
    let rows: Vec<[String; 9]> = rows.map(|(view, group)| group_row(view, group)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["queue", "mode", "group", "decisions", "none near", "containers", "on host", "in rack", "elsewhere"];
    format!(
        "the same by group, in the last hour; none near: decisions of which no container came to its host or its rack\n{}",
        output::table(header, 3, rows)
    )
}

fn group_row(view: &v1::AdherenceView, group: &v1::GroupAdherence) -> [String; 9] {
    let all = group.on_host + group.in_rack + group.elsewhere + group.never;
    [
        view.queue.clone(),
        mode(view.mode()).to_owned(),
        group.group.clone(),
        group.decisions.to_string(),
        group.not_followed.to_string(),
        all.to_string(),
        share(group.on_host, all),
        share(group.in_rack, all),
        share(group.elsewhere, all),
    ]
}

/// Hosts named where a hint's containers came.
const PLACES_SHOWN: usize = 6;

/// What became of one decision, for people, by at most so many of its hints.
#[must_use]
pub fn outcome_text(outcome: &v1::DecisionOutcome, most: usize) -> String {
    let rows = outcome.hints.iter().take(most).map(|hint| {
        [
            hint.group.clone(),
            hint.host.clone(),
            came_to(hint),
            reasons(&hint.misses),
            hint.count.to_string(),
            hint.on_host.to_string(),
            hint.in_rack.to_string(),
            hint.elsewhere.to_string(),
            hint.never.to_string(),
            hint.open.to_string(),
        ]
    });
    let header =
        ["group", "host", "came to", "reason", "hinted", "on host", "in rack", "elsewhere", "never", "awaited"];
    let state = if outcome.settled { "settled" } else { "watched still" };
    let mut lines = vec![format!("what became of it ({state})"), output::table(header, 4, rows)];
    lines.extend(answers::more_rows(outcome.hints.len(), most));
    if !outcome.terms.is_empty() {
        let rows = outcome.terms.iter().map(|term| {
            let value = |value: f64| output::in_units(&term.term, value);
            let default = term.default_placement.map_or_else(absent, value);
            [output::term(&term.term), value(term.hinted), value(term.realised), default]
        });
        lines.push(format!("\n{}", output::table(["cost", "hinted", "realised", "default"], 1, rows)));
    }
    lines.join("\n")
}

/// A line for each group: `map: 3 of 6 containers came to a host hinted for them; the others: 2 on n7, 1 on n9`. Empty where nothing has come, and of a lone group of
/// which nobody knows where others came.
pub(super) fn by_group(outcome: &v1::DecisionOutcome) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for hint in &outcome.hints {
        if !groups.contains(&&*hint.group) {
            groups.push(&hint.group);
        }
    }
    let line = |group: &&str| {
        let hints = || outcome.hints.iter().filter(move |hint| hint.group == **group);
        let sum = |of: fn(&v1::HintOutcome) -> u64| hints().map(of).sum::<u64>();
        let came = sum(|hint| hint.on_host) + sum(|hint| hint.in_rack) + sum(|hint| hint.elsewhere);
        let all: u64 = hints().map(|hint| u64::from(hint.count)).sum();
        let others = others(hints());
        let rest = match others.is_empty() {
            true => String::new(),
            false => format!("; the others: {others}"),
        };
        // Of a lone group its sum has been said.
        let news = groups.len() > 1 || !others.is_empty();
        let on_host = sum(|hint| hint.on_host);
        let what = if all == 1 { "container" } else { "containers" };
        (came > 0 && news).then(|| format!("\n{group}: {on_host} of {all} {what} came to a host hinted for them{rest}"))
    };
    groups.iter().filter_map(line).collect()
}

/// Hosts beside their hint's to which containers came, most first.
fn others<'h>(hints: impl Iterator<Item = &'h v1::HintOutcome>) -> String {
    let (mut places, mut unknown): (BTreeMap<&str, u64>, u64) = (BTreeMap::new(), 0);
    for hint in hints {
        unknown += hint.came_to_unknown;
        for place in hint.came_to.iter().filter(|place| place.host != hint.host) {
            *places.entry(&place.host).or_default() += place.count;
        }
    }
    let mut places: Vec<(&str, u64)> = places.into_iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = places.iter().take(PLACES_SHOWN);
    let mut said: Vec<String> = named.map(|(host, count)| format!("{count} on {host}")).collect();
    match places.len().saturating_sub(PLACES_SHOWN) {
        0 => {}
        more => said.push(output::count(more as u64, "more host")),
    }
    said.extend((unknown > 0).then(|| format!("{unknown} on hosts not kept")));
    said.join(", ")
}

/// `n1 2, n7 and 3 more hosts; 1 nobody told of`: where a hint's containers came to be.
fn came_to(hint: &v1::HintOutcome) -> String {
    let host = |place: &v1::CameTo| match place.count {
        1 => place.host.clone(),
        count => format!("{} {count}", place.host),
    };
    let mut said = hint.came_to.iter().take(PLACES_SHOWN).map(host).collect::<Vec<_>>().join(", ");
    let more = hint.came_to.len().saturating_sub(PLACES_SHOWN);
    if more > 0 {
        said += &format!(" and {}", output::count(more as u64, "more host"));
    }
    let told = [(hint.came_to_unknown, "to hosts not kept"), (hint.never, "nobody told of")];
    for (count, what) in told.iter().filter(|(count, _)| *count > 0) {
        said += &format!("{}{count} {what}", if said.is_empty() { "" } else { "; " });
    }
    if said.is_empty() { absent() } else { said }
}

/// A line for the summary of a run: where hinted containers came to be, by the daemon's own reckoning.
#[must_use]
pub fn line(views: &[v1::AdherenceView]) -> String {
    let sum = |of: fn(&v1::AdherenceView) -> u64| views.iter().map(of).sum::<u64>();
    let all = views.iter().map(hinted).sum();
    format!(
        "of {all} hinted containers {} came to their host, {} to its rack or a next best host, {} elsewhere, {} never",
        share(sum(|view| view.on_host), all),
        share(sum(|view| view.in_rack), all),
        share(sum(|view| view.elsewhere), all),
        share(sum(|view| view.never), all),
    )
}

/// Another line: gains over the default placement, expected and realised.
#[must_use]
pub fn gains_line(views: &[v1::AdherenceView]) -> String {
    let of = |view: &v1::AdherenceView| {
        let terms = view.terms.iter().filter(|term| term.expected_gain.is_some());
        let term = |term: &v1::TermAdherence| {
            format!("{} {} of {}", output::term(&term.term), percent(term.realised_gain), percent(term.expected_gain))
        };
        terms.map(term).collect::<Vec<_>>()
    };
    let gains: Vec<String> = views.iter().flat_map(of).collect();
    if gains.is_empty() { "none compared".to_owned() } else { format!("{} expected", gains.join(", ")) }
}

/// What [`gains_line`] is of, and why it may be far from what was expected; empty where nothing is compared.
#[must_use]
pub fn gains_note(views: &[v1::AdherenceView]) -> String {
    let compared = |view: &v1::AdherenceView| view.terms.iter().map(|term| term.beside).max().unwrap_or(0);
    let decisions: u64 = views.iter().map(compared).sum();
    if decisions == 0 {
        return String::new();
    }
    let all: u64 = views.iter().map(hinted).sum();
    let mut misses: BTreeMap<String, u64> = BTreeMap::new();
    let of_views = views.iter().flat_map(|view| &view.misses);
    of_views.for_each(|(why, count)| *misses.entry(why.clone()).or_default() += count);
    let off_host = all - views.iter().map(|view| view.on_host).sum::<u64>();
    let why = if misses.is_empty() { String::new() } else { format!(" ({})", reasons(&misses)) };
    format!(
        "of the default placement's cost, summed over {decisions} decisions: the largest jobs count most; {off_host} of {all} \
         hinted containers are not on their host{why}; below 0 %: what YARN chose costs more than the default placement"
    )
}

fn cost_rows(view: &v1::AdherenceView) -> Vec<[String; 10]> {
    let row = |cost: &str, decisions: u64, values: [String; 5]| {
        let [hinted, realised, expected, gained, followed] = values;
        let (queue, policy, mode) = (view.queue.clone(), view.policy.clone(), mode(view.mode()).to_owned());
        let (cost, decisions) = (cost.to_owned(), decisions.to_string());
        [queue, cost, hinted, realised, expected, gained, followed, decisions, mode, policy]
    };
    let term = |term: &v1::TermAdherence| {
        let value = |value: f64| output::in_units(&term.term, value);
        let gains = [term.expected_gain, term.realised_gain, term.had_followed].map(percent);
        let [expected, gained, followed] = gains;
        row(
            &output::term(&term.term),
            term.decisions,
            [value(term.hinted), value(term.realised), expected, gained, followed],
        )
    };
    let mut rows: Vec<_> = view.terms.iter().map(term).collect();
    if let Some(Locality { hinted, realised }) = locality(view) {
        let decisions = view.terms.iter().find(|term| term.term == "remote_bytes").map_or(0, |term| term.decisions);
        let values = [percent(Some(hinted)), percent(Some(realised)), absent(), absent(), absent()];
        rows.push(row("local input", decisions, values));
    }
    rows
}

const fn hinted(view: &v1::AdherenceView) -> u64 {
    view.on_host + view.in_rack + view.elsewhere + view.never
}

fn share(part: u64, of: u64) -> String {
    if of == 0 { absent() } else { percent(Some(part as f64 / of as f64)) }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(absent, output::percent)
}

/// Most frequent first.
fn reasons(misses: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, &u64)> = misses.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    all.into_iter().map(|(why, count)| format!("{why} {count}")).collect::<Vec<_>>().join(", ")
}

fn absent() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view() -> v1::AdherenceView {
        let remote = v1::TermAdherence {
            term: "remote_bytes".to_owned(),
            decisions: 2,
            hinted: 100e6,
            realised: 400e6,
            beside: 2,
            default_placement: 500e6,
            expected_gain: Some(0.8),
            realised_gain: Some(0.2),
            had_followed: Some(0.75),
        };
        v1::AdherenceView {
            policy: "container".to_owned(),
            queue: "etl".to_owned(),
            mode: v1::Mode::Shadow.into(),
            decisions: 3,
            compared: 2,
            on_host: 6,
            in_rack: 1,
            elsewhere: 2,
            never: 1,
            misses: [("no_room".to_owned(), 1), ("yarn_chose".to_owned(), 3)].into(),
            terms: vec![remote],
            input_bytes: 1000e6,
            objective_gain: None,
            objective_gains: 0,
            not_followed: 0,
            groups: vec![],
        }
    }

    #[test]
    fn a_shadow_queue_shows_what_following_would_have_saved() {
        let text = text(&[view()], 4);
        for part in
            ["etl", "shadow", "yarn_chose 3, no_room 1", "60 %", "75 %", "80 %", "20 %", "90 %", "4 are watched"]
        {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        let document = json!([view()]);
        assert_eq!(document[0]["locality"], json!({ "hinted": 0.9, "realised": 0.6 }));
        assert_eq!(document[0]["terms"]["remote_bytes"]["had_followed"], 0.75);
    }

    #[test]
    fn groups_are_told_apart_where_the_daemon_does() {
        let group = v1::GroupAdherence {
            group: "reduce".into(),
            decisions: 9,
            not_followed: 8,
            on_host: 1,
            elsewhere: 9,
            ..v1::GroupAdherence::default()
        };
        let text = groups_text(&[v1::AdherenceView { groups: vec![group], ..view() }]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.ends_with("etl shadow reduce 9 8 10 10 % 0 % 90 %"), "{text}");
        assert_eq!(groups_text(&[view()]), "", "a daemon of before");
    }

    #[test]
    fn each_group_says_how_many_followed_and_where_the_others_came() {
        let place = |host: &str, count| v1::CameTo { host: host.into(), rack: "/r1".into(), count };
        let hint = |group: &str, host: &str, came_to: Vec<v1::CameTo>, on_host, elsewhere| v1::HintOutcome {
            group: group.into(),
            host: host.into(),
            count: 3,
            came_to,
            on_host,
            elsewhere,
            ..v1::HintOutcome::default()
        };
        let hints = vec![
            hint("map", "n1", vec![place("n1", 2), place("n7", 1)], 2, 1),
            hint("map", "n2", vec![place("n7", 1), place("n1", 2)], 0, 3),
            hint("reduce", "n3", vec![place("n3", 3)], 3, 0),
            hint("late", "n4", vec![], 0, 0),
        ];
        let said = by_group(&v1::DecisionOutcome { hints, ..v1::DecisionOutcome::default() });
        assert_eq!(
            said,
            "\nmap: 2 of 6 containers came to a host hinted for them; the others: 2 on n1, 2 on n7\n\
             reduce: 3 of 3 containers came to a host hinted for them"
        );
    }

    #[test]
    fn nothing_settled_shows_nothing() {
        assert_eq!(text(&[], 3), "");
        assert_eq!(gains_line(&[]), "none compared");
        assert_eq!(gains_note(&[]), "");
    }

    #[test]
    fn a_gain_says_what_it_is_of_and_how_many_hints_were_not_followed() {
        let note = gains_note(&[view(), view()]);
        for part in ["summed over 4 decisions", "8 of 20 hinted containers", "(yarn_chose 6, no_room 2)", "below 0 %"] {
            assert!(note.contains(part), "no {part} in {note}");
        }
    }
}
