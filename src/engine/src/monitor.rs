//! Who was silent for too long, and what is to be placed anew when a node is gone.

use super::decision::RememberedRequest;
use super::settings::EngineSettings;
use hintd_model::cluster::{Gang, GroupEdge, HintRequest, Model, NodeState, SurvivorEdge, Way, WhenFull};
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
        Some(GroupEdge { from, to, bytes: Parts::of(edge, request, hit).between, ..*edge })
    });
    let edges = edges.collect();
    let kept = request.survivors.iter().filter_map(|edge| {
        let group = *position.get(&edge.group.at())?;
        let bytes = part(edge.bytes, hit[&edge.group.at()], request.groups[edge.group.at()].count);
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
        survivors: survivors.collect(),
        constraints,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise, // there is nobody to fail to
        am_host: request.am_host.clone().filter(|am| am != host),
        asks: Vec::new(), // the table of now is the application's to know; rows are made from the groups
        ..HintRequest::clone(request)
    }
}

/// How an edge's bytes divide where some containers of its groups are placed anew and the others stay: each pair of a sender
/// and a receiver has as much.
struct Parts {
    /// Among those that are placed anew.
    between: Bytes,
    /// To those, from those that stay.
    into: Bytes,
    /// From those, to those that stay.
    out: Bytes,
}

impl Parts {
    fn of(edge: &GroupEdge, request: &HintRequest, hit: &BTreeMap<usize, u32>) -> Self {
        let [from, to] = [edge.from.at(), edge.to.at()].map(|at| {
            let all = request.groups[at].count;
            (hit.get(&at).copied().unwrap_or(0).min(all), all)
        });
        let sent = part(edge.bytes, from.0, from.1);
        let between = part(sent, to.0, to.1);
        let got = part(edge.bytes, to.0, to.1);
        Self { between, into: Bytes(got.0.saturating_sub(between.0)), out: Bytes(sent.0 - between.0) }
    }
}

/// Traffic of groups that are placed anew with containers of the same request that stay.
fn to_survivors(
    edge: &GroupEdge,
    request: &HintRequest,
    hit: &BTreeMap<usize, u32>,
    position: &BTreeMap<usize, GroupIdx>,
) -> impl Iterator<Item = SurvivorEdge> {
    let parts = Parts::of(edge, request, hit);
    let one = |at: usize, other: usize, way, bytes| {
        let group = *position.get(&at)?;
        let with = Arc::clone(&request.groups[other].name);
        (bytes > Bytes::ZERO).then_some(SurvivorEdge { group, with, way, bytes })
    };
    let (from, to) = (edge.from.at(), edge.to.at());
    let both = if from == to {
        [one(to, from, Way::Both, parts.into), None]
    } else {
        [one(to, from, Way::In, parts.into), one(from, to, Way::Out, parts.out)]
    };
    both.into_iter().flatten()
}

/// `some` of `all` containers' part.
fn part(bytes: Bytes, some: u32, all: u32) -> Bytes {
    let part = u128::from(bytes.0) * u128::from(some.min(all)) / u128::from(all.max(1));
    Bytes(u64::try_from(part).expect("a part is not more than the whole"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use hintd_model::cluster::EdgePattern;

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
        let kept = [survivor(0, "reduce", Way::Out, 75), survivor(0, "reduce", Way::Out, 25)];
        assert_eq!(half.survivors, kept, "what was lost twice keeps its share");
    }

    #[test]
    fn workers_that_exchange_are_placed_by_those_that_stay() {
        let mut original = request("job", &[("worker", 4)]);
        let (from, to, pattern) = (GroupIdx(0), GroupIdx(0), EdgePattern::AllToAll);
        original.edges = vec![GroupEdge { from, to, pattern, bytes: Bytes(1600) }];
        let again = replacement_request(&Arc::new(original), &BTreeMap::from([(0, 1)]), &"h1".into(), |_| false);
        assert_eq!(again.edges[0].bytes, Bytes(100));
        let both = SurvivorEdge { group: GroupIdx(0), with: "worker".into(), way: Way::Both, bytes: Bytes(300) };
        assert_eq!(again.survivors, [both]);
    }
}
