//! The state that annealing walks: containers on a shortlist of nodes, with costs that follow every move.
//!
//! Togetherness is kept as containers per attachment switch and, for each switch, the hops from it to all
//! containers: a move reads two of those sums and one table entry, never a pair of containers.

use super::compiled::ContainerProblem;
use super::cost::{Norms, PREFERENCE, UNPLACED};
use super::cover::Cover;
use crate::place::Share;
use hintd_model::cluster::Resource;
use hintd_model::solve::anneal::Landscape;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Not on any node.
pub(super) const NOWHERE: u32 = u32::MAX;

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A container goes elsewhere (or, from [`NOWHERE`], anywhere).
    Move { container: u32, from: u32, to: u32 },
    /// Two containers of different groups change places.
    Swap { one: u32, other: u32 },
}

/// Containers on nodes.
#[derive(Debug, Clone)]
pub(super) struct SearchState<'g> {
    pub(super) compiled: &'g ContainerProblem<'g>,
    norms: Norms,
    /// Slot by container; containers of a group are consecutive.
    pub(super) at: Vec<u32>,
    /// Containers by group and slot.
    count: Vec<u32>,
    /// Containers by slot.
    used: Vec<u32>,
    /// Taken by slot, sizes summed.
    taken: Vec<Resource>,
    /// Containers by group and rack.
    in_rack: Vec<u32>,
    /// Containers by switch, fixed ones included.
    edge_count: Vec<u32>,
    /// By switch: hops from it to all containers, fixed ones included.
    field: Vec<u64>,
    cover: Vec<Cover<'g>>,
    hops: u64,
    nodes_used: u32,
    rise: f64,
    placed: u32,
    unpreferred: i64,
}

impl<'g> SearchState<'g> {
    /// Nothing placed.
    pub(super) fn new(compiled: &'g ContainerProblem<'g>, norms: Norms) -> Self {
        let (slots, edges, groups) = (compiled.slots.len(), compiled.switches.len(), compiled.problem.groups.len());
        let mut search_state = Self {
            compiled,
            norms,
            at: vec![NOWHERE; compiled.group_of.len()],
            count: vec![0; groups * slots],
            used: vec![0; slots],
            taken: vec![Resource::ZERO; slots],
            in_rack: vec![0; groups * compiled.racks],
            edge_count: vec![0; edges],
            field: vec![0; edges],
            cover: compiled.problem.groups.iter().map(|group| Cover::new(&group.input)).collect(),
            hops: 0,
            nodes_used: 0,
            rise: 0.0,
            placed: 0,
            unpreferred: 0,
        };
        for (at, switch) in compiled.switches.iter().enumerate().filter(|(_, switch)| switch.anchored > 0) {
            search_state.edge_count[at] += switch.anchored;
            search_state.spread_field(at, i64::from(switch.anchored));
        }
        search_state
    }

    /// The cost of the present state.
    pub(super) fn cost(&self) -> f64 {
        let (blocks, replicas) = self.covered();
        let locality = if self.norms.input > 0.0 { self.norms.locality(blocks, replicas) } else { 0.0 };
        let togetherness = self.norms.togetherness(self.hops);
        let balance = self.norms.balance(self.nodes_used, self.rise);
        let unplaced = (self.norms.containers - f64::from(self.placed)) / self.norms.containers;
        let preference = self.unpreferred as f64 / self.norms.containers;
        self.norms.value(togetherness, locality, balance) + UNPLACED * unplaced + PREFERENCE * preference
    }

    fn covered(&self) -> (u64, u64) {
        self.cover.iter().fold((0, 0), |(blocks, replicas), cover| (blocks + cover.blocks, replicas + cover.replicas))
    }

    fn group(&self, container: u32) -> usize {
        self.compiled.group_of[container as usize] as usize
    }

