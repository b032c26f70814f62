//! The primal network simplex, with blocks of arcs searched in turn for the one of worst reduced cost, and strongly feasible
//! trees (Cunningham, "A Network Simplex Method", 1976), by which it ends.

use super::problem::{ArcId, ArcRow, MinCostProblem, NodeId, UNLIMITED};
use super::tree::{ARTIFICIAL, Tree};
use super::{MinCostError, MinCostFlow, sums};
use std::collections::VecDeque;

/// Pivots between two looks at the probe.
const PROBE_EVERY: u64 = 64;

/// Where an arc stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
enum Stand {
    /// It is full.
    Full = -1,
    /// It is of the tree.
    Tree = 0,
    /// It carries nothing.
    Empty = 1,
}

/// What the search for arcs reads, side by side.
#[derive(Debug, Clone, Copy)]
struct Priced {
    cost: i64,
    from: u32,
    to: u32,
    stand: Stand,
}

/// The solver, with its tree of the last round.
#[derive(Debug, Clone, Default)]
pub struct Simplex {
    /// Where an arc of the problem is in the lists below. Those of the first round are mixed: neighbors there mostly begin at one
    /// node, and a block of the search is to see many.
    place: Vec<u32>,
    arcs: Vec<Priced>,
    capacity: Vec<i64>,
    flow: Vec<i64>,
    tree: Tree,
    /// Where the next search begins.
    next: usize,
}

/// The arc that comes into the tree; flow is pushed over it from `first` to `second`.
#[derive(Debug, Clone, Copy)]
struct Entering {
    arc: usize,
    first: u32,
    second: u32,
    reduced: i64,
}

/// The node whose arc to its parent leaves the tree.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    node: u32,
    /// It is on the way from `first` to the root.
    on_first: bool,
}

