//! What the operator's page shows, as documents: the daemon now, a rack's nodes, a decision, the settings.
//!
//! Invariants: names are texts of a JSON document and nothing else; what grows with the cluster is bounded here or asked
//! for rack by rack; the engine is asked what `hintctl status` asks, never more often than once a document.

mod circuits;
mod plans;

pub use circuits::{PageCircuits, page_circuits};
pub use plans::{PagePlan, PagePlans, page_plan, page_plans};

use super::admin::{node_view, policy_view};
use super::convert::{self, PathsNow};
use super::explain;
use super::listing::refused_count;
use super::status_report::status_report;
use super::while_awaited::while_awaited;
use crate::findings::{self, Check};
use crate::runtime::Daemon;
use crate::runtime::clock::Clock;
use crate::runtime::registries::FeedRegistries;
use hintd_client::wire::v1;
use hintd_engine::records::{Record, RecordFilter, Undelivered};
use hintd_engine::{
    AttemptHeld, Followed, Generation, LinkUse, LoadSource, Mode, Proof, Refusal, Tally, TallyKey, Term, link_uses,
};
use hintd_model::cluster::Source;
use hintd_model::network::Network;
use hintd_model::units::{ApplicationId, NodeIdx};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Applications shown: those with most leases.
const APPLICATIONS_MAX: usize = 500;
/// Decisions shown: the latest.
const DECISIONS_MAX: usize = 200;
/// And the latest refusals, where these are older: what is counted is to be found.
const REFUSALS_MAX: usize = 50;
/// Links between switches shown: by id. More than 10,000 hosts have in racks of 40.
const LINKS_MAX: usize = 4_096;
/// Switches shown, by name.
const SWITCHES_MAX: usize = 2_048;
/// Users named of each link.
const USERS: u32 = 3;

/// How the daemon is now.
#[derive(Debug, Serialize)]
pub struct PageDocument {
    /// The daemon's clock, milliseconds since 1970.
    pub at_ms: u64,
    status: v1::StatusResponse,
    /// What `hintctl doctor` would warn of, as far as the daemon itself knows it.
    attention: Vec<Check>,
    network: NetworkMap,
    racks: Vec<RackRow>,
    applications_total: usize,
    applications: Vec<ApplicationRow>,
    decisions: Vec<DecisionRow>,
    /// Requests refused since the start by reason, and of these those that are recorded.
    refused: Vec<v1::RefusedCount>,
}

/// Switches and what joins them; hosts' links are counted by rack.
#[derive(Debug, Default, Serialize)]
struct NetworkMap {
    switches: Vec<SwitchRow>,
    switches_total: usize,
    links: Vec<v1::LinkView>,
    links_total: usize,
}

#[derive(Debug, Serialize)]
struct SwitchRow {
    name: Arc<str>,
    tier: String,
    up: bool,
    /// Hosts that hang on it, and those of them whose link is down.
    hosts: usize,
    hosts_cut: usize,
    /// The greatest share of a host's link that is used here.
    busiest_host_share: f64,
}

