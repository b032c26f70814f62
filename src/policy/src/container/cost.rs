//! The cost of a placement (paper 001 §IV), computed whole: what incremental costs are held against, and how
//! another policy's placement is priced.

use super::weights::Weights;
use crate::load::load;
use crate::place::{Objective, Placement};
use crate::problem::{GroupProblem, PlaceProblem};
use hintd_model::cluster::Resource;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::{BTreeMap, BTreeSet};

/// Weight of a covered block against a covered replica: covering every block counts more (001 §IV-B; the
/// paper prints no number).
pub const BLOCKS_OVER_REPLICAS: f64 = 0.8;

/// Cost of one container that found no room, as a share of all: above anything that w·(T, L, B) ≤ 1 can weigh
/// against it.
pub(super) const UNPLACED: f64 = 2.0;

/// Cost of a preference (`spread`, `together`) not met at all: on a par with all three terms together.
pub(super) const PREFERENCE: f64 = 1.0;

/// A placement's cost and its parts, each in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// T: core hops over pairs of containers ÷ every pair at the diameter.
    pub togetherness: f64,
    /// L: 1 − covered input; `None`: no blocks are known.
    pub locality: Option<f64>,
    /// B: nodes left unused, and how much load is piled up.
    pub balance: f64,
    /// Share of containers without a node.
    pub unplaced: f64,
    /// Share of containers against `spread` or `together`.
    pub preference: f64,
    /// Weighted sum.
    pub value: f64,
}

impl Cost {
    /// As policies report it.
    #[must_use]
    pub fn objective(&self) -> Objective {
        let mut parts = vec![("togetherness".to_owned(), self.togetherness), ("balance".to_owned(), self.balance)];
        parts.extend(self.locality.map(|locality| ("locality".to_owned(), locality)));
        let rare = [("unplaced", self.unplaced), ("preference", self.preference)];
        parts.extend(rare.iter().filter(|(_, value)| *value > 0.0).map(|&(name, value)| (name.to_owned(), value)));
        Objective { value: self.value, parts }
    }
}

/// Constants of a problem that turn sums into shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Norms {
    /// Containers asked for.
    pub(super) containers: f64,
    /// Pairs with at least one new container, each at the diameter.
    pub(super) hops: f64,
    /// Core hops taken for a pair that has no path.
    pub(super) diameter: u8,
    /// Input bytes, once a group that reads them.
    pub(super) input: f64,
    /// Bytes of all replicas known.
    pub(super) replicas: f64,
    /// Most nodes that could be used.
    pub(super) nodes: f64,
    /// The weights in force: without input, that of locality falls to the others.
    pub(super) weights: Weights,
}

impl Norms {
    pub(super) fn of(problem: &PlaceProblem<'_>, weights: &Weights) -> Self {
        let containers = problem.containers();
        let fixed: u64 = problem.anchors.iter().map(|anchor| u64::from(anchor.count)).sum();
        let pairs = containers * containers.saturating_sub(1) / 2 + containers * fixed;
        let diameter = problem.snapshot.topology.distances.diameter();
        let input: u64 = problem.groups.iter().map(|group| group.input.bytes.0).sum();
        let replicas: u64 = problem.groups.iter().map(replica_bytes).sum();
        Self {
            containers: containers as f64,
            hops: pairs as f64 * f64::from(diameter),
            diameter,
            input: input as f64,
            replicas: replicas as f64,
            nodes: containers.min(usable_nodes(problem, containers)) as f64,
            weights: if input > 0 { *weights } else { weights.without_locality() },
        }
    }

    pub(super) fn togetherness(&self, hops: u64) -> f64 {
        share(hops as f64, self.hops)
    }

    pub(super) fn locality(&self, blocks: u64, replicas: u64) -> f64 {
        let u = BLOCKS_OVER_REPLICAS;
        1.0 - (u * share(blocks as f64, self.input) + (1.0 - u) * share(replicas as f64, self.replicas))
    }

    /// What locality changes by when covered bytes of blocks and of replicas change by so much.
    pub(super) fn locality_change(&self, blocks: i64, replicas: i64) -> f64 {
        let u = BLOCKS_OVER_REPLICAS;
        -(u * share(blocks as f64, self.input) + (1.0 - u) * share(replicas as f64, self.replicas))
    }

    /// `rise`: sum over nodes of the square of their load after minus before, which is, but for constants, the
    /// rise of the load's variance over all nodes. The variance over used nodes alone would prefer two full
    /// nodes to an empty one and a half-full one.
    pub(super) fn balance(&self, nodes_used: u32, rise: f64) -> f64 {
        let unused = 1.0 - share(f64::from(nodes_used), self.nodes);
        (unused + share(rise, self.containers)) / 2.0
    }

