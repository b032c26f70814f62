//! `pna` against its description, which prices every task on every node.

use super::*;
use crate::policy::dispatch::TaskRef;
use crate::policy::pool::naive::{At, Naive, World, agree};
use crate::units::AttemptId;
use proptest::prelude::*;
use std::cmp::Reverse;

struct Described {
    params: PnaParams,
    draws: u64,
}

fn cost(world: &World, at: At, node: NodeIdx, view: &View<'_>) -> f64 {
    let input = world.input(at).as_f64();
    if world.is_reduce(at) {
        let job = world.groups[at.0].told.attempt;
        let by_rack = world.output_by_rack(job, view);
        let hops = |rack| if view.snapshot.rack(node) == rack { 2.0 } else { 4.0 };
        let reduces = world.of(job).filter(|(at, _)| world.is_reduce(*at)).count();
        return by_rack.into_iter().map(|(rack, bytes)| hops(rack) * bytes as f64).sum::<f64>() / reduces as f64;
    }
    input * [0.0, 2.0, 4.0][world.distance(at, node, view) as usize]
}

impl Described {
    fn accepts(&mut self, world: &World, at: At, offer: &Offer, view: &View<'_>) -> bool {
        let here = cost(world, at, offer.node, view);
        if here == 0.0 {
            return true;
        }
        // Nothing but offers says who is free in these tests: the snapshot has every node free.
        let nodes: Vec<NodeIdx> = view.snapshot.statics.indexes().collect();
        let mean = nodes.iter().map(|&node| cost(world, at, node, view)).sum::<f64>() / nodes.len() as f64;
        self.draws += 1;
        draw(u64::from(self.params.seed), self.draws) < 1.0 - (-mean / here).exp()
    }

    fn cheapest(world: &World, job: AttemptId, offer: &Offer, view: &View<'_>) -> Option<At> {
        if let Some(at) = world.map_within(job, offer, view, 0) {
            return Some(at);
        }
        let mut fit = world.waiting(job, false);
        fit.retain(|&at| world.fits(at, offer, view));
        let smallest = |distance: u8| {
            let mut near = fit.clone();
            near.retain(|&at| world.distance(at, offer.node, view) <= distance);
            let group = near.iter().map(|at| at.0).min();
            near.retain(|at| Some(at.0) == group);
            near.into_iter().min_by_key(|&at| (world.input(at), Reverse(at.1)))
        };
        let price = |at: &At| cost(world, *at, offer.node, view);
        [smallest(1), smallest(2)].into_iter().flatten().min_by(|a, b| price(a).total_cmp(&price(b)))
    }
}

impl Naive for Described {
    fn observe(&mut self, _world: &World, _event: &DispatchEvent, _view: &View<'_>) {}

    fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        let (jobs, shares) = (world.fair_jobs(), (self.params.slow_start, self.params.early_reduces));
        for &job in &jobs {
            if let Some(at) = world.reduce(job, offer, view, shares)
                && self.accepts(world, at, offer, view)
            {
                return Some(world.name(at));
            }
        }
        for &job in &jobs {
            if let Some(at) = Self::cheapest(world, job, offer, view)
                && self.accepts(world, at, offer, view)
            {
                return Some(world.name(at));
            }
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn it_launches_what_the_description_does(state: u64, seed: u32, early_reduces in 0.0..=0.3) {
        let params = PnaParams { seed, slow_start: 0.2, early_reduces };
        let mut described = Described { params: params.clone(), draws: 0 };
        let launches = agree(&Pna { params }, &mut described, state, 300);
        prop_assert!(launches > 10, "{launches}");
    }
}

#[test]
fn a_task_is_launched_with_a_probability_that_falls_as_its_cost_exceeds_the_mean() {
    let share = |cost: f64| {
        let dice = Dice { seed: 3, draws: Cell::new(0) };
        (0..4_000).filter(|_| dice.accepts(cost, || 1.0)).count() as f64 / 4_000.0
    };
    assert_eq!(share(0.0), 1.0);
    let (half, mean, double) = (share(0.5), share(1.0), share(2.0));
    assert!((half - 0.865).abs() < 0.02 && (mean - 0.632).abs() < 0.02 && (double - 0.393).abs() < 0.02);
}
