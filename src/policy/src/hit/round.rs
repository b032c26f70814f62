//! One round of §5.1: switches of flows, then tasks against servers.

use crate::budget::{Budget, Work};
use crate::chained::{End, FAR, NONE, SearchState};
use crate::load::kinds;
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::solve::matching::{Market, matching};
use std::collections::BTreeMap;

/// Preferences of one round, frozen: what tasks and servers think of each other in one state.
pub(super) struct RoundPreferences {
    /// Tasks that have a place.
    pub(super) tasks: Vec<u32>,
    /// By position in `tasks`: slots, best first.
    pub(super) preferences: Vec<Vec<u32>>,
    pub(super) sizes: Vec<[u64; KINDS_MAX]>,
    /// By slot.
    pub(super) rooms: Vec<[u64; KINDS_MAX]>,
    /// By position in `tasks` and slot: rate of the task's flows whose next stop hangs on the slot's switch.
    kept: Vec<Vec<u64>>,
}

impl RoundPreferences {
    /// Eq. 10 with the end switch chosen anew for the tasks; for a server the traffic that it would keep below it. `None`:
    /// `work` said to stop.
    pub(super) fn of(search_state: &SearchState<'_, '_>, work: &dyn Work) -> Option<Self> {
        let compiled = search_state.compiled;
        let counted = kinds(compiled.problem.snapshot);
        let row = |resource: &hintd_model::cluster::Resource| {
            let mut row = resource.0;
            row[counted..].fill(0);
            row
        };
        let tasks: Vec<u32> =
            (0..search_state.at.len() as u32).filter(|&task| search_state.at[task as usize] != NONE).collect();
        let (mut preferences, mut kept) = (Vec::new(), Vec::new());
        for &task in &tasks {
            let pulls = Pulls::of(search_state, task);
            if !work.work(pulls.work()) {
                return None;
            }
            let own = search_state.at[task as usize];
            let group = compiled.group_of[task as usize];
            let by_point = pulls.by_point();
            let mut ranked: Vec<(u128, bool, u32)> = (0..compiled.slots.len() as u32)
                .filter(|&slot| compiled.allowed(group as usize, slot))
                .map(|slot| (pulls.cost(&by_point, slot), slot != own, slot))
                .collect();
            ranked.sort_unstable();
            preferences.push(ranked.into_iter().map(|(.., slot)| slot).collect());
            kept.push((0..compiled.slots.len() as u32).map(|slot| pulls.kept(slot)).collect());
        }
        let sizes = tasks.iter().map(|&task| row(compiled.size_of(task))).collect();
        let rooms = compiled.slots.iter().map(|slot| row(&slot.room)).collect();
        Some(Self { tasks, preferences, sizes, rooms, kept })
    }

    pub(super) fn market(&self) -> Market<'_, KINDS_MAX> {
        Market { preferences: &self.preferences, sizes: &self.sizes, rooms: &self.rooms }
    }

    /// What a server gives for a task.
    pub(super) fn score(&self, slot: u32, position: u32) -> f64 {
        self.kept[position as usize][slot as usize] as f64
    }

    /// The slot of each of `tasks`.
    pub(super) fn matched(&self) -> Vec<Option<u32>> {
        matching(&self.market(), |slot, position| self.score(slot, position))
    }
}

/// What a task's flows pull at, in one state: the stop beyond its end switch, by what may be the end switch.
struct Pulls<'b, 'g, 'p> {
    search_state: &'b SearchState<'g, 'p>,
    /// (Type of the end switch, stop beyond it) → rate; without a chain (`None`, place of the other end) → rate.
    far: BTreeMap<(Option<u8>, u32), u64>,
    /// By slot of the other end, without a chain: rate, which costs nothing where both are on one node.
    beside: BTreeMap<u32, u64>,
}

