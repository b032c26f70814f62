//! How well containers will perform, for policies that predict it ([`Predict`](crate::Predict)).

use hintd_model::network::latency::Estimate;
use hintd_model::units::NodeIdx;
use std::cmp::Reverse;

/// The group that all others talk with: of those of one container, in the order told, the one that most edges between groups
/// name; `None`: none is named.
#[must_use]
pub fn root_group(counts: impl IntoIterator<Item = (usize, u32)>, edges: &[(usize, usize)]) -> Option<usize> {
    let named = |group: usize| edges.iter().filter(|(from, to)| (*from == group) != (*to == group)).count();
    let alone = counts.into_iter().filter(|&(group, count)| count == 1 && named(group) > 0);
    alone.min_by_key(|&(group, _)| Reverse(named(group))).map(|(group, _)| group)
}

/// What a placement comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Name of the curve of performance by latency.
    pub curve: String,
    /// Where the container is that all others talk with.
    pub root: NodeIdx,
    /// The group that it is the first container of; `None`: it ran before.
    pub root_group: Option<usize>,
    /// By group of the problem.
    pub groups: Vec<GroupPrediction>,
}

/// What a group's containers come to. All of them talk with the same root, so they have the same alternatives, none of which
/// is a node that the group is placed on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupPrediction {
    /// Where they are placed, without the root.
    pub placed: Vec<PlacePrediction>,
    /// Other nodes with room for one of them beside the whole placement, best first.
    pub alternatives: Vec<PlacePrediction>,
}

/// Containers of one group on one node, or one container that could be there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacePrediction {
    /// Where.
    pub node: NodeIdx,
    /// How many; 0: an alternative.
    pub count: u32,
    /// Share of the best performance.
    pub performance: f64,
    /// Latency to the root that it is read off at.
    pub latency: Estimate,
}
