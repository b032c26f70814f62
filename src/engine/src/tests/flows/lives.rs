//! When flows begin and end, what answers say of them, and what a restart leaves of them.

use super::super::harness::{container, running};
use super::{MIB, done, fat_tree, flows, network, routes, set, shuffle};
use crate::testing::attempt;
use crate::{CommitOutcome, Counter, Drain, LoadSource, Refusal, RouteSettings, TaskWhat, link_uses, what_if_network};
use hintd_model::cluster::Change;
use hintd_model::units::{Bytes, LinkIdx, Micros};
use std::sync::Arc;

#[test]
fn an_answer_names_the_route_of_every_pair_that_talks_and_the_generation_has_the_same() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let request = shuffle(1, "a", (4, 2), 80 * MIB);
    let preview = harness.propose(&Arc::new(request.clone())).unwrap().preview().routes;
    let answer = harness.ask(request);
    let told = &answer.decision.routes;
    assert_eq!((told.len(), preview.len()), (8, 8), "two hosts each of four");
    assert!(
        told.iter()
            .all(|route| route.installed && route.cut.is_empty() && route.links.len() + 1 == route.vertices.len())
    );
    assert!(told.iter().all(|route| route.vertices[0] == route.src.0 && route.vertices.last() == Some(&route.dst.0)));
    assert_eq!(told.iter().map(|route| route.bytes.0).sum::<u64>(), 80 * MIB);
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    for (pair, route) in routes(&harness) {
        let (src, dst) = (snapshot.host(pair.from), snapshot.host(pair.to));
        let of = told.iter().find(|told| told.src == *src && told.dst == *dst).unwrap();
        let names: Vec<_> =
            route.links.iter().map(|link| network(&harness).link_at(LinkIdx(link.0 / 2)).name.clone()).collect();
        assert_eq!((names, route.task_pairs), (of.links.clone(), 1));
    }
    assert_eq!(flows(&harness).jobs.len(), 1);
}

#[test]
fn routes_that_a_policy_does_not_choose_are_its_placers() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let runs: Vec<_> = routes(&harness).into_iter().map(|(pair, _)| pair).collect();
    let proposal = harness.propose(&Arc::new(shuffle(2, "b", (16, 16), 2_560 * MIB))).unwrap();
    let preview = proposal.preview().routes;
    let proposed = proposal.flows.clone().unwrap();
    for flow in &proposed.traffic.flows {
        let known = proposed.chosen.iter().filter(|route| route.pair == flow.pair).count();
        assert_eq!(known, usize::from(!runs.contains(&flow.pair)), "a pair that talks keeps its route");
    }
    harness.commit(proposal);
    harness.publish();
    let routes = routes(&harness);
    for route in &proposed.chosen {
        let known = routes.iter().find(|(pair, _)| *pair == route.pair).unwrap();
        assert_eq!((&known.1.links, known.1.installed), (&route.links, true));
    }
    let told = flows(&harness).jobs.last().unwrap().decision;
    assert_eq!(harness.engine.flows().hinted(told, harness.engine.current_snapshot()), preview, "as forecast");
    let small = harness.propose(&Arc::new(shuffle(3, "c", (2, 2), 4))).unwrap();
    assert_eq!(small.flows.unwrap().chosen, []);
}

#[test]
fn pairs_that_send_little_go_by_default_forwarding_until_they_send_enough() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let first = harness.ask(shuffle(1, "a", (1, 1), MIB - 1));
    assert_eq!(first.decision.routes.iter().map(|route| route.installed).collect::<Vec<_>>(), [false]);
    assert!(routes(&harness).iter().all(|(_, route)| !route.installed && !route.links.is_empty()));
    let mut again = shuffle(2, "b", (1, 1), 2);
    for (group, hint) in again.groups.iter_mut().zip(&first.decision.hints) {
        let others = harness.engine.current_snapshot().statics.host.iter().filter(|host| **host != hint.host);
        group.constraints.avoid_hosts = others.cloned().collect();
    }
    harness.ask(again);
    let now = routes(&harness);
    assert_eq!((now.len(), now[0].1.installed, now[0].1.bytes), (1, true, Bytes(MIB + 1)));
    done(&mut harness, 2);
    assert_eq!(routes(&harness)[0].1.bytes, Bytes(MIB - 1));
}

