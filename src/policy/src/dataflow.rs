//! The dataflow of placed tasks: who sends to whom between nodes, and what every sink waits for (000 §2).

use super::place::Share;
use super::problem::EdgeProblem;
use hintd_model::cluster::{EdgePattern, Flow, Inlet, NodePair, Sink, Traffic};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A dataflow without a beginning or without an end: there is nothing that utility could be taken of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataflowError {
    /// Every group that talks to others receives from another.
    #[error("the edges have no source: groups {groups:?} form a cycle that nothing feeds", groups = numbers(groups))]
    NoRoot {
        /// A cycle, each group sending to the next and the last to the first.
        groups: Vec<GroupIdx>,
    },
    /// Every group that talks to others sends to another.
    #[error("the edges have no sink: groups {groups:?} form a cycle that nothing leaves", groups = numbers(groups))]
    NoSink {
        /// A cycle, each group sending to the next and the last to the first.
        groups: Vec<GroupIdx>,
    },
}

impl DataflowError {
    /// The groups of the cycle.
    #[must_use]
    pub fn groups(&self) -> &[GroupIdx] {
        let (Self::NoRoot { groups } | Self::NoSink { groups }) = self;
        groups
    }

    /// What the graph lacks: `source` or `sink`.
    #[must_use]
    pub const fn lacks(&self) -> &'static str {
        match self {
            Self::NoRoot { .. } => "source",
            Self::NoSink { .. } => "sink",
        }
    }
}

/// Whether a graph has sources and sinks; one without edges between different groups needs none.
///
/// # Errors
/// [`DataflowError`] naming a cycle.
pub fn check_dataflow(edges: &[EdgeProblem]) -> Result<(), DataflowError> {
    let between = || edges.iter().filter(|edge| edge.from != edge.to);
    let senders: BTreeMap<GroupIdx, GroupIdx> = between().map(|edge| (edge.from, edge.to)).collect();
    let receivers: BTreeMap<GroupIdx, GroupIdx> = between().map(|edge| (edge.to, edge.from)).collect();
    if senders.is_empty() {
        return Ok(());
    }
    if senders.keys().all(|group| receivers.contains_key(group)) {
        let mut groups = cycle(&receivers);
        groups.reverse();
        return Err(DataflowError::NoRoot { groups });
    }
    if receivers.keys().all(|group| senders.contains_key(group)) {
        return Err(DataflowError::NoSink { groups: cycle(&senders) });
    }
    Ok(())
}

/// The dataflow of placed tasks. Tasks without a node neither send nor wait.
///
/// Vertices are (group, node); a root is a vertex of a group that no other group sends to, a sink one of a group
/// that sends to no other. An all-to-all edge joins all tasks of both groups, within one group all different tasks;
/// a one-to-one edge joins task i to task i modulo the other's count. An edge's bytes are in equal parts those of
/// its pairs of tasks; what stays on a node is no flow. Sinks that no edge from a root leads to are left out.
///
/// # Errors
/// [`DataflowError`] for edges between groups that have no source or no sink.
pub fn traffic(edges: &[EdgeProblem], groups: &[Vec<Share>]) -> Result<Traffic, DataflowError> {
    check_dataflow(edges)?;
    let mut graph = Graph::of(groups);
    let mut talks = Vec::new();
    for edge in edges {
        graph.join(edge, groups, &mut talks);
    }
    let flows = flows(&graph, &talks);
    let reached = graph.reached(edges);
    let (inlets, inlet_of) = inlets(&graph, &talks, &flows, &reached);
    let sinks = graph.sinks(edges, &reached, &inlet_of);
    Ok(Traffic { flows, inlets, sinks })
}

/// The flows of placed tasks, whatever sources and sinks there are.
pub(crate) fn flows_of(edges: &[EdgeProblem], groups: &[Vec<Share>]) -> Vec<Flow> {
    let mut graph = Graph::of(groups);
    let mut talks = Vec::new();
    for edge in edges {
        graph.join(edge, groups, &mut talks);
    }
    flows(&graph, &talks)
}

/// Nodes of task i and of task i modulo the other's count, where both groups have tasks.
pub(crate) fn one_to_one(from: &[Share], to: &[Share]) -> Vec<(NodeIdx, NodeIdx)> {
    let tasks = |shares: &[Share]| -> Vec<NodeIdx> {
        shares.iter().flat_map(|share| std::iter::repeat_n(share.node, share.count as usize)).collect()
    };
    let (from, to) = (tasks(from), tasks(to));
    if from.is_empty() || to.is_empty() {
        return Vec::new();
    }
    (0..from.len().max(to.len())).map(|task| (from[task % from.len()], to[task % to.len()])).collect()
}

