//! Rows that the processor adds to an ask for any node, and takes back.

use hintd_model::units::{NodeIdx, RackIdx, Timestamp};
use hintd_policy::capacity_scheduler::Place;
use std::collections::BTreeMap;

/// How much of its hints a key still names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Hosts,
    Racks,
    Anywhere,
}

/// Hints of one key.
#[derive(Debug)]
pub(super) struct HintRows {
    hosts: BTreeMap<NodeIdx, u32>,
    pub(super) stage: Stage,
    /// Places that were named: rows that are wanted no more are put to 0.
    named: BTreeMap<Place, ()>,
    /// Counts answers: what is to be taken back of an earlier one is not of this.
    pub(super) version: u64,
    /// When a container or an answer last came.
    pub(super) last: Timestamp,
    /// Nodes of the job's homes: once racks are named, all of these have rows in place of racks alone.
    pub(super) homes: Vec<NodeIdx>,
}

impl HintRows {
    pub(super) fn new() -> Self {
        let (hosts, named, homes) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { hosts, stage: Stage::Anywhere, named, version: 0, last: Timestamp(0), homes }
    }

    /// An answer came; it begins anew with hosts.
    pub(super) fn add(&mut self, hosts: &[(NodeIdx, u32)]) {
        for &(host, count) in hosts {
            *self.hosts.entry(host).or_default() += count;
        }
        self.stage = Stage::Hosts;
        self.version += 1;
    }

    /// A container came; whether it was hinted to that host.
    pub(super) fn came(&mut self, node: NodeIdx) -> bool {
        let hinted = match self.hosts.get_mut(&node) {
            Some(count) => {
                *count -= 1;
                true
            }
            // One of the others is over: the fullest host's.
            None => {
                let fullest = self.hosts.iter_mut().max_by_key(|(host, count)| (**count, std::cmp::Reverse(**host)));
                if let Some((_, count)) = fullest {
                    *count -= 1;
                }
                false
            }
        };
        self.hosts.retain(|_, count| *count > 0);
        hinted && self.stage == Stage::Hosts
    }

    pub(super) fn hinted(&self) -> u32 {
        self.hosts.values().sum()
    }

    /// Whether some of what was hinted waits anywhere by now.
    pub(super) fn left(&self) -> bool {
        self.stage == Stage::Anywhere && self.hinted() > 0
    }

    /// Whether all of so many outstanding have rows beside `*`.
    pub(super) fn names(&self, any: u32) -> bool {
        let at_home = self.stage == Stage::Racks && !self.homes.is_empty();
        self.stage <= Stage::Racks && (at_home || self.hinted() >= any)
    }

    /// Rows of a key of which `any` containers are outstanding.
    pub(super) fn rows(&mut self, any: u32, rack: impl Fn(NodeIdx) -> RackIdx) -> Vec<(Place, u32)> {
        let mut rows: BTreeMap<Place, u32> = self.named.keys().map(|place| (*place, 0)).collect();
        if self.stage == Stage::Racks && any > 0 && !self.homes.is_empty() {
            for &host in &self.homes {
                rows.insert(Place::Rack(rack(host)), any);
                rows.insert(Place::Host(host), any);
            }
        } else if self.stage <= Stage::Racks && any > 0 {
            for (&host, &count) in &self.hosts {
                *rows.entry(Place::Rack(rack(host))).or_default() += count;
                if self.stage == Stage::Hosts {
                    rows.insert(Place::Host(host), count);
                }
            }
        }
        self.named.extend(rows.keys().map(|place| (*place, ())));
        rows.insert(Place::Any, any);
        rows.into_iter().map(|(place, count)| (place, count.min(any))).collect()
    }
}
