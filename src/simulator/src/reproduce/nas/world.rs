//! Clusters and traces of the experiments.

use crate::reproduce::Scale;
use crate::shape::{ClusterShape, Shipped};
use crate::yarn::SimCluster;
use crate::{JobModel, SwimReader, TraceJob, TraceShape, generate, maybe_gzip};
use hintd_model::units::{BitsPerSec, Micros};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt as _, SeedableRng as _};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::OnceLock;

/// SWIM's day of Facebook's cluster, October 2010.
const TRACE: &str = "swim/FB-2010_samples_24_times_1hr_0.tsv.gz";
/// Of how many jobs a quick run takes one, and how much smaller its cluster is.
pub(super) const QUICK: usize = 20;
/// Jobs of the validation (§6.2).
const VALIDATION_JOBS: usize = 200;
/// Mean gap between them, seconds (§3.3.1).
const VALIDATION_GAP_S: f64 = 14.0;

/// A trace and where it is from.
#[derive(Debug)]
pub(in crate::reproduce) struct Trace {
    pub(in crate::reproduce) jobs: Vec<TraceJob>,
    /// In words, for reports.
    pub(in crate::reproduce) source: String,
}

/// The day: the real one where it is, else one like it.
pub(in crate::reproduce) fn day() -> &'static Trace {
    static DAY: OnceLock<Trace> = OnceLock::new();
    DAY.get_or_init(|| match real_day() {
        Ok(jobs) => Trace { jobs, source: "SWIM FB-2010, 24,442 jobs of a day, trace scale 1".to_owned() },
        Err(why) => {
            let shape = TraceShape { jobs: 24_442, span: Micros::from_secs(86_400), paths: false, seed: 1 };
            let jobs = generate(&shape).into_iter().map(TraceJob::from).collect();
            let source = format!("GENERATED after FB-2010's distributions, 24,442 jobs of a day, for {why}");
            Trace { jobs, source }
        }
    })
}

