//! Which source a batch fetches from next, and what a fetch brings.

use super::super::active_flows::{NO_WIRE, Owner};
use super::super::bytes::Locality;
use super::super::circuits::Ride;
use super::super::links::Ends;
use super::batch::{Batch, Fetch, Seen};
use super::gate::Gate;
use super::job::Job;
use super::{Outside, Shuffle, locality, rack_of};
use crate::settings::FlowGrain;
use hintd_model::units::{Bytes, NodeIdx, RackIdx};
use smallvec::{SmallVec, smallvec};

impl Shuffle {
    /// Lets a batch fetch as much as it may; it is gone afterwards if all its bytes are there.
    pub(in super::super) fn fetch_on(&mut self, at: u32, out: &mut Outside<'_>) {
        if !self.batches[at as usize].begun {
            return;
        }
        while self.batches[at as usize].under.len() < self.fetches {
            let batch = &mut self.batches[at as usize];
            let job = self.jobs[batch.job.at()].as_deref_mut().expect("a batch goes with its job");
            if batch.seen.len() < job.sources.len() {
                batch.seen.resize(job.sources.len(), Seen::default());
            }
            let Some(source) = next_source(batch, job, self.grain, &self.down, &self.gate) else {
                ask_to_be_woken(batch, job, &self.gate);
                break;
            };
            batch.cursor = source as u32 + 1;
            self.start(at, source, out);
        }
        self.end_if_whole(at, out);
    }

    /// Fetches all that the source holds for the batch.
    fn start(&mut self, at: u32, source: usize, out: &mut Outside<'_>) {
        let gathered = self.outstanding(at, source, out.wires);
        let batch = &mut self.batches[at as usize];
        let job = self.jobs[batch.job.at()].as_deref().expect("a batch goes with its job");
        let from = job.sources[source];
        let seen = &mut batch.seen[source];
        let bytes = from.held - seen.bytes;
        let turns = (seen.turn + 1, from.turn);
        *seen = Seen { bytes: from.held, turn: from.turn };
        batch.shut(source);
        batch.seen_bytes += bytes;
        // A rack stands for its nodes: few racks send as much as many nodes would.
        let caps = match self.fills_nics {
            true => {
                let sources = job.sources.len().clamp(1, self.fetches);
                [batch.cap_bits_per_s * self.fetches as f64 / sources as f64, f64::INFINITY]
            }
            false => [batch.cap_bits_per_s; 2],
        };
        let owner = |group: usize| Owner::Fetch { batch: at, source: source as u32, group: group as u32 };
        let each = |bytes: u64| Bytes(bytes.div_ceil(u64::from(job.reduces)));
        let members = batch.members.len() as u32;
        let sender = job.sender(source, &out.wires.links);
        let mut fetch = Fetch { source: source as u32, bytes, turns, wires: SmallVec::new(), on_node: Vec::new() };
        match (self.grain, from.place == batch.place) {
            (FlowGrain::Nodes, true) => {}
            (FlowGrain::Nodes, false) => {
                let ends = Ends::Nodes(NodeIdx(from.place), NodeIdx(batch.place));
                fetch.wires = smallvec![out.wires.start(owner(0), ends, each(bytes), members, f64::INFINITY)];
            }
            (FlowGrain::Racks, false) => {
                let pair = (batch.job, RackIdx(from.place), RackIdx(batch.place));
                let (packet_cap, circuit_cap) = (caps[0], batch.circuit_cap_bits_per_s);
                let ride = Ride { pair, sender, packet_cap, circuit_cap };
                fetch.wires = smallvec![out.wires.start_between(owner(0), ride, each(bytes), members, gathered)];
            }
            (FlowGrain::Racks, true) => {
                for (at, group) in batch.groups.iter_mut().enumerate() {
                    let held = job.held_on(group.node);
                    let own = held.saturating_sub(group.seen).min(bytes);
                    group.seen = held;
                    fetch.on_node.push(own);
                    let to = group.node;
                    let ends =
                        sender.filter(|&node| node != to).map_or(Ends::Into(to), |from| Ends::NodeInto(from, to));
                    let rest = each(bytes - own);
                    let some = rest > Bytes::ZERO && group.members > 0;
                    fetch.wires.push(match some {
                        true => out.wires.start(owner(at), ends, rest, group.members, caps[1]),
                        false => NO_WIRE,
                    });
                }
            }
        }
        batch.under.push(fetch);
        self.land_if_whole(at, source as u32, out);
    }

    /// A flow of a fetch has ended.
    pub(in super::super) fn flow_ended(&mut self, at: u32, source: u32, group: u32) {
        let mut under = self.batches[at as usize].under.iter_mut();
        let fetch = under.find(|fetch| fetch.source == source).expect("a flow goes with its fetch");
        fetch.wires[group as usize] = NO_WIRE;
    }

    /// Counts the fetch if nothing of it is under way any more, and says so.
    pub(in super::super) fn land_if_whole(&mut self, at: u32, source: u32, out: &mut Outside<'_>) -> bool {
        let batch = &mut self.batches[at as usize];
        let Some(slot) = batch.under.iter().position(|fetch| fetch.source == source && fetch.landed()) else {
            return false;
        };
        let fetch = batch.under.swap_remove(slot);
        let job = self.jobs[batch.job.at()].as_deref().expect("a batch goes with its job");
        let from = job.sources[source as usize].place;
        match fetch.on_node.as_slice() {
            [] => {
                let far = locality(from, batch.place, self.grain, out.wires);
                let bytes = batch.part(fetch.bytes, job.reduces);
                let [from, to] = [from, batch.place].map(|place| rack_of(place, self.grain, out.wires));
                out.racks.add(from, to, bytes);
                out.bytes.add_shuffle(far, bytes);
            }
            on_node => {
                for (group, &own) in batch.groups.iter().zip(on_node) {
                    let all = batch.part_on(group.node, fetch.bytes, job.reduces);
                    let here = (u128::from(all) * u128::from(own) / u128::from(fetch.bytes.max(1))) as u64;
                    out.bytes.add_shuffle(Locality::Node, here);
                    out.bytes.add_shuffle(Locality::Rack, all - here);
                }
            }
        }
        batch.got += fetch.bytes;
        true
    }
}

/// The next source in turn that holds enough and is not being fetched from.
fn next_source(batch: &Batch, job: &Job, grain: FlowGrain, down: &[bool], gate: &Gate) -> Option<usize> {
    if batch.seen_bytes == job.held {
        return None;
    }
    let least = if job.complete { 1 } else { job.portion };
    let count = job.sources.len();
    let first = batch.cursor as usize % count.max(1);
    (first..count).chain(0..first).find(|&at| {
        let source = &job.sources[at];
        source.held - batch.seen[at].bytes >= least
            && !batch.under.iter().any(|fetch| fetch.source == at as u32)
            && (grain == FlowGrain::Racks || !down[source.place as usize])
            && gate.lets(batch, at, source.place)
    })
}

/// While maps run, a batch with a fetch to spare is woken when a source that it does not fetch from holds enough.
fn ask_to_be_woken(batch: &Batch, job: &mut Job, gate: &Gate) {
    if job.complete {
        return;
    }
    for (at, source) in job.sources.iter_mut().enumerate() {
        if !batch.under.iter().any(|fetch| fetch.source == at as u32) && gate.lets(batch, at, source.place) {
            source.wake = source.wake.min(batch.seen[at].bytes.saturating_add(job.portion));
        }
    }
}
