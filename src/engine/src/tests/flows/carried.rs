//! Whose routes went over links that went down, and what became of them.

use super::super::harness::EngineHarness;
use super::{MIB, done, fat_tree, flows, network, routes, set, shuffle};
use crate::testing::attempt;
use crate::{ApplicationPaths, CarriedRoutes, RouteSettings, application_paths, carried_routes};
use hintd_model::cluster::NodePair;
use hintd_model::network::{Network, Tier};
use hintd_model::units::{ApplicationId, LinkIdx, LinkName};
use std::collections::{BTreeMap, BTreeSet};

fn two_jobs() -> EngineHarness {
    let mut harness = fat_tree(RouteSettings::default(), 16 * 1024);
    harness.ask(shuffle(1, "a", (4, 2), 80 * MIB));
    harness.ask(shuffle(2, "b", (8, 8), 160 * MIB));
    harness
}

fn of(harness: &EngineHarness, links: &[LinkName], installed: bool) -> Option<CarriedRoutes> {
    carried_routes(&network(harness), &flows(harness), &[links.to_vec()], installed).remove(0)
}

/// Pairs whose route has one of the links, by application.
fn by_hand(harness: &EngineHarness, links: &[LinkName]) -> BTreeMap<ApplicationId, BTreeSet<NodePair>> {
    let (network, flows) = (network(harness), flows(harness));
    let on: BTreeSet<NodePair> = routes(harness)
        .into_iter()
        .filter(|(_, route)| route.links.iter().any(|link| links.contains(&network.link_at(LinkIdx(link.0 / 2)).name)))
        .map(|(pair, _)| pair)
        .collect();
    let mut found: BTreeMap<ApplicationId, BTreeSet<NodePair>> = BTreeMap::new();
    for job in &flows.jobs {
        let pairs = job.traffic.flows.iter().map(|flow| flow.pair).filter(|pair| on.contains(pair));
        found.entry(job.attempt.application).or_default().extend(pairs);
    }
    found.retain(|_, pairs| !pairs.is_empty());
    found
}

fn links(network: &Network, is: impl Fn(&Network, LinkIdx) -> bool) -> Vec<LinkName> {
    network.links().filter(|(index, _)| is(network, *index)).map(|(_, link)| link.name.clone()).collect()
}

fn is_of_host(network: &Network, link: LinkIdx) -> bool {
    let link = network.link_at(link);
    [link.a, link.b].into_iter().any(|end| network.vertex_at(end).is_host())
}

#[test]
fn what_a_link_carried_are_the_routes_over_it_and_whose_they_were() {
    let harness = two_jobs();
    for link in links(&network(&harness), |_, _| true) {
        let (found, wanted) =
            (of(&harness, std::slice::from_ref(&link), true).unwrap(), by_hand(&harness, std::slice::from_ref(&link)));
        let pairs: BTreeSet<&NodePair> = wanted.values().flatten().collect();
        assert_eq!((found.routes, found.uncertain), (pairs.len() as u64, 0), "{link}");
        assert_eq!(found.applications_total, wanted.len(), "{link}");
        let named: BTreeMap<ApplicationId, u64> = found.applications.iter().copied().collect();
        assert_eq!(named, wanted.into_iter().map(|(of, pairs)| (of, pairs.len() as u64)).collect(), "{link}");
        assert!(found.applications.is_sorted_by_key(|(_, routes)| std::cmp::Reverse(*routes)));
    }
}

