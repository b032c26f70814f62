//! A request as rounds: its root first, then groups of equal size together, each relative to the root.

use super::curve::{Curve, MOST_COST};
use super::params::NomoraParams;
use super::round::{Around, Bounds, JobAnswer, LOOK_UP, Machine, Round, RoundJob, Waiting, solve};
use crate::placement_builder::{PlacementBuilder, by_priority};
use crate::predict::root_group;
use crate::{Budget, Ended, Objective, PlaceProblem, Placement, Work};
use hintd_model::cluster::Snapshot;
use hintd_model::network::latency::slow_peers::Slowdown;
use hintd_model::network::latency::{DistanceClasses, Estimate, Latencies, LatencyTable};
use hintd_model::units::{Micros, NodeIdx, RackIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Arcs of a request's flow, at most: a group with bounds takes one for each machine. Beyond that containers are placed one by one.
pub(super) const MOST_ARCS: usize = 200_000;

/// What nobody measured, by racks and by distance, raised where DataNodes report one of the two as slow; the rest as measured.
pub(super) struct Measured<'a> {
    snapshot: &'a Snapshot,
    nothing: LatencyTable,
    classes: DistanceClasses,
    /// Measurements are there and not too old.
    known: bool,
}

impl<'a> Measured<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, classes: DistanceClasses, known: bool) -> Self {
        Self { snapshot, nothing: LatencyTable::default(), classes, known }
    }

    pub(super) fn estimate(&self, a: NodeIdx, b: NodeIdx) -> Estimate {
        let slow_peers = self.snapshot.latency.slow_peers();
        self.estimate_of_rtts(a, b).slowed(slow_peers.slowdown(a, b, self.snapshot.taken_at))
    }

    /// The same without what DataNodes report.
    pub(super) fn estimate_of_rtts(&self, a: NodeIdx, b: NodeIdx) -> Estimate {
        let end = |node| (node, self.snapshot.rack(node));
        let table = if self.known { &self.snapshot.latency } else { &self.nothing };
        table.estimate(end(a), end(b), &self.classes, self.snapshot.taken_at)
    }
}

impl Latencies for Measured<'_> {
    fn rtt(&self, a: NodeIdx, b: NodeIdx) -> Micros {
        self.estimate(a, b).rtt
    }
}

/// Whom all others talk with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// It runs already.
    Runs(NodeIdx),
    /// The first container of a group.
    Of(usize),
}

/// A request with what the policy knows of it.
pub(super) struct Asked<'p, 's> {
    pub(super) params: &'p NomoraParams,
    pub(super) problem: &'p PlaceProblem<'s>,
    pub(super) curve_name: &'p str,
    pub(super) curve: Curve,
    pub(super) latency: Measured<'p>,
    /// Groups as they are served.
    pub(super) order: Vec<usize>,
    pub(super) root: Option<Root>,
}

/// Containers of a group that are still to be placed.
struct Left {
    group: usize,
    next: u32,
}

/// What came of all rounds of a request.
struct Outcome {
    optimal: bool,
    rounds: u32,
}

impl<'p, 's> Asked<'p, 's> {
    pub(super) fn new(params: &'p NomoraParams, problem: &'p PlaceProblem<'s>) -> Self {
        let queue = problem.owner.and_then(|owner| params.queues.get(owner.queue));
        let curve_name = queue.unwrap_or(&params.curve);
        let curve = params.curve_named(curve_name).expect("validated: each name has a curve");
        let latency = Measured::new(problem.snapshot, params.classes(), !problem.degraded.no_latency);
        let order = by_priority(problem);
        let root = root_of(problem, &order);
        Self { params, problem, curve_name, curve, latency, order, root }
    }

