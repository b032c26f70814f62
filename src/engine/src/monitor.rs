//! Who was silent for too long, and what is to be placed anew when a node is gone.

use super::decision::RememberedRequest;
use super::settings::EngineSettings;
use hintd_model::cluster::{EdgePattern, Gang, GroupEdge, HintRequest, Model, NodeState, SurvivorEdge, Way, WhenFull};
use hintd_model::units::{Bytes, GroupIdx, HostName, NodeIdx, RequestId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands between a request's id and what was placed anew of it.
const REPLACE: &str = "/replace/";

/// Nodes whose silence has passed a limit, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SilentNodes {
    pub(crate) stale: Vec<NodeIdx>,
    pub(crate) lost: Vec<NodeIdx>,
}

/// Looks at all nodes. Silence counts from `start` where a node was last heard before it or never: a daemon that
/// was down has heard nobody. While whoever tells of nodes is blind, none is lost. `leased` says whether a node that never registered has leases, which make it worth losing.
pub(crate) fn silent(
    model: &Model,
    settings: &EngineSettings,
    leased: impl Fn(NodeIdx) -> bool,
    start: Timestamp,
    now: Timestamp,
) -> SilentNodes {
    let mut silent = SilentNodes::default();
    for node in model.statics().indexes() {
        let state = model.state(node).expect("every name has a state");
        let silence = now.since(model.last_heard(node).unwrap_or(start).max(start));
        let losable = match state {
            NodeState::Running | NodeState::Stale | NodeState::Unhealthy | NodeState::Decommissioning => true,
            NodeState::Unregistered => silence > settings.lost_after && leased(node),
            NodeState::Decommissioned | NodeState::Lost | NodeState::Shutdown => false,
        };
        if losable && silence > settings.lost_after && now >= model.silence_excused_until() {
            silent.lost.push(node);
        } else if state == NodeState::Running && silence > settings.stale_after {
            silent.stale.push(node);
        }
    }
    silent
}

/// The request that a request places tasks anew of; any other is its own.
pub(crate) fn original(id: &RequestId) -> RequestId {
    id.as_str().split(REPLACE).next().unwrap_or_default().into()
}

/// The host that a request places tasks anew of.
pub(crate) fn lost_host(id: &RequestId) -> Option<HostName> {
    let (_, rest) = id.as_str().split_once(REPLACE)?;
    Some(rest.rsplit_once('/')?.0.into())
}

/// The request that places `hit` containers (by group of `request`) anew, away from `host`. Its id is the
/// original's with `/replace/<host>/<n>`, `n` the first that is not `taken`.
pub(crate) fn replacement_request(
    request: &RememberedRequest,
    hit: &BTreeMap<usize, u32>,
    host: &HostName,
    taken: impl Fn(&RequestId) -> bool,
) -> HintRequest {
    let original = original(&request.id);
    let id = (1_u32..).map(|n| RequestId::from(format!("{original}{REPLACE}{host}/{n}"))).find(|id| !taken(id));
    let position: BTreeMap<usize, GroupIdx> = hit.keys().zip(0..).map(|(&group, at)| (group, GroupIdx(at))).collect();
    let groups = hit.iter().map(|(&group, &count)| {
        let mut group = request.groups[group].clone();
        group.count = count;
        group
    });
    let edges = request.edges.iter().filter_map(|edge| {
        let (&from, &to) = (position.get(&edge.from.at())?, position.get(&edge.to.at())?);
        let pairs = Pairs::of(edge, request, hit);
        (pairs.between > 0).then(|| GroupEdge { from, to, bytes: pairs.bytes(edge, pairs.between), ..*edge })
    });
    let edges = edges.collect();
    let kept = request.survivors.iter().filter_map(|edge| {
        let group = *position.get(&edge.group.at())?;
        let (lost, all) = (hit[&edge.group.at()], request.groups[edge.group.at()].count);
        let bytes = part(edge.bytes, lost.into(), all.into());
        Some(SurvivorEdge { group, bytes, ..edge.clone() })
    });
    let survivors = kept.chain(request.edges.iter().flat_map(|edge| to_survivors(edge, request, hit, &position)));
    let mut constraints = request.constraints.clone();
    if !constraints.avoid_hosts.contains(host) {
        constraints.avoid_hosts.push(host.clone());
    }
    HintRequest {
        id: id.expect("there are more numbers than answers"),
        groups: groups.collect(),
        edges,
        survivors: merged(survivors),
        constraints,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise, // there is nobody to fail to
        am_host: request.am_host.clone().filter(|am| am != host),
        asks: Vec::new(), // the table of now is the application's to know; rows are made from the groups
        ..HintRequest::clone(request)
    }
}

