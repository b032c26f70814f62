//! In which order jobs are given racks (004 §4.2.3.2).

use super::shape::Shape;
use super::{Halt, spend};
use crate::Budget;
use crate::plan::{ExpectedJob, Objective};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use std::cmp::{Ordering, Reverse};

/// What a job asks of the cluster: shuffle bytes, maps, reduces.
const RESOURCES: usize = 3;

/// What decides the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderBy {
    pub(super) objective: Objective,
    /// Sub-batches of a batch.
    pub(super) batches: u32,
    /// Of the order in which these are joined.
    pub(super) seed: u64,
}

/// Positions of the jobs. A batch: sub-batches that Tetris fills, joined in random order, and in each the widest first;
/// online: as they are expected to come.
pub(super) fn order(
    jobs: &[ExpectedJob],
    shapes: &[Shape],
    by: OrderBy,
    budget: &Budget<'_>,
) -> Result<Vec<usize>, Halt> {
    let widest = |&a: &usize, &b: &usize| widest_first(shapes, a, b).then_with(|| name(jobs, a).cmp(&name(jobs, b)));
    match by.objective {
        Objective::Online => {
            let mut all: Vec<usize> = (0..jobs.len()).collect();
            all.sort_by(|a, b| jobs[*a].arrival.cmp(&jobs[*b].arrival).then_with(|| widest(a, b)));
            Ok(all)
        }
        Objective::Batch => {
            let mut batches = divide(jobs, by.batches.max(1) as usize, budget)?;
            batches.shuffle(&mut ChaCha8Rng::seed_from_u64(by.seed));
            batches.iter_mut().for_each(|batch| batch.sort_by(widest));
            Ok(batches.concat())
        }
    }
}

/// Wider first, of equally wide ones the longer.
fn widest_first(shapes: &[Shape], a: usize, b: usize) -> Ordering {
    shapes[b].width.total_cmp(&shapes[a].width).then(shapes[b].latency.cmp(&shapes[a].latency))
}

/// Ties are broken by name, so that the order in which jobs are told does not matter.
fn name(jobs: &[ExpectedJob], at: usize) -> (&str, u32) {
    (&jobs[at].key, jobs[at].run)
}

/// Sub-batches that ask for about as much of each resource. The one with most room takes the job of the highest score,
/// the dot product of what the job asks and what the sub-batch has left, each as a share of what all jobs ask; room
/// may run out, as the last jobs have to go somewhere.
fn divide(jobs: &[ExpectedJob], batches: usize, budget: &Budget<'_>) -> Result<Vec<Vec<usize>>, Halt> {
    let asked: Vec<[f64; RESOURCES]> = jobs.iter().map(demand).collect();
    let total = asked.iter().fold([0.0; RESOURCES], |sum, row| std::array::from_fn(|k| sum[k] + row[k]));
    let share = |row: &[f64; RESOURCES]| -> [f64; RESOURCES] {
        std::array::from_fn(|k| if total[k] > 0.0 { row[k] / total[k] } else { 0.0 })
    };
    let mut left: Vec<(usize, [f64; RESOURCES])> = asked.iter().map(share).enumerate().collect();
    // Equal scores are decided by name.
    left.sort_by(|a, b| name(jobs, b.0).cmp(&name(jobs, a.0)));
    let mut room = vec![[1.0 / batches as f64; RESOURCES]; batches];
    let mut filled: Vec<Vec<usize>> = vec![Vec::new(); batches];
    while !left.is_empty() {
        spend(budget, batches + left.len())?;
        let most = |a: &usize, b: &usize| {
            let sum = |at: usize| room[at].iter().sum::<f64>();
            sum(*a).total_cmp(&sum(*b)).then(Reverse(*a).cmp(&Reverse(*b)))
        };
        let batch = (0..batches).max_by(most).expect("there is at least one sub-batch");
        let score = |row: &[f64; RESOURCES]| (0..RESOURCES).map(|k| row[k] * room[batch][k]).sum::<f64>();
        let best =
            (0..left.len()).max_by(|&a, &b| score(&left[a].1).total_cmp(&score(&left[b].1))).expect("some job is left");
        let (job, asks) = left.remove(best);
        (0..RESOURCES).for_each(|k| room[batch][k] -= asks[k]);
        filled[batch].push(job);
    }
    Ok(filled)
}

