//! The placer: one request and one generation to one proposal. Pure; runs on the worker pool.
//!
//! # Code map
//! - `compile`: names to dense columns; `scan`, the nodes that can; `input_blocks`, where the input lies; `sources`, what came before.
//! - `large`: what would not fit an `empty_cluster`; `wait`: what does not fit now; `waiting`: what a dispatcher decides; `blocked`:
//!   what keeps nodes from taking what found no room.
//! - `kept`: which nodes a policy keeps the request to. `planned`: the plan in force, for policies that follow it.
//! - `chained`: whether the placement keeps the chains of middleboxes that its traffic is under.
//! - `parts`: groups that are asked for in parts, placed as one.
//! - `guard`: hints that would do no good are kept back; `together`: requests of one round.
//! - `rate`: two placements under two objectives.
//! - `hints`: columns to names; `asks`: the replacement table; `terms`, `compared`: costs, and the default placement's beside.

mod asks;
mod blocked;
mod chained;
mod compared;
mod compile;
mod empty_cluster;
mod guard;
mod hints;
mod input_blocks;
mod kept;
mod large;
mod nearest;
mod parts;
mod planned;
mod rate;
mod scan;
mod sources;
mod terms;
mod together;
mod wait;
mod waiting;

use super::adherence::Trial;
use super::compared::Unguarded;
use super::decision::{Decision, Mode, TermValues, Withheld, WithheldReason};
use super::dispatching::{DispatchRequest, ImmediateRequest};
use super::flows::settings::{ChainSettings, RouteSettings};
use super::flows::{Names, PATHS_CUT_SHORT, ProposedFlows, TOO_MANY_PAIRS, shares};
use super::generation::Generation;
use super::plans::PlannedRun;
use super::proof::Proof;
use super::refusal::Refusal;
use super::settings::SourceAges;
use super::worth::Part;
use compile::{Compiled, compile};
use hintd_model::cluster::{Dataset, Gang, HintRequest, Overlay, WhenFull};
use hintd_model::units::{Bytes, DecisionId, Micros, Timestamp};
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::cross_layer::first_routes;
use hintd_policy::fallbacks::{DEFAULT_FALLBACKS, Fallbacks};
use hintd_policy::place::readable;
use hintd_policy::terms::are_known;
use hintd_policy::{Budget, Ended, GroupProblem, Place, PlaceError, PlaceProblem, Placement, Policy, Share};
use hints::AnswerContext;
use std::sync::Arc;

pub use asks::check_keys;
pub(crate) use asks::replacement_asks;
pub(crate) use compile::{edges, may_go};
pub use guard::Guard;
pub(crate) use hints::{Hints, Row};
pub(crate) use rate::{Rates, Side, rate};
pub use scan::SnapshotScans;
use together::DecidedWith;
pub use together::{RoundMember, may_gather, propose_together};
pub(crate) use waiting::seed_of;
pub use waiting::{is_chained, may_wait, propose_waiting};

/// Steps of the search for routes where the policy chose none: some 5 ms at 1,000 hosts.
const ROUTE_STEPS: u64 = 2_000;

/// What decides.
#[derive(Clone, Copy)]
pub struct SelectedPolicy<'a> {
    /// The policy.
    pub policy: &'a dyn Policy,
    /// The default placement, for comparison.
    pub baseline: &'a dyn Policy,
    /// What the queue gets.
    pub mode: Mode,
    /// The name under which configuration or request chose the policy.
    pub name: &'a str,
}

/// Settings of the placer.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacerSettings {
    /// Steps a search may take.
    pub steps: u64,
    /// Next best hosts named beside each hint's.
    pub fallbacks: usize,
    /// Whether the default placement is computed as well, time allowing.
    pub baseline: bool,
    /// Keeps back hints that would do no good; `None`: all are given, as where a paper is reproduced.
    pub guard: Option<Guard>,
    /// Keeps all hints back, whatever they would do: the application is held out, or its recurring job is stopped.
    pub withhold: Option<WithheldReason>,
    /// Containers one request may ask for.
    pub containers_max: u64,
    /// Ages beyond which a source counts as old.
    pub max_age: SourceAges,
    /// A request that makes more pairs of nodes talk is placed without flows.
    pub pairs_max: usize,
    /// Pairs of nodes that send less get no route: they go by default forwarding.
    pub min_bytes: Bytes,
    /// Traffic under chains of middleboxes.
    pub chains: ChainSettings,
    /// What a NameNode that is asked for paths on demand said of the request's: notes for the answer. A path without
    /// blocks is no refusal then. `None`: nobody is asked.
    pub located: Option<Arc<[String]>>,
    /// How the request's run stands to the plan in force, for policies that follow plans.
    pub planned: Option<Arc<PlannedRun>>,
}

