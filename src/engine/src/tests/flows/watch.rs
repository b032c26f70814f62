//! The watch protocol: phases, acknowledgements, what is sent again, silence, refusals, coming back.

use super::super::harness::{EngineHarness, registration};
use super::controller::{Controller, NAME, scope};
use super::{MIB, done, fat_tree, network, routes, set, shuffle, updates, wired};
use crate::{
    Counter, Effect, Phase, Refusal, RouteSettings, RuleAction, WatchScope, WatchedPair, WatcherProgress, link_uses,
};
use hintd_model::cluster::{Change, NodePair};
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::network::host_paths;
use hintd_model::units::{DirectedLinkIdx, LinkIdx, LinkName, Micros};
use hintd_policy::ChosenRoute;
use std::sync::Arc;

fn busy(settings: RouteSettings) -> EngineHarness {
    let mut harness = fat_tree(settings, 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    harness.drain();
    harness.out.clear();
    harness
}

/// A link between switches that some route has.
fn busy_link(harness: &EngineHarness) -> LinkName {
    let route = routes(harness).into_iter().find(|(_, route)| route.links.len() > 2).unwrap().1;
    network(harness).link_at(LinkIdx(route.links[1].0 / 2)).name.clone()
}

fn state(harness: &EngineHarness) -> crate::WatcherState {
    harness.engine.watchers().into_iter().find(|state| *state.name == *NAME).unwrap()
}

#[test]
fn a_failure_is_one_update_and_the_return_home_is_two_with_an_acknowledgement_between() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    assert_eq!((controller.routes.len(), state(&harness).progress), (8, WatcherProgress::Waiting));
    controller.settle(&mut harness);
    assert_eq!(state(&harness).progress, WatcherProgress::Current);
    let link = busy_link(&harness);
    set(&mut harness, &link, false);
    let told = updates(&mut harness, NAME);
    assert_eq!(told.len(), 1);
    let (update, removes) =
        (&told[0], |rules: &[crate::RuleChange]| rules.iter().filter(|rule| rule.action == RuleAction::Remove).count());
    assert_eq!((update.phase, update.cause, &*update.subject), (Phase::Failover, "link_down", link.as_str()));
    assert!(removes(&update.rules) > 0 && update.routes.iter().all(|route| !route.links.contains(&link)));
    assert_eq!(update.untouched as usize + update.routes.len(), 8);
    told.iter().for_each(|update| controller.apply(update));
    controller.settle(&mut harness);
    set(&mut harness, &link, true);
    let told = updates(&mut harness, NAME);
    assert_eq!(
        told.iter().map(|update| (update.phase, removes(&update.rules))).collect::<Vec<_>>(),
        [(Phase::Make, 0)]
    );
    told.iter().for_each(|update| controller.apply(update));
    let number = controller.last;
    controller.acknowledge(&mut harness, number);
    let told = updates(&mut harness, NAME);
    assert_eq!(told.iter().map(|update| update.phase).collect::<Vec<_>>(), [Phase::Break]);
    assert!(removes(&told[0].rules) == told[0].rules.len() && told[0].routes.is_empty());
    told.iter().for_each(|update| controller.apply(update));
    controller.settle(&mut harness);
    controller.check_clean();
    done(&mut harness, 1);
    controller.settle(&mut harness);
    assert!(controller.routes.is_empty() && controller.tables.is_empty());
}

#[test]
fn what_is_never_acknowledged_is_sent_again_and_then_counts_as_default_forwarding() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    let mut phases = Vec::new();
    for _ in 0..4 {
        harness.pass(Micros::from_secs(5));
        for update in updates(&mut harness, NAME) {
            assert!(update.snapshot && update.routes.len() == 8);
            controller.apply(&update);
            phases.push(update.phase);
        }
    }
    assert_eq!(phases, [Phase::Resync; 3]);
    assert!(
        matches!(&harness.out[..], [Effect::WatchEnded { watcher, .. }] if **watcher == *NAME),
        "{:?}",
        harness.out
    );
    assert_eq!((harness.count(Counter::WatchersSilent), harness.count(Counter::RoutesResynced)), (1, 3));
    assert_eq!(state(&harness).progress, WatcherProgress::Silent);
    harness.publish();
    assert!(routes(&harness).iter().all(|(_, route)| !route.installed && !route.links.is_empty()));
    let refused = harness.engine.acknowledge(NAME, controller.last, Vec::new(), harness.now);
    assert!(matches!(refused, Err(Refusal::Unknown { what: "watcher", .. })));
    // It watches again, and all is as before.
    controller.watch(&mut harness, false);
    controller.settle(&mut harness);
    controller.check_clean();
    harness.publish();
    assert!(routes(&harness).iter().all(|(_, route)| route.installed));
    assert_eq!((controller.routes.len(), state(&harness).progress), (8, WatcherProgress::Current));
}

