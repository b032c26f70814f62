//! Sentences of the algorithms, one by one.

use super::{HoldMaps, Nas, NasParams, NasState, SkipBy};
use crate::dispatch::{Advice, DispatchEvent, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::sample::{Sample, cluster};
use crate::{Definition, Dispatch};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};

const UNIT: Resource = Resource::new(1024, 1);
const MIB: u64 = 1 << 20;

/// Two racks of two nodes (0 and 1, 2 and 3), four containers each.
struct Yarn {
    sample: Sample,
    nas: Nas,
    state: NasState,
    now: Timestamp,
    free: u64,
}

fn yarn(params: NasParams) -> Yarn {
    let spec = TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() };
    let nas = Nas::new(params);
    let sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
    Yarn { sample, state: nas.start(), nas, now: Timestamp(1), free: 1 }
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: job }, attempt: 1 }
}

fn task(job: u32, group: &str, index: u32) -> TaskRef {
    TaskRef { attempt: attempt(job), group: group.into(), index }
}

/// What is launched, as "job group index".
fn words(advice: &[Advice]) -> Option<String> {
    advice.iter().find_map(|one| match one {
        Advice::Launch(task) => Some(format!("{} {} {}", task.attempt.application.sequence, task.group, task.index)),
        Advice::NotYet { .. } => None,
    })
}

impl Yarn {
    fn observe(&mut self, event: &DispatchEvent) {
        let view = View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: false };
        self.nas.observe(&mut self.state, event, &view);
    }

    /// Maps of job `job` read `MiB` on `node`; none: nowhere in the cluster's first two nodes' rack but node 3.
    fn submit(&mut self, user: &str, job: u32, maps: &[(u64, u32)], reduces: u32, output_ratio: Option<f64>) {
        let inputs = maps.iter().map(|&(mib, node)| {
            let nodes = std::iter::once(NodeIdx(node)).collect();
            TaskInput { bytes: Bytes(mib * MIB), nodes }
        });
        let group = |name: &str, count, inputs| {
            DispatchEvent::Waiting(WaitingGroup {
                attempt: attempt(job),
                user: user.into(),
                queue: "q".into(),
                group: name.into(),
                role: name.into(),
                count,
                size: UNIT,
                inputs,
                output_ratio,
                since: Timestamp(0),
            })
        };
        self.observe(&group("map", maps.len() as u32, inputs.collect()));
        if reduces > 0 {
            self.observe(&group("reduce", reduces, vec![]));
        }
    }

    fn ask(&mut self, node: u32, explain: bool) -> Vec<Advice> {
        let view = View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain };
        let offer = Offer { node: NodeIdx(node), free: UNIT.times(self.free) };
        self.nas.offer(&mut self.state, &offer, &view)
    }

    /// Offers a container; what is launched runs.
    fn offer(&mut self, node: u32) -> Option<String> {
        let advice = self.ask(node, false);
        if let Some(Advice::Launch(task)) = advice.first() {
            self.observe(&DispatchEvent::Launched { task: task.clone(), node: NodeIdx(node) });
        }
        words(&advice)
    }

    /// The map ran on the node, whoever launched it.
    fn ran(&mut self, job: u32, index: u32, node: u32, mib: (u64, u64)) {
        let (task, node) = (task(job, "map", index), NodeIdx(node));
        self.observe(&DispatchEvent::Launched { task: task.clone(), node });
        let (input, output) = (Bytes(mib.0 * MIB), Bytes(mib.1 * MIB));
        let duration = Micros::from_secs(4);
        self.observe(&DispatchEvent::Finished { task, node, duration, input, output, failed: false });
    }

    fn rack_use(&mut self, rack: u32, per_mille: u32) {
        self.observe(&DispatchEvent::RackUse { rack: RackIdx(rack), per_mille });
    }

    fn refresh(&mut self) {
        self.now = self.now.plus(Micros::from_secs(5));
    }
}

fn defaults() -> NasParams {
    NasParams { map_skips: 2, reduce_skips: 2, ..NasParams::default() }
}

fn tokens(advice: &[Advice]) -> Vec<(String, String, Option<Micros>)> {
    let row = |one: &Advice| match one {
        Advice::NotYet { attempt, group, reason, expected_wait } => {
            (format!("{} {group}", attempt.application.sequence), reason.clone(), *expected_wait)
        }
        Advice::Launch(task) => panic!("{task:?} is launched"),
    };
    advice.iter().map(row).collect()
}

