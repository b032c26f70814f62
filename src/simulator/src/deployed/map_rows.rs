//! Rows of maps whose input has home racks: others are left out at first, so that the job stays where its data was written.
//!
//! Rows of hosts and racks outside the homes are put to 0, which YARN keeps as rows: its delays by the number of places
//! named stay what the application's own ask makes them. `*` stays whole. What was left out comes back for good once no map
//! came for `HOSTS_FOR`, or at once where the homes have had no room and more than a wave of maps waits.

use super::HOSTS_FOR;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{AttemptId, RackIdx, Timestamp};
use hintd_policy::capacity_scheduler::Place;
use std::collections::BTreeMap;

/// Homes of jobs whose maps wait.
#[derive(Debug, Default)]
pub(super) struct MapRows {
    homes: BTreeMap<AttemptId, Narrowed>,
}

#[derive(Debug)]
struct Narrowed {
    racks: Vec<RackIdx>,
    /// When a map last came, or the first ask.
    since: Option<Timestamp>,
    /// Maps that waited at the last ask.
    waited: u32,
}

impl MapRows {
    pub(super) fn has_homes(&mut self, attempt: AttemptId, racks: &[RackIdx]) {
        if !racks.is_empty() {
            self.homes.insert(attempt, Narrowed { racks: racks.to_vec(), since: None, waited: 0 });
        }
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.homes.remove(&attempt);
    }

    /// Leaves rows out; whether any are, so that the next heartbeat has to look again.
    pub(super) fn narrow(
        &mut self,
        attempt: AttemptId,
        rows: &mut BTreeMap<Place, u32>,
        (snapshot, size): (&Snapshot, &Resource),
        now: Timestamp,
    ) -> bool {
        let Some(job) = self.homes.get_mut(&attempt) else { return false };
        let waiting = rows.get(&Place::Any).copied().unwrap_or(0);
        let in_homes = |rack: RackIdx| job.racks.binary_search(&rack).is_ok();
        let rack = |place: &Place| match *place {
            Place::Any => None,
            Place::Rack(rack) => Some(rack),
            Place::Host(node) => Some(snapshot.rack(node)),
        };
        let near: u32 = rows
            .iter()
            .filter(|(place, _)| matches!(place, Place::Rack(_)))
            .filter(|(place, _)| rack(place).is_some_and(in_homes))
            .map(|(_, count)| count)
            .sum();
        let since = *job.since.get_or_insert(now);
        let since = if waiting < job.waited { now } else { since };
        (job.since, job.waited) = (Some(since), waiting);
        if waiting == 0 {
            return false;
        }
        // A block that has lost its replica at home is read from where it is.
        let k = hintd_policy::knob::knob; // KNOB
        let room = k("ROOM", 1.0) == 0.0 || has_room(snapshot, size, &job.racks);
        let patience = if room { k("PATIENCE", 3.0) } else { k("PATIENCE_FULL", 0.0) };
        let _ = HOSTS_FOR;
        if near < waiting || now.since(since).as_secs_f64() >= patience {
            self.homes.remove(&attempt);
            return false;
        }
        rows.iter_mut()
            .filter(|(place, _)| rack(place).is_some_and(|rack| !in_homes(rack)))
            .for_each(|(_, count)| *count = 0);
        true
    }
}

/// Whether any of the racks has room for a container.
fn has_room(snapshot: &Snapshot, size: &Resource, racks: &[RackIdx]) -> bool {
    let nodes = racks.iter().flat_map(|rack| snapshot.statics.members[rack.at()].iter());
    nodes.into_iter().any(|&node| snapshot.rules.how_many(size, &snapshot.unoccupied(node)) > 0)
}
