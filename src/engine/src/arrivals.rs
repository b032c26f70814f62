//! Where containers of applications came to be, by group: what a task wrote stays on its node when the task has ended,
//! and groups that are asked for later may read it (a reduce reads what maps left).

use hintd_model::cluster::Shards;
use hintd_model::units::{ApplicationId, AttemptId, ContainerId, NodeIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Arrivals by attempt, as one generation sees them.
pub type ArrivedView = Shards<AttemptId, Arc<Arrived>>;

/// Containers of one attempt that came, run or ended well, by group and node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived {
    groups: BTreeMap<Arc<str>, BTreeMap<NodeIdx, CameThere>>,
    /// What its application recurs by.
    key: Option<Arc<str>>,
}

/// Containers of one group that came to one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CameThere {
    /// All of them, but those that failed.
    all: u32,
    /// Of these: nobody told that they ended.
    running: u32,
}

impl Arrived {
    /// Where containers of a group came, ascending by node.
    pub fn of(&self, group: &str) -> impl Iterator<Item = (NodeIdx, u32)> + '_ {
        self.groups.get(group).into_iter().flatten().map(|(&node, there)| (node, there.all))
    }

    /// What its application recurs by, where that is known.
    pub(crate) const fn key(&self) -> Option<&Arc<str>> {
        self.key.as_ref()
    }

    /// Where containers of any group came.
    pub(crate) fn all(&self) -> impl Iterator<Item = (NodeIdx, u32)> + '_ {
        self.groups.values().flatten().map(|(&node, there)| (node, there.all))
    }

    /// Where containers of a group run, ascending by node.
    pub fn running(&self, group: &str) -> impl Iterator<Item = (NodeIdx, u32)> + '_ {
        let there = self.groups.get(group).into_iter().flatten();
        there.map(|(&node, there)| (node, there.running)).filter(|(_, running)| *running > 0)
    }

    /// Rows, for who weighs it.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.groups.values().map(|nodes| 1 + nodes.len()).sum()
    }

    fn add(&mut self, group: &Arc<str>, node: NodeIdx) {
        let there = self.groups.entry(Arc::clone(group)).or_default().entry(node).or_default();
        there.all += 1;
        there.running += 1;
    }

    fn end(&mut self, group: &str, node: NodeIdx) {
        if let Some(there) = self.groups.get_mut(group).and_then(|nodes| nodes.get_mut(&node)) {
            there.running -= 1;
        }
    }

    fn remove(&mut self, group: &str, node: NodeIdx) {
        let Some(nodes) = self.groups.get_mut(group) else { return };
        if let Some(there) = nodes.get_mut(&node) {
            there.all -= 1;
            if there.all == 0 {
                nodes.remove(&node);
            }
        }
        if nodes.is_empty() {
            self.groups.remove(group);
        }
    }
}

/// All that came, in memory only: what came before a start of the daemon is not known after it.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    view: ArrivedView,
    known: BTreeMap<AttemptId, Known>,
    /// Longest silent first.
    by_age: BTreeSet<(Timestamp, AttemptId)>,
    containers: usize,
}

#[derive(Debug, Default)]
struct Known {
    containers: BTreeMap<ContainerId, ArrivedContainer>,
    /// The container that a task came in last: one that is tried again keeps its name.
    by_task: BTreeMap<Arc<str>, ContainerId>,
    touched: Timestamp,
}

/// A container that came; one that ended or whose task failed is kept, so that news of it that come twice count once.
#[derive(Debug)]
struct ArrivedContainer {
    group: Arc<str>,
    node: NodeIdx,
    ended: bool,
    failed: bool,
}

/// Bounds of what is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalLimits {
    pub(crate) attempts: usize,
    /// Of all attempts together.
    pub(crate) containers: usize,
}

impl Arrivals {
    pub(crate) const fn view(&self) -> &ArrivedView {
        &self.view
    }