#[test]
fn a_silent_watcher_that_asks_to_resume_watches_anew() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    (0..4).for_each(|_| harness.pass(Micros::from_secs(5)));
    assert_eq!(state(&harness).progress, WatcherProgress::Silent);
    harness.out.clear();
    controller.watch(&mut harness, true);
    controller.settle(&mut harness);
    controller.check_clean();
    harness.publish();
    assert!(routes(&harness).iter().all(|(_, route)| route.installed));
    assert_eq!((controller.routes.len(), state(&harness).progress), (8, WatcherProgress::Current));
}

#[test]
fn a_refusal_counts_although_another_pair_of_it_is_gone_by_a_later_update() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    harness.ask(shuffle(2, "b", (1, 1), 80 * MIB));
    harness.drain();
    let told = updates(&mut harness, NAME);
    assert_eq!(told.len(), 1, "another job's pair is news");
    let (number, gone) = (told[0].number, told[0].routes[0].pair.clone());
    let kept = controller.routes.keys().next().unwrap().clone();
    done(&mut harness, 2);
    let refused = |pair: &WatchedPair| (pair.clone(), "table full".to_owned());
    harness.engine.acknowledge(NAME, number, vec![refused(&gone), refused(&kept)], harness.now).unwrap();
    let named: Vec<WatchedPair> = state(&harness).refused.into_iter().map(|(pair, _)| pair).collect();
    assert_eq!(named, [kept], "what is gone needs no refusal");
}

#[test]
fn what_begins_while_nobody_installs_is_default_forwardings_until_somebody_does() {
    let mut harness = busy(RouteSettings { rules_per_switch: 3, ..RouteSettings::default() });
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    for _ in 0..4 {
        harness.pass(Micros::from_secs(5));
    }
    controller.hear(&mut harness);
    harness.publish();
    assert_eq!(state(&harness).progress, WatcherProgress::Silent);
    let answer = harness.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    assert!(answer.decision.routes.iter().all(|route| !route.installed && !route.links.is_empty()));
    harness.ask(shuffle(3, "small", (2, 2), 4));
    harness.ask(shuffle(4, "many", (8, 8), 640 * MIB));
    let before = routes(&harness).len();
    // Rules that become free are nobody's either.
    done(&mut harness, 1);
    harness.pass(Micros::from_secs(1));
    harness.publish();
    assert!(routes(&harness).len() <= before && routes(&harness).iter().all(|(_, route)| !route.installed));
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    harness.engine.flows_mut().check((&snapshot, &harness.settings.routes.clone()));
    done(&mut harness, 4);
    harness.settings.routes.rules_per_switch = 2_000;
    harness.engine.reload(harness.settings.clone(), harness.now);
    controller.watch(&mut harness, false);
    controller.settle(&mut harness);
    controller.check_clean();
    harness.publish();
    let by_rules = |route: &hintd_model::cluster::PairRoute| route.installed == (route.bytes.0 >= MIB);
    assert!(routes(&harness).iter().all(|(_, route)| by_rules(route)));
    harness.ask(shuffle(5, "c", (4, 2), 80 * MIB));
    assert!(routes(&harness).iter().all(|(_, route)| by_rules(route)));
}

