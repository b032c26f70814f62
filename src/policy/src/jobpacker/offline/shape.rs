//! What a job needs: feasible widths (004 §4.2.3.1), its width and latency for sorting (§4.2.3.2).

use super::latency::{Latency, Widths};
use crate::plan::ExpectedJob;
use hintd_model::units::Micros;

/// What a job needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// Pairs to choose from, ascending; none: it is not heavy, and its tasks go anywhere.
    pub(super) pairs: Vec<Widths>,
    /// For sorting: racks for maps and reduces together; of a job that is not heavy its tasks ÷ a rack's containers.
    pub(super) width: f64,
    /// For sorting: the least of Eq. 4.1.
    pub(super) latency: Micros,
}

impl Shape {
    /// Of the job.
    #[must_use]
    pub(super) fn of(latency: &Latency, job: &ExpectedJob) -> Self {
        let pairs = feasible(latency, job);
        let best = pairs.iter().map(|&widths| latency.of(job, widths)).min();
        let widest = pairs.iter().map(|widths| widths.maps + widths.reduces).max();
        let tasks = f64::from(job.maps.0) + f64::from(job.reduces.0);
        Self {
            width: widest.map_or(tasks / f64::from(latency.containers), f64::from),
            latency: best.unwrap_or_else(|| latency.of(job, spread(latency, job))),
            pairs,
        }
    }
}

/// Widths of a job whose tasks go anywhere: as few racks as hold them all, at most all.
fn spread(latency: &Latency, job: &ExpectedJob) -> Widths {
    let racks = |tasks: u32| tasks.div_ceil(latency.containers).clamp(1, latency.racks);
    Widths { maps: racks(job.maps.0), reduces: racks(job.reduces.0) }
}

/// Pairs that ride circuits in as few rounds as at full width. Where there are none, the pair that rides them in the
/// fewest rounds, of such the fastest, unless packets at full width are faster by Eq. 4.1: then none.
fn feasible(latency: &Latency, job: &ExpectedJob) -> Vec<Widths> {
    let most = latency.pairs_max(job);
    if most == 0 {
        return Vec::new();
    }
    let widest = |tasks: u32| tasks.min(latency.racks);
    let riding = |maps: u32| {
        let most = u32::try_from(most / u64::from(maps)).unwrap_or(u32::MAX);
        most.min(widest(job.reduces.0))
    };
    let narrowest = Widths { maps: latency.narrowest(job.maps.0), reduces: latency.narrowest(job.reduces.0) };
    let pairs: Vec<Widths> = (narrowest.maps..=widest(job.maps.0))
        .flat_map(|maps| (narrowest.reduces..=riding(maps)).map(move |reduces| Widths { maps, reduces }))
        .collect();
    if !pairs.is_empty() {
        return pairs;
    }
    let rounds = |widths: Widths| latency.waves(job.maps.0, widths.maps) + latency.waves(job.reduces.0, widths.reduces);
    let circuit = (1..=widest(job.maps.0))
        .filter(|&maps| riding(maps) > 0)
        .map(|maps| Widths { maps, reduces: riding(maps) })
        .min_by_key(|&widths| (rounds(widths), latency.of(job, widths), widths));
    let all = Widths { maps: widest(job.maps.0), reduces: widest(job.reduces.0) };
    circuit.filter(|&widths| latency.of(job, widths) <= latency.of(job, all)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobpacker::offline::latency::ShuffleTerm;
    use crate::plan::{Circuits, Fabric};
    use hintd_model::units::{BitsPerSec, Bytes, Timestamp};

    const GB: u64 = 1_000_000_000;

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
            let shape = Shape::of(&latency, &job);
            assert_eq!(shape.width, f64::from(wanted.iter().map(|pair| pair.maps + pair.reduces).max().unwrap()));
            assert_eq!(shape.pairs, wanted);
        }
    }

    #[test]
    fn a_job_that_can_not_ride_at_full_speed_rides_slower_or_goes_by_packets() {
        // Twenty racks are needed for one round, and two pairs may ride: one or two racks take 20 or 10 rounds.
        let mut latency = paper();
        let slow = job(12_000, 1, Bytes(2_300_000_000));
        assert_eq!(Shape::of(&latency, &slow).pairs, [], "ten rounds cost more than packets");
        latency.fabric.uplink = BitsPerSec(1_000_000);
        assert_eq!(Shape::of(&latency, &slow).pairs, [Widths { maps: 2, reduces: 1 }]);
    }

    #[test]
    fn a_job_below_the_threshold_without_reduces_or_without_a_switch_is_not_heavy() {
        let mut latency = paper();
        assert_eq!(Shape::of(&latency, &job(1200, 600, Bytes(GB))).pairs, []);
        assert_eq!(Shape::of(&latency, &job(1200, 600, Bytes(GB))).width, 3.0);
        assert_eq!(Shape::of(&latency, &job(1200, 0, Bytes(900 * GB))).pairs, []);
        latency.fabric.circuits = None;
        assert_eq!(Shape::of(&latency, &job(1200, 600, Bytes(900 * GB))).pairs, []);
    }
}