    /// Whether a container of `group` may be added to `slot`, one of `leaving` being on its way out of `from`.
    fn fits(&self, group: usize, slot: u32, leaving: Option<(usize, u32)>) -> bool {
        let compiled = self.compiled;
        let (at, bounds) = (slot as usize, &compiled.problem.groups[group]);
        if !compiled.allowed(group, slot) {
            return false;
        }
        let mut taken = self.taken[at];
        let (mut on_node, mut in_rack) = (self.count[group * compiled.slots.len() + at], 0);
        let rack = compiled.slots[at].rack as usize;
        if bounds.max_per_rack != u32::MAX {
            in_rack = self.in_rack[group * compiled.racks + rack];
        }
        if let Some((other, from)) = leaving.filter(|(_, from)| *from != NOWHERE) {
            if from == slot {
                taken = taken.minus(&compiled.problem.groups[other].size);
                on_node -= u32::from(other == group);
            }
            if other == group && in_rack > 0 && compiled.slots[from as usize].rack as usize == rack {
                in_rack -= 1;
            }
        }
        on_node < bounds.max_per_node && in_rack < bounds.max_per_rack && compiled.fits(&taken, &bounds.size, slot)
    }

    /// Whether a container may go to `slot` from where it is.
    pub(super) fn may_move(&self, container: u32, slot: u32) -> bool {
        let (group, from) = (self.group(container), self.at[container as usize]);
        from != slot && self.fits(group, slot, Some((group, from)))
    }

    fn may_swap(&self, one: u32, other: u32) -> bool {
        let (g, h) = (self.group(one), self.group(other));
        let (a, b) = (self.at[one as usize], self.at[other as usize]);
        g != h
            && a != b
            && a != NOWHERE
            && b != NOWHERE
            && self.fits(g, b, Some((h, b)))
            && self.fits(h, a, Some((g, a)))
    }

    fn move_delta(&self, container: u32, from: u32, to: u32) -> f64 {
        let (group, slots) = (self.group(container), self.compiled.slots.len());
        let arriving = self.count[group * slots + to as usize] == 0;
        let leaving = from != NOWHERE && self.count[group * slots + from as usize] == 1;
        let locality = if self.norms.input > 0.0 && (arriving || leaving) {
            let blocks = |slot: u32, really: bool| if really { self.compiled.blocks(group, slot) } else { &[] };
            let (blocks, replicas) = self.cover[group].change(blocks(from, leaving), blocks(to, arriving));
            self.norms.locality_change(blocks, replicas)
        } else {
            0.0
        };
        let nodes =
            i64::from(self.used[to as usize] == 0) - i64::from(from != NOWHERE && self.used[from as usize] == 1);
        let balance = (share(-nodes as f64, self.norms.nodes)
            + share(self.rise_delta(group, from, to), self.norms.containers))
            / 2.0;
        let togetherness = self.hops_delta(from, to) as f64 / self.norms.hops.max(1.0);
        let unplaced = if from == NOWHERE { -UNPLACED / self.norms.containers } else { 0.0 };
        let preference = self.preference_delta(group, from, to) as f64 / self.norms.containers;
        self.norms.value(togetherness, locality, balance) + unplaced + PREFERENCE * preference
    }

    fn hops_delta(&self, from: u32, to: u32) -> i64 {
        let edge = |slot: u32| self.compiled.slots[slot as usize].switch as usize;
        let arriving = self.field[edge(to)] as i64;
        if from == NOWHERE {
            return arriving;
        }
        let apart = i64::from(self.compiled.own.hops[edge(from) * self.compiled.switches.len() + edge(to)]);
        arriving - apart - self.field[edge(from)] as i64
    }

    fn rise_delta(&self, group: usize, from: u32, to: u32) -> f64 {
        let size = &self.compiled.problem.groups[group].size;
        let square = |slot: u32, taken: &Resource| self.compiled.load(slot as usize, taken).powi(2);
        let before = &self.taken[to as usize];
        let mut delta = square(to, &before.plus(size)) - square(to, before);
        if from != NOWHERE {
            let before = &self.taken[from as usize];
            delta += square(from, &before.minus(size)) - square(from, before);
        }
        delta
    }

