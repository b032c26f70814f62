//! Why waiting groups were passed over, in stable tokens.

use super::job::Kind;
use super::{JobIdx, OfferedNode, Pool};
use crate::dispatch::Advice;
use std::sync::Arc;

/// Groups explained for an offer at most: somebody reads them.
pub const EXPLAINED_MAX: usize = 20;

/// Why a group was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldReason {
    /// The offered room is too small.
    NoRoom,
    /// A map has no input on the node, and its job waits for a node that has.
    NoLocalBlock,
    /// What maps on the node will put out leaves too little of its traffic threshold.
    TrafficThreshold,
    /// A reduce waits for a share of its job's maps.
    MapsNotDone,
    /// Reduces of jobs with waiting maps hold their share of the cluster.
    EarlyReducesFull,
    /// The rack's uplink or downlink is congested.
    RackCongested,
    /// The job's tasks are to run in other racks.
    OtherRackPlanned,
    /// Drawn against, its transfer being dear here.
    TransferDear,
    /// The job is kept to machines of another class.
    OtherClass,
    /// Others come first.
    Fairness,
}

impl HoldReason {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::NoLocalBlock => "no_local_block",
            Self::TrafficThreshold => "traffic_threshold",
            Self::MapsNotDone => "maps_not_done",
            Self::EarlyReducesFull => "early_reduces_full",
            Self::RackCongested => "rack_congested",
            Self::OtherRackPlanned => "other_rack_planned",
            Self::TransferDear => "transfer_dear",
            Self::OtherClass => "other_class",
            Self::Fairness => "fairness",
        }
    }
}

/// Advice to wait for groups of which something waits, in the order of users and jobs, at most [`EXPLAINED_MAX`].
/// `why` is asked where the pool itself has no reason: for maps, and for reduces that may be launched.
#[must_use]
pub fn not_yet(
    pool: &mut Pool,
    slot: &OfferedNode<'_>,
    why: impl Fn(&Pool, JobIdx, Kind) -> HoldReason,
) -> Vec<Advice> {
    let early_mb = pool.early_room_mb(slot.view());
    let mut advice = Vec::new();
    for job in pool.jobs() {
        let row = pool.job(job);
        for group in row.groups.iter().filter(|group| group.waiting.left() > 0) {
            if advice.len() == EXPLAINED_MAX {
                return advice;
            }
            let held = if !slot.fits(group) {
                HoldReason::NoRoom
            } else if group.kind != Kind::Reduce {
                why(pool, job, group.kind)
            } else if !row.may_reduce() {
                HoldReason::MapsNotDone
            } else if row.placed.maps && group.size.memory_mb() > early_mb {
                HoldReason::EarlyReducesFull
            } else {
                why(pool, job, Kind::Reduce)
            };
            advice.push(Advice::NotYet {
                attempt: row.attempt,
                group: Arc::clone(&group.name),
                reason: held.as_str().to_owned(),
                expected_wait: None,
            });
        }
    }
    advice
}
