//! Which widths and which racks end a job first (004 §4.2.3.2).
//!
//! For one pair of widths the greedy choice is exact: maps go to the racks where they would end first, and as reduces
//! begin only when every map has ended, no choice of map racks keeps containers from them. So the reduces' racks are
//! chosen against the times before the maps were placed. Brute force over all racks says so in the tests.

use super::latency::{Latency, Widths};
use super::room::{RackReservation, Room};
use super::shape::Pairs;
use super::{Halt, spend};
use crate::Budget;
use crate::plan::ExpectedJob;
use hintd_model::units::{Micros, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Racks times shares that are looked at for one job, at most: 96 MiB for either stage.
const CELLS_MAX: usize = 1 << 22;

/// A job's racks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    /// How many.
    pub(super) widths: Widths,
    /// No later it ends, every rack having the largest share.
    pub(super) end: Timestamp,
    /// Maps, and after the shuffle reduces, in racks in which they end first.
    pub(super) maps: Vec<RackReservation>,
    /// Time of the shuffle.
    pub(super) shuffle: Micros,
    /// Reduces.
    pub(super) reduces: Vec<RackReservation>,
}

/// A rack for a share of a stage: when its containers are free, and how long it takes.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    rack: usize,
    free: Timestamp,
    takes: Micros,
}

impl Candidate {
    fn end(&self, not_before: Timestamp) -> Timestamp {
        self.free.max(not_before).plus(self.takes)
    }

    /// First ends first; of those that end together the one that idles least before.
    fn key(&self, not_before: Timestamp) -> (Timestamp, Reverse<Timestamp>, usize) {
        (self.end(not_before), Reverse(self.free), self.rack)
    }
}

/// What one stage asks of racks.
struct Asked {
    tasks: u32,
    time: Micros,
    /// Containers held for a task, ≥ 1 (over-provisioning).
    each: f64,
}

impl Asked {
    /// Containers to hold for so many tasks in a rack of so many.
    fn containers(&self, tasks: u32, rack: u32) -> u32 {
        // A share such as 1.1 of 10 tasks is a hair above 11 in binary.
        let wanted = (f64::from(tasks) * self.each - 1e-9).ceil().max(1.0);
        if wanted >= f64::from(rack) { rack } else { wanted as u32 }
    }

    fn takes(&self, tasks: u32, rack: u32) -> Micros {
        Micros(self.time.0.saturating_mul(u64::from(tasks.div_ceil(rack.max(1)))))
    }

    /// Candidates by share, for each width's share.
    fn candidates(
        &self,
        room: &Room,
        widths: impl Iterator<Item = u32>,
        budget: &Budget<'_>,
    ) -> Result<BTreeMap<u32, Vec<Candidate>>, Halt> {
        let (mut by_share, mut before) = (BTreeMap::new(), 0);
        for width in widths {
            spend(budget, 1)?;
            if width != before {
                by_share.insert(self.tasks.div_ceil(width.max(1)), Vec::new());
                before = width;
            }
        }
        let shares: Vec<u32> = by_share.keys().copied().collect();
        if shares.len().saturating_mul(room.racks()) > CELLS_MAX {
            return Err(Halt::TooLarge("racks times shares of one job", CELLS_MAX));
        }
        for rack in (0..room.racks()).filter(|&rack| room.containers(rack) > 0) {
            spend(budget, 4 * (shares.len() + room.moments(rack)))?;
            let has = room.containers(rack);
            let counts: Vec<u32> = shares.iter().map(|&share| self.containers(share, has)).collect();
            room.when(rack, &counts, |at, free| {
                let takes = self.takes(shares[at], has);
                by_share.get_mut(&shares[at]).expect("it is one of the shares").push(Candidate { rack, free, takes });
            });
        }
        Ok(by_share)
    }

    /// Each rack's part, the larger shares first.
    fn held(&self, room: &Room, racks: &[Candidate], not_before: Timestamp) -> Vec<RackReservation> {
        let width = racks.len() as u32;
        let share = self.tasks.div_ceil(width);
        let full = self.tasks - (share - 1) * width;
        let part = |(at, candidate): (usize, &Candidate)| {
            let tasks = if (at as u32) < full { share } else { share - 1 };
            let has = room.containers(candidate.rack);
            let start = candidate.free.max(not_before);
            let end = start.plus(self.takes(tasks, has));
            RackReservation { rack: candidate.rack, start, end, tasks, containers: self.containers(tasks, has) }
        };
        racks.iter().enumerate().map(part).filter(|held| held.tasks > 0).collect()
    }
}

