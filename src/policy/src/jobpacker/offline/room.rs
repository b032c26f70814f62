//! When containers of each rack are free: 004 §4.2.3.2's T_ik, those of a rack that are free at once held as one count.

use super::{Halt, PARTS, PARTS_MAX, spend};
use crate::Budget;
use hintd_model::units::{Micros, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Units of work that it takes to look into a rack's times, and to change them.
const LOOK: usize = 4;
const CHANGE: usize = 32;

/// Containers of all racks by the time from which on they are free.
#[derive(Debug, Clone)]
pub(super) struct Room {
    racks: Vec<Rack>,
    /// The earliest free containers of each rack.
    earliest: BTreeSet<(Timestamp, usize)>,
}

#[derive(Debug, Clone)]
struct Rack {
    containers: u32,
    free: BTreeMap<Timestamp, u32>,
}

/// Tasks of one rack that run side by side or one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RackReservation {
    /// Position of the rack.
    pub(super) rack: usize,
    /// From when.
    pub(super) start: Timestamp,
    /// Until when.
    pub(super) end: Timestamp,
    /// Tasks that run.
    pub(super) tasks: u32,
    /// Containers that are held.
    pub(super) containers: u32,
}

impl Room {
    /// All free from `from` on.
    #[must_use]
    pub(super) fn new(containers: &[u32], from: Timestamp) -> Self {
        let free = |count: u32| if count > 0 { BTreeMap::from([(from, count)]) } else { BTreeMap::new() };
        let racks: Vec<Rack> =
            containers.iter().map(|&containers| Rack { containers, free: free(containers) }).collect();
        let earliest = (0..racks.len()).filter(|&rack| containers[rack] > 0).map(|rack| (from, rack)).collect();
        Self { racks, earliest }
    }

    /// Racks.
    #[must_use]
    pub(super) fn racks(&self) -> usize {
        self.racks.len()
    }

    /// Containers of a rack.
    #[must_use]
    pub(super) fn containers(&self, rack: usize) -> u32 {
        self.racks[rack].containers
    }

    /// Moments at which some of a rack's containers become free.
    #[must_use]
    pub(super) fn moments(&self, rack: usize) -> usize {
        self.racks[rack].free.len()
    }

    /// When each of the counts, ascending and none above the rack's containers, is free in the rack.
    pub(super) fn when(&self, rack: usize, counts: &[u32], mut tell: impl FnMut(usize, Timestamp)) {
        let (mut next, mut sum) = (0, 0);
        for (&at, &count) in &self.racks[rack].free {
            sum += count;
            while counts.get(next).is_some_and(|&count| count <= sum) {
                tell(next, at);
                next += 1;
            }
            if next == counts.len() {
                return;
            }
        }
    }

    /// Holds so many containers of the rack, all free by `start`, the latest free first: those that would idle longest
    /// stay free.
    pub(super) fn hold(&mut self, held: &RackReservation) {
        let mut left = held.containers;
        while left > 0 {
            let free = &mut self.racks[held.rack].free;
            let (&at, &count) = free.range(..=held.start).next_back().expect("as many are free as were asked for");
            let taken = left.min(count);
            self.change(held.rack, at, -i64::from(taken));
            left -= taken;
        }
        self.change(held.rack, held.end, held.containers.into());
    }

    /// Runs so many tasks on the containers that are free first, none before `not_before`; of those that are free by
    /// then the latest.
    pub(super) fn first(
        &mut self,
        tasks: u32,
        time: Micros,
        not_before: Timestamp,
        budget: &Budget<'_>,
    ) -> Result<Vec<RackReservation>, Halt> {
        let mut held: Vec<RackReservation> = Vec::new();
        let mut left = tasks;
        while left > 0 {
            let &(earliest, first) = self.earliest.first().expect("some rack has containers");
            let (at, rack) = if earliest >= not_before {
                (earliest, first)
            } else {
                spend(budget, LOOK * self.earliest.len())?;
                self.latest(not_before)
            };
            spend(budget, CHANGE)?;
            if held.len() == PARTS_MAX {
                return Err(Halt::TooLarge(PARTS, PARTS_MAX));
            }
            let taken = left.min(self.racks[rack].free[&at]);
            let start = at.max(not_before);
            let end = start.plus(time);
            self.change(rack, at, -i64::from(taken));
            self.change(rack, end, taken.into());
            left -= taken;
            held.push(RackReservation { rack, start, end, tasks: taken, containers: taken });
        }
        Ok(held)
    }

