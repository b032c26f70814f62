//! What a run adds up, and the report that it makes of it.

use super::fabric::FabricBytes;
use crate::report::{ClassReport, JobReport, NEVER_FIT_SHOWN, RunReport, TierUse};
use crate::settings::SimSettings;
use hintd_model::units::{Bytes, Micros};

/// Samples that a tier's series holds at most; then neighbours are joined and the step doubles.
const SAMPLES_MAX: usize = 2_000;
/// Below it a job is shuffle-light (004 §3.2.1, in binary units as policies state them).
const LIGHT_BELOW: u64 = 1 << 20;
/// Above it a job is shuffle-heavy.
const HEAVY_ABOVE: u64 = 100 << 20;

/// Counters of one run.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) submitted: u64,
    pub(super) done: u64,
    pub(super) events: u64,
    pub(super) offers: u64,
    pub(super) never_fit: Vec<String>,
    pub(super) never_fit_count: u64,
    first_submit: Option<Micros>,
    last_end: Micros,
    /// By number in the trace; not a number: has not ended.
    jct_s: Vec<f64>,
    classes: [Class; 3],
    pub(super) maps_by_locality: [u64; 3],
    /// Containers' time: maps, reduces that wait, reduces that work.
    pub(super) container: [Micros; 3],
    progress: (f64, u64),
    /// Seconds × racks in congestion.
    pub(super) congested_s: u64,
    pub(super) congestions: u64,
    /// Sum of shares of nodes, and seconds.
    over: (f64, u64),
    tiers: Vec<Series>,
    /// Jobs that ended, where they are reported.
    pub(super) by_job: Vec<JobReport>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Class {
    jobs: u64,
    jct_s: f64,
    first_submit: Option<Micros>,
    last_end: Micros,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            submitted: 0,
            done: 0,
            events: 0,
            offers: 0,
            never_fit: Vec::new(),
            never_fit_count: 0,
            first_submit: None,
            last_end: Micros::ZERO,
            jct_s: Vec::new(),
            classes: [Class::default(); 3],
            maps_by_locality: [0; 3],
            container: [Micros::ZERO; 3],
            progress: (0.0, 0),
            congested_s: 0,
            congestions: 0,
            over: (0.0, 0),
            tiers: Vec::new(),
            by_job: Vec::new(),
        }
    }

    /// A job was submitted that can run.
    pub(super) fn submit(&mut self, at: Micros) {
        self.first_submit.get_or_insert(at);
    }

    /// A job was submitted that never can.
    pub(super) fn never_fits(&mut self, name: &str) {
        self.never_fit_count += 1;
        if self.never_fit.len() < NEVER_FIT_SHOWN {
            self.never_fit.push(name.to_owned());
        }
    }

    /// A job ended, its last task at `end`.
    pub(super) fn end(&mut self, number: u64, shuffle: Bytes, submit: Micros, end: Micros) {
        let jct_s = end.saturating_sub(submit).as_secs_f64();
        let number = number as usize;
        if self.jct_s.len() <= number {
            self.jct_s.resize(number + 1, f64::NAN);
        }
        self.jct_s[number] = jct_s;
        self.done += 1;
        self.last_end = self.last_end.max(end);
        let class = &mut self.classes[class_of(shuffle)];
        class.jobs += 1;
        class.jct_s += jct_s;
        class.first_submit = Some(class.first_submit.map_or(submit, |first| first.min(submit)));
        class.last_end = class.last_end.max(end);
    }

    /// A job launched its first reduce when `share` of its maps were done.
    pub(super) fn first_reduce(&mut self, share: f64) {
        self.progress.0 += share;
        self.progress.1 += 1;
    }

    /// A second passed in which `share` of the nodes were over Eq. 3.3's threshold.
    pub(super) fn over(&mut self, share: f64) {
        self.over.0 += share;
        self.over.1 += 1;
    }

    /// A second passed with that use of a tier: mean and busiest link.
    pub(super) fn tier(&mut self, tier: &str, mean: f64, max: f64) {
        let known = self.tiers.iter().position(|series| series.tier == tier);
        let at = known.unwrap_or_else(|| {
            self.tiers.push(Series::new(tier.to_owned()));
            self.tiers.len() - 1
        });
        self.tiers[at].push(mean, max);
    }

    /// Seconds in which the cluster stood empty.
    pub(super) fn idle(&mut self, seconds: u64) {
        self.over.1 += seconds;
        for tier in &mut self.tiers {
            tier.push_idle(seconds);
        }
    }

    pub(super) fn report(
        self,
        policy: &str,
        settings: &SimSettings,
        bytes: &FabricBytes,
        unfinished: u64,
    ) -> RunReport {
        let makespan_s = self.first_submit.map_or(0.0, |first| self.last_end.saturating_sub(first).as_secs_f64());
        let jct_s: Vec<f64> = self.jct_s.into_iter().filter(|jct| !jct.is_nan()).collect();
        let mut by_job = self.by_job;
        by_job.sort_unstable_by_key(|job| job.number);
        let mut sorted = jct_s.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        RunReport {
            policy: policy.to_owned(),
            hints: None,
            circuits: None,
            by_job,
            rack_bytes: Vec::new(),
            authority: settings.authority,
            seed: settings.seed,
            jobs: self.done,
            never_fit: self.never_fit,
            never_fit_count: self.never_fit_count,
            unfinished,
            makespan_s,
            throughput_jobs_per_hour: per_hour(self.done, makespan_s),
            mean_jct_s: mean(jct_s.iter().sum(), jct_s.len() as u64),
            median_jct_s: median(&sorted),
            p95_jct_s: nearest_rank(&sorted, 95),
            cross_rack_bytes: bytes.cross_rack().0,
            cross_rack_shuffle_bytes: bytes.cross_rack_shuffle.0,
            shuffle_bytes: bytes.shuffle().0,
            maps_by_locality: self.maps_by_locality,
            congested_s: self.congested_s as f64,
            congestions: self.congestions,
            map_progress_at_first_reduce: mean(self.progress.0, self.progress.1),
            nodes_over_traffic_threshold: mean(self.over.0, self.over.1),
            classes: self.classes.map(Class::report),
            container_s: self.container.map(Micros::as_secs_f64),
            tiers: self.tiers.into_iter().map(Series::finish).collect(),
            events: self.events,
            offers: self.offers,
            wall_s: 0.0,
            peak_rss_bytes: 0,
            jct_s,
        }
    }
}

