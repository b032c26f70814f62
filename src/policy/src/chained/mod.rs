//! What `hit` and `pat` stand on: tasks one by one, flows between them with the boxes they pass, and what all of it
//! costs (002 §3).
//!
//! # Cost
//! Eq. 2: Σ rate × hops, in bit/s × links, whole numbers, so that "never rises" is exact. A flow's hops are its two
//! access links and the links between switches from box to box; a flow without a chain on one host has none, one with a
//! chain leaves its host all the same, since its boxes stand elsewhere. A box costs no hop of its own.
//!
//! # Code map
//! - `compiled`: a request compiled. `search_state`: a state: where tasks are, which boxes flows pass, what is left.
//! - `routes`: links for what was chosen. `breaches`: an independent check of a placement against its chains.
//! - `exact`: the best there is, by trying everything. `sample`: clusters with boxes, and what may fail of them.
//! - `cases`: draws that tests and experiments share. `steered`: what any placement costs, container by container.

#[cfg(any(test, feature = "samples"))]
mod breaches;
#[cfg(any(test, feature = "samples"))]
pub(crate) mod cases;
mod compiled;
#[cfg(any(test, feature = "samples"))]
mod exact;
mod routes;
#[cfg(any(test, feature = "samples"))]
pub(crate) mod sample;
mod search_state;
#[cfg(any(test, feature = "samples"))]
mod steered;

#[cfg(any(test, feature = "samples"))]
pub use breaches::Breaches;
#[cfg(any(test, feature = "samples"))]
pub(crate) use breaches::{breaches_of, breaches_unaware};
pub(crate) use compiled::Settings;
pub(super) use compiled::{ChainedProblem, End, FAR, NONE};
pub(super) use routes::routes;
pub(super) use search_state::{List, SearchState};
#[cfg(any(test, feature = "samples"))]
pub use steered::{Steered, Steering, steered};
