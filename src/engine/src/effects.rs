//! What a call to the engine asks the outside to do: journal operations and messages.

use super::journal::Batch;
use super::rebalance::{MoveNote, Round};
use super::refusal::Refusal;
use super::routes::RouteUpdate;
use super::worth::book::VerdictChange;
use hintd_model::cluster::HintRequest;
use hintd_model::units::{ApplicationId, AttemptId, Bytes, HostName, LeaseId, Micros, RackPath, RequestId, Timestamp};
use std::borrow::Cow;
use std::sync::Arc;

/// Drained by the runtime after every call. The journal part is to be durable before any message
/// of the same drain leaves.
#[derive(Debug, Default)]
pub struct Effects {
    /// What is to be remembered, in order.
    pub journal: Batch,
    /// What is to be sent or counted, in order.
    pub out: Vec<Effect>,
}

impl Effects {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.journal.is_empty() && self.out.is_empty()
    }

    /// Adds to a counter.
    pub(crate) fn count(&mut self, counter: Counter, by: u64) {
        if by > 0 {
            self.out.push(Effect::Count(counter, by));
        }
    }
}

/// What calls leave behind: effects for the outside, and whether the next generation is another.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) effects: Effects,
    /// Something that generations carry changed since the last one.
    pub(crate) changed: bool,
}

/// One message to the outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Down the attempt's Follow stream.
    Follow {
        /// Whose stream.
        attempt: AttemptId,
        /// What.
        message: FollowBody,
        /// `foreign_use`, `node_lost`, `node_gone`, `new_attempt`, …
        cause: &'static str,
    },
    /// What hints are worth to a queue or a recurring key is told otherwise from now on.
    Verdict(Arc<VerdictChange>),
    /// Tasks that ran on a node which is gone are to be placed anew: run this request as if its
    /// ApplicationMaster had sent it, and push the answer on its Follow stream.
    Replace {
        /// Exactly the groups and counts that were hit.
        request: Arc<HintRequest>,
        /// `node_lost` or `node_gone`.
        cause: &'static str,
        /// The node.
        node: HostName,
    },
    /// Hints for tasks that waited, down the attempt's Follow stream. Not sent, and to be undone, where the journal
    /// did not take their leases.
    Hints {
        /// Whose stream.
        attempt: AttemptId,
        /// What was decided.
        answer: Arc<super::answer::Answer>,
        /// `offer`.
        cause: &'static str,
    },
    /// Tasks have waited for too long: run this request as if its ApplicationMaster had sent it, and push the answer on
    /// its Follow stream.
    Late {
        /// Exactly what waits.
        request: Arc<HintRequest>,
    },
    /// Look for moves of running containers, and hand them to
    /// [`Engine::rebalanced`](super::engine::Engine::rebalanced).
    Rebalance(Arc<Round>),
    /// To a route watcher.
    Routes {
        /// Its name.
        watcher: Arc<str>,
        /// What changed.
        update: Arc<RouteUpdate>,
    },
    /// Who reported circuits has no stream any more, or another one: what it said is set is not believed any longer.
    ControllerLeft {
        /// Its name.
        watcher: Arc<str>,
    },
    /// A route watcher never acknowledged, or was away for too long: its stream, if there is one, is to end.
    WatchEnded {
        /// Its name.
        watcher: Arc<str>,
        /// Why, in words.
        reason: String,
    },
    /// The answer of this request id is no longer kept.
    AnswerForgotten(RequestId),
    /// The attempt is over: its Follow stream may end.
    AttemptEnded(AttemptId),
    /// An application asks with a client that knows no nonces, as those of 0.1.0: to the log.
    LegacyClient {
        /// Which.
        application: ApplicationId,
    },
    /// A run that the last start cut in two is not noted: to the log.
    RunLeftOut {
        /// Its job.
        key: Arc<str>,
        /// Whose run it was.
        application: ApplicationId,
    },
    /// To a metric.
    Count(Counter, u64),
    /// What became of decisions that were settled, to metrics.
    AdherenceFinalized(Box<(super::adherence::TallyKey, super::adherence::Tally)>),
}

