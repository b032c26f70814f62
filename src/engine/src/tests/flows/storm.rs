//! Thousands of random failures, repairs, jobs and acknowledgements, with everything that must hold after each.

use super::super::harness::EngineHarness;
use super::controller::Controller;
use super::{MIB, done, fat_tree, flows, network, shuffle};
use crate::{Phase, RouteSettings};
use hintd_model::cluster::{Change, NodePair, RunningFlows};
use hintd_model::network::{Network, host_paths};
use hintd_model::units::{BitsPerSec, DirectedLinkIdx, LinkIdx, Micros};
use hintd_policy::FlowIndex;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;

struct Storm {
    harness: EngineHarness,
    controller: Controller,
    random: ChaCha8Rng,
    running: Vec<u32>,
    next: u32,
}

/// What a step did to the network.
#[derive(Debug, Clone, PartialEq)]
enum Did {
    Link { links: Vec<LinkIdx>, lost: bool },
    Capacity(LinkIdx),
    Other,
}

impl Storm {
    fn new(seed: u64, settings: RouteSettings) -> Self {
        let mut harness = fat_tree(settings, 16 * 1024);
        let mut controller = Controller::default();
        controller.watch(&mut harness, false);
        Self { harness, controller, random: ChaCha8Rng::seed_from_u64(seed), running: Vec::new(), next: 1 }
    }

    fn step(&mut self) -> Did {
        match self.random.random_range(0..20) {
            0..=7 => self.link(),
            8..=10 => self.switch(),
            11..=12 => self.capacity(),
            13..=15 => self.start(),
            16 => self.end(),
            17 => {
                let (from, to) = (self.controller.acknowledged + 1, self.controller.last);
                if from <= to {
                    let number = self.random.random_range(from..=to);
                    self.controller.acknowledge(&mut self.harness, number);
                }
                Did::Other
            }
            18 => {
                self.harness.pass(Micros(100_000));
                Did::Other
            }
            _ => {
                self.harness.pass(Micros::from_secs(1));
                Did::Other
            }
        }
    }

    fn link(&mut self) -> Did {
        let network = network(&self.harness);
        let all: Vec<_> = network.links().map(|(index, link)| (index, link.name.clone(), link.up)).collect();
        // Failed ones are mended as often as others fail.
        let down: Vec<_> = all.iter().filter(|(.., up)| !up).cloned().collect();
        let mend = !down.is_empty() && self.random.random_bool(0.5);
        let (index, link, up) = if mend { &down } else { &all }.choose(&mut self.random).unwrap().clone();
        self.harness.change(Change::Link { link, up: Some(!up), capacity: None });
        Did::Link { links: vec![index], lost: up }
    }

    fn switch(&mut self) -> Did {
        let network = network(&self.harness);
        let all: Vec<_> = network.vertices().filter(|(_, vertex)| !vertex.is_host()).collect();
        let down: Vec<_> = all.iter().filter(|(index, _)| !network.switch_up(*index)).copied().collect();
        let (index, vertex) = *if down.len() > 2 { &down } else { &all }.choose(&mut self.random).unwrap();
        let up = network.switch_up(index);
        let links = network.links_of(index).map(|(link, _)| link).collect();
        self.harness.change(Change::Switch { name: vertex.name.clone(), up: !up });
        Did::Link { links, lost: up }
    }

    fn capacity(&mut self) -> Did {
        let network = network(&self.harness);
        let all: Vec<_> = network.links().map(|(index, link)| (index, link.name.clone())).collect();
        let (index, link) = all.choose(&mut self.random).unwrap().clone();
        let capacity = BitsPerSec(1_000_000_000 * self.random.random_range(1..=10_u64));
        self.harness.change(Change::Link { link, up: None, capacity: Some(capacity) });
        Did::Capacity(index)
    }

    fn start(&mut self) -> Did {
        if self.running.len() >= 6 {
            return self.end();
        }
        self.next += 1;
        let counts = (self.random.random_range(1..6), self.random.random_range(1..6));
        let bytes = self.random.random_range(0..40) * MIB;
        let request = shuffle(self.next, &format!("job-{}", self.next), counts, bytes);
        if self.harness.propose(&Arc::new(request.clone())).is_ok() {
            self.harness.ask(request);
            self.running.push(self.next);
        }
        Did::Other
    }

    fn end(&mut self) -> Did {
        if let Some(&application) = self.running.choose(&mut self.random) {
            done(&mut self.harness, application);
            self.running.retain(|other| *other != application);
        }
        Did::Other
    }

    /// Everything that holds whatever happens.
    fn check(&mut self) {
        let snapshot = Arc::clone(self.harness.engine.current_snapshot());
        let settings = self.harness.settings.routes.clone();
        self.harness.engine.flows_mut().check((&snapshot, &settings));
        let (topology, network, flows) = (&snapshot.topology, network(&self.harness), flows(&self.harness));
        let waits = self.harness.engine.flows().waits();
        for (pair, route) in flows.routes.iter() {
            let ends = [pair.from, pair.to].map(|node| topology.vertex[node.at()].unwrap());
            let paths = topology.paths().unwrap();
            if route.links.is_empty() {
                let live = host_paths(&network, paths, ends[0], ends[1]).next();
                assert!(waits || live.is_none(), "{pair:?} has no route, but there is {live:?}");
                continue;
            }
            let mut here = ends[0];
            let mut passed = BTreeSet::from([here]);
            for link in route.links.iter() {
                let known = network.link_at(LinkIdx(link.0 / 2));
                let (tail, head) = if link.0 % 2 == 0 { (known.a, known.b) } else { (known.b, known.a) };
                assert_eq!(tail, here);
                assert!(passed.insert(head), "{pair:?} loops");
                assert!(head == ends[1] || !network.vertex_at(head).is_host(), "{pair:?} passes a host");
                assert!(waits || network.is_usable(LinkIdx(link.0 / 2)), "{pair:?} uses a dead link");
                here = head;
            }
            assert_eq!(here, ends[1]);
        }
    }

