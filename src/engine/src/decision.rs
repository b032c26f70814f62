//! What the engine answers: a decision in names, ready for the wire, the journal and explain.

pub use super::hint::Hint;

use super::compared::{BaselinePlaces, CostLinks, Unguarded};
use super::plans::PlanNote;
use super::routes::NamedStop;
use hintd_model::cluster::resource::MEMORY_NAME;
use hintd_model::cluster::{Ask, HintRequest};
use hintd_model::units::{AttemptId, DecisionId, HostName, Micros, QueueName, RequestId, SnapshotVersion};
use hintd_model::units::{BitsPerSec, Bytes, LinkName, Timestamp};
use hintd_policy::Ended;
use hintd_policy::problem::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What terms are of where a group is asked for in parts: a cost of a part alone means nothing, for its containers share links
/// with those before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsOfWhole {
    /// Containers that were placed together: those asked for now, and those that will be asked for later.
    pub containers: u64,
    /// Containers that were asked for before. They stay where they are, and what they get is part of each link's load.
    pub earlier: u64,
}

/// A round of requests that were decided together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundNote {
    /// How many, with this one.
    pub requests: u32,
    /// What all of them cost by the policy's objective, containers without a place included, as the policy weighed it: a gang
    /// that found room only beside all others counts as without a place, and containers beyond all room do not count.
    pub cost: f64,
    /// What they would cost if each were placed in its turn.
    pub cost_in_turn: f64,
}

/// One answered request. Holds names, not indexes: it outlives snapshots and processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// The caller's id.
    pub request: RequestId,
    /// Who asked.
    pub attempt: AttemptId,
    /// The queue.
    pub queue: QueueName,
    /// Recurring-job key, where there is one.
    pub recurring_key: Option<Arc<str>>,
    /// When.
    pub at: Timestamp,
    /// The snapshot it was computed on.
    pub snapshot: SnapshotVersion,
    /// The policy that decided.
    pub policy: Arc<str>,
    /// off, shadow, on.
    pub mode: Mode,
    /// Where containers should go.
    #[serde(with = "super::hint_rows")]
    pub hints: Vec<Hint>,
    /// Hints that were found and are kept back, and why; there are none then, and asks stay as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// Routes of the pairs of hosts that will talk, where flows are kept track of.
    #[serde(default)]
    pub routes: Vec<HintRoute>,
    /// The replacement table.
    pub asks: Vec<Ask>,
    /// Cost terms of the hints.
    pub terms: TermValues,
    /// Cost terms of the default placement; `None`: there was no time.
    pub baseline: Option<TermValues>,
    /// Where the default placement has the containers; `None`: there was no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_places: Option<Box<BaselinePlaces>>,
    /// (baseline objective − objective) ÷ baseline objective, both under the deciding policy's objective.
    pub expected_gain: Option<f64>,
    /// Why its hints are given whatever they gain; `None`: the guard found that they gain something, or there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unguarded: Option<Unguarded>,
    /// Terms, baseline and gain are of more than what is asked for now; `None`: of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms_of_whole: Option<TermsOfWhole>,
    /// The requests that it was decided with; `None`: it was decided alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundNote>,
    /// How the search ended.
    pub ended: Ended,
    /// Relative distance to a proven bound.
    pub gap: Option<f64>,
    /// Steps taken: with the seed they repeat the answer.
    pub steps: u64,
    /// Seed of the search.
    pub seed: u64,
    /// Nodes ruled out, by group and reason.
    pub exclusions: Vec<ExclusionNamed>,
    /// Age of each source when it was decided; absent: never heard.
    pub ages: Vec<AgeOf>,
    /// Tokens of missing or old inputs.
    pub degraded: Vec<String>,
    /// What history stood in for edges that the request does not name; `None`: it names some, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt: Option<LearnedFrom>,
    /// Tasks that a dispatcher holds back: they are hinted later, on Follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// How it stands to the plan in force; `None`: there is none, or its policy follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanNote>,
    /// Of groups with containers that found no room: what keeps nodes from taking them, and which come nearest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// Containers with no lease because there is no room.
    pub without_room: u32,
    /// Containers of a gang `up_to` left for a later wave.
    pub next_wave: u32,
    /// Commits that lost to another one and were placed again.
    pub conflicts: u32,
    /// Time from receipt to answer.
    pub elapsed: Micros,
}

