//! A request compiled against one snapshot and one ledger generation: what placers read.

use crate::IndexedFlows;
use crate::load::load_ppm;
use crate::terms::rack_rates::RackRates;
use hintd_model::cluster::{EdgePattern, Gang, Overlay, Resource, Snapshot, Way};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx, RackIdx, SchedulerKey};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// One placement problem. Borrowed columns are read only; everything else is the request's own.
#[derive(Debug, Clone)]
pub struct PlaceProblem<'a> {
    /// The cluster.
    pub snapshot: &'a Snapshot,
    /// Room taken by leases, of the same generation.
    pub leases: &'a Overlay,
    /// Load by node without leases, as [`super::load::loads`] has it, where somebody keeps it. With it goes that
    /// every group's candidates have room for one of its containers, leases counted.
    pub loads: Option<&'a [u32]>,
    /// What racks' uplinks can carry, as [`RackRates::of`] has it of this snapshot, where somebody keeps it.
    pub rates: Option<&'a RackRates>,
    /// Groups in the request's order.
    pub groups: Vec<GroupProblem>,
    /// Traffic between groups.
    pub edges: Vec<EdgeProblem>,
    /// Containers that came before and send to groups of the problem.
    pub senders: Vec<ArrivedSenders>,
    /// What goes to containers of the groups that were asked for before: the same for every placement.
    pub earlier: Vec<EarlierReceivers>,
    /// What groups read of which nobody knows where it lies: bytes that come out of other racks, wherever the group is.
    pub scattered: Vec<(GroupIdx, Bytes)>,
    /// The whole job, of which the request may ask for a part.
    pub job: KnownJob,
    /// What runs already and will talk to the new containers: the ApplicationMaster, earlier waves.
    pub anchors: Vec<Anchor>,
    /// Traffic that runs already and the routes it has, where somebody keeps track.
    pub running: Option<&'a IndexedFlows>,
    /// Whose containers they are, for chains that ask; chains themselves stand in the snapshot's topology.
    pub owner: Option<Owner<'a>>,
    /// Whether a part is of use.
    pub gang: Gang,
    /// Seed of every random draw.
    pub seed: u64,
    /// Inputs that are missing or too old; policies degrade by these.
    pub degraded: Degraded,
}

/// What is known of a job as a whole, by its last run, by what came of it so far and by what is asked for; 0: not known. Stock
/// applications ask for maps and reduces one after the other, so neither request says how large the job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownJob {
    /// Its maps.
    pub maps: u64,
    /// Its reduces.
    pub reduces: u64,
    /// Bytes that its maps read.
    pub input: Bytes,
    /// Bytes between them.
    pub shuffle: Bytes,
}

impl KnownJob {
    /// The job with so many maps: it reads and sends as many times more bytes.
    #[must_use]
    pub fn grown_to(self, maps: u64) -> Self {
        let scaled = |bytes: Bytes| match self.maps {
            0 => bytes,
            was => Bytes(u64::try_from(u128::from(bytes.0) * u128::from(maps) / u128::from(was)).unwrap_or(u64::MAX)),
        };
        Self { maps, input: scaled(self.input), shuffle: scaled(self.shuffle), ..self }
    }
}

/// Whether a group of this role reads what others shuffle; every other counts among a job's maps.
#[must_use]
pub fn is_reduce(role: &str) -> bool {
    role == "reduce"
}

/// What chains of middleboxes may ask of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Its recurring key and its id; empty: unknown.
    pub application: [&'a str; 2],
    /// Its queue.
    pub queue: &'a str,
}

/// One group.
#[derive(Debug, Clone)]
pub struct GroupProblem {
    /// Its name.
    pub name: Arc<str>,
    /// Its role.
    pub role: Arc<str>,
    /// Containers to place, at least 1.
    pub count: u32,
    /// Containers that are asked for, of which `count` may have been cut to what has room now: how large the group is,
    /// however full the cluster.
    pub asked: u32,
    /// Size of each, as YARN would allocate it.
    pub size: Resource,
    /// Scheduler key.
    pub key: SchedulerKey,
    /// Nodes with room for at least one, ascending; all other nodes are ruled out.
    pub candidates: Arc<[NodeIdx]>,
    /// Nodes ruled out, by reason.
    pub exclusions: Vec<Exclusion>,
    /// Input blocks; empty where there are none or where nothing is known of them.
    pub input: Arc<InputBlocks>,
    /// At most so many of this group on a node; `u32::MAX`: no bound.
    pub max_per_node: u32,
    /// At most so many of this group in a rack; `u32::MAX`: no bound.
    pub max_per_rack: u32,
    /// Where a plan in force has the group's stage. For policies that follow plans, all others pass it over; `None`: there
    /// is no plan for it.
    pub planned: Option<Arc<PlannedRacks>>,
    /// Different nodes are preferred.
    pub spread: bool,
    /// One rack is preferred.
    pub together: bool,
}

