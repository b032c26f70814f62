//! One decision's record: what it was made of, and what came of it.

use super::facts::{Facts, RoundPosition};
use super::frame::Frame;
use super::memory_size;
use super::shares::Path;
use super::tally::Tally;
use crate::answer::Answer;
use crate::decision::{Decision, Mode};
use crate::dispatching::{DetachedDispatcher, StoredDispatcher};
use crate::generation::Generation;
use crate::placer::{PlacerSettings, Proposal};
use crate::refusal::Refusal;
use hintd_model::cluster::{Dataset, HintRequest, Overlay, Shards, Snapshot};
use hintd_model::units::{ApplicationId, DecisionId, Timestamp};
use hintd_policy::Policy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A probe that notes at which look it said to stop, so that a replay stops at the same look.
#[derive(Debug, Default)]
pub struct Probe {
    looks: u64,
    stopped: Option<u64>,
}

impl Probe {
    /// One more look; `over`: what the probe says.
    pub const fn look(&mut self, over: bool) -> bool {
        self.looks += 1;
        if over && self.stopped.is_none() {
            self.stopped = Some(self.looks);
        }
        over
    }

    /// The look at which it first said to stop; `None`: it never did.
    #[must_use]
    pub const fn stopped(&self) -> Option<u64> {
        self.stopped
    }
}

/// A decision that was just made, and what it was made of.
pub struct DecidedRequest {
    /// What was asked.
    pub request: Arc<HintRequest>,
    /// The configuration names its queue; all others share what there is room for as one.
    pub queue_named: bool,
    /// The policy, as it was configured then.
    pub policy: Arc<dyn Policy>,
    /// The name under which it was chosen.
    pub name: Arc<str>,
    /// The default placement's, where it was computed.
    pub baseline: Arc<dyn Policy>,
    /// What the queue gets.
    pub mode: Mode,
    /// The placer's settings, steps as the load allowed them.
    pub settings: PlacerSettings,
    /// When the placer began.
    pub now: Timestamp,
    /// At which look the probe said to stop.
    pub stopped: Option<u64>,
    /// Whether a dispatcher was to decide, where it may.
    pub follows: bool,
    /// What it was decided on.
    pub generation: Arc<Generation>,
    /// Input paths that were found, as [`Proposal::paths_read`] has them; `None`: to be looked up.
    pub read: Option<Vec<Arc<Dataset>>>,
    /// The round that it was decided in; `None`: it was decided alone.
    pub round: Option<RoundPosition>,
    /// What came of it.
    pub came: RequestOutcome,
}

/// What came of a request.
#[derive(Debug)]
pub enum RequestOutcome {
    /// Hints.
    Answered {
        /// The answer.
        answer: Arc<Answer>,
        /// What was proposed, where the commit may have changed it ([`Proposal::to_compare`]).
        draft: Option<Box<Decision>>,
        /// The dispatcher instance that decided, as it was before.
        dispatcher: Option<Box<DetachedDispatcher>>,
    },
    /// A refusal, under the id that the decision would have had.
    Refused {
        /// Its id.
        decision: DecisionId,
        /// When.
        at: Timestamp,
        /// Why.
        refusal: Refusal,
    },
    /// The same of one that was refused for something else than what a search found: there is nothing to make again.
    RefusedEarly {
        /// The id that its decision would have had.
        decision: DecisionId,
        /// When.
        at: Timestamp,
        /// Why.
        refusal: Refusal,
    },
}

/// Why nobody has an answer that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// Its request's deadline had passed.
    Deadline,
    /// Its caller had hung up.
    HungUp,
}

impl Undelivered {
    /// The token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::HungUp => "hung_up",
        }
    }
}

/// See the module.
pub struct Record {
    pub(super) request: Arc<HintRequest>,
    queue_named: bool,
    pub(super) policy: Arc<dyn Policy>,
    pub(super) name: Arc<str>,
    pub(super) baseline: Arc<dyn Policy>,
    pub(super) mode: Mode,
    pub(super) settings: PlacerSettings,
    pub(super) now: Timestamp,
    pub(super) stopped: Option<u64>,
    pub(super) follows: bool,
    frame: Arc<Frame>,
    facts: Facts,
    pub(super) round: Option<RoundPosition>,
    pub(super) came: StoredOutcome,
    /// Of an answer: 0, or one more than the [`Undelivered`] that it is. It changes while lists have the record.
    undelivered: AtomicU8,
    /// Bytes that it shares with none.
    own: usize,
}

/// What came of it, as it is kept.
#[derive(Debug)]
pub(super) enum StoredOutcome {
    Answered { answer: Arc<Answer>, draft: Option<Box<Decision>>, dispatcher: Option<(StoredDispatcher, Arc<Frame>)> },
    Refused { decision: DecisionId, at: Timestamp, refusal: Refusal, early: bool },
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("request", &self.request.id).field("policy", &self.name).finish_non_exhaustive()
    }
}

