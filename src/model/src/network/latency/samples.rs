//! Round trips as they are kept.

use super::slow_peers::SlowPeers;
use super::table::{LatencyTable, Row};
use super::{HOSTS_OF_RACKS, KEPT, LatencyError, LatencySettings, PAIRS_OF_HOST, PATHS, in_time, quantile};
use crate::units::{Micros, NodeIdx, RackIdx, Timestamp};
use smallvec::{SmallVec, smallvec};
use std::collections::HashMap;

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
    /// After a gap of more than `max_age` what was kept is too old to count with the new ones.
    fn keep(&mut self, rtts: &[u32], at: Timestamp, max_age: Micros) {
        if at.since(self.newest) > max_age {
            self.rtts.clear();
            self.next = 0;
        }
        for &rtt in rtts {
            if self.rtts.len() < KEPT {
                self.rtts.push(rtt);
            } else {
                self.rtts[usize::from(self.next)] = rtt;
                self.next = (self.next + 1) % KEPT as u8;
            }
        }
        self.newest = self.newest.max(at);
    }

    /// What counts, and the median.
    fn read(&self, share: f64) -> (u32, u32) {
        let mut sorted = self.rtts.clone();
        sorted.sort_unstable();
        (quantile(&sorted, share), quantile(&sorted, 0.5))
    }
}

/// What a pair of hosts says of its racks.
#[derive(Debug, Clone, Copy)]
struct PairOfRacks {
    to: NodeIdx,
    rtt: u32,
    median: u32,
    at: Timestamp,
}

/// What one host says of two racks: the pairs that it measured last between them, and one value of them.
#[derive(Debug, Clone)]
struct HostOfRacks {
    from: NodeIdx,
    pairs: SmallVec<[PairOfRacks; 1]>,
    rtt: u32,
    median: u32,
    at: Timestamp,
}

impl HostOfRacks {
    /// Its medians: one slow host that it measures is not what it says of the racks.
    fn judge(&mut self) {
        let middle = |of: fn(&PairOfRacks) -> u32| {
            let mut all: SmallVec<[u32; PAIRS_OF_HOST]> = self.pairs.iter().map(of).collect();
            all.sort_unstable();
            quantile(&all, 0.5)
        };
        (self.rtt, self.median) = (middle(|pair| pair.rtt), middle(|pair| pair.median));
        self.at = self.pairs.iter().map(|pair| pair.at).max().unwrap_or_default();
    }

    fn keep(&mut self, said: PairOfRacks) {
        if let Some(known) = self.pairs.iter_mut().find(|known| known.to == said.to) {
            *known = said;
        } else {
            if self.pairs.len() >= PAIRS_OF_HOST {
                // Of equally old ones the one that is there for longest.
                let oldest = (0..self.pairs.len()).min_by_key(|&at| self.pairs[at].at);
                oldest.map(|at| self.pairs.remove(at));
            }
            self.pairs.push(said);
        }
        self.judge();
    }
}

/// The hosts that measured last between two racks; each counts once, however many others it measures.
#[derive(Debug, Clone, Default)]
struct RackSamples(Vec<HostOfRacks>);

impl RackSamples {
    fn keep(&mut self, from: NodeIdx, said: PairOfRacks) {
        if let Some(known) = self.0.iter_mut().find(|known| known.from == from) {
            known.keep(said);
            return;
        }
        if self.0.len() >= HOSTS_OF_RACKS {
            let oldest = (0..self.0.len()).min_by_key(|&at| self.0[at].at);
            oldest.map(|at| self.0.remove(at));
        }
        let PairOfRacks { rtt, median, at, .. } = said;
        self.0.push(HostOfRacks { from, pairs: smallvec![said], rtt, median, at });
    }

    fn forget_old(&mut self, now: Timestamp, max_age: Micros) {
        self.0.retain_mut(|host| {
            let before = host.pairs.len();
            host.pairs.retain(|pair| now.since(pair.at) <= max_age);
            if host.pairs.len() < before {
                host.judge();
            }
            !host.pairs.is_empty()
        });
    }

    /// What counts of the racks' hosts, as a row to the rack `peer`.
    fn row(&self, peer: RackIdx, share: f64) -> Row {
        let sorted = |of: fn(&HostOfRacks) -> u32| {
            let mut all: Vec<u32> = self.0.iter().map(of).collect();
            all.sort_unstable();
            all
        };
        let newest = self.0.iter().map(|host| host.at).max().unwrap_or_default();
        let (rtt, median) = (quantile(&sorted(|host| host.rtt), share), quantile(&sorted(|host| host.median), 0.5));
        Row { peer: peer.0, path: 0, rtt, median, at: newest }
    }
}

/// Round trips of one pair over one path.
#[derive(Debug, Clone, Copy)]
pub struct RoundTrips<'a> {
    /// Below [`PATHS`].
    pub path: u8,
    /// Each, µs.
    pub rtts: &'a [u32],
    /// When the last of them was measured.
    pub at: Timestamp,
}

