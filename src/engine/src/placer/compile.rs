//! Compiling: a request in names against one generation, to a problem in dense columns.

use super::nearest::nearest;
use super::scan::{Filter, Scanner};
use super::sources::Sources;
use super::{PlacerSettings, input_blocks};
use crate::decision::LearnedFrom;
use crate::generation::Generation;
use crate::refusal::Refusal;
use hintd_model::cluster::{Constraints, Dataset, HintRequest, Resource, SizeError, Snapshot, Source};
use hintd_model::units::{GroupIdx, NodeIdx, RackIdx, Timestamp};
use hintd_policy::problem::{Anchor, EdgeProblem};
use hintd_policy::{Degraded, GroupProblem, Owner, PlaceProblem};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A compiled request.
#[derive(Debug)]
pub(crate) struct Compiled<'a> {
    /// What the policy gets; counts are cut to what could fit now, so that no policy walks through containers
    /// in vain.
    pub(crate) problem: PlaceProblem<'a>,
    /// By group.
    pub(crate) groups: Vec<GroupDemand>,
    /// Tokens of inputs taken from the history.
    pub(crate) notes: Vec<&'static str>,
    /// What history stood in for edges.
    pub(crate) learnt: Option<LearnedFrom>,
    /// Paths that were found.
    pub(crate) read: Vec<Arc<Dataset>>,
}

impl Compiled<'_> {
    /// How many of a group's containers there is room for now, whatever the other groups take.
    pub(crate) fn fits(&self, at: usize) -> u32 {
        let group = &self.problem.groups[at];
        if group.candidates.is_empty() { 0 } else { group.count.min(self.groups[at].count) }
    }

    /// Containers that are asked for now, by group.
    pub(crate) fn counts(&self) -> Vec<u32> {
        self.groups.iter().map(|wish| wish.count).collect()
    }
}

/// What a group wants, before cutting.
#[derive(Debug)]
pub(crate) struct GroupDemand {
    /// Containers that are asked for now. The problem's group has those that will be asked for later as well.
    pub(crate) count: u32,
    /// Those and all others of the group that have no place yet.
    pub(crate) open: u32,
    /// Which nodes it may use at all.
    pub(crate) filter: Arc<Filter>,
}

