//! Rates against plain water-filling and hand-computed cases; histories against each other, bit for bit.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn links(indexes: &[u32]) -> Vec<DirectedLinkIdx> {
    indexes.iter().copied().map(DirectedLinkIdx).collect()
}

/// Adds flows of weight 1 and returns their rates.
fn rates_of(capacities: &[f64], paths: &[&[u32]]) -> Vec<f64> {
    let mut net = MaxMin::new(capacities).unwrap();
    let flows: Vec<FlowIdx> = paths.iter().map(|path| net.add(&links(path), 1).unwrap()).collect();
    net.recompute_rates();
    flows.iter().map(|&flow| net.rate(flow).unwrap()).collect()
}

/// Progressive filling as the textbook has it: raise all rates together, freeze the flows of the link that fills
/// first, go on with the rest.
///
/// A flow's own limit is a link that nobody else passes, `members` times as wide.
fn water_filling(capacities: &[f64], flows: &[(Vec<DirectedLinkIdx>, u32, f64)]) -> Vec<f64> {
    let mut left = capacities.to_vec();
    let mut limited = Vec::new();
    for (path, weight, cap) in flows {
        let mut path = path.clone();
        if cap.is_finite() {
            path.push(DirectedLinkIdx::new(left.len()));
            left.push(cap * f64::from(*weight));
        }
        limited.push((path, *weight));
    }
    let flows = limited;
    let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
    while rates.iter().any(Option::is_none) {
        let waiting = |link: usize| {
            let over = flows
                .iter()
                .zip(&rates)
                .filter(|((path, _), rate)| rate.is_none() && path.iter().any(|other| other.at() == link));
            over.map(|((_, weight), _)| f64::from(*weight)).sum::<f64>()
        };
        let shares = (0..left.len()).filter(|&link| waiting(link) > 0.0).map(|link| (left[link] / waiting(link), link));
        let (level, full) = shares.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        for ((path, weight), rate) in flows.iter().zip(&mut rates) {
            if rate.is_none() && path.iter().any(|link| link.at() == full) {
                let own = level * f64::from(*weight);
                *rate = Some(own);
                path.iter().for_each(|link| left[link.at()] = (left[link.at()] - own).max(0.0));
            }
        }
    }
    rates.into_iter().flatten().collect()
}

#[derive(Debug, Clone)]
enum Step {
    Add(Vec<prop::sample::Index>, u32, f64),
    Members(prop::sample::Index, u32),
    Remove(prop::sample::Index),
    Resize(prop::sample::Index, f64),
    Settle,
}

/// Few different capacities: ties are where orders could matter.
fn capacity() -> impl Strategy<Value = f64> {
    prop_oneof![4 => Just(1e10), 2 => Just(2e10), 2 => Just(1e9 / 3.0), 2 => 1.0..1e11, 1 => Just(0.0)]
}

fn step() -> impl Strategy<Value = Step> {
    let path = prop::collection::vec(any::<prop::sample::Index>(), 1..6);
    let weight = prop_oneof![3 => Just(1_u32), 1 => 1_u32..50];
    // Of few limits some tie with links' shares.
    let cap = prop_oneof![3 => Just(f64::INFINITY), 1 => Just(2.5e9), 1 => Just(1e9), 1 => 1e7..1e10];
    prop_oneof![
        5 => (path, weight, cap).prop_map(|(path, weight, cap)| Step::Add(path, weight, cap)),
        2 => (any::<prop::sample::Index>(), 0_u32..20).prop_map(|(flow, members)| Step::Members(flow, members)),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (any::<prop::sample::Index>(), capacity()).prop_map(|(link, bits)| Step::Resize(link, bits)),
        3 => Just(Step::Settle),
    ]
}

struct World {
    net: MaxMin,
    capacities: Vec<f64>,
    flows: Vec<(FlowIdx, Vec<DirectedLinkIdx>, u32, f64)>,
    /// Levels at the last check, by flow.
    levels: BTreeMap<FlowIdx, f64>,
}

