//! A decision in one line, for who asks why a job was slow: what became of its hints, which links were down since it was
//! decided, and how full its links are now. Only what the daemon knows; a link's mean over a job's time is not among it.

use super::links::{self, Sends};
use super::{answers, moments, output};
use hintd::findings::outage::lasting;
use hintd_client::wire::v1;

/// Of a link's capacity: who sends less does not hang on that link.
const LITTLE_SENT: f64 = 0.01;
/// Links that were down, named one by one.
const OUTAGES_NAMED: usize = 3;

/// `in short: 7 of 12 hinted containers came to their host; since it was decided link l1 was down for 41 s, …; …`
pub(super) fn line(answer: &v1::ExplainResponse, links: &[v1::LinkView]) -> String {
    let network = (!links.is_empty() && answer.age_ms > 0).then(|| outages(answer, links));
    let parts = [Some(hints(answer)), network, busiest(&answer.application_id, links)];
    format!("in short: {}", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// What became of the hints.
fn hints(answer: &v1::ExplainResponse) -> String {
    let set = answer.decision.clone().unwrap_or_default();
    let withheld = set.withheld.as_ref().map(|withheld| withheld.reason.as_str());
    match (&answer.refused, &answer.followed) {
        (Some(refused), _) => format!("no hints, for the request was refused ({})", refused.reason),
        _ if answer.late == "hung_up" => "no hints, for its caller had hung up before the answer was made".to_owned(),
        _ if !answer.late.is_empty() => format!("no hints, for the answer came too late ({})", answer.late),
        _ if set.mode() == v1::Mode::Off => "no hints, for the queue is off".to_owned(),
        _ if set.mode() == v1::Mode::Shadow => "no hints, for the queue is in shadow".to_owned(),
        _ if withheld.is_some() => format!("no hints, for they were withheld ({})", withheld.unwrap_or_default()),
        _ if answers::waits_for_room(&set) || set.hints.is_empty() => format!("no hints{}", why_none(&set)),
        (_, None) => "whether its hints were followed is not known".to_owned(),
        (_, Some(v1::Followed { on_host, hinted, awaited, .. })) => {
            let awaited = if *awaited > 0 { format!(", {awaited} are awaited still") } else { String::new() };
            format!("{on_host} of {hinted} hinted containers came to their host{awaited}")
        }
    }
}

/// Why there are none, where nobody keeps them back.
fn why_none(set: &v1::HintSet) -> &'static str {
    match (set.without_room > 0 || set.next_wave > 0, set.pending.is_empty()) {
        (true, _) => ", for there was no room",
        (false, false) => " at once, for its tasks were left to a dispatch policy",
        (false, true) => "",
    }
}

/// Links that carried nothing at some time since it was decided: those first that its application's routes were on.
fn outages(answer: &v1::ExplainResponse, links: &[v1::LinkView]) -> String {
    let mut found: Vec<(u64, u64, String)> = links.iter().filter_map(|link| outage(answer, link)).collect();
    found.sort_by_key(|(own, lasted, _)| std::cmp::Reverse((*own, *lasted)));
    let named = found.iter().take(OUTAGES_NAMED).map(|(.., said)| said.clone()).collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(OUTAGES_NAMED) {
        _ if found.is_empty() => "no link was down since it was decided, as far as hintd was told".to_owned(),
        0 => format!("since it was decided {named}"),
        more => format!("since it was decided {named}, and {more} more (hintctl links)"),
    }
}

/// Routes of the application that were on the link, how long it was down, and both in words; `None`: it was up.
fn outage(answer: &v1::ExplainResponse, link: &v1::LinkView) -> Option<(u64, u64, String)> {
    let over = link.last_outage.as_ref().filter(|over| over.ended_ms < answer.age_ms);
    let (lasted, said, carried) = match (link.down_ms, over) {
        (Some(down_ms), _) => {
            // What is down for longer did not surprise it: hints avoid it, and what it carried went before.
            let before = if down_ms > answer.age_ms { ", from before on" } else { "" };
            let said = format!("link {} is down for {}{before}", link.id, lasting(down_ms, link.down_at_ms));
            (down_ms, said, link.carried.as_ref())
        }
        (None, Some(over)) => {
            let from = match over.down_at_ms {
                0 => String::new(),
                at => format!(" from {} on", moments::time_of_day(at)),
            };
            let said = format!("link {} was down for {}{from}", link.id, output::age(over.lasted_ms));
            (over.lasted_ms, said, over.carried.as_ref())
        }
        (None, None) => return None,
    };
    let own = carried.map_or(0, |carried| {
        let own = carried.applications.iter().filter(|of| of.application_id == answer.application_id);
        own.map(|of| of.routes).sum()
    });
    let routes = if own == 1 { "route" } else { "routes" };
    let own_said = if own > 0 { format!(" ({own} {routes} of this application went over it)") } else { String::new() };
    Some((own, lasted, said + &own_said))
}

/// Of the links that the application sends over now, as far as that is known, the one that is fullest in the direction in which it
/// sends; one whose load is measured goes before those with a modelled one, as in `hintctl top`.
fn busiest(application: &str, links: &[v1::LinkView]) -> Option<String> {
    let sends = links::busiest(links).remove(application)?;
    let (Sends { link, share, bits_per_s, .. }, [from, to]) = (sends, sends.ends());
    // Who sends so little is in nobody's way, nor waits for the link.
    if (bits_per_s as f64) < LITTLE_SENT * link.bits_per_s as f64 {
        return None;
    }
    let (id, share, how) = (&link.id, output::percent(share), links::load_from(link.load_source(), link.load_age_ms));
    Some(format!(
        "the fullest link that it sends over now is {id}, {share} of its capacity from {from} to {to} ({how})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decided two minutes ago.
    fn answer() -> v1::ExplainResponse {
        let hint = v1::Hint { count: 12, lease_ids: vec![1], ..v1::Hint::default() };
        v1::ExplainResponse {
            application_id: "application_1_0001".into(),
            age_ms: 120_000,
            decision: Some(v1::HintSet { mode: v1::Mode::On.into(), hints: vec![hint], ..v1::HintSet::default() }),
            followed: Some(v1::Followed { on_host: 7, hinted: 12, ..v1::Followed::default() }),
            ..v1::ExplainResponse::default()
        }
    }

    fn over(id: &str, ended_ms: u64, lasted_ms: u64, of: &str) -> v1::LinkView {
        let own = v1::CarriedApplication { application_id: of.into(), routes: 3, ..Default::default() };
        let carried = Some(v1::CarriedRoutes { applications: vec![own], ..v1::CarriedRoutes::default() });
        let down_at_ms = 1_795_843_810_000;
        let last = v1::LastOutage { ended_ms, lasted_ms, carried, down_at_ms, ..v1::LastOutage::default() };
        v1::LinkView { id: id.into(), up: true, last_outage: Some(last), ..v1::LinkView::default() }
    }

    #[test]
    fn what_went_wrong_since_it_was_decided_is_said_and_its_own_links_stand_first() {
        let before = over("l0", 120_001, 9_000, "application_1_0001");
        assert_eq!(
            line(&answer(), std::slice::from_ref(&before)),
            "in short: 7 of 12 hinted containers came to their host; no link was down since it was decided, as far as hintd was told"
        );
        let down = v1::LinkView { id: "l3".into(), down_ms: Some(90_000), ..v1::LinkView::default() };
        let own = over("l1", 30_000, 41_000, "application_1_0001");
        let links = [before, over("l2", 10, 50_000, "application_1_0009"), own, down];
        let said = line(&answer(), &links);
        assert!(
            said.ends_with(
                "; since it was decided link l1 was down for 41 s from 05:30:10 UTC on (3 routes of this application went over it), \
                 link l3 is down for 90 s, link l2 was down for 50 s from 05:30:10 UTC on"
            ),
            "{said}"
        );
        let long = v1::LinkView { id: "l3".into(), down_ms: Some(150_000), ..v1::LinkView::default() };
        assert!(line(&answer(), &[long]).ends_with("; since it was decided link l3 is down for 150 s, from before on"));
    }

    #[test]
    fn the_fullest_link_that_it_sends_over_is_named_and_others_are_not() {
        let link = |id: &str, rate, user: &str| v1::LinkView {
            id: id.into(),
            up: true,
            a: "s1".into(),
            b: "s2".into(),
            bits_per_s: 1_000_000_000,
            a_to_b_bits_per_s: rate,
            load_source: v1::LoadSource::Measured.into(),
            load_age_ms: Some(2_000),
            users: vec![v1::LinkUser {
                application_id: user.into(),
                bits_per_s: 50_000_000,
                ..v1::LinkUser::default()
            }],
            ..v1::LinkView::default()
        };
        let links = [
            link("l1", 400_000_000, "application_1_0001"),
            link("l2", 930_000_000, "application_1_0001"),
            link("l3", 990_000_000, "application_1_0002"),
        ];
        let said = line(&answer(), &links);
        assert!(said.ends_with("now is l2, 93 % of its capacity from s1 to s2 (measured 2 s ago)"), "{said}");
        assert!(!line(&answer(), &links[2..]).contains("fullest"), "nothing is known of its own");
        // The other direction of l2 is full, in which it sends nothing; of l1 both are used.
        let user = |a_to_b, b_to_a| v1::LinkUser {
            application_id: "application_1_0001".into(),
            a_to_b_bits_per_s: a_to_b,
            b_to_a_bits_per_s: b_to_a,
            ..v1::LinkUser::default()
        };
        let [mut both, mut back, _] = links.clone();
        both.users = vec![user(50_000_000, 50_000_000)];
        (back.b_to_a_bits_per_s, back.users) = (300_000_000, vec![user(0, 50_000_000)]);
        let said = line(&answer(), &[both, back.clone()]);
        assert!(said.ends_with("now is l1, 40 % of its capacity from s1 to s2 (measured 2 s ago)"), "{said}");
        let said = line(&answer(), std::slice::from_ref(&back));
        assert!(said.ends_with("now is l2, 30 % of its capacity from s2 to s1 (measured 2 s ago)"), "{said}");
        let little = v1::LinkView { users: vec![user(0, 9_000_000)], ..back.clone() };
        assert!(!line(&answer(), &[little]).contains("fullest"), "0.9 % of the link hangs on other things");
        // What is modelled stands behind what is measured, and a link that is down carries nothing.
        let (load_source, load_age_ms) = (v1::LoadSource::Modelled.into(), None);
        let model = v1::LinkView { id: "l4".into(), load_source, load_age_ms, ..links[1].clone() };
        let down = v1::LinkView { up: false, ..links[1].clone() };
        let said = line(&answer(), &[model.clone(), back, down.clone()]);
        assert!(said.contains("now is l2, 30 % of its capacity"), "{said}");
        let said = line(&answer(), &[down, model]);
        assert!(said.ends_with("now is l4, 93 % of its capacity from s1 to s2 (modelled)"), "{said}");
        assert_eq!(
            line(&answer(), &[]),
            "in short: 7 of 12 hinted containers came to their host",
            "no network is known"
        );
    }

    #[test]
    fn why_there_are_no_hints_is_said_in_a_word() {
        let said = |answer: v1::ExplainResponse| line(&answer, &[]);
        let late = v1::ExplainResponse { late: "deadline".into(), ..answer() };
        assert_eq!(said(late), "in short: no hints, for the answer came too late (deadline)");
        let hung_up = v1::ExplainResponse { late: "hung_up".into(), ..answer() };
        assert_eq!(said(hung_up), "in short: no hints, for its caller had hung up before the answer was made");
        let refused = Some(v1::Refused { reason: "unknown".into(), ..v1::Refused::default() });
        let refused = v1::ExplainResponse { refused, decision: None, followed: None, ..answer() };
        assert_eq!(said(refused), "in short: no hints, for the request was refused (unknown)");
        let withheld = Some(v1::Withheld { reason: "no_gain".into(), ..v1::Withheld::default() });
        let set = v1::HintSet { mode: v1::Mode::On.into(), withheld, ..v1::HintSet::default() };
        let withheld = v1::ExplainResponse { decision: Some(set), followed: None, ..answer() };
        assert_eq!(said(withheld), "in short: no hints, for they were withheld (no_gain)");
        let none = |set: v1::HintSet| {
            let set = v1::HintSet { mode: v1::Mode::On.into(), ..set };
            said(v1::ExplainResponse { decision: Some(set), followed: None, ..answer() })
        };
        let pending = vec![v1::Pending { group: "map".into(), count: 4, ..v1::Pending::default() }];
        for (set, expected) in [
            (v1::HintSet { without_room: 4, ..v1::HintSet::default() }, "no hints, for there was no room"),
            (v1::HintSet { next_wave: 4, ..v1::HintSet::default() }, "no hints, for there was no room"),
            (
                v1::HintSet { pending, ..v1::HintSet::default() },
                "no hints at once, for its tasks were left to a dispatch policy",
            ),
            (v1::HintSet::default(), "no hints"),
        ] {
            assert_eq!(none(set), format!("in short: {expected}"));
        }
        let unknown = v1::ExplainResponse { followed: None, ..answer() };
        assert_eq!(said(unknown), "in short: whether its hints were followed is not known");
    }
}
