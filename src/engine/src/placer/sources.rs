//! What the groups of a request read that containers which came before have written or send: known by the edges of the
//! recurring job's history, where the sending group is not asked for in the same request.
//!
//! A stock MapReduce job's reduces are known to read its maps without that, if not how much.
//!
//! A group may send to itself, as Spark's executors do. Of those some may run already when more are asked for: each
//! container sends to each other one alike, so those that run are senders to the new ones, and get as much from them.
//!
//! Stock applications name no edges, and ask for what sends (maps) long before what receives (reduces). Receivers get
//! an equal part of what each sender has.
//!
//! Receivers may be asked for in parts, as where they are held until it is their turn. Those that were asked for before get
//! their part where they are, those that are asked for now and later share the rest: see `parts`.

use super::parts::{Whole, with_leased};
use crate::decision::LearnedFrom;
use crate::generation::Generation;
use crate::history::{EdgeHistory, JobHistory};
use hintd_model::cluster::{HintRequest, TaskGroup, Way};
use hintd_model::units::{Bytes, GroupIdx, NodeIdx};
use hintd_policy::problem::{ArrivedSenders, EarlierReceivers, KnownJob, is_reduce};
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// What each node sends to groups of the request.
    pub(crate) senders: Vec<ArrivedSenders>,
    /// What goes to containers of these groups that were asked for before.
    pub(crate) earlier: Vec<EarlierReceivers>,
    /// By group of the request that is asked for in parts: containers that have no place yet.
    open: BTreeMap<usize, u32>,
    /// By group of the request: others that are not asked for send to it, come or not.
    pub(crate) receives: Vec<bool>,
    /// Senders by node.
    pub(crate) nodes: BTreeMap<NodeIdx, u32>,
    /// Senders.
    pub(crate) containers: u64,
    /// By group of the request that sends to itself: what is sent among the containers that are asked for.
    pub(crate) among: Vec<Option<Bytes>>,
    /// What groups read, nobody knows where: bytes that come out of other racks.
    pub(crate) scattered: Vec<(GroupIdx, Bytes)>,
    /// No history names edges: maps that have come are taken to send alike.
    pub(crate) assumed: bool,
    /// Edges whose senders came.
    edges: u32,
}

/// Groups of a stock MapReduce job's maps, as the ResourceManager's processor names them: by priority; as they are first asked
/// for, tried again, opportunistic.
const MAPS: [&str; 3] = ["p20", "p5", "p19"];

/// Whether it is known without any history that a group gets what maps leave. How much does not matter to where it should
/// be: the busiest link is the same whatever the bytes are.
fn reads_maps(request: &HintRequest, role: &str) -> bool {
    &*request.framework == "mapreduce" && role == "reduce"
}

