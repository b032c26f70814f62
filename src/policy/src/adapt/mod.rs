//! Adapters: a dispatcher that answers requests, a placer that answers heartbeats.

mod as_dispatch;
mod as_place;
mod of_policy;
#[cfg(test)]
mod tests;

pub use as_dispatch::{PlacedFirst, PlacedFirstState};
pub use as_place::OfferInTurn;
pub use of_policy::{PATIENCE, PLACER_STEPS, dispatcher_of};
