//! `spread`: least-loaded nodes first, each container of a group on a node of its own while there are any.

use crate::policy::filling::{Filling, by_priority};
use crate::policy::load::load;
use crate::policy::params::{self, Invalid, ParamError, Params, PolicyTable};
use crate::policy::{Budget, Place, PlaceError, PlaceProblem, Placement, Policy};
use crate::units::NodeIdx;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Its name.
pub const NAME: &str = "spread";
/// What it is.
pub const SUMMARY: &str = "least-loaded nodes first, containers of a group on different nodes; baseline of 003";

/// It has no parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadParams {}

impl Params for SpreadParams {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    params: SpreadParams,
}

/// Makes it from its configuration table.
///
/// # Errors
/// [`ParamError`] for any key: it has no parameters.
pub fn build(table: PolicyTable<'_>) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(Spread { params: params::read(NAME, table)? }))
}

impl Policy for Spread {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        SUMMARY
    }

    fn params_toml(&self) -> String {
        params::to_toml(&self.params)
    }

    fn as_place(&self) -> Option<&dyn Place> {
        Some(self)
    }
}

impl Place for Spread {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let mut filling = Filling::new(problem);
        for group in by_priority(problem) {
            if problem.groups[group].count == 1 {
                if let Some(rank) = ranks(problem, &filling, group).min() {
                    filling.put(group, 0, rank.2);
                }
            } else {
                fill(problem, &mut filling, group);
            }
        }
        Ok(filling.finish(budget))
    }
}

/// (containers of the group there, load in parts per million after rounding, node): least first. Equal ranks go
/// by a seeded shuffle of nodes, so that like requests do not all meet on the first node.
type Rank = (u32, (u32, u32), NodeIdx);

fn rank(problem: &PlaceProblem<'_>, filling: &Filling<'_, '_>, group: usize, node: NodeIdx) -> Option<Rank> {
    let room = filling.room_if_fits(group, node)?;
    let used = (load(problem.snapshot, node, &room) * 1e6) as u32;
    let shuffled = (node.0 ^ problem.seed as u32).wrapping_mul(0x9e37_79b1);
    Some((filling.on_node(group, node), (used, shuffled), node))
}

fn ranks<'a>(
    problem: &'a PlaceProblem<'_>,
    filling: &'a Filling<'_, '_>,
    group: usize,
) -> impl Iterator<Item = Rank> + 'a {
    problem.groups[group].candidates.iter().filter_map(move |&node| rank(problem, filling, group, node))
}

/// Heap of all candidates, made in linear time; a node comes back with its new rank after each container.
fn fill(problem: &PlaceProblem<'_>, filling: &mut Filling<'_, '_>, group: usize) {
    let mut heap: BinaryHeap<Reverse<Rank>> = ranks(problem, filling, group).map(Reverse).collect();
    let mut task = 0;
    while task < problem.groups[group].count {
        let Some(Reverse((.., node))) = heap.pop() else { break };
        // A rack bound may have been reached since.
        if !filling.fits(group, node) {
            continue;
        }
        filling.put(group, task, node);
        task += 1;
        heap.extend(rank(problem, filling, group, node).map(Reverse));
    }
}