impl Sources {
    pub(crate) fn of(generation: &Generation, request: &HintRequest, history: Option<&JobHistory>) -> Self {
        let groups = request.groups.len();
        let mut sources = Self { receives: vec![false; groups], among: vec![None; groups], ..Self::default() };
        sources.scattered = history.map(|job| scattered(generation, request, job)).unwrap_or_default();
        sources.join_survivors(generation, request);
        if !request.edges.is_empty() || !request.survivors.is_empty() {
            return sources;
        }
        let asked = |name: &str| request.groups.iter().any(|group| *group.name == *name);
        let mut senders: BTreeMap<&str, BTreeMap<NodeIdx, u32>> = BTreeMap::new();
        for (at, group) in request.groups.iter().enumerate() {
            let to_it = |edge: &&EdgeHistory| edge.to == group.name && !asked(&edge.from);
            let known = history.into_iter().flat_map(|job| &job.edges).filter(to_it);
            let mut edges: Vec<(&str, Bytes)> = known.map(|edge| (&*edge.from, edge.bytes)).collect();
            sources.receives[at] = !edges.is_empty();
            let assumed = edges.is_empty() && reads_maps(request, &group.role);
            if assumed {
                edges.extend(MAPS.iter().filter(|maps| !asked(maps)).map(|&maps| (maps, Bytes::ZERO)));
            }
            let mut came: BTreeMap<NodeIdx, u32> = BTreeMap::new();
            for &(from, _) in &edges {
                let from = senders.entry(from).or_insert_with(|| whereabouts(generation, request, from));
                sources.edges += u32::from(!from.is_empty());
                sources.assumed |= assumed && !from.is_empty();
                for (&node, &count) in from.iter() {
                    *came.entry(node).or_default() += count;
                }
            }
            let bytes = edges.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum.saturating_add(*bytes));
            let within = history.and_then(|job| Some((job, job.within(&group.name)?)));
            if !came.is_empty() {
                let whole = if within.is_some() {
                    Whole::at_once(group)
                } else {
                    let held = generation.held.get(&request.attempt).map_or(&[][..], |held| &**held);
                    Whole::of(group, whereabouts(generation, request, &group.name), held)
                };
                sources.send((at, &whole), &came, bytes);
            }
            if let Some((job, edge)) = within {
                let here = running(generation, request, &group.name);
                sources.divide((at, group.count), edge.bytes, job.count(&group.name), &here);
                senders.insert(&group.name, here);
            }
        }
        for (node, count) in senders.into_values().flatten() {
            *sources.nodes.entry(node).or_default() += count;
            sources.containers += u64::from(count);
        }
        sources
    }

    /// What a request that places lost containers anew has to do with those that stay: they came, or are leased room.
    fn join_survivors(&mut self, generation: &Generation, request: &HintRequest) {
        let held = generation.held.get(&request.attempt).map_or(&[][..], |held| &**held);
        let mut groups: BTreeMap<&str, BTreeMap<NodeIdx, u32>> = BTreeMap::new();
        for edge in &request.survivors {
            self.receives[edge.group.at()] |= edge.way == Way::In;
            let came = match edge.way {
                Way::In => whereabouts(generation, request, &edge.with),
                Way::Out | Way::Both => running(generation, request, &edge.with),
            };
            if edge.way != Way::Out {
                // Leases are counted by whoever asks who is there.
                let known = groups.entry(&edge.with).or_default();
                for (&node, &count) in &came {
                    let known = known.entry(node).or_default();
                    *known = (*known).max(count);
                }
            }
            let there = with_leased(came, &edge.with, held);
            if !there.is_empty() {
                self.senders.push(ArrivedSenders { to: edge.group, from: parts(&there, edge.bytes), way: edge.way });
                self.edges += 1;
            }
        }
        for (&node, &count) in groups.values().flatten() {
            *self.nodes.entry(node).or_default() += count;
            self.containers += u64::from(count);
        }
    }

    /// What senders that `came` send to a group: to those of it that were asked for before, and to those that have no place.
    fn send(&mut self, (at, whole): (usize, &Whole), came: &BTreeMap<NodeIdx, u32>, bytes: Bytes) {
        let [earlier, open] = whole.divide(bytes, came.values().map(|&count| u64::from(count)).sum());
        self.senders.push(ArrivedSenders { to: GroupIdx::new(at), from: parts(came, open), way: Way::In });
        if !whole.earlier.is_empty() {
            let on = whole.earlier.iter().map(|(&node, &count)| (node, count)).collect();
            self.earlier.push(EarlierReceivers { from: parts(came, earlier), on });
        }
        self.open.insert(at, whole.open);
    }

    /// The whole job: as its last run was, and not smaller than what came of this one and is asked for, whether there is room
    /// for it or not.
    pub(crate) fn job(&self, generation: &Generation, request: &HintRequest, history: Option<&JobHistory>) -> KnownJob {
        let last = history.and_then(|job| job.last).map(|run| KnownJob {
            maps: run.maps.0.into(),
            reduces: run.reduces.0.into(),
            input: run.input,
            shuffle: run.shuffle,
        });
        let last = last.unwrap_or_default();
        let [maps, reduces] = known_tasks(generation, request);
        let job = last.grown_to(last.maps.max(self.containers).max(maps));
        KnownJob { reduces: job.reduces.max(reduces), ..job }
    }

    /// Containers of a group that are to be placed with those `asked` for now: those asked for later too.
    pub(crate) fn to_place(&self, at: usize, asked: u32) -> u32 {
        self.open.get(&at).copied().unwrap_or(asked)
    }

    /// Divides what a group sends to itself among pairs of containers, of which some are `here` and `new` are asked for;
    /// `known`: containers of the last run.
    fn divide(&mut self, (at, new): (usize, u32), bytes: Bytes, known: u32, here: &BTreeMap<NodeIdx, u32>) {
        let old: u64 = here.values().map(|&count| u64::from(count)).sum();
        let new = u64::from(new);
        let all = u128::from((old + new).max(u64::from(known)));
        // Nobody sends to itself.
        let pairs = (all * all.saturating_sub(1)).max(1);
        let of_pairs = |from: u64, to: u64| {
            let part = u128::from(bytes.0) * (u128::from(from) * u128::from(to)) / pairs;
            Bytes(u64::try_from(part).unwrap_or(u64::MAX))
        };
        self.among[at] = Some(of_pairs(new, new.saturating_sub(1)));
        if old > 0 {
            let from = parts(here, of_pairs(old, new));
            self.senders.push(ArrivedSenders { to: GroupIdx::new(at), from, way: Way::Both });
            self.edges += 1;
        }
    }

    /// What is to be said of the history; `between`: edges of it that join groups of the request.
    pub(crate) fn learnt(
        &self,
        request: &HintRequest,
        history: Option<&JobHistory>,
        between: usize,
    ) -> Option<LearnedFrom> {
        let asked = !request.edges.is_empty() || !request.survivors.is_empty();
        let job = history.filter(|job| !asked && !job.edges.is_empty())?;
        let (runs, last) = job.learnt.map_or((job.runs, job.updated), |learnt| (learnt.runs, learnt.last));
        let edges = u32::try_from(between).unwrap_or(u32::MAX).saturating_add(self.edges);
        Some(LearnedFrom { key: request.recurring_key.clone()?, runs, last, edges, sources: self.containers })
    }
}