/// Advice on a Follow stream; hints themselves are pushed by the runtime, from the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowBody {
    /// A group should wait.
    NotYet {
        /// Which.
        group: Arc<str>,
        /// Stable token.
        reason: Arc<str>,
        /// For how long, where it can be told.
        expected_wait: Option<Micros>,
    },
    /// These leases ended before they were used.
    Withdraw {
        /// Which.
        leases: Vec<LeaseId>,
        /// On this host.
        host: HostName,
        /// Stable token.
        reason: &'static str,
    },
    /// Map output that is gathered in a rack for reduces in another should be fetched now, and what comes from now on as
    /// it comes, until a wait is told.
    StartShuffle {
        /// From.
        from_rack: RackPath,
        /// To.
        to_rack: RackPath,
        /// threshold, `no_more`, `latest_start`, `not_worth_waiting`, `no_plan`, `plan_expired`, `not_planned`, `rack_gone`,
        /// `no_circuit`, `nothing_gathered`
        reason: &'static str,
        /// What is gathered and was not told to start before.
        gathered: Bytes,
        /// From so many bytes on it rides a circuit; `None`: there is none.
        threshold: Option<Bytes>,
    },
    /// More map output should be gathered in a rack for reduces in another before any of it is fetched.
    WaitShuffle {
        /// From.
        from_rack: RackPath,
        /// To.
        to_rack: RackPath,
        /// It starts then, whatever comes or does not.
        latest: Timestamp,
        /// The policy's token: `below_threshold`, `rest_below_threshold`.
        reason: Cow<'static, str>,
        /// What is gathered so far.
        gathered: Bytes,
        /// What it waits for.
        threshold: Option<Bytes>,
    },
    /// A container would be better off elsewhere.
    Move(Box<MoveNote>),
    /// A chain of middleboxes that the application's traffic is under has no way left for some of it, or has one again.
    Chain {
        /// Its name.
        chain: Arc<str>,
        /// Pairs of the application's nodes that stand still; 0: all go again.
        pairs: u64,
    },
}

/// What the engine counts; `telemetry` gives these their metric names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Leases granted.
    LeasesGranted,
    /// Leases that became a container.
    LeasesBound,
    /// Leases given back, by the application or because it ended.
    LeasesReleased,
    /// Leases withdrawn because foreign use left no room for them, or their node is gone.
    LeasesWithdrawn,
    /// Leases that ended at their time-to-live.
    LeasesExpired,
    /// Leases taken back because the journal failed.
    LeasesUndone,
    /// Containers hinted, with or without a lease.
    HintsIssued,
    /// Containers whose hints were kept back, for they would have done no good.
    HintsWithheld,
    /// Containers without hints, for their application is held out.
    HintsHeldOut,
    /// Containers without hints, for hints made runs of their recurring job slower.
    HintsStopped,
    /// Applications whose completion time was compared.
    CompletionsCompared,
    /// Containers on the host that was hinted.
    HintsFollowed,
    /// Containers on another host than the one hinted.
    HintsElsewhere,
    /// In shadow mode: containers on the host that would have been hinted.
    ShadowAgreed,
    /// In shadow mode: containers elsewhere.
    ShadowDiffered,
    /// Commits that found less room than their proposal had seen.
    CommitConflicts,
    /// Nodes that went stale.
    NodesStale,
    /// Nodes that went lost or left.
    NodesLost,
    /// Nodes that came back from stale or lost.
    NodesBack,
    /// Containers whose task was placed anew.
    TasksReplaced,
    /// Containers on a node that is gone for which no request is remembered.
    TasksUnknown,
    /// Answers forgotten before their time, for lack of room.
    AnswersEvicted,
    /// Attempts forgotten for lack of room.
    AttemptsEvicted,
    /// Attempts whose client knows no nonces, as those of 0.1.0.
    LegacyAttempts,
    /// Finished tasks taken into the history.
    HistorySamples,
    /// Runs that history servers told of.
    HistoryRuns,
    /// Recurring-job keys forgotten for lack of room.
    HistoryEvicted,
    /// Watched routes that changed.
    RoutesChanged,
    /// Routes of running flows changed because of a failure.
    RoutesFailedOver,
    /// Pairs under a chain of middleboxes that lost their way through it, and have none.
    ChainsBroken,
    /// Rounds in which moves of running containers were looked for.
    RebalanceRounds,
    /// Jobs that such rounds left out for their size.
    RebalanceLeftOut,
    /// Moves proposed.
    MovesProposed,
    /// Moves for predicted performance that were found once: they are told if the next round finds one as well.
    MovesHeld,
    /// Of those proposed: a container of the same kind came up where one was proposed to go.
    MovesFollowed,
    /// Routes of running flows changed as planned: back home, or for more utility.
    RoutesPlanned,
    /// Pairs of running flows that fell to default forwarding although they send enough: rules, refusals, silence.
    RoutesToDefault,
    /// Routes that a controller could not install.
    RoutesRefused,
    /// Snapshots sent because an update was not acknowledged in time.
    RoutesResynced,
    /// Watchers that went silent.
    WatchersSilent,
    /// Decisions whose flows were forgotten, or not taken, for lack of room.
    FlowsEvicted,
    /// Links that are avoided because they flap.
    LinksDamped,
    /// Nodes offered to dispatch policies.
    DispatchOffers,
    /// Tasks that dispatch policies launched.
    DispatchLaunches,
    /// Tasks that waited for too long, and for which an ordinary placement was made.
    DispatchLate,
    /// Times that other circuits were wanted of an optical switch.
    CircuitChanges,
    /// Reports of controllers on their optical switch.
    CircuitReports,
    /// Shuffles between two racks that were told to start.
    ShufflesStarted,
    /// Shuffles between two racks that were told to wait.
    ShufflesHeld,
    /// Plans put in force.
    PlansActivated,
    /// Times that the plan before, or none, was put in force again.
    PlansRolledBack,
    /// Runs of recurring jobs that were under way at the last start and are not noted.
    RunsLeftOut,
}

