//! Requests of one round by one flow.
//!
//! First each is placed in its turn, beside those before it: that says where roots go, and what the round has to be better than.
//! Then all containers but the roots are one flow, in which a request gives way where that is cheaper for all. Of both answers
//! the cheaper one is taken.
//!
//! - Containers of one root, curve, size and choice of nodes are one supply, whichever requests they are of; what it gets is
//!   handed out in the order of the requests.
//! - Sizes count in slots of what all of them are multiples of. A container of several slots may be split by the flow: what
//!   is left over by that goes into another flow on the room that is left.
//! - A task needs no more than the machines nearest to its root that together have as many slots as the round has tasks: were it
//!   beyond them, one of them would be free.

use super::curve::{Curve, MOST_COST};
use super::params::NomoraParams;
use super::request::{Asked, MOST_ARCS, Root};
use super::round::{Bounds, LOOK_UP, Machine, Round, RoundJob, Waiting, solve};
use crate::placement_builder::PlacementBuilder;
use crate::{Budget, Ended, Objective, PlaceProblem, Placement, Together, Work};
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::cluster::{Calculator, Gang, Overlay, Resource, SizeRules, Snapshot};
use hintd_model::network::latency::Latencies;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// Flows of a round at most: what the first leaves over is a few tasks, and less each time.
const MOST_FLOWS: u32 = 4;

/// Places a round.
pub(super) fn place(params: &NomoraParams, problems: &[PlaceProblem<'_>], budget: &Budget<'_>) -> Together {
    let first = in_turn(params, problems, budget);
    let asked: Vec<Asked<'_, '_>> = problems.iter().map(|problem| Asked::new(params, problem)).collect();
    let in_turn = cost_of(&asked, &first);
    let scaled = |cost: u64| cost as f64 / 100.0;
    let better = (problems.len() > 1).then(|| Flow::new(&asked, &first).place(budget)).flatten();
    match better.map(|placements| (cost_of(&asked, &placements), placements)) {
        Some((cost, placements)) if cost < in_turn => {
            Together { placements, cost: scaled(cost), cost_in_turn: scaled(in_turn) }
        }
        _ => Together { placements: first, cost: scaled(in_turn), cost_in_turn: scaled(in_turn) },
    }
}

/// Each in its turn, beside what those before it took.
fn in_turn(params: &NomoraParams, problems: &[PlaceProblem<'_>], budget: &Budget<'_>) -> Vec<Placement> {
    let mut leases = problems.first().map_or_else(Overlay::default, |problem| problem.leases.clone());
    let mut placements = Vec::with_capacity(problems.len());
    for (at, problem) in problems.iter().enumerate() {
        let placement = match at {
            0 => Asked::new(params, problem).place(budget),
            _ => Asked::new(params, &problem.beside(&leases)).place(budget),
        };
        if takes_room(problem, &placement) {
            take(&mut leases, problem, &placement);
        }
        placements.push(placement);
    }
    placements
}

/// Whether what is placed is of use: of a gang that has to be whole all, of others anything.
fn takes_room(problem: &PlaceProblem<'_>, placement: &Placement) -> bool {
    problem.gang == Gang::UpTo || placement.placed_all() == problem.containers()
}

fn take(leases: &mut Overlay, problem: &PlaceProblem<'_>, placement: &Placement) {
    for (shares, group) in placement.groups.iter().zip(&problem.groups) {
        for share in shares {
            let more = group.size.times(u64::from(share.count));
            leases.set(share.node, leases.leased(share.node).plus(&more));
        }
    }
}

/// What a round costs: its containers but the roots, and those without a place as tasks that wait on.
fn cost_of(asked: &[Asked<'_, '_>], placements: &[Placement]) -> u64 {
    let cost = |(asked, placement): (&Asked<'_, '_>, &Placement)| {
        let out = |count: u64| count * u64::from(asked.params.gamma);
        if !takes_room(asked.problem, placement) {
            return out(asked.problem.containers());
        }
        let unplaced = out(asked.problem.containers() - placement.placed_all());
        let Some((root, of)) = asked.root_in(placement) else { return unplaced };
        let placed = placement.groups.iter().enumerate().flat_map(|(group, shares)| {
            let is_root = move |at| of == Some(group) && at == 0;
            shares.iter().enumerate().map(move |(at, share)| (share.node, share.count - u32::from(is_root(at))))
        });
        let each = |node| u64::from(asked.curve.cost(asked.latency.rtt(root, node)));
        placed.map(|(node, count)| u64::from(count) * each(node)).sum::<u64>() + unplaced
    };
    asked.iter().zip(placements).map(cost).sum()
}

/// A request that takes part in the flow.
struct Member<'r> {
    /// Position of its request.
    at: usize,
    asked: &'r Asked<'r, 'r>,
    root: NodeIdx,
    filling: PlacementBuilder<'r, 'r>,
    /// By group: tasks placed so far.
    next: Vec<u32>,
}

/// Some containers of a member that are alike.
#[derive(Debug, Clone, Copy)]
struct Part {
    member: usize,
    group: usize,
    count: u32,
}

/// Containers of one supply.
struct Supply {
    root: NodeIdx,
    curve: usize,
    size: Resource,
    /// In the order in which they are served.
    parts: Vec<Part>,
}

impl Supply {
    fn count(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.count)).sum()
    }
}

