//! What applications ask for: rows of counts by place, and what the scheduler counts beside them.

use super::{ContainerNo, Size};
use hintd_model::units::{NodeIdx, RackIdx, SchedulerKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where a row asks for containers. Hosts and racks that the cluster does not have are numbers that no node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// `*`.
    Any,
    /// A rack's name.
    Rack(RackIdx),
    /// A host's name.
    Host(NodeIdx),
}

/// One row of an ask, as `ResourceRequest` has it: counts are absolute and replace what stood there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskRow {
    /// Priority and allocation request id.
    pub key: SchedulerKey,
    /// Where.
    pub place: Place,
    /// Size of each container.
    pub size: Size,
    /// How many.
    pub count: u32,
    /// `relaxLocality`: whether containers may come here for lack of room nearer by; on the rows of a rack and of `*`.
    pub relax: bool,
}

/// A row as it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) count: u32,
    pub(super) size: Size,
    pub(super) relax: bool,
}

/// A reservation of an application on a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservation {
    pub(super) container: ContainerNo,
    pub(super) size: Size,
    /// In the order in which they came.
    pub(super) serial: u64,
}

/// All of an application under one key.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyAsks {
    pub(super) rows: BTreeMap<Place, Row>,
    /// Whether `*` is outstanding.
    pub(super) outstanding: bool,
    /// Offers since the last local container, those that gave one included.
    pub(super) opportunities: u32,
    pub(super) reservations: BTreeMap<NodeIdx, Reservation>,
    /// Most reservations at once: it says in which order they are walked.
    pub(super) reservations_peak: usize,
    /// How often a reservation of this key was made again since the last was made or given up.
    pub(super) repeats: u32,
}

impl KeyAsks {
    pub(super) fn row(&self, place: Place) -> Option<Row> {
        self.rows.get(&place).copied().filter(|row| row.count > 0)
    }

    /// Containers outstanding at the place.
    pub(super) fn count(&self, place: Place) -> u32 {
        self.rows.get(&place).map_or(0, |row| row.count)
    }

    /// Rows that were never asked for relax.
    pub(super) fn relaxes(&self, place: Place) -> bool {
        self.rows.get(&place).is_none_or(|row| row.relax)
    }

    /// One container less there; a row at 0 is gone.
    pub(super) fn decrement(&mut self, place: Place) {
        let Some(row) = self.rows.get_mut(&place) else { return };
        row.count = row.count.saturating_sub(1);
        if row.count == 0 {
            self.rows.remove(&place);
        }
    }
}

/// A container that an application holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    pub(super) node: NodeIdx,
    pub(super) size: Size,
}

/// An application: one attempt.
#[derive(Debug, Clone)]
pub(super) struct App {
    /// Order of submission.
    pub(super) serial: u64,
    pub(super) queue: usize,
    pub(super) user: std::sync::Arc<str>,
    pub(super) priority: i32,
    pub(super) master: Size,
    pub(super) active: bool,
    pub(super) used: Size,
    /// Memory in use as fair ordering last saw it.
    pub(super) ranked_mb: i64,
    pub(super) reserved: Size,
    pub(super) pending: Size,
    pub(super) keys: BTreeMap<SchedulerKey, KeyAsks>,
    pub(super) live: BTreeMap<ContainerNo, Live>,
    pub(super) containers: u64,
    pub(super) avoids: BTreeSet<Place>,
}

impl App {
    pub(super) fn count(&self, key: SchedulerKey, place: Place) -> u32 {
        self.keys.get(&key).map_or(0, |asks| asks.count(place))
    }

    pub(super) fn asks_for_nothing(&self) -> bool {
        self.keys.values().all(|asks| !asks.outstanding)
    }
}
