//! Paper 003 (Popescu and Moore, *No Delay: Latency-Driven, Application Performance-Aware, Cluster Scheduling*), §6.
//!
//! # Code map
//! - `series`: synthetic latency of all pairs of machines over time. `workload`: jobs, of the Google trace where it is there.
//! - `run`: rounds of one policy over the jobs; `baselines`: those of the two policies that it is held against. `quality`: Figure 5, performance of jobs. `time`: Figures 6 and 8.

mod baselines;
mod quality;
mod run;
mod series;
mod time;
mod workload;

pub use quality::QUALITY;
pub use time::{LATENCY, RUNTIME};
