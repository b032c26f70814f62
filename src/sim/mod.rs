//! The simulator's world: traces, the one job model that every comparison uses, the network in time.
//!
//! # Invariants
//! - Pure: readers take `impl BufRead`, writers `impl Write`; nothing here opens a file.
//! - A trace says nothing about tasks: every task count and duration comes from [`JobModel`], so that two
//!   policies are never compared under two models.

pub mod flows_file;
pub mod fluid;
pub mod job_model;
pub mod scale;
pub mod trace;

pub use flows_file::{FlowsDocument, FlowsResult};
pub use fluid::{Completion, FluidNetwork};
pub use job_model::{JobModel, JobModelError, Task};
pub use scale::{ScaleError, TraceScale};
pub use trace::generate::{TraceShape, generate, write_swim};
pub use trace::swim::{SwimJob, SwimReader};
pub use trace::{TraceError, maybe_gzip};
