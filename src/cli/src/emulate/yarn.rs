//! A ResourceManager that allocates from ask tables as YARN does, beside foreign applications.
//!
//! Who gets what is the model of YARN's CapacityScheduler: one queue, applications in order of arrival
//! ([`hintd_policy::capacity_scheduler`]), its settings at their defaults, but for the delay that hints need. Here is what ids and heartbeats are made of. Foreign applications are no
//! applications of the model: what they hold, their node does not have.

use super::cluster::{Cluster, resource};
use super::traffic::TransferId;
use hintd_client::wire::{v1, yarn};
use hintd_model::units::{ApplicationId, AttemptId, ContainerId, NodeIdx, RackIdx, SchedulerKey};
use hintd_policy::capacity_scheduler::{
    AppIdx, AskRow, CapacityScheduler, ContainerNo, NodeType, Place, QueueSettings, SchedulerSettings, Size,
    Submission, Verdict,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The seed's stream for foreign applications.
const STREAM: u64 = 2;

/// Sequence number that no job's application has: foreign containers belong to it.
const FOREIGN: u32 = 900_000;

/// Containers of an application start at 2, as the ApplicationMaster's own is the first; the model's at 1.
const FIRST_CONTAINER: u64 = 2;

/// NodeManagers' port.
const PORT: u16 = 8041;

/// What an application asks for under one scheduler key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskTable {
    /// The key.
    pub key: SchedulerKey,
    /// Memory of each container, MB.
    pub memory_mb: u64,
    /// Virtual cores of each.
    pub vcores: u32,
    /// Containers wanted, by host, rack or `*`: absolute counts.
    pub rows: BTreeMap<String, u32>,
}

/// What the ResourceManager tells a master, and its containers.
#[derive(Debug, Clone)]
pub enum MasterMessage {
    /// A container was given.
    Given(Allocation),
    /// A container died with its node.
    Lost(ContainerId),
    /// What was sent to a container is there.
    Arrived(TransferId),
}

/// A container that an application got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Whose.
    pub attempt: AttemptId,
    /// Which.
    pub container: ContainerId,
    /// For which ask.
    pub key: SchedulerKey,
    /// On which node.
    pub node: usize,
}

/// What became of applications' containers and foreign ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct YarnTally {
    /// Containers given to jobs.
    pub allocated: u64,
    /// Of these, on a host that the ask named.
    pub on_named_host: u64,
    /// Containers given to foreign applications.
    pub foreign: u64,
    /// Containers that died with their node.
    pub lost: u64,
}

#[derive(Debug)]
struct Node {
    host: String,
    total: Size,
    /// Held by foreign applications.
    foreign: Size,
    alive: bool,
    response_id: u32,
    containers: BTreeSet<ContainerId>,
    /// Ended since the last heartbeat: reported once.
    ended: Vec<v1::NodeContainer>,
}

#[derive(Debug, Clone, Copy)]
struct Container {
    node: usize,
    memory_mb: u64,
    vcores: u32,
    key: SchedulerKey,
    /// When a foreign one ends.
    until: Option<Duration>,
}

/// The ResourceManager.
#[derive(Debug)]
pub struct Yarn {
    nodes: Vec<Node>,
    scheduler: CapacityScheduler,
    apps: BTreeMap<AttemptId, AppIdx>,
    /// Hosts and racks by name; those that asks name and nobody has come after the cluster's.
    hosts: BTreeMap<String, u32>,
    racks: BTreeMap<String, u32>,
    /// Sizes asked for, as reports name them.
    sizes: BTreeMap<(AttemptId, SchedulerKey), (u64, u32)>,
    containers: BTreeMap<ContainerId, Container>,
    cluster_timestamp: u64,
    rng: ChaCha8Rng,
    tally: YarnTally,
}

impl Yarn {
    /// All nodes empty. `cluster_timestamp` stands in every id, milliseconds since 1970.
    #[must_use]
    pub fn new(cluster: &Cluster, cluster_timestamp: u64, seed: u64, rack_locality_additional_delay: i32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        // hintd has rounded sizes by YARN's rules already.
        let settings = SchedulerSettings {
            minimum: Size::new(1, 0),
            maximum: Size::new(i64::from(u32::MAX), i64::from(u32::MAX)),
            rack_locality_additional_delay,
            ..SchedulerSettings::default()
        };
        let scheduler = CapacityScheduler::single_queue(settings, QueueSettings::new("root.default"))
            .expect("these settings are within their ranges");
        let mut yarn = Self {
            nodes: Vec::new(),
            scheduler,
            apps: BTreeMap::new(),
            hosts: BTreeMap::new(),
            racks: BTreeMap::new(),
            sizes: BTreeMap::new(),
            containers: BTreeMap::new(),
            cluster_timestamp,
            rng,
            tally: YarnTally::default(),
        };
        cluster.machines.iter().for_each(|machine| yarn.add(machine));
        yarn
    }

