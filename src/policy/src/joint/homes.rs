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
//! beside it: a job that is alone is gathered only where it ends sooner itself. How many blocks each rack has the job's own
//! ask says.

use crate::advise::{DataProblem, EarlierRun, HomeRack, HomesProblem, InputState, Lies, ReplicaAdvice};
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
/// HDFS puts the replicas of a block in so many racks.
const REPLICA_RACKS: f64 = 2.0;
/// See [`looked_at`].
const LOOKED_AT_EACH: usize = 8;
/// Of wider sets only the first of the order is looked at: next to every block lies in one of so many racks.
const LOOKED_AT_WIDTH: usize = 64;

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
    /// Of a job in `width` racks, `far` of whose input lies in none of them.
    fn of(run: &EarlierRun, width: usize, far: f64) -> Self {
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

/// The share of written input that lies in none of a set of racks: what it were if the set was drawn, times, for each of its
/// racks, the share that is not there ÷ the share that is not in a drawn rack. Exact for one rack.
#[derive(Debug, Clone, Copy)]
struct Far<'a> {
    racks: usize,
    /// Racks that a block lies in, in the mean.
    each: f64,
    /// `None`: nobody knows where they lie.
    lies: Option<Lies<'a>>,
}

impl<'a> Far<'a> {
    /// On a cluster with so many racks.
    fn of(racks: usize, lies: Option<Lies<'a>>) -> Self {
        let lies = lies.filter(|lies| lies.blocks > 0 && lies.by_rack.iter().any(|&there| there > 0));
        let each = lies.map_or(REPLICA_RACKS, |lies| lies.by_rack.iter().sum::<u64>() as f64 / lies.blocks as f64);
        Self { racks, each: each.min(racks as f64), lies }
    }

    /// The share that lies in none of so many racks, were they drawn.
    fn of_drawn(&self, width: usize) -> f64 {
        let racks = self.racks as f64;
        (0..width.min(self.racks)).map(|at| ((racks - self.each - at as f64) / (racks - at as f64)).max(0.0)).product()
    }

    /// The share that does not lie in this rack, for each that does not in a drawn one.
    fn ratio(&self, rack: RackIdx) -> f64 {
        let of_drawn = 1.0 - self.each / self.racks as f64;
        let Some(lies) = self.lies.filter(|_| of_drawn > 0.0) else { return 1.0 };
        let there = lies.by_rack.get(rack.at()).map_or(0.0, |&there| there as f64 / lies.blocks as f64);
        (1.0 - there).max(0.0) / of_drawn
    }

    /// The share that lies in none of those racks.
    fn of_set(&self, racks: impl ExactSizeIterator<Item = RackIdx>) -> f64 {
        let drawn = self.of_drawn(racks.len());
        (drawn * racks.map(|rack| self.ratio(rack)).product::<f64>()).min(1.0)
    }
}

/// The job whose racks are chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    run: &'a EarlierRun,
    /// `None`: it is yet to be written, and a replica of each block goes to its racks.
    far: Option<Far<'a>>,
    /// Jobs that each second of all uplinks costs a second.
    others: f64,
}

impl<'a> Reader<'a> {
    pub(super) fn of(problem: &HomesProblem<'a>) -> Self {
        let (far, others) = match problem.input {
            InputState::Unwritten => (None, OTHERS),
            InputState::Written { others, lies } => (Some(Far::of(problem.racks.len(), lies)), others.min(OTHERS)),
        };
        Self { run: problem.run, far, others: others.into() }
    }

    /// What it takes of each of those racks.
    fn part(&self, homes: &[Home]) -> Part {
        Part::of(self.run, homes.len(), self.far.map_or(0.0, |far| far.of_set(homes.iter().map(|home| home.rack))))
    }

    /// Whether its shuffle is worth choosing racks for.
    fn is_heavy(&self, uplinks: f64) -> bool {
        let shuffle = self.run.shuffle.as_f64();
        let worth_reading = self.far.is_none() || shuffle >= GATHERED_FROM * self.run.input.as_f64();
        loads(self.run, uplinks) && worth_reading
    }

    /// Seconds until the job's part of one of `width` racks is done there.
    fn end(&self, home: &Home, width: usize, part: &Part) -> f64 {
        let waves = |(tasks, each): (u32, Micros)| {
            (f64::from(tasks) / width as f64 / f64::from(home.load.slots)).ceil() * each.as_secs_f64()
        };
        let waits = home.load.work_s / f64::from(home.load.slots);
        let up = (home.load.up + part.up) / home.up_rate;
        let into = (home.load.into + part.into) / home.into_rate;
        waits + waves(self.run.maps).max(part.read / home.up_rate) + waves(self.run.reduces) + up.max(into)
    }

    /// Seconds until the job is done in those racks.
    pub(super) fn last(&self, homes: &[Home]) -> f64 {
        let part = self.part(homes);
        homes.iter().map(|home| self.end(home, homes.len(), &part)).fold(0.0, f64::max)
    }

