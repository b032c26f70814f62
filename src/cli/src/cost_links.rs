//! The links that costs are of, and why hints are given that gain nothing, in words.

use super::output;
use hintd_client::wire::v1;

/// One of the links that costs name.
type LinkOf = fn(&v1::CostLinks) -> Option<&v1::CostLink>;

/// A line for each kind of link that costs name: with the hints, and where YARN puts the containers by itself.
pub(super) fn named(set: &v1::HintSet) -> Vec<String> {
    let kinds: [(&str, LinkOf); 2] =
        [("worst link", |links| links.worst.as_ref()), ("busiest link", |links| links.busiest.as_ref())];
    let line = |(kind, of): (&str, fn(&v1::CostLinks) -> Option<&v1::CostLink>)| {
        let [hinted, default] = [&set.links, &set.baseline_links].map(|links| links.as_ref().and_then(of));
        let said = |link: Option<&v1::CostLink>| link.map_or_else(|| "none is used".to_owned(), in_words);
        let by_yarn = if set.baseline.is_some() { format!("; default: {}", said(default)) } else { String::new() };
        (hinted.is_some() || default.is_some()).then(|| format!("{kind}: hinted: {}{by_yarn}", said(hinted)))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// ` (edge-1--core-1, edge-1 to core-1)`; empty where none is known.
pub(super) fn busiest_in_brackets(links: &Option<v1::CostLinks>) -> String {
    let busiest = links.as_ref().and_then(|links| links.busiest.as_ref());
    busiest.map_or_else(String::new, |link| format!(" ({})", in_words(link)))
}

/// The same of the network's own paths.
pub(super) fn worst_in_brackets(links: &Option<v1::CostLinks>) -> String {
    let worst = links.as_ref().and_then(|links| links.worst.as_ref());
    worst.map_or_else(String::new, |link| format!(" ({})", in_words(link)))
}

/// `edge-1--core-1, edge-1 to core-1`; of a rack's uplinks `l1 and l2 together, out of /rack-1`.
pub(super) fn in_words(link: &v1::CostLink) -> String {
    let v1::CostLink { links, links_total, from, to, .. } = link;
    let way = match (from.as_str(), to.as_str()) {
        (from, "") => format!("out of {from}"),
        ("", to) => format!("into {to}"),
        (from, to) => format!("{from} to {to}"),
    };
    let more = (*links_total as usize).saturating_sub(links.len());
    match (links.as_slice(), more) {
        ([], _) => format!("{way}, over a link that no network names"),
        ([only], 0) => format!("{only}, {way}"),
        ([before @ .., last], 0) => format!("{} and {last} together, {way}", before.join(", ")),
        (some, more) => format!("{} and {more} more together, {way}", some.join(", ")),
    }
}

/// A gain below this is one that the guard would keep back as it is shipped (placer.guard_margin).
const LITTLE: f64 = 0.1;

/// Why hints are given though they gain next to nothing, or nobody knows what: a sentence.
pub(super) fn why_all_the_same(set: &v1::HintSet) -> Option<String> {
    let little = set.expected_gain.is_none_or(|gain| gain < LITTLE);
    if set.hints.is_empty() || !little {
        return None;
    }
    if set.unguarded_why.is_empty() {
        return by_another_figure(set);
    }
    Some(format!("{} whatever the gain is, without the guard (placer.guard): {}", hinted(set), set.unguarded_why))
}

/// What was done with the hints.
fn hinted(set: &v1::HintSet) -> &'static str {
    if set.mode() == v1::Mode::Shadow { "would have been hinted (shadow)" } else { "hinted" }
}

/// The guard compares when the busiest link is done; the gain is of the policy's own objective.
fn by_another_figure(set: &v1::HintSet) -> Option<String> {
    let busiest = |links: &Option<v1::CostLinks>| links.as_ref().and_then(|links| links.busiest.clone());
    let gain = set.expected_gain?;
    let default = busiest(&set.baseline_links)?.seconds;
    let with_hints = busiest(&set.links).map_or(0.0, |link| link.seconds);
    (with_hints < default).then(|| {
        format!(
            "{} though the gain by {}'s own objective is {} %, for the guard (placer.guard) goes by the busiest link: done after {} \
             with the hints, after {} where YARN puts the containers by itself",
            hinted(set),
            set.policy,
            output::digits(gain * 100.0),
            output::seconds(with_hints),
            output::seconds(default)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(links: &[&str], total: u32, from: &str, to: &str, seconds: f64) -> v1::CostLink {
        let links = links.iter().map(|link| (*link).to_owned()).collect();
        v1::CostLink { links, links_total: total, from: from.into(), to: to.into(), seconds }
    }

    #[test]
    fn a_link_is_named_as_links_lists_it_and_a_racks_uplinks_are_named_together() {
        let said = |links: &[&str], total, from, to| in_words(&link(links, total, from, to, 1.0));
        assert_eq!(said(&["l1"], 1, "edge-1", "core-1"), "l1, edge-1 to core-1");
        assert_eq!(said(&["l1", "l2"], 2, "/rack-1", ""), "l1 and l2 together, out of /rack-1");
        assert_eq!(said(&["l1", "l2"], 9, "", "/rack-1"), "l1, l2 and 7 more together, into /rack-1");
        assert_eq!(said(&[], 0, "n1", ""), "out of n1, over a link that no network names");
    }

    #[test]
    fn both_placements_links_are_named_beside_their_costs() {
        let busiest = |link| Some(v1::CostLinks { busiest: Some(link), worst: None });
        let mut set = v1::HintSet { links: busiest(link(&["l1"], 1, "a", "b", 2.0)), ..v1::HintSet::default() };
        assert_eq!(named(&set), ["busiest link: hinted: l1, a to b"]);
        (set.baseline, set.links) = (Some(v1::Terms::default()), None);
        set.baseline_links = busiest(link(&["l2"], 1, "b", "a", 9.0));
        assert_eq!(named(&set), ["busiest link: hinted: none is used; default: l2, b to a"]);
        assert_eq!(named(&v1::HintSet::default()), [""; 0]);
        assert_eq!(busiest_in_brackets(&set.baseline_links), " (l2, b to a)");
    }

    #[test]
    fn hints_that_gain_nothing_say_why_they_are_given() {
        let set = |gain, why: &str| v1::HintSet {
            policy: "cross_layer".into(),
            hints: vec![v1::Hint::default()],
            expected_gain: gain,
            unguarded_why: why.into(),
            ..v1::HintSet::default()
        };
        let why = "it is a gang";
        let said = why_all_the_same(&set(Some(0.0), why));
        let whole = "hinted whatever the gain is, without the guard (placer.guard): it is a gang";
        assert_eq!(said.as_deref(), Some(whole));
        assert_eq!(why_all_the_same(&set(Some(0.5), why)), None, "it gains enough");
        assert!(why_all_the_same(&set(None, why)).is_some());
        let shadow = v1::HintSet { mode: v1::Mode::Shadow.into(), ..set(Some(0.0), why) };
        assert!(why_all_the_same(&shadow).unwrap().starts_with("would have been hinted (shadow) whatever"));
        let mut judged = set(Some(0.0), "");
        assert_eq!(why_all_the_same(&judged), None, "nothing is known that says why");
        judged.baseline_links = Some(v1::CostLinks { busiest: Some(link(&["l2"], 1, "b", "a", 9.0)), worst: None });
        let said = why_all_the_same(&judged).unwrap();
        assert!(said.contains("cross_layer's own objective is 0 %") && said.contains("after 9 s"), "{said}");
    }
}
