//! What recurring jobs send that no decision has flows of: a stock MapReduce job's maps come before hosts are asked for its
//! reduces, and hints that were kept back place nothing. By the edges of earlier runs, from where containers came to where
//! they came; on nodes' access links and racks' uplinks, for no route of theirs is known.

use crate::generation::Generation;
use crate::history::EdgeHistory;
use hintd_model::cluster::Snapshot;
use hintd_model::network::Network;
use hintd_model::units::{ApplicationId, AttemptId, Bytes, LinkIdx, NodeIdx, VertexIdx};
use hintd_policy::terms::Transfer;
use hintd_policy::terms::link_time::LinkBytes;
use hintd_policy::terms::rack_rates::uplinks_of;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes by link and application, from the link's first end to its second and back.
pub(super) type Sent = BTreeMap<LinkIdx, BTreeMap<ApplicationId, [Bytes; 2]>>;

/// Of all attempts whose containers came.
pub(super) fn sent(generation: &Generation, network: &Network) -> Sent {
    let snapshot = &*generation.snapshot;
    let with_flows: BTreeSet<AttemptId> = generation.flows.jobs.iter().map(|job| job.attempt).collect();
    let mut sent = Sent::new();
    let mut uplinks = BTreeMap::new();
    for (attempt, arrived) in generation.arrived.iter().filter(|(attempt, _)| !with_flows.contains(attempt)) {
        let history = arrived.key().and_then(|key| generation.history.get(key));
        let mut bytes = LinkBytes::default();
        for edge in history.into_iter().flat_map(|job| &job.edges) {
            let came = |group: &str| shares(arrived.of(group).collect());
            if let Some(transfer) = transfer(edge, came) {
                bytes.lay(snapshot, &transfer);
            }
        }
        for (&node, &[out, into]) in &bytes.nodes {
            if let Some((link, host)) = access(snapshot, network, node) {
                add(&mut sent, network, (link, host), attempt.application, [out, into]);
            }
        }
        for (&rack, &[out, into]) in &bytes.racks {
            let links = uplinks.entry(rack).or_insert_with(|| uplinks_of(snapshot, network, rack));
            let each = links.len() as f64;
            for &at in links.iter() {
                add(&mut sent, network, at, attempt.application, [out / each, into / each]);
            }
        }
    }
    sent
}

/// `None`: of one side nothing has come yet.
fn transfer(edge: &EdgeHistory, came: impl Fn(&str) -> Vec<(NodeIdx, f64)>) -> Option<Transfer> {
    let (from, to) = (came(&edge.from), came(&edge.to));
    let known = edge.bytes.0 > 0 && !from.is_empty() && !to.is_empty();
    known.then_some(Transfer { from, to, bytes: edge.bytes.0 as f64 })
}

/// By node its part of all.
fn shares(came: Vec<(NodeIdx, u32)>) -> Vec<(NodeIdx, f64)> {
    let all: f64 = came.iter().map(|(_, count)| f64::from(*count)).sum();
    came.into_iter().map(|(node, count)| (node, f64::from(count) / all)).collect()
}

fn access(snapshot: &Snapshot, network: &Network, node: NodeIdx) -> Option<(LinkIdx, VertexIdx)> {
    let vertex = snapshot.topology.vertex.get(node.at()).copied().flatten()?;
    Some((network.access_link(vertex)?, vertex))
}

/// `up`: bytes from the end `below` to the other, and back.
fn add(
    sent: &mut Sent,
    network: &Network,
    (link, below): (LinkIdx, VertexIdx),
    application: ApplicationId,
    up: [f64; 2],
) {
    let ways = if network.link_at(link).a == below { up } else { [up[1], up[0]] };
    if ways.iter().all(|bytes| *bytes < 1.0) {
        return;
    }
    let known = sent.entry(link).or_default().entry(application).or_default();
    for (known, more) in known.iter_mut().zip(ways) {
        *known = Bytes(known.0.saturating_add(more as u64));
    }
}
