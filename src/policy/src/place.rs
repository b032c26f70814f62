//! *place*: one request to one placement.

use super::budget::{Budget, Work};
use super::predict::Prediction;
use super::problem::PlaceProblem;
use hintd_model::cluster::{Gang, NodePair, Resource};
use hintd_model::units::{BitsPerSec, BoxIdx, ChainIdx, DirectedLinkIdx, NodeIdx};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// Decides where every container of a request goes.
pub trait Place: Send + Sync {
    /// A placement within room, candidates and bounds of `problem`; containers that find no room
    /// are left unplaced, whatever the gang. The same problem, seed and number of steps give the same
    /// answer.
    ///
    /// # Errors
    /// [`PlaceError`] where the policy can't work on such a problem at all.
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError>;

    /// This policy's objective of any placement of the problem, another policy's for example; `None`: it
    /// follows a rule and has no objective.
    fn objective(&self, problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Objective> {
        let _ = (problem, placement);
        None
    }

    /// The same for whoever has no time for more than `work` allows; `None` as well where that says to stop first.
    fn objective_within(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        work: &dyn Work,
    ) -> Option<Objective> {
        let _ = work;
        self.objective(problem, placement)
    }

    /// Whether it reads [`PlaceProblem::senders`], or has no use for them; else they are shown to it as blocks.
    fn knows_senders(&self) -> bool {
        false
    }

    /// Whether its placements can be judged by when the links have carried the bytes; false: it seeks something else, and
    /// hints are not kept back for the bytes' sake.
    fn weighs_bytes(&self) -> bool {
        true
    }

    /// The nodes that it keeps a request to, whether they have room or not; `None`: it keeps requests to none. To wait, and to
    /// go beside where a container is placed, these are named first. `placement`: what it came to, without containers where
    /// nothing has room: then it may not have been asked at all. `could`: by group, nodes that could hold a container if they
    /// were empty.
    fn keeps_to(
        &self,
        problem: &PlaceProblem<'_>,
        placement: &Placement,
        could: &dyn Fn(usize) -> Vec<NodeIdx>,
    ) -> Option<KeptTo> {
        let _ = (problem, placement, could);
        None
    }

    /// Several requests as one, if it can.
    fn as_together(&self) -> Option<&dyn PlaceTogether> {
        None
    }

    /// Its predictions of performance, if it makes any.
    fn as_predict(&self) -> Option<&dyn Predict> {
        None
    }

    /// Whether it reads the snapshot's measured latency; else records of its decisions are kept without.
    fn reads_latency(&self) -> bool {
        false
    }
}

/// Nodes that a policy keeps a request to, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptTo {
    /// By node.
    pub nodes: Vec<bool>,
    /// What it went by, by name: as in a placement's parts.
    pub parts: Vec<(String, f64)>,
}

/// Decides where the containers of several requests go.
pub trait PlaceTogether: Send + Sync {
    /// One placement for each problem, in their order. All are of one snapshot and its leases, and together they are within its room.
    /// Their cost is never above that of placing one after the other, and of no group fewer containers are placed than so; one
    /// problem alone is placed as [`Place`] places it. A gang that has to be whole and is not takes no room from the others.
    ///
    /// `steps`: by problem, what it may take in its turn. `budget` has their sum: what they leave is for all of them together.
    /// [`Placement::steps`] of all add up to what was taken.
    fn place_together(&self, problems: &[PlaceProblem<'_>], steps: &[u64], budget: &mut Budget<'_>) -> Together;
}

/// What requests of a round come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// By problem.
    pub placements: Vec<Placement>,
    /// What all of them cost by the policy's objective, containers without a place included.
    pub cost: f64,
    /// What they would cost if each were placed in its turn.
    pub cost_in_turn: f64,
}

/// Predicts the performance of containers by where they are.
pub trait Predict: Send + Sync {
    /// What any placement of the problem comes to, with so many alternatives for each group at most; `None`: the placement
    /// has no container that the others could be judged by.
    fn predict(&self, problem: &PlaceProblem<'_>, placement: &Placement, alternatives: usize) -> Option<Prediction>;
}

/// The problem as the policy can read it.
#[must_use]
pub fn readable<'p, 's>(place: &dyn Place, problem: &'p PlaceProblem<'s>) -> Cow<'p, PlaceProblem<'s>> {
    if problem.senders.is_empty() || place.knows_senders() {
        return Cow::Borrowed(problem);
    }
    Cow::Owned(problem.with_senders_as_blocks())
}

/// A policy's objective and what it is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// Lower is better.
    pub value: f64,
    /// Its parts by name.
    pub parts: Vec<(String, f64)>,
}