    fn preference_delta(&self, group: usize, from: u32, to: u32) -> i64 {
        let (compiled, asked) = (self.compiled, &self.compiled.problem.groups[group]);
        let mut delta = 0;
        if asked.spread {
            let on = |slot: u32| self.count[group * compiled.slots.len() + slot as usize];
            delta += i64::from(on(to) >= 1) - i64::from(from != NOWHERE && on(from) > 1);
        }
        if asked.together {
            let rack = |slot: u32| compiled.slots[slot as usize].rack as usize;
            let racks = &self.in_rack[group * compiled.racks..][..compiled.racks];
            let used = racks.iter().filter(|count| **count > 0).count() as i64;
            let mut after = used;
            if from != NOWHERE && rack(from) != rack(to) && racks[rack(from)] == 1 {
                after -= 1;
            }
            after += i64::from(racks[rack(to)] == 0);
            delta += (after - 1).max(0) - (used - 1).max(0);
        }
        delta
    }

    /// Puts a container elsewhere; the inverse is the same with `from` and `to` exchanged.
    pub(super) fn relocate(&mut self, container: u32, from: u32, to: u32) {
        let group = self.group(container);
        if to == NOWHERE {
            self.hops = (self.hops as i64 - self.hops_delta(NOWHERE, from)) as u64;
        } else {
            self.unpreferred += self.preference_delta(group, from, to);
            self.hops = (self.hops as i64 + self.hops_delta(from, to)) as u64;
        }
        if from != NOWHERE {
            self.leave(group, from);
        }
        if to == NOWHERE {
            self.unpreferred -= self.preference_delta(group, NOWHERE, from);
        } else {
            self.enter(group, to);
        }
        self.at[container as usize] = to;
    }

    fn enter(&mut self, group: usize, slot: u32) {
        let compiled = self.compiled;
        let (at, size) = (slot as usize, &compiled.problem.groups[group].size);
        let taken = self.taken[at].plus(size);
        self.rise += compiled.load(at, &taken).powi(2) - compiled.load(at, &self.taken[at]).powi(2);
        self.taken[at] = taken;
        self.nodes_used += u32::from(self.used[at] == 0);
        self.used[at] += 1;
        self.placed += 1;
        let count = &mut self.count[group * compiled.slots.len() + at];
        *count += 1;
        if *count == 1 {
            self.cover[group].add(compiled.blocks(group, slot));
        }
        self.in_rack[group * compiled.racks + compiled.slots[at].rack as usize] += 1;
        let edge = compiled.slots[at].switch as usize;
        self.edge_count[edge] += 1;
        self.spread_field(edge, 1);
    }

    fn leave(&mut self, group: usize, slot: u32) {
        let compiled = self.compiled;
        let (at, size) = (slot as usize, &compiled.problem.groups[group].size);
        let taken = self.taken[at].minus(size);
        self.rise += compiled.load(at, &taken).powi(2) - compiled.load(at, &self.taken[at]).powi(2);
        self.taken[at] = taken;
        self.used[at] -= 1;
        self.nodes_used -= u32::from(self.used[at] == 0);
        self.placed -= 1;
        let count = &mut self.count[group * compiled.slots.len() + at];
        *count -= 1;
        if *count == 0 {
            self.cover[group].remove(compiled.blocks(group, slot));
        }
        self.in_rack[group * compiled.racks + compiled.slots[at].rack as usize] -= 1;
        let edge = compiled.slots[at].switch as usize;
        self.edge_count[edge] -= 1;
        self.spread_field(edge, -1);
    }

    /// `count` more containers at `edge`, as every switch sees them.
    fn spread_field(&mut self, edge: usize, count: i64) {
        let row = self.compiled.hops_from(edge);
        for (field, &hops) in self.field.iter_mut().zip(row) {
            *field = field.wrapping_add_signed(i64::from(hops) * count);
        }
    }

