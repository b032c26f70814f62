//! Tests of the whole engine.

pub(super) mod desk;
mod dispatching;
pub(super) mod flows;
mod leasing;
mod nodes;
mod placing;
mod watching;
mod world;
