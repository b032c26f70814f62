//! *place together*: requests that wait at one time, placed as one.

use super::budget::Budget;
use super::place::Placement;
use super::problem::PlaceProblem;
use hintd_model::cluster::Overlay;
use std::sync::Arc;

/// Decides where the containers of several requests go.
pub trait PlaceTogether: Send + Sync {
    /// One placement for each problem, in their order. All are of one snapshot and its leases, and together they are within its room.
    /// Their cost is never above that of placing one after the other; one problem alone is placed as [`super::Place`] places it.
    /// A gang that has to be whole and is not takes no room from the others.
    fn place_together(&self, problems: &[PlaceProblem<'_>], budget: &mut Budget<'_>) -> Together;
}

/// What requests of a round come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// By problem.
    pub placements: Vec<Placement>,
    /// What all of them cost by the policy's objective, containers without a place included.
    pub cost: f64,
    /// What they would cost if each were placed in its turn.
    pub cost_in_turn: f64,
}

impl PlaceProblem<'_> {
    /// The same problem where this is leased, which is at least what was leased before: candidates that have no room left are
    /// none, and counts are cut to what fits.
    #[must_use]
    pub fn beside<'b>(&'b self, leases: &'b Overlay) -> PlaceProblem<'b> {
        let mut problem = PlaceProblem { leases, loads: None, ..self.clone() };
        let snapshot = self.snapshot;
        for at in 0..problem.groups.len() {
            let group = &self.groups[at];
            let open = |node: &_| snapshot.rules.feasible(&group.size, &snapshot.room(*node, leases));
            if !group.candidates.iter().all(open) {
                problem.groups[at].candidates = group.candidates.iter().copied().filter(open).collect::<Arc<[_]>>();
            }
        }
        problem.cut();
        problem
    }

    /// Cuts counts to what could fit now, each group by itself, so that no policy walks through containers in vain.
    pub fn cut(&mut self) {
        for at in 0..self.groups.len() {
            let group = &self.groups[at];
            // With a candidate for each container there is nothing to cut, and no need to count.
            if group.count as usize <= group.candidates.len() {
                continue;
            }
            let rules = &self.snapshot.rules;
            let on = |&node| rules.how_many(&group.size, &self.room(node)).min(group.max_per_node);
            let fits = group.candidates.iter().fold(0_u32, |sum, node| sum.saturating_add(on(node)));
            self.groups[at].count = group.count.min(fits.max(1));
        }
    }
}
