//! Two-way latency between hosts as it was measured, and what stands in where nobody measured.
//!
//! Measured pairs are of two hosts, or of two racks (a rack with itself, too): what probes cover, never all hosts with all.
//! Of each path between the two a few round trips are kept. A path counts with a quantile of them, the pair with the highest
//! of its paths: nobody knows which of them equal-cost multipath will choose (Popescu and Moore, *No Delay*, §5.2). A pair of hosts
//! that nobody measured of late has the latency of their racks, and else that of its distance: same host, same rack, beyond.
//!
//! # Invariants
//! - No clock: `now` is an argument.
//! - What can't be a round trip is refused with its value and changes nothing.
//! - Memory is bounded by [`LatencySettings::pairs`], [`PATHS`] and [`KEPT`].

use crate::units::{Micros, NodeIdx, RackIdx, Timestamp};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Paths of one pair that are told apart.
pub const PATHS: usize = 8;

/// Round trips kept of one path: the newest.
pub const KEPT: usize = 16;

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
    /// The longest round trip that is believed.
    pub max_rtt: Micros,
    /// Measurements may be ahead of `now` by so much: clocks differ.
    pub max_ahead: Micros,
    /// Pairs kept at most.
    pub pairs: usize,
    /// What stands in.
    pub classes: DistanceClasses,
}

impl Default for LatencySettings {
    fn default() -> Self {
        Self {
            quantile: 0.9,
            max_age: Micros::from_secs(60),
            max_rtt: Micros::from_secs(60),
            max_ahead: Micros::from_secs(5),
            pairs: 1 << 18,
            classes: DistanceClasses::default(),
        }
    }
}

/// One end of a measured pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// A host.
    Host(NodeIdx),
    /// Any host of a rack.
    Rack(RackIdx),
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTrip {
    /// Between whom, in either order.
    pub ends: (End, End),
    /// Which of the paths between them, as whoever probes numbers them; below [`PATHS`].
    pub path: u8,
    /// How long it took, µs.
    pub rtt_us: f64,
    /// When.
    pub at: Timestamp,
}

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Measured between the two hosts.
    Hosts,
    /// Measured between their racks.
    Racks,
    /// Not measured: by distance.
    Distance,
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
    #[error("a round trip of {rtt_us} µs is not believed: at most {} µs", most.0)]
    TooLong {
        /// What was told, µs.
        rtt_us: f64,
        /// The longest that is believed.
        most: Micros,
    },
    /// Of the future.
    #[error("a round trip measured {} µs ahead of now: at most {} µs", ahead.0, most.0)]
    Future {
        /// How far ahead.
        ahead: Micros,
        /// How far clocks may differ.
        most: Micros,
    },
    /// Older than what counts.
    #[error("a round trip measured {} µs ago: at most {} µs", age.0, most.0)]
    Old {
        /// How long ago.
        age: Micros,
        /// The oldest that counts.
        most: Micros,
    },
    /// A path beyond those told apart.
    #[error("path {0}: there are at most {PATHS} of a pair, from 0")]
    NoSuchPath(u8),
    /// A host with itself.
    #[error("node {} is measured to itself", .0.0)]
    Itself(NodeIdx),
    /// A host with a rack.
    #[error("a host is measured to a rack: pairs are of two hosts or of two racks")]
    Mixed,
    /// One pair too many.
    #[error("{0} pairs are measured already")]
    TooManyPairs(usize),
}

/// A path's newest round trips.
#[derive(Debug, Clone, Default)]
struct PathSamples {
    /// In any order once it is full.
    rtts: SmallVec<[u32; KEPT]>,
    /// What the next one replaces.
    next: u8,
    /// When the newest was measured.
    newest: Timestamp,
}

impl PathSamples {
    /// After a gap of more than `max_age` what was kept is too old to count with the new one.
    fn keep(&mut self, rtt: u32, at: Timestamp, max_age: Micros) {
        if at.since(self.newest) > max_age {
            self.rtts.clear();
            self.next = 0;
        }
        if self.rtts.len() < KEPT {
            self.rtts.push(rtt);
        } else {
            self.rtts[usize::from(self.next)] = rtt;
            self.next = (self.next + 1) % KEPT as u8;
        }
        self.newest = self.newest.max(at);
    }

