//! A state: where tasks are, which boxes flows pass, what is left of nodes and boxes, and what it costs.

use super::compiled::{ChainedProblem, End, FAR, FlowOf, NONE};
use crate::budget::Work;
use crate::place::Share;
use hintd_model::cluster::Resource;
use hintd_model::network::chains::BoxKind;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Boxes that a flow passes, in order.
pub(crate) type List = SmallVec<[u32; 3]>;

/// A state. Flows of tasks without a place are not there.
#[derive(Clone)]
pub(crate) struct SearchState<'g, 'p> {
    pub(crate) compiled: &'g ChainedProblem<'p>,
    /// By task: its slot, or [`NONE`].
    pub(crate) at: Vec<u32>,
    /// By flow.
    pub(crate) lists: Vec<List>,
    /// By slot.
    taken: Vec<Resource>,
    /// By group and slot, where groups are bounded.
    on_slot: BTreeMap<(u32, u32), u32>,
    in_rack: BTreeMap<(u32, u32), u32>,
    /// By box, bits/s.
    loads: Vec<u64>,
    /// bit/s × links.
    cost: u128,
}

impl<'g, 'p> SearchState<'g, 'p> {
    /// Nobody has a place.
    pub(crate) fn new(compiled: &'g ChainedProblem<'p>) -> Self {
        Self {
            compiled,
            at: vec![NONE; compiled.group_of.len()],
            lists: vec![List::new(); compiled.own.flows.len()],
            taken: vec![Resource::ZERO; compiled.slots.len()],
            on_slot: BTreeMap::new(),
            in_rack: BTreeMap::new(),
            loads: vec![0; compiled.own.boxes.len()],
            cost: 0,
        }
    }

    /// Puts tasks where a placement has them, as far as they may be there; the others to the slot with most room left
    /// that may take them, or nowhere. Lists are empty afterwards.
    pub(crate) fn place_as(&mut self, groups: &[Vec<Share>]) {
        let mut next = 0_u32;
        let mut homeless = Vec::new();
        for (group, asked) in self.compiled.problem.groups.iter().enumerate() {
            let shares = groups.get(group).map_or(&[][..], Vec::as_slice);
            let mut nodes = shares.iter().flat_map(|share| std::iter::repeat_n(share.node, share.count as usize));
            for task in next..next + asked.count {
                let Some(node) = nodes.next() else { continue };
                match self.compiled.slot_of(node).filter(|&slot| self.fits(task, slot)) {
                    Some(slot) => self.put(task, slot),
                    None => homeless.push(task),
                }
            }
            next += asked.count;
        }
        for task in homeless {
            let open = (0..self.compiled.slots.len() as u32).filter(|&slot| self.fits(task, slot));
            if let Some(slot) = open.max_by_key(|&slot| (self.left(slot).memory_mb(), std::cmp::Reverse(slot))) {
                self.put(task, slot);
            }
        }
    }

    /// Puts a task where its flows to ends that have a place cost least, of equal slots to the one with most room left;
    /// nowhere if it fits nowhere. Boxes are those that serve best, whatever is left of them.
    pub(crate) fn seat_cheapest(&mut self, task: u32) {
        let compiled = self.compiled;
        let cost = |point: u32, slot: u32| -> u128 {
            let each = compiled.own.flows_of[task as usize].iter().map(|&at| {
                let flow = &compiled.own.flows[at as usize];
                let (other, sends) = if flow.from == End::Task(task) { (flow.to, true) } else { (flow.from, false) };
                let local = matches!(other, End::Fixed { node, .. } if compiled.slots[slot as usize].node == node);
                let ends = if sends { (point, self.point(other)) } else { (self.point(other), point) };
                let kinds = compiled.kinds(flow);
                let hops = if kinds.is_empty() && local { 0 } else { 2 + compiled.hops_through(ends, kinds) };
                u128::from(flow.rate) * u128::from(hops)
            });
            each.sum()
        };
        let open = (0..compiled.slots.len() as u32).filter(|&slot| self.fits(task, slot));
        let rated = open.map(|slot| {
            let left = std::cmp::Reverse(self.left(slot).memory_mb());
            (cost(compiled.own.point_of[slot as usize], slot), left, slot)
        });
        if let Some((.., slot)) = rated.min() {
            self.put(task, slot);
        }
    }

    /// What is left of a slot.
    pub(crate) fn left(&self, slot: u32) -> Resource {
        self.compiled.slots[slot as usize].room.minus(&self.taken[slot as usize])
    }

