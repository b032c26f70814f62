//! A ResourceManager that allocates from ask tables as YARN's capacity scheduler does, beside foreign applications.
//!
//! Rules, each YARN's default: applications in order of arrival; a node's heartbeat offers its room; an ask waits for
//! its hosts for as many offers as there are nodes, then for its racks for as many again, then goes anywhere; at most
//! one such off-switch container a heartbeat (`offswitch-per-heartbeat-limit`).

use super::cluster::{Cluster, resource};
use hintd_client::wire::{v1, yarn};
use hintd_model::units::{ApplicationId, AttemptId, ContainerId, SchedulerKey};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The seed's stream for foreign applications.
const STREAM: u64 = 2;

/// Sequence number that no job's application has: foreign containers belong to it.
const FOREIGN: u32 = 900_000;

/// Containers of an application start at 2, as the ApplicationMaster's own is the first.
const FIRST_CONTAINER: u64 = 2;

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
    rack: String,
    total: (u64, u32),
    used: (u64, u32),
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

#[derive(Debug)]
struct Waiting {
    memory_mb: u64,
    vcores: u32,
    rows: BTreeMap<String, u32>,
    missed: u32,
}

#[derive(Debug, Default)]
struct Application {
    waiting: BTreeMap<SchedulerKey, Waiting>,
    containers: u64,
}

/// The ResourceManager's books.
#[derive(Debug)]
pub struct Yarn {
    nodes: Vec<Node>,
    applications: BTreeMap<AttemptId, Application>,
    containers: BTreeMap<ContainerId, Container>,
    cluster_timestamp: u64,
    rng: ChaCha8Rng,
    tally: YarnTally,
}

impl Yarn {
    /// All nodes empty. `cluster_timestamp` stands in every id, milliseconds since 1970.
    #[must_use]
    pub fn new(cluster: &Cluster, cluster_timestamp: u64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        let node = |machine: &super::cluster::Machine| Node {
            host: machine.host.to_string(),
            rack: machine.rack.to_string(),
            total: (machine.memory_mb, machine.vcores),
            used: (0, 0),
            alive: true,
            response_id: 0,
            containers: BTreeSet::new(),
            ended: Vec::new(),
        };
        Self {
            nodes: cluster.machines.iter().map(node).collect(),
            applications: BTreeMap::new(),
            containers: BTreeMap::new(),
            cluster_timestamp,
            rng,
            tally: YarnTally::default(),
        }
    }

    /// The first attempt of application `sequence`.
    #[must_use]
    pub fn attempt(&self, sequence: u32) -> AttemptId {
        let application = ApplicationId { cluster_timestamp: self.cluster_timestamp, sequence };
        AttemptId { application, attempt: 1 }
    }

    /// Replaces what an application asks for under a key.
    pub fn ask(&mut self, attempt: AttemptId, table: AskTable) {
        let AskTable { key, memory_mb, vcores, rows } = table;
        let waiting = Waiting { memory_mb, vcores, rows, missed: 0 };
        self.applications.entry(attempt).or_default().waiting.insert(key, waiting);
    }

    /// A node offers its room: who gets something there.
    pub fn offer(&mut self, node: usize) -> Vec<Allocation> {
        let mut given = Vec::new();
        if !self.nodes[node].alive {
            return given;
        }
        let patience = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let mut off_switch_left = 1;
        let attempts: Vec<AttemptId> = self.applications.keys().copied().collect();
        for attempt in attempts {
            let Some(application) = self.applications.get_mut(&attempt) else { continue };
            let host = self.nodes[node].host.clone();
            for (&key, waiting) in &mut application.waiting {
                while let Some(locality) = waiting.take(&self.nodes[node], patience, &mut off_switch_left) {
                    let sequence = FIRST_CONTAINER + application.containers;
                    application.containers += 1;
                    let container = ContainerId { attempt, id: sequence };
                    let size =
                        Container { node, memory_mb: waiting.memory_mb, vcores: waiting.vcores, key, until: None };
                    self.nodes[node].take(container, &size);
                    self.containers.insert(container, size);
                    self.tally.allocated += 1;
                    self.tally.on_named_host += u64::from(locality == host);
                    given.push(Allocation { attempt, container, key, node });
                }
            }
        }
        given
    }

    /// A container ended in order; unknown ones (lost with their node) are left.
    pub fn finish(&mut self, container: ContainerId) {
        let Some(size) = self.containers.remove(&container) else { return };
        let node = &mut self.nodes[size.node];
        node.free(container, &size);
        node.ended.push(report(container, &size, true));
    }

    /// A foreign application takes a container somewhere, if the node drawn has room; it ends at `until`.
    pub fn take_foreign(&mut self, until: Duration) {
        let node = self.rng.random_range(0..self.nodes.len());
        let memory_mb = 1024 * self.rng.random_range(1..=2);
        if !self.nodes[node].alive || !self.nodes[node].fits(memory_mb, 1) {
            return;
        }
        let key = SchedulerKey { priority: 0, allocation_request_id: -1 };
        let container = ContainerId { attempt: self.attempt(FOREIGN), id: FIRST_CONTAINER + self.tally.foreign };
        let size = Container { node, memory_mb, vcores: 1, key, until: Some(until) };
        self.nodes[node].take(container, &size);
        self.containers.insert(container, size);
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
        let containers: Vec<ContainerId> = std::mem::take(&mut self.nodes[node].containers).into_iter().collect();
        for container in &containers {
            if let Some(size) = self.containers.remove(container) {
                self.nodes[node].free(*container, &size);
            }
        }
        let foreign = self.attempt(FOREIGN);
        let lost: Vec<ContainerId> = containers.into_iter().filter(|container| container.attempt != foreign).collect();
        self.tally.lost += lost.len() as u64;
        lost
    }

