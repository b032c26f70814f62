//! Which traffic of a request is under which chain, and what pairs of nodes send of it.

use hintd_model::cluster::{ChainPair, EdgePattern, HintRequest, NodePair};
use hintd_model::network::chains::{Chains, FlowFacts, Protocol};
use hintd_model::units::{BitsPerSec, Bytes, GroupIdx, Micros, NodeIdx};
use hintd_policy::Share;
use hintd_policy::problem::EdgeProblem;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a pair of nodes sends under a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sent {
    /// Pairs of tasks.
    pub(crate) task_pairs: u64,
    /// What they send, all together.
    pub(crate) bytes: u64,
}

/// By edge: the name of the chain that its flows have; `None`: they go as they like.
pub(crate) fn classes(
    chains: Option<&Chains>,
    request: &HintRequest,
    edges: &[EdgeProblem],
    port: u16,
) -> Vec<Option<Arc<str>>> {
    let Some(chains) = chains else { return vec![None; edges.len()] };
    let names_of = Names::of(request);
    let names = |group: GroupIdx| request.groups.get(group.at()).map_or(["", ""], |known| [&*known.name, &*known.role]);
    let class = |edge: &EdgeProblem| {
        let flow = FlowFacts {
            application: names_of.both(),
            queue: Some(request.queue.as_str()),
            from: names(edge.from),
            to: names(edge.to),
            port: Some(port),
            protocol: Some(Protocol::Tcp),
        };
        chains.chain_of(&flow).map(|index| Arc::clone(&chains.chain(index).name))
    };
    edges.iter().map(class).collect()
}

/// What chains know an application by. Its job tells the key, so the id counts beside it: a chain that names the id is
/// not to be got round by giving a key.
pub(crate) struct Names {
    key: Option<Arc<str>>,
    id: String,
}

impl Names {
    pub(crate) fn of(request: &HintRequest) -> Self {
        Self { key: request.recurring_key.clone(), id: request.attempt.application.to_string() }
    }

    /// Its recurring key, empty where it has none, and its id.
    pub(crate) fn both(&self) -> [&str; 2] {
        [self.key.as_deref().unwrap_or(""), &self.id]
    }
}

/// Edges without a chain.
pub(crate) fn plain(edges: &[EdgeProblem], classes: &[Option<Arc<str>>]) -> Vec<EdgeProblem> {
    edges.iter().zip(classes).filter(|(_, class)| class.is_none()).map(|(edge, _)| *edge).collect()
}

/// What tasks of these shares, by group, send under chains.
pub(crate) fn sends(
    edges: &[EdgeProblem],
    classes: &[Option<Arc<str>>],
    shares: &[Vec<Share>],
) -> BTreeMap<ChainPair, Sent> {
    let mut all: BTreeMap<ChainPair, Sent> = BTreeMap::new();
    for (edge, chain) in edges.iter().zip(classes) {
        let Some(chain) = chain else { continue };
        let pairs = task_pairs(edge, shares);
        let total: u128 = pairs.values().map(|&count| u128::from(count)).sum();
        for (pair, count) in pairs {
            let sent = all.entry(ChainPair { pair, chain: Arc::clone(chain) }).or_default();
            let bytes = u128::from(edge.bytes.0) * u128::from(count) / total.max(1);
            sent.task_pairs += count;
            sent.bytes = sent.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }
    all
}

/// What bytes take of boxes, if they are to be moved in `transfer`: at least 1 bit/s.
pub(crate) fn rate(bytes: Bytes, transfer: Micros) -> BitsPerSec {
    let bits = u128::from(bytes.0) * 8 * 1_000_000 / u128::from(transfer.0.max(1));
    BitsPerSec(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
}

/// By pair of nodes: pairs of different tasks of an edge that talk.
fn task_pairs(edge: &EdgeProblem, shares: &[Vec<Share>]) -> BTreeMap<NodePair, u64> {
    let of = |group: GroupIdx| shares.get(group.at()).map_or(&[][..], Vec::as_slice);
    let (from, to, own) = (of(edge.from), of(edge.to), edge.from == edge.to);
    let mut pairs: BTreeMap<NodePair, u64> = BTreeMap::new();
    match edge.pattern {
        EdgePattern::AllToAll => {
            let (from, to) = (by_node(from), by_node(to));
            for (&a, &senders) in &from {
                for (&b, &receivers) in &to {
                    let count = senders * if own && a == b { receivers - 1 } else { receivers };
                    if count > 0 {
                        *pairs.entry(NodePair { from: a, to: b }).or_default() += count;
                    }
                }
            }
        }
        EdgePattern::OneToOne => {
            let (from, to) = (one_by_one(from), one_by_one(to));
            if from.is_empty() || to.is_empty() || own {
                return pairs; // a task is no pair with itself
            }
            for at in 0..from.len().max(to.len()) {
                let pair = NodePair { from: from[at % from.len()], to: to[at % to.len()] };
                *pairs.entry(pair).or_default() += 1;
            }
        }
    }
    pairs
}

fn by_node(shares: &[Share]) -> BTreeMap<NodeIdx, u64> {
    let mut counts = BTreeMap::new();
    for share in shares {
        *counts.entry(share.node).or_default() += u64::from(share.count);
    }
    counts
}

fn one_by_one(shares: &[Share]) -> Vec<NodeIdx> {
    shares.iter().flat_map(|share| std::iter::repeat_n(share.node, share.count as usize)).collect()
}
