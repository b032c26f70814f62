//! When flows begin and end, what answers say of them, and what a restart leaves of them.

use super::super::desk::{container, running};
use super::{MIB, done, fat_tree, flows, network, routes, set, shuffle};
use crate::testing::attempt;
use crate::{
    CommitOutcome, Counter, Drain, LoadSource, Refusal, RouteSettings, TaskWhat, Token, link_uses, what_if_network,
};
use hintd_model::cluster::Change;
use hintd_model::units::{Bytes, LinkIdx, Micros};
use std::sync::Arc;

#[test]
fn an_answer_names_the_route_of_every_pair_that_talks_and_the_generation_has_the_same() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    let request = shuffle(1, "a", (4, 2), 80 * MIB);
    let preview = desk.propose(&Arc::new(request.clone())).unwrap().preview().routes;
    let answer = desk.ask(request);
    let told = &answer.decision.routes;
    assert_eq!((told.len(), preview.len()), (8, 8), "two hosts each of four");
    assert!(
        told.iter()
            .all(|route| route.installed && route.cut.is_empty() && route.links.len() + 1 == route.vertices.len())
    );
    assert!(told.iter().all(|route| route.vertices[0] == route.src.0 && route.vertices.last() == Some(&route.dst.0)));
    assert_eq!(told.iter().map(|route| route.bytes.0).sum::<u64>(), 80 * MIB);
    let snapshot = Arc::clone(desk.engine.settled());
    for (pair, route) in routes(&desk) {
        let (src, dst) = (snapshot.host(pair.from), snapshot.host(pair.to));
        let of = told.iter().find(|told| told.src == *src && told.dst == *dst).unwrap();
        let names: Vec<_> =
            route.links.iter().map(|link| network(&desk).link_at(LinkIdx(link.0 / 2)).name.clone()).collect();
        assert_eq!((names, route.task_pairs), (of.links.clone(), 1));
    }
    assert_eq!(flows(&desk).jobs.len(), 1);
}

#[test]
fn routes_that_a_policy_does_not_choose_are_its_placers() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let runs: Vec<_> = routes(&desk).into_iter().map(|(pair, _)| pair).collect();
    let proposal = desk.propose(&Arc::new(shuffle(2, "b", (16, 16), 2_560 * MIB))).unwrap();
    let preview = proposal.preview().routes;
    let proposed = proposal.flows.clone().unwrap();
    for flow in &proposed.traffic.flows {
        let known = proposed.chosen.iter().filter(|route| route.pair == flow.pair).count();
        assert_eq!(known, usize::from(!runs.contains(&flow.pair)), "a pair that talks keeps its route");
    }
    desk.commit(proposal);
    desk.publish();
    let routes = routes(&desk);
    for route in &proposed.chosen {
        let known = routes.iter().find(|(pair, _)| *pair == route.pair).unwrap();
        assert_eq!((&known.1.links, known.1.installed), (&route.links, true));
    }
    let told = flows(&desk).jobs.last().unwrap().decision;
    assert_eq!(desk.engine.flows().hinted(told, desk.engine.settled()), preview, "as forecast");
    let small = desk.propose(&Arc::new(shuffle(3, "c", (2, 2), 4))).unwrap();
    assert_eq!(small.flows.unwrap().chosen, []);
}

#[test]
fn pairs_that_send_little_go_by_default_forwarding_until_they_send_enough() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    let first = desk.ask(shuffle(1, "a", (1, 1), MIB - 1));
    assert_eq!(first.decision.routes.iter().map(|route| route.installed).collect::<Vec<_>>(), [false]);
    assert!(routes(&desk).iter().all(|(_, route)| !route.installed && !route.links.is_empty()));
    let mut again = shuffle(2, "b", (1, 1), 2);
    for (group, hint) in again.groups.iter_mut().zip(&first.decision.hints) {
        let others = desk.engine.settled().statics.host.iter().filter(|host| **host != hint.host);
        group.constraints.avoid_hosts = others.cloned().collect();
    }
    desk.ask(again);
    let now = routes(&desk);
    assert_eq!((now.len(), now[0].1.installed, now[0].1.bytes), (1, true, Bytes(MIB + 1)));
    done(&mut desk, 2);
    assert_eq!(routes(&desk)[0].1.bytes, Bytes(MIB - 1));
}

