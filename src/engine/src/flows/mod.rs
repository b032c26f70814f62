//! Running flows: which pairs of nodes talk, over which routes, for which jobs; kept through what the network does.
//!
//! # Code map
//! - `job`: one job's tasks and traffic; `registry`: jobs come and go, and with them pairs and first routes;
//!   `came`: jobs follow their containers; `heard`: what nobody was told of sends nothing.
//! - `pairs`: pairs with their routes, homes, carriers, and rules by switch.
//! - `follow`: what a change of the network does; `work`: routes changed a bounded number at a time; `bucket`,
//!   `damping`: how many, and which links new routes avoid; `names`: routes through another network or a restart.
//! - `choose`: which route. `chained`: traffic under chains of middleboxes, apart from the rest; `broken`: whose of it
//!   stands still.
//! - `uses` (with `recurring`), `carried`, `what_if`: questions about a generation, answered without the engine.
//!
//! # Invariants
//! - A pair has one route, whichever jobs it serves, and is known as long as a job sends over it.
//! - The index, the published routes and the rules by switch are functions of jobs and routes alone.
//! - A planned change never makes utility fall.

mod broken;
mod bucket;
mod came;
pub mod carried;
mod chained;
mod choose;
mod damping;
mod follow;
mod heard;
mod hinted;
mod job;
mod names;
mod pairs;
mod recurring;
mod registry;
pub mod settings;
pub mod uses;
pub mod what_if;
mod work;

pub(crate) use broken::Standstill;
pub(crate) use chained::{Found, Names, classes, fit, sends};
pub(crate) use hinted::{PATHS_CUT_SHORT, ProposedFlows, TOO_MANY_PAIRS, shares};
pub use job::NewJob;
pub(crate) use job::UnderChains;
pub(crate) use registry::Sight;

use crate::effects::Counter;
use crate::routes::{Cause, ChangeBatch, Phase};
use bucket::Bucket;
use chained::Chained;
use damping::Damping;
use hintd_model::cluster::{JobFlows, NodePair, PairRoute, RunningFlows, Shards};
use hintd_model::network::{Network, PathTable};
use hintd_model::units::{AttemptId, DecisionId, LinkName, NodeIdx, RequestId, VertexIdx};
use hintd_policy::IndexedFlows;
use hintd_policy::flow_index::FlowIndex;
use job::Job;
use pairs::Pairs;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use work::Queue;

/// The registry of running flows.
#[derive(Debug)]
pub struct Flows {
    jobs: BTreeMap<DecisionId, Job>,
    /// Jobs by the request that they are of.
    by_request: BTreeMap<RequestId, DecisionId>,
    by_attempt: BTreeMap<AttemptId, BTreeSet<DecisionId>>,
    /// The job that a decision's tasks belong to.
    job_of: BTreeMap<DecisionId, DecisionId>,
    by_node: BTreeMap<NodeIdx, BTreeSet<DecisionId>>,
    /// Whose containers are looked at first the next time.
    next_followed: Option<AttemptId>,
    /// How often containers were looked at.
    looks: usize,
    /// Pairs whose routes are kept for answers that nobody has.
    routes_had: usize,
    pairs: Pairs,
    /// Traffic under chains of middleboxes, which is in none of the others.
    chained: Chained,
    /// Who shares which link; `None`: there is no network.
    index: Option<FlowIndex>,
    /// The network that routes are of.
    network: Option<Arc<Network>>,
    /// Its paths, or those of an earlier version of it: brought up to date at the next tick after a change.
    table: Option<Arc<PathTable>>,
    /// Where nodes hang in it, as the index has them.
    vertex: Vec<Option<VertexIdx>>,
    /// Links of routes that were had in a network that is no more, or before a restart.
    remembered: BTreeMap<NodePair, Vec<LinkName>>,
    /// Likewise those of their homes, of pairs that were away.
    remembered_homes: BTreeMap<NodePair, Vec<LinkName>>,
    failed: Queue,
    planned: Queue,
    bucket: Bucket,
    damping: Damping,
    /// Who installed routes has gone silent, and nobody installs since.
    silent: bool,
    /// Pairs whose routes watchers are to be told, by what they are told with.
    news: BTreeMap<ChangeBatch, BTreeSet<NodePair>>,
    counts: BTreeMap<Counter, u64>,
    /// Something that generations carry changed.
    changed: bool,
    jobs_changed: bool,
    view: RunningFlows,
}

