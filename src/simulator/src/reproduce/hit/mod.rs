//! Paper 002 §3–5, §8.5–8.7 (Yang et al.): `hit` against `capacity` and `pna`.
//!
//! # Code map
//! - `workload`: Table 1's mix under the common job model. `systems`: what is compared, and runs in virtual time.
//! - `jct`: Figures 9 and 10. `topologies`: Figure 11. `bandwidth`: Figure 12.

mod bandwidth;
mod jct;
pub(super) mod systems;
mod topologies;
pub(super) mod workload;

pub use bandwidth::BANDWIDTH;
pub use jct::COMPLETION;
pub use topologies::TOPOLOGIES;
pub(super) use topologies::gaps;
