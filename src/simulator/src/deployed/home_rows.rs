//! Rows of jobs whose input was written to home racks, so that they stay there: maps where their input is, reduces where
//! the maps were. And of jobs that are gathered in a few racks, wherever their input lies.
//!
//! # The model
//! - Maps: rows of hosts and racks outside the homes are put to 0, which YARN keeps as rows, and `*` does not relax
//!   (`relaxLocality = false`), for relaxed asks leave a full rack after a missed heartbeat or two. What was left out comes
//!   back for good at once where a block has lost its replica at home, and once no map came for the job's patience. Homes that are
//!   full are no reason to leave: a job with more maps than its homes have containers would never stay.
//! - Reduces: where most of the job's maps that came are at home, they get rows in proportion to those on each node of its
//!   homes, whatever hintd has room for, and `*` does not relax until no reduce came for the job's patience. None are asked
//!   for while its maps wait for room at home: YARN serves reduces first, and they would take it.
//! - Patience ([`patience`]) is as long as the job's shuffle would need over the homes' uplinks: where reduces run elsewhere, all
//!   that maps left there has to leave over these, which takes a large job longer than it would have taken anywhere.
//! - Every node of the homes has a row for all that is outstanding once a job has asked for maps for `HOSTS_FOR`, and once the
//!   first places of its reduces are gone. Rows of racks alone would not do: while `*` does not relax YARN never serves them.
//! - Of a job that is gathered every node of its homes has a row from the first ask on, whatever the job's own rows name: for
//!   `HOSTS_FOR` as many for each ([`Homed::even`]), or the first nodes that report would read over their cables alone.
//! - All of this only ever delays an ask; docs/policies.md says what the ResourceManager's processor in clients/java does otherwise.

use super::HOSTS_FOR;
use hintd_engine::plans::input_homes::{patience, uplinks};
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, Bytes, Micros, NodeIdx, RackIdx, Timestamp};
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
    /// Its input lies everywhere.
    gathered: bool,
    /// Whether maps are still asked for in the homes alone.
    stays: bool,
    /// When a map last came, or the first ask.
    since: Option<Timestamp>,
    /// Maps that waited at the last ask.
    waited: u32,
    /// When it first asked.
    first: Option<Timestamp>,
    /// Its maps by node of the homes.
    maps: BTreeMap<NodeIdx, u32>,
    /// Its maps elsewhere.
    away: u32,
    /// How long its tasks go without a container before they look elsewhere.
    patience: Micros,
}

impl Homed {
    fn is_home(&self, rack: RackIdx) -> bool {
        self.racks.binary_search(&rack).is_ok()
    }

    /// Whether most of its maps ran at home. What others wrote goes into the homes over their uplinks, which hints spread better.
    fn keeps(&self) -> bool {
        self.maps.values().sum::<u32>() > self.away
    }

    /// For so many more maps, how many each node of the homes gets so that all have as many of the job's.
    fn even(&self, waiting: u32, racks: &[RackIdx]) -> Vec<(NodeIdx, u32)> {
        let nodes: Vec<_> = self.nodes(racks).collect();
        let came = |node: &NodeIdx| self.maps.get(node).copied().unwrap_or(0);
        let all: u32 = nodes.iter().map(came).sum::<u32>() + waiting;
        let each = all.div_ceil((nodes.len() as u32).max(1));
        nodes.into_iter().map(|node| (node, each.saturating_sub(came(&node)).min(waiting))).collect()
    }

    /// Its nodes, of a cluster whose nodes are in those racks.
    fn nodes(&self, racks: &[RackIdx]) -> impl Iterator<Item = NodeIdx> {
        (0..racks.len()).filter(|&node| self.is_home(racks[node])).map(NodeIdx::new)
    }
}

impl HomeRows {
    /// A job's input was written there, or it is gathered there; nowhere in particular: it is one like others.
    pub(super) fn has_homes(
        &mut self,
        attempt: AttemptId,
        (racks, gathered): (&[RackIdx], bool),
        shuffle: Bytes,
        snapshot: &Snapshot,
    ) {
        if !racks.is_empty() {
            let patience = patience(shuffle, uplinks(snapshot, racks.iter().copied()));
            let (racks, maps) = (racks.to_vec(), BTreeMap::new());
            let job =
                Homed { racks, gathered, stays: true, since: None, waited: 0, first: None, maps, away: 0, patience };
            self.jobs.insert(attempt, job);
        }
    }

