//! The model and its table together.

use super::*;
use crate::units::RackIdx;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp(1_000_000_000);
const CLASSES: DistanceClasses = DistanceClasses { same_host: Micros(10), same_rack: Micros(50), beyond: Micros(200) };

/// Two hosts a rack.
const fn rack(node: u32) -> RackIdx {
    RackIdx(node / 2)
}

fn observe(model: &mut LatencyModel, a: u32, b: u32, rtts: &[u32], at: Timestamp) -> Result<(), LatencyError> {
    model.observe((NodeIdx(a), NodeIdx(b)), (rack(a), rack(b)), RoundTrips { path: 0, rtts, at }, at)
}

fn estimate(table: &LatencyTable, a: u32, b: u32, now: Timestamp) -> (u64, Basis) {
    let found = table.estimate((NodeIdx(a), rack(a)), (NodeIdx(b), rack(b)), &CLASSES, now);
    (found.rtt.0, found.basis)
}

#[test]
fn a_path_counts_with_its_quantile_and_a_pair_with_its_highest_path_each_way() {
    let mut model = LatencyModel::default();
    let tens: Vec<u32> = (1..=10).map(|rtt| rtt * 10).collect();
    observe(&mut model, 1, 0, &tens, NOW).unwrap();
    observe(&mut model, 0, 1, &[42; 10], NOW).unwrap();
    assert_eq!(estimate(model.table(), 0, 1, NOW), (90, Basis::Hosts), "nine of ten are not above 90");
    observe(&mut model, 1, 0, &[20; KEPT], NOW).unwrap();
    assert_eq!(estimate(model.table(), 1, 0, NOW), (42, Basis::Hosts), "the slow ones are forgotten");
    model.configure(LatencySettings { quantile: 0.0, ..LatencySettings::default() });
    observe(&mut model, 2, 3, &[5, 700, 6], NOW).unwrap();
    assert_eq!(estimate(model.table(), 2, 3, NOW).0, 5);
    model.configure(LatencySettings { quantile: 1.0, ..LatencySettings::default() });
    assert_eq!(estimate(model.table(), 2, 3, NOW).0, 700, "what is kept is read anew");
    assert_eq!((model.pairs(), model.table().len()), (3, 3));
}

#[test]
fn what_nobody_measured_of_late_has_its_racks_latency_and_then_that_of_its_distance() {
    let mut model = LatencyModel::default();
    observe(&mut model, 0, 2, &[300], NOW).unwrap();
    let later = NOW.plus(Micros::from_secs(50));
    observe(&mut model, 3, 1, &[120], later).unwrap();
    let table = model.table();
    assert_eq!(estimate(table, 0, 2, later), (300, Basis::Hosts));
    assert_eq!(estimate(table, 0, 3, later), (300, Basis::Racks), "the higher of two: nine tenths are not above it");
    assert_eq!(estimate(table, 0, 1, later), (50, Basis::Distance));
    assert_eq!(estimate(table, 1, 1, later), (10, Basis::Distance));
    let old = NOW.plus(Micros::from_secs(61));
    assert_eq!(estimate(table, 0, 2, old).1, Basis::Racks, "the hosts' is too old");
    assert!(table.counts(old));
    model.forget_old(old);
    assert_eq!((model.pairs(), model.table().len()), (1, 1));
    let ends = ((NodeIdx(0), rack(0)), (NodeIdx(3), rack(3)));
    let measured = model.table().measured(ends.0, ends.1, old);
    assert_eq!(measured.and_then(|found| found.age), Some(Micros::from_secs(11)));
    let gone = later.plus(Micros::from_secs(61));
    assert_eq!(estimate(model.table(), 0, 2, gone), (200, Basis::Distance));
    assert!(!model.table().counts(gone));
    model.forget_old(gone.plus(Micros::from_secs(61)));
    assert!(model.table().is_empty() && model.pairs() == 0);
}