    /// Seconds until the job is done in those racks, and what its bytes on uplinks, of that rate together, cost others.
    pub(super) fn cost(&self, homes: &[Home], uplinks: f64) -> f64 {
        let part = self.part(homes);
        self.last(homes) + self.others * (part.up + part.read) * homes.len() as f64 / uplinks
    }

    /// Whether the job itself does not end much later there than in all racks: so many, where it ends by then.
    pub(super) fn bearable(&self, homes: &[Home], (all, end): (usize, f64)) -> bool {
        homes.len() == all || self.last(homes) <= OWN_END_MAX * end
    }
}

/// Whether its shuffle is anything to uplinks of that rate together, bytes a second.
fn loads(run: &EarlierRun, uplinks: f64) -> bool {
    run.shuffle.as_f64() >= WORTH_A_HOME_S * uplinks
}

/// The racks, ascending; empty: all of them, wherever HDFS puts the blocks.
pub(super) fn choose(problem: &HomesProblem<'_>) -> Vec<RackIdx> {
    let homes = homes(problem);
    let (uplinks, reader) = (uplinks(&homes), Reader::of(problem));
    let unlike =
        matches!(problem.input, InputState::Written { lies: Some(lies), .. } if !problem.run.is_like(lies.blocks));
    if unlike || !reader.is_heavy(uplinks) {
        return Vec::new();
    }
    let sets = |width| sets_of_width(problem, &reader, &homes, width);
    let all = (homes.len(), reader.last(&homes));
    let bearable = (1..=homes.len()).flat_map(sets).filter(|racks| reader.bearable(racks, all));
    // Of equal costs the fewest racks.
    let chosen = bearable.map(|racks| (reader.cost(&racks, uplinks), racks)).min_by(|a, b| a.0.total_cmp(&b.0));
    let mut racks: Vec<RackIdx> = chosen.into_iter().flat_map(|(_, racks)| racks).map(|home| home.rack).collect();
    racks.sort_unstable();
    if racks.len() == homes.len() { Vec::new() } else { racks }
}

/// Sets of so many racks that are looked at. The cost of a set is that of its last and of what lies in none of them. Where
/// blocks lie nobody knows, the racks that are done first are the best set. Else of so many racks that are done first those
/// with the most blocks are one, of a few more another: the best is among these for up to nine racks alike in room and rates.
fn sets_of_width(problem: &HomesProblem<'_>, reader: &Reader<'_>, homes: &[Home], width: usize) -> Vec<Vec<Home>> {
    // What is written already takes no disk.
    let input = if reader.far.is_some() { 0.0 } else { reader.run.input.as_f64() / width as f64 };
    let able = homes.iter().filter(|home| input <= home.load.disk.as_f64());
    let known = reader.far.filter(|far| far.lies.is_some());
    let drawn = reader.far.filter(|_| known.is_none()).map_or(0.0, |far| far.of_drawn(width));
    let part = Part::of(reader.run, width, drawn);
    let mut able: Vec<_> =
        able.map(|home| (reader.end(home, width, &part), rank(problem.seed, home.rack), *home)).collect();
    if able.len() < width {
        return Vec::new();
    }
    able.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let able: Vec<Home> = able.into_iter().map(|(_, _, home)| home).collect();
    let Some(far) = known else { return vec![able[..width].to_vec()] };
    let nearest = |first: usize| {
        let mut among: Vec<_> = able[..first].iter().enumerate().map(|(at, home)| (far.ratio(home.rack), at)).collect();
        if width < first {
            among.select_nth_unstable_by(width - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        among[..width].iter().map(|&(_, at)| able[at]).collect()
    };
    looked_at(width, able.len()).map(nearest).collect()
}

/// How many of the racks that are done first a set is taken from: one by one at first, then twice as many each time.
fn looked_at(width: usize, racks: usize) -> impl Iterator<Item = usize> {
    let racks = if width <= LOOKED_AT_WIDTH { racks } else { width };
    let one_by_one = (width..racks).take(LOOKED_AT_EACH);
    let doubled = std::iter::successors(Some(width + LOOKED_AT_EACH), |first| Some(first * 2));
    one_by_one.chain(doubled.take_while(move |&first| first < racks)).chain([racks])
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

    /// A job was homed there; empty: everywhere.
    pub fn add(&mut self, homes: &[RackIdx], run: &EarlierRun, input: InputState<'_>) {
        let all: Vec<RackIdx> = (0..self.racks.len()).map(RackIdx::new).collect();
        let homes = if homes.is_empty() { &all } else { homes };
        let far = match input {
            InputState::Unwritten => None,
            InputState::Written { lies, .. } => Some(Far::of(all.len(), lies).of_set(homes.iter().copied())),
        };
        let part = Part::of(run, homes.len(), far.unwrap_or(0.0));
        for home in homes {
            let Some(rack) = self.racks.get_mut(home.at()) else { continue };
            rack.work_s += part.work_s;
            rack.up += part.up + part.read;
            rack.into += part.into + part.read;
            let kept = if far.is_some() { Bytes::ZERO } else { Bytes(part.input as u64) };
            rack.disk = rack.disk.saturating_sub(kept);
        }
    }
}