    /// Whether a task may go to a slot: candidate, room, bounds; its own place is left out of account.
    pub(crate) fn fits(&self, task: u32, slot: u32) -> bool {
        let Self { compiled, .. } = self;
        let group = compiled.group_of[task as usize];
        let bounds = &compiled.problem.groups[group as usize];
        let count = |of: &BTreeMap<(u32, u32), u32>, key: u32| of.get(&(group, key)).copied().unwrap_or(0);
        let rack = compiled.slots[slot as usize].rack;
        let own_rack = match self.at[task as usize] {
            NONE => false,
            here => compiled.slots[here as usize].rack == rack,
        };
        compiled.allowed(group as usize, slot)
            && compiled.fits(&self.taken[slot as usize], &bounds.size, slot)
            && (bounds.max_per_node == u32::MAX || count(&self.on_slot, slot) < bounds.max_per_node)
            && (bounds.max_per_rack == u32::MAX || own_rack || count(&self.in_rack, rack) < bounds.max_per_rack)
    }

    /// Puts a task that has no place on a slot where it fits. Its flows still have no boxes.
    fn put(&mut self, task: u32, slot: u32) {
        let before = self.cost_of(task);
        self.take(task, slot);
        self.cost = self.cost + self.cost_of(task) - before;
    }

    fn take(&mut self, task: u32, slot: u32) {
        let group = self.compiled.group_of[task as usize];
        let bounds = &self.compiled.problem.groups[group as usize];
        let from = std::mem::replace(&mut self.at[task as usize], slot);
        if from != NONE {
            self.taken[from as usize] = self.taken[from as usize].minus(&bounds.size);
        }
        self.taken[slot as usize] = self.taken[slot as usize].plus(&bounds.size);
        if bounds.max_per_node == u32::MAX && bounds.max_per_rack == u32::MAX {
            return;
        }
        let rack = |slot: u32| self.compiled.slots[slot as usize].rack;
        for (of, old, new) in [(&mut self.on_slot, from, slot), (&mut self.in_rack, NONE, rack(slot))] {
            *of.entry((group, new)).or_default() += 1;
            if let Some(count) = of.get_mut(&(group, old)) {
                *count -= 1;
            }
        }
        if from != NONE
            && let Some(count) = self.in_rack.get_mut(&(group, rack(from)))
        {
            *count -= 1;
        }
    }

    /// Where an end is; [`NONE`]: nowhere yet, or cut off.
    pub(crate) fn point(&self, end: End) -> u32 {
        match end {
            End::Fixed { point, .. } => point,
            End::Task(task) => match self.at[task as usize] {
                NONE => NONE,
                slot => self.compiled.own.point_of[slot as usize],
            },
        }
    }

    /// Whether both ends have a place.
    pub(crate) fn is_there(&self, flow: &FlowOf) -> bool {
        [flow.from, flow.to].iter().all(|end| !matches!(end, End::Task(task) if self.at[*task as usize] == NONE))
    }

    /// Whether both ends are on one node.
    pub(crate) fn is_local(&self, flow: &FlowOf) -> bool {
        let node = |end: End| match end {
            End::Fixed { node, .. } => Some(node),
            End::Task(task) => self.compiled.slots.get(self.at[task as usize] as usize).map(|slot| slot.node),
        };
        node(flow.from) == node(flow.to)
    }

    /// Links that a flow passes with a list.
    pub(crate) fn hops_by(&self, flow: &FlowOf, list: &[u32]) -> u32 {
        if list.is_empty() && self.is_local(flow) {
            return 0;
        }
        let stops = list.iter().map(|&index| self.compiled.own.boxes[index as usize].point);
        let mut here = self.point(flow.from);
        let mut hops = 2;
        for stop in stops.chain([self.point(flow.to)]) {
            hops += self.compiled.hops(here, stop);
            here = stop;
        }
        hops
    }

    fn flow_cost(&self, at: u32) -> u128 {
        let flow = &self.compiled.own.flows[at as usize];
        if !self.is_there(flow) {
            return 0;
        }
        u128::from(flow.rate) * u128::from(self.hops_by(flow, &self.lists[at as usize]))
    }

    fn cost_of(&self, task: u32) -> u128 {
        self.compiled.own.flows_of[task as usize].iter().map(|&flow| self.flow_cost(flow)).sum()
    }

    /// Cost of the state, bit/s × links.
    pub(crate) const fn cost(&self) -> u128 {
        self.cost
    }

    /// What a box would have left if a flow left it alone, bits/s.
    fn box_room(&self, index: u32, without: &[u32], rate: u64) -> u64 {
        let own = if without.contains(&index) { rate } else { 0 };
        (self.compiled.own.boxes[index as usize].room + own).saturating_sub(self.loads[index as usize])
    }

