//! gRPC: services, conversions, and the one table of status codes.

pub mod codec;
pub mod convert;
mod details;
pub mod status;
