//! Middleboxes and chains (002 §3 and §6): which traffic is to pass which types of box, and routes through them.
//!
//! # Boxes as vertices
//! A box is a leaf: it hangs on one switch by a port of its own, takes a flow in and gives it back to the same switch.
//! Boxes stand beside the graph and not in it, with the switch as their place: they come from the operator, by name,
//! while a controller tells the graph anew whenever it likes, and no path between others may lead through one.
//!
//! # Which chain a flow has
//! That of highest priority among those that match. Chains of one priority that may match the same flow must ask the
//! same of it, else they contradict each other and are refused; of such equals the first by name holds.
//!
//! # Code map
//! - `document`: as written; `problem`: what may be wrong with it; `rule`: matching.
//! - `route`: k best routes through a sequence; `index`: flows that keep a route through changes.
//! - `hops`: distances between the switches of hosts and boxes, for searches.
//! - `check`: which chains can't be met now, and by which cut. `sample`: boxes on generated networks, drawn chains.

mod check;
mod document;
mod hops;
mod index;
mod problem;
mod route;
mod rule;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
#[cfg(test)]
mod tests;

pub use check::{Unmet, Why, unmet};
pub use document::{BoxEntry, ChainEntry, ChainsDocument, Direction, Protocol, WhenBroken};
pub use hops::HopTable;
pub use index::{ChainFlow, ChainRoutes, Rerouted};
pub use problem::ChainProblem;
pub use route::{
    BoxLoads, WaypointInputs, WaypointRoute, best_way, is_route, is_whole, route_through, waypoint_routes,
};
pub use rule::FlowFacts;

use super::graph::Network;
use super::tier::Tier;
use crate::solve::nearest;
use crate::units::{BitsPerSec, BoxIdx, ChainIdx, VertexIdx};
use rule::Rule;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Middleboxes declared at most: two for every switch of a large network.
pub const BOXES_MAX: usize = 8_192;

/// Chains declared at most: each flow is matched with one after the other, and each chain with every other.
pub const CHAINS_MAX: usize = 2_048;

/// Types that one chain passes at most (002 §6: one to three).
pub const LONGEST: usize = 3;

/// Groups that every request may have, so that nobody has to declare them.
const KNOWN_GROUPS: [&str; 2] = ["map", "reduce"];

/// A kind of middlebox (firewall, IPS, load balancer), by its row in [`Chains::kinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BoxKind(pub u8);

/// Types to pass, in order.
pub type Sequence = SmallVec<[BoxKind; LONGEST]>;

/// One box and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Middlebox {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub kind: BoxKind,
    /// The switch it hangs on; `None`: the network of the moment does not have it.
    pub at: Option<VertexIdx>,
    /// What it carries.
    pub capacity: BitsPerSec,
    /// Whether it is up itself; see [`Chains::is_usable`] for its switch.
    pub up: bool,
}

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its name.
    pub name: Arc<str>,
    /// Higher holds.
    pub priority: i32,
    /// Types to pass, from the sender on.
    pub sequence: Sequence,
    /// What becomes of flows that have no way through it.
    pub when_broken: WhenBroken,
    rule: Rule,
}

/// What an operator declared, checked, on one version of a network. A value: to change it is to make another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chains {
    kinds: Vec<Arc<str>>,
    boxes: Vec<Middlebox>,
    /// By box: the name of its switch.
    switch_names: Vec<Arc<str>>,
    /// By box.
    words: Vec<BoxReports>,
    by_kind: Vec<Vec<BoxIdx>>,
    /// By priority, highest first, then by name.
    chains: Vec<Chain>,
}

/// Who said what of a box. Of two that differ the later holds, and to declare the same again says nothing new; once a
/// declaration does not call it down any longer, what a feed said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BoxReports {
    declared: bool,
    declared_capacity: BitsPerSec,
    fed: Option<bool>,
}

