//! Cost scaling: flows that are cheapest within an error, which is divided until it is below that of whole numbers (Goldberg
//! and Tarjan, 1990), by pushes and relabels, first in, first out.

use super::problem::{ArcRow, MinCostProblem, UNLIMITED};
use super::simplex::{Simplex, cheapest};
use super::{MinCostError, MinCostFlow, sums};
use std::collections::VecDeque;

/// What the error is divided by from phase to phase.
const DIVISOR: i64 = 16;

/// Nodes that are emptied between two looks at the probe.
const PROBE_EVERY: u64 = 64;

/// A direction of an arc, with what it could still carry.
#[derive(Debug, Clone, Copy)]
struct Residual {
    to: u32,
    /// The other direction.
    back: u32,
    room: i64,
    cost: i64,
}

/// The residual network: directions sorted by where they begin, the hub last.
#[derive(Debug)]
struct Network {
    directions: Vec<Residual>,
    /// By node: its first direction; one more at the end.
    begins: Vec<u32>,
    price: Vec<i64>,
    excess: Vec<i64>,
    current: Vec<u32>,
    active: VecDeque<u32>,
}

/// An arc of the network and which of the problem's it is; the hub's have none.
#[derive(Debug, Clone, Copy)]
struct Arc {
    from: u32,
    to: u32,
    capacity: i64,
    cost: i64,
    flow: i64,
}

/// A cheapest flow, from nothing. `stop` is looked at now and then; where it says so, the answer is the flow of the last phase
/// that came to its end, or none at all.
///
/// # Errors
/// [`MinCostError`].
pub fn solve(problem: &MinCostProblem, stop: &mut dyn FnMut() -> bool) -> Result<MinCostFlow, MinCostError> {
    let hub_cost = sums::artificial_cost(problem)?;
    let Some((arcs, limit)) = arcs_of(problem, hub_cost)? else { return Simplex::new().solve(problem, stop) };
    let scale = problem.supplies().len() as i64 + 2;
    let Some(widest) = hub_cost.checked_mul(scale).filter(|widest| widest.checked_mul(8 * scale).is_some()) else {
        return Simplex::new().solve(problem, stop);
    };
    let (mut network, places) = Network::new(problem.supplies().len() + 1, &arcs, scale);
    let (mut error, mut steps, mut optimal) = (widest, 0, false);
    let mut rooms: Vec<i64> = network.directions.iter().map(|direction| direction.room).collect();
    let mut gap = None;
    while !optimal {
        error = (error / DIVISOR).max(1);
        if !network.refine(error, stop, &mut steps) {
            break;
        }
        rooms = network.directions.iter().map(|direction| direction.room).collect();
        debug_assert!(network.is_within(error), "the flow is cheapest within {error}, by its prices");
        gap = Some(network.gap(scale));
        optimal = error == 1;
    }
    let mut answer = answer(problem, &arcs, &places, &rooms, steps);
    answer.optimal = optimal;
    let mut unlimited = problem.arcs().filter(|(_, row)| row.capacity == UNLIMITED);
    if optimal && unlimited.any(|(arc, _)| answer.flows[arc.at()] > limit) {
        // Around a cycle of unlimited arcs: without cost, or of negative cost. The simplex tells which.
        return Simplex::new().solve(problem, stop);
    }
    let met = answer.short == 0 && answer.unmet == 0;
    if optimal && !met {
        return cheapest(problem, answer, stop);
    }
    answer.gap = gap.filter(|_| !optimal && met);
    Ok(answer)
}

