//! Deciding, synchronous and pure.
