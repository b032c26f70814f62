//! Shuffle when output, reduces and nodes are lost.
//!
//! # The rule
//! - The output of a map on a lost node is gone. Batches that have it keep it and skip the rerun's; all others fetch
//!   the rerun's, wherever it lies.
//! - A fetch under way that holds such output goes on without it: what is left shrinks in proportion.
//! - A reduce that stops gives nothing back: what was fetched for it stays counted, and it fetches all again.

use super::super::active_flows::NO_WIRE;
use super::super::{Arrived, JobNo};
use super::batch::{Batch, Seen};
use super::job::LostOutput;
use super::{ARRIVED, OUTSIDE, Outside, Shuffle};
use crate::settings::FlowGrain;
use hintd_model::units::NodeIdx;

impl Shuffle {
    /// A map's output is lost; says whether a reduce needs it still, so that the map has to run again.
    pub(in super::super) fn map_lost(&mut self, job: JobNo, map: u32, node: NodeIdx, out: &mut Outside<'_>) -> bool {
        let place = self.place(node, out.wires);
        let Some(of) = self.jobs.get_mut(job.at()).and_then(Option::as_deref_mut) else { return false };
        let Some(LostOutput { source, turn, bytes }) = of.lose_output(map, place, node) else { return false };
        let mut have = of.arrived;
        for at in of.batches.clone() {
            let batch = &mut self.batches[at as usize];
            match batch.output_state(map, source, turn) {
                OutputState::Needs => continue,
                OutputState::Has => {
                    have += batch.members.len() as u32;
                    if !batch.spared.contains(&map) {
                        batch.spared.push(map);
                    }
                }
                OutputState::Fetches(slot) => self.cut(at, slot, bytes, out),
            }
            let batch = &mut self.batches[at as usize];
            batch.seen[source].bytes -= bytes;
            batch.seen_bytes -= bytes;
            // The node is gone, its reduces with it; until they are told of, their level may not exceed what is held.
            for group in batch.groups.iter_mut().filter(|group| group.node == node) {
                group.seen = group.seen.saturating_sub(bytes);
            }
        }
        let of = self.jobs[job.at()].as_deref_mut().expect("just seen");
        let needed = have < of.reduces;
        if needed {
            of.complete = false;
        } else {
            of.missing.push(map);
        }
        for at in of.batches.clone() {
            self.fetch_on(at, out);
        }
        needed
    }

    /// Takes `bytes` of the job out of a fetch under way.
    fn cut(&mut self, at: u32, slot: usize, bytes: u64, out: &mut Outside<'_>) {
        let batch = &mut self.batches[at as usize];
        let fetch = &mut batch.under[slot];
        let stays = (fetch.bytes - bytes) as f64 / fetch.bytes as f64;
        fetch.bytes -= bytes;
        for own in &mut fetch.on_node {
            *own = (*own).min(fetch.bytes);
        }
        for wire in fetch.wires.iter_mut().filter(|wire| **wire != NO_WIRE) {
            if fetch.bytes == 0 {
                out.wires.stop(*wire);
                *wire = NO_WIRE;
            } else {
                out.wires.shorten(*wire, stays);
            }
        }
        let source = fetch.source;
        self.land_if_whole(at, source, out);
    }

    /// The rerun of a lost map is done: whoever has its output already needs nothing of it.
    pub(super) fn spare_who_has(&mut self, job: JobNo, map: u32, source: usize, bytes: u64) {
        let of = self.jobs[job.at()].as_deref().expect("callers have seen it");
        for &at in &of.batches {
            let batch = &mut self.batches[at as usize];
            if batch.spared.contains(&map) {
                if batch.seen.len() <= source {
                    batch.seen.resize(source + 1, Seen::default());
                }
                batch.seen[source].bytes += bytes;
                batch.seen_bytes += bytes;
            }
        }
    }

    /// A reduce has to run again; nothing happens if it never began or was stopped already.
    pub(in super::super) fn reduce_stops(&mut self, job: JobNo, reduce: u32, out: &mut Outside<'_>) {
        let Some(of) = self.jobs.get_mut(job.at()).and_then(Option::as_deref_mut) else { return };
        match std::mem::replace(of.at_reduce(reduce), OUTSIDE) {
            OUTSIDE => {}
            ARRIVED => {
                of.arrived -= 1;
                out.ready.retain(|&what| what != Arrived::Shuffle { job, reduce });
            }
            batch => self.leave(batch, reduce, out),
        }
    }

