//! Optical circuit switches (004 §4.1): ports of racks, circuits between them, which circuits to set.
//!
//! # The model
//! - A rack whose switch has a link to the optical switch has one *port*: an input and an output. An input leads to one
//!   output at a time. A circuit is as fast as the slower of its two ports.
//! - Once in an interval the circuits are chosen anew from a matrix of demand ([`OpticalSwitch::configure`]): a
//!   maximum-weight matching, a pair's weight being what a circuit could carry of its demand until the next choice, that
//!   is min(demand, bw·(interval − pause)). If the choice is another one, all circuits pause; else nothing happens.
//! - Only elephants are worth a circuit: what a job sends from a rack to another, if it is at least what a circuit carries
//!   in nine pauses, so that switching costs no more than a tenth.
//! - Racks without a port (a switch with fewer ports than there are racks), and racks whose port fails, send everything
//!   by packets. A stuck port keeps the circuit it has.
//!
//! # Code map
//! - `section`: [`OpticalSection`] of network documents. `problem`: what can be wrong with it; `check`: what is.
//! - `ports`: the ports of a network by the racks' switches.
//! - `switch`: [`OpticalSwitch`], the circuits and the choice of them. `demand`: [`DemandMatrix`].

mod check;
mod demand;
mod ports;
mod problem;
mod section;
mod switch;
#[cfg(test)]
mod tests;

pub use demand::{DemandMatrix, RackDemand};
pub use ports::{OpticalPort, ports};
pub use problem::{MOST_MS, OpticalProblem};
pub use section::OpticalSection;
pub use switch::{MATCHING_STEPS, OpticalSwitch, PortState};