/// Racks that a plan has a stage in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRacks {
    /// Ascending, each with its part of the stage's tasks, more than 0.
    pub racks: Vec<(RackIdx, u32)>,
    /// Containers that the request wants; [`GroupProblem::count`] is cut to what has room.
    pub wanted: u32,
    /// What these have no room for waits for them; else it goes anywhere.
    pub only: bool,
}

impl PlannedRacks {
    /// Whether the stage is planned there.
    #[must_use]
    pub fn has(&self, rack: RackIdx) -> bool {
        self.racks.binary_search_by_key(&rack, |(rack, _)| *rack).is_ok()
    }

    /// How many of the wanted containers each rack takes: its part of the plan, rounded up or down so that their sum is right.
    /// Which way is the seed's to say, and over many requests, however small, each rack has its part.
    #[must_use]
    pub fn quotas(&self, seed: u64) -> Vec<u32> {
        let all: u128 = self.racks.iter().map(|(_, part)| u128::from(*part)).sum::<u128>().max(1);
        let offset = u128::from(seed) % all;
        let upto = |parts: u128| (parts * u128::from(self.wanted) + offset) / all;
        let mut parts = 0;
        let quota = |(_, part): &(RackIdx, u32)| {
            let before = upto(parts);
            parts += u128::from(*part);
            u32::try_from(upto(parts) - before).unwrap_or(u32::MAX)
        };
        self.racks.iter().map(quota).collect()
    }
}

/// Traffic between two groups (or within one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeProblem {
    /// Sender.
    pub from: GroupIdx,
    /// Receiver.
    pub to: GroupIdx,
    /// Who talks to whom.
    pub pattern: EdgePattern,
    /// All bytes together.
    pub bytes: Bytes,
}

/// An all-to-all edge of a group with containers that are there already: each container of the group gets an equal part of
/// what each node sends, or sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedSenders {
    /// The group.
    pub to: GroupIdx,
    /// What each node sends to all containers of the problem's group together, or gets of them, ascending by node.
    pub from: Vec<(NodeIdx, Bytes)>,
    /// Which way. Both: containers of one kind, of which some run already. Out: receivers that stay where they are while
    /// senders are placed anew.
    pub way: Way,
}

/// Receivers that were asked for before others of their group, and what senders that are there already send to them: each
/// gets an equal part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierReceivers {
    /// What each node sends to all of them together, ascending by node.
    pub from: Vec<(NodeIdx, Bytes)>,
    /// Where they are, or are leased room, ascending by node.
    pub on: Vec<(NodeIdx, u32)>,
}

/// Containers of the application that stay where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Where.
    pub node: NodeIdx,
    /// How many.
    pub count: u32,
}

/// Input of a group, with an index from nodes to blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputBlocks {
    /// Bytes of each block and the nodes with a replica, ascending.
    pub blocks: Vec<InputBlock>,
    /// (node, blocks with a replica there), ascending by node.
    pub by_node: Vec<(NodeIdx, Vec<u32>)>,
    /// Bytes of all blocks, those without known replicas included.
    pub bytes: Bytes,
    /// Replicas known, over all blocks.
    pub replicas: u32,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputBlock {
    /// Its length.
    pub bytes: Bytes,
    /// Where its replicas lie; empty: not known.
    pub nodes: SmallVec<[NodeIdx; 3]>,
}

impl InputBlocks {
    /// Blocks in the order given, indexed.
    #[must_use]
    pub fn new(blocks: Vec<InputBlock>) -> Self {
        let mut pairs: Vec<(NodeIdx, u32)> = Vec::new();
        for (at, block) in (0u32..).zip(&blocks) {
            pairs.extend(block.nodes.iter().map(|&node| (node, at)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut by_node: Vec<(NodeIdx, Vec<u32>)> = Vec::new();
        for &(node, block) in &pairs {
            match by_node.last_mut() {
                Some((last, list)) if *last == node => list.push(block),
                _ => by_node.push((node, vec![block])),
            }
        }
        let bytes = Bytes(blocks.iter().map(|block| block.bytes.0).sum());
        Self { by_node, bytes, replicas: u32::try_from(pairs.len()).unwrap_or(u32::MAX), blocks }
    }

    /// Blocks with a replica on `node`, ascending.
    #[inline]
    #[must_use]
    pub fn on(&self, node: NodeIdx) -> &[u32] {
        self.by_node.binary_search_by_key(&node, |(node, _)| *node).map_or(&[], |at| &self.by_node[at].1)
    }

    /// What task `task` of `count` reads: the task-th equal run of blocks, of as many tasks as blocks each its own.
    #[must_use]
    pub fn of_task(&self, task: usize, count: usize) -> &[InputBlock] {
        &self.blocks[task * self.blocks.len() / count..(task + 1) * self.blocks.len() / count]
    }

    /// Whether there is no input.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// Why a node can't take a container of a group. Tokens are stable: scripts read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its state is not RUNNING.
    NodeNotRunning,
    /// The label asked for is not on it, or it has one and none is asked for.
    LabelMismatch,
    /// The request avoids the host.
    AvoidedHost,
    /// The request avoids the rack.
    AvoidedRack,
    /// Even empty it is too small.
    NodeTooSmall,
    /// Too little of some resource is left beside what runs there.
    NoRoom,
    /// There would be room, were it not leased to others.
    Leased,
}

impl Reason {
    /// The token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeNotRunning => "node_not_running",
            Self::LabelMismatch => "label_mismatch",
            Self::AvoidedHost => "avoided_host",
            Self::AvoidedRack => "avoided_rack",
            Self::NodeTooSmall => "node_too_small",
            Self::NoRoom => "no_room",
            Self::Leased => "leased",
        }
    }
}

/// Nodes ruled out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// Why.
    pub reason: Reason,
    /// How many.
    pub count: u32,
    /// The first few, ascending.
    pub examples: SmallVec<[NodeIdx; 3]>,
}