    pub(super) fn place(&self, budget: &Budget<'_>) -> Placement {
        let mut filling = PlacementBuilder::new(self.problem);
        let mut left: Vec<Left> = self.order.iter().map(|&group| Left { group, next: 0 }).collect();
        let work = |units: u64| budget.step() && budget.work(units);
        let root = match self.root {
            Some(Root::Runs(node)) => Some(node),
            Some(Root::Of(group)) => {
                let of = |group| Some((group, self.best_root(group, &filling, &work)?));
                let found = self.first_of(group).find_map(of);
                found.map(|(group, node)| {
                    filling.put(group, 0, node);
                    left.iter_mut().filter(|left| left.group == group).for_each(|left| left.next = 1);
                    node
                })
            }
            None => None,
        };
        let mut outcome = Outcome { optimal: true, rounds: 0 };
        if let Some(root) = root {
            let size = |left: &Left| self.problem.groups[left.group].size;
            let mut rest = &mut left[..];
            while let Some(first) = rest.first() {
                let like = rest.iter().take_while(|left| size(left) == size(first)).count();
                let (now, later) = rest.split_at_mut(like);
                self.round(root, now, &mut filling, (&work, &mut outcome));
                now.iter_mut().for_each(|left| self.fill(root, left, &mut filling, budget));
                rest = later;
            }
        }
        self.finish(filling, &outcome, budget)
    }

    fn finish(&self, filling: PlacementBuilder<'_, '_>, outcome: &Outcome, budget: &Budget<'_>) -> Placement {
        // Groups of different sizes take turns.
        self.rated(filling.finish(budget), outcome.optimal && outcome.rounds == 1)
    }

    /// The placement with its objective, and with how its search ended; `is_optimal`: nothing costs less around its root.
    pub(super) fn rated(&self, mut placement: Placement, is_optimal: bool) -> Placement {
        if let Some(Objective { value, parts }) = self.objective(&placement) {
            (placement.objective, placement.parts) = (value, parts);
        }
        // A drawn root is the best of those drawn.
        let fixed = matches!(self.root, Some(Root::Runs(_))) && self.params.p_m == MOST_COST;
        placement.ended = match placement.ended {
            Ended::Complete if is_optimal && fixed => Ended::Optimal,
            Ended::Complete => Ended::Budget,
            cut_short => cut_short,
        };
        placement
    }

    /// The root's group, and the others: where it finds no room, the first container that does stands in.
    pub(super) fn first_of(&self, group: usize) -> impl Iterator<Item = usize> {
        std::iter::once(group).chain(self.order.iter().copied().filter(move |other| *other != group))
    }

    /// Σ cost ÷ 100 of all containers but the root.
    pub(super) fn objective(&self, placement: &Placement) -> Option<Objective> {
        let (root, of) = self.root_in(placement)?;
        let (mut cost, mut count) = (0.0, 0.0);
        let mut predicted = Predicted::default();
        for (group, shares) in placement.groups.iter().enumerate() {
            for (at, share) in shares.iter().enumerate() {
                let found = self.latency.estimate(root, share.node);
                let others = f64::from(share.count - u32::from(of == Some(group) && at == 0));
                cost += others * f64::from(self.curve.cost(found.rtt)) / 100.0;
                count += others;
                predicted.add(others, self.curve.performance(found.rtt), &found, root == share.node);
            }
        }
        Some(Objective { value: cost, parts: predicted.parts(count) })
    }

    /// Of some candidates, drawn, the one around which all other containers cost least; `None`: there is no room.
    fn best_root(
        &self,
        group: usize,
        filling: &PlacementBuilder<'_, '_>,
        work: &dyn Fn(u64) -> bool,
    ) -> Option<NodeIdx> {
        let mut open: Vec<NodeIdx> = self.problem.groups[group].candidates.to_vec();
        let mut random = ChaCha8Rng::seed_from_u64(self.problem.seed);
        let mut drawn = Vec::new();
        while drawn.len() < self.params.root_choices as usize && !open.is_empty() {
            let node = open.swap_remove(random.random_range(0..open.len()));
            if filling.fits(group, node) {
                drawn.push(node);
            }
        }
        let wanted = self.problem.containers().saturating_sub(1);
        if drawn.len() < 2 || wanted == 0 {
            return drawn.first().copied();
        }
        // Of equal ones the first: by index, so that where all could be drawn the seed says nothing.
        drawn.sort_unstable();
        let workers = self.order.iter().copied().find(|other| *other != group).unwrap_or(group);
        let machines = self.machines(&[workers], filling);
        let (curve, latency, gamma) = (&self.curve, &self.latency, self.params.gamma);
        Around { machines: &machines, wanted, curve, latency, gamma }.best(&drawn, work)
    }

