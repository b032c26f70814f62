//! Watched routes: who is told of which routes, and in which order a controller applies them.
//!
//! # Code map
//! - `messages`: what watchers ask for and are told; `cause`: why.
//! - `rules`: a pair's rules on switches and the order of their changes; `watcher`: one watcher's numbered updates,
//!   acknowledgements and log; `watchers`: all of them, and pairs watched by name.
//! - `view`: names for indexes.

mod cause;
pub mod messages;
mod rules;
pub(crate) mod view;
mod watcher;
mod watchers;

pub use cause::Cause;
pub(crate) use cause::ChangeBatch;
pub use messages::{
    NamedRoute, NamedStop, Phase, RouteUpdate, RuleAction, RuleChange, WatchScope, WatchedPair, WatcherProgress,
    WatcherState,
};
pub(crate) use view::View;
#[cfg(test)]
pub(crate) use watchers::PATH_STEPS_IN_ONE_GO;
pub(crate) use watchers::{Out, Watchers};
