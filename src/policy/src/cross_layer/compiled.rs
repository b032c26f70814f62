//! What the search adds to the compiled problem: how groups stand in the dataflow.

use crate::compiled::CompiledProblem;
use crate::problem::{EdgeProblem, PlaceProblem};
use hintd_model::cluster::EdgePattern;
use hintd_model::units::NodeIdx;

/// Added to the number of adjacent sources and sinks: without it tasks between others would never move.
pub(super) const FLOOR: f64 = 0.25;

/// The compiled problem that the search reads.
pub(super) type DataflowProblem<'p> = CompiledProblem<'p, Dataflow>;

/// Groups as edges join them.
#[derive(Debug, Clone)]
pub(super) struct Dataflow {
    /// By group: its edges, each once.
    pub(super) edges_of: Vec<Vec<usize>>,
    /// By group: no other group sends to it.
    pub(super) root: Vec<bool>,
    /// By group: it sends to no other group.
    pub(super) sink: Vec<bool>,
    /// By group: with what weight one of its tasks is drawn (000 §2, P_i).
    pub(super) priority: Vec<f64>,
}

impl<'p> DataflowProblem<'p> {
    /// The problem on `nodes`, ascending and distinct.
    pub(super) fn compile(problem: &'p PlaceProblem<'p>, nodes: &[NodeIdx]) -> Self {
        let compiled = CompiledProblem::new(problem, nodes);
        let own = Dataflow::of(problem, &compiled.edges);
        compiled.with(own)
    }
}

impl Dataflow {
    fn of(problem: &PlaceProblem<'_>, edges: &[EdgeProblem]) -> Self {
        let groups = 0..problem.groups.len();
        let touches = |edge: &EdgeProblem, group: usize| edge.from.at() == group || edge.to.at() == group;
        let edges_of = |group: usize| (0..edges.len()).filter(|&at| touches(&edges[at], group)).collect();
        let between = || edges.iter().filter(|edge| edge.from != edge.to);
        let mut dataflow = Self {
            edges_of: groups.clone().map(edges_of).collect(),
            root: groups.clone().map(|group| !between().any(|edge| edge.to.at() == group)).collect(),
            sink: groups.clone().map(|group| !between().any(|edge| edge.from.at() == group)).collect(),
            priority: Vec::new(),
        };
        dataflow.priority = groups.map(|group| dataflow.priority_of(problem, edges, group)).collect();
        dataflow
    }

    /// Sources and sinks directly beside a task of the group, in tasks.
    fn priority_of(&self, problem: &PlaceProblem<'_>, edges: &[EdgeProblem], group: usize) -> f64 {
        let tasks = |edge: &EdgeProblem, other: usize| match edge.pattern {
            EdgePattern::AllToAll => f64::from(problem.groups[other].count),
            EdgePattern::OneToOne => 1.0,
        };
        let mut sum = FLOOR;
        for edge in edges {
            let (from, to) = (edge.from.at(), edge.to.at());
            if to == group && self.root[from] {
                sum += tasks(edge, from);
            }
            if from == group && self.sink[to] {
                sum += tasks(edge, to);
            }
        }
        sum
    }
}
