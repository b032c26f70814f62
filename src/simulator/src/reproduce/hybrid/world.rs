//! Traces, clusters and the classifier of the chapter's experiments.

use crate::reproduce::Scale;
use crate::reproduce::nas::day;
use crate::shape::{ClusterShape, NodeClass, Shipped};
use crate::{JobModel, SwimReader, TraceJob, TraceShape, generate, maybe_gzip};
use hintd_model::units::{BitsPerSec, Micros};
use hintd_policy::scale_up_out::{Classifier, JobShape, ScaleUpOutParams};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// SWIM's other day of October 2010, with paths: 25,428 jobs, as many as the thesis trained from.
const TRAINING: &str = "swim/FB-2010_samples_24_times_1hr_withInputPaths_0.tsv.gz";
/// A day of 2009.
const OTHER: &str = "swim/FB-2009_samples_24_times_1hr_0.tsv.gz";
/// Of how many jobs a quick run takes one, and how much smaller its cluster is.
pub(super) const QUICK: usize = 15;
/// Seed of which jobs the classifier of all runs is trained from.
const TRAINED_FROM: u64 = 1;

/// A trace and where it is from.
#[derive(Debug)]
pub(super) struct Trace {
    pub(super) jobs: Vec<TraceJob>,
    pub(super) source: String,
}

/// What the classifier is trained from: the other day, or one that is generated with another seed.
pub(super) fn training_day() -> &'static Trace {
    static DAY: OnceLock<Trace> = OnceLock::new();
    DAY.get_or_init(|| real_or_generated(TRAINING, 25_428, 2))
}

/// Jobs of another year, for what the classifier is worth on them; `None` without the file.
pub(super) fn other_year() -> Option<&'static [TraceJob]> {
    static YEAR: OnceLock<Option<Vec<TraceJob>>> = OnceLock::new();
    YEAR.get_or_init(|| real(OTHER).ok()).as_deref()
}

fn real_or_generated(name: &str, jobs: u32, seed: u64) -> Trace {
    match real(name) {
        Ok(jobs) => Trace { source: format!("SWIM {name}, {} jobs", jobs.len()), jobs },
        Err(why) => {
            let shape = TraceShape { jobs, span: Micros::from_secs(86_400), paths: false, seed };
            let source = format!("GENERATED after FB-2010's distributions, {jobs} jobs of a day, for {why}");
            Trace { jobs: generate(&shape).into_iter().map(TraceJob::from).collect(), source }
        }
    }
}

