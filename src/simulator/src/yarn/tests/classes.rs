//! Nodes of classes work at their own speed, and nothing else of a run changes.

use super::*;
use hintd_policy::{ClassSpeed, LargeJobs};

fn with_speeds(speeds: Vec<Option<ClassSpeed>>) -> SimCluster {
    SimCluster { speeds, ..cluster(3, 4, 2, 200_000_000) }
}

fn run(cluster: &SimCluster, model: &JobModel) -> RunReport {
    with(cluster, model, &SimSettings::default(), &fifo(), &mixed(40), true).unwrap()
}

#[test]
fn nodes_without_a_class_or_of_a_class_of_speed_1_run_as_before_bit_for_bit() {
    let (plain, model) = (run(&with_speeds(vec![]), &JobModel::default()), JobModel::default());
    assert_eq!(run(&with_speeds(vec![None; 12]), &model), plain);
    assert_eq!(run(&with_speeds(vec![Some(ClassSpeed::plain(1.0)); 12]), &model), plain);
    assert_eq!((plain.makespan_s.to_bits(), plain.mean_jct_s.to_bits()), PINNED);
}

/// Makespan and mean completion of the run without classes: another figure here is another one in every report.
const PINNED: (u64, u64) = (4_643_775_824_979_429_467, 4_632_209_387_608_553_599);

#[test]
fn a_task_takes_its_time_divided_by_the_speed_of_its_node() {
    let jobs = [job(0, 0.0, 64_000_000, 0, 0)];
    let completion = |speeds| {
        let cluster = SimCluster { speeds, ..cluster(1, 1, 2, 1_000_000_000) };
        report(&cluster, &SimSettings::default(), &jobs).container_s[0]
    };
    assert_eq!(completion(vec![]), 3.0, "1 s and 64 MB at 32 MB/s");
    assert_eq!(completion(vec![Some(ClassSpeed::plain(2.0))]), 1.5);
    assert_eq!(completion(vec![Some(ClassSpeed::plain(0.25))]), 12.0);
    let large = |bytes| Some(LargeJobs { input_bytes: Bytes(bytes), shuffling_input_bytes: Bytes(bytes), speed: 0.5 });
    let speed = |bytes| vec![Some(ClassSpeed { speed: 2.0, large: large(bytes) })];
    assert_eq!((completion(speed(64_000_000)), completion(speed(63_999_999))), (1.5, 6.0));
}

#[test]
fn speeds_that_no_run_can_have_are_refused_with_the_value() {
    let refused = |speeds| {
        let cluster = with_speeds(speeds);
        with(&cluster, &still(), &SimSettings::default(), &fifo(), &mixed(1), true).unwrap_err().to_string()
    };
    assert_eq!(refused(vec![None; 3]), "speeds: given for 3 nodes, and the cluster has 12");
    let message = "speeds: speed is 0, not from 0.001 to 1000: tasks take their time divided by it";
    assert_eq!(refused(vec![Some(ClassSpeed::plain(0.0)); 12]), message);
}