impl Default for PlacerSettings {
    fn default() -> Self {
        Self {
            steps: DEFAULT_STEPS,
            fallbacks: DEFAULT_FALLBACKS,
            baseline: true,
            guard: None,
            withhold: None,
            containers_max: 100_000,
            max_age: SourceAges::default(),
            pairs_max: RouteSettings::default().pairs_max,
            min_bytes: RouteSettings::default().min_bytes,
            chains: ChainSettings::default(),
            located: None,
            planned: None,
        }
    }
}

/// A placement that waits for its commit. The caller sets [`Proposal::decision`], [`Proposal::digest`], [`Proposal::proof`],
/// [`Proposal::conflicts`], [`Proposal::elapsed`], [`Proposal::at_once`], [`Proposal::part`] and [`Proposal::last_try`]; the rest is the placer's.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// What was asked.
    pub request: Arc<HintRequest>,
    /// Id that the caller drew from [`Engine::next_decision`](crate::Engine::next_decision) on; `None`: the
    /// engine gives one.
    pub decision: Option<DecisionId>,
    /// Stable hash of the request's body, for idempotency.
    pub digest: u64,
    /// What its sender shows.
    pub proof: Proof,
    /// Commits that lost before this one.
    pub conflicts: u32,
    /// Time from receipt to now.
    pub elapsed: Micros,
    /// There will be no further proposal: what finds no room any more is advised without a lease.
    pub last_try: bool,
    /// Generation it was computed on.
    pub generation: u64,
    /// Set by the caller: what the application is in the comparison of hinted and held-out ones; `None`: it takes no part.
    pub part: Option<Part>,
    pub(crate) draft: Decision,
    pub(crate) rows: Vec<Row>,
    pub(crate) flows: Option<ProposedFlows>,
    /// What it takes to cost where its containers really go.
    pub(crate) trial: Option<Box<Trial>>,
    /// Input paths that were found.
    pub(crate) read: Vec<Arc<Dataset>>,
    /// Set by the caller where the request's run is to take its place in the plan that it is placed by.
    pub at_once: Option<Box<ImmediateRequest>>,
    /// The engine is to have a dispatcher decide.
    pub(crate) waits: Option<Box<DispatchRequest>>,
}

/// Decides where the containers of `request` should go.
///
/// # Errors
/// [`Refusal`] where the request can't be answered by hints.
pub fn propose(
    generation: &Generation,
    request: &Arc<HintRequest>,
    chosen: &SelectedPolicy<'_>,
    settings: &PlacerSettings,
    now: Timestamp,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Proposal, Refusal> {
    let context = ProposalContext { generation, request, chosen, settings, now };
    if chosen.mode == Mode::Off {
        return Ok(proposal(generation, request, blank(generation, request, chosen), Vec::new()));
    }
    let names = Names::of(request);
    let Begun { compiled, approach } = context.begin(&names)?;
    match approach {
        Err(reason) => Ok(context.not_searched(compiled, reason)),
        Ok(approach) => context.searched(compiled, &approach, stop),
    }
}

/// What a request is asked with: the arguments of [`propose`].
struct ProposalContext<'a> {
    generation: &'a Generation,
    request: &'a Arc<HintRequest>,
    chosen: &'a SelectedPolicy<'a>,
    settings: &'a PlacerSettings,
    now: Timestamp,
}

/// A request that is compiled.
struct Begun<'a> {
    compiled: Compiled<'a>,
    /// How it is searched; else why it is not.
    approach: Result<Approach<'a>, WithheldReason>,
}

