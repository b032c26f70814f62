//! `delay` against its description, which looks at everything.

use super::*;
use crate::dispatch::TaskRef;
use crate::pool::naive::{Naive, World, agree};
use hintd_model::units::AttemptId;
use proptest::prelude::*;
use std::collections::BTreeMap;

struct Described {
    params: DelayParams,
    skips: BTreeMap<AttemptId, u32>,
}

impl Naive for Described {
    fn observe(&mut self, world: &World, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Launched { task, node } => {
                let at = world.find(task);
                if !world.is_reduce(at) && world.distance(at, *node, view) == 0 {
                    self.skips.remove(&task.attempt);
                }
            }
            DispatchEvent::Done(job) => {
                self.skips.remove(job);
            }
            _ => {}
        }
    }

    fn offer(&mut self, world: &World, offer: &Offer, view: &View<'_>) -> Option<TaskRef> {
        let DelayParams { node_skips, rack_skips, slow_start, early_reduces } = self.params;
        for jobs in world.by_user() {
            if let Some(at) = jobs.iter().find_map(|&job| world.reduce(job, offer, view, (slow_start, early_reduces))) {
                return Some(world.name(at));
            }
            for job in jobs.into_iter().filter(|&job| !world.waiting(job, false).is_empty()) {
                let skips = self.skips.entry(job).or_insert(0);
                let reach = u8::from(*skips >= node_skips) + u8::from(*skips >= node_skips + rack_skips);
                if let Some(at) = world.map_within(job, offer, view, reach) {
                    return Some(world.name(at));
                }
                *skips += 1;
            }
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn it_launches_what_the_description_does(
        seed: u64,
        node_skips in 0_u32..6,
        rack_skips in 0_u32..4,
        early_reduces in 0.0..=0.3,
    ) {
        let params = DelayParams { node_skips, rack_skips, slow_start: 0.2, early_reduces };
        let mut described = Described { params: params.clone(), skips: BTreeMap::new() };
        let launches = agree(&Delay { params }, &mut described, seed, 300);
        prop_assert!(launches > 10, "{launches}");
    }
}