impl<'b, 'g, 'p> Pulls<'b, 'g, 'p> {
    fn of(search_state: &'b SearchState<'g, 'p>, task: u32) -> Self {
        let compiled = search_state.compiled;
        let (mut far, mut beside) = (BTreeMap::new(), BTreeMap::new());
        for &at in &compiled.own.flows_of[task as usize] {
            let flow = &compiled.own.flows[at as usize];
            if !search_state.is_there(flow) {
                continue;
            }
            let sends = flow.from == End::Task(task);
            let other = if sends { flow.to } else { flow.from };
            let list = &search_state.lists[at as usize];
            let place = |index: u32| compiled.own.boxes[index as usize].point;
            let (end, beyond) = match (list.len(), sends) {
                (0, _) => (None, search_state.point(other)),
                (1, _) => (Some(list[0]), search_state.point(other)),
                (_, true) => (Some(list[0]), place(list[1])),
                (len, false) => (Some(list[len - 1]), place(list[len - 2])),
            };
            let kind = end.map(|index| compiled.own.boxes[index as usize].kind.0);
            *far.entry((kind, beyond)).or_insert(0) += flow.rate;
            if end.is_none() {
                let slot = match other {
                    End::Task(other) => Some(search_state.at[other as usize]),
                    End::Fixed { node, .. } => compiled.slot_of(node),
                };
                if let Some(slot) = slot {
                    *beside.entry(slot).or_insert(0) += flow.rate;
                }
            }
        }
        Self { search_state, far, beside }
    }

    /// What ranking all slots takes: every pull from every place, by all boxes of its type.
    fn work(&self) -> u64 {
        let own = &self.search_state.compiled.own;
        (own.points as u64 + self.search_state.compiled.slots.len() as u64)
            * (1 + self.far.len() as u64)
            * (1 + own.boxes.len() as u64)
    }

    /// Hops from a place to the stop beyond by the best end switch of the type.
    fn hops(&self, point: u32, kind: Option<u8>, beyond: u32) -> u32 {
        let compiled = self.search_state.compiled;
        let Some(kind) = kind else { return compiled.hops(point, beyond) };
        let through = |index: u32| {
            let place = compiled.own.boxes[index as usize].point;
            compiled.hops(point, place) + compiled.hops(place, beyond)
        };
        compiled.of_kind(hintd_model::network::chains::BoxKind(kind)).map(through).min().unwrap_or(FAR)
    }

    /// By place: bit/s × links between switches.
    fn by_point(&self) -> Vec<u128> {
        let cost = |point: u32| {
            let each = self
                .far
                .iter()
                .map(|(&(kind, beyond), &rate)| u128::from(rate) * u128::from(self.hops(point, kind, beyond)));
            each.sum()
        };
        (0..self.search_state.compiled.own.points as u32).map(cost).collect()
    }

    /// Eq. 10's cost on a slot: that of its place and both access links, none of it for flows that stay on the node.
    fn cost(&self, by_point: &[u128], slot: u32) -> u128 {
        let compiled = self.search_state.compiled;
        let point = compiled.own.point_of[slot as usize];
        let all: u64 = self.far.values().sum();
        let local = self.beside.get(&slot).copied().unwrap_or(0);
        let links = by_point.get(point as usize).copied().unwrap_or(u128::from(all) * u128::from(FAR));
        links + 2 * u128::from(all - local)
    }

    /// Rate of flows whose next stop hangs on the slot's switch.
    fn kept(&self, slot: u32) -> u64 {
        let compiled = self.search_state.compiled;
        let point = compiled.own.point_of[slot as usize];
        let next = |kind: Option<u8>, beyond: u32| match kind {
            None => beyond == point,
            Some(kind) => compiled
                .of_kind(hintd_model::network::chains::BoxKind(kind))
                .any(|index| compiled.own.boxes[index as usize].point == point),
        };
        self.far.iter().filter(|((kind, beyond), _)| next(*kind, *beyond)).map(|(_, rate)| rate).sum()
    }
}

