//! Running flows: which pairs of nodes talk, over which routes, for which jobs; kept through what the network does.

pub mod settings;
pub mod uses;
pub mod what_if;
