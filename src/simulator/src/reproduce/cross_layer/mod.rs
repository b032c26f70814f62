//! Paper 000 (Alkaff, Gupta: *Cross-Layer Scheduling in Cloud Computing Systems*).
//!
//! # Code map
//! - `workload`: clusters, jobs and running traffic for both.
//! - `time`: Figures 10 and 11, how long a decision takes. `failure`: Figures 6 and 9, links that fail and return.
//! - `gangs`: jobs in virtual time. `throughput`: Figures 4, 5, 7 and 8. `jct`: Figures 12 and 13.

mod failure;
mod gangs;
mod jct;
mod throughput;
mod time;
mod workload;

pub use failure::FAILURE;
pub use jct::COMPLETION;
pub use throughput::{HADOOP, STORM};
pub use time::DECISION_TIME;
