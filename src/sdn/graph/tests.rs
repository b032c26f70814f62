//! Tests of `graph`.