/// Where a supply may go, and how many of its containers each node has slots for; `None`: it has bounds of its own.
type Reach = Option<Vec<(NodeIdx, u32)>>;

/// Keeps the machines of least cost that together have slots for so many, each for whole tasks of so many slots.
fn nearest(open: &mut Vec<(u32, u32)>, machines: &[Machine], slots: u32, far: u64) {
    // Each has slots for a task at least.
    let enough = usize::try_from(far).unwrap_or(usize::MAX);
    if open.len() > enough {
        open.select_nth_unstable(enough);
        open.truncate(enough);
    }
    open.sort_unstable();
    let mut reached = 0;
    let is_beyond = |(_, at): &(u32, u32)| {
        let before = reached;
        reached += u64::from(machines[*at as usize].slots / slots * slots);
        before >= far
    };
    if let Some(beyond) = open.iter().position(is_beyond) {
        open.truncate(beyond);
    }
}

/// All members, and the room that they share.
struct Flow<'r> {
    first: &'r [Placement],
    snapshot: &'r Snapshot,
    params: &'r NomoraParams,
    members: Vec<Member<'r>>,
    leases: Overlay,
    curves: Vec<(&'r str, &'r Curve)>,
}

impl<'r> Flow<'r> {
    /// Those that `first` gives something of use, each with its root there.
    fn new(asked: &'r [Asked<'r, 'r>], first: &'r [Placement]) -> Self {
        let problem = asked[0].problem;
        let (snapshot, params, leases) = (problem.snapshot, asked[0].params, problem.leases.clone());
        let mut flow = Self { first, snapshot, params, members: Vec::new(), leases, curves: Vec::new() };
        for (at, asked) in asked.iter().enumerate() {
            if !takes_room(asked.problem, &first[at]) {
                continue;
            }
            let Some((root, of)) = asked.root_in(&first[at]) else { continue };
            let mut member = Member {
                at,
                asked,
                root,
                filling: PlacementBuilder::new(asked.problem),
                next: vec![0; asked.problem.groups.len()],
            };
            if let (Some(group), Some(Root::Of(_))) = (of, asked.root) {
                member.put(group, root, &mut flow.leases);
            }
            if flow.curves.iter().all(|(name, _)| *name != asked.curve_name) {
                flow.curves.push((asked.curve_name, &asked.curve));
            }
            flow.members.push(member);
        }
        flow
    }

    /// One placement a request; `None`: there was no time, or the flow is too large.
    fn place(mut self, budget: &Budget<'_>) -> Option<Vec<Placement>> {
        let mut optimal = false;
        for flows in 0..MOST_FLOWS {
            let supplies = self.supplies();
            if supplies.is_empty() {
                break;
            }
            let (placed, exact) = self.flow(&supplies, budget)?;
            optimal = exact && flows == 0;
            if exact || !placed {
                break;
            }
        }
        self.fill(budget);
        (!budget.stopped()).then(|| self.finish(optimal, budget))
    }

