//! What chains add to the compiled problem: flows with what they have to pass, boxes, and hops between all places that
//! matter.

use crate::Share;
use crate::compiled::CompiledProblem;
use crate::load::load_ppm;
use crate::place::PlaceError;
use crate::problem::{ArrivedSenders, EdgeProblem, PlaceProblem};
use hintd_model::cluster::{EdgePattern, Topology, Way};
use hintd_model::network::Network;
use hintd_model::network::chains::{BoxKind, Chains, FlowFacts, HopTable, Protocol, Sequence, WhenBroken};
use hintd_model::units::{BoxIdx, Bytes, ChainIdx, NodeIdx, VertexIdx};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// No box, no place, no class.
pub(crate) const NONE: u32 = u32::MAX;
/// Hops where there is no way: more than any way has.
pub(crate) const FAR: u32 = 1 << 16;
/// Bits/s of the least flow where flows are only told apart by their share.
const LEAST_RATE: f64 = 1_000.0;

/// What a search may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Seconds within which an edge's bytes are to be moved: bytes ÷ seconds is a flow's rate.
    pub(crate) transfer_s: f64,
    /// Port that receivers are asked on, for chains that name ports.
    pub(crate) port: u16,
    /// Nodes looked at in a large cluster.
    pub(crate) shortlist: usize,
    /// Flows that are looked at one by one, at most.
    pub(crate) flows_max: usize,
}

/// The compiled problem with its flows.
pub(crate) type ChainedProblem<'p> = CompiledProblem<'p, ChainedFlows<'p>>;

/// Flows, and the boxes that they may pass.
pub(crate) struct ChainedFlows<'p> {
    pub(crate) network: &'p Network,
    pub(crate) topology: &'p Topology,
    pub(crate) chains: &'p Chains,
    pub(crate) flows: Vec<FlowOf>,
    /// By task: its flows, each once.
    pub(crate) flows_of: Vec<Vec<u32>>,
    pub(crate) classes: Vec<Class>,
    /// By box.
    pub(crate) boxes: Vec<BoxAt>,
    /// By slot: its switch; [`NONE`]: it hangs nowhere.
    pub(crate) point_of: Vec<u32>,
    hops: HopTable,
    /// Number of places.
    pub(crate) points: usize,
}

/// Traffic from one end to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowOf {
    pub(crate) from: End,
    pub(crate) to: End,
    /// Bits/s, at least 1.
    pub(crate) rate: u64,
    /// What it passes; [`NONE`]: nothing.
    pub(crate) class: u32,
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A task of the request.
    Task(u32),
    /// A container that runs already.
    Fixed { node: NodeIdx, point: u32 },
}

/// Flows that pass the same.
pub(crate) struct Class {
    pub(crate) chain: ChainIdx,
    /// Without types of which nothing is up, where the chain says `open`.
    pub(crate) kinds: Sequence,
    pub(crate) open: bool,
}

/// A box that may be passed.
pub(crate) struct BoxAt {
    /// Its switch; [`NONE`] where it can't be used.
    pub(crate) point: u32,
    pub(crate) kind: BoxKind,
    /// Bits/s.
    pub(crate) room: u64,
}

static NO_CHAINS: LazyLock<Chains> = LazyLock::new(Chains::default);

impl<'p> ChainedProblem<'p> {
    /// The problem by position; `None` where there is no network, nobody talks, or there are more flows than are looked
    /// at one by one.
    ///
    /// # Errors
    /// [`PlaceError::Broken`] where a chain is matched that no candidate of its group can keep, or more flows than are
    /// looked at.
    pub(crate) fn compile(problem: &'p PlaceProblem<'p>, settings: &Settings) -> Result<Option<Self>, PlaceError> {
        Self::compile_for(problem, settings, &[])
    }

