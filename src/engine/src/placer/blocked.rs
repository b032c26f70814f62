//! Containers that found no room: what keeps nodes from taking them, and which nodes come nearest.
//!
//! Other than the scan, which names the first thing that a node fails, this names all that it fails. Room is what is
//! left beside what runs, what is leased, and what the answer itself puts there.

use super::compile::Compiled;
use super::empty_cluster::{self, limit};
use crate::decision::{Blocked, Lack, NearMiss, block};
use hintd_model::cluster::{Resource, ResourceKinds};
use hintd_model::units::{NodeIdx, RackIdx};
use hintd_policy::{GroupProblem, Placement, Reason};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Near nodes named for a group.
const NEAREST: usize = 3;

/// Groups of a request for which each node is looked at, after the search has had its time. Further ones are told what
/// rules most nodes out, as the scan counted it.
const LOOKED_AT: usize = 8;

/// What the answer puts where.
struct Placed<'a> {
    room: &'a BTreeMap<NodeIdx, Resource>,
    on_node: BTreeMap<NodeIdx, u32>,
    in_rack: BTreeMap<RackIdx, u32>,
}

/// What one node fails.
struct NodeShortfall {
    fails: SmallVec<[&'static str; 4]>,
    /// Kind and amount of what is short.
    short: SmallVec<[(usize, u64); 2]>,
    /// The largest shortage against the container's own size, parts per million.
    share: u64,
    /// The constraint that the amounts belong to.
    room: Option<&'static str>,
}

/// Of every group with containers that found no room; `gang_waits`: those that found some can't use it.
pub(crate) fn of(compiled: &Compiled<'_>, placement: &Placement, gang_waits: bool) -> Vec<Blocked> {
    let mut placed = None;
    let mut all: Vec<Blocked> = Vec::new();
    // Groups of which nothing is placed, and where they are told of: others that are like them are blocked alike.
    let mut bare: Vec<(usize, usize)> = Vec::new();
    let mut looked_at = 0;
    for (at, wish) in compiled.groups.iter().enumerate() {
        // A gang that can't be whole is not searched for: what of it there is room for is not blocked.
        let fits = if gang_waits { compiled.fits(at) } else { 0 };
        let unplaced = wish.count - placement.placed(at).max(fits);
        if unplaced == 0 {
            continue;
        }
        let never = empty_cluster::beyond(compiled, at, placement.placed(at)).min(unplaced);
        let group = Arc::clone(&compiled.problem.groups[at].name);
        let is_bare = placement.groups[at].is_empty();
        let like = bare.iter().find(|(other, _)| is_bare && *compiled.groups[*other].filter == *wish.filter);
        let otherwise = if gang_waits { block::GANG } else { block::POLICY };
        let now = unplaced - never;
        if now == 0 {
            // Told below.
        } else if let Some(&(_, told)) = like {
            all.push(Blocked { group, count: now, ..all[told].clone() });
        } else if looked_at == LOOKED_AT {
            all.push(brief(compiled, at, now, otherwise));
        } else {
            looked_at += 1;
            let room = placed.get_or_insert_with(|| taken(compiled, placement));
            if is_bare {
                bare.push((at, all.len()));
            }
            all.push(look(compiled, at, now, &own(compiled, placement, at, room), otherwise));
        }
        if never > 0 {
            let room = placed.get_or_insert_with(|| taken(compiled, placement));
            let looks = looked_at < LOOKED_AT;
            looked_at += usize::from(looks);
            all.push(match looks {
                true => too_many(compiled, at, never, &own(compiled, placement, at, room)),
                false => too_many_in_brief(compiled, at, never),
            });
        }
    }
    all
}

/// Containers that not even the empty cluster holds: what is free or leased now is not the cause.
fn too_many(compiled: &Compiled<'_>, at: usize, count: u32, placed: &Placed<'_>) -> Blocked {
    let cause = too_many_in_brief(compiled, at, count);
    let seen = look(compiled, at, count, placed, block::POLICY);
    let nodes = if seen.constraint == cause.constraint { seen.nodes } else { 0 };
    Blocked { nodes, nearest: seen.nearest, ..cause }
}

/// Without a look at each node.
fn too_many_in_brief(compiled: &Compiled<'_>, at: usize, count: u32) -> Blocked {
    let group = &compiled.problem.groups[at];
    let constraint = limit(compiled, at);
    let bound = bound(group, constraint);
    Blocked {
        group: Arc::clone(&group.name),
        count,
        constraint: constraint.into(),
        bound,
        nodes: 0,
        nearest: Vec::new(),
    }
}

/// The number of a constraint that is one.
fn bound(group: &GroupProblem, constraint: &str) -> u32 {
    match constraint {
        block::MAX_PER_NODE => group.max_per_node,
        block::MAX_PER_RACK => group.max_per_rack,
        _ => 0,
    }
}

/// Of groups that want more than there is room for, each by itself, where nothing was searched for.
pub(crate) fn beyond(compiled: &Compiled<'_>) -> Vec<Blocked> {
    let short = |at: usize| {
        let fits = compiled.fits(at);
        let rest = compiled.groups[at].count.saturating_sub(fits);
        (rest > 0).then_some((at, rest, fits == 0))
    };
    let blocked = |(looked, (at, rest, bare)): (usize, (usize, u32, bool))| {
        let never = empty_cluster::beyond(compiled, at, 0).min(rest);
        let now = rest - never;
        // Of a part that fits nothing is known to be placed anywhere: all that a look at each node would find is room.
        let now = (now > 0).then(|| match bare && looked < LOOKED_AT {
            true => of_group(compiled, at, now),
            false => Blocked {
                group: Arc::clone(&compiled.problem.groups[at].name),
                count: now,
                constraint: Reason::NoRoom.as_str().into(),
                bound: 0,
                nodes: 0,
                nearest: Vec::new(),
            },
        });
        now.into_iter().chain((never > 0).then(|| too_many_in_brief(compiled, at, never)))
    };
    (0..compiled.groups.len()).filter_map(short).enumerate().flat_map(blocked).collect()
}

/// Of a group of which nothing is placed.
pub(crate) fn of_group(compiled: &Compiled<'_>, at: usize, count: u32) -> Blocked {
    let (room, on_node, in_rack) = (&BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    look(compiled, at, count, &Placed { room, on_node, in_rack }, block::POLICY)
}

/// Without a look at each node.
fn brief(compiled: &Compiled<'_>, at: usize, count: u32, otherwise: &'static str) -> Blocked {
    let group = &compiled.problem.groups[at];
    let most = group.exclusions.iter().max_by_key(|found| (found.count, std::cmp::Reverse(found.reason)));
    let constraint = most.map_or(otherwise, |found| found.reason.as_str());
    let (group, constraint) = (Arc::clone(&group.name), constraint.into());
    Blocked { group, count, constraint, bound: 0, nodes: 0, nearest: Vec::new() }
}

/// Of groups that no node has room for now.
pub(crate) fn of_full_groups(compiled: &Compiled<'_>) -> Vec<Blocked> {
    let full = compiled.problem.groups.iter().enumerate().filter(|(_, group)| group.candidates.is_empty());
    let blocked = |(looked, (at, _)): (usize, (usize, _))| {
        let count = compiled.groups[at].count;
        if looked < LOOKED_AT { of_group(compiled, at, count) } else { brief(compiled, at, count, block::POLICY) }
    };
    full.enumerate().map(blocked).collect()
}

/// Of a group that is larger than the empty cluster; `constraint`: than what this one leaves of it.
pub(crate) fn of_cluster(compiled: &Compiled<'_>, at: usize, count: u32, constraint: Option<&'static str>) -> Blocked {
    let (snapshot, filter) = (compiled.problem.snapshot, &compiled.groups[at].filter);
    let alone = |node: &NodeIdx| {
        let mut against = filter.all_against(snapshot, *node).map(Reason::as_str);
        constraint.is_some() && against.next() == constraint && against.next().is_none()
    };
    let there = snapshot.statics.indexes().take(snapshot.nodes());
    let size = &compiled.problem.groups[at].size;
    let fits = |node: &NodeIdx| snapshot.rules.feasible(size, &snapshot.statics.total[node.at()]);
    let kept: Vec<NodeIdx> = there.filter(fits).filter(alone).collect();
    let bound = constraint.map_or(0, |constraint| bound(&compiled.problem.groups[at], constraint));
    let constraint: Arc<str> = constraint.unwrap_or(block::CLUSTER).into();
    let near = |&node: &NodeIdx| NearMiss {
        host: snapshot.host(node).clone(),
        lacks: vec![Lack { constraint: Arc::clone(&constraint), resource: "".into(), short: 0 }],
    };
    let nearest = kept.iter().take(NEAREST).map(near).collect();
    let (group, nodes) = (Arc::clone(&compiled.problem.groups[at].name), u32::try_from(kept.len()).unwrap_or(u32::MAX));
    Blocked { group, count, constraint, bound, nodes, nearest }
}

/// Room that the placement takes, by node.
pub(super) fn taken(compiled: &Compiled<'_>, placement: &Placement) -> BTreeMap<NodeIdx, Resource> {
    let mut room: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
    for (shares, group) in placement.groups.iter().zip(&compiled.problem.groups) {
        for share in shares {
            let sum = room.entry(share.node).or_default();
            *sum = sum.plus(&group.size.times(u64::from(share.count)));
        }
    }
    room
}

fn own<'a>(
    compiled: &Compiled<'_>,
    placement: &Placement,
    at: usize,
    room: &'a BTreeMap<NodeIdx, Resource>,
) -> Placed<'a> {
    let mut placed = Placed { room, on_node: BTreeMap::new(), in_rack: BTreeMap::new() };
    for share in &placement.groups[at] {
        *placed.on_node.entry(share.node).or_default() += share.count;
        *placed.in_rack.entry(compiled.problem.snapshot.rack(share.node)).or_default() += share.count;
    }
    placed
}