    fn add(&mut self, machine: &super::cluster::Machine) {
        let (host, total) = (machine.host.to_string(), size(machine.memory_mb, machine.vcores));
        let at = NodeIdx(intern(&mut self.hosts, &host));
        let rack = RackIdx(intern(&mut self.racks, machine.rack.as_str()));
        self.scheduler.add_node(at, rack, (&host, PORT), total);
        self.nodes.push(Node {
            host,
            total,
            foreign: Size::ZERO,
            alive: true,
            response_id: 0,
            containers: BTreeSet::new(),
            ended: Vec::new(),
        });
    }

    /// The first attempt of application `sequence`.
    #[must_use]
    pub fn attempt(&self, sequence: u32) -> AttemptId {
        let application = ApplicationId { cluster_timestamp: self.cluster_timestamp, sequence };
        AttemptId { application, attempt: 1 }
    }

    /// Replaces what an application asks for under a key.
    pub fn ask(&mut self, attempt: AttemptId, table: AskTable) {
        let app = self.app(attempt);
        let AskTable { key, memory_mb, vcores, rows } = table;
        self.sizes.insert((attempt, key), (memory_mb, vcores));
        let row = |place, count| AskRow { key, place, size: size(memory_mb, vcores), count, relax: true };
        let rows: Vec<AskRow> = rows.iter().map(|(name, &count)| row(self.place(name), count)).collect();
        // None for `*` ends all rows that stood there.
        self.scheduler.ask(app, &[row(Place::Any, 0)]);
        self.scheduler.ask(app, &rows);
    }

    fn app(&mut self, attempt: AttemptId) -> AppIdx {
        if let Some(&app) = self.apps.get(&attempt) {
            return app;
        }
        // An ApplicationMaster takes no container here.
        let submission =
            Submission { queue: "root.default".to_owned(), user: "emulate".into(), priority: 0, master: Size::ZERO };
        let app = self.scheduler.submit(submission).expect("the queue was made with the scheduler");
        self.apps.insert(attempt, app);
        app
    }

    fn place(&mut self, name: &str) -> Place {
        match name {
            "*" => Place::Any,
            rack if rack.starts_with('/') => Place::Rack(RackIdx(intern(&mut self.racks, rack))),
            host => Place::Host(NodeIdx(intern(&mut self.hosts, host))),
        }
    }

    /// A node offers its room: who gets something there.
    pub fn offer(&mut self, node: usize) -> Vec<Allocation> {
        if !self.nodes[node].alive {
            return Vec::new();
        }
        let mut given = Vec::new();
        for decision in self.scheduler.heartbeat(NodeIdx::new(node)) {
            let of = self.apps.iter().find(|(_, app)| **app == decision.app).map(|(attempt, _)| *attempt);
            let (Verdict::Allocated | Verdict::FromReservation, Some(attempt)) = (decision.verdict, of) else {
                continue;
            };
            let key = decision.key;
            let (memory_mb, vcores) = self.sizes.get(&(attempt, key)).copied().unwrap_or_default();
            let container = ContainerId { attempt, id: decision.container + FIRST_CONTAINER - 1 };
            self.hold(container, Container { node, memory_mb, vcores, key, until: None });
            self.tally.allocated += 1;
            self.tally.on_named_host += u64::from(decision.kind == NodeType::NodeLocal);
            given.push(Allocation { attempt, container, key, node });
        }
        given
    }

    fn hold(&mut self, container: ContainerId, held: Container) {
        self.nodes[held.node].containers.insert(container);
        self.containers.insert(container, held);
    }

    /// A container ended in order; unknown ones (lost with their node) are left.
    pub fn finish(&mut self, container: ContainerId) {
        let Some(held) = self.containers.remove(&container) else { return };
        self.free(container, &held);
        let node = &mut self.nodes[held.node];
        node.containers.remove(&container);
        node.ended.push(report(container, &held, true));
    }

