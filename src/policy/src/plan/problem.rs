//! What planners are given: *plan*, the capability.

use super::data::{Objective, Plan};
use crate::Budget;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{BitsPerSec, Bytes, Micros, NodeIdx, RackPath, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Plans recurring jobs ahead of time.
pub trait Planner: Send + Sync {
    /// A preference order by rack; never a reservation. The same problem and budget give the same plan. Planning takes no
    /// steps of the budget, only work.
    ///
    /// # Errors
    /// [`PlanError`] where nothing could run, a job can't be meant, or the budget was spent before every job had racks.
    fn plan(&self, problem: &PlanProblem, budget: &mut Budget<'_>) -> Result<Plan, PlanError>;
}

/// Work that a plan may take, whoever asks for it: some minutes. A thousand jobs on twenty racks take a thousandth of it.
pub const PLAN_WORK: u64 = 1 << 34;

/// Jobs expected, and where they could run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanProblem {
    /// Racks with their room, each once.
    pub racks: Vec<RackRoom>,
    /// What joins them.
    pub fabric: Fabric,
    /// Jobs expected within the horizon, each key and run once.
    pub jobs: Vec<ExpectedJob>,
    /// What to keep small.
    pub objective: Objective,
    /// When the plan is made.
    pub made: Timestamp,
    /// Beginning of the horizon.
    pub from: Timestamp,
    /// Its end, exclusive.
    pub until: Timestamp,
    /// Mean relative error of the predictor, where it is known: noted in the plan.
    pub prediction_error: Option<f64>,
    /// Seed of every random draw.
    pub seed: u64,
}

/// A rack as planners see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RackRoom {
    /// Which.
    pub rack: RackPath,
    /// Containers of one task's size that run there at a time.
    pub containers: u32,
}

/// What joins racks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fabric {
    /// A rack's uplink into the packet switches, each way.
    pub uplink: BitsPerSec,
    /// The optical switch, where there is one.
    pub circuits: Option<Circuits>,
    /// Nodes' links, where they are known.
    #[serde(default)]
    pub nodes: Option<NodeLinks>,
}

/// Nodes of a rack and their links into it; racks count as alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLinks {
    /// A node's link, each way.
    pub rate: BitsPerSec,
    /// Nodes of a rack.
    pub per_rack: u32,
}

/// An optical circuit switch, as far as planning goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuits {
    /// A circuit's rate, each way.
    pub rate: BitsPerSec,
    /// Bytes between two racks from which on a job's shuffle rides a circuit.
    pub elephant: Bytes,
    /// How long a circuit stays once it is chosen; zero: circuits change at once, as Eq. 4.1 takes it.
    #[serde(default)]
    pub interval: Micros,
}

impl Circuits {
    /// Of this rate and reconfiguration time, changing at once: elephants fill a circuit for nine reconfigurations, so
    /// that it is used for 90 % of the time (004 §4.1.2).
    #[must_use]
    pub fn new(rate: BitsPerSec, reconfiguration: Micros) -> Self {
        let bits = u128::from(rate.0) * u128::from(reconfiguration.0) * 9 / 1_000_000;
        Self { rate, elephant: Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX)), interval: Micros::ZERO }
    }
}

