//! Harness for the papers' experiments.
