//! What route watchers ask for and are told, in names.

use crate::circuits::messages::WantedCircuits;
use hintd_model::units::{HostName, LinkName, Timestamp};
use serde::{Deserialize, Serialize};
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
    /// Middleboxes passed, in order; only under a chain, whose name is the pair's class.
    pub stops: Vec<NamedStop>,
}

/// A middlebox on a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedStop {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub kind: Arc<str>,
    /// The switch that it hangs on.
    pub at: Arc<str>,
    /// Links walked before it is entered.
    pub after: u32,
}

/// What a watcher wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchScope {
    /// Pairs by name, whether anything runs between them or not.
    pub pairs: Vec<WatchedPair>,
    /// Every route of running flows that is to be installed.
    pub flows: bool,
    /// It installs what it is told: it gets rules, and must acknowledge. Only one watcher at a time may.
    pub installs: bool,
    /// Circuits that an optical switch should have.
    pub circuits: bool,
    /// The last update it knows: where the log reaches back so far, it gets what it missed instead of a snapshot.
    pub resume_after: Option<u64>,
}

/// What a watcher is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteUpdate {
    /// Counts up by one; never given twice under one watcher's name while this process lives.
    pub number: u64,
    /// All pairs, not only changed ones: what is not named here is to be forgotten.
    pub snapshot: bool,
    /// Routes, by pair.
    pub routes: Vec<NamedRoute>,
    /// Pairs that have no route of their own any more: default forwarding carries them. By pair.
    pub removed: Vec<WatchedPair>,
    /// For a watcher that installs: what to do on switches, in this order.
    pub rules: Vec<RuleChange>,
    /// What kind of change it is.
    pub phase: Phase,
    /// initial, `link_down`, `link_up`, `link_capacity`, `link_removed`, `switch_down`, `switch_up`, topology, placed,
    /// ended, `node_lost`, refused, resync, silent, circuits
    pub cause: &'static str,
    /// The link, switch, host or decision that changed; empty: all of it.
    pub subject: Arc<str>,
    /// Watched pairs of this watcher that the change did not touch.
    pub untouched: u64,
    /// Circuits that are wanted from now on, all of them; `None`: this update says nothing of circuits.
    pub circuits: Option<Arc<WantedCircuits>>,
}

/// What kind of change an update is, which says what is promised while it is applied rule by rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The first of a watch: all routes.
    Initial,
    /// Planned: new rules beside the old ones; no packet is lost. Old rules go by a later Break, after this is acknowledged.
    Make,
    /// Rules that nothing uses any more go.
    Break,
    /// Something failed: new rules, and the old ones go at once. Packets are lost until it is applied, none loops.
    Failover,
    /// All routes again, because an update was never acknowledged.
    Resync,
}

impl Phase {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Make => "make",
            Self::Break => "break",
            Self::Failover => "failover",
            Self::Resync => "resync",
        }
    }
}

/// One change of one switch's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// Which switch.
    pub switch: Arc<str>,
    /// Whose packets.
    pub pair: WatchedPair,
    /// What to do.
    pub action: RuleAction,
}

/// What to do with a switch's rule of a pair; there is at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// Send the pair's packets over this link, instead of where an earlier rule sends them.
    Install {
        /// Which link.
        link: LinkName,
        /// The vertex at its other end.
        next: Arc<str>,
    },
    /// Forget the rule, if there is one.
    Remove,
}

/// How a watcher stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherState {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it installs what it is told.
    pub installs: bool,
    /// Number of the last update for it.
    pub sent: u64,
    /// The last that it acknowledged.
    pub acknowledged: u64,
    /// Since when it watches.
    pub since: Timestamp,
    /// What is to be expected of it.
    pub progress: WatcherProgress,
    /// Since when no stream carries its updates, which are kept for when it comes back; `None`: one does.
    pub away_since: Option<Timestamp>,
    /// Watched pairs with a route.
    pub routes: usize,
    /// Routes that it could not install, with its reasons, by pair.
    pub refused: Vec<(WatchedPair, Arc<str>)>,
}

/// How far a watcher follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WatcherProgress {
    /// It has acknowledged everything, or need not.
    Current,
    /// An update waits for its acknowledgement.
    Waiting,
    /// It never acknowledged, or went away for too long: what it had installed counts as default forwarding until it
    /// watches again.
    Silent,
}

impl WatcherProgress {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Waiting => "waiting",
            Self::Silent => "silent",
        }
    }
}