    /// Candidates of any of the groups, which are of one size, with how many of their containers find room.
    fn machines(&self, groups: &[usize], filling: &PlacementBuilder<'_, '_>) -> Vec<Machine> {
        let of = |group: usize| &self.problem.groups[group].candidates;
        let mut nodes: Vec<NodeIdx> = groups.iter().flat_map(|&group| of(group).iter().copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let snapshot = self.problem.snapshot;
        let size = groups.first().map(|&group| self.problem.groups[group].size).unwrap_or_default();
        let wanted = u32::try_from(self.problem.containers()).unwrap_or(u32::MAX);
        let machine = |node: NodeIdx| {
            // No more than could be used, so that rooms of any size add up.
            let slots = snapshot.rules.how_many(&size, &filling.room(node)).min(wanted);
            (slots > 0).then(|| Machine { node, rack: snapshot.rack(node), slots })
        };
        nodes.into_iter().filter_map(machine).collect()
    }

    /// Groups of one size by one flow.
    fn round(
        &self,
        root: NodeIdx,
        left: &mut [Left],
        filling: &mut PlacementBuilder<'_, '_>,
        (work, outcome): (&dyn Fn(u64) -> bool, &mut Outcome),
    ) {
        let count = |left: &Left| self.problem.groups[left.group].count - left.next;
        let groups: Vec<usize> = left.iter().filter(|left| count(left) > 0).map(|left| left.group).collect();
        if groups.is_empty() {
            return;
        }
        let machines = self.machines(&groups, filling);
        // Each group looks at each machine.
        if !work(LOOK_UP * (machines.len() * left.len()) as u64) {
            outcome.optimal = false;
            return;
        }
        let whole = |group: usize| {
            let here = |machine: &Machine| self.problem.groups[group].candidates.binary_search(&machine.node).is_ok();
            !self.is_bound(group) && machines.iter().all(here)
        };
        let job = |count, bounds| {
            let waiting = vec![Waiting { wait_s: 0, count }];
            RoundJob { curve: &self.curve, root, waiting, running: Vec::new(), bounds, slots: 1 }
        };
        // Groups without bounds are one supply.
        let (free, bound): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|at| whole(left[*at].group));
        if bound.len().saturating_mul(machines.len()) > MOST_ARCS {
            outcome.optimal = false;
            return;
        }
        let of_free = free.iter().fold(0, |sum: u32, at| sum.saturating_add(count(&left[*at])));
        let mut jobs = vec![job(of_free, None)];
        jobs.extend(
            bound.iter().map(|at| job(count(&left[*at]), Some(self.bounds(left[*at].group, &machines, filling)))),
        );
        let round = Round { machines: &machines, jobs, roots: vec![], latency: &self.latency, seed: self.problem.seed };
        // Costs and counts are within what the solver takes; were they not, containers would still be placed one by one.
        let Ok(answer) = solve(&round, &self.params.model(), work) else { return };
        outcome.optimal &= answer.optimal;
        outcome.rounds += 1;
        let mut placed = answer.jobs.into_iter().map(|JobAnswer { placed, .. }| placed);
        let mut put = |left: &mut Left, placed: &mut Vec<(u32, u32)>| {
            placed.retain_mut(|(machine, slots)| {
                while *slots > 0 && left.next < self.problem.groups[left.group].count {
                    let node = machines[*machine as usize].node;
                    // What is said is checked: a round that was cut short may have left bounds aside.
                    if !filling.fits(left.group, node) {
                        return true;
                    }
                    filling.put(left.group, left.next, node);
                    left.next += 1;
                    *slots -= 1;
                }
                *slots > 0
            });
        };
        let mut of_free = placed.next().unwrap_or_default();
        free.iter().for_each(|at| put(&mut left[*at], &mut of_free));
        for (at, mut of_bound) in bound.iter().zip(placed) {
            put(&mut left[*at], &mut of_bound);
        }
    }

