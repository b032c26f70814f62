//! Whether what a placement would send finds its ways through the boxes of its chains, beside what runs already.

use super::sends::{Sent, rate};
use crate::refusal::Refusal;
use hintd_model::cluster::{ChainPair, ChainedFlows, Topology};
use hintd_model::network::PathTable;
use hintd_model::network::chains::{
    BoxLoads, Chains, WaypointInputs, WaypointRoute, WhenBroken, best_way, is_whole, unmet,
};
use hintd_model::units::{BitsPerSec, Bytes, ChainIdx, HostName, Micros, NodeIdx, VertexIdx};
use hintd_policy::Work;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pairs and chains with the way of each; a chain that fails open may have none for some.
pub(crate) type Found = BTreeMap<ChainPair, WaypointRoute>;

/// Finds ways for all that is sent, those that send most first: on the route wanted where that can be taken, else on
/// the best there is. A pair that sends under the chain already keeps one way for all of it.
///
/// # Errors
/// [`Refusal::Chain`] where a closed chain has no way left; [`Refusal::MissingFeed`] where there is no network to look
/// for one in; [`Refusal::Unavailable`] where `work` says to stop first.
pub(crate) fn fit(
    topology: &Topology,
    table: Option<&PathTable>,
    running: &ChainedFlows,
    (sends, wanted): (&BTreeMap<ChainPair, Sent>, &Found),
    transfer: Micros,
    host: impl Fn(NodeIdx) -> HostName,
    work: &dyn Work,
) -> Result<Found, Refusal> {
    if sends.is_empty() {
        return Ok(Found::new());
    }
    let Some(chains) = topology.chains.as_deref() else { return Ok(Found::new()) };
    let (Some(network), Some(table)) = (topology.network.as_deref(), table) else {
        return without_network(chains, sends);
    };
    let ways = WaypointInputs { network, table, chains, work: Some(work) };
    // Loads of boxes that were declared anew since are counted when that is settled.
    let same = running.are_of(topology);
    let mut loads = if same { running.loads.clone() } else { BoxLoads::new(chains) };
    let mut order: Vec<(&ChainPair, &Sent)> = sends.iter().collect();
    order.sort_by_key(|(_, sent)| std::cmp::Reverse(sent.bytes));
    let mut found = Found::new();
    for (key, sent) in order {
        let Some(index) = chains.find_chain(&key.chain) else { continue };
        if !work.work(1) {
            return Err(too_late(key));
        }
        let known = running.routes.get(key).filter(|_| same);
        let bytes = known.map_or(0, |known| known.bytes.0).saturating_add(sent.bytes);
        let kept = known.and_then(|known| known.way.as_ref());
        if let (Some(known), Some(way)) = (known, kept) {
            way.boxes.iter().for_each(|&at| loads.remove(at, known.rate));
        }
        let ends = Ends { ways, key, topology, index, rate: rate(Bytes(bytes), transfer) };
        match ends.way(kept.or_else(|| wanted.get(key)), &loads) {
            Some(way) => {
                way.boxes.iter().for_each(|&at| loads.add(at, ends.rate));
                found.insert(key.clone(), way);
            }
            // Not that there is none: nobody looked.
            None if !work.work(1) => return Err(too_late(key)),
            None if chains.chain(index).when_broken == WhenBroken::Open => {}
            None => return Err(ends.broken(&loads, host)),
        }
    }
    Ok(found)
}

fn too_late(key: &ChainPair) -> Refusal {
    let message = format!("the time was over before a way under chain \"{}\" was found", key.chain);
    Refusal::Unavailable { message, retry_after: Micros::from_secs(1) }
}

/// Without a network nobody can say whether a chain is kept.
fn without_network(chains: &Chains, sends: &BTreeMap<ChainPair, Sent>) -> Result<Found, Refusal> {
    let closed = |key: &&ChainPair| {
        chains.find_chain(&key.chain).is_some_and(|index| chains.chain(index).when_broken == WhenBroken::Closed)
    };
    match sends.keys().find(closed) {
        None => Ok(Found::new()),
        Some(key) => Err(Refusal::MissingFeed {
            feed: "topology",
            message: format!("chain \"{}\" is to be kept, and there is no network to route it in", key.chain),
        }),
    }
}

/// One pair under one chain.
struct Ends<'a> {
    ways: WaypointInputs<'a>,
    key: &'a ChainPair,
    topology: &'a Topology,
    index: ChainIdx,
    rate: BitsPerSec,
}

impl Ends<'_> {
    fn way(&self, wanted: Option<&WaypointRoute>, loads: &BoxLoads) -> Option<WaypointRoute> {
        let (ways, chain) = (&self.ways, self.ways.chains.chain(self.index));
        let vertex = |node: NodeIdx| -> Option<VertexIdx> { self.topology.vertex.get(node.at()).copied().flatten() };
        let ends = (vertex(self.key.pair.from)?, vertex(self.key.pair.to)?);
        let whole = wanted.filter(|way| is_whole(ways, ends, chain, self.rate, (loads, way))).cloned();
        whole.or_else(|| best_way(ways, ends, chain, self.rate, loads))
    }

    fn broken(&self, loads: &BoxLoads, host: impl Fn(NodeIdx) -> HostName) -> Refusal {
        let chains = self.ways.chains;
        let chain = chains.chain(self.index);
        let unmet = unmet(chains, self.ways.network, loads).into_iter().find(|found| found.chain == self.index);
        let kinds: Vec<&str> = chain.sequence.iter().map(|&kind| &**chains.kind_name(kind)).collect();
        let why = unmet.map(|found| format!(": {found}")).unwrap_or_default();
        let (from, to) = (host(self.key.pair.from), host(self.key.pair.to));
        let why =
            format!("no way from {from} to {to} through {} has {} bit/s left{why}", kinds.join(", "), self.rate.0);
        Refusal::Chain { chain: Arc::clone(&chain.name), why }
    }
}