impl World {
    fn new(capacities: Vec<f64>) -> Self {
        Self { net: MaxMin::new(&capacities).unwrap(), capacities, flows: Vec::new(), levels: BTreeMap::new() }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Add(path, weight, cap) => {
                let mut path: Vec<_> =
                    path.iter().map(|link| DirectedLinkIdx::new(link.index(self.capacities.len()))).collect();
                path.sort_unstable();
                path.dedup();
                let flow = self.net.add_capped(&path, *weight, *cap).unwrap();
                self.flows.push((flow, path, *weight, *cap));
            }
            Step::Members(which, members) if !self.flows.is_empty() => {
                let at = which.index(self.flows.len());
                let flow = self.flows[at].0;
                assert!(self.net.set_members(flow, *members));
                assert_eq!(self.net.members(flow), *members);
                self.flows[at].2 = *members;
                if *members == 0 {
                    self.flows.remove(at);
                    self.levels.remove(&flow);
                }
            }
            Step::Remove(which) if !self.flows.is_empty() => {
                let (flow, ..) = self.flows.remove(which.index(self.flows.len()));
                assert!(self.net.remove(flow));
                self.levels.remove(&flow);
            }
            Step::Resize(link, bits) => {
                let link = link.index(self.capacities.len());
                self.capacities[link] = *bits;
                self.net.set_capacity(DirectedLinkIdx::new(link), *bits).unwrap();
            }
            Step::Remove(_) | Step::Members(..) | Step::Settle => {}
        }
    }

    /// Settles and checks everything that can be known from outside.
    fn check(&mut self) {
        let mut told = self.net.recompute_rates().to_vec();
        told.sort_unstable();
        let levels: BTreeMap<_, _> = self.flows.iter().map(|flow| (flow.0, self.net.level(flow.0).unwrap())).collect();
        let moved = levels.iter().filter(|(flow, level)| self.levels.get(flow) != Some(level));
        assert_eq!(told, moved.map(|(flow, _)| *flow).collect::<Vec<_>>(), "told is what changed, all of it");
        self.levels = levels;
        let plain: Vec<_> = self.flows.iter().map(|(_, path, weight, cap)| (path.clone(), *weight, *cap)).collect();
        for ((flow, ..), expected) in self.flows.iter().zip(water_filling(&self.capacities, &plain)) {
            let rate = self.net.rate(*flow).unwrap();
            assert!((rate - expected).abs() <= 1e-12 * expected, "{rate} is not {expected}");
        }
        self.check_history();
        self.check_loads();
    }

    /// The same flows added in the opposite order, their paths turned round, to a new instance.
    fn check_history(&self) {
        let (mut fresh, mut pairs) = (MaxMin::new(&self.capacities).unwrap(), Vec::new());
        for (flow, path, weight, cap) in self.flows.iter().rev() {
            let path: Vec<_> = path.iter().rev().copied().collect();
            let again = fresh.add_capped(&path, *weight, *cap).unwrap();
            fresh.recompute_rates();
            pairs.push((*flow, again));
        }
        for (flow, again) in pairs {
            let bits = |net: &MaxMin, flow| net.rate(flow).unwrap().to_bits();
            assert_eq!(bits(&self.net, flow), bits(&fresh, again), "rates remember how they came about");
            assert_eq!(self.net.bottleneck(flow), fresh.bottleneck(again));
        }
    }

    fn check_loads(&self) {
        for (link, &capacity) in self.capacities.iter().enumerate() {
            let over = self.flows.iter().filter(|(_, path, ..)| path.contains(&DirectedLinkIdx::new(link)));
            let load: f64 = over.map(|(flow, ..)| self.net.rate(*flow).unwrap()).sum();
            let told = self.net.load(DirectedLinkIdx::new(link));
            assert!((told - load).abs() <= 1e-12 * capacity.max(1e-3), "{told} is not {load}");
            assert!(load <= capacity * (1.0 + 1e-12), "{load} over {capacity}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rates_are_those_of_water_filling_and_forget_their_history(
        capacities in prop::collection::vec(capacity(), 1..12),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(capacities);
        for step in &steps {
            world.take(step);
            if matches!(step, Step::Settle) {
                world.check();
            }
        }
        world.check();
        while let Some((flow, ..)) = world.flows.pop() {
            world.net.remove(flow);
            world.net.recompute_rates();
        }
        prop_assert!((0..world.capacities.len()).all(|link| world.net.load(DirectedLinkIdx::new(link)) == 0.0));
    }

    #[test]
    fn with_a_tolerance_links_stay_within_it_and_flows_at_their_lowest_link(
        capacities in prop::collection::vec(1e9..1e11, 1..12),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(capacities);
        world.net.set_tolerance(0.01);
        for step in steps.iter().filter(|step| !matches!(step, Step::Resize(..))) {
            world.take(step);
            world.net.recompute_rates();
            let mut held = vec![0.0; world.capacities.len()];
            for (flow, path, weight, cap) in &world.flows {
                let levels = path.iter().map(|&link| world.net.level_of(link));
                prop_assert_eq!(world.net.level(*flow), Some(levels.fold(*cap, f64::min)));
                if let Some(link) = world.net.bottleneck(*flow) {
                    held[link.at()] += world.net.level(*flow).unwrap() * f64::from(*weight);
                }
            }
            for (link, &capacity) in world.capacities.iter().enumerate() {
                let load = world.net.load(DirectedLinkIdx::new(link));
                prop_assert!(load <= capacity * 1.01 * (1.0 + 1e-9), "{} over {}", load, capacity);
                prop_assert!(held[link] == 0.0 || load >= capacity * 0.99 * (1.0 - 1e-9), "{} under {}", load, capacity);
            }
        }
    }

    #[test]
    fn like_flows_get_what_one_flow_of_their_weight_gets(
        capacities in prop::collection::vec(capacity(), 2..6),
        flows in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_u32..6), 1..12),
    ) {
        let (mut one, mut many) = (MaxMin::new(&capacities).unwrap(), MaxMin::new(&capacities).unwrap());
        let mut pairs = Vec::new();
        for (from, to, weight) in flows {
            let mut path = vec![DirectedLinkIdx::new(from.index(capacities.len())), DirectedLinkIdx::new(to.index(capacities.len()))];
            path.dedup();
            let flow = one.add(&path, weight).unwrap();
            pairs.extend((0..weight).map(|_| (flow, many.add(&path, 1).unwrap())));
        }
        one.recompute_rates();
        many.recompute_rates();
        for (flow, single) in pairs {
            prop_assert_eq!(one.level(flow).unwrap().to_bits(), many.rate(single).unwrap().to_bits());
        }
    }
}

