//! Requests of one round: decided together on one generation, each answered by itself.
//!
//! A request that is refused, or kept back, or has nothing to search for, is answered as if it were alone, and the others as if it
//! were not there. So is one of which it can't be said beforehand what it takes ([`may_gather`]). One refusal comes too late for
//! that: an answer that is too large (`limits.answer_bytes`) leases nothing, and its room is not given to others of the round.
//! Who gets less than was asked for is told why and for how long beside what the others of the round take.

use super::{
    Approach, Begun, Names, PlacerSettings, Proposal, ProposalContext, Searched, SelectedPolicy, hints, is_chained,
    is_in_vain, parts, propose, readable,
};
use crate::decision::{Mode, RoundNote};
use crate::flows::settings::ChainSettings;
use crate::generation::Generation;
use crate::refusal::Refusal;
use hintd_model::cluster::{Gang, HintRequest, Overlay, Resource};
use hintd_model::units::{NodeIdx, Timestamp};
use hintd_policy::{Budget, Ended, Place, PlaceProblem, Placement};
use std::sync::Arc;

/// A request of a round.
#[derive(Debug, Clone, Copy)]
pub struct RoundMember<'a> {
    /// What is asked.
    pub request: &'a Arc<HintRequest>,
    /// Its own settings.
    pub settings: &'a PlacerSettings,
}

/// Whether a request may be decided together with others: the policy can, and what it places is what will be leased. Of groups
/// that are asked for in parts more is placed than is asked for now, and traffic under chains is looked at when all is placed.
#[must_use]
pub fn may_gather(
    generation: &Generation,
    request: &HintRequest,
    chosen: &SelectedPolicy<'_>,
    settings: &ChainSettings,
) -> bool {
    chosen.mode == Mode::On
        && chosen.policy.as_place().and_then(Place::as_together).is_some()
        && !request.groups.iter().any(parts::is_part)
        && !is_chained(generation, request, settings)
}

