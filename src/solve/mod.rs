//! Algorithms that know no clusters.