/// Where containers go, by group, as counts: never one entry a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// By group, in the problem's order; within a group in the order in which tasks get them.
    pub groups: Vec<Vec<Share>>,
    /// Routes chosen for pairs of nodes that will talk, ascending by pair; a pair that is not named gets what the engine chooses.
    pub routes: Vec<ChosenRoute>,
    /// The policy's own objective; lower is better.
    pub objective: f64,
    /// The objective's parts by name.
    pub parts: Vec<(String, f64)>,
    /// How the search ended.
    pub ended: Ended,
    /// Relative distance to a proven bound, where one is known.
    pub gap: Option<f64>,
    /// Steps taken.
    pub steps: u64,
}

/// Containers of one group on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share {
    /// Where.
    pub node: NodeIdx,
    /// How many, at least 1.
    pub count: u32,
}

/// A policy's route for a pair of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenRoute {
    /// Who talks.
    pub pair: NodePair,
    /// From host to host. Through middleboxes it is loop-free from one to the next, and may pass a switch twice.
    pub links: Arc<[DirectedLinkIdx]>,
    /// The chain that it serves; of one pair there may be routes for several, and one for what has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainIdx>,
    /// Middleboxes passed, in order.
    #[serde(default, skip_serializing_if = "SmallVec::is_empty")]
    pub stops: SmallVec<[BoxStop; 3]>,
    /// Under a chain: what its flows are taken to send over this route, bits/s. One pair may need several routes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: BitsPerSec,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(rate: &BitsPerSec) -> bool {
    *rate == BitsPerSec::ZERO
}

/// A middlebox on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxStop {
    /// Which.
    pub index: BoxIdx,
    /// Links walked before it is entered.
    pub after: u16,
}

impl ChosenRoute {
    /// A route without a chain.
    #[must_use]
    pub const fn plain(pair: NodePair, links: Arc<[DirectedLinkIdx]>) -> Self {
        Self { pair, links, chain: None, stops: SmallVec::new_const(), rate: BitsPerSec::ZERO }
    }
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The rule was followed to its end; there was nothing to search.
    Complete,
    /// Proven optimal for the policy's objective.
    Optimal,
    /// Converged, or the step budget was used.
    Budget,
    /// Cut short by the deadline: the best found so far.
    Deadline,
}

impl Ended {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Optimal => "optimal",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
        }
    }
}

/// A policy can't work on a problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The policy needs an input that no feed has given.
    #[error("policy {policy} needs {source_name}, and nothing was heard of it")]
    NeedsSource {
        /// The policy.
        policy: &'static str,
        /// The missing source's name.
        source_name: &'static str,
    },
    /// The edges of the request have no beginning or no end.
    #[error("the edges have no {lacks}: groups {} send to each other in a cycle", groups.join(", "))]
    Dataflow {
        /// `source` or `sink`.
        lacks: &'static str,
        /// The groups of a cycle, each sending to the next and the last to the first.
        groups: Vec<Arc<str>>,
    },
    /// A chain of middleboxes that no placement of the request can keep.
    #[error("chain \"{chain}\" can not be met: {why}")]
    Broken {
        /// The chain.
        chain: Arc<str>,
        /// What is lacking.
        why: String,
    },
    /// Flows are to pass middleboxes, which the policy knows nothing of.
    #[error("policy {policy} routes no chains of middleboxes")]
    Chains {
        /// The policy.
        policy: &'static str,
    },
}

impl Placement {
    /// Containers of a group that found a node.
    #[must_use]
    pub fn placed(&self, group: usize) -> u32 {
        self.groups[group].iter().map(|share| share.count).sum()
    }

    /// Containers of all groups that found a node.
    #[must_use]
    pub fn placed_all(&self) -> u64 {
        (0..self.groups.len()).map(|group| u64::from(self.placed(group))).sum()
    }

    /// Whether it is of use: a gang that has to be whole is, or a part of it would do.
    #[must_use]
    pub fn is_of_use(&self, problem: &PlaceProblem<'_>) -> bool {
        problem.gang == Gang::UpTo || self.placed_all() == problem.containers()
    }

    /// Room that it takes.
    pub fn taken<'a>(&'a self, problem: &'a PlaceProblem<'_>) -> impl Iterator<Item = (NodeIdx, Resource)> + 'a {
        let groups = self.groups.iter().zip(&problem.groups);
        groups.flat_map(|(shares, group)| {
            shares.iter().map(|share| (share.node, group.size.times(u64::from(share.count))))
        })
    }
}