    /// The application is done: what it still asked for is forgotten. Its containers have ended before.
    pub fn finish_application(&mut self, attempt: AttemptId) {
        self.applications.remove(&attempt);
    }

    /// The next heartbeat of a node; `None` of a dead one.
    pub fn heartbeat(&mut self, node: usize) -> Option<v1::NodeHeartbeat> {
        let Self { nodes, containers, .. } = self;
        let node = &mut nodes[node];
        if !node.alive {
            return None;
        }
        node.response_id += 1;
        let live = node.containers.iter().map(|&container| report(container, &containers[&container], false));
        let all = live.chain(std::mem::take(&mut node.ended)).collect();
        Some(v1::NodeHeartbeat {
            host: node.host.clone(),
            response_id: node.response_id,
            used: Some(resource(node.used.0, node.used.1)),
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
    /// The first node that holds more than it has, or other than its books say.
    pub fn audit(&self) -> Result<(), String> {
        let mut sums = vec![(0, 0); self.nodes.len()];
        for size in self.containers.values() {
            sums[size.node].0 += size.memory_mb;
            sums[size.node].1 += size.vcores;
        }
        for (node, sum) in self.nodes.iter().zip(sums) {
            if sum != node.used {
                return Err(format!("{}: books say {:?}, its containers are {sum:?}", node.host, node.used));
            }
            if sum.0 > node.total.0 {
                return Err(format!("{}: {} MB allocated of {} MB", node.host, sum.0, node.total.0));
            }
        }
        Ok(())
    }
}

impl Node {
    /// YARN's default calculator looks at memory only.
    const fn fits(&self, memory_mb: u64, _vcores: u32) -> bool {
        self.used.0 + memory_mb <= self.total.0
    }

    fn take(&mut self, container: ContainerId, size: &Container) {
        self.used = (self.used.0 + size.memory_mb, self.used.1 + size.vcores);
        self.containers.insert(container);
    }

    fn free(&mut self, container: ContainerId, size: &Container) {
        self.used = (self.used.0 - size.memory_mb, self.used.1 - size.vcores);
        self.containers.remove(&container);
    }
}

impl Waiting {
    /// Takes one container out of the table if it may go to `node` now; says under which row.
    fn take(&mut self, node: &Node, patience: u32, off_switch_left: &mut u32) -> Option<String> {
        let wanted = |rows: &BTreeMap<String, u32>, name: &str| rows.get(name).is_some_and(|&count| count > 0);
        if !wanted(&self.rows, "*") || !node.fits(self.memory_mb, self.vcores) {
            return None;
        }
        let particular = self.rows.iter().any(|(name, &count)| count > 0 && name != "*");
        let row = if wanted(&self.rows, &node.host) {
            node.host.as_str()
        } else if wanted(&self.rows, &node.rack) && self.missed >= patience {
            node.rack.as_str()
        } else if (!particular || self.missed >= patience.saturating_mul(2)) && *off_switch_left > 0 {
            *off_switch_left -= 1;
            "*"
        } else {
            self.missed = self.missed.saturating_add(1);
            return None;
        };
        let row = row.to_owned();
        if row == node.host {
            self.missed = 0;
        }
        for name in [node.host.as_str(), node.rack.as_str(), "*"] {
            if let Some(count) = self.rows.get_mut(name) {
                *count = count.saturating_sub(1);
            }
        }
        Some(row)
    }
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
        (Yarn::new(&cluster, 1_700_000_000_000, 1), cluster)
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
        for other in [1, 2, 3] {
            assert!(yarn.offer(other).is_empty(), "waits for its host");
        }
        assert_eq!(yarn.offer(0).len(), 1);
        yarn.audit().unwrap();
        let mut order = Vec::new();
        for node in [2, 3, 2, 3, 1, 2, 3, 2, 3].into_iter() {
            order.extend(yarn.offer(node).into_iter().map(|given| given.node));
        }
        assert_eq!(order[..2], [1, 1], "the rack before the rest of the cluster: {order:?}");
        assert_eq!(order.len(), 3, "and then anywhere");
        assert_eq!((yarn.tally().allocated, yarn.tally().on_named_host), (4, 1));
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
    fn an_audit_notices_a_node_that_holds_too_much() {
        let (mut yarn, _) = yarn();
        let attempt = yarn.attempt(1);
        let container = ContainerId { attempt, id: 2 };
        let size = Container { node: 0, memory_mb: 17 * 1024, vcores: 1, key: KEY, until: None };
        yarn.nodes[0].take(container, &size);
        yarn.containers.insert(container, size);
        assert!(yarn.audit().unwrap_err().contains("17408 MB"));
    }

    #[test]
    fn heartbeats_name_what_runs_and_report_what_ended_once() {
        let (mut yarn, cluster) = yarn();
        let attempt = yarn.attempt(1);
        yarn.ask(attempt, table(1024, &[(cluster.machines[0].host.as_str(), 2), ("*", 2)]));
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
