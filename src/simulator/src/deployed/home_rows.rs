//! Rows of jobs whose input was written to home racks, so that they stay there: maps where their input is, reduces where
//! the maps were.
//!
//! # The model
//! - Maps: rows of hosts and racks outside the homes are put to 0, which YARN keeps as rows, and `*` does not relax
//!   (`relaxLocality = false`), for relaxed asks leave a full rack after a missed heartbeat or two. What was left out comes
//!   back for good at once where the homes have no room or a block has lost its replica at home, and once no map came for
//!   `HOSTS_FOR`.
//! - Reduces: those that hintd has no room for get rows in proportion to the maps on each node, and `*` does not relax
//!   while all that is outstanding has rows.
//! - All of this only ever delays an ask; the ResourceManager's processor in clients/java does the same but for strict reduces.

use super::HOSTS_FOR;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{AttemptId, NodeIdx, RackIdx, Timestamp};
use hintd_policy::capacity_scheduler::Place;
use std::collections::BTreeMap;

/// Jobs that have homes.
#[derive(Debug, Default)]
pub(super) struct HomeRows {
    jobs: BTreeMap<AttemptId, Homed>,
}

#[derive(Debug)]
struct Homed {
    racks: Vec<RackIdx>,
    /// Whether maps are still asked for in the homes alone.
    stays: bool,
    /// When a map last came, or the first ask.
    since: Option<Timestamp>,
    /// Maps that waited at the last ask.
    waited: u32,
    /// Its maps by node.
    maps: BTreeMap<NodeIdx, u32>,
}

impl HomeRows {
    /// A job's input was written there; nowhere in particular: it is one like others.
    pub(super) fn has_homes(&mut self, attempt: AttemptId, racks: &[RackIdx]) {
        if !racks.is_empty() {
            let racks = racks.to_vec();
            let job = Homed { racks, stays: true, since: None, waited: 0, maps: BTreeMap::new() };
            self.jobs.insert(attempt, job);
        }
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.jobs.remove(&attempt);
    }

    pub(super) fn has(&self, attempt: AttemptId) -> bool {
        self.jobs.contains_key(&attempt)
    }

    /// A map began.
    pub(super) fn map_at(&mut self, attempt: AttemptId, node: NodeIdx) {
        if let Some(job) = self.jobs.get_mut(&attempt) {
            *job.maps.entry(node).or_default() += 1;
        }
    }

    /// Leaves rows of maps out; whether any are, so that `*` does not relax and the next heartbeat has to look again.
    pub(super) fn narrow(
        &mut self,
        attempt: AttemptId,
        rows: &mut BTreeMap<Place, u32>,
        (snapshot, size): (&Snapshot, &Resource),
        now: Timestamp,
    ) -> bool {
        let Some(job) = self.jobs.get_mut(&attempt).filter(|job| job.stays) else { return false };
        let waiting = rows.get(&Place::Any).copied().unwrap_or(0);
        let at_home = |place: &Place| match *place {
            Place::Any => true,
            Place::Rack(rack) => job.racks.binary_search(&rack).is_ok(),
            Place::Host(node) => job.racks.binary_search(&snapshot.rack(node)).is_ok(),
        };
        let near = rows.iter().filter(|(place, _)| matches!(place, Place::Rack(_)) && at_home(place));
        let near: u32 = near.map(|(_, count)| count).sum();
        let since = job.since.filter(|_| waiting >= job.waited).unwrap_or(now);
        (job.since, job.waited) = (Some(since), waiting);
        if waiting == 0 {
            return false;
        }
        if near < waiting || now.since(since) >= HOSTS_FOR || !has_room(snapshot, size, &job.racks) {
            job.stays = false;
            return false;
        }
        rows.iter_mut().filter(|(place, _)| !at_home(place)).for_each(|(_, count)| *count = 0);
        true
    }

    /// Hosts for `count` reduces: those that hintd named, and for the others nodes in proportion to their maps.
    pub(super) fn fill(&self, attempt: AttemptId, count: u32, hinted: Vec<(NodeIdx, u32)>) -> Vec<(NodeIdx, u32)> {
        let named: u32 = hinted.iter().map(|(_, count)| count).sum();
        let Some(job) = self.jobs.get(&attempt) else { return hinted };
        let (rest, all) =
            (u64::from(count.saturating_sub(named)), job.maps.values().map(|&maps| u64::from(maps)).sum());
        let mut hosts: BTreeMap<NodeIdx, u32> = hinted.into_iter().collect();
        let (mut passed, mut given): (u64, u64) = (0, 0);
        for (&node, &maps) in &job.maps {
            passed += u64::from(maps);
            // The last node's part ends at the rest: nothing is left over by rounding.
            let due = (rest * passed).checked_div(all).unwrap_or(0);
            if due > given {
                *hosts.entry(node).or_default() += (due - given) as u32;
                given = due;
            }
        }
        hosts.into_iter().collect()
    }
}

/// Whether any of the racks has room for a container.
fn has_room(snapshot: &Snapshot, size: &Resource, racks: &[RackIdx]) -> bool {
    let mut nodes = racks.iter().flat_map(|rack| snapshot.statics.members[rack.at()].iter());
    nodes.any(|&node| snapshot.rules.how_many(size, &snapshot.unoccupied(node)) > 0)
}
