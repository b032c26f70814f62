//! Two-way latency between hosts as it was measured, and what stands in where nobody measured.
//!
//! Measured pairs are of two hosts: what probes cover, never all hosts with all. Of each path of a pair a few round trips are kept, and
//! it counts with a quantile of them; the pair counts with the highest of its paths, each way: nobody knows which of them equal-cost
//! multipath will choose (Popescu and Moore, *No Delay*, §5.2). Two racks, and a rack with itself, count with the same quantile of one
//! value a host that measured between them, the median of its pairs: of ten hosts that measure one slow one does not make its rack slow
//! where nine tenths count. A pair of hosts that nobody measured of late has the latency of their
//! racks, and else that of its distance: same host, same rack, beyond.
//!
//! # Code map
//! - `samples`: [`LatencyModel`], the round trips kept, for the one who takes measurements in.
//! - `table`: [`LatencyTable`], one row a path, shared between snapshots column by column.
//! - `probes`: [`probes::ProbePlan`], whom a host should measure.
//! - `slow_peers`: [`slow_peers::SlowPeers`], DataNodes that others report as slow, which is beside all that is measured.
//!
//! # Invariants
//! - No clock: `now` is an argument.
//! - What can't be a round trip is refused with its value and changes nothing.
//! - Memory is bounded by [`LatencySettings::pairs`], [`PATHS`] and [`KEPT`].
//! - A table never changes after it was cloned: a column is copied before it is written.

pub mod probes;
mod samples;
pub mod slow_peers;
mod table;
#[cfg(test)]
mod tests;

pub use samples::{LatencyModel, RoundTrips};
pub use table::{HostRow, LatencyTable, Part, RackRow};

use crate::units::{Micros, NodeIdx, Timestamp};
use slow_peers::Slowdown;

/// Paths of one pair that are told apart, each way.
pub const PATHS: usize = 4;

/// Round trips kept of one path: the newest.
pub const KEPT: usize = 16;

/// Hosts that two racks are judged by: those that measured last, each with one value.
pub const HOSTS_OF_RACKS: usize = 32;

/// Pairs of one host that its value for two racks is the median of: those that it measured last.
pub const PAIRS_OF_HOST: usize = 16;

/// The longest round trip that is believed.
pub const MOST_RTT: Micros = Micros::from_secs(60);

/// Measurements may be ahead of `now` by so much: clocks differ.
pub const MOST_AHEAD: Micros = Micros::from_secs(5);

/// Round trips by pair of hosts, for whoever compares places.
pub trait Latencies {
    /// The two-way latency to reckon with between two hosts.
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros;
}

/// What is taken where nobody measured, by distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistanceClasses {
    /// Between containers of one host.
    pub same_host: Micros,
    /// Between hosts of one rack.
    pub same_rack: Micros,
    /// Between racks.
    pub beyond: Micros,
}

impl Default for DistanceClasses {
    /// Between published figures of virtual machines (same host 7 to 75 µs, same zone 37 to 600 µs) and a cluster of one's own.
    fn default() -> Self {
        Self { same_host: Micros(10), same_rack: Micros(50), beyond: Micros(200) }
    }
}

impl DistanceClasses {
    /// By where the two are.
    #[must_use]
    pub fn of(&self, a: NodeIdx, b: NodeIdx, same_rack: bool) -> Micros {
        match (a == b, same_rack) {
            (true, _) => self.same_host,
            (_, true) => self.same_rack,
            _ => self.beyond,
        }
    }
}

/// How measurements are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencySettings {
    /// Which of a path's kept round trips counts, 0 to 1; 1: the longest.
    pub quantile: f64,
    /// A path that was not measured for longer counts no more.
    pub max_age: Micros,
    /// Pairs kept at most; a pair measured from both ends is two.
    pub pairs: usize,
    /// Pairs that one host measures at most.
    pub pairs_per_host: usize,
}

impl Default for LatencySettings {
    /// A cluster of 12,500 hosts that measure 20 others each has 250,000 pairs.
    fn default() -> Self {
        Self { quantile: 0.9, max_age: Micros::from_secs(60), pairs: 1 << 19, pairs_per_host: 256 }
    }
}

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// Measured between the two hosts.
    Hosts,
    /// Measured between other hosts of their racks.
    Racks,
    /// Not measured: by distance.
    Distance,
}

impl Basis {
    /// Its word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Racks => "racks",
            Self::Distance => "distance",
        }
    }
}

