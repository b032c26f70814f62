//! One job's traffic: what a request said of its groups, and where decisions placed their tasks.

use crate::cluster::{EdgePattern, Flow, NodePair, Traffic};
use crate::policy::Share;
use crate::policy::dataflow;
use crate::policy::flow_index::JobSlot;
use crate::policy::problem::EdgeProblem;
use crate::units::{AttemptId, Bytes, DecisionId, GroupIdx, NodeIdx, RequestId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A job: the tasks of one request, those that were placed anew included.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) attempt: AttemptId,
    pub(super) request: RequestId,
    /// Names of the request's groups.
    pub(super) groups: Arc<[Arc<str>]>,
    pub(super) edges: Arc<[EdgeProblem]>,
    /// Where each decision placed tasks, by group; the first is the job's own.
    pub(super) parts: BTreeMap<DecisionId, Vec<Vec<Share>>>,
    /// Tasks that were placed at first, by group: edges' bytes are theirs.
    pub(super) placed: Vec<u64>,
    pub(super) traffic: Traffic,
    /// Its place in the index; `None`: there is no network.
    pub(super) slot: Option<JobSlot>,
    /// Since when nothing of its attempt was seen.
    pub(super) idle: Option<Timestamp>,
    /// Its entry in generations is another one.
    pub(super) stale: bool,
}

/// What a decision wants to be kept track of.
#[derive(Debug, Clone)]
pub(crate) struct NewJob {
    pub(crate) decision: DecisionId,
    pub(crate) attempt: AttemptId,
    /// Names of the request's groups.
    pub(crate) groups: Arc<[Arc<str>]>,
    pub(crate) edges: Arc<[EdgeProblem]>,
    /// By group.
    pub(crate) shares: Vec<Vec<Share>>,
    /// That of edges and shares, where it was worked out already.
    pub(crate) traffic: Option<Traffic>,
}

impl Job {
    /// Tasks by group, of all parts.
    pub(super) fn shares(&self) -> Vec<Vec<Share>> {
        let mut shares = vec![Vec::new(); self.groups.len()];
        for part in self.parts.values() {
            for (all, of) in shares.iter_mut().zip(part) {
                all.extend(of.iter().copied());
            }
        }
        shares
    }

    /// The traffic of all parts: where tasks are missing, so are the bytes that they would send.
    pub(super) fn reckon(&self) -> Traffic {
        let shares = self.shares();
        let present = |group: GroupIdx| tasks(&shares[group.at()]);
        let edges: Vec<EdgeProblem> = self
            .edges
            .iter()
            .map(|edge| {
                let (now, then) = (present(edge.from), self.placed[edge.from.at()].max(1));
                let bytes = u128::from(edge.bytes.0) * u128::from(now.min(then)) / u128::from(then);
                EdgeProblem { bytes: Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)), ..*edge }
            })
            .collect();
        dataflow::traffic(&edges, &shares).unwrap_or_default()
    }

    /// Takes tasks off a node; whether there were any.
    pub(super) fn leave_node(&mut self, node: NodeIdx) -> bool {
        let mut left = false;
        for share in self.parts.values_mut().flatten() {
            let before = share.len();
            share.retain(|share| share.node != node);
            left |= share.len() != before;
        }
        left
    }
}

pub(super) fn tasks(shares: &[Share]) -> u64 {
    shares.iter().map(|share| u64::from(share.count)).sum()
}

/// At most so many pairs of nodes will talk: told without listing them.
pub(crate) fn most_pairs(edges: &[EdgeProblem], shares: &[Vec<Share>]) -> usize {
    let of = |edge: &EdgeProblem| {
        let [from, to] = [edge.from, edge.to].map(|group| shares.get(group.at()).map_or(&[][..], Vec::as_slice));
        match edge.pattern {
            EdgePattern::AllToAll => from.len().saturating_mul(to.len()),
            EdgePattern::OneToOne => usize::try_from(tasks(from).max(tasks(to))).unwrap_or(usize::MAX),
        }
    };
    edges.iter().map(of).fold(0, usize::saturating_add)
}

/// What a pair carries more or less when a job's traffic is another one.
pub(super) fn differences(old: &[Flow], new: &[Flow]) -> BTreeMap<NodePair, (i64, i128, i32)> {
    let mut changes: BTreeMap<NodePair, (i64, i128, i32)> = BTreeMap::new();
    for (flows, sign) in [(old, -1_i32), (new, 1)] {
        for flow in flows {
            let change = changes.entry(flow.pair).or_default();
            change.0 += i64::from(sign) * i64::from(flow.task_pairs);
            change.1 += i128::from(sign) * i128::from(flow.bytes.0);
            change.2 += sign;
        }
    }
    changes
}