/// The problem's arcs by number and then the hub's, full: one to the hub from each supply, one from the hub to each demand. And
/// the most that an unlimited arc carries without a negative cycle. `None`: sums would overflow.
fn arcs_of(problem: &MinCostProblem, hub_cost: i64) -> Result<Option<(Vec<Arc>, i64)>, MinCostError> {
    let limited = problem.arcs().map(|(_, row)| row.capacity).filter(|capacity| *capacity != UNLIMITED);
    let limit = limited.sum::<i64>() + problem.supplies().iter().map(|supply| supply.abs()).sum::<i64>();
    let unlimited = problem.arcs().filter(|(_, row)| row.capacity == UNLIMITED).count() as i64;
    if unlimited.checked_add(2).and_then(|count| count.checked_mul(limit + 1)).is_none_or(|sum| sum >= UNLIMITED) {
        return Ok(None);
    }
    let mut arcs = Vec::with_capacity(problem.rows().len());
    for &ArcRow { from, to, capacity, cost } in problem.rows() {
        let around = from == to;
        if around && capacity == UNLIMITED && cost < 0 {
            return Err(MinCostError::NegativeCycle { from: from.0, to: to.0 });
        }
        let capacity = if capacity == UNLIMITED { limit + 1 } else { capacity };
        // What goes around at one node goes by its cost alone.
        let flow = if around && cost < 0 { capacity } else { 0 };
        arcs.push(Arc { from: from.0, to: to.0, capacity, cost, flow });
    }
    let hub = problem.supplies().len() as u32;
    for (node, &supply) in (0_u32..).zip(problem.supplies()) {
        let (from, to) = if supply > 0 { (node, hub) } else { (hub, node) };
        if supply != 0 {
            arcs.push(Arc { from, to, capacity: supply.abs(), cost: hub_cost, flow: supply.abs() });
        }
    }
    Ok(Some((arcs, limit)))
}

