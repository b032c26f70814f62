//! Do no harm: hints are given only where the job's busiest link is done earlier than where YARN would put the containers
//! by itself, by more than the estimate can be wrong.
//!
//! Parts of a group that others come before or after are hinted as the whole is placed, once bytes are known and as long as
//! the whole finds room. Where it does not, the guard judges, which keeps a part of a single group back: its free places are
//! taken whatever is hinted, and hosts that are named only make the other containers wait.
//!
//! Whoever asks for what YARN can't do by itself (a gang, bounds, racks of a plan, chains of middleboxes) is not held back,
//! nor is a policy that seeks something else than short transfers ([`Place::weighs_bytes`](hintd_policy::Place::weighs_bytes)).

use super::compile::{Compiled, GroupDemand};
use crate::compared::Unguarded;
use crate::decision::{Withheld, WithheldReason};
use hintd_model::cluster::{Constraints, Gang, HintRequest};
use hintd_policy::Placement;
use hintd_policy::terms::link_time::{LinkRates, link_time};

/// When hints are kept back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guard {
    /// The part of the default placement's time by which hints must be done earlier; within it, the two are alike.
    pub margin: f64,
}

impl Default for Guard {
    /// Bytes of earlier runs and rates of links are not better known than that.
    fn default() -> Self {
        Self { margin: 0.1 }
    }
}

impl Guard {
    /// Why the guard has no say; `None`: it has.
    pub(super) fn exempt(request: &HintRequest, compiled: &Compiled<'_>) -> Option<Unguarded> {
        let free = |constraints: &Constraints| *constraints == Constraints::default();
        let bound = !free(&request.constraints) || request.groups.iter().any(|group| !free(&group.constraints));
        let planned = || compiled.problem.groups.iter().any(|group| group.planned.is_some());
        match request.gang {
            Gang::All => Some(Unguarded::Gang),
            Gang::UpTo if bound => Some(Unguarded::Constraints),
            Gang::UpTo if planned() => Some(Unguarded::Plan),
            Gang::UpTo => compiled.problem.snapshot.topology.chains.is_some().then_some(Unguarded::Chains),
        }
    }

    /// Whether some of the request's groups are asked for in parts, and `in_all` has a place for each container that has none yet.
    /// Where parts would come by themselves hangs on which node reports next when each is asked for: there is no default placement
    /// to compare with.
    pub(super) fn is_for_parts(request: &HintRequest, compiled: &Compiled<'_>, in_all: &Placement) -> bool {
        let has_room = |(at, wish): (usize, &GroupDemand)| in_all.placed(at) >= wish.open;
        request.groups.iter().any(super::parts::is_part) && compiled.groups.iter().enumerate().all(has_room)
    }

    /// Whether the placement is hinted, and why if it is for something else than that it gains time; else why it is kept back.
    /// `default`: where YARN would put the containers, if there was time to tell.
    pub(super) fn judge(
        self,
        compiled: &Compiled<'_>,
        placement: &Placement,
        default: Option<&Placement>,
    ) -> Result<Option<Unguarded>, Withheld> {
        let problem = &compiled.problem;
        let rates = LinkRates::of(problem);
        let withheld = |reason, hinted_s, default_s| Err(Withheld { reason, hinted_s, default_s });
        let Some(hinted) = link_time(problem, placement, &rates) else {
            return withheld(WithheldReason::NothingKnown, None, None);
        };
        let Some(default) = default else { return withheld(WithheldReason::NotCompared, Some(hinted.seconds), None) };
        if placement.placed_all() > default.placed_all() {
            return Ok(Some(Unguarded::MoreRoom));
        }
        let default = link_time(problem, default, &rates).expect("the same bytes are known of the same problem");
        if hinted.seconds < default.seconds * (1.0 - self.margin) {
            return Ok(None);
        }
        withheld(WithheldReason::NoGain, Some(hinted.seconds), Some(default.seconds))
    }
}
