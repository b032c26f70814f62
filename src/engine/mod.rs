//! Deciding, synchronous and pure: ledger, placer, monitor, history. `now` in; journal records and messages out.

pub mod answers;
pub mod attempts;
pub mod decision;
pub mod effects;
mod engine;
pub mod event;
pub mod generation;
pub mod history;
pub mod journal;
pub mod placer;
pub mod routes;
pub mod settings;

pub use answers::Answer;
pub use attempts::Token;
pub use decision::{Decision, Hint, Mode, Refusal, TermValues};
pub use effects::{CommitOutcome, Counter, Effect, Effects, FollowBody};
pub use engine::{Engine, EngineCounts, Explained, RecoverError, RecoveredCounts, Released, Rows};
pub use event::{TaskEvent, TaskWhat};
pub use generation::{Generation, Release};
pub use placer::{Chosen, PlacerSettings, Proposal, propose};
pub use routes::{NamedRoute, RouteUpdate, WatchedPair};
pub use settings::{EngineSettings, SourceAges};
