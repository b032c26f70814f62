//! What a simulated run is told beside cluster, trace and policy.

use crate::delays::Delays;
use hintd_engine::holding::HoldSettings;
use hintd_model::units::{HostName, LinkName, Micros};
use hintd_policy::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who allocates containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// The policy is the scheduler, as in the papers.
    Policy,
    /// YARN's capacity scheduler is; the policy's hints stand in the asks, as in production.
    Hints,
    /// YARN's capacity scheduler is; stock applications ask, and hintd's engine adds hints by way of the ResourceManager's
    /// processor, guard and all.
    Deployed,
}

impl Authority {
    /// As commands and reports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Hints => "hints",
            Self::Deployed => "deployed",
        }
    }
}

/// A part of what hints do that can be left out, beside those that have a setting of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Hints that would do no good are kept back.
    Guard,
    /// hintd knows earlier runs of recurring jobs when it places their receivers.
    Forecast,
    /// hintd is asked where receivers go.
    Receivers,
    /// Maps of jobs whose input has no homes wait a while for hosts of their blocks.
    Blocks,
    /// A job's input goes to as many racks as the policy says; else to one of these.
    RackWidth,
    /// Tasks of a job whose input was written to home racks are asked for there alone for a while.
    Stay,
    /// For as long as its shuffle would need over the homes' uplinks; else for the least time.
    HomePatience,
    /// Jobs that stay in one rack take turns among themselves.
    HomeLanes,
}

/// How finely traffic is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowGrain {
    /// Every fetch goes from node to node over the links of the network. Exact; for small clusters.
    Nodes,
    /// What a rack's nodes send to another rack is one weighted flow over its uplink and the other's downlink, each
    /// fetch held to its share of the reading node's NIC. For large clusters and traces.
    Racks,
}

/// Settings of a run. Defaults are those of the comparisons in docs/reproduction.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimSettings {
    /// Seed of everything drawn: users of jobs, replicas, phases of heartbeats.
    pub seed: u64,
    /// Phases of heartbeats, of nodes and ApplicationMasters, are drawn by this and all else by [`SimSettings::seed`]; none:
    /// all by the one seed. Two runs that differ in nothing else tell what chance is worth.
    pub phase_seed: Option<u64>,
    /// Who allocates.
    pub authority: Authority,
    /// Time between two heartbeats of a node.
    pub heartbeat: Micros,
    /// Users; jobs are given to them at random.
    pub users: u32,
    /// Replicas of a block: one in a rack, the others in another (HDFS's default).
    pub replicas: u8,
    /// Fetches that a reduce has under way at once (Hadoop's `mapreduce.reduce.shuffle.parallelcopies`).
    pub fetches: u32,
    /// How finely traffic is told apart.
    pub grain: FlowGrain,
    /// Whether jobs are recurring ones, of which the policy knows output ÷ input from earlier runs (004 §2.3, §3.2.1);
    /// else it learns it from the job's finished maps.
    pub known_ratios: bool,
    /// Share of jobs, drawn by seed and job, that ran before: hintd knows the earlier run from a JobHistoryServer. As deployed.
    pub recurring: f64,
    /// How far an earlier run was from this one: its input, shuffle and task times are this one's times a factor between
    /// 1 ÷ x and x, drawn for each.
    pub history_error: f64,
    /// What all earlier runs are told beside: bytes and times of tasks that are off by as much for each of them.
    #[serde(skip_serializing_if = "none_lies")]
    pub history_lie: HistoryLie,
    /// Input of recurring jobs is written where the policy says, and their maps first ask for those racks. As deployed.
    pub data_placement: bool,
    /// How far loads may leave their max-min rates before these are found anew, as a share of a link's weight; 0: exact.
    pub rate_tolerance: f64,
    /// Use of a rack's uplink or downlink from which it counts as congested, per mille of capacity.
    pub congested_per_mille: u32,
    /// What links carry is told so often, as by a controller's counters: the mean of the seconds since the last time. None: nobody
    /// counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_counters: Option<Micros>,
    /// Check invariants as the run goes.
    pub invariants: bool,
    /// Where YARN allocates: from an ApplicationMaster's start to its first ask in the mean, give or take half a heartbeat
    /// drawn by seed and application; under hints also from an ask to the heartbeat that carries it.
    pub master_delay: Micros,
    /// As deployed: `yarn.scheduler.capacity.rack-locality-additional-delay`; -1: YARN's default.
    pub rack_delay: i32,
    /// As deployed: whether receivers of heavy shuffles are held; none: never.
    pub hold: Option<HoldSettings>,
    /// As deployed: what is left out, to see what it is worth; empty: nothing.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<Part>,
    /// What takes time beside the network and the work on bytes.
    #[serde(skip_serializing_if = "none_delayed")]
    pub delays: Delays,
    /// Report each job by itself, and what each rack sent and got.
    #[serde(skip)]
    pub by_job: bool,
    /// Under hints: age of what the policy sees.
    pub feed_delay: Micros,
    /// What fails and what comes back, by time.
    pub script: Vec<ScriptedEvent>,
    /// Traffic of others.
    pub background: Vec<Background>,
    /// The plan in force from the start; jobs then are runs of the recurring jobs of their names, and replicas of their
    /// input go where the plan has their maps. Times count from the trace's start.
    #[serde(skip)]
    pub plan: Option<Arc<Plan>>,
}

