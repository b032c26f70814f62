//! The watch protocol: phases, acknowledgements, what is sent again, silence, refusals, coming back.

use super::super::desk::{Desk, registration};
use super::controller::{Controller, NAME, scope};
use super::{MIB, done, fat_tree, network, routes, set, shuffle, updates, wired};
use crate::{Counter, Effect, Phase, Refusal, RouteSettings, RuleAction, Standing, WatchScope, WatchedPair};
use hintd_model::cluster::{Change, NodePair};
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::network::host_paths;
use hintd_model::units::{DirectedLinkIdx, LinkIdx, LinkName, Micros};
use hintd_policy::ChosenRoute;
use std::sync::Arc;

fn busy(settings: RouteSettings) -> Desk {
    let mut desk = fat_tree(settings, 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    desk.drain();
    desk.out.clear();
    desk
}

/// A link between switches that some route has.
fn busy_link(desk: &Desk) -> LinkName {
    let route = routes(desk).into_iter().find(|(_, route)| route.links.len() > 2).unwrap().1;
    network(desk).link_at(LinkIdx(route.links[1].0 / 2)).name.clone()
}

fn state(desk: &Desk) -> crate::WatcherState {
    desk.engine.watchers().into_iter().find(|state| *state.name == *NAME).unwrap()
}

#[test]
fn a_failure_is_one_update_and_the_return_home_is_two_with_an_acknowledgement_between() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    assert_eq!((controller.routes.len(), state(&desk).standing), (8, Standing::Waiting));
    controller.settle(&mut desk);
    assert_eq!(state(&desk).standing, Standing::Current);
    let link = busy_link(&desk);
    set(&mut desk, &link, false);
    let told = updates(&mut desk, NAME);
    assert_eq!(told.len(), 1);
    let (update, removes) =
        (&told[0], |rules: &[crate::RuleChange]| rules.iter().filter(|rule| rule.action == RuleAction::Remove).count());
    assert_eq!((update.phase, update.cause, &*update.subject), (Phase::Failover, "link_down", link.as_str()));
    assert!(removes(&update.rules) > 0 && update.routes.iter().all(|route| !route.links.contains(&link)));
    assert_eq!(update.untouched as usize + update.routes.len(), 8);
    told.iter().for_each(|update| controller.apply(update));
    controller.settle(&mut desk);
    set(&mut desk, &link, true);
    let told = updates(&mut desk, NAME);
    assert_eq!(
        told.iter().map(|update| (update.phase, removes(&update.rules))).collect::<Vec<_>>(),
        [(Phase::Make, 0)]
    );
    told.iter().for_each(|update| controller.apply(update));
    let number = controller.last;
    controller.acknowledge(&mut desk, number);
    let told = updates(&mut desk, NAME);
    assert_eq!(told.iter().map(|update| update.phase).collect::<Vec<_>>(), [Phase::Break]);
    assert!(removes(&told[0].rules) == told[0].rules.len() && told[0].routes.is_empty());
    told.iter().for_each(|update| controller.apply(update));
    controller.settle(&mut desk);
    controller.check_clean();
    done(&mut desk, 1);
    controller.settle(&mut desk);
    assert!(controller.routes.is_empty() && controller.tables.is_empty());
}

#[test]
fn what_is_never_acknowledged_is_sent_again_and_then_counts_as_default_forwarding() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    let mut phases = Vec::new();
    for _ in 0..4 {
        desk.pass(Micros::from_secs(5));
        for update in updates(&mut desk, NAME) {
            assert!(update.snapshot && update.routes.len() == 8);
            controller.apply(&update);
            phases.push(update.phase);
        }
    }
    assert_eq!(phases, [Phase::Resync; 3]);
    assert!(matches!(&desk.out[..], [Effect::WatchEnded { watcher, .. }] if **watcher == *NAME), "{:?}", desk.out);
    assert_eq!((desk.count(Counter::WatchersSilent), desk.count(Counter::RoutesResynced)), (1, 3));
    assert_eq!(state(&desk).standing, Standing::Silent);
    desk.publish();
    assert!(routes(&desk).iter().all(|(_, route)| !route.installed && !route.links.is_empty()));
    let refused = desk.engine.acknowledge(NAME, controller.last, Vec::new(), desk.now);
    assert!(matches!(refused, Err(Refusal::Unknown { what: "watcher", .. })));
    // It watches again, and all is as before.
    controller.watch(&mut desk, false);
    controller.settle(&mut desk);
    controller.check_clean();
    desk.publish();
    assert!(routes(&desk).iter().all(|(_, route)| route.installed));
    assert_eq!((controller.routes.len(), state(&desk).standing), (8, Standing::Current));
}