/// Which inputs a decision had to do without. Never a zero cost: a missing term is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Degraded {
    /// No network graph: distances come from rack paths.
    pub no_topology: bool,
    /// Input paths whose blocks are unknown: no locality term.
    pub no_blocks: bool,
    /// Heartbeats are older than the limit.
    pub old_heartbeats: bool,
    /// The topology is older than the limit.
    pub old_topology: bool,
    /// Block reports are older than the limit.
    pub old_blocks: bool,
    /// Latency unknown: distance classes stand in.
    pub no_latency: bool,
    /// The request names no edges; containers are taken to talk all to all.
    pub no_edges: bool,
}

impl Degraded {
    /// Stable tokens of what is missing.
    #[must_use]
    pub fn tokens(&self) -> Vec<&'static str> {
        let all = [
            (self.no_topology, "no_topology"),
            (self.no_blocks, "no_blocks"),
            (self.old_heartbeats, "old_heartbeats"),
            (self.old_topology, "old_topology"),
            (self.old_blocks, "old_blocks"),
            (self.no_latency, "no_latency"),
            (self.no_edges, "no_edges"),
        ];
        all.into_iter().filter_map(|(set, token)| set.then_some(token)).collect()
    }
}

impl PlaceProblem<'_> {
    /// The same problem for a policy that knows no [`senders`](Self::senders): what a node sends to a group stands as a
    /// block of its input there. Equal for the first receiver on a node, too good for others (policies.md).
    #[must_use]
    pub fn with_senders_as_blocks(&self) -> Self {
        let mut problem = self.clone();
        for edge in std::mem::take(&mut problem.senders) {
            let group = &mut problem.groups[edge.to.at()];
            let blocks = edge.from.iter().map(|&(node, bytes)| InputBlock { bytes, nodes: smallvec![node] });
            let blocks = group.input.blocks.iter().cloned().chain(blocks).collect();
            group.input = Arc::new(InputBlocks::new(blocks));
        }
        problem
    }

    /// What new containers on `node` may use.
    #[inline]
    #[must_use]
    pub fn room(&self, node: NodeIdx) -> Resource {
        self.snapshot.room(node, self.leases)
    }

    /// Among nodes that are otherwise equal, lower is better: the less loaded one, then by a shuffle of the seed's, so that
    /// like requests do not all meet on the first node.
    pub(crate) fn rank(&self, node: NodeIdx) -> u32 {
        let load = match self.loads {
            Some(loads) => loads[node.at()],
            None => load_ppm(self.snapshot, node, &self.room(node)),
        };
        // A percent of load counts, less is noise.
        (load / 10_000) << 16 | (node.0 ^ self.seed as u32).wrapping_mul(0x9e37_79b1) >> 16
    }

    /// The same problem where this is leased, which is at least what was leased before: candidates that have no room left are
    /// none, and counts are cut to what fits.
    #[must_use]
    pub fn beside<'b>(&'b self, leases: &'b Overlay) -> PlaceProblem<'b> {
        let mut problem = PlaceProblem { leases, loads: None, ..self.clone() };
        let snapshot = self.snapshot;
        for at in 0..problem.groups.len() {
            let group = &self.groups[at];
            let open = |node: &_| snapshot.rules.feasible(&group.size, &snapshot.room(*node, leases));
            if !group.candidates.iter().all(open) {
                problem.groups[at].candidates = group.candidates.iter().copied().filter(open).collect::<Arc<[_]>>();
            }
        }
        problem.cut();
        problem
    }

    /// Cuts counts to what could fit now, each group by itself, so that no policy walks through containers in vain.
    pub fn cut(&mut self) {
        for at in 0..self.groups.len() {
            let group = &self.groups[at];
            // With a candidate for each container there is nothing to cut, and no need to count.
            if group.count as usize <= group.candidates.len() {
                continue;
            }
            let rules = &self.snapshot.rules;
            let on = |&node| rules.how_many(&group.size, &self.room(node)).min(group.max_per_node);
            let fits = group.candidates.iter().fold(0_u32, |sum, node| sum.saturating_add(on(node)));
            self.groups[at].count = group.count.min(fits.max(1));
        }
    }

    /// Containers of all groups.
    #[must_use]
    pub fn containers(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }
}
