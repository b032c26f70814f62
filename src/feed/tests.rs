//! Tests of the feeds.
