//! Jobs of §6: arrivals and run times of the Google cluster's trace of 2011 where it is there, else generated after it; tasks and curves
//! are drawn, for the trace that is to be had has neither.

use crate::reproduce::Scale;
use crate::trace::maybe_gzip;
use hintd_model::units::{NodeIdx, RackIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::OnceLock;

/// In the data's folder.
const TRACE: &str = "google2011/google2011_jobs_days1-21.csv.gz";

/// The trace's window begins so late; what was submitted before runs already.
const BEGIN_MS: u64 = 600_000;

/// Machines of the trace's cluster (§6).
const CELL: u32 = 12_500;

/// Of all jobs, those with several tasks (Reiss et al., *Heterogeneity and Dynamicity of Clouds at Scale*, 2012: some three quarters have one). §6 drops
/// the others.
const SEVERAL: f64 = 0.25;

/// Tasks of a job with several: log-normal of this median and deviation has the mean of the trace's 47 million tasks of 672,075
/// jobs, 70 a job, 280 of one with several.
const MEDIAN: f64 = 40.0;
const SIGMA: f64 = 1.97;

/// Of all slots, what jobs would have at their peak if none had to wait.
const LOAD: f64 = 0.8;

/// Machines in racks and pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machines {
    pub(super) count: u32,
    pub(super) per_rack: u32,
    pub(super) racks_per_pod: u32,
}

impl Machines {
    /// 12,500 in racks of 48 and pods of 16 racks (§6); a quick run has a 16th, in pods of a 16th, as many as the paper's.
    pub(super) const fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { count: 768, per_rack: 12, racks_per_pod: 4 },
            Scale::Full => Self { count: CELL, per_rack: 48, racks_per_pod: 16 },
        }
    }

    pub(super) const fn rack(&self, machine: u32) -> RackIdx {
        RackIdx(machine / self.per_rack)
    }

    /// 0: in a rack, 1: in a pod, 2: between pods.
    pub(super) const fn distance(&self, a: NodeIdx, b: NodeIdx) -> usize {
        let pod = self.per_rack * self.racks_per_pod;
        if a.0 / self.per_rack == b.0 / self.per_rack {
            0
        } else if a.0 / pod == b.0 / pod {
            1
        } else {
            2
        }
    }
}

/// Seconds that a run lasts, and between two looks at performance, or at what could move.
pub(super) const fn times(scale: Scale) -> (u64, u64) {
    match scale {
        Scale::Quick => (2 * 3_600, 300),
        Scale::Full => (24 * 3_600, 60),
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    /// Seconds from the beginning.
    pub(super) arrives_s: u64,
    /// Seconds that each task runs.
    pub(super) runs_s: u64,
    /// At least 2: the root and others.
    pub(super) tasks: u32,
    pub(super) curve: &'static str,
}

/// Jobs and slots of a machine.
pub(super) struct Workload {
    pub(super) jobs: Vec<Job>,
    pub(super) slots: u32,
}

/// A row of the trace, seconds from the window's beginning.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    arrives_s: u64,
    /// `None`: it outlives the trace.
    runs_s: Option<u64>,
}

struct Arrivals {
    rows: Vec<Arrival>,
    source: &'static str,
}

/// One day, the cell's.
fn day() -> &'static Arrivals {
    static DAY: OnceLock<Arrivals> = OnceLock::new();
    DAY.get_or_init(|| match real_day() {
        Some(rows) => {
            Arrivals { rows, source: "Google clusterdata-2011-2, first day, arrivals and run times as they were" }
        }
        None => Arrivals {
            rows: generated_day(),
            source: "GENERATED after the first day of Google clusterdata-2011-2, which is not there: HINTD_DATA names the folder of google2011/",
        },
    })
}

/// Where arrivals come from.
pub(super) fn source() -> &'static str {
    day().source
}