/// Compiles a request as of `now`, with what chains know its application by.
///
/// # Errors
/// [`Refusal`] for names that do not exist, sizes no container can have, and an empty model.
pub(crate) fn compile<'a>(
    generation: &'a Generation,
    (request, application): (&'a HintRequest, [&'a str; 2]),
    settings: &PlacerSettings,
    now: Timestamp,
) -> Result<Compiled<'a>, Refusal> {
    let snapshot = &*generation.snapshot;
    check_model(snapshot)?;
    check_counts(request, settings)?;
    let mut degraded = degraded(snapshot, settings, now);
    let history = request.recurring_key.as_ref().and_then(|key| generation.history.get(key)).map(Arc::as_ref);
    let mut notes = Vec::new();
    let mut edges = edges(request, history, &mut notes)?;
    let sources = Sources::of(generation, request, history);
    for edge in edges.iter_mut().filter(|edge| edge.from == edge.to) {
        edge.bytes = sources.among[edge.from.at()].unwrap_or(edge.bytes);
    }
    let senders_known = edges.is_empty() && request.survivors.is_empty() && sources.containers > 0;
    notes.extend(senders_known.then_some(if sources.assumed { EDGES_ASSUMED } else { EDGES_FROM_HISTORY }));
    let learnt = sources.learnt(request, history, edges.len());
    degraded.no_edges = edges.is_empty() && sources.containers == 0 && sources.senders.is_empty();
    let anchors = anchors(generation, request, &sources)?;
    let job = sources.job(generation, request, history);
    let mut inputs = input_blocks::Inputs::new(snapshot, request, &edges, history, &sources);
    inputs.on_demand = settings.located.is_some();
    let mut scanner = Scanner::new(snapshot, &generation.leases, &generation.scans);
    let mut groups = Vec::with_capacity(request.groups.len());
    let mut wishes = Vec::with_capacity(request.groups.len());
    for (at, group) in request.groups.iter().enumerate() {
        let filter = filter(snapshot, request, at)?;
        let scanned = scanner.scan(filter);
        let bounds = [&request.constraints, &group.constraints];
        let input = inputs.of(at)?;
        let open = sources.to_place(at, group.count);
        groups.push(GroupProblem {
            name: Arc::clone(&group.name),
            role: Arc::clone(&group.role),
            count: open,
            asked: group.count.max(group.whole),
            size: scanned.filter.size,
            key: group.key,
            candidates: Arc::clone(&scanned.candidates),
            exclusions: scanned.exclusions.clone(),
            input,
            max_per_node: tightest(bounds.map(|bounds| bounds.max_per_node)),
            max_per_rack: tightest(bounds.map(|bounds| bounds.max_per_rack)),
            planned: None,
            spread: bounds.iter().any(|bounds| bounds.spread),
            together: bounds.iter().any(|bounds| bounds.together),
        });
        wishes.push(GroupDemand { count: group.count, open, filter: Arc::clone(&scanned.filter) });
    }
    degraded.no_blocks = inputs.unknown;
    notes.extend(inputs.from_history.then_some("paths_from_history"));
    let read = inputs.read;
    let mut problem = PlaceProblem {
        snapshot,
        leases: &generation.leases,
        loads: Some(generation.scans.loads(snapshot)),
        rates: Some(generation.scans.rates(snapshot)),
        groups,
        edges,
        senders: sources.senders,
        earlier: sources.earlier,
        scattered: sources.scattered,
        job,
        anchors,
        running: Some(&generation.flows),
        owner: Some(Owner { application, queue: request.queue.as_str() }),
        gang: request.gang,
        seed: request.seed.unwrap_or_else(|| seed_of(request.id.as_str())),
        degraded,
    };
    problem.cut();
    Ok(Compiled { problem, groups: wishes, notes, learnt, read })
}

fn check_model(snapshot: &Snapshot) -> Result<(), Refusal> {
    // A node that is only named (by a recovered lease) offers nothing; one that offers something has registered.
    if snapshot.statics.total.iter().any(|total| !total.is_zero()) {
        return Ok(());
    }
    let message = "no node has registered yet, so there is nowhere to place containers".to_owned();
    Err(Refusal::MissingFeed { feed: Source::Heartbeats.as_str(), message })
}

fn check_counts(request: &HintRequest, settings: &PlacerSettings) -> Result<(), Refusal> {
    let invalid = |field: String, message: String| Err(Refusal::Invalid { field, message });
    if request.groups.is_empty() {
        return invalid("groups".into(), "there is no group, and no ask to make one of".into());
    }
    for (at, group) in request.groups.iter().enumerate() {
        if group.count == 0 {
            return invalid(format!("groups[{at}].count"), format!("group \"{}\" asks for 0 containers", group.name));
        }
        if request.groups[..at].iter().any(|other| other.name == group.name) {
            return invalid(format!("groups[{at}].name"), format!("\"{}\" is the name of two groups", group.name));
        }
    }
    // Those that are asked for later are placed now, too.
    let wanted: u64 = request.groups.iter().map(|group| u64::from(group.count.max(group.whole))).sum();
    let (asked, most) = (request.containers(), settings.containers_max);
    if wanted > most {
        let later = if wanted > asked { " now or, by whole, later" } else { "" };
        return invalid(
            "groups".into(),
            format!("{wanted} containers are asked for{later}; limits.containers_per_request allows {most}"),
        );
    }
    let groups = request.groups.len();
    let mut bytes: u64 = 0;
    for (at, edge) in request.edges.iter().enumerate() {
        if edge.from.at() >= groups || edge.to.at() >= groups {
            return invalid(
                format!("edges[{at}]"),
                format!("joins groups {} and {} of {groups}", edge.from.0, edge.to.0),
            );
        }
        let Some(sum) = bytes.checked_add(edge.bytes.0) else {
            return invalid(format!("edges[{at}].bytes"), "the edges' bytes together are more than 2^64".into());
        };
        bytes = sum;
    }
    Ok(())
}

