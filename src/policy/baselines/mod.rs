//! Policies to compare with: what clusters do without the network in view.

pub mod capacity;
pub mod random;
pub mod spread;
