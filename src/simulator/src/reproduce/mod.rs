//! Harness for the papers' experiments: each is run over seeds, held against the paper's figure, and judged.
//!
//! # Invariants
//! - A verdict is computed from the measured values, never written: [`Report::from_json`] computes it again and
//!   refuses a file that says otherwise.
//! - An assumption row inherits the paper's figure and direction from the row that it explains, so the bar cannot be
//!   lowered on the way.
//! - Experiments are registered in one place, [`registry`].

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // experiments are timed, and kept in files

pub mod container;
pub mod cross_layer;
pub mod error;
pub mod experiment;
pub mod hit;
pub mod hybrid;
pub mod jobpacker;
pub mod keep;
pub mod nas;
pub mod nomora;
pub mod pat;
pub mod registry;
pub mod render;
mod replay;
pub mod report;
pub mod row;
pub mod runs;
mod shared;

pub use error::{ReproduceError, Scale};
pub use experiment::{Experiment, Measurement, RunContext, run, select};
pub use keep::{KeepError, keep, kept};
pub use registry::experiments;
pub use report::{Entry, Report, ReportError, Verdict};
pub use row::{Better, Direction, Role, Row, RowError};
pub use runs::KeptRuns;

#[cfg(test)]
mod tests;
