//! What the papers say of the dispatchers that they compare with, sentence by sentence.

use crate::dispatch::{Advice, DispatchEvent, DispatchState, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::sample::{Sample, cluster};
use crate::{Policy, registry};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use toml::de::DeTable;

const UNIT: Resource = Resource::new(1024, 1);

/// Four racks of two nodes, two containers each, under a policy.
struct Stage {
    sample: Sample,
    policy: Box<dyn Policy>,
    state: DispatchState,
}

fn stage(name: &str, params: &str) -> Stage {
    let policy = (registry::find(name).unwrap().build)(DeTable::parse(params).unwrap()).unwrap();
    let state = policy.as_dispatch().unwrap().start();
    let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(2), Bytes(1));
    assert_eq!((sample.snapshot.nodes(), sample.snapshot.statics.racks.len()), (8, 4));
    Stage { sample, policy, state }
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: job }, attempt: 1 }
}

impl Stage {
    fn tell(&mut self, event: &DispatchEvent) {
        let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
        let view = View { snapshot, leases, now: Timestamp(0), explain: true };
        self.policy.as_dispatch().unwrap().observe(&mut self.state, event, &view);
    }

    /// `maps` by the nodes of each one's input of 100 bytes.
    fn submit(&mut self, job: u32, user: &str, maps: &[&[u32]], reduces: u32) {
        let input = |nodes: &&[u32]| {
            let nodes = nodes.iter().map(|&node| NodeIdx(node)).collect();
            TaskInput { bytes: Bytes(100), nodes }
        };
        let inputs: Vec<TaskInput> = maps.iter().map(input).collect();
        for (role, count, inputs) in [("map", maps.len() as u32, inputs), ("reduce", reduces, Vec::new())] {
            self.tell(&DispatchEvent::Waiting(WaitingGroup {
                attempt: attempt(job),
                user: user.into(),
                queue: "q".into(),
                group: role.into(),
                role: role.into(),
                count,
                size: UNIT,
                inputs,
                output_ratio: None,
                since: Timestamp(0),
            }));
        }
    }

    fn advice(&mut self, node: u32) -> Vec<Advice> {
        let (snapshot, leases) = (&self.sample.snapshot, &self.sample.leases);
        let view = View { snapshot, leases, now: Timestamp(0), explain: true };
        let offer = Offer { node: NodeIdx(node), free: UNIT };
        self.policy.as_dispatch().unwrap().offer(&mut self.state, &offer, &view)
    }

    /// Job and role of what is launched there.
    fn offer(&mut self, node: u32) -> Option<(u32, TaskRef)> {
        let Some(Advice::Launch(task)) = self.advice(node).pop() else { return None };
        self.tell(&DispatchEvent::Launched { task: task.clone(), node: NodeIdx(node) });
        Some((task.attempt.application.sequence, task))
    }

    fn job(&mut self, node: u32) -> Option<u32> {
        self.offer(node).map(|(job, _)| job)
    }

    fn end(&mut self, task: &TaskRef, node: u32) {
        let (task, node, duration) = (task.clone(), NodeIdx(node), Micros(1));
        let (input, output, failed) = (Bytes(100), Bytes(100), false);
        self.tell(&DispatchEvent::Finished { task, node, duration, input, output, failed });
    }

    fn rack_use(&mut self, rack: u32, per_mille: u32) {
        self.tell(&DispatchEvent::RackUse { rack: RackIdx(rack), per_mille });
    }

    fn reasons(&mut self, node: u32) -> Vec<String> {
        let reason = |advice| match advice {
            Advice::NotYet { group, reason, .. } => format!("{group} {reason}"),
            Advice::Launch(task) => format!("{task:?}"),
        };
        self.advice(node).into_iter().map(reason).collect()
    }
}

#[test]
fn users_have_about_the_same_number_of_containers() {
    let mut stage = stage("fair", "");
    stage.submit(1, "ann", &[&[0][..]; 8], 0);
    stage.submit(2, "ann", &[&[0][..]; 8], 0);
    stage.submit(3, "bob", &[&[0][..]; 8], 0);
    let jobs: Vec<_> = (0..8).map(|node| stage.job(node).unwrap()).collect();
    assert_eq!(jobs, [1, 3, 2, 3, 1, 3, 2, 3], "each user every other one, ann's in turn");
}