/// What a placement is searched and judged by.
struct Approach<'a> {
    place: &'a dyn Place,
    /// Else why it has no say.
    guard: Result<Guard, Unguarded>,
    /// The run whose place in the plan in force the policy follows.
    planned: Option<&'a PlannedRun>,
}

/// What a search came to.
struct Searched {
    /// Of whole groups, which the comparison with the default placement is of.
    in_all: Placement,
    /// It had no time for some paths, or their own search had ended at its bound.
    met_cut_short: bool,
}

impl Searched {
    /// By a policy that looks at no paths.
    const fn all(in_all: Placement) -> Self {
        Self { in_all, met_cut_short: false }
    }
}

/// What a search found.
struct Found {
    /// Of whole groups, which the comparison with the default placement is of.
    in_all: Placement,
    /// What of them is asked for now.
    placement: Placement,
    /// It had no time for some paths, or their own search had ended at its bound.
    met_cut_short: bool,
    /// The gang has to be whole and is not: what is placed has no room, either.
    gang_waits: bool,
}

impl<'a> ProposalContext<'a> {
    /// Compiles the request; refused is what no search could answer.
    fn begin(&self, names: &'a Names) -> Result<Begun<'a>, Refusal> {
        let Self { generation, request, chosen, settings, now } = *self;
        check_keys(&request.groups)?;
        // In shadow nothing is given that could be kept back.
        let place = match settings.withhold.filter(|_| chosen.mode == Mode::On) {
            Some(reason) => Err(reason),
            None => Ok(placing(chosen)?),
        };
        let mut compiled = compile(generation, (request, names.both()), settings, now)?;
        large::check_sizes(&compiled)?;
        let approach = place.and_then(|place| self.approach(place, &mut compiled));
        Ok(Begun { compiled, approach })
    }

    /// How it is searched; else why it is not: no place is known to be better than another.
    fn approach(&self, place: &'a dyn Place, compiled: &mut Compiled<'_>) -> Result<Approach<'a>, WithheldReason> {
        let counts = compiled.counts();
        let run = (self.chosen.policy, self.settings.planned.as_deref());
        let planned = planned::plan(&mut compiled.problem, &counts, self.request, run, self.now);
        let guard = match self.settings.guard {
            None => Err(Unguarded::Off),
            Some(_) if !place.weighs_bytes() => Err(Unguarded::Policy),
            Some(guard) => Guard::exempt(self.request, compiled).map_or(Ok(guard), Err),
        };
        if guard.is_ok() && self.request.when_full == WhenFull::Advise && !are_known(&compiled.problem) {
            return Err(WithheldReason::NothingKnown);
        }
        Ok(Approach { place, guard, planned })
    }

    /// The answer where nothing is searched for, for it would be kept back.
    fn not_searched(&self, compiled: Compiled<'_>, reason: WithheldReason) -> Proposal {
        let mut draft = blank(self.generation, self.request, self.chosen);
        draft.withheld = Some(Withheld { reason, hinted_s: None, default_s: None });
        let placement = nowhere(&compiled.problem);
        // As many as there is room for, each group by itself: where they would go was not looked for.
        large::count_all_unplaced(&compiled, |at| compiled.fits(at), &mut draft);
        draft.blocked = blocked::beyond(&compiled);
        self.without_hints(compiled, &placement, draft)
    }

    /// The answer by a search.
    fn searched(
        &self,
        compiled: Compiled<'_>,
        approach: &Approach<'_>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Proposal, Refusal> {
        let searched = search(&compiled, approach.place, self.settings, stop)?;
        self.placed(compiled, approach, searched, None, stop)
    }

