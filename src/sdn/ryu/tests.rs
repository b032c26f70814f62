//! Tests of `ryu`.
