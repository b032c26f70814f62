//! A placer answers heartbeats: each group is placed when it begins to wait, and a node that reports is given
//! what was placed on it.

use crate::dispatch::{Advice, Dispatch, DispatchEvent, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::problem::{Degraded, GroupProblem, InputBlock, InputBlocks, KnownJob};
use crate::{Budget, Place, PlaceProblem, Placement};
use hintd_model::cluster::{Gang, Resource};
use hintd_model::units::{AttemptId, Micros, NodeIdx, SchedulerKey, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Makes a *dispatch* of a *place*. A task whose node does not report with room within `patience` goes to any
/// node with room: a plan never starves a task. Room is as the snapshot has it when the group begins to wait.
#[derive(Debug, Clone)]
pub struct PlacedFirst<P> {
    placer: P,
    steps: u64,
    patience: Micros,
}

impl<P: Place> PlacedFirst<P> {
    /// Of `placer`, with so many steps for each group.
    #[must_use]
    pub const fn new(placer: P, steps: u64, patience: Micros) -> Self {
        Self { placer, steps, patience }
    }
}

/// What waits, and where it was placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedFirstState {
    /// Oldest first.
    waiting: BTreeSet<(Timestamp, TaskRef)>,
    /// By node; entries that wait no more are dropped when the node reports.
    planned: BTreeMap<NodeIdx, BTreeSet<(Timestamp, TaskRef)>>,
    /// Ascending by attempt and group.
    groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    attempt: AttemptId,
    name: Arc<str>,
    since: Timestamp,
    size: Resource,
}

impl PlacedFirstState {
    fn group(&self, attempt: AttemptId, name: &str) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| (group.attempt, &*group.name).cmp(&(attempt, name)))
    }

    fn size(&self, task: &TaskRef) -> Option<Resource> {
        self.group(task.attempt, &task.group).ok().map(|at| self.groups[at].size)
    }

    fn wait(&mut self, waiting: &WaitingGroup, placement: Option<&Placement>) {
        let group = Group {
            attempt: waiting.attempt,
            name: Arc::clone(&waiting.group),
            since: waiting.since,
            size: waiting.size,
        };
        match self.group(waiting.attempt, &waiting.group) {
            Ok(at) => self.groups[at] = group,
            Err(at) => self.groups.insert(at, group),
        }
        let task = |index| {
            let (attempt, group) = (waiting.attempt, Arc::clone(&waiting.group));
            (waiting.since, TaskRef { attempt, group, index })
        };
        self.waiting.extend((0..waiting.count).map(task));
        let mut next = 0;
        for share in placement.into_iter().flat_map(|placement| &placement.groups[0]) {
            self.planned.entry(share.node).or_default().extend((next..next + share.count).map(task));
            next += share.count;
        }
    }

    fn started(&mut self, task: &TaskRef) {
        if let Ok(at) = self.group(task.attempt, &task.group) {
            self.waiting.remove(&(self.groups[at].since, task.clone()));
        }
    }

    /// It waits for any node: it was placed once, and the place failed it.
    fn requeue(&mut self, task: &TaskRef) {
        if let Ok(at) = self.group(task.attempt, &task.group) {
            self.waiting.insert((self.groups[at].since, task.clone()));
        }
    }

    fn done(&mut self, attempt: AttemptId) {
        self.groups.retain(|group| group.attempt != attempt);
        self.waiting.retain(|(_, task)| task.attempt != attempt);
        for planned in self.planned.values_mut() {
            planned.retain(|(_, task)| task.attempt != attempt);
        }
        self.planned.retain(|_, planned| !planned.is_empty());
    }
}

impl<P: Place> Dispatch for PlacedFirst<P> {
    type State = PlacedFirstState;

    fn start(&self) -> PlacedFirstState {
        PlacedFirstState::default()
    }