    /// The least round trip that the share `quantile` of those kept is not above.
    fn quantile(&self, quantile: f64) -> u32 {
        let mut sorted = self.rtts.clone();
        sorted.sort_unstable();
        let rank = (quantile * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// All measurements.
#[derive(Debug, Clone, Default)]
pub struct LatencyModel {
    settings: LatencySettings,
    /// The lesser end first; paths by number.
    pairs: HashMap<(End, End), Vec<PathSamples>>,
}

impl LatencyModel {
    /// Without measurements.
    #[must_use]
    pub fn new(settings: LatencySettings) -> Self {
        Self { settings, pairs: HashMap::new() }
    }

    /// Takes a measurement in.
    ///
    /// # Errors
    /// [`LatencyError`]; nothing has changed then.
    pub fn observe(&mut self, trip: &RoundTrip, now: Timestamp) -> Result<(), LatencyError> {
        let rtt = self.believed(trip, now)?;
        let (a, b) = trip.ends;
        match (a, b) {
            (End::Host(a), End::Host(b)) if a == b => return Err(LatencyError::Itself(a)),
            (End::Host(_), End::Rack(_)) | (End::Rack(_), End::Host(_)) => return Err(LatencyError::Mixed),
            _ => {}
        }
        let path = usize::from(trip.path);
        if path >= PATHS {
            return Err(LatencyError::NoSuchPath(trip.path));
        }
        let full = self.pairs.len() >= self.settings.pairs;
        let paths = match self.pairs.entry((a.min(b), a.max(b))) {
            Entry::Vacant(_) if full => return Err(LatencyError::TooManyPairs(self.settings.pairs)),
            entry => entry.or_default(),
        };
        if paths.len() <= path {
            paths.resize_with(path + 1, PathSamples::default);
        }
        paths[path].keep(rtt, trip.at.min(now), self.settings.max_age);
        Ok(())
    }

    fn believed(&self, trip: &RoundTrip, now: Timestamp) -> Result<u32, LatencyError> {
        let (rtt_us, LatencySettings { max_rtt, max_age, max_ahead, .. }) = (trip.rtt_us, self.settings);
        if !rtt_us.is_finite() {
            return Err(LatencyError::NotANumber(rtt_us));
        }
        if rtt_us <= 0.0 {
            return Err(LatencyError::NotPositive(rtt_us));
        }
        if rtt_us > max_rtt.0 as f64 || rtt_us > f64::from(u32::MAX) {
            return Err(LatencyError::TooLong { rtt_us, most: max_rtt });
        }
        if trip.at.since(now) > max_ahead {
            return Err(LatencyError::Future { ahead: trip.at.since(now), most: max_ahead });
        }
        if now.since(trip.at) > max_age {
            return Err(LatencyError::Old { age: now.since(trip.at), most: max_age });
        }
        Ok(rtt_us.round().max(1.0) as u32)
    }

    /// Forgets pairs of which no path counts any more.
    pub fn forget_old(&mut self, now: Timestamp) {
        let max_age = self.settings.max_age;
        self.pairs.retain(|_, paths| paths.iter().any(|path| now.since(path.newest) <= max_age));
    }

    /// Pairs with measurements.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// What to reckon with between two hosts in their racks.
    #[must_use]
    pub fn estimate(&self, a: (NodeIdx, RackIdx), b: (NodeIdx, RackIdx), now: Timestamp) -> Estimate {
        let distance = self.settings.classes.of(a.0, b.0, a.1 == b.1);
        let by_distance = Estimate { rtt: distance, basis: Basis::Distance, age: None };
        if a.0 == b.0 {
            return by_distance;
        }
        let hosts = self.measured(End::Host(a.0), End::Host(b.0), now).map(|found| (found, Basis::Hosts));
        let racks = || self.measured(End::Rack(a.1), End::Rack(b.1), now).map(|found| (found, Basis::Racks));
        let found = hosts.or_else(racks);
        found.map_or(by_distance, |((rtt, age), basis)| Estimate { rtt, basis, age: Some(age) })
    }

    /// The highest of the paths that count, and the age of the oldest of them.
    fn measured(&self, a: End, b: End, now: Timestamp) -> Option<(Micros, Micros)> {
        let paths = self.pairs.get(&(a.min(b), a.max(b)))?.iter();
        let counts = |path: &&PathSamples| !path.rtts.is_empty() && now.since(path.newest) <= self.settings.max_age;
        let each = paths.filter(counts).map(|path| (path.quantile(self.settings.quantile), now.since(path.newest)));
        let (rtt, age) = each.reduce(|so_far, path| (so_far.0.max(path.0), so_far.1.max(path.1)))?;
        Some((Micros(u64::from(rtt)), age))
    }

    /// The model at one moment, for nodes in these racks, by node.
    #[must_use]
    pub const fn at<'a>(&'a self, now: Timestamp, racks: &'a [RackIdx]) -> LatencyView<'a> {
        LatencyView { model: self, racks, now }
    }
}

/// A [`LatencyModel`] at one moment.
#[derive(Debug, Clone, Copy)]
pub struct LatencyView<'a> {
    model: &'a LatencyModel,
    racks: &'a [RackIdx],
    now: Timestamp,
}

impl Latencies for LatencyView<'_> {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        let with_rack = |node: NodeIdx| (node, self.racks[node.at()]);
        self.model.estimate(with_rack(a), with_rack(b), self.now).rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);

