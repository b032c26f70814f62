//! DataNodes that other DataNodes report as slow, as a NameNode tells of them, and what that does to a latency that nobody
//! measured.
//!
//! A DataNode times the packets that it sends on to others while blocks are written, in milliseconds, and reports those that
//! take more than three times the median of all. That is no round trip: it grows with the size of packets, and with a busy disk
//! behind the other end. So only the ratio to the median is read of it, and it raises the latency of pairs that agents have not
//! measured of late ([`SlowPeers::slowdown`]). Measured pairs stay as they are.

use crate::units::{Micros, NodeIdx, Timestamp};

/// Reports that are kept at most: as many as 100 slow hosts have where 100 others report each.
pub const MOST_REPORTS: usize = 10_000;

/// The longest time of a packet that is believed.
pub const MOST_PACKET: Micros = Micros::from_secs(3_600);

/// A host counts as slow for all others where so many report it; a report of one alone is of that pair.
pub const REPORTERS_OF_HOST: usize = 2;

/// How many times as long something takes, in hundredths, 1 to 10 times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slowdown(u32);

impl Slowdown {
    /// As long as ever.
    pub const NONE: Self = Self(100);

    /// At most so much: a packet's time has parts that a round trip has not. It takes a latency of 100 µs to where curves end.
    pub const MOST: Self = Self(1_000);

    /// Of a report without numbers: above three times the median a DataNode reports a peer at all.
    pub const REPORTED: Self = Self(300);

    /// Of a packet's time beside the median of all; within [`Self::NONE`] and [`Self::MOST`].
    #[must_use]
    pub const fn of(reported: Micros, median: Micros) -> Self {
        if median.0 == 0 {
            return Self::REPORTED;
        }
        let hundredths = reported.0.saturating_mul(100) / median.0;
        match hundredths {
            ..100 => Self::NONE,
            100..1_000 => Self(hundredths as u32),
            _ => Self::MOST,
        }
    }

    /// Times as long.
    #[must_use]
    pub fn factor(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// A latency so many times as long.
    #[must_use]
    pub fn of_latency(self, latency: Micros) -> Micros {
        Micros(latency.0.saturating_mul(u64::from(self.0)) / 100)
    }
}

/// One DataNode's word on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPeer {
    /// Who is slow.
    pub slow: NodeIdx,
    /// Who says so.
    pub reporter: NodeIdx,
    /// What a packet took on the mean, and the median of all peers of the reporter; `None`: an older Hadoop does not say.
    pub packet: Option<PacketTimes>,
    /// Since when a NameNode has told of it without a pause.
    pub since: Timestamp,
}

/// Times of packets as a DataNode reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTimes {
    /// To the slow one.
    pub reported: Micros,
    /// The median of all.
    pub median: Micros,
}

impl SlowPeer {
    /// How much slower the one is.
    #[must_use]
    pub fn slowdown(&self) -> Slowdown {
        self.packet.map_or(Slowdown::REPORTED, |packet| Slowdown::of(packet.reported, packet.median))
    }
}

/// Whether a NameNode tells of slow peers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlowPeersState {
    /// None has answered, or none is asked.
    #[default]
    Unknown,
    /// It keeps no such statistics (`dfs.datanode.peer.stats.enabled`), or is too old to tell.
    Off,
    /// It does.
    On,
}

impl SlowPeersState {
    /// Its word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// What a NameNode said last, by the slow host and then the reporter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlowPeers {
    /// Whether it tells of any.
    pub state: SlowPeersState,
    /// When it said so.
    pub told_at: Timestamp,
    /// Beyond it that counts no more.
    pub max_age: Micros,
    rows: Vec<SlowPeer>,
    /// Hosts that are slow for all others, ascending.
    hosts: Vec<(NodeIdx, Slowdown)>,
}

impl SlowPeers {
    /// In any order; of one host and reporter the first counts. At most [`MOST_REPORTS`].
    #[must_use]
    pub fn new(state: SlowPeersState, (told_at, max_age): (Timestamp, Micros), mut rows: Vec<SlowPeer>) -> Self {
        rows.sort_by_key(|row| (row.slow, row.reporter));
        rows.dedup_by_key(|row| (row.slow, row.reporter));
        rows.truncate(MOST_REPORTS);
        let of_host = |rows: &[SlowPeer]| {
            let mut all: Vec<Slowdown> = rows.iter().map(SlowPeer::slowdown).collect();
            all.sort_unstable();
            // Of an even number the lower one in the middle.
            (all.len() >= REPORTERS_OF_HOST).then(|| (rows[0].slow, all[(all.len() - 1) / 2]))
        };
        let hosts = rows.chunk_by(|a, b| a.slow == b.slow).filter_map(of_host).collect();
        Self { state, told_at, max_age, rows, hosts }
    }

