//! gRPC: services, conversions, sockets, and the one table of status codes.
//!
//! Invariants: wire types stop here and in `feed`; every refusal becomes a status in [`status`] and
//! nowhere else; Admin is served on the Unix socket only; every stream ends when the daemon stops.

pub mod admin;
mod admin_socket;
mod bounds;
mod closing;
pub mod codec;
mod connection_permits;
pub mod convert;
mod deadline;
mod details;
mod explain;
pub mod feed;
mod front;
mod listing;
pub mod page;
pub mod placement;
pub mod routes;
mod start;
pub mod status;
mod status_report;
mod while_awaited;

pub use start::{Running, Starting, start};
pub use status_report::status_report;
