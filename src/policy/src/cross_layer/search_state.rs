//! The state that the search walks: how many containers of each group are on each node, the routes of the pairs that
//! talk, and what sinks get of it.
//!
//! Tasks of a group are alike: counts are the whole state. A one-to-one edge joins tasks in the order of nodes, which
//! is the order in which a placement tells its shares. The new job's pairs stand in the index beside those of running
//! jobs; what its own sinks get is worked out here by groups, which costs less than keeping its inlets there.

use super::candidates::{Candidates, Choices, Links, mix, tie_of};
use super::compiled::DataflowProblem;
use super::routing::Movable;
use crate::flow_index::FlowIndex;
use crate::place::{ChosenRoute, Share};
use hintd_model::cluster::{EdgePattern, NodePair, Resource};

mod own;

/// Not known yet.
const NONE: u32 = u32::MAX;

/// How a pair that begins to talk gets its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// By the path heuristic.
    Heuristic,
    /// Any of its candidates, by a hash of seed and pair.
    Drawn,
}

/// A container of `group` from one slot to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) group: usize,
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
}

/// Containers on nodes.
pub(super) struct SearchState<'g, 'a> {
    pub(super) compiled: &'g DataflowProblem<'g>,
    pub(super) index: FlowIndex,
    pub(super) candidates: Candidates<'a>,
    pub(super) rule: Rule,
    seed: u64,
    /// By group and slot.
    count: Vec<u32>,
    /// By group: slots with containers of it, ascending.
    pub(super) used: Vec<Vec<u32>>,
    taken: Vec<Resource>,
    /// By group and rack.
    in_rack: Vec<u32>,
    /// By sender's and receiver's slot: row of `talks`.
    cells: Vec<u32>,
    talks: Vec<PairTraffic>,
    /// By one-to-one edge: slots of task i and of its partner.
    each: Vec<Vec<(u32, u32)>>,
    undo: Undo,
    /// Task pairs of the new job × links they pass.
    burden: u64,
    /// What tasks get that wait for roots, by group and place in `used`.
    rates: Vec<Vec<f64>>,
    /// Pairs looked at since the beginning: what the work is measured by.
    pub(super) work: u64,
    /// Of it, what a budget has counted.
    counted: u64,
}

/// A pair of slots that talks, or did.
struct PairTraffic {
    pair: NodePair,
    row: u32,
    weight: u32,
    /// A running job uses it already: it keeps its route.
    fixed: bool,
    choices: Option<Choices>,
    tie: u64,
    listed: bool,
}

/// What the last change was.
#[derive(Default)]
struct Undo {
    steps: Vec<Step>,
    talks: Vec<TalkBefore>,
    each: Vec<(usize, Vec<(u32, u32)>)>,
    burden: u64,
}

/// A talk as it was.
struct TalkBefore {
    /// Which.
    at: u32,
    weight: u32,
    route: Links,
}

/// A state to come back to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SavedState {
    pub(super) utility: f64,
    /// Task pairs × links of the new job: of two states with the same utility the one that leaves more to others.
    pub(super) burden: u64,
    pub(super) placed: u64,
    /// By group and slot.
    count: Vec<u32>,
    routes: Vec<(u32, Links)>,
}

impl<'g, 'a> SearchState<'g, 'a> {
    pub(super) fn new(
        compiled: &'g DataflowProblem<'g>,
        index: FlowIndex,
        candidates: Candidates<'a>,
        rule: Rule,
    ) -> Self {
        let (slots, groups) = (compiled.slots.len(), compiled.problem.groups.len());
        Self {
            seed: compiled.problem.seed,
            compiled,
            index,
            candidates,
            rule,
            count: vec![0; groups * slots],
            used: vec![Vec::new(); groups],
            taken: vec![Resource::ZERO; slots],
            in_rack: vec![0; groups * compiled.racks],
            cells: vec![NONE; slots * slots],
            talks: Vec::new(),
            each: vec![Vec::new(); compiled.edges.len()],
            undo: Undo::default(),
            burden: 0,
            rates: vec![Vec::new(); groups],
            work: 0,
            counted: 0,
        }
    }

    pub(super) fn count(&self, group: usize, slot: u32) -> u32 {
        self.count[group * self.compiled.slots.len() + slot as usize]
    }

