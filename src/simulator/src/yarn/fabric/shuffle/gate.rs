//! Shuffles held back until somebody tells the bytes of a job and a pair of racks to move (004 §4.2.2).
//!
//! A start is for what is gathered at that moment: each batch may begin one fetch from each of the rack's sources that
//! holds something for it, and takes all that is there when the fetch begins. What comes later is held back again. What
//! stays in its rack never is.

use super::super::JobNo;
use super::super::active_flows::ActiveFlows;
use super::super::links::Links;
use super::batch::Batch;
use super::{Outside, Shuffle};
use crate::settings::FlowGrain;
use hintd_model::units::{Bytes, RackIdx};
use std::collections::BTreeMap;

/// Output of a job's finished maps in one rack that is held back from its reduces in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gathered {
    /// The job.
    pub job: JobNo,
    /// Where it lies.
    pub from: RackIdx,
    /// Where it is wanted.
    pub to: RackIdx,
    /// How much.
    pub bytes: Bytes,
}

/// Where shuffles are held back, the rack of each place; else nothing, and all are let through.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    racks: Option<Vec<RackIdx>>,
}

impl Gate {
    fn shut(grain: FlowGrain, links: &Links) -> Self {
        let racks = match grain {
            FlowGrain::Racks => (0..links.racks()).map(RackIdx::new).collect(),
            FlowGrain::Nodes => {
                (0..links.nodes()).map(|node| links.rack(hintd_model::units::NodeIdx::new(node))).collect()
            }
        };
        Self { racks: Some(racks) }
    }

    /// Whether a batch may fetch from its `at`-th source, which lies at `place`.
    pub(super) fn lets(&self, batch: &Batch, at: usize, place: u32) -> bool {
        let Some(racks) = &self.racks else { return true };
        racks[place as usize] == racks[batch.place as usize] || batch.open.get(at) == Some(&true)
    }
}

impl Batch {
    /// A start is used up.
    pub(super) fn shut(&mut self, source: usize) {
        if let Some(open) = self.open.get_mut(source) {
            *open = false;
        }
    }

    /// Bytes of a source that it has not begun to fetch.
    fn unseen(&self, source: usize, held: u64) -> u64 {
        held - self.seen.get(source).map_or(0, |seen| seen.bytes)
    }
}

impl Shuffle {
    /// From now on shuffles between racks wait for [`Self::release`].
    pub(in super::super) fn hold_back(&mut self, links: &Links) {
        self.gate = Gate::shut(self.grain, links);
    }

    /// What is held back, by job and racks ascending.
    pub(in super::super) fn held_back(&self) -> Vec<Gathered> {
        let Some(racks) = &self.gate.racks else { return Vec::new() };
        let mut sums: BTreeMap<(JobNo, RackIdx, RackIdx), u128> = BTreeMap::new();
        for (number, job) in self.jobs.iter().enumerate() {
            let Some(job) = job.as_deref() else { continue };
            let batches = job.batches.iter().map(|&at| &self.batches[at as usize]).filter(|batch| batch.begun);
            for batch in batches {
                for (at, source) in job.sources.iter().enumerate() {
                    let bytes = batch.unseen(at, source.held);
                    if bytes > 0 && !self.gate.lets(batch, at, source.place) {
                        let pair = (JobNo(number as u32), racks[source.place as usize], racks[batch.place as usize]);
                        *sums.entry(pair).or_default() += u128::from(bytes) * batch.members.len() as u128;
                    }
                }
            }
        }
        let whole = |job: JobNo, sum: u128| {
            let reduces = self.jobs[job.at()].as_deref().map_or(1, |job| job.reduces.max(1));
            Bytes(sum.div_ceil(u128::from(reduces)) as u64)
        };
        sums.into_iter().map(|((job, from, to), sum)| Gathered { job, from, to, bytes: whole(job, sum) }).collect()
    }

    /// What a batch's job has under way from one of its sources to the batch's rack, and may move: of all batches there.
    /// 0 where even all that the source holds would be no elephant.
    pub(super) fn outstanding(&self, at: u32, source: usize, wires: &ActiveFlows) -> Bytes {
        let (job, place) = (self.batches[at as usize].job, self.batches[at as usize].place);
        let Some(job) = self.jobs[job.at()].as_deref() else { return Bytes::ZERO };
        let from = job.sources[source];
        if self.grain == FlowGrain::Nodes || !wires.would_ride(RackIdx(from.place), RackIdx(place), Bytes(from.held)) {
            return Bytes::ZERO;
        }
        let mut sum = 0;
        for batch in job.batches.iter().map(|&at| &self.batches[at as usize]) {
            if batch.place != place || !batch.begun {
                continue;
            }
            let under = batch.under.iter().filter(|fetch| fetch.source as usize == source);
            let under: u64 = under.map(|fetch| fetch.bytes).sum();
            let may = if self.gate.lets(batch, source, from.place) { batch.unseen(source, from.held) } else { 0 };
            sum += u128::from(under + may) * batch.members.len() as u128;
        }
        Bytes(sum.div_ceil(u128::from(job.reduces.max(1))) as u64)
    }

    /// Starts what is held back for a job and a pair of racks.
    pub(in super::super) fn release(&mut self, job: JobNo, from: RackIdx, to: RackIdx, out: &mut Outside<'_>) {
        let Some(racks) = &self.gate.racks else { return };
        let Some(of) = self.jobs.get(job.at()).and_then(Option::as_deref) else { return };
        for &at in &of.batches {
            let batch = &mut self.batches[at as usize];
            if !batch.begun || racks[batch.place as usize] != to {
                continue;
            }
            batch.open.resize(of.sources.len(), false);
            for (source, held) in of.sources.iter().enumerate() {
                let there = racks[held.place as usize] == from && batch.unseen(source, held.held) > 0;
                batch.open[source] |= there;
            }
        }
        for at in of.batches.clone() {
            self.fetch_on(at, out);
        }
    }
}