    fn host(at: u32) -> End {
        End::Host(NodeIdx(at))
    }

    fn rack(at: u32) -> End {
        End::Rack(RackIdx(at))
    }

    fn trip(a: End, b: End, path: u8, rtt_us: f64) -> RoundTrip {
        RoundTrip { ends: (a, b), path, rtt_us, at: NOW }
    }

    fn estimate(model: &LatencyModel, a: (u32, u32), b: (u32, u32), now: Timestamp) -> (u64, Basis) {
        let end = |(node, rack)| (NodeIdx(node), RackIdx(rack));
        let found = model.estimate(end(a), end(b), now);
        (found.rtt.0, found.basis)
    }

    #[test]
    fn a_path_counts_with_its_quantile_and_a_pair_with_its_highest_path() {
        let mut model = LatencyModel::default();
        for rtt in 1..=10 {
            model.observe(&trip(host(1), host(0), 0, f64::from(rtt) * 10.0), NOW).unwrap();
            model.observe(&trip(host(0), host(1), 3, 42.4), NOW).unwrap();
        }
        assert_eq!(estimate(&model, (0, 0), (1, 0), NOW), (90, Basis::Hosts), "nine of ten are not above 90");
        for _ in 0..KEPT {
            model.observe(&trip(host(0), host(1), 0, 20.0), NOW).unwrap();
        }
        assert_eq!(estimate(&model, (1, 0), (0, 0), NOW), (42, Basis::Hosts), "the slow ones are forgotten");
        let longest = LatencySettings { quantile: 1.0, ..LatencySettings::default() };
        let mut model = LatencyModel::new(longest);
        for rtt in [5.0, 700.0, 6.0] {
            model.observe(&trip(host(0), host(1), 0, rtt), NOW).unwrap();
        }
        assert_eq!(estimate(&model, (0, 0), (1, 0), NOW).0, 700);
    }

    #[test]
    fn what_nobody_measured_of_late_has_its_racks_latency_and_then_that_of_its_distance() {
        let mut model = LatencyModel::default();
        model.observe(&trip(host(0), host(2), 0, 300.0), NOW).unwrap();
        let later = NOW.plus(Micros::from_secs(50));
        model.observe(&RoundTrip { at: later, ..trip(rack(1), rack(0), 0, 120.0) }, later).unwrap();
        model.observe(&RoundTrip { at: later, ..trip(rack(0), rack(0), 0, 30.0) }, later).unwrap();
        assert_eq!(estimate(&model, (0, 0), (2, 1), later), (300, Basis::Hosts));
        assert_eq!(estimate(&model, (1, 0), (2, 1), later), (120, Basis::Racks));
        assert_eq!(estimate(&model, (1, 0), (0, 0), later), (30, Basis::Racks));
        assert_eq!(estimate(&model, (1, 0), (1, 0), later), (10, Basis::Distance));
        let old = NOW.plus(Micros::from_secs(61));
        assert_eq!(estimate(&model, (0, 0), (2, 1), old), (120, Basis::Racks), "the hosts' is too old");
        let ends = ((NodeIdx(1), RackIdx(0)), (NodeIdx(2), RackIdx(1)));
        assert_eq!(model.estimate(ends.0, ends.1, old).age, Some(Micros::from_secs(11)));
        assert_eq!(model.pairs(), 3);
        model.forget_old(old);
        assert_eq!(model.pairs(), 2);
        let gone = later.plus(Micros::from_secs(61));
        assert_eq!(estimate(&model, (0, 0), (1, 0), gone), (50, Basis::Distance));
        assert_eq!(estimate(&model, (0, 0), (2, 1), gone), (200, Basis::Distance));
        assert_eq!(model.estimate(ends.0, ends.1, gone).age, None);
    }

    #[test]
    fn a_path_that_fell_silent_counts_no_more_while_others_do() {
        let mut model = LatencyModel::default();
        model.observe(&trip(host(0), host(1), 0, 900.0), NOW).unwrap();
        let later = NOW.plus(Micros::from_secs(61));
        model.observe(&RoundTrip { at: later, ..trip(host(0), host(1), 1, 80.0) }, later).unwrap();
        assert_eq!(estimate(&model, (0, 0), (1, 0), later), (80, Basis::Hosts));
    }

