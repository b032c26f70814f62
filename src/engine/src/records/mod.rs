//! Records: what each decision was made of, kept so that it can be made again, byte by byte, or by another policy.
//!
//! A decision is a function of what it read. That is kept, as the compiler of problems reads it: the request, the
//! columns of nodes and what was leased (from which candidates and rulings-out follow), paths, history and running
//! flows as far as it read them, the network, the policy with its parameters, the seed and the steps it might take, at
//! which look the probe stopped it, and of a dispatcher its State. What versions share is kept and counted once.
//!
//! # Code map
//! - `columns`: the columns of nodes, in pieces; `frame`: all that decisions of one generation read.
//! - `facts`: what each read of its own, and rounds of several. `record`: one decision; `replay`: made again, or by another policy; `predict`: what its containers' performance was predicted as.
//! - `settings`: how much is kept. `store`: all of them; `shares`: whose go first; `tally`, `memory_size`: their bytes.

mod columns;
mod facts;
mod frame;
pub(crate) mod memory_size;
mod predict;
mod record;
mod replay;
pub(crate) mod settings;
mod shares;
mod store;
mod tally;

pub use facts::{RoundInputs, RoundPosition};
pub use predict::{PredictedGroup, PredictedPerformance, PredictedPlace};
pub use record::{DecidedRequest, Probe, Record, RequestOutcome, Undelivered};
pub use replay::{Difference, ObjectiveComparison, PolicyComparison, ReplayResult};
pub use settings::RecordSettings;
pub use store::{Kept, RecordFilter, Records};
