//! *rebalance*: what runs at too low a performance and would perform well elsewhere (§5.3, with thresholds).
//!
//! One by one, the lowest performance first, each to the best place that has room. Latency that nobody measured moves nothing:
//! neither is a distance a reason to leave, nor a promise that it is better elsewhere. Nor are packets that DataNodes report as
//! slow a reason to leave, for what they took need not be the network; but nothing moves to where they raise the latency too far.
//!
//! The paper's preemption cost, `beta` for each second that a task has run, is of rounds every few seconds. A move is told here
//! when a container has run for at least the time between two rounds, mostly for far longer: `migrate_beta` is its factor.

use super::curve::Curve;
use super::params::NomoraParams;
use super::request::Measured;
use super::round::LOOK_UP;
use crate::advise::{Move, MovedPerformance, RebalanceProblem, Running, RunningRoot};
use crate::{Budget, Work};
use hintd_model::network::latency::{Basis, Estimate};
use hintd_model::units::{ApplicationId, Micros, NodeIdx};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Roots whose best places are remembered, for containers that share one.
const ROOTS: usize = 64;

/// A container that performs too low.
struct Low<'p> {
    running: &'p Running,
    root: &'p RunningRoot,
    now: f64,
    rtt: Micros,
}

/// A node that performs well enough from a root.
#[derive(Clone, Copy)]
struct Good {
    node: NodeIdx,
    performance: f64,
    rtt: Micros,
}

/// Moves worth it, the best first.
pub(super) fn moves(params: &NomoraParams, problem: &RebalanceProblem<'_>, budget: &Budget<'_>) -> Vec<Move> {
    let latency = Measured::new(problem.snapshot, params.classes(), true);
    let mut curves: BTreeMap<&str, Curve> = BTreeMap::new();
    let mut low = Vec::new();
    for (running, root) in problem.running.iter().zip(&problem.roots) {
        let Some(root) = root.as_ref().filter(|_| !running.cooling) else { continue };
        let name = curve_name(params, root);
        let curve = curves.entry(name).or_insert_with(|| known(params, name));
        let found = latency.estimate_of_rtts(root.node, running.node);
        let now = curve.performance(found.rtt);
        if is_measured(&found, root.node, running.node) && now < params.migrate_below {
            low.push(Low { running, root, now, rtt: found.rtt });
        }
    }
    low.sort_by(|a, b| a.now.total_cmp(&b.now).then(a.running.container.cmp(&b.running.container)));
    let mut search = Search { params, problem, latency, curves, good: BTreeMap::new(), taken: problem.leases.clone() };
    let mut found = Vec::new();
    for low in &low {
        if budget.over() || !budget.step() {
            break;
        }
        found.extend(search.moved(low, budget));
    }
    within(problem, found)
}

/// Why no container could ever be told to move, if each has run for `ran` at least: what each curve in use allows at most.
pub(super) fn never_moves(params: &NomoraParams, ran: Micros, gain_min: f64) -> Option<String> {
    let reasons = params.curves_in_use().into_iter().map(|name| never_moves_by(params, name, ran, gain_min));
    Some(reasons.collect::<Option<Vec<String>>>()?.join("; "))
}

/// The same by one curve: from where performance is lowest to where it is highest most is gained.
fn never_moves_by(params: &NomoraParams, name: &str, ran: Micros, gain_min: f64) -> Option<String> {
    let [(lowest, here), (highest, there)] = known(params, name).range();
    let NomoraParams { migrate_below: below, migrate_margin: margin, migrate_beta: beta, .. } = params;
    if lowest >= *below {
        return Some(format!("by curve \"{name}\" performance is {lowest:.3} at least, and migrate_below is {below}"));
    }
    if highest < below + margin {
        return Some(format!(
            "by curve \"{name}\" performance is {highest:.3} at most, and migrate_below {below} with migrate_margin {margin} \
             wants {:.3}",
            below + margin
        ));
    }
    let most = gain(params, [here, there], ran);
    let seconds = ran.as_secs_f64();
    (!is_worth(most, gain_min)).then(|| {
        format!(
            "by curve \"{name}\" a move saves at most {} of {here}, and having run for {seconds} s counts {} of that \
             (migrate_beta {beta}): a gain of {most:.3}, and min_gain is {gain_min}",
            here - there,
            beta * seconds
        )
    })
}