    /// The latest free containers of those that are free by then; there are some.
    fn latest(&self, by: Timestamp) -> (Timestamp, usize) {
        let racks = self.earliest.range(..=(by, usize::MAX)).map(|&(_, rack)| rack);
        let last = racks.filter_map(|rack| self.racks[rack].free.range(..=by).next_back().map(|(&at, _)| (at, rack)));
        // Of equally late ones the first rack.
        last.max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1))).expect("the earliest ones are free by then")
    }

    fn change(&mut self, rack: usize, at: Timestamp, by: i64) {
        let free = &mut self.racks[rack].free;
        let before = free.first_key_value().map(|(&first, _)| first);
        let count = free.entry(at).or_insert(0);
        *count = u32::try_from(i64::from(*count) + by).expect("no more are taken than are free");
        if *count == 0 {
            free.remove(&at);
        }
        let after = free.first_key_value().map(|(&first, _)| first);
        if before != after {
            before.map(|first| self.earliest.remove(&(first, rack)));
            after.map(|first| self.earliest.insert((first, rack)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt as _, SeedableRng as _};

    /// Every container for itself.
    struct Plain(Vec<Vec<u64>>);

    impl Plain {
        fn when(&self, rack: usize, count: u32) -> Timestamp {
            let mut times = self.0[rack].clone();
            times.sort_unstable();
            Timestamp(times[count as usize - 1])
        }

        fn hold(&mut self, held: &RackReservation) {
            self.0[held.rack].sort_unstable();
            let by = self.0[held.rack].partition_point(|&time| time <= held.start.0);
            let from = by - held.containers as usize;
            self.0[held.rack][from..by].fill(held.end.0);
        }

        fn first(&mut self, tasks: u32, time: u64, not_before: u64) -> Vec<(u64, usize)> {
            let one = |_| {
                let all = self.0.iter().enumerate().flat_map(|(rack, times)| times.iter().map(move |&at| (at, rack)));
                let by =
                    all.clone().filter(|pair| pair.0 <= not_before).max_by_key(|&(at, rack)| (at, usize::MAX - rack));
                let (at, rack) = by.or_else(|| all.min()).unwrap();
                let container = self.0[rack].iter().position(|&time| time == at).unwrap();
                self.0[rack][container] = at.max(not_before) + time;
                (at.max(not_before), rack)
            };
            (0..tasks).map(one).collect()
        }
    }

    #[test]
    fn counts_say_what_single_containers_say() {
        for seed in 0..60 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let containers: Vec<u32> = (0..random.random_range(1..4)).map(|_| random.random_range(1..7)).collect();
            let mut room = Room::new(&containers, Timestamp(5));
            let mut plain = Plain(containers.iter().map(|&count| vec![5; count as usize]).collect());
            for _ in 0..30 {
                let rack = random.random_range(0..containers.len());
                let counts: Vec<u32> = (1..=containers[rack]).collect();
                let mut told = vec![];
                room.when(rack, &counts, |at, time| told.push((counts[at], time)));
                let wanted: Vec<_> = counts.iter().map(|&count| (count, plain.when(rack, count))).collect();
                assert_eq!(told, wanted, "seed {seed}");
                if random.random_bool(0.5) {
                    let count = random.random_range(1..=containers[rack]);
                    let start = Timestamp(plain.when(rack, count).0 + random.random_range(0..3));
                    let end = start.plus(Micros(random.random_range(0..9)));
                    let held = RackReservation { rack, start, end, tasks: count, containers: count };
                    room.hold(&held);
                    plain.hold(&held);
                } else {
                    let (tasks, time) = (random.random_range(1..12), random.random_range(1..9));
                    let not_before = random.random_range(0..60);
                    let mut got: Vec<(u64, usize)> = vec![];
                    let all = room.first(tasks, Micros(time), Timestamp(not_before), &Budget::new(0, &mut || false));
                    for held in all.unwrap() {
                        got.extend((0..held.tasks).map(|_| (held.start.0, held.rack)));
                    }
                    let mut wanted = plain.first(tasks, time, not_before);
                    got.sort_unstable();
                    wanted.sort_unstable();
                    assert_eq!(got, wanted, "seed {seed}");
                }
            }
        }
    }
}
