//! Hand-computed runs, and random ones against a simulation that finds all rates anew at every event.

use super::*;
use proptest::prelude::*;

/// Path, bytes, start in seconds.
type TestFlow = (Vec<DirectedLinkIdx>, u64, f64);

fn path(links: &[u32]) -> Vec<DirectedLinkIdx> {
    links.iter().copied().map(DirectedLinkIdx).collect()
}

fn advance(net: &mut FluidNetwork, to_s: f64) -> Vec<Completion> {
    let mut ended = Vec::new();
    net.advance(to_s, &mut ended);
    ended
}

/// Ends of flows, starts not descending.
fn ends(capacities: &[f64], flows: &[TestFlow]) -> Vec<f64> {
    let mut net = FluidNetwork::new(capacities).unwrap();
    let mut running = std::collections::BTreeMap::new();
    let mut ends = vec![f64::NAN; flows.len()];
    for (at, (path, bytes, start_s)) in flows.iter().enumerate() {
        for end in advance(&mut net, *start_s) {
            ends[running[&end.flow]] = end.at_s;
        }
        running.insert(net.start(path, Bytes(*bytes), 1).unwrap(), at);
    }
    for end in advance(&mut net, f64::INFINITY) {
        ends[running[&end.flow]] = end.at_s;
    }
    assert_eq!(net.events(), 2 * flows.len() as u64);
    ends
}

/// The same by brute force: at every event all rates from nothing, all flows brought up to date.
fn plain_ends(capacities: &[f64], flows: &[TestFlow]) -> Vec<f64> {
    let mut left: Vec<f64> = flows.iter().map(|flow| flow.1 as f64 * 8.0).collect();
    let mut ends = vec![f64::NAN; flows.len()];
    let mut now = 0.0;
    while ends.iter().any(|end| end.is_nan()) {
        let runs: Vec<usize> = (0..flows.len()).filter(|&at| ends[at].is_nan() && flows[at].2 <= now).collect();
        let mut rates = MaxMin::new(capacities).unwrap();
        let indexes: Vec<FlowIdx> = runs.iter().map(|&at| rates.add(&flows[at].0, 1).unwrap()).collect();
        rates.recompute_rates();
        let rate: Vec<f64> = indexes.iter().map(|&flow| rates.rate(flow).unwrap()).collect();
        let done = runs.iter().zip(&rate).map(|(&at, rate)| now + left[at] / rate).fold(f64::INFINITY, f64::min);
        let start = flows.iter().map(|flow| flow.2).filter(|&start| start > now).fold(f64::INFINITY, f64::min);
        let next = done.min(start);
        for (&at, rate) in runs.iter().zip(&rate) {
            left[at] -= rate * (next - now);
            if left[at] <= flows[at].1 as f64 * 1e-11 {
                ends[at] = next;
            }
        }
        now = next;
    }
    ends
}

#[test]
fn a_flow_speeds_up_when_another_ends() {
    // 8 bit/s shared: 4 each until the short one's 4 bytes are through at 8 s; the long one's 12 bytes: 4 by then,
    // the other 8 at 1 byte/s.
    assert_eq!(ends(&[8.0], &[(path(&[0]), 4, 0.0), (path(&[0]), 12, 0.0)]), [8.0, 16.0]);
}

#[test]
fn an_arrival_slows_what_runs_and_a_gap_in_time_sends_nothing() {
    // Alone for 2 s (2 bytes), together from 2 s at half a byte/s: the second's 1 byte ends at 4 s, the first has 1
    // byte left then. The third starts on an empty network.
    let flows = [(path(&[0]), 4, 0.0), (path(&[0]), 1, 2.0), (path(&[0]), 2, 100.0)];
    assert_eq!(ends(&[8.0], &flows), [5.0, 4.0, 102.0]);
}

#[test]
fn like_flows_started_as_one_end_as_if_started_alone() {
    let run = |members: u32, times: u32| {
        let mut net = FluidNetwork::new(&[1e9, 1e10 / 3.0]).unwrap();
        net.start(&path(&[0, 1]), Bytes(123_457), 1).unwrap();
        (0..times).for_each(|_| _ = net.start(&path(&[1]), Bytes(1_000_003), members).unwrap());
        let ends = advance(&mut net, f64::INFINITY);
        (ends[0].at_s.to_bits(), ends.last().unwrap().at_s.to_bits())
    };
    assert_eq!(run(7, 1), run(1, 7));
}

