//! What the adapter is started with; `config` reads and checks it.

use super::graph::Capacities;
use super::names::Names;
use super::table::Marks;
use std::path::PathBuf;
use std::time::Duration;

/// One Ryu controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RyuOptions {
    /// Host and port of its REST interface.
    pub authority: String,
    /// Time between two looks at switches, links, hosts and ports.
    pub poll: Duration,
    /// Time between two readings of port counters.
    pub counters: Duration,
    /// An answer that takes longer is none.
    pub timeout: Duration,
    /// The longest wait after failures; it doubles from [`BACKOFF_FIRST`] and is spread at random.
    pub backoff: Duration,
    /// Bytes of one answer.
    pub answer_bytes: usize,
    /// How long a deleted link waits for its contrary.
    pub debounce: Duration,
    /// How long absence means nothing after trouble.
    pub settle: Duration,
    /// Whether routes are installed.
    pub install: bool,
    /// Whether the network has forwarding rules of ours for what has no route.
    pub forward: bool,
    /// How long a switch may take to show what it was told.
    pub confirm: Duration,
    /// Time between two comparisons of all tables with what they should hold.
    pub audit: Duration,
    /// How long after the start rules of an earlier life stay that nobody has wanted yet.
    pub orphans: Duration,
    /// How own rules are told.
    pub marks: Marks,
    /// Capacities to believe instead of described ones.
    pub capacities: Capacities,
    /// Names given one by one.
    pub names: Names,
    /// A hosts file that names hosts by IPv4 address.
    pub hosts_file: Option<PathBuf>,
}

/// The first wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The wait after `failures` in a row: doubled each time up to `most`, then between half and all of it.
#[must_use]
pub fn backoff(failures: u32, most: Duration, random: f64) -> Duration {
    let doubled = BACKOFF_FIRST.saturating_mul(1_u32 << failures.saturating_sub(1).min(16)).min(most);
    doubled.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        let most = Duration::from_secs(30);
        assert_eq!(backoff(1, most, 1.0), BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 1.0), 4 * BACKOFF_FIRST);
        assert_eq!(backoff(3, most, 0.0), 2 * BACKOFF_FIRST);
        assert_eq!(backoff(u32::MAX, most, 1.0), most);
    }
}
