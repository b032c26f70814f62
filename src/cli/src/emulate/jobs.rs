//! A trace turned into jobs that an emulated cluster can run in the time there is.

use super::cluster::Cluster;
use super::hdfs::{BLOCK, Namespace};
use hintd_model::units::{Bytes, Micros};
use hintd_simulator::{JobModel, ScaleError, SwimJob, Task, TraceScale};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One map container, MB: YARN's `mapreduce.map.memory.mb`.
pub const MAP_MB: u64 = 1024;
/// One reduce container, MB: twice a map's, as operators usually set it.
pub const REDUCE_MB: u64 = 2048;
/// Virtual cores of either.
pub const TASK_VCORES: u32 = 1;

/// The largest job may take so much of the cluster: one that takes all of it shows only itself.
const LARGEST_SHARE: u32 = 2;

/// No task may take longer, as a part of the time between first and last submission: a run has to end.
const LONGEST_TASK: f64 = 0.6;

/// One job, scaled.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlan {
    /// Its number in the trace, from 0.
    pub number: u64,
    /// Its name in the trace.
    pub name: Arc<str>,
    /// When it is submitted.
    pub submit: Duration,
    /// Map tasks.
    pub maps: u32,
    /// Reduce tasks.
    pub reduces: u32,
    /// Map input.
    pub input: Bytes,
    /// Shuffle.
    pub shuffle: Bytes,
    /// Reduce output.
    pub output: Bytes,
    /// Files that it reads.
    pub input_paths: Vec<String>,
}

/// All jobs, and the factors that the trace was scaled by.
#[derive(Debug)]
pub struct Workload {
    /// In order of submission.
    pub jobs: Vec<JobPlan>,
    /// Factors on submit times and bytes.
    pub scale: TraceScale,
    /// Factor on task times.
    pub task_time: f64,
    model: JobModel,
}

/// A trace that can't be run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Nothing to run, or nothing to run it on.
    #[error("the trace does not fit the cluster")]
    Scale(#[from] ScaleError),
}

impl Workload {
    /// Scales `jobs` so that the last is submitted after `span`, tasks keep the cluster busy to at most `load` (0..1)
    /// and none takes longer than `LONGEST_TASK` of `span`; writes what they read into `namespace`.
    ///
    /// # Errors
    /// [`WorkloadError`] for no jobs, or a cluster without room.
    pub fn new(
        jobs: &[SwimJob],
        cluster: &Cluster,
        namespace: &mut Namespace,
        span: Duration,
        load: f64,
    ) -> Result<Self, WorkloadError> {
        let model = JobModel::default();
        let slots = cluster.slots(REDUCE_MB) / LARGEST_SHARE;
        let span_us = Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
        let scale = TraceScale::fit(jobs, &model, span_us, slots)?;
        let scaled: Vec<SwimJob> = jobs.iter().map(|job| scale.apply(job)).collect();
        let paths = lay_out(&scaled, namespace, cluster);
        let jobs: Vec<JobPlan> = (0u64..)
            .zip(scaled.iter().zip(paths))
            .map(|(number, (job, paths))| plan(number, job, paths, &model))
            .collect();
        let mut workload = Self { jobs, scale, task_time: 1.0, model };
        let offered = workload.busy_seconds() / (span.as_secs_f64() * f64::from(cluster.slots(MAP_MB)));
        let longest = workload.longest_seconds();
        let most = span.as_secs_f64() * LONGEST_TASK;
        workload.task_time =
            (load / offered.max(f64::MIN_POSITIVE)).min(most / longest.max(f64::MIN_POSITIVE)).min(1.0);
        Ok(workload)
    }

    /// The place in the trace of what is submitted as the `nth`, from 0, and when. Where the trace is repeated it begins
    /// again after its last job, by the mean time between two of them.
    #[must_use]
    pub fn submission(&self, nth: usize, repeated: bool) -> Option<(usize, Duration)> {
        let last = self.jobs.last()?.submit;
        let jobs = u32::try_from(self.jobs.len()).unwrap_or(u32::MAX);
        let (round, place) = (nth / self.jobs.len(), nth % self.jobs.len());
        let round = u32::try_from(round).ok().filter(|round| *round == 0 || repeated)?;
        Some((place, (last + last / jobs).checked_mul(round)?.checked_add(self.jobs[place].submit)?))
    }

