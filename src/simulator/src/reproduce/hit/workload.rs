//! Jobs of 002's Table 1 under the common job model.

use crate::JobModel;
use crate::gangs::{GangApp, GangGroup, Phase};
use crate::job_model::Task;
use hintd_model::cluster::{EdgePattern, Resource};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use hintd_policy::problem::{EdgeProblem, InputBlock, InputBlocks};
use hintd_policy::sample::Sample;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use smallvec::SmallVec;
use std::sync::Arc;

/// §8.2: 2 GB and one core.
pub(in crate::reproduce) const UNIT: Resource = Resource::new(2_048, 1);
/// A single SATA disk; the paper states no rate.
pub(in crate::reproduce) const DISK: Bytes = Bytes(150_000_000);
/// Blocks of a job's input, one map each: 4 to 8 GiB; the paper states none.
const BLOCKS: std::ops::RangeInclusive<u64> = 32..=64;

/// How much a job shuffles (Table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::reproduce) enum Class {
    /// terasort, index, join, sequence count, adjacency: 40 %.
    Heavy,
    /// inverted-index, term-vector: 20 %.
    Medium,
    /// grep, wordcount, classification, histogram: 40 %.
    Light,
}

impl Class {
    pub(in crate::reproduce) const ALL: [Self; 3] = [Self::Heavy, Self::Medium, Self::Light];

    pub(in crate::reproduce) const fn name(self) -> &'static str {
        match self {
            Self::Heavy => "heavy",
            Self::Medium => "medium",
            Self::Light => "light",
        }
    }

    /// Shuffle ÷ input. Figure 1 draws the three without figures.
    pub(in crate::reproduce) const fn ratio(self) -> f64 {
        match self {
            Self::Heavy => 1.0,
            Self::Medium => 0.3,
            Self::Light => 0.05,
        }
    }

    /// Of Table 1's mix.
    pub(in crate::reproduce) fn drawn(random: &mut impl RngExt) -> Self {
        match random.random_range(0..100) {
            0..40 => Self::Heavy,
            40..60 => Self::Medium,
            _ => Self::Light,
        }
    }
}

/// A job's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reproduce) struct Job {
    pub(in crate::reproduce) class: Class,
    pub(in crate::reproduce) input: Bytes,
    pub(in crate::reproduce) shuffle: Bytes,
}

impl Job {
    /// With an input drawn.
    pub(super) fn new(class: Class, random: &mut impl RngExt) -> Self {
        let input = random.random_range(BLOCKS) * JobModel::default().block.0;
        Self { class, input: Bytes(input), shuffle: Bytes((input as f64 * class.ratio()) as u64) }
    }

    pub(super) fn maps(&self) -> u32 {
        JobModel::default().maps(self.input) as u32
    }

    pub(super) fn reduces(&self) -> u32 {
        JobModel::default().reduces(self.shuffle, Bytes::ZERO) as u32
    }

    pub(super) const fn edge(&self) -> EdgeProblem {
        EdgeProblem { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: self.shuffle }
    }

    /// Its blocks, three replicas each as HDFS puts them.
    pub(super) fn blocks(&self, sample: &Sample, seed: u64) -> Arc<InputBlocks> {
        let block = JobModel::default().block;
        let mut blocks = sample.input(self.maps() as usize, block, seed).blocks.clone();
        if let Some(InputBlock { bytes: last, .. }) = blocks.last_mut() {
            *last = Bytes(self.input.0 - (self.input.0 - 1) / block.0 * block.0);
        }
        Arc::new(InputBlocks::new(blocks))
    }