#[test]
fn an_acknowledgement_in_time_stops_the_clock() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    harness.pass(Micros::from_secs(4));
    controller.settle(&mut harness);
    for _ in 0..5 {
        harness.pass(Micros::from_secs(4));
    }
    assert_eq!((updates(&mut harness, NAME).len(), harness.count(Counter::RoutesResynced)), (0, 0));
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    let acknowledge = |harness: &mut EngineHarness, name: &str, number, refused| {
        harness.engine.acknowledge(name, number, refused, harness.now).map_err(|refusal| refusal.to_string())
    };
    for number in [0, 2] {
        assert!(acknowledge(&mut harness, NAME, number, Vec::new()).unwrap_err().contains("was not sent"));
    }
    let nobody = WatchedPair { src: "x".into(), dst: "y".into(), class: "".into() };
    let refused = acknowledge(&mut harness, NAME, 1, vec![(nobody, "why".to_owned())]).unwrap_err();
    assert!(refused.contains("refused[0]"), "{refused}");
    assert!(acknowledge(&mut harness, "stranger", 1, Vec::new()).unwrap_err().contains("unknown"));
    assert_eq!(acknowledge(&mut harness, NAME, 1, Vec::new()), Ok(0));
    assert!(acknowledge(&mut harness, NAME, 1, Vec::new()).unwrap_err().contains("already"));
    let beyond = WatchScope { resume_after: Some(u64::MAX), ..scope() };
    let refused = harness.engine.watch(NAME, beyond, harness.now).unwrap_err();
    assert!(matches!(&refused, Refusal::Invalid { field, .. } if field == "resume_after"));
    let second = harness.engine.watch("other", scope(), harness.now).unwrap_err();
    assert!(matches!(&second, Refusal::Invalid { field, message } if field == "installs" && message.contains(NAME)));
}

#[test]
fn a_route_that_can_not_be_installed_goes_by_default_forwarding_and_is_named() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    let pair = controller.routes.keys().next().unwrap().clone();
    let refused = vec![(pair.clone(), "table full".to_owned())];
    harness.engine.acknowledge(NAME, 1, refused, harness.now).unwrap();
    controller.acknowledged = 1;
    harness.drain();
    controller.hear(&mut harness);
    assert!(!controller.routes.contains_key(&pair) && controller.routes.len() == 7);
    assert_eq!(state(&harness).refused, [(pair.clone(), "table full".into())]);
    assert_eq!(harness.count(Counter::RoutesRefused), 1);
    controller.settle(&mut harness);
    controller.check_clean();
    harness.publish();
    assert_eq!(routes(&harness).iter().filter(|(_, route)| !route.installed).count(), 1);
    // Another watch begins anew, whether or not it wanted to go on from where nothing was kept.
    controller.watch(&mut harness, false);
    assert!(controller.routes.contains_key(&pair) && state(&harness).refused.is_empty());
    let refused = vec![(pair.clone(), "table full".to_owned())];
    harness.engine.acknowledge(NAME, controller.last, refused, harness.now).unwrap();
    let unheard = WatchScope { resume_after: Some(1_000), ..scope() };
    let first = harness.engine.watch(NAME, unheard, harness.now).unwrap();
    assert!(first[0].routes.iter().any(|route| route.pair == pair) && state(&harness).refused.is_empty());
}

#[test]
fn who_comes_back_gets_what_it_missed_or_a_snapshot() {
    let mut harness = busy(RouteSettings { updates_keep: 2, ..RouteSettings::default() });
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    controller.settle(&mut harness);
    harness.pass(Micros::from_secs(5));
    assert_eq!(state(&harness).away_since, None);
    let left = harness.now;
    harness.engine.unwatch(NAME, left);
    let link = busy_link(&harness);
    set(&mut harness, &link, false);
    assert!(updates(&mut harness, NAME).is_empty(), "nobody hears it");
    let away = state(&harness);
    assert!(away.since < left && away.away_since == Some(left), "it left now and began long ago: {away:?}");
    let (last, initial) = (controller.last, controller.phases.get(&Phase::Initial).copied());
    controller.watch(&mut harness, true);
    assert_eq!((controller.last, controller.phases.get(&Phase::Initial).copied()), (last + 1, initial));
    controller.settle(&mut harness);
    controller.check_clean();
    // More was missed than is kept.
    harness.engine.unwatch(NAME, harness.now);
    for up in [true, false, true, false] {
        set(&mut harness, &link, up);
    }
    controller.watch(&mut harness, true);
    assert_eq!(controller.phases.get(&Phase::Initial).copied(), initial.map(|count| count + 1));
    controller.settle(&mut harness);
    controller.check_clean();
    // Away for longer than an acknowledgement and three tries may take.
    harness.engine.unwatch(NAME, harness.now);
    harness.pass(Micros::from_secs(19));
    assert_ne!(state(&harness).progress, WatcherProgress::Silent);
    harness.pass(Micros::from_secs(2));
    assert_eq!(state(&harness).progress, WatcherProgress::Silent);
    harness.publish();
    assert!(routes(&harness).iter().all(|(_, route)| !route.installed));
    controller.watch(&mut harness, true);
    controller.settle(&mut harness);
    controller.check_clean();
    assert_eq!((controller.routes.len(), state(&harness).progress), (8, WatcherProgress::Current));
}