/// What a move saves of the cost `here`, less what having run counts for.
fn gain(params: &NomoraParams, [here, there]: [u32; 2], ran: Micros) -> f64 {
    let [here, there] = [here, there].map(f64::from);
    (here - there - params.migrate_beta * ran.as_secs_f64()) / here
}

fn is_worth(gain: f64, gain_min: f64) -> bool {
    gain > 0.0 && gain >= gain_min
}

/// The curve of a root's queue.
fn curve_name<'p>(params: &'p NomoraParams, root: &RunningRoot) -> &'p str {
    params.queues.get(&*root.queue).unwrap_or(&params.curve)
}

fn known(params: &NomoraParams, name: &str) -> Curve {
    params.curve_named(name).expect("validated: each name has a curve")
}

/// Two containers of one host need no measurement.
fn is_measured(found: &Estimate, root: NodeIdx, node: NodeIdx) -> bool {
    found.basis != Basis::Distance || root == node
}

struct Search<'p, 's> {
    params: &'p NomoraParams,
    problem: &'p RebalanceProblem<'s>,
    latency: Measured<'p>,
    curves: BTreeMap<&'p str, Curve>,
    /// By root and curve, best first.
    good: BTreeMap<(NodeIdx, &'p str), Rc<[Good]>>,
    /// Leases, and what moves so far.
    taken: hintd_model::cluster::Overlay,
}

impl<'p> Search<'p, '_> {
    /// The container's best place, if it is worth it: what it costs less there, without what having run counts for.
    fn moved(&mut self, low: &Low<'_>, budget: &Budget<'_>) -> Option<Move> {
        let Low { running, root, now, rtt } = *low;
        let name = curve_name(self.params, root);
        let good = self.good(root.node, name, budget)?;
        let to = *good.iter().find(|good| good.node != running.node && self.has_room(running, good.node))?;
        let curve = &self.curves[name];
        let gain = gain(self.params, [rtt, to.rtt].map(|rtt| curve.cost(rtt)), root.ran);
        if !is_worth(gain, self.problem.gain_min) {
            return None;
        }
        self.taken.set(to.node, self.taken.leased(to.node).plus(&running.size));
        let performance = Some(MovedPerformance { now, then: to.performance, ran: root.ran });
        Some(Move { container: running.container, to: to.node, gain, performance })
    }

    fn has_room(&self, running: &Running, node: NodeIdx) -> bool {
        let snapshot = self.problem.snapshot;
        let allowed = self.problem.allowed.get(running.set as usize).is_none_or(|allowed| allowed[node.at()]);
        allowed
            && snapshot.state[node.at()].usable()
            && snapshot.rules.feasible(&running.size, &snapshot.room(node, &self.taken))
    }

    /// Nodes that perform well enough; `None`: there was no time to look at them.
    fn good(&mut self, root: NodeIdx, name: &'p str, budget: &Budget<'_>) -> Option<Rc<[Good]>> {
        if let Some(known) = self.good.get(&(root, name)) {
            return Some(Rc::clone(known));
        }
        let snapshot = self.problem.snapshot;
        if !budget.work(LOOK_UP * snapshot.nodes() as u64) {
            return None;
        }
        let (curve, enough) = (&self.curves[name], self.params.migrate_below + self.params.migrate_margin);
        let good = |node: NodeIdx| {
            let found = self.latency.estimate(root, node);
            let performance = curve.performance(found.rtt);
            let is_good = performance >= enough && is_measured(&found, root, node);
            is_good.then_some(Good { node, performance, rtt: found.rtt })
        };
        let mut all: Vec<Good> = snapshot.statics.indexes().take(snapshot.nodes()).filter_map(good).collect();
        all.sort_by(|a, b| b.performance.total_cmp(&a.performance).then((a.rtt, a.node).cmp(&(b.rtt, b.node))));
        if self.good.len() >= ROOTS {
            self.good.clear();
        }
        let all: Rc<[Good]> = all.into();
        self.good.insert((root, name), Rc::clone(&all));
        Some(all)
    }
}

/// The best of them, within the bounds of the round.
fn within(problem: &RebalanceProblem<'_>, mut moves: Vec<Move>) -> Vec<Move> {
    moves.sort_by(|a, b| b.gain.total_cmp(&a.gain).then(a.container.cmp(&b.container)));
    let mut by_application: BTreeMap<ApplicationId, usize> = BTreeMap::new();
    moves.retain(|step| {
        let count = by_application.entry(step.container.attempt.application).or_default();
        *count += 1;
        *count <= problem.application_moves_max
    });
    moves.truncate(problem.moves_max);
    moves
}
