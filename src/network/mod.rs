//! The network: graph, builders, checks, paths, distances.
