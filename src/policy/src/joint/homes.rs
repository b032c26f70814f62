//! Racks to which the input of a recurring job should be written, so that its maps, and its reduces after them, stay there.
//!
//! One rack keeps the shuffle off the uplinks and has few containers; all racks have many and send (1 − 1 ÷ racks) of it up.
//! For each number of racks the job's end is estimated by what it did before: waves of containers, and bytes against
//! uplinks and access links, each behind what jobs homed there before still have to do. To that comes what the job's bytes on
//! uplinks cost the others. The least wins, among those where the job itself does not end much later than in all racks; all racks means that HDFS puts the blocks as ever.
//!
//! Input that is written already lies everywhere: HDFS puts the replicas of a block in two racks. The job may still be
//! gathered in few: blocks of which no replica is there are read over the uplinks, once, where each byte of its shuffle
//! would have crossed them. That is for jobs that shuffle at least what they read, and for the sake of no more others than run
//! beside it: a job that is alone is gathered only where it ends sooner itself.

use crate::advise::{DataProblem, EarlierRun, HomeRack, HomesProblem, InputState, ReplicaAdvice};
use crate::terms::link_time::LinkRates;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, Micros, RackIdx, Timestamp};

/// A shuffle that takes less than so many seconds over all uplinks together is not worth waiting for a rack.
const WORTH_A_HOME_S: f64 = 0.01;
/// How many jobs wait for the uplinks beside this one, at most, and where nobody knows how many: a second of all uplinks costs
/// each of them a second (docs/decisions.md).
const OTHERS: u32 = 3;
/// For others' sake a job's own end in its homes becomes at most so many times what it is in all racks.
const OWN_END_MAX: f64 = 3.0;
/// Bytes of shuffle for each byte of input from which on a job is gathered: else it would read more than it keeps off the uplinks.
const GATHERED_FROM: f64 = 1.0;

/// A rack, its rates and what is to be done there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Home {
    pub(super) rack: RackIdx,
    load: HomeRack,
    /// Bytes a second: its uplink, the narrower direction.
    up_rate: f64,
    /// Bytes a second: all its access links together, towards the nodes.
    into_rate: f64,
}

/// What the job takes of each of its racks.
#[derive(Debug, Clone, Copy)]
struct Part {
    work_s: f64,
    up: f64,
    into: f64,
    input: f64,
    /// Bytes of its input that lie in none of them.
    read: f64,
}

impl Part {
    /// Of a job in `width` racks. `written_in`: the racks in two of which HDFS put each block; `None`: it puts one replica there.
    fn of(run: &EarlierRun, width: usize, written_in: Option<usize>) -> Self {
        let far = written_in.map_or(0.0, |racks| in_neither(width, racks));
        let (width, shuffle, input) = (width as f64, run.shuffle.as_f64(), run.input.as_f64());
        let time = |(tasks, each): (u32, Micros)| f64::from(tasks) * each.as_secs_f64();
        Self {
            work_s: (time(run.maps) + time(run.reduces)) / width,
            up: shuffle / width * (1.0 - 1.0 / width),
            into: shuffle / width,
            input: input / width,
            read: input / width * far,
        }
    }
}

/// How likely it is that both racks of a block, drawn from `racks`, are other than `width` of them.
fn in_neither(width: usize, racks: usize) -> f64 {
    let (racks, others) = (racks as f64, racks.saturating_sub(width) as f64);
    if racks < 2.0 { 0.0 } else { (others * (others - 1.0) / (racks * (racks - 1.0))).max(0.0) }
}

/// The job whose racks are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    run: &'a EarlierRun,
    /// See [`Part::of`].
    written_in: Option<usize>,
    /// Jobs that each second of all uplinks costs a second.
    others: f64,
}

impl<'a> Reader<'a> {
    pub(super) fn of(problem: &HomesProblem<'a>, homes: &[Home]) -> Self {
        let (written_in, others) = match problem.input {
            InputState::Unwritten => (None, OTHERS),
            InputState::Written { others } => (Some(homes.len()), others.min(OTHERS)),
        };
        Self { run: problem.run, written_in, others: others.into() }
    }

