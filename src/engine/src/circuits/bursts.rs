//! What running jobs have gathered in racks for reduces in others, and what of it is left to move.

use super::ports::Ports;
use hintd_model::units::{AttemptId, BitsPerSec, Bytes, Micros, RackIdx, Timestamp};
use std::collections::BTreeMap;

/// A running job's map output and where its reduces are, by rack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobShuffle {
    pub(crate) attempt: AttemptId,
    /// Output of ended maps, of the racks with most.
    pub(crate) output: BTreeMap<RackIdx, Bytes>,
    /// Reduces that have containers, and reduces that have ended, of the racks with most.
    pub(crate) reduces: BTreeMap<RackIdx, (u32, u32)>,
    /// All its reduces, those that wait included.
    pub(crate) tasks: u32,
    /// All its maps have ended.
    pub(crate) maps_done: bool,
    /// All its reduces have containers, or have ended.
    pub(crate) reduces_placed: bool,
}

impl JobShuffle {
    /// What is gathered for a pair of racks, and what of it is certainly there: reduces that ended have read their part.
    /// Every reduce is taken to read the same part of every map.
    pub(crate) fn gathered(&self, from: RackIdx, to: RackIdx) -> (Bytes, Bytes) {
        let output = self.output.get(&from).copied().unwrap_or(Bytes::ZERO);
        let (running, ended) = self.reduces.get(&to).copied().unwrap_or_default();
        let part = |reduces: u32| {
            let bytes = u128::from(output.0) * u128::from(reduces) / u128::from(self.tasks.max(1));
            Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
        };
        (part(running.saturating_add(ended)), part(ended))
    }

    /// Pairs of racks between which something may move.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (RackIdx, RackIdx)> + '_ {
        let to = |from| self.reduces.keys().map(move |&to| (from, to));
        self.output.keys().flat_map(move |&from| to(from)).filter(|(from, to)| from != to)
    }

    /// Number of these, at most.
    pub(crate) fn pairs_most(&self) -> usize {
        self.output.len().saturating_mul(self.reduces.len())
    }

    /// Output of all ended maps.
    pub(crate) fn total(&self) -> Bytes {
        self.output.values().fold(Bytes::ZERO, |sum, &bytes| sum.saturating_add(bytes))
    }
}

/// A job's shuffle from a rack to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) attempt: AttemptId,
    pub(super) from: RackIdx,
    pub(super) to: RackIdx,
}

/// Bursts that are elephants, or were and may have more to come.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    by_pair: BTreeMap<Pair, Burst>,
    /// When what circuits carry was last reckoned.
    carried_until: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct Burst {
    /// What circuits have carried of it, as far as that can be told.
    carried: Bytes,
    left: Bytes,
    /// Since when it is one; until nothing is left.
    elephant: Option<Timestamp>,
}

/// What elephants have left between two racks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) bytes: Bytes,
    pub(super) jobs: u32,
    pub(super) since: Timestamp,
}

impl Bursts {
    /// Circuits from rack to rack have carried what they could since the last time: the jobs of a pair one after another.
    pub(super) fn carry(&mut self, set: &[(RackIdx, RackIdx)], ports: &Ports, now: Timestamp) {
        let span = now.since(std::mem::replace(&mut self.carried_until, now));
        let could = |&(from, to): &(RackIdx, RackIdx)| ((from, to), carried(ports.switch.bits_per_s(from, to), span));
        let mut free: BTreeMap<(RackIdx, RackIdx), Bytes> = set.iter().map(could).collect();
        for (&Pair { from, to, .. }, burst) in self.by_pair.iter_mut().filter(|(_, burst)| burst.elephant.is_some()) {
            let Some(free) = free.get_mut(&(from, to)) else { continue };
            let moved = burst.left.min(*free);
            *free = free.saturating_sub(moved);
            burst.left = burst.left.saturating_sub(moved);
            burst.carried = burst.carried.saturating_add(moved);
        }
    }

    /// Nothing was carried until now.
    pub(super) const fn begin(&mut self, now: Timestamp) {
        self.carried_until = now;
    }

    /// Takes in how jobs stand: all of them. `started` is how much of what a job has gathered for a pair may move.
    pub(super) fn look(
        &mut self,
        jobs: &[&JobShuffle],
        ports: &Ports,
        started: impl Fn(&Pair, Bytes) -> Bytes,
        now: Timestamp,
    ) {
        let before = std::mem::take(&mut self.by_pair);
        // Of a job whose maps put out less than that in all no pair can be an elephant.
        for job in jobs.iter().filter(|job| job.total() >= ports.elephant) {
            for (from, to) in job.pairs() {
                let pair = Pair { attempt: job.attempt, from, to };
                let known = before.get(&pair);
                let (gathered, there) = job.gathered(from, to);
                let carried = known.map_or(Bytes::ZERO, |burst| burst.carried).min(gathered);
                let left = started(&pair, gathered).min(gathered).saturating_sub(carried.max(there));
                let is = left >= ports.threshold(from, to);
                let was = known.and_then(|burst| burst.elephant).filter(|_| left > Bytes::ZERO);
                let elephant = was.or(is.then_some(now));
                if elephant.is_some() || carried > there {
                    self.by_pair.insert(pair, Burst { carried, left, elephant });
                }
            }
        }
    }

    /// What elephants have left, by pair of racks.
    pub(super) fn demand(&self) -> BTreeMap<(RackIdx, RackIdx), Demand> {
        let mut demand: BTreeMap<(RackIdx, RackIdx), Demand> = BTreeMap::new();
        for (&Pair { from, to, .. }, burst) in &self.by_pair {
            let Some(since) = burst.elephant.filter(|_| burst.left > Bytes::ZERO) else { continue };
            let sum = demand.entry((from, to)).or_insert(Demand { bytes: Bytes::ZERO, jobs: 0, since });
            sum.bytes = sum.bytes.saturating_add(burst.left);
            (sum.jobs, sum.since) = (sum.jobs + 1, sum.since.min(since));
        }
        demand
    }

    pub(super) fn clear(&mut self) {
        self.by_pair.clear();
    }
}

/// What a rate carries in a time, rounded down.
fn carried(rate: BitsPerSec, time: Micros) -> Bytes {
    let bytes = u128::from(rate.0) * u128::from(time.0) / 8_000_000;
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