#[test]
fn a_route_counts_once_for_a_switch_though_it_goes_over_two_of_its_links() {
    let harness = two_jobs();
    let known = network(&harness);
    let (core, _) = known.vertices().find(|(_, vertex)| vertex.tier() == Some(Tier::Core)).unwrap();
    let of_core: Vec<LinkName> = known.links_of(core).map(|(_, link)| link.name.clone()).collect();
    let wanted = by_hand(&harness, &of_core);
    let pairs: BTreeSet<&NodePair> = wanted.values().flatten().collect();
    assert!(!pairs.is_empty());
    assert_eq!(of(&harness, &of_core, true).unwrap().routes, pairs.len() as u64);
    let each: Vec<Vec<LinkName>> = of_core.iter().map(|link| vec![link.clone()]).collect();
    let sum: u64 = carried_routes(&known, &flows(&harness), &each, true).into_iter().map(|of| of.unwrap().routes).sum();
    assert_eq!(sum, 2 * pairs.len() as u64, "as groups of their own each counts for itself");
}

#[test]
fn where_nobody_installs_routes_only_the_sole_way_is_certain() {
    let harness = two_jobs();
    let known = network(&harness);
    let mut used = [false; 2];
    for link in links(&known, |_, _| true) {
        let (installed, found) = (
            of(&harness, std::slice::from_ref(&link), true).unwrap(),
            of(&harness, std::slice::from_ref(&link), false),
        );
        let found = found.unwrap();
        let is_sole = is_of_host(&known, known.link(link.as_str()).unwrap());
        used[usize::from(is_sole)] |= installed.routes > 0;
        if is_sole {
            assert_eq!(found, installed, "{link} is the only way to its host");
        } else {
            assert_eq!((found.routes, found.uncertain), (0, installed.routes), "{link}");
            assert!(found.applications.is_empty() && found.applications_total == 0, "nobody is named by a guess");
        }
    }
    assert_eq!(used, [true; 2]);
}

#[test]
fn of_a_link_that_was_down_or_unknown_before_nothing_is_known() {
    let mut harness = two_jobs();
    let link = links(&network(&harness), is_of_host).remove(0);
    set(&mut harness, &link, false);
    assert_eq!((of(&harness, &[link], true), of(&harness, &["nowhere".into()], true)), (None, None));
}

#[test]
fn few_applications_are_named_and_all_are_counted() {
    let mut harness = fat_tree(RouteSettings::default(), 64 * 1024);
    for job in 1..=12 {
        harness.ask(shuffle(job, &format!("r{job}"), (16, 16), 80 * MIB));
    }
    let all = links(&network(&harness), |_, _| true);
    let found = of(&harness, &all, true).unwrap();
    assert_eq!((found.applications_total, found.applications.len()), (12, crate::flows::carried::APPLICATIONS_NAMED));
}

#[test]
fn applications_whose_routes_were_lost_have_others_or_none() {
    let mut harness = two_jobs();
    let known = network(&harness);
    let applications: BTreeSet<ApplicationId> = [1, 2, 3].map(|id| attempt(id, 1).application).into();
    let now = |harness: &EngineHarness| application_paths(&network(harness), &flows(harness), &applications);
    let before = now(&harness);
    assert_eq!(before.len(), 2, "the third never asked");
    assert!(before.values().all(|paths| paths.whole > 0 && paths.cut == 0), "{before:?}");

    let fabric = links(&known, |network, link| !is_of_host(network, link));
    let busy = fabric.into_iter().find(|link| !by_hand(&harness, std::slice::from_ref(link)).is_empty()).unwrap();
    set(&mut harness, &busy, false);
    assert_eq!(now(&harness), before, "a fat-tree has another path");

    let hosts = links(&known, is_of_host);
    let busy = hosts.into_iter().max_by_key(|link| by_hand(&harness, std::slice::from_ref(link)).len()).unwrap();
    let lost = by_hand(&harness, std::slice::from_ref(&busy));
    assert!(!lost.is_empty(), "somebody's routes were lost");
    set(&mut harness, &busy, false);
    for (application, paths) in now(&harness) {
        let cut = lost.get(&application).map_or(0, |lost| lost.len() as u64);
        let all = before[&application].whole;
        assert_eq!(paths, ApplicationPaths { whole: all - cut, cut }, "{application}");
    }
    done(&mut harness, 1);
    assert!(!now(&harness).contains_key(&attempt(1, 1).application), "its routes are over");
}