    /// Gives a flow other boxes.
    pub(crate) fn set_list(&mut self, at: u32, list: List) {
        let before = self.flow_cost(at);
        let rate = self.compiled.own.flows[at as usize].rate;
        for &index in &self.lists[at as usize] {
            self.loads[index as usize] -= rate;
        }
        for &index in &list {
            self.loads[index as usize] += rate;
        }
        self.lists[at as usize] = list;
        self.cost = self.cost + self.flow_cost(at) - before;
    }

    /// Boxes of a type that a flow may pass (Eq. 4), its own ones among them.
    pub(crate) fn choices(&self, at: u32, kind: BoxKind) -> impl Iterator<Item = u32> {
        let rate = self.compiled.own.flows[at as usize].rate;
        let own = &self.lists[at as usize];
        self.compiled.of_kind(kind).filter(move |&index| self.box_room(index, own, rate) >= rate)
    }

    /// The list of fewest hops for a flow whose ends have a place; `None`: some type has no box left that is reached.
    pub(crate) fn best_list(&self, at: u32) -> Option<List> {
        let compiled = self.compiled;
        let flow = &compiled.own.flows[at as usize];
        let mut ways: Vec<(u32, u32, List)> = vec![(0, self.point(flow.from), List::new())];
        for &kind in compiled.kinds(flow) {
            let mut next = Vec::new();
            for index in self.choices(at, kind) {
                let stop = compiled.own.boxes[index as usize].point;
                let best = ways.iter().map(|(hops, from, list)| (hops + compiled.hops(*from, stop), list));
                if let Some((hops, list)) = best.min().filter(|(hops, _)| *hops < FAR) {
                    let mut list = list.clone();
                    list.push(index);
                    next.push((hops, stop, list));
                }
            }
            ways = next;
        }
        let end = self.point(flow.to);
        let best = ways.into_iter().map(|(hops, from, list)| (hops + compiled.hops(from, end), list)).min();
        best.filter(|(hops, list)| *hops < FAR || list.is_empty()).map(|(_, list)| list)
    }

