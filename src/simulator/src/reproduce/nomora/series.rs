//! Synthetic latency between all pairs of machines: 18 generated series, six for each distance, given to pairs as §6 does.
//!
//! The series that the paper had are not to be had. These are fitted to published figures: medians of round trips of 37 to 93 µs in a zone
//! (gogrpcping on GCP, 2024), 270 to 595 µs in a subnet and 455 to 555 µs between zones of AWS and GCP (UNH-CLT, 2023); a 95th percentile of 1.4
//! to 1.5 medians; levels that hold for hours and then shift; a slow swing of 25 minutes; spikes of a minute.

use super::workload::Machines;
use hintd_model::network::latency::Latencies;
use hintd_model::units::{Micros, NodeIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};

/// Series of each distance.
const EACH: usize = 6;

/// Medians, µs: in a rack, in a pod, between pods.
const MEDIANS: [[f64; EACH]; 3] = [
    [40.0, 50.0, 60.0, 70.0, 80.0, 93.0],
    [180.0, 210.0, 240.0, 260.0, 280.0, 300.0],
    [400.0, 440.0, 480.0, 520.0, 560.0, 600.0],
];

/// By the same distances: what a pair's series is multiplied by, drawn (§6).
const COEFFICIENTS: [(f64, f64); 3] = [(0.5, 1.0), (0.8, 1.2), (0.8, 1.2)];

/// ln of the 95th percentile ÷ the median (1.45), in standard deviations of a normal distribution.
const SIGMA: f64 = 0.226;

/// "For the latency values between cores on the same server we use a small constant", µs.
const SAME_HOST: Micros = Micros(5);

/// Seconds that a level holds.
const LEVEL_S: u64 = 2 * 3_600;

/// Seconds of a slow swing.
const SWING_S: f64 = 1_500.0;

/// Latency over time, one value for each tick.
pub(super) struct Series {
    machines: Machines,
    seed: u64,
    tick_s: u64,
    /// By distance and series.
    values: Vec<[Vec<f64>; EACH]>,
}

impl Series {
    pub(super) fn new(machines: Machines, span_s: u64, tick_s: u64, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6c61_7465_6e63_7900);
        let ticks = span_s / tick_s + 2;
        let values = MEDIANS.map(|medians| medians.map(|median| generated(&mut random, median, ticks, tick_s)));
        Self { machines, seed, tick_s, values: values.into() }
    }

    /// As it is measured at a second.
    pub(super) fn at(&self, second: u64) -> AtTick<'_> {
        let ticks = self.values[0][0].len();
        AtTick { series: self, tick: ((second / self.tick_s) as usize).min(ticks - 1) }
    }
}

fn generated(random: &mut ChaCha8Rng, median: f64, ticks: u64, tick_s: u64) -> Vec<f64> {
    let noise = LogNormal::new(0.0, SIGMA).expect("the deviation is positive");
    let phase = random.random_range(0.0..std::f64::consts::TAU);
    let (mut level, mut level_of) = (1.0, u64::MAX);
    (0..ticks)
        .map(|tick| {
            let second = tick * tick_s;
            if second / LEVEL_S != level_of {
                (level, level_of) = (random.random_range(0.9..1.1), second / LEVEL_S);
            }
            let swing = 1.0 + 0.05 * (second as f64 / SWING_S * std::f64::consts::TAU + phase).sin();
            let spike = if random.random_bool(0.01) { 2.0 } else { 1.0 };
            median * level * swing * spike * noise.sample(random)
        })
        .collect()
}

/// Latency at one tick.
pub(super) struct AtTick<'a> {
    series: &'a Series,
    tick: usize,
}

impl Latencies for AtTick<'_> {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        if a == b {
            return SAME_HOST;
        }
        let Series { machines, seed, values, .. } = self.series;
        let distance = machines.distance(a, b);
        let drawn = mixed(seed ^ (u64::from(a.min(b).0) << 32 | u64::from(a.max(b).0)));
        let (least, most) = COEFFICIENTS[distance];
        let coefficient = least + (most - least) * (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        let of_pair = &values[distance][(drawn % EACH as u64) as usize];
        Micros((of_pair[self.tick] * coefficient).round() as u64)
    }
}

/// The finalizer of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_the_published_medians_of_their_distance_and_differ() {
        let machines = Machines { count: 768, per_rack: 12, racks_per_pod: 4 };
        let series = Series::new(machines, 86_400, 60, 3);
        let median = |to: std::ops::Range<u32>, second: u64| {
            let mut found: Vec<u64> = to.map(|to| series.at(second).rtt(NodeIdx(0), NodeIdx(to)).0).collect();
            found.sort_unstable();
            found[found.len() / 2]
        };
        let mut by_distance = [vec![], vec![], vec![]];
        for second in (0..86_400).step_by(1_200) {
            for (at, to) in [1..12, 12..48, 48..768].into_iter().enumerate() {
                by_distance[at].push(median(to, second));
            }
        }
        for (found, (least, most)) in by_distance.iter_mut().zip([(35, 60), (190, 290), (430, 570)]) {
            found.sort_unstable();
            let middle = found[found.len() / 2];
            assert!((least..=most).contains(&middle), "{middle} µs, not {least} to {most}");
        }
        let at = series.at(600);
        assert_eq!(
            (at.rtt(NodeIdx(9), NodeIdx(9)), at.rtt(NodeIdx(9), NodeIdx(70))),
            (SAME_HOST, at.rtt(NodeIdx(70), NodeIdx(9)))
        );
        let again = Series::new(machines, 86_400, 60, 3);
        assert_eq!(again.at(600).rtt(NodeIdx(3), NodeIdx(500)), at.rtt(NodeIdx(3), NodeIdx(500)));
    }
}