/// How the pairs of a sender and a receiver divide where some containers of an edge's groups are placed anew and the others
/// stay; each pair has as many bytes.
struct Pairs {
    /// All of the edge, at least 1.
    all: u64,
    /// Both are placed anew.
    between: u64,
    /// The sender stays.
    into: u64,
    /// The receiver stays.
    out: u64,
}

impl Pairs {
    fn of(edge: &GroupEdge, request: &HintRequest, hit: &BTreeMap<usize, u32>) -> Self {
        let [(from, senders), (to, receivers)] = [edge.from.at(), edge.to.at()].map(|at| {
            let all = request.groups[at].count.max(1);
            (u64::from(hit.get(&at).copied().unwrap_or(0).min(all)), u64::from(all))
        });
        match edge.pattern {
            EdgePattern::AllToAll if edge.from == edge.to => {
                let stay = senders - from;
                // Nobody sends to itself.
                let between = from * from.saturating_sub(1);
                Self { all: (senders * (senders - 1)).max(1), between, into: stay * from, out: stay * from }
            }
            EdgePattern::AllToAll => Self {
                all: senders * receivers,
                between: from * to,
                into: (senders - from) * to,
                out: from * (receivers - to),
            },
            EdgePattern::OneToOne => {
                // Partners are mostly on one host, and lost together.
                let all = senders.max(receivers);
                let [from, to] = [from * all / senders, to * all / receivers];
                let between = from.min(to);
                Self { all, between, into: to - between, out: from - between }
            }
        }
    }

    fn bytes(&self, edge: &GroupEdge, pairs: u64) -> Bytes {
        part(edge.bytes, pairs, self.all)
    }
}

/// Traffic of groups that are placed anew with containers of the same request that stay. Bytes may be 0, which is not known.
fn to_survivors(
    edge: &GroupEdge,
    request: &HintRequest,
    hit: &BTreeMap<usize, u32>,
    position: &BTreeMap<usize, GroupIdx>,
) -> impl Iterator<Item = SurvivorEdge> {
    let pairs = Pairs::of(edge, request, hit);
    let one = |at: usize, other: usize, way, of: u64| {
        let group = *position.get(&at)?;
        let with = Arc::clone(&request.groups[other].name);
        (of > 0).then(|| SurvivorEdge { group, with, way, bytes: pairs.bytes(edge, of) })
    };
    let (from, to) = (edge.from.at(), edge.to.at());
    let both = if from == to {
        [one(to, from, Way::Both, pairs.into), None]
    } else {
        [one(to, from, Way::In, pairs.into), one(from, to, Way::Out, pairs.out)]
    };
    both.into_iter().flatten()
}

/// One edge of each group with each other and each way.
fn merged(edges: impl Iterator<Item = SurvivorEdge>) -> Vec<SurvivorEdge> {
    let mut out: Vec<SurvivorEdge> = Vec::new();
    for edge in edges {
        let same =
            |known: &&mut SurvivorEdge| (known.group, known.way) == (edge.group, edge.way) && known.with == edge.with;
        match out.iter_mut().find(same) {
            Some(known) => known.bytes = known.bytes.saturating_add(edge.bytes),
            None => out.push(edge),
        }
    }
    out
}