#[test]
fn a_silent_watcher_that_asks_to_resume_watches_anew() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    (0..4).for_each(|_| desk.pass(Micros::from_secs(5)));
    assert_eq!(state(&desk).standing, Standing::Silent);
    desk.out.clear();
    controller.watch(&mut desk, true);
    controller.settle(&mut desk);
    controller.check_clean();
    desk.publish();
    assert!(routes(&desk).iter().all(|(_, route)| route.installed));
    assert_eq!((controller.routes.len(), state(&desk).standing), (8, Standing::Current));
}

#[test]
fn a_refusal_counts_although_another_pair_of_it_is_gone_by_a_later_update() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    desk.ask(shuffle(2, "b", (1, 1), 80 * MIB));
    desk.drain();
    let told = updates(&mut desk, NAME);
    assert_eq!(told.len(), 1, "another job's pair is news");
    let (number, gone) = (told[0].number, told[0].routes[0].pair.clone());
    let kept = controller.routes.keys().next().unwrap().clone();
    done(&mut desk, 2);
    let refused = |pair: &WatchedPair| (pair.clone(), "table full".to_owned());
    desk.engine.acknowledge(NAME, number, vec![refused(&gone), refused(&kept)], desk.now).unwrap();
    let named: Vec<WatchedPair> = state(&desk).refused.into_iter().map(|(pair, _)| pair).collect();
    assert_eq!(named, [kept], "what is gone needs no refusal");
}

#[test]
fn what_begins_while_nobody_installs_is_default_forwardings_until_somebody_does() {
    let mut desk = busy(RouteSettings { rules_per_switch: 3, ..RouteSettings::default() });
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    for _ in 0..4 {
        desk.pass(Micros::from_secs(5));
    }
    controller.hear(&mut desk);
    desk.publish();
    assert_eq!(state(&desk).standing, Standing::Silent);
    let answer = desk.ask(shuffle(2, "b", (4, 2), 80 * MIB));
    assert!(answer.decision.routes.iter().all(|route| !route.installed && !route.links.is_empty()));
    desk.ask(shuffle(3, "small", (2, 2), 4));
    desk.ask(shuffle(4, "many", (8, 8), 640 * MIB));
    let before = routes(&desk).len();
    // Rules that become free are nobody's either.
    done(&mut desk, 1);
    desk.pass(Micros::from_secs(1));
    desk.publish();
    assert!(routes(&desk).len() <= before && routes(&desk).iter().all(|(_, route)| !route.installed));
    let snapshot = Arc::clone(desk.engine.settled());
    desk.engine.flows_mut().check((&snapshot, &desk.settings.routes.clone()));
    done(&mut desk, 4);
    desk.settings.routes.rules_per_switch = 2_000;
    desk.engine.reload(desk.settings.clone(), desk.now);
    controller.watch(&mut desk, false);
    controller.settle(&mut desk);
    controller.check_clean();
    desk.publish();
    let by_rules = |route: &hintd_model::cluster::PairRoute| route.installed == (route.bytes.0 >= MIB);
    assert!(routes(&desk).iter().all(|(_, route)| by_rules(route)));
    desk.ask(shuffle(5, "c", (4, 2), 80 * MIB));
    assert!(routes(&desk).iter().all(|(_, route)| by_rules(route)));
}