#[test]
fn flows_end_with_their_application_their_attempt_or_their_commit() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    done(&mut desk, 1);
    assert!(flows(&desk).jobs.is_empty() && routes(&desk).is_empty());
    desk.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    let mut second = shuffle(2, "c", (2, 2), 80 * MIB);
    second.attempt = attempt(2, 2);
    let answer = desk.ask(second);
    assert_eq!(flows(&desk).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 2)]);
    desk.engine.undo(answer.decision.id, desk.now);
    desk.publish();
    assert!(flows(&desk).jobs.is_empty() && routes(&desk).is_empty());
}

#[test]
fn flows_of_which_nothing_is_seen_end_after_a_while_and_those_of_running_containers_do_not() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "gone", (2, 2), 80 * MIB));
    let answer = desk.ask(shuffle(2, "runs", (2, 2), 80 * MIB));
    let host = answer.decision.hints[0].host.to_string();
    desk.beat(&host, 1024, Some(&[running(container(attempt(2, 1), 1))]));
    for _ in 0..45 {
        desk.pass(Micros::from_secs(1));
        for host in desk.engine.settled().statics.host.clone() {
            let runs = [running(container(attempt(2, 1), 1))];
            let runs = if host == answer.decision.hints[0].host { &runs[..] } else { &[] };
            desk.beat(host.as_str(), 1024 * runs.len() as u64, Some(runs));
        }
    }
    desk.publish();
    assert_eq!(flows(&desk).jobs.len(), 2, "leases have just expired");
    for _ in 0..50 {
        desk.pass(Micros::from_secs(1));
        let runs = [running(container(attempt(2, 1), 1))];
        desk.beat(&host, 1024, Some(&runs));
    }
    desk.publish();
    assert_eq!(flows(&desk).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
}

#[test]
fn flows_of_a_lost_node_leave_and_those_of_tasks_placed_anew_join_their_job() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let lost = answer.decision.hints[0].host.clone();
    desk.change(Change::Gone(lost.clone()));
    desk.publish();
    let node = desk.engine.settled().statics.find(lost.as_str()).unwrap();
    let left = routes(&desk);
    assert_eq!(left.len(), 6, "three senders, two receivers");
    assert!(left.iter().all(|(pair, _)| pair.from != node && pair.to != node));
    assert_eq!(left.iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 60 * MIB, "a quarter is not sent any more");
    let again = desk.replaced().pop().unwrap();
    let proposal = desk.propose(&again).unwrap();
    let outcome = desk.commit(proposal);
    assert!(matches!(outcome, CommitOutcome::Committed(_)));
    desk.publish();
    assert_eq!((routes(&desk).len(), flows(&desk).jobs.len()), (8, 1));
    assert_eq!(routes(&desk).iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 80 * MIB);
    // What the journal holds gives the same traffic again.
    let before = flows(&desk).jobs[0].traffic.flows.len();
    desk.restart();
    desk.publish();
    assert_eq!(flows(&desk).jobs.iter().map(|job| job.traffic.flows.len()).collect::<Vec<_>>(), [before]);
}

#[test]
fn after_a_restart_flows_are_there_again_and_take_their_routes_when_the_network_is_known() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    desk.ask(shuffle(2, "b", (3, 3), 80 * MIB));
    let known = network(&desk);
    let named = |desk: &super::Desk| -> Vec<(String, String, Vec<LinkIdx>)> {
        let snapshot = Arc::clone(desk.engine.settled());
        let name = |node| snapshot.host(node).to_string();
        let links =
            |route: &hintd_model::cluster::PairRoute| route.links.iter().map(|link| LinkIdx(link.0 / 2)).collect();
        let mut all: Vec<_> =
            routes(desk).iter().map(|(pair, route)| (name(pair.from), name(pair.to), links(route))).collect();
        all.sort();
        all
    };
    let before = named(&desk);
    let hosts = desk.engine.settled().statics.host.clone();
    desk.restart();
    desk.publish();
    assert_eq!(routes(&desk).len(), before.len());
    assert!(routes(&desk).iter().all(|(_, route)| route.links.is_empty()), "no network is known");
    desk.change(Change::Network(Some(known)));
    desk.publish();
    for host in hosts.iter().rev() {
        desk.register(host.as_str(), "/r", 16 * 1024);
        desk.publish();
    }
    assert_eq!(named(&desk), before);
}