    /// Whether what was said counts at `now`.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        now.since(self.told_at) <= self.max_age
    }

    /// Reports that count, by the slow host.
    #[must_use]
    pub fn rows(&self, now: Timestamp) -> &[SlowPeer] {
        if self.counts(now) { &self.rows } else { &[] }
    }

    /// Whether there is no report, be it old or new.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What it takes in memory.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<SlowPeer>()
            + self.hosts.capacity() * size_of::<(NodeIdx, Slowdown)>()
    }

    /// Of a host that is slow for all others, how much.
    #[must_use]
    pub fn of_host(&self, host: NodeIdx, now: Timestamp) -> Option<Slowdown> {
        if !self.counts(now) {
            return None;
        }
        self.hosts.binary_search_by_key(&host, |(host, _)| *host).ok().map(|at| self.hosts[at].1)
    }

    /// By how much the latency between two hosts is raised that agents have not measured: the most of what one reports of the
    /// other, and of what each is for all.
    #[must_use]
    pub fn slowdown(&self, a: NodeIdx, b: NodeIdx, now: Timestamp) -> Slowdown {
        if self.rows.is_empty() || a == b || !self.counts(now) {
            return Slowdown::NONE;
        }
        let said = |slow: NodeIdx, reporter: NodeIdx| {
            let found = self.rows.binary_search_by_key(&(slow, reporter), |row| (row.slow, row.reporter));
            found.ok().map(|at| self.rows[at].slowdown())
        };
        let all = [said(a, b), said(b, a), self.of_host(a, now), self.of_host(b, now)];
        all.into_iter().flatten().max().unwrap_or(Slowdown::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Timestamp = Timestamp(1_000_000_000);
    const KEPT: Micros = Micros::from_secs(600);

    fn row(slow: u32, reporter: u32, packet_ms: Option<(u64, u64)>) -> SlowPeer {
        let ms = |ms: u64| Micros(ms * 1_000);
        let packet = packet_ms.map(|(reported, median)| PacketTimes { reported: ms(reported), median: ms(median) });
        SlowPeer { slow: NodeIdx(slow), reporter: NodeIdx(reporter), packet, since: T }
    }

    fn factor(peers: &SlowPeers, a: u32, b: u32) -> f64 {
        let [one, other] = [(a, b), (b, a)].map(|(a, b)| peers.slowdown(NodeIdx(a), NodeIdx(b), T).factor());
        assert!((one - other).abs() < 1e-9, "it is of the pair, whichever end is named first");
        one
    }

    #[test]
    fn what_one_reports_is_of_the_pair_and_what_two_report_of_the_host() {
        let rows = vec![row(3, 1, Some((50, 10))), row(2, 1, Some((60, 10))), row(2, 4, Some((40, 10)))];
        let peers = SlowPeers::new(SlowPeersState::On, (T, KEPT), rows);
        assert_eq!([factor(&peers, 1, 3), factor(&peers, 3, 4), factor(&peers, 3, 3)], [5.0, 1.0, 1.0]);
        assert_eq!([factor(&peers, 2, 9), factor(&peers, 4, 2), factor(&peers, 1, 2)], [4.0, 4.0, 6.0]);
        assert_eq!((peers.of_host(NodeIdx(3), T), peers.of_host(NodeIdx(2), T)), (None, Some(Slowdown(400))));
    }

    #[test]
    fn a_report_without_numbers_counts_three_times_and_none_more_than_ten() {
        let rows = vec![row(1, 0, None), row(2, 0, Some((5_000, 1))), row(4, 0, Some((1, 2))), row(5, 0, Some((7, 0)))];
        let peers = SlowPeers::new(SlowPeersState::On, (T, KEPT), rows);
        assert_eq!([1, 2, 4, 5].map(|slow| factor(&peers, 0, slow)), [3.0, 10.0, 1.0, 3.0]);
        assert_eq!(Slowdown::MOST.of_latency(Micros(u64::MAX)), Micros(u64::MAX / 100), "it saturates");
        assert_eq!(Slowdown::of(Micros(u64::MAX), Micros(1)), Slowdown::MOST);
    }

    #[test]
    fn what_a_name_node_has_not_said_again_for_too_long_counts_no_more() {
        let peers = SlowPeers::new(SlowPeersState::On, (T, KEPT), vec![row(2, 1, None), row(2, 3, None)]);
        for (now, counts) in [(T, true), (T.plus(KEPT), true), (T.plus(KEPT).plus(Micros(1)), false)] {
            let found = (peers.rows(now).len(), peers.of_host(NodeIdx(2), now).is_some());
            assert_eq!(found, if counts { (2, true) } else { (0, false) });
            let slowdown = peers.slowdown(NodeIdx(1), NodeIdx(2), now);
            assert_eq!(slowdown, if counts { Slowdown::REPORTED } else { Slowdown::NONE });
        }
        assert!(!peers.is_empty(), "it is there still, for whoever looks at when it was said");
    }

    #[test]
    fn of_one_host_and_reporter_the_first_counts_and_more_than_fit_are_left_out() {
        let twice = SlowPeers::new(SlowPeersState::On, (T, KEPT), vec![row(2, 1, Some((60, 10))), row(2, 1, None)]);
        assert_eq!((twice.rows(T).len(), factor(&twice, 1, 2)), (1, 6.0));
        assert_eq!(twice.of_host(NodeIdx(2), T), None, "one reporter is one, however often");
        let many = (0..20_000).map(|at| row(at, at + 1, None)).collect();
        assert_eq!(SlowPeers::new(SlowPeersState::On, (T, KEPT), many).rows(T).len(), MOST_REPORTS);
    }
}