impl Chains {
    /// Checks and reads a declaration. Without a network, boxes hang nowhere until [`Self::follow`] finds their switch.
    ///
    /// # Errors
    /// All problems at once; nothing is taken then.
    pub fn new(document: &ChainsDocument, network: Option<&Network>) -> Result<Self, Vec<ChainProblem>> {
        let (mut problems, mut chains) = (Vec::new(), Self::default());
        for (what, count, most) in
            [("middleboxes", document.boxes.len(), BOXES_MAX), ("chains", document.chains.len(), CHAINS_MAX)]
        {
            if count > most {
                return Err(vec![ChainProblem::TooMany { what, count, most }]); // the rest would take long to look at
            }
        }
        chains.read_boxes(document, &mut problems);
        chains.read_chains(document, &mut problems);
        chains.find_contradictions(&mut problems);
        if let Some(network) = network {
            chains = chains.follow(network);
            chains.check_places(network, &mut problems);
            if problems.is_empty() {
                check::check_paths(&chains, network, &mut problems);
            }
        }
        if problems.is_empty() { Ok(chains) } else { Err(problems) }
    }

    /// The next declaration in place of this one, whole or not at all. Boxes of the same name keep their state and
    /// capacity as far as the new one says of them what the old one did. `in_use` counts flows by chain.
    ///
    /// # Errors
    /// As [`Self::new`], and [`ChainProblem::InUse`] for every chain that would go while flows use it.
    pub fn replace(
        &self,
        document: &ChainsDocument,
        network: Option<&Network>,
        in_use: &BTreeMap<Arc<str>, u64>,
    ) -> Result<Self, Vec<ChainProblem>> {
        let (mut next, mut problems) = match Self::new(document, network) {
            Ok(next) => (next, Vec::new()),
            Err(problems) => (Self::default(), problems),
        };
        let kept: BTreeSet<&str> = document.chains.iter().map(|chain| &*chain.name).collect();
        for chain in self.chains.iter().filter(|chain| !kept.contains(&*chain.name)) {
            if let Some(&flows) = in_use.get(&chain.name).filter(|flows| **flows > 0) {
                problems.push(ChainProblem::InUse { chain: Arc::clone(&chain.name), flows });
            }
        }
        for (known, words) in next.boxes.iter_mut().zip(&mut next.words) {
            let Some(at) = self.boxes.iter().position(|before| before.name == known.name) else { continue };
            let (before, state) = (self.words[at], &self.boxes[at]);
            words.fed = before.fed;
            known.up = match (before.declared, words.declared) {
                (false, true) => before.fed.unwrap_or(true),
                (true, false) => false,
                _ => state.up,
            };
            if before.declared_capacity == words.declared_capacity {
                known.capacity = state.capacity;
            }
        }
        if problems.is_empty() { Ok(next) } else { Err(problems) }
    }

    /// The same on another network, or on a later version of it: every box finds its switch by name.
    #[must_use]
    pub fn follow(&self, network: &Network) -> Self {
        let mut next = self.clone();
        for (known, name) in next.boxes.iter_mut().zip(&self.switch_names) {
            known.at = network.vertex(name).filter(|&vertex| is_packet_switch(network, vertex));
        }
        next
    }

    /// The switch that a box was declared on, whether the network of the moment has it or not.
    ///
    /// # Panics
    /// If `index` is not of these chains.
    #[must_use]
    pub fn switch_name(&self, index: BoxIdx) -> &Arc<str> {
        &self.switch_names[index.at()]
    }

    /// The name of a type.
    ///
    /// # Panics
    /// If `kind` is not of these chains.
    #[must_use]
    pub fn kind_name(&self, kind: BoxKind) -> &Arc<str> {
        &self.kinds[usize::from(kind.0)]
    }

    /// The chain of that name.
    #[must_use]
    pub fn find_chain(&self, name: &str) -> Option<ChainIdx> {
        self.chains.iter().position(|chain| &*chain.name == name).map(ChainIdx::new)
    }

    /// Sets what is given of a box's state, as a failure or a repair does, and says whether anything changed.
    pub fn set_box(&mut self, index: BoxIdx, up: Option<bool>, capacity: Option<BitsPerSec>) -> bool {
        let (known, words) = (&mut self.boxes[index.at()], &mut self.words[index.at()]);
        let before = (known.up, known.capacity, words.fed);
        (known.up, known.capacity) = (up.unwrap_or(known.up), capacity.unwrap_or(known.capacity));
        words.fed = up.or(words.fed);
        before != (known.up, known.capacity, words.fed)
    }

