//! Predicted performance of a placement's containers, and at the best other nodes.

use super::request::{Asked, Root};
use crate::placement_builder::PlacementBuilder;
use crate::predict::{GroupPrediction, PlacePrediction, Prediction};
use crate::{PlaceProblem, Placement, Share};
use hintd_model::units::NodeIdx;

impl Asked<'_, '_> {
    /// See [`crate::Predict::predict`].
    pub(super) fn predict(&self, placement: &Placement, alternatives: usize) -> Option<Prediction> {
        let (root, root_group) = self.root_in(placement)?;
        let left = (alternatives > 0).then(|| filled(self.problem, placement));
        let group = |(group, shares): (usize, &Vec<Share>)| {
            let others = shares.iter().enumerate().map(|(at, share)| {
                let is_root = root_group == Some(group) && at == 0;
                self.at(root, share.node, share.count - u32::from(is_root))
            });
            GroupPrediction {
                placed: others.filter(|place| place.count > 0).collect(),
                alternatives: left
                    .as_ref()
                    .map_or_else(Vec::new, |left| self.alternatives(root, (group, shares), left, alternatives)),
            }
        };
        let groups = placement.groups.iter().enumerate().map(group).collect();
        Some(Prediction { curve: self.curve_name.to_owned(), root, root_group, groups })
    }

    /// Where the root of a placement is, and which group it is of, unless it runs already.
    pub(super) fn root_in(&self, placement: &Placement) -> Option<(NodeIdx, Option<usize>)> {
        match self.root? {
            Root::Runs(node) => Some((node, None)),
            Root::Of(group) => {
                let group = self.first_of(group).find(|&group| !placement.groups[group].is_empty())?;
                Some((placement.groups[group][0].node, Some(group)))
            }
        }
    }

    fn at(&self, root: NodeIdx, node: NodeIdx, count: u32) -> PlacePrediction {
        let latency = self.latency.estimate(root, node);
        PlacePrediction { node, count, performance: self.curve.performance(latency.rtt), latency }
    }

    /// Hosts without a container of the group, best first; of equal performance the lower latency.
    fn alternatives(
        &self,
        root: NodeIdx,
        (group, placed): (usize, &[Share]),
        left: &PlacementBuilder<'_, '_>,
        most: usize,
    ) -> Vec<PlacePrediction> {
        let is_other = |node: NodeIdx| placed.iter().all(|share| share.node != node);
        let open =
            self.problem.groups[group].candidates.iter().filter(|&&node| is_other(node) && left.fits(group, node));
        let mut open: Vec<PlacePrediction> = open.map(|&node| self.at(root, node, 0)).collect();
        let order = |a: &PlacePrediction, b: &PlacePrediction| {
            b.performance.total_cmp(&a.performance).then((a.latency.rtt, a.node).cmp(&(b.latency.rtt, b.node)))
        };
        open.sort_unstable_by(order);
        open.truncate(most);
        open
    }
}

/// Room and bounds as the placement leaves them.
fn filled<'p, 's>(problem: &'p PlaceProblem<'s>, placement: &Placement) -> PlacementBuilder<'p, 's> {
    let mut filled = PlacementBuilder::new(problem);
    for (group, shares) in placement.groups.iter().enumerate() {
        let nodes = shares.iter().flat_map(|share| (0..share.count).map(|_| share.node));
        (0..).zip(nodes).for_each(|(task, node)| filled.put(group, task, node));
    }
    filled
}
