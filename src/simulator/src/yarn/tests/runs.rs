//! Whole runs without failures.

use super::*;
use crate::settings::{Background, FlowGrain};
use hintd_model::units::{Bytes, Micros};

#[test]
fn a_map_runs_from_its_nodes_next_report_for_its_task_time() {
    let cluster = cluster(1, 1, 2, 1_000_000_000);
    let jobs: Vec<_> = (0..3).map(|at| job(at, at as f64 * 10.0, 64_000_000, 0, 0)).collect();
    let report = report(&cluster, &SimSettings::default(), &jobs);
    assert_eq!(report.jct_s.len(), 3);
    let phase = report.jct_s[0] - 3.0;
    assert!((0.0..1.0).contains(&phase), "1 s and 64 MB at 32 MB/s: {}", report.jct_s[0]);
    for jct_s in &report.jct_s {
        assert!((jct_s - 3.0 - phase).abs() < 1e-9, "{jct_s}");
    }
    assert_eq!((report.makespan_s, report.maps_by_locality), (20.0 + report.jct_s[2], [3, 0, 0]));
    assert_eq!((report.container_s, report.cross_rack_bytes), ([9.0, 0.0, 0.0], 0));
    assert_eq!(report.median_jct_s, report.jct_s[0]);
    assert_eq!(report.throughput_jobs_per_hour, 3.0 * 3600.0 / report.makespan_s);
}

#[test]
fn a_container_is_offered_again_at_the_report_after_its_tasks_end() {
    let cluster = cluster(1, 1, 1, 1_000_000_000);
    let report = report(&cluster, &SimSettings::default(), &[job(0, 0.0, 3 * 128 * MIB, 0, 0)]);
    // Three maps of 5.194304 s, each from a report on: two of them end between reports, six seconds later the next.
    let phase = report.jct_s[0] - 12.0 - 5.194_304;
    assert!((0.0..1.0).contains(&phase), "{}", report.jct_s[0]);
}

#[test]
fn a_reduce_works_when_all_its_bytes_have_come_over_the_uplink() {
    let cluster = cluster(2, 1, 1, 100_000_000);
    // Two maps on two nodes leave 50 MB each; the one reduce finds half of it on the other side of a 100 Mbit/s link,
    // and its fetches are held to a fifth of a NIC of 250 Mbit/s: 8 s.
    let jobs = [job(0, 0.0, 2 * 128 * MIB, 100_000_000, 0)];
    let settings = SimSettings { replicas: 2, ..SimSettings::default() };
    let report = report(&cluster, &settings, &jobs);
    assert_eq!((report.shuffle_bytes, report.cross_rack_shuffle_bytes), (100_000_000, 50_000_000));
    let [maps_s, waits_s, works_s] = report.container_s;
    assert!((maps_s - 2.0 * 5.194_304).abs() < 1e-6, "{maps_s}");
    assert!((works_s - 1.0 - 100.0 / 32.0).abs() < 1e-6, "{works_s}");
    assert!((8.0..10.5).contains(&waits_s), "8 s of fetching from the next second on: {waits_s}");
}