    /// The same with the nodes of a placement among those looked at, whoever made it: to say what that costs.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub(crate) fn compile_for(
        problem: &'p PlaceProblem<'p>,
        settings: &Settings,
        also: &[Vec<Share>],
    ) -> Result<Option<Self>, PlaceError> {
        let topology = &*problem.snapshot.topology;
        let Some(network) = topology.network.as_deref() else { return Ok(None) };
        if problem.edges.is_empty() && problem.senders.is_empty() && problem.anchors.is_empty() {
            return Ok(None);
        }
        let compiled = CompiledProblem::new(problem, &shortlist(problem, settings.shortlist, also));
        let chains = topology.chains.as_deref().unwrap_or(&NO_CHAINS);
        let mut classes = Classes { chains, network, known: BTreeMap::new(), list: Vec::new() };
        let mut points = Points { of: BTreeMap::new(), list: Vec::new() };
        let ends = Flows { compiled: &compiled, topology, network, settings };
        let Some(flows) = ends.all(&mut classes, &mut points)? else { return Ok(None) };
        let boxes = boxes(problem, network, chains, &mut points);
        let point_of = compiled.slots.iter().map(|slot| points.of_node(network, topology, slot.node)).collect();
        let hops = HopTable::new(network, &points.list, &points.list);
        let flows_of = flows_of(&flows, compiled.group_of.len());
        let (classes, points) = (classes.list, points.list.len());
        let own = ChainedFlows { network, topology, chains, flows, flows_of, classes, boxes, point_of, hops, points };
        let mut chained = compiled.with(own);
        chained.keep_reaching()?;
        Ok(Some(chained))
    }

    /// Hops between two places; [`FAR`] where there is no way.
    pub(crate) fn hops(&self, a: u32, b: u32) -> u32 {
        if a == NONE || b == NONE {
            return FAR;
        }
        match self.own.hops.get(a as usize, b as usize) {
            HopTable::NONE => FAR,
            hops => u32::from(hops),
        }
    }

    /// Types that a flow passes.
    pub(crate) fn kinds(&self, flow: &FlowOf) -> &[BoxKind] {
        if flow.class == NONE { &[] } else { &self.own.classes[flow.class as usize].kinds }
    }

    /// Boxes of a type that can be used at all.
    pub(crate) fn of_kind(&self, kind: BoxKind) -> impl Iterator<Item = u32> {
        let all = self.own.chains.of_kind(kind).iter().map(|index| index.0);
        all.filter(|&index| self.own.boxes[index as usize].point != NONE)
    }

    /// Fewest hops between two places through a box of each type, in order, whatever boxes carry.
    pub(crate) fn hops_through(&self, (from, to): (u32, u32), kinds: &[BoxKind]) -> u32 {
        let mut ways = vec![(0, from)];
        for &kind in kinds {
            let reached = |index: u32| {
                let stop = self.own.boxes[index as usize].point;
                ways.iter().map(|&(hops, here)| hops + self.hops(here, stop)).min().map(|hops| (hops, stop))
            };
            ways = self.of_kind(kind).filter_map(reached).collect();
        }
        ways.into_iter().map(|(hops, here)| hops + self.hops(here, to)).min().unwrap_or(FAR)
    }

    /// That a chain of a class can not be met.
    pub(crate) fn broken(&self, class: u32, why: String) -> PlaceError {
        let chain = self.own.chains.chain(self.own.classes[class as usize].chain);
        PlaceError::Broken { chain: Arc::clone(&chain.name), why }
    }

    /// Takes from each group's candidates those that do not reach what its flows have to pass (Eq. 12).
    fn keep_reaching(&mut self) -> Result<(), PlaceError> {
        for group in 0..self.problem.groups.len() {
            let mut classes: Vec<u32> = self
                .own
                .flows
                .iter()
                .filter(|flow| flow.class != NONE && self.has(flow, group as u32))
                .map(|flow| flow.class)
                .collect();
            classes.sort_unstable();
            classes.dedup();
            let had_any = self.allowed_row(group).contains(&true);
            self.restrict(group, |chained, slot| {
                classes.iter().all(|&class| chained.lacks(chained.own.point_of[slot as usize], class).is_none())
            });
            if had_any && !self.allowed_row(group).contains(&true) {
                self.check_reached(group, &classes)?;
            }
        }
        Ok(())
    }

    /// Why none of a group's candidates is left.
    fn check_reached(&self, group: usize, classes: &[u32]) -> Result<(), PlaceError> {
        let lacking =
            |&class: &u32| Some((class, self.own.point_of.iter().find_map(|&point| self.lacks(point, class))?));
        let Some((class, kind)) = classes.iter().find_map(lacking) else { return Ok(()) };
        let (kind, group) = (&self.own.chains.kinds()[usize::from(kind.0)], &self.problem.groups[group].name);
        let why = format!("no node that group {group} may use reaches a middlebox of type {kind} that is up");
        Err(self.broken(class, why))
    }

    /// The first type of a class that a place does not reach.
    fn lacks(&self, point: u32, class: u32) -> Option<BoxKind> {
        let kinds = &self.own.classes[class as usize].kinds;
        let met = |kind: BoxKind| {
            self.of_kind(kind).any(|index| self.hops(point, self.own.boxes[index as usize].point) < FAR)
        };
        kinds.iter().copied().find(|&kind| !met(kind))
    }

    fn has(&self, flow: &FlowOf, group: u32) -> bool {
        let of = |end: End| matches!(end, End::Task(task) if self.group_of[task as usize] == group);
        of(flow.from) || of(flow.to)
    }
}