fn real_day() -> Result<Vec<TraceJob>, String> {
    let data = std::env::var_os("HINTD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = data.join(TRACE);
    let why = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(&path).map_err(|error| why(&error))?;
    let reader = maybe_gzip(BufReader::new(file)).map_err(|error| why(&error))?;
    SwimReader::new(reader).map(|job| job.map(TraceJob::from).map_err(|error| why(&error))).collect()
}

/// The jobs of a run: all of them, or every [`QUICK`]-th from the seed's on.
pub(super) fn jobs(scale: Scale, seed: u64) -> Vec<TraceJob> {
    let all = &day().jobs;
    match scale {
        Scale::Full => all.clone(),
        Scale::Quick => all.iter().skip(seed as usize % QUICK).step_by(QUICK).cloned().collect(),
    }
}

/// The jobs with a map for each block of shuffle where the trace has no input of a job that shuffles: nine of the day,
/// of 5.9 TB.
pub(super) fn with_maps_by_shuffle(mut jobs: Vec<TraceJob>) -> Vec<TraceJob> {
    let block = JobModel::default().block.0;
    for job in jobs.iter_mut().filter(|job| job.input.0 == 0 && job.shuffle.0 > 0) {
        job.maps = Some(job.shuffle.0.div_ceil(block));
    }
    jobs
}

/// 600 nodes in 30 racks (§3.3.1); a quick run has a twentieth of them, in as large racks or as many as leave two.
pub(super) fn cluster(scale: Scale) -> SimCluster {
    shape(scale).to_cluster().expect("the shapes shipped are right, and stay so with fewer racks")
}

fn shape(scale: Scale) -> ClusterShape {
    let shape = named("nas");
    match scale {
        Scale::Full => shape,
        Scale::Quick => ClusterShape { racks: 6, nodes_per_rack: 5, ..shape_with_uplinks_of(shape, 4) },
    }
}

/// How long the racks' uplinks need for the shuffle of a run, as it is submitted, if it is spread evenly over the racks
/// and no uplink ever stands idle while there is any, seconds from the first submission on. A scheduler that is faster
/// than that has kept shuffle within racks.
pub(super) fn uplinks_need_s(scale: Scale, seed: u64) -> f64 {
    let (shape, jobs) = (shape(scale), jobs(scale, seed));
    let racks = shape.racks as f64;
    let crossing = (racks - 1.0) / racks;
    let bytes_per_s = racks * shape.uplink_bits_per_s.as_f64() / 8.0;
    let need =
        |end: f64, job: &TraceJob| end.max(job.submit.as_secs_f64()) + job.shuffle.as_f64() * crossing / bytes_per_s;
    let first = jobs.first().map_or(0.0, |job| job.submit.as_secs_f64());
    jobs.iter().fold(first, need) - first
}

/// With uplinks that many times thinner: racks have as many times fewer nodes.
fn shape_with_uplinks_of(shape: ClusterShape, times: u64) -> ClusterShape {
    let uplink_bits_per_s = BitsPerSec(shape.uplink_bits_per_s.0 / times);
    ClusterShape { uplink_bits_per_s, ..shape }
}

/// 8 racks of 5 nodes of 16 containers (§6.2).
pub(super) fn validation_cluster() -> SimCluster {
    named("nas-40").to_cluster().expect("the shapes shipped are right")
}

fn named(name: &str) -> ClusterShape {
    let shipped = Shipped::find(name).expect("the name is one of those shipped");
    shipped.shape().expect("a test reads every shape that is shipped")
}

/// 200 jobs drawn from the day with its shares of light, medium and heavy shuffles (Figure 3.2), submitted with
/// exponential gaps.
pub(super) fn validation_jobs(seed: u64) -> Vec<TraceJob> {
    const MIB: u64 = 1 << 20;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut by_class: [Vec<&TraceJob>; 3] = Default::default();
    for job in &day().jobs {
        let class = usize::from(job.shuffle.0 >= MIB) + usize::from(job.shuffle.0 > 100 * MIB);
        by_class[class].push(job);
    }
    let total = day().jobs.len();
    let mut drawn: Vec<&TraceJob> = Vec::with_capacity(VALIDATION_JOBS);
    for class in &mut by_class {
        let share = (class.len() * VALIDATION_JOBS + total / 2) / total;
        let (chosen, _) = class.partial_shuffle(&mut rng, share);
        drawn.extend(chosen.iter());
    }
    drawn.shuffle(&mut rng);
    let mut at_s = 0.0;
    let submit = |job: &TraceJob| {
        at_s -= (1.0 - rng.random::<f64>()).ln() * VALIDATION_GAP_S;
        TraceJob { submit: Micros((at_s * 1e6) as u64), ..job.clone() }
    };
    drawn.into_iter().map(submit).collect()
}

/// What every entry says of its runs.
pub(super) fn settings(scale: Scale) -> Vec<(String, String)> {
    let sample = match scale {
        Scale::Full => {
            "600 nodes in 30 racks, 6 containers each, rack uplinks 1 Gbit/s, NICs 250 Mbit/s (§3.3.1)".to_owned()
        }
        Scale::Quick => format!(
            "every {QUICK}th job of the trace, from the seed's on, on 30 nodes in 6 racks: a twentieth of the paper's 600; uplinks 250 Mbit/s, so that racks of 5 nodes are as oversubscribed as its racks of 20"
        ),
    };
    let mut rows = vec![
        ("cluster".to_owned(), sample),
        ("trace".to_owned(), day().source.clone()),
        ("congestion".to_owned(), "uplink or downlink of a rack used by 80 % or more, left below 75 %; sampled each second".to_owned()),
        ("traffic".to_owned(), "what racks send each other is told apart by pair of racks; a reduce has 5 fetches at most, each at most a fifth of its node's NIC".to_owned()),
        ("containers".to_owned(), "any task in any; reduces of jobs with waiting maps hold at most a tenth of the cluster's, under every policy (assumed; the paper does not say what keeps them from taking all)".to_owned()),
        ("seeds".to_owned(), "users of jobs, replicas, task times, phases of heartbeats".to_owned()),
    ];
    rows.extend(JobModel::default().describe());
    rows
}
