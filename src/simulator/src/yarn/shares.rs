//! How a job's bytes are shared among its tasks: whole bytes, sums exact.

use crate::job_model::{JobModel, Task};
use crate::trace::job::TraceJob;
use hintd_model::units::{Bytes, Micros};

/// A job with more tasks of a kind than this never fits: its table alone would take gigabytes.
pub(super) const TASKS_MAX: u64 = 1 << 24;

/// A map or a reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Map,
    Reduce,
}

/// Bytes and times of a job's tasks, each found when it is asked for.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    job: u64,
    input: u64,
    /// Input of every map but the last; `None`: even shares.
    block: Option<u64>,
    shuffle: u64,
    output: u64,
    maps: u32,
    reduces: u32,
    map_time: Option<Micros>,
    reduce_time: Option<Micros>,
}

impl Shares {
    /// Of the trace's `number`-th job; `None` if it has more than [`TASKS_MAX`] maps or reduces.
    pub(super) fn new(number: u64, job: &TraceJob, model: &JobModel) -> Option<Self> {
        let maps = job.maps.map_or_else(|| model.maps(job.input), |maps| maps.max(1));
        let reduces = job.reduces.unwrap_or_else(|| model.reduces(job.shuffle, job.output));
        if maps > TASKS_MAX || reduces > TASKS_MAX {
            return None;
        }
        Some(Self {
            job: number,
            input: job.input.0,
            block: job.maps.is_none().then_some(model.block.0),
            // Without reduces nobody reads it: the maps write their output to HDFS.
            shuffle: if reduces == 0 { 0 } else { job.shuffle.0 },
            output: job.output.0,
            maps: maps as u32,
            reduces: reduces as u32,
            map_time: job.map_time,
            reduce_time: job.reduce_time,
        })
    }

    pub(super) const fn maps(&self) -> u32 {
        self.maps
    }

    pub(super) const fn reduces(&self) -> u32 {
        self.reduces
    }

    pub(super) const fn shuffle(&self) -> Bytes {
        Bytes(self.shuffle)
    }

    pub(super) const fn input(&self) -> Bytes {
        Bytes(self.input)
    }

    /// Output ÷ input of its maps; `None` without input.
    pub(super) fn ratio(&self) -> Option<f64> {
        (self.input > 0).then(|| self.shuffle as f64 / self.input as f64)
    }

    /// Input of the maps before `map`.
    fn before(&self, map: u32) -> u64 {
        match self.block {
            Some(block) => u64::from(map).saturating_mul(block).min(self.input),
            None => prefix(self.input, u64::from(map), u64::from(self.maps)),
        }
    }

    /// Input of a map.
    pub(super) fn map_input(&self, map: u32) -> Bytes {
        Bytes(self.before(map + 1) - self.before(map))
    }

    /// Output of a map: the shuffle × its input ÷ the job's; even shares of a job without input.
    pub(super) fn map_output(&self, map: u32) -> Bytes {
        let upto = |map: u32| match self.input {
            0 => prefix(self.shuffle, u64::from(map), u64::from(self.maps)),
            input => prefix(self.shuffle, self.before(map), input),
        };
        Bytes(upto(map + 1) - upto(map))
    }

    /// Shuffle of a reduce.
    pub(super) fn reduce_input(&self, reduce: u32) -> Bytes {
        Bytes(share(self.shuffle, reduce, self.reduces))
    }

    fn reduce_output(&self, reduce: u32) -> Bytes {
        Bytes(share(self.output, reduce, self.reduces))
    }

    /// What a task reads.
    pub(super) fn read(&self, kind: Kind, index: u32) -> Bytes {
        match kind {
            Kind::Map => self.map_input(index),
            Kind::Reduce => self.reduce_input(index),
        }
    }

    /// What a task writes.
    pub(super) fn written(&self, kind: Kind, index: u32) -> Bytes {
        match kind {
            Kind::Map => self.map_output(index),
            Kind::Reduce => self.reduce_output(index),
        }
    }

    /// How long a task works once its bytes are there.
    pub(super) fn time(&self, kind: Kind, index: u32, model: &JobModel) -> Micros {
        match kind {
            Kind::Map => self.map_time(index, model),
            Kind::Reduce => self.reduce_time(index, model),
        }
    }

