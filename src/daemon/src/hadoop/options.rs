//! What the adapters are started with.

use super::name_node::path_cache::PathCacheSettings;
use crate::rest_client::{Address, Rest, Trust, TrustError};
use hintd_model::cluster::SizeRules;
use hintd_model::units::Micros;
use std::path::PathBuf;
use std::time::Duration;

/// Servers of one kind: where they are, whom to trust, and how patiently they are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The web address of each.
    pub addresses: Vec<Address>,
    /// PEM certificates of who signs the web interfaces'; `None`: whom the system trusts.
    pub ca_file: Option<PathBuf>,
    /// Who asks (`user.name`), where the web interfaces want a name; empty: nobody.
    pub user: String,
    /// Time between two polls.
    pub poll: Duration,
    /// How long an answer may take, all of it.
    pub timeout: Duration,
    /// The longest wait after failures.
    pub backoff: Duration,
    /// The largest answer that is read, in bytes.
    pub answer_bytes: usize,
}

impl ServerOptions {
    /// Whose certificates are believed; `None`: no address is `https`.
    ///
    /// # Errors
    /// [`TrustError`] where one is and there is nobody to trust.
    pub fn trust(&self) -> Result<Option<Trust>, TrustError> {
        Trust::for_addresses(&self.addresses, self.ca_file.as_deref())
    }

    /// All of them, for a line of the log.
    pub(in crate::hadoop) fn names(&self) -> String {
        self.addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(" ")
    }

    pub(in crate::hadoop) fn rest(&self, address: &Address, trust: Option<&Trust>) -> Rest {
        Rest::at(address, trust, self.timeout, self.answer_bytes)
    }
}

/// ResourceManagers to ask, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceManagerOptions {
    /// Each of a highly available group, or the only one.
    pub servers: ServerOptions,
    /// How long nodes that were known stay while no ResourceManager answers.
    pub unheard_kept: Duration,
    /// How long nodes that were known stay while the list is empty, or after the ResourceManager has changed or started
    /// anew: NodeManagers have to find it first. The same for applications that it does not know.
    pub absent_kept: Duration,
    /// Time between two looks at applications; `None`: they are not looked at.
    pub applications: Option<Duration>,
    /// The sizes that the configuration states; `None`: the scheduler's are taken.
    pub stated: Option<SizeRules>,
}

/// NameNodes to ask for blocks of paths that requests name, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameNodeOptions {
    /// Each of a highly available group, or the only one; a poll asks whether one answers, where nothing else is asked.
    pub servers: ServerOptions,
    /// How long a request waits for locations at most.
    pub wait: Duration,
    /// Questions at one time.
    pub parallel: usize,
    /// Files below one path.
    pub files_per_path: usize,
    /// Blocks of one path.
    pub blocks_per_path: usize,
    /// What is kept.
    pub path_cache: PathCacheSettings,
    /// How it is asked which DataNodes others report as slow; `None`: it is not.
    pub slow_peers: Option<SlowPeerOptions>,
}

/// How NameNodes are asked for slow DataNodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPeerOptions {
    /// Time between two polls.
    pub every: Duration,
    /// How long what was told counts while no NameNode says more.
    pub kept: Micros,
}

/// JobHistoryServers, or Spark's history servers, to ask, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryServerOptions {
    /// Each is asked on its own.
    pub servers: ServerOptions,
    /// Jobs, or applications, that ended longer ago are not asked for.
    pub lookback: Duration,
    /// So many are looked at in one poll; others wait for the next.
    pub jobs_per_poll: usize,
}
