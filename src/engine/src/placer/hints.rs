//! A placement in columns to hints in names, with next best hosts, racks and confidence.

use super::compile::Compiled;
use super::wait::WaitAdvice;
use super::{PlacerSettings, nowhere};
use crate::decision::{AgeOf, ExclusionNamed, Hint};
use hintd_model::cluster::{Resource, Source};
use hintd_model::units::{HostName, Micros, NodeIdx, RackPath, SchedulerKey, Timestamp};
use hintd_policy::fallbacks::Fallbacks;
use hintd_policy::place::readable;
use hintd_policy::{Placement, Policy, Share};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hints and the rows that the commit leases, position by position the same containers.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    pub(crate) hints: Vec<Hint>,
    pub(crate) rows: Vec<Row>,
}

/// Containers of a group that go to one node.
#[derive(Clone, Copy)]
struct LikeContainers {
    first_index: u32,
    count: u32,
    node: NodeIdx,
}

impl Hints {
    /// Each hint, and whether room is to be leased for it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Hint, bool)> {
        self.hints.iter().zip(self.rows.iter().map(|row| row.lease))
    }

    /// Adds a group's placed containers; `lease`: room is to be taken for them.
    pub(crate) fn place(
        &mut self,
        compiled: &Compiled<'_>,
        at: usize,
        shares: &[Share],
        lease: bool,
        of: &AnswerContext,
        best: &Fallbacks<'_, '_>,
    ) {
        let mut first = 0;
        for share in shares {
            let fallbacks = best.rank(at, share.node, of.fallbacks);
            self.push(
                compiled,
                at,
                LikeContainers { first_index: first, count: share.count, node: share.node },
                &fallbacks,
                lease,
            );
            self.hints.last_mut().expect("it was just pushed").confidence = of.confidence;
            first += share.count;
        }
    }

    /// Adds a group's waiting containers, which come after the placed ones.
    pub(crate) fn advise(
        &mut self,
        compiled: &Compiled<'_>,
        at: usize,
        first: u32,
        advice: &WaitAdvice,
        of: &AnswerContext,
    ) {
        let mut first = first;
        for wait in &advice.rows {
            let others = advice.ranked.iter().copied().filter(|&other| other != wait.node);
            let fallbacks: Vec<NodeIdx> = others.take(of.fallbacks).collect();
            self.push(
                compiled,
                at,
                LikeContainers { first_index: first, count: wait.count, node: wait.node },
                &fallbacks,
                false,
            );
            let hint = self.hints.last_mut().expect("it was just pushed");
            (hint.expected_wait, hint.confidence) = (wait.wait, of.confidence * WAITING);
            first += wait.count;
        }
    }

    /// Lowers confidence by the age of the latency to the root that each hint's performance was predicted by, where the policy
    /// reads any: by [`trust`], so by half where nobody measured. On the root's own host nothing is to be measured.
    pub(crate) fn weigh_latency(
        &mut self,
        compiled: &Compiled<'_>,
        policy: &dyn Policy,
        settings: &PlacerSettings,
        now: Timestamp,
    ) {
        let place = policy.as_place().filter(|place| place.reads_latency());
        let Some((place, predicts)) = place.and_then(|place| Some((place, place.as_predict()?))) else { return };
        let problem = readable(place, &compiled.problem);
        let mut hinted = nowhere(&problem);
        self.rows.iter().for_each(|row| hinted.groups[row.group].push(Share { node: row.node, count: row.count }));
        let Some(found) = predicts.predict(&problem, &hinted, 0) else { return };
        // Predictions have ages as of the snapshot.
        let (limit, later) = (settings.max_age.of(Source::Latency), now.since(problem.snapshot.taken_at));
        let mut factors = BTreeMap::new();
        for (group, found) in found.groups.iter().enumerate() {
            factors.extend(found.placed.iter().map(|place| {
                let age = place.latency.age.map(|age| Micros(age.0.saturating_add(later.0)));
                ((group, place.node), trust(age, limit))
            }));
        }
        for (hint, row) in self.hints.iter_mut().zip(&self.rows).filter(|(_, row)| row.node != found.root) {
            hint.confidence *= factors.get(&(row.group, row.node)).copied().unwrap_or(1.0);
        }
    }

    fn push(&mut self, compiled: &Compiled<'_>, at: usize, of: LikeContainers, fallbacks: &[NodeIdx], lease: bool) {
        let LikeContainers { first_index, count, node } = of;
        let (snapshot, group) = (compiled.problem.snapshot, &compiled.problem.groups[at]);
        let host = |node: NodeIdx| -> HostName { snapshot.host(node).clone() };
        let mut racks: Vec<RackPath> = Vec::new();
        for &place in std::iter::once(&node).chain(fallbacks) {
            let rack = &snapshot.statics.racks[snapshot.rack(place).at()];
            if !racks.contains(rack) {
                racks.push(rack.clone());
            }
        }
        self.hints.push(Hint {
            group: Arc::clone(&group.name),
            first_index,
            count,
            host: host(node),
            fallbacks: fallbacks.iter().map(|&node| host(node)).collect(),
            racks,
            leases: Vec::new(),
            expires: None,
            expected_wait: None,
            confidence: 0.0,
        });
        self.rows.push(Row { group: at, node, count, size: group.size, key: group.key, lease });
    }
}

