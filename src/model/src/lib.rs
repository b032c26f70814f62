//! The cluster and its network as data, and the algorithms below them: floors 1 and 2.
//!
//! Pure: no clock, socket, file or global randomness. `now`, data and seeds are arguments.

// A test that panics is a test that fails; tests read their data and may look at the clock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

// Floor 1: quantities and algorithms that know no clusters.
pub mod solve;
pub mod text;
pub mod units;
// Floor 2: the model.
pub mod cluster;
pub mod network;
