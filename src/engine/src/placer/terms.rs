//! Cost terms of a placement, and of the default placement beside it.

use super::compile::Compiled;
use super::{PlacerSettings, SelectedPolicy, compared, hints};
use crate::decision::TermValues;
use hintd_policy::place::readable;
use hintd_policy::terms::evaluate;
use hintd_policy::{Budget, Ended, Place, Placement};
use std::collections::BTreeMap;

/// The terms of the deciding policy's placement; none where nothing found room.
pub(crate) fn of(compiled: &Compiled<'_>, placement: &Placement) -> TermValues {
    if placement.placed_all() == 0 {
        return TermValues::default();
    }
    // A policy that follows a rule has no objective: nothing, not zero.
    let rated = placement.objective != 0.0 || !placement.parts.is_empty();
    let terms = evaluate(&compiled.problem, placement);
    let known = |term: Option<f64>| term.filter(|value| value.is_finite());
    TermValues {
        remote_bytes: known(terms.remote_bytes),
        cross_rack_bytes: known(terms.cross_rack_bytes),
        core_hops: known(terms.core_hops),
        worst_link_s: known(terms.worst_link_s),
        balance: known(terms.balance),
        objective: rated.then_some(placement.objective).filter(|value| value.is_finite()),
        parts: finite(placement.parts.iter().cloned()),
        links: compared::links(&compiled.problem, placement, &terms),
    }
}

/// Where YARN would put the containers by itself; `None` where there was no time to tell.
pub(crate) fn default_placement(
    compiled: &Compiled<'_>,
    chosen: &SelectedPolicy<'_>,
    settings: &PlacerSettings,
    stop: &mut dyn FnMut() -> bool,
) -> Option<Placement> {
    let default = chosen.baseline.as_place()?;
    let mut budget = Budget::new(settings.steps, stop);
    let placement = default.place(&readable(default, &compiled.problem), &mut budget).ok()?;
    // Half a placement is no comparison.
    (placement.ended != Ended::Deadline).then(|| hints::within(compiled, placement))
}

/// The default placement's terms under the deciding policy's objective, and what the hints gain over it; absent where the
/// policy has no objective for others' placements.
pub(crate) fn compare(
    compiled: &Compiled<'_>,
    place: &dyn Place,
    (placement, other): (&Placement, &Placement),
    budget: &Budget<'_>,
) -> (Option<TermValues>, Option<f64>) {
    let mut terms = of(compiled, other);
    let objective = place.objective_within(&readable(place, &compiled.problem), other, budget);
    terms.objective = objective.as_ref().map(|objective| objective.value).filter(|value| value.is_finite());
    terms.parts = finite(objective.into_iter().flat_map(|objective| objective.parts));
    // A gain is told only where both put the same number of containers somewhere.
    let alike = other.placed_all() == placement.placed_all();
    let gain = terms.objective.filter(|&objective| alike && objective > 0.0);
    let gain = gain.map(|objective| (objective - placement.objective) / objective).filter(|gain| gain.is_finite());
    (Some(terms), gain)
}

/// JSON, and so the journal, has no infinities: a part that can't be told is absent.
fn finite(parts: impl Iterator<Item = (String, f64)>) -> BTreeMap<String, f64> {
    parts.filter(|(_, value)| value.is_finite()).collect()
}
