//! What measurements come to, in columns that versions share.

use super::slow_peers::{SlowPeers, Slowdown};
use super::{Basis, DistanceClasses, Estimate};
use crate::units::{Micros, NodeIdx, RackIdx, Timestamp};
use std::sync::Arc;

/// Columns that are copied together when one of them changes.
const CHUNK: usize = 64;

/// One path as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Index of the host or rack at the other end.
    pub(super) peer: u32,
    pub(super) path: u8,
    pub(super) rtt: u32,
    pub(super) median: u32,
    pub(super) at: Timestamp,
}

/// Rows of one host or rack, by peer and path.
type Column = Vec<Row>;

/// Columns that are copied together.
pub type Part = Arc<Vec<Arc<Column>>>;

/// Columns by index. A change copies the column, and the [`CHUNK`] pointers beside it, if another version shares them.
#[derive(Debug, Clone, Default)]
struct Columns {
    chunks: Vec<Part>,
    rows: usize,
}

impl Columns {
    fn of(&self, at: u32) -> &[Row] {
        let at = at as usize;
        self.chunks.get(at / CHUNK).and_then(|chunk| chunk.get(at % CHUNK)).map_or(&[], |column| column)
    }

    fn set(&mut self, at: u32, row: Row) {
        let at = at as usize;
        if self.chunks.len() <= at / CHUNK {
            self.chunks.resize_with(at / CHUNK + 1, Arc::default);
        }
        let chunk = Arc::make_mut(&mut self.chunks[at / CHUNK]);
        if chunk.len() <= at % CHUNK {
            chunk.resize_with(at % CHUNK + 1, Arc::default);
        }
        let column = Arc::make_mut(&mut chunk[at % CHUNK]);
        match column.binary_search_by_key(&(row.peer, row.path), |known| (known.peer, known.path)) {
            Ok(known) => column[known] = row,
            Err(place) => {
                column.insert(place, row);
                self.rows += 1;
            }
        }
    }

    /// Rows to a peer.
    fn to(&self, at: u32, peer: u32) -> impl Iterator<Item = &Row> {
        let column = self.of(at);
        let first = column.partition_point(|row| row.peer < peer);
        column[first..].iter().take_while(move |row| row.peer == peer)
    }

    fn forget(&mut self, old: impl Fn(&Row) -> bool) {
        for chunk in &mut self.chunks {
            if !chunk.iter().any(|column| column.iter().any(&old)) {
                continue;
            }
            for column in Arc::make_mut(chunk).iter_mut().filter(|column| column.iter().any(&old)) {
                let before = column.len();
                let column = Arc::make_mut(column);
                column.retain(|row| !old(row));
                self.rows -= before - column.len();
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (u32, &Row)> {
        let chunks = self.chunks.iter().enumerate();
        let columns =
            chunks.flat_map(|(c, chunk)| chunk.iter().enumerate().map(move |(at, column)| (c * CHUNK + at, column)));
        columns.flat_map(|(at, column)| column.iter().map(move |row| (at as u32, row)))
    }
}

/// A path between two hosts as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRow {
    /// Who measured.
    pub from: NodeIdx,
    /// Whom.
    pub to: NodeIdx,
    /// Over which of the paths.
    pub path: u8,
    /// The quantile that counts.
    pub rtt: Micros,
    /// The median.
    pub median: Micros,
    /// When it was measured last.
    pub at: Timestamp,
}

/// Two racks, or a rack with itself, as they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RackRow {
    /// One, the lesser.
    pub a: RackIdx,
    /// The other.
    pub b: RackIdx,
    /// The quantile that counts, of one value a host that measured.
    pub rtt: Micros,
    /// The median of the hosts' medians.
    pub median: Micros,
    /// When one of them was measured last.
    pub at: Timestamp,
}

/// Latency as it was measured, by pair. A clone costs a pointer for 64 hosts.
#[derive(Debug, Clone, Default)]
pub struct LatencyTable {
    /// By who measured.
    hosts: Columns,
    /// By the lesser rack.
    racks: Columns,
    /// The newest of all.
    newest: Option<Timestamp>,
    pub(super) max_age: Micros,
    /// What DataNodes say of each other, which is no measurement of these.
    slow_peers: Arc<SlowPeers>,
}

impl LatencyTable {
    pub(super) fn set_host(&mut self, from: NodeIdx, row: Row) {
        self.newest = self.newest.max(Some(row.at));
        self.hosts.set(from.0, row);
    }

    pub(super) fn set_rack(&mut self, a: RackIdx, row: Row) {
        self.newest = self.newest.max(Some(row.at));
        self.racks.set(a.0, row);
    }