    fn leave(&mut self, at: u32, reduce: u32, out: &mut Outside<'_>) {
        let batch = &mut self.batches[at as usize];
        let found = batch.members.iter().position(|member| member.reduce == reduce).expect("it is in its batch");
        let node = batch.members.remove(found).node;
        if batch.members.is_empty() {
            batch.stop_all(out.wires);
            let job = batch.job;
            let of = self.jobs[job.at()].as_deref_mut().expect("a batch goes with its job");
            of.batches.retain(|&other| other != at);
            self.drop_batch(at);
            return;
        }
        let members = batch.members.len() as u32;
        let group = batch.groups.iter().position(|group| group.node == node);
        if let Some(group) = group {
            batch.groups[group].members -= 1;
        }
        let mut landed = Vec::new();
        for fetch in &mut batch.under {
            let own_rack = group.filter(|_| !fetch.on_node.is_empty());
            let (wire, left) = match own_rack {
                Some(group) => (&mut fetch.wires[group], batch.groups[group].members),
                None => (&mut fetch.wires[0], members),
            };
            if *wire == NO_WIRE {
                continue;
            }
            if left > 0 {
                out.wires.set_members(*wire, left);
            } else {
                out.wires.stop(*wire);
                *wire = NO_WIRE;
                landed.push(fetch.source);
            }
        }
        for source in landed {
            self.land_if_whole(at, source, out);
        }
        self.fetch_on(at, out);
    }

    /// A node is lost or back. Lost: its reduces stop; grain `nodes`: nothing is fetched from it until it is back.
    pub(in super::super) fn node(&mut self, node: NodeIdx, up: bool, out: &mut Outside<'_>) {
        self.down[node.at()] = !up;
        if up {
            for at in 0..self.batches.len() as u32 {
                if !self.batches[at as usize].members.is_empty() {
                    self.fetch_on(at, out);
                }
            }
            return;
        }
        for at in 0..self.batches.len() {
            let lost = self.batches[at].members.iter().filter(|member| member.node == node);
            let (job, lost) = (self.batches[at].job, lost.map(|member| member.reduce).collect::<Vec<_>>());
            for reduce in lost {
                self.reduce_stops(job, reduce, out);
            }
            if self.grain == FlowGrain::Nodes && !self.batches[at].members.is_empty() {
                self.break_off(at as u32, node, out);
            }
        }
    }

    /// Grain `nodes`: what was being fetched from a lost node has to be fetched again.
    fn break_off(&mut self, at: u32, node: NodeIdx, out: &mut Outside<'_>) {
        let batch = &mut self.batches[at as usize];
        let job = self.jobs[batch.job.at()].as_deref().expect("a batch goes with its job");
        let from = |source: u32| job.sources[source as usize].place;
        let Some(slot) = batch.under.iter().position(|fetch| from(fetch.source) == node.0) else { return };
        let fetch = batch.under.swap_remove(slot);
        fetch.wires.iter().filter(|&&wire| wire != NO_WIRE).for_each(|&wire| out.wires.stop(wire));
        let seen = &mut batch.seen[fetch.source as usize];
        *seen = Seen { bytes: seen.bytes - fetch.bytes, turn: fetch.turns.0 - 1 };
        batch.seen_bytes -= fetch.bytes;
        self.fetch_on(at, out);
    }

    /// Maps whose output is lost and was not needed when it was.
    pub(in super::super) fn maps_missing(&self, job: JobNo) -> &[u32] {
        self.jobs.get(job.at()).and_then(Option::as_deref).map_or(&[], |of| &of.missing)
    }
}

/// What a batch has of one map's output.
enum OutputState {
    /// It has not begun to fetch it.
    Needs,
    /// It has it.
    Has,
    /// It is part of that fetch.
    Fetches(usize),
}

impl Batch {
    fn output_state(&self, map: u32, source: usize, turn: u32) -> OutputState {
        if self.spared.contains(&map) {
            return OutputState::Has;
        }
        let under = |fetch: &super::batch::Fetch| {
            fetch.source as usize == source && (fetch.turns.0..=fetch.turns.1).contains(&turn)
        };
        match self.under.iter().position(under) {
            Some(slot) => OutputState::Fetches(slot),
            None if self.seen.get(source).is_some_and(|seen| turn <= seen.turn) => OutputState::Has,
            None => OutputState::Needs,
        }
    }
}