#[test]
fn hand_computed_rates_are_exact() {
    // One link shared by three.
    assert_eq!(rates_of(&[9.0], &[&[0], &[0], &[0]]), [3.0; 3]);
    // The textbook's line: a long flow over two links, one short flow on each.
    assert_eq!(rates_of(&[10.0, 4.0], &[&[0, 1], &[0], &[1]]), [2.0, 8.0, 2.0]);
    // Both ends equal: the tie changes nothing.
    assert_eq!(rates_of(&[8.0, 8.0, 8.0], &[&[0, 1], &[1, 2], &[2, 0]]), [4.0; 3]);
}

#[test]
fn a_flow_of_weight_three_gets_three_shares() {
    let mut net = MaxMin::new(&[8.0]).unwrap();
    let [heavy, light] = [3, 1].map(|weight| net.add(&links(&[0]), weight).unwrap());
    assert_eq!(net.recompute_rates().len(), 2);
    assert_eq!([heavy, light].map(|flow| net.rate(flow).unwrap()), [6.0, 2.0]);
    assert_eq!(net.level(heavy), net.level(light));
    assert!(net.remove(heavy) && !net.remove(heavy));
    assert_eq!(net.recompute_rates(), [light]);
    assert_eq!((net.rate(light), net.rate(heavy), net.len()), (Some(8.0), None, 1));
}

#[test]
fn a_flow_takes_no_more_than_its_own_limit_and_others_take_what_it_leaves() {
    let mut net = MaxMin::new(&[10.0]).unwrap();
    let held = net.add_capped(&links(&[0]), 2, 1.0).unwrap();
    let free = net.add(&links(&[0]), 1).unwrap();
    net.recompute_rates();
    assert_eq!([held, free].map(|flow| net.rate(flow).unwrap()), [2.0, 8.0]);
    assert_eq!([held, free].map(|flow| net.bottleneck(flow)), [None, Some(DirectedLinkIdx(0))]);
    assert!(net.set_members(held, 19));
    net.recompute_rates();
    assert_eq!([held, free].map(|flow| net.rate(flow).unwrap()), [9.5, 0.5]);
    assert!(net.set_members(held, 0) && !net.set_members(held, 1));
    assert_eq!(net.recompute_rates(), [free]);
    for bad in [0.0, -1.0, f64::NAN] {
        assert!(matches!(net.add_capped(&links(&[0]), 1, bad), Err(MaxMinError::Cap { .. })), "{bad}");
    }
}

#[test]
fn a_dead_link_stops_its_flows_and_frees_what_they_took() {
    let mut net = MaxMin::new(&[10.0, 10.0]).unwrap();
    let both = net.add(&links(&[0, 1]), 1).unwrap();
    let one = net.add(&links(&[0]), 1).unwrap();
    net.recompute_rates();
    net.set_capacity(DirectedLinkIdx(1), 0.0).unwrap();
    net.recompute_rates();
    assert_eq!([both, one].map(|flow| net.rate(flow).unwrap()), [0.0, 10.0]);
    net.set_capacity(DirectedLinkIdx(1), 2.0).unwrap();
    net.recompute_rates();
    assert_eq!([both, one].map(|flow| net.rate(flow).unwrap()), [2.0, 8.0]);
    assert_eq!(net.bottleneck(both), Some(DirectedLinkIdx(1)));
}

