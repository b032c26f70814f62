//! What the adapters are started with.

use std::time::Duration;

/// ResourceManagers to ask, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceManagerOptions {
    /// Host and port of the web address of each of a highly available group, or of the only one.
    pub authorities: Vec<String>,
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
    /// How long nodes that were known stay while no ResourceManager answers.
    pub unheard_kept: Duration,
    /// How long nodes that were known stay while the list is empty, or after the ResourceManager has changed or started
    /// anew: NodeManagers have to find it first.
    pub absent_kept: Duration,
}