/// `some` of `all` parts of it.
fn part(bytes: Bytes, some: u64, all: u64) -> Bytes {
    let part = u128::from(bytes.0) * u128::from(some.min(all)) / u128::from(all.max(1));
    Bytes(u64::try_from(part).expect("a part is not more than the whole"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;

    #[test]
    fn only_what_was_hit_is_placed_anew_and_not_there() {
        let mut original = request("job", &[("map", 8), ("side", 1), ("reduce", 4)]);
        let edge = |from, to| GroupEdge {
            from: GroupIdx(from),
            to: GroupIdx(to),
            pattern: EdgePattern::AllToAll,
            bytes: Bytes(800),
        };
        original.edges = vec![edge(0, 2), edge(1, 2)];
        original.gang = Gang::All;
        original.am_host = Some("h1".into());
        let hit = BTreeMap::from([(0, 2), (2, 1)]);
        let taken = |id: &RequestId| id.as_str() == "job/replace/h1/1";
        let again = replacement_request(&Arc::new(original), &hit, &"h1".into(), taken);
        assert_eq!(again.id, "job/replace/h1/2".into());
        assert_eq!(
            again.groups.iter().map(|group| (&*group.name, group.count)).collect::<Vec<_>>(),
            [("map", 2), ("reduce", 1)]
        );
        assert_eq!(
            again.edges,
            [GroupEdge { bytes: Bytes(50), ..edge(0, 1) }],
            "of 32 pairs two are placed anew whole"
        );
        let survivor = |group, with: &str, way, bytes| SurvivorEdge {
            group: GroupIdx(group),
            with: with.into(),
            way,
            bytes: Bytes(bytes),
        };
        let of_maps = [survivor(1, "map", Way::In, 150), survivor(0, "reduce", Way::Out, 150)];
        assert_eq!(again.survivors, [&of_maps[..], &[survivor(1, "side", Way::In, 200)]].concat());
        assert_eq!(
            (again.gang, &again.am_host, &again.constraints.avoid_hosts[..]),
            (Gang::UpTo, &None, &["h1".into()][..])
        );
        let twice = replacement_request(
            &Arc::new(request("job/replace/h1/1", &[("map", 1)])),
            &BTreeMap::from([(0, 1)]),
            &"h2".into(),
            |_| false,
        );
        assert_eq!(twice.id, "job/replace/h2/1".into(), "ids do not grow");
        let half = replacement_request(&Arc::new(again), &BTreeMap::from([(0, 1)]), &"h2".into(), |_| false);
        assert_eq!(half.edges, [], "of the reduces of this request none is lost");
        let kept = [survivor(0, "reduce", Way::Out, 100)];
        assert_eq!(half.survivors, kept, "what was lost twice keeps its share, and one edge has all of it");
    }

    #[test]
    fn workers_that_exchange_are_placed_by_those_that_stay() {
        let again = replacement_request(&again_of(4, 1600), &BTreeMap::from([(0, 1)]), &"h1".into(), |_| false);
        assert_eq!(again.edges, [], "one sends nothing to itself");
        let both =
            |bytes| SurvivorEdge { group: GroupIdx(0), with: "worker".into(), way: Way::Both, bytes: Bytes(bytes) };
        assert_eq!(again.survivors, [both(400)], "3 of 12 pairs each way");
        let two = replacement_request(&again_of(4, 1200), &BTreeMap::from([(0, 2)]), &"h1".into(), |_| false);
        assert_eq!((two.edges[0].bytes, &two.survivors[..]), (Bytes(200), &[both(400)][..]), "2, and 4 each way");
    }

    fn again_of(workers: u32, bytes: u64) -> RememberedRequest {
        let mut original = request("job", &[("worker", workers)]);
        let (from, to, pattern) = (GroupIdx(0), GroupIdx(0), EdgePattern::AllToAll);
        original.edges = vec![GroupEdge { from, to, pattern, bytes: Bytes(bytes) }];
        Arc::new(original)
    }

    #[test]
    fn partners_that_are_lost_together_keep_their_traffic_and_unknown_bytes_stay_unknown() {
        let mut original = request("job", &[("source", 8), ("sink", 4)]);
        let (from, to) = (GroupIdx(0), GroupIdx(1));
        original.edges = vec![GroupEdge { from, to, pattern: EdgePattern::OneToOne, bytes: Bytes(800) }];
        let lost = |original: &HintRequest, sources, sinks| {
            let hit = BTreeMap::from([(0, sources), (1, sinks)]);
            replacement_request(&Arc::new(original.clone()), &hit, &"h1".into(), |_| false)
        };
        let both = lost(&original, 2, 1);
        assert_eq!((both.edges[0].bytes, &both.survivors[..]), (Bytes(200), &[][..]));
        let more = lost(&original, 3, 1);
        assert_eq!(more.edges[0].bytes, Bytes(200));
        let [out] = &more.survivors[..] else { panic!("{:?}", more.survivors) };
        assert_eq!((out.group, &*out.with, out.way, out.bytes), (from, "sink", Way::Out, Bytes(100)));
        original.edges[0] = GroupEdge { pattern: EdgePattern::AllToAll, bytes: Bytes::ZERO, ..original.edges[0] };
        let unknown = lost(&original, 2, 1);
        assert_eq!((unknown.survivors.len(), unknown.survivors[0].bytes), (2, Bytes::ZERO));
    }
}
