//! Maps of jobs whose input has no homes: on hosts of their blocks alone, until none came there for a while.
//!
//! YARN lets an ask go anywhere after (rows − 1) ÷ nodes × containers missed heartbeats: of a small job one or two, though a node
//! with its block has room a second later. `*` that does not relax keeps it for the hosts of its blocks; YARN serves no rack's
//! row beside it. Once no map came for `BLOCKS_FOR`, `*` relaxes for good: those hosts are full of other jobs.

use super::BLOCKS_FOR;
use hintd_model::units::{AttemptId, Timestamp};
use hintd_policy::capacity_scheduler::Place;
use std::collections::BTreeMap;

/// Jobs that have asked for maps.
#[derive(Debug, Default)]
pub(super) struct BlockRows {
    jobs: BTreeMap<AttemptId, Asked>,
}

#[derive(Debug)]
struct Asked {
    /// When a map last came, or the first ask.
    since: Timestamp,
    /// Maps that waited at the last ask.
    waited: u32,
    over: bool,
}

impl BlockRows {
    /// Whether `*` of the job's maps does not relax now. Every map has to be asked for near a block.
    pub(super) fn strict(&mut self, attempt: AttemptId, rows: &BTreeMap<Place, u32>, now: Timestamp) -> bool {
        let waiting = rows.get(&Place::Any).copied().unwrap_or(0);
        if waiting == 0 {
            self.jobs.entry(attempt).and_modify(|job| job.waited = 0);
            return false;
        }
        let job = self.jobs.entry(attempt).or_insert(Asked { since: now, waited: 0, over: false });
        let near = rows.iter().filter(|(place, _)| matches!(place, Place::Rack(_))).map(|(_, count)| u64::from(*count));
        // None waited before, or more did: a map came.
        if job.waited == 0 || waiting < job.waited {
            job.since = now;
        }
        job.waited = waiting;
        job.over |= near.sum::<u64>() < u64::from(waiting) || now.since(job.since) >= BLOCKS_FOR;
        !job.over
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.jobs.remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::{ApplicationId, NodeIdx, RackIdx};

    const JOB: AttemptId = AttemptId { application: ApplicationId { cluster_timestamp: 0, sequence: 1 }, attempt: 1 };

    fn asks(blocks: &mut BlockRows, second: u64, waiting: u32, near: u32) -> bool {
        let rows = [(Place::Any, waiting), (Place::Rack(RackIdx(0)), near), (Place::Host(NodeIdx(0)), near)];
        blocks.strict(JOB, &rows.into(), Timestamp(second * 1_000_000))
    }

    #[test]
    fn maps_wait_for_hosts_of_their_blocks_until_none_came_for_three_seconds() {
        let mut blocks = BlockRows::default();
        let strict =
            [(0, 4), (1, 4), (2, 3), (3, 3), (4, 3)].map(|(second, maps)| asks(&mut blocks, second, maps, maps));
        assert_eq!(strict, [true; 5], "one came at 2 s");
        assert!(!asks(&mut blocks, 5, 3, 3), "none came for 3 s");
        assert!(!asks(&mut blocks, 6, 2, 2), "and for good");
        blocks.forget(JOB);
        assert!(asks(&mut blocks, 7, 2, 2), "another job");
    }

    #[test]
    fn a_map_without_a_block_goes_anywhere_at_once_and_none_outstanding_ends_nothing() {
        let mut blocks = BlockRows::default();
        assert!(asks(&mut blocks, 0, 4, 4));
        assert!(!asks(&mut blocks, 1, 0, 0), "nothing waits");
        assert!(asks(&mut blocks, 60, 5, 5), "its next maps begin to wait");
        assert!(!asks(&mut blocks, 61, 6, 5));
    }
}
