//! Traces and clusters of the chapter's experiments.

use crate::reproduce::Scale;
use crate::reproduce::nas::day;
use crate::shape::{ClusterShape, Core, Shipped};
use crate::yarn::SimCluster;
use crate::{JobModel, TraceJob};
use hintd_model::units::{BitsPerSec, Bytes, Micros};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt as _, SeedableRng as _};

/// Jobs of a run (§4.3.1).
const JOBS: usize = 1_000;
/// Of how many jobs and racks a quick run has one.
pub(super) const QUICK: usize = 4;
/// What one node can have held of a job's input, shuffle or output when the thesis replayed the jobs on it. The day's
/// jobs of no more, 94 % of it, are 91 TB of input and shuffle: nine days for one node's disks at 100 MB/s; those of up
/// to ten times as much would have taken months.
const ONE_NODE: Bytes = Bytes(100_000_000_000);
/// What makes a job shuffle-heavy (§4.1.2).
const HEAVY: Bytes = Bytes(1_125_000_000);
/// Largest error of arrival (§4.3.3).
const LATE_S: f64 = 200.0;

/// Which jobs of the day a run's are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draw {
    /// Input, shuffle and output of at most [`ONE_NODE`] each.
    OneNode,
    /// Those of them that are shuffle-heavy.
    Heavy,
    /// Shuffle of at most [`ONE_NODE`], input and output of any size.
    AnyInput,
    /// All.
    Whole,
}

impl Draw {
    fn takes(self, job: &TraceJob) -> bool {
        let within = |bytes: Bytes| bytes <= ONE_NODE;
        let one_node = || within(job.input) && within(job.shuffle) && within(job.output);
        match self {
            Self::OneNode => one_node(),
            Self::Heavy => one_node() && job.shuffle >= HEAVY,
            Self::AnyInput => within(job.shuffle),
            Self::Whole => true,
        }
    }
}

/// The jobs of a run as they are expected, ascending by submission: drawn without putting back, and submitted uniformly
/// at random within the span, or all at once where it is 0.
pub(super) fn jobs(scale: Scale, draw: Draw, span_s: u32, seed: u64) -> Vec<TraceJob> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut pool: Vec<&TraceJob> = day().jobs.iter().filter(|job| draw.takes(job)).collect();
    let (drawn, _) = pool.partial_shuffle(&mut random, of(scale, JOBS));
    let mut submit = || Micros((random.random::<f64>() * f64::from(span_s) * 1e6) as u64);
    let mut jobs: Vec<TraceJob> = drawn.iter().map(|job| TraceJob { submit: submit(), ..(**job).clone() }).collect();
    jobs.sort_by_key(|job| job.submit);
    jobs
}

/// The jobs as they come: this share of them up to [`LATE_S`] too early or too late.
pub(super) fn come(jobs: &[TraceJob], late_percent: u32, seed: u64) -> Vec<TraceJob> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let share = f64::from(late_percent) / 100.0;
    let mut job = |job: &TraceJob| {
        let (errs, by_s) = (random.random::<f64>() < share, (2.0 * random.random::<f64>() - 1.0) * LATE_S);
        let came = || Micros(((job.submit.as_secs_f64() + by_s).max(0.0) * 1e6) as u64);
        TraceJob { submit: if errs { came() } else { job.submit }, ..job.clone() }
    };
    let mut jobs: Vec<TraceJob> = jobs.iter().map(&mut job).collect();
    jobs.sort_by_key(|job| job.submit);
    jobs
}

/// 600 servers in 20 racks; a quick run has a quarter of the racks.
pub(super) fn shape(scale: Scale, name: &str) -> ClusterShape {
    let shipped = Shipped::find(name).expect("the name is one of those shipped");
    let shape = shipped.shape().expect("a test reads every shape that is shipped");
    ClusterShape { racks: of(scale, shape.racks), ..shape }
}

/// As the simulator takes it.
pub(super) fn cluster(shape: &ClusterShape) -> SimCluster {
    shape.to_cluster().expect("the shapes shipped are right, and stay so with fewer racks or other rates")
}

/// With circuits chosen so often.
pub(super) fn with_interval(mut shape: ClusterShape, ms: u64) -> ClusterShape {
    if let Core::Optical { interval_ms, .. } = &mut shape.core {
        *interval_ms = ms;
    }
    shape
}

/// With uplinks and nodes' links so many times as fast.
pub(super) fn with_links(shape: ClusterShape, times: u64) -> ClusterShape {
    let faster = |rate: BitsPerSec| BitsPerSec(rate.0 * times);
    let (nic_bits_per_s, uplink_bits_per_s) = (faster(shape.nic_bits_per_s), faster(shape.uplink_bits_per_s));
    ClusterShape { nic_bits_per_s, uplink_bits_per_s, ..shape }
}

const fn of(scale: Scale, all: usize) -> usize {
    match scale {
        Scale::Quick => all / QUICK,
        Scale::Full => all,
    }
}

/// What every entry says of its runs.
pub(super) fn settings(scale: Scale) -> Vec<(String, String)> {
    let sample = match scale {
        Scale::Full => String::new(),
        Scale::Quick => format!("; a quick run has a quarter of racks and jobs: {} and {}", 20 / QUICK, JOBS / QUICK),
    };
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut rows = vec![
        row("cluster", format!("600 servers in 20 racks, 20 containers and 10 Gbit/s each, 30 Gbit/s from a rack to the electrical core, 100 Gbit/s to the optical switch; F-EPS: 100 Gbit/s to the core, no optical switch (§4.3.1){sample}")),
        row("trace", day().source.clone()),
        row("jobs", format!("{JOBS} drawn at random from the jobs of at most 100 GB of input, of shuffle and of output each: the thesis replayed its jobs one by one on a single node first, which can't have held more (assumed; it names no bound)")),
        row("circuits", "chosen anew each second by a heaviest matching, 10 ms of darkness when one changes, elephants from 1.125 GB for a job and rack pair".to_owned()),
        row("prediction", "tasks, their mean times, shuffle and arrivals known without error but where a row says otherwise (§4.3.2)".to_owned()),
        row("slow-start", "0.7 for jobpacker and corral (§4.3.2), 0.2 for fair, as for every baseline".to_owned()),
        row("traffic", "bytes across racks are map input and shuffle; a reduce has 5 fetches at most; 200 users; heartbeats of 1 s".to_owned()),
        row("seeds", "jobs drawn, arrivals, users, replicas, task times, phases of heartbeats, order of sub-batches".to_owned()),
    ];
    rows.extend(JobModel::default().describe());
    rows
}