    /// What is still to be placed. The order of requests is kept, within each that of priorities.
    fn supplies(&self) -> Vec<Supply> {
        let mut supplies: Vec<Supply> = Vec::new();
        let mut known: BTreeMap<(NodeIdx, usize, usize, usize), usize> = BTreeMap::new();
        let (mut sizes, mut choices): (Vec<Resource>, Vec<&[NodeIdx]>) = (Vec::new(), Vec::new());
        for (member, of) in self.members.iter().enumerate() {
            let curve = self.curves.iter().position(|(name, _)| *name == of.asked.curve_name).unwrap_or(0);
            for &group in &of.asked.order {
                let asked = &of.asked.problem.groups[group];
                let count = asked.count - of.next[group];
                if count == 0 {
                    continue;
                }
                let part = Part { member, group, count };
                // With bounds of its own, or where all have to come, no others are served with it.
                let alone = of.asked.is_bound(group) || of.asked.problem.gang == Gang::All;
                let like = [position(&mut sizes, asked.size), position(&mut choices, &*asked.candidates)];
                let key = (of.root, curve, like[0], like[1]);
                if let Some(&at) = known.get(&key).filter(|_| !alone) {
                    supplies[at].parts.push(part);
                    continue;
                }
                if !alone {
                    known.insert(key, supplies.len());
                }
                supplies.push(Supply { root: of.root, curve, size: asked.size, parts: vec![part] });
            }
        }
        supplies
    }

    /// One flow of all that is still to be placed. Whether it placed anything, and whether nothing costs less.
    fn flow(&mut self, supplies: &[Supply], budget: &Budget<'_>) -> Option<(bool, bool)> {
        let unit = Unit::of(&self.snapshot.rules, supplies.iter().map(|supply| &supply.size));
        let weights: Vec<u32> = supplies.iter().map(|supply| unit.slots(&supply.size)).collect();
        let wanted: u64 = supplies.iter().zip(&weights).map(|(supply, slots)| supply.count() * u64::from(*slots)).sum();
        let plain = weights.iter().all(|slots| *slots == 1);
        // What is split leaves slots over.
        let far = if plain { wanted } else { wanted.saturating_mul(2) };
        let (machines, reaches) = self.reaches(supplies, (&unit, &weights), (wanted, far), budget)?;
        let mut jobs = Vec::with_capacity(supplies.len());
        for ((supply, reach), &slots) in supplies.iter().zip(&reaches).zip(&weights) {
            let bounds = self.bounds(supply, &machines, reach);
            let count = u32::try_from(supply.count()).unwrap_or(u32::MAX);
            let waiting = vec![Waiting { wait_s: 0, count }];
            let curve = self.curves[supply.curve].1;
            jobs.push(RoundJob { curve, root: supply.root, waiting, running: vec![], bounds: Some(bounds), slots });
        }
        let latency = &self.members.first()?.asked.latency;
        let round = Round { machines: &machines, jobs, roots: vec![], latency, seed: 0 };
        let work = |units: u64| budget.step() && budget.work(units);
        // Costs and counts are within what the solver takes; were they not, the first answer would stand.
        let answer = solve(&round, &self.params.model(), &work).ok().filter(|answer| answer.optimal)?;
        let mut placed = false;
        for (supply, job) in supplies.iter().zip(answer.jobs) {
            let nodes = job.placed.iter().map(|&(machine, count)| (machines[machine as usize].node, count));
            placed |= self.hand_out(supply, nodes);
        }
        Some((placed, plain))
    }

    /// Machines that any supply may use, and for each supply which: with bounds of its own (`None`) all that it may go to; else the
    /// nearest ones that have so many slots together, where each machine has its own cost.
    fn reaches(
        &self,
        supplies: &[Supply],
        (unit, weights): (&Unit, &[u32]),
        (wanted, far): (u64, u64),
        budget: &Budget<'_>,
    ) -> Option<(Vec<Machine>, Vec<Reach>)> {
        let all = self.machines(supplies, unit, wanted);
        let near_only = self.params.p_m == MOST_COST;
        let mut used = vec![!near_only; all.len()];
        let mut costs: BTreeMap<(NodeIdx, usize), Vec<u32>> = BTreeMap::new();
        let mut reaches: Vec<Reach> = Vec::with_capacity(supplies.len());
        let mut arcs = 0;
        for (supply, &slots) in supplies.iter().zip(weights) {
            if !budget.step() || !budget.work(LOOK_UP * all.len() as u64) {
                return None;
            }
            let costs = costs.entry((supply.root, supply.curve)).or_insert_with(|| self.costs(supply, &all));
            let open = self.open(supply, &all).into_iter().filter(|at| all[*at as usize].slots >= slots);
            let mut near: Vec<(u32, u32)> = open.map(|at| (costs[at as usize], at)).collect();
            let is_bound = self.is_bound(supply);
            if near_only && !is_bound {
                nearest(&mut near, &all, slots, far);
            }
            arcs += near.len();
            if arcs > MOST_ARCS {
                return None;
            }
            near.iter().for_each(|(_, at)| used[*at as usize] = true);
            let most = |(_, at): (u32, u32)| (all[at as usize].node, all[at as usize].slots / slots);
            reaches.push((!is_bound).then(|| near.into_iter().map(most).collect()));
        }
        let machines = all.into_iter().zip(used).filter(|(_, used)| *used).map(|(machine, _)| machine).collect();
        Some((machines, reaches))
    }

