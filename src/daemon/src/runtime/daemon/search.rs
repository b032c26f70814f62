//! A search: what it is made of, how it is done, and what of the time it may take.

use super::super::options::Settings;
use super::super::pool::JobContext;
use super::open_round::OpenRound;
use crate::times::micros;
use hintd_engine::records::RoundPosition;
use hintd_engine::{
    Generation, Mode, PlacerSettings, Proposal, Refusal, SelectedPolicy, is_chained, may_wait, propose, propose_waiting,
};
use hintd_model::cluster::HintRequest;
use hintd_model::units::Timestamp;
use hintd_policy::Policy;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The policy whose placement others are compared with: what YARN does by itself.
const BASELINE: &str = "capacity";
/// The time left by this is for commit and disk: a search may use all but a fourth.
pub(in crate::runtime) const RESERVE_DIVISOR: u32 = 4;
/// More than this is kept back only where commits take longer.
const RESERVE_MAX: Duration = Duration::from_millis(50);

/// What a search was made of.
pub(in crate::runtime) struct SearchInputs {
    pub(in crate::runtime) generation: Arc<Generation>,
    pub(in crate::runtime) placer: PlacerSettings,
    pub(in crate::runtime) now: Timestamp,
    /// At which look the deadline ended it.
    pub(in crate::runtime) stopped: Option<u64>,
    /// The round that it was part of.
    pub(in crate::runtime) round: Option<RoundPosition>,
}

pub(in crate::runtime) struct SearchOutcome {
    pub(in crate::runtime) inputs: SearchInputs,
    /// Boxed: a request waits with it for its commit.
    pub(in crate::runtime) found: Result<Box<Proposal>, Refusal>,
    pub(in crate::runtime) ended: Instant,
    /// Held until the commit is over, where it was part of a round.
    pub(in crate::runtime) open: Option<Arc<OpenRound>>,
}

/// The chosen policy, and the default placement's.
pub(in crate::runtime) fn policies<'s>(
    settings: &'s Settings,
    policy: &str,
) -> (&'s Arc<dyn Policy>, &'s Arc<dyn Policy>) {
    let built = &settings.policies.built;
    let found = built.get(policy).expect("`choose` names policies that are built");
    (found, built.get(BASELINE).unwrap_or(found))
}

/// What of the time left is for commit and disk: at least as much as commits take now; but half is for the search, which may
/// be worth more than it looks.
pub(in crate::runtime) fn reserve(left: Duration, commits: Duration) -> Duration {
    (left / RESERVE_DIVISOR).min(RESERVE_MAX).max(commits.min(left / 2))
}

pub(in crate::runtime) fn placer(settings: &Settings, job: JobContext) -> PlacerSettings {
    PlacerSettings {
        steps: job.steps(settings.placer.steps),
        fallbacks: settings.placer.fallbacks,
        baseline: settings.placer.baseline && settings.policies.built.contains_key(BASELINE),
        guard: settings.placer.guard.filter(|_| settings.policies.built.contains_key(BASELINE)),
        containers_max: settings.limits.containers,
        max_age: settings.engine.max_age,
        pairs_max: settings.engine.routes.pairs_max,
        min_bytes: settings.engine.routes.min_bytes,
        chains: settings.engine.routes.chains,
        located: None,
        planned: None,
        withhold: None,
    }
}

pub(in crate::runtime) fn chosen<'s>(
    settings: &'s Settings,
    name: &'s str,
    mode: Mode,
) -> (&'s Arc<dyn Policy>, SelectedPolicy<'s>) {
    let (policy, baseline) = policies(settings, name);
    (policy, SelectedPolicy { policy: &**policy, baseline: &**baseline, mode, name })
}

/// How a request is searched for.
pub(in crate::runtime) struct SearchMode {
    pub(in crate::runtime) mode: Mode,
    pub(in crate::runtime) policy: &'static str,
    /// Hints may come later, on Follow.
    pub(in crate::runtime) follows: bool,
}

/// The pure part, on a thread of the pool.
pub(in crate::runtime) fn search(
    generation: &Generation,
    request: &Arc<HintRequest>,
    settings: &Settings,
    search: SearchMode,
    placer: &PlacerSettings,
    now: Timestamp,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Proposal, Refusal> {
    let (found, chosen) = chosen(settings, search.policy, search.mode);
    let waits = search.follows && placer.withhold.is_none() && may_wait(request, &chosen);
    if waits && !is_chained(generation, request, &placer.chains) {
        return propose_waiting(generation, request, &chosen, found, placer, now);
    }
    propose(generation, request, &chosen, placer, now, stop)
}

/// A proposal whose answer is no larger than it may be. Refused before anything is leased.
pub(in crate::runtime) fn within_bytes(proposal: Proposal, most: usize) -> Result<Proposal, Refusal> {
    let bytes = proposal.answer_bytes();
    if bytes <= most {
        return Ok(proposal);
    }
    let message = format!("the answer would have {bytes} bytes; at most {most} are allowed (limits.answer_bytes)");
    Err(Refusal::Invalid { field: "groups".to_owned(), message })
}

pub(in crate::runtime) fn passed(began: Instant, deadline: Instant) -> Refusal {
    Refusal::DeadlineExceeded(micros(deadline.saturating_duration_since(began)))
}
