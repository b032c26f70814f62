//! Turns of heavy shuffles, as the engine gives them: by what jobs say, and by what earlier runs tell.

use super::flows::wired;
use super::harness::EngineHarness;
use crate::holding::Teller;
use crate::holding::wish::{ShuffleWish, WishTurn};
use crate::holding::{Shuffle, Turn};
use crate::testing::attempt;
use crate::{EdgeHistory, LearnedGroup, LearnedRun, Proof, RouteSettings};
use hintd_model::cluster::EdgePattern;
use hintd_model::network::build::{self, TreeSpec};
use hintd_model::units::{BitsPerSec, Bytes, Micros, Timestamp};

const KEY: &str = "mapreduce:ann:sort";
const MB: u64 = 1_000_000;

/// Three racks of two nodes for eight containers each; uplinks of 10 Mbit/s, so that 7.5 MB are two seconds of all three.
fn cluster() -> EngineHarness {
    let spec = TreeSpec {
        racks: 3,
        hosts_per_rack: 2,
        cores: 1,
        host_bits_per_s: BitsPerSec(100_000_000),
        uplink_bits_per_s: BitsPerSec(10_000_000),
        ..TreeSpec::default()
    };
    wired(RouteSettings::default(), build::tree(&spec).unwrap(), 8 * 1_024)
}

fn shuffle(mb: u64) -> Shuffle {
    Shuffle { bytes: Bytes(mb * MB), receivers: 10, received: 0, fetched: Bytes::ZERO }
}

fn wish(number: u32, mb: u64) -> ShuffleWish {
    ShuffleWish {
        attempt: attempt(number, 1),
        group: "p10".into(),
        recurring_key: None,
        shuffle: shuffle(mb),
        seen: None,
        memory_mb: 1_024,
        asked_in: None,
        homes: Vec::new(),
    }
}

fn turn(harness: &mut EngineHarness, wish: &ShuffleWish) -> Turn {
    harness.engine.shuffle_turn(wish, &Proof::Trusted, harness.now).unwrap().turn
}

#[test]
fn heavy_shuffles_take_turns_and_the_end_of_an_attempt_ends_its_own() {
    let mut harness = cluster();
    assert_eq!(turn(&mut harness, &wish(4, 7)), Turn::Free, "7 MB are not heavy here");
    // A quarter of 48 containers, and a quarter of that for the next.
    assert_eq!(turn(&mut harness, &wish(3, 30)), Turn::AtMost(12));
    assert_eq!(turn(&mut harness, &wish(2, 20)), Turn::AtMost(12));
    assert_eq!(turn(&mut harness, &wish(1, 10)), Turn::AtMost(12));
    assert_eq!(turn(&mut harness, &wish(3, 30)), Turn::Held { before: 2 });
    harness.ask(crate::testing::request("r1", &[("p10", 1)]));
    let told = |harness: &EngineHarness| harness.engine.attempts_held()[0].turn.map(|told| (told.turn, told.asked));
    assert_eq!(told(&harness), Some((Turn::AtMost(12), 1)), "operators see what it was told");
    turn(&mut harness, &ShuffleWish { shuffle: Shuffle { receivers: 0, ..shuffle(10) }, ..wish(1, 10) });
    assert_eq!(told(&harness), Some((Turn::Free, 2)), "it wishes for none any more");
    turn(&mut harness, &wish(1, 10));
    assert!(harness.engine.end_attempt(attempt(1, 1), harness.now));
    assert_eq!(turn(&mut harness, &wish(3, 30)), Turn::AtMost(3));
}

#[test]
fn who_falls_silent_holds_up_nobody() {
    let mut harness = cluster();
    for number in [2, 3, 4] {
        turn(&mut harness, &wish(number, u64::from(number) * 10));
    }
    assert_eq!(turn(&mut harness, &wish(4, 40)), Turn::Held { before: 2 });
    harness.now = harness.now.plus(Micros::from_secs(31));
    assert_eq!(turn(&mut harness, &wish(4, 40)), Turn::AtMost(12), "nobody else was heard of for 31 s");
}

