//! The simulator: traces replayed on a cluster in virtual time, under any policy.
//!
//! # Code map
//! - What is run: `trace` (jobs), `job_model` (their tasks), `shape` (clusters), `settings`, `delays` (what was measured on a real cluster). What comes out: `report`.
//! - `yarn`: the resource manager, shuffle and HDFS; [`yarn::simulate`] is the whole run. `deployed`: hints as they are deployed, by the engine
//!   itself. `capacity`: YARN's own scheduler between hints and nodes. `fluid`: flows in time, below them.
//! - `streams`: random numbers by what they are drawn for.
//! - `gangs`: applications placed whole by a placer, apart from `yarn`.
//! - `worth`: what hints are worth, from runs held against YARN alone.
//! - `reproduce`: the papers' experiments, made again on top of all this; it alone times and keeps files.
//!
//! # Invariants
//! - Pure: readers take `impl BufRead`, writers `impl Write`; nothing here opens a file.
//! - Task counts and durations that a trace does not give come from [`JobModel`], so that two policies are never
//!   compared under two models.

// A test that panics is a test that fails; tests read their data and may look at the clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod capacity;
pub mod delays;
pub mod deployed;
pub mod flows_file;
pub mod fluid;
pub mod gangs;
pub mod job_model;
pub mod report;
pub mod reproduce;
pub mod scale;
pub mod settings;
pub mod shape;
mod streams;
pub mod trace;
pub mod worth;
pub mod yarn;

pub use delays::{Delays, DelaysError, DelaysFile, SHIPPED_DELAYS};
pub use flows_file::{FlowsDocument, FlowsResult};
pub use fluid::{Completion, FluidNetwork};
pub use job_model::{JobModel, JobModelError, Task};
pub use report::{CircuitReport, ClassReport, JobReport, NEVER_FIT_SHOWN, RackBytes, RunReport, TierUse};
pub use scale::{ScaleError, TraceScale};
pub use settings::{Authority, Background, FlowGrain, HistoryLie, Part, Scripted, ScriptedEvent, SimSettings};
pub use shape::{ClusterShape, Core, SHAPE_FORMAT, Shipped, shipped};
pub use trace::generate::{TraceShape, generate, write_swim};
pub use trace::job::{Earlier, TraceJob};
pub use trace::json::write_json;
pub use trace::reader::{TraceFacts, TraceFormat, TraceOptions, TraceReader};
pub use trace::swim::{SwimJob, SwimReader};
pub use trace::{TraceError, maybe_gzip};
pub use yarn::{Progress, SimCluster, SimError, SimRun, SimWatch, simulate};