/// Boxes of the cluster as new flows find them: what runs already has its part of each.
fn boxes(problem: &PlaceProblem<'_>, network: &Network, chains: &Chains, points: &mut Points) -> Vec<BoxAt> {
    let loads = problem.running.map(|running| &running.chained);
    let loads = loads.filter(|chained| chained.are_of(&problem.snapshot.topology));
    let taken = |index: BoxIdx| loads.map(|chained| chained.loads.of(index)).unwrap_or_default();
    let one = |at: usize| {
        let (index, known) = (BoxIdx::new(at), &chains.boxes()[at]);
        let usable = known.at.filter(|_| chains.is_usable(network, index));
        let point = usable.map_or(NONE, |at| points.of(at));
        BoxAt { point, kind: known.kind, room: known.capacity.saturating_sub(taken(index)).0 }
    };
    (0..chains.boxes().len()).map(one).collect()
}

/// Flows by task.
fn flows_of(flows: &[FlowOf], tasks: usize) -> Vec<Vec<u32>> {
    let mut of = vec![Vec::new(); tasks];
    for (at, flow) in (0..).zip(flows) {
        for end in [flow.from, flow.to] {
            if let End::Task(task) = end {
                of[task as usize].push(at);
            }
        }
    }
    of
}

/// Switches by position, as they are met.
struct Points {
    of: BTreeMap<VertexIdx, u32>,
    list: Vec<VertexIdx>,
}

impl Points {
    fn of(&mut self, switch: VertexIdx) -> u32 {
        let list = &mut self.list;
        *self.of.entry(switch).or_insert_with(|| {
            list.push(switch);
            list.len() as u32 - 1
        })
    }

    fn of_node(&mut self, network: &Network, topology: &Topology, node: NodeIdx) -> u32 {
        let host = topology.vertex.get(node.at()).copied().flatten();
        host.and_then(|host| network.attachment(host)).map_or(NONE, |switch| self.of(switch))
    }
}

/// Chains that flows of the request have.
struct Classes<'p> {
    chains: &'p Chains,
    network: &'p Network,
    known: BTreeMap<ChainIdx, u32>,
    list: Vec<Class>,
}

impl Classes<'_> {
    fn of(&mut self, facts: &FlowFacts<'_>) -> u32 {
        let Some(index) = self.chains.chain_of(facts) else { return NONE };
        if let Some(&known) = self.known.get(&index) {
            return known;
        }
        let chain = self.chains.chain(index);
        let open = chain.when_broken == WhenBroken::Open;
        let up =
            |kind: BoxKind| self.chains.of_kind(kind).iter().any(|&index| self.chains.is_usable(self.network, index));
        let kinds = chain.sequence.iter().copied().filter(|&kind| !open || up(kind)).collect();
        self.list.push(Class { chain: index, kinds, open });
        let class = self.list.len() as u32 - 1;
        self.known.insert(index, class);
        class
    }
}