#[test]
fn of_too_many_pairs_the_oldest_decisions_go() {
    let settings = RouteSettings { pairs_max: 12, ..RouteSettings::default() };
    let mut desk = fat_tree(settings, 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    desk.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    assert!(routes(&desk).len() <= 12);
    assert_eq!(flows(&desk).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
    desk.ask(shuffle(3, "c", (5, 5), 80 * MIB));
    assert_eq!(flows(&desk).jobs.len(), 1, "one that would not fit alone is not taken");
    assert!(desk.count(Counter::FlowsEvicted) >= 1);
}

#[test]
fn an_answer_says_that_its_pairs_are_too_many_to_be_kept_track_of() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.placer.pairs_max = 8;
    let kept = desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let told = |answer: &crate::Answer| answer.decision.degraded.iter().any(|token| token == "too_many_pairs");
    assert!(!told(&kept) && desk.count(Counter::FlowsEvicted) == 0);
    let left = desk.ask(shuffle(2, "b", (3, 3), 80 * MIB));
    assert!(told(&left) && left.decision.routes.is_empty() && left.leases().count() == 6);
    assert_eq!((desk.count(Counter::FlowsEvicted), flows(&desk).jobs.len()), (1, 1));
}

#[test]
fn draining_a_link_is_forecast_as_it_then_happens_and_changes_nothing() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    for n in 1..5 {
        desk.ask(shuffle(n, &format!("j{n}"), (4, 2), 80 * MIB));
    }
    let (generation, known) = (desk.engine.generation(), network(&desk));
    let used = routes(&desk).iter().find(|(_, route)| route.links.len() > 2).unwrap().1.links[1];
    let link = known.link_at(LinkIdx(used.0 / 2)).name.clone();
    let drain = Drain { links: vec![link.clone()], switches: Vec::new() };
    let forecast = what_if_network(&generation, &drain, &RouteSettings::default()).unwrap();
    let before = routes(&desk);
    set(&mut desk, &link, false);
    let moved = before.iter().zip(routes(&desk)).filter(|(old, new)| old.1.links != new.1.links).count();
    assert_eq!((forecast.routes.len(), forecast.untouched as usize), (moved, before.len() - moved));
    assert!(
        moved > 0
            && forecast.routes.iter().all(|route| route.old.links.contains(&link) && !route.new.links.contains(&link))
    );
    let then = what_if_network(&desk.engine.generation(), &Drain::default(), &RouteSettings::default()).unwrap();
    assert_eq!(forecast.utility_after, then.utility_before);
    assert!(forecast.utility_after <= forecast.utility_before && then.routes.is_empty() && then.links.is_empty());
    assert!(forecast.links.iter().any(|of| of.link == link && of.after == [0.0, 0.0]));
    assert_eq!(forecast.applications.iter().map(|of| of.routes_moved).sum::<u64>() as usize, moved);
    let edge = known.vertices().find(|(_, vertex)| vertex.name.starts_with("edge")).unwrap().1.name.clone();
    let drain = Drain { links: Vec::new(), switches: vec![edge.clone()] };
    let forecast = what_if_network(&generation, &drain, &RouteSettings::default()).unwrap();
    assert_eq!(forecast.cut_off_hosts.len(), 2, "its two hosts");
    assert!(forecast.routes.iter().all(|route| route.new.links.is_empty() && route.cut == [edge.clone()]));
    let unknown = Drain { links: vec!["nowhere".into()], switches: Vec::new() };
    let refused = what_if_network(&generation, &unknown, &RouteSettings::default());
    assert!(matches!(refused, Err(Refusal::Unknown { what: "link", .. })));
}