#[test]
fn skipping_reports_at_which_nothing_can_happen_changes_no_result() {
    let cluster = cluster(3, 4, 2, 200_000_000);
    let settings = SimSettings::default();
    let run = |skip| {
        let report = with(&cluster, &JobModel::default(), &settings, &fifo(), &mixed(40), skip).unwrap();
        assert_eq!((report.jobs, report.unfinished), (40, 0));
        (report.events, RunReport { events: 0, offers: 0, ..report })
    };
    let ((few, skipped), (all, every)) = (run(true), run(false));
    assert_eq!(skipped, every);
    assert!(few < all, "{few} events instead of {all}");
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let cluster = cluster(3, 4, 2, 200_000_000);
    let write = |seed| {
        let settings = SimSettings { seed, ..SimSettings::default() };
        let report = with(&cluster, &JobModel::default(), &settings, &fifo(), &mixed(40), true).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(write(1), write(1));
    assert_ne!(write(1), write(2), "another seed draws other replicas and phases");
}

#[test]
fn nodes_and_racks_as_grains_carry_the_same_bytes() {
    let cluster = cluster(3, 2, 2, 400_000_000);
    for grain in [FlowGrain::Nodes, FlowGrain::Racks] {
        let settings = SimSettings { grain, ..SimSettings::default() };
        let report = report(&cluster, &settings, &mixed(24));
        let shuffle: u64 = mixed(24).iter().map(|job| job.shuffle.0).sum();
        assert_eq!((report.jobs, report.shuffle_bytes), (24, shuffle), "{grain:?}");
        assert_eq!(report.maps_by_locality.iter().sum::<u64>(), 3 * (1 + 6 + 1 + 1 + 12 + 2 + 1 + 3));
    }
}

#[test]
fn streams_of_others_make_congestion_and_slow_jobs_down() {
    let cluster = cluster(2, 2, 2, 100_000_000);
    let quiet = report(&cluster, &SimSettings::default(), &mixed(8));
    let streams = Background {
        from_rack: cluster.snapshot.statics.racks[0].0.clone(),
        to_rack: cluster.snapshot.statics.racks[1].0.clone(),
        streams: 20,
        start: Micros::ZERO,
        end: Some(Micros::from_secs(300)),
    };
    let settings = SimSettings { background: vec![streams], ..SimSettings::default() };
    let busy = report(&cluster, &settings, &mixed(8));
    assert!(busy.mean_jct_s > quiet.mean_jct_s, "{} and {}", busy.mean_jct_s, quiet.mean_jct_s);
    assert!(busy.congested_s > quiet.congested_s && busy.congestions >= 2);
    let rack = busy.tiers.iter().find(|tier| tier.tier == "rack").unwrap();
    assert!(rack.max.iter().any(|&used| used > 0.99) && rack.max.iter().all(|&used| used < 1.001));
}

#[test]
fn an_idle_night_between_two_jobs_costs_no_events_and_counts_as_time() {
    let cluster = cluster(2, 2, 2, 100_000_000);
    let jobs = [job(0, 0.0, 300 * MIB, 50 * MIB, 0), job(1, 40_000.0, 300 * MIB, 50 * MIB, 0)];
    let report = report(&cluster, &SimSettings::default(), &jobs);
    assert!(report.events < 500, "{}", report.events);
    let rack = report.tiers.iter().find(|tier| tier.tier == "rack").unwrap();
    let seconds = rack.step_s * rack.mean.len() as f64;
    assert!((seconds - report.makespan_s).abs() <= 2.0 * rack.step_s, "{seconds} and {}", report.makespan_s);
    assert!(rack.mean.len() <= 2_000);
}

#[test]
fn jobs_of_one_name_are_told_apart_and_classes_counted() {
    let cluster = cluster(2, 2, 2, 100_000_000);
    let jobs = [job(0, 1.0, 10, 0, 0), job(0, 1.0, 10, 50 * MIB, 0), job(0, 2.0, 10, 101 * MIB, 0)];
    let report = report(&cluster, &SimSettings::default(), &jobs);
    assert_eq!(report.classes.map(|class| class.jobs), [1, 1, 1]);
    assert_eq!(report.classes[2].mean_jct_s, report.jct_s[2]);
    assert_eq!(report.map_progress_at_first_reduce, 1.0, "jobs of one map");
}

#[test]
fn what_the_trace_says_of_tasks_is_taken_as_it_says() {
    let cluster = cluster(1, 2, 4, 100_000_000);
    let told = TraceJob {
        maps: Some(6),
        reduces: Some(2),
        map_time: Some(Micros::from_secs(7)),
        reduce_time: Some(Micros::from_secs(9)),
        shuffle: Bytes(1_001),
        ..job(0, 0.0, 1_000, 0, 0)
    };
    let report = report(&cluster, &SimSettings::default(), &[told]);
    let [maps_s, _, works_s] = report.container_s;
    assert!((42.0..42.1).contains(&maps_s) && (works_s - 18.0).abs() < 1e-9, "{maps_s} {works_s}");
    assert_eq!(report.shuffle_bytes, 1_001);
}