/// What to reckon with between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Two-way latency.
    pub rtt: Micros,
    /// Where it comes from.
    pub basis: Basis,
    /// How old the oldest of the paths is that count; `None`: nothing was measured.
    pub age: Option<Micros>,
    /// How many times what was measured `rtt` is, for DataNodes report one of the two as slow.
    pub slowdown: Slowdown,
}

impl Estimate {
    /// Raised where the two were not measured themselves: what agents measured between them is nearer the truth than packets.
    #[must_use]
    pub fn slowed(self, slowdown: Slowdown) -> Self {
        match self.basis {
            Basis::Hosts => self,
            Basis::Racks | Basis::Distance => Self { rtt: slowdown.of_latency(self.rtt), slowdown, ..self },
        }
    }
}

/// What is no measurement.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LatencyError {
    /// Not a number, or infinite.
    #[error("a round trip of {0} µs is no number")]
    NotANumber(f64),
    /// Below or at 0.
    #[error("a round trip of {0} µs is not above 0")]
    NotPositive(f64),
    /// Longer than any.
    #[error("a round trip of {rtt_us} µs is not believed: at most {} µs", MOST_RTT.0)]
    TooLong {
        /// What was told, µs.
        rtt_us: f64,
    },
    /// Of the future.
    #[error("measured {} s ahead of now: at most {} s", .0.as_secs_f64(), MOST_AHEAD.as_secs_f64())]
    Future(Micros),
    /// Older than what counts.
    #[error("measured {} s ago: at most {} s", age.as_secs_f64(), most.as_secs_f64())]
    Old {
        /// How long ago.
        age: Micros,
        /// The oldest that counts.
        most: Micros,
    },
    /// A path beyond those told apart.
    #[error("path {0}: there are at most {PATHS} of a pair, from 0")]
    NoSuchPath(u32),
    /// A host with itself.
    #[error("node {} is measured to itself", .0.0)]
    Itself(NodeIdx),
    /// One pair too many.
    #[error("{0} pairs are measured already (latency.pairs)")]
    TooManyPairs(usize),
    /// One pair too many of one host.
    #[error("its host measures {0} others already (latency.pairs_per_host)")]
    TooManyOfHost(usize),
}

/// A round trip in whole microseconds, at least one.
///
/// # Errors
/// [`LatencyError::NotANumber`], [`LatencyError::NotPositive`], [`LatencyError::TooLong`].
pub fn believed(rtt_us: f64) -> Result<u32, LatencyError> {
    match rtt_us {
        _ if !rtt_us.is_finite() => Err(LatencyError::NotANumber(rtt_us)),
        _ if rtt_us <= 0.0 => Err(LatencyError::NotPositive(rtt_us)),
        _ if rtt_us > MOST_RTT.0 as f64 => Err(LatencyError::TooLong { rtt_us }),
        _ => Ok(rtt_us.round().max(1.0) as u32),
    }
}

/// Whether a measurement of then still counts, and is not of the future.
///
/// # Errors
/// [`LatencyError::Future`], [`LatencyError::Old`].
pub fn in_time(at: Timestamp, now: Timestamp, max_age: Micros) -> Result<(), LatencyError> {
    if at.since(now) > MOST_AHEAD {
        return Err(LatencyError::Future(at.since(now)));
    }
    if now.since(at) > max_age {
        return Err(LatencyError::Old { age: now.since(at), most: max_age });
    }
    Ok(())
}

/// A path of a pair as whoever measures numbers it.
///
/// # Errors
/// [`LatencyError::NoSuchPath`].
pub fn path(number: u32) -> Result<u8, LatencyError> {
    if number < PATHS as u32 { Ok(number as u8) } else { Err(LatencyError::NoSuchPath(number)) }
}

/// The least of `sorted` that the share `quantile` of them is not above; 0 where there are none.
fn quantile(sorted: &[u32], quantile: f64) -> u32 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// At most [`KEPT`] round trips that stand for so many of each length: evenly spaced in their order.
#[must_use]
pub fn thinned(counts: &[(u32, u64)]) -> Vec<u32> {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let total: u64 = sorted.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count));
    let kept = total.min(KEPT as u64);
    let mut found = Vec::with_capacity(kept as usize);
    let (mut rows, mut through) = (sorted.iter(), 0_u64);
    let mut rtt = 0;
    for at in 0..kept {
        // The middle of its share; counted in u128, for totals come off the wire.
        let rank = ((2 * u128::from(at) + 1) * u128::from(total) / (2 * u128::from(kept))) as u64;
        while through <= rank {
            let Some(&(next, count)) = rows.next() else { break };
            rtt = next;
            through = through.saturating_add(count);
        }
        found.push(rtt);
    }
    found
}
