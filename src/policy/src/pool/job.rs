//! A job: its groups, how far its maps are, and what they put out.

use super::UserIdx;
use super::bits::Bits;
use super::inputs::Waiting;
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, Bytes, RackIdx};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a group's tasks are to the shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Role `map`: puts out what reduces read.
    Map,
    /// Role `reduce`: reads what maps put out; waits for a share of them.
    Reduce,
    /// Any other role (stages of Spark): launched as maps are, and nothing is known of a shuffle.
    Other,
}

/// Jobs by the bytes that they shuffle (004 §3.3.1; binary units give the paper's shares).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ShuffleClass {
    /// Below 1 MiB.
    Light,
    /// Between.
    Medium,
    /// Above 100 MiB.
    Heavy,
}

impl ShuffleClass {
    /// Of that many bytes.
    #[must_use]
    pub const fn of(shuffle: Bytes) -> Self {
        match shuffle.0 {
            0..0x10_0000 => Self::Light,
            0x10_0000..=0x640_0000 => Self::Medium,
            _ => Self::Heavy,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) size: Resource,
    pub(super) waiting: Waiting,
    pub(super) done: Bits,
    /// Of each task; empty until the first is launched.
    marks: Vec<Mark>,
}

/// What is known of a task once it was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// What an ended map put out.
    output: Bytes,
    /// Rack where it was last launched; [`u32::MAX`]: not known.
    rack: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) attempt: AttemptId,
    pub(super) user: UserIdx,
    /// Place in the order of submission.
    pub(super) since: u64,
    pub(super) groups: Vec<Group>,
    /// As it stands among its user's jobs.
    pub(super) placed: JobRank,
    pub(super) running: u32,
    pub(super) running_reduces: u32,
    pub(super) running_reduces_mb: u64,
    /// Share of maps done before reduces may be launched.
    pub(super) slow_start: f64,
    pub(super) maps: u32,
    pub(super) maps_done: u32,
    pub(super) reduces: u32,
    /// Told with the group.
    told_ratio: Option<f64>,
    ratio_sum: f64,
    ratios: u32,
    /// Of all maps; of the done ones.
    pub(super) input: Bytes,
    done_input: Bytes,
    pub(super) output: Bytes,
    pub(super) output_by_rack: Vec<Bytes>,
    pub(super) reduces_by_rack: Vec<u32>,
}

/// Where a job stands among its user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobRank {
    pub(super) running: u32,
    pub(super) maps: bool,
    pub(super) reduces: bool,
    /// Memory that its reduces hold while maps wait.
    pub(super) early_mb: u64,
}

impl Group {
    pub(super) fn new(name: Arc<str>, kind: Kind, size: Resource, waiting: Waiting) -> Self {
        Self { name, kind, size, waiting, done: Bits::default(), marks: Vec::new() }
    }

    pub(super) fn runs(&self, task: u32) -> bool {
        task < self.waiting.count() && !self.waiting.waits(task) && !self.done.has(task as usize)
    }

    pub(super) fn rack(&self, task: u32) -> Option<RackIdx> {
        self.marks.get(task as usize).filter(|mark| mark.rack != u32::MAX).map(|mark| RackIdx(mark.rack))
    }

    pub(super) fn set_rack(&mut self, task: u32, rack: Option<RackIdx>) {
        if self.marks.is_empty() {
            self.marks = vec![Mark { output: Bytes::ZERO, rack: u32::MAX }; self.waiting.count() as usize];
        }
        self.marks[task as usize].rack = rack.map_or(u32::MAX, |rack| rack.0);
    }
}

impl Job {
    pub(super) const fn new(attempt: AttemptId, user: UserIdx, since: u64, slow_start: f64) -> Self {
        Self {
            attempt,
            user,
            since,
            groups: Vec::new(),
            placed: JobRank { running: 0, maps: false, reduces: false, early_mb: 0 },
            running: 0,
            running_reduces: 0,
            running_reduces_mb: 0,
            slow_start,
            maps: 0,
            maps_done: 0,
            reduces: 0,
            told_ratio: None,
            ratio_sum: 0.0,
            ratios: 0,
            input: Bytes::ZERO,
            done_input: Bytes::ZERO,
            output: Bytes::ZERO,
            output_by_rack: Vec::new(),
            reduces_by_rack: Vec::new(),
        }
    }

    pub(super) fn standing(&self) -> JobRank {
        let maps = self.of_kind(false).any(|group| group.waiting.left() > 0);
        let reduces = self.of_kind(true).any(|group| group.waiting.left() > 0) && self.may_reduce();
        JobRank { running: self.running, maps, reduces, early_mb: if maps { self.running_reduces_mb } else { 0 } }
    }

    /// Reduces, or what is launched as maps are.
    pub(super) fn of_kind(&self, reduces: bool) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |group| (group.kind == Kind::Reduce) == reduces)
    }

    pub(super) fn may_reduce(&self) -> bool {
        // A share such as 0.2 of 15 maps is a hair above 3 in binary.
        f64::from(self.maps_done) >= self.slow_start * f64::from(self.maps) - 1e-9
    }

    /// What was told with the group, else the mean over ended maps of output ÷ input.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.told_ratio.or_else(|| (self.ratios > 0).then(|| self.ratio_sum / f64::from(self.ratios)))
    }

    pub(super) fn tell_ratio(&mut self, ratio: Option<f64>) {
        self.told_ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0).or(self.told_ratio);
    }

    /// What ended maps put out, and of the rest the ratio times their input; 0 without reduces.
    pub(super) fn shuffle(&self) -> Bytes {
        if self.reduces == 0 {
            return Bytes::ZERO;
        }
        let rest = self.input.saturating_sub(self.done_input).as_f64() * self.ratio().unwrap_or(1.0);
        self.output.saturating_add(Bytes(rest as u64))
    }

    pub(super) fn map_done(&mut self, group: usize, task: u32, read: Bytes, output: Bytes) {
        let row = &mut self.groups[group];
        row.marks[task as usize].output = output;
        if read > Bytes::ZERO {
            self.ratio_sum += output.as_f64() / read.as_f64();
            self.ratios += 1;
        }
        let (input, rack) = (row.waiting.input(task), row.rack(task));
        self.maps_done += 1;
        self.done_input = self.done_input.saturating_add(input);
        self.output = self.output.saturating_add(output);
        if let Some(rack) = rack {
            let by_rack = at_rack(&mut self.output_by_rack, rack);
            *by_rack = by_rack.saturating_add(output);
        }
    }

    /// Its output is gone; what was learnt of the ratio stays.
    pub(super) fn map_lost(&mut self, group: usize, task: u32) {
        let row = &self.groups[group];
        let (input, output, rack) = (row.waiting.input(task), row.marks[task as usize].output, row.rack(task));
        self.maps_done -= 1;
        self.done_input = self.done_input.saturating_sub(input);
        self.output = self.output.saturating_sub(output);
        if let Some(rack) = rack {
            let by_rack = at_rack(&mut self.output_by_rack, rack);
            *by_rack = by_rack.saturating_sub(output);
        }
    }

    /// Reduces of it that were launched in the rack and have not failed.
    pub(super) fn count_reduce(&mut self, rack: Option<RackIdx>, more: bool) {
        let Some(rack) = rack else { return };
        let count = at_rack(&mut self.reduces_by_rack, rack);
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
    }
}

fn at_rack<T: Clone + Default>(column: &mut Vec<T>, rack: RackIdx) -> &mut T {
    if rack.at() >= column.len() {
        column.resize(rack.at() + 1, T::default());
    }
    &mut column[rack.at()]
}