    /// A container came; false: that was told before. The longest silent attempts go where there are too many.
    pub(crate) fn came(
        &mut self,
        container: ContainerId,
        (group, task): (&Arc<str>, &Arc<str>),
        node: NodeIdx,
        limits: ArrivalLimits,
        now: Timestamp,
    ) -> bool {
        let attempt = container.attempt;
        let known = self.known.entry(attempt).or_default();
        self.by_age.remove(&(known.touched, attempt));
        known.touched = now;
        self.by_age.insert((now, attempt));
        if known.containers.contains_key(&container) {
            return false;
        }
        known
            .containers
            .insert(container, ArrivedContainer { group: Arc::clone(group), node, ended: false, failed: false });
        known.by_task.insert(Arc::clone(task), container);
        self.containers += 1;
        self.change(attempt, |arrived| arrived.add(group, node));
        while self.by_age.len() > limits.attempts.max(1) || self.containers > limits.containers.max(1) {
            let Some(&(_, oldest)) = self.by_age.first() else { break };
            self.forget(oldest);
        }
        true
    }

    /// The last attempt of an application of which containers came.
    pub(crate) fn last_attempt(&self, application: ApplicationId) -> Option<AttemptId> {
        let of = |attempt| AttemptId { application, attempt };
        self.known.range(of(0)..=of(u32::MAX)).next_back().map(|(&attempt, _)| attempt)
    }

    /// An attempt of which containers came is a run of what recurs by this key.
    pub(crate) fn recurs(&mut self, attempt: AttemptId, key: &Arc<str>) {
        if self.view.get(&attempt).is_some_and(|arrived| arrived.key.as_ref() != Some(key)) {
            self.change(attempt, |arrived| arrived.key = Some(Arc::clone(key)));
        }
    }

    /// The container that a task came in last.
    pub(crate) fn container(&self, attempt: AttemptId, task: &str) -> Option<ContainerId> {
        self.known.get(&attempt)?.by_task.get(task).copied()
    }

    /// A container ended, whoever tells it; what it wrote stays. Returns whether that changed anything.
    pub(crate) fn ended(&mut self, container: ContainerId) -> bool {
        let attempt = container.attempt;
        let known = self.known.get_mut(&attempt);
        let came = known.and_then(|known| known.containers.get_mut(&container)).filter(|came| !came.ended);
        let Some(came) = came else { return false };
        came.ended = true;
        let (group, node) = (Arc::clone(&came.group), came.node);
        self.change(attempt, |arrived| arrived.end(&group, node));
        true
    }

    /// A task failed: its container ended, and what it wrote is not read. Returns whether that changed anything.
    pub(crate) fn failed(&mut self, attempt: AttemptId, task: &str) -> bool {
        let Some(container) = self.container(attempt, task) else { return false };
        self.ended(container);
        let known = self.known.get_mut(&attempt);
        let came = known.and_then(|known| known.containers.get_mut(&container)).filter(|came| !came.failed);
        let Some(came) = came else { return false };
        came.failed = true;
        let (group, node) = (Arc::clone(&came.group), came.node);
        self.change(attempt, |arrived| arrived.remove(&group, node));
        true
    }

    /// The attempt is over.
    pub(crate) fn forget(&mut self, attempt: AttemptId) {
        if let Some(known) = self.known.remove(&attempt) {
            self.by_age.remove(&(known.touched, attempt));
            self.containers -= known.containers.len();
            self.view.set(&attempt, None);
        }
    }

