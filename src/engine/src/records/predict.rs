//! What the performance of a decision's containers was predicted as, where its policy predicts it.

use super::record::Record;
use crate::decision::Decision;
use crate::flows::Names;
use crate::placer::problem_of;
use hintd_model::cluster::{HintRequest, Snapshot};
use hintd_model::network::latency::Basis;
use hintd_model::network::latency::slow_peers::Slowdown;
use hintd_model::units::{HostName, Micros, NodeIdx};
use hintd_policy::place::readable;
use hintd_policy::predict::{GroupPrediction, PlacePrediction, Prediction};
use hintd_policy::{Ended, PlaceProblem, Placement, Share};
use std::sync::Arc;

/// Predictions of one decision, as of the latency that it was decided by.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedPerformance {
    /// Name of the curve of performance by latency.
    pub curve: String,
    /// Where the container is that all others talk with.
    pub root: HostName,
    /// The group that it is of; `None`: it ran before.
    pub root_group: Option<Arc<str>>,
    /// Groups of the request, in its order.
    pub groups: Vec<PredictedGroup>,
}

/// A group's containers.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedGroup {
    /// Its name.
    pub group: Arc<str>,
    /// Where they were hinted, without the root.
    pub placed: Vec<PredictedPlace>,
    /// Other hosts that had room for one of them beside all that was hinted, best first.
    pub alternatives: Vec<PredictedPlace>,
}

/// Containers of one group on one host, or one that could have been there.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedPlace {
    /// Which.
    pub host: HostName,
    /// How many; 0: an alternative.
    pub count: u32,
    /// Share of the best performance.
    pub performance: f64,
    /// Two-way latency to the root that was reckoned with.
    pub rtt: Micros,
    /// Where that comes from: `hosts` and `racks` were measured; `same_host`, `same_rack` and `beyond` stand in where nobody did.
    pub basis: &'static str,
    /// How old the measurement was.
    pub age: Option<Micros>,
    /// How many times the latency of the basis it is, for DataNodes report one of the two as slow.
    pub slowdown: Slowdown,
}

impl Record {
    /// Predicts the performance of the decision's hints again, with at most so many alternatives for each group; `None`:
    /// its policy predicts none, it has no hints, or it was refused.
    #[must_use]
    pub fn predict(&self, live: Option<&Snapshot>, alternatives: usize) -> Option<PredictedPerformance> {
        let predicts = self.policy.as_place().and_then(|place| Some((place, place.as_predict()?)));
        let ((place, predicts), decision) = (predicts?, &self.answered().ok()?.decision);
        if decision.hints.is_empty() {
            return None;
        }
        let generation = self.generation(live);
        let names = Names::of(&self.request);
        // What compiled then does so now: the record has all that it read.
        let problem = problem_of(&generation, (&*self.request, names.both()), &self.settings, self.now).ok()?;
        let problem = readable(place, &problem);
        let hinted = hinted(&problem, &self.request, decision);
        let found = predicts.predict(&problem, &hinted, alternatives)?;
        Some(named(&self.request, problem.snapshot, found))
    }
}

/// The decision's hints as a placement.
fn hinted(problem: &PlaceProblem<'_>, request: &HintRequest, decision: &Decision) -> Placement {
    let mut groups: Vec<Vec<Share>> = vec![Vec::new(); problem.groups.len()];
    for hint in &decision.hints {
        let group = request.groups.iter().position(|group| group.name == hint.group);
        let node = problem.snapshot.statics.find(hint.host.as_str());
        let Some((shares, node)) = group.and_then(|group| groups.get_mut(group)).zip(node) else { continue };
        shares.push(Share { node, count: hint.count });
    }
    let (objective, ended, gap, steps) = (0.0, Ended::Complete, None, 0);
    Placement { groups, routes: Vec::new(), objective, parts: Vec::new(), ended, gap, steps }
}

fn named(request: &HintRequest, snapshot: &Snapshot, found: Prediction) -> PredictedPerformance {
    let Prediction { curve, root, root_group, groups } = found;
    let name = |group: usize| request.groups.get(group).map(|group| Arc::clone(&group.name));
    let group = |(group, found): (usize, GroupPrediction)| {
        let places =
            |places: Vec<PlacePrediction>| places.iter().map(|place| place_named(snapshot, root, place)).collect();
        let (placed, alternatives) = (places(found.placed), places(found.alternatives));
        Some(PredictedGroup { group: name(group)?, placed, alternatives })
    };
    let groups = groups.into_iter().enumerate().filter_map(group).collect();
    PredictedPerformance { curve, root: snapshot.host(root).clone(), root_group: root_group.and_then(name), groups }
}

fn place_named(snapshot: &Snapshot, root: NodeIdx, place: &PlacePrediction) -> PredictedPlace {
    let PlacePrediction { node, count, performance, latency } = *place;
    let basis = match latency.basis {
        Basis::Distance if node == root => "same_host",
        Basis::Distance if snapshot.rack(node) == snapshot.rack(root) => "same_rack",
        Basis::Distance => "beyond",
        measured => measured.as_str(),
    };
    let host = snapshot.host(node).clone();
    PredictedPlace { host, count, performance, rtt: latency.rtt, basis, age: latency.age, slowdown: latency.slowdown }
}