#[derive(Debug, Default, Serialize)]
struct RackRow {
    rack: String,
    nodes: usize,
    usable: usize,
    total_mb: u64,
    used_mb: u64,
    leased_mb: u64,
    containers: u64,
    /// Since the node that was silent longest was heard; absent: one was never heard.
    oldest_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ApplicationRow {
    application_id: String,
    attempt: u32,
    leases: usize,
    requests: usize,
    /// The busiest link that it sends over, and that link's share.
    busiest_link: Option<String>,
    busiest_share: Option<f64>,
    busiest_measured: Option<bool>,
}

#[derive(Debug, Serialize)]
struct DecisionRow {
    decision_id: String,
    at_ms: u64,
    application_id: String,
    attempt: u32,
    request_id: String,
    queue: String,
    user: String,
    policy: String,
    mode: &'static str,
    groups: Vec<GroupRow>,
    /// Containers that got a hint.
    hinted: u64,
    without_room: u32,
    expected_gain: Option<f64>,
    /// Why hints are kept back, or why there is no answer.
    withheld: Option<&'static str>,
    refused: Option<String>,
    /// Why nobody has the answer.
    late: Option<&'static str>,
    degraded: Vec<String>,
    /// How many of its containers came to their host; absent: it has no hints, or that is not kept.
    followed: Option<v1::Followed>,
}

#[derive(Debug, Serialize)]
struct GroupRow {
    name: Arc<str>,
    count: u32,
}

/// What links carry, worked out of the whole network once for all who look within a second.
#[derive(Debug, Default)]
pub struct RecentLinks {
    links: Mutex<Option<(Instant, Arc<[LinkUse]>)>>,
    network: Mutex<Option<(Instant, Arc<NetworkFound>)>>,
}

/// As the doctor has them: answers, or why there are none.
#[derive(Debug)]
struct NetworkFound {
    network: Result<v1::NetworkResponse, String>,
    racks: Result<v1::RacksResponse, String>,
}

/// The network by rack, and who believes what of racks, take a while where there are many hosts, and seldom change.
const NETWORK_KEPT: Duration = Duration::from_secs(10);

/// A load that was measured longer ago says little of now; the page fades it from then on.
const LOAD_OLD: Duration = Duration::from_secs(15);

/// Browsers ask for one rack after the other: each answer may be of links that were worked out so long before.
const LINKS_KEPT: Duration = Duration::from_secs(1);

impl RecentLinks {
    /// Of this generation.
    fn worked_out(&self, generation: &Generation, now: Instant) -> Arc<[LinkUse]> {
        let links: Arc<[LinkUse]> = link_uses(generation).into();
        *self.kept() = Some((now, Arc::clone(&links)));
        links
    }

    /// Of this generation, or of one of less than a second before.
    pub fn recent(&self, generation: &Generation, now: Instant) -> Arc<[LinkUse]> {
        let kept = self
            .kept()
            .as_ref()
            .filter(|(at, _)| now.saturating_duration_since(*at) < LINKS_KEPT)
            .map(|(_, links)| Arc::clone(links));
        kept.unwrap_or_else(|| self.worked_out(generation, now))
    }

    fn kept(&self) -> MutexGuard<'_, Option<(Instant, Arc<[LinkUse]>)>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The network and racks, of [`NETWORK_KEPT`] before at most.
    fn network(&self, daemon: &Daemon, now: Instant) -> Arc<NetworkFound> {
        let mut kept = self.network.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = kept.as_ref().filter(|(at, _)| now.saturating_duration_since(*at) < NETWORK_KEPT);
        if let Some((_, network)) = recent {
            return Arc::clone(network);
        }
        let network = Arc::new(NetworkFound {
            network: Ok(convert::network_view(daemon.network_in_force())),
            racks: Ok(convert::racks(&daemon.rack_audit(), true)),
        });
        *kept = Some((now, Arc::clone(&network)));
        network
    }
}

/// See [`PageDocument`].
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_document(daemon: &Daemon, recent: &Arc<RecentLinks>) -> Result<PageDocument, Refusal> {
    let status = status_report(daemon).await?;
    let heard = daemon.last_heard().await?;
    let (attempts, applications_total) = daemon.attempts_that_hold_most(APPLICATIONS_MAX).await?;
    let records = latest(daemon).await?;
    let followed = daemon.followed(records.iter().map(|record| record.decision()).collect()).await?;
    let refused = daemon.refusals().await?.into_iter().map(refused_count).collect();
    let (generation, now) = (daemon.generation(), daemon.clock().now());
    let (registries, recent, of) = (Arc::clone(daemon.registries()), Arc::clone(recent), daemon.clone());
    let age = move |node: NodeIdx| heard.get(node.at()).copied().flatten().map(|heard| now.since(heard).as_millis());
    let work = move || {
        let looked = Instant::now();
        let links = recent.worked_out(&generation, looked);
        let paths = PathsNow::of(&generation, &registries.links_down());
        let view = |link: &LinkUse| link_view((&*registries, of.clock()), &paths, link);
        let down: Vec<v1::LinkView> = links.iter().filter(|link| !link.up).map(view).collect();
        let down = Ok(v1::LinksResponse { total: u32::try_from(down.len()).unwrap_or(u32::MAX), links: down });
        let found = recent.network(&of, looked);
        PageDocument {
            at_ms: now.as_millis(),
            attention: findings::attention(findings::all(&status, &found.racks, &found.network, &down)),
            status,
            network: network_map(&generation, &links, view),
            racks: racks(&generation, age),
            applications_total,
            applications: applications(attempts, &links, |link| {
                let measured = registries.link_told(&link.link).measured;
                link.up
                    && link.source == LoadSource::Measured
                    && measured.is_some_and(|at| looked.saturating_duration_since(at) <= LOAD_OLD)
            }),
            decisions: records.iter().zip(followed).map(|(record, followed)| decision(record, followed)).collect(),
            refused,
        }
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| ended())
}

/// The latest decisions, and after them the latest refusals that are older.
async fn latest(daemon: &Daemon) -> Result<Vec<Arc<Record>>, Refusal> {
    let mut records = daemon.records_listed(RecordFilter::default(), DECISIONS_MAX).await?.records;
    let refused = RecordFilter { refused_only: true, ..RecordFilter::default() };
    let refused = daemon.records_listed(refused, REFUSALS_MAX).await?.records;
    let oldest = records.last().map(|record| record.decision());
    records.extend(refused.into_iter().filter(|record| oldest.is_some_and(|oldest| record.decision() < oldest)));
    Ok(records)
}

/// Decisions and refusals of one application, newest first.
#[derive(Debug, Serialize)]
pub struct PageDecisions {
    application_id: String,
    decisions: Vec<DecisionRow>,
    /// How many are recorded in all.
    total: usize,
    /// How far records go, in words.
    kept: String,
}

/// See [`PageDecisions`]: the latest of an application, as many as of all, however many others were decided since.
///
/// # Errors
/// [`Refusal::Invalid`] for what is no application id; [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_decisions(daemon: &Daemon, application: &str) -> Result<PageDecisions, Refusal> {
    let filter = RecordFilter { application: Some(convert::application(application)?), ..RecordFilter::default() };
    let listed = daemon.records_listed(filter, DECISIONS_MAX).await?;
    let followed = daemon.followed(listed.records.iter().map(|record| record.decision()).collect()).await?;
    let rows = listed.records.iter().zip(followed);
    Ok(PageDecisions {
        application_id: application.to_owned(),
        decisions: rows.map(|(record, followed)| decision(record, followed)).collect(),
        total: listed.total,
        kept: listed.kept,
    })
}

