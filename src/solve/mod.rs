//! Algorithms that know no clusters.

pub mod anneal;
mod nearest;

pub use nearest::nearest;