#[test]
fn flows_end_with_their_application_their_attempt_or_their_commit() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    done(&mut harness, 1);
    assert!(flows(&harness).jobs.is_empty() && routes(&harness).is_empty());
    harness.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    let mut second = shuffle(2, "c", (2, 2), 80 * MIB);
    second.attempt = attempt(2, 2);
    let answer = harness.ask(second);
    assert_eq!(flows(&harness).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 2)]);
    harness.engine.undo(answer.decision.id, harness.now);
    harness.publish();
    assert!(flows(&harness).jobs.is_empty() && routes(&harness).is_empty());
}

#[test]
fn flows_of_which_nothing_is_seen_end_after_a_while_and_those_of_running_containers_do_not() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "gone", (2, 2), 80 * MIB));
    let answer = harness.ask(shuffle(2, "runs", (2, 2), 80 * MIB));
    let host = answer.decision.hints[0].host.to_string();
    harness.beat(&host, 1024, Some(&[running(container(attempt(2, 1), 1))]));
    for _ in 0..45 {
        harness.pass(Micros::from_secs(1));
        for host in harness.engine.current_snapshot().statics.host.clone() {
            let runs = [running(container(attempt(2, 1), 1))];
            let runs = if host == answer.decision.hints[0].host { &runs[..] } else { &[] };
            harness.beat(host.as_str(), 1024 * runs.len() as u64, Some(runs));
        }
    }
    harness.publish();
    assert_eq!(flows(&harness).jobs.len(), 2, "leases have just expired");
    for _ in 0..50 {
        harness.pass(Micros::from_secs(1));
        let runs = [running(container(attempt(2, 1), 1))];
        harness.beat(&host, 1024, Some(&runs));
    }
    harness.publish();
    assert_eq!(flows(&harness).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
}

#[test]
fn flows_of_a_lost_node_leave_and_those_of_tasks_placed_anew_join_their_job() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let answer = harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let lost = answer.decision.hints[0].host.clone();
    harness.change(Change::Gone(lost.clone()));
    harness.publish();
    let node = harness.engine.current_snapshot().statics.find(lost.as_str()).unwrap();
    let left = routes(&harness);
    assert_eq!(left.len(), 6, "three senders, two receivers");
    assert!(left.iter().all(|(pair, _)| pair.from != node && pair.to != node));
    assert_eq!(left.iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 60 * MIB, "a quarter is not sent any more");
    let again = harness.replaced().pop().unwrap();
    let proposal = harness.propose(&again).unwrap();
    let outcome = harness.commit(proposal);
    assert!(matches!(outcome, CommitOutcome::Committed(_)));
    harness.publish();
    assert_eq!((routes(&harness).len(), flows(&harness).jobs.len()), (8, 1));
    assert_eq!(routes(&harness).iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 80 * MIB);
    // What the journal holds gives the same traffic again.
    let before = flows(&harness).jobs[0].traffic.flows.len();
    harness.restart();
    harness.publish();
    assert_eq!(flows(&harness).jobs.iter().map(|job| job.traffic.flows.len()).collect::<Vec<_>>(), [before]);
}

