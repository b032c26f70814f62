//! Adapters: a dispatcher that answers requests, a placer that answers heartbeats.

mod as_dispatch;
mod as_place;
#[cfg(test)]
mod tests;

pub use as_dispatch::{PlacedFirst, PlacedFirstState};
pub use as_place::OfferInTurn;
