//! Algorithms that know no clusters.

pub mod anneal;
pub mod bipartite;
pub mod matching;
mod nearest;

pub use nearest::nearest;