/// By node: whether a group's containers may be there, room aside; nowhere where it names what is not known any more.
pub(crate) fn may_go(snapshot: &Snapshot, request: &HintRequest, at: usize) -> Vec<bool> {
    let filter = filter(snapshot, request, at).ok();
    let may = |node: NodeIdx| {
        let ruled_out = filter.as_ref().is_none_or(|filter| filter.rules_out(snapshot, node).is_some());
        snapshot.state[node.at()].usable() && !ruled_out
    };
    (0..snapshot.nodes()).map(|node| may(NodeIdx::new(node))).collect()
}

/// Nodes and bounds of a group, resolved.
fn filter(snapshot: &Snapshot, request: &HintRequest, at: usize) -> Result<Filter, Refusal> {
    let group = &request.groups[at];
    let kinds = &snapshot.kinds;
    let row = group.size.to_row(kinds).map_err(|name| Refusal::Unknown {
        what: "resource kind",
        nearest: nearest(&name, kinds.names().iter().map(|known| &**known)),
        name: name.to_string(),
    })?;
    let size =
        snapshot.rules.normalize(&row).map_err(|error| size_refused(snapshot, &row, (at, &group.name), error))?;
    let label = match group.label.as_deref().filter(|label| !label.is_empty()) {
        None => None,
        Some(label) => Some(snapshot.statics.label_bit(label).ok_or_else(|| Refusal::Unknown {
            what: "label",
            name: label.to_owned(),
            nearest: nearest(label, snapshot.statics.label_names.iter().map(|known| &**known)),
        })?),
    };
    let (mut hosts, mut racks) = (Vec::new(), Vec::new());
    for bounds in [&request.constraints, &group.constraints] {
        avoided(snapshot, bounds, &mut hosts, &mut racks)?;
    }
    Ok(Filter::new(size, label, hosts, racks))
}

fn size_refused(snapshot: &Snapshot, row: &Resource, (at, group): (usize, &str), error: SizeError) -> Refusal {
    let kind = match error {
        SizeError::Zero => 0,
        SizeError::AboveMaximum { kind, .. } => kind,
    };
    let name = match kind {
        0 => "memory",
        1 => "vcores",
        _ => snapshot.kinds.names().get(kind).map_or("value", |name| &**name),
    };
    let message = match error {
        SizeError::Zero => format!("group \"{group}\": {error}"),
        SizeError::AboveMaximum { maximum, .. } => {
            let unit = if kind == 0 { " MB" } else { "" };
            format!(
                "group \"{group}\" asks for {}{unit} {name} a container, more than the scheduler's maximum allocation of {maximum}",
                row.0[kind]
            )
        }
    };
    Refusal::Invalid { field: format!("groups[{at}].resource.{name}"), message }
}

fn avoided(
    snapshot: &Snapshot,
    bounds: &Constraints,
    hosts: &mut Vec<NodeIdx>,
    racks: &mut Vec<RackIdx>,
) -> Result<(), Refusal> {
    for host in &bounds.avoid_hosts {
        hosts.push(find_host(snapshot, host.as_str())?);
    }
    for rack in &bounds.avoid_racks {
        racks.push(*snapshot.statics.by_rack.get(rack).ok_or_else(|| Refusal::Unknown {
            what: "rack",
            name: rack.to_string(),
            nearest: nearest(rack.as_str(), snapshot.statics.racks.iter().map(|known| known.as_str())),
        })?);
    }
    Ok(())
}

