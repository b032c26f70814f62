//! hintctl.