    /// How long a task runs.
    #[must_use]
    pub fn task_time(&self, job: &JobPlan, task: Task) -> Duration {
        Duration::from_secs_f64(self.seconds(job, task) * self.task_time)
    }

    /// Seconds that all tasks of all jobs run, as scaled so far, weighted by their memory in units of a map's.
    fn busy_seconds(&self) -> f64 {
        let of_job = |job: &JobPlan| {
            let maps: f64 = (0..u64::from(job.maps)).map(|map| self.seconds(job, Task::Map(map))).sum();
            let reduces: f64 = (0..u64::from(job.reduces)).map(|reduce| self.seconds(job, Task::Reduce(reduce))).sum();
            maps + reduces * (REDUCE_MB as f64 / MAP_MB as f64)
        };
        self.jobs.iter().map(of_job).sum::<f64>() * self.task_time
    }

    fn longest_seconds(&self) -> f64 {
        let of_job = |job: &JobPlan| {
            let maps = (0..u64::from(job.maps)).map(|map| self.seconds(job, Task::Map(map)));
            let reduces = (0..u64::from(job.reduces)).map(|reduce| self.seconds(job, Task::Reduce(reduce)));
            maps.chain(reduces).fold(0.0, f64::max)
        };
        self.jobs.iter().map(of_job).fold(0.0, f64::max)
    }

    fn seconds(&self, job: &JobPlan, task: Task) -> f64 {
        self.model.task_time(job.number, task, self.input(job, task)).as_secs_f64()
    }

    /// Bytes that a task works through.
    #[must_use]
    pub fn input(&self, job: &JobPlan, task: Task) -> Bytes {
        match task {
            Task::Map(map) => self.model.map_input(job.input, map),
            Task::Reduce(reduce) => self.model.reduce_input(job.shuffle, job.output, reduce),
        }
    }
}

fn plan(number: u64, job: &SwimJob, input_paths: Vec<String>, model: &JobModel) -> JobPlan {
    let count = |tasks: u64| u32::try_from(tasks).expect("the scale keeps tasks below the cluster's slots");
    JobPlan {
        number,
        name: Arc::clone(&job.name),
        submit: Duration::from_micros(job.submit.0),
        maps: count(model.maps(job.input)),
        reduces: count(model.reduces(job.shuffle, job.output)),
        input: job.input,
        shuffle: job.shuffle,
        output: job.output,
        input_paths,
    }
}

/// Writes every job's input and returns its paths. Jobs that read one path with different bytes read its first
/// parts: part n holds what the n-th smallest reader reads beyond the one before.
fn lay_out(jobs: &[SwimJob], namespace: &mut Namespace, cluster: &Cluster) -> Vec<Vec<String>> {
    let mut readers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let directory = |job: &SwimJob| match &job.input_path {
        Some(path) => format!("/swim/{path}"),
        None => format!("/swim/{}", job.name),
    };
    // Parts are whole blocks, so that a job's maps and the blocks of its paths are the same.
    let whole = |bytes: Bytes| bytes.0.div_ceil(BLOCK.0) * BLOCK.0;
    for job in jobs.iter().filter(|job| job.input > Bytes::ZERO) {
        readers.entry(directory(job)).or_default().push(whole(job.input));
    }
    for (path, sizes) in &mut readers {
        sizes.sort_unstable();
        sizes.dedup();
        let mut start = 0;
        for (part, &end) in sizes.iter().enumerate() {
            namespace.create(&part_name(path, part), Bytes(end - start), cluster);
            start = end;
        }
    }
    let paths = |job: &SwimJob| {
        let directory = directory(job);
        let sizes = readers.get(&directory).map_or(&[][..], Vec::as_slice);
        let parts = sizes.iter().take_while(|&&size| job.input > Bytes::ZERO && size <= whole(job.input)).count();
        (0..parts).map(|part| part_name(&directory, part)).collect()
    };
    jobs.iter().map(paths).collect()
}

