//! What a job needs: feasible widths (004 §4.2.3.1), its width and latency for sorting (§4.2.3.2).

use super::latency::{Latency, Widths};
use super::{Halt, spend};
use crate::Budget;
use crate::plan::ExpectedJob;
use hintd_model::units::Micros;
use std::ops::RangeInclusive;

/// What a job needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// Pairs to choose from; none: it is not heavy, and its tasks go anywhere.
    pub(super) pairs: Pairs,
    /// For sorting: racks for maps and reduces together; of a job that is not heavy its tasks ÷ a rack's containers.
    pub(super) width: f64,
    /// For sorting: the least of Eq. 4.1.
    pub(super) latency: Micros,
}

/// Pairs of widths, not written out: there may be as many as pairs of racks, for every job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pairs {
    /// Maps, from the fewest racks to the most; none where there are no pairs.
    maps: RangeInclusive<u32>,
    /// The fewest racks of reduces, and the most, whatever rides.
    reduces: (u32, u32),
    /// The largest product of both that rides circuits.
    most: u64,
}

impl Pairs {
    /// None at all.
    #[must_use]
    pub(super) const fn none() -> Self {
        Self { maps: RangeInclusive::new(1, 0), reduces: (1, 0), most: 0 }
    }

    const fn one(widths: Widths) -> Self {
        let most = widths.maps as u64 * widths.reduces as u64;
        Self { maps: RangeInclusive::new(widths.maps, widths.maps), reduces: (widths.reduces, widths.reduces), most }
    }

    /// Ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Widths> + Clone + '_ {
        self.maps.clone().take_while(|maps| u64::from(*maps) <= self.most).flat_map(|maps| {
            let most = u32::try_from(self.most / u64::from(maps.max(1))).unwrap_or(u32::MAX);
            (self.reduces.0..=most.min(self.reduces.1)).map(move |reduces| Widths { maps, reduces })
        })
    }
}

impl Shape {
    /// Of the job.
    pub(super) fn of(latency: &Latency, job: &ExpectedJob, budget: &Budget<'_>) -> Result<Self, Halt> {
        let pairs = feasible(latency, job, budget)?;
        let (mut best, mut widest): (Option<Micros>, Option<u32>) = (None, None);
        for widths in pairs.iter() {
            spend(budget, 4)?;
            let takes = latency.of(job, widths);
            best = Some(best.map_or(takes, |best| best.min(takes)));
            widest = widest.max(Some(widths.maps + widths.reduces));
        }
        let tasks = f64::from(job.maps.0) + f64::from(job.reduces.0);
        Ok(Self {
            width: widest.map_or(tasks / f64::from(latency.containers), f64::from),
            latency: best.unwrap_or_else(|| latency.of(job, spread(latency, job))),
            pairs,
        })
    }
}

/// Widths of a job whose tasks go anywhere: as few racks as hold them all, at most all.
fn spread(latency: &Latency, job: &ExpectedJob) -> Widths {
    let racks = |tasks: u32| tasks.div_ceil(latency.containers).clamp(1, latency.racks);
    Widths { maps: racks(job.maps.0), reduces: racks(job.reduces.0) }
}