#[test]
fn one_slow_host_does_not_make_its_rack_slow() {
    let racks = (RackIdx(0), RackIdx(1));
    let mut model = LatencyModel::default();
    for a in 0..20 {
        let rtt = if a == 7 { 9_000 } else { 100 + a };
        // However often it is told of, a pair counts once.
        for _ in 0..5 {
            model
                .observe((NodeIdx(a), NodeIdx(100 + a)), racks, RoundTrips { path: 0, rtts: &[rtt], at: NOW }, NOW)
                .unwrap();
        }
    }
    let row = model.table().rack_rows().next().unwrap();
    assert_eq!((row.a, row.b, row.rtt, row.median), (racks.0, racks.1, Micros(118), Micros(110)));
    for a in 30..30 + HOSTS_OF_RACKS as u32 {
        model
            .observe(
                (NodeIdx(100 + a), NodeIdx(a)),
                (racks.1, racks.0),
                RoundTrips { path: 0, rtts: &[500], at: NOW },
                NOW,
            )
            .unwrap();
    }
    assert_eq!(model.table().rack_rows().next().unwrap().median, Micros(500), "those measured last count");
}

/// Agents tell of all that they measure at once: a rack of 20 hosts, each of which measures the next 8.
#[test]
fn one_slow_host_that_tells_of_all_its_pairs_last_does_not_make_its_rack_slow() {
    let (own, mut model) = ((RackIdx(0), RackIdx(0)), LatencyModel::default());
    for slow in [3, 19] {
        for a in (0..20).filter(|a| *a != slow).chain([slow]) {
            for b in (1..=8).map(|step| (a + step) % 20) {
                let rtt = if a == slow || b == slow { 9_000 } else { 50 };
                model
                    .observe((NodeIdx(a), NodeIdx(b)), own, RoundTrips { path: 0, rtts: &[rtt; KEPT], at: NOW }, NOW)
                    .unwrap();
            }
        }
        let row = model.table().rack_rows().next().unwrap();
        assert_eq!((row.rtt, row.median), (Micros(50), Micros(50)), "host {slow} is slow");
    }
    let bare = model.table().without_rows();
    assert!(bare.counts(NOW) && !bare.counts(NOW.plus(Micros::from_secs(61))));
    assert_eq!((bare.len(), bare.rack_rows().count(), bare.parts().count()), (160, 0, 0));
}

#[test]
fn after_a_gap_the_round_trips_before_it_count_no_more() {
    let mut model = LatencyModel::default();
    observe(&mut model, 0, 1, &[900; KEPT + 3], NOW).unwrap();
    let soon = NOW.plus(Micros::from_secs(60));
    observe(&mut model, 0, 1, &[80], soon).unwrap();
    assert_eq!(estimate(model.table(), 0, 1, soon), (900, Basis::Hosts), "60 s are no gap");
    let later = soon.plus(Micros::from_secs(61));
    for rtt in 81..=83 {
        observe(&mut model, 0, 1, &[rtt], later).unwrap();
        assert_eq!(estimate(model.table(), 0, 1, later), (rtt.into(), Basis::Hosts));
    }
}

#[test]
fn what_is_no_round_trip_is_refused_with_its_value_and_changes_nothing() {
    for (rtt, says) in [
        (f64::NAN, "a round trip of NaN µs is no number"),
        (f64::INFINITY, "a round trip of inf µs is no number"),
        (-3.5, "a round trip of -3.5 µs is not above 0"),
        (0.0, "a round trip of 0 µs is not above 0"),
        (6.1e7, "a round trip of 61000000 µs is not believed: at most 60000000 µs"),
    ] {
        assert_eq!(believed(rtt).unwrap_err().to_string(), says);
    }
    assert_eq!((believed(0.2), believed(6e7)), (Ok(1), Ok(60_000_000)));
    let mut model = LatencyModel::new(LatencySettings { pairs: 3, pairs_per_host: 2, ..LatencySettings::default() });
    let mut take = |ends: (u32, u32), path, at| {
        model.observe(
            (NodeIdx(ends.0), NodeIdx(ends.1)),
            (rack(ends.0), rack(ends.1)),
            RoundTrips { path, rtts: &[50], at },
            NOW,
        )
    };
    for (ends, path, at, says) in [
        ((0, 1), 0, NOW.plus(Micros(5_000_001)), "measured 5.000001 s ahead of now: at most 5 s"),
        ((0, 1), 0, Timestamp(NOW.0 - 60_000_001), "measured 60.000001 s ago: at most 60 s"),
        ((0, 1), 4, NOW, "path 4: there are at most 4 of a pair, from 0"),
        ((4, 4), 0, NOW, "node 4 is measured to itself"),
    ] {
        assert_eq!(take(ends, path, at).unwrap_err().to_string(), says);
    }
    take((0, 1), 0, NOW.plus(Micros(5_000_000))).unwrap();
    take((0, 2), 0, NOW).unwrap();
    assert_eq!(take((0, 3), 0, NOW), Err(LatencyError::TooManyOfHost(2)));
    take((1, 0), 3, NOW).unwrap(); // paths 0 to 2 are empty and have no row
    assert_eq!(take((1, 2), 0, NOW), Err(LatencyError::TooManyPairs(3)));
    take((0, 1), 1, NOW).unwrap();
    assert_eq!((model.pairs(), model.table().len()), (3, 4), "one row a path that was measured");
}