fn real(name: &str) -> Result<Vec<TraceJob>, String> {
    let data = std::env::var_os("HINTD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = data.join(name);
    let why = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(&path).map_err(|error| why(&error))?;
    let reader = maybe_gzip(BufReader::new(file)).map_err(|error| why(&error))?;
    SwimReader::new(reader).map(|job| job.map(TraceJob::from).map_err(|error| why(&error))).collect()
}

/// The day's jobs that a run has: all of them, or every [`QUICK`]-th from the seed's on; all at once for a batch.
pub(super) fn jobs(scale: Scale, seed: u64, batch: bool) -> Vec<TraceJob> {
    let (skip, step) = match scale {
        Scale::Full => (0, 1),
        Scale::Quick => (seed as usize % QUICK, QUICK),
    };
    let mut jobs: Vec<TraceJob> = day().jobs.iter().skip(skip).step_by(step).cloned().collect();
    if batch {
        jobs.iter_mut().for_each(|job| job.submit = Micros::ZERO);
    }
    jobs
}

/// The cluster of that name; a quick run's has a fifteenth of the machines: racks of 2, and for 6 scale-up machines of 24
/// containers one of 10.
pub(super) fn shape(scale: Scale, name: &str) -> ClusterShape {
    let shipped = Shipped::find(name).expect("the name is one of those shipped");
    let mut shape = shipped.shape().expect("a test reads every shape that is shipped");
    if scale == Scale::Quick {
        shape.nodes_per_rack = 2;
        shape.uplink_bits_per_s = BitsPerSec(shape.uplink_bits_per_s.0 / QUICK as u64);
        for class in &mut shape.classes {
            (class.nodes_per_rack, class.containers_per_node) = (Some(1), Some(10));
        }
    }
    shape
}

/// Containers of the scale-out machines of the cluster of that name.
pub(super) fn scale_out_containers(scale: Scale, name: &str) -> u64 {
    let shape = shape(scale, name);
    let of = |class: &NodeClass| {
        let nodes = class.racks.len() * class.nodes_per_rack.unwrap_or(shape.nodes_per_rack);
        nodes as u64 * u64::from(class.containers_per_node.unwrap_or(shape.containers_per_node))
    };
    shape.containers() - shape.classes.iter().map(of).sum::<u64>()
}

/// The job as the classifier sees it.
pub(super) fn job_shape(job: &TraceJob, model: &JobModel) -> JobShape {
    JobShape {
        maps: model.maps(job.input),
        reduces: model.reduces(job.shuffle, job.output),
        input: job.input,
        shuffle: job.shuffle,
    }
}

/// Whether it ends sooner on a scale-up machine, by the time model.
pub(super) fn small(job: &TraceJob, params: &ScaleUpOutParams) -> bool {
    params.time_model().small(&job_shape(job, &JobModel::default()))
}

/// How many jobs classifiers are trained from: what the solver takes in a second or two.
const fn trained_from(scale: Scale) -> usize {
    match scale {
        Scale::Full => 1_000,
        Scale::Quick => 300,
    }
}

/// A classifier trained from jobs of the training day, drawn by the seed and labelled by the time model.
pub(super) fn trained(scale: Scale, seed: u64, params: &ScaleUpOutParams) -> Result<Classifier, String> {
    let mut jobs: Vec<&TraceJob> = training_day().jobs.iter().collect();
    let (drawn, _) = jobs.partial_shuffle(&mut ChaCha8Rng::seed_from_u64(seed), trained_from(scale));
    let known = drawn.iter().map(|job| (job_shape(job, &JobModel::default()), small(job, params)));
    Classifier::train(&known.collect::<Vec<_>>()).map_err(|error| error.to_string())
}

/// The classifier of all runs of a scale.
pub(super) fn classifier(scale: Scale) -> Result<Arc<Classifier>, String> {
    static TRAINED: [OnceLock<Result<Arc<Classifier>, String>>; 2] = [const { OnceLock::new() }; 2];
    let train = || trained(scale, TRAINED_FROM, &ScaleUpOutParams::default()).map(Arc::new);
    TRAINED[usize::from(scale == Scale::Full)].get_or_init(train).clone()
}

/// What every entry says of its runs.
pub(super) fn settings(scale: Scale) -> Vec<(String, String)> {
    let sample = match scale {
        Scale::Full => String::new(),
        Scale::Quick => format!(
            "; a quick run takes every {QUICK}th job of the trace, from the seed's on, and a fifteenth of the machines: racks of 2, one scale-up machine of 10 containers (9.6 would be exact), uplinks of 2 Gbit/s"
        ),
    };
    let row = |name: &str, value: String| (name.to_owned(), value);
    let mut rows = vec![
        row("cluster", format!("scale-out: 20 racks of 30 machines, 8 tasks each; hybrid: 19 of them and a rack of 6 scale-up machines, 24 tasks each (§5.3.1); 10 Gbit/s a host, 30 Gbit/s a rack, as of §4.3.1 (assumed; none printed){sample}")),
        row("speed of a scale-up machine", "1.7 for small jobs, 1.083 for large ones: Figure 5.1's 70 % and 35 %, one machine of 24 tasks against five of 8. Large: input above 32 GiB without shuffle, 64 GiB where all is shuffled, in between in proportion".to_owned()),
        row("classes of jobs", "by which of the two ends sooner in that time model".to_owned()),
        row("classifier", format!("{} jobs drawn from {}; 5-fold cross-validation", trained_from(scale), training_day().source)),
        row("trace", day().source.clone()),
        row("history", "half of the jobs ran before and their shuffle is known exactly; of the others it is taken to be 0 (§5.2.2)".to_owned()),
        row("seeds", "users of jobs, which jobs ran before, replicas, task times, phases of heartbeats".to_owned()),
    ];
    rows.extend(JobModel::default().describe());
    rows
}
