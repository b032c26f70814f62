//! Algorithms that know no clusters.

mod nearest;

pub use nearest::nearest;
