//! Deciding, synchronous and pure: ledger, placer, monitor, history. `now` in; journal records and messages out.
//!
//! # Code map
//! - `engine`: [`Engine`], the one owner, whose state only that file sees. What happens to it happens in handlers, which
//!   borrow the parts that they may touch and say which; a handler's file also has the public calls of its subject:
//!   `commit` (proposals become leases), `fact_consequences` (what facts of nodes do), `task_events` (what task events do),
//!   `flow_updates` (flows, routes, watches), `leasing` (leases granted and ended), `attempt_end` (attempts remembered and
//!   forgotten), `recover` (from the journal's rows); `adherence::hooks`, `circuits::serve` and `timing`,
//!   `dispatching::serve`, `late`, `offers`, `dispatch_events` and `immediate`, `plans::serve`, `rebalance`,
//!   `holding::wish` and `holding::serve`, `worth::serve`.
//! - `facts`: the model and its last snapshot; `ids`; `results`: what calls come to.
//! - `ledger`, `lease`, `binding`: live leases, how they end, which container or foreign use ends which.
//! - `adherence`: whether hints were followed, and what came of it.
//! - `answer`, `answers`, `attempts`: idempotency by request id; remembered requests; `packed`, `packed_answer`: answers in few bytes.
//! - `proof`: tokens and nonces that attempts are held by, and what callers show.
//! - `placer`: request and [`Generation`] to [`Proposal`], on other threads.
//! - `rounds`: when requests that gather are decided together.
//! - `monitor`, `release`, `history`: silence, expected ends, recurring jobs; `arrivals`: where containers came.
//! - `prediction`: which recurring jobs come, from runs that finished; for planners.
//! - `plans`: plans of recurring jobs, one of them in force; where data of planned jobs goes.
//! - `dispatching`: waiting tasks, and the dispatch policies that are offered nodes for them.
//! - `flows`, `routes`: who talks to whom over which route, and who is told of it.
//! - `circuits`: which circuits an optical switch should have for running jobs' shuffles.
//! - `rebalance`: moves of running containers, proposed.
//! - `worth`: completion times of hinted applications against those that are held out.
//! - `records`: what decisions were made of, kept so that they can be made again.
//! - `effects`, `journal`: what the outside is to do and to remember; `event`, `settings`, `decision`, `compared`, `refusal`: data.
//!
//! # Invariants
//! - No commit exceeds total − max(used, known containers) − leases of any node, whatever its proposal had seen.
//! - A lease is journalled before its answer leaves, ends once, and every end is counted by kind.
//! - The journal's rows alone give the same ledger again.
//! - What a watcher was told, applied rule by rule, never makes a packet loop; a planned change never loses one.

// A test that panics is a test that fails; tests read their data and may look at the clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod adherence;
mod answer;
mod answer_size;
pub mod answers;
pub mod arrivals;
mod attempt_end;
pub mod attempts;
pub mod binding;
pub mod circuits;
mod commit;
pub mod compared;
pub mod decision;
pub mod dispatching;
pub mod effects;
mod ended_leases;
#[allow(clippy::module_inception)] // the file of `Engine`; not public, so nobody reads the name twice
mod engine;
pub mod event;
mod fact_consequences;
mod facts;
mod flow_updates;
pub mod flows;
pub mod generation;
mod group_names;
mod hint;
mod hint_rows;
pub mod history;
pub mod holding;
mod ids;
pub mod journal;
pub mod lease;
mod leasing;
pub mod ledger;
mod listing;
mod monitor;
mod packed;
mod packed_answer;
pub mod placer;
pub mod plans;
pub mod prediction;
pub mod proof;
pub mod rebalance;
pub mod records;
mod recover;
pub mod refusal;
mod release;
mod remembered_bytes;
mod results;
pub mod rounds;
pub mod routes;
pub mod settings;
mod task_events;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod worth;

pub use adherence::{
    Adherence, DecisionOutcome, Followed, GroupTallies, GroupTally, HintOutcome, LatelySums, Miss, Outcomes,
    PLACES_KEPT, Tally, TallyKey, Term, TermCompared, TermSums,
};
pub use answer::Answer;
pub use circuits::messages::{
    CircuitReport, CircuitsReported, CircuitsView, PortReport, PortView, RackDemand, ReportTaken, WantedCircuit,
    WantedCircuits,
};
pub use compared::{BaselinePlace, BaselinePlaces, CostLink, CostLinks, Unguarded};
pub use decision::{ChainPath, Decision, Hint, LearnedFrom, Mode, RoundNote, TermValues, TermsOfWhole};
pub use dispatching::late_of;
pub use dispatching::{DetachedDispatcher, DispatchSettings, ImmediateRequest};
pub use effects::{CommitOutcome, Counter, Effect, Effects, FollowBody};
pub use engine::Engine;
pub use event::{TaskEvent, TaskWhat};
pub use flows::carried::{ApplicationPaths, CarriedRoutes, application_paths, carried_routes};
pub use flows::settings::{ChainSettings, RouteSettings};
pub use flows::uses::{LinkUse, LinkUser, LoadSource, link_uses};
pub use flows::what_if::{ApplicationForecast, Drain, LinkForecast, NetworkWhatIf, RouteForecast, what_if_network};
pub use generation::{Generation, Release};
pub use group_names::GroupNames;
pub use history::{EdgeHistory, LearnedGroup, LearnedRun};
pub use listing::LeaseFilter;
pub use packed_answer::{PackedAnswer, PackedExplained};
pub use placer::{
    Guard, PlacerSettings, Proposal, RoundMember, SelectedPolicy, check_keys, is_chained, may_gather, may_wait,
    propose, propose_together, propose_waiting,
};
pub use plans::serve::{PlanChange, PlanView};
pub use plans::{KeptPlan, PlanNote, PlanSettings, PlannedRun, ValidatedPlan};
pub use proof::{NonceHash, Proof, Shown, Token};
pub use rebalance::{MoveNote, ProposedMove, RebalanceSettings, Round, RoundOutcome};
pub use records::{RecordSettings, Records};
pub use refusal::Refusal;
pub use results::{
    AttemptHeld, EngineCounts, Explained, ExplainedLease, LeaseHeld, RecoverError, RecoveredCounts, Released, Rows,
};
pub use routes::{
    NamedRoute, NamedStop, Phase, RouteUpdate, RuleAction, RuleChange, WatchScope, WatchedPair, WatcherProgress,
    WatcherState,
};
pub use settings::{EngineSettings, SourceAges};
pub use worth::{Participation, WorthSettings};
