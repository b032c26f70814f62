//! The narrower capabilities: *route*, *rebalance*, *place data*.

use super::budget::Budget;
use super::place::{Ended, PlaceError};
use super::plan::Plan;
use hintd_model::cluster::{Overlay, Resource, Snapshot};
pub use hintd_model::network::chains::BoxKind;
use hintd_model::network::chains::BoxLoads;
use hintd_model::units::{AttemptId, Bytes, ChainIdx, ContainerId, LinkIdx, Micros, NodeIdx, RackIdx, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Chooses a path for every flow.
pub trait Route: Send + Sync {
    /// One path per flow of the problem, in its order; `None`: no path is left.
    ///
    /// # Errors
    /// [`PlaceError`] where the policy can't work on such a problem at all.
    fn route(&self, problem: &RouteProblem<'_>, budget: &mut Budget<'_>) -> Result<Routes, PlaceError>;
}

/// Flows to route.
#[derive(Debug, Clone)]
pub struct RouteProblem<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// Flows that need a path.
    pub flows: Vec<FlowDemand>,
    /// Flows that keep theirs.
    pub fixed: Vec<(FlowDemand, Arc<[LinkIdx]>)>,
    /// Seed of every random draw.
    pub seed: u64,
}

/// Traffic between two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDemand {
    /// Sender.
    pub from: NodeIdx,
    /// Receiver.
    pub to: NodeIdx,
    /// What is to be moved.
    pub bytes: Bytes,
    /// Middleboxes to pass on the way.
    pub chain: Chain,
}

/// Kinds of middlebox to pass, in order; at most three (002 §6), none for most flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Chain(pub [Option<BoxKind>; 3]);

/// Paths chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Routes {
    /// By flow.
    pub paths: Vec<Option<Arc<[LinkIdx]>>>,
    /// The policy's own objective; lower is better.
    pub objective: f64,
    /// How the search ended.
    pub ended: Ended,
}

/// Proposes moves of running containers after a change.
pub trait Rebalance: Send + Sync {
    /// At most `problem.moves_max` moves, best first; empty: nothing is worth moving.
    ///
    /// # Errors
    /// [`PlaceError`] where the policy can't work on such a problem at all.
    fn rebalance(&self, problem: &RebalanceProblem<'_>, budget: &mut Budget<'_>) -> Result<Vec<Move>, PlaceError>;

    /// Whether it reads [`RebalanceProblem::roots`]; else what passes no middlebox is not shown to it.
    fn reads_roots(&self) -> bool {
        false
    }

    /// Why it can never propose a move with its parameters, if what moves has run for `ran` at least and `gain_min` is the
    /// smallest gain; with the numbers. `None`: it can.
    fn never_moves(&self, _ran: Micros, _gain_min: f64) -> Option<String> {
        None
    }
}

/// What runs, and how much may move.
#[derive(Debug, Clone)]
pub struct RebalanceProblem<'a> {
    /// The cluster after the change.
    pub snapshot: &'a Snapshot,
    /// Room taken by leases.
    pub leases: &'a Overlay,
    /// Containers that may move.
    pub running: Vec<Running>,
    /// By set and node: whether containers of the set may go there; those of a set beyond the end may go anywhere.
    pub allowed: Vec<Vec<bool>>,
    /// Which containers talk, and how much.
    pub traffic: Vec<ContainerTraffic>,
    /// By row of `traffic`: the chain of middleboxes that it has to pass; rows beyond the end have none.
    pub chains: Vec<Option<ChainIdx>>,
    /// By row of `running`: whom it talks with, for policies that predict performance by latency; rows beyond the end: nobody
    /// knows.
    pub roots: Vec<Option<RunningRoot>>,
    /// What traffic beside this takes of each box; `None`: nothing.
    pub others: Option<BoxLoads>,
    /// Bound of one round.
    pub moves_max: usize,
    /// Bound of one round for each application.
    pub application_moves_max: usize,
    /// Smallest gain worth a move, as [`Move::gain`] has it.
    pub gain_min: f64,
    /// Seed of every random draw.
    pub seed: u64,
}

/// What one container sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerTraffic {
    /// The sender, by position in [`RebalanceProblem::running`].
    pub from: u32,
    /// The receiver, likewise.
    pub to: u32,
    /// How much.
    pub bytes: Bytes,
}

/// A container that may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Which.
    pub container: ContainerId,
    /// Where it is.
    pub node: NodeIdx,
    /// Its size.
    pub size: Resource,
    /// It was moved a short while ago: it stays.
    pub cooling: bool,
    /// Row of [`RebalanceProblem::allowed`].
    pub set: u32,
}

/// The container that a running one talks with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningRoot {
    /// Where it is.
    pub node: NodeIdx,
    /// The queue of their application.
    pub queue: Arc<str>,
    /// For how long the running one has been seen; it may have run before.
    pub ran: Micros,
}

