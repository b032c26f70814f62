//! The worlds are what their words say.

use super::systems::{Ideal, System, World, drawn, known, run};
use super::world::{self, Draw};
use crate::JobModel;
use crate::reproduce::Scale;
use hintd_model::units::Bytes;
use std::collections::BTreeSet;

const QUICK: World = World::batch(Scale::Quick);

#[test]
fn a_run_draws_jobs_of_the_sizes_it_says_each_once_and_others_for_each_seed() {
    let names = |seed| -> BTreeSet<_> { drawn(QUICK, seed).into_iter().map(|job| job.name).collect() };
    assert_eq!(names(1).len(), 250);
    assert!(names(1).intersection(&names(2)).count() < 50);
    assert_eq!(names(1), names(1));
    let most = |job: &crate::TraceJob| job.input.max(job.shuffle).max(job.output);
    let bound = Bytes(100_000_000_000);
    assert!(drawn(QUICK, 3).iter().all(|job| most(job) <= bound && job.submit.0 == 0));
    let heavy = drawn(World { draw: Draw::Heavy, ..QUICK }, 3);
    assert!(heavy.iter().all(|job| job.shuffle >= Bytes(1_125_000_000) && most(job) <= bound));
    assert!((1..=8).any(|seed| drawn(World { draw: Draw::Whole, ..QUICK }, seed).iter().any(|job| most(job) > bound)));
    let alone = World { ideal: Ideal { alone: true, ..Ideal::NOT }, ..QUICK };
    let [one] = &drawn(alone, 1)[..] else { panic!("one job") };
    assert!(drawn(QUICK, 1).iter().all(|job| job.shuffle <= one.shuffle));
    let none = World { ideal: Ideal { no_shuffle: true, ..Ideal::NOT }, ..QUICK };
    assert!(drawn(none, 1).iter().all(|job| job.shuffle == Bytes::ZERO));
}

#[test]
fn jobs_come_within_the_span_in_order_and_errors_of_arrival_stay_within_200_s() {
    let online = drawn(World::online(Scale::Quick), 1);
    assert!(online.windows(2).all(|pair| pair[0].submit <= pair[1].submit));
    assert!(online.iter().all(|job| job.submit.as_secs_f64() <= 5_400.0));
    assert!(online.last().unwrap().submit.as_secs_f64() > 5_000.0);
    assert!(world::come(&online, 0, 5) == online, "without an error all come as expected");
    let come = world::come(&online, 50, 5);
    assert!(come.windows(2).all(|pair| pair[0].submit <= pair[1].submit));
    let mut off = 0;
    for job in &online {
        let came = come.iter().find(|other| other.name == job.name).unwrap();
        let by_s = came.submit.as_secs_f64() - job.submit.as_secs_f64();
        assert!(by_s.abs() < 200.001);
        off += u32::from(by_s != 0.0);
    }
    assert!((90..160).contains(&off), "{off} of 250");
}

#[test]
fn planners_are_told_what_is_predicted_of_the_jobs_that_recur() {
    let jobs = drawn(World { draw: Draw::Heavy, ..QUICK }, 1);
    let told = |world| known(world, &jobs, &jobs, &JobModel::default(), 1);
    let right = told(QUICK);
    assert_eq!(right.len(), 250);
    let erring = told(World { shuffle_error_percent: 50, ..QUICK });
    let above = right.iter().zip(&erring).filter(|(right, erring)| erring.shuffle > right.shuffle).count();
    assert!((90..160).contains(&above), "errors go both ways: {above}");
    for (right, erring) in right.iter().zip(&erring) {
        let error = (erring.shuffle.as_f64() / right.shuffle.as_f64() - 1.0).abs();
        assert!((error - 0.5).abs() < 1e-6, "{error}");
    }
    let half = told(World { ad_hoc_percent: 50, ..QUICK }).len();
    assert!((90..160).contains(&half), "{half} of 250");
}

#[test]
fn circuits_and_links_are_as_often_and_as_fast_as_asked() {
    let shape = world::shape(Scale::Quick, "jobpacker");
    assert_eq!((shape.racks, world::shape(Scale::Full, "jobpacker").racks), (5, 20));
    let network = |shape: &_| world::cluster(shape).snapshot.topology.network.clone().unwrap();
    let section = |shape: &_| network(shape).optical().unwrap().interval().as_secs_f64();
    assert_eq!(section(&shape), 1.0);
    assert_eq!(section(&world::with_interval(shape.clone(), 3_000)), 3.0);
    let fast = world::with_links(shape.clone(), 100);
    assert_eq!(fast.uplink_bits_per_s.0, 100 * shape.uplink_bits_per_s.0);
    assert_eq!(fast.core, shape.core, "circuits stay as they are");
}

#[test]
fn a_job_alone_ends_within_2_percent_of_its_plan_and_a_run_is_made_once() {
    let world = World { ideal: Ideal { alone: true, ..Ideal::FORECAST }, ..QUICK };
    let system = System { policy: "jobpacker", params: "", cluster: "jobpacker", world };
    let (first, second) = (run("a", system, 1).unwrap(), run("b", system, 1).unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert_eq!((first.recurring.len(), first.end_s.len(), first.planned_end_s.len()), (1, 1, 1));
    if !crate::reproduce::nas::day().source.starts_with("SWIM") {
        eprintln!("skipped: no data/swim (HINTD_DATA), and of a generated day other jobs shuffle most");
        return;
    }
    let (makespan, jobs) = first.against_plan();
    assert!((makespan - 1.0).abs() < 0.02 && (makespan - jobs[0]).abs() < 1e-9, "{makespan} {jobs:?}");
}

#[test]
fn a_run_that_is_drawn_anew_has_the_same_plan_and_ends_otherwise() {
    let ends = |drawn_anew| {
        let world = World { ideal: Ideal { alone: true, drawn_anew, ..Ideal::FORECAST }, ..QUICK };
        let run = run("a", System { policy: "jobpacker", params: "", cluster: "jobpacker", world }, 1).unwrap();
        (run.planned_end_s.clone(), run.end_s.clone())
    };
    let [(plan, end), (same, other)] = [ends(0), ends(1)];
    assert_eq!(plan, same);
    if !crate::reproduce::nas::day().source.starts_with("SWIM") {
        eprintln!("skipped: no data/swim (HINTD_DATA), and the job of a generated day ends alike in any order");
        return;
    }
    assert_ne!(end, other, "nodes report in another order");
}