    /// Reads, maps, shuffles, reduces; each step as long as its slowest task.
    fn app(&self, number: u64, submit_s: f64, model: &JobModel, input: Arc<InputBlocks>) -> GangApp {
        let group = |name: &str, count, input| GangGroup { name: name.into(), count, size: UNIT, input };
        let slowest = |count: u32, task: fn(u64) -> Task, bytes: &dyn Fn(u64) -> Bytes| {
            let times = (0..u64::from(count)).map(|at| model.task_time(number, task(at), bytes(at)).as_secs_f64());
            times.fold(0.0, f64::max)
        };
        let map_s = slowest(self.maps(), Task::Map, &|at| model.map_input(self.input, at));
        let reduced = |at| model.reduce_input(self.shuffle, Bytes::ZERO, at);
        let reduce_s = slowest(self.reduces(), Task::Reduce, &reduced);
        let edges = vec![self.edge()];
        GangApp {
            submit_s,
            master: None,
            groups: vec![group("map", self.maps(), input), group("reduce", self.reduces(), Arc::default())],
            edges: edges.clone(),
            phases: vec![Phase::Read, Phase::Compute(map_s), Phase::Exchange(edges), Phase::Compute(reduce_s)],
        }
    }
}

/// `count` jobs of the mix, one every `gap_s` seconds.
pub(super) fn apps(sample: &Sample, count: u64, gap_s: f64, rate: f64, seed: u64) -> Vec<GangApp> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let model = JobModel { seed, ..JobModel::default() }.at_rate(rate);
    let mut app = |number: u64| {
        let class = Class::drawn(&mut random);
        let job = Job::new(class, &mut random);
        let input = job.blocks(sample, 1_000 * seed + number);
        job.app(number, gap_s * number as f64, &model, input)
    };
    (0..count).map(&mut app).collect()
}

/// Every block of the application's input on every node.
pub(super) fn everywhere(sample: &Sample, app: &mut GangApp) {
    let nodes: SmallVec<[NodeIdx; 3]> = sample.snapshot.statics.indexes().collect();
    for group in &mut app.groups {
        let blocks = group.input.blocks.iter().map(|block| InputBlock { nodes: nodes.clone(), ..block.clone() });
        group.input = Arc::new(InputBlocks::new(blocks.collect()));
    }
}

/// What every entry says of its jobs.
pub(in crate::reproduce) fn described() -> Vec<(String, String)> {
    let rows = [
        (
            "mix",
            "Table 1: 40 % shuffle-heavy, 20 % medium, 40 % light; shuffle / input 1, 0.3, 0.05 (assumed: Figure 1 prints none)",
        ),
        (
            "job",
            "input of 32 to 64 blocks of 128 MiB (assumed), replicas one in a rack, two in another; one wave: all its tasks at once, maps and reduces, first come first served (§5.2.1)",
        ),
        (
            "steps",
            "maps read (disks of 150 MB/s, assumed), work; all maps send to all reduces; reduces work; a step ends with its slowest task",
        ),
    ];
    let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    rows.chain(JobModel::default().describe()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_policy::sample::cluster;

    #[test]
    fn the_mix_is_table_1s_and_jobs_move_their_bytes() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<Class> = (0..4_000).map(|_| Class::drawn(&mut random)).collect();
        for (class, share) in Class::ALL.into_iter().zip([0.4, 0.2, 0.4]) {
            let found = drawn.iter().filter(|one| **one == class).count() as f64 / 4_000.0;
            assert!((found - share).abs() < 0.03, "{} {found}", class.name());
        }
        let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(16), DISK);
        let apps = apps(&sample, 20, 5.0, 1.0, 3);
        assert_eq!((apps.len(), apps[19].submit_s), (20, 95.0));
        for app in &apps {
            let input = app.groups[0].input.bytes;
            let ratio = app.exchanged().as_f64() / input.as_f64();
            assert!(Class::ALL.iter().any(|class| (class.ratio() - ratio).abs() < 1e-6), "{ratio}");
            assert_eq!(u64::from(app.groups[0].count), input.0.div_ceil(128 << 20));
            assert_eq!(u64::from(app.groups[1].count), app.exchanged().0.div_ceil(1 << 30));
        }
    }
}