    /// Candidates of a group that it `fits` on, by what a container costs there, the least first.
    pub(super) fn by_cost(&self, root: NodeIdx, group: usize, fits: impl Fn(NodeIdx) -> bool) -> Vec<NodeIdx> {
        let open = self.problem.groups[group].candidates.iter().copied().filter(|&node| fits(node));
        let mut open: Vec<(u32, NodeIdx)> =
            open.map(|node| (self.curve.cost(self.latency.rtt(root, node)), node)).collect();
        open.sort_unstable();
        open.into_iter().map(|(_, node)| node).collect()
    }

    pub(super) fn is_bound(&self, group: usize) -> bool {
        let asked = &self.problem.groups[group];
        asked.max_per_node != u32::MAX || asked.max_per_rack != u32::MAX
    }

    /// What a group may still have on machines and in racks.
    pub(super) fn bounds(&self, group: usize, machines: &[Machine], filling: &PlacementBuilder<'_, '_>) -> Bounds {
        let asked = &self.problem.groups[group];
        let on = |machine: &Machine| match asked.candidates.binary_search(&machine.node) {
            Ok(_) => asked.max_per_node.saturating_sub(filling.on_node(group, machine.node)),
            Err(_) => 0,
        };
        let mut in_rack: BTreeMap<RackIdx, u32> = BTreeMap::new();
        if asked.max_per_rack != u32::MAX {
            for machine in machines {
                let most = asked.max_per_rack.saturating_sub(filling.in_rack(group, machine.rack));
                in_rack.insert(machine.rack, most);
            }
        }
        Bounds { on_machine: machines.iter().map(on).collect(), in_rack }
    }

    /// What a round that was cut short left out, where it costs least.
    fn fill(&self, root: NodeIdx, left: &mut Left, filling: &mut PlacementBuilder<'_, '_>, budget: &Budget<'_>) {
        let asked = &self.problem.groups[left.group];
        if left.next == asked.count || budget.over() || !budget.work(LOOK_UP * asked.candidates.len() as u64) {
            return;
        }
        for node in self.by_cost(root, left.group, |node| filling.fits(left.group, node)) {
            while left.next < asked.count && filling.fits(left.group, node) && !budget.over() {
                filling.put(left.group, left.next, node);
                left.next += 1;
            }
        }
    }
}

/// How well containers will perform by their latency to the root, and where that comes from.
#[derive(Default)]
struct Predicted {
    sum: f64,
    lowest: Option<f64>,
    /// Containers by [`Basis`]; those on the root's host need no measurement.
    by: [f64; 3],
    /// Containers whose latency slow peers raise.
    slowed: f64,
    oldest: Micros,
}

impl Predicted {
    fn add(&mut self, count: f64, performance: f64, found: &Estimate, at_root: bool) {
        if count == 0.0 {
            return;
        }
        self.sum += count * performance;
        self.lowest = Some(self.lowest.map_or(performance, |lowest| lowest.min(performance)));
        if !at_root {
            self.by[found.basis as usize] += count;
            self.slowed += if found.slowdown > Slowdown::NONE { count } else { 0.0 };
            self.oldest = self.oldest.max(found.age.unwrap_or_default());
        }
    }

    fn parts(&self, count: f64) -> Vec<(String, f64)> {
        let [hosts, racks, distance] = self.by;
        let mean = if count > 0.0 { self.sum / count } else { 1.0 };
        let parts = [
            ("mean_performance", mean),
            ("lowest_performance", self.lowest.unwrap_or(1.0)),
            ("latency_by_hosts", hosts),
            ("latency_by_racks", racks),
            ("latency_by_distance", distance),
            ("latency_slowed", self.slowed),
            ("latency_age_s", self.oldest.as_secs_f64()),
        ];
        parts.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }
}

/// The group of one container that most edges name; else the node with most of what runs; else the first container.
fn root_of(problem: &PlaceProblem<'_>, order: &[usize]) -> Option<Root> {
    let edges: Vec<(usize, usize)> = problem.edges.iter().map(|edge| (edge.from.at(), edge.to.at())).collect();
    let counts = order.iter().map(|&group| (group, problem.groups[group].count));
    let named = root_group(counts, &edges).map(Root::Of);
    let running = || problem.anchors.iter().min_by_key(|anchor| (Reverse(anchor.count), anchor.node));
    named.or_else(|| running().map(|anchor| Root::Runs(anchor.node))).or_else(|| order.first().copied().map(Root::Of))
}