/// By how much all earlier runs are told wrong: their figures are the right ones times these.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryLie {
    /// Input and shuffle, and tasks by these.
    pub bytes: f64,
    /// Times of tasks.
    pub times: f64,
}

impl HistoryLie {
    /// The truth.
    pub const NONE: Self = Self { bytes: 1.0, times: 1.0 };
}

fn none_lies(lie: &HistoryLie) -> bool {
    *lie == HistoryLie::NONE
}

fn none_delayed(delays: &Delays) -> bool {
    *delays == Delays::default()
}

impl Default for SimSettings {
    fn default() -> Self {
        Self {
            seed: 1,
            phase_seed: None,
            authority: Authority::Policy,
            heartbeat: Micros::from_secs(1),
            users: 200,
            replicas: 3,
            fetches: 5,
            grain: FlowGrain::Racks,
            known_ratios: false,
            recurring: 0.0,
            history_error: 2.0,
            history_lie: HistoryLie::NONE,
            data_placement: false,
            rate_tolerance: 0.005,
            congested_per_mille: 800,
            link_counters: None,
            invariants: true,
            master_delay: Micros::from_secs(1),
            rack_delay: -1,
            hold: None,
            without: BTreeSet::new(),
            delays: Delays::default(),
            by_job: false,
            feed_delay: Micros::from_millis(100),
            script: Vec::new(),
            background: Vec::new(),
            plan: None,
        }
    }
}

impl SimSettings {
    /// Whether recurring jobs have racks of their own: their input is written there, or hintd gathers them there.
    #[must_use]
    pub fn has_homes(&self) -> bool {
        self.data_placement || self.authority == Authority::Deployed && self.recurring > 0.0
    }

    /// The seed of phases of heartbeats.
    #[must_use]
    pub const fn seed_of_phases(&self) -> u64 {
        match self.phase_seed {
            Some(seed) => seed,
            None => self.seed,
        }
    }
}

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedEvent {
    /// When, since the trace's start.
    pub at: Micros,
    /// What.
    pub what: Scripted,
}

/// A failure or a return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scripted {
    /// A node is lost with its tasks, its map outputs and its replicas.
    NodeDown(HostName),
    /// It is back, empty; its replicas are there again.
    NodeUp(HostName),
    /// A link carries nothing.
    LinkDown(LinkName),
    /// It carries again.
    LinkUp(LinkName),
    /// An optical port's mirrors stick: it keeps the circuit that it has, or stays dark. (A port whose link is down has
    /// failed.)
    PortStuck(LinkName),
    /// They move again.
    PortLoose(LinkName),
}

/// A stream of others between two racks, or within one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Sender's rack.
    pub from_rack: Arc<str>,
    /// Receiver's rack.
    pub to_rack: Arc<str>,
    /// Equal streams, each like one fetch.
    pub streams: u32,
    /// From when.
    pub start: Micros,
    /// Until when; none: to the end.
    pub end: Option<Micros>,
}