/// The pair and racks by which the job ends first, of equal ones the fewest racks. `spare`: containers beyond the
/// tasks, as a share of them. `None` without pairs.
pub(super) fn earliest(
    room: &Room,
    latency: &Latency,
    job: &ExpectedJob,
    pairs: &Pairs,
    how: (f64, &Budget<'_>),
) -> Result<Option<Chosen>, Halt> {
    earliest_of(room, latency, job, pairs.iter(), how)
}

fn earliest_of(
    room: &Room,
    latency: &Latency,
    job: &ExpectedJob,
    pairs: impl Iterator<Item = Widths> + Clone,
    (spare, budget): (f64, &Budget<'_>),
) -> Result<Option<Chosen>, Halt> {
    let maps = Asked { tasks: job.maps.0, time: job.maps.1, each: 1.0 + spare };
    let reduces = Asked { tasks: job.reduces.0, time: job.reduces.1, each: 1.0 + spare };
    let mut map_racks = maps.candidates(room, pairs.clone().map(|pair| pair.maps), budget)?;
    spend(budget, 8 * map_racks.values().map(Vec::len).sum::<usize>())?;
    map_racks.values_mut().for_each(|racks| racks.sort_unstable_by_key(|rack| rack.key(job.arrival)));
    let reduce_racks = reduces.candidates(room, pairs.clone().map(|pair| pair.reduces), budget)?;
    let mut best: Option<(Timestamp, u32, Widths)> = None;
    let mut ends: Vec<Timestamp> = Vec::new();
    for widths in pairs {
        spend(budget, 4)?;
        let racks = &map_racks[&maps.tasks.div_ceil(widths.maps)];
        let Some(last) = racks.get(widths.maps as usize - 1) else { continue };
        let ready = last.end(job.arrival).plus(latency.shuffle(job, widths));
        let racks = &reduce_racks[&reduces.tasks.div_ceil(widths.reduces)];
        spend(budget, 2 * racks.len())?;
        let least = racks.iter().map(|rack| rack.takes).min().unwrap_or_default();
        let worth =
            |end: Timestamp| best.is_none_or(|(best, racks, _)| (end, widths.maps + widths.reduces) < (best, racks));
        if racks.len() < widths.reduces as usize || !worth(ready.plus(least)) {
            continue;
        }
        ends.clear();
        ends.extend(racks.iter().map(|rack| rack.end(ready)));
        let end = *ends.select_nth_unstable(widths.reduces as usize - 1).1;
        if worth(end) {
            best = Some((end, widths.maps + widths.reduces, widths));
        }
    }
    let Some((end, _, widths)) = best else { return Ok(None) };
    let shuffle = latency.shuffle(job, widths);
    let racks = &map_racks[&maps.tasks.div_ceil(widths.maps)][..widths.maps as usize];
    let held_maps = maps.held(room, racks, job.arrival);
    let ready = held_maps.iter().map(|held| held.end).max().unwrap_or(job.arrival).plus(shuffle);
    let mut racks = reduce_racks[&reduces.tasks.div_ceil(widths.reduces)].clone();
    // Of racks that end together first those that run its maps: what they keep does not cross.
    let runs_no_map = |rack: usize| held_maps.iter().all(|held| held.rack != rack);
    racks.sort_unstable_by_key(|rack| {
        let (end, free, at) = rack.key(ready);
        (end, runs_no_map(rack.rack), free, at)
    });
    racks.truncate(widths.reduces as usize);
    let reduces = reduces.held(room, &racks, ready);
    Ok(Some(Chosen { widths, end, maps: held_maps, shuffle, reduces }))
}

/// `corral`: maps and reduces on one set of racks, which have room for the larger of both when the job starts. The
/// width by which it ends first, of equal ones the fewest racks. `None` only without racks.
pub(super) fn earliest_together(
    room: &Room,
    latency: &Latency,
    job: &ExpectedJob,
    (spare, budget): (f64, &Budget<'_>),
) -> Result<Option<Chosen>, Halt> {
    let maps = Asked { tasks: job.maps.0, time: job.maps.1, each: 1.0 + spare };
    let reduces = Asked { tasks: job.reduces.0, time: job.reduces.1, each: 1.0 + spare };
    let widest = latency.racks.min(job.maps.0.max(job.reduces.0));
    let larger = Asked { tasks: job.maps.0.max(job.reduces.0), ..maps };
    let mut by_share = larger.candidates(room, 1..=widest, budget)?;
    spend(budget, 8 * by_share.values().map(Vec::len).sum::<usize>())?;
    by_share.values_mut().for_each(|racks| {
        racks.sort_unstable_by_key(|rack| (rack.free.max(job.arrival), Reverse(rack.free), rack.rack))
    });
    let choose = |width: u32| {
        let racks = by_share[&larger.tasks.div_ceil(width)].get(..width as usize)?;
        let held_maps = maps.held(room, racks, job.arrival);
        let widths = Widths { maps: width, reduces: width };
        let shuffle = latency.shuffle(job, widths);
        let ready = held_maps.iter().map(|held| held.end).max().unwrap_or(job.arrival).plus(shuffle);
        let reduces = if reduces.tasks > 0 { reduces.held(room, racks, ready) } else { Vec::new() };
        let end = reduces.iter().chain(&held_maps).map(|held| held.end).max().unwrap_or(ready);
        Some(Chosen { widths, end, maps: held_maps, shuffle, reduces })
    };
    let mut best: Option<Chosen> = None;
    for width in 1..=widest {
        spend(budget, 8 * width as usize)?;
        let found = choose(width);
        if found.as_ref().is_some_and(|found| best.as_ref().is_none_or(|best| key(found) < key(best))) {
            best = found;
        }
    }
    Ok(best)
}

fn key(chosen: &Chosen) -> (Timestamp, Widths) {
    (chosen.end, chosen.widths)
}

#[cfg(test)]
mod tests {
    use super::super::latency::ShuffleTerm;
    use super::*;
    use crate::plan::{Circuits, Fabric};
    use hintd_model::units::{BitsPerSec, Bytes};
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand::rngs::ChaCha8Rng;

    fn chosen_of(room: &Room, latency: &Latency, job: &ExpectedJob, pairs: &[Widths], spare: f64) -> Option<Chosen> {
        earliest_of(room, latency, job, pairs.iter().copied(), (spare, &Budget::new(0, &mut || false))).unwrap()
    }

    struct Case {
        room: Room,
        latency: Latency,
        job: ExpectedJob,
        pairs: Vec<Widths>,
    }

    fn case(seed: u64) -> Case {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let racks = random.random_range(1..5_u32);
        let alike = random.random_bool(0.5);
        let first = random.random_range(1..5);
        let containers: Vec<u32> = (0..racks).map(|_| if alike { first } else { random.random_range(1..5) }).collect();
        let mut room = Room::new(&containers, Timestamp(0));
        for _ in 0..random.random_range(0..6) {
            let (tasks, time) = (random.random_range(1..9), Micros(random.random_range(0..20)));
            room.first(tasks, time, Timestamp(random.random_range(0..10)), &Budget::new(0, &mut || false)).unwrap();
        }
        let circuits = Some(Circuits {
            rate: BitsPerSec(8_000_000),
            elephant: Bytes(random.random_range(1..10)),
            interval: Micros::ZERO,
        });
        let fabric = Fabric { uplink: BitsPerSec(4_000_000), circuits, nodes: None };
        let job = ExpectedJob {
            key: "j".into(),
            run: 0,
            arrival: Timestamp(random.random_range(0..30)),
            input: Bytes(0),
            maps: (random.random_range(1..12), Micros(random.random_range(0..9))),
            reduces: (random.random_range(1..8), Micros(random.random_range(0..9))),
            shuffle: Bytes(random.random_range(0..60)),
        };
        let widths = |tasks: u32| 1..=tasks.min(racks);
        let all =
            widths(job.maps.0).flat_map(|maps| widths(job.reduces.0).map(move |reduces| Widths { maps, reduces }));
        let pairs = all.filter(|_| random.random_bool(0.7)).collect();
        Case {
            room,
            latency: Latency {
                racks,
                containers: first,
                fabric,
                term: ShuffleTerm::ByWidth,
                round: Micros(random.random_range(0..3)),
            },
            job,
            pairs,
        }
    }

    /// Sets of racks, as bits.
    fn sets(racks: usize, width: u32) -> impl Iterator<Item = u32> {
        (0..1_u32 << racks).filter(move |set| set.count_ones() == width)
    }

    /// Every pair, every set of racks for maps and for reduces; the maps' containers held before the reduces ask.
    fn brute(case: &Case, spare: f64) -> Option<Timestamp> {
        let Case { room, latency, job, pairs } = case;
        let mut best = None;
        for &widths in pairs {
            let share = |tasks: u32, width: u32| tasks.div_ceil(width);
            let part = |room: &Room, rack: usize, tasks: u32, time: Micros, not_before: Timestamp| {
                let has = room.containers(rack);
                let containers = has.min((f64::from(tasks) * (1.0 + spare) - 1e-9).ceil() as u32);
                let mut free = Timestamp(u64::MAX);
                room.when(rack, &[containers], |_, at| free = at);
                let start = free.max(not_before);
                let rounds = u64::from(tasks.div_ceil(has));
                RackReservation { rack, start, end: start.plus(Micros(time.0 * rounds)), tasks, containers }
            };
            for map_set in sets(room.racks(), widths.maps) {
                let mut after = room.clone();
                let mut ready = job.arrival;
                for rack in (0..room.racks()).filter(|rack| map_set >> rack & 1 == 1) {
                    let held = part(&after, rack, share(job.maps.0, widths.maps), job.maps.1, job.arrival);
                    after.hold(&held);
                    ready = ready.max(held.end);
                }
                let ready = ready.plus(latency.shuffle(job, widths));
                for set in sets(room.racks(), widths.reduces) {
                    let racks = (0..room.racks()).filter(|rack| set >> rack & 1 == 1);
                    let end = racks
                        .map(|rack| part(&after, rack, share(job.reduces.0, widths.reduces), job.reduces.1, ready).end);
                    let end = end.max().unwrap();
                    best = Some(best.map_or(end, |best: Timestamp| best.min(end)));
                }
            }
        }
        best
    }

    #[test]
    fn reduces_go_to_racks_that_run_maps_where_that_ends_no_later() {
        let Case { latency, mut job, .. } = case(1);
        (job.maps.0, job.reduces.0) = (4, 4);
        let mut room = Room::new(&[4; 4], Timestamp(0));
        // The first two are taken so long that maps go to the others.
        for rack in [0, 1] {
            room.hold(&RackReservation {
                rack,
                start: Timestamp(0),
                end: job.arrival.plus(Micros(1)),
                tasks: 4,
                containers: 4,
            });
        }
        job.maps.1 = Micros(5);
        let two = [Widths { maps: 2, reduces: 2 }];
        let chosen = chosen_of(&room, &Latency { racks: 4, containers: 4, ..latency }, &job, &two, 0.0).unwrap();
        let racks =
            |held: &[RackReservation]| held.iter().map(|held| held.rack).collect::<std::collections::BTreeSet<_>>();
        assert_eq!((racks(&chosen.maps), racks(&chosen.reduces)), ([2, 3].into(), [2, 3].into()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_pair_and_no_racks_end_a_job_earlier(seed: u64, spare in prop::sample::select(vec![0.0, 0.5, 1.0])) {
            let case = case(seed);
            let chosen = chosen_of(&case.room, &case.latency, &case.job, &case.pairs, spare);
            prop_assert_eq!(chosen.as_ref().map(|chosen| chosen.end), brute(&case, spare));
            let Some(chosen) = chosen else { return Ok(()) };
            let last = chosen.reduces.iter().map(|held| held.end).max().unwrap();
            prop_assert!(last <= chosen.end, "what is held ends as was promised");
            prop_assert_eq!(chosen.maps.iter().map(|held| held.tasks).sum::<u32>(), case.job.maps.0);
            prop_assert_eq!(chosen.reduces.iter().map(|held| held.tasks).sum::<u32>(), case.job.reduces.0);
            // What is held is free: else this panics.
            let mut room = case.room.clone();
            chosen.maps.iter().chain(&chosen.reduces).for_each(|held| room.hold(held));
        }

        #[test]
        fn corral_keeps_both_stages_in_one_set_of_racks(seed: u64) {
            let mut case = case(seed);
            case.latency.fabric.circuits = None;
            let chosen = earliest_together(&case.room, &case.latency, &case.job, (0.0, &Budget::new(0, &mut || false)));
            let chosen = chosen.unwrap().unwrap();
            let racks = |held: &[RackReservation]| held.iter().map(|held| held.rack).collect::<std::collections::BTreeSet<_>>();
            let (maps, reduces) = (racks(&chosen.maps), racks(&chosen.reduces));
            prop_assert!(maps.is_subset(&reduces) || reduces.is_subset(&maps));
            prop_assert!(maps.len().max(reduces.len()) <= chosen.widths.maps as usize);
            let mut room = case.room.clone();
            chosen.maps.iter().chain(&chosen.reduces).for_each(|held| room.hold(held));
        }
    }
}
