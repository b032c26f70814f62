//! Tests of the whole engine.

mod adherence;
pub(super) mod desk;
mod dispatching;
mod flows;
mod leasing;
mod nodes;
mod placing;
mod random;
mod records;
mod watching;
