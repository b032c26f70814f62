#![allow(dead_code)]
//! Racks to which the input of a recurring job should be written, so that its maps, and its reduces after them, stay there.
//!
//! One rack keeps the shuffle off the uplinks and has few containers; all racks have many and send (1 − 1 ÷ racks) of it up.
//! For each number of racks the job's end is estimated: waves of containers, and bytes against uplinks and access links,
//! each beside what jobs homed there before still have to do. To that comes what the job's bytes on uplinks cost others.

use hintd_model::cluster::Snapshot;
use hintd_model::units::{RackIdx, Timestamp};
use hintd_policy::advise::{DataProblem, EarlierRun, HomeRack, HomesProblem, ReplicaAdvice};
use hintd_policy::terms::link_time::LinkRates;

/// How many jobs wait for the uplinks beside this one: a second of all uplinks costs each of them a second.
const OTHERS: f64 = 4.0;

/// A rack, its rates and what is to be done there.
#[derive(Debug, Clone, Copy)]
struct Home {
    rack: RackIdx,
    load: HomeRack,
    /// Bytes a second: its uplink, one direction, and all its access links.
    up_rate: f64,
    into_rate: f64,
}

/// What the job takes of each of `width` racks.
#[derive(Debug, Clone, Copy)]
struct Part {
    work_s: f64,
    up: f64,
    into: f64,
}

impl Part {
    fn of(run: &EarlierRun, width: usize) -> Self {
        let (width, shuffle) = (width as f64, run.shuffle.as_f64());
        let time = |(tasks, each): (u32, hintd_model::units::Micros)| f64::from(tasks) * each.as_secs_f64();
        Self {
            work_s: (time(run.maps) + time(run.reduces)) / width,
            up: shuffle / width * (1.0 - 1.0 / width),
            into: shuffle / width,
        }
    }
}

/// The racks; empty: all of them, wherever HDFS puts the blocks.
pub(crate) fn choose(problem: &HomesProblem<'_>) -> Vec<RackIdx> {
    let mut homes = homes(problem);
    homes.sort_by(|a, b| {
        let alone = |home: &Home| score(problem.run, std::slice::from_ref(home), 0.0);
        alone(a).total_cmp(&alone(b)).then(rank(problem.seed, a.rack).cmp(&rank(problem.seed, b.rack)))
    });
    let uplinks: f64 = homes.iter().map(|home| home.up_rate).sum();
    let widths = (1..=homes.len()).map(|width| (width, score(problem.run, &homes[..width], uplinks)));
    let Some((width, _)) = widths.min_by(|a, b| a.1.total_cmp(&b.1)) else { return Vec::new() };
    let width = match hintd_policy::knob::knob("WIDTH", 0.0) as usize {
        0 => width,
        w => w,
    }; // KNOB
    let k = hintd_policy::knob::knob;
    if width == homes.len() {
        return Vec::new();
    }
    if problem.run.shuffle.as_f64() < k("MINSHUF", 0.0)
        || (problem.run.reduces.0 == 0 && k("MAPONLY", 1.0) == 0.0)
        || f64::from(problem.run.reduces.0) > k("MAXRED", 1e9)
        || f64::from(problem.run.maps.0) > k("MAXMAP", 1e9)
    {
        return Vec::new();
    }
    let mut racks: Vec<RackIdx> = homes[..width].iter().map(|home| home.rack).collect();
    racks.sort_unstable();
    racks
}

/// Equals are taken in an order that the seed draws.
fn rank(seed: u64, rack: RackIdx) -> u64 {
    let mixed = (seed ^ (u64::from(rack.0) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

fn homes(problem: &HomesProblem<'_>) -> Vec<Home> {
    let rates = LinkRates::of(problem.snapshot);
    let home = |(at, load): (usize, &HomeRack)| {
        let rack = RackIdx::new(at);
        let uplink = rates.rack(rack);
        let members = problem.snapshot.statics.members.get(at)?.iter();
        let into_rate = members.map(|&node| rates.node(node).down).sum();
        (load.slots > 0).then_some(Home { rack, load: *load, up_rate: uplink.up.min(uplink.down), into_rate })
    };
    problem.racks.iter().enumerate().filter_map(home).collect()
}

/// Seconds until the job is done in those racks, and what its bytes on uplinks, of that rate together, cost others.
fn score(run: &EarlierRun, homes: &[Home], uplinks: f64) -> f64 {
    let part = Part::of(run, homes.len());
    let slots: u32 = homes.iter().map(|home| home.load.slots).sum();
    let waves = |(tasks, each): (u32, hintd_model::units::Micros)| {
        (f64::from(tasks) / f64::from(slots)).ceil() * each.as_secs_f64()
    };
    let own = waves(run.maps) + waves(run.reduces);
    let end = |home: &Home| {
        let waits = home.load.work_s / f64::from(home.load.slots);
        let up = (home.load.up + part.up) / home.up_rate;
        let into = (home.load.into + part.into) / home.into_rate;
        waits + own + up.max(into)
    };
    let others = if uplinks > 0.0 {
        hintd_policy::knob::knob("OTHERS", OTHERS) * part.up * homes.len() as f64 / uplinks
    } else {
        0.0
    };
    homes.iter().map(end).fold(0.0, f64::max) + others
}

/// Advice for one block: a replica in one of the homes, in turns; the others as HDFS puts them, in another rack.
pub(crate) fn replicas(problem: &DataProblem<'_>) -> Vec<ReplicaAdvice> {
    let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
    if hintd_policy::knob::knob("REPL", 1.0) == 2.0 && !problem.homes.is_empty() && advice.len() == 3 {
        // KNOB
        let turn = (problem.block % problem.homes.len() as u64) as usize;
        advice[0] = ReplicaAdvice::Rack(problem.homes[turn]);
        advice[1] = advice[0];
        return advice;
    }
    if let (Some(first), false) = (advice.first_mut(), problem.homes.is_empty()) {
        let turn = (problem.block % problem.homes.len() as u64) as usize;
        *first = ReplicaAdvice::Rack(problem.homes[turn]);
    }
    advice
}

/// What jobs that were homed lately still have to do, by rack: it goes as fast as links and containers work it off.
#[derive(Debug, Clone)]
pub struct HomeBook {
    racks: Vec<HomeRack>,
    rates: Vec<[f64; 2]>,
    at: Timestamp,
}

impl HomeBook {
    /// Nothing is to be done; `slots`: containers that each rack has room for.
    #[must_use]
    pub fn new(snapshot: &Snapshot, slots: &[u32]) -> Self {
        let rates = LinkRates::of(snapshot);
        let of = |rack: usize| {
            let uplink = rates.rack(RackIdx::new(rack));
            let into = snapshot.statics.members[rack].iter().map(|&node| rates.node(node).down).sum();
            [uplink.up.min(uplink.down), into]
        };
        let racks = slots.iter().map(|&slots| HomeRack { slots, ..HomeRack::default() }).collect();
        Self { racks, rates: (0..slots.len()).map(of).collect(), at: Timestamp(0) }
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
    pub fn add(&mut self, homes: &[RackIdx], run: &EarlierRun) {
        let all: Vec<RackIdx> = (0..self.racks.len()).map(RackIdx::new).collect();
        let homes = if homes.is_empty() { &all } else { homes };
        let part = Part::of(run, homes.len());
        for home in homes {
            let Some(rack) = self.racks.get_mut(home.at()) else { continue };
            rack.work_s += part.work_s;
            rack.up += part.up;
            rack.into += part.into;
        }
    }
}