#[test]
fn fair_takes_local_maps_first_but_never_waits_for_one() {
    let mut stage = stage("fair", "");
    stage.submit(1, "ann", &[&[7], &[5], &[1], &[0]], 0);
    let maps: Vec<_> = [0, 0, 4, 4].iter().map(|&node| stage.offer(node).unwrap().1.index).collect();
    assert_eq!(maps, [3, 2, 1, 0], "on the node, in the rack, in the rack, anywhere");
}

#[test]
fn reduces_start_when_a_fifth_of_the_maps_is_done_and_then_come_first() {
    let mut stage = stage("fair", "");
    stage.submit(1, "ann", &[&[0][..]; 10], 1);
    let first = stage.offer(0).unwrap().1;
    let second = stage.offer(0).unwrap().1;
    stage.end(&first, 0);
    assert_eq!(&*stage.offer(0).unwrap().1.group, "map", "one of ten is done");
    stage.end(&second, 0);
    assert_eq!(&*stage.offer(0).unwrap().1.group, "reduce");
}

#[test]
fn a_user_with_many_reduces_takes_no_more_than_one_with_maps() {
    for policy in ["fair", "delay", "shufflewatcher", "nas"] {
        let mut stage = stage(policy, "");
        stage.submit(1, "ann", &[&[0]], 8);
        let map = stage.offer(0).unwrap().1;
        stage.end(&map, 0);
        stage.submit(2, "bob", &[&[0][..]; 8], 0);
        let jobs: Vec<_> = (0..8).filter_map(|_| stage.job(0)).collect();
        assert_eq!(jobs, [2, 1, 2, 1, 2, 1, 2, 1], "{policy}");
    }
}

#[test]
fn early_reduces_leave_half_of_the_cluster_to_maps_and_late_ones_need_not() {
    let mut stage = stage("fair", "slow_start = 0.0\nearly_reduces = 0.5");
    stage.submit(1, "ann", &[&[0][..]; 2], 16);
    let roles: Vec<_> = (0..10).map(|_| stage.offer(0).unwrap().1.group).collect();
    let reduces = roles.iter().filter(|role| &***role == "reduce").count();
    assert_eq!((reduces, &*roles[8], &*roles[9]), (8, "map", "map"), "16 containers in all");
    assert_eq!(&*stage.offer(0).unwrap().1.group, "reduce", "no map waits any more");
}

#[test]
fn delay_passes_over_a_job_without_local_map_and_serves_the_next() {
    let mut stage = stage("delay", "");
    stage.submit(1, "ann", &[&[0][..]; 4], 0);
    stage.submit(2, "bob", &[&[7]], 0);
    assert_eq!(stage.job(7), Some(2));
    assert_eq!(stage.reasons(7), ["map no_local_block"]);
    assert_eq!(stage.job(0), Some(1));
}

#[test]
fn delay_lets_a_job_that_was_passed_over_launch_anywhere_until_it_launches_a_local_map() {
    let mut stage = stage("delay", "node_skips = 3");
    stage.submit(1, "ann", &[&[0][..]; 6], 0);
    assert_eq!([stage.job(7), stage.job(7), stage.job(7)], [None; 3]);
    assert_eq!([stage.job(7), stage.job(6), stage.job(5)], [Some(1); 3], "as many as it likes");
    assert_eq!(stage.job(0), Some(1));
    assert_eq!([stage.job(7), stage.job(7), stage.job(7)], [None; 3], "the count began anew");
    assert_eq!(stage.job(7), Some(1));
}

#[test]
fn delay_goes_by_rack_before_it_goes_anywhere() {
    let mut stage = stage("delay", "node_skips = 1\nrack_skips = 2");
    stage.submit(1, "ann", &[&[0][..]; 6], 0);
    assert_eq!([stage.job(1), stage.job(1)], [None, Some(1)], "node 1 is in node 0's rack");
    assert_eq!([stage.job(7), stage.job(7), stage.job(7)], [None, None, Some(1)]);
}