fn find_host(snapshot: &Snapshot, host: &str) -> Result<NodeIdx, Refusal> {
    snapshot.statics.find(host).ok_or_else(|| Refusal::Unknown {
        what: "host",
        name: host.to_owned(),
        nearest: nearest(host, snapshot.statics.host.iter().map(|known| known.as_str())),
    })
}

/// What stays where it is and will talk to the new containers: running containers, leases of earlier requests, and what
/// left or sends what the new ones read; where nothing does, the ApplicationMaster.
fn anchors(generation: &Generation, request: &HintRequest, sources: &Sources) -> Result<Vec<Anchor>, Refusal> {
    let snapshot = &*generation.snapshot;
    let mut by_node: BTreeMap<NodeIdx, u32> = BTreeMap::new();
    if let Some(running) = snapshot.applications.get(&request.attempt) {
        for container in running.containers.values() {
            *by_node.entry(container.node).or_default() += 1;
        }
    }
    if let Some(host) = &request.am_host {
        let node = find_host(snapshot, host.as_str())?;
        if sources.containers == 0 {
            // Where containers of the attempt run on its host, the ApplicationMaster's is one of them.
            by_node.entry(node).or_insert(1);
        }
    }
    for (&node, &count) in &sources.nodes {
        // Where heartbeats name containers, those that run are counted already.
        let known = by_node.entry(node).or_default();
        *known = (*known).max(count);
    }
    for held in generation.held.get(&request.attempt).into_iter().flat_map(|held| held.iter()) {
        *by_node.entry(held.node).or_default() += held.count;
    }
    Ok(by_node.into_iter().map(|(node, count)| Anchor { node, count }).collect())
}

/// Which sources are missing or older than their limit.
fn degraded(snapshot: &Snapshot, settings: &PlacerSettings, now: Timestamp) -> Degraded {
    let old = |source| snapshot.heard.at(source).is_some_and(|at| now.since(at) > settings.max_age.of(source));
    Degraded {
        no_topology: snapshot.topology.network.is_none(),
        no_blocks: false,
        old_heartbeats: old(Source::Heartbeats),
        old_topology: old(Source::Topology),
        old_blocks: old(Source::Blocks),
        no_latency: !snapshot.latency.counts(now) || old(Source::Latency),
        no_edges: false,
    }
}

/// The request's edges, or those of the recurring job's history where it names none.
pub(crate) fn edges(
    request: &HintRequest,
    history: Option<&crate::history::JobHistory>,
    notes: &mut Vec<&'static str>,
) -> Result<Vec<EdgeProblem>, Refusal> {
    if !request.edges.is_empty() || !request.survivors.is_empty() {
        let edges = request.edges.iter();
        return Ok(edges.map(|e| EdgeProblem { from: e.from, to: e.to, pattern: e.pattern, bytes: e.bytes }).collect());
    }
    let position = |name: &str| request.groups.iter().position(|group| *group.name == *name).map(GroupIdx::new);
    let known = history.map_or(&[][..], |job| &job.edges).iter().filter_map(|edge| {
        let (from, to) = (position(&edge.from)?, position(&edge.to)?);
        Some(EdgeProblem { from, to, pattern: edge.pattern, bytes: edge.bytes })
    });
    let edges: Vec<EdgeProblem> = known.collect();
    notes.extend((!edges.is_empty()).then_some(EDGES_FROM_HISTORY));
    Ok(edges)
}

/// The token of edges that the request does not name.
const EDGES_FROM_HISTORY: &str = "edges_from_history";

/// The token of edges that neither the request nor history names, and the framework implies.
const EDGES_ASSUMED: &str = "edges_assumed";

/// 0 means no bound; of two bounds the tighter holds.
fn tightest(bounds: [u32; 2]) -> u32 {
    bounds.into_iter().filter(|&bound| bound > 0).min().unwrap_or(u32::MAX)
}

/// FNV-1a: small, and the same on every machine.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