    /// Where containers are, by group, nodes in the order of each one's first task.
    pub(super) fn shares(&self) -> Vec<Vec<Share>> {
        let mut groups: Vec<Vec<Share>> = vec![Vec::new(); self.compiled.problem.groups.len()];
        let mut place: Vec<Option<usize>> = vec![None; self.count.len()];
        for (container, &slot) in self.at.iter().enumerate().filter(|(_, slot)| **slot != NOWHERE) {
            let group = self.compiled.group_of[container] as usize;
            let shares = &mut groups[group];
            let share = place[group * self.compiled.slots.len() + slot as usize].get_or_insert(shares.len());
            match shares.get_mut(*share) {
                Some(share) => share.count += 1,
                None => shares.push(Share { node: self.compiled.slots[slot as usize].node, count: 1 }),
            }
        }
        groups
    }

    /// Whether the container before it is of another group.
    pub(super) fn first_of_its_group(&self, container: u32) -> bool {
        let at = container as usize;
        at == 0 || self.compiled.group_of[at] != self.compiled.group_of[at - 1]
    }

    /// The first container of the same group in the same place stands for all of them.
    fn repeats(&self, container: u32) -> bool {
        !self.first_of_its_group(container) && self.at[container as usize] == self.at[container as usize - 1]
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Landscape for SearchState<'_> {
    type Move = Step;

    fn propose(&mut self, random: &mut ChaCha8Rng) -> Option<Step> {
        let containers = self.at.len() as u32;
        let container = random.random_range(0..containers);
        let kind = random.random_range(0..8_u32);
        if kind == 0 && self.compiled.problem.groups.len() > 1 {
            let other = random.random_range(0..containers);
            return self.may_swap(container, other).then_some(Step::Swap { one: container, other });
        }
        // Half of the moves go to the rack of another container: that is where togetherness is gained.
        let beside = self.at[random.random_range(0..containers) as usize];
        let to = if kind < 4 && beside != NOWHERE {
            let near = &self.compiled.switches[self.compiled.slots[beside as usize].switch as usize].slots;
            near[random.random_range(0..near.len())]
        } else {
            random.random_range(0..self.compiled.slots.len() as u32)
        };
        let from = self.at[container as usize];
        self.may_move(container, to).then_some(Step::Move { container, from, to })
    }

    fn delta(&mut self, step: Step) -> f64 {
        match step {
            Step::Move { container, from, to } => self.move_delta(container, from, to),
            Step::Swap { one, other } => {
                let (a, b) = (self.at[one as usize], self.at[other as usize]);
                let first = self.move_delta(one, a, b);
                self.relocate(one, a, b);
                let second = self.move_delta(other, b, a);
                self.relocate(one, b, a);
                first + second
            }
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Move { container, from, to } => self.relocate(container, from, to),
            Step::Swap { one, other } => {
                let (a, b) = (self.at[one as usize], self.at[other as usize]);
                self.relocate(one, a, b);
                self.relocate(other, b, a);
            }
        }
    }

    fn undo(&mut self, step: Step) {
        match step {
            Step::Move { container, from, to } => self.relocate(container, to, from),
            swap @ Step::Swap { .. } => self.apply(swap),
        }
    }

    fn neighbors(&self) -> u64 {
        let containers = self.at.len() as u64;
        let swaps = if self.compiled.problem.groups.len() > 1 { containers * containers } else { 0 };
        containers * self.compiled.slots.len() as u64 + swaps
    }

    fn neighbor(&self, number: u64) -> Option<Step> {
        let (containers, slots) = (self.at.len() as u64, self.compiled.slots.len() as u64);
        if let Some(swap) = number.checked_sub(containers * slots) {
            let (one, other) = ((swap / containers) as u32, (swap % containers) as u32);
            let fresh = one < other && !self.repeats(one) && !self.repeats(other);
            return (fresh && self.may_swap(one, other)).then_some(Step::Swap { one, other });
        }
        let (container, to) = ((number / slots) as u32, (number % slots) as u32);
        let from = self.at[container as usize];
        (!self.repeats(container) && self.may_move(container, to)).then_some(Step::Move { container, from, to })
    }
}