    pub(super) fn value(&self, togetherness: f64, locality: f64, balance: f64) -> f64 {
        let Weights { togetherness: wt, locality: wl, balance: wb } = self.weights;
        wt * togetherness + wl * locality + wb * balance
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn replica_bytes(group: &GroupProblem) -> u64 {
    group.input.blocks.iter().map(|block| block.bytes.0 * block.nodes.len() as u64).sum()
}

/// Distinct candidates of all groups, counted no further than `enough`.
fn usable_nodes(problem: &PlaceProblem<'_>, enough: u64) -> u64 {
    let largest = problem.groups.iter().map(|group| group.candidates.len() as u64).max().unwrap_or(0);
    if largest >= enough {
        return enough;
    }
    let distinct: BTreeSet<NodeIdx> =
        problem.groups.iter().flat_map(|group| group.candidates.iter().copied()).collect();
    distinct.len() as u64
}

/// The cost of `placement`.
#[must_use]
pub fn cost(problem: &PlaceProblem<'_>, placement: &Placement, weights: &Weights) -> Cost {
    let norms = Norms::of(problem, weights);
    let togetherness = norms.togetherness(hops(problem, placement, norms.diameter));
    let (blocks, replicas) = covered(problem, placement);
    let locality = (norms.input > 0.0).then(|| norms.locality(blocks, replicas));
    let (nodes_used, rise) = piled(problem, placement);
    let balance = norms.balance(nodes_used, rise);
    let unplaced = share(norms.containers - placement.placed_all() as f64, norms.containers);
    let preference = share(unpreferred(problem, placement), norms.containers);
    let value = norms.value(togetherness, locality.unwrap_or(0.0), balance) + UNPLACED * unplaced;
    Cost { togetherness, locality, balance, unplaced, preference, value: value + PREFERENCE * preference }
}

/// Core hops over unordered pairs of which at least one is new (Figure 4: 8 · 4 = 32).
fn hops(problem: &PlaceProblem<'_>, placement: &Placement, diameter: u8) -> u64 {
    let mut new: BTreeMap<NodeIdx, u64> = BTreeMap::new();
    for share in placement.groups.iter().flatten() {
        *new.entry(share.node).or_default() += u64::from(share.count);
    }
    let apart = |a: NodeIdx, b: NodeIdx| {
        if a == b { 0 } else { u64::from(problem.snapshot.topology.core_hops(a, b).unwrap_or(diameter)) }
    };
    let mut sum = 0;
    for (&a, &count) in &new {
        let later = new.range(a..).skip(1).map(|(&b, &other)| other * apart(a, b)).sum::<u64>();
        let fixed = problem.anchors.iter().map(|anchor| u64::from(anchor.count) * apart(a, anchor.node)).sum::<u64>();
        sum += count * (later + fixed);
    }
    sum
}

/// Bytes of blocks with a replica on a node of the group that reads them, and bytes of all such replicas.
fn covered(problem: &PlaceProblem<'_>, placement: &Placement) -> (u64, u64) {
    let (mut blocks, mut replicas) = (0, 0);
    for (group, shares) in problem.groups.iter().zip(&placement.groups) {
        let used: BTreeSet<NodeIdx> = shares.iter().map(|share| share.node).collect();
        for block in &group.input.blocks {
            let here = block.nodes.iter().filter(|node| used.contains(node)).count() as u64;
            replicas += here * block.bytes.0;
            blocks += u64::from(here > 0) * block.bytes.0;
        }
    }
    (blocks, replicas)
}

/// Nodes used, and the rise of the squares of their loads.
fn piled(problem: &PlaceProblem<'_>, placement: &Placement) -> (u32, f64) {
    let mut taken: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
    for (group, shares) in problem.groups.iter().zip(&placement.groups) {
        for share in shares {
            let sum = taken.entry(share.node).or_default();
            *sum = sum.plus(&group.size.times(u64::from(share.count)));
        }
    }
    let rise = taken.iter().map(|(&node, taken)| {
        let room = problem.room(node);
        let (before, after) = (load(problem.snapshot, node, &room), load(problem.snapshot, node, &room.minus(taken)));
        after * after - before * before
    });
    (taken.len() as u32, rise.sum())
}

/// Containers beyond the first of a `spread` group on each node, and of a `together` group in each rack but
/// one (counted by racks, not containers).
fn unpreferred(problem: &PlaceProblem<'_>, placement: &Placement) -> f64 {
    let mut against = 0;
    for (group, shares) in problem.groups.iter().zip(&placement.groups) {
        if group.spread {
            against += shares.iter().map(|share| share.count.saturating_sub(1)).sum::<u32>();
        }
        if group.together {
            let racks: BTreeSet<RackIdx> = shares.iter().map(|share| problem.snapshot.rack(share.node)).collect();
            against += (racks.len() as u32).saturating_sub(1);
        }
    }
    f64::from(against)
}
