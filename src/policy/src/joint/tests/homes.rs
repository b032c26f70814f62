//! Racks for a job's input, or for the job: against every set of racks, and by whose blocks lie where.

use super::super::homes::{self, Home, Reader};
use super::super::*;
use super::{MB, small};
use crate::advise::{EarlierRun, HomeRack, InputState, Lies};
use crate::sample::Sample;
use hintd_model::units::{Bytes, Micros, Timestamp};
use proptest::prelude::*;

/// Of an input whose places are known.
const BLOCKS: u64 = 12;

/// A job of which each map and reduce takes ten seconds.
fn earlier(input_mb: u64, shuffle_mb: u64, maps: u32, reduces: u32) -> EarlierRun {
    let each = Micros::from_secs(10);
    EarlierRun {
        key: "job".into(),
        input: Bytes(input_mb * MB),
        shuffle: Bytes(shuffle_mb * MB),
        maps: (maps, each),
        reduces: (reduces, each),
    }
}

/// The least cost over all sets of racks which have room for their part of the input.
fn least_cost(problem: &HomesProblem<'_>) -> f64 {
    let all = homes::homes(problem);
    let uplinks = homes::uplinks(&all);
    let sets = (1_u32..1 << all.len())
        .map(|set| -> Vec<Home> { (0..all.len()).filter(|at| set >> at & 1 == 1).map(|at| all[at]).collect() });
    let has_room = |set: &Vec<Home>| {
        let part = problem.run.input.as_f64() / set.len() as f64;
        problem.input != InputState::Unwritten
            || set.iter().all(|home| part <= problem.racks[home.rack.at()].disk.as_f64())
    };
    let reader = Reader::of(problem);
    let all = (all.len(), reader.last(&all));
    let bearable = |set: &Vec<Home>| reader.bearable(set, all);
    let costs = sets.filter(has_room).filter(bearable).map(|set| reader.cost(&set, uplinks));
    costs.fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn homes_cost_no_more_than_any_other_set_of_racks_and_have_room(
        racks in prop::collection::vec((0_u32..6, 0_u64..3_000, 0_f64..200.0, 0_f64..1e9, 0_f64..1e9), 4),
        (input, shuffle, maps, reduces) in (0_u64..4_000, 0_u64..4_000, 1_u32..60, 0_u32..60),
        (seed, written, others) in (any::<u64>(), any::<bool>(), 0_u32..6),
        (blocks_known, lies, alike) in (any::<bool>(), prop::collection::vec(0..=BLOCKS, 4), any::<bool>()),
    ) {
        let sample = small(4, 8);
        let rack = |&(slots, disk, work_s, up, into): &(u32, u64, f64, f64, f64)| {
            HomeRack { slots: if alike { slots.min(1) * 3 } else { slots }, disk: Bytes(disk * MB), work_s, up, into }
        };
        let racks: Vec<HomeRack> = racks.iter().map(rack).collect();
        let run = earlier(input, shuffle, maps, reduces);
        let there: Vec<u64> = lies.iter().map(|&share| share.min(BLOCKS)).collect();
        let lies = (blocks_known && there.iter().any(|&blocks| blocks > 0)).then_some(Lies { blocks: BLOCKS, by_rack: &there });
        let input_state = if written { InputState::Written { others, lies } } else { InputState::Unwritten };
        let problem = HomesProblem { snapshot: &sample.snapshot, run: &run, racks: &racks, seed, input: input_state };
        let chosen = homes::choose(&problem);
        prop_assert_eq!(&homes::choose(&problem), &chosen, "a seed gives one choice");
        prop_assert!(chosen.is_sorted_by(|a, b| a < b));
        let all = homes::homes(&problem);
        let uplinks = homes::uplinks(&all);
        let (least, reader) = (least_cost(&problem), Reader::of(&problem));
        // Where blocks lie and racks differ in room, the last to end is not known before the set is: no best is promised.
        let exact = !written || lies.is_none() || alike;
        if run.shuffle.as_f64() < 0.01 * uplinks || written && shuffle < input {
            prop_assert_eq!(&chosen, &[], "not worth waiting for a rack");
        } else if chosen.is_empty() {
            // All of them, or none that could: HDFS places as ever.
            let all = if all.is_empty() { f64::INFINITY } else { reader.cost(&all, uplinks) };
            prop_assert!(!exact || all <= least * (1.0 + 1e-9) || least.is_infinite(), "{} above {}", all, least);
        } else {
            let taken: Vec<Home> = all.into_iter().filter(|home| chosen.contains(&home.rack)).collect();
            prop_assert_eq!(taken.len(), chosen.len(), "a rack without containers");
            let part = run.input.as_f64() / chosen.len() as f64;
            let fits = written || chosen.iter().all(|rack| part <= racks[rack.at()].disk.as_f64());
            prop_assert!(fits, "no room for its part");
            let all = homes::homes(&problem);
            prop_assert!(reader.bearable(&taken, (all.len(), reader.last(&all))), "its own end is too late");
            let cost = reader.cost(&taken, uplinks);
            prop_assert!(!exact || cost <= least * (1.0 + 1e-9), "{} above {}", cost, least);
            prop_assert!(!written || cost <= reader.cost(&all, uplinks) * (1.0 + 1e-9), "worse than in all racks");
        }
    }

    #[test]
    fn whatever_is_homed_no_rack_gets_more_than_it_has_room_for(
        jobs in prop::collection::vec((1_u64..500, 0_u64..4_000, 1_u64..200), 1..40),
        disk in 1_u64..2_000,
    ) {
        let sample = small(4, 8);
        let mut book = HomeBook::new(&sample.snapshot, [(16, Bytes(disk * MB)); 4]);
        let mut homed = [0.0; 4];
        let mut now = 0;
        for (input, shuffle, later) in jobs {
            now += later * 1_000_000;
            let run = earlier(input, shuffle, 8, 4);
            let racks = book.racks(Timestamp(now));
            let chosen = homes::choose(&HomesProblem { snapshot: &sample.snapshot, run: &run, racks, seed: 1, input: InputState::Unwritten });
            chosen.iter().for_each(|rack| homed[rack.at()] += run.input.as_f64() / chosen.len() as f64);
            book.add(&chosen, &run, InputState::Unwritten);
        }
        // A byte of rounding for each job.
        prop_assert!(homed.iter().all(|&bytes| bytes <= (disk * MB + 40) as f64), "{:?}", homed);
    }
}