fn numbers(groups: &[GroupIdx]) -> Vec<u32> {
    groups.iter().map(|group| group.0).collect()
}

/// A cycle of a map that leads from each of its keys to a key.
fn cycle(next: &BTreeMap<GroupIdx, GroupIdx>) -> Vec<GroupIdx> {
    let mut walked: Vec<GroupIdx> = Vec::new();
    let mut here = *next.keys().next().expect("there are edges between groups");
    loop {
        if let Some(start) = walked.iter().position(|group| *group == here) {
            return walked.split_off(start);
        }
        walked.push(here);
        here = next[&here];
    }
}

/// Tasks of one vertex that send to tasks of another.
#[derive(Debug, Clone, Copy)]
struct VertexTraffic {
    from: u32,
    to: u32,
    task_pairs: u64,
    bytes: u64,
}

/// Vertices and who feeds whom. An all-to-all edge is a hub between its groups: as many arcs as vertices, not as
/// pairs of them.
struct Graph {
    /// Node and tasks by vertex.
    vertices: Vec<(NodeIdx, u32)>,
    /// Vertices by group, ascending by node.
    of_group: Vec<Range<u32>>,
    /// By vertex, then by hub.
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
}

impl Graph {
    fn of(groups: &[Vec<Share>]) -> Self {
        let (mut vertices, mut of_group) = (Vec::new(), Vec::new());
        for shares in groups {
            let mut counts: BTreeMap<NodeIdx, u32> = BTreeMap::new();
            for share in shares.iter().filter(|share| share.count > 0) {
                *counts.entry(share.node).or_default() += share.count;
            }
            let start = vertices.len() as u32;
            vertices.extend(counts);
            of_group.push(start..vertices.len() as u32);
        }
        let empty = vec![Vec::new(); vertices.len()];
        Self { vertices, of_group, before: empty.clone(), after: empty }
    }

    fn group(&self, group: GroupIdx) -> Range<u32> {
        self.of_group.get(group.at()).cloned().unwrap_or(0..0)
    }

    fn count(&self, vertex: u32) -> u64 {
        u64::from(self.vertices[vertex as usize].1)
    }

    fn node(&self, vertex: u32) -> NodeIdx {
        self.vertices[vertex as usize].0
    }

    fn arc(&mut self, from: u32, to: u32) {
        self.after[from as usize].push(to);
        self.before[to as usize].push(from);
    }

    fn join(&mut self, edge: &EdgeProblem, groups: &[Vec<Share>], talks: &mut Vec<VertexTraffic>) {
        let start = talks.len();
        match edge.pattern {
            EdgePattern::AllToAll => self.join_all(edge, talks),
            EdgePattern::OneToOne => self.join_each(edge, groups, talks),
        }
        let talks = &mut talks[start..];
        let pairs: u128 = talks.iter().map(|talk| u128::from(talk.task_pairs)).sum();
        // Rounded along the running sum: parts are whole bytes and nothing is lost.
        let (mut seen, mut given) = (0_u128, 0_u128);
        for talk in talks {
            seen += u128::from(talk.task_pairs);
            let until = u128::from(edge.bytes.0) * seen / pairs;
            talk.bytes = (until - given) as u64;
            given = until;
        }
    }

    fn join_all(&mut self, edge: &EdgeProblem, talks: &mut Vec<VertexTraffic>) {
        let (senders, receivers) = (self.group(edge.from), self.group(edge.to));
        let start = talks.len();
        for from in senders.clone() {
            for to in receivers.clone() {
                let itself = u64::from(from == to);
                let task_pairs = self.count(from) * (self.count(to) - itself);
                if task_pairs > 0 {
                    talks.push(VertexTraffic { from, to, task_pairs, bytes: 0 });
                }
            }
        }
        if talks.len() > start {
            let hub = self.before.len() as u32;
            self.before.push(Vec::new());
            self.after.push(Vec::new());
            senders.for_each(|from| self.arc(from, hub));
            receivers.for_each(|to| self.arc(hub, to));
        }
    }

    fn join_each(&mut self, edge: &EdgeProblem, groups: &[Vec<Share>], talks: &mut Vec<VertexTraffic>) {
        let (Some(from), Some(to)) = (groups.get(edge.from.at()), groups.get(edge.to.at())) else { return };
        let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (a, b) in one_to_one(from, to) {
            *pairs.entry((self.vertex(edge.from, a), self.vertex(edge.to, b))).or_default() += 1;
        }
        for ((from, to), task_pairs) in pairs {
            self.arc(from, to);
            talks.push(VertexTraffic { from, to, task_pairs, bytes: 0 });
        }
    }