impl Network {
    /// With each arc's flow. Beside it: where the forward direction of each arc is; none for those that begin where they end.
    fn new(nodes: usize, arcs: &[Arc], scale: i64) -> (Self, Vec<u32>) {
        let mut begins = vec![0_u32; nodes + 1];
        let through = |arc: &&Arc| arc.from != arc.to && arc.capacity > 0;
        for arc in arcs.iter().filter(through) {
            begins[arc.from as usize + 1] += 1;
            begins[arc.to as usize + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        let none = Residual { to: 0, back: 0, room: 0, cost: 0 };
        let mut directions = vec![none; begins[nodes] as usize];
        let mut places = vec![u32::MAX; arcs.len()];
        for (place, arc) in places.iter_mut().zip(arcs).filter(|(_, arc)| through(arc)) {
            let (there, back) = (next[arc.from as usize], next[arc.to as usize]);
            next[arc.from as usize] += 1;
            next[arc.to as usize] += 1;
            let cost = arc.cost * scale;
            directions[there as usize] = Residual { to: arc.to, back, room: arc.capacity - arc.flow, cost };
            directions[back as usize] = Residual { to: arc.from, back: there, room: arc.flow, cost: -cost };
            *place = there;
        }
        let (price, excess, current) = (vec![0; nodes], vec![0; nodes], vec![0; nodes]);
        (Self { directions, begins, price, excess, current, active: VecDeque::new() }, places)
    }

    /// No direction with room has a reduced cost below −`error` after this; false: stopped before.
    fn refine(&mut self, error: i64, stop: &mut dyn FnMut() -> bool, steps: &mut u64) -> bool {
        let nodes = self.price.len() as u32;
        for node in 0..nodes {
            for at in self.begins[node as usize]..self.begins[node as usize + 1] {
                let Residual { to, room, cost, .. } = self.directions[at as usize];
                if room > 0 && cost + self.price[node as usize] - self.price[to as usize] < 0 {
                    self.push(node, at, room);
                }
            }
        }
        self.current.copy_from_slice(&self.begins[..nodes as usize]);
        self.active.clear();
        self.active.extend((0..nodes).filter(|node| self.excess[*node as usize] > 0));
        let mut emptied = 0_u64;
        while let Some(node) = self.active.pop_front() {
            if emptied.is_multiple_of(PROBE_EVERY) && stop() {
                return false;
            }
            emptied += 1;
            *steps += self.empty(node, error);
        }
        true
    }

    /// Pushes all that is too much at a node to others, lowering its price where that is needed; the pushes and relabels.
    fn empty(&mut self, node: u32, error: i64) -> u64 {
        let (at, end) = (node as usize, self.begins[node as usize + 1]);
        let mut steps = 0;
        while self.excess[at] > 0 {
            let current = self.current[at];
            steps += 1;
            if current == end {
                self.relabel(node, error);
                continue;
            }
            let Residual { to, room, cost, .. } = self.directions[current as usize];
            if room > 0 && cost + self.price[at] - self.price[to as usize] < 0 {
                let was_level = self.excess[to as usize] <= 0;
                self.push(node, current, room.min(self.excess[at]));
                if was_level && self.excess[to as usize] > 0 {
                    self.active.push_back(to);
                }
            } else {
                self.current[at] += 1;
            }
        }
        steps
    }

    fn relabel(&mut self, node: u32, error: i64) {
        let begin = self.begins[node as usize];
        let own = &self.directions[begin as usize..self.begins[node as usize + 1] as usize];
        let with_room = own.iter().filter(|direction| direction.room > 0);
        let best = with_room.map(|direction| self.price[direction.to as usize] - direction.cost).max();
        // What came to a node came by an arc, so there is a way back.
        self.price[node as usize] = best.expect("a node with excess has a direction with room") - error;
        self.current[node as usize] = begin;
    }

    fn push(&mut self, node: u32, direction: u32, flow: i64) {
        let Residual { to, back, .. } = self.directions[direction as usize];
        self.directions[direction as usize].room -= flow;
        self.directions[back as usize].room += flow;
        self.excess[node as usize] -= flow;
        self.excess[to as usize] += flow;
    }

    /// Whether each direction with room has a reduced cost of −`error` at least: of whole costs times more than there are nodes,
    /// within 1 no flow is cheaper.
    fn is_within(&self, error: i64) -> bool {
        let from = |node: usize| &self.directions[self.begins[node] as usize..self.begins[node + 1] as usize];
        let reduced =
            |node: usize, direction: &Residual| direction.cost + self.price[node] - self.price[direction.to as usize];
        (0..self.price.len()).all(|node| from(node).iter().all(|way| way.room == 0 || reduced(node, way) >= -error))
    }

    /// How much more the flow costs than the best, at most, by its prices.
    fn gap(&self, scale: i64) -> i128 {
        let mut sum = 0_i128;
        for node in 0..self.price.len() {
            for direction in &self.directions[self.begins[node] as usize..self.begins[node + 1] as usize] {
                let reduced = direction.cost + self.price[node] - self.price[direction.to as usize];
                if direction.room > 0 && reduced < 0 {
                    sum += i128::from(-reduced) * i128::from(direction.room);
                }
            }
        }
        // Rounded down: both costs are whole.
        sum / i128::from(scale)
    }
}

fn answer(problem: &MinCostProblem, arcs: &[Arc], places: &[u32], rooms: &[i64], steps: u64) -> MinCostFlow {
    let flow = |(arc, place): (&Arc, &u32)| match rooms.get(*place as usize) {
        Some(room) => arc.capacity - room,
        None => arc.flow,
    };
    let mut flows: Vec<i64> = arcs.iter().zip(places).map(flow).collect();
    let hub = problem.supplies().len() as u32;
    let over_hub = flows.split_off(problem.rows().len());
    let (mut short, mut unmet) = (0, 0);
    for (arc, flow) in arcs[problem.rows().len()..].iter().zip(over_hub) {
        *(if arc.to == hub { &mut short } else { &mut unmet }) += flow;
    }
    let cost = sums::cost(problem, &flows);
    MinCostFlow { flows, cost, short, unmet, cut: Vec::new(), optimal: false, gap: None, steps }
}