#[test]
fn heavy_shuffles_get_a_rack_each_in_turns_and_wide_jobs_none() {
    let sample = small(4, 8);
    let mut book = HomeBook::new(&sample.snapshot, [(16, Bytes(u64::MAX)); 4]);
    let shuffles = earlier(1_000, 1_000, 8, 4);
    let mut used = Vec::new();
    for _ in 0..8 {
        let racks = book.racks(Timestamp(0));
        let homes = homes::choose(&HomesProblem {
            snapshot: &sample.snapshot,
            run: &shuffles,
            racks,
            seed: 1,
            input: InputState::Unwritten,
        });
        assert_eq!(homes.len(), 1, "{homes:?}");
        used.push(homes[0]);
        book.add(&homes, &shuffles, InputState::Unwritten);
    }
    for turn in used.chunks(4) {
        assert_eq!(turn.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{used:?}");
    }
    // When all is done the racks are alike again, and the seed draws.
    let racks = book.racks(Timestamp(u64::MAX));
    assert!(racks.iter().all(|rack| (rack.work_s, rack.up, rack.into) == (0.0, 0.0, 0.0)), "{racks:?}");
    let choice = |seed| {
        homes::choose(&HomesProblem {
            snapshot: &sample.snapshot,
            run: &shuffles,
            racks,
            seed,
            input: InputState::Unwritten,
        })[0]
    };
    assert_eq!((0..100).map(choice).collect::<std::collections::BTreeSet<_>>().len(), 4);
    // Many maps and next to no shuffle: containers are what it needs.
    let wide = earlier(1_000, 1, 4_000, 1);
    assert_eq!(
        homes::choose(&HomesProblem {
            snapshot: &sample.snapshot,
            run: &wide,
            racks,
            seed: 1,
            input: InputState::Unwritten
        }),
        []
    );
}

#[test]
fn a_job_whose_input_is_written_is_gathered_where_it_shuffles_what_it_reads_or_more() {
    // Uplinks of 10 Mbit/s: a rack's carries 1.25 MB a second.
    let sample = small(4, 8);
    let racks = [HomeRack { slots: 16, disk: Bytes(0), ..HomeRack::default() }; 4];
    let choose = |run: &EarlierRun, racks: &[HomeRack], input| {
        homes::choose(&HomesProblem { snapshot: &sample.snapshot, run, racks, seed: 1, input })
    };
    let (beside, written) =
        (|others| InputState::Written { others, lies: None }, InputState::Written { others: 3, lies: None });
    let gathered = |input, shuffle| choose(&earlier(input, shuffle, 8, 4), &racks, written).len();
    // Of a block both racks are others with 1/2: 50 of 100 MB take 40 s, and the shuffle nothing instead of 150 s.
    assert_eq!(gathered(100, 1_000), 1, "full disks are no reason: nothing is written");
    assert_eq!(
        choose(&earlier(100, 1_000, 8, 4), &racks, InputState::Unwritten),
        [],
        "for what is to be written they are"
    );
    // One rack reads 200 MB in 160 s, more than all of it takes in four racks. Three have a replica of every block, and send
    // 267 MB where four send 300.
    assert_eq!(gathered(400, 400), 3);
    assert_eq!(gathered(1_000, 999), 0, "it reads more than it shuffles");
    // In three racks it ends later itself than in four; from two others on what these gain is more.
    let of = |others| choose(&earlier(400, 400, 8, 4), &racks, beside(others)).len();
    assert_eq!([0, 1, 2, 3, 100].map(of), [0, 0, 3, 3, 3], "it is gathered for the sake of those that run beside it");
    // A rack where much is to be done is none to be gathered in.
    let mut busy = racks;
    busy[0].up = 1e9;
    assert_ne!(choose(&earlier(100, 1_000, 8, 4), &busy, written), [RackIdx(0)]);
    // What is gathered takes its turn among those that come after it, on uplinks and containers, and no disk.
    let mut book = HomeBook::new(&sample.snapshot, [(16, Bytes(10 * MB)); 4]);
    let run = earlier(100, 1_000, 8, 4);
    book.add(&[RackIdx(2)], &run, written);
    let rack = book.racks(Timestamp(0))[2];
    assert_eq!((rack.work_s, rack.up, rack.into, rack.disk), (120.0, 50e6, 1_050e6, Bytes(10 * MB)));
}

/// The part of its input that a job reads from other racks, as the book has it for those after it.
fn far(racks: usize, homes: &[u32], lies: Option<Lies<'_>>) -> f64 {
    let sample = small(racks, 8);
    let mut book = HomeBook::new(&sample.snapshot, vec![(16, Bytes(0)); racks]);
    let homes: Vec<RackIdx> = homes.iter().map(|&rack| RackIdx(rack)).collect();
    book.add(&homes, &earlier(1_000, 0, 8, 4), InputState::Written { others: 0, lies });
    book.racks(Timestamp(0)).iter().map(|rack| rack.up).sum::<f64>() / 1e9
}

#[test]
fn what_a_gathered_job_reads_from_elsewhere_is_as_many_blocks_as_lie_there() {
    // A block for each pair of racks: what is drawn, in the mean.
    for racks in 3..6 {
        let pairs: Vec<[u32; 2]> = (0..racks).flat_map(|one| (one + 1..racks).map(move |other| [one, other])).collect();
        let by_rack = vec![u64::from(racks) - 1; racks as usize];
        let lies = Lies { blocks: pairs.len() as u64, by_rack: &by_rack };
        for width in 1..=racks {
            let homes: Vec<u32> = (0..width).collect();
            let neither = pairs.iter().filter(|pair| pair.iter().all(|rack| *rack >= width)).count();
            let share = neither as f64 / pairs.len() as f64;
            for known in [Some(lies), None] {
                let found = far(racks as usize, &homes, known);
                assert!((found - share).abs() < 1e-9, "{width} of {racks}: {found}, not {share}");
            }
        }
    }
    // Of one rack its own count is all that matters; a block may be in one rack alone, or in three.
    for by_rack in [[5, 3, 4], [6, 0, 0], [6, 6, 6], [1, 1, 1]] {
        for home in 0..3 {
            let found = far(3, &[home], Some(Lies { blocks: 6, by_rack: &by_rack }));
            let share = 1.0 - by_rack[home as usize] as f64 / 6.0;
            assert!((found - share).abs() < 1e-9, "{by_rack:?} in rack {home}: {found}, not {share}");
        }
    }
    assert_eq!(far(3, &[1], Some(Lies { blocks: 6, by_rack: &[0; 3] })), far(3, &[1], None), "nobody knows");
}

#[test]
fn a_job_is_gathered_where_most_of_its_blocks_lie_unless_much_is_to_be_done_there() {
    let sample = small(4, 8);
    let racks = [HomeRack { slots: 16, disk: Bytes(0), ..HomeRack::default() }; 4];
    let run = earlier(100, 1_000, 8, 4);
    let choose = |racks: &[HomeRack], by_rack: &[u64], seed| {
        let input = InputState::Written { others: 3, lies: Some(Lies { blocks: 8, by_rack }) };
        homes::choose(&HomesProblem { snapshot: &sample.snapshot, run: &run, racks, seed, input })
    };
    for seed in 0..20 {
        assert_eq!(choose(&racks, &[3, 4, 3, 6], seed), [RackIdx(3)]);
        // In rack 3 it reads 25 MB, in rack 1 50: 20 s more of its own uplink, and 15 s of all for three others. What is to be
        // done on the uplink matters beyond the 40 s that the shuffle takes into the nodes.
        let mut busy = racks;
        busy[3].up = 100e6;
        assert_eq!(choose(&busy, &[3, 4, 3, 6], seed), [RackIdx(1)], "seed {seed}");
        busy[3].up = 90e6;
        assert_eq!(choose(&busy, &[3, 4, 3, 6], seed), [RackIdx(3)], "seed {seed}");
    }
    // A run of far more maps is another stage's, or of other data.
    let of_many = |blocks| {
        let input = InputState::Written { others: 3, lies: Some(Lies { blocks, by_rack: &[0, 0, 0, blocks] }) };
        homes::choose(&HomesProblem { snapshot: &sample.snapshot, run: &run, racks: &racks, seed: 1, input })
    };
    assert_eq!((of_many(16), of_many(17)), (vec![RackIdx(3)], Vec::new()));
    // Blocks also lie in a rack that has no containers.
    let sample_of_three = small(3, 8);
    let slots = |slots| HomeRack { slots, ..racks[0] };
    for seed in 0..20 {
        let input = InputState::Written { others: 3, lies: Some(Lies { blocks: 8, by_rack: &[4, 8, 4] }) };
        let racks = [slots(16), slots(16), slots(0)];
        let problem = HomesProblem { snapshot: &sample_of_three.snapshot, run: &run, racks: &racks, seed, input };
        assert_eq!(homes::choose(&problem), [RackIdx(1)], "seed {seed}");
    }
    let drawn: std::collections::BTreeSet<_> = (0..100).map(|seed| choose(&racks, &[4; 4], seed)).collect();
    assert_eq!(drawn.len(), 4, "equals are drawn by the seed");
}

fn advice(sample: &Sample, block: u64, homes: &[RackIdx]) -> Vec<ReplicaAdvice> {
    let problem = DataProblem {
        snapshot: &sample.snapshot,
        path: "/a".into(),
        block,
        reader: None,
        plan: None,
        homes,
        now: Timestamp(0),
        writer: None,
        replication: 3,
        seed: 1,
    };
    Joint::default().place_data(&problem).unwrap()
}

#[test]
fn a_block_has_one_replica_at_home_and_the_others_as_hdfs_puts_them() {
    let sample = small(4, 8);
    let [one, three] = [RackIdx(1), RackIdx(3)];
    let default = ReplicaAdvice::Default;
    assert_eq!(advice(&sample, 0, &[one, three]), [ReplicaAdvice::Rack(one), default, default]);
    assert_eq!(advice(&sample, 5, &[one, three]), [ReplicaAdvice::Rack(three), default, default]);
    assert_eq!(advice(&sample, 5, &[]), [default; 3]);
}