impl Simplex {
    /// Without an earlier round.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A cheapest flow, from the flow of the last round on. `stop` is looked at before the first and each 64th pivot; where it
    /// says so, the flow of the moment is the answer.
    ///
    /// # Errors
    /// [`MinCostError`]; the next round then starts anew.
    pub fn solve(
        &mut self,
        problem: &MinCostProblem,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<MinCostFlow, MinCostError> {
        let big = sums::artificial_cost(problem)?;
        self.take_over(problem, big);
        let (steps, optimal) = match self.search(stop) {
            Ok(searched) => searched,
            Err(error) => {
                *self = Self::new();
                return Err(error);
            }
        };
        let answer = self.answer(problem, optimal, steps);
        if optimal && (answer.short > 0 || answer.unmet > 0) {
            return cheapest(problem, answer, stop);
        }
        if cfg!(debug_assertions) && optimal {
            let checked = super::check(problem, &answer.flows, &self.tree.price);
            assert_eq!(checked, Ok(()), "the simplex's answer is a cheapest flow");
        }
        Ok(answer)
    }

    fn search(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<(u64, bool), MinCostError> {
        let (mut looked, mut steps) = (0_u64, 0_u64);
        let mut first = self.first_arcs().into_iter();
        while !(looked.is_multiple_of(PROBE_EVERY) && stop()) {
            looked += 1;
            let entering = match first.next() {
                Some(arc) => self.worst_in(arc, arc + 1).map(|(arc, reduced)| self.pushed_over(arc, reduced)),
                None => match self.entering() {
                    None => return Ok((steps, true)),
                    entering => entering,
                },
            };
            if let Some(entering) = entering {
                self.pivot(entering)?;
                steps += 1;
            }
        }
        Ok((steps, false))
    }

    /// What is tried first: the cheapest way out of each node that hangs on nothing yet, and so on the root. Those without supply
    /// come first, for the others' ways lead through them. Most of these arcs stay.
    fn first_arcs(&self) -> Vec<usize> {
        let mut cheapest: Vec<u32> = vec![ARTIFICIAL; self.tree.nodes()];
        for (at, arc) in self.arcs.iter().enumerate() {
            let from = arc.from as usize;
            if self.tree.arc[from] == ARTIFICIAL && self.tree.up[from] && self.capacity[at] > 0 {
                let known = self.arcs.get(cheapest[from] as usize);
                if known.is_none_or(|known| arc.cost < known.cost) {
                    cheapest[from] = at as u32;
                }
            }
        }
        let supplied = |node: &usize| self.tree.artificial_flow[*node] > 0;
        let known = (0..cheapest.len()).filter(|node| cheapest[*node] != ARTIFICIAL);
        let (last, first): (Vec<usize>, Vec<usize>) = known.partition(supplied);
        first.into_iter().chain(last).map(|node| cheapest[node] as usize).collect()
    }

    /// Arcs, capacities and supplies as they are now; flows and tree as far as they hold.
    fn take_over(&mut self, problem: &MinCostProblem, big: i64) {
        let (rows, nodes) = (problem.rows(), problem.supplies().len());
        if nodes < self.tree.nodes() || rows.len() < self.arcs.len() {
            *self = Self::new();
        }
        self.tree.resize(nodes);
        self.make_places(rows.len());
        for (at, (&ArcRow { from, to, cost, capacity }, &place)) in rows.iter().zip(&self.place).enumerate() {
            let (arc, from, to) = (&mut self.arcs[place as usize], from.0, to.0);
            self.capacity[place as usize] = capacity;
            if (arc.from, arc.to) == (from, to) && problem.has(at) {
                arc.cost = cost;
            } else {
                // New, removed, or its number was given out again.
                *arc = Priced { cost, from, to, stand: Stand::Empty };
            }
        }
        self.balance(problem);
        let arcs = &self.arcs;
        self.tree.rebuild(|arc| arcs[arc as usize].cost, big);
        self.next = 0;
    }

    /// Lists as long as the problem's.
    fn make_places(&mut self, arcs: usize) {
        let known = self.place.len();
        let step = (arcs - known).isqrt().max(1);
        self.place.resize(arcs, 0);
        let mut next = known as u32;
        for begin in 0..step {
            for at in (known + begin..arcs).step_by(step) {
                self.place[at] = next;
                next += 1;
            }
        }
        self.arcs.resize(arcs, Priced { cost: 0, from: 0, to: 0, stand: Stand::Empty });
        self.flow.resize(arcs, 0);
        self.capacity.resize(arcs, 0);
    }

    /// Flows by number of the problem's arcs.
    fn flows(&self) -> Vec<i64> {
        self.place.iter().map(|place| self.flow[*place as usize]).collect()
    }

    /// Flows that meet all supplies: arcs beside the tree stay empty or full, those of the tree take what is left. What does not
    /// fit goes over the root.
    fn balance(&mut self, problem: &MinCostProblem) {
        let mut left: Vec<i64> = problem.supplies().to_vec();
        left.push(0);
        for (at, arc) in self.arcs.iter_mut().enumerate() {
            let capacity = self.capacity[at];
            if arc.stand == Stand::Full && (capacity == UNLIMITED || capacity == 0) {
                arc.stand = Stand::Empty;
            }
            self.flow[at] = if arc.stand == Stand::Full { capacity } else { 0 };
            left[arc.from as usize] -= self.flow[at];
            left[arc.to as usize] += self.flow[at];
        }
        for node in self.tree.top_down().into_iter().rev() {
            let own = left[node as usize];
            let (arc, parent) = (self.tree.arc[node as usize] as usize, self.tree.parent[node as usize] as usize);
            let of_the_tree = self.arcs.get(arc).is_some_and(|arc| arc.stand == Stand::Tree);
            let sent = if of_the_tree { self.send_up(node, arc, own) } else { 0 };
            left[parent] += sent;
            let stays = self.arcs.get(arc).is_some_and(|arc| arc.stand == Stand::Tree);
            if !stays {
                self.tree.hang_on_root(node, own - sent);
            }
        }
    }

    /// What of a node's `own` goes to its parent. The arc leaves the tree where it can't take all, or no more (a tree is strongly
    /// feasible as long as each node could send more to the root).
    fn send_up(&mut self, node: u32, arc: usize, own: i64) -> i64 {
        let (up, capacity) = (self.tree.up[node as usize], self.capacity[arc]);
        let flow = if up { own } else { -own }.clamp(0, capacity);
        let sent = if up { flow } else { -flow };
        self.flow[arc] = flow;
        let could_send_more = if up { flow < capacity } else { flow > 0 };
        if sent != own || !could_send_more {
            self.arcs[arc].stand = if flow == 0 { Stand::Empty } else { Stand::Full };
        }
        sent
    }

    /// The arc of worst reduced cost in the first block that has one.
    fn entering(&mut self) -> Option<Entering> {
        let count = self.arcs.len();
        let block = count.isqrt().max(16);
        let (mut at, mut looked) = (self.next, 0);
        while looked < count {
            let end = (at + block).min(count);
            let found = self.worst_in(at, end);
            looked += end - at;
            at = if end == count { 0 } else { end };
            if let Some((arc, reduced)) = found {
                self.next = at;
                return Some(self.pushed_over(arc, reduced));
            }
        }
        None
    }

    fn pushed_over(&self, arc: usize, reduced: i64) -> Entering {
        let Priced { from, to, stand, .. } = self.arcs[arc];
        let (first, second) = if stand == Stand::Empty { (from, to) } else { (to, from) };
        Entering { arc, first, second, reduced }
    }

    fn worst_in(&self, begin: usize, end: usize) -> Option<(usize, i64)> {
        let price = &self.tree.price;
        let (mut worst, mut found) = (0, None);
        for (at, arc) in self.arcs[begin..end].iter().enumerate() {
            let reduced = arc.cost + price[arc.from as usize] - price[arc.to as usize];
            let gain = arc.stand as i64 * reduced;
            if gain < worst {
                (worst, found) = (gain, Some((begin + at, reduced)));
            }
        }
        found
    }

    fn pivot(&mut self, entering: Entering) -> Result<(), MinCostError> {
        let Entering { arc, first, second, reduced } = entering;
        let join = self.tree.join(first, second);
        let (delta, leaving) = self.leaving(&entering, join);
        if delta == UNLIMITED {
            let Priced { from, to, .. } = self.arcs[arc];
            return Err(MinCostError::NegativeCycle { from, to });
        }
        self.push(first, join, -delta);
        self.push(second, join, delta);
        let was_empty = self.arcs[arc].stand == Stand::Empty;
        self.flow[arc] += if was_empty { delta } else { -delta };
        let Some(Leaving { node, on_first }) = leaving else {
            self.arcs[arc].stand = if was_empty { Stand::Full } else { Stand::Empty };
            return Ok(());
        };
        let out = self.tree.arc[node as usize];
        if out != ARTIFICIAL {
            self.arcs[out as usize].stand = if self.flow[out as usize] == 0 { Stand::Empty } else { Stand::Full };
        }
        self.arcs[arc].stand = Stand::Tree;
        let (hook, on) = if on_first { (first, second) } else { (second, first) };
        let up = self.arcs[arc].from == hook;
        self.tree.rehang(node, hook, on, (arc as u32, up), reduced);
        Ok(())
    }

    /// How much may be pushed around, and whose arc ends it: of equal ones the last on the way from where both ways meet, over
    /// the entering arc, and back.
    fn leaving(&self, entering: &Entering, join: u32) -> (i64, Option<Leaving>) {
        let (mut delta, mut leaving) = (self.capacity[entering.arc], None);
        let mut node = entering.first;
        while node != join {
            let (flow, room) = self.flow_and_room(node);
            let most = if self.tree.up[node as usize] { flow } else { room };
            if most < delta {
                (delta, leaving) = (most, Some(Leaving { node, on_first: true }));
            }
            node = self.tree.parent[node as usize];
        }
        node = entering.second;
        while node != join {
            let (flow, room) = self.flow_and_room(node);
            let most = if self.tree.up[node as usize] { room } else { flow };
            if most <= delta {
                (delta, leaving) = (most, Some(Leaving { node, on_first: false }));
            }
            node = self.tree.parent[node as usize];
        }
        (delta, leaving)
    }

    /// What a node's arc to its parent carries, and how much more it could.
    fn flow_and_room(&self, node: u32) -> (i64, i64) {
        let arc = self.tree.arc[node as usize];
        if arc == ARTIFICIAL {
            return (self.tree.artificial_flow[node as usize], UNLIMITED);
        }
        let (flow, capacity) = (self.flow[arc as usize], self.capacity[arc as usize]);
        (flow, if capacity == UNLIMITED { UNLIMITED } else { capacity - flow })
    }

    /// So much more goes from the node up to `join`; below 0: down.
    fn push(&mut self, mut node: u32, join: u32, more: i64) {
        while node != join {
            let at = node as usize;
            let arc = self.tree.arc[at];
            let flow =
                if arc == ARTIFICIAL { &mut self.tree.artificial_flow[at] } else { &mut self.flow[arc as usize] };
            *flow += if self.tree.up[at] { more } else { -more };
            node = self.tree.parent[at];
        }
    }

    fn answer(&self, problem: &MinCostProblem, optimal: bool, steps: u64) -> MinCostFlow {
        let root = self.tree.root();
        let (mut short, mut unmet) = (0, 0);
        for node in 0..root as usize {
            if self.tree.arc[node] == ARTIFICIAL {
                *(if self.tree.up[node] { &mut short } else { &mut unmet }) += self.tree.artificial_flow[node];
            }
        }
        let flows = self.flows();
        let cost = sums::cost(problem, &flows);
        let gap = (!optimal && short == 0 && unmet == 0).then(|| self.bound(problem)).flatten();
        let gap = gap.map(|bound| cost - bound);
        MinCostFlow { flows, cost, short, unmet, cut: Vec::new(), optimal, gap, steps }
    }

    /// What every flow costs at least, by the prices of the moment.
    fn bound(&self, problem: &MinCostProblem) -> Option<i128> {
        let supplies = problem.supplies();
        let all: i64 = supplies.iter().filter(|supply| **supply > 0).sum();
        let no_cycles = self.arcs.iter().all(|arc| arc.cost >= 0);
        let prices = supplies.iter().zip(&self.tree.price);
        let mut bound: i128 = prices.map(|(supply, price)| -i128::from(*supply) * i128::from(*price)).sum();
        for (arc, capacity) in self.arcs.iter().zip(&self.capacity) {
            let reduced = arc.cost + self.tree.price[arc.from as usize] - self.tree.price[arc.to as usize];
            if reduced < 0 {
                // A cheapest flow without negative costs sends no unit around, so no arc carries more than all supply.
                let most = if no_cycles { (*capacity).min(all) } else { *capacity };
                if most == UNLIMITED {
                    return None;
                }
                bound += i128::from(reduced) * i128::from(most);
            }
        }
        Some(bound)
    }
}

/// The cheapest of the flows that meet as much supply as can be. `met` is one that does, at whatever cost.
///
/// A hub takes from each supply and gives to each demand what it likes, at more than the cost of any way: then all is met,
/// and what goes over the hub is what is short.
///
/// # Errors
/// [`MinCostError::CostTooLarge`]: costs are multiplied by the number of nodes once more.
pub(super) fn cheapest(
    problem: &MinCostProblem,
    met: MinCostFlow,
    stop: &mut dyn FnMut() -> bool,
) -> Result<MinCostFlow, MinCostError> {
    let (hub_cost, nodes) = (sums::artificial_cost(problem)?, problem.supplies().len());
    let mut with_hub = problem.clone();
    let surplus: i64 = problem.supplies().iter().sum();
    let sum = problem.supplies().iter().map(|supply| i128::from(supply.unsigned_abs())).sum();
    let hub = with_hub.add_node(-surplus).map_err(|_| MinCostError::SumTooLarge { sum })?;
    // The hub's cost is that of the dearest arc, times the nodes: what of it fits says what of the arc's does.
    let dear = |error| match error {
        MinCostError::CostTooLarge { most, .. } => {
            MinCostError::CostTooLarge { cost: hub_cost / (nodes as i64 + 2), nodes, most: most / (nodes as i64 + 2) }
        }
        other => other,
    };
    let too_large = |_| dear(MinCostError::CostTooLarge { cost: hub_cost, nodes, most: super::MAX_VALUE });
    let mut by_hub: Vec<(ArcId, bool)> = Vec::new();
    for (node, supply) in (0_u32..).map(NodeId).zip(problem.supplies()) {
        let (from, to) = if *supply > 0 { (node, hub) } else { (hub, node) };
        if *supply != 0 {
            let row = ArcRow { from, to, capacity: supply.abs(), cost: hub_cost };
            by_hub.push((with_hub.add_arc(row).map_err(too_large)?, *supply > 0));
        }
    }
    let mut whole = Simplex::new().solve(&with_hub, stop).map_err(dear)?;
    if !whole.optimal || whole.short > 0 || whole.unmet > 0 {
        return Ok(MinCostFlow { optimal: false, steps: met.steps + whole.steps, ..met });
    }
    let over_hub = |supply: bool| {
        let own = by_hub.iter().filter(|(_, own)| *own == supply);
        own.map(|(arc, _)| whole.flows[arc.at()]).sum::<i64>()
    };
    (whole.short, whole.unmet) = (over_hub(true), over_hub(false));
    let stuck: Vec<NodeId> = by_hub
        .iter()
        .filter(|(arc, own)| *own && whole.flows[arc.at()] > 0)
        .map(|(arc, _)| with_hub.rows()[arc.at()].from)
        .collect();
    for (arc, _) in &by_hub {
        // Numbers of removed arcs may have been used.
        if let Some(flow) = whole.flows.get_mut(arc.at()) {
            *flow = 0;
        }
    }
    whole.flows.truncate(problem.rows().len());
    whole.cost = sums::cost(problem, &whole.flows);
    whole.cut = reachable(problem, &whole.flows, stuck);
    whole.steps += met.steps;
    Ok(whole)
}

/// Nodes to which more could be sent from those.
fn reachable(problem: &MinCostProblem, flows: &[i64], from: Vec<NodeId>) -> Vec<NodeId> {
    let mut ways: Vec<Vec<u32>> = vec![Vec::new(); problem.supplies().len()];
    for (arc, row) in problem.arcs() {
        if flows[arc.at()] < row.capacity {
            ways[row.from.at()].push(row.to.0);
        }
        if flows[arc.at()] > 0 {
            ways[row.to.at()].push(row.from.0);
        }
    }
    let mut seen = vec![false; ways.len()];
    from.iter().for_each(|node| seen[node.at()] = true);
    let mut waiting: VecDeque<u32> = from.iter().map(|node| node.0).collect();
    while let Some(node) = waiting.pop_front() {
        for &to in &ways[node as usize] {
            if !std::mem::replace(&mut seen[to as usize], true) {
                waiting.push_back(to);
            }
        }
    }
    (0_u32..).zip(seen).filter(|(_, seen)| *seen).map(|(node, _)| NodeId(node)).collect()
}
