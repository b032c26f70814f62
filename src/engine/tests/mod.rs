//! Tests of the whole engine.

mod desk;
mod flows;
mod leasing;
mod nodes;
mod placing;
mod random;
mod watching;