#[test]
fn after_a_restart_flows_are_there_again_and_take_their_routes_when_the_network_is_known() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    harness.ask(shuffle(2, "b", (3, 3), 80 * MIB));
    let known = network(&harness);
    let named = |harness: &super::EngineHarness| -> Vec<(String, String, Vec<LinkIdx>)> {
        let snapshot = Arc::clone(harness.engine.current_snapshot());
        let name = |node| snapshot.host(node).to_string();
        let links =
            |route: &hintd_model::cluster::PairRoute| route.links.iter().map(|link| LinkIdx(link.0 / 2)).collect();
        let mut all: Vec<_> =
            routes(harness).iter().map(|(pair, route)| (name(pair.from), name(pair.to), links(route))).collect();
        all.sort();
        all
    };
    let before = named(&harness);
    let hosts = harness.engine.current_snapshot().statics.host.clone();
    harness.restart();
    harness.publish();
    assert_eq!(routes(&harness).len(), before.len());
    assert!(routes(&harness).iter().all(|(_, route)| route.links.is_empty()), "no network is known");
    harness.change(Change::Network(Some(known)));
    harness.publish();
    for host in hosts.iter().rev() {
        harness.register(host.as_str(), "/r", 16 * 1024);
        harness.publish();
    }
    assert_eq!(named(&harness), before);
}

#[test]
fn of_too_many_pairs_the_oldest_decisions_go() {
    let settings = RouteSettings { pairs_max: 12, ..RouteSettings::default() };
    let mut harness = fat_tree(settings, 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    harness.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    assert!(routes(&harness).len() <= 12);
    assert_eq!(flows(&harness).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
    harness.ask(shuffle(3, "c", (5, 5), 80 * MIB));
    assert_eq!(flows(&harness).jobs.len(), 1, "one that would not fit alone is not taken");
    assert!(harness.count(Counter::FlowsEvicted) >= 1);
}

#[test]
fn an_answer_says_that_its_pairs_are_too_many_to_be_kept_track_of() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.placer.pairs_max = 8;
    let kept = harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let told = |answer: &crate::Answer| answer.decision.degraded.iter().any(|token| token == "too_many_pairs");
    assert!(!told(&kept) && harness.count(Counter::FlowsEvicted) == 0);
    let left = harness.ask(shuffle(2, "b", (3, 3), 80 * MIB));
    assert!(told(&left) && left.decision.routes.is_empty() && left.leases().count() == 6);
    assert_eq!((harness.count(Counter::FlowsEvicted), flows(&harness).jobs.len()), (1, 1));
}

#[test]
fn draining_a_link_is_forecast_as_it_then_happens_and_changes_nothing() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    for n in 1..5 {
        harness.ask(shuffle(n, &format!("j{n}"), (4, 2), 80 * MIB));
    }
    let (generation, known) = (harness.engine.generation(), network(&harness));
    let used = routes(&harness).iter().find(|(_, route)| route.links.len() > 2).unwrap().1.links[1];
    let link = known.link_at(LinkIdx(used.0 / 2)).name.clone();
    let drain = Drain { links: vec![link.clone()], switches: Vec::new() };
    let forecast = what_if_network(&generation, &drain, &RouteSettings::default(), &mut || false).unwrap();
    let before = routes(&harness);
    set(&mut harness, &link, false);
    let moved = before.iter().zip(routes(&harness)).filter(|(old, new)| old.1.links != new.1.links).count();
    assert_eq!((forecast.routes.len(), forecast.untouched as usize), (moved, before.len() - moved));
    assert!(
        moved > 0
            && forecast.routes.iter().all(|route| route.old.links.contains(&link) && !route.new.links.contains(&link))
    );
    let then =
        what_if_network(&harness.engine.generation(), &Drain::default(), &RouteSettings::default(), &mut || false)
            .unwrap();
    assert_eq!(forecast.utility_after, then.utility_before);
    assert!(forecast.utility_after <= forecast.utility_before && then.routes.is_empty() && then.links.is_empty());
    assert!(forecast.links.iter().any(|of| of.link == link && of.after == [0.0, 0.0]));
    assert_eq!(forecast.applications.iter().map(|of| of.routes_moved).sum::<u64>() as usize, moved);
    let edge = known.vertices().find(|(_, vertex)| vertex.name.starts_with("edge")).unwrap().1.name.clone();
    let drain = Drain { links: Vec::new(), switches: vec![edge.clone()] };
    let forecast = what_if_network(&generation, &drain, &RouteSettings::default(), &mut || false).unwrap();
    assert_eq!(forecast.cut_off_hosts.len(), 2, "its two hosts");
    assert!(forecast.routes.iter().all(|route| route.new.links.is_empty() && route.cut == [edge.clone()]));
    let cut: u64 = forecast.applications.iter().map(|of| of.routes_cut).sum();
    assert_eq!(cut as usize, forecast.routes.len());
    let switch = known.vertex(&edge).unwrap();
    let uplinks = known.links_of(switch).filter(|(_, link)| !known.vertex_at(link.other(switch)).is_host());
    let drain = Drain { links: uplinks.map(|(_, link)| link.name.clone()).collect(), switches: Vec::new() };
    let apart = what_if_network(&generation, &drain, &RouteSettings::default(), &mut || false).unwrap();
    assert!(drain.links.len() > 1 && apart.cut_off_hosts.len() == 2, "they reach each other alone: {apart:?}");
    let unknown = Drain { links: vec!["nowhere".into()], switches: Vec::new() };
    let refused = what_if_network(&generation, &unknown, &RouteSettings::default(), &mut || false);
    assert!(matches!(refused, Err(Refusal::Unknown { what: "link", .. })));
}

