//! Reduces of one job in one place that begin in one second, and their fetches under way.

use super::super::JobNo;
use super::super::active_flows::{ActiveFlows, NO_WIRE};
use super::super::links::Links;
use super::share;
use crate::settings::FlowGrain;
use hintd_model::units::NodeIdx;
use smallvec::SmallVec;

/// Like reduces: what one has fetched, all have.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    pub(super) job: JobNo,
    pub(super) place: u32,
    /// The second in which it begins to fetch.
    pub(super) second: u64,
    pub(super) begun: bool,
    /// Ascending by reduce.
    pub(super) members: Vec<Member>,
    /// Its nodes, ascending; grain `racks`, from the begin on.
    pub(super) groups: Vec<Group>,
    /// What each member's fetch may take at most, bits/s.
    pub(super) cap_bits_per_s: f64,
    /// The same over a circuit: only one leads into a rack, so that fetches from other racks leave the NIC to it, and
    /// only reduces on one node share one.
    pub(super) circuit_cap_bits_per_s: f64,
    /// Where its turn through the sources stands.
    pub(super) cursor: u32,
    /// By source of the job; shorter: nothing yet.
    pub(super) seen: Vec<Seen>,
    /// Their sum.
    pub(super) seen_bytes: u64,
    /// Bytes of the job that its fetches have brought.
    pub(super) got: u64,
    pub(super) under: SmallVec<[Fetch; 5]>,
    /// By source of the job, where shuffles are held back: whether one fetch from there may start. Shorter: no.
    pub(super) open: Vec<bool>,
    /// Maps that it has the output of although that was lost where it lay.
    pub(super) spared: Vec<u32>,
}

/// One reduce.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) reduce: u32,
    pub(super) node: NodeIdx,
}

/// Members on one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) node: NodeIdx,
    pub(super) members: u32,
    /// Of what the node itself holds: got or being got.
    pub(super) seen: u64,
}

/// How far a batch is with a source.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Of what the source holds: got, being got, or not needed.
    pub(super) bytes: u64,
    /// The last turn of it.
    pub(super) turn: u32,
}

/// A fetch under way.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    pub(super) source: u32,
    /// Of the job's shuffle, all reduces together.
    pub(super) bytes: u64,
    /// First turn and last.
    pub(super) turns: (u32, u32),
    /// One flow; from the own rack one by group of the batch.
    pub(super) wires: SmallVec<[u32; 2]>,
    /// From the own rack: by group, what of the bytes lies on the node itself.
    pub(super) on_node: Vec<u64>,
}

impl Fetch {
    pub(super) fn landed(&self) -> bool {
        self.wires.iter().all(|&wire| wire == NO_WIRE)
    }
}

impl Batch {
    pub(super) fn join(&mut self, member: Member) {
        let at = self.members.partition_point(|other| other.reduce < member.reduce);
        self.members.insert(at, member);
    }

    pub(super) fn begin(&mut self, grain: FlowGrain, fetches: usize, links: &Links) {
        self.begun = true;
        if grain == FlowGrain::Nodes {
            self.cap_bits_per_s = f64::INFINITY;
            return;
        }
        let nics = self.members.iter().map(|member| links.nic_bits_per_s(member.node));
        self.cap_bits_per_s = nics.fold(f64::INFINITY, f64::min) / fetches as f64;
        for at in 0..self.members.len() {
            let node = self.members[at].node;
            match self.groups.binary_search_by_key(&node, |group| group.node) {
                Ok(at) => self.groups[at].members += 1,
                Err(at) => self.groups.insert(at, Group { node, members: 1, seen: 0 }),
            }
        }
        let shared = self.groups.iter().map(|group| links.nic_bits_per_s(group.node) / f64::from(group.members));
        self.circuit_cap_bits_per_s = shared.fold(f64::INFINITY, f64::min).max(self.cap_bits_per_s);
    }

    /// What all members get of `bytes` of the job, those they had got before taken off.
    pub(super) fn part(&self, bytes: u64, reduces: u32) -> u64 {
        let upto = |bytes: u64| {
            let rest = bytes % u64::from(reduces);
            let more = self.members.partition_point(|member| u64::from(member.reduce) < rest);
            bytes / u64::from(reduces) * self.members.len() as u64 + more as u64
        };
        upto(self.got + bytes) - upto(self.got)
    }

    /// The same for the members on one node.
    pub(super) fn part_on(&self, node: NodeIdx, bytes: u64, reduces: u32) -> u64 {
        let there = self.members.iter().filter(|member| member.node == node);
        there.map(|m| share(self.got + bytes, m.reduce, reduces) - share(self.got, m.reduce, reduces)).sum()
    }

    /// Breaks all fetches off.
    pub(super) fn stop_all(&mut self, wires: &mut ActiveFlows) {
        for fetch in self.under.drain(..) {
            fetch.wires.iter().filter(|&&wire| wire != NO_WIRE).for_each(|&wire| wires.stop(wire));
        }
    }
}
