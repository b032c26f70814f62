//! Tests of the whole engine.

mod desk;
mod leasing;
mod nodes;
mod placing;
mod random;
mod watching;
