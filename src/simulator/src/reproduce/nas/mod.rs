//! Paper 004 (Li), chapters 3 and 6: `nas` against `fair`, `delay` and `shufflewatcher` in the simulator.
//!
//! # Code map
//! - `world`: clusters and traces of both scales. `systems`: what is compared, and runs that entries share.
//! - `figures`: Figures 3.8 to 3.16. `validation`: Tables 6.1 and 6.2 and the flows with known completion times.

mod figures;
mod systems;
#[cfg(test)]
mod tests;
mod validation;
mod world;

pub use figures::{ASSUMPTIONS, COMPLETION, CONGESTION, MECHANISMS, THRESHOLDS, THROUGHPUT, TRAFFIC, USERS};
pub use validation::VALIDATION;
pub(super) use world::day;
