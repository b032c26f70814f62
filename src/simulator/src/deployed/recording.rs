//! What a daemon was told, played to the engine as runs of this module have it: both come to the same.

use super::Deployed;
use super::hintd::{Hintd, Reduces, ReducesAsk};
use hintd_engine::{Answer, Effect};
use hintd_model::cluster::Resource;
use hintd_model::units::{AttemptId, HostName, Timestamp};
use hintd_policy::advise::EarlierRun;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One thing that a daemon was told.
#[derive(Debug, Clone)]
pub enum RecordedFact {
    /// A node's heartbeat: what it holds now.
    Holds {
        /// Which node.
        host: HostName,
        /// In all.
        used: Resource,
    },
    /// An attempt is a run of a recurring job, of which this is known.
    Recurs {
        /// Whose.
        attempt: AttemptId,
        /// An earlier run.
        run: EarlierRun,
    },
    /// A container came.
    Came {
        /// Whose.
        attempt: AttemptId,
        /// Its number.
        id: u64,
        /// For a map, else for a reduce.
        map: bool,
        /// Where.
        host: HostName,
    },
    /// A container ended.
    Ended {
        /// Whose.
        attempt: AttemptId,
        /// Its number.
        id: u64,
        /// A map's, else a reduce's.
        map: bool,
        /// Where.
        host: HostName,
        /// Whether it failed.
        failed: bool,
    },
    /// Nothing comes of the attempt any more.
    Done(AttemptId),
    /// Hosts for reduces are asked for.
    Asked {
        /// The request's id, by which equals are ordered.
        id: String,
        /// Whose.
        attempt: AttemptId,
        /// Of which user.
        user: Arc<str>,
        /// How many.
        count: u32,
        /// Of how many in all, where they are asked for in parts; 0: not said.
        whole: u32,
    },
}

/// What hintd answered and how it stood then.
#[derive(Debug)]
pub struct Decided {
    /// The answer; none: refused.
    pub answer: Option<Arc<Answer>>,
    /// Live leases by attempt.
    pub leases: BTreeMap<AttemptId, usize>,
    /// What was left behind since the last question.
    pub effects: Vec<Effect>,
}

/// Plays what was told at those times to the engine of [`Deployed`]; gives what it decided at each question, and at the end
/// how it stood, without an answer. `deployed` has a policy and hosts of these names; what names others is left out.
#[must_use]
pub fn play(deployed: &Deployed<'_>, recording: &[(Timestamp, RecordedFact)]) -> Vec<Decided> {
    let mut hintd = Hintd::new(deployed.cluster);
    let mut snapshot = deployed.cluster.snapshot.clone();
    let mut decided = Vec::new();
    for (at, told) in recording {
        let at = *at;
        let node = |host: &HostName| snapshot.statics.find(host.as_str());
        match told {
            RecordedFact::Holds { host, used } => {
                if let Some(node) = node(host) {
                    snapshot.occupied[node.at()] = *used;
                    hintd.heartbeat(node, &snapshot, at);
                }
            }
            RecordedFact::Recurs { attempt, run } => hintd.recurs(*attempt, run, at),
            RecordedFact::Came { attempt, id, map, host } => {
                if let Some(node) = node(host) {
                    hintd.came((*attempt, *id), *map, node, &snapshot, at);
                }
            }
            RecordedFact::Ended { attempt, id, map, host, failed } => {
                if let Some(node) = node(host) {
                    hintd.ended((*attempt, *id), (*map, *failed), node, &snapshot, at);
                }
            }
            RecordedFact::Done(attempt) => hintd.done(*attempt, at),
            RecordedFact::Asked { id, attempt, user, count, whole } => {
                let reduces = Reduces { count: *count, whole: *whole };
                let asks = ReducesAsk { attempt: *attempt, user, reduces };
                let answer = hintd.decide(deployed, (id, asks), &snapshot, at);
                let (effects, leases) = hintd.left_behind();
                decided.push(Decided { answer, leases, effects });
            }
        }
    }
    let (effects, leases) = hintd.left_behind();
    decided.push(Decided { answer: None, leases, effects });
    decided
}
