//! Remote reads of map input: from which replica, and what becomes of them when nodes are lost.

use super::active_flows::{ActiveFlows, NO_WIRE, Owner};
use super::bytes::{Crossed, FabricBytes, Locality};
use super::draw::draw;
use super::links::{Ends, Links};
use super::{Arrived, ReadNo};
use crate::settings::FlowGrain;
use hintd_model::units::{Bytes, NodeIdx};
use smallvec::SmallVec;

/// All reads under way.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    /// By number.
    under: Vec<Option<Read>>,
    /// By node.
    down: Vec<bool>,
    seed: u64,
}

#[derive(Debug, Clone)]
struct Read {
    node: NodeIdx,
    replicas: SmallVec<[NodeIdx; 3]>,
    bytes: Bytes,
    /// The replica read, and [`NO_WIRE`] while none is there.
    from: NodeIdx,
    wire: u32,
}

impl Reads {
    pub(super) fn new(nodes: usize, seed: u64) -> Self {
        Self { under: Vec::new(), down: vec![false; nodes], seed }
    }

    /// Begins a read from the nearest replica: on the node, in its rack, else anywhere; of equally near ones one is
    /// drawn. On the node there is nothing to wait for, as there is with no bytes or where no replica is known.
    pub(super) fn begin(
        &mut self,
        reader: ReadNo,
        node: NodeIdx,
        replicas: &[NodeIdx],
        bytes: Bytes,
        wires: &mut ActiveFlows,
        count: &mut FabricBytes,
    ) -> Locality {
        self.break_off(reader, wires);
        if bytes == Bytes::ZERO || replicas.is_empty() || replicas.contains(&node) {
            count.add_input(Locality::Node, bytes.0);
            return Locality::Node;
        }
        let read = Read { node, replicas: replicas.into(), bytes, from: replicas[0], wire: NO_WIRE };
        if reader.at() >= self.under.len() {
            self.under.resize(reader.at() + 1, None);
        }
        self.under[reader.at()] = Some(read);
        let from = self.start(reader, wires).unwrap_or(replicas[0]);
        far(from, node, &wires.links)
    }

    /// Starts the read's flow if a replica is there.
    fn start(&mut self, reader: ReadNo, wires: &mut ActiveFlows) -> Option<NodeIdx> {
        let read = self.under[reader.at()].as_mut()?;
        let there = read.replicas.iter().copied().filter(|replica| !self.down[replica.at()]);
        let links = &wires.links;
        let drawn = |replica: NodeIdx| {
            let what = [u64::from(reader.0), u64::from(read.node.0), u64::from(replica.0), read.bytes.0];
            draw(self.seed ^ wires.now_s().to_bits(), &what)
        };
        let from = there.min_by_key(|&replica| (far(replica, read.node, links), drawn(replica), replica))?;
        read.from = from;
        let (ends, cap) = match (links.grain(), far(from, read.node, links)) {
            (FlowGrain::Nodes, _) => (Ends::Nodes(from, read.node), f64::INFINITY),
            (FlowGrain::Racks, Locality::CrossRack) => {
                (Ends::Racks(links.rack(from), links.rack(read.node)), links.nic_bits_per_s(read.node))
            }
            (FlowGrain::Racks, _) => (Ends::Into(read.node), f64::INFINITY),
        };
        read.wire = wires.start(Owner::Read(reader.0), ends, read.bytes, 1, cap);
        Some(from)
    }

    /// Breaks a read off; nothing happens if there is none. One that has arrived and was not told is not told any more.
    pub(super) fn stop(&mut self, reader: ReadNo, wires: &mut ActiveFlows, ready: &mut Vec<Arrived>) {
        ready.retain(|&what| what != Arrived::Read(reader));
        self.break_off(reader, wires);
    }

    fn break_off(&mut self, reader: ReadNo, wires: &mut ActiveFlows) {
        let read = self.under.get_mut(reader.at()).and_then(Option::take);
        if let Some(read) = read.filter(|read| read.wire != NO_WIRE) {
            wires.stop(read.wire);
        }
    }

    pub(super) fn ended(
        &mut self,
        reader: ReadNo,
        links: &Links,
        (count, racks): (&mut FabricBytes, &mut Crossed),
        ready: &mut Vec<Arrived>,
    ) {
        let read = self.under[reader.at()].take().expect("a flow goes with its read");
        racks.add(links.rack(read.from), links.rack(read.node), read.bytes.0);
        count.add_input(far(read.from, read.node, links), read.bytes.0);
        ready.push(Arrived::Read(reader));
    }

    /// A node is lost or back. Lost: its own reads stop, and what is read from it is read anew from another replica,
    /// or once one is back.
    pub(super) fn node(&mut self, node: NodeIdx, up: bool, wires: &mut ActiveFlows) {
        self.down[node.at()] = !up;
        for at in 0..self.under.len() {
            let reader = ReadNo(at as u32);
            let Some(read) = &mut self.under[at] else { continue };
            if !up && read.node == node {
                self.break_off(reader, wires);
            } else if !up && read.from == node && read.wire != NO_WIRE {
                wires.stop(std::mem::replace(&mut read.wire, NO_WIRE));
                self.start(reader, wires);
            } else if up && read.wire == NO_WIRE {
                self.start(reader, wires);
            }
        }
    }

    /// Reads for which no replica is there.
    pub(super) fn without_replica(&self) -> usize {
        self.under.iter().flatten().filter(|read| read.wire == NO_WIRE).count()
    }
}

fn far(from: NodeIdx, node: NodeIdx, links: &Links) -> Locality {
    match (from == node, links.rack(from) == links.rack(node)) {
        (true, _) => Locality::Node,
        (_, true) => Locality::Rack,
        _ => Locality::CrossRack,
    }
}
