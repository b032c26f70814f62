//! The paper's own form (000 §2, Algorithms 1 to 3), kept as a reference: every step of the application level runs
//! the whole annealing of the routing level, from random routes, over all pairs of the new job.
//!
//! It has the same index, candidates and draws as the policy, so that what differs is the search alone. What the
//! paper leaves open is set as for the policy: cooling by 0.95·t on utility in units of what the new job has at the start.

use super::candidates::{Candidates, Links, mix, tie_of};
use super::params::CrossLayerParams;
use super::routing::{K, Movable, towards_first, worst_first};
use super::world::{self, World};
use crate::baselines::random::Random;
use crate::dataflow::traffic;
use crate::flow_index::{FlowIndex, JobSlot};
use crate::place::{ChosenRoute, Share};
use crate::{Budget, Ended, Objective, Place, PlaceProblem, Placement};
use hintd_model::cluster::{EdgePattern, NodePair, Resource};
use hintd_model::units::{NodeIdx, RackIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

/// How long each level searches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedParams {
    /// Runs of the application level; 5 in Algorithm 1.
    pub restarts: u32,
    /// Steps of each; the paper does not say.
    pub steps: u32,
    /// Runs of the routing level within each step: both levels run Algorithm 1, with the same numbers here.
    pub routing_restarts: u32,
    /// Steps of each; the paper does not say.
    pub routing_steps: u32,
}

impl Default for NestedParams {
    fn default() -> Self {
        Self { restarts: 5, steps: 100, routing_restarts: 5, routing_steps: 100 }
    }
}

/// Tells the search's best utility so far, after every application step; false ends it.
pub type Watch<'w> = &'w mut dyn FnMut(f64) -> bool;

/// Places by the nested form; `None` without a network, edges, or a source and sink.
pub fn nested(problem: &PlaceProblem<'_>, params: &NestedParams, watch: Watch<'_>) -> Option<Placement> {
    let world = World::of(problem)?;
    let mut search = Search {
        problem,
        params,
        index: world.index(problem),
        candidates: Candidates::new(world.network, world.table, world.topology, &world::NOTHING, K),
        random: ChaCha8Rng::seed_from_u64(mix(problem.seed)),
    };
    let mut best: Option<Found> = None;
    for run in 0..params.restarts {
        let mut other = problem.clone();
        other.seed = mix(problem.seed ^ u64::from(run));
        let mut never = || false;
        let start = Random::default().place(&other, &mut Budget::new(u64::MAX, &mut never)).ok()?;
        let mut tasks = tasks_of(&start.groups);
        let mut now = search.routed(&tasks)?;
        let unit = search.unit(now.own, &tasks);
        let mut temperature = CrossLayerParams::default().initial_temperature;
        for _ in 0..params.steps {
            if best.as_ref().is_none_or(|best| now.utility > best.utility) {
                best = Some(now.clone());
            }
            if !watch(best.as_ref().map_or(0.0, |best| best.utility)) {
                return best.map(|best| best.placement(problem));
            }
            temperature *= 0.95;
            let Some(moved) = search.moved(&tasks) else { continue };
            let found = search.routed(&moved)?;
            let rise = (found.utility - now.utility) / unit;
            if rise > 0.0 || search.random.random::<f64>() < (rise / temperature).exp() {
                (tasks, now) = (moved, found);
            }
        }
        if best.as_ref().is_none_or(|best| now.utility > best.utility) {
            best = Some(now);
        }
    }
    best.map(|best| best.placement(problem))
}

/// Tasks of each group, by node, ascending: as placements tell them.
type Tasks = Vec<Vec<NodeIdx>>;

#[derive(Clone)]
struct Found {
    utility: f64,
    own: f64,
    groups: Vec<Vec<Share>>,
    routes: Vec<ChosenRoute>,
}

impl Found {
    fn placement(self, problem: &PlaceProblem<'_>) -> Placement {
        debug_assert_eq!(self.groups.len(), problem.groups.len());
        let Objective { value, parts } = world::objective(self.utility, self.own);
        let (groups, routes) = (self.groups, self.routes);
        Placement { groups, routes, objective: value, parts, ended: Ended::Budget, gap: None, steps: 0 }
    }
}