#[test]
fn another_may_install_once_the_first_is_away_and_gets_every_route() {
    let mut harness = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    controller.settle(&mut harness);
    let refusal = harness.engine.watch("heir", scope(), harness.now).unwrap_err();
    assert!(refusal.to_string().contains(NAME), "{refusal}");
    harness.engine.unwatch(NAME, harness.now);
    let first = harness.engine.watch("heir", scope(), harness.now).unwrap();
    assert_eq!(first[0].routes.len(), controller.routes.len());
    let names: Vec<_> = harness.engine.watchers().into_iter().map(|watcher| watcher.name.to_string()).collect();
    assert_eq!(names, ["heir"], "whose place was taken begins anew");
}

#[test]
fn one_pair_has_one_route_whoever_watches_it() {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    let pairs: Vec<WatchedPair> = {
        let hosts = harness.engine.current_snapshot().statics.host.clone();
        let pair = |a: usize, b: usize| WatchedPair { src: hosts[a].clone(), dst: hosts[b].clone(), class: "".into() };
        (0..16).flat_map(|a| (0..16).filter(move |b| *b != a).map(move |b| pair(a, b))).collect()
    };
    let named = WatchScope { pairs: pairs.clone(), ..WatchScope::default() };
    let first = harness.engine.watch("named", named, harness.now).unwrap();
    assert_eq!((first[0].routes.len(), first[0].rules.len()), (240, 0));
    let mut known: std::collections::BTreeMap<WatchedPair, _> =
        first[0].routes.iter().map(|route| (route.pair.clone(), route.links.clone())).collect();
    let mut controller = Controller::default();
    let both = WatchScope { pairs, flows: true, installs: true, circuits: false, resume_after: None };
    for update in harness.engine.watch(NAME, both, harness.now).unwrap() {
        controller.apply(&update);
    }
    controller.settle(&mut harness);
    let hear = |harness: &mut EngineHarness,
                known: &mut std::collections::BTreeMap<WatchedPair, Vec<LinkName>>,
                controller: &mut Controller| {
        for effect in std::mem::take(&mut harness.out) {
            if let Effect::Routes { watcher, update } = effect {
                if *watcher == *NAME {
                    controller.apply(&update);
                } else {
                    known.extend(update.routes.iter().map(|route| (route.pair.clone(), route.links.clone())));
                }
            }
        }
        controller.settle(harness);
        let told: std::collections::BTreeMap<_, _> =
            controller.routes.values().map(|route| (route.pair.clone(), route.links.clone())).collect();
        assert_eq!(*known, told);
        controller.check_clean();
    };
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    hear(&mut harness, &mut known, &mut controller);
    let link = busy_link(&harness);
    for up in [false, true] {
        set(&mut harness, &link, up);
        hear(&mut harness, &mut known, &mut controller);
    }
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    for (pair, route) in routes(&harness) {
        let [src, dst] = [pair.from, pair.to].map(|node| snapshot.host(node).clone());
        let links: Vec<LinkName> =
            route.links.iter().map(|link| network(&harness).link_at(LinkIdx(link.0 / 2)).name.clone()).collect();
        assert_eq!(known[&WatchedPair { src, dst, class: "".into() }], links);
    }
    done(&mut harness, 1);
    hear(&mut harness, &mut known, &mut controller);
}

