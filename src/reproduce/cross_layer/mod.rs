//! Paper 000 (Alkaff, Gupta: *Cross-Layer Scheduling in Cloud Computing Systems*): what needs no simulator.
//!
//! # Code map
//! - `workload`: clusters, jobs and running traffic for both.
//! - `time`: Figures 10 and 11, how long a decision takes. `failure`: Figures 6 and 9, links that fail and return.

mod failure;
mod time;
mod workload;

pub use failure::Failure;
pub use time::DecisionTime;