    /// Gives every flow that is there its boxes: `choose` proposes one of each type's, [`Self::best_list`] helps where
    /// that leads nowhere. The largest first. A flow that finds none is told, and what was given stays. Once `work` says to
    /// stop, the others get none.
    ///
    /// # Errors
    /// The flow that finds none.
    pub(crate) fn give_lists(
        &mut self,
        work: &dyn Work,
        mut choose: impl FnMut(&Self, u32) -> Option<List>,
    ) -> Result<(), u32> {
        let compiled = self.compiled;
        let mut order: Vec<u32> = (0..compiled.own.flows.len() as u32)
            .filter(|&at| {
                let flow = &compiled.own.flows[at as usize];
                !compiled.kinds(flow).is_empty() && self.is_there(flow) && self.lists[at as usize].is_empty()
            })
            .collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(compiled.own.flows[at as usize].rate), at));
        for at in order {
            if !work.work(self.list_work(at)) {
                break;
            }
            let list = choose(self, at).or_else(|| self.best_list(at));
            match list {
                Some(list) => self.set_list(at, list),
                None if compiled.own.classes[compiled.own.flows[at as usize].class as usize].open => {
                    let list = self.open_list(at);
                    self.set_list(at, list);
                }
                None => return Err(at),
            }
        }
        Ok(())
    }

    /// What finding boxes for a flow takes: from each of a type to each of the next.
    pub(crate) fn list_work(&self, at: u32) -> u64 {
        let boxes = |kind: &BoxKind| self.compiled.own.chains.of_kind(*kind).len() as u64;
        let kinds = self.compiled.kinds(&self.compiled.own.flows[at as usize]);
        let steps = kinds.windows(2).map(|pair| boxes(&pair[0]) * boxes(&pair[1]));
        kinds.iter().map(boxes).sum::<u64>() + steps.sum::<u64>() + 1
    }

    /// Takes all boxes from all flows.
    pub(crate) fn clear_lists(&mut self) {
        for at in 0..self.lists.len() as u32 {
            if !self.lists[at as usize].is_empty() {
                self.set_list(at, List::new());
            }
        }
    }

    /// Of a chain that is open: of each type the nearest box that has room, none where none has.
    fn open_list(&self, at: u32) -> List {
        let flow = &self.compiled.own.flows[at as usize];
        let mut here = self.point(flow.from);
        let mut list = List::new();
        for &kind in self.compiled.kinds(flow) {
            let place = |index: u32| self.compiled.own.boxes[index as usize].point;
            let near = self.choices(at, kind).min_by_key(|&index| (self.compiled.hops(here, place(index)), index));
            if let Some(index) = near.filter(|&index| self.compiled.hops(here, place(index)) < FAR) {
                list.push(index);
                here = place(index);
            }
        }
        list
    }

    /// Flows, one switch of each at a time, to the best of Eq. 4's candidates by Eqs 5 and 7, as long as one gains. The
    /// number of moves.
    pub(crate) fn improve_lists(&mut self, mut step: impl FnMut() -> bool) -> u64 {
        let mut moves = 0;
        loop {
            let before = moves;
            for at in 0..self.lists.len() as u32 {
                for position in 0..self.lists[at as usize].len() {
                    if !step() {
                        return moves;
                    }
                    moves += u64::from(self.improve_one(at, position));
                }
            }
            if moves == before {
                return moves;
            }
        }
    }

    /// One switch of one flow to the best candidate, if that gains.
    fn improve_one(&mut self, at: u32, position: usize) -> bool {
        let compiled = self.compiled;
        let flow = &compiled.own.flows[at as usize];
        let list = &self.lists[at as usize];
        let place = |index: u32| compiled.own.boxes[index as usize].point;
        let before = if position == 0 { self.point(flow.from) } else { place(list[position - 1]) };
        let after = list.get(position + 1).map_or_else(|| self.point(flow.to), |&next| place(next));
        let hops = |index: u32| compiled.hops(before, place(index)) + compiled.hops(place(index), after);
        let (own, kind) = (list[position], compiled.own.boxes[list[position] as usize].kind);
        let best = self.choices(at, kind).min_by_key(|&index| (hops(index), index));
        let Some(best) = best.filter(|&best| hops(best) < hops(own)) else { return false };
        let mut list = list.clone();
        list[position] = best;
        self.set_list(at, list);
        true
    }

    /// Moves a task to a slot where it fits, the end switches of its flows chosen anew, if the state costs less then.
    pub(crate) fn try_move(&mut self, task: u32, slot: u32) -> bool {
        let (cost, from) = (self.cost, self.at[task as usize]);
        let undo = self.relocate(task, slot);
        if self.cost < cost {
            return true;
        }
        for (at, list) in undo.into_iter().rev() {
            self.set_list(at, list);
        }
        let before = self.cost_of(task);
        self.take(task, from);
        self.cost = self.cost + self.cost_of(task) - before;
        false
    }

    /// Moves a task, whatever comes of it, the end switches of its flows chosen anew; the lists that changed.
    pub(crate) fn relocate(&mut self, task: u32, slot: u32) -> Vec<(u32, List)> {
        self.put(task, slot);
        let mut undo = Vec::new();
        let compiled = self.compiled;
        for &at in &compiled.own.flows_of[task as usize] {
            let len = self.lists[at as usize].len();
            let position =
                if compiled.own.flows[at as usize].from == End::Task(task) { 0 } else { len.saturating_sub(1) };
            if len > 0 {
                let list = self.lists[at as usize].clone();
                if self.improve_one(at, position) {
                    undo.push((at, list));
                }
            }
        }
        undo
    }

    /// Where tasks are, by group; within a group in the order of tasks.
    pub(crate) fn shares(&self) -> Vec<Vec<Share>> {
        let mut groups: Vec<Vec<Share>> = vec![Vec::new(); self.compiled.problem.groups.len()];
        let mut known: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (&group, &slot) in self.compiled.group_of.iter().zip(&self.at).filter(|(_, slot)| **slot != NONE) {
            let shares = &mut groups[group as usize];
            let at = *known.entry((group, slot)).or_insert(shares.len());
            match shares.get_mut(at) {
                Some(share) => share.count += 1,
                None => shares.push(Share { node: self.compiled.slots[slot as usize].node, count: 1 }),
            }
        }
        groups
    }

    /// Mean hops of flows, weighted by rate; 0 without flows.
    pub(crate) fn mean_hops(&self) -> f64 {
        let there = self.compiled.own.flows.iter().filter(|flow| self.is_there(flow));
        let rate: u128 = there.map(|flow| u128::from(flow.rate)).sum();
        if rate == 0 { 0.0 } else { self.cost as f64 / rate as f64 }
    }

    /// What is taken of a box, bits/s.
    pub(crate) fn box_load(&self, index: u32) -> u64 {
        self.loads[index as usize]
    }
}
