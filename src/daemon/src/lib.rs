//! The daemon's edges: threads, sockets and disk around the pure engine; adapters to Hadoop and SDN controllers.
//!
//! # Code map
//! - `feed`: facts from outside into `runtime`'s registries. `server`: the gRPC services. `store`: the journal.
//! - `runtime`: the engine's thread, the placers' pool, the published generation.
//! - `hadoop`, `sdn`: what the daemon asks or tells others by itself, over `rest_client`; `rest_advice`: what to do about
//!   one that gives no good answer.
//! - `http`: the HTTP listener and its pages. `telemetry`: logs and metrics.
//! - `descriptors`: how many files and sockets the process may have.
//! - `findings`: what is wrong, for `hintctl doctor` and the page. `notice`: what an operator should know, with what to do.
//! - `config`: the configuration file. `regular_file`: how files are read that somebody else put there, and replaced.
//! - `times`: times of the clock as the core counts them.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an edge: clocks, files and sockets are its work
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))] // a test that panics is a test that fails

pub mod descriptors;
pub mod feed;
pub mod findings;
pub mod notice;
pub mod regular_file;
mod rest_advice;
pub mod rest_client;
pub mod runtime;
pub mod server;
pub mod store;
pub mod telemetry;
mod times;
// Wiring.
pub mod config;
pub mod hadoop;
pub mod http;
pub mod sdn;