impl Default for Flows {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            by_request: BTreeMap::new(),
            by_attempt: BTreeMap::new(),
            job_of: BTreeMap::new(),
            by_node: BTreeMap::new(),
            next_followed: None,
            looks: 0,
            routes_had: 0,
            pairs: Pairs::default(),
            chained: Chained::default(),
            index: None,
            network: None,
            table: None,
            vertex: Vec::new(),
            remembered: BTreeMap::new(),
            remembered_homes: BTreeMap::new(),
            failed: Queue::default(),
            planned: Queue::default(),
            bucket: Bucket::new(),
            damping: Damping::default(),
            silent: false,
            news: BTreeMap::new(),
            counts: BTreeMap::new(),
            changed: false,
            jobs_changed: false,
            view: RunningFlows::default(),
        }
    }
}

impl Flows {
    /// As generations have them.
    fn view(&mut self) -> &RunningFlows {
        if std::mem::take(&mut self.jobs_changed) {
            let job = |(&decision, job): (&DecisionId, &Job)| {
                Arc::new(JobFlows { attempt: job.attempt, decision, traffic: job.traffic.clone() })
            };
            let mut known: BTreeMap<DecisionId, Arc<JobFlows>> =
                self.view.jobs.drain(..).map(|known| (known.decision, known)).collect();
            let jobs = self.jobs.iter().filter(|(_, job)| !job.is_unheard()).map(|entry| match known.remove(entry.0) {
                Some(same) if !entry.1.stale => same,
                _ => job(entry),
            });
            self.view.jobs = jobs.collect();
            self.jobs.values_mut().for_each(|job| job.stale = false);
        }
        self.view.routes = self.pairs.published.clone();
        self.view.chained = Arc::clone(&self.chained.published);
        self.view.damped = Arc::clone(self.damping.avoided());
        &self.view
    }

    /// What the next generation carries; `None`: what the last one did.
    pub fn publish(&mut self) -> Option<Arc<IndexedFlows>> {
        std::mem::take(&mut self.changed).then(|| Arc::new(self.view().clone().into()))
    }

    /// Whether the next generation carries something else than the last.
    pub(crate) const fn changed(&self) -> bool {
        self.changed
    }

    /// Routes as of now.
    pub(crate) const fn routes(&self) -> &Shards<NodePair, Arc<PairRoute>> {
        &self.pairs.published
    }

    /// Pairs whose routes are news, by occasion: failures first.
    pub(crate) fn take_news(&mut self) -> Vec<(ChangeBatch, Vec<NodePair>)> {
        let mut news: Vec<_> = std::mem::take(&mut self.news).into_iter().collect();
        news.sort_by_key(|(occasion, _)| occasion.phase != Phase::Failover);
        news.into_iter().map(|(occasion, pairs)| (occasion, pairs.into_iter().collect())).collect()
    }

    /// What is to be counted since the last call.
    pub(crate) fn take_counts(&mut self) -> BTreeMap<Counter, u64> {
        std::mem::take(&mut self.counts)
    }

    /// Whether no pair talks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pairs that talk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.all.len() + self.chained.len()
    }

    fn count(&mut self, counter: Counter, by: u64) {
        *self.counts.entry(counter).or_default() += by;
    }

    fn tell(&mut self, pair: NodePair, phase: Phase, cause: &Cause) {
        self.changed = true;
        self.news.entry(ChangeBatch { phase, cause: cause.clone() }).or_default().insert(pair);
    }
}
