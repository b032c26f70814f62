//! Paper 004 (Li), chapter 4: `jobpacker` against `fair` and `corral` on a hybrid network, and against `fair` on packets
//! as fast as its circuits.
//!
//! # Code map
//! - `world`: jobs and clusters of both scales. `systems`: what is compared, and runs that entries share.
//! - `figures`: Figures 4.9 to 4.12 and 4.17. `sensitivity`: Figures 4.20 to 4.24. `forecast`: runs against their plans.

mod figures;
mod forecast;
mod sensitivity;
mod systems;
#[cfg(test)]
mod tests;
mod world;

pub use figures::{BATCH, MIXED, ONLINE};
pub use forecast::FORECAST;
pub use sensitivity::SENSITIVITY;
