//! Containers of several requests by one flow.
//!
//! - Containers of one root, curve, size and choice of nodes are one supply, whichever requests they are of; what it gets is
//!   handed out in the order of the requests.
//! - What a request has in its turn it keeps: to leave out one of so many costs more than all that could be gained by it.
//! - Sizes count in slots of what all of them are multiples of. A container of several slots may be split by the flow: what
//!   is left over by that goes into another flow on the room that is left.
//! - A task needs no more than the machines nearest to its root that together have as many slots as the round has tasks: were it
//!   beyond them, one of them would be free.

use super::curve::{Curve, MOST_COST};
use super::params::NomoraParams;
use super::request::{Asked, MOST_ARCS, Root};
use super::round::{Bounds, CostModel, LOOK_UP, Machine, Round, RoundJob, Waiting, gcd, solve};
use crate::placement_builder::PlacementBuilder;
use crate::{Budget, Placement, Work};
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::cluster::{Calculator, Gang, Overlay, Resource, SizeRules, Snapshot};
use hintd_model::network::latency::Latencies;
use hintd_model::units::{NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// Flows of a round at most: what the first leaves over is a few tasks, and less each time.
const MOST_FLOWS: u32 = 4;

/// Nodes of two lists that are compared in one unit of work.
const COMPARED: u64 = 16;

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
    /// Of these, as many as it has in its turn.
    kept: u32,
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

    fn kept(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.kept)).sum()
    }

    /// Its containers in the order in which they get their places: first what each request keeps.
    fn in_order(&self) -> impl Iterator<Item = (usize, usize)> {
        let each = |part: &Part, count: u32| {
            (0..count).map({
                let of = (part.member, part.group);
                move |_| of
            })
        };
        let kept = self.parts.iter().flat_map(move |part| each(part, part.kept));
        kept.chain(self.parts.iter().flat_map(move |part| each(part, part.count - part.kept)))
    }
}

/// What containers have to have in common to be one supply: positions of curve, size and choice of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SupplyKey {
    root: NodeIdx,
    curve: usize,
    size: usize,
    choice: usize,
}

/// All supplies of a flow in slots.
struct Slots {
    unit: Unit,
    /// By supply: of each of its tasks.
    weights: Vec<u32>,
    /// Of all tasks.
    wanted: u64,
    /// What a task has to reach at most.
    far: u64,
}

impl Slots {
    fn of(rules: &SizeRules, supplies: &[Supply]) -> Self {
        let unit = Unit::of(rules, supplies.iter().map(|supply| &supply.size));
        let weights: Vec<u32> = supplies.iter().map(|supply| unit.slots(&supply.size)).collect();
        let wanted = supplies.iter().zip(&weights).map(|(supply, slots)| supply.count() * u64::from(*slots)).sum();
        let mut slots = Self { unit, weights, wanted, far: wanted };
        if !slots.is_plain() {
            // What is split leaves slots over.
            slots.far = wanted.saturating_mul(2);
        }
        slots
    }

    /// Whether each task takes one slot: nothing is split then.
    fn is_plain(&self) -> bool {
        self.weights.iter().all(|slots| *slots == 1)
    }
}

/// A machine as a supply sees it; the nearest is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    cost: u32,
    /// Its position.
    at: u32,
}

/// Where a supply may go.
enum Reach {
    /// Wherever its own bounds allow.
    Bounds,
    /// To these nodes, and how many of its containers each has slots for.
    Nearest(Vec<(NodeIdx, u32)>),
}

/// What a flow is made of.
struct Network {
    /// Machines that any supply may use.
    machines: Vec<Machine>,
    /// By supply.
    reaches: Vec<Reach>,
}

/// What a flow came to.
struct Flowed {
    /// It placed something.
    placed: bool,
    /// Nothing costs less.
    exact: bool,
}

/// Keeps the machines of least cost that together have slots for so many, each for whole tasks of so many slots.
fn nearest(open: &mut Vec<Near>, machines: &[Machine], slots: u32, far: u64) {
    // Each has slots for a task at least.
    let enough = usize::try_from(far).unwrap_or(usize::MAX);
    if open.len() > enough {
        open.select_nth_unstable(enough);
        open.truncate(enough);
    }
    open.sort_unstable();
    let mut reached = 0;
    let is_beyond = |near: &Near| {
        let before = reached;
        reached += u64::from(machines[near.at as usize].slots / slots * slots);
        before >= far
    };
    if let Some(beyond) = open.iter().position(is_beyond) {
        open.truncate(beyond);
    }
}

/// All members, and the room that they share.
pub(super) struct Flow<'r> {
    first: &'r [Placement],
    snapshot: &'r Snapshot,
    params: &'r NomoraParams,
    members: Vec<Member<'r>>,
    leases: Overlay,
    curves: Vec<(&'r str, &'r Curve)>,
    /// All may go anywhere that has room. Where a gang has to be whole, or a request stays, nobody proves that nothing costs less.
    is_free: bool,
}