/// Flows of the request's edges, and between its tasks and containers that came before, as far as it is known what these send
/// and get. Where nothing of that is known, from every task to every container that runs, whatever flows there (§5.2.2).
struct Flows<'a, 'p> {
    compiled: &'a CompiledProblem<'p, ()>,
    topology: &'p Topology,
    network: &'p Network,
    settings: &'a Settings,
}

impl Flows<'_, '_> {
    fn all(&self, classes: &mut Classes<'_>, points: &mut Points) -> Result<Option<Vec<FlowOf>>, PlaceError> {
        let problem = self.compiled.problem;
        let mut flows = Vec::new();
        for edge in &self.compiled.edges {
            let [from, to] = [edge.from, edge.to].map(|group| &problem.groups[group.at()]);
            let class = classes.of(&self.facts([&from.name, &from.role], [&to.name, &to.role]));
            let pairs = self.pairs(edge);
            if flows.len() + pairs.len() > self.settings.flows_max {
                return self.too_many(classes, class);
            }
            let rate = edge.bytes.as_f64() * 8.0 / self.settings.transfer_s / pairs.len().max(1) as f64;
            let rate = (rate as u64).max(1);
            flows.extend(pairs.into_iter().map(|(a, b)| FlowOf { from: End::Task(a), to: End::Task(b), rate, class }));
        }
        let per_byte = self.rate_of_byte();
        for known in &problem.senders {
            let ways = self.ways_of(known, classes);
            let pairs = known.from.len() * self.tasks(known.to.0).len();
            if flows.len() + pairs * ways.len() > self.settings.flows_max {
                let class = ways.iter().map(|&(_, class)| class).find(|class| *class != NONE);
                return self.too_many(classes, class.unwrap_or(NONE));
            }
            for (into, class) in ways {
                self.join_arrived(known, (into, class), per_byte, points, &mut flows);
            }
        }
        if problem.edges.is_empty() && problem.senders.is_empty() {
            for (at, group) in (0_u32..).zip(&problem.groups) {
                let class = classes.of(&self.facts([&group.name, &group.role], ["", ""]));
                let own = self.tasks(at);
                if flows.len() + own.len() * problem.anchors.len() > self.settings.flows_max {
                    return self.too_many(classes, class);
                }
                for task in own {
                    flows.extend(problem.anchors.iter().map(|anchor| {
                        let point = points.of_node(self.network, self.topology, anchor.node);
                        let to = End::Fixed { node: anchor.node, point };
                        FlowOf { from: End::Task(task), to, rate: u64::from(anchor.count.max(1)), class }
                    }));
                }
            }
        }
        Ok(Some(flows).filter(|flows| !flows.is_empty()))
    }

    /// Directions in which containers that came and the group's tasks send, whether into the tasks, and what that is under:
    /// nobody says what those that came are called.
    fn ways_of(&self, known: &ArrivedSenders, classes: &mut Classes<'_>) -> Vec<(bool, u32)> {
        let group = &self.compiled.problem.groups[known.to.at()];
        let (named, others) = ([&*group.name, &*group.role], ["", ""]);
        let mut ways = Vec::new();
        if known.way != Way::Out {
            ways.push((true, classes.of(&self.facts(others, named))));
        }
        if known.way != Way::In {
            ways.push((false, classes.of(&self.facts(named, others))));
        }
        ways
    }

    /// Bits/s that stand for a byte which one task gets from, or sends to, containers that came. Beside edges it is theirs.
    /// Alone these flows take nothing of boxes, for bytes may be told as one a sender, and nobody keeps track of their ways: the
    /// least has [`LEAST_RATE`], so that all are in proportion.
    fn rate_of_byte(&self) -> f64 {
        let problem = self.compiled.problem;
        if !problem.edges.is_empty() {
            return 8.0 / self.settings.transfer_s;
        }
        let tasks = |known: &ArrivedSenders| self.tasks(known.to.0).len().max(1) as f64;
        let least = |known: &ArrivedSenders| {
            let sent = known.from.iter().map(|(_, bytes)| bytes.as_f64()).filter(|bytes| *bytes > 0.0);
            sent.fold(f64::INFINITY, f64::min) / tasks(known)
        };
        LEAST_RATE / problem.senders.iter().map(least).fold(f64::INFINITY, f64::min)
    }