#[test]
fn only_what_a_change_reaches_is_computed_again() {
    // 100 islands of two links; then a chain on which the arrival changes the last link's flows only.
    let mut net = MaxMin::new(&[10.0; 200]).unwrap();
    let flows: Vec<FlowIdx> = (0..100)
        .flat_map(|island| [vec![2 * island, 2 * island + 1], vec![2 * island]])
        .map(|path| net.add(&links(&path), 1).unwrap())
        .collect();
    net.recompute_rates();
    let before = net.evaluations();
    let new = net.add(&links(&[40]), 1).unwrap();
    let mut changed = net.recompute_rates().to_vec();
    changed.sort_unstable();
    assert_eq!(changed, [flows[40], flows[41], new]);
    assert!(net.evaluations() - before <= 3, "{} links were looked through", net.evaluations() - before);
    // A flow whose link lies above all others of its neighbours moves nothing below.
    let mut net = MaxMin::new(&[1.0, 100.0]).unwrap();
    let slow = net.add(&links(&[0, 1]), 1).unwrap();
    net.recompute_rates();
    let fast = net.add(&links(&[1]), 1).unwrap();
    assert_eq!(net.recompute_rates(), [fast]);
    assert_eq!([slow, fast].map(|flow| net.rate(flow).unwrap()), [1.0, 99.0]);
}

#[test]
fn a_flow_that_came_and_went_between_two_recomputes_leaves_no_trace() {
    let mut net = MaxMin::new(&[10.0]).unwrap();
    let stays = net.add(&links(&[0]), 1).unwrap();
    net.recompute_rates();
    let passing = net.add(&links(&[0]), 1).unwrap();
    net.remove(passing);
    assert!(net.recompute_rates().is_empty());
    let passing = net.add(&links(&[0]), 1).unwrap();
    net.remove(passing);
    let next = net.add(&links(&[0]), 4).unwrap();
    assert_eq!(next, passing, "the place is used again");
    assert_eq!(net.recompute_rates().len(), 2);
    assert_eq!([stays, next].map(|flow| net.rate(flow).unwrap()), [2.0, 8.0]);
}

#[test]
fn what_is_no_flow_or_capacity_is_refused_and_changes_nothing() {
    let mut net = MaxMin::new(&[10.0, 10.0]).unwrap();
    let said = |result: Result<FlowIdx, MaxMinError>| result.unwrap_err().to_string();
    assert_eq!(said(net.add(&[], 1)), "the path is empty");
    assert_eq!(said(net.add(&links(&[0, 7]), 1)), "the path names link 7, there are 2");
    assert_eq!(said(net.add(&links(&[0, 1, 0]), 1)), "the path passes link 0 twice");
    assert_eq!(said(net.add(&links(&[0]), 0)), "the weight is 0");
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e19, 1e-300] {
        assert!(MaxMin::new(&[bad]).is_err(), "{bad}");
        assert!(net.set_capacity(DirectedLinkIdx(0), bad).is_err(), "{bad}");
    }
    assert!(net.set_capacity(DirectedLinkIdx(2), 1.0).is_err());
    assert!(net.is_empty() && net.recompute_rates().is_empty());
    assert_eq!(net.capacity(DirectedLinkIdx(0)), 10.0);
}

#[test]
fn each_direction_of_a_networks_link_is_a_link_of_its_own() {
    let mut network = crate::network::build::tree(&crate::network::build::TreeSpec::default()).unwrap().network;
    let hosts: Vec<_> = network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(at, _)| at).collect();
    let (first, last) = (hosts[0], hosts[hosts.len() - 1]);
    let [there, back] = [(first, last), (last, first)].map(|(a, b)| {
        let path = crate::network::shortest_path(&network, a, b).unwrap();
        directed(&network, &path)
    });
    assert_eq!((there.len(), back.len()), (4, 4));
    assert!(there.iter().all(|link| !back.contains(link)));
    let link = LinkIdx(there[0].0 / 2);
    assert_eq!(capacities(&network)[there[0].at()], network.link_at(link).capacity.as_f64());
    network.set_link(link, Some(false), None);
    assert_eq!(capacities(&network)[there[0].at()], 0.0);
}
