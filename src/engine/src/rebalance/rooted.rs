//! What runs and talks with a root, for policies that predict its performance by latency.
//!
//! The root of a request that runs is the container of its group of one that most edges name; without such a group, the
//! ApplicationMaster. A job whose root can't be told, or whose containers nobody can tell from another request's, is left out.

use super::round::{Draft, Drafts, Round, RoundApplication, RoundJob, RoundOutcome, Seen, rebalances};
use crate::attempts::Attempt;
use crate::decision::RememberedRequest;
use crate::dispatching::request::asked;
use crate::monitor;
use hintd_model::cluster::{HintRequest, Snapshot};
use hintd_model::units::{AttemptId, ContainerId, NodeIdx};
use hintd_policy::Policy;
use hintd_policy::advise::{Running, RunningRoot};
use hintd_policy::predict::root_group;
use std::sync::Arc;

/// The ResourceManager's sequence number of an attempt's ApplicationMaster, and the bits that a number has below the epoch.
const MASTER: u64 = 1;
const SEQUENCE_BITS: u32 = 40;

/// Attempts with containers that run, each request of theirs a job.
pub(super) fn applications<'e>(
    attempts: impl Iterator<Item = (AttemptId, &'e Attempt)>,
    snapshot: &Snapshot,
) -> Vec<RoundApplication> {
    let runs = |attempt: &AttemptId| snapshot.applications.get(attempt).is_some_and(|of| !of.containers.is_empty());
    let of = |(attempt, known): (AttemptId, &Attempt)| {
        let requests: Vec<RememberedRequest> = known.requests.iter().cloned().collect();
        let jobs = requests.iter().filter(|request| is_original(request)).cloned().map(RoundJob::without_traffic);
        RoundApplication { attempt, jobs: jobs.collect(), requests }
    };
    let of = attempts.filter(|(attempt, _)| runs(attempt)).map(of);
    of.filter(|application| !application.jobs.is_empty()).collect()
}

/// Those that place lost tasks anew, or were made of an offer, are their original's.
fn is_original(request: &RememberedRequest) -> bool {
    monitor::original(&asked(&request.id).into()) == request.id
}

/// Where the container is that all others talk with, and which it is, unless it is the ApplicationMaster.
struct Root {
    node: NodeIdx,
    container: Option<ContainerId>,
}

impl Round {
    /// Adds what runs and is of a policy that reads roots.
    pub(super) fn add_rooted<'r>(
        &'r self,
        policy_of: impl Fn(&HintRequest) -> Option<(&'static str, Arc<dyn Policy>)>,
        drafts: &mut Drafts<'r>,
        found: &mut RoundOutcome,
    ) {
        let mut seen = self.seen_still_running();
        for application in &self.rooted {
            let predicts = |job: &RoundJob| policy_of(&job.request).filter(|(_, policy)| rebalances(&**policy, true));
            let policies: Vec<_> = application.jobs.iter().map(predicts).collect();
            if policies.iter().all(Option::is_none) {
                continue;
            }
            let containers = self.containers(application);
            for ((job, containers), policy) in application.jobs.iter().zip(&containers).zip(policies) {
                let Some((name, policy)) = policy else { continue };
                for known in containers.iter().flatten() {
                    seen.entry(known.container).or_insert(self.began);
                }
                let (_, draft) = drafts.entry(name).or_insert_with(|| (policy, Draft::new(self)));
                found.left_out += u64::from(!self.add_job(application, (job, containers.as_slice()), draft, &seen));
            }
        }
        found.seen = Arc::new(seen);
    }

    /// What earlier rounds saw and still runs: a job that one of them left out has run on all the same.
    fn seen_still_running(&self) -> Seen {
        let runs = |id: &ContainerId| {
            self.snapshot.applications.get(&id.attempt).is_some_and(|of| of.containers.contains_key(id))
        };
        self.seen.iter().filter(|(id, _)| runs(id)).map(|(id, since)| (*id, *since)).collect()
    }

    /// Adds a job's containers; false: it is left out.
    fn add_job(
        &self,
        application: &RoundApplication,
        (job, containers): (&RoundJob, &[Vec<Running>]),
        draft: &mut Draft<'_>,
        seen: &Seen,
    ) -> bool {
        if containers.iter().all(Vec::is_empty) {
            return true;
        }
        let Some(root) = self.root_of(application.attempt, job, containers) else { return false };
        if application.shares_keys(job, (0..job.request.groups.len()).collect()) {
            return false;
        }
        let queue: Arc<str> = job.request.queue.as_str().into();
        for (group, containers) in containers.iter().enumerate() {
            let others = containers.iter().filter(|known| Some(known.container) != root.container);
            let roots = others.map(|known| {
                let since = *seen.get(&known.container).unwrap_or(&self.began);
                (*known, RunningRoot { node: root.node, queue: Arc::clone(&queue), ran: self.began.since(since) })
            });
            draft.add_group(job, group, &roots.collect::<Vec<_>>());
        }
        true
    }

    fn root_of(&self, attempt: AttemptId, job: &RoundJob, containers: &[Vec<Running>]) -> Option<Root> {
        let request = &job.request;
        let mut order: Vec<usize> = (0..request.groups.len()).collect();
        order.sort_by_key(|&group| request.groups[group].key.priority);
        let counts = order.into_iter().map(|group| (group, request.groups[group].count));
        let edges: Vec<(usize, usize)> = request.edges.iter().map(|edge| (edge.from.at(), edge.to.at())).collect();
        if let Some(group) = root_group(counts, &edges) {
            return match containers.get(group)?[..] {
                [only] => Some(Root { node: only.node, container: Some(only.container) }),
                _ => None,
            };
        }
        let named = request.am_host.as_ref().and_then(|host| self.snapshot.statics.find(host.as_str()));
        let reported = || {
            let running = self.snapshot.applications.get(&attempt)?;
            let sequence = |id: &ContainerId| id.id & ((1 << SEQUENCE_BITS) - 1);
            running.containers.iter().find(|(id, _)| sequence(id) == MASTER).map(|(_, of)| of.node)
        };
        reported().or(named).map(|node| Root { node, container: None })
    }
}