#[test]
fn bytes_of_earlier_runs_stand_in_where_the_job_says_none() {
    let mut harness = cluster();
    let unknown = ShuffleWish { recurring_key: Some(KEY.into()), ..wish(1, 0) };
    let of = |harness: &mut EngineHarness| harness.engine.shuffle_turn(&unknown, &Proof::Trusted, harness.now).unwrap();
    assert_eq!(of(&mut harness), WishTurn { turn: Turn::Free, bytes: Bytes::ZERO, teller: None });
    let group = |name: &str| LearnedGroup {
        name: name.into(),
        count: 6,
        memory_mb: 0,
        input_paths: vec![],
        input: Bytes::ZERO,
    };
    let edge = |to: &str, mb: u64| EdgeHistory {
        from: "p20".into(),
        to: to.into(),
        pattern: EdgePattern::AllToAll,
        bytes: Bytes(mb * MB),
    };
    let run = LearnedRun {
        finished: Timestamp(1),
        groups: vec![group("p20"), group("p10")],
        edges: vec![edge("p10", 90), edge("p11", 1_000)],
        whole: None,
    };
    assert!(harness.engine.learnt(&KEY.into(), &run, harness.now));
    let known = |mb, teller| WishTurn { turn: Turn::AtMost(12), bytes: Bytes(mb * MB), teller: Some(teller) };
    assert_eq!(of(&mut harness), known(90, Teller::History));
    let mut said = |wish| harness.engine.shuffle_turn(&wish, &Proof::Trusted, harness.now).unwrap();
    let seen = ShuffleWish { seen: Some(shuffle(60)), ..unknown.clone() };
    assert_eq!(said(seen.clone()), known(60, Teller::ApplicationMaster), "it is this run's");
    assert_eq!(said(ShuffleWish { shuffle: shuffle(70), ..seen }), known(70, Teller::Caller));
}

#[test]
fn what_the_application_master_counts_is_what_the_order_goes_by() {
    let mut harness = cluster();
    let seen = |mb, fetched, received| Some(Shuffle { fetched: Bytes(fetched * MB), received, ..shuffle(mb) });
    for number in [1, 2] {
        let found = turn(&mut harness, &ShuffleWish { seen: seen(u64::from(number) * 10, 0, 0), ..wish(number, 0) });
        assert_eq!(found, Turn::AtMost([12, 3][number as usize - 1]));
    }
    let third = |fetched, received| ShuffleWish { seen: seen(40, fetched, received), ..wish(3, 0) };
    assert_eq!(turn(&mut harness, &third(0, 0)), Turn::Held { before: 2 });
    assert_eq!(turn(&mut harness, &third(25, 0)), Turn::AtMost(3), "15 MB are left");
    assert_eq!(turn(&mut harness, &third(0, 9)), Turn::AtMost(12), "4 MB are left");
    let heard = ShuffleWish { shuffle: Shuffle { received: 10, ..shuffle(0) }, ..third(0, 9) };
    assert_eq!(turn(&mut harness, &heard), Turn::Free, "who wishes heard of the last one's end");
}

#[test]
fn who_wishes_for_no_receivers_yet_is_not_in_the_order() {
    let mut harness = cluster();
    for number in [1, 2] {
        let early = ShuffleWish { shuffle: Shuffle { receivers: 0, ..shuffle(10) }, ..wish(number, 10) };
        assert_eq!(turn(&mut harness, &early), Turn::Free);
    }
    assert_eq!(turn(&mut harness, &wish(3, 30)), Turn::AtMost(12));
    assert_eq!(turn(&mut harness, &wish(4, 40)), Turn::AtMost(3));
}

#[test]
fn who_stays_in_its_home_rack_takes_turns_with_those_there_alone() {
    let mut harness = cluster();
    let at = |number, mb, racks: &[&str]| {
        let homes = racks.iter().map(|&rack| rack.into()).collect();
        ShuffleWish { homes, ..wish(number, mb) }
    };
    for number in [1, 2] {
        assert_eq!(turn(&mut harness, &wish(number, 10)), Turn::AtMost([12, 3][number as usize - 1]));
    }
    assert_eq!(turn(&mut harness, &wish(3, 90)), Turn::Held { before: 2 });
    // Two nodes take 25 MB a second: 50 MB are two seconds of them. Half of 16 containers.
    assert_eq!(turn(&mut harness, &at(4, 45, &["/rack-01"])), Turn::Free);
    let home = [(5, 60), (6, 70), (7, 80)].map(|(number, mb)| turn(&mut harness, &at(number, mb, &["/rack-01"])));
    assert_eq!(home, [Turn::AtMost(16), Turn::AtMost(4), Turn::Held { before: 2 }]);
    assert_eq!(turn(&mut harness, &at(8, 80, &["/rack-02"])), Turn::AtMost(16), "another rack");
    // Half of it crosses two racks' uplinks: 5 MB are not heavy. One of the two is gone: all of it is in the other.
    assert_eq!(turn(&mut harness, &at(9, 10, &["/rack-01", "/rack-02"])), Turn::Free);
    assert_eq!(turn(&mut harness, &at(9, 30, &["/rack-01", "/rack-02"])), Turn::Held { before: 2 });
    assert_eq!(turn(&mut harness, &at(9, 80, &["/gone", "/rack-02"])), Turn::AtMost(4));
    assert_eq!(turn(&mut harness, &at(9, 80, &["/gone"])), Turn::Held { before: 2 });
}

