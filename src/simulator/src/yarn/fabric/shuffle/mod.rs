//! Shuffle: what sources hold, what batches of reduces have fetched, what they fetch next.
//!
//! # Exactness
//! A batch's progress is one number: how much of the job's shuffle it has fetched. Reduce r of R has got
//! x ÷ R of x bytes, rounded down, and one byte more if r < x mod R: what JobModel gives it of the whole. So each
//! reduce ends with exactly its share, and the job's reduces with exactly the shuffle, whatever the order of fetches
//! and whatever was lost on the way. In a flow every member carries the largest member's bytes.

mod batch;
mod failures;
mod fetch;
mod gate;
mod job;

pub use gate::Gathered;

use super::Arrived;
use super::JobNo;
use super::active_flows::ActiveFlows;
use super::bytes::{Crossed, FabricBytes, Locality};
use super::draw::draw;
use crate::settings::{Authority, FlowGrain, SimSettings};
use batch::{Batch, Member};
use gate::Gate;
use hintd_model::units::{Bytes, NodeIdx, RackIdx};
use job::Job;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fetches of a portion while maps run: a tenth of what a reduce expects from a source.
const PORTIONS: u64 = 10;

/// A reduce that is in no batch.
const OUTSIDE: u32 = u32::MAX;
/// A reduce whose bytes are all there.
const ARRIVED: u32 = u32::MAX - 1;

/// All jobs' shuffles.
#[derive(Debug, Clone)]
pub(super) struct Shuffle {
    /// By job.
    jobs: Vec<Option<Box<Job>>>,
    batches: Vec<Batch>,
    free: Vec<u32>,
    /// Second in which a batch begins, and the batch; may be gone by then.
    starts: BinaryHeap<Reverse<(u64, u32)>>,
    /// At once, by batch.
    fetches: usize,
    /// Grain `racks`: whether few fetches may fill a NIC.
    fills_nics: bool,
    seed: u64,
    grain: FlowGrain,
    /// Grain `nodes`: those that are down are not fetched from.
    down: Vec<bool>,
    gate: Gate,
}

/// What a change may bring about outside.
pub(super) struct Outside<'a> {
    pub(super) wires: &'a mut ActiveFlows,
    pub(super) bytes: &'a mut FabricBytes,
    pub(super) racks: &'a mut Crossed,
    pub(super) ready: &'a mut Vec<Arrived>,
}

impl Shuffle {
    pub(super) fn new(settings: &SimSettings, nodes: usize) -> Self {
        let &SimSettings { grain, fetches, seed, authority, .. } = settings;
        Self {
            fills_nics: authority == Authority::Deployed,
            jobs: Vec::new(),
            batches: Vec::new(),
            free: Vec::new(),
            starts: BinaryHeap::new(),
            fetches: fetches.max(1) as usize,
            seed,
            grain,
            down: vec![false; nodes],
            gate: Gate::default(),
        }
    }

    pub(super) fn job(&mut self, job: JobNo, maps: u64, reduces: u64, shuffle: Bytes, wires: &ActiveFlows) {
        if job.at() >= self.jobs.len() {
            self.jobs.resize(job.at() + 1, None);
        }
        let places = match self.grain {
            FlowGrain::Racks => wires.links.racks(),
            FlowGrain::Nodes => wires.links.nodes(),
        };
        let sources = (places as u64).min(maps).max(1);
        let portion = (shuffle.0 / sources).div_ceil(PORTIONS).max(1);
        let reduces = u32::try_from(reduces).expect("a job has at most 2^32 reduces");
        self.jobs[job.at()] = Some(Box::new(Job::new(reduces, shuffle.0, portion, places)));
    }

    pub(super) fn forget(&mut self, job: JobNo, wires: &mut ActiveFlows) {
        let Some(gone) = self.jobs.get_mut(job.at()).and_then(Option::take) else { return };
        for batch in gone.batches {
            self.batches[batch as usize].stop_all(wires);
            self.drop_batch(batch);
        }
    }

    fn drop_batch(&mut self, batch: u32) {
        self.batches[batch as usize] = Batch::default();
        self.free.push(batch);
    }

    /// Where the fabric tells sources and readers apart.
    fn place(&self, node: NodeIdx, wires: &ActiveFlows) -> u32 {
        match self.grain {
            FlowGrain::Racks => wires.links.rack(node).0,
            FlowGrain::Nodes => node.0,
        }
    }

    pub(super) fn map_done(&mut self, job: JobNo, map: u32, node: NodeIdx, output: Bytes, out: &mut Outside<'_>) {
        let place = self.place(node, out.wires);
        let by_node = self.grain == FlowGrain::Racks;
        let Some(of) = self.jobs.get_mut(job.at()).and_then(Option::as_deref_mut) else { return };
        if of.reduces == 0 || output == Bytes::ZERO {
            return;
        }
        let (source, again) = of.take_output(map, place, by_node.then_some(node), output.0);
        if again {
            self.spare_who_has(job, map, source, output.0);
        }
        let of = self.jobs[job.at()].as_deref().expect("just seen");
        if of.sources[source].held >= of.sources[source].wake && !of.batches.is_empty() {
            self.wake(job, source, out);
        }
    }

