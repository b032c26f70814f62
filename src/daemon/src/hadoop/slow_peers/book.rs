//! What was told of slow peers, and since when; no I/O, no clock.

use super::report::{Hosts, NamedRow, Report};
use crate::notice::{Notice, NoticeKind};
use hintd_model::cluster::{NamedSlowPeer, NamedSlowPeers};
use hintd_model::network::latency::slow_peers::{REPORTERS_OF_HOST, SlowPeersState};
use hintd_model::units::{HostName, Micros, Timestamp};
use std::collections::BTreeMap;

/// Hosts that a notice names; of more it gives the number.
const NAMED_MAX: usize = 5;

/// Pairs that were told last.
#[derive(Debug)]
pub(super) struct Book {
    kept: Micros,
    told_at: Option<Timestamp>,
    /// Since when, by the slow one and who reports it.
    since: BTreeMap<(HostName, HostName), Timestamp>,
}

/// A host that is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlowHost<'a> {
    host: &'a HostName,
    /// How many report it.
    reporters: usize,
    /// Since when the first of them does.
    since: Timestamp,
}

impl Book {
    pub(super) const fn new(kept: Micros) -> Self {
        Self { kept, told_at: None, since: BTreeMap::new() }
    }

    /// Takes an answer in. A pair that is in it again keeps its time, unless the last answer was too long ago.
    pub(super) fn take(&mut self, report: &mut Report, hosts: &Hosts<'_>, now: Timestamp) -> NamedSlowPeers {
        let state = match report {
            Report::Absent | Report::Off => SlowPeersState::Off,
            Report::On(_) => SlowPeersState::On,
        };
        let named = match report {
            Report::On(rows) => hosts.named(rows),
            Report::Absent | Report::Off => Vec::new(),
        };
        let before = if self.counts(now) { std::mem::take(&mut self.since) } else { BTreeMap::new() };
        let told = |NamedRow { slow, reporter, packet }| {
            let since = before.get(&(slow.clone(), reporter.clone())).copied().unwrap_or(now);
            NamedSlowPeer { slow, reporter, packet, since }
        };
        let reports: Vec<NamedSlowPeer> = named.into_iter().map(told).collect();
        let pair = |told: &NamedSlowPeer| ((told.slow.clone(), told.reporter.clone()), told.since);
        (self.since, self.told_at) = (reports.iter().map(pair).collect(), Some(now));
        NamedSlowPeers { state, told_at: now, max_age: self.kept, reports }
    }

    /// Whether what was told last still counts.
    pub(super) fn counts(&self, now: Timestamp) -> bool {
        self.told_at.is_some_and(|at| now.since(at) <= self.kept)
    }

    /// Hosts that are reported.
    pub(super) fn slow(&self, now: Timestamp) -> Vec<SlowHost<'_>> {
        let mut slow: Vec<SlowHost<'_>> = Vec::new();
        for ((host, _), since) in self.since.iter().filter(|_| self.counts(now)) {
            match slow.last_mut() {
                Some(last) if last.host == host => {
                    (last.reporters, last.since) = (last.reporters + 1, last.since.min(*since));
                }
                _ => slow.push(SlowHost { host, reporters: 1, since: *since }),
            }
        }
        slow
    }

    /// What an operator should know: hosts that are slow for all others, those that most report first.
    pub(super) fn notice(&self, now: Timestamp) -> Option<Notice> {
        let mut slow = self.slow(now);
        slow.retain(|slow| slow.reporters >= REPORTERS_OF_HOST);
        slow.sort_by_key(|slow| (std::cmp::Reverse(slow.reporters), slow.host));
        let named: Vec<String> = slow
            .iter()
            .take(NAMED_MAX)
            .map(|SlowHost { host, reporters, since }| {
                format!("{host} (by {reporters}, for {} s)", now.since(*since).as_millis() / 1_000)
            })
            .collect();
        let more = match slow.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let hosts = named.join(", ");
        let words = || format!("DataNodes report hosts as slow: {hosts}{more}; hintctl latency shows by how much");
        (!named.is_empty()).then(|| Notice::new(NoticeKind::SlowHosts, words()))
    }
}