    fn change(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Arrived)) {
        let mut arrived = self.view.get(&attempt).map(Arc::clone).unwrap_or_default();
        self.view.set(&attempt, None); // else it would be copied for being shared with itself
        change(Arc::make_mut(&mut arrived));
        self.view.set(&attempt, Some(arrived));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ArrivalLimits = ArrivalLimits { attempts: 2, containers: 4 };

    fn container(application: u32, number: u64) -> ContainerId {
        let application = ApplicationId { cluster_timestamp: 1, sequence: application };
        ContainerId { attempt: AttemptId { application, attempt: 1 }, id: number }
    }

    fn came(arrivals: &mut Arrivals, container: ContainerId, task: &str, node: u32, at: u64) -> bool {
        arrivals.came(container, (&"map".into(), &task.into()), NodeIdx(node), LIMITS, Timestamp(at))
    }

    fn nodes(arrivals: &Arrivals, application: u32) -> Vec<(u32, u32)> {
        let arrived = arrivals.view().get(&container(application, 0).attempt);
        arrived.into_iter().flat_map(|arrived| arrived.of("map")).map(|(node, count)| (node.0, count)).collect()
    }

    #[test]
    fn containers_count_once_and_those_of_failed_tasks_not_at_all() {
        let mut arrivals = Arrivals::default();
        assert!(came(&mut arrivals, container(1, 1), "t1", 7, 1));
        assert!(!came(&mut arrivals, container(1, 1), "t1", 7, 2), "told twice");
        assert!(came(&mut arrivals, container(1, 2), "t2", 7, 3));
        assert!(came(&mut arrivals, container(1, 3), "t3", 4, 4));
        assert_eq!(nodes(&arrivals, 1), [(4, 1), (7, 2)]);
        let attempt = container(1, 0).attempt;
        assert!(arrivals.failed(attempt, "t3") && !arrivals.failed(attempt, "t3"), "it failed once");
        assert!(!arrivals.ended(container(1, 3)), "it ended when it failed");
        assert!(!came(&mut arrivals, container(1, 3), "t3", 4, 5), "old news");
        assert_eq!(nodes(&arrivals, 1), [(7, 2)]);
        arrivals.forget(attempt);
        assert!(nodes(&arrivals, 1).is_empty() && arrivals.containers == 0 && arrivals.by_age.is_empty());
    }

    #[test]
    fn what_a_container_wrote_stays_where_it_ended_and_it_runs_there_no_more() {
        let mut arrivals = Arrivals::default();
        for (number, node) in [(1, 7), (2, 7), (3, 4)] {
            assert!(came(&mut arrivals, container(1, number), &format!("t{number}"), node, number));
        }
        let running = |arrivals: &Arrivals| -> Vec<(u32, u32)> {
            let arrived = arrivals.view().get(&container(1, 0).attempt).unwrap();
            arrived.running("map").map(|(node, count)| (node.0, count)).collect()
        };
        assert_eq!(running(&arrivals), [(4, 1), (7, 2)]);
        assert!(arrivals.ended(container(1, 1)) && !arrivals.ended(container(1, 1)), "told twice, it ends once");
        assert!(arrivals.ended(container(1, 3)) && !arrivals.ended(container(2, 1)), "nobody knows the other");
        assert_eq!((running(&arrivals), nodes(&arrivals, 1)), (vec![(7, 1)], vec![(4, 1), (7, 2)]));
        assert!(!came(&mut arrivals, container(1, 3), "t3", 4, 5), "old news");
        assert!(arrivals.failed(container(1, 0).attempt, "t1"), "what ended may turn out to have failed");
        assert_eq!((running(&arrivals), nodes(&arrivals, 1)), (vec![(7, 1)], vec![(4, 1), (7, 1)]));
        assert!(arrivals.failed(container(1, 0).attempt, "t2"));
        assert_eq!((running(&arrivals), nodes(&arrivals, 1)), (vec![], vec![(4, 1)]));
    }

    #[test]
    fn of_too_many_the_longest_silent_attempt_goes() {
        let mut arrivals = Arrivals::default();
        for (at, application) in [(1, 1), (2, 2), (3, 1), (4, 3)] {
            came(&mut arrivals, container(application, at), "t", 0, at);
        }
        assert_eq!((nodes(&arrivals, 1).len(), nodes(&arrivals, 2).len(), nodes(&arrivals, 3).len()), (1, 0, 1));
        for at in 5..7 {
            came(&mut arrivals, container(3, at), "t", 0, at);
        }
        assert_eq!((nodes(&arrivals, 1).len(), nodes(&arrivals, 3)), (0, vec![(0, 3)]), "five containers are too many");
    }
}
