//! Feeds: wire items to model changes.
