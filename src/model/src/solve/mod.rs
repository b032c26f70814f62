//! Algorithms that know no clusters.

pub mod anneal;
pub mod bipartite;
pub mod isotonic;
pub mod matching;
pub mod mincost;
mod nearest;
pub mod svm;
pub mod work;

pub use nearest::nearest;