#[test]
fn an_acknowledgement_in_time_stops_the_clock() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    desk.pass(Micros::from_secs(4));
    controller.settle(&mut desk);
    for _ in 0..5 {
        desk.pass(Micros::from_secs(4));
    }
    assert_eq!((updates(&mut desk, NAME).len(), desk.count(Counter::RoutesResynced)), (0, 0));
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    let acknowledge = |desk: &mut Desk, name: &str, number, refused| {
        desk.engine.acknowledge(name, number, refused, desk.now).map_err(|refusal| refusal.to_string())
    };
    for number in [0, 2] {
        assert!(acknowledge(&mut desk, NAME, number, Vec::new()).unwrap_err().contains("was not sent"));
    }
    let nobody = WatchedPair { src: "x".into(), dst: "y".into(), class: "".into() };
    let refused = acknowledge(&mut desk, NAME, 1, vec![(nobody, "why".to_owned())]).unwrap_err();
    assert!(refused.contains("refused[0]"), "{refused}");
    assert!(acknowledge(&mut desk, "stranger", 1, Vec::new()).unwrap_err().contains("unknown"));
    assert_eq!(acknowledge(&mut desk, NAME, 1, Vec::new()), Ok(0));
    assert!(acknowledge(&mut desk, NAME, 1, Vec::new()).unwrap_err().contains("already"));
    let beyond = WatchScope { resume_after: Some(u64::MAX), ..scope() };
    let refused = desk.engine.watch(NAME, beyond, desk.now).unwrap_err();
    assert!(matches!(&refused, Refusal::Invalid { field, .. } if field == "resume_after"));
    let second = desk.engine.watch("other", scope(), desk.now).unwrap_err();
    assert!(matches!(&second, Refusal::Invalid { field, message } if field == "installs" && message.contains(NAME)));
}

#[test]
fn a_route_that_can_not_be_installed_goes_by_default_forwarding_and_is_named() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    let pair = controller.routes.keys().next().unwrap().clone();
    let refused = vec![(pair.clone(), "table full".to_owned())];
    desk.engine.acknowledge(NAME, 1, refused, desk.now).unwrap();
    controller.acknowledged = 1;
    desk.drain();
    controller.hear(&mut desk);
    assert!(!controller.routes.contains_key(&pair) && controller.routes.len() == 7);
    assert_eq!(state(&desk).refused, [(pair.clone(), "table full".into())]);
    assert_eq!(desk.count(Counter::RoutesRefused), 1);
    controller.settle(&mut desk);
    controller.check_clean();
    desk.publish();
    assert_eq!(routes(&desk).iter().filter(|(_, route)| !route.installed).count(), 1);
    // Another watch begins anew, whether or not it wanted to go on from where nothing was kept.
    controller.watch(&mut desk, false);
    assert!(controller.routes.contains_key(&pair) && state(&desk).refused.is_empty());
    let refused = vec![(pair.clone(), "table full".to_owned())];
    desk.engine.acknowledge(NAME, controller.last, refused, desk.now).unwrap();
    let unheard = WatchScope { resume_after: Some(1_000), ..scope() };
    let first = desk.engine.watch(NAME, unheard, desk.now).unwrap();
    assert!(first[0].routes.iter().any(|route| route.pair == pair) && state(&desk).refused.is_empty());
}

#[test]
fn who_comes_back_gets_what_it_missed_or_a_snapshot() {
    let mut desk = busy(RouteSettings { updates_keep: 2, ..RouteSettings::default() });
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    controller.settle(&mut desk);
    desk.engine.unwatch(NAME, desk.now);
    let link = busy_link(&desk);
    set(&mut desk, &link, false);
    assert!(updates(&mut desk, NAME).is_empty(), "nobody hears it");
    assert!(!state(&desk).attached);
    let (last, initial) = (controller.last, controller.phases.get(&Phase::Initial).copied());
    controller.watch(&mut desk, true);
    assert_eq!((controller.last, controller.phases.get(&Phase::Initial).copied()), (last + 1, initial));
    controller.settle(&mut desk);
    controller.check_clean();
    // More was missed than is kept.
    desk.engine.unwatch(NAME, desk.now);
    for up in [true, false, true, false] {
        set(&mut desk, &link, up);
    }
    controller.watch(&mut desk, true);
    assert_eq!(controller.phases.get(&Phase::Initial).copied(), initial.map(|count| count + 1));
    controller.settle(&mut desk);
    controller.check_clean();
    // Away for longer than an acknowledgement and three tries may take.
    desk.engine.unwatch(NAME, desk.now);
    desk.pass(Micros::from_secs(19));
    assert_ne!(state(&desk).standing, Standing::Silent);
    desk.pass(Micros::from_secs(2));
    assert_eq!(state(&desk).standing, Standing::Silent);
    desk.publish();
    assert!(routes(&desk).iter().all(|(_, route)| !route.installed));
    controller.watch(&mut desk, true);
    controller.settle(&mut desk);
    controller.check_clean();
    assert_eq!((controller.routes.len(), state(&desk).standing), (8, Standing::Current));
}