    /// Nodes that any of the supplies may go to, with what is left there, ascending.
    fn machines(&self, supplies: &[Supply], unit: &Unit, wanted: u64) -> Vec<Machine> {
        let mut nodes: Vec<NodeIdx> = Vec::new();
        let mut seen: Vec<&[NodeIdx]> = Vec::new();
        for supply in supplies {
            let candidates = self.candidates(supply);
            if !seen.iter().any(|known| std::ptr::eq(*known, candidates)) {
                seen.push(candidates);
                nodes.extend_from_slice(candidates);
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        let most = u32::try_from(wanted).unwrap_or(u32::MAX);
        let machine = |node: NodeIdx| {
            let slots = unit.how_many(&self.snapshot.room(node, &self.leases)).min(most);
            (slots > 0).then(|| Machine { node, rack: self.snapshot.rack(node), slots })
        };
        nodes.into_iter().filter_map(machine).collect()
    }

    fn candidates(&self, supply: &Supply) -> &'r [NodeIdx] {
        let Part { member, group, .. } = supply.parts[0];
        &self.members[member].asked.problem.groups[group].candidates
    }

    fn is_bound(&self, supply: &Supply) -> bool {
        let Part { member, group, .. } = supply.parts[0];
        self.members[member].asked.is_bound(group)
    }

    /// What a task of the supply costs on each machine.
    fn costs(&self, supply: &Supply, machines: &[Machine]) -> Vec<u32> {
        let (curve, latency) = (self.curves[supply.curve].1, &self.members[0].asked.latency);
        machines.iter().map(|machine| curve.cost(latency.rtt(supply.root, machine.node))).collect()
    }

    /// Machines that are candidates of the supply; both are in order.
    fn open(&self, supply: &Supply, machines: &[Machine]) -> Vec<u32> {
        let mut candidates = self.candidates(supply).iter().peekable();
        let mut open = Vec::with_capacity(machines.len());
        for (at, machine) in (0_u32..).zip(machines) {
            while candidates.next_if(|node| **node < machine.node).is_some() {}
            if candidates.peek().is_some_and(|node| **node == machine.node) {
                open.push(at);
            }
        }
        open
    }

    fn bounds(&self, supply: &Supply, machines: &[Machine], reach: &Reach) -> Bounds {
        let Part { member, group, .. } = supply.parts[0];
        let of = &self.members[member];
        let Some(reach) = reach else { return of.asked.bounds(group, machines, &of.filling) };
        let mut bounds = Bounds { on_machine: vec![0; machines.len()], in_rack: BTreeMap::<RackIdx, u32>::new() };
        for (node, most) in reach {
            if let Ok(at) = machines.binary_search_by_key(node, |machine| machine.node) {
                bounds.on_machine[at] = *most;
            }
        }
        bounds
    }

    /// Gives the supply's parts these places, in their order; whether any was taken.
    fn hand_out(&mut self, supply: &Supply, places: impl Iterator<Item = (NodeIdx, u32)>) -> bool {
        let mut parts = supply.parts.iter().flat_map(|part| (0..part.count).map(|_| (part.member, part.group)));
        let mut next = parts.next();
        let mut placed = false;
        for (node, count) in places {
            for _ in 0..count {
                let Some((member, group)) = next else { return placed };
                // What is said is checked: slots are what the flow counts by, room is what there is.
                if self.fits(member, group, node) {
                    self.members[member].put(group, node, &mut self.leases);
                    (placed, next) = (true, parts.next());
                }
            }
        }
        placed
    }

    fn fits(&self, member: usize, group: usize, node: NodeIdx) -> bool {
        let of = &self.members[member];
        let size = &of.asked.problem.groups[group].size;
        self.snapshot.rules.feasible(size, &self.snapshot.room(node, &self.leases)) && of.filling.fits(group, node)
    }

    /// What flows left over, where it costs least.
    fn fill(&mut self, budget: &Budget<'_>) {
        for supply in self.supplies() {
            for Part { member, group, count } in supply.parts {
                let of = &self.members[member];
                let asked = &of.asked.problem.groups[group];
                if budget.over() || !budget.work(LOOK_UP * asked.candidates.len() as u64) {
                    return;
                }
                let cost = |node: NodeIdx| of.asked.curve.cost(of.asked.latency.rtt(of.root, node));
                let open = asked.candidates.iter().copied().filter(|&node| self.fits(member, group, node));
                let mut open: Vec<(u32, NodeIdx)> = open.map(|node| (cost(node), node)).collect();
                open.sort_unstable();
                let mut left = count;
                for (_, node) in open {
                    while left > 0 && self.fits(member, group, node) {
                        self.members[member].put(group, node, &mut self.leases);
                        left -= 1;
                    }
                }
            }
        }
    }

    fn finish(self, optimal: bool, budget: &Budget<'_>) -> Vec<Placement> {
        let mut placements = self.first.to_vec();
        for Member { at, asked, filling, .. } in self.members {
            let mut placement = filling.finish(budget);
            if let Some(Objective { value, parts }) = asked.objective(&placement) {
                (placement.objective, placement.parts) = (value, parts);
            }
            let fixed = matches!(asked.root, Some(Root::Runs(_))) && asked.params.p_m == MOST_COST;
            placement.ended = match placement.ended {
                Ended::Complete if optimal && fixed => Ended::Optimal,
                Ended::Complete => Ended::Budget,
                cut_short => cut_short,
            };
            placements[at] = placement;
        }
        placements
    }
}

impl Member<'_> {
    /// The group's next task goes there.
    fn put(&mut self, group: usize, node: NodeIdx, leases: &mut Overlay) {
        self.filling.put(group, self.next[group], node);
        self.next[group] += 1;
        let size = &self.asked.problem.groups[group].size;
        leases.set(node, leases.leased(node).plus(size));
    }
}