    /// The box of that name.
    ///
    /// # Errors
    /// [`ChainProblem::UnknownBox`].
    pub fn find_box(&self, name: &str) -> Result<BoxIdx, ChainProblem> {
        let found = self.boxes.iter().position(|known| &*known.name == name);
        let near = || nearest(name, self.boxes.iter().map(|known| &*known.name)).map(Arc::from);
        found.map(BoxIdx::new).ok_or_else(|| ChainProblem::UnknownBox { name: name.into(), near: near() })
    }

    /// The chain that holds for a flow; `None`: it goes as it likes.
    #[must_use]
    pub fn chain_of(&self, flow: &FlowFacts<'_>) -> Option<ChainIdx> {
        self.chains.iter().position(|chain| chain.rule.matches(flow)).map(ChainIdx::new)
    }

    /// Whether flows can pass a box now: it is up and hangs on a switch that is.
    #[must_use]
    pub fn is_usable(&self, network: &Network, index: BoxIdx) -> bool {
        let known = &self.boxes[index.at()];
        known.up && known.at.is_some_and(|at| network.switch_up(at))
    }

    /// Switches that boxes hang on, ascending, each once: what [`more_ends`](crate::network::PathTableOptions::more_ends)
    /// of a path table has to name for routes through them.
    #[must_use]
    pub fn ends(&self) -> Vec<VertexIdx> {
        let ends: BTreeSet<VertexIdx> = self.boxes.iter().filter_map(|known| known.at).collect();
        ends.into_iter().collect()
    }

    /// Chains in the order in which they are matched.
    #[must_use]
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Whether both are of one declaration, so that an index means the same in both; the boxes' states may differ.
    #[must_use]
    pub fn is_declared_as(&self, other: &Self) -> bool {
        let names = |chains: &'_ Self| chains.boxes.iter().map(|known| Arc::clone(&known.name)).collect::<Vec<_>>();
        self.chains == other.chains && self.switch_names == other.switch_names && names(self) == names(other)
    }

    /// The chain at `index`.
    ///
    /// # Panics
    /// If `index` is not of these chains.
    #[must_use]
    pub fn chain(&self, index: ChainIdx) -> &Chain {
        &self.chains[index.at()]
    }

    /// All boxes.
    #[must_use]
    pub fn boxes(&self) -> &[Middlebox] {
        &self.boxes
    }

    /// Boxes of a type, in the order declared; none of a type that is unknown.
    #[must_use]
    pub fn of_kind(&self, kind: BoxKind) -> &[BoxIdx] {
        self.by_kind.get(usize::from(kind.0)).map_or(&[], Vec::as_slice)
    }

    /// Names of types, by [`BoxKind`].
    #[must_use]
    pub fn kinds(&self) -> &[Arc<str>] {
        &self.kinds
    }

    fn read_boxes(&mut self, document: &ChainsDocument, problems: &mut Vec<ChainProblem>) {
        for entry in &document.boxes {
            let name: Arc<str> = entry.name.as_str().into();
            for (text, what) in [(&entry.name, "box's name"), (&entry.kind, "box's type")] {
                if text.is_empty() {
                    problems.push(ChainProblem::Empty { what });
                }
            }
            if self.boxes.iter().any(|known| known.name == name) {
                problems.push(ChainProblem::DuplicateBox { name: Arc::clone(&name) });
            }
            if entry.at.is_empty() {
                problems.push(ChainProblem::UnknownSwitch { name: Arc::clone(&name), at: "".into() });
            }
            let capacity = u64::try_from(entry.bits_per_s).unwrap_or(0);
            if capacity == 0 {
                problems.push(ChainProblem::NoCapacity { name: Arc::clone(&name), bits_per_s: entry.bits_per_s });
            }
            let Some(kind) = self.kind_of(&entry.kind) else {
                let (what, count, most) = ("types of middlebox", self.kinds.len() + 1, self.kinds.len());
                problems.push(ChainProblem::TooMany { what, count, most });
                continue;
            };
            self.by_kind[usize::from(kind.0)].push(BoxIdx::new(self.boxes.len()));
            self.boxes.push(Middlebox { name, kind, at: None, capacity: BitsPerSec(capacity), up: entry.up });
            self.switch_names.push(entry.at.as_str().into());
            self.words.push(BoxReports { declared: entry.up, declared_capacity: BitsPerSec(capacity), fed: None });
        }
    }

