//! Watched routes: who is told of which routes, and in which order a controller applies them.

pub mod told;
mod watchers;

pub use told::{
    NamedRoute, Phase, RouteUpdate, RuleAction, RuleChange, Standing, WatchScope, WatchedPair, WatcherState,
};
pub(crate) use watchers::{Cause, Watchers};