fn demand(job: &ExpectedJob) -> [f64; RESOURCES] {
    [job.shuffled().as_f64(), f64::from(job.maps.0), f64::from(job.reduces.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobpacker::offline::shape::Pairs;
    use hintd_model::units::{Bytes, Micros, Timestamp};
    use rand::RngExt as _;

    fn ordered(
        jobs: &[ExpectedJob],
        shapes: &[Shape],
        (objective, batches, seed): (Objective, u32, u64),
    ) -> Vec<usize> {
        order(jobs, shapes, OrderBy { objective, batches, seed }, &Budget::new(0, &mut || false)).unwrap()
    }

    fn jobs(count: usize, seed: u64) -> (Vec<ExpectedJob>, Vec<Shape>) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let job = |at: usize| ExpectedJob {
            key: format!("j{at}").into(),
            run: 0,
            arrival: Timestamp(random.random_range(0..20)),
            input: Bytes(0),
            maps: (random.random_range(1..100), Micros(1)),
            reduces: (random.random_range(0..20), Micros(1)),
            shuffle: Bytes(random.random_range(0..1000)),
        };
        let jobs: Vec<ExpectedJob> = (0..count).map(job).collect();
        let shape = |job: &ExpectedJob| Shape {
            pairs: Pairs::none(),
            width: f64::from(job.maps.0 / 10),
            latency: Micros(u64::from(job.maps.0 % 10)),
        };
        let shapes = jobs.iter().map(shape).collect();
        (jobs, shapes)
    }

    #[test]
    fn every_job_has_one_place_whatever_the_objective() {
        let (jobs, shapes) = jobs(57, 3);
        for objective in [Objective::Batch, Objective::Online] {
            let mut order = ordered(&jobs, &shapes, (objective, 5, 1));
            order.sort_unstable();
            assert_eq!(order, (0..57).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sub_batches_ask_for_about_as_much_of_each_resource() {
        let (jobs, _) = jobs(500, 4);
        let batches = divide(&jobs, 5, &Budget::new(0, &mut || false)).unwrap();
        for resource in 0..RESOURCES {
            let sums: Vec<f64> =
                batches.iter().map(|batch| batch.iter().map(|&job| demand(&jobs[job])[resource]).sum()).collect();
            let mean = sums.iter().sum::<f64>() / 5.0;
            assert!(sums.iter().all(|sum| (sum / mean - 1.0).abs() < 0.1), "{resource}: {sums:?}");
        }
    }

    #[test]
    fn within_a_sub_batch_the_widest_and_then_the_longest_comes_first() {
        let (jobs, shapes) = jobs(40, 5);
        let one = ordered(&jobs, &shapes, (Objective::Batch, 1, 9));
        let key = |at: usize| (shapes[at].width, shapes[at].latency);
        assert!(one.windows(2).all(|pair| key(pair[0]) >= key(pair[1])));
        let five = ordered(&jobs, &shapes, (Objective::Batch, 5, 9));
        let rises = five.windows(2).filter(|pair| key(pair[0]) < key(pair[1])).count();
        assert!((1..=4).contains(&rises), "five sub-batches meet at four places: {rises}");
        assert_ne!(five, ordered(&jobs, &shapes, (Objective::Batch, 5, 10)), "the seed joins them");
    }

    #[test]
    fn online_jobs_go_as_they_are_expected() {
        let (jobs, shapes) = jobs(40, 6);
        let order = ordered(&jobs, &shapes, (Objective::Online, 5, 1));
        assert!(order.windows(2).all(|pair| {
            let (a, b) = (&jobs[pair[0]], &jobs[pair[1]]);
            a.arrival < b.arrival || a.arrival == b.arrival && shapes[pair[0]].width >= shapes[pair[1]].width
        }));
    }

    #[test]
    fn the_order_does_not_depend_on_the_order_of_telling() {
        let (jobs, shapes) = jobs(30, 7);
        let names = |jobs: &[ExpectedJob], shapes: &[Shape]| -> Vec<_> {
            ordered(jobs, shapes, (Objective::Batch, 5, 2)).into_iter().map(|at| jobs[at].key.clone()).collect()
        };
        let (mut back_jobs, mut back_shapes) = (jobs.clone(), shapes.clone());
        back_jobs.reverse();
        back_shapes.reverse();
        assert_eq!(names(&jobs, &shapes), names(&back_jobs, &back_shapes));
    }
}