/// One expected run of a recurring job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedJob {
    /// Recurring-job key.
    pub key: Arc<str>,
    /// Which of its runs within the horizon, from 0.
    pub run: u32,
    /// Expected submission.
    pub arrival: Timestamp,
    /// Bytes that its maps read.
    #[serde(default)]
    pub input: Bytes,
    /// Map tasks and the mean time of one.
    pub maps: (u32, Micros),
    /// Reduce tasks and the mean time of one.
    pub reduces: (u32, Micros),
    /// Bytes between them; without reduces they are not shuffled.
    pub shuffle: Bytes,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing could run.
    #[error("none of the {racks} racks has room for a container")]
    NoRoom {
        /// Racks of the problem.
        racks: usize,
    },
    /// The horizon ends before it begins.
    #[error(
        "the horizon ends at {until} ms, which is not after its beginning at {from} ms (since 1970)",
        from = from.as_millis(),
        until = until.as_millis()
    )]
    Horizon {
        /// Its beginning.
        from: Timestamp,
        /// Its end.
        until: Timestamp,
    },
    /// Rates that nothing could move at.
    #[error("the {what} rate is 0 bit/s")]
    Rate {
        /// Which: `uplink`, `circuit` or `node`.
        what: &'static str,
    },
    /// One rack, twice.
    #[error("rack {0} is given twice")]
    TwiceRack(RackPath),
    /// One run, twice.
    #[error("job {key}#{run} is expected twice")]
    TwiceJob {
        /// Its key.
        key: Arc<str>,
        /// Its run.
        run: u32,
    },
    /// A job without tasks.
    #[error("job {key}#{run} has no maps")]
    NoMaps {
        /// Its key.
        key: Arc<str>,
        /// Its run.
        run: u32,
    },
    /// A job that is not expected within the horizon.
    #[error(
        "job {key}#{run} is expected at {arrival} ms (since 1970), outside the horizon",
        arrival = arrival.as_millis()
    )]
    Arrival {
        /// Its key.
        key: Arc<str>,
        /// Its run.
        run: u32,
        /// When it is expected.
        arrival: Timestamp,
    },
    /// The budget was spent.
    #[error(
        "planning was ended when {planned} of {jobs} jobs had racks: its time was over; a shorter horizon takes less of it"
    )]
    CutShort {
        /// Jobs that had racks.
        planned: usize,
        /// Jobs of the problem.
        jobs: usize,
    },
    /// More than is kept in memory.
    #[error("the plan has more than {most} {what}: a shorter horizon or fewer racks make fewer")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// So many are allowed.
        most: usize,
    },
    /// More work than times can count.
    #[error("job {key}#{run} would end beyond the times that can be counted")]
    TooLong {
        /// Its key.
        key: Arc<str>,
        /// Its run.
        run: u32,
    },
}

impl PlanProblem {
    /// Whether it can be meant; every planner asks first.
    ///
    /// # Errors
    /// The first thing that can't.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.until <= self.from {
            return Err(PlanError::Horizon { from: self.from, until: self.until });
        }
        if self.racks.iter().all(|rack| rack.containers == 0) {
            return Err(PlanError::NoRoom { racks: self.racks.len() });
        }
        if self.fabric.uplink.0 == 0 {
            return Err(PlanError::Rate { what: "uplink" });
        }
        if self.fabric.circuits.is_some_and(|circuits| circuits.rate.0 == 0) {
            return Err(PlanError::Rate { what: "circuit" });
        }
        if self.fabric.nodes.is_some_and(|nodes| nodes.rate.0 == 0) {
            return Err(PlanError::Rate { what: "node" });
        }
        let mut racks: Vec<&RackPath> = self.racks.iter().map(|rack| &rack.rack).collect();
        racks.sort_unstable();
        if let Some(pair) = racks.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PlanError::TwiceRack(pair[0].clone()));
        }
        let mut jobs: Vec<(&Arc<str>, u32)> = self.jobs.iter().map(|job| (&job.key, job.run)).collect();
        jobs.sort_unstable();
        if let Some(pair) = jobs.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PlanError::TwiceJob { key: Arc::clone(pair[0].0), run: pair[0].1 });
        }
        self.jobs.iter().try_for_each(|job| {
            let (key, run, arrival) = (Arc::clone(&job.key), job.run, job.arrival);
            if job.maps.0 == 0 {
                return Err(PlanError::NoMaps { key, run });
            }
            if arrival < self.from || arrival >= self.until {
                return Err(PlanError::Arrival { key, run, arrival });
            }
            Ok(())
        })
    }
}

impl ExpectedJob {
    /// Bytes that its reduces fetch: none without reduces.
    #[must_use]
    pub const fn shuffled(&self) -> Bytes {
        if self.reduces.0 == 0 { Bytes::ZERO } else { self.shuffle }
    }
}

/// Racks of the cluster with room for containers of this size on their usable nodes, all containers off; racks in which
/// none fits are left out.
#[must_use]
pub fn rack_rooms(snapshot: &Snapshot, unit: &Resource) -> Vec<RackRoom> {
    let mut rooms = all_rack_rooms(snapshot, unit);
    rooms.retain(|room| room.containers > 0);
    rooms
}

/// The same of every rack that has a node, usable or not.
#[must_use]
pub fn all_rack_rooms(snapshot: &Snapshot, unit: &Resource) -> Vec<RackRoom> {
    let statics = &snapshot.statics;
    let room = |(rack, members): (&RackPath, &Vec<NodeIdx>)| {
        let usable = members.iter().filter(|node| snapshot.state[node.at()].usable());
        let fit = |node: &NodeIdx| snapshot.rules.how_many(unit, &statics.total[node.at()]);
        RackRoom { rack: rack.clone(), containers: usable.map(fit).fold(0, u32::saturating_add) }
    };
    let racks = statics.racks.iter().zip(&statics.members).filter(|(_, members)| !members.is_empty());
    racks.map(room).collect()
}