    fn observe(&self, state: &mut PlacedFirstState, event: &DispatchEvent, view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(waiting) => {
                let problem = problem(waiting, view);
                let mut never = || false;
                // A policy that lacks a source leaves the tasks to patience.
                let placement = self.placer.place(&problem, &mut Budget::new(self.steps, &mut never)).ok();
                state.wait(waiting, placement.as_ref());
            }
            DispatchEvent::Launched { task, .. } => state.started(task),
            DispatchEvent::Finished { task, failed: true, .. } | DispatchEvent::Lost(task) => state.requeue(task),
            DispatchEvent::Done(attempt) => state.done(*attempt),
            DispatchEvent::Finished { .. }
            | DispatchEvent::RackUse { .. }
            | DispatchEvent::Run { .. }
            | DispatchEvent::Recurs { .. }
            | DispatchEvent::Received(_)
            | DispatchEvent::Asks { .. }
            | DispatchEvent::Plan(_) => {}
        }
    }

    fn offer(&self, state: &mut PlacedFirstState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let rules = &view.snapshot.rules;
        let (mut free, mut launches) = (offer.free, Vec::new());
        let planned = state.planned.remove(&offer.node).unwrap_or_default();
        let mut kept = BTreeSet::new();
        for entry in planned {
            let Some(size) = state.size(&entry.1).filter(|_| state.waiting.contains(&entry)) else { continue };
            if rules.feasible(&size, &free) {
                free = free.minus(&size);
                launches.push(entry);
            } else {
                kept.insert(entry);
            }
        }
        if !kept.is_empty() {
            state.planned.insert(offer.node, kept);
        }
        // One impatient task an offer: it was placed elsewhere, and other nodes report as well.
        let oldest = state.waiting.iter().find(|entry| !launches.contains(*entry));
        let impatient = oldest.filter(|(since, _)| view.now.since(*since) > self.patience);
        let fits = |(_, task): &&(_, TaskRef)| state.size(task).is_some_and(|size| rules.feasible(&size, &free));
        launches.extend(impatient.filter(fits).cloned());
        launches.into_iter().map(|(_, task)| Advice::Launch(task)).collect()
    }
}

/// The group alone, against the room of the moment; nodes without labels only, for groups have none here.
fn problem<'a>(waiting: &WaitingGroup, view: &View<'a>) -> PlaceProblem<'a> {
    let snapshot = view.snapshot;
    let usable = |node: &NodeIdx| {
        let at = node.at();
        snapshot.state[at].usable()
            && snapshot.statics.labels[at].0 == 0
            && snapshot.rules.feasible(&waiting.size, &snapshot.room(*node, view.leases))
    };
    let block = |input: &TaskInput| InputBlock { bytes: input.bytes, nodes: input.nodes.iter().copied().collect() };
    let group = GroupProblem {
        name: Arc::clone(&waiting.group),
        role: Arc::clone(&waiting.role),
        count: waiting.count,
        asked: waiting.count,
        size: waiting.size,
        key: SchedulerKey { priority: 0, allocation_request_id: -1 },
        candidates: snapshot.statics.indexes().filter(usable).collect(),
        exclusions: Vec::new(),
        input: Arc::new(InputBlocks::new(waiting.inputs.iter().map(block).collect())),
        max_per_node: u32::MAX,
        max_per_rack: u32::MAX,
        planned: None,
        spread: false,
        together: false,
    };
    let degraded = Degraded { no_edges: true, no_blocks: waiting.inputs.is_empty(), ..Degraded::default() };
    let (groups, edges, senders, anchors) = (vec![group], Vec::new(), Vec::new(), Vec::new());
    let seed = u64::from(waiting.attempt.application.sequence);
    let leases = view.leases;
    PlaceProblem {
        snapshot,
        leases,
        loads: None,
        rates: None,
        groups,
        edges,
        senders,
        earlier: Vec::new(),
        scattered: Vec::new(),
        job: KnownJob::default(),
        anchors,
        running: None,
        owner: None,
        gang: Gang::UpTo,
        seed,
        degraded,
    }
}