/// One proposed move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// What.
    pub container: ContainerId,
    /// Where to.
    pub to: NodeIdx,
    /// Share of its application's cost before that the move saves; where performance is predicted, of the container's own, less
    /// what having run counts for.
    pub gain: f64,
    /// Of policies that predict performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<MovedPerformance>,
}

/// Predicted performance of a container that is proposed to move, as shares of the best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MovedPerformance {
    /// Where it runs.
    pub now: f64,
    /// Where it is proposed to go.
    pub then: f64,
    /// For how long it has been seen to run; it may have run before.
    pub ran: Micros,
}

/// Advises where replicas of new data should go.
pub trait PlaceData: Send + Sync {
    /// One entry per replica, first replica first.
    ///
    /// # Errors
    /// [`PlaceError`] where the policy can't work on such a problem at all.
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError>;

    /// The same for each of the data's first `blocks` blocks, whichever block the problem is of: a policy may find once
    /// what is alike for all of them.
    ///
    /// # Errors
    /// As [`PlaceData::place_data`].
    fn place_blocks(&self, problem: &DataProblem<'_>, blocks: u64) -> Result<Vec<Vec<ReplicaAdvice>>, PlaceError> {
        (0..blocks).map(|block| self.place_data(&DataProblem { block, ..problem.clone() })).collect()
    }

    /// Whether it goes by what machines are, whoever reads: then neither a plan nor an earlier run of a reader is wanted.
    fn needs_no_reader(&self) -> bool {
        false
    }

    /// Racks in which the input of a recurring job should have a replica, asked before it is written, or in which its tasks
    /// are best gathered where it is written already; ascending; empty: wherever HDFS puts it, and everywhere.
    fn homes(&self, _problem: &HomesProblem<'_>) -> Vec<RackIdx> {
        Vec::new()
    }
}

/// What is known of a recurring job by an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierRun {
    /// The recurring job's key.
    pub key: Arc<str>,
    /// Bytes that its maps read.
    pub input: Bytes,
    /// Bytes between maps and reduces.
    pub shuffle: Bytes,
    /// Maps, and the mean time of one.
    pub maps: (u32, Micros),
    /// Reduces, and the mean time of one.
    pub reduces: (u32, Micros),
}

impl EarlierRun {
    /// A run with more than so many times as many maps is another job's, or of other data.
    const LIKE: u64 = 2;

    /// Whether a run that reads so many blocks may be like it: stages of one script may share a key.
    #[must_use]
    pub fn is_like(&self, blocks: u64) -> bool {
        let maps = u64::from(self.maps.0);
        maps == 0 || blocks <= Self::LIKE * maps
    }
}

/// Which racks the input of a recurring job should be written to, or, where it is written, its tasks be gathered in.
#[derive(Debug, Clone)]
pub struct HomesProblem<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// The job, as it ran before.
    pub run: &'a EarlierRun,
    /// By rack: what it has, and what is to be done there by jobs whose input was written lately.
    pub racks: &'a [HomeRack],
    /// Seed of every random draw.
    pub seed: u64,
    /// Whether the input lies somewhere already.
    pub input: InputState<'a>,
}

/// Whether the input of a job lies somewhere already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState<'a> {
    /// It is to be written. When the job will run, and beside whom, nobody knows.
    Unwritten,
    /// It lies where HDFS put it, the replicas of each block in two racks: tasks elsewhere read it over the uplinks.
    Written {
        /// Other jobs that want the uplinks now, when the job runs.
        others: u32,
        /// Where it lies; `None`: nobody knows yet.
        lies: Option<Lies<'a>>,
    },
}

/// Where written input lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lies<'a> {
    /// Blocks, or tasks that read one each.
    pub blocks: u64,
    /// By rack: of these, how many have a replica there.
    pub by_rack: &'a [u64],
}

/// A rack that input may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HomeRack {
    /// Containers that it has room for when it is empty.
    pub slots: u32,
    /// Bytes of input that it may still get.
    pub disk: Bytes,
    /// Seconds of one container's time that are to be done there.
    pub work_s: f64,
    /// Bytes that are to leave it.
    pub up: f64,
    /// Bytes that its nodes are to get.
    pub into: f64,
}

/// A block of data about to be written.
#[derive(Debug, Clone)]
pub struct DataProblem<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// Path of the data.
    pub path: Arc<str>,
    /// Which of its blocks, from 0.
    pub block: u64,
    /// The recurring job that will read it, where known.
    pub reader: Option<Arc<str>>,
    /// The plan in force, if there is one.
    pub plan: Option<&'a Plan>,
    /// What [`PlaceData::homes`] said of the reader.
    pub homes: &'a [RackIdx],
    /// When it is written.
    pub now: Timestamp,
    /// The application that writes it, where known.
    pub writer: Option<AttemptId>,
    /// Replicas wanted.
    pub replication: u8,
    /// Seed of every random draw, the same for all of the data's blocks.
    pub seed: u64,
}

/// Where one replica should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaAdvice {
    /// Any node of the rack.
    Rack(RackIdx),
    /// That node.
    Node(NodeIdx),
    /// HDFS's own choice.
    Default,
}