    /// Containers that have a node.
    pub(super) fn placed(&self) -> u64 {
        self.count.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether one more container of the group may go to a slot.
    pub(super) fn fits(&self, group: usize, slot: u32) -> bool {
        self.admits(Step { group, from: None, to: Some(slot) })
    }

    /// Whether a container may go where a step to another slot leads.
    pub(super) fn admits(&self, step: Step) -> bool {
        let (compiled, group) = (self.compiled, step.group);
        let (Some(slot), bounds) = (step.to, &compiled.problem.groups[group]) else { return true };
        let rack = |slot: u32| compiled.slots[slot as usize].rack;
        let leaves = u32::from(step.from.is_some_and(|from| rack(from) == rack(slot)));
        compiled.allowed(group, slot)
            && self.count(group, slot) < bounds.max_per_node
            && self.in_rack[group * compiled.racks + rack(slot) as usize] - leaves < bounds.max_per_rack
            && compiled.fits(&self.taken[slot as usize], &bounds.size, slot)
    }

    /// Whether steps can be made together: all leave before any arrives.
    pub(super) fn allows(&mut self, steps: &[Step]) -> bool {
        for step in steps {
            self.put(step.group, step.from, -1);
        }
        let mut arrived = 0;
        while arrived < steps.len() && steps[arrived].to.is_none_or(|to| self.fits(steps[arrived].group, to)) {
            self.put(steps[arrived].group, steps[arrived].to, 1);
            arrived += 1;
        }
        for step in &steps[..arrived] {
            self.put(step.group, step.to, -1);
        }
        for step in steps {
            self.put(step.group, step.from, 1);
        }
        arrived == steps.len()
    }

    /// Takes room for a step that is made later.
    pub(super) fn reserve(&mut self, step: Step) {
        self.put(step.group, step.to, 1);
    }

    /// Gives back what [`Self::reserve`] took.
    pub(super) fn release(&mut self, step: Step) {
        self.put(step.group, step.to, -1);
    }

    /// Makes allowed steps, gives pairs that begin to talk a route, and releases those of pairs that end.
    pub(super) fn make(&mut self, steps: &[Step]) {
        self.undo.talks.clear();
        self.undo.each.clear();
        self.undo.steps.clear();
        self.undo.steps.extend_from_slice(steps);
        self.undo.burden = self.burden;
        for step in steps {
            self.change(step.group, step.from, -1);
            self.change(step.group, step.to, 1);
        }
        self.join_each(steps);
        self.follow();
    }

    /// Takes back what [`Self::make`] did last.
    pub(super) fn take_back(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        for step in undo.steps.iter().rev() {
            self.put(step.group, step.to, -1);
            self.put(step.group, step.from, 1);
        }
        self.index.hold();
        for TalkBefore { at, weight, route } in &undo.talks {
            let talk = &mut self.talks[*at as usize];
            if !talk.fixed {
                self.index.lay(talk.row, &[]);
            }
            self.index.add_weight(talk.row, i64::from(*weight) - i64::from(talk.weight));
            if !talk.fixed {
                self.index.lay(talk.row, route);
            }
            talk.weight = *weight;
        }
        self.index.recompute_rates();
        for (edge, pairs) in &undo.each {
            self.each[*edge].clone_from(pairs);
        }
        self.burden = undo.burden;
        self.undo = undo;
        self.undo.steps.clear();
        self.undo.talks.clear();
        self.undo.each.clear();
    }

    /// Utility of all jobs, bits/s.
    pub(super) fn utility(&mut self) -> f64 {
        self.index.utility() + self.own()
    }

    /// What was done since this was asked last, one look at utility included.
    pub(super) fn take_work(&mut self) -> u64 {
        let pairs = self.work - std::mem::replace(&mut self.counted, self.work);
        pairs + self.utility_work() + self.index.utility_work() + self.index.take_work()
    }

    /// What a look at the new job's own utility takes: pairs of slots that edges join.
    pub(super) fn utility_work(&self) -> u64 {
        let pairs = |edge: &crate::problem::EdgeProblem| {
            let [from, to] = [edge.from, edge.to].map(|group| self.used[group.at()].len() as u64);
            match edge.pattern {
                EdgePattern::AllToAll => from * to,
                EdgePattern::OneToOne => from.max(to),
            }
        };
        self.compiled.edges.iter().map(pairs).sum()
    }

    /// Task pairs of the new job × links they pass.
    pub(super) const fn burden(&self) -> u64 {
        self.burden
    }

    /// Takes [`Self::burden`] anew, after routes were changed from outside.
    pub(super) fn weigh(&mut self) {
        let of = |talk: &PairTraffic| u64::from(talk.weight) * self.index.route_of(talk.row).len() as u64;
        self.burden = self.talks.iter().map(of).sum();
    }

    /// Pairs that may take another route, whether or not they need one.
    pub(super) fn movable(&self) -> Vec<Movable> {
        let open = self.talks.iter().filter(|talk| talk.weight > 0 && !talk.fixed);
        open.filter_map(|talk| {
            let choices = talk.choices.filter(|choices| choices.count() > 1)?;
            Some(Movable { row: talk.row, choices, tie: talk.tie })
        })
        .collect()
    }

    /// The state as it is.
    pub(super) fn state(&mut self, utility: f64) -> SavedState {
        let talks = self.talks.iter().enumerate().filter(|(_, talk)| talk.weight > 0 && !talk.fixed);
        let routes = talks.map(|(at, talk)| (at as u32, self.index.route_of(talk.row).iter().copied().collect()));
        SavedState {
            utility,
            burden: self.burden(),
            placed: self.placed(),
            count: self.count.clone(),
            routes: routes.collect(),
        }
    }

    /// Goes back to a state that it was in.
    pub(super) fn restore(&mut self, state: &SavedState) {
        self.clear();
        let slots = self.compiled.slots.len();
        let mut steps = Vec::new();
        for (at, &count) in state.count.iter().enumerate() {
            let step = Step { group: at / slots, from: None, to: Some((at % slots) as u32) };
            steps.extend(std::iter::repeat_n(step, count as usize));
        }
        let rule = std::mem::replace(&mut self.rule, Rule::Drawn);
        self.make(&steps);
        self.rule = rule;
        self.index.hold();
        for (at, route) in &state.routes {
            self.index.lay(self.talks[*at as usize].row, route);
        }
        self.index.recompute_rates();
        self.weigh();
    }

    /// Takes every container away.
    pub(super) fn clear(&mut self) {
        let mut steps = Vec::new();
        for (group, used) in self.used.iter().enumerate() {
            for &slot in used {
                let step = Step { group, from: Some(slot), to: None };
                steps.extend(std::iter::repeat_n(step, self.count(group, slot) as usize));
            }
        }
        self.make(&steps);
    }

    /// Where containers are, by group, in the order of nodes.
    pub(super) fn shares(&self) -> Vec<Vec<Share>> {
        let share = |group: usize, slot: u32| Share {
            node: self.compiled.slots[slot as usize].node,
            count: self.count(group, slot),
        };
        self.used
            .iter()
            .enumerate()
            .map(|(group, used)| used.iter().map(|&slot| share(group, slot)).collect())
            .collect()
    }

    /// Routes of all pairs that talk, by pair; one without a path is left out.
    pub(super) fn routes(&self) -> Vec<ChosenRoute> {
        let talks = self.talks.iter().filter(|talk| talk.weight > 0);
        let routed =
            talks.map(|talk| (talk.pair, self.index.route_of(talk.row))).filter(|(_, links)| !links.is_empty());
        let mut routes: Vec<ChosenRoute> = routed.map(|(pair, links)| ChosenRoute::plain(pair, links.into())).collect();
        routes.sort_unstable_by_key(|route| route.pair);
        routes
    }

    fn put(&mut self, group: usize, slot: Option<u32>, more: i32) {
        let Some(slot) = slot else { return };
        let (compiled, at) = (self.compiled, slot as usize);
        let count = &mut self.count[group * compiled.slots.len() + at];
        *count = count.wrapping_add_signed(more);
        let (count, size) = (*count, &compiled.problem.groups[group].size);
        let taken = &mut self.taken[at];
        *taken = if more > 0 { taken.plus(size) } else { taken.minus(size) };
        let in_rack = &mut self.in_rack[group * compiled.racks + compiled.slots[at].rack as usize];
        *in_rack = in_rack.wrapping_add_signed(more);
        match self.used[group].binary_search(&slot) {
            Ok(found) if count == 0 => {
                self.used[group].remove(found);
            }
            Err(place) if count > 0 => self.used[group].insert(place, slot),
            _ => {}
        }
    }

    /// One container more or fewer, and what that changes of pairs on all-to-all edges.
    fn change(&mut self, group: usize, slot: Option<u32>, more: i32) {
        let Some(here) = slot else { return };
        let compiled = self.compiled;
        for &at in &compiled.own.edges_of[group] {
            let edge = &compiled.edges[at];
            if edge.pattern != EdgePattern::AllToAll {
                continue;
            }
            let (sends, receives) = (edge.from.at() == group, edge.to.at() == group);
            let other = if sends { edge.to.at() } else { edge.from.at() };
            for place in 0..self.used[other].len() {
                let there = self.used[other][place];
                let weight = more * self.count(other, there) as i32;
                if sends {
                    self.bump(here, there, weight);
                }
                if receives {
                    self.bump(there, here, weight);
                }
            }
        }
        self.put(group, slot, more);
    }

    /// One-to-one edges of the groups that moved, anew.
    fn join_each(&mut self, steps: &[Step]) {
        let compiled = self.compiled;
        let touched = |group: usize| steps.iter().any(|step| step.group == group);
        for (at, edge) in compiled.edges.iter().enumerate() {
            let (from, to) = (edge.from.at(), edge.to.at());
            if edge.pattern != EdgePattern::OneToOne || !(touched(from) || touched(to)) {
                continue;
            }
            let old = std::mem::take(&mut self.each[at]);
            old.iter().for_each(|&(a, b)| self.bump(a, b, -1));
            let (senders, receivers) = (self.tasks(from), self.tasks(to));
            if !senders.is_empty() && !receivers.is_empty() {
                let tasks = 0..senders.len().max(receivers.len());
                let pairs = tasks.map(|task| (senders[task % senders.len()], receivers[task % receivers.len()]));
                self.each[at] = pairs.collect();
            }
            for place in 0..self.each[at].len() {
                let (a, b) = self.each[at][place];
                self.bump(a, b, 1);
            }
            self.undo.each.push((at, old));
        }
    }

    /// Slots of a group's tasks.
    fn tasks(&self, group: usize) -> Vec<u32> {
        let used = self.used[group].iter();
        used.flat_map(|&slot| std::iter::repeat_n(slot, self.count(group, slot) as usize)).collect()
    }

    /// More or fewer pairs of tasks between two slots.
    fn bump(&mut self, from: u32, to: u32, more: i32) {
        if from == to {
            return;
        }
        self.work += 1;
        let cell = from as usize * self.compiled.slots.len() + to as usize;
        if self.cells[cell] == NONE {
            self.cells[cell] = self.meet(from, to);
        }
        let at = self.cells[cell];
        let talk = &mut self.talks[at as usize];
        if !std::mem::replace(&mut talk.listed, true) {
            let route = self.index.route_of(talk.row).iter().copied().collect();
            self.undo.talks.push(TalkBefore { at, weight: talk.weight, route });
        }
        talk.weight = talk.weight.wrapping_add_signed(more);
    }

    /// A pair that was not seen before.
    fn meet(&mut self, from: u32, to: u32) -> u32 {
        let node = |slot: u32| self.compiled.slots[slot as usize].node;
        let pair = NodePair { from: node(from), to: node(to) };
        let row = self.index.enter(pair);
        let fixed = self.index.weight_of(row) > 0;
        let (choices, tie) = (self.candidates.of(pair), tie_of(self.seed, pair));
        self.talks.push(PairTraffic { pair, row, weight: 0, fixed, choices, tie, listed: false });
        self.talks.len() as u32 - 1
    }

    /// Makes the index fit the weights.
    fn follow(&mut self) {
        self.index.hold();
        for TalkBefore { at, weight: old, .. } in &self.undo.talks {
            let talk = &mut self.talks[*at as usize];
            talk.listed = false;
            self.burden -= u64::from(*old) * self.index.route_of(talk.row).len() as u64;
            self.index.add_weight(talk.row, i64::from(talk.weight) - i64::from(*old));
            if talk.weight == 0 && !talk.fixed {
                self.index.lay(talk.row, &[]);
            }
        }
        for TalkBefore { at, weight: old, .. } in &self.undo.talks {
            let talk = &self.talks[*at as usize];
            if *old == 0 && talk.weight > 0 && !talk.fixed {
                let weight = u64::from(talk.weight);
                let links = talk.choices.as_ref().and_then(|choices| {
                    let path = match self.rule {
                        Rule::Heuristic => self.candidates.best(&self.index, choices, weight, talk.tie)?,
                        Rule::Drawn => choices.start() + (mix(talk.tie) % u64::from(choices.count())) as u32,
                    };
                    Some(self.candidates.links(choices, path))
                });
                self.index.lay(talk.row, &links.unwrap_or_default());
            }
            let talk = &self.talks[*at as usize];
            self.burden += u64::from(talk.weight) * self.index.route_of(talk.row).len() as u64;
        }
        self.index.recompute_rates();
    }
}
