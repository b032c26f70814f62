//! One job's traffic: what a request said of its groups, and where decisions placed their tasks.

use super::chained::{self, Found, Sent};
use super::pairs::Difference;
use crate::arrivals::Arrived;
use crate::decision::RememberedRequest;
use hintd_model::cluster::{ChainPair, EdgePattern, Flow, NodePair, Traffic};
use hintd_model::units::{AttemptId, Bytes, DecisionId, GroupIdx, NodeIdx, RequestId, Timestamp};
use hintd_policy::dataflow;
use hintd_policy::flow_index::JobSlot;
use hintd_policy::problem::EdgeProblem;
use hintd_policy::{ChosenRoute, Share};
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
    /// Parts whose answer reached nobody: they send nothing. What they sent went over these routes.
    pub(super) unheard: BTreeMap<DecisionId, RoutesHad>,
    /// Tasks that were placed at first, by group: edges' bytes are theirs.
    pub(super) placed: Vec<u64>,
    /// Tasks of these that came elsewhere.
    pub(super) moves: Moves,
    /// What of its attempt had come when it was decided.
    pub(super) before: Option<Arc<Arrived>>,
    /// What had come when `moves` was worked out; `None`: tasks were placed anew since.
    pub(super) followed: Option<Arc<Arrived>>,
    /// What goes as it likes.
    pub(super) traffic: Traffic,
    /// What is under chains.
    pub(super) chained: BTreeMap<ChainPair, Sent>,
    /// By edge: the name of its chain.
    pub(super) classes: Vec<Option<Arc<str>>>,
    /// What chains ask it; `None`: it is under none.
    pub(super) of: Option<RememberedRequest>,
    /// Its place in the index; `None`: there is no network.
    pub(super) slot: Option<JobSlot>,
    /// Since when nothing of its attempt was seen.
    pub(super) idle: Option<Timestamp>,
    /// Its entry in generations is another one.
    pub(super) stale: bool,
}

/// Routes that a part had before it was known that its answer reached nobody. The answer names them, so they are the first to
/// be tried when somebody has it.
#[derive(Debug, Clone, Default)]
pub(super) struct RoutesHad {
    pub(super) chosen: Vec<ChosenRoute>,
    /// Those under chains.
    pub(super) ways: Found,
}

impl RoutesHad {
    /// How many pairs' routes these are.
    pub(super) fn pairs(&self) -> usize {
        self.chosen.len() + self.ways.len()
    }
}

/// Tasks that came to another node than the one hinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    pub(super) group: GroupIdx,
    pub(super) from: NodeIdx,
    pub(super) to: NodeIdx,
}

/// How many tasks moved.
pub(super) type Moves = BTreeMap<Move, u32>;

/// What a decision wants to be kept track of.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub(crate) decision: DecisionId,
    pub(crate) attempt: AttemptId,
    /// Names of the request's groups.
    pub(crate) groups: Arc<[Arc<str>]>,
    pub(crate) edges: Arc<[EdgeProblem]>,
    /// By group.
    pub(crate) shares: Vec<Vec<Share>>,
    /// That of edges without a chain and shares, where it was worked out already.
    pub(crate) traffic: Option<Traffic>,
    /// What is known of its chains.
    pub(crate) chains: UnderChains,
    /// What of its attempt has come.
    pub(crate) came: Option<Arc<Arrived>>,
}

impl NewJob {
    /// A decision for an attempt: names of the request's groups, its edges, and where tasks are, by group. No chain is
    /// known of.
    #[must_use]
    pub fn new(
        (decision, attempt): (DecisionId, AttemptId),
        groups: Arc<[Arc<str>]>,
        edges: Arc<[EdgeProblem]>,
        shares: Vec<Vec<Share>>,
    ) -> Self {
        Self { decision, attempt, groups, edges, shares, traffic: None, chains: UnderChains::default(), came: None }
    }
}

/// What was worked out of a job's chains.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnderChains {
    /// What chains ask it; `None`: it is under none.
    pub(crate) of: Option<RememberedRequest>,
    /// By edge: the name of its chain, as it was when that was worked out.
    pub(crate) classes: Vec<Option<Arc<str>>>,
    /// Ways that were found.
    pub(crate) ways: Found,
}

/// All that a job sends.
#[derive(Debug, Clone, Default)]
pub(super) struct Sends {
    pub(super) traffic: Traffic,
    pub(super) chained: BTreeMap<ChainPair, Sent>,
}

impl Sends {
    pub(super) fn is_empty(&self) -> bool {
        self.traffic.flows.is_empty() && self.traffic.sinks.is_empty() && self.chained.is_empty()
    }
}

impl Job {
    /// Tasks by group, of all parts: where they came, else where they were placed.
    pub(super) fn shares(&self) -> Vec<Vec<Share>> {
        self.shares_of(self.parts.values())
    }