    /// Lets batches fetch from a source that holds enough for one at least, and finds when to look again.
    fn wake(&mut self, job: JobNo, source: usize, out: &mut Outside<'_>) {
        let of = self.jobs[job.at()].as_deref_mut().expect("callers have seen it");
        of.sources[source].wake = u64::MAX;
        // A batch that has a fetch to spare asks to be woken again.
        for batch in of.batches.clone() {
            self.fetch_on(batch, out);
        }
    }

    pub(super) fn maps_complete(&mut self, job: JobNo, out: &mut Outside<'_>) {
        let Some(of) = self.jobs.get_mut(job.at()).and_then(Option::as_deref_mut) else { return };
        of.complete = true;
        for batch in of.batches.clone() {
            self.fetch_on(batch, out);
        }
    }

    pub(super) fn reduce_begins(&mut self, now_s: f64, job: JobNo, reduce: u32, node: NodeIdx, wires: &ActiveFlows) {
        let place = self.place(node, wires);
        let second = now_s.max(0.0) as u64 + 1;
        let Some(of) = self.jobs.get_mut(job.at()).and_then(Option::as_deref_mut) else { return };
        // What no reduce needed when it was lost, this one does.
        of.complete &= of.missing.is_empty();
        let like = |&batch: &u32| {
            let batch = &self.batches[batch as usize];
            batch.place == place && batch.second == second && !batch.begun
        };
        let batch = of.batches.iter().copied().rev().find(like).unwrap_or_else(|| {
            let batch = self.free.pop().unwrap_or(self.batches.len() as u32);
            let fresh = Batch { job, place, second, ..Batch::default() };
            if batch as usize == self.batches.len() {
                self.batches.push(fresh);
            } else {
                self.batches[batch as usize] = fresh;
            }
            of.batches.push(batch);
            self.starts.push(Reverse((second, batch)));
            batch
        });
        *of.at_reduce(reduce) = batch;
        self.batches[batch as usize].join(Member { reduce, node });
    }

    /// When the next batch begins, seconds.
    pub(super) fn next_s(&self) -> Option<f64> {
        self.starts.peek().map(|&Reverse((second, _))| second as f64)
    }

    /// Begins the batches of the seconds up to now.
    pub(super) fn begin(&mut self, now_s: f64, out: &mut Outside<'_>) {
        while let Some(&Reverse((second, at))) = self.starts.peek().filter(|first| first.0.0 as f64 <= now_s) {
            self.starts.pop();
            let batch = &mut self.batches[at as usize];
            if batch.second != second || batch.begun || batch.members.is_empty() {
                continue;
            }
            batch.begin(self.grain, self.fetches, &out.wires.links);
            let what = [u64::from(batch.job.0), u64::from(batch.place), second];
            batch.cursor = draw(self.seed, &what) as u32;
            self.fetch_on(at, out);
        }
    }

    /// Whether all of the batch's bytes are there: if so its reduces have arrived, and it is gone.
    fn end_if_whole(&mut self, at: u32, out: &mut Outside<'_>) {
        let batch = &self.batches[at as usize];
        let job = batch.job;
        let of = self.jobs[job.at()].as_deref_mut().expect("a batch goes with its job");
        if !of.complete || !batch.under.is_empty() || batch.seen_bytes != of.held {
            return;
        }
        debug_assert_eq!(batch.got, of.shuffle, "the outputs of a job's maps make up its shuffle");
        for member in &batch.members {
            *of.at_reduce(member.reduce) = ARRIVED;
            out.ready.push(Arrived::Shuffle { job, reduce: member.reduce });
        }
        of.arrived += batch.members.len() as u32;
        of.batches.retain(|&other| other != at);
        self.drop_batch(at);
    }

    /// Reduces that wait for bytes.
    pub(super) fn waiting(&self) -> usize {
        self.batches.iter().map(|batch| batch.members.len()).sum()
    }
}

/// What the reduce gets of `bytes` of the job's shuffle, of `reduces`.
const fn share(bytes: u64, reduce: u32, reduces: u32) -> u64 {
    bytes / reduces as u64 + ((reduce as u64) < bytes % reduces as u64) as u64
}

/// How far a reader is from a source.
fn locality(source: u32, reader: u32, grain: FlowGrain, wires: &ActiveFlows) -> Locality {
    let rack = |place: u32| rack_of(place, grain, wires);
    match (source == reader, rack(source) == rack(reader)) {
        (true, _) if grain == FlowGrain::Nodes => Locality::Node,
        (_, true) => Locality::Rack,
        _ => Locality::CrossRack,
    }
}

fn rack_of(place: u32, grain: FlowGrain, wires: &ActiveFlows) -> RackIdx {
    match grain {
        FlowGrain::Racks => RackIdx(place),
        FlowGrain::Nodes => wires.links.rack(NodeIdx(place)),
    }
}
