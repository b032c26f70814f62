//! Sentences of the algorithms.
