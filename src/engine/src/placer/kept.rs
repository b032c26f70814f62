//! Which nodes a policy keeps a request to, where it does: also where none of them has room, so that it waits there.

use super::compile::Compiled;
use crate::decision::TermValues;
use hintd_model::units::NodeIdx;
use hintd_policy::place::{KeptTo, readable};
use hintd_policy::{Place, Placement};

/// The nodes, and what the policy went by; `placement`: of whole groups.
pub(super) fn of(compiled: &Compiled<'_>, place: &dyn Place, placement: &Placement) -> Option<KeptTo> {
    let snapshot = compiled.problem.snapshot;
    let could = |at: usize| -> Vec<NodeIdx> {
        let group = &compiled.problem.groups[at];
        let holds = |node: &NodeIdx| {
            let total = &snapshot.statics.total[node.at()];
            snapshot.state[node.at()].usable() && snapshot.rules.feasible(&group.size, total)
        };
        compiled.groups[at].filter.eligible(snapshot).filter(holds).collect()
    };
    place.keeps_to(&readable(place, &compiled.problem), placement, &could)
}

/// Where nothing found room there are no terms: why it waits where it does is said all the same.
pub(super) fn explain(terms: &mut TermValues, kept: Option<&KeptTo>) {
    if terms.parts.is_empty() {
        let parts = kept.into_iter().flat_map(|kept| kept.parts.iter().cloned());
        terms.parts = parts.filter(|(_, value)| value.is_finite()).collect();
    }
}