#[test]
fn a_local_map_of_the_user_with_fewest_containers_is_launched() {
    let mut yarn = yarn(defaults());
    yarn.submit("ann", 1, &[(1, 0), (1, 0)], 1, None);
    yarn.submit("bob", 2, &[(1, 0)], 1, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"), "nobody runs anything: by name");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "bob has fewer");
}

#[test]
fn a_map_beyond_the_nodes_traffic_threshold_waits_until_its_user_was_skipped_often_enough() {
    let mut yarn = yarn(defaults());
    // ΣS ÷ ΣK = 310 ÷ 4 MiB, four containers: 310 MiB a node.
    yarn.submit("ann", 1, &[(300, 0)], 1, None);
    yarn.submit("bob", 2, &[(4, 0), (4, 0), (2, 3)], 1, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"), "300 of 310");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "4 of 10");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 1"), "4 of 6");
    yarn.submit("cid", 3, &[(5, 0)], 1, None);
    assert_eq!((yarn.offer(0), yarn.offer(0)), (None, None), "5 of 2: cid and bob are skipped");
    assert_eq!(yarn.offer(0).as_deref(), Some("3 map 0"), "none of cid's is qualified: its local one");
}

#[test]
fn without_the_traffic_threshold_a_local_map_never_waits() {
    let mut yarn = yarn(NasParams { traffic_threshold: false, map_skips: 1_000, ..defaults() });
    yarn.submit("ann", 1, &[(1, 1)], 1, Some(0.001));
    yarn.submit("bob", 2, &[(9000, 0), (9000, 0), (9000, 0)], 1, None);
    for index in 0..3 {
        assert_eq!(yarn.offer(0), Some(format!("2 map {index}")));
    }
}

#[test]
fn of_qualified_local_maps_an_unpredicted_jobs_goes_first_then_the_one_closest_to_the_room() {
    let mut yarn = yarn(defaults());
    // 4 × 207 ÷ 6 MiB = 138 MiB a node.
    yarn.submit("ann", 1, &[(50, 0), (60, 0)], 1, Some(1.0));
    yarn.submit("ann", 2, &[(70, 0), (10, 0)], 1, Some(1.0));
    yarn.submit("ann", 3, &[(7, 0), (10, 2)], 1, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("3 map 0"), "unpredicted");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "70 of 131");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 1"), "60 of 61");
}

#[test]
fn a_user_skipped_often_enough_launches_small_unpredicted_input_from_afar_first() {
    let jobs = [(1, 50, Some(1.0)), (2, 40, None), (3, 4, Some(1.0)), (4, 5, None)];
    let mut yarn = yarn(defaults());
    for (job, mib, ratio) in jobs {
        yarn.submit("ann", job, &[(mib, 3)], 1, ratio);
    }
    let mut order = vec![];
    for _ in 0..4 {
        assert_eq!((yarn.offer(0), yarn.offer(0)), (None, None));
        order.push(yarn.offer(0).unwrap());
    }
    assert_eq!(order, ["4 map 0", "3 map 0", "2 map 0", "1 map 0"]);
}

