//! The worlds are what their words say.

use super::systems::{System, World, run};
use super::world;
use crate::TraceJob;
use crate::reproduce::Scale;
use hintd_model::units::Bytes;

#[test]
fn a_quick_run_takes_a_twentieth_of_jobs_and_nodes_and_other_jobs_for_each_seed() {
    let (one, two) = (world::jobs(Scale::Quick, 1), world::jobs(Scale::Quick, 2));
    assert_eq!(one.len(), world::day().jobs.len().div_ceil(world::QUICK).min(one.len()));
    assert!(one.iter().all(|job| two.iter().all(|other| other.name != job.name)));
    assert_eq!(world::cluster(Scale::Quick).snapshot.nodes(), 600 / world::QUICK);
}

#[test]
fn the_validation_draws_200_jobs_with_the_shares_of_figure_3_2() {
    let jobs = world::validation_jobs(3);
    let light = jobs.iter().filter(|job| job.shuffle.0 < 1 << 20).count();
    let heavy = jobs.iter().filter(|job| job.shuffle.0 > 100 << 20).count();
    assert!((199..=201).contains(&jobs.len()), "{}", jobs.len());
    // The shares of a generated day differ a little.
    assert!((125..=150).contains(&light) && (25..=50).contains(&heavy), "{light} light, {heavy} heavy");
    assert!(jobs.windows(2).all(|pair| pair[0].submit <= pair[1].submit));
    assert_eq!(world::validation_jobs(3), jobs);
}

#[test]
fn jobs_without_recorded_input_get_a_map_for_each_block_of_shuffle_and_no_others_do() {
    let job =
        |input, shuffle| TraceJob { input: Bytes(input), shuffle: Bytes(shuffle), ..world::day().jobs[0].clone() };
    let jobs = world::with_maps_by_shuffle(vec![job(0, (128 << 20) + 1), job(0, 0), job(1, 1 << 40)]);
    assert_eq!(jobs.iter().map(|job| job.maps).collect::<Vec<_>>(), [Some(2), None, None]);
}

#[test]
fn full_uplinks_need_no_less_than_the_shuffle_takes_and_no_less_than_the_day() {
    let jobs = world::jobs(Scale::Quick, 1);
    let shuffle: f64 = jobs.iter().map(|job| job.shuffle.as_f64()).sum();
    let span = jobs[jobs.len() - 1].submit.as_secs_f64() - jobs[0].submit.as_secs_f64();
    // Six uplinks of 250 Mbit/s; five sixths cross.
    let carried = shuffle * 8.0 / 6.0 * 5.0 / 6.0 / 250e6;
    let need = world::uplinks_need_s(Scale::Quick, 1);
    assert!(need >= carried.max(span) && need <= carried + span, "{need} {carried} {span}");
}

#[test]
fn a_run_is_made_once_however_many_entries_want_it() {
    let system = System::new("fair", "", World::Validation);
    let (first, second) = (run("a", system, 1, None).unwrap(), run("b", system, 1, None).unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}