#[test]
fn at_most_so_many_routes_change_in_a_second_and_failures_go_first() {
    let mut harness = busy(RouteSettings { changes_per_s: 2, ..RouteSettings::default() });
    harness.pass(Micros::from_secs(1));
    let before = routes(&harness);
    let ups: Vec<LinkName> = {
        let network = network(&harness);
        let used = before.iter().filter(|(_, route)| route.links.len() == 6).map(|(_, route)| route.links[2].0 / 2);
        used.map(|link| network.link_at(LinkIdx(link)).name.clone()).collect()
    };
    for link in &ups {
        harness.change(Change::Link { link: link.clone(), up: Some(false), capacity: None });
    }
    harness.publish();
    let moved = |harness: &EngineHarness| {
        before.iter().zip(routes(harness)).filter(|(old, new)| old.1.links != new.1.links).count()
    };
    let mut counts = vec![moved(&harness)];
    for _ in 0..4 {
        harness.pass(Micros::from_secs(1));
        harness.publish();
        counts.push(moved(&harness));
    }
    assert!(counts[0] == 2 && counts.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{counts:?}");
    assert!(!harness.engine.flows().waits() && counts[4] > 2, "{counts:?}");
}

/// Links that whoever looks at the network is told are avoided.
fn damped(harness: &EngineHarness) -> Vec<LinkName> {
    let uses = link_uses(&harness.engine.generation());
    uses.into_iter().filter(|link| link.damped).map(|link| link.link).collect()
}

#[test]
fn a_flapping_link_draws_no_route_back_until_it_was_quiet() {
    let mut harness = busy(RouteSettings::default());
    let link = busy_link(&harness);
    let home = routes(&harness);
    for up in [false, true, false, true, false, true] {
        harness.pass(Micros::from_secs(1));
        set(&mut harness, &link, up);
    }
    assert_ne!(routes(&harness), home);
    assert_eq!(harness.count(Counter::LinksDamped), 1);
    assert_eq!(damped(&harness), std::slice::from_ref(&link));
    // Nor does it get a new pair, whatever a policy chose that knows nothing of it.
    let mut proposal = harness.propose(&Arc::new(shuffle(2, "b", (16, 16), 2_560 * MIB))).unwrap();
    let network = network(&harness);
    let at = network.link(link.as_str()).unwrap();
    let flapping = |route: &[DirectedLinkIdx]| route.iter().any(|link| link.0 / 2 == at.0);
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    let chosen = proposal.flows.as_mut().unwrap();
    let ends = |pair: NodePair| [pair.from, pair.to].map(|node| snapshot.topology.vertex[node.at()].unwrap());
    for pair in chosen.traffic.flows.iter().map(|flow| flow.pair) {
        let [from, to] = ends(pair);
        let mut paths = host_paths(&network, snapshot.topology.paths().unwrap(), from, to);
        chosen.chosen.extend(paths.find(|path| flapping(path)).map(|path| ChosenRoute::plain(pair, path[..].into())));
    }
    assert!(!chosen.chosen.is_empty());
    harness.commit(proposal);
    harness.publish();
    assert!(routes(&harness).len() > home.len() && routes(&harness).iter().all(|(_, route)| !flapping(&route.links)));
    done(&mut harness, 2);
    harness.pass(Micros::from_secs(29));
    harness.publish();
    assert_ne!(routes(&harness), home);
    harness.pass(Micros::from_secs(1));
    harness.publish();
    assert_eq!(routes(&harness), home);
    assert!(damped(&harness).is_empty());
}

#[test]
fn a_switch_with_no_room_for_rules_leaves_pairs_to_default_forwarding_until_there_is_room() {
    let mut harness = fat_tree(RouteSettings { rules_per_switch: 3, ..RouteSettings::default() }, 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 1), 80 * MIB));
    assert_eq!(routes(&harness).iter().filter(|(_, route)| route.installed).count(), 3, "one edge switch receives all");
    assert_eq!(harness.count(Counter::RoutesToDefault), 1);
    let lost = harness
        .engine
        .current_snapshot()
        .host(routes(&harness).iter().find(|(_, route)| route.installed).unwrap().0.from)
        .clone();
    harness.change(Change::Gone(lost));
    harness.publish();
    harness.pass(Micros::from_secs(1));
    harness.publish();
    assert!(routes(&harness).iter().all(|(_, route)| route.installed) && routes(&harness).len() == 3);
}