    #[test]
    fn after_a_gap_the_round_trips_before_it_count_no_more() {
        let mut model = LatencyModel::default();
        for _ in 0..KEPT + 3 {
            model.observe(&trip(host(0), host(1), 0, 900.0), NOW).unwrap();
        }
        let soon = NOW.plus(Micros::from_secs(60));
        model.observe(&RoundTrip { at: soon, ..trip(host(0), host(1), 0, 80.0) }, soon).unwrap();
        assert_eq!(estimate(&model, (0, 0), (1, 0), soon), (900, Basis::Hosts), "60 s are no gap");
        let later = soon.plus(Micros::from_secs(61));
        for at in 1_u32..=3 {
            model.observe(&RoundTrip { at: later, ..trip(host(0), host(1), 0, 80.0 + f64::from(at)) }, later).unwrap();
            assert_eq!(estimate(&model, (0, 0), (1, 0), later), (u64::from(80 + at), Basis::Hosts));
        }
    }

    #[test]
    fn what_is_no_round_trip_is_refused_with_its_value_and_changes_nothing() {
        let mut model = LatencyModel::new(LatencySettings { pairs: 1, ..LatencySettings::default() });
        let good = trip(host(0), host(1), 0, 50.0);
        let with = |rtt_us| RoundTrip { rtt_us, ..good };
        let at = |at| RoundTrip { at, ..good };
        let ends = |a, b| RoundTrip { ends: (a, b), ..good };
        for (trip, says) in [
            (with(f64::NAN), "a round trip of NaN µs is no number"),
            (with(f64::INFINITY), "a round trip of inf µs is no number"),
            (with(-3.5), "a round trip of -3.5 µs is not above 0"),
            (with(0.0), "a round trip of 0 µs is not above 0"),
            (with(6.1e7), "a round trip of 61000000 µs is not believed: at most 60000000 µs"),
            (at(NOW.plus(Micros(5_000_001))), "a round trip measured 5000001 µs ahead of now: at most 5000000 µs"),
            (at(Timestamp(NOW.0 - 60_000_001)), "a round trip measured 60000001 µs ago: at most 60000000 µs"),
            (RoundTrip { path: 8, ..good }, "path 8: there are at most 8 of a pair, from 0"),
            (ends(host(4), host(4)), "node 4 is measured to itself"),
            (ends(host(4), rack(4)), "a host is measured to a rack: pairs are of two hosts or of two racks"),
        ] {
            let error = model.observe(&trip, NOW).unwrap_err();
            assert_eq!((error.to_string().as_str(), model.pairs()), (says, 0));
        }
        model.observe(&at(NOW.plus(Micros(5_000_000))), NOW).unwrap();
        assert_eq!(model.observe(&ends(host(0), host(2)), NOW), Err(LatencyError::TooManyPairs(1)));
        model.observe(&good, NOW).unwrap();
    }

    #[test]
    fn racks_of_12_500_machines_are_measured_without_a_pair_for_each_two_hosts() {
        let racks: Vec<RackIdx> = (0..12_500).map(|node| RackIdx(node / 48)).collect();
        let mut model = LatencyModel::default();
        for a in 0..=260 {
            for b in 0..=a {
                model.observe(&trip(rack(a), rack(b), 0, f64::from(40 + a - b)), NOW).unwrap();
            }
        }
        assert_eq!(model.pairs(), 261 * 262 / 2);
        let view = model.at(NOW, &racks);
        assert_eq!(view.rtt(NodeIdx(0), NodeIdx(12_499)), Micros(300));
        assert_eq!(view.rtt(NodeIdx(7), NodeIdx(7)), Micros(10));
    }

    proptest! {
        #[test]
        fn an_estimate_is_one_of_the_kept_round_trips_and_grows_with_the_quantile(
            trips in prop::collection::vec((0_u8..3, 1_u32..2_000), 1..60), quantile in 0.0_f64..=1.0, more in 0.0_f64..=1.0,
        ) {
            let of = |quantile| {
                let mut model = LatencyModel::new(LatencySettings { quantile, ..LatencySettings::default() });
                for (path, rtt) in &trips {
                    model.observe(&trip(host(0), host(1), *path, f64::from(*rtt)), NOW).unwrap();
                }
                estimate(&model, (0, 0), (1, 0), NOW).0
            };
            prop_assert!(trips.iter().any(|(_, rtt)| u64::from(*rtt) == of(quantile)));
            prop_assert!(of(quantile) <= of(quantile.max(more)));
        }
    }
}