    /// The answer by a placement; `round`: where it was decided with others.
    fn placed(
        &self,
        compiled: Compiled<'_>,
        approach: &Approach<'_>,
        searched: Searched,
        round: Option<DecidedWith>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Proposal, Refusal> {
        let found = self.find(&compiled, searched)?;
        let under = {
            let (budget, flows) = (Budget::new(0, stop), &self.generation.flows);
            chained::check(&compiled, self.request, &found.placement, flows, self.settings, &budget)?
        };
        let note = round.as_ref().map(|round| round.note);
        let mut draft = Decision { round: note, ..blank(self.generation, self.request, self.chosen) };
        let kept = kept::of(&compiled, approach.place, &found.in_all);
        draft.terms = terms::of(&compiled, &found.in_all);
        kept::explain(&mut draft.terms, kept.as_ref());
        draft.terms_of_whole =
            parts::terms_of_whole(self.request, &compiled.problem, [&found.in_all, &found.placement]);
        self.compare(&mut draft, &compiled, &found, approach, stop);
        if draft.withheld.is_some() {
            // What finds no room finds none by YARN's own choice, either: that is said whatever is kept back.
            large::count_all_unplaced(&compiled, |at| found.placement.placed(at), &mut draft);
            draft.blocked = blocked::of(&compiled, &found.placement, found.gang_waits);
            return Ok(self.without_hints(compiled, &found.placement, draft));
        }
        draft.plan = approach.planned.map(|run| planned::note(&compiled.problem, run, &found.placement));
        let others = round.map(|round| round.leases);
        let beside = Beside { others: others.as_ref(), kept: kept.as_ref().map(|kept| &*kept.nodes) };
        Ok(self.with_hints(compiled, (&found, beside), under, draft, stop))
    }

    /// What a search came to; refused is what could only wait where its caller does not.
    fn find(&self, compiled: &Compiled<'_>, searched: Searched) -> Result<Found, Refusal> {
        let Searched { in_all, met_cut_short } = searched;
        let placement = parts::hinted(&compiled.problem, &in_all, compiled.groups.iter().map(|wish| wish.count));
        let whole = compiled.groups.iter().enumerate().all(|(at, wish)| placement.placed(at) == wish.count);
        let gang_waits = self.request.gang == Gang::All && !whole;
        if gang_waits {
            large::check_gang(compiled)?;
        }
        if self.request.when_full == WhenFull::Fail && (gang_waits || placement.placed_all() == 0) {
            return Err(full(compiled, &placement, gang_waits));
        }
        Ok(Found { in_all, placement, met_cut_short, gang_waits })
    }

    /// Holds the placement against the default one, time allowing: what it gains, and whether it is kept back.
    fn compare(
        &self,
        draft: &mut Decision,
        compiled: &Compiled<'_>,
        found: &Found,
        approach: &Approach<'_>,
        stop: &mut dyn FnMut() -> bool,
    ) {
        let Approach { place, guard, .. } = *approach;
        if found.placement.placed_all() == 0 {
            return;
        }
        let for_parts = Guard::is_for_parts(self.request, compiled, &found.in_all);
        let guard = guard.and_then(|guard| if for_parts { Err(Unguarded::Parts) } else { Ok(guard) });
        draft.unguarded = guard.err();
        if (self.settings.baseline || guard.is_ok()) && !stop() {
            let default = terms::default_placement(compiled, self.chosen, self.settings, stop);
            if let Some(default) = default.as_ref().filter(|_| self.settings.baseline) {
                let budget = Budget::new(0, stop);
                (draft.baseline, draft.expected_gain) =
                    terms::compare(compiled, place, (&found.in_all, default), &budget);
                draft.baseline_places = Some(Box::new(compared::baseline_places(&compiled.problem, default)));
            }
            if let Ok(guard) = guard {
                match guard.judge(compiled, &found.in_all, default.as_ref()) {
                    Ok(unguarded) => draft.unguarded = unguarded,
                    Err(withheld) => draft.withheld = Some(withheld),
                }
            }
        } else if guard.is_ok() {
            draft.withheld = Some(Withheld { reason: WithheldReason::NotCompared, hinted_s: None, default_s: None });
        }
    }

    /// The answer without the hints that were found.
    fn without_hints(&self, mut compiled: Compiled<'_>, placement: &Placement, mut draft: Decision) -> Proposal {
        describe(&mut draft, &mut compiled, placement, self.settings, self.now);
        Proposal { read: compiled.read, ..proposal(self.generation, self.request, draft, Vec::new()) }
    }

    /// The answer with them: hints, what replaces the asks, flows and their routes.
    fn with_hints(
        &self,
        mut compiled: Compiled<'_>,
        (found, beside): (&Found, Beside<'_>),
        under: chained::ChainedPlacement,
        mut draft: Decision,
        stop: &mut dyn FnMut() -> bool,
    ) -> Proposal {
        let Self { generation, request, settings, now, .. } = *self;
        let (placement, gang_waits) = (&found.placement, found.gang_waits);
        let on = self.chosen.mode == Mode::On;
        let lease = on && !gang_waits;
        let lay = Layout { generation, compiled: &compiled, placement, beside, lease, gang_waits };
        let mut hints = lay.hints(request.when_full, settings, now, &mut draft);
        hints.weigh_latency(&compiled, self.chosen.policy, settings, now);
        draft.blocked = blocked::of(&compiled, placement, gang_waits);
        if on {
            draft.asks = replacement_asks(request, &hints);
        }
        let shares = if on { shares(&hints.rows, compiled.groups.len()) } else { Vec::new() };
        if ProposedFlows::are_too_many(&compiled.problem.edges, &shares, settings.pairs_max) {
            draft.degraded.push(TOO_MANY_PAIRS.to_owned());
        }
        let mut budget = Budget::new(ROUTE_STEPS, stop);
        let flows = if on { flows(&compiled, placement, (shares, under), settings, &mut budget) } else { None };
        if let Some(flows) = &flows {
            draft.routes = flows.preview(&generation.snapshot, &generation.flows, settings.chains.transfer, &budget);
            if found.met_cut_short || budget.met_cut_short_paths() {
                draft.degraded.push(PATHS_CUT_SHORT.to_owned());
            }
        }
        describe(&mut draft, &mut compiled, placement, settings, now);
        draft.hints = hints.hints;
        // Terms of the whole say nothing of where a part of it came.
        let in_parts = placement.placed_all() < found.in_all.placed_all();
        let trial = if in_parts { None } else { Trial::of(&compiled.problem, placement) };
        Proposal { flows, trial, read: compiled.read, ..proposal(generation, request, draft, hints.rows) }
    }
}

/// How the search went and what it went by.
fn describe(
    draft: &mut Decision,
    compiled: &mut Compiled<'_>,
    placement: &Placement,
    settings: &PlacerSettings,
    now: Timestamp,
) {
    (draft.ended, draft.steps, draft.at) = (placement.ended, placement.steps, now);
    draft.gap = placement.gap.filter(|gap| gap.is_finite());
    draft.seed = compiled.problem.seed;
    draft.exclusions = hints::exclusions(compiled);
    draft.ages = hints::ages(compiled, settings, now);
    let known = compiled.problem.degraded.tokens().into_iter().chain(std::mem::take(&mut compiled.notes));
    let located = settings.located.iter().flat_map(|notes| notes.iter().cloned());
    draft.degraded.splice(0..0, known.map(str::to_owned).chain(located));
    draft.learnt = compiled.learnt.take();
}

/// What the placed containers will send, and over which routes: chosen here where the policy chose none, for the
/// engine's one thread has no time for it.
fn flows(
    compiled: &Compiled<'_>,
    placement: &Placement,
    (shares, under): (Vec<Vec<Share>>, chained::ChainedPlacement),
    settings: &PlacerSettings,
    budget: &mut Budget<'_>,
) -> Option<ProposedFlows> {
    let edges = &compiled.problem.edges;
    let chosen = placement.routes.clone();
    let mut flows = ProposedFlows::new(edges, under.classes, shares, chosen, settings.pairs_max)?;
    flows.ways = under.ways;
    // The engine is to find the table there.
    let _ = compiled.problem.snapshot.topology.paths();
    first_routes(&compiled.problem, &flows.traffic, &mut flows.chosen, settings.min_bytes, budget);
    Some(flows)
}

/// What is told beside a placement goes by.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// Leases with what others of its round take, where it was decided with any.
    others: Option<&'a Overlay>,
    /// By node: those that the policy keeps the request to, where it does.
    kept: Option<&'a [bool]>,
}

/// A placement to be told.
struct Layout<'a> {
    generation: &'a Generation,
    compiled: &'a Compiled<'a>,
    placement: &'a Placement,
    beside: Beside<'a>,
    /// What is placed is to be leased.
    lease: bool,
    /// The gang has to be whole and is not: what is placed has no room, either.
    gang_waits: bool,
}