    pub(super) fn forget_old(&mut self, now: Timestamp) {
        let max_age = self.max_age;
        self.hosts.forget(|row| now.since(row.at) > max_age);
        self.racks.forget(|row| now.since(row.at) > max_age);
    }

    /// DataNodes that others report as slow.
    #[must_use]
    pub const fn slow_peers(&self) -> &Arc<SlowPeers> {
        &self.slow_peers
    }

    pub(super) fn set_slow_peers(&mut self, slow_peers: SlowPeers) {
        self.slow_peers = Arc::new(slow_peers);
    }

    /// Whether nothing was measured.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hosts.rows == 0 && self.racks.rows == 0
    }

    /// Paths of hosts in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.hosts.rows
    }

    /// Whether anything in it counts at `now`.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        !self.is_empty() && self.newest.is_some_and(|newest| now.since(newest) <= self.max_age)
    }

    /// The same without rows, for who asks only whether anything was measured ([`Self::counts`]): it holds next to nothing.
    /// Slow peers stay: they are few, and versions share them.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        let emptied = |columns: &Columns| Columns { chunks: Vec::new(), rows: columns.rows };
        let (newest, max_age) = (self.newest, self.max_age);
        let slow_peers = Arc::clone(&self.slow_peers);
        Self { hosts: emptied(&self.hosts), racks: emptied(&self.racks), newest, max_age, slow_peers }
    }

    /// The age beyond which a path counts no more.
    #[must_use]
    pub const fn max_age(&self) -> Micros {
        self.max_age
    }

    /// What was measured between two hosts, or else between their racks; `None`: nothing that still counts, or one host.
    #[must_use]
    pub fn measured(&self, a: (NodeIdx, RackIdx), b: (NodeIdx, RackIdx), now: Timestamp) -> Option<Estimate> {
        if a.0 == b.0 {
            return None;
        }
        let counting = |rows: &mut dyn Iterator<Item = &Row>, basis| {
            let current = rows.filter(|row| now.since(row.at) <= self.max_age).map(|row| (row.rtt, now.since(row.at)));
            let (rtt, age) = current.reduce(|so_far, path| (so_far.0.max(path.0), so_far.1.max(path.1)))?;
            Some(Estimate { rtt: Micros(rtt.into()), basis, age: Some(age), slowdown: Slowdown::NONE })
        };
        let (less, more) = (a.1.min(b.1), a.1.max(b.1));
        counting(&mut self.hosts.to(a.0.0, b.0.0).chain(self.hosts.to(b.0.0, a.0.0)), Basis::Hosts)
            .or_else(|| counting(&mut self.racks.to(less.0, more.0), Basis::Racks))
    }

    /// The same, and by distance where nobody measured.
    #[must_use]
    pub fn estimate(
        &self,
        a: (NodeIdx, RackIdx),
        b: (NodeIdx, RackIdx),
        classes: &DistanceClasses,
        now: Timestamp,
    ) -> Estimate {
        self.measured(a, b, now).unwrap_or_else(|| Estimate {
            rtt: classes.of(a.0, b.0, a.1 == b.1),
            basis: Basis::Distance,
            age: None,
            slowdown: Slowdown::NONE,
        })
    }

    /// Paths between hosts, whether they still count or not, by who measured.
    pub fn host_rows(&self) -> impl Iterator<Item = HostRow> {
        self.hosts.all().map(|(from, row)| host_row(NodeIdx(from), row))
    }

    /// Those that one host measured.
    pub fn rows_of(&self, from: NodeIdx) -> impl Iterator<Item = HostRow> {
        self.hosts.of(from.0).iter().map(move |row| host_row(from, row))
    }

    /// Pairs of racks, whether they still count or not, by the lesser.
    pub fn rack_rows(&self) -> impl Iterator<Item = RackRow> {
        self.racks.all().map(|(a, row)| RackRow {
            a: RackIdx(a),
            b: RackIdx(row.peer),
            rtt: Micros(row.rtt.into()),
            median: Micros(row.median.into()),
            at: row.at,
        })
    }

    /// Parts that versions share and that are copied when they change, each with its bytes.
    pub fn parts(&self) -> impl Iterator<Item = (&Part, usize)> {
        let bytes = |chunk: &Part| chunk.iter().map(|column| 64 + column.capacity() * size_of::<Row>()).sum();
        self.hosts.chunks.iter().chain(&self.racks.chunks).map(move |chunk| (chunk, bytes(chunk)))
    }
}

fn host_row(from: NodeIdx, row: &Row) -> HostRow {
    let (rtt, median) = (Micros(row.rtt.into()), Micros(row.median.into()));
    HostRow { from, to: NodeIdx(row.peer), path: row.path, rtt, median, at: row.at }
}
