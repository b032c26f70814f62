//! What is needed to cost where the containers of a decision really are, as its hints were costed.

use super::tally::{Term, TermRow};
use crate::decision::TermValues;
use hintd_model::cluster::{Gang, Overlay, Resource, Snapshot};
use hintd_model::units::SchedulerKey;
use hintd_policy::problem::{Anchor, ArrivedSenders, EdgeProblem, InputBlocks, KnownJob};
use hintd_policy::terms::evaluate_places;
use hintd_policy::{Degraded, Ended, GroupProblem, PlaceProblem, Placement, Share};
use std::sync::Arc;

/// Blocks beyond which a decision is not compared: its input would be kept in memory for minutes.
const BLOCKS_MAX: usize = 65_536;

/// Switches beyond which hops are not told: they take time in proportion to their square.
const SWITCHES_MAX: usize = 256;

/// What an evaluation takes however small it is, in node look-ups.
const LEAST_WORK: usize = 50;

/// Inputs, edges and fixed containers of a decision, as its search had them.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(super) groups: Vec<TrialGroup>,
    edges: Vec<EdgeProblem>,
    senders: Vec<ArrivedSenders>,
    anchors: Vec<Anchor>,
}

/// One group.
#[derive(Debug, Clone)]
pub(super) struct TrialGroup {
    pub(super) name: Arc<str>,
    size: Resource,
    input: Arc<InputBlocks>,
    /// Containers that the terms of the hints cover.
    pub(super) placed: u32,
}

impl Trial {
    /// `None`: nothing was placed, or it is too large to be kept.
    pub(crate) fn of(problem: &PlaceProblem<'_>, placement: &Placement) -> Option<Box<Self>> {
        let blocks: usize = problem.groups.iter().map(|group| group.input.blocks.len()).sum();
        if placement.placed_all() == 0 || blocks > BLOCKS_MAX {
            return None;
        }
        let groups = problem.groups.iter().enumerate().map(|(at, group)| TrialGroup {
            name: Arc::clone(&group.name),
            size: group.size,
            input: Arc::clone(&group.input),
            placed: placement.placed(at),
        });
        let (edges, senders, anchors) = (problem.edges.clone(), problem.senders.clone(), problem.anchors.clone());
        Some(Box::new(Self { groups: groups.collect(), edges, senders, anchors }))
    }

    /// Blocks that are kept for it.
    pub(super) fn blocks(&self) -> usize {
        self.groups.iter().map(|group| group.input.blocks.len()).sum()
    }

    /// What an evaluation takes, roughly in node look-ups.
    pub(super) fn work(&self) -> usize {
        let placed: usize = self.groups.iter().map(|group| group.placed as usize).sum();
        let switches = placed.min(SWITCHES_MAX);
        LEAST_WORK + 3 * self.blocks() + placed + switches * switches / 2
    }

    /// Bytes that its groups read.
    pub(super) fn input_bytes(&self) -> f64 {
        self.groups.iter().flat_map(|group| &group.input.blocks).map(|block| block.bytes.as_f64()).sum()
    }

    /// Terms of containers that are there, by group, on the network of now.
    pub(super) fn evaluate(&self, groups: Vec<Vec<Share>>, snapshot: &Snapshot, leases: &Overlay) -> TermRow {
        let group = |group: &TrialGroup| GroupProblem {
            name: Arc::clone(&group.name),
            role: Arc::clone(&group.name),
            count: group.placed.max(1),
            asked: group.placed.max(1),
            size: group.size,
            key: SchedulerKey { priority: 0, allocation_request_id: -1 },
            candidates: Arc::default(),
            exclusions: Vec::new(),
            input: Arc::clone(&group.input),
            max_per_node: u32::MAX,
            max_per_rack: u32::MAX,
            planned: None,
            spread: false,
            together: false,
        };
        let problem = PlaceProblem {
            snapshot,
            leases,
            loads: None,
            rates: None,
            groups: self.groups.iter().map(group).collect(),
            edges: self.edges.clone(),
            senders: self.senders.clone(),
            // Links are not looked at.
            earlier: Vec::new(),
            scattered: Vec::new(),
            job: KnownJob::default(),
            anchors: self.anchors.clone(),
            running: None,
            owner: None,
            gang: Gang::UpTo,
            seed: 0,
            degraded: Degraded::default(),
        };
        let (routes, parts) = (Vec::new(), Vec::new());
        let ended = Ended::Complete;
        let placement = Placement { groups, routes, objective: 0.0, parts, ended, gap: None, steps: 0 };
        let terms = evaluate_places(&problem, &placement, SWITCHES_MAX);
        let mut row = TermRow::default();
        row[Term::RemoteBytes as usize] = terms.remote_bytes;
        row[Term::CrossRackBytes as usize] = terms.cross_rack_bytes;
        row[Term::CoreHops as usize] = terms.core_hops;
        row.map(|value| value.filter(|value| value.is_finite()))
    }
}

/// The compared ones of a decision's terms.
pub(super) const fn compared(terms: &TermValues) -> TermRow {
    let mut row = [None; Term::ALL.len()];
    row[Term::RemoteBytes as usize] = terms.remote_bytes;
    row[Term::CrossRackBytes as usize] = terms.cross_rack_bytes;
    row[Term::CoreHops as usize] = terms.core_hops;
    row
}