/// Tasks against servers: the whole matching if the state costs less with it, else what of it gains one by one; then
/// every task that gains by going where there is room. The number of moves; each is a step of the budget.
pub(super) fn assign(search_state: &mut SearchState<'_, '_>, budget: &Budget<'_>) -> u64 {
    let Some(frozen) = RoundPreferences::of(search_state, budget) else { return 0 };
    // Everybody asks everybody once, at most.
    if !budget.work(frozen.tasks.len() as u64 * frozen.rooms.len() as u64) {
        return 0;
    }
    let matched = frozen.matched();
    let wanted: Vec<(u32, u32)> = frozen
        .tasks
        .iter()
        .zip(&matched)
        .filter_map(|(&task, slot)| Some((task, slot.as_ref().copied()?)))
        .filter(|&(task, slot)| search_state.at[task as usize] != slot)
        .collect();
    if let Some(next) = whole(search_state, &wanted, budget) {
        *search_state = next;
        return wanted.len() as u64;
    }
    let mut moves = 0;
    for &(task, slot) in &wanted {
        if !budget.step() {
            return moves;
        }
        moves += u64::from(search_state.fits(task, slot) && search_state.try_move(task, slot));
    }
    for (&task, list) in frozen.tasks.iter().zip(&frozen.preferences) {
        if !budget.step() {
            return moves;
        }
        moves += u64::from(leave(search_state, task, list));
    }
    moves
}

/// The state after all moves at once, if it costs less and everything fits.
fn whole<'g, 'p>(
    search_state: &SearchState<'g, 'p>,
    wanted: &[(u32, u32)],
    work: &dyn Work,
) -> Option<SearchState<'g, 'p>> {
    if wanted.is_empty() {
        return None;
    }
    let mut next = search_state.clone();
    let mut open: Vec<(u32, u32)> = wanted.to_vec();
    // Those that find their place taken wait until it is left; circles of them are not untied.
    loop {
        let before = open.len();
        open.retain(|&(task, slot)| {
            if next.fits(task, slot) {
                next.relocate(task, slot);
                return false;
            }
            true
        });
        if open.is_empty() {
            break;
        }
        // What goes in rounds ends where the probe says so, and then it is as if it did not fit.
        if open.len() == before || !work.work(before as u64) {
            return None;
        }
    }
    (next.cost() < search_state.cost()).then_some(next)
}

/// Moves a task to the slot that gains, the best by the state of now first; whether there is one.
pub(super) fn leave(search_state: &mut SearchState<'_, '_>, task: u32, slots: &[u32]) -> bool {
    let pulls = Pulls::of(search_state, task);
    let by_point = pulls.by_point();
    // A slot that costs as much with the best end switches can not gain.
    let held = held(search_state, task);
    let mut better: Vec<(u128, u32)> = slots
        .iter()
        .map(|&slot| (pulls.cost(&by_point, slot), slot))
        .filter(|&(cost, slot)| cost < held && slot != search_state.at[task as usize] && search_state.fits(task, slot))
        .collect();
    better.sort_unstable();
    better.into_iter().any(|(_, slot)| search_state.try_move(task, slot))
}

/// What a task's flows cost from it to the stop beyond their end switch, in the state as it is.
fn held(search_state: &SearchState<'_, '_>, task: u32) -> u128 {
    let compiled = search_state.compiled;
    let mut sum = 0;
    for &at in &compiled.own.flows_of[task as usize] {
        let (flow, list) = (&compiled.own.flows[at as usize], &search_state.lists[at as usize]);
        if !search_state.is_there(flow) {
            continue;
        }
        let place = |index: u32| compiled.own.boxes[index as usize].point;
        let sends = flow.from == End::Task(task);
        let (own, other) = if sends { (flow.from, flow.to) } else { (flow.to, flow.from) };
        let stops: Vec<u32> = if sends { list.to_vec() } else { list.iter().rev().copied().collect() };
        let hops = match stops[..] {
            [] if search_state.is_local(flow) => continue,
            [] => compiled.hops(search_state.point(own), search_state.point(other)),
            [end] => {
                compiled.hops(search_state.point(own), place(end))
                    + compiled.hops(place(end), search_state.point(other))
            }
            [end, next, ..] => {
                compiled.hops(search_state.point(own), place(end)) + compiled.hops(place(end), place(next))
            }
        };
        sum += u128::from(flow.rate) * u128::from(hops + 2);
    }
    sum
}