    /// Each task gets an equal part of what each node sends, or sends it.
    fn join_arrived(
        &self,
        known: &ArrivedSenders,
        (into, class): (bool, u32),
        rate_of_byte: f64,
        points: &mut Points,
        flows: &mut Vec<FlowOf>,
    ) {
        let tasks = self.tasks(known.to.0);
        for &(node, bytes) in known.from.iter().filter(|(_, bytes)| *bytes > Bytes::ZERO) {
            let fixed = End::Fixed { node, point: points.of_node(self.network, self.topology, node) };
            let rate = ((bytes.as_f64() / tasks.len().max(1) as f64 * rate_of_byte).round() as u64).max(1);
            for &task in &tasks {
                let [from, to] = if into { [fixed, End::Task(task)] } else { [End::Task(task), fixed] };
                flows.push(FlowOf { from, to, rate, class });
            }
        }
    }

    fn too_many(&self, classes: &Classes<'_>, class: u32) -> Result<Option<Vec<FlowOf>>, PlaceError> {
        if class == NONE && classes.list.is_empty() {
            return Ok(None);
        }
        let class = if class == NONE { 0 } else { class as usize };
        let chain = Arc::clone(&classes.chains.chain(classes.list[class].chain).name);
        Err(PlaceError::Broken { chain, why: format!("more than {} flows would be under it", self.settings.flows_max) })
    }

    fn tasks(&self, group: u32) -> Vec<u32> {
        (0_u32..).zip(&self.compiled.group_of).filter(|(_, of)| **of == group).map(|(task, _)| task).collect()
    }

    fn facts<'f>(&'f self, from: [&'f str; 2], to: [&'f str; 2]) -> FlowFacts<'f> {
        let owner = self.compiled.problem.owner;
        FlowFacts {
            application: owner.map_or(["", ""], |owner| owner.application),
            queue: owner.map(|owner| owner.queue),
            from,
            to,
            port: Some(self.settings.port),
            protocol: Some(Protocol::Tcp),
        }
    }

    fn pairs(&self, edge: &EdgeProblem) -> Vec<(u32, u32)> {
        let (from, to) = (self.tasks(edge.from.0), self.tasks(edge.to.0));
        match edge.pattern {
            EdgePattern::AllToAll => {
                let all = from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b)));
                all.filter(|(a, b)| a != b).take(self.settings.flows_max + 1).collect()
            }
            EdgePattern::OneToOne => {
                let longest = from.len().max(to.len());
                (0..longest).map(|at| (from[at % from.len()], to[at % to.len()])).filter(|(a, b)| a != b).collect()
            }
        }
    }
}

/// Candidates of any group, ascending: all of them, or in a large cluster those of racks with most room, evenly, and
/// those of `also`, which some placement took.
fn shortlist(problem: &PlaceProblem<'_>, limit: usize, also: &[Vec<Share>]) -> Vec<NodeIdx> {
    let mut all: Vec<NodeIdx> = problem.groups.iter().flat_map(|group| group.candidates.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    if all.len() <= limit {
        return all;
    }
    // By load within a rack, and by turns of racks: places near every box stay among them.
    let mut racks: BTreeMap<u32, Vec<(u32, NodeIdx)>> = BTreeMap::new();
    for node in all {
        let load = load_ppm(problem.snapshot, node, &problem.room(node));
        racks.entry(problem.snapshot.rack(node).0).or_default().push((load, node));
    }
    let mut ranked: Vec<(usize, u32, NodeIdx)> = Vec::new();
    for nodes in racks.values_mut() {
        nodes.sort_unstable();
        ranked.extend(nodes.iter().enumerate().map(|(nth, &(load, node))| (nth, load, node)));
    }
    ranked.sort_unstable();
    let mut chosen: Vec<NodeIdx> = ranked.into_iter().take(limit).map(|(.., node)| node).collect();
    chosen.extend(also.iter().flatten().map(|share| share.node));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