#[test]
fn links_say_what_they_carry_for_whom_and_where_the_figure_is_from() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let uses = link_uses(&harness.engine.generation());
    assert_eq!(uses.len(), network(&harness).links().count());
    let carried: u64 = uses.iter().flat_map(|of| of.task_pairs).sum();
    assert_eq!(carried, routes(&harness).iter().map(|(_, route)| route.links.len() as u64).sum::<u64>());
    for of in &uses {
        assert_eq!(of.source, LoadSource::Modelled);
        assert!(of.load.iter().all(|load| *load <= of.capacity.as_f64() * (1.0 + 1e-9)));
        let all: f64 = of.users.iter().map(|user| user.bits_per_s).sum();
        assert!((all - of.load[0] - of.load[1]).abs() <= 1.0, "{of:?}");
        for way in 0..2 {
            let users: f64 = of.users.iter().map(|user| user.each[way]).sum();
            assert!((users - of.load[way]).abs() <= 1.0 && of.modelled == of.load, "{of:?}");
        }
        assert_eq!(of.users.is_empty(), of.task_pairs == [0, 0]);
    }
    let [five, seven] = [5, 7].map(hintd_model::units::BitsPerSec);
    let load = hintd_model::cluster::LinkLoad::steady(five, seven);
    harness.change(Change::LinkLoad(uses[0].link.clone(), load));
    harness.publish();
    let now = &link_uses(&harness.engine.generation())[0];
    assert_eq!((now.load, now.source), ([5.0, 7.0], LoadSource::Measured));
    assert_eq!(now.modelled, uses[0].modelled, "the model's figure is kept beside what is measured");
    harness.change(Change::Link { link: uses[0].link.clone(), up: Some(false), capacity: None });
    harness.publish();
    let now = &link_uses(&harness.engine.generation())[0];
    let nothing = (false, [0.0; 2], [0.0; 2]);
    assert_eq!((now.up, now.load, now.modelled), nothing, "what was counted before it went");
}

#[test]
fn pairs_without_bytes_load_no_link() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 0));
    assert!(!routes(&harness).is_empty(), "they have routes, as others do");
    let uses = link_uses(&harness.engine.generation());
    assert!(uses.iter().all(|of| of.load == [0.0; 2] && of.users.is_empty() && of.task_pairs == [0; 2]), "{uses:?}");
    harness.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    let second = |of: &crate::LinkUser| of.application == attempt(2, 1).application;
    let uses = link_uses(&harness.engine.generation());
    assert!(uses.iter().flat_map(|of| &of.users).all(second), "{uses:?}");
    assert!(uses.iter().any(|of| !of.users.is_empty()));
    let drain = Drain { links: vec![uses[0].link.clone()], switches: Vec::new() };
    let generation = harness.engine.generation();
    let forecast = what_if_network(&generation, &drain, &RouteSettings::default(), &mut || false).unwrap();
    let now = |link: &crate::LinkForecast| uses.iter().find(|of| of.link == link.link).unwrap().load;
    assert!(forecast.links.iter().all(|link| link.before == now(link)), "the same figures before a drain");
}