/// Pairs that ride circuits in as few rounds as at full width. Where there are none, the pair that rides them in the
/// fewest rounds, of such the fastest, unless packets at full width are faster by Eq. 4.1: then none.
fn feasible(latency: &Latency, job: &ExpectedJob, budget: &Budget<'_>) -> Result<Pairs, Halt> {
    let most = latency.pairs_max(job);
    if most == 0 {
        return Ok(Pairs::none());
    }
    let widest = |tasks: u32| tasks.min(latency.racks);
    let riding = |maps: u32| {
        let most = u32::try_from(most / u64::from(maps)).unwrap_or(u32::MAX);
        most.min(widest(job.reduces.0))
    };
    let narrowest = Widths { maps: latency.narrowest(job.maps.0), reduces: latency.narrowest(job.reduces.0) };
    let reduces = (narrowest.reduces, widest(job.reduces.0));
    let pairs = Pairs { maps: narrowest.maps..=widest(job.maps.0), reduces, most };
    if pairs.iter().next().is_some() {
        return Ok(pairs);
    }
    spend(budget, 4 * widest(job.maps.0) as usize)?;
    let rounds = |widths: Widths| latency.waves(job.maps.0, widths.maps) + latency.waves(job.reduces.0, widths.reduces);
    let circuit = (1..=widest(job.maps.0))
        .filter(|&maps| riding(maps) > 0)
        .map(|maps| Widths { maps, reduces: riding(maps) })
        .min_by_key(|&widths| (rounds(widths), latency.of(job, widths), widths));
    let all = Widths { maps: widest(job.maps.0), reduces: widest(job.reduces.0) };
    let circuit = circuit.filter(|&widths| latency.of(job, widths) <= latency.of(job, all));
    Ok(circuit.map_or(Pairs::none(), Pairs::one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobpacker::offline::latency::ShuffleTerm;
    use crate::plan::{Circuits, Fabric};
    use hintd_model::units::{BitsPerSec, Bytes, Timestamp};

    const GB: u64 = 1_000_000_000;

    fn shape(latency: &Latency, job: &ExpectedJob) -> Shape {
        Shape::of(latency, job, &Budget::new(0, &mut || false)).unwrap()
    }

    fn pairs(latency: &Latency, job: &ExpectedJob) -> Vec<Widths> {
        shape(latency, job).pairs.iter().collect()
    }

    /// 20 racks of 30 × 20 containers as in 004 §4.3.1.
    fn paper() -> Latency {
        let circuits = Some(Circuits::new(BitsPerSec(100 * GB), Micros::from_millis(10)));
        let fabric = Fabric { uplink: BitsPerSec(30 * GB), circuits, nodes: None };
        Latency { racks: 20, containers: 600, fabric, term: ShuffleTerm::ByWidth, round: Micros::ZERO }
    }

    fn job(maps: u32, reduces: u32, shuffle: Bytes) -> ExpectedJob {
        let time = Micros::from_secs(5);
        let (maps, reduces) = ((maps, time), (reduces, time));
        let (arrival, input) = (Timestamp(0), Bytes(0));
        ExpectedJob { key: "j".into(), run: 0, arrival, input, maps, reduces, shuffle }
    }

    #[test]
    fn the_elephant_threshold_of_the_paper_is_nine_reconfigurations() {
        assert_eq!(paper().fabric.circuits.unwrap().elephant, Bytes(1_125_000_000));
    }

    #[test]
    fn feasible_pairs_are_those_that_ride_in_as_few_rounds_as_all_racks_by_brute_force() {
        let latency = paper();
        for (maps, reduces, gigabytes) in [(100, 5, 8), (1300, 40, 20), (3000, 700, 40), (11_000, 3, 60), (2, 1, 2)] {
            let job = job(maps, reduces, Bytes(gigabytes * GB));
            let pairs = (1..=20).flat_map(|maps| (1..=20).map(move |reduces| Widths { maps, reduces }));
            let wanted: Vec<Widths> = pairs
                .filter(|widths| widths.maps <= maps && widths.reduces <= reduces && latency.rides(&job, *widths))
                .filter(|widths| latency.waves(maps, widths.maps) == latency.waves(maps, 20))
                .filter(|widths| latency.waves(reduces, widths.reduces) == latency.waves(reduces, 20))
                .collect();
            assert!(!wanted.is_empty(), "the case has pairs");
            let shape = shape(&latency, &job);
            assert_eq!(shape.width, f64::from(wanted.iter().map(|pair| pair.maps + pair.reduces).max().unwrap()));
            assert_eq!(shape.pairs.iter().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn a_job_that_can_not_ride_at_full_speed_rides_slower_or_goes_by_packets() {
        // Twenty racks are needed for one round, and two pairs may ride: one or two racks take 20 or 10 rounds.
        let mut latency = paper();
        let slow = job(12_000, 1, Bytes(2_300_000_000));
        assert_eq!(pairs(&latency, &slow), [], "ten rounds cost more than packets");
        latency.fabric.uplink = BitsPerSec(1_000_000);
        assert_eq!(pairs(&latency, &slow), [Widths { maps: 2, reduces: 1 }]);
    }

    #[test]
    fn a_job_below_the_threshold_without_reduces_or_without_a_switch_is_not_heavy() {
        let mut latency = paper();
        assert_eq!(pairs(&latency, &job(1200, 600, Bytes(GB))), []);
        assert_eq!(shape(&latency, &job(1200, 600, Bytes(GB))).width, 3.0);
        assert_eq!(pairs(&latency, &job(1200, 0, Bytes(900 * GB))), []);
        latency.fabric.circuits = None;
        assert_eq!(pairs(&latency, &job(1200, 600, Bytes(900 * GB))), []);
    }
}