fn ended() -> Refusal {
    let retry_after = hintd_model::units::Micros::from_secs(1);
    Refusal::Unavailable { message: "making the page's document ended in a panic".to_owned(), retry_after }
}

/// Loads of links between switches: id, and shares of the capacity from a to b and back; NaN where a link is down, which
/// carries nothing and is not idle. For the page's history.
#[must_use]
pub fn fabric_shares(daemon: &Daemon) -> Vec<(Arc<str>, [f32; 2])> {
    let generation = daemon.generation();
    let snapshot = &generation.snapshot;
    let Some(network) = snapshot.topology.network.as_deref() else { return Vec::new() };
    let age = snapshot.heard.at(Source::LinkStats).map(|heard| daemon.clock().now().since(heard));
    // Counters that nobody told of any more say nothing of now: a gap, and no flat line.
    let silent = age.is_some_and(|age| age > daemon.settings().engine.max_age.of(Source::LinkStats));
    let links = link_uses(&generation);
    let fabric = links.iter().filter(|link| is_fabric(network, link));
    let mut found: Vec<(Arc<str>, [f32; 2])> =
        fabric.filter_map(|link| Some((Arc::from(link.link.as_str()), shares(link, silent)?))).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.truncate(LINKS_MAX);
    found
}

/// Of its capacity each way, NaN where it is down; `None`: its counters are `silent`.
fn shares(link: &LinkUse, silent: bool) -> Option<[f32; 2]> {
    let share = |load: f64| (load / link.capacity.0.max(1) as f64) as f32;
    match (link.up, silent && link.source == LoadSource::Measured) {
        (false, _) => Some([f32::NAN; 2]),
        (true, true) => None,
        (true, false) => Some(link.load.map(share)),
    }
}

fn is_fabric(network: &Network, link: &LinkUse) -> bool {
    let is_switch = |end: &Arc<str>| network.vertex(end).is_some_and(|end| !network.vertex_at(end).is_host());
    link.ends.iter().all(is_switch)
}