#[test]
fn pairs_that_find_no_room_away_from_home_return_to_it_when_there_is_room() {
    let mut harness = busy(RouteSettings::default());
    let (home, link) = (routes(&harness), busy_link(&harness));
    let limit = |harness: &mut EngineHarness, rules_per_switch| {
        harness.settings.routes.rules_per_switch = rules_per_switch;
        harness.engine.reload(harness.settings.clone(), harness.now);
    };
    limit(&mut harness, 0);
    set(&mut harness, &link, false);
    assert!(routes(&harness).iter().any(|(_, route)| !route.installed));
    set(&mut harness, &link, true);
    limit(&mut harness, 2_000);
    for _ in 0..2 {
        harness.pass(Micros::from_secs(1));
    }
    harness.publish();
    assert_eq!(routes(&harness), home);
}

#[test]
fn homes_stay_homes_in_another_network_that_has_them() {
    for mended in [false, true] {
        let mut harness = busy(RouteSettings::default());
        let (home, link) = (routes(&harness), busy_link(&harness));
        set(&mut harness, &link, false);
        let away = routes(&harness);
        assert_ne!(away, home);
        let mut other = (*network(&harness)).clone();
        other.add_host("spare").unwrap();
        if mended {
            other.set_link(other.link(link.as_str()).unwrap(), Some(true), None);
        }
        harness.change(Change::Network(Some(Arc::new(other))));
        harness.publish();
        if !mended {
            assert_eq!(routes(&harness), away);
            set(&mut harness, &link, true);
        }
        assert_eq!(routes(&harness), home);
    }
    // What fails by the replacement returns as what fails by itself does.
    let mut harness = busy(RouteSettings::default());
    let (home, link) = (routes(&harness), busy_link(&harness));
    let mut other = (*network(&harness)).clone();
    other.set_link(other.link(link.as_str()).unwrap(), Some(false), None);
    harness.change(Change::Network(Some(Arc::new(other))));
    harness.publish();
    assert_ne!(routes(&harness), home);
    set(&mut harness, &link, true);
    assert_eq!(routes(&harness), home);
}

#[test]
fn a_node_that_joins_leaves_routes_and_homes_what_they_are() {
    let mut harness = busy(RouteSettings::default());
    let (home, link) = (routes(&harness), busy_link(&harness));
    set(&mut harness, &link, false);
    let away = routes(&harness);
    assert_ne!(away, home);
    harness.register("newcomer", "/r9", 1024);
    harness.publish();
    assert_eq!(routes(&harness), away);
    let snapshot = Arc::clone(harness.engine.current_snapshot());
    harness.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
    set(&mut harness, &link, true);
    assert_eq!(routes(&harness), home);
}

#[test]
fn what_is_cut_while_a_busy_node_comes_to_hang_in_the_network_is_told() {
    let mut built = build::fat_tree(&FatTreeSpec::default()).unwrap();
    let spare = built.racks.last_mut().unwrap().1.pop().unwrap();
    let mut harness = wired(RouteSettings::default(), built, 16 * 1024);
    harness.register("extra", "/r9", 16 * 1024);
    harness.beat("extra", 0, Some(&[]));
    harness.publish();
    harness.ask(shuffle(1, "a", (8, 8), 640 * MIB));
    let mut controller = Controller::default();
    controller.watch(&mut harness, false);
    controller.settle(&mut harness);
    let extra = harness.engine.current_snapshot().statics.find("extra").unwrap();
    assert!(routes(&harness).iter().any(|(pair, _)| pair.from == extra || pair.to == extra));
    // In one settling the node gets its place, and a sender loses its own.
    let (_, route) = routes(&harness).into_iter().find(|(_, route)| !route.links.is_empty()).unwrap();
    let access = network(&harness).link_at(LinkIdx(route.links[0].0 / 2)).name.clone();
    let mut known = registration("extra", "/r9", 16 * 1024);
    known.aliases = vec![spare.as_str().into()];
    harness.change(Change::Register(known));
    set(&mut harness, &access, false);
    assert!(routes(&harness).iter().any(|(pair, route)| pair.from == extra && !route.links.is_empty()));
    controller.hear(&mut harness);
    controller.settle(&mut harness);
    assert!(controller.routes.values().all(|route| !route.links.contains(&access)));
    controller.check_clean();
}
