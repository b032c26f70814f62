//! What happens in an emulated cluster, for whoever watches.

use hintd_client::wire::v1;
use std::time::Duration;

/// What happened, for whoever watches.
#[derive(Debug, Clone)]
pub enum EmulationEvent {
    /// A job got hints.
    Hinted {
        /// Its number.
        job: u64,
        /// The answer.
        hints: Box<v1::HintSet>,
        /// Time from question to answer.
        took: Duration,
    },
    /// A job got none and runs without.
    Unhinted {
        /// Its number.
        job: u64,
        /// Why.
        why: String,
    },
    /// Containers of a job were placed anew.
    Replaced {
        /// Its number.
        job: u64,
        /// Hosts that they leave.
        from: Vec<String>,
        /// The new hints.
        hints: Box<v1::HintSet>,
        /// Why.
        cause: String,
    },
    /// Leases were taken back.
    Withdrawn {
        /// Whose.
        job: u64,
        /// Where.
        host: String,
        /// How many.
        leases: usize,
        /// Why.
        reason: String,
    },
    /// A job is done.
    Ended {
        /// Its number.
        job: u64,
        /// Time from submission.
        took: Duration,
    },
    /// A machine stopped.
    NodeKilled {
        /// Which.
        host: String,
        /// The jobs' containers on it.
        containers: usize,
        /// Their containers elsewhere.
        elsewhere: usize,
    },
    /// The ResourceManager gave the node up.
    NodeGivenUp {
        /// Which.
        host: String,
        /// The jobs' containers that died.
        containers: usize,
    },
    /// A link changed.
    Link {
        /// Which.
        id: String,
        /// Up or down.
        up: bool,
        /// Installed routes of running flows that had it.
        routes: usize,
    },
    /// The SDN controller got routes of running flows, and applied them.
    FlowRoutes {
        /// What it got.
        update: Box<v1::RouteUpdate>,
        /// Time since the link's change was told to the daemon, where one was.
        took: Option<Duration>,
    },
    /// A monitor got routes of the pairs that it watches.
    Routes {
        /// What it got.
        update: Box<v1::RouteUpdate>,
        /// Time since it told the change, where it told one.
        took: Option<Duration>,
    },
}