    /// Its room is there again.
    fn free(&mut self, container: ContainerId, held: &Container) {
        if let Some(&app) = self.apps.get(&container.attempt) {
            let number: ContainerNo = container.id + 1 - FIRST_CONTAINER;
            self.scheduler.release(app, number);
        } else {
            self.change_foreign(held.node, Size::ZERO.minus(size(held.memory_mb, held.vcores)));
        }
    }

    fn change_foreign(&mut self, node: usize, more: Size) {
        let row = &mut self.nodes[node];
        row.foreign = row.foreign.plus(more);
        let left = row.total.minus(row.foreign);
        self.scheduler.resize_node(NodeIdx::new(node), left);
    }

    /// A foreign application takes a container somewhere, if the node drawn has room; it ends at `until`.
    pub fn take_foreign(&mut self, until: Duration) {
        let node = self.rng.random_range(0..self.nodes.len());
        let memory_mb = 1024 * self.rng.random_range(1..=2);
        let free = self.scheduler.free_on(NodeIdx::new(node)).memory_mb;
        if !self.nodes[node].alive || free < memory_mb as i64 {
            return;
        }
        let key = SchedulerKey { priority: 0, allocation_request_id: -1 };
        let container = ContainerId { attempt: self.attempt(FOREIGN), id: FIRST_CONTAINER + self.tally.foreign };
        self.change_foreign(node, size(memory_mb, 1));
        self.hold(container, Container { node, memory_mb, vcores: 1, key, until: Some(until) });
        self.tally.foreign += 1;
    }

    /// Ends the foreign containers whose time has come.
    pub fn end_foreign(&mut self, now: Duration) {
        let due = |size: &Container| size.until.is_some_and(|until| until <= now);
        let ended: Vec<ContainerId> =
            self.containers.iter().filter(|(_, size)| due(size)).map(|(&container, _)| container).collect();
        for container in ended {
            self.finish(container);
        }
    }

    /// The machine stops: no heartbeats, no offers, its containers hang until [`Yarn::expire`].
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].alive = false;
    }

    /// The ResourceManager gives a dead node up: the jobs' containers that were on it.
    pub fn expire(&mut self, node: usize) -> Vec<ContainerId> {
        let containers = std::mem::take(&mut self.nodes[node].containers);
        self.containers.retain(|container, _| !containers.contains(container));
        self.nodes[node].foreign = Size::ZERO;
        self.scheduler.remove_node(NodeIdx::new(node));
        let foreign = self.attempt(FOREIGN);
        let lost: Vec<ContainerId> = containers.into_iter().filter(|container| container.attempt != foreign).collect();
        self.tally.lost += lost.len() as u64;
        lost
    }

    /// The application is done: what it still asked for is forgotten. Its containers have ended before.
    pub fn finish_application(&mut self, attempt: AttemptId) {
        if let Some(app) = self.apps.remove(&attempt) {
            self.scheduler.finish(app);
        }
        self.sizes.retain(|(of, _), _| *of != attempt);
    }

    /// The next heartbeat of a node; `None` of a dead one.
    pub fn heartbeat(&mut self, node: usize) -> Option<v1::NodeHeartbeat> {
        let Self { nodes, containers, .. } = self;
        let node = &mut nodes[node];
        if !node.alive {
            return None;
        }
        node.response_id += 1;
        let used = node.containers.iter().map(|container| &containers[container]);
        let used = used.fold((0, 0), |sum, held| (sum.0 + held.memory_mb, sum.1 + held.vcores));
        let live = node.containers.iter().map(|&container| report(container, &containers[&container], false));
        let all = live.chain(std::mem::take(&mut node.ended)).collect();
        Some(v1::NodeHeartbeat {
            host: node.host.clone(),
            response_id: node.response_id,
            used: Some(resource(used.0, used.1)),
            containers: all,
            state: String::new(),
        })
    }

    /// A NodeManager that registers anew counts its heartbeats from the start.
    pub fn restart_heartbeats(&mut self, node: usize) {
        self.nodes[node].response_id = 0;
    }

    /// The live node with most of the jobs' containers; of equals the first.
    #[must_use]
    pub fn busiest(&self) -> usize {
        let foreign = self.attempt(FOREIGN);
        let jobs = |node: &Node| node.containers.iter().filter(|container| container.attempt != foreign).count();
        let alive = self.nodes.iter().enumerate().filter(|(_, node)| node.alive);
        alive.max_by_key(|(at, node)| (jobs(node), std::cmp::Reverse(*at))).map_or(0, |(at, _)| at)
    }

    /// Containers of jobs that run now: (on `node`, elsewhere).
    #[must_use]
    pub fn running(&self, node: usize) -> (usize, usize) {
        let foreign = self.attempt(FOREIGN);
        let of_jobs = self.containers.iter().filter(|(container, _)| container.attempt != foreign);
        let (there, elsewhere): (Vec<_>, Vec<_>) = of_jobs.partition(|(_, size)| size.node == node);
        (there.len(), elsewhere.len())
    }

    /// Counts so far.
    #[must_use]
    pub const fn tally(&self) -> YarnTally {
        self.tally
    }

    /// Counts every node's containers anew.
    ///
    /// # Errors
    /// The first node that holds more than it has, or other than the scheduler's books say.
    pub fn audit(&self) -> Result<(), String> {
        self.scheduler.audit()?;
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.alive) {
            let held: u64 = node.containers.iter().map(|container| self.containers[container].memory_mb).sum();
            let left = self.scheduler.free_on(NodeIdx::new(at)).memory_mb;
            if node.total.memory_mb - held as i64 != left {
                let (host, total) = (&node.host, node.total.memory_mb);
                return Err(format!("{host}: {held} MB allocated of {total} MB, the scheduler has {left} MB left"));
            }
        }
        Ok(())
    }
}