#[test]
fn among_maps_from_afar_the_cheapest_to_read_goes_first() {
    let mut yarn = yarn(NasParams { map_skips: 0, ..defaults() });
    // Node 1 shares node 0's rack: 60 × 1 < 40 × 2.
    yarn.submit("ann", 1, &[(40, 3)], 1, None);
    yarn.submit("ann", 2, &[(60, 1), (90, 1)], 1, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"));
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"), "40 × 2 < 90 × 1");
}

#[test]
fn a_launch_sets_the_skip_counter_back_and_only_those_before_are_skipped() {
    let mut yarn = yarn(defaults());
    yarn.submit("ann", 1, &[(1, 3), (1, 3)], 1, None);
    yarn.submit("bob", 2, &[(1, 0), (1, 2)], 1, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "ann is skipped once");
    assert_eq!(yarn.offer(0), None, "ann twice, bob once");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 1"), "of equal ones the last");
    assert_eq!(yarn.offer(0), None, "bob, first in line with ann, twice; ann once");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 1"));
}

#[test]
fn a_user_is_skipped_no_longer_than_the_time_bound() {
    let mut yarn = yarn(NasParams { skip_by: SkipBy::Time, ..defaults() });
    yarn.submit("ann", 1, &[(1, 3)], 1, None);
    assert_eq!(yarn.offer(0), None);
    yarn.now = yarn.now.plus(Micros::from_millis(4_999));
    assert_eq!(yarn.offer(0), None);
    assert_eq!(tokens(&yarn.ask(0, true))[0].2, Some(Micros::from_millis(1)));
    yarn.now = yarn.now.plus(Micros::from_millis(1));
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"));
}

#[test]
fn a_ratio_is_1_until_the_first_map_ended_and_then_their_mean() {
    let mut yarn = yarn(defaults());
    yarn.submit("ann", 1, &[(10, 0), (10, 0), (10, 0), (10, 0)], 1, None);
    let job = yarn.state.pool.find(attempt(1)).unwrap();
    assert!((yarn.state.ratio(job) - 1.0).abs() < 1e-12);
    yarn.ran(1, 0, 0, (10, 5));
    yarn.ran(1, 1, 0, (10, 1));
    assert!((yarn.state.ratio(job) - 0.3).abs() < 1e-12);
    yarn.submit("ann", 2, &[(10, 0)], 0, None);
    let map_only = yarn.state.pool.find(attempt(2)).unwrap();
    assert!(yarn.state.ratio(map_only).abs() < 1e-12, "what is not shuffled crosses nothing");
}

#[test]
fn a_rack_gets_reduces_as_it_has_map_output_and_heavy_jobs_first() {
    let mut yarn = yarn(defaults());
    for (job, mib) in [(1, 150), (2, 40)] {
        yarn.submit("ann", job, &[(mib, 0), (mib, 2)], 4, Some(1.0));
        yarn.ran(job, 0, 0, (mib, mib));
        yarn.ran(job, 1, 2, (mib, mib));
    }
    let order: Vec<String> = (0..6).map(|_| yarn.offer(0).unwrap()).collect();
    // Heavy up to half of its four, medium up to half; then medium before heavy.
    assert_eq!(order, ["1 reduce 0", "1 reduce 1", "2 reduce 0", "2 reduce 1", "2 reduce 2", "2 reduce 3"]);
}

#[test]
fn without_ca_rts_the_job_with_fewest_containers_goes_first() {
    let mut yarn = yarn(NasParams { ca_rts: false, ..defaults() });
    for (job, mib) in [(1, 150), (2, 40)] {
        yarn.submit("ann", job, &[(mib, 0)], 4, Some(1.0));
        yarn.ran(job, 0, 0, (mib, mib));
    }
    let order: Vec<String> = (0..3).map(|_| yarn.offer(0).unwrap()).collect();
    assert_eq!(order, ["1 reduce 0", "2 reduce 0", "1 reduce 1"]);
}

#[test]
fn reduces_of_a_large_shuffle_start_earlier_than_those_of_a_small_one() {
    let maps = |mib| [(mib, 3); 10];
    let mut yarn = yarn(NasParams { map_skips: 1_000, early_reduces: 0.5, ..defaults() });
    yarn.submit("ann", 1, &maps(200), 1, Some(1.0));
    yarn.submit("bob", 2, &maps(2), 1, Some(1.0));
    yarn.refresh();
    for done in 0..5 {
        assert_eq!(yarn.ask(0, false).is_empty(), done < 2, "{done}");
        yarn.ran(1, done, 3, (200, 200));
    }
    assert_eq!(yarn.offer(0).as_deref(), Some("1 reduce 0"));
    for done in 0..5 {
        assert_eq!(yarn.offer(0), None, "{done} of 10 < T_max");
        yarn.ran(2, done, 3, (2, 2));
    }
    assert_eq!(yarn.offer(0).as_deref(), Some("2 reduce 0"));
}

#[test]
fn without_the_adaptive_threshold_all_start_at_the_fixed_share() {
    let mut yarn = yarn(NasParams { map_skips: 1_000, adaptive_threshold: false, fixed_threshold: 0.1, ..defaults() });
    yarn.submit("bob", 2, &[(2, 3); 10], 1, Some(1.0));
    assert_eq!(yarn.offer(0), None);
    yarn.ran(2, 0, 3, (2, 2));
    assert_eq!(yarn.offer(0).as_deref(), Some("2 reduce 0"));
}

/// A light, a medium and a heavy job, all maps done, each of its own user.
fn three_classes(params: NasParams) -> Yarn {
    let mut yarn = yarn(params);
    for (user, job, mib) in [("ann", 1, 200), ("bob", 2, 20), ("cid", 3, 0)] {
        yarn.submit(user, job, &[(mib, 0)], 2, Some(1.0));
        yarn.ran(job, 0, 0, (mib, mib));
    }
    yarn
}

#[test]
fn a_congested_rack_gets_only_light_reduces_until_a_user_was_skipped_often_enough() {
    let mut yarn = three_classes(defaults());
    yarn.rack_use(0, 800);
    assert_eq!(yarn.offer(0).as_deref(), Some("3 reduce 0"), "ann and bob are skipped once");
    assert_eq!(yarn.offer(0).as_deref(), Some("3 reduce 1"), "and twice");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 reduce 0"), "ann at D^r: any job");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 reduce 0"), "bob likewise");
    assert_eq!(yarn.offer(0), None);
}