#[test]
fn links_say_what_they_carry_for_whom_and_where_the_figure_is_from() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let uses = link_uses(&desk.engine.generation());
    assert_eq!(uses.len(), network(&desk).links().count());
    let carried: u64 = uses.iter().flat_map(|of| of.task_pairs).sum();
    assert_eq!(carried, routes(&desk).iter().map(|(_, route)| route.links.len() as u64).sum::<u64>());
    for of in &uses {
        assert_eq!(of.source, LoadSource::Modelled);
        assert!(of.load.iter().all(|load| *load <= of.capacity.as_f64() * (1.0 + 1e-9)));
        let all: f64 = of.users.iter().map(|user| user.bits_per_s).sum();
        assert!((all - of.load[0] - of.load[1]).abs() <= 1.0, "{of:?}");
        assert_eq!(of.users.is_empty(), of.task_pairs == [0, 0]);
    }
    let load = hintd_model::cluster::LinkLoad {
        a_to_b: hintd_model::units::BitsPerSec(5),
        b_to_a: hintd_model::units::BitsPerSec(7),
    };
    desk.change(Change::LinkLoad(uses[0].link.clone(), load));
    desk.publish();
    let now = &link_uses(&desk.engine.generation())[0];
    assert_eq!((now.load, now.source), ([5.0, 7.0], LoadSource::Measured));
}

#[test]
fn an_attempt_that_gave_its_leases_back_keeps_its_flows_for_the_grace_time_only() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (2, 2), 80 * MIB));
    desk.engine.release(attempt(1, 1), &Token("secret".into()), &[], desk.now).unwrap();
    desk.pass(Micros::from_secs(1));
    desk.pass(Micros::from_secs(58));
    desk.publish();
    assert_eq!(flows(&desk).jobs.len(), 1);
    desk.pass(Micros::from_secs(3));
    desk.publish();
    assert!(flows(&desk).jobs.is_empty());
    desk.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
}

#[test]
fn a_request_asked_again_after_its_answer_was_forgotten_has_the_flows_of_its_last_answer_only() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.settings.answers_keep = Micros::from_secs(1);
    desk.engine.reload(desk.settings.clone(), desk.now);
    let ask = |desk: &mut super::Desk, edges: bool| {
        let mut request = shuffle(1, "a", (2, 2), 80 * MIB);
        request.edges.truncate(usize::from(edges));
        let answer = desk.ask(request);
        desk.engine.release(attempt(1, 1), &Token("secret".into()), &[], desk.now).unwrap();
        desk.pass(Micros::from_secs(2));
        desk.publish();
        let snapshot = Arc::clone(desk.engine.settled());
        desk.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
        let known: Vec<_> = flows(desk).jobs.iter().map(|job| job.decision).collect();
        (answer.decision.id, known)
    };
    let (first, known) = ask(&mut desk, true);
    assert_eq!(known, [first]);
    let (second, known) = ask(&mut desk, true);
    assert!(first != second && known == [second], "{known:?}");
    assert_eq!(routes(&desk).iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 80 * MIB);
    assert_eq!(ask(&mut desk, false).1, []);
    assert!(routes(&desk).is_empty());
    // Whoever else takes the name later has flows of its own.
    ask(&mut desk, true);
    let mut other = shuffle(2, "a", (2, 2), 80 * MIB);
    other.attempt = attempt(2, 1);
    desk.ask(other);
    assert_eq!(flows(&desk).jobs.len(), 2);
    done(&mut desk, 1);
    assert_eq!(flows(&desk).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
    let snapshot = Arc::clone(desk.engine.settled());
    desk.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
}

#[test]
fn a_request_named_as_if_it_replaced_anothers_has_flows_of_its_own() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let whole = flows(&desk).jobs[0].traffic.clone();
    let host = desk.engine.settled().host(whole.flows[0].pair.from).clone();
    let mut theirs = desk.propose(&Arc::new(shuffle(2, &format!("a/replace/{host}/1"), (1, 1), 8 * MIB))).unwrap();
    theirs.digest = 1; // an application's own request has one
    assert!(matches!(desk.commit(theirs), CommitOutcome::Committed(_)));
    desk.publish();
    let of = |desk: &super::Desk| flows(desk).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>();
    assert_eq!(of(&desk), [attempt(1, 1), attempt(2, 1)]);
    assert_eq!(flows(&desk).jobs[0].traffic, whole);
    desk.restart();
    desk.publish();
    assert_eq!(of(&desk), [attempt(1, 1), attempt(2, 1)]);
    assert_eq!(flows(&desk).jobs[0].traffic.flows.len(), whole.flows.len());
}