#[test]
fn a_flow_stands_still_on_a_dead_link_and_goes_on_when_it_is_back() {
    let mut net = FluidNetwork::new(&[8.0]).unwrap();
    let flow = net.start(&path(&[0]), Bytes(10), 1).unwrap();
    assert_eq!(net.next_completion_s(), Some(10.0));
    assert!(advance(&mut net, 4.0).is_empty());
    net.set_capacity(DirectedLinkIdx(0), 0.0).unwrap();
    assert_eq!(net.next_completion_s(), None);
    assert!(advance(&mut net, f64::INFINITY).is_empty());
    assert!(advance(&mut net, 50.0).is_empty());
    assert_eq!(net.left_bytes(flow), Some(6.0));
    net.set_capacity(DirectedLinkIdx(0), 16.0).unwrap();
    assert_eq!(advance(&mut net, 60.0), [Completion { flow, at_s: 53.0 }]);
    assert_eq!((net.now_s(), net.left_bytes(flow)), (60.0, None));
}

#[test]
fn with_a_tolerance_too_flows_stand_still_on_a_dead_link_whatever_held_them() {
    for cap in [f64::INFINITY, 4.0] {
        let mut net = FluidNetwork::new(&[8.0, 16.0]).unwrap().with_tolerance(0.005);
        let before = net.start_capped(&path(&[0, 1]), Bytes(10), 1, cap).unwrap();
        net.advance(1.0, &mut Vec::new());
        net.set_capacity(DirectedLinkIdx(0), 0.0).unwrap();
        assert_eq!(net.next_completion_s(), None, "{cap}");
        let after = net.start_capped(&path(&[0, 1]), Bytes(10), 1, cap).unwrap();
        assert_eq!(net.next_completion_s(), None, "{cap}");
        net.advance(100.0, &mut Vec::new());
        net.set_capacity(DirectedLinkIdx(0), 8.0).unwrap();
        let mut ended = Vec::new();
        net.advance(f64::INFINITY, &mut ended);
        assert_eq!(ended.iter().map(|end| end.flow).collect::<Vec<_>>(), [before, after], "{cap}");
    }
}

#[test]
fn a_flow_stands_still_on_a_dead_link_with_a_tolerance_too() {
    for capacities in [[0.0, 100e6], [100e6, 0.0]] {
        let mut net = FluidNetwork::new(&capacities).unwrap().with_tolerance(0.005);
        net.start_capped(&path(&[0, 1]), Bytes(1_000), 3, 50e6).unwrap();
        assert_eq!(net.next_completion_s(), None, "{capacities:?}");
        let dead = capacities.iter().position(|&bits_per_s| bits_per_s == 0.0).unwrap();
        net.set_capacity(DirectedLinkIdx::new(dead), 8_000.0).unwrap();
        assert!((net.next_completion_s().unwrap() - 3.0).abs() < 0.05, "3 × 1,000 bytes at 1,000 bytes/s");
    }
}

#[test]
fn a_cancelled_flow_never_ends_and_leaves_its_share() {
    let mut net = FluidNetwork::new(&[8.0]).unwrap();
    let [goes, stays] = [8, 8].map(|bytes| net.start(&path(&[0]), Bytes(bytes), 1).unwrap());
    advance(&mut net, 2.0);
    assert_eq!(net.rates().load(DirectedLinkIdx(0)), 8.0);
    assert!(net.cancel(goes) && !net.cancel(goes));
    assert_eq!(advance(&mut net, f64::INFINITY), [Completion { flow: stays, at_s: 9.0 }]);
    assert!(net.is_empty());
}

#[test]
fn a_flow_without_bytes_ends_where_it_starts_even_on_a_dead_link() {
    let mut net = FluidNetwork::new(&[0.0]).unwrap();
    advance(&mut net, 3.0);
    let flow = net.start(&path(&[0]), Bytes(0), 1).unwrap();
    assert_eq!(advance(&mut net, 3.0), [Completion { flow, at_s: 3.0 }]);
}

/// Between the two starts at 0.2 s a rate goes up, and back after the second.
#[test]
fn a_rate_taken_back_within_a_moment_leaves_no_trace() {
    let flow = |links: &[u32], bytes, at| (path(links).to_vec(), bytes, at);
    let mut flows = vec![
        flow(&[2], 1_000_000, 0.0),
        flow(&[5], 41_414_086, 0.0),
        flow(&[0, 5], 10_416_667, 0.0),
        flow(&[0], 13_958_334, 0.01),
        flow(&[4], 48_481_245, 0.06),
        flow(&[4, 5], 37_979_176, 0.1),
        flow(&[4], 2_351_040, 0.2),
        flow(&[0], 1_000_000, 0.2),
    ];
    let capacities = [1e9, 1e9, 8_545_866_705.580_014, 1e9, 1e9, 1e9];
    let mut ours = ends(&capacities, &flows);
    flows.swap(6, 7);
    ours.swap(6, 7);
    assert_eq!(ours, ends(&capacities, &flows));
}