#[test]
fn a_rack_is_congested_from_the_threshold_until_five_points_below() {
    let mut yarn = three_classes(NasParams { reduce_skips: 1_000, ..defaults() });
    let mut first = |per_mille| {
        yarn.rack_use(0, per_mille);
        words(&yarn.ask(0, false)).unwrap()
    };
    let got = [799, 800, 750, 749, 799].map(&mut first);
    assert_eq!(got, ["1 reduce 0", "3 reduce 0", "3 reduce 0", "1 reduce 0", "1 reduce 0"]);
    yarn.rack_use(1, 1_000);
    assert_eq!(words(&yarn.ask(0, false)).unwrap(), "1 reduce 0", "another rack's use is nothing to this one");
}

#[test]
fn without_cr_rts_a_congested_rack_is_like_any_other() {
    let mut yarn = three_classes(NasParams { cr_rts: false, ..defaults() });
    yarn.rack_use(0, 1_000);
    assert_eq!(yarn.offer(0).as_deref(), Some("1 reduce 0"));
}

#[test]
fn a_job_passed_over_on_a_congested_rack_goes_first_of_its_category_afterwards() {
    for congested in [false, true] {
        // Both medium, neither with all maps done; ann's second job is the younger.
        let mut yarn = yarn(NasParams { map_skips: 1_000, early_reduces: 1.0, ..defaults() });
        yarn.submit("ann", 1, &[(20, 3), (20, 3)], 2, Some(1.0));
        yarn.submit("ann", 2, &[(20, 3), (20, 3)], 2, Some(1.0));
        yarn.ran(2, 0, 3, (20, 20));
        if congested {
            yarn.rack_use(0, 900);
            assert_eq!(yarn.offer(0), None);
            yarn.rack_use(0, 0);
        }
        yarn.ran(1, 0, 3, (20, 20));
        assert_eq!(words(&yarn.ask(0, false)).unwrap(), if congested { "2 reduce 0" } else { "1 reduce 0" });
    }
}

#[test]
fn maps_of_heavier_jobs_are_held_back_on_a_congested_rack_until_a_user_was_skipped_often_enough() {
    let mut yarn = yarn(defaults());
    yarn.submit("ann", 1, &[(20, 0)], 1, None);
    yarn.submit("bob", 2, &[(0, 0)], 1, None);
    yarn.rack_use(0, 900);
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "ann is skipped once");
    let why = [("1 map", "rack_congested"), ("1 reduce", "maps_not_done"), ("2 reduce", "maps_not_done")];
    let why = why.map(|(group, reason)| (group.to_owned(), reason.to_owned(), None));
    assert_eq!(tokens(&yarn.ask(0, true)), why, "twice");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"));
}

#[test]
fn a_user_skipped_often_enough_on_a_congested_rack_gets_its_local_map_before_a_smaller_one_from_afar() {
    let mut yarn = yarn(defaults());
    yarn.submit("ann", 1, &[(20, 0)], 1, None);
    yarn.submit("ann", 2, &[(1, 3)], 1, None);
    yarn.rack_use(0, 900);
    assert_eq!([yarn.offer(0), yarn.offer(0)], [None, None], "held back, and not local");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"));
}

/// D^m does not override the hold.
fn until_clear() -> NasParams {
    NasParams { hold_maps: HoldMaps::UntilClear, ..defaults() }
}