/// Containers of one hint.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) group: usize,
    pub(crate) node: NodeIdx,
    pub(crate) count: u32,
    pub(crate) size: Resource,
    pub(crate) key: SchedulerKey,
    pub(crate) lease: bool,
}

/// What all hints of one answer share.
#[derive(Debug)]
pub(crate) struct AnswerContext {
    pub(crate) confidence: f64,
    pub(crate) fallbacks: usize,
}

/// Confidence of a waiting container's hint, against a placed one's.
const WAITING: f64 = 0.5;

/// How far what is of this age can be trusted:
/// - 1 − ¼ · age ÷ limit, where it is younger than the limit;
/// - ½, where it is older, or was never heard.
fn trust(age: Option<Micros>, limit: Micros) -> f64 {
    match age {
        Some(age) if age <= limit => 1.0 - 0.25 * age.as_f64() / limit.as_f64().max(1.0),
        _ => 0.5,
    }
}

/// How far the hints can be trusted, 0..1: the product of [`trust`] over the sources that the request leans on (heartbeats
/// always, topology always, blocks where it reads input), times 0.9 where nobody said who talks to whom. Latency counts host
/// by host: [`Hints::weigh_latency`].
pub(crate) fn confidence(compiled: &Compiled<'_>, settings: &PlacerSettings, now: Timestamp) -> f64 {
    let problem = &compiled.problem;
    let reads = problem.degraded.no_blocks || problem.groups.iter().any(|group| !group.input.is_empty());
    let leans = [(Source::Heartbeats, true), (Source::Topology, true), (Source::Blocks, reads)];
    let age = |source| problem.snapshot.heard.at(source).map(|at| now.since(at));
    let factor = |source| trust(age(source), settings.max_age.of(source));
    let product: f64 = leans.into_iter().filter(|(_, leans)| *leans).map(|(source, _)| factor(source)).product();
    product * if problem.degraded.no_edges { 0.9 } else { 1.0 }
}

/// Age of each source.
pub(crate) fn ages(compiled: &Compiled<'_>, settings: &PlacerSettings, now: Timestamp) -> Vec<AgeOf> {
    let age = |source| {
        let age = compiled.problem.snapshot.heard.at(source).map(|at| now.since(at));
        AgeOf { source, age, stale: age.is_none_or(|age| age > settings.max_age.of(source)) }
    };
    Source::ALL.into_iter().map(age).collect()
}

/// Nodes ruled out, in names.
pub(crate) fn exclusions(compiled: &Compiled<'_>) -> Vec<ExclusionNamed> {
    let snapshot = compiled.problem.snapshot;
    let groups = compiled.problem.groups.iter();
    let named = groups.flat_map(|group| group.exclusions.iter().map(move |exclusion| (group, exclusion)));
    let name = |(group, exclusion): (&hintd_policy::GroupProblem, &hintd_policy::problem::Exclusion)| ExclusionNamed {
        group: Arc::clone(&group.name),
        reason: exclusion.reason,
        count: exclusion.count,
        examples: exclusion.examples.iter().map(|&node| snapshot.host(node).clone()).collect(),
    };
    named.map(name).collect()
}

/// Drops what a policy may not do: nodes that are no candidates, and more containers than asked for. The commit
/// checks room once more.
pub(crate) fn within(compiled: &Compiled<'_>, mut placement: Placement) -> Placement {
    placement.groups.resize_with(compiled.problem.groups.len(), Vec::new);
    for (shares, group) in placement.groups.iter_mut().zip(&compiled.problem.groups) {
        let mut left = group.count;
        shares.retain_mut(|share| {
            share.count = share.count.min(left);
            left -= share.count;
            share.count > 0 && group.candidates.binary_search(&share.node).is_ok()
        });
    }
    placement
}
