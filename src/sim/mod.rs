//! The simulator's world: traces, and the one job model that every comparison uses.
//!
//! # Invariants
//! - Pure: readers take `impl BufRead`, writers `impl Write`; nothing here opens a file.
//! - A trace says nothing about tasks: every task count and duration comes from [`JobModel`], so that two
//!   policies are never compared under two models.

pub mod job_model;
pub mod scale;
pub mod trace;

pub use job_model::{JobModel, JobModelError, Task};
pub use scale::{ScaleError, TraceScale};
pub use trace::generate::{TraceShape, generate, write_swim};
pub use trace::swim::{SwimJob, SwimReader};
pub use trace::{TraceError, maybe_gzip};
