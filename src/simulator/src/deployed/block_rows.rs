//! Maps of jobs whose input has no homes: on hosts of their blocks alone, then in the racks of their blocks, until none came for
//! a while.
//!
//! YARN lets an ask go anywhere after (rows − 1) ÷ nodes × containers missed heartbeats: of a small job one or two, though a node
//! with its block has room a second later. `*` that does not relax keeps it for the hosts that rows name; YARN serves no rack's
//! row beside it. So once no map came for `BLOCKS_FOR`, every node in a rack with a replica has a row: what is read there
//! crosses no uplink. Once none came for `BLOCK_RACKS_FOR` more, `*` relaxes for good: those racks are full of other jobs.

use super::{BLOCK_RACKS_FOR, BLOCKS_FOR};
use hintd_model::units::{AttemptId, Micros, NodeIdx, RackIdx, Timestamp};
use hintd_policy::capacity_scheduler::Place;
use std::collections::BTreeMap;

/// None came for so long: maps are asked for anywhere.
const ANYWHERE_AFTER: Micros = Micros(BLOCKS_FOR.0 + BLOCK_RACKS_FOR.0);

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
    /// Whether `*` of the job's maps does not relax now. Every map has to be asked for near a block. Adds rows for all nodes of
    /// these racks (`racks`: by node) once hosts of its blocks alone had no room for a while.
    pub(super) fn strict(
        &mut self,
        attempt: AttemptId,
        rows: &mut BTreeMap<Place, u32>,
        racks: &[RackIdx],
        now: Timestamp,
    ) -> bool {
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
        let none_for = now.since(job.since);
        job.over |= near.sum::<u64>() < u64::from(waiting) || none_for >= ANYWHERE_AFTER;
        if !job.over && none_for >= BLOCKS_FOR {
            name_all_nodes(rows, racks);
        }
        !job.over
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.jobs.remove(&attempt);
    }
}

/// Every node asks for as many as its rack does.
fn name_all_nodes(rows: &mut BTreeMap<Place, u32>, racks: &[RackIdx]) {
    for (node, rack) in racks.iter().enumerate() {
        if let Some(&count) = rows.get(&Place::Rack(*rack)).filter(|count| **count > 0) {
            rows.insert(Place::Host(NodeIdx::new(node)), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::ApplicationId;

    const JOB: AttemptId = AttemptId { application: ApplicationId { cluster_timestamp: 0, sequence: 1 }, attempt: 1 };

    /// Two nodes in each of two racks.
    const RACKS: [RackIdx; 4] = [RackIdx(0), RackIdx(0), RackIdx(1), RackIdx(1)];

    /// What `*` and the nodes ask for: at first the rack of node 0 alone has rows. None: it relaxes.
    fn asks(blocks: &mut BlockRows, second: u64, waiting: u32, near: u32) -> Option<[u32; 4]> {
        let rows = [(Place::Any, waiting), (Place::Rack(RackIdx(0)), near), (Place::Host(NodeIdx(0)), near.min(2))];
        let mut rows: BTreeMap<Place, u32> = rows.into();
        let strict = blocks.strict(JOB, &mut rows, &RACKS, Timestamp(second * 1_000_000));
        strict.then(|| [0, 1, 2, 3].map(|node| rows.get(&Place::Host(NodeIdx(node))).copied().unwrap_or(0)))
    }

    #[test]
    fn maps_wait_for_hosts_of_their_blocks_then_for_their_racks_until_none_came() {
        let mut blocks = BlockRows::default();
        let (hosts, racks) = (BLOCKS_FOR.0 / 1_000_000, BLOCK_RACKS_FOR.0 / 1_000_000);
        assert_eq!(asks(&mut blocks, 0, 4, 4), Some([2, 0, 0, 0]));
        assert_eq!(asks(&mut blocks, hosts, 4, 4), Some([4, 4, 0, 0]), "none came");
        assert_eq!(asks(&mut blocks, hosts + 1, 3, 3), Some([2, 0, 0, 0]), "one came");
        let again = hosts + 1;
        assert_eq!(asks(&mut blocks, again + hosts + racks - 1, 3, 3), Some([3, 3, 0, 0]));
        assert_eq!(asks(&mut blocks, again + hosts + racks, 3, 3), None, "none came for so long");
        assert_eq!(asks(&mut blocks, again + hosts + racks + 1, 2, 2), None, "and for good");
        blocks.forget(JOB);
        assert!(asks(&mut blocks, 100, 2, 2).is_some(), "another job");
    }

    #[test]
    fn a_map_without_a_block_goes_anywhere_at_once_and_none_outstanding_ends_nothing() {
        let mut blocks = BlockRows::default();
        assert!(asks(&mut blocks, 0, 4, 4).is_some());
        assert!(asks(&mut blocks, 1, 0, 0).is_none(), "nothing waits");
        assert!(asks(&mut blocks, 60, 5, 5).is_some(), "its next maps begin to wait");
        assert!(asks(&mut blocks, 61, 6, 5).is_none());
    }
}
