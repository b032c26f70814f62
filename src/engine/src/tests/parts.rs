//! Groups that are asked for in parts, as held reduces are: placed as one. The cluster is that of the guard's tests: three racks
//! of two nodes with narrow uplinks, and maps that have come and send 25 MB each.

use super::guard::{by_rack, cluster, maps_came, reason, reduces};
use super::harness::{EngineHarness, container};
use crate::decision::{TermsOfWhole, WithheldReason};
use crate::testing::attempt;
use crate::{Answer, Refusal, TaskWhat};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{LeaseId, Micros};
use proptest::prelude::*;
use std::sync::Arc;

/// One job whose reduces are asked for in parts.
struct Job {
    harness: EngineHarness,
    hosts: Vec<String>,
    recurs: bool,
    /// Of how many reduces in all, as requests say.
    whole: u32,
    asked: u32,
    came: u64,
    by_host: [u32; 6],
}

impl Job {
    fn new(maps: &[u64], whole: u32) -> Self {
        let (mut harness, hosts) = cluster("joint");
        maps_came(&mut harness, &hosts, maps);
        Self { harness, hosts, recurs: true, whole, asked: 0, came: 0, by_host: [0; 6] }
    }

    fn ask(&mut self, count: u32) -> Arc<Answer> {
        self.asked += 1;
        let mut asked =
            HintRequest { id: format!("part-{}", self.asked).as_str().into(), ..reduces(count, self.recurs) };
        asked.groups[0].whole = self.whole;
        (asked.framework, asked.groups[0].role) = ("mapreduce".into(), "reduce".into());
        self.harness.ask(asked)
    }

    fn came(&mut self, host: usize, lease: Option<LeaseId>) {
        self.came += 1;
        self.by_host[host] += 1;
        let what = TaskWhat::Allocated {
            host: self.hosts[host].as_str().into(),
            container: container(attempt(1, 1), 1_000 + self.came),
            lease,
        };
        self.harness.event(attempt(1, 1), "p10", what);
    }

    /// A part is asked for, and what is hinted comes on its host; nodes that have something else's turn take the rest.
    fn part(&mut self, count: u32) -> Arc<Answer> {
        let answer = self.ask(count);
        let mut unhinted = count;
        for hint in &answer.decision.hints {
            let host = self.hosts.iter().position(|host| host == hint.host.as_str()).unwrap();
            hint.leases.iter().for_each(|lease| self.came(host, Some(*lease)));
            unhinted -= hint.count;
        }
        for _ in 0..unhinted {
            self.came(self.came as usize % 6, None);
        }
        self.harness.publish();
        answer
    }

    fn racks(&self) -> [u32; 3] {
        [0, 1, 2].map(|rack| self.by_host[2 * rack] + self.by_host[2 * rack + 1])
    }
}

/// Seconds of the busiest link, by what is sent between racks and nodes alone.
fn busiest(maps: &[u64], reduces: &[u32; 6]) -> f64 {
    let all: f64 = reduces.iter().map(|&count| f64::from(count)).sum();
    let sent: f64 = maps.iter().map(|&maps| maps as f64 * 25e6).sum();
    let link = |hosts: std::ops::Range<usize>, bytes_per_s: f64| {
        let own: f64 = hosts.clone().map(|host| maps.get(host).map_or(0.0, |&maps| maps as f64 * 25e6)).sum();
        let part = hosts.map(|host| f64::from(reduces[host])).sum::<f64>() / all;
        (own * (1.0 - part)).max((sent - own) * part) / bytes_per_s
    };
    let nodes = (0..6).map(|host| link(host..host + 1, 12.5e6));
    let racks = (0..3).map(|rack| link(2 * rack..2 * rack + 2, 1.25e6));
    nodes.chain(racks).fold(0.0, f64::max)
}

#[test]
fn reduces_asked_for_in_parts_end_where_all_of_them_would_be() {
    let cases: [(&[u64], [u32; 3]); 3] =
        [(&[1, 1, 1, 1, 1, 1], [2, 2, 2]), (&[2, 1, 1, 0, 1, 1], [3, 1, 2]), (&[1, 2, 1, 1, 1, 0], [3, 2, 1])];
    for (maps, racks) in cases {
        for parts in [&[6][..], &[1, 1, 4], &[2, 2, 2], &[1, 5], &[1; 6]] {
            for recurs in [true, false] {
                let mut job = Job { recurs, ..Job::new(maps, 6) };
                parts.iter().for_each(|&count| drop(job.part(count)));
                assert_eq!(job.racks(), racks, "maps {maps:?}, parts {parts:?}, of a known job: {recurs}");
            }
        }
    }
}