    fn shares_of<'a>(&self, parts: impl Iterator<Item = &'a Vec<Vec<Share>>>) -> Vec<Vec<Share>> {
        let mut shares = vec![Vec::new(); self.groups.len()];
        for part in parts {
            for (all, of) in shares.iter_mut().zip(part) {
                all.extend(of.iter().copied());
            }
        }
        for (Move { group, from, to }, count) in &self.moves {
            send(&mut shares[group.at()], (*from, *to), *count);
        }
        shares
    }

    /// Where tasks were placed or came; one may come twice.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        let placed = self.parts.values().flatten().flatten().map(|share| share.node);
        placed.chain(self.moves.keys().map(|of| of.to))
    }

    /// Whether nobody has an answer of it.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard.len() == self.parts.len() && !self.parts.is_empty()
    }

    /// Parts whose answer somebody has, each by group.
    pub(super) fn heard(&self) -> impl Iterator<Item = &Vec<Vec<Share>>> {
        self.parts.iter().filter(move |(decision, _)| !self.unheard.contains_key(decision)).map(|(_, part)| part)
    }

    /// What all parts send whose answer somebody has: where tasks are missing, so are the bytes that they would send.
    pub(super) fn reckon(&self) -> Sends {
        let shares = self.shares_of(self.heard());
        let edges = self.present(&shares);
        let plain = chained::plain(&edges, &self.classes);
        let traffic = if plain.is_empty() { None } else { dataflow::traffic(&plain, &shares).ok() };
        Sends { traffic: traffic.unwrap_or_default(), chained: chained::sends(&edges, &self.classes, &shares) }
    }

    /// What it sends at first; `traffic` was worked out where edges were of these classes.
    pub(super) fn first_sends(&self, traffic: Option<Traffic>, classes: &[Option<Arc<str>>]) -> Sends {
        let same = self.classes == classes || classes.is_empty() && !self.is_chained();
        match traffic.filter(|_| same) {
            Some(traffic) if !self.is_chained() => Sends { traffic, ..Sends::default() },
            Some(traffic) => Sends { traffic, ..self.reckon() },
            None => self.reckon(),
        }
    }

    /// Edges with the bytes that tasks which are there send.
    fn present(&self, shares: &[Vec<Share>]) -> Vec<EdgeProblem> {
        let present = |group: GroupIdx| tasks(&shares[group.at()]);
        self.edges
            .iter()
            .map(|edge| {
                let (now, then) = (present(edge.from), self.placed[edge.from.at()].max(1));
                let bytes = u128::from(edge.bytes.0) * u128::from(now.min(then)) / u128::from(then);
                EdgeProblem { bytes: Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)), ..*edge }
            })
            .collect()
    }

    /// Whether some of it is under a chain.
    pub(super) fn is_chained(&self) -> bool {
        self.classes.iter().any(Option::is_some)
    }

    /// Takes tasks off a node; whether there were any. Those that were placed there and came elsewhere are not on it.
    pub(super) fn leave_node(&mut self, node: NodeIdx) -> bool {
        let moved_to: Vec<(Move, u32)> = self.moves.extract_if(.., |of, _| of.to == node).collect();
        let mut left = false;
        for (Move { group, from, .. }, count) in moved_to {
            left |= self.remove(group, from, count) > 0;
        }
        for (Move { group, from, to }, mut count) in self.moves.extract_if(.., |of, _| of.from == node) {
            for part in self.parts.values_mut() {
                count -= send(&mut part[group.at()], (from, to), count);
            }
        }
        for group in (0..self.groups.len()).map(GroupIdx::new) {
            left |= self.remove(group, node, u32::MAX) > 0;
        }
        left
    }

    /// Forgets tasks that were placed on a node; how many there were of `count`.
    fn remove(&mut self, group: GroupIdx, node: NodeIdx, count: u32) -> u32 {
        let removed = take(self.parts.values_mut().flat_map(|part| &mut part[group.at()]), node, count);
        for part in self.parts.values_mut() {
            part[group.at()].retain(|share| share.count > 0);
        }
        removed
    }
}

/// Sends up to `count` tasks of a node to another one, each in its place: edges from one to one go by the order. How many there
/// were.
fn send(shares: &mut Vec<Share>, (from, to): (NodeIdx, NodeIdx), count: u32) -> u32 {
    let (mut sent, mut at) = (0, 0);
    while at < shares.len() && sent < count {
        if shares[at].node == from {
            let many = shares[at].count.min(count - sent);
            sent += many;
            if many == shares[at].count {
                shares[at].node = to;
            } else {
                shares[at].count -= many;
                shares.insert(at, Share { node: to, count: many });
                at += 1;
            }
        }
        at += 1;
    }
    sent
}

/// Takes up to `count` tasks of a node; how many there were.
fn take<'a>(shares: impl Iterator<Item = &'a mut Share>, node: NodeIdx, count: u32) -> u32 {
    let mut taken = 0;
    for share in shares.filter(|share| share.node == node) {
        let of_it = share.count.min(count - taken);
        share.count -= of_it;
        taken += of_it;
    }
    taken
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
pub(super) fn differences(old: &[Flow], new: &[Flow]) -> BTreeMap<NodePair, Difference> {
    let mut changes: BTreeMap<NodePair, Difference> = BTreeMap::new();
    for (flows, sign) in [(old, -1_i32), (new, 1)] {
        for flow in flows {
            let change = changes.entry(flow.pair).or_default();
            change.task_pairs += i64::from(sign) * i64::from(flow.task_pairs);
            change.bytes += i128::from(sign) * i128::from(flow.bytes.0);
            change.users += sign;
        }
    }
    changes
}