    /// Whether it has homes.
    pub(super) fn has(&self, attempt: AttemptId) -> bool {
        self.jobs.contains_key(&attempt)
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.jobs.remove(&attempt);
    }

    /// The job, where its reduces are to stay at home.
    fn kept(&self, attempt: AttemptId) -> Option<&Homed> {
        self.jobs.get(&attempt).filter(|job| job.keeps())
    }

    /// How long the job's reduces go without a container at home before they look elsewhere; zero: they do not stay.
    pub(super) fn reduces_for(&self, attempt: AttemptId) -> Micros {
        self.kept(attempt).map_or(Micros(0), |job| job.patience)
    }

    /// Whether the job's reduces are to stay at home: most of its maps are there.
    pub(super) fn keeps(&self, attempt: AttemptId) -> bool {
        self.kept(attempt).is_some()
    }

    /// Whether the job's reduces leave room to its maps, which wait for it at home.
    pub(super) fn holds_reduces(&self, attempt: AttemptId) -> bool {
        self.kept(attempt).is_some_and(|job| job.stays && job.waited > 0)
    }

    /// Its homes; none where its reduces do not stay.
    pub(super) fn homes(&self, attempt: AttemptId) -> &[RackIdx] {
        self.kept(attempt).map_or(&[], |job| &job.racks)
    }

    /// Nodes of its homes; none where its reduces do not stay.
    pub(super) fn nodes(&self, attempt: AttemptId, racks: &[RackIdx]) -> Vec<NodeIdx> {
        self.kept(attempt).map(|job| job.nodes(racks).collect()).unwrap_or_default()
    }

    /// A map began.
    pub(super) fn map_at(&mut self, attempt: AttemptId, (node, rack): (NodeIdx, RackIdx)) {
        let Some(job) = self.jobs.get_mut(&attempt) else { return };
        if job.is_home(rack) {
            *job.maps.entry(node).or_default() += 1;
        } else {
            job.away += 1;
        }
    }