#[test]
fn another_may_install_once_the_first_is_away_and_gets_every_route() {
    let mut desk = busy(RouteSettings::default());
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    controller.settle(&mut desk);
    let refusal = desk.engine.watch("heir", scope(), desk.now).unwrap_err();
    assert!(refusal.to_string().contains(NAME), "{refusal}");
    desk.engine.unwatch(NAME, desk.now);
    let first = desk.engine.watch("heir", scope(), desk.now).unwrap();
    assert_eq!(first[0].routes.len(), controller.routes.len());
    let names: Vec<_> = desk.engine.watchers().into_iter().map(|watcher| watcher.name.to_string()).collect();
    assert_eq!(names, ["heir"], "whose place was taken begins anew");
}

#[test]
fn one_pair_has_one_route_whoever_watches_it() {
    let mut desk = fat_tree(RouteSettings::default(), 16 * 1024);
    let pairs: Vec<WatchedPair> = {
        let hosts = desk.engine.settled().statics.host.clone();
        let pair = |a: usize, b: usize| WatchedPair { src: hosts[a].clone(), dst: hosts[b].clone(), class: "".into() };
        (0..16).flat_map(|a| (0..16).filter(move |b| *b != a).map(move |b| pair(a, b))).collect()
    };
    let named = WatchScope { pairs: pairs.clone(), ..WatchScope::default() };
    let first = desk.engine.watch("named", named, desk.now).unwrap();
    assert_eq!((first[0].routes.len(), first[0].rules.len()), (240, 0));
    let mut known: std::collections::BTreeMap<WatchedPair, _> =
        first[0].routes.iter().map(|route| (route.pair.clone(), route.links.clone())).collect();
    let mut controller = Controller::default();
    let both = WatchScope { pairs, flows: true, installs: true, circuits: false, resume_after: None };
    for update in desk.engine.watch(NAME, both, desk.now).unwrap() {
        controller.apply(&update);
    }
    controller.settle(&mut desk);
    let hear = |desk: &mut Desk,
                known: &mut std::collections::BTreeMap<WatchedPair, Vec<LinkName>>,
                controller: &mut Controller| {
        for effect in std::mem::take(&mut desk.out) {
            if let Effect::Routes { watcher, update } = effect {
                if *watcher == *NAME {
                    controller.apply(&update);
                } else {
                    known.extend(update.routes.iter().map(|route| (route.pair.clone(), route.links.clone())));
                }
            }
        }
        controller.settle(desk);
        let told: std::collections::BTreeMap<_, _> =
            controller.routes.values().map(|route| (route.pair.clone(), route.links.clone())).collect();
        assert_eq!(*known, told);
        controller.check_clean();
    };
    desk.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    hear(&mut desk, &mut known, &mut controller);
    let link = busy_link(&desk);
    for up in [false, true] {
        set(&mut desk, &link, up);
        hear(&mut desk, &mut known, &mut controller);
    }
    let snapshot = Arc::clone(desk.engine.settled());
    for (pair, route) in routes(&desk) {
        let [src, dst] = [pair.from, pair.to].map(|node| snapshot.host(node).clone());
        let links: Vec<LinkName> =
            route.links.iter().map(|link| network(&desk).link_at(LinkIdx(link.0 / 2)).name.clone()).collect();
        assert_eq!(known[&WatchedPair { src, dst, class: "".into() }], links);
    }
    done(&mut desk, 1);
    hear(&mut desk, &mut known, &mut controller);
}

