//! `nas` (paper 004 chapter 3): which waiting task a node with a free container runs, so that little shuffle crosses
//! racks at a time.
//!
//! Algorithm 1: reduces by CA-RTS (Algorithm 3), or by CR-RTS (Algorithm 4) while the node's rack is congested; maps by
//! MTS (Algorithm 2). docs/policies.md says how gaps of the paper are settled. `plain` is the same without indexes,
//! which tests hold against it.

mod explain;
mod maps;
mod params;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod property;
mod reduces;
mod rules;
mod skips;
mod state;
#[cfg(test)]
mod tests;

pub use params::{HoldMaps, NasParams, Shuffle, SkipBy};
pub use state::NasState;

use crate::adapt::OfferInTurn;
use crate::dispatch::{Advice, DispatchEvent, Offer, View};
use crate::params::PolicyTable;
use crate::pool::OfferedNode;
use crate::{Budget, Capabilities, Definition, Dispatch, Place, PlaceError, PlaceProblem, Placement};
use std::borrow::Cow;
use toml::Spanned;
use toml::de::DeValue;

/// The policy.
#[derive(Debug, Clone, Default)]
pub struct Nas {
    params: NasParams,
}

impl Definition for Nas {
    type Params = NasParams;
    const NAME: &'static str = "nas";
    const SUMMARY: &'static str =
        "limits a node's shuffle traffic, spreads it over racks, and holds it back from racks that are congested";

    fn new(params: NasParams) -> Self {
        Self { params }
    }

    fn params(&self) -> &NasParams {
        &self.params
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities { place: Some(self), dispatch: Some(self), ..Capabilities::default() }
    }

    /// Time bounds skipping unless the table says otherwise: offers come as fast as the cluster is large there, so that
    /// 135 of them are no span of time (policies.md).
    fn deployed(mut table: PolicyTable<'_>) -> PolicyTable<'_> {
        let nowhere = || 0..0; // it stands in no file
        let key = Spanned::new(nowhere(), Cow::Borrowed("skip_by"));
        let time = || Spanned::new(nowhere(), DeValue::String(Cow::Borrowed("time")));
        table.get_mut().entry(key).or_insert_with(time);
        table
    }
}

impl Place for Nas {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        // Offers follow each other without time passing: they are counted, whatever bounds skipping otherwise, and no
        // rack clears between them.
        let (skip_by, hold_maps) = (SkipBy::Count, HoldMaps::UntilDue);
        let params = NasParams { skip_by, hold_maps, ..self.params.clone() };
        let rounds = params.map_skips.max(params.reduce_skips).saturating_add(1);
        OfferInTurn::new(Self { params }, rounds).place(problem, budget)
    }
}

impl Dispatch for Nas {
    type State = NasState;

    fn start(&self) -> NasState {
        NasState::new(&self.params)
    }

    fn observe(&self, state: &mut NasState, event: &DispatchEvent, view: &View<'_>) {
        state.observe(&self.params, event, view);
    }

    fn offer(&self, state: &mut NasState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let slot = OfferedNode::new(offer, view);
        state.refresh(&self.params, view.now);
        // A user is asked for reduces, then for maps, before the next one is.
        let map = maps::find(&self.params, state, &slot);
        let reduce = reduces::reduce(&self.params, state, &slot, map.map(|(place, _)| place));
        let found = reduce.or(map);
        maps::pass_over(&self.params, state, &slot, found.map(|(place, _)| place));
        match found.map(|(_, task)| task) {
            Some(task) => vec![Advice::Launch(state.pool.name(task))],
            None if view.explain => explain::explain(&self.params, state, &slot),
            None => Vec::new(),
        }
    }
}
