//! Telemetry: logs and metrics, which `http` shows, and spans of requests, which are sent to a collector.
//!
//! Nothing here knows the daemon's types: labels are words, values are numbers. Names of metrics are
//! spelled here only: those of requests, the engine and feeds in [`metrics`], those of a part in the part's file; everybody else
//! holds a typed handle.

pub mod adherence;
pub mod admission;
pub mod circuits;
pub mod dispatch;
pub mod hadoop;
pub mod history_server;
mod instance;
mod labels;
pub mod log_writer;
pub mod logs;
mod metric;
pub mod metrics;
pub mod placers;
pub mod plans;
pub mod process;
pub mod rate_limited_log;
mod registry;
mod rounds;
pub mod routes;
pub mod sdn;
pub mod slow_peers;
pub mod spans;
pub mod worth;