#[test]
fn at_most_so_many_routes_change_in_a_second_and_failures_go_first() {
    let mut desk = busy(RouteSettings { changes_per_s: 2, ..RouteSettings::default() });
    desk.pass(Micros::from_secs(1));
    let before = routes(&desk);
    let ups: Vec<LinkName> = {
        let network = network(&desk);
        let used = before.iter().filter(|(_, route)| route.links.len() == 6).map(|(_, route)| route.links[2].0 / 2);
        used.map(|link| network.link_at(LinkIdx(link)).name.clone()).collect()
    };
    for link in &ups {
        desk.change(Change::Link { link: link.clone(), up: Some(false), capacity: None });
    }
    desk.publish();
    let moved = |desk: &Desk| before.iter().zip(routes(desk)).filter(|(old, new)| old.1.links != new.1.links).count();
    let mut counts = vec![moved(&desk)];
    for _ in 0..4 {
        desk.pass(Micros::from_secs(1));
        desk.publish();
        counts.push(moved(&desk));
    }
    assert!(counts[0] == 2 && counts.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{counts:?}");
    assert!(!desk.engine.flows().waits() && counts[4] > 2, "{counts:?}");
}

#[test]
fn a_flapping_link_draws_no_route_back_until_it_was_quiet() {
    let mut desk = busy(RouteSettings::default());
    let link = busy_link(&desk);
    let home = routes(&desk);
    for up in [false, true, false, true, false, true] {
        desk.pass(Micros::from_secs(1));
        set(&mut desk, &link, up);
    }
    assert_ne!(routes(&desk), home);
    assert_eq!(desk.count(Counter::LinksDamped), 1);
    // Nor does it get a new pair, whatever a policy chose that knows nothing of it.
    let mut proposal = desk.propose(&Arc::new(shuffle(2, "b", (16, 16), 2_560 * MIB))).unwrap();
    let network = network(&desk);
    let at = network.link(link.as_str()).unwrap();
    let flapping = |route: &[DirectedLinkIdx]| route.iter().any(|link| link.0 / 2 == at.0);
    let snapshot = Arc::clone(desk.engine.settled());
    let chosen = proposal.flows.as_mut().unwrap();
    let ends = |pair: NodePair| [pair.from, pair.to].map(|node| snapshot.topology.vertex[node.at()].unwrap());
    for pair in chosen.traffic.flows.iter().map(|flow| flow.pair) {
        let [from, to] = ends(pair);
        let mut paths = host_paths(&network, snapshot.topology.paths().unwrap(), from, to);
        chosen.chosen.extend(paths.find(|path| flapping(path)).map(|path| ChosenRoute::plain(pair, path[..].into())));
    }
    assert!(!chosen.chosen.is_empty());
    desk.commit(proposal);
    desk.publish();
    assert!(routes(&desk).len() > home.len() && routes(&desk).iter().all(|(_, route)| !flapping(&route.links)));
    done(&mut desk, 2);
    desk.pass(Micros::from_secs(29));
    desk.publish();
    assert_ne!(routes(&desk), home);
    desk.pass(Micros::from_secs(1));
    desk.publish();
    assert_eq!(routes(&desk), home);
}

#[test]
fn a_switch_with_no_room_for_rules_leaves_pairs_to_default_forwarding_until_there_is_room() {
    let mut desk = fat_tree(RouteSettings { rules_per_switch: 3, ..RouteSettings::default() }, 16 * 1024);
    desk.ask(shuffle(1, "a", (4, 1), 80 * MIB));
    assert_eq!(routes(&desk).iter().filter(|(_, route)| route.installed).count(), 3, "one edge switch receives all");
    assert_eq!(desk.count(Counter::RoutesToDefault), 1);
    let lost =
        desk.engine.settled().host(routes(&desk).iter().find(|(_, route)| route.installed).unwrap().0.from).clone();
    desk.change(Change::Gone(lost));
    desk.publish();
    desk.pass(Micros::from_secs(1));
    desk.publish();
    assert!(routes(&desk).iter().all(|(_, route)| route.installed) && routes(&desk).len() == 3);
}

#[test]
fn pairs_that_find_no_room_away_from_home_return_to_it_when_there_is_room() {
    let mut desk = busy(RouteSettings::default());
    let (home, link) = (routes(&desk), busy_link(&desk));
    let limit = |desk: &mut Desk, rules_per_switch| {
        desk.settings.routes.rules_per_switch = rules_per_switch;
        desk.engine.reload(desk.settings.clone(), desk.now);
    };
    limit(&mut desk, 0);
    set(&mut desk, &link, false);
    assert!(routes(&desk).iter().any(|(_, route)| !route.installed));
    set(&mut desk, &link, true);
    limit(&mut desk, 2_000);
    for _ in 0..2 {
        desk.pass(Micros::from_secs(1));
    }
    desk.publish();
    assert_eq!(routes(&desk), home);
}

#[test]
fn homes_stay_homes_in_another_network_that_has_them() {
    for mended in [false, true] {
        let mut desk = busy(RouteSettings::default());
        let (home, link) = (routes(&desk), busy_link(&desk));
        set(&mut desk, &link, false);
        let away = routes(&desk);
        assert_ne!(away, home);
        let mut other = (*network(&desk)).clone();
        other.add_host("spare").unwrap();
        if mended {
            other.set_link(other.link(link.as_str()).unwrap(), Some(true), None);
        }
        desk.change(Change::Network(Some(Arc::new(other))));
        desk.publish();
        if !mended {
            assert_eq!(routes(&desk), away);
            set(&mut desk, &link, true);
        }
        assert_eq!(routes(&desk), home);
    }
    // What fails by the replacement returns as what fails by itself does.
    let mut desk = busy(RouteSettings::default());
    let (home, link) = (routes(&desk), busy_link(&desk));
    let mut other = (*network(&desk)).clone();
    other.set_link(other.link(link.as_str()).unwrap(), Some(false), None);
    desk.change(Change::Network(Some(Arc::new(other))));
    desk.publish();
    assert_ne!(routes(&desk), home);
    set(&mut desk, &link, true);
    assert_eq!(routes(&desk), home);
}

#[test]
fn a_node_that_joins_leaves_routes_and_homes_what_they_are() {
    let mut desk = busy(RouteSettings::default());
    let (home, link) = (routes(&desk), busy_link(&desk));
    set(&mut desk, &link, false);
    let away = routes(&desk);
    assert_ne!(away, home);
    desk.register("newcomer", "/r9", 1024);
    desk.publish();
    assert_eq!(routes(&desk), away);
    let snapshot = Arc::clone(desk.engine.settled());
    desk.engine.flows_mut().check((&snapshot, &RouteSettings::default()));
    set(&mut desk, &link, true);
    assert_eq!(routes(&desk), home);
}

#[test]
fn what_is_cut_while_a_busy_node_comes_to_hang_in_the_network_is_told() {
    let mut built = build::fat_tree(&FatTreeSpec::default()).unwrap();
    let spare = built.racks.last_mut().unwrap().1.pop().unwrap();
    let mut desk = wired(RouteSettings::default(), built, 16 * 1024);
    desk.register("extra", "/r9", 16 * 1024);
    desk.beat("extra", 0, Some(&[]));
    desk.publish();
    desk.ask(shuffle(1, "a", (8, 8), 640 * MIB));
    let mut controller = Controller::default();
    controller.watch(&mut desk, false);
    controller.settle(&mut desk);
    let extra = desk.engine.settled().statics.find("extra").unwrap();
    assert!(routes(&desk).iter().any(|(pair, _)| pair.from == extra || pair.to == extra));
    // In one settling the node gets its place, and a sender loses its own.
    let (_, route) = routes(&desk).into_iter().find(|(_, route)| !route.links.is_empty()).unwrap();
    let access = network(&desk).link_at(LinkIdx(route.links[0].0 / 2)).name.clone();
    let mut known = registration("extra", "/r9", 16 * 1024);
    known.aliases = vec![spare.as_str().into()];
    desk.change(Change::Register(known));
    set(&mut desk, &access, false);
    assert!(routes(&desk).iter().any(|(pair, route)| pair.from == extra && !route.links.is_empty()));
    controller.hear(&mut desk);
    controller.settle(&mut desk);
    assert!(controller.routes.values().all(|route| !route.links.contains(&access)));
    controller.check_clean();
}