#[test]
fn or_until_the_rack_is_clear_where_parameters_say_so() {
    let mut yarn = yarn(until_clear());
    yarn.submit("ann", 1, &[(20, 0)], 1, None);
    yarn.submit("ann", 4, &[(30, 3)], 1, None);
    yarn.submit("bob", 2, &[(0, 0)], 1, None);
    yarn.rack_use(0, 900);
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "bob's is light");
    for _ in 0..5 {
        assert_eq!(yarn.offer(0), None, "more often than D^m, and neither the local one nor the one from afar");
    }
    let why = [("1 map", "rack_congested"), ("1 reduce", "maps_not_done"), ("2 reduce", "maps_not_done")];
    let told = tokens(&yarn.ask(0, true));
    for (group, reason) in why {
        assert!(told.contains(&(group.to_owned(), reason.to_owned(), None)), "{told:?}");
    }
    yarn.rack_use(0, 740);
    assert_eq!([yarn.offer(1), yarn.offer(1)], [None, None], "ann was not passed over for what was held back");
    assert_eq!(yarn.offer(0).as_deref(), Some("1 map 0"));
}

#[test]
fn and_a_user_is_then_passed_over_for_its_light_maps_alone() {
    let mut yarn = yarn(until_clear());
    yarn.submit("ann", 1, &[(20, 0)], 1, None);
    yarn.submit("ann", 2, &[(0, 3)], 1, None);
    yarn.rack_use(0, 900);
    assert_eq!([yarn.offer(0), yarn.offer(0)], [None, None], "held back, and not local");
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 0"), "at D^m the light one from afar");
    assert_eq!([yarn.offer(0), yarn.offer(0), yarn.offer(0)], [None, None, None]);
}

#[test]
fn what_waits_is_told_why() {
    let mut yarn = yarn(NasParams { map_skips: 1_000, ..defaults() });
    yarn.submit("ann", 1, &[(1, 3), (1, 3), (1, 3), (1, 3)], 1, None);
    yarn.submit("bob", 2, &[(900, 0)], 1, Some(10.0));
    yarn.submit("cid", 3, &[(100, 0), (100, 1)], 0, None);
    assert_eq!(yarn.offer(0).as_deref(), Some("3 map 0"));
    yarn.ran(1, 0, 3, (1, 1));
    yarn.now = yarn.now.plus(Micros::from_secs(1));
    let told = tokens(&yarn.ask(0, true));
    let row = |group: &str, reason: &str, wait| (group.to_owned(), reason.to_owned(), wait);
    let second_map = Some(Micros::from_secs(4));
    let expected = [
        row("1 map", "no_local_block", None),
        row("1 reduce", "maps_not_done", second_map),
        row("2 map", "traffic_threshold", None),
        row("2 reduce", "maps_not_done", None),
        row("3 map", "no_local_block", None),
    ];
    assert_eq!(told, expected);
    yarn.free = 0;
    assert!(tokens(&yarn.ask(0, true)).iter().all(|(_, reason, _)| reason == "no_room"));
}

#[test]
fn containers_of_a_job_that_is_done_take_no_room_for_output() {
    let mut yarn = yarn(NasParams { map_skips: 1_000, ..defaults() });
    yarn.submit("ann", 1, &[(100, 0)], 1, None);
    yarn.submit("bob", 2, &[(100, 0), (100, 0), (100, 0), (100, 0)], 1, None);
    (0..4).for_each(|_| assert!(yarn.offer(0).is_some()));
    assert_eq!(yarn.offer(0), None, "400 of 400");
    yarn.observe(&DispatchEvent::Done(attempt(1)));
    assert_eq!(yarn.offer(0).as_deref(), Some("2 map 3"));
}

#[test]
fn in_a_daemon_time_bounds_skipping_unless_its_configuration_says_otherwise() {
    let params = |text: &'static str| {
        let table = toml::de::DeTable::parse(text).unwrap();
        crate::registry::build::<Nas>(Nas::deployed(table)).unwrap().params_toml()
    };
    assert!(params("").contains("skip_by = \"time\""), "{}", params(""));
    assert!(params("skip_ms = 900").contains("skip_by = \"time\""), "{}", params("skip_ms = 900"));
    let counts = params("skip_by = \"count\"\nmap_skips = 7");
    assert!(counts.contains("skip_by = \"count\"") && counts.contains("map_skips = 7"), "{counts}");
}
