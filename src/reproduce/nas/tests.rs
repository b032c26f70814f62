//! The worlds are what their words say.

use super::systems::{System, World, run};
use super::world;
use crate::reproduce::Scale;

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
fn a_run_is_made_once_however_many_entries_want_it() {
    let system = System::new("fair", "", World::Validation);
    let (first, second) = (run("a", system, 1).unwrap(), run("b", system, 1).unwrap());
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}
