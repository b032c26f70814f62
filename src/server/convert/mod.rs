//! Wire to core and back: every shape check of what callers send, in one place.
//!
//! Invariant: what passes here is well-formed whatever the cluster looks like; names are resolved
//! later, against a snapshot. A refusal names the field by its path and the value that stood there.

mod answer;
mod digest;
mod field;
mod request;
mod resource;

pub(super) use answer::age;
pub use answer::{hint_set, terms, wire_mode};
pub use digest::digest;

pub use request::{Limits, attempt, request};
pub use resource::{ask_to_wire, resource_to_wire};
