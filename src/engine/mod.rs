//! Deciding, synchronous and pure.

pub mod journal;
