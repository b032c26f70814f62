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
    turns: Vec<(f64, Turn)>,
    streams: Vec<Stream>,
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    Begin(usize),
    End(usize),
}

#[derive(Debug, Clone)]
struct Stream {
    /// Where to where, and how many at most take how much each.
    flows: Vec<(Ends, u32, f64)>,
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
        let mut streams = Self { turns: Vec::new(), streams: Vec::new() };
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
            streams.turns.push((of.start.as_secs_f64(), Turn::Begin(number)));
            streams.turns.extend(of.end.map(|end| (end.max(of.start).as_secs_f64(), Turn::End(number))));
        }
        // Stable, so that a stream of no length begins before it ends.
        streams.turns.sort_by(|a, b| a.0.total_cmp(&b.0));
        streams.turns.reverse();
        Ok(streams)
    }

    pub(super) fn next_s(&self) -> Option<f64> {
        self.turns.last().map(|turn| turn.0)
    }

    /// What is due by now.
    pub(super) fn turn(&mut self, now_s: f64, wires: &mut ActiveFlows) {
        while let Some((_, turn)) = self.turns.pop_if(|turn| turn.0 <= now_s) {
            match turn {
                Turn::Begin(at) => {
                    let stream = &mut self.streams[at];
                    let flows = stream.flows.iter();
                    stream.wires = flows.map(|&(ends, members, cap)| wires.stream(ends, members, cap)).collect();
                }
                Turn::End(at) => self.streams[at].wires.drain(..).for_each(|wire| wires.stop(wire)),
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
) -> Vec<(Ends, u32, f64)> {
    let [senders, readers] = [from, to].map(|rack| &statics.members[rack.at()]);
    let cap = |node: NodeIdx| links.nic_bits_per_s(node) / f64::from(fetches.max(1));
    if links.grain() == FlowGrain::Racks && from != to {
        return vec![(Ends::Racks(from, to), streams, cap(readers[0]))];
    }
    let mut counts: BTreeMap<(NodeIdx, NodeIdx), u32> = BTreeMap::new();
    for stream in 0..streams as usize {
        let reader = readers[(stream + offset) % readers.len()];
        let sender = senders[(stream + offset + usize::from(from == to)) % senders.len()];
        *counts.entry((sender, reader)).or_default() += 1;
    }
    let laid = counts.into_iter().filter_map(|((sender, reader), count)| match links.grain() {
        FlowGrain::Racks => Some((Ends::Into(reader), count, cap(reader))),
        FlowGrain::Nodes if sender == reader => None,
        FlowGrain::Nodes => Some((Ends::Nodes(sender, reader), count, f64::INFINITY)),
    });
    laid.collect()
}
