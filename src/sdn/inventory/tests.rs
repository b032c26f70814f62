//! Tests of `inventory`.