impl Proposal {
    /// Input paths that were found.
    #[must_use]
    pub fn paths_read(&self) -> Vec<Arc<Dataset>> {
        self.read.clone()
    }

    /// What is proposed, where its commit may change it: the last of several tries keeps what fits, routes may be
    /// others by then, of what waited for too long only what still waits is placed, and a run may stand otherwise to its plan.
    #[must_use]
    pub fn to_compare(&self) -> Option<Box<Decision>> {
        let changes = self.last_try || self.flows.is_some() || self.digest == 0 || self.at_once.is_some();
        (changes && self.waits.is_none()).then(|| Box::new(self.preview()))
    }
}

impl Record {
    /// Of a decision; `frame`: of its generation, `dispatcher`: of the dispatcher instance that decided.
    pub(super) fn new(
        seen: DecidedRequest,
        frame: Arc<Frame>,
        dispatcher: Option<(StoredDispatcher, Arc<Frame>)>,
    ) -> Self {
        let DecidedRequest {
            request,
            queue_named,
            policy,
            name,
            baseline,
            mode,
            settings,
            now,
            stopped,
            follows,
            generation,
            read,
            round,
            came,
        } = seen;
        let came = match came {
            RequestOutcome::Answered { answer, draft, .. } => StoredOutcome::Answered { answer, draft, dispatcher },
            RequestOutcome::Refused { decision, at, refusal } => {
                StoredOutcome::Refused { decision, at, refusal, early: false }
            }
            RequestOutcome::RefusedEarly { decision, at, refusal } => {
                StoredOutcome::Refused { decision, at, refusal, early: true }
            }
        };
        let mut record = Self {
            facts: Facts::of(&generation, &request, read),
            round,
            frame,
            came,
            undelivered: AtomicU8::new(0),
            own: 0,
            request,
            queue_named,
            policy,
            name,
            baseline,
            mode,
            settings,
            now,
            stopped,
            follows,
        };
        record.own = record.weigh();
        record
    }

    /// The decision's id.
    #[must_use]
    pub fn decision(&self) -> DecisionId {
        match &self.came {
            StoredOutcome::Answered { answer, .. } => answer.decision.id,
            StoredOutcome::Refused { decision, .. } => *decision,
        }
    }

    /// Who loses it where there is no room.
    pub(super) fn path(&self) -> Path {
        let queue = self.queue_named.then(|| self.request.queue.as_str());
        Path::new(queue, &self.request.user, self.application())
    }

    /// Whether nothing was computed for it: it was refused, or its queue is off. Such records cost who asks nothing.
    pub(super) fn is_free(&self) -> bool {
        self.mode == Mode::Off || matches!(self.came, StoredOutcome::Refused { .. })
    }

    /// Why nothing can be made again; `None`: it can.
    #[must_use]
    pub fn why_not_again(&self) -> Option<String> {
        match &self.came {
            StoredOutcome::Refused { refusal: Refusal::DeadlineExceeded(time), .. } => {
                Some(format!("its deadline of {} passed before there was an answer", time.in_words()))
            }
            StoredOutcome::Refused { refusal, early: true, .. } => {
                Some(format!("it was not refused for what a search found ({refusal})"))
            }
            _ => None,
        }
    }

    /// Whose request it was.
    pub(super) fn application(&self) -> ApplicationId {
        self.request.attempt.application
    }