impl Counter {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeasesGranted => "leases_granted",
            Self::LeasesBound => "leases_bound",
            Self::LeasesReleased => "leases_released",
            Self::LeasesWithdrawn => "leases_withdrawn",
            Self::LeasesExpired => "leases_expired",
            Self::LeasesUndone => "leases_undone",
            Self::HintsIssued => "hints_issued",
            Self::HintsWithheld => "hints_withheld",
            Self::HintsHeldOut => "hints_held_out",
            Self::HintsStopped => "hints_stopped",
            Self::CompletionsCompared => "completions_compared",
            Self::HintsFollowed => "hints_followed",
            Self::HintsElsewhere => "hints_elsewhere",
            Self::ShadowAgreed => "shadow_agreed",
            Self::ShadowDiffered => "shadow_differed",
            Self::CommitConflicts => "commit_conflicts",
            Self::NodesStale => "nodes_stale",
            Self::NodesLost => "nodes_lost",
            Self::NodesBack => "nodes_back",
            Self::TasksReplaced => "tasks_replaced",
            Self::TasksUnknown => "tasks_unknown",
            Self::AnswersEvicted => "answers_evicted",
            Self::AttemptsEvicted => "attempts_evicted",
            Self::LegacyAttempts => "legacy_attempts",
            Self::HistorySamples => "history_samples",
            Self::HistoryRuns => "history_runs",
            Self::HistoryEvicted => "history_evicted",
            Self::RoutesChanged => "routes_changed",
            Self::RoutesFailedOver => "routes_failed_over",
            Self::ChainsBroken => "chains_broken",
            Self::RebalanceRounds => "rebalance_rounds",
            Self::RebalanceLeftOut => "rebalance_left_out",
            Self::MovesProposed => "moves_proposed",
            Self::MovesHeld => "moves_held",
            Self::MovesFollowed => "moves_followed",
            Self::RoutesPlanned => "routes_planned",
            Self::RoutesToDefault => "routes_to_default",
            Self::RoutesRefused => "routes_refused",
            Self::RoutesResynced => "routes_resynced",
            Self::WatchersSilent => "watchers_silent",
            Self::FlowsEvicted => "flows_evicted",
            Self::LinksDamped => "links_damped",
            Self::DispatchOffers => "dispatch_offers",
            Self::DispatchLaunches => "dispatch_launches",
            Self::DispatchLate => "dispatch_late",
            Self::CircuitChanges => "circuit_changes",
            Self::CircuitReports => "circuit_reports",
            Self::ShufflesStarted => "shuffles_started",
            Self::ShufflesHeld => "shuffles_held",
            Self::PlansActivated => "plans_activated",
            Self::PlansRolledBack => "plans_rolled_back",
            Self::RunsLeftOut => "runs_left_out",
        }
    }
}

/// What a commit came to.
#[derive(Debug, Clone)]
pub enum CommitOutcome {
    /// Leased and remembered; send the answer once the journal batch is durable.
    Committed(Arc<super::answer::Answer>),
    /// Nothing was taken: these nodes have less room than the proposal saw. Propose again on the next generation.
    Conflict {
        /// Ascending by position in the cluster.
        nodes: Vec<HostName>,
    },
    /// The same request was answered meanwhile; this is that answer, still packed. Whoever unpacks it asks whether it may
    /// be seen ([`may_be_seen_by`](super::answer::Answer::may_be_seen_by)).
    Answered(super::packed_answer::PackedAnswer),
    /// It can't be committed at all.
    Refused(Refusal),
}
