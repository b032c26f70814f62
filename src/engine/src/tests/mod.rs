//! Tests of the whole engine.

mod adherence;
mod arrivals;
mod asking;
mod circuits;
mod dispatching;
mod executors;
pub(super) mod flows;
mod guard;
pub(super) mod harness;
mod holding;
mod homes;
mod learning;
mod leasing;
mod migrating;
mod nodes;
mod parts;
mod placing;
mod plans;
mod plans_left;
mod rebalance;
mod records;
mod shuffles;
mod tokens;
mod ugly_networks;
mod watching;
mod world;
mod worth;