fn real_day() -> Option<Vec<Arrival>> {
    let data = std::env::var_os("HINTD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let reader = maybe_gzip(BufReader::new(File::open(data.join(TRACE)).ok()?)).ok()?;
    let mut rows = Vec::new();
    for line in reader.lines().skip(1) {
        let line = line.ok()?;
        // job_id, submit_ms, schedule_ms, end_ms, …
        let mut fields = line.split(',').skip(1).map(|field| field.parse::<u64>().ok());
        let (submit, schedule, end) = (fields.next()??, fields.next()?, fields.next()?);
        let begins = schedule.unwrap_or(submit).max(BEGIN_MS);
        if submit >= BEGIN_MS + 86_400_000 || end.is_some_and(|end| end <= begins) {
            continue;
        }
        let runs_s = end.map(|end| (end - begins).div_ceil(1_000));
        rows.push(Arrival { arrives_s: submit.saturating_sub(BEGIN_MS) / 1_000, runs_s });
    }
    Some(rows)
}

/// After the trace's statistics: 19,751 jobs arrive in the day, run times have a median of 177 s and a 90th percentile of 1,699 s; some 2,000 run
/// at the beginning, half of them for the whole day.
fn generated_day() -> Vec<Arrival> {
    let mut random = ChaCha8Rng::seed_from_u64(2011);
    let runs = LogNormal::new(177_f64.ln(), 1.765).expect("the deviation is positive");
    let mut rows: Vec<Arrival> = (0..2_000)
        .map(|_| Arrival { arrives_s: 0, runs_s: random.random_bool(0.5).then(|| random.random_range(60..20_000)) })
        .collect();
    rows.extend((0..19_751).map(|_| {
        let runs_s = Some((runs.sample(&mut random) as u64).max(1));
        Arrival { arrives_s: random.random_range(0..86_400), runs_s }
    }));
    rows
}

/// The jobs of a run of so many seconds, as they come, and slots for them.
pub(super) fn workload(scale: Scale, seed: u64, span_s: u64) -> Workload {
    let machines = Machines::of(scale);
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6a6f_6273);
    // A quick run's racks and jobs are a quarter as large, and it has a quarter of the jobs.
    let (share, smaller) = match scale {
        Scale::Quick => (4.0 * f64::from(machines.count) / f64::from(CELL), 4.0),
        Scale::Full => (1.0, 1.0),
    };
    let sizes = LogNormal::new((MEDIAN / smaller).ln(), SIGMA).expect("the deviation is positive");
    let most = machines.count / 4;
    let mut jobs: Vec<Job> = Vec::new();
    for row in day().rows.iter().filter(|row| row.arrives_s < span_s) {
        if !random.random_bool(share * SEVERAL) {
            continue;
        }
        let tasks = (sizes.sample(&mut random).round() as u32).clamp(2, most);
        // §6: half of the jobs, a quarter, a quarter; none of Spark's.
        let curve = ["memcached", "memcached", "strads", "tensorflow"][random.random_range(0..4)];
        let runs_s = row.runs_s.unwrap_or(2 * span_s);
        jobs.push(Job { arrives_s: row.arrives_s, runs_s, tasks, curve });
    }
    jobs.sort_by_key(|job| job.arrives_s);
    let slots = (peak(&jobs) as f64 / (f64::from(machines.count) * LOAD)).ceil().max(1.0) as u32;
    Workload { jobs, slots }
}

/// The most tasks at a time if none waits.
fn peak(jobs: &[Job]) -> i64 {
    let begins = jobs.iter().map(|job| (job.arrives_s, i64::from(job.tasks)));
    let ends = jobs.iter().map(|job| (job.arrives_s + job.runs_s, -i64::from(job.tasks)));
    let mut changes: Vec<(u64, i64)> = begins.chain(ends).collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most
}

/// What a report says of it.
pub(super) fn described(scale: Scale) -> Vec<(&'static str, String)> {
    let Machines { count, per_rack, racks_per_pod } = Machines::of(scale);
    let (span_s, tick_s) = times(scale);
    vec![
        ("cluster", format!("{count} machines in racks of {per_rack} and pods of {racks_per_pod} racks (§6: 12,500, 48, 16); as many slots each that jobs would take {} % of all at their peak if none waited (assumed)", LOAD * 100.0)),
        ("jobs", format!("{}; {} h, {}; one in four has several tasks, the others are left out (§6), tasks drawn from a log-normal distribution with the whole trace's mean, median {MEDIAN}, σ {SIGMA}, from 2 to a quarter of the machines, at quick scale a quarter of that, since the trace to be had has no tasks (assumed); curves drawn, 50 % memcached, 25 % STRADS, 25 % TensorFlow (§6)", source(), span_s / 3_600, match scale { Scale::Quick => "a quarter of the jobs", Scale::Full => "all jobs" })),
        ("latency", format!("SYNTHETIC: 18 generated series, six for each distance, fitted to published round trips (medians 40-93, 180-300, 400-600 µs), given to pairs and scaled as §6; same host 5 µs; a value for every {tick_s} s (§6: 1 s)")),
        ("rounds", format!("one each second in which tasks came or went, and where tasks may move one every {tick_s} s; a root is placed a round before the others, which follow at once; random and spread are flows of the same solver, of a fixed cost and of as many as there are tasks on a machine, and place root and others in one round; a moved task loses no work, and one that loses its slot waits and then runs what was left, as the paper's free migration has it (assumed); in rows of tasks that begin anew both lose what they have done and run their whole time again, and of a job's performance the share of its tasks' time that was lost is taken off; starting a task takes no time (assumed)")),
        ("performance", "of a job: mean over its tasks of p(latency to its root), at its placement and at each value of the latency; by 1, the most it could be on one host; over its run; area: mean over jobs (§6.1)".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_jobs_of_two_tasks_or_more_and_slots_for_them() {
        for seed in [1, 2] {
            let Workload { jobs, slots } = workload(Scale::Quick, seed, 7_200);
            assert!(jobs.len() > 100 && jobs.iter().all(|job| job.tasks >= 2), "{} jobs", jobs.len());
            let share = peak(&jobs) as f64 / f64::from(768 * slots);
            assert!((0.4..=LOAD).contains(&share), "{share} of {slots} slots");
            assert!(jobs.windows(2).all(|pair| pair[0].arrives_s <= pair[1].arrives_s));
        }
        assert_ne!(workload(Scale::Quick, 1, 600).jobs, workload(Scale::Quick, 2, 600).jobs);
    }

    #[test]
    fn the_generated_day_is_like_the_traces() {
        let mut runs: Vec<u64> = generated_day().iter().skip(2_000).filter_map(|row| row.runs_s).collect();
        runs.sort_unstable();
        let (median, ninetieth) = (runs[runs.len() / 2], runs[runs.len() * 9 / 10]);
        assert!((160..195).contains(&median) && (1_500..1_900).contains(&ninetieth), "{median} {ninetieth}");
    }
}
