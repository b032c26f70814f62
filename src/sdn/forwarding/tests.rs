//! Tests of `forwarding`.
