//! What `hit` and `pat` stand on: tasks one by one, flows between them with the boxes they pass, and what all of it
//! costs (002 §3).
//!
//! # Cost
//! Eq. 2: Σ rate × hops, in bit/s × links, whole numbers, so that "never rises" is exact. A flow's hops are its two
//! access links and the links between switches from box to box; a flow without a chain on one host has none, one with a
//! chain leaves its host all the same, since its boxes stand elsewhere. A box costs no hop of its own.
//!
//! # Code map
//! - `ground`: a request compiled. `board`: a state: where tasks are, which boxes flows pass, what is left.
//! - `routes`: links for what was chosen. `breaches`: an independent check of a placement against its chains.
//! - `exact` (tests): the best there is, by trying everything.

mod board;
#[cfg(test)]
mod breaches;
#[cfg(test)]
pub(super) mod exact;
mod ground;
mod routes;
#[cfg(test)]
pub(super) mod sample;

pub(super) use board::{Board, List};
#[cfg(test)]
pub(super) use breaches::{Breaches, breaches_of, breaches_unaware};
pub(super) use ground::{End, FAR, Ground, NONE, Settings};
pub(super) use routes::routes;