/// Decides where the containers of all members should go: together, where the policy can and they may. One result for each, in
/// their order.
pub fn propose_together(
    generation: &Generation,
    chosen: &SelectedPolicy<'_>,
    members: &[RoundMember<'_>],
    now: Timestamp,
    stop: &mut dyn FnMut() -> bool,
) -> Vec<Result<Proposal, Refusal>> {
    if chosen.mode == Mode::Off {
        let alone =
            |member: &RoundMember<'_>| propose(generation, member.request, chosen, member.settings, now, &mut *stop);
        return members.iter().map(alone).collect();
    }
    let names: Vec<Names> = members.iter().map(|member| Names::of(member.request)).collect();
    let contexts = members.iter().map(|member| ProposalContext {
        generation,
        request: member.request,
        chosen,
        settings: member.settings,
        now,
    });
    let contexts: Vec<ProposalContext<'_>> = contexts.collect();
    let begun: Vec<Result<Begun<'_>, Refusal>> =
        contexts.iter().zip(&names).map(|(context, names)| context.begin(names)).collect();
    let mut round = Round::decide(&contexts, &begun, stop);
    let answer = |(at, (begun, context)): (usize, (Result<Begun<'_>, Refusal>, &ProposalContext<'_>))| {
        let Begun { compiled, approach } = begun?;
        let approach = match approach {
            Err(reason) => return Ok(context.not_searched(compiled, reason)),
            Ok(approach) => approach,
        };
        match round.placed[at].take() {
            None => context.searched(compiled, &approach, stop),
            // Of one that was cut short nobody knows what it has no room for.
            Some(placed) if placed.is_whole || placed.in_all.ended == Ended::Deadline => {
                let with = round.with(&placed.taken);
                context.placed(compiled, &approach, Searched::all(placed.in_all), with, stop)
            }
            Some(placed) => {
                drop(compiled);
                beside(context, &mut round, placed, stop)
            }
        }
    };
    begun.into_iter().zip(&contexts).enumerate().map(answer).collect()
}

/// The round that a request was decided in.
#[derive(Debug)]
pub(super) struct DecidedWith {
    pub(super) note: RoundNote,
    /// What was leased before, and what the others of the round take.
    pub(super) leases: Overlay,
}

/// What a round gives one of its requests.
#[derive(Debug)]
struct Placed {
    /// Of whole groups, as [`super::Found::in_all`].
    in_all: Placement,
    /// It has what it asked for.
    is_whole: bool,
    /// What it takes: nothing, of a gang that has to be whole and is not.
    taken: Taken,
}

/// Room that a request takes, by node.
#[derive(Debug, Default)]
struct Taken(Vec<(NodeIdx, Resource)>);

/// What a round came to.
#[derive(Debug)]
struct Round {
    /// By request; `None`: it is answered as if it were alone.
    placed: Vec<Option<Placed>>,
    /// What was leased before, and what the round takes.
    leases: Overlay,
    note: Option<RoundNote>,
}

impl Round {
    fn decide(
        contexts: &[ProposalContext<'_>],
        begun: &[Result<Begun<'_>, Refusal>],
        stop: &mut dyn FnMut() -> bool,
    ) -> Self {
        let mut round = Self { placed: begun.iter().map(|_| None).collect(), leases: Overlay::default(), note: None };
        let ready = |(at, begun): (usize, &Result<Begun<'_>, Refusal>)| {
            let begun = begun.as_ref().ok()?;
            let ProposalContext { generation, request, chosen, settings, .. } = contexts[at];
            let gathers = may_gather(generation, request, chosen, &settings.chains);
            (gathers && begun.approach.is_ok() && !is_in_vain(&begun.compiled)).then_some(at)
        };
        let together: Vec<usize> = begun.iter().enumerate().filter_map(ready).collect();
        let place = contexts.first().and_then(|context| context.chosen.policy.as_place());
        let Some((place, decides)) = place.and_then(|place| Some((place, place.as_together()?))) else { return round };
        if together.len() < 2 {
            return round;
        }
        let compiled = |at: usize| begun[at].as_ref().ok().map(|begun| &begun.compiled);
        let problems: Vec<PlaceProblem<'_>> =
            together.iter().filter_map(|&at| Some(readable(place, &compiled(at)?.problem).into_owned())).collect();
        let steps: Vec<u64> = together.iter().map(|&at| contexts[at].settings.steps).collect();
        let all = steps.iter().fold(0, |sum: u64, &steps| sum.saturating_add(steps));
        let found = decides.place_together(&problems, &steps, &mut Budget::new(all, stop));
        round.leases = contexts[0].generation.leases.clone();
        for (&at, placement) in together.iter().zip(found.placements) {
            let Some(compiled) = compiled(at) else { continue };
            let in_all = hints::within(compiled, placement);
            let hinted = parts::hinted(&compiled.problem, &in_all, compiled.groups.iter().map(|wish| wish.count));
            let is_whole = compiled.groups.iter().enumerate().all(|(group, wish)| hinted.placed(group) == wish.count);
            let is_of_use = is_whole || compiled.problem.gang == Gang::UpTo;
            let taken = if is_of_use { Taken(hinted.taken(&compiled.problem).collect()) } else { Taken::default() };
            round.take(&taken);
            round.placed[at] = Some(Placed { in_all, is_whole, taken });
        }
        let requests = u32::try_from(together.len()).unwrap_or(u32::MAX);
        round.note = Some(RoundNote { requests, cost: found.cost, cost_in_turn: found.cost_in_turn });
        round
    }

    fn take(&mut self, taken: &Taken) {
        for (node, size) in &taken.0 {
            self.leases.set(*node, self.leases.leased(*node).plus(size));
        }
    }

    /// What was leased before, and what others of the round take.
    fn without(&self, taken: &Taken) -> Overlay {
        let mut leases = self.leases.clone();
        for (node, size) in &taken.0 {
            leases.set(*node, leases.leased(*node).minus(size));
        }
        leases
    }

    /// What a request that takes this was decided with.
    fn with(&self, taken: &Taken) -> Option<DecidedWith> {
        self.note.map(|note| DecidedWith { note, leases: self.without(taken) })
    }
}

/// The answer of a request that did not get all that it asked for, as if the others of its round had theirs already: why, and for
/// how long, is then told as for any other. A gang that has to be whole is searched for once more, in what they leave.
fn beside(
    context: &ProposalContext<'_>,
    round: &mut Round,
    placed: Placed,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Proposal, Refusal> {
    let generation = Generation { leases: round.without(&placed.taken), ..context.generation.clone() };
    let context = ProposalContext { generation: &generation, ..*context };
    let names = Names::of(context.request);
    let Begun { compiled, approach } = context.begin(&names)?;
    let approach: Approach<'_> = match approach {
        Err(reason) => return Ok(context.not_searched(compiled, reason)),
        Ok(approach) => approach,
    };
    if compiled.problem.gang == Gang::UpTo {
        let found = Searched::all(hints::within(&compiled, placed.in_all));
        return context.placed(compiled, &approach, found, round.with(&placed.taken), stop);
    }
    let mut proposal = context.searched(compiled, &approach, stop)?;
    proposal.draft.round = round.note;
    let leased = proposal.rows.iter().filter(|row| row.lease);
    round.take(&Taken(leased.map(|row| (row.node, row.size.times(u64::from(row.count)))).collect()));
    Ok(proposal)
}