fn instance() -> impl Strategy<Value = (Vec<f64>, Vec<TestFlow>)> {
    let capacity = prop_oneof![3 => Just(1e9), 1 => 1e8..1e10];
    let flow = (
        prop::collection::btree_set(0_u32..6, 1..4),
        prop_oneof![1 => Just(1_000_000_u64), 2 => 1_u64..100_000_000],
        0_u32..40,
    );
    (prop::collection::vec(capacity, 6), prop::collection::vec(flow, 1..25)).prop_map(|(capacities, mut flows)| {
        flows.sort_by_key(|flow| flow.2);
        let flow = |(links, bytes, slot): (std::collections::BTreeSet<u32>, u64, u32)| {
            (links.into_iter().map(DirectedLinkIdx).collect(), bytes, f64::from(slot) * 0.01)
        };
        (capacities, flows.into_iter().map(flow).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn flows_end_when_a_simulation_from_scratch_says((capacities, flows) in instance()) {
        for (ours, plain) in ends(&capacities, &flows).into_iter().zip(plain_ends(&capacities, &flows)) {
            prop_assert!((ours - plain).abs() <= 1e-10 * plain, "{} is not {}", ours, plain);
        }
    }

    #[test]
    fn the_order_of_starts_at_one_moment_does_not_matter((capacities, flows) in instance()) {
        let mut order: Vec<usize> = (0..flows.len()).rev().collect();
        order.sort_by(|&a, &b| flows[a].2.total_cmp(&flows[b].2));
        let turned: Vec<_> = order.iter().map(|&at| flows[at].clone()).collect();
        let ours = ends(&capacities, &flows);
        for (&at, again) in order.iter().zip(ends(&capacities, &turned)) {
            prop_assert_eq!(ours[at].to_bits(), again.to_bits());
        }
    }
}

/// A shuffle: 30 racks with an uplink and a downlink each, batches of like fetches with a limit of their own; each end is
/// followed by a start on another path. Returns ends by number of start.
fn shuffle(seed: u64, tolerance: f64, single: bool) -> Vec<f64> {
    use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || {
        let (from, to) = (rng.random_range(0..10_u32), rng.random_range(0..9_u32));
        let to = if to >= from { to + 1 } else { to };
        let bytes = Bytes(rng.random_range(100_000..20_000_000));
        (path(&[from, 10 + to]), bytes, rng.random_range(1..6_u32))
    };
    let draws: Vec<_> = (0..1_000).map(|_| draw()).collect();
    let mut net = FluidNetwork::new(&[1e9; 20]).unwrap().with_tolerance(tolerance);
    let (mut ends, mut numbers, mut started) = (vec![0.0; draws.len()], std::collections::BTreeMap::new(), 0);
    let start = |net: &mut FluidNetwork, numbers: &mut std::collections::BTreeMap<FlowIdx, usize>, number: usize| {
        let (path, bytes, members) = &draws[number];
        for _ in 0..if single { *members } else { 1 } {
            let members = if single { 1 } else { *members };
            numbers.insert(net.start_capped(path, *bytes, members, 50e6).unwrap(), number);
        }
    };
    // Starts at moments of their own, so that all runs start the same flows at the same moments.
    while started < draws.len() {
        for end in advance(&mut net, started as f64 * 0.02) {
            ends[numbers[&end.flow]] = end.at_s;
        }
        start(&mut net, &mut numbers, started);
        started += 1;
    }
    for end in advance(&mut net, f64::INFINITY) {
        ends[numbers[&end.flow]] = end.at_s;
    }
    ends
}

#[test]
fn batches_of_like_fetches_end_bit_for_bit_as_single_ones() {
    assert_eq!(shuffle(1, 0.0, false), shuffle(1, 0.0, true));
}

#[test]
fn a_tolerance_moves_the_ends_of_a_shuffle_by_less_than_a_hundredth() {
    for seed in 0..3 {
        let (exact, near) = (shuffle(seed, 0.0, false), shuffle(seed, 0.005, false));
        assert_ne!(exact, near, "the tolerance is used");
        for (number, (exact, near)) in exact.iter().zip(&near).enumerate() {
            let took = exact - number as f64 * 0.02;
            assert!((exact - near).abs() <= 0.01 * took, "flow {number} took {took} s, {near} is not {exact}");
        }
    }
}