#[test]
fn where_the_caller_asks_for_receivers_says_whose_turn_it_waits_for() {
    let mut harness = cluster();
    let homes = || vec!["/rack-01".into()];
    let at_home = |number, mb| ShuffleWish { homes: homes(), ..wish(number, mb) };
    let asked = |racks: &[&str], wish| {
        let asked_in = Some(racks.iter().map(|&rack| rack.into()).collect());
        ShuffleWish { asked_in, ..wish }
    };
    // Half of the 16 containers at home; what hintd takes for its home stands where the caller does not say.
    for number in [1, 2] {
        assert_eq!(turn(&mut harness, &at_home(number, 60)), Turn::AtMost([16, 4][number as usize - 1]));
    }
    assert_eq!(turn(&mut harness, &at_home(3, 90)), Turn::Held { before: 2 });
    // It gave its home up: a quarter of all 48, and nobody at home waits for it any more.
    assert_eq!(turn(&mut harness, &asked(&[], at_home(2, 60))), Turn::AtMost(12));
    assert_eq!(turn(&mut harness, &at_home(3, 90)), Turn::AtMost(4));
    // On the uplinks it stands before others.
    assert_eq!(turn(&mut harness, &wish(4, 70)), Turn::AtMost(3));
    assert_eq!(turn(&mut harness, &wish(5, 80)), Turn::Held { before: 2 });
    // It is back, and hintd knew nothing of a home of the next.
    assert_eq!(turn(&mut harness, &asked(&["/rack-01"], at_home(2, 60))), Turn::AtMost(4));
    assert_eq!(
        turn(&mut harness, &asked(&["/rack-02", "/rack-02"], wish(5, 80))),
        Turn::AtMost(16),
        "a rack twice is one"
    );
    assert_eq!(turn(&mut harness, &asked(&["/gone"], wish(6, 80))), Turn::AtMost(3), "one that is not there is none");
}

#[test]
fn what_the_cluster_carries_is_worked_out_once_for_a_snapshot() {
    let mut harness = cluster();
    let looks = |harness: &EngineHarness| harness.engine.generation().scans.fabric().looks();
    for number in 1..=20 {
        assert_ne!(turn(&mut harness, &wish(number, 30)), Turn::Free);
    }
    assert_eq!(looks(&harness), 2, "all racks once, all nodes once");
    assert_ne!(turn(&mut harness, &ShuffleWish { memory_mb: 2_048, ..wish(1, 30) }), Turn::Free);
    assert_eq!(looks(&harness), 3, "another size of containers");
    // Two thirds of the memory more: a quarter of 80 containers.
    harness.register("more", "/rack-01", 32 * 1_024);
    harness.publish();
    assert_eq!((looks(&harness), turn(&mut harness, &wish(1, 30))), (0, Turn::AtMost(20)));
    turn(&mut harness, &wish(2, 30));
    assert_eq!(looks(&harness), 2, "another snapshot is looked at once, too");
}

#[test]
fn sizes_of_containers_beyond_those_kept_are_counted_each_time() {
    let mut harness = cluster();
    let mut of = |memory_mb| turn(&mut harness, &ShuffleWish { memory_mb, ..wish(1, 30) });
    for round in 0..2 {
        for size in 1..=12 {
            // A quarter of what six nodes of 8 GB hold, at least one.
            let all = 6 * (8 * 1_024 / (size * 512)) as u32;
            assert_eq!(of(size * 512), Turn::AtMost((all / 4).max(1)), "round {round}");
        }
    }
}