impl Decision {
    /// Whether a hint is only a place to wait at: there is no room, and nothing is leased.
    fn only_waits(&self, hint: &Hint) -> bool {
        self.mode == Mode::On && self.without_room > 0 && hint.leases.is_empty()
    }

    /// Whether none of its containers has room: its hints are only where to wait.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.mode == Mode::On && self.without_room > 0 && self.hints.iter().all(|hint| self.only_waits(hint))
    }

    /// Containers with a hint that is more than a place to wait at.
    #[must_use]
    pub fn hinted(&self) -> u64 {
        self.hints.iter().filter(|hint| !self.only_waits(hint)).map(|hint| u64::from(hint.count)).sum()
    }
}

/// Why hints that were found, or could have been, are kept back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Withheld {
    /// Why.
    pub reason: WithheldReason,
    /// When the busiest link would be done with them, seconds; `None`: no bytes are known.
    pub hinted_s: Option<f64>,
    /// When it is done where YARN puts the containers by itself; `None`: not known, or there was no time to tell.
    pub default_s: Option<f64>,
}

/// See [`Withheld`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldReason {
    /// Neither input nor traffic is known: no place is better than another.
    NothingKnown,
    /// They are no better than what YARN does by itself, or not by more than the estimate may be wrong.
    NoGain,
    /// There was no time to tell what YARN would do.
    NotCompared,
    /// Its application is held out, so that others can be compared with it.
    Holdout,
    /// Hints made runs of its recurring job slower, and no operator has allowed them since.
    Slower,
}

impl WithheldReason {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NothingKnown => "nothing_known",
            Self::NoGain => "no_gain",
            Self::NotCompared => "not_compared",
            Self::Holdout => "holdout",
            Self::Slower => "slower",
        }
    }
}

/// What earlier runs of the same recurring job told of traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedFrom {
    /// The job's key.
    pub key: Arc<str>,
    /// Runs that were learnt from.
    pub runs: u64,
    /// When the last of them ended.
    pub last: Timestamp,
    /// Its edges between groups of the request, and from groups whose containers came before.
    pub edges: u32,
    /// Containers that came before and send to groups of the request.
    pub sources: u64,
}

/// Tasks of one group that wait for a dispatcher to launch them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Group name.
    pub group: Arc<str>,
    /// How many.
    pub count: u32,
    /// Why: a stable token.
    pub reason: Arc<str>,
    /// For how long, where it can be told.
    pub expected_wait: Option<Micros>,
}

/// The route of one pair of hosts that will talk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintRoute {
    /// Sender.
    pub src: HostName,
    /// Receiver.
    pub dst: HostName,
    /// Host, switches, host; empty: no path is left, see `cut`.
    pub vertices: Vec<Arc<str>>,
    /// One a hop.
    pub links: Vec<LinkName>,
    /// Pairs of tasks that send over it.
    pub task_pairs: u32,
    /// What they send, all together.
    pub bytes: Bytes,
    /// Whether rules are to be installed; else default forwarding carries it.
    pub installed: bool,
    /// Where there is no path: links and switches that are down and would, up again, lead on from where `src` gets to.
    pub cut: Vec<Arc<str>>,
    /// The chain of middleboxes that it is under; `None`: the pair's other traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainPath>,
}

/// A route under a chain, box by box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPath {
    /// The chain's name.
    pub name: Arc<str>,
    /// Boxes passed, in order.
    pub stops: Vec<NamedStop>,
    /// What is reserved of each box, bits/s.
    pub rate: BitsPerSec,
    /// rate × links walked, bit/s × links (002 Eq. 2); `None`: there is no way.
    pub cost: Option<u64>,
    /// Types of its sequence that the way leaves out, for the chain fails open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Arc<str>>,
}