#[test]
fn a_clone_never_changes_and_shares_what_did_not_change() {
    let mut model = LatencyModel::default();
    for a in 0..300 {
        observe(&mut model, a, a + 1, &[100], NOW).unwrap();
    }
    let before = model.table().clone();
    observe(&mut model, 70, 71, &[900; KEPT], NOW).unwrap();
    assert_eq!((estimate(&before, 70, 71, NOW).0, estimate(model.table(), 70, 71, NOW).0), (100, 900));
    let shared = before.parts().zip(model.table().parts()).filter(|(a, b)| std::sync::Arc::ptr_eq(a.0, b.0)).count();
    assert_eq!((before.parts().count(), shared), (5 + 3, 5 + 3 - 2), "of hosts 64 to 127, and of their racks");
}

#[test]
fn racks_of_12_500_machines_are_measured_without_a_pair_for_each_two_hosts() {
    let mut model = LatencyModel::default();
    let rack = |node: u32| RackIdx(node / 48);
    for a in 0..12_500_u32 {
        for step in [1, 48, 4_800] {
            let b = (a + step) % 12_500;
            model
                .observe(
                    (NodeIdx(a), NodeIdx(b)),
                    (rack(a), rack(b)),
                    RoundTrips { path: 0, rtts: &[40 + step], at: NOW },
                    NOW,
                )
                .unwrap();
        }
    }
    assert_eq!(model.pairs(), 37_500);
    let found = model.table().estimate((NodeIdx(3), rack(3)), (NodeIdx(4_840), rack(4_840)), &CLASSES, NOW);
    assert_eq!((found.rtt, found.basis), (Micros(4_840), Basis::Racks));
}

#[test]
fn few_round_trips_stand_for_many() {
    assert_eq!(thinned(&[]), Vec::<u32>::new());
    assert_eq!(thinned(&[(70, 0)]), Vec::<u32>::new());
    assert_eq!(thinned(&[(90, 1), (50, 2)]), [50, 50, 90]);
    let half = thinned(&[(100, u64::MAX / 2), (200, u64::MAX / 2)]);
    assert_eq!((half[7], half[8], half.len()), (100, 200, KEPT));
    assert_eq!(thinned(&[(1, 160), (2, 16)]).iter().filter(|rtt| **rtt == 2).count(), 1, "a tenth of them");
}

proptest! {
    #[test]
    fn an_estimate_is_one_of_the_kept_round_trips_and_grows_with_the_quantile(
        rtts in prop::collection::vec(1_u32..2_000, 1..60), quantile in 0.0_f64..=1.0, more in 0.0_f64..=1.0,
    ) {
        let of = |quantile| {
            let mut model = LatencyModel::new(LatencySettings { quantile, ..LatencySettings::default() });
            observe(&mut model, 0, 1, &rtts, NOW).unwrap();
            estimate(model.table(), 0, 1, NOW).0
        };
        prop_assert!(rtts.iter().any(|rtt| u64::from(*rtt) == of(quantile)));
        prop_assert!(of(quantile) <= of(quantile.max(more)));
    }

    #[test]
    fn those_that_stand_for_many_are_among_them_and_in_order(
        counts in prop::collection::vec((1_u32..1_000, 0_u64..40), 0..20),
    ) {
        let found = thinned(&counts);
        let total: u64 = counts.iter().map(|row| row.1).sum();
        prop_assert_eq!(found.len() as u64, total.min(KEPT as u64));
        prop_assert!(found.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(found.iter().all(|rtt| counts.iter().any(|row| row.0 == *rtt && row.1 > 0)));
    }
}
