//! Who was silent for too long, and what is to be placed anew when a node is gone.

use super::decision::RememberedRequest;
use super::settings::EngineSettings;
use hintd_model::cluster::{Gang, GroupEdge, HintRequest, Model, NodeState, WhenFull};
use hintd_model::units::{Bytes, GroupIdx, HostName, NodeIdx, RequestId, Timestamp};
use std::collections::BTreeMap;

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
        Some(GroupEdge { from, to, bytes: share_of(edge, request, hit), ..*edge })
    });
    let mut constraints = request.constraints.clone();
    if !constraints.avoid_hosts.contains(host) {
        constraints.avoid_hosts.push(host.clone());
    }
    HintRequest {
        id: id.expect("there are more numbers than answers"),
        groups: groups.collect(),
        edges: edges.collect(),
        constraints,
        gang: Gang::UpTo,
        when_full: WhenFull::Advise, // there is nobody to fail to
        am_host: request.am_host.clone().filter(|am| am != host),
        asks: Vec::new(), // the table of now is the application's to know; rows are made from the groups
        ..HintRequest::clone(request)
    }
}

/// The sender's share of an edge's bytes that the hit containers stand for.
fn share_of(edge: &GroupEdge, request: &HintRequest, hit: &BTreeMap<usize, u32>) -> Bytes {
    let all = u128::from(request.groups[edge.from.at()].count.max(1));
    let part = u128::from(hit[&edge.from.at()]).min(all);
    Bytes(u64::try_from(u128::from(edge.bytes.0) * part / all).expect("a part is not more than the whole"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use hintd_model::cluster::EdgePattern;
    use std::sync::Arc;

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
        assert_eq!(again.edges, [GroupEdge { bytes: Bytes(200), ..edge(0, 1) }]);
        assert_eq!(
            (again.gang, again.am_host, &again.constraints.avoid_hosts[..]),
            (Gang::UpTo, None, &["h1".into()][..])
        );
        let twice = replacement_request(
            &Arc::new(request("job/replace/h1/1", &[("map", 1)])),
            &BTreeMap::from([(0, 1)]),
            &"h2".into(),
            |_| false,
        );
        assert_eq!(twice.id, "job/replace/h2/1".into(), "ids do not grow");
    }
}
