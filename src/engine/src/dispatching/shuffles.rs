//! What running jobs have shuffled and where it goes, as far as task events tell.

use super::Dispatching;
use super::group::{Group, Task};
use crate::circuits::JobShuffle;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, Bytes, NodeIdx, RackIdx};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk, View};
use hintd_policy::plan::Stage;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Racks of one job that its shuffle is followed from, and to: those with most. Beyond, the traffic goes by packets.
pub(crate) const RACKS_FOLLOWED: usize = 512;

impl Dispatching {
    /// Jobs with ended maps and reduces, by attempt. Tasks count where they are, whoever hinted them; those on nodes that
    /// are gone do not.
    pub(crate) fn shuffles(&self, snapshot: &Snapshot) -> Vec<JobShuffle> {
        let mut jobs: BTreeMap<AttemptId, Vec<&Group>> = BTreeMap::new();
        for dispatcher in self.dispatchers.values() {
            for ((attempt, _), group) in &dispatcher.groups {
                jobs.entry(*attempt).or_default().push(group);
            }
        }
        jobs.into_iter().filter_map(|(attempt, groups)| shuffle(attempt, &groups, snapshot)).collect()
    }

    /// The policy that times the attempt's shuffles: the run is planned as heavy, and its policy follows the plan.
    pub(crate) fn shuffle_policy(&mut self, attempt: AttemptId) -> Option<Arc<str>> {
        let plan = &self.plan.as_ref()?.plan;
        self.dispatchers.iter_mut().find_map(|(name, dispatcher)| {
            let job = plan.jobs.get(dispatcher.times_shuffles_of(attempt)? as usize)?;
            job.heavy.then(|| Arc::clone(name))
        })
    }

    /// Asks that policy.
    pub(crate) fn ask_shuffle(&mut self, policy: &str, ask: &ShuffleAsk, view: &View<'_>) -> ShuffleAdvice {
        self.dispatchers.get_mut(policy).map_or(ShuffleAdvice::Start, |dispatcher| dispatcher.shuffle(ask, view))
    }
}

fn shuffle(attempt: AttemptId, groups: &[&Group], snapshot: &Snapshot) -> Option<JobShuffle> {
    let of = |stage: Stage| {
        let of_stage = move |group: &&&Group| match stage {
            Stage::Reduce => *group.told.role == *"reduce",
            Stage::Map => *group.told.role == *"map",
        };
        groups.iter().filter(of_stage).flat_map(|group| &group.tasks)
    };
    let tasks = u32::try_from(of(Stage::Reduce).count()).unwrap_or(u32::MAX);
    if tasks == 0 {
        return None;
    }
    // What was on a node that is gone is lost, though nobody may have said so of each container.
    let there = |node: NodeIdx| snapshot.state.get(node.at()).is_some_and(|state| !state.gone());
    let rack = |node: NodeIdx| snapshot.statics.rack.get(node.at()).copied().filter(|_| there(node));
    let mut output: BTreeMap<RackIdx, Bytes> = BTreeMap::new();
    for task in of(Stage::Map) {
        if let Task::Ended(end) = task
            && let Some(rack) = rack(end.node).filter(|_| end.output > Bytes::ZERO)
        {
            let sum = output.entry(rack).or_insert(Bytes::ZERO);
            *sum = sum.saturating_add(end.output);
        }
    }
    if output.is_empty() {
        return None;
    }
    let mut reduces: BTreeMap<RackIdx, (u32, u32)> = BTreeMap::new();
    for task in of(Stage::Reduce) {
        let (node, ended) = match task {
            Task::Running { node, .. } => (*node, false),
            Task::Ended(end) => (end.node, true),
            Task::Waiting | Task::Leased { .. } => continue,
        };
        if let Some(rack) = rack(node) {
            let count = reduces.entry(rack).or_default();
            *count = if ended { (count.0, count.1 + 1) } else { (count.0 + 1, count.1) };
        }
    }
    let maps_done = of(Stage::Map).all(|task| matches!(task, Task::Ended(_)));
    let placed = |task: &Task| matches!(task, Task::Running { .. } | Task::Ended(_));
    let reduces_placed = of(Stage::Reduce).all(placed);
    let (output, reduces) =
        (most(output, |&bytes| bytes), most(reduces, |&(running, ended)| running.saturating_add(ended)));
    Some(JobShuffle { attempt, output, reduces, tasks, maps_done, reduces_placed })
}

/// The racks with most of something, the first of those with as much.
fn most<T, K: Ord>(of: BTreeMap<RackIdx, T>, key: impl Fn(&T) -> K) -> BTreeMap<RackIdx, T> {
    if of.len() <= RACKS_FOLLOWED {
        return of;
    }
    let mut racks: Vec<(RackIdx, T)> = of.into_iter().collect();
    racks.sort_by_key(|(_, of)| std::cmp::Reverse(key(of))); // stable: by rack where they are equal
    racks.truncate(RACKS_FOLLOWED);
    racks.into_iter().collect()
}