impl Layout<'_> {
    /// Hints for what is placed, and for what waits; counts both in the draft.
    fn hints(&self, when_full: WhenFull, settings: &PlacerSettings, now: Timestamp, draft: &mut Decision) -> Hints {
        let compiled = self.compiled;
        let outlook =
            AnswerContext { confidence: hints::confidence(compiled, settings, now), fallbacks: settings.fallbacks };
        let Beside { others, kept } = self.beside;
        let beside = others.map(|leases| PlaceProblem { leases, loads: None, ..compiled.problem.clone() });
        let best = Fallbacks::new(beside.as_ref().unwrap_or(&compiled.problem), self.placement).keeping_to(kept);
        let mut hints = Hints::default();
        let taken = blocked::taken(compiled, self.placement);
        for (at, shares) in self.placement.groups.iter().enumerate() {
            hints.place(compiled, at, shares, self.lease, &outlook, &best);
            let placed = self.placement.placed(at);
            let unplaced = compiled.groups[at].count - placed;
            draft.without_room += if self.gang_waits { placed } else { 0 };
            if unplaced == 0 {
                continue;
            }
            let next_wave = large::count_unplaced(compiled, at, placed, draft);
            if when_full == WhenFull::Advise {
                let found = wait::Beside { taken: &taken, kept };
                let mut advice = wait::advise((compiled, self.generation), found, (at, unplaced - next_wave), now);
                // There is room for one of a gang and not for all: when there is for all can't be told.
                let waits = |wait: &Micros| !self.gang_waits || *wait > Micros::ZERO;
                advice.rows.iter_mut().for_each(|row| row.wait = row.wait.filter(waits));
                hints.advise(compiled, at, placed, &advice, &outlook);
            }
        }
        hints
    }
}

