//! Who is refused most, and why: a bounded table for `hintctl status`, so that one client among thousands has a name.

use hintd_model::units::ApplicationId;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows kept of each kind. Of more, the one with the fewest refusals goes, the oldest of these first: whoever is refused
/// again and again stays.
const ROWS_MAX: usize = 64;

/// Requests refused to one client for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedClient {
    /// `application` or `peer`.
    pub kind: &'static str,
    /// The application's id, or the peer's address.
    pub name: String,
    /// The token of the refusal.
    pub reason: &'static str,
    /// How many.
    pub requests: u64,
    /// Time since the last one.
    pub since: Duration,
}

/// Requests refused to one application for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedApplication {
    /// Which.
    pub application: ApplicationId,
    /// The token of the refusal.
    pub reason: &'static str,
    /// How many.
    pub requests: u64,
    /// Time since the last one.
    pub since: Duration,
}

/// Counts refusals by application and by peer.
#[derive(Debug, Default)]
pub struct RefusedTable {
    applications: Mutex<Rows<ApplicationId>>,
    /// Names of applications can be made up, one for each request; a peer's address can't.
    peers: Mutex<Rows<IpAddr>>,
    /// All of them, whether somebody has a row or not.
    reasons: Mutex<BTreeMap<&'static str, u64>>,
}

type Rows<Name> = BTreeMap<(Name, &'static str), (u64, Instant)>;

impl RefusedTable {
    /// A request was refused to an application, on a connection of a peer, as far as they are known.
    pub(super) fn count(&self, reason: &'static str, application: Option<ApplicationId>, peer: Option<IpAddr>) {
        let now = Instant::now();
        *self.reasons.lock().unwrap_or_else(PoisonError::into_inner).entry(reason).or_default() += 1;
        if let Some(application) = application {
            count(&self.applications, (application, reason), now);
        }
        if let Some(peer) = peer {
            count(&self.peers, (peer, reason), now);
        }
    }

    /// All applications, as far as they are kept.
    #[must_use]
    pub fn applications(&self) -> Vec<RefusedApplication> {
        let rows = self.applications.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(&(application, reason), &(requests, last)): (&(ApplicationId, &'static str), &(u64, Instant))| {
            RefusedApplication { application, reason, requests, since: last.elapsed() }
        };
        rows.iter().map(row).collect()
    }

    /// All that were refused, by reason.
    #[must_use]
    pub fn reasons(&self) -> BTreeMap<&'static str, u64> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// At most so many of each kind, those with the most refusals first, and whoever was refused last if it is none of them.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<RefusedClient> {
        let mut found = top(&self.peers, "peer", most);
        found.extend(top(&self.applications, "application", most));
        found
    }
}

fn count<Name: Ord + Clone>(rows: &Mutex<Rows<Name>>, key: (Name, &'static str), now: Instant) {
    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    if rows.len() >= ROWS_MAX && !rows.contains_key(&key) {
        let least = rows.iter().min_by_key(|(_, row)| **row).map(|(key, _)| key.clone());
        least.and_then(|least| rows.remove(&least));
    }
    let row = rows.entry(key).or_insert((0, now));
    *row = (row.0 + 1, now);
}

fn top<Name: Ord + ToString>(rows: &Mutex<Rows<Name>>, kind: &'static str, most: usize) -> Vec<RefusedClient> {
    let rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let row = |((name, reason), (requests, last)): (&(Name, &'static str), &(u64, Instant))| RefusedClient {
        kind,
        name: name.to_string(),
        reason,
        requests: *requests,
        since: now.saturating_duration_since(*last),
    };
    let mut found: Vec<RefusedClient> = rows.iter().map(row).collect();
    drop(rows);
    found.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.name.cmp(&b.name)));
    let others = found.split_off(found.len().min(most));
    let newest = found.iter().map(|row| row.since).min();
    // Of nobody where none was asked for.
    let last =
        others.into_iter().min_by_key(|row| row.since).filter(|last| newest.is_some_and(|newest| last.since <= newest));
    found.extend(last);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn application(sequence: u32) -> ApplicationId {
        ApplicationId { cluster_timestamp: 1, sequence }
    }

    #[test]
    fn whoever_is_refused_most_stays_in_a_flood_of_invented_names_and_its_peer_is_known() {
        let table = RefusedTable::default();
        let peer = IpAddr::from([10, 0, 0, 9]);
        for _ in 0..5 {
            table.count("invalid", Some(application(7)), None);
        }
        for name in 0..10_000 {
            table.count("bad_token", Some(application(1_000 + name)), Some(peer));
        }
        std::thread::sleep(Duration::from_millis(1)); // whoever is last is so by any clock
        table.count("full", Some(application(99_999)), None);
        let found = table.top(3);
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[4].name, "application_1_99999", "whoever was refused last, though many have as many refusals");
        let named = |at: usize| (found[at].kind, found[at].name.as_str(), found[at].reason, found[at].requests);
        assert_eq!(named(0), ("peer", "10.0.0.9", "bad_token", 10_000));
        assert_eq!(named(1), ("application", "application_1_0007", "invalid", 5));
        assert_eq!(found[2].requests, 1, "a name that was made up");
        assert_eq!(table.applications.lock().unwrap().len(), ROWS_MAX);
        assert_eq!(table.reasons(), [("bad_token", 10_000), ("full", 1), ("invalid", 5)].into());
    }

    #[test]
    fn reasons_are_counted_apart() {
        let table = RefusedTable::default();
        for reason in ["full", "invalid", "full"] {
            table.count(reason, Some(application(1)), None);
        }
        let found: Vec<_> = table.top(9).into_iter().map(|row| (row.reason, row.requests)).collect();
        assert_eq!(found, [("full", 2), ("invalid", 1)]);
        assert_eq!(table.top(0), []);
    }
}
