//! `RequestHintsRequest` to [`HintRequest`].

use super::field::{Most, bounded, containers_allowed, count, invalid, list, short, short_named, text};
use super::field_words::in_words;
use super::resource::{ask, size};
use crate::runtime::RequestLimits;
use hintd_client::wire::v1;
use hintd_engine::{AttemptHeld, Refusal, check_keys};
use hintd_model::cluster::{Ask, Constraints, EdgePattern, Gang, GroupEdge, HintRequest, TaskGroup, WhenFull};
use hintd_model::units::{
    ApplicationId, AttemptId, Bytes, GroupIdx, HostName, QueueName, RackPath, RequestId, SchedulerKey, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All edges of a request together: an exabyte, far above any job and far below overflow.
const EDGE_BYTES_MAX: u64 = 1 << 60;
/// The row of a key that counts: all its containers, wherever they go.
const ANY: &str = "*";

/// A request that is well-formed.
///
/// # Errors
/// [`Refusal::Invalid`] with the path of the first field that is not.
pub fn request(wire: &v1::RequestHintsRequest, limits: &RequestLimits) -> Result<HintRequest, Refusal> {
    checked(wire, limits).map_err(|refusal| in_words(wire, refusal))
}

fn checked(wire: &v1::RequestHintsRequest, limits: &RequestLimits) -> Result<HintRequest, Refusal> {
    let asks = asks(wire, limits)?;
    let groups = if wire.groups.is_empty() { groups_of_asks(&asks)? } else { groups(wire, limits)? };
    check_total(&groups, limits)?;
    let queue = short("queue", &wire.queue, limits)?;
    Ok(HintRequest {
        id: RequestId(short_named("request_id", &wire.request_id, limits)?),
        attempt: attempt(&wire.application_id, wire.attempt)?,
        queue: QueueName(if queue.is_empty() { "default".into() } else { queue }),
        user: text("user", &wire.user, limits)?,
        framework: text("framework", &wire.framework, limits)?,
        edges: edges(wire, &groups, limits)?,
        groups,
        input_paths: list("input_paths", &wire.input_paths, paths(limits), limits)?,
        recurring_key: optional(text("recurring_job_key", &wire.recurring_job_key, limits)?),
        constraints: constraints("constraints", wire.constraints.as_ref(), limits)?,
        policy: optional(text("policy", &wire.policy, limits)?),
        seed: wire.seed,
        gang: gang(wire.gang)?,
        when_full: when_full(wire.when_full)?,
        am_host: optional(text("am_host", &wire.am_host, limits)?).map(HostName),
        asks,
        survivors: Vec::new(),
    })
}

/// An application's id.
///
/// # Errors
/// [`Refusal::Invalid`] for what is none.
pub(in crate::server) fn application(id: &str) -> Result<ApplicationId, Refusal> {
    id.parse().map_err(|error| invalid("application_id", error))
}

/// An application's attempt, as requests, releases and follows name it.
///
/// # Errors
/// [`Refusal::Invalid`] for what is no application id, and for attempt 0.
pub fn attempt(application: &str, attempt: u32) -> Result<AttemptId, Refusal> {
    let application = self::application(application)?;
    if attempt == 0 {
        return Err(invalid("attempt", "0 is no attempt: YARN counts them from 1"));
    }
    Ok(AttemptId { application, attempt })
}

/// An attempt as operators see it.
pub(in crate::server) fn attempt_view(held: &AttemptHeld, now: Timestamp) -> v1::AttemptView {
    v1::AttemptView {
        application_id: held.attempt.application.to_string(),
        attempt: held.attempt.attempt,
        leases: held.leases as u64,
        requests: held.requests as u64,
        legacy: held.legacy,
        asked_ms: now.since(held.touched).as_millis(),
        asked_before_start: held.asked_before_start,
    }
}

const fn paths(limits: &RequestLimits) -> Most {
    Most(limits.paths, "paths_per_request")
}

fn optional(text: Arc<str>) -> Option<Arc<str>> {
    (!text.is_empty()).then_some(text)
}

fn asks(wire: &v1::RequestHintsRequest, limits: &RequestLimits) -> Result<Vec<Ask>, Refusal> {
    bounded("asks", wire.asks.len(), Most(limits.asks, "asks_per_request"))?;
    let mut seen = BTreeSet::new();
    let mut rows = Vec::with_capacity(wire.asks.len());
    for (at, row) in wire.asks.iter().enumerate() {
        let row = ask(&format!("asks[{at}]"), row, limits)?;
        if !seen.insert((row.key, Arc::clone(&row.resource_name))) {
            let SchedulerKey { priority, allocation_request_id } = row.key;
            let message = format!(
                "\"{}\" is given twice for priority {priority}, allocation request {allocation_request_id}",
                row.resource_name
            );
            return Err(invalid(format!("asks[{at}].resource_name"), message));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Every scheduler key becomes one group, from its `*` row.
fn groups_of_asks(asks: &[Ask]) -> Result<Vec<TaskGroup>, Refusal> {
    if asks.is_empty() {
        return Err(invalid("groups", "is empty, and so is asks: nothing is asked for"));
    }
    let mut keys: BTreeMap<SchedulerKey, Option<&Ask>> = BTreeMap::new();
    for row in asks {
        let any = keys.entry(row.key).or_default();
        if &*row.resource_name == ANY {
            *any = Some(row);
        }
    }
    let mut groups = Vec::with_capacity(keys.len());
    for (key, any) in keys {
        let SchedulerKey { priority, allocation_request_id } = key;
        let Some(row) = any else {
            let message =
                format!("priority {priority}, allocation request {allocation_request_id} has no row \"{ANY}\"");
            return Err(invalid("asks", message));
        };
        if row.count == 0 {
            continue; // taken back, and the table says so already
        }
        let name = if allocation_request_id == -1 {
            format!("p{priority}")
        } else {
            format!("p{priority}.{allocation_request_id}")
        };
        groups.push(TaskGroup {
            name: name.into(),
            role: "".into(),
            count: row.count,
            whole: 0,
            size: row.size.clone(),
            key,
            label: optional(Arc::clone(&row.label)),
            input_paths: Vec::new(),
            constraints: Constraints::default(),
        });
    }
    if groups.is_empty() {
        return Err(invalid("asks", "every row \"*\" asks for 0 containers"));
    }
    Ok(groups)
}

fn groups(wire: &v1::RequestHintsRequest, limits: &RequestLimits) -> Result<Vec<TaskGroup>, Refusal> {
    bounded("groups", wire.groups.len(), Most(limits.groups, "groups_per_request"))?;
    let mut names = BTreeSet::new();
    let mut groups = Vec::with_capacity(wire.groups.len());
    for (at, group) in wire.groups.iter().enumerate() {
        let path = format!("groups[{at}]");
        let name = short_named(format_args!("{path}.name"), &group.name, limits)?;
        if !names.insert(Arc::clone(&name)) {
            return Err(invalid(format!("{path}.name"), format!("\"{name}\" is given twice")));
        }
        groups.push(TaskGroup {
            name,
            role: text(format_args!("{path}.role"), &group.role, limits)?,
            count: count(&format!("{path}.count"), u64::from(group.count), limits.containers)?,
            whole: whole(&path, group.whole, limits)?,
            size: size(&format!("{path}.resource"), group.resource.as_ref(), limits)?,
            key: SchedulerKey {
                priority: group.priority,
                allocation_request_id: group.allocation_request_id.unwrap_or(-1),
            },
            label: optional(text(format_args!("{path}.node_label_expression"), &group.node_label_expression, limits)?),
            input_paths: list(&format!("{path}.input_paths"), &group.input_paths, paths(limits), limits)?,
            constraints: constraints(&format!("{path}.constraints"), group.constraints.as_ref(), limits)?,
        });
    }
    check_keys(&groups)?;
    Ok(groups)
}

/// Groups together are no more than one request may ask for, those containers included that are asked for later: they are placed
/// with the others.
fn check_total(groups: &[TaskGroup], limits: &RequestLimits) -> Result<(), Refusal> {
    let asked: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    let total: u64 = groups.iter().map(|group| u64::from(group.count.max(group.whole))).sum();
    if total <= limits.containers {
        return Ok(());
    }
    let later =
        if total > asked { format!(", {asked} of them now and the others later (whole)") } else { String::new() };
    let allowed = containers_allowed(limits.containers);
    Err(invalid("groups", format!("{total} containers in all{later}; {allowed}")))
}

/// A whole is no more than what could be asked for at once.
fn whole(path: &str, containers: u32, limits: &RequestLimits) -> Result<u32, Refusal> {
    if containers == 0 {
        return Ok(0);
    }
    count(&format!("{path}.whole"), u64::from(containers), limits.containers)
}

fn edges(
    wire: &v1::RequestHintsRequest,
    groups: &[TaskGroup],
    limits: &RequestLimits,
) -> Result<Vec<GroupEdge>, Refusal> {
    bounded("edges", wire.edges.len(), Most(limits.edges, "edges_per_request"))?;
    let mut total = 0_u64;
    let mut edges = Vec::with_capacity(wire.edges.len());
    for (at, edge) in wire.edges.iter().enumerate() {
        let find = |end: &str, name: &str| {
            let position = groups.iter().position(|group| &*group.name == name);
            position
                .map(GroupIdx::new)
                .ok_or_else(|| invalid(format!("edges[{at}].{end}"), format!("\"{name}\" is none of the groups")))
        };
        total = total.saturating_add(edge.bytes);
        if total > EDGE_BYTES_MAX {
            let message = format!("{} bytes bring the edges above {EDGE_BYTES_MAX} bytes in all", edge.bytes);
            return Err(invalid(format!("edges[{at}].bytes"), message));
        }
        edges.push(GroupEdge {
            from: find("from", &edge.from)?,
            to: find("to", &edge.to)?,
            pattern: pattern(&format!("edges[{at}].pattern"), edge.pattern)?,
            bytes: Bytes(edge.bytes),
        });
    }
    Ok(edges)
}

fn constraints(field: &str, wire: Option<&v1::Constraints>, limits: &RequestLimits) -> Result<Constraints, Refusal> {
    let Some(wire) = wire else { return Ok(Constraints::default()) };
    let avoid = Most(limits.avoid, "avoid_per_request");
    let hosts = list(&format!("{field}.avoid_hosts"), &wire.avoid_hosts, avoid, limits)?;
    let racks = list(&format!("{field}.avoid_racks"), &wire.avoid_racks, avoid, limits)?;
    Ok(Constraints {
        spread: wire.spread,
        together: wire.together,
        max_per_node: wire.max_per_node,
        max_per_rack: wire.max_per_rack,
        avoid_hosts: hosts.into_iter().map(HostName).collect(),
        avoid_racks: racks.into_iter().map(RackPath).collect(),
    })
}

fn pattern(field: &str, value: i32) -> Result<EdgePattern, Refusal> {
    match v1::EdgePattern::try_from(value) {
        Ok(v1::EdgePattern::Unspecified | v1::EdgePattern::AllToAll) => Ok(EdgePattern::AllToAll),
        Ok(v1::EdgePattern::OneToOne) => Ok(EdgePattern::OneToOne),
        Err(_) => Err(invalid(field, format!("{value} is no edge pattern"))),
    }
}

fn gang(value: i32) -> Result<Gang, Refusal> {
    match v1::Gang::try_from(value) {
        Ok(v1::Gang::Unspecified | v1::Gang::UpTo) => Ok(Gang::UpTo),
        Ok(v1::Gang::All) => Ok(Gang::All),
        Err(_) => Err(invalid("gang", format!("{value} is no gang"))),
    }
}

fn when_full(value: i32) -> Result<WhenFull, Refusal> {
    match v1::WhenFull::try_from(value) {
        Ok(v1::WhenFull::Unspecified | v1::WhenFull::Advise) => Ok(WhenFull::Advise),
        Ok(v1::WhenFull::Fail) => Ok(WhenFull::Fail),
        Err(_) => Err(invalid("when_full", format!("{value} is no answer to a full cluster"))),
    }
}

#[cfg(test)]
mod tests;
