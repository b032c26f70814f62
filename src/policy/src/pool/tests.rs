//! What the pool says of jobs, against counts of everything.

use super::naive::{At, Naive, State, World, agree};
use super::*;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, View};
use hintd_model::units::AttemptId;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Launches the first local map there is, and tells what the pool says of every job.
struct Teller;

/// By attempt: ratio, shuffle, progress, output and reduces in rack 0, local maps on the node, its smallest and its
/// largest map of at most 60 bytes there.
type OfJob = (AttemptId, Option<f64>, Bytes, f64, Bytes, u32, u32, Option<u32>, Option<u32>);
type JobAnswers = Vec<OfJob>;

thread_local! {
    static TOLD: RefCell<JobAnswers> = const { RefCell::new(Vec::new()) };
}

impl Dispatch for Teller {
    type State = Pool;

    fn start(&self) -> Pool {
        Pool::new(0.2, 0.5)
    }

    fn observe(&self, pool: &mut Pool, event: &DispatchEvent, view: &View<'_>) {
        pool.observe(event, view);
    }

    fn offer(&self, pool: &mut Pool, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        let rack = RackIdx(0);
        let told = pool.jobs().map(|job| {
            let index = |task: Option<Task>| task.map(|task| task.index);
            let smallest = index(pool.local_map(job, &slot, Pick::Smallest));
            let small = index(pool.any_map(job, &slot, Pick::AtMost(Bytes(60))));
            let (shuffle, progress) = (pool.shuffle(job), pool.map_progress(job));
            let (output, reduces) = (pool.output_in(job, rack), pool.reduces_in(job, rack));
            let local = pool.job_local_waiting(job, slot.spot);
            (pool.attempt(job), pool.ratio(job), shuffle, progress, output, reduces, local, smallest, small)
        });
        TOLD.set(told.collect());
        let users = pool.order().iter().filter(|&&user| pool.has_local(user, offer.node));
        let jobs = users.flat_map(|&user| pool.map_jobs(user));
        let task = jobs.filter_map(|job| pool.local_map(job, &slot, Pick::Largest)).next();
        task.map(|task| Advice::Launch(pool.name(task))).into_iter().collect()
    }
}

struct Counted(Rc<RefCell<JobAnswers>>);

impl Naive for Counted {
    fn observe(&mut self, _world: &World, _event: &DispatchEvent, _view: &View<'_>) {}

    fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        // What the dispatcher said at its last offer is compared with what was counted then.
        let said = TOLD.take();
        if !said.is_empty() {
            assert_eq!(said, *self.0.borrow());
        }
        let mut jobs = world.jobs.clone();
        jobs.sort_unstable();
        *self.0.borrow_mut() = jobs.iter().map(|&job| counted(world, job, offer, view)).collect();
        let mut fair = world.fair_jobs().into_iter();
        fair.find_map(|job| world.map_within(job, offer, view, 0)).map(|at| world.name(at))
    }
}

fn counted(world: &World, job: AttemptId, offer: &Offer, view: &View<'_>) -> OfJob {
    let maps: Vec<(At, _)> = world.of(job).filter(|(at, _)| &*world.groups[at.0].told.role == "map").collect();
    let (mut rest, mut output) = (0, 0);
    for (at, state) in &maps {
        match state {
            State::Done(_, bytes) => output += bytes.0,
            _ => rest += world.input(*at).0,
        }
    }
    let ratio = world.ratio(job);
    let reduces = world.of(job).any(|(at, _)| world.is_reduce(at));
    let shuffle = if reduces { output + (rest as f64 * ratio.unwrap_or(1.0)) as u64 } else { 0 };
    let (done, all) = world.maps_done(job);
    let progress = if all == 0 { 1.0 } else { done as f64 / all as f64 };
    let in_rack = world.output_by_rack(job, view).get(&RackIdx(0)).copied().unwrap_or(0);
    let waiting = world.waiting(job, false);
    let on_node = |at: &At| world.replicas(*at, view).contains(&offer.node);
    let local = waiting.iter().filter(|at| on_node(at)).count() as u32;
    let of_first_group = |mut tasks: Vec<At>| -> Vec<At> {
        let group = tasks.iter().map(|at| at.0).min();
        tasks.retain(|at| Some(at.0) == group);
        tasks
    };
    let fit: Vec<At> = waiting.into_iter().filter(|&at| world.fits(at, offer, view)).collect();
    let near = of_first_group(fit.iter().copied().filter(|&at| world.distance(at, offer.node, view) == 0).collect());
    let known: Vec<At> = near.iter().copied().filter(|&at| !world.replicas(at, view).is_empty()).collect();
    let near = if known.is_empty() { near } else { known };
    let smallest = near.into_iter().min_by_key(|&at| (world.input(at), std::cmp::Reverse(at.1)));
    let small = of_first_group(fit.into_iter().filter(|&at| world.input(at) <= Bytes(60)).collect());
    let number = |at: At| at.1 as u32;
    let (smallest, small) = (smallest.map(number), world.largest(small).map(number));
    let there = world.reduces_in(job, RackIdx(0), view) as u32;
    (job, ratio, Bytes(shuffle), progress, Bytes(in_rack), there, local, smallest, small)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_pool_says_of_jobs_what_counting_everything_says(seed: u64) {
        TOLD.take();
        agree(&Teller, &mut Counted(Rc::default()), seed, 300);
    }
}

#[test]
fn shuffles_are_light_below_a_mebibyte_and_heavy_above_a_hundred() {
    let class = |bytes| ShuffleClass::of(Bytes(bytes));
    assert_eq!([class(0), class((1 << 20) - 1)], [ShuffleClass::Light; 2]);
    assert_eq!([class(1 << 20), class(100 << 20)], [ShuffleClass::Medium; 2]);
    assert_eq!(class((100 << 20) + 1), ShuffleClass::Heavy);
}