/// All measurements, and the table of what they come to.
#[derive(Debug, Clone)]
pub struct LatencyModel {
    settings: LatencySettings,
    /// By who measured and whom; paths by number.
    pairs: HashMap<(NodeIdx, NodeIdx), SmallVec<[PathSamples; 1]>>,
    /// Pairs by who measured.
    of_host: HashMap<NodeIdx, usize>,
    /// The lesser rack first.
    racks: HashMap<(RackIdx, RackIdx), RackSamples>,
    table: LatencyTable,
    swept: Timestamp,
}

impl Default for LatencyModel {
    fn default() -> Self {
        Self::new(LatencySettings::default())
    }
}

impl LatencyModel {
    /// Without measurements.
    #[must_use]
    pub fn new(settings: LatencySettings) -> Self {
        let mut table = LatencyTable::default();
        table.max_age = settings.max_age;
        let (pairs, of_host, racks) = Default::default();
        Self { settings, pairs, of_host, racks, table, swept: Timestamp::default() }
    }

    /// What the measurements come to; a clone shares all that does not change afterwards.
    #[must_use]
    pub const fn table(&self) -> &LatencyTable {
        &self.table
    }

    /// Pairs with measurements; one measured from both ends is two.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Reads what is kept by other settings.
    pub fn configure(&mut self, settings: LatencySettings) {
        let anew = self.settings.quantile != settings.quantile;
        self.settings = settings;
        self.table.max_age = settings.max_age;
        if anew {
            for (&(from, to), paths) in &self.pairs {
                for (path, samples) in paths.iter().enumerate().filter(|(_, samples)| !samples.rtts.is_empty()) {
                    let (rtt, median) = samples.read(settings.quantile);
                    self.table.set_host(from, Row { peer: to.0, path: path as u8, rtt, median, at: samples.newest });
                }
            }
            for (&(a, b), samples) in &self.racks {
                self.table.set_rack(a, samples.row(b, settings.quantile));
            }
        }
    }

    /// Takes round trips in that `ends.0` measured to `ends.1` over one path, hosts of these racks.
    ///
    /// # Errors
    /// [`LatencyError`]; nothing has changed then.
    pub fn observe(
        &mut self,
        ends: (NodeIdx, NodeIdx),
        racks: (RackIdx, RackIdx),
        measured: RoundTrips<'_>,
        now: Timestamp,
    ) -> Result<(), LatencyError> {
        let LatencySettings { quantile, max_age, pairs, pairs_per_host } = self.settings;
        let RoundTrips { path, rtts, at } = measured;
        in_time(at, now, max_age)?;
        if ends.0 == ends.1 {
            return Err(LatencyError::Itself(ends.0));
        }
        if usize::from(path) >= PATHS {
            return Err(LatencyError::NoSuchPath(path.into()));
        }
        if rtts.is_empty() {
            return Ok(());
        }
        if !self.pairs.contains_key(&ends) {
            if self.pairs.len() >= pairs {
                return Err(LatencyError::TooManyPairs(pairs));
            }
            if self.of_host.get(&ends.0).is_some_and(|own| *own >= pairs_per_host) {
                return Err(LatencyError::TooManyOfHost(pairs_per_host));
            }
            *self.of_host.entry(ends.0).or_default() += 1;
        }
        let paths = self.pairs.entry(ends).or_default();
        if paths.len() <= usize::from(path) {
            paths.resize_with(usize::from(path) + 1, PathSamples::default);
        }
        let samples = &mut paths[usize::from(path)];
        samples.keep(rtts, at.min(now), max_age);
        let ((rtt, median), at) = (samples.read(quantile), samples.newest);
        self.table.set_host(ends.0, Row { peer: ends.1.0, path, rtt, median, at });

        let (a, b) = (racks.0.min(racks.1), racks.0.max(racks.1));
        let of_racks = self.racks.entry((a, b)).or_default();
        of_racks.forget_old(now, max_age);
        of_racks.keep(ends.0, PairOfRacks { to: ends.1, rtt, median, at });
        let row = of_racks.row(b, quantile);
        self.table.set_rack(a, row);
        Ok(())
    }

    /// Sets what two racks count with, as a file says it, until hosts of theirs are measured.
    pub fn set_racks(&mut self, racks: (RackIdx, RackIdx), rtt: u32, now: Timestamp) {
        let (a, b) = (racks.0.min(racks.1), racks.0.max(racks.1));
        self.table.set_rack(a, Row { peer: b.0, path: 0, rtt, median: rtt, at: now });
    }

    /// Replaces what DataNodes say of each other.
    pub fn set_slow_peers(&mut self, slow_peers: SlowPeers) {
        self.table.set_slow_peers(slow_peers);
    }

    /// Forgets pairs of which no path counts any more; looks once in half of the age at which they do.
    pub fn forget_old(&mut self, now: Timestamp) {
        let max_age = self.settings.max_age;
        if self.table.is_empty() || now.since(self.swept) <= Micros(max_age.0 / 2) {
            return;
        }
        self.swept = now;
        let of_host = &mut self.of_host;
        self.pairs.retain(|(from, _), paths| {
            let counts = paths.iter().any(|path| now.since(path.newest) <= max_age);
            if !counts && let Some(own) = of_host.get_mut(from) {
                *own -= 1;
            }
            counts
        });
        of_host.retain(|_, own| *own > 0);
        self.racks.retain(|_, samples| {
            samples.forget_old(now, max_age);
            !samples.0.is_empty()
        });
        self.table.forget_old(now);
    }
}