fn look(compiled: &Compiled<'_>, at: usize, count: u32, placed: &Placed<'_>, otherwise: &'static str) -> Blocked {
    let snapshot = compiled.problem.snapshot;
    let mut alone: BTreeMap<&'static str, u32> = BTreeMap::new();
    let mut among: BTreeMap<&'static str, u32> = BTreeMap::new();
    let mut nearest: Vec<((usize, u64, NodeIdx), NodeShortfall)> = Vec::with_capacity(NEAREST + 1);
    for node in snapshot.statics.indexes().take(snapshot.nodes()) {
        if snapshot.statics.total[node.at()].is_zero() {
            continue; // only named
        }
        let miss = miss(compiled, at, node, placed, otherwise);
        if let [only] = miss.fails[..] {
            *alone.entry(only).or_default() += 1;
        }
        miss.fails.iter().for_each(|constraint| *among.entry(constraint).or_default() += 1);
        let key = (miss.fails.len(), miss.share, node);
        if nearest.len() < NEAREST || nearest.last().is_some_and(|(last, _)| key < *last) {
            let position = nearest.partition_point(|(known, _)| *known < key);
            nearest.insert(position, (key, miss));
            nearest.truncate(NEAREST);
        }
    }
    let most = |counts: &BTreeMap<&'static str, u32>| {
        counts
            .iter()
            // Of equals a bound of the request's own: room comes and goes, and it stays.
            .max_by_key(|(of, count)| (**count, bound(&compiled.problem.groups[at], of) > 0, std::cmp::Reverse(**of)))
            .map(|(c, n)| (*c, *n))
    };
    let (constraint, nodes) =
        most(&alone).or_else(|| most(&among).map(|(constraint, _)| (constraint, 0))).unwrap_or((otherwise, 0));
    // Where the plan alone keeps some from it, that is what can be changed.
    let planned = alone.get(block::OTHER_RACK_PLANNED).map(|&nodes| (block::OTHER_RACK_PLANNED, nodes));
    let (constraint, nodes) = planned.unwrap_or((constraint, nodes));
    let group = Arc::clone(&compiled.problem.groups[at].name);
    let near = |((_, _, node), miss): ((usize, u64, NodeIdx), NodeShortfall)| NearMiss {
        host: snapshot.host(node).clone(),
        lacks: miss.lacks(&snapshot.kinds),
    };
    let bound = bound(&compiled.problem.groups[at], constraint);
    let nearest = nearest.into_iter().map(near).collect();
    Blocked { group, count, constraint: constraint.into(), bound, nodes, nearest }
}