fn link_view((registries, clock): (&FeedRegistries, Clock), paths: &PathsNow, link: &LinkUse) -> v1::LinkView {
    convert::link_view(link, (&registries.link_told(&link.link), clock), paths, USERS)
}

fn share(link: &LinkUse) -> f64 {
    link.load[0].max(link.load[1]) / link.capacity.0.max(1) as f64
}

fn network_map(generation: &Generation, links: &[LinkUse], view: impl Fn(&LinkUse) -> v1::LinkView) -> NetworkMap {
    let Some(network) = generation.snapshot.topology.network.as_deref() else { return NetworkMap::default() };
    let mut switches: BTreeMap<Arc<str>, SwitchRow> = BTreeMap::new();
    for (index, vertex) in network.vertices() {
        let Some(tier) = vertex.tier() else { continue };
        let row = SwitchRow {
            name: Arc::clone(&vertex.name),
            tier: tier.to_string(),
            up: network.switch_up(index),
            hosts: 0,
            hosts_cut: 0,
            busiest_host_share: 0.0,
        };
        switches.insert(Arc::clone(&vertex.name), row);
    }
    let mut fabric = Vec::new();
    for link in links {
        if is_fabric(network, link) {
            fabric.push(link);
            continue;
        }
        // One of its ends is a host, which hangs on the other.
        for end in &link.ends {
            let Some(switch) = switches.get_mut(end) else { continue };
            switch.hosts += 1;
            switch.hosts_cut += usize::from(!link.up);
            switch.busiest_host_share = switch.busiest_host_share.max(share(link));
        }
    }
    fabric.sort_by(|a, b| a.link.cmp(&b.link));
    NetworkMap {
        switches_total: switches.len(),
        switches: switches.into_values().take(SWITCHES_MAX).collect(),
        links_total: fabric.len(),
        links: fabric.into_iter().take(LINKS_MAX).map(view).collect(),
    }
}

/// By name; racks without a node are left out.
fn racks(generation: &Generation, age: impl Fn(NodeIdx) -> Option<u64>) -> Vec<RackRow> {
    let snapshot = &generation.snapshot;
    let statics = &snapshot.statics;
    let mut rows: BTreeMap<Arc<str>, (RackRow, bool)> = BTreeMap::new();
    for node in statics.indexes().take(snapshot.nodes()) {
        let name: Arc<str> = Arc::from(statics.racks[snapshot.rack(node).at()].to_string());
        let (row, never) = rows.entry(name).or_default();
        row.nodes += 1;
        row.usable += usize::from(snapshot.state[node.at()].usable());
        row.total_mb += statics.total[node.at()].memory_mb();
        row.used_mb += snapshot.occupied[node.at()].memory_mb();
        row.leased_mb += generation.leases.leased(node).memory_mb();
        row.containers += u64::from(snapshot.containers[node.at()]);
        match age(node) {
            Some(age) => row.oldest_ms = Some(row.oldest_ms.unwrap_or(0).max(age)),
            None => *never = true,
        }
    }
    let named = |(name, (row, never)): (Arc<str>, (RackRow, bool))| RackRow {
        rack: name.to_string(),
        oldest_ms: row.oldest_ms.filter(|_| !never),
        ..row
    };
    rows.into_iter().map(named).collect()
}

/// `measured_now`: whether a link's load was measured a moment ago. As everywhere that goes before what is modelled, or old.
fn applications(
    attempts: Vec<AttemptHeld>,
    links: &[LinkUse],
    measured_now: impl Fn(&LinkUse) -> bool,
) -> Vec<ApplicationRow> {
    // In the directions that the application sends.
    let mut busiest: HashMap<ApplicationId, ((bool, f64), &LinkUse)> = HashMap::new();
    for link in links.iter().filter(|link| !link.users.is_empty()) {
        for user in &link.users {
            let sends = (0..2).filter(|way| user.bytes[*way].0 > 0).map(|way| link.load[way]).fold(0.0, f64::max);
            let rank = (measured_now(link), sends / link.capacity.as_f64().max(1.0));
            let known = busiest.entry(user.application).or_insert((rank, link));
            if rank > known.0 {
                *known = (rank, link);
            }
        }
    }
    let row = |held: AttemptHeld| {
        let found = busiest.get(&held.attempt.application);
        let link = found.map(|(_, link)| *link);
        ApplicationRow {
            application_id: held.attempt.application.to_string(),
            attempt: held.attempt.attempt,
            leases: held.leases,
            requests: held.requests,
            busiest_link: link.map(|link| link.link.to_string()),
            busiest_share: found.map(|((_, share), _)| *share),
            busiest_measured: link.map(|link| link.source == LoadSource::Measured),
        }
    };
    attempts.into_iter().map(row).collect()
}