/// The first part alone would be best in the rack that has most maps, and so would each after it.
#[test]
fn who_does_not_say_the_whole_is_placed_beside_what_came_before() {
    let mut job = Job::new(&[2, 1, 1, 0, 1, 1], 0);
    job.harness.placer.guard = None;
    (0..6).for_each(|_| drop(job.part(1)));
    assert_eq!(job.racks(), [3, 1, 2]);
}

/// Where YARN would put a part by itself is chance: it is no comparison.
#[test]
fn a_part_is_hinted_though_the_whole_at_once_would_not_be() {
    let mut job = Job::new(&[2, 1, 1, 0, 1, 1], 6);
    let first = job.part(1);
    assert_eq!((reason(&first), first.decision.hints.len()), (None, 1));
    // The whole beside YARN's own 2/2/2: 150 MB, of which a third goes into a rack, half of which a rack sends.
    let worst = |terms: &crate::decision::TermValues| terms.worst_link_s.unwrap();
    let decision = &first.decision;
    assert_eq!((worst(&decision.terms), worst(decision.baseline.as_ref().unwrap())), (30.0, 40.0));
    assert_eq!(
        reason(&Job::new(&[1; 6], 6).part(6)),
        Some(WithheldReason::NoGain),
        "YARN spreads six as well as can be"
    );
    let mut even = Job::new(&[1; 6], 6);
    let hinted = [1, 1, 4].map(|count| (reason(&even.part(count)), even.racks().iter().sum()));
    assert_eq!(hinted, [(None, 1), (None, 2), (None, 6)]);
    let mut unknown = Job { recurs: false, ..Job::new(&[], 6) };
    assert_eq!(reason(&unknown.part(1)), Some(WithheldReason::NothingKnown), "no maps came");
}

/// Where room is short it decides, and the guard judges as of all others.
#[test]
fn a_part_is_judged_while_the_whole_has_no_room() {
    let mut job = Job::new(&[1; 6], 6);
    let hosts = job.hosts.clone();
    for (host, free) in hosts.iter().zip([1, 1, 1, 1, 1, 0]) {
        job.harness.beat(host, (8 - free) * 1_024, None);
    }
    job.harness.publish();
    let reasons = [1, 1].map(|count| reason(&job.part(count)));
    assert_eq!(reasons, [Some(WithheldReason::NoGain), None], "five have room; of six one came then");
}

/// What a whole saves is saved once, however many parts it is asked for in.
#[test]
fn terms_and_gain_are_said_to_be_of_the_whole_and_counted_once() {
    let whole = |containers, earlier| Some(TermsOfWhole { containers, earlier });
    for (parts, expected) in [
        (&[6][..], vec![None]),
        (&[1, 2, 3], vec![whole(6, 0), whole(5, 1), whole(3, 3)]),
        (&[2, 2, 1, 1], vec![whole(6, 0), whole(4, 2), whole(2, 4), whole(1, 5)]),
    ] {
        let mut job = Job::new(&[2, 1, 1, 0, 1, 1], 6);
        job.harness.placer.guard = None;
        let answers: Vec<_> = parts.iter().map(|&count| job.part(count)).collect();
        let said: Vec<_> = answers.iter().map(|answer| answer.decision.terms_of_whole).collect();
        assert_eq!(said, expected, "{parts:?}");
        let gains: Vec<f64> = answers.iter().filter_map(|answer| answer.decision.expected_gain).collect();
        assert_eq!(gains.len(), parts.len(), "each part says a gain: {parts:?}");
        job.harness.pass(Micros::from_secs(600));
        let tally = job.harness.engine.adherence().tallies().values().next().unwrap();
        assert_eq!((tally.decisions, tally.objective_gains), (parts.len() as u64, 1), "{parts:?}");
        assert!((tally.objective_gain - gains[0]).abs() < 1e-9, "{gains:?}, counted {}", tally.objective_gain);
    }
    let mut apart = Job::new(&[2, 1, 1, 0, 1, 1], 0);
    apart.harness.placer.guard = None;
    assert_eq!([3, 3].map(|count| apart.part(count).decision.terms_of_whole), [None; 2], "nobody spoke of a whole");
}