    fn map_time(&self, map: u32, model: &JobModel) -> Micros {
        let modelled = || model.task_time(self.job, Task::Map(u64::from(map)), self.map_input(map));
        self.map_time.unwrap_or_else(modelled)
    }

    fn reduce_time(&self, reduce: u32, model: &JobModel) -> Micros {
        let modelled = || model.task_time(self.job, Task::Reduce(u64::from(reduce)), self.reduce_input(reduce));
        self.reduce_time.unwrap_or_else(modelled)
    }
}

/// ⌊total × part ÷ whole⌋: differences of neighbours sum to the total.
fn prefix(total: u64, part: u64, whole: u64) -> u64 {
    (u128::from(total) * u128::from(part) / u128::from(whole.max(1))) as u64
}

/// Even shares, the first ones a byte more where it does not divide, as [`JobModel::reduce_input`] has it.
fn share(total: u64, index: u32, parts: u32) -> u64 {
    let parts = u64::from(parts.max(1));
    total / parts + u64::from(u64::from(index) < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(input: u64, shuffle: u64, output: u64) -> TraceJob {
        let (input, shuffle, output) = (Bytes(input), Bytes(shuffle), Bytes(output));
        let (input_path, blocks, user) = (None, None, None);
        let (maps, reduces, map_time, reduce_time) = (None, None, None, None);
        let (name, submit) = ("job".into(), Micros(0));
        TraceJob {
            name,
            submit,
            input,
            shuffle,
            output,
            input_path,
            blocks,
            user,
            maps,
            reduces,
            map_time,
            reduce_time,
            earlier: crate::Earlier::Untold,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn tasks_share_every_byte_of_a_job(
            input in 0..1_u64 << 40, shuffle in 0..1_u64 << 40, output in 0..1_u64 << 30,
            maps in proptest::option::of(1..3_000_u64), reduces in proptest::option::of(1..300_u64),
        ) {
            let job = TraceJob { maps, reduces, ..job(input, shuffle, output) };
            let shares = Shares::new(0, &job, &JobModel::default()).unwrap();
            let sum = |count: u32, of: &dyn Fn(u32) -> Bytes| (0..count).map(|task| of(task).0).sum::<u64>();
            let reduced = if shares.reduces() == 0 { 0 } else { shuffle };
            prop_assert_eq!(sum(shares.maps(), &|map| shares.map_input(map)), input);
            prop_assert_eq!(sum(shares.maps(), &|map| shares.map_output(map)), reduced);
            prop_assert_eq!(sum(shares.reduces(), &|reduce| shares.reduce_input(reduce)), reduced);
        }

        #[test]
        fn what_the_trace_leaves_out_is_the_models(input in 0..1_u64 << 40, shuffle in 0..1_u64 << 40) {
            let model = JobModel::default();
            let shares = Shares::new(9, &job(input, shuffle, 0), &model).unwrap();
            let last = shares.maps() - 1;
            prop_assert_eq!(shares.map_input(last), model.map_input(Bytes(input), u64::from(last)));
            let expected = model.task_time(9, Task::Map(u64::from(last)), shares.map_input(last));
            prop_assert_eq!(shares.map_time(last, &model), expected);
            for reduce in 0..shares.reduces().min(3) {
                let expected = model.reduce_input(Bytes(shuffle), Bytes(0), u64::from(reduce));
                prop_assert_eq!(shares.reduce_input(reduce), expected);
            }
        }
    }

    #[test]
    fn a_job_of_an_exabyte_is_refused_before_its_tables_are_made() {
        assert!(Shares::new(0, &job(1_000_000_000_000_000_000, 0, 0), &JobModel::default()).is_none());
    }

    #[test]
    fn a_job_without_reduces_shuffles_nothing() {
        let map_only = TraceJob { reduces: Some(0), ..job(1 << 30, 1 << 30, 5) };
        let shares = Shares::new(0, &map_only, &JobModel::default()).unwrap();
        assert_eq!((shares.shuffle(), shares.map_output(3)), (Bytes(0), Bytes(0)));
    }
}