struct Search<'p, 'n> {
    problem: &'p PlaceProblem<'p>,
    params: &'p NestedParams,
    index: FlowIndex,
    candidates: Candidates<'n>,
    random: ChaCha8Rng,
}

impl Search<'_, '_> {
    /// Tasks with the best routes that a whole routing search finds for them.
    fn routed(&mut self, tasks: &Tasks) -> Option<Found> {
        let groups = shares_of(tasks);
        let traffic = traffic(&self.problem.edges, &groups).ok()?;
        let open: Vec<NodePair> =
            traffic.flows.iter().map(|flow| flow.pair).filter(|pair| self.index.route(*pair).is_none()).collect();
        let slot = self.index.add_job(&traffic);
        let mut pairs = Vec::new();
        for pair in open {
            if let (Some(row), Some(choices)) = (self.index.row(pair), self.candidates.of(pair)) {
                pairs.push(Movable { row, choices, tie: tie_of(self.problem.seed, pair) });
            }
        }
        let mut best: Option<(f64, Vec<Links>)> = None;
        for _ in 0..self.params.routing_restarts {
            let found = self.routing_run(&pairs, slot, tasks);
            if best.as_ref().is_none_or(|best| found.0 > best.0) {
                best = Some(found);
            }
        }
        let (utility, routes) = best?;
        self.lay(&pairs, &routes);
        let own = self.index.job_utility(slot);
        let routes = traffic
            .flows
            .iter()
            .filter_map(|flow| Some(ChosenRoute::plain(flow.pair, self.index.route(flow.pair)?.into())));
        let routes = routes.collect();
        self.index.remove_job(slot);
        Some(Found { utility, own, groups, routes })
    }

    /// Algorithm 1 at the routing level: from random routes.
    fn routing_run(&mut self, pairs: &[Movable], slot: JobSlot, tasks: &Tasks) -> (f64, Vec<Links>) {
        let start: Vec<Links> = pairs
            .iter()
            .map(|pair| {
                let at = self.random.random_range(0..pair.choices.count());
                self.candidates.links(&pair.choices, pair.choices.start() + at)
            })
            .collect();
        self.lay(pairs, &start);
        let mut now = self.index.utility();
        let (mut best, unit) = ((now, start.clone()), self.unit(self.index.job_utility(slot), tasks));
        let (mut routes, mut order) = (start, Vec::new());
        let mut temperature = CrossLayerParams::default().initial_temperature;
        let open = if pairs.is_empty() { 0 } else { self.params.routing_steps };
        for number in 0..open {
            temperature *= 0.95;
            if (number as usize).is_multiple_of(pairs.len()) {
                order = worst_first(&self.index, pairs);
            }
            let at = order[towards_first(&mut self.random, order.len())];
            let Movable { row, choices, tie } = &pairs[at];
            let draw = (*tie, self.random.random());
            let weight = self.index.weight_of(*row);
            let Some(path) = self.candidates.draw(&self.index, choices, &routes[at], weight, draw) else { continue };
            let links = self.candidates.links(choices, path);
            self.set(*row, &links);
            let after = self.index.utility();
            let rise = (after - now) / unit;
            if rise > 0.0 || self.random.random::<f64>() < (rise / temperature).exp() {
                (now, routes[at]) = (after, links);
                if now > best.0 {
                    best = (now, routes.clone());
                }
            } else {
                self.set(*row, &routes[at]);
            }
        }
        best
    }

    /// What changes of utility are held against, as the policy's own search does: what the new job has, at least the
    /// least NIC of its hosts. In units of all jobs' utility a busy cluster would take any step.
    fn unit(&self, own: f64, tasks: &Tasks) -> f64 {
        let nics = tasks.iter().flatten().map(|node| self.index.nic(*node));
        own.max(nics.fold(f64::INFINITY, f64::min)).max(1.0)
    }

