//! Policies: pure, small, the same everywhere.
