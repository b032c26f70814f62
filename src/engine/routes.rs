//! Watched routes: the shortest path of each watched pair, kept current by changes of the network.

use crate::units::{HostName, LinkName};
use std::sync::Arc;

/// Whose traffic a route is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedPair {
    /// Sender.
    pub src: HostName,
    /// Receiver.
    pub dst: HostName,
    /// Traffic class; empty: the default one.
    pub class: Arc<str>,
}

/// One route, in names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRoute {
    /// For whom.
    pub pair: WatchedPair,
    /// Host, switches, host; empty: no path is left.
    pub vertices: Vec<Arc<str>>,
    /// One a hop.
    pub links: Vec<LinkName>,
}

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteUpdate {
    /// Counts from 1 for each watch; the first is the snapshot.
    pub number: u64,
    /// All pairs, not only changed ones.
    pub snapshot: bool,
    /// Routes, by pair.
    pub routes: Vec<NamedRoute>,
    /// initial, `link_down`, `link_up`, `link_capacity`, `link_removed`, `switch_down`, `switch_up`, topology
    pub cause: &'static str,
    /// The link or switch that changed; empty: all of it.
    pub subject: Arc<str>,
    /// Watched pairs of this watcher that the change did not touch.
    pub untouched: u64,
}