fn part_name(directory: &str, part: usize) -> String {
    format!("{directory}/part-{part:05}")
}

#[cfg(test)]
mod tests {
    use super::super::cluster::ClusterShape;
    use super::*;

    fn job(name: &str, submit_s: u64, blocks: u64, path: Option<&str>) -> SwimJob {
        SwimJob {
            name: name.into(),
            submit: Micros::from_secs(submit_s),
            input: Bytes(blocks * BLOCK.0),
            shuffle: Bytes(1 << 20),
            output: Bytes(1),
            input_path: path.map(Into::into),
        }
    }

    fn workload_of(jobs: &[SwimJob]) -> (Workload, Namespace) {
        let cluster = Cluster::build(ClusterShape::default()).unwrap();
        let mut namespace = Namespace::new(1);
        let workload = Workload::new(jobs, &cluster, &mut namespace, Duration::from_secs(10), 0.5).unwrap();
        (workload, namespace)
    }

    #[test]
    fn a_repeated_trace_begins_again_after_its_last_job_and_another_one_ends() {
        let (workload, _) = workload_of(&[job("a", 0, 1, None), job("b", 4, 1, None), job("c", 20, 1, None)]);
        let submits: Vec<_> = workload.jobs.iter().map(|job| job.submit).collect();
        let once: Vec<_> = (0..9).map_while(|nth| workload.submission(nth, false)).collect();
        assert_eq!(once, (0..3).zip(submits.iter().copied()).collect::<Vec<_>>());
        let again: Vec<_> = (0..6).map_while(|nth| workload.submission(nth, true)).collect();
        let mean = submits[2] / 3;
        assert_eq!(again[..3], once);
        assert_eq!(again[3..], [0, 1, 2].map(|job| (job, submits[2] + mean + submits[job])));
    }

    #[test]
    fn jobs_read_as_many_blocks_as_they_have_maps() {
        let jobs = [job("a", 0, 4, Some("p")), job("b", 1, 9, Some("p")), job("c", 2, 3, None), job("d", 3, 0, None)];
        let (workload, namespace) = workload_of(&jobs);
        for plan in &workload.jobs {
            let blocks: usize = plan.input_paths.iter().map(|path| namespace.blocks(path).len()).sum();
            let expected = if plan.input == Bytes::ZERO { 0 } else { plan.maps as usize };
            assert_eq!(blocks, expected, "{}", plan.name);
        }
        assert_eq!(workload.jobs[0].input_paths, ["/swim/p/part-00000"]);
        assert_eq!(workload.jobs[1].input_paths, ["/swim/p/part-00000", "/swim/p/part-00001"], "a longer prefix");
        assert_eq!(workload.jobs[3].maps, 1, "a job without input has a map");
    }

    #[test]
    fn the_largest_job_takes_half_the_cluster_and_tasks_keep_it_as_busy_as_asked() {
        let jobs: Vec<_> = (0..50).map(|n| job(&format!("j{n}"), n * 100, 5_000, None)).collect();
        let (workload, _) = workload_of(&jobs);
        assert_eq!(workload.jobs.last().unwrap().submit, Duration::from_secs(10));
        assert_eq!(workload.jobs[0].maps, 160);
        let load = workload.busy_seconds() / (10.0 * 640.0);
        assert!((load - 0.5).abs() < 1e-6, "{load}");
        assert!(workload.task_time < 1.0);
    }

    #[test]
    fn no_task_outlives_the_run_and_none_is_slowed_down() {
        let (workload, _) = workload_of(&[job("a", 0, 2, None), job("b", 5, 2, None)]);
        assert!(workload.longest_seconds() * workload.task_time <= 6.0 + 1e-9);
        let (idle, _) = workload_of(&[job("a", 0, 0, None)]);
        assert!((idle.task_time - 1.0).abs() < f64::EPSILON, "{}", idle.task_time);
        assert!(idle.task_time(&idle.jobs[0], Task::Map(0)) >= Duration::from_secs(1));
    }
}