impl Class {
    fn report(self) -> ClassReport {
        let first = self.first_submit.unwrap_or_default();
        ClassReport {
            jobs: self.jobs,
            mean_jct_s: mean(self.jct_s, self.jobs),
            throughput_jobs_per_hour: per_hour(self.jobs, self.last_end.saturating_sub(first).as_secs_f64()),
        }
    }
}

const fn class_of(shuffle: Bytes) -> usize {
    match shuffle.0 {
        0..LIGHT_BELOW => 0,
        LIGHT_BELOW..=HEAVY_ABOVE => 1,
        _ => 2,
    }
}

/// 0 of nothing.
fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn per_hour(jobs: u64, span_s: f64) -> f64 {
    if span_s > 0.0 { jobs as f64 * 3600.0 / span_s } else { 0.0 }
}

/// The middle value, or the mean of the two in the middle; 0 of nothing.
fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The smallest value that `percent` of all do not exceed; 0 of nothing.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    rank.checked_sub(1).map_or(0.0, |at| sorted[at])
}

/// Seconds that are not yet as many as make a sample.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    seconds: u64,
    /// Of their means.
    sum: f64,
    /// Of their maxima.
    max: f64,
}

/// A tier's use over time in a bounded number of samples.
#[derive(Debug)]
struct Series {
    tier: String,
    /// Seconds in a sample.
    step: u64,
    under_way: Sample,
    mean: Vec<f64>,
    max: Vec<f64>,
}

impl Series {
    const fn new(tier: String) -> Self {
        let under_way = Sample { seconds: 0, sum: 0.0, max: 0.0 };
        Self { tier, step: 1, under_way, mean: Vec::new(), max: Vec::new() }
    }

    fn push(&mut self, mean: f64, max: f64) {
        self.under_way.sum += mean;
        self.under_way.max = self.under_way.max.max(max);
        self.pass(1);
    }

    fn push_idle(&mut self, mut seconds: u64) {
        while seconds > 0 {
            let part = seconds.min(self.step - self.under_way.seconds);
            self.pass(part);
            seconds -= part;
        }
    }

    /// Lets seconds pass, no more than the sample under way still needs.
    fn pass(&mut self, seconds: u64) {
        self.under_way.seconds += seconds;
        if self.under_way.seconds < self.step {
            return;
        }
        let Sample { seconds, sum, max } = std::mem::take(&mut self.under_way);
        self.mean.push(sum / seconds as f64);
        self.max.push(max);
        if self.mean.len() == SAMPLES_MAX {
            self.mean = self.mean.chunks(2).map(|pair| pair.iter().sum::<f64>() / 2.0).collect();
            self.max = self.max.chunks(2).map(|pair| pair[0].max(pair[1])).collect();
            self.step *= 2;
        }
    }

    fn finish(mut self) -> TierUse {
        let Sample { seconds, sum, max } = self.under_way;
        if seconds > 0 {
            self.mean.push(sum / seconds as f64);
            self.max.push(max);
        }
        TierUse { tier: self.tier, step_s: self.step as f64, mean: self.mean, max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_mean_and_its_maximum_in_few_samples() {
        let mut series = Series::new("rack".to_owned());
        for second in 0..16_000_u32 {
            series.push(f64::from(second % 4) / 4.0, f64::from(second) / 16_000.0);
        }
        let done = series.finish();
        assert!(done.mean.len() <= SAMPLES_MAX && done.mean.len() == done.max.len());
        assert_eq!(done.step_s * done.mean.len() as f64, 16_000.0);
        let mean = done.mean.iter().sum::<f64>() / done.mean.len() as f64;
        assert!((mean - 0.375).abs() < 1e-9, "{mean}");
        assert_eq!(done.max.last(), Some(&(15_999.0 / 16_000.0)));
    }

    #[test]
    fn idle_time_counts_like_seconds_without_use() {
        let (mut one, mut other) = (Series::new(String::new()), Series::new(String::new()));
        one.push(0.5, 1.0);
        other.push(0.5, 1.0);
        one.push_idle(9_999);
        (0..9_999).for_each(|_| other.push(0.0, 0.0));
        assert_eq!(one.finish(), other.finish());
    }

    #[test]
    fn quantiles_are_those_of_the_definition() {
        assert_eq!((median(&[]), nearest_rank(&[], 95)), (0.0, 0.0));
        assert_eq!((median(&[3.0]), nearest_rank(&[3.0], 95)), (3.0, 3.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(nearest_rank(&hundred, 95), 95.0);
        assert_eq!(nearest_rank(&hundred[..21], 95), 20.0);
    }

    #[test]
    fn classes_part_at_one_and_a_hundred_mebibytes() {
        let classes = [0, (1 << 20) - 1, 1 << 20, 100 << 20, (100 << 20) + 1].map(|bytes| class_of(Bytes(bytes)));
        assert_eq!(classes, [0, 0, 1, 1, 2]);
    }
}