    fn set(&mut self, row: u32, links: &Links) {
        self.index.hold();
        self.index.lay(row, links);
        self.index.recompute_rates();
    }

    fn lay(&mut self, pairs: &[Movable], routes: &[Links]) {
        self.index.hold();
        for (pair, links) in pairs.iter().zip(routes) {
            self.index.lay(pair.row, links);
        }
        self.index.recompute_rates();
    }

    /// One task on another server with room; `None`: none was found.
    fn moved(&mut self, tasks: &Tasks) -> Option<Tasks> {
        let problem = self.problem;
        let weights: Vec<f64> =
            (0..tasks.len()).map(|group| priority(problem, group) * tasks[group].len() as f64).collect();
        let mut left = self.random.random::<f64>() * weights.iter().sum::<f64>();
        let group = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        })?;
        let mut moved = tasks.clone();
        let at = self.random.random_range(0..moved[group].len());
        let from = moved[group].remove(at);
        let candidates = &problem.groups[group].candidates;
        // As often as it takes, nearly: a full cluster has no other server.
        for _ in 0..4 * candidates.len() {
            let to = candidates[self.random.random_range(0..candidates.len())];
            if to != from && fits(problem, &moved, group, to) {
                let place = moved[group].partition_point(|node| *node <= to);
                moved[group].insert(place, to);
                return Some(moved);
            }
        }
        None
    }
}

fn fits(problem: &PlaceProblem<'_>, tasks: &Tasks, group: usize, node: NodeIdx) -> bool {
    let (bounds, rack) = (&problem.groups[group], problem.snapshot.rack(node));
    let mut taken = Resource::ZERO;
    for (group, nodes) in problem.groups.iter().zip(tasks) {
        let here = nodes.iter().filter(|other| **other == node).count();
        taken = taken.plus(&group.size.times(here as u64));
    }
    let on_node = tasks[group].iter().filter(|other| **other == node).count();
    let in_rack = |other: &NodeIdx| -> RackIdx { problem.snapshot.rack(*other) };
    let in_rack = tasks[group].iter().filter(|other| in_rack(other) == rack).count();
    on_node < bounds.max_per_node as usize
        && in_rack < bounds.max_per_rack as usize
        && problem.snapshot.rules.feasible(&taken.plus(&bounds.size), &problem.room(node))
}

/// P_i with the floor, from the edges.
fn priority(problem: &PlaceProblem<'_>, group: usize) -> f64 {
    let between = || problem.edges.iter().filter(|edge| edge.from != edge.to);
    let root = |group: usize| !between().any(|edge| edge.to.at() == group);
    let sink = |group: usize| !between().any(|edge| edge.from.at() == group);
    let tasks = |pattern: EdgePattern, other: usize| match pattern {
        EdgePattern::AllToAll => f64::from(problem.groups[other].count),
        EdgePattern::OneToOne => 1.0,
    };
    let beside = problem.edges.iter().map(|edge| {
        let (from, to) = (edge.from.at(), edge.to.at());
        let before = if to == group && root(from) { tasks(edge.pattern, from) } else { 0.0 };
        before + if from == group && sink(to) { tasks(edge.pattern, to) } else { 0.0 }
    });
    super::compiled::FLOOR + beside.sum::<f64>()
}

fn tasks_of(groups: &[Vec<Share>]) -> Tasks {
    let nodes = |shares: &Vec<Share>| {
        let mut nodes: Vec<NodeIdx> =
            shares.iter().flat_map(|share| std::iter::repeat_n(share.node, share.count as usize)).collect();
        nodes.sort_unstable();
        nodes
    };
    groups.iter().map(nodes).collect()
}

fn shares_of(tasks: &Tasks) -> Vec<Vec<Share>> {
    let shares = |nodes: &Vec<NodeIdx>| {
        let mut counts: BTreeMap<NodeIdx, u32> = BTreeMap::new();
        nodes.iter().for_each(|node| *counts.entry(*node).or_default() += 1);
        counts.into_iter().map(|(node, count)| Share { node, count }).collect()
    };
    tasks.iter().map(shares).collect()
}