fn size(memory_mb: u64, vcores: u32) -> Size {
    Size::new(memory_mb as i64, i64::from(vcores))
}

/// The number of a name; a new one for one that was never heard of.
fn intern(names: &mut BTreeMap<String, u32>, name: &str) -> u32 {
    let next = names.len() as u32;
    *names.entry(name.to_owned()).or_insert(next)
}

fn report(id: ContainerId, size: &Container, complete: bool) -> v1::NodeContainer {
    v1::NodeContainer {
        container_id: id.to_string(),
        resource: Some(resource(size.memory_mb, size.vcores)),
        priority: size.key.priority,
        allocation_request_id: Some(size.key.allocation_request_id),
        complete,
    }
}

/// The tables of a list of ask rows, by scheduler key.
#[must_use]
pub fn tables(asks: &[yarn::ResourceRequestProto]) -> Vec<AskTable> {
    let mut tables: BTreeMap<SchedulerKey, AskTable> = BTreeMap::new();
    for ask in asks {
        let key = SchedulerKey {
            priority: ask.priority.and_then(|priority| priority.priority).unwrap_or(0),
            allocation_request_id: ask.allocation_request_id(),
        };
        let size = ask.capability.clone().unwrap_or_default();
        let table = tables.entry(key).or_insert_with(|| AskTable {
            key,
            memory_mb: u64::try_from(size.memory()).unwrap_or(0),
            vcores: u32::try_from(size.virtual_cores()).unwrap_or(0),
            rows: BTreeMap::new(),
        });
        let count = u32::try_from(ask.num_containers()).unwrap_or(0);
        table.rows.insert(ask.resource_name().to_owned(), count);
    }
    tables.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::cluster::ClusterShape;
    use super::*;

    const KEY: SchedulerKey = SchedulerKey { priority: 20, allocation_request_id: -1 };

    fn yarn() -> (Yarn, Cluster) {
        let cluster = Cluster::build(ClusterShape { nodes: 4, racks: 2, ..ClusterShape::default() }).unwrap();
        (Yarn::new(&cluster, 1_700_000_000_000, 1, -1), cluster)
    }

    fn table(memory_mb: u64, rows: &[(&str, u32)]) -> AskTable {
        let rows = rows.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        AskTable { key: KEY, memory_mb, vcores: 1, rows }
    }

    #[test]
    fn an_ask_waits_for_its_hosts_then_its_rack_then_goes_anywhere() {
        let (mut yarn, cluster) = yarn();
        let attempt = yarn.attempt(1);
        let (host, rack) = (cluster.machines[0].host.as_str(), cluster.machines[0].rack.as_str());
        yarn.ask(attempt, table(1024, &[(host, 1), (rack, 3), ("*", 4)]));
        // 4 outstanding × (3 places less one) ÷ 4 nodes = 2 offers to let go by.
        for other in [2, 3] {
            assert!(yarn.offer(other).is_empty(), "waits for its host");
        }
        assert_eq!(yarn.offer(0).len(), 2, "its host; and 3 × 1 ÷ 4 is less than one offer, so one for any node");
        yarn.audit().unwrap();
        let order: Vec<usize> =
            [2, 3, 1].into_iter().flat_map(|node| yarn.offer(node)).map(|given| given.node).collect();
        assert_eq!(order, [2, 3], "anywhere, one a heartbeat");
        assert_eq!((yarn.tally().allocated, yarn.tally().on_named_host), (4, 1));
    }

    #[test]
    fn with_the_delay_that_hints_need_a_lone_container_waits_for_its_host_for_a_round_of_heartbeats() {
        let on = |delay| {
            let (_, cluster) = yarn();
            let mut yarn = Yarn::new(&cluster, 1_700_000_000_000, 1, delay);
            let (host, rack) = (cluster.machines[0].host.as_str(), cluster.machines[0].rack.as_str());
            yarn.ask(yarn.attempt(1), table(1024, &[(host, 1), (rack, 1), ("*", 1)]));
            [3, 2, 1, 0].into_iter().flat_map(|node| yarn.offer(node)).map(|given| given.node).collect::<Vec<_>>()
        };
        assert_eq!(on(super::super::shared::RACK_DELAY), [0]);
        assert_ne!(on(-1), [0], "by YARN's own default it takes what comes first");
    }

    #[test]
    fn a_heartbeat_gives_one_container_for_any_node_whoever_asks() {
        let (mut yarn, _) = yarn();
        let (first, second) = (yarn.attempt(1), yarn.attempt(2));
        yarn.ask(first, table(1024, &[("*", 2)]));
        yarn.ask(second, table(1024, &[("*", 2)]));
        let given: Vec<u32> =
            (0..4).flat_map(|node| yarn.offer(node)).map(|given| given.attempt.application.sequence).collect();
        assert_eq!(given, [1, 1, 2, 2]);
    }

    #[test]
    fn nothing_is_put_above_a_nodes_memory_whoever_asks() {
        let (mut yarn, _) = yarn();
        let attempt = yarn.attempt(1);
        yarn.ask(attempt, table(3000, &[("*", 1000)]));
        for round in 0..200 {
            yarn.take_foreign(Duration::from_secs(round));
            for node in 0..4 {
                yarn.offer(node);
            }
            yarn.end_foreign(Duration::from_secs(round / 2));
            yarn.audit().unwrap();
        }
        assert!(yarn.tally().foreign > 0);
    }

    #[test]
    fn an_audit_notices_what_the_scheduler_does_not_know_of() {
        let (mut yarn, _) = yarn();
        let container = ContainerId { attempt: yarn.attempt(1), id: 2 };
        yarn.hold(container, Container { node: 0, memory_mb: 1024, vcores: 1, key: KEY, until: None });
        assert!(yarn.audit().unwrap_err().contains("1024 MB allocated of 16384 MB, the scheduler has 16384 MB left"));
    }

    #[test]
    fn heartbeats_name_what_runs_and_report_what_ended_once() {
        let (mut yarn, cluster) = yarn();
        let attempt = yarn.attempt(1);
        // A host's row counts only beside one for its rack.
        let (host, rack) = (cluster.machines[0].host.as_str(), cluster.machines[0].rack.as_str());
        yarn.ask(attempt, table(1024, &[(host, 2), (rack, 2), ("*", 2)]));
        let given = yarn.offer(0);
        yarn.finish(given[0].container);
        let complete =
            |heartbeat: &v1::NodeHeartbeat| heartbeat.containers.iter().map(|c| c.complete).collect::<Vec<_>>();
        let first = yarn.heartbeat(0).unwrap();
        assert_eq!((first.response_id, complete(&first)), (1, vec![false, true]));
        let second = yarn.heartbeat(0).unwrap();
        assert_eq!((second.response_id, complete(&second)), (2, vec![false]));
        yarn.kill(0);
        assert!(yarn.heartbeat(0).is_none());
        assert_eq!(yarn.expire(0), [given[1].container]);
        yarn.audit().unwrap();
    }

    #[test]
    fn ask_rows_are_gathered_by_scheduler_key() {
        let row = |priority, name: &str, count| yarn::ResourceRequestProto {
            priority: Some(yarn::PriorityProto { priority: Some(priority) }),
            resource_name: Some(name.to_owned()),
            capability: Some(resource(1024, 1)),
            num_containers: Some(count),
            ..yarn::ResourceRequestProto::default()
        };
        let tables = tables(&[row(20, "*", 5), row(10, "*", 1), row(20, "host-1", 2)]);
        assert_eq!(tables.iter().map(|t| (t.key.priority, t.rows.len())).collect::<Vec<_>>(), [(10, 1), (20, 2)]);
        assert_eq!(tables[1].rows["host-1"], 2);
    }
}