    fn part(&self, width: usize) -> Part {
        Part::of(self.run, width, self.written_in)
    }

    /// Whether its shuffle is worth choosing racks for.
    fn is_heavy(&self, uplinks: f64) -> bool {
        let shuffle = self.run.shuffle.as_f64();
        let worth_reading = self.written_in.is_none() || shuffle >= GATHERED_FROM * self.run.input.as_f64();
        loads(self.run, uplinks) && worth_reading
    }

    /// Seconds until the job's part of one of `width` racks is done there.
    fn end(&self, home: &Home, width: usize) -> f64 {
        let part = self.part(width);
        let waves = |(tasks, each): (u32, Micros)| {
            (f64::from(tasks) / width as f64 / f64::from(home.load.slots)).ceil() * each.as_secs_f64()
        };
        let waits = home.load.work_s / f64::from(home.load.slots);
        let up = (home.load.up + part.up) / home.up_rate;
        let into = (home.load.into + part.into) / home.into_rate;
        waits + waves(self.run.maps).max(part.read / home.up_rate) + waves(self.run.reduces) + up.max(into)
    }

    /// Seconds until the job is done in those racks.
    fn last(&self, homes: &[Home]) -> f64 {
        homes.iter().map(|home| self.end(home, homes.len())).fold(0.0, f64::max)
    }

    /// Seconds until the job is done in those racks, and what its bytes on uplinks, of that rate together, cost others.
    pub(super) fn cost(&self, homes: &[Home], uplinks: f64) -> f64 {
        let part = self.part(homes.len());
        self.last(homes) + self.others * (part.up + part.read) * homes.len() as f64 / uplinks
    }

    /// Whether the job itself does not end much later there than in all racks.
    pub(super) fn bearable(&self, homes: &[Home], all: &[Home]) -> bool {
        homes.len() == all.len() || self.last(homes) <= OWN_END_MAX * self.last(all)
    }
}

/// Whether its shuffle is anything to uplinks of that rate together, bytes a second.
fn loads(run: &EarlierRun, uplinks: f64) -> bool {
    run.shuffle.as_f64() >= WORTH_A_HOME_S * uplinks
}

/// The racks, ascending; empty: all of them, wherever HDFS puts the blocks.
pub(super) fn choose(problem: &HomesProblem<'_>) -> Vec<RackIdx> {
    let homes = homes(problem);
    let (uplinks, reader) = (uplinks(&homes), Reader::of(problem, &homes));
    if !reader.is_heavy(uplinks) {
        return Vec::new();
    }
    let best = |width| best_of_width(problem, &reader, &homes, width);
    let cost = |racks: &Vec<Home>| reader.cost(racks, uplinks);
    // Of equal costs the fewest racks.
    let bearable = |racks: &Vec<Home>| reader.bearable(racks, &homes);
    let chosen = (1..=homes.len()).filter_map(best).filter(bearable).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let mut racks: Vec<RackIdx> = chosen.unwrap_or_default().iter().map(|home| home.rack).collect();
    racks.sort_unstable();
    if racks.len() == homes.len() { Vec::new() } else { racks }
}