#[test]
fn an_attempt_that_gave_its_leases_back_keeps_its_flows_for_the_grace_time_only() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (2, 2), 80 * MIB));
    harness.give_back(attempt(1, 1), &[]);
    harness.pass(Micros::from_secs(1));
    harness.pass(Micros::from_secs(58));
    harness.publish();
    assert_eq!(flows(&harness).jobs.len(), 1);
    harness.pass(Micros::from_secs(3));
    harness.publish();
    assert!(flows(&harness).jobs.is_empty());
    harness.event(attempt(1, 1), "", TaskWhat::Done { failed: false });
}

#[test]
fn a_request_asked_again_after_its_answer_was_forgotten_has_the_flows_of_its_last_answer_only() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.settings.answers_keep = Micros::from_secs(1);
    harness.engine.reload(harness.settings.clone(), harness.now);
    let ask = |harness: &mut super::EngineHarness, edges: bool| {
        let mut request = shuffle(1, "a", (2, 2), 80 * MIB);
        request.edges.truncate(usize::from(edges));
        let answer = harness.ask(request);
        harness.give_back(attempt(1, 1), &[]);
        harness.pass(Micros::from_secs(2));
        harness.publish();
        let snapshot = Arc::clone(harness.engine.current_snapshot());
        harness.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
        let known: Vec<_> = flows(harness).jobs.iter().map(|job| job.decision).collect();
        (answer.decision.id, known)
    };
    let (first, known) = ask(&mut harness, true);
    assert_eq!(known, [first]);
    let (second, known) = ask(&mut harness, true);
    assert!(first != second && known == [second], "{known:?}");
    assert_eq!(routes(&harness).iter().map(|(_, route)| route.bytes.0).sum::<u64>(), 80 * MIB);
    assert_eq!(ask(&mut harness, false).1, []);
    assert!(routes(&harness).is_empty());
    // Whoever else takes the name later has flows of its own.
    ask(&mut harness, true);
    let mut other = shuffle(2, "a", (2, 2), 80 * MIB);
    other.attempt = attempt(2, 1);
    harness.ask(other);
    assert_eq!(flows(&harness).jobs.len(), 2);
    done(&mut harness, 1);
    assert_eq!(flows(&harness).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>(), [attempt(2, 1)]);
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    harness.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
}

#[test]
fn a_request_named_as_if_it_replaced_anothers_has_flows_of_its_own() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    let whole = flows(&harness).jobs[0].traffic.clone();
    let host = harness.engine.current_snapshot().host(whole.flows[0].pair.from).clone();
    let mut theirs = harness.propose(&Arc::new(shuffle(2, &format!("a/replace/{host}/1"), (1, 1), 8 * MIB))).unwrap();
    theirs.digest = 1; // an application's own request has one
    assert!(matches!(harness.commit(theirs), CommitOutcome::Committed(_)));
    harness.publish();
    let of = |harness: &super::EngineHarness| flows(harness).jobs.iter().map(|job| job.attempt).collect::<Vec<_>>();
    assert_eq!(of(&harness), [attempt(1, 1), attempt(2, 1)]);
    assert_eq!(flows(&harness).jobs[0].traffic, whole);
    harness.restart();
    harness.publish();
    assert_eq!(of(&harness), [attempt(1, 1), attempt(2, 1)]);
    assert_eq!(flows(&harness).jobs[0].traffic.flows.len(), whole.flows.len());
}