    fn vertex(&self, group: GroupIdx, node: NodeIdx) -> u32 {
        let range = self.group(group);
        let vertices = &self.vertices[range.start as usize..range.end as usize];
        let at = vertices.binary_search_by_key(&node, |(node, _)| *node).expect("a task's node is its group's vertex");
        range.start + at as u32
    }

    /// Vertices and hubs that some root leads to, roots included.
    fn reached(&self, edges: &[EdgeProblem]) -> Vec<bool> {
        let fed: BTreeSet<GroupIdx> = edges.iter().filter(|edge| edge.from != edge.to).map(|edge| edge.to).collect();
        let roots = (0..self.of_group.len()).map(GroupIdx::new).filter(|group| !fed.contains(group));
        let starts: Vec<u32> = roots.flat_map(|group| self.group(group)).collect();
        walk(&self.after, &starts)
    }

    fn sinks(&self, edges: &[EdgeProblem], reached: &[bool], inlet_of: &[Option<u32>]) -> Vec<Sink> {
        let sends: BTreeSet<GroupIdx> =
            edges.iter().filter(|edge| edge.from != edge.to).map(|edge| edge.from).collect();
        let last = (0..self.of_group.len()).map(GroupIdx::new).filter(|group| !sends.contains(group));
        let mut sinks = Vec::new();
        for vertex in last.flat_map(|group| self.group(group)).filter(|&vertex| reached[vertex as usize]) {
            let before = walk(&self.before, &[vertex]);
            let between = inlet_of.iter().enumerate().filter(|(at, _)| before[*at]);
            let inlets: Vec<u32> = between.filter_map(|(_, inlet)| *inlet).collect();
            if !inlets.is_empty() {
                sinks.push(Sink { count: self.vertices[vertex as usize].1, inlets });
            }
        }
        sinks
    }
}

/// What is met from `starts` on, those included.
fn walk(next: &[Vec<u32>], starts: &[u32]) -> Vec<bool> {
    let mut met = vec![false; next.len()];
    let mut open = Vec::new();
    for &start in starts {
        met[start as usize] = true;
        open.push(start);
    }
    while let Some(here) = open.pop() {
        for &there in &next[here as usize] {
            if !std::mem::replace(&mut met[there as usize], true) {
                open.push(there);
            }
        }
    }
    met
}

/// Talks between different nodes, summed by pair.
fn flows(graph: &Graph, talks: &[VertexTraffic]) -> Vec<Flow> {
    let pair = |talk: &VertexTraffic| NodePair { from: graph.node(talk.from), to: graph.node(talk.to) };
    let mut apart: Vec<(NodePair, u64, u64)> =
        talks.iter().map(|talk| (pair(talk), talk.task_pairs, talk.bytes)).collect();
    apart.retain(|(pair, ..)| pair.from != pair.to);
    apart.sort_unstable_by_key(|(pair, ..)| *pair);
    let same = |a: &(NodePair, u64, u64), b: &(NodePair, u64, u64)| a.0 == b.0;
    let sum = |of: &[(NodePair, u64, u64)]| {
        let task_pairs: u64 = of.iter().map(|(_, pairs, _)| pairs).sum();
        let bytes = of.iter().fold(Bytes::ZERO, |sum, (.., bytes)| sum.saturating_add(Bytes(*bytes)));
        Flow { pair: of[0].0, task_pairs: u32::try_from(task_pairs).unwrap_or(u32::MAX), bytes }
    };
    apart.chunk_by(same).map(sum).collect()
}

/// Inlets by vertex, in the order of vertices, and which is whose.
fn inlets(graph: &Graph, talks: &[VertexTraffic], flows: &[Flow], reached: &[bool]) -> (Vec<Inlet>, Vec<Option<u32>>) {
    let mut into: Vec<Option<Inlet>> = vec![None; graph.vertices.len()];
    for talk in talks.iter().filter(|talk| reached[talk.from as usize]) {
        let inlet = into[talk.to as usize].get_or_insert_default();
        let pair = NodePair { from: graph.node(talk.from), to: graph.node(talk.to) };
        if pair.from == pair.to {
            inlet.local = Some(pair.to);
        } else {
            let row = flows.binary_search_by_key(&pair, |flow| flow.pair).expect("every talk between nodes is a flow");
            inlet.flows.push(row as u32);
        }
    }
    let (mut inlets, mut inlet_of) = (Vec::new(), Vec::new());
    for inlet in into {
        inlet_of.push(inlet.is_some().then_some(inlets.len() as u32));
        if let Some(mut inlet) = inlet {
            inlet.flows.sort_unstable();
            inlet.flows.dedup();
            inlets.push(inlet);
        }
    }
    (inlets, inlet_of)
}

#[cfg(test)]
mod tests;