#[test]
fn wholes_count_towards_the_containers_of_a_request() {
    let mut job = Job::new(&[1; 6], 7);
    job.harness.placer.containers_max = 6;
    let mut asked = reduces(6, true);
    asked.groups[0].whole = 7;
    let Err(Refusal::Invalid { field, message }) = job.harness.propose(&Arc::new(asked)) else {
        panic!("it is refused")
    };
    assert_eq!(field, "groups");
    assert_eq!(message, "7 containers are asked for now or, by whole, later; limits.containers_per_request allows 6");
}

#[test]
fn what_came_elsewhere_is_made_up_for_by_what_comes_later() {
    let mut job = Job::new(&[1; 6], 6);
    (0..2).for_each(|_| job.came(0, None));
    job.harness.publish();
    job.part(4);
    assert_eq!(job.racks(), [2, 2, 2]);
    let mut job = Job::new(&[1; 6], 6);
    (0..3).for_each(|_| job.came(4, None));
    job.harness.publish();
    let answer = job.part(3);
    assert_eq!((reason(&answer), job.racks()[2]), (None, 3), "none goes where there are too many already");
}

#[test]
fn leases_whose_containers_have_not_come_count_and_no_container_counts_twice() {
    let mut job = Job::new(&[2, 1, 1, 0, 1, 1], 6);
    let first = job.ask(2);
    let leased = by_rack(&first, &job.hosts);
    let second = job.ask(4);
    let both: Vec<u32> = leased.iter().zip(by_rack(&second, &job.hosts)).map(|(a, b)| a + b).collect();
    assert_eq!(both, [3, 1, 2]);
    // Once it came its lease lives on until its node shows it: six of six, so a seventh is one more.
    let mut job = Job::new(&[2, 1, 1, 0, 1, 1], 6);
    job.part(5);
    let rest = job.ask(1);
    let racks = job.racks().iter().zip(by_rack(&rest, &job.hosts)).map(|(a, b)| a + b).collect::<Vec<_>>();
    assert_eq!(racks, [3, 1, 2]);
}

#[test]
fn a_part_is_spread_as_the_whole_is() {
    for seed in 0..24 {
        // The whole is 8/0/4 by all links, and 6/3/3, of which the seed says which half is the larger one.
        let half = if seed % 12 < 6 { [3, 1, 2] } else { [3, 2, 1] };
        for (maps, expected) in [([4, 4, 0, 0, 2, 2], [4, 0, 2]), ([4, 2, 2, 0, 2, 2], half)] {
            let mut job = Job::new(&maps, 12);
            job.harness.placer.guard = None;
            let mut asked = reduces(6, true);
            (asked.groups[0].whole, asked.seed) = (12, Some(seed));
            let hinted = by_rack(&job.harness.ask(asked), &job.hosts);
            assert_eq!(hinted, expected, "seed {seed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_keep_the_busiest_link_of_the_whole(
        maps in prop::collection::vec(0_u64..6, 6), parts in prop::collection::vec(1_u32..5, 1..6),
    ) {
        prop_assume!(maps.iter().any(|&maps| maps > 0));
        let whole: u32 = parts.iter().sum();
        let of = |parts: &[u32]| {
            let mut job = Job::new(&maps, whole);
            job.harness.placer.guard = None;
            parts.iter().for_each(|&count| drop(job.part(count)));
            assert_eq!(job.by_host.iter().sum::<u32>(), whole);
            busiest(&maps, &job.by_host)
        };
        prop_assert!(of(&parts) <= of(&[whole]) + 1e-6, "{parts:?}: {} after {}", of(&parts), of(&[whole]));
    }

    /// Wherever the first came, the rest is placed as well as can be beside them.
    #[test]
    fn what_is_left_is_placed_best_beside_what_came(
        maps in prop::collection::vec(0_u64..6, 6), first in prop::collection::vec(0_usize..6, 0..6), rest in 1_u32..7,
    ) {
        prop_assume!(maps.iter().any(|&maps| maps > 0));
        let whole = first.len() as u32 + rest;
        let mut job = Job::new(&maps, whole);
        job.harness.placer.guard = None;
        first.iter().for_each(|&host| job.came(host, None));
        job.harness.publish();
        let before = job.by_host;
        job.part(rest);
        let mut best = f64::INFINITY;
        for code in 0..6_u32.pow(rest) {
            let mut tried = before;
            (0..rest).for_each(|place| tried[(code / 6_u32.pow(place) % 6) as usize] += 1);
            best = best.min(busiest(&maps, &tried));
        }
        prop_assert!(busiest(&maps, &job.by_host) <= best + 1e-6, "{:?}: best {best}", job.by_host);
    }
}
