//! A group that is asked for in parts is placed as one: what was asked for before stays where it is, what will be asked for
//! later is placed with what is asked for now, and only the latter is hinted.
//!
//! Nothing is remembered of an earlier part's plan: each part makes it anew from where containers came and leases are. So it
//! is right where containers came elsewhere, and after a restart as far as arrivals are known.

use crate::decision::TermsOfWhole;
use crate::generation::HeldContainers;
use hintd_model::cluster::{HintRequest, TaskGroup};
use hintd_model::units::{Bytes, NodeIdx};
use hintd_policy::{PlaceProblem, Placement, Share};
use std::collections::BTreeMap;

/// All containers of a group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    /// Those that came, and those that are leased room and will come, by node.
    pub(super) earlier: BTreeMap<NodeIdx, u32>,
    /// Those that have no place: asked for now, to be asked for later, or on their way without a hint.
    pub(super) open: u32,
}

impl Whole {
    /// A group whose containers are asked for at once.
    pub(super) const fn at_once(group: &TaskGroup) -> Self {
        Self { earlier: BTreeMap::new(), open: group.count }
    }

    /// As the request says, and as is known of what the attempt was given: containers that `came`, and leases that it holds.
    pub(super) fn of(group: &TaskGroup, came: BTreeMap<NodeIdx, u32>, held: &[HeldContainers]) -> Self {
        let earlier = with_leased(came, &group.name, held);
        let placed = earlier.values().fold(0_u32, |sum, &count| sum.saturating_add(count));
        Self { earlier, open: group.whole.saturating_sub(placed).max(group.count) }
    }

    fn placed(&self) -> u64 {
        self.earlier.values().map(|&count| u64::from(count)).sum()
    }

    /// What earlier ones get of `bytes`, and what those without a place get. Where bytes are not known, so much that parts of
    /// `senders` stay whole numbers.
    pub(super) fn divide(&self, bytes: Bytes, senders: u64) -> [Bytes; 2] {
        let all = self.placed() + u64::from(self.open);
        let known = if bytes.0 < senders { senders.saturating_mul(all) } else { bytes.0 };
        if self.earlier.is_empty() {
            return [Bytes::ZERO, bytes];
        }
        let earlier = u128::from(known) * u128::from(self.placed()) / u128::from(all.max(1));
        let earlier = u64::try_from(earlier).unwrap_or(u64::MAX);
        [Bytes(earlier), Bytes(known - earlier)]
    }
}

/// Where containers of a group came, and where room is leased to those that will come.
pub(super) fn with_leased(
    mut came: BTreeMap<NodeIdx, u32>,
    group: &str,
    held: &[HeldContainers],
) -> BTreeMap<NodeIdx, u32> {
    for held in held.iter().filter(|held| *held.group == *group && held.awaited > 0) {
        *came.entry(held.node).or_default() += held.awaited;
    }
    came
}

/// Whether a group is asked for in parts.
pub(super) const fn is_part(group: &TaskGroup) -> bool {
    group.whole > group.count
}

/// Of what terms of the placement `in_all` are, unless they are of what is `hinted` of it and nothing was asked for before.
pub(super) fn terms_of_whole(
    request: &HintRequest,
    problem: &PlaceProblem<'_>,
    [in_all, hinted]: [&Placement; 2],
) -> Option<TermsOfWhole> {
    let earlier = problem.earlier.iter().flat_map(|to| &to.on).map(|&(_, count)| u64::from(count)).sum();
    let containers = in_all.placed_all();
    let is_more = containers > hinted.placed_all() || earlier > 0;
    (is_more && request.groups.iter().any(is_part)).then_some(TermsOfWhole { containers, earlier })
}

/// Of a placement of whole groups what is hinted now, by `asked` containers of each group: of each rack, and of each node in
/// it, its part. Which way it is rounded is the seed's to say, so that first parts of many groups do not meet in one rack.
pub(super) fn hinted(problem: &PlaceProblem<'_>, plan: &Placement, asked: impl Iterator<Item = u32>) -> Placement {
    let groups = plan.groups.iter().zip(asked).map(|(shares, asked)| part(problem, shares, asked)).collect();
    Placement { groups, ..plan.clone() }
}

fn part(problem: &PlaceProblem<'_>, shares: &[Share], asked: u32) -> Vec<Share> {
    let all: u64 = shares.iter().map(|share| u64::from(share.count)).sum();
    let asked = u64::from(asked);
    if all <= asked {
        return shares.to_vec();
    }
    let mut order = shares.to_vec();
    order.sort_by_key(|share| (problem.snapshot.rack(share.node), share.node));
    let offset = problem.seed % all;
    let mut before = 0_u64;
    order.retain_mut(|share| {
        // Running sums, so that the parts together are what is asked for.
        let upto = |containers: u64| (containers * asked + offset) / all;
        let from = upto(before);
        before += u64::from(share.count);
        share.count = u32::try_from(upto(before) - from).unwrap_or(share.count);
        share.count > 0
    });
    order
}