fn miss(
    compiled: &Compiled<'_>,
    at: usize,
    node: NodeIdx,
    placed: &Placed<'_>,
    otherwise: &'static str,
) -> NodeShortfall {
    let (snapshot, group) = (compiled.problem.snapshot, &compiled.problem.groups[at]);
    let mut miss = NodeShortfall { fails: SmallVec::new(), short: SmallVec::new(), share: 0, room: None };
    if !snapshot.state[node.at()].usable() {
        miss.fails.push(Reason::NodeNotRunning.as_str());
    }
    miss.fails.extend(compiled.groups[at].filter.all_against(snapshot, node).map(Reason::as_str));
    let (rules, total) = (&snapshot.rules, snapshot.statics.total[node.at()]);
    let free = snapshot.unoccupied(node).minus(placed.room.get(&node).unwrap_or(&Resource::ZERO));
    let left = free.minus(&compiled.problem.leases.leased(node));
    let lack = if !rules.feasible(&group.size, &total) {
        Some((Reason::NodeTooSmall, total))
    } else if !rules.feasible(&group.size, &free) {
        Some((Reason::NoRoom, left))
    } else if !rules.feasible(&group.size, &left) {
        Some((Reason::Leased, left))
    } else {
        None
    };
    if let Some((reason, room)) = lack {
        miss.fails.push(reason.as_str());
        miss.room = Some(reason.as_str());
        let kinds = hintd_policy::load::kinds(snapshot);
        for kind in (0..kinds).filter(|&kind| group.size.0[kind] > room.0[kind]) {
            let short = group.size.0[kind] - room.0[kind];
            miss.share = miss.share.max(short.saturating_mul(1_000_000) / group.size.0[kind].max(1));
            miss.short.push((kind, short));
        }
    }
    if placed.on_node.get(&node).is_some_and(|&count| count >= group.max_per_node) {
        miss.fails.push(block::MAX_PER_NODE);
    }
    if placed.in_rack.get(&snapshot.rack(node)).is_some_and(|&count| count >= group.max_per_rack) {
        miss.fails.push(block::MAX_PER_RACK);
    }
    if group.planned.as_ref().is_some_and(|planned| planned.only && !planned.has(snapshot.rack(node))) {
        miss.fails.push(block::OTHER_RACK_PLANNED);
    }
    if miss.fails.is_empty() {
        miss.fails.push(otherwise);
    }
    miss
}

impl NodeShortfall {
    fn lacks(&self, kinds: &ResourceKinds) -> Vec<Lack> {
        let name = |kind: usize| kinds.names().get(kind).map_or_else(|| "".into(), Arc::clone);
        let lack = |constraint: &&'static str| -> Vec<Lack> {
            let plain = Lack { constraint: (*constraint).into(), resource: "".into(), short: 0 };
            if self.room != Some(*constraint) {
                return vec![plain];
            }
            let short = self.short.iter();
            short.map(|&(kind, short)| Lack { resource: name(kind), short, ..plain.clone() }).collect()
        };
        self.fails.iter().flat_map(lack).collect()
    }
}
