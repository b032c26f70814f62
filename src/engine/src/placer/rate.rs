//! Two placements of one problem, each under both policies' objectives.

use super::compile::compile;
use super::{PlacerSettings, Row, SelectedPolicy, placing, planned, search, terms};
use crate::decision::TermValues;
use crate::flows::Names;
use crate::generation::Generation;
use crate::refusal::Refusal;
use hintd_model::cluster::HintRequest;
use hintd_model::units::Timestamp;
use hintd_policy::place::readable;
use hintd_policy::{Ended, Placement, Policy, Share};

/// One side of a comparison.
pub(crate) struct Side<'a> {
    pub(crate) chosen: SelectedPolicy<'a>,
    /// Where a dispatcher launches; `None`: the policy places, and is to do it again.
    pub(crate) launched: Option<&'a [Row]>,
    pub(crate) stop: &'a mut dyn FnMut() -> bool,
}

/// What the placements of both sides cost.
#[derive(Debug)]
pub(crate) struct Rates {
    pub(crate) terms: [TermValues; 2],
    /// By whose objective, of whose placement.
    pub(crate) objectives: [[Option<f64>; 2]; 2],
    /// Both put the same number of containers somewhere.
    pub(crate) alike: bool,
}

/// Rates the placements of both sides.
///
/// # Errors
/// [`Refusal`] where the request can't be compiled, or a side can't place it.
pub(crate) fn rate(
    generation: &Generation,
    request: &HintRequest,
    settings: &PlacerSettings,
    now: Timestamp,
    sides: [Side<'_>; 2],
) -> Result<Rates, Refusal> {
    let names = Names::of(request);
    let mut compiled = compile(generation, (request, names.both()), settings, now)?;
    let policies = [sides[0].chosen.policy, sides[1].chosen.policy];
    let groups = compiled.groups.len();
    let mut placements = Vec::with_capacity(2);
    for side in sides {
        planned::plan(&mut compiled, request, side.chosen.policy, settings, now);
        placements.push(match side.launched {
            Some(rows) => launched(rows, groups),
            None => search(&compiled, placing(&side.chosen)?, settings, side.stop)?.in_all,
        });
    }
    let objective = |policy: &dyn Policy, placement: &Placement| {
        if placement.placed_all() == 0 {
            return None;
        }
        let place = policy.as_place()?;
        let objective = place.objective(&readable(place, &compiled.problem), placement)?;
        Some(objective.value).filter(|value| value.is_finite())
    };
    let of = |placement: usize| terms::of(&compiled, &placements[placement]);
    Ok(Rates {
        terms: [of(0), of(1)],
        objectives: policies.map(|policy| [0, 1].map(|at| objective(policy, &placements[at]))),
        alike: placements[0].placed_all() == placements[1].placed_all(),
    })
}

fn launched(rows: &[Row], groups: usize) -> Placement {
    let mut by_group: Vec<Vec<Share>> = vec![Vec::new(); groups];
    for row in rows.iter().filter(|row| row.group < groups) {
        by_group[row.group].push(Share { node: row.node, count: row.count });
    }
    Placement {
        groups: by_group,
        routes: Vec::new(),
        objective: 0.0,
        parts: Vec::new(),
        ended: Ended::Complete,
        gap: None,
        steps: 0,
    }
}