impl<'r> Flow<'r> {
    /// Those that `first` gives something of use, each with its root there; who `stays` has all of that, and is no member.
    pub(super) fn new(asked: &'r [Asked<'r, 'r>], first: &'r [Placement], stays: &[bool]) -> Self {
        let problem = asked[0].problem;
        let (snapshot, params, leases) = (problem.snapshot, asked[0].params, problem.leases.clone());
        let is_free = !stays.contains(&true) && asked.iter().all(|asked| asked.problem.gang == Gang::UpTo);
        let mut flow = Self { first, snapshot, params, members: Vec::new(), leases, curves: Vec::new(), is_free };
        for (at, asked) in asked.iter().enumerate() {
            if !first[at].is_of_use(asked.problem) {
                continue;
            }
            if stays[at] {
                for (node, size) in first[at].taken(asked.problem) {
                    flow.leases.set(node, flow.leases.leased(node).plus(&size));
                }
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
    pub(super) fn place(mut self, budget: &Budget<'_>) -> Option<Vec<Placement>> {
        let mut optimal = false;
        for flows in 0..MOST_FLOWS {
            let supplies = self.supplies(budget)?;
            if supplies.is_empty() {
                break;
            }
            let Flowed { placed, exact } = self.flow(&supplies, budget)?;
            optimal = exact && flows == 0;
            if exact || !placed {
                break;
            }
        }
        // What the flow could not count has room elsewhere, at a cost that nobody weighed.
        let filled = self.fill(budget)?;
        (!budget.stopped()).then(|| self.finish(optimal && !filled, budget))
    }

    /// What is still to be placed. The order of requests is kept, within each that of priorities.
    fn supplies(&self, budget: &Budget<'_>) -> Option<Vec<Supply>> {
        let mut supplies: Vec<Supply> = Vec::new();
        let mut known: BTreeMap<SupplyKey, usize> = BTreeMap::new();
        let (mut sizes, mut choices): (Vec<Resource>, Vec<&[NodeIdx]>) = (Vec::new(), Vec::new());
        for (member, of) in self.members.iter().enumerate() {
            let curve = self.curves.iter().position(|(name, _)| *name == of.asked.curve_name).unwrap_or(0);
            for &group in &of.asked.order {
                let asked = &of.asked.problem.groups[group];
                let count = asked.count - of.next[group];
                if count == 0 {
                    continue;
                }
                if !budget.work(1 + (choices.len() * asked.candidates.len()) as u64 / COMPARED) {
                    return None;
                }
                let kept = self.first[of.at].placed(group).saturating_sub(of.next[group]).min(count);
                let part = Part { member, group, count, kept };
                // With bounds of its own, or where all have to come, no others are served with it.
                let alone = of.asked.is_bound(group) || of.asked.problem.gang == Gang::All;
                let (size, choice) = (position(&mut sizes, asked.size), position(&mut choices, &*asked.candidates));
                let key = SupplyKey { root: of.root, curve, size, choice };
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
        Some(supplies)
    }

    /// One flow of all that is still to be placed.
    fn flow(&mut self, supplies: &[Supply], budget: &Budget<'_>) -> Option<Flowed> {
        let slots = Slots::of(&self.snapshot.rules, supplies);
        let Network { machines, reaches } = self.network(supplies, &slots, budget)?;
        // A second of waiting is one of cost: so much that no saving of all others makes up for it.
        let model = CostModel { omega: 1.0, ..self.params.model() };
        let dear = slots.wanted.saturating_mul(u64::from(model.gamma));
        let mut jobs = Vec::with_capacity(supplies.len());
        for ((supply, reach), &slots) in supplies.iter().zip(&reaches).zip(&slots.weights) {
            let bounds = Some(self.bounds(supply, &machines, reach));
            let tasks = |wait_s, count| Waiting { wait_s, count: u32::try_from(count).unwrap_or(u32::MAX) };
            let waiting = vec![tasks(dear, supply.kept()), tasks(0, supply.count() - supply.kept())];
            let curve = self.curves[supply.curve].1;
            jobs.push(RoundJob { curve, root: supply.root, waiting, running: vec![], bounds, slots });
        }
        let latency = &self.members.first()?.asked.latency;
        let round = Round { machines: &machines, jobs, roots: vec![], latency, seed: 0 };
        let work = |units: u64| budget.step() && budget.work(units);
        // Costs and counts are within what the solver takes; were they not, the first answer would stand.
        let answer = solve(&round, &model, &work).ok().filter(|answer| answer.optimal)?;
        let mut placed = false;
        for (supply, job) in supplies.iter().zip(answer.jobs) {
            let nodes = job.placed.iter().map(|&(machine, count)| (machines[machine as usize].node, count));
            placed |= self.hand_out(supply, nodes);
        }
        Some(Flowed { placed, exact: slots.is_plain() })
    }

    /// Machines that any supply may use, and for each supply which: with bounds of its own all that it may go to; else the
    /// nearest ones that have so many slots together, where each machine has its own cost.
    fn network(&self, supplies: &[Supply], slots: &Slots, budget: &Budget<'_>) -> Option<Network> {
        let all = self.machines(supplies, slots, budget)?;
        let near_only = self.params.p_m == MOST_COST;
        let mut used = vec![!near_only; all.len()];
        let mut costs: BTreeMap<(NodeIdx, usize), Vec<u32>> = BTreeMap::new();
        let mut reaches: Vec<Reach> = Vec::with_capacity(supplies.len());
        let mut arcs = 0;
        for (supply, &weight) in supplies.iter().zip(&slots.weights) {
            if !budget.step() || !budget.work(LOOK_UP * all.len() as u64) {
                return None;
            }
            let costs = costs.entry((supply.root, supply.curve)).or_insert_with(|| self.costs(supply, &all));
            let open = self.open(supply, &all).into_iter().filter(|at| all[*at as usize].slots >= weight);
            let mut near: Vec<Near> = open.map(|at| Near { cost: costs[at as usize], at }).collect();
            let is_bound = self.is_bound(supply);
            if near_only && !is_bound {
                nearest(&mut near, &all, weight, slots.far);
            }
            arcs += near.len();
            if arcs > MOST_ARCS {
                return None;
            }
            near.iter().for_each(|near| used[near.at as usize] = true);
            let most = |near: Near| (all[near.at as usize].node, all[near.at as usize].slots / weight);
            reaches.push(if is_bound { Reach::Bounds } else { Reach::Nearest(near.into_iter().map(most).collect()) });
        }
        let machines = all.into_iter().zip(used).filter(|(_, used)| *used).map(|(machine, _)| machine).collect();
        Some(Network { machines, reaches })
    }

    /// Nodes that any of the supplies may go to, with what is left there, ascending.
    fn machines(&self, supplies: &[Supply], slots: &Slots, budget: &Budget<'_>) -> Option<Vec<Machine>> {
        let mut nodes: Vec<NodeIdx> = Vec::new();
        let mut seen: Vec<&[NodeIdx]> = Vec::new();
        for supply in supplies {
            let candidates = self.candidates(supply);
            if !seen.iter().any(|known| std::ptr::eq(*known, candidates)) {
                if !budget.work(LOOK_UP * candidates.len() as u64) {
                    return None;
                }
                seen.push(candidates);
                nodes.extend_from_slice(candidates);
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        let most = u32::try_from(slots.wanted).unwrap_or(u32::MAX);
        let machine = |node: NodeIdx| {
            let slots = slots.unit.how_many(&self.snapshot.room(node, &self.leases)).min(most);
            (slots > 0).then(|| Machine { node, rack: self.snapshot.rack(node), slots })
        };
        Some(nodes.into_iter().filter_map(machine).collect())
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
        let Reach::Nearest(reach) = reach else { return of.asked.bounds(group, machines, &of.filling) };
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
        let mut parts = supply.in_order();
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

    /// What flows left over, where it costs least: first what each request keeps. Whether anything was placed; `None`: there
    /// was no time.
    fn fill(&mut self, budget: &Budget<'_>) -> Option<bool> {
        let mut placed = false;
        for only_kept in [true, false] {
            for supply in self.supplies(budget)? {
                for part in supply.parts {
                    let count = if only_kept { part.kept } else { part.count };
                    if count > 0 {
                        placed |= self.fill_part(Part { count, ..part }, budget)?;
                    }
                }
            }
        }
        Some(placed)
    }

    fn fill_part(&mut self, Part { member, group, count, .. }: Part, budget: &Budget<'_>) -> Option<bool> {
        let of = &self.members[member];
        let candidates = of.asked.problem.groups[group].candidates.len();
        if budget.over() || !budget.work(LOOK_UP * candidates as u64) {
            return None;
        }
        let open = of.asked.by_cost(of.root, group, |node| self.fits(member, group, node));
        let mut left = count;
        for node in open {
            while left > 0 && self.fits(member, group, node) {
                self.members[member].put(group, node, &mut self.leases);
                left -= 1;
            }
        }
        Some(left < count)
    }

    fn finish(self, optimal: bool, budget: &Budget<'_>) -> Vec<Placement> {
        let mut placements = self.first.to_vec();
        for Member { at, asked, filling, .. } in self.members {
            let steps = placements[at].steps;
            placements[at] = Placement { steps, ..asked.rated(filling.finish(budget), optimal && self.is_free) };
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