    /// When it was decided.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match &self.came {
            StoredOutcome::Answered { answer, .. } => answer.decision.at,
            StoredOutcome::Refused { at, .. } => *at,
        }
    }

    /// What was asked.
    #[must_use]
    pub const fn request(&self) -> &Arc<HintRequest> {
        &self.request
    }

    /// The answer, or why there was none.
    ///
    /// # Errors
    /// The refusal.
    pub const fn answered(&self) -> Result<&Arc<Answer>, &Refusal> {
        match &self.came {
            StoredOutcome::Answered { answer, .. } => Ok(answer),
            StoredOutcome::Refused { refusal, .. } => Err(refusal),
        }
    }

    /// Why nobody has its answer; `None`: somebody has, or there is none.
    #[must_use]
    pub fn undelivered(&self) -> Option<Undelivered> {
        match self.undelivered.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Undelivered::Deadline),
            _ => Some(Undelivered::HungUp),
        }
    }

    pub(super) fn set_undelivered(&self, why: Option<Undelivered>) {
        self.undelivered.store(why.map_or(0, |why| why as u8 + 1), Ordering::Relaxed);
    }

    /// Whether its caller was told that it is refused: there was no answer, or none in time.
    #[must_use]
    pub fn refused(&self) -> Option<&'static str> {
        match (&self.came, self.undelivered()) {
            (StoredOutcome::Refused { refusal, .. }, _) => Some(refusal.token()),
            (StoredOutcome::Answered { .. }, Some(Undelivered::Deadline)) => Some(Undelivered::Deadline.as_str()),
            (StoredOutcome::Answered { .. }, _) => None,
        }
    }

    /// The part of the default placement's time by which hints had to be better; `None`: there was no guard.
    #[must_use]
    pub fn guard_margin(&self) -> Option<f64> {
        self.settings.guard.map(|guard| guard.margin)
    }

    /// The policy that decided, and its parameters then.
    #[must_use]
    pub const fn policy(&self) -> (&Arc<str>, &Arc<dyn Policy>) {
        (&self.name, &self.policy)
    }

    /// What its queue got then.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    fn weigh(&self) -> usize {
        let came = match &self.came {
            StoredOutcome::Answered { answer, draft, dispatcher } => {
                let drafted = draft.as_ref().map_or(0, |draft| memory_size::decision(draft));
                memory_size::decision(&answer.decision)
                    + answer.token.0.len()
                    + drafted
                    + dispatcher.as_ref().map_or(0, |(dispatcher, _)| dispatcher.weight())
            }
            StoredOutcome::Refused { refusal: Refusal::UnknownQueue { name, there }, .. } => {
                256 + name.len() + there.len()
            }
            StoredOutcome::Refused { refusal, .. } => 256 + refusal.blocked().len() * 640,
        };
        let own = size_of::<Self>() + memory_size::request(&self.request) + memory_size::notes(&self.settings);
        own + came + self.facts.own()
    }

    /// Whether measured latency was kept with it, or there was none.
    pub(super) fn has_latency(&self) -> bool {
        self.frame.has_latency
    }

    /// Frames that it stands on.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Arc<Frame>> {
        let dispatcher = match &self.came {
            StoredOutcome::Answered { dispatcher: Some((_, frame)), .. } => Some(frame),
            _ => None,
        };
        std::iter::once(&self.frame).chain(dispatcher)
    }

    /// Bytes that it shares with no other record, and its request's.
    pub(super) const fn own(&self) -> usize {
        self.own
    }

    /// Bytes of those that the inputs of its round hold as well: its request's.
    fn shared(&self) -> usize {
        self.round.as_ref().map_or(0, |_| memory_size::request(&self.request))
    }

    /// Takes it among those that are kept.
    pub(super) fn hold(&self, tally: &mut Tally) {
        tally.bytes += self.own - self.shared();
        if self.round.is_some() {
            tally.hold(&self.request, || self.shared());
        }
        for frame in self.frames() {
            if tally.hold(frame, || 0) {
                frame.hold(tally);
            }
        }
        self.facts.hold(tally);
        if let Some(RoundPosition { inputs, .. }) = &self.round
            && tally.hold(inputs, || inputs.bytes())
        {
            inputs.hold(tally);
        }
        for (group, bytes) in self.groups() {
            tally.hold(group, || bytes);
        }
    }

    /// Takes it out.
    pub(super) fn release(&self, tally: &mut Tally) {
        tally.bytes -= self.own - self.shared();
        if self.round.is_some() {
            tally.release(&self.request);
        }
        for frame in self.frames() {
            if tally.release(frame) {
                frame.release(tally);
            }
        }
        self.facts.release(tally);
        if let Some(RoundPosition { inputs, .. }) = &self.round
            && tally.release(inputs)
        {
            inputs.release(tally);
        }
        for (group, _) in self.groups() {
            tally.release(group);
        }
    }

    fn groups(&self) -> impl Iterator<Item = (&Arc<crate::dispatching::Group>, usize)> {
        let dispatcher = match &self.came {
            StoredOutcome::Answered { dispatcher: Some((dispatcher, _)), .. } => Some(dispatcher),
            _ => None,
        };
        dispatcher.into_iter().flat_map(StoredDispatcher::shared)
    }

    /// The generation as this decision read it: of paths, applications, leases and history only its own, or its round's.
    pub(super) fn generation(&self, live: Option<&Snapshot>) -> Generation {
        let (snapshot, leases) = self.frame.thaw(live);
        let mut generation = Generation {
            plan: None,              // dispatcher instances carry theirs
            stopped: Arc::default(), // it was made with whether its hints are kept back
            number: self.frame.number,
            snapshot: Arc::new(snapshot),
            scans: Arc::default(),
            leases,
            held: Shards::default(),
            arrived: Shards::default(),
            history: Shards::default(),
            releases: self.frame.releases.clone(),
            flows: Arc::clone(&self.frame.flows),
        };
        if let Some(round) = &self.round {
            round.inputs.thaw(&mut generation);
        }
        self.facts.thaw(&self.request, &mut generation);
        generation
    }

    /// The dispatcher instance that decided, as it was before; `None`: no dispatcher decided, or its State does not read back.
    pub(super) fn dispatcher(&self, live: Option<&Snapshot>) -> Option<DetachedDispatcher> {
        let StoredOutcome::Answered { dispatcher: Some((dispatcher, frame)), .. } = &self.came else {
            return None;
        };
        let (snapshot, leases): (Snapshot, Overlay) = frame.thaw(live);
        dispatcher.thaw(Arc::new(snapshot), leases)
    }
}