/// The racks where so many are done first: the cost of a set is that of its last, so the first of an order are the best.
fn best_of_width(problem: &HomesProblem<'_>, reader: &Reader<'_>, homes: &[Home], width: usize) -> Option<Vec<Home>> {
    // What is written already takes no disk.
    let input = if reader.written_in.is_some() { 0.0 } else { reader.part(width).input };
    let able: Vec<&Home> = homes.iter().filter(|home| input <= home.load.disk.as_f64()).collect();
    let mut able: Vec<_> =
        able.iter().map(|&home| (reader.end(home, width), rank(problem.seed, home.rack), home)).collect();
    let by_end = |a: &(f64, u64, _), b: &(f64, u64, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if width < able.len() {
        able.select_nth_unstable_by(width, by_end);
    }
    able.truncate(width);
    able.sort_by(by_end);
    (able.len() >= width).then(|| able.into_iter().map(|(_, _, home)| *home).collect())
}

/// Equals are taken in an order that the seed draws.
fn rank(seed: u64, rack: RackIdx) -> u64 {
    let mixed = (seed ^ (u64::from(rack.0) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Racks with containers.
pub(super) fn homes(problem: &HomesProblem<'_>) -> Vec<Home> {
    let rates = rates_by_rack(problem.snapshot);
    let racks = problem.racks.iter().zip(rates).enumerate();
    racks
        .filter(|(_, (load, _))| load.slots > 0)
        .map(|(at, (&load, [up_rate, into_rate]))| Home { rack: RackIdx::new(at), load, up_rate, into_rate })
        .collect()
}

/// Bytes a second that all of their uplinks carry together.
pub(super) fn uplinks(homes: &[Home]) -> f64 {
    homes.iter().map(|home| home.up_rate).sum()
}

/// Of each rack: its uplink, and all access links of its nodes.
fn rates_by_rack(snapshot: &Snapshot) -> Vec<[f64; 2]> {
    let rates = LinkRates::capacities(snapshot);
    let of = |rack| {
        let uplink = rates.rack(rack);
        [uplink.up.min(uplink.down), rates.into_rack(rack)]
    };
    (0..snapshot.statics.members.len()).map(RackIdx::new).map(of).collect()
}

/// Advice for one block: a replica in one of the homes, in turns; the others as HDFS puts them, in another rack.
pub(super) fn replicas(problem: &DataProblem<'_>) -> Vec<ReplicaAdvice> {
    let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
    let turn = problem.block.checked_rem(problem.homes.len() as u64);
    if let (Some(first), Some(turn)) = (advice.first_mut(), turn) {
        *first = ReplicaAdvice::Rack(problem.homes[turn as usize]);
    }
    advice
}

/// What jobs that were homed lately still have to do, by rack: it goes as fast as links and containers work it off.
#[derive(Debug, Clone)]
pub struct HomeBook {
    racks: Vec<HomeRack>,
    /// By rack: bytes a second of its uplink, and of its access links.
    rates: Vec<[f64; 2]>,
    at: Timestamp,
}

impl HomeBook {
    /// Nothing is to be done; for each rack the containers that it has room for, and the bytes of input that it may get.
    #[must_use]
    pub fn new(snapshot: &Snapshot, racks: impl IntoIterator<Item = (u32, Bytes)>) -> Self {
        let racks = racks.into_iter().map(|(slots, disk)| HomeRack { slots, disk, ..HomeRack::default() });
        Self { racks: racks.collect(), rates: rates_by_rack(snapshot), at: Timestamp(0) }
    }

    /// Whether a job's shuffle is anything to the uplinks: such jobs want them while they run.
    #[must_use]
    pub fn wants_uplinks(&self, run: &EarlierRun) -> bool {
        let with_room = self.racks.iter().zip(&self.rates).filter(|(rack, _)| rack.slots > 0);
        loads(run, with_room.map(|(_, [up, _])| up).sum())
    }

    /// What is left by then.
    pub fn racks(&mut self, now: Timestamp) -> &[HomeRack] {
        let passed = now.since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        for (rack, [up, into]) in self.racks.iter_mut().zip(&self.rates) {
            let left = |what: f64, rate: f64| (what - passed * rate).max(0.0);
            rack.work_s = left(rack.work_s, f64::from(rack.slots));
            (rack.up, rack.into) = (left(rack.up, *up), left(rack.into, *into));
        }
        &self.racks
    }

    /// A job was homed there; empty: everywhere. `written`: its input was there already, see [`InputState::Written`].
    pub fn add(&mut self, homes: &[RackIdx], run: &EarlierRun, written: bool) {
        let all: Vec<RackIdx> = (0..self.racks.len()).map(RackIdx::new).collect();
        let homes = if homes.is_empty() { &all } else { homes };
        let part = Part::of(run, homes.len(), written.then_some(all.len()));
        for home in homes {
            let Some(rack) = self.racks.get_mut(home.at()) else { continue };
            rack.work_s += part.work_s;
            rack.up += part.up + part.read;
            rack.into += part.into + part.read;
            let kept = if written { Bytes::ZERO } else { Bytes(part.input as u64) };
            rack.disk = rack.disk.saturating_sub(kept);
        }
    }
}
