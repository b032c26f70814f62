//! `random`: every container on a node drawn evenly among those with room.

use crate::params::{Invalid, Params};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::{Budget, Capabilities, Definition, Place, PlaceError, PlaceProblem, Placement};
use hintd_model::units::NodeIdx;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// Its name.
pub const NAME: &str = "random";

/// It has no parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomParams {}

impl Params for RandomParams {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Random {
    params: RandomParams,
}

impl Definition for Random {
    type Params = RandomParams;
    const NAME: &'static str = NAME;
    const SUMMARY: &'static str = "any node that has room, by chance: to compare with";

    fn new(params: RandomParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &RandomParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), ..Capabilities::default() }
    }
}

impl Place for Random {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
        let mut filling = PlacementBuilder::new(problem);
        for group in by_priority(problem) {
            let bounds = &problem.groups[group];
            let mut open: Vec<NodeIdx> = bounds.candidates.to_vec();
            let mut used: Vec<NodeIdx> = Vec::new();
            for task in 0..bounds.count {
                if budget.over() {
                    break;
                }
                let Some(at) = draw(&mut random, &mut open, &mut used, |node| filling.fits(group, node)) else { break };
                filling.put(group, task, open[at]);
                if bounds.spread {
                    used.push(open.swap_remove(at));
                }
            }
        }
        Ok(filling.finish(budget))
    }

    fn knows_senders(&self) -> bool {
        true // stock YARN and the like go by none
    }
}

/// A position in `open` with room; nodes without are dropped, and `used` ones come back when none is left.
fn draw(
    random: &mut ChaCha8Rng,
    open: &mut Vec<NodeIdx>,
    used: &mut Vec<NodeIdx>,
    fits: impl Fn(NodeIdx) -> bool,
) -> Option<usize> {
    loop {
        if open.is_empty() {
            std::mem::swap(open, used);
        }
        if open.is_empty() {
            return None;
        }
        let at = random.random_range(0..open.len());
        if fits(open[at]) {
            return Some(at);
        }
        open.swap_remove(at);
    }
}