/// Cost terms with their units in the names; absent where they could not be computed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TermValues {
    /// Input bytes read from another host.
    pub remote_bytes: Option<f64>,
    /// Bytes that leave a rack.
    pub cross_rack_bytes: Option<f64>,
    /// Switches above the edge layer, summed over container pairs.
    pub core_hops: Option<f64>,
    /// Seconds the most loaded link needs for the application's bytes.
    pub worst_link_s: Option<f64>,
    /// Spread of load over the nodes used.
    pub balance: Option<f64>,
    /// The deciding policy's objective; lower is better.
    pub objective: Option<f64>,
    /// Its parts by name.
    pub parts: BTreeMap<String, f64>,
    /// The links that `worst_link_s` and the time of the busiest link are of.
    #[serde(default, skip_serializing_if = "CostLinks::is_empty")]
    pub links: CostLinks,
}

/// Nodes ruled out for a group, in names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionNamed {
    /// Group name.
    pub group: Arc<str>,
    /// Why.
    pub reason: Reason,
    /// How many nodes.
    pub count: u32,
    /// The first few.
    pub examples: Vec<HostName>,
}

/// Why containers of a group found no room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// Group name.
    pub group: Arc<str>,
    /// Containers.
    pub count: u32,
    /// What keeps most nodes from taking one, of those that all else fits; where no node is that near, what most
    /// nodes lack. A [`Reason`]'s token, or one of [`block`].
    pub constraint: Arc<str>,
    /// Containers that a node (rack) may have by `max_per_node` (`max_per_rack`), where that is the constraint; else 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub bound: u32,
    /// Nodes that this alone keeps from taking one; 0: there is none that all else fits.
    pub nodes: u32,
    /// The nodes that come nearest, nearest first.
    pub nearest: Vec<NearMiss>,
}

const fn is_none(bound: &u32) -> bool {
    *bound == 0
}

/// A node that nearly could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearMiss {
    /// The node.
    pub host: HostName,
    /// All that it fails, and nothing else.
    pub lacks: Vec<Lack>,
}

/// One thing that a node fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// As [`Blocked::constraint`].
    pub constraint: Arc<str>,
    /// Of which resource there is too little; empty: it is not about amounts.
    pub resource: Arc<str>,
    /// By how much; memory in MB.
    pub short: u64,
}

/// What may block beside a [`Reason`].
pub mod block {
    /// The request bounds containers of the group on a node.
    pub const MAX_PER_NODE: &str = "max_per_node";
    /// The request bounds containers of the group in a rack.
    pub const MAX_PER_RACK: &str = "max_per_rack";
    /// There is room, and it is no use: the gang is to be placed whole and is not.
    pub const GANG: &str = "gang";
    /// There is room for more, and the policy does not use it.
    pub const POLICY: &str = "policy";
    /// There is room, and the plan in force has the stage in other racks.
    pub const OTHER_RACK_PLANNED: &str = "other_rack_planned";
    /// The empty cluster does not hold so many.
    pub const CLUSTER: &str = "cluster_too_small";
}

/// Age of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeOf {
    /// Which.
    pub source: hintd_model::cluster::Source,
    /// `None`: never heard.
    pub age: Option<Micros>,
    /// Older than the configured limit, or never heard.
    pub stale: bool,
}

/// What a queue gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing is computed; the table returns as it came.
    Off,
    /// Computed and recorded; nothing leased, the table returns as it came.
    Shadow,
    /// Hints.
    #[default]
    On,
}

impl Mode {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::On => "on",
        }
    }
}

/// A request as the engine remembers it for re-placing: without its ask table.
pub type RememberedRequest = Arc<HintRequest>;

impl std::fmt::Display for NearMiss {
    /// `worker-017: 512 MB short (no_room), all else fits`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.host)?;
        for (at, lack) in self.lacks.iter().enumerate() {
            write!(f, "{}{lack}", if at > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.lacks.len() == 1 { ", all else fits" } else { "" })
    }
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.resource.is_empty() {
            return f.write_str(&self.constraint);
        }
        let unit = if *self.resource == *MEMORY_NAME { "MB" } else { &*self.resource };
        write!(f, "{} {unit} short ({})", self.short, self.constraint)
    }
}