    /// The row of a type, a new one where it was not seen before; `None` beyond 256 types.
    fn kind_of(&mut self, name: &str) -> Option<BoxKind> {
        if let Some(row) = self.kinds.iter().position(|kind| &**kind == name) {
            return u8::try_from(row).ok().map(BoxKind);
        }
        let kind = BoxKind(u8::try_from(self.kinds.len()).ok()?);
        self.kinds.push(name.into());
        self.by_kind.push(Vec::new());
        Some(kind)
    }

    fn read_chains(&mut self, document: &ChainsDocument, problems: &mut Vec<ChainProblem>) {
        let groups: Vec<&str> = KNOWN_GROUPS.into_iter().chain(document.groups.iter().map(String::as_str)).collect();
        if groups.contains(&"") {
            problems.push(ChainProblem::Empty { what: "group's name" });
        }
        for entry in &document.chains {
            let chain: Arc<str> = entry.name.as_str().into();
            if entry.name.is_empty() {
                problems.push(ChainProblem::Empty { what: "chain's name" });
            }
            if self.chains.iter().any(|known| known.name == chain) {
                problems.push(ChainProblem::DuplicateChain { name: Arc::clone(&chain) });
            }
            if let Some(group) = entry.group.as_deref().filter(|group| !groups.contains(group)) {
                let near = nearest(group, groups.iter().copied()).map(Arc::from);
                problems.push(ChainProblem::UnknownGroup { chain: Arc::clone(&chain), group: group.into(), near });
            }
            if let Some((first, last)) = entry.ports.filter(|(first, last)| first > last) {
                problems.push(ChainProblem::NoPorts { chain: Arc::clone(&chain), first, last });
            }
            let sequence = self.sequence(entry, &chain, problems);
            let (priority, when_broken, rule) = (entry.priority, entry.when_broken, Rule::of(entry));
            self.chains.push(Chain { name: chain, priority, sequence, when_broken, rule });
        }
        self.chains.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.name.cmp(&b.name)));
    }

    fn sequence(&self, entry: &ChainEntry, chain: &Arc<str>, problems: &mut Vec<ChainProblem>) -> Sequence {
        let chain = || Arc::clone(chain);
        let len = entry.sequence.len();
        if len == 0 {
            problems.push(ChainProblem::EmptySequence { chain: chain() });
        } else if len > LONGEST {
            problems.push(ChainProblem::LongSequence { chain: chain(), len, most: LONGEST });
        }
        let mut sequence = Sequence::new();
        for kind in &entry.sequence {
            match self.kinds.iter().position(|known| **known == **kind) {
                Some(row) if sequence.contains(&BoxKind(row as u8)) => {
                    problems.push(ChainProblem::RepeatedType { chain: chain(), kind: kind.as_str().into() });
                }
                Some(row) => sequence.push(BoxKind(row as u8)),
                None => {
                    let near = nearest(kind, self.kinds.iter().map(|kind| &**kind)).map(Arc::from);
                    problems.push(ChainProblem::UnknownType { chain: chain(), kind: kind.as_str().into(), near });
                }
            }
        }
        sequence
    }

    fn find_contradictions(&self, problems: &mut Vec<ChainProblem>) {
        for (at, a) in self.chains.iter().enumerate() {
            for b in self.chains[at + 1..].iter().take_while(|b| b.priority == a.priority) {
                let same = (&a.sequence, a.when_broken) == (&b.sequence, b.when_broken);
                if !same && a.name != b.name && a.rule.overlaps(&b.rule) {
                    let [a, b] = [a, b].map(|chain| Arc::clone(&chain.name));
                    problems.push(ChainProblem::Contradiction { priority: self.chains[at].priority, a, b });
                }
            }
        }
    }

    fn check_places(&self, network: &Network, problems: &mut Vec<ChainProblem>) {
        let nowhere =
            self.boxes.iter().zip(&self.switch_names).filter(|(known, at)| known.at.is_none() && !at.is_empty());
        for (known, at) in nowhere {
            let (name, at) = (Arc::clone(&known.name), Arc::clone(at));
            problems.push(if network.vertex(&at).is_some() {
                ChainProblem::NoSwitch { name, at }
            } else {
                ChainProblem::UnknownSwitch { name, at }
            });
        }
    }
}

fn is_packet_switch(network: &Network, vertex: VertexIdx) -> bool {
    network.vertex_at(vertex).tier().is_some_and(|tier| tier != Tier::Optical)
}