/// Maps and reduces of the groups that are asked for: those that came, and those that still have to.
fn known_tasks(generation: &Generation, request: &HintRequest) -> [u64; 2] {
    let arrived = generation.arrived.get(&request.attempt);
    let mut tasks = [0; 2];
    for group in &request.groups {
        let came: u64 =
            arrived.into_iter().flat_map(|arrived| arrived.of(&group.name)).map(|(_, n)| u64::from(n)).sum();
        let all = u64::from(group.whole).max(came.saturating_add(group.count.into()));
        tasks[usize::from(is_reduce(&group.role))] += all;
    }
    tasks
}

/// Where the attempt's containers of a group are, or were when they ended; what a lost node had is gone with it.
fn whereabouts(generation: &Generation, request: &HintRequest, group: &str) -> BTreeMap<NodeIdx, u32> {
    let arrived = generation.arrived.get(&request.attempt);
    arrived.into_iter().flat_map(|arrived| arrived.of(group)).filter(|(node, _)| is_there(generation, *node)).collect()
}

/// Where the attempt's containers of a group run: those that ended get nothing any more (docs/decisions.md).
fn running(generation: &Generation, request: &HintRequest, group: &str) -> BTreeMap<NodeIdx, u32> {
    let arrived = generation.arrived.get(&request.attempt);
    let running = arrived.into_iter().flat_map(|arrived| arrived.running(group));
    running.filter(|(node, _)| is_there(generation, *node)).collect()
}

fn is_there(generation: &Generation, node: NodeIdx) -> bool {
    generation.snapshot.state.get(node.at()).is_some_and(|state| !state.gone())
}

/// HDFS keeps a block in two racks: of what lies nobody knows where, as much as a rack that has none of it must fetch.
fn scattered(generation: &Generation, request: &HintRequest, job: &JobHistory) -> Vec<(GroupIdx, Bytes)> {
    const RACKS_OF_A_BLOCK: u64 = 2;
    let named = !request.input_paths.is_empty() || request.groups.iter().any(|group| !group.input_paths.is_empty());
    if named || !job.input_paths.is_empty() {
        return Vec::new();
    }
    let racks = generation.snapshot.statics.members.iter().filter(|members| !members.is_empty()).count() as u64;
    let of = |(at, group): (usize, &TaskGroup)| {
        let known = job.groups.get(&group.name).filter(|known| known.input_paths.is_empty())?;
        let share = u128::from(group.count) * u128::from(racks.saturating_sub(RACKS_OF_A_BLOCK));
        let of = u128::from(known.count.max(group.count).max(1)) * u128::from(racks.max(1));
        let bytes = Bytes(u64::try_from(u128::from(known.input.0) * share / of).unwrap_or(u64::MAX));
        (bytes > Bytes::ZERO).then_some((GroupIdx::new(at), bytes))
    };
    request.groups.iter().enumerate().filter_map(of).collect()
}

/// Each node's part, by its senders; where bytes are not known, one byte a sender.
fn parts(came: &BTreeMap<NodeIdx, u32>, bytes: Bytes) -> Vec<(NodeIdx, Bytes)> {
    let senders: u64 = came.values().map(|&count| u64::from(count)).sum();
    let bytes = bytes.0.max(senders);
    let mut before = 0_u64;
    let share = |(&node, &count): (&NodeIdx, &u32)| {
        // Running sums, so that the shares together are the whole.
        let part = |senders_so_far: u64| (u128::from(bytes) * u128::from(senders_so_far) / u128::from(senders)) as u64;
        let from = part(before);
        before += u64::from(count);
        (node, Bytes(part(before) - from))
    };
    came.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_senders_are_whole_together() {
        let came = BTreeMap::from([(NodeIdx(1), 3), (NodeIdx(4), 1), (NodeIdx(5), 3)]);
        let of = |bytes| parts(&came, Bytes(bytes)).iter().map(|(_, bytes)| bytes.0).collect::<Vec<_>>();
        assert_eq!(of(100).iter().sum::<u64>(), 100);
        assert_eq!(of(700), [300, 100, 300]);
        assert_eq!(of(0), [3, 1, 3], "what is not known weighs by senders");
        assert!(parts(&BTreeMap::new(), Bytes(9)).is_empty());
    }
}
