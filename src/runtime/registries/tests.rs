//! Tests of the registries.