#[test]
fn shufflewatcher_puts_the_maps_of_a_job_in_few_racks_though_input_is_read_from_afar() {
    let mut stage = stage("shufflewatcher", "");
    stage.submit(1, "ann", &[&[0], &[0], &[7]], 2);
    assert_eq!(stage.job(7), None, "its input is here, and yet");
    assert_eq!(stage.reasons(7), ["map other_rack_planned", "reduce maps_not_done"]);
    let maps: Vec<_> = [1, 0, 0].iter().map(|&node| stage.offer(node).unwrap().1.index).collect();
    assert_eq!(maps, [2, 0, 1], "the one without input in the rack at once, the others where they read");
}

#[test]
fn shufflewatcher_delays_all_reduces_in_favour_of_maps_while_the_rack_is_congested() {
    let mut stage = stage("shufflewatcher", "");
    stage.submit(1, "ann", &[&[0]], 2);
    let map = stage.offer(0).unwrap().1;
    stage.end(&map, 0);
    stage.submit(2, "bob", &[&[0], &[0], &[0], &[6]], 0);
    stage.rack_use(0, 800);
    assert_eq!(stage.job(0), Some(2), "a map, and not a reduce");
    stage.rack_use(0, 760);
    assert_eq!(stage.job(0), Some(2), "still congested");
    stage.rack_use(0, 749);
    assert_eq!(stage.job(0), Some(1), "a reduce first");
    stage.rack_use(0, 800);
    assert_eq!(stage.job(0), Some(2));
    assert_eq!(stage.job(0), Some(1), "no map may be assigned here instead");
    assert_eq!(stage.reasons(0), ["map no_local_block"]);
}

#[test]
fn shufflewatcher_gives_a_rack_reduces_by_its_share_of_the_shuffle() {
    let mut stage = stage("shufflewatcher", "node_skips = 0\nslow_start = 1.0");
    stage.submit(1, "ann", &[&[0], &[0], &[0], &[7]], 4);
    for node in [7, 0, 0, 0] {
        let map = stage.offer(node).unwrap().1;
        stage.end(&map, node);
    }
    stage.submit(2, "bob", &[&[7], &[7]], 0);
    let mut given = [0; 8];
    for node in [7, 7, 7, 0, 0, 0] {
        given[node as usize] += u32::from(*stage.offer(node).unwrap().1.group == *"reduce");
    }
    assert_eq!((given[0], given[7]), (3, 1));
}

#[test]
fn shufflewatcher_gives_any_rack_a_reduce_before_its_container_stands_idle() {
    let mut stage = stage("shufflewatcher", "slow_start = 1.0");
    stage.submit(1, "ann", &[&[0]], 2);
    let map = stage.offer(0).unwrap().1;
    stage.end(&map, 0);
    assert_eq!(stage.job(7), Some(1), "all of its output lies in another rack");
}

#[test]
fn pna_launches_at_once_what_costs_no_transfer() {
    let mut stage = stage("pna", "");
    stage.submit(1, "ann", &[&[0][..]; 8], 0);
    assert_eq!((0..8).filter_map(|_| stage.job(0)).count(), 8);
    let mut stage = self::stage("pna", "");
    stage.submit(1, "ann", &[&[0][..]; 200], 0);
    let launched = (0..200).filter(|_| stage.job(7).is_some()).count();
    // 6 nodes of 8 cost 4 hops, one 2, one none: the mean is 3.25 hops, and p = 1 - exp(-3.25 / 4) = 0.556.
    assert!((95..=127).contains(&launched), "{launched} of 200");
}

#[test]
fn parameters_that_can_not_be_meant_are_refused() {
    for (name, text, part) in [
        ("fair", "slow_start = 1.5", "policies.fair.slow_start: 1.5 is no share"),
        ("fair", "early_reduces = nan", "policies.fair.early_reduces: NaN is no share"),
        ("delay", "node_skips = 2000000", "policies.delay.node_skips: 2000000 offers"),
        ("delay", "node_skips = -1", "policies.delay.node_skips"),
        ("shufflewatcher", "congested_per_mille = 0", "0 per mille of a link"),
        ("shufflewatcher", "relief_per_mille = 800", "800 is not below congested_per_mille = 800"),
        ("pna", "sed = 1", "unknown field `sed`"),
    ] {
        let error = (registry::find(name).unwrap().build)(DeTable::parse(text).unwrap()).err().unwrap();
        assert!(error.to_string().contains(part), "{error}");
    }
}
