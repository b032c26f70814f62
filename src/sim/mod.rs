//! The simulator's world: traces and the one job model.