    /// Leaves rows of maps out; whether any are, so that `*` does not relax and the next heartbeat has to look again.
    pub(super) fn narrow(
        &mut self,
        attempt: AttemptId,
        rows: &mut BTreeMap<Place, u32>,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> bool {
        let Some(job) = self.jobs.get_mut(&attempt).filter(|job| job.stays) else { return false };
        let waiting = rows.get(&Place::Any).copied().unwrap_or(0);
        let at_home = |place: &Place| match *place {
            Place::Any => true,
            Place::Rack(rack) => job.is_home(rack),
            Place::Host(node) => job.is_home(snapshot.rack(node)),
        };
        let near = rows.iter().filter(|(place, _)| matches!(place, Place::Rack(_)) && at_home(place));
        let near: u32 = near.map(|(_, count)| count).sum();
        let since = job.since.filter(|_| waiting >= job.waited).unwrap_or(now);
        let leaves = waiting > 0 && (near < waiting && !job.gathered || now.since(since) >= job.patience);
        if waiting > 0 && !leaves {
            rows.iter_mut().filter(|(place, _)| !at_home(place)).for_each(|(_, count)| *count = 0);
        }
        (job.since, job.waited, job.stays) = (Some(since), waiting, !leaves);
        if waiting == 0 || leaves {
            return false;
        }
        let first = *job.first.get_or_insert(now);
        if now.since(first) >= HOSTS_FOR {
            for node in job.nodes(&snapshot.statics.rack) {
                rows.insert(Place::Host(node), waiting);
                rows.insert(Place::Rack(snapshot.rack(node)), waiting);
            }
        } else if job.gathered {
            rows.iter_mut().filter(|(place, _)| **place != Place::Any).for_each(|(_, count)| *count = 0);
            for (node, count) in job.even(waiting, &snapshot.statics.rack) {
                rows.insert(Place::Host(node), count);
                *rows.entry(Place::Rack(snapshot.rack(node))).or_default() += count;
            }
        }
        true
    }

    /// Hosts for `count` reduces: nodes in proportion to the job's maps at home; those that hintd named where there are none.
    pub(super) fn fill(&self, attempt: AttemptId, count: u32, hinted: Vec<(NodeIdx, u32)>) -> Vec<(NodeIdx, u32)> {
        let Some(job) = self.kept(attempt) else { return hinted };
        let all: u64 = job.maps.values().map(|&maps| u64::from(maps)).sum();
        let (mut passed, mut given): (u64, u64) = (0, 0);
        let part = |(&node, &maps): (&NodeIdx, &u32)| {
            passed += u64::from(maps);
            // The last node's part ends at the count: nothing is left over by rounding.
            let due = u64::from(count) * passed / all;
            let part = (due - given) as u32;
            given = due;
            (part > 0).then_some((node, part))
        };
        job.maps.iter().filter_map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shipped;
    use hintd_model::units::ApplicationId;
    use proptest::prelude::*;

    const JOB: AttemptId = AttemptId { application: ApplicationId { cluster_timestamp: 0, sequence: 1 }, attempt: 1 };

    fn snapshot() -> Snapshot {
        Shipped::find("nas-40").unwrap().shape().unwrap().to_cluster().unwrap().snapshot
    }

    #[test]
    fn a_job_is_as_patient_as_its_shuffle_would_take_to_leave() {
        let (mut homes, snapshot) = (HomeRows::default(), snapshot());
        // A rack's uplink carries 1 Gbit/s.
        for (shuffle, seconds) in [(1_000_000, 30), (12_500_000_000, 100), (12_500_000_000_000, 3_600)] {
            homes.has_homes(JOB, (&[RackIdx(0)], false), Bytes(shuffle), &snapshot);
            assert_eq!(homes.reduces_for(JOB), Micros(0), "its maps are elsewhere");
            homes.map_at(JOB, (NodeIdx(0), RackIdx(0)));
            assert_eq!(homes.reduces_for(JOB), Micros::from_secs(seconds));
        }
        homes.has_homes(JOB, (&[RackIdx(0), RackIdx(1)], false), Bytes(12_500_000_000), &snapshot);
        homes.map_at(JOB, (NodeIdx(0), RackIdx(0)));
        assert_eq!(homes.reduces_for(JOB), Micros::from_secs(50), "two uplinks");
    }

    #[test]
    fn reduces_stay_at_home_where_most_maps_ran_there() {
        let (mut homes, snapshot) = (HomeRows::default(), snapshot());
        homes.has_homes(JOB, (&[RackIdx(0)], false), Bytes(1), &snapshot);
        let (here, there) = ((NodeIdx(0), RackIdx(0)), (NodeIdx(50), RackIdx(1)));
        let stays = |homes: &HomeRows| (homes.keeps(JOB), homes.homes(JOB).len(), homes.reduces_for(JOB) > Micros(0));
        for (at, kept) in [(here, true), (there, false), (there, false), (here, false), (here, true)] {
            homes.map_at(JOB, at);
            assert_eq!(stays(&homes), (kept, usize::from(kept), kept));
            let hinted = vec![(NodeIdx(99), 4)];
            assert_eq!(homes.fill(JOB, 4, hinted.clone()) == hinted, !kept);
        }
    }

    #[test]
    fn reduces_wait_while_maps_of_their_job_wait_at_home() {
        let (mut homes, snapshot) = (HomeRows::default(), snapshot());
        homes.has_homes(JOB, (&[RackIdx(0)], false), Bytes(1), &snapshot);
        homes.map_at(JOB, (NodeIdx(0), RackIdx(0)));
        let mut asks = |waiting, near| {
            let mut rows = BTreeMap::from([(Place::Any, waiting), (Place::Rack(RackIdx(0)), near)]);
            homes.narrow(JOB, &mut rows, &snapshot, Timestamp(0));
            homes.holds_reduces(JOB)
        };
        assert!(!asks(0, 0) && asks(2, 2) && !asks(0, 0) && asks(1, 1), "until its maps have theirs");
        assert!(!asks(2, 1), "one of them has no block at home: they go anywhere");
    }

    #[test]
    fn maps_of_a_gathered_job_are_asked_for_evenly_at_first_and_then_wherever_there_is_room() {
        let (mut homes, snapshot) = (HomeRows::default(), snapshot());
        let racks = &snapshot.statics.rack;
        let nodes: Vec<NodeIdx> =
            (0..racks.len()).map(NodeIdx::new).filter(|node| snapshot.rack(*node) == RackIdx(0)).collect();
        assert_eq!(nodes.len(), 5);
        homes.has_homes(JOB, (&[RackIdx(0)], true), Bytes(1), &snapshot);
        let asks = |homes: &mut HomeRows, waiting, now| {
            let far = Place::Host(NodeIdx::new(racks.len() - 1));
            let mut rows = BTreeMap::from([(Place::Any, waiting), (Place::Host(nodes[1]), 9), (far, 4)]);
            assert!(homes.narrow(JOB, &mut rows, &snapshot, now) && rows[&far] == 0);
            let hosts =
                nodes.iter().map(|node| rows.get(&Place::Host(*node)).copied().unwrap_or(0)).collect::<Vec<_>>();
            (hosts, rows[&Place::Rack(RackIdx(0))])
        };
        assert_eq!(asks(&mut homes, 12, Timestamp(0)), (vec![3; 5], 15));
        (0..3).for_each(|_| homes.map_at(JOB, (nodes[0], RackIdx(0))));
        homes.map_at(JOB, (nodes[4], RackIdx(0)));
        assert_eq!(asks(&mut homes, 8, Timestamp(0).plus(Micros::from_secs(1))), (vec![0, 3, 3, 3, 2], 11));
        assert_eq!(asks(&mut homes, 8, Timestamp(0).plus(HOSTS_FOR)), (vec![8; 5], 8), "whoever has room");
    }

    proptest! {
        #[test]
        fn reduces_of_a_homed_job_are_divided_as_its_maps_at_home_are(
            maps in prop::collection::btree_map(0_u32..20, 1_u32..50, 1..8), away in 0_u32..150, count in 0_u32..500,
        ) {
            let (mut homes, snapshot) = (HomeRows::default(), snapshot());
            let elsewhere = vec![(NodeIdx(99), count)];
            prop_assert_eq!(&homes.fill(JOB, count, elsewhere.clone()), &elsewhere, "it has no homes");
            homes.has_homes(JOB, (&[RackIdx(0)], false), Bytes(1), &snapshot);
            (0..away).for_each(|_| homes.map_at(JOB, (NodeIdx(50), RackIdx(1))));
            prop_assert_eq!(&homes.fill(JOB, count, elsewhere.clone()), &elsewhere, "it has no maps at home");
            prop_assert!(!homes.keeps(JOB) && homes.nodes(JOB, &[RackIdx(0)]).is_empty());
            for (&node, &maps) in &maps {
                (0..maps).for_each(|_| homes.map_at(JOB, (NodeIdx(node), RackIdx(0))));
            }
            let most = maps.values().sum::<u32>() > away;
            prop_assert_eq!(homes.keeps(JOB), most);
            if !most {
                prop_assert_eq!(&homes.fill(JOB, count, elsewhere.clone()), &elsewhere, "most maps are elsewhere");
                return Ok(());
            }
            let racks = [RackIdx(1), RackIdx(0), RackIdx(2), RackIdx(0)];
            prop_assert_eq!(homes.nodes(JOB, &racks), [NodeIdx(1), NodeIdx(3)]);
            let hosts: BTreeMap<NodeIdx, u32> = homes.fill(JOB, count, elsewhere).into_iter().collect();
            prop_assert_eq!(hosts.values().sum::<u32>(), count, "{:?}", hosts);
            let all: u32 = maps.values().sum();
            for (&node, &maps) in &maps {
                let (exact, given) = (f64::from(count * maps) / f64::from(all), hosts.get(&NodeIdx(node)));
                let given = f64::from(given.copied().unwrap_or(0));
                prop_assert!((given - exact).abs() < 1.0, "node {}: {} for {}", node, given, exact);
            }
        }
    }
}