impl Proposal {
    /// The decision as it would be, without leases: what-if.
    #[must_use]
    pub fn preview(&self) -> Decision {
        Decision { conflicts: self.conflicts, elapsed: self.elapsed, ..self.draft.clone() }
    }

    /// Whether a dispatcher is to decide, in the engine.
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Containers that want a lease.
    #[must_use]
    pub fn wanted(&self) -> u64 {
        self.rows.iter().filter(|row| row.lease).map(|row| u64::from(row.count)).sum()
    }
}

/// A request's problem as policies read it.
///
/// # Errors
/// [`Refusal`] where the request can't be compiled.
pub(crate) fn problem_of<'a>(
    generation: &'a Generation,
    request: (&'a HintRequest, [&'a str; 2]),
    settings: &PlacerSettings,
    now: Timestamp,
) -> Result<PlaceProblem<'a>, Refusal> {
    Ok(compile(generation, request, settings, now)?.problem)
}

fn placing<'a>(chosen: &SelectedPolicy<'a>) -> Result<&'a dyn Place, Refusal> {
    chosen.policy.as_place().ok_or_else(|| Refusal::Invalid {
        field: "policy".into(),
        message: format!("\"{}\" does not place whole requests", chosen.name),
    })
}

/// Runs the policy, unless it could only fail: a gang that must be whole and has less room than it wants now.
fn search(
    compiled: &Compiled<'_>,
    place: &dyn Place,
    settings: &PlacerSettings,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Searched, Refusal> {
    let problem = &compiled.problem;
    if is_in_vain(compiled) {
        return Ok(Searched::all(nowhere(problem)));
    }
    let mut budget = Budget::new(settings.steps, stop);
    let placement = place.place(&readable(place, problem), &mut budget).map_err(|error| match &error {
        PlaceError::NeedsSource { source_name, .. } => {
            Refusal::MissingFeed { feed: source_name, message: error.to_string() }
        }
        PlaceError::Broken { chain, why } => Refusal::Chain { chain: Arc::clone(chain), why: why.clone() },
        PlaceError::Dataflow { .. } | PlaceError::Chains { .. } => {
            Refusal::Invalid { field: "edges".into(), message: error.to_string() }
        }
    })?;
    Ok(Searched { in_all: hints::within(compiled, placement), met_cut_short: budget.met_cut_short_paths() })
}

/// Whether a search could only fail: there is no room for any container, or less than a gang that has to be whole wants.
fn is_in_vain(compiled: &Compiled<'_>) -> bool {
    let problem = &compiled.problem;
    let cut =
        |(group, wish): (&GroupProblem, &compile::GroupDemand)| group.candidates.is_empty() || group.count < wish.count;
    let short = problem.gang == Gang::All && problem.groups.iter().zip(&compiled.groups).any(cut);
    short || problem.groups.iter().all(|group| group.candidates.is_empty())
}

/// Nothing is placed.
fn nowhere(problem: &PlaceProblem<'_>) -> Placement {
    Placement {
        groups: vec![Vec::new(); problem.groups.len()],
        routes: Vec::new(),
        objective: 0.0,
        parts: Vec::new(),
        ended: Ended::Complete,
        gap: None,
        steps: 0,
    }
}

fn full(compiled: &Compiled<'_>, placement: &Placement, gang_waits: bool) -> Refusal {
    let short = |at: &usize| placement.placed(*at) < compiled.groups[*at].count;
    let at = (0..compiled.groups.len()).find(short).unwrap_or(0);
    let group = &compiled.problem.groups[at];
    Refusal::Full {
        group: Arc::clone(&group.name),
        wanted: compiled.groups[at].count,
        // A gang is not searched for where it can't be whole: what of it fits is known all the same.
        free: placement.placed(at).max(if gang_waits { compiled.fits(at) } else { 0 }),
        blocked: blocked::of(compiled, placement, gang_waits),
    }
}

/// A decision that hints nothing yet.
fn blank(generation: &Generation, request: &HintRequest, chosen: &SelectedPolicy<'_>) -> Decision {
    Decision {
        id: DecisionId::of(0),
        request: request.id.clone(),
        attempt: request.attempt,
        queue: request.queue.clone(),
        recurring_key: request.recurring_key.clone(),
        at: generation.snapshot.taken_at,
        snapshot: generation.snapshot.version,
        policy: chosen.name.into(),
        mode: chosen.mode,
        hints: Vec::new(),
        withheld: None,
        routes: Vec::new(),
        asks: request.asks.clone(),
        terms: TermValues::default(),
        baseline: None,
        baseline_places: None,
        expected_gain: None,
        unguarded: None,
        terms_of_whole: None,
        round: None,
        ended: Ended::Complete,
        gap: None,
        steps: 0,
        seed: request.seed.unwrap_or_else(|| compile::seed_of(request.id.as_str())),
        exclusions: Vec::new(),
        ages: Vec::new(),
        degraded: Vec::new(),
        plan: None,
        learnt: None,
        pending: Vec::new(),
        blocked: Vec::new(),
        without_room: 0,
        next_wave: 0,
        conflicts: 0,
        elapsed: Micros::ZERO,
    }
}

fn proposal(generation: &Generation, request: &Arc<HintRequest>, draft: Decision, rows: Vec<Row>) -> Proposal {
    Proposal {
        request: Arc::clone(request),
        decision: None,
        digest: 0,
        proof: Proof::Trusted,
        conflicts: 0,
        elapsed: Micros::ZERO,
        last_try: false,
        generation: generation.number,
        part: None,
        draft,
        rows,
        flows: None,
        trial: None,
        read: Vec::new(),
        at_once: None,
        waits: None,
    }
}

#[cfg(test)]
pub(crate) use compile::compile as compiled;

/// Anchors of a request by host, for tests.
#[cfg(test)]
pub(crate) fn anchors_of(generation: &Generation, request: &HintRequest) -> Vec<(hintd_model::units::HostName, u32)> {
    let settings = PlacerSettings::default();
    let compiled = compile(generation, (request, ["", ""]), &settings, Timestamp(0)).unwrap();
    let name = |anchor: &hintd_policy::problem::Anchor| (generation.snapshot.host(anchor.node).clone(), anchor.count);
    compiled.problem.anchors.iter().map(name).collect()
}