    /// What did not have to move did not.
    fn check_moves(&self, before: &RunningFlows, did: &Did) {
        let now = flows(&self.harness);
        let concerned = |pair: &NodePair, links: &[LinkIdx]| {
            let over = |route: &[DirectedLinkIdx]| route.iter().any(|link| links.contains(&LinkIdx(link.0 / 2)));
            let routes = [before, &now].map(|flows| flows.routes.get(pair).map(|route| Arc::clone(&route.links)));
            routes.iter().flatten().any(|route| over(route)) || routes[0].as_ref().is_none_or(|route| route.is_empty())
        };
        for (pair, route) in now.routes.iter() {
            let Some(old) = before.routes.get(pair).filter(|old| old.links != route.links) else {
                continue;
            };
            if !old.installed || !route.installed {
                continue; // default forwarding takes the shortest path of now
            }
            match did {
                Did::Link { links, lost: true } => {
                    let hit = old.links.iter().any(|link| links.contains(&LinkIdx(link.0 / 2)));
                    assert!(hit, "{pair:?} moved, and was not on {links:?}");
                }
                // To a first route that has one of these, or from none.
                Did::Link { links, lost: false } => {
                    assert!(concerned(pair, links), "{pair:?} moved to nothing new")
                }
                Did::Capacity(link) => assert!(concerned(pair, &[*link]), "{pair:?} moved, and was not on {link:?}"),
                Did::Other => {}
            }
        }
    }

    /// By a planned change alone, utility does not fall: against the old routes in the network of now.
    fn check_utility(&self, before: &RunningFlows, failovers: usize) {
        let now = flows(&self.harness);
        let same_jobs = before.jobs.len() == now.jobs.len()
            && before.jobs.iter().zip(&now.jobs).all(|(a, b)| a.decision == b.decision && a.traffic == b.traffic);
        let plain = |flows: &RunningFlows| -> Vec<_> {
            flows
                .routes
                .iter()
                .filter(|(_, route)| !route.installed)
                .map(|(pair, route)| (*pair, route.links.clone()))
                .collect()
        };
        if !same_jobs || self.failovers() > failovers || plain(before) != plain(&now) {
            return;
        }
        let snapshot = self.harness.engine.current_snapshot();
        let network = snapshot.topology.network.as_deref().unwrap();
        let utility = |flows: &RunningFlows| FlowIndex::of(network, &snapshot.topology, flows).utility();
        let (old, new) = (utility(before), utility(&now));
        assert!(new >= old * (1.0 - 1e-9), "utility fell from {old} to {new} by a planned change");
    }

    fn failovers(&self) -> usize {
        self.controller.phases.get(&Phase::Failover).copied().unwrap_or(0)
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let (before, failovers) = (flows(&self.harness), self.failovers());
            let waited = self.harness.engine.flows().waits();
            let did = self.step();
            self.harness.publish();
            self.controller.hear(&mut self.harness);
            self.check();
            if !waited && !self.harness.engine.flows().waits() {
                self.check_moves(&before, &did);
            }
            self.check_utility(&before, failovers);
        }
        self.controller.settle(&mut self.harness);
        self.controller.check_clean();
    }
}

fn whole(network: &Network) -> bool {
    network.links().all(|(index, _)| network.is_usable(index))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn routes_stay_sound_through_thousands_of_failures_and_repairs(seed in any::<u64>()) {
        // No pair rests in rules that flapping holds back; acknowledgements may take their time.
        let settings = RouteSettings { ack_timeout: Micros::from_secs(3_600), min_bytes: hintd_model::units::Bytes(MIB), ..RouteSettings::default() };
        let mut storm = Storm::new(seed, settings);
        storm.run(400);
    }

    #[test]
    fn with_few_rules_and_few_changes_a_second_routes_are_sound_as_well(seed in any::<u64>()) {
        let settings = RouteSettings {
            ack_timeout: Micros::from_secs(3_600),
            rules_per_switch: 6,
            changes_per_s: 5,
            ..RouteSettings::default()
        };
        let mut storm = Storm::new(seed, settings);
        storm.run(200);
        // What waits has its turn.
        for _ in 0..40 {
            storm.harness.pass(Micros::from_secs(1));
            storm.controller.settle(&mut storm.harness);
        }
        storm.harness.publish();
        prop_assert!(!storm.harness.engine.flows().waits());
        storm.check();
    }
}

#[test]
fn when_all_is_mended_every_pair_has_a_route_and_rules_are_clean() {
    let mut storm = Storm::new(3, RouteSettings { ack_timeout: Micros::from_secs(3_600), ..RouteSettings::default() });
    storm.run(200);
    let network = network(&storm.harness);
    for (_, vertex) in network.vertices().filter(|(_, vertex)| !vertex.is_host()) {
        storm.harness.change(Change::Switch { name: vertex.name.clone(), up: true });
    }
    for (_, link) in network.links() {
        storm.harness.change(Change::Link { link: link.name.clone(), up: Some(true), capacity: None });
    }
    storm.harness.publish();
    assert!(whole(&super::network(&storm.harness)));
    storm.harness.pass(Micros::from_secs(60));
    storm.harness.publish();
    storm.controller.settle(&mut storm.harness);
    storm.controller.check_clean();
    storm.check();
    assert!(flows(&storm.harness).routes.iter().all(|(_, route)| !route.links.is_empty()));
    assert!(storm.failovers() > 0 && storm.controller.phases.contains_key(&Phase::Make));
}
