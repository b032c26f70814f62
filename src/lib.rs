//! `hintd`: network-aware placement hints for Hadoop YARN clusters.
//!
//! # Layout
//! Rooms stand on floors; a lower floor never imports a higher one, and pure rooms (floors 1–4
//! and `sim`) know no clock, socket, file or global randomness. `tests/house.rs` holds both rules;
//! docs/architecture.md says why.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))] // a test that panics is a test that fails

// Floor 1: quantities and algorithms that know no clusters.
pub mod solve;
pub mod units;
// Floor 2: the model.
pub mod cluster;
pub mod network;
// Floor 3: policies.
pub mod policy;
// Floor 4: deciding, without doing.
pub mod engine;
// Floor 5: the simulator (pure) and the edges.
pub mod client;
pub mod feed;
pub mod rest;
pub mod runtime;
pub mod server;
pub mod sim;
pub mod store;
pub mod telemetry;
pub mod wire;
// Floor 6: wiring.
pub mod cli;
pub mod config;
pub mod emulate;
pub mod hadoop;
pub mod reproduce;
pub mod sdn;