/// Position of a value among those that are known.
fn position<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    known.iter().position(|known| *known == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// What all sizes of a round are multiples of, kind by kind. So counted they never take more than there is; where their kinds
/// are in different proportion, some room seems taken that is not.
#[derive(Debug)]
struct Unit {
    size: Resource,
    kinds: usize,
}

impl Unit {
    fn of<'s>(rules: &SizeRules, sizes: impl Iterator<Item = &'s Resource>) -> Self {
        let kinds = match rules.calculator {
            Calculator::Default => 1,
            Calculator::Dominant => KINDS_MAX,
        };
        let common = |sum: Resource, size: &Resource| Resource(std::array::from_fn(|at| gcd(sum.0[at], size.0[at])));
        Self { size: sizes.fold(Resource::ZERO, common), kinds }
    }

    /// Slots of a size, at least 1.
    fn slots(&self, size: &Resource) -> u32 {
        let of = |kind: usize| size.0[kind].checked_div(self.size.0[kind]).unwrap_or(0);
        let most = (0..self.kinds).map(of).max().unwrap_or(0);
        u32::try_from(most).unwrap_or(u32::MAX).max(1)
    }

    /// Slots that room has.
    fn how_many(&self, room: &Resource) -> u32 {
        let of = |kind: usize| room.0[kind].checked_div(self.size.0[kind]);
        let least = (0..self.kinds).filter_map(of).min().unwrap_or(0);
        u32::try_from(least).unwrap_or(u32::MAX)
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
pub(super) fn cost_of_all(params: &NomoraParams, problems: &[PlaceProblem<'_>], placements: &[Placement]) -> f64 {
    let asked: Vec<Asked<'_, '_>> = problems.iter().map(|problem| Asked::new(params, problem)).collect();
    cost_of(&asked, placements) as f64 / 100.0
}