fn decision(record: &Record, followed: Option<Followed>) -> DecisionRow {
    let request = record.request();
    let (answered, refused) = match record.answered() {
        Ok(answer) => (Some(&answer.decision), None),
        Err(refusal) => (None, Some(refusal.token().to_owned())),
    };
    let group =
        |group: &hintd_model::cluster::TaskGroup| GroupRow { name: Arc::clone(&group.name), count: group.count };
    DecisionRow {
        decision_id: record.decision().to_string(),
        at_ms: record.at().as_millis(),
        application_id: request.attempt.application.to_string(),
        attempt: request.attempt.attempt,
        request_id: request.id.to_string(),
        queue: request.queue.to_string(),
        user: request.user.to_string(),
        policy: record.policy().0.to_string(),
        mode: answered.map_or("", |decision| decision.mode.as_str()),
        groups: request.groups.iter().map(group).collect(),
        hinted: answered.map_or(0, |decision| decision.hinted()),
        without_room: answered.map_or(0, |decision| decision.without_room),
        expected_gain: answered.and_then(|decision| decision.expected_gain),
        withheld: answered.and_then(|decision| decision.withheld).map(|withheld| withheld.reason.as_str()),
        refused,
        late: record.undelivered().map(Undelivered::as_str),
        degraded: answered.map(|decision| decision.degraded.clone()).unwrap_or_default(),
        followed: followed.map(convert::followed),
    }
}

/// Nodes of one rack, by name.
#[derive(Debug, Serialize)]
pub struct RackNodes {
    rack: String,
    nodes: Vec<RackNode>,
}

#[derive(Debug, Serialize)]
struct RackNode {
    #[serde(flatten)]
    node: v1::NodeView,
    /// The link that it hangs on; absent: it hangs nowhere.
    link: Option<v1::LinkView>,
}

/// See [`RackNodes`]; of an unknown rack there are none.
///
/// # Errors
/// [`Refusal::Unavailable`] when the daemon shuts down.
pub async fn page_nodes(daemon: &Daemon, recent: &Arc<RecentLinks>, rack: String) -> Result<RackNodes, Refusal> {
    let heard = daemon.last_heard().await?;
    let (generation, now) = (daemon.generation(), daemon.clock().now());
    let (registries, recent, clock) = (Arc::clone(daemon.registries()), Arc::clone(recent), daemon.clock());
    let work = move || {
        let snapshot = &generation.snapshot;
        let statics = &snapshot.statics;
        let links = recent.recent(&generation, Instant::now());
        let by_end: HashMap<&str, &LinkUse> =
            links.iter().flat_map(|link| link.ends.iter().map(move |end| (&**end, link))).collect();
        let paths = PathsNow::of(&generation, &registries.links_down());
        let view = |node: NodeIdx| {
            let heard = heard.get(node.at()).copied().flatten();
            let link =
                by_end.get(snapshot.host(node).as_str()).map(|link| link_view((&*registries, clock), &paths, link));
            RackNode { node: node_view(&generation, node, heard.map(|heard| now.since(heard).as_millis())), link }
        };
        let of_rack = |node: &NodeIdx| statics.racks[snapshot.rack(*node).at()].to_string() == rack;
        let mut nodes: Vec<RackNode> = statics.indexes().take(snapshot.nodes()).filter(of_rack).map(view).collect();
        nodes.sort_by(|a, b| a.node.host.cmp(&b.node.host));
        RackNodes { rack, nodes }
    };
    tokio::task::spawn_blocking(work).await.map_err(|_| ended())
}

/// A decision explained, as `hintctl --json explain` prints it.
///
/// # Errors
/// [`Refusal`] as `hintctl explain`.
pub async fn page_explain(daemon: &Daemon, decision: &str) -> Result<String, Refusal> {
    let explained = explain::explain(daemon, decision, &Proof::Trusted).await?;
    let text = tokio::task::spawn_blocking(move || serde_json::to_string(explained.get_ref()));
    text.await.ok().and_then(Result::ok).ok_or_else(ended)
}

