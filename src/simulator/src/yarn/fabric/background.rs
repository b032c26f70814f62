//! Traffic of others: endless streams between two racks, each like one fetch.

use super::FabricError;
use super::active_flows::ActiveFlows;
use super::draw::draw;
use super::links::{Ends, Links};
use crate::settings::{Background, FlowGrain};
use hintd_model::cluster::NodeStatics;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// Streams that begin and end by the clock.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    /// Seconds, what to do then; the next last.
    changes: Vec<(f64, StreamChange)>,
    streams: Vec<Stream>,
}

#[derive(Debug, Clone, Copy)]
enum StreamChange {
    Begin(usize),
    End(usize),
}

/// Like streams between the same ends.
#[derive(Debug, Clone, Copy)]
struct StreamFlow {
    ends: Ends,
    /// How many.
    members: u32,
    /// What each takes at most, bits/s.
    cap: f64,
}

#[derive(Debug, Clone)]
struct Stream {
    flows: Vec<StreamFlow>,
    wires: Vec<u32>,
}

impl Streams {
    pub(super) fn new(
        statics: &NodeStatics,
        background: &[Background],
        links: &Links,
        fetches: u32,
        seed: u64,
    ) -> Result<Self, FabricError> {
        let mut streams = Self { changes: Vec::new(), streams: Vec::new() };
        for (at, of) in background.iter().enumerate().filter(|(_, of)| of.streams > 0) {
            let rack = |name: &str| {
                let known = statics.by_rack.get(name).copied();
                let rack = known.filter(|rack| !statics.members[rack.at()].is_empty());
                rack.ok_or_else(|| FabricError::NoSuchRack { rack: name.into() })
            };
            let (from, to) = (rack(&of.from_rack)?, rack(&of.to_rack)?);
            let offset = draw(seed, &[at as u64]) as u32 as usize;
            let flows = flows(statics, (from, to), of.streams, links, fetches, offset);
            let number = streams.streams.len();
            streams.streams.push(Stream { flows, wires: Vec::new() });
            streams.changes.push((of.start.as_secs_f64(), StreamChange::Begin(number)));
            streams.changes.extend(of.end.map(|end| (end.max(of.start).as_secs_f64(), StreamChange::End(number))));
        }
        // Stable, so that a stream of no length begins before it ends.
        streams.changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        streams.changes.reverse();
        Ok(streams)
    }

    pub(super) fn next_s(&self) -> Option<f64> {
        self.changes.last().map(|change| change.0)
    }

    /// What is due by now.
    pub(super) fn advance(&mut self, now_s: f64, wires: &mut ActiveFlows) {
        while let Some((_, change)) = self.changes.pop_if(|change| change.0 <= now_s) {
            match change {
                StreamChange::Begin(at) => {
                    let stream = &mut self.streams[at];
                    let flows = stream.flows.iter();
                    stream.wires = flows.map(|flow| wires.stream(flow.ends, flow.members, flow.cap)).collect();
                }
                StreamChange::End(at) => self.streams[at].wires.drain(..).for_each(|wire| wires.stop(wire)),
            }
        }
    }
}

/// Streams between racks are one weighted flow in grain `racks`; in grain `nodes`, and within a rack, they go from
/// and to the racks' nodes in turn.
fn flows(
    statics: &NodeStatics,
    (from, to): (RackIdx, RackIdx),
    streams: u32,
    links: &Links,
    fetches: u32,
    offset: usize,
) -> Vec<StreamFlow> {
    let [senders, readers] = [from, to].map(|rack| &statics.members[rack.at()]);
    let cap = |node: NodeIdx| links.nic_bits_per_s(node) / f64::from(fetches.max(1));
    if links.grain() == FlowGrain::Racks && from != to {
        return vec![StreamFlow { ends: Ends::Racks(from, to), members: streams, cap: cap(readers[0]) }];
    }
    let mut counts: BTreeMap<(NodeIdx, NodeIdx), u32> = BTreeMap::new();
    for stream in 0..streams as usize {
        let reader = readers[(stream + offset) % readers.len()];
        let sender = senders[(stream + offset + usize::from(from == to)) % senders.len()];
        *counts.entry((sender, reader)).or_default() += 1;
    }
    let laid = counts.into_iter().filter_map(|((sender, reader), members)| match links.grain() {
        FlowGrain::Racks => Some(StreamFlow { ends: Ends::Into(reader), members, cap: cap(reader) }),
        FlowGrain::Nodes if sender == reader => None,
        FlowGrain::Nodes => Some(StreamFlow { ends: Ends::Nodes(sender, reader), members, cap: f64::INFINITY }),
    });
    laid.collect()
}
