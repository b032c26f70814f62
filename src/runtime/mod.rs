//! The running daemon: registries, the one writer, pools.