/// A recorded decision made again, and by another policy beside it, as `hintctl --json replay` prints it. `place` is held until
/// the work has ended; that ends soon after who asked went away.
///
/// # Errors
/// [`Refusal`] as `hintctl replay`.
pub async fn page_replay(
    daemon: &Daemon,
    decision: &str,
    policy: String,
    place: impl Send + 'static,
) -> Result<v1::ReplayResponse, Refusal> {
    let work = explain::replay_of(daemon, decision, policy).await?;
    while_awaited(place, "making the page's document", work).await
}

/// What the page shows gains of.
pub const GAIN_TERMS: [Term; 2] = [Term::CrossRackBytes, Term::RemoteBytes];

/// Of each of [`GAIN_TERMS`] the sums over compared decisions whose hints were given, since the start: as YARN would have placed
/// them by itself, as hinted, and as they came to be. A sum is of one term, so that differences of sums are, too.
#[must_use]
pub fn gain_sums(tallies: &BTreeMap<TallyKey, Tally>) -> [[f64; 3]; 2] {
    GAIN_TERMS.map(|term| {
        let given = tallies.iter().filter(|(key, _)| key.mode == Mode::On).map(|(_, tally)| tally.term(term));
        given.fold([0.0; 3], |all, of| [all[0] + of.default, all[1] + of.beside_hinted, all[2] + of.beside_realised])
    })
}

/// The settings in force.
#[derive(Debug, Serialize)]
pub struct PageSettings {
    file: String,
    /// The same from the root on: `file` is as it was named at the start.
    path: String,
    generation: u64,
    last_changed: Vec<String>,
    default_policy: &'static str,
    frameworks: BTreeMap<String, String>,
    queues: Vec<QueueRow>,
    policies: Vec<v1::PolicyView>,
}

#[derive(Debug, Serialize)]
struct QueueRow {
    name: String,
    mode: &'static str,
    policy: Option<&'static str>,
    hold: bool,
    holdout: f64,
}

/// See [`PageSettings`].
pub async fn page_settings(daemon: &Daemon) -> PageSettings {
    let last_changed = daemon.last_changed().await;
    let settings = daemon.settings();
    let holdout = |name: &str| settings.engine.worth.holdout.get(name).copied().unwrap_or(0.0);
    let queue = |(name, queue): (&String, &crate::runtime::options::Queue)| QueueRow {
        name: name.clone(),
        mode: queue.mode.as_str(),
        policy: queue.policy,
        hold: queue.hold,
        holdout: holdout(name),
    };
    let policies = &settings.policies;
    let path =
        std::path::absolute(&settings.file).map_or_else(|_| settings.file.clone(), |path| path.display().to_string());
    PageSettings {
        path,
        file: settings.file.clone(),
        generation: settings.generation,
        last_changed,
        default_policy: policies.default,
        frameworks: policies.frameworks.iter().map(|(name, policy)| (name.clone(), (*policy).to_owned())).collect(),
        queues: settings.queues.iter().map(queue).collect(),
        policies: policies.built.iter().map(|(name, policy)| policy_view(daemon, &settings, name, policy)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_is_down_is_not_idle_and_silent_counters_say_nothing() {
        let link = |up, source| LinkUse {
            link: "l1".into(),
            ends: ["s1", "s2"].map(Arc::from),
            capacity: hintd_model::units::BitsPerSec(100),
            up,
            damped: false,
            load: [50.0, 0.0],
            source,
            modelled: [0.0; 2],
            task_pairs: [0; 2],
            users: Vec::new(),
            unaccounted: [0.0; 2],
        };
        let (measured, modelled) = (LoadSource::Measured, LoadSource::Modelled);
        assert_eq!(shares(&link(true, measured), false), Some([0.5, 0.0]));
        assert_eq!(shares(&link(true, measured), true), None);
        assert_eq!(shares(&link(true, modelled), true), Some([0.5, 0.0]), "a model needs no counters");
        for silent in [false, true] {
            assert!(shares(&link(false, measured), silent).unwrap().iter().all(|share| share.is_nan()));
        }
    }
}
