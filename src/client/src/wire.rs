//! Generated protobuf messages and services; nothing outside the edges names them.
//!
//! Invariant: wire types stop at `server/`, `client/` and `feed/`; the core has its own types.

#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)] // generated code, documented in proto/

/// YARN's own messages, a subset.
pub mod hadoop {
    /// `hadoop.yarn`.
    pub mod yarn {
        tonic::include_proto!("hadoop.yarn");
    }
}

/// The daemon's interface.
pub mod hintd {
    /// `hintd.v1`.
    pub mod v1 {
        tonic::include_proto!("hintd.v1");
        include!(concat!(env!("OUT_DIR"), "/hintd_debug.rs"));
    }
}

pub use hadoop::yarn;
pub use hintd::v1;

/// Every message and service above, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = tonic::include_file_descriptor_set!("hintd_descriptor");
