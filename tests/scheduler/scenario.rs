//! Scenarios as files have them, and the model that goes through their steps.

use hintd_model::units::{NodeIdx, RackIdx, SchedulerKey};
use hintd_policy::capacity_scheduler::{
    AppIdx, AskRow, CapacityScheduler, Decision, NodeType, Place, QueueSettings, SchedulerSettings, Size, Submission,
    Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    #[allow(dead_code, reason = "for who reads the file")]
    #[serde(default)]
    about: String,
    settings: SchedulerSettings,
    queues: Vec<QueueSettings>,
    nodes: Vec<NodeStep>,
    pub(crate) steps: Vec<Step>,
    /// What Hadoop decided at each step, and what its queues used at the end.
    pub(crate) decisions: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NodeStep {
    host: String,
    rack: String,
    size: Size,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Submit { app: u32, queue: String, user: String, master: Size, priority: i32 },
    Ask { app: u32, rows: Vec<RowStep> },
    Beat(String),
    Release { app: u32, container: u64 },
    Finish(u32),
    Add(NodeStep),
    Remove(String),
    Avoid { app: u32, names: Vec<String> },
}

#[derive(Serialize, Deserialize)]
pub(crate) struct RowStep {
    priority: i32,
    #[serde(default = "no_request")]
    allocation_request_id: i64,
    name: String,
    size: Size,
    count: u32,
    #[serde(default = "relaxed")]
    relax: bool,
}

const fn no_request() -> i64 {
    -1
}

const fn relaxed() -> bool {
    true
}

/// The model, and the names that it does not know.
pub(crate) struct Cluster {
    yarn: CapacityScheduler,
    queues: Vec<String>,
    hosts: Vec<String>,
    racks: Vec<String>,
    apps: BTreeMap<u32, AppIdx>,
}

fn intern(names: &mut Vec<String>, name: &str) -> u32 {
    let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u32::try_from(at).unwrap()
}

impl Cluster {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let queues = scenario.queues.iter().map(|queue| queue.path.clone()).collect();
        let yarn = CapacityScheduler::new(scenario.settings.clone(), scenario.queues.clone()).unwrap();
        let mut cluster = Self { yarn, queues, hosts: Vec::new(), racks: Vec::new(), apps: BTreeMap::new() };
        scenario.nodes.iter().for_each(|node| cluster.add(node));
        cluster
    }

    fn add(&mut self, node: &NodeStep) {
        let (at, rack) = (intern(&mut self.hosts, &node.host), intern(&mut self.racks, &node.rack));
        self.yarn.add_node(NodeIdx(at), RackIdx(rack), (&node.host, 8041), node.size);
    }

    fn place(&mut self, name: &str) -> Place {
        match name {
            "*" => Place::Any,
            rack if rack.starts_with('/') => Place::Rack(RackIdx(intern(&mut self.racks, rack))),
            host => Place::Host(NodeIdx(intern(&mut self.hosts, host))),
        }
    }

    /// What is decided, as files have it.
    pub(crate) fn step(&mut self, step: &Step) -> Vec<Value> {
        let mut decided = Vec::new();
        match step {
            Step::Submit { app, queue, user, master, priority } => {
                let submission = Submission {
                    queue: queue.clone(),
                    user: user.as_str().into(),
                    priority: *priority,
                    master: *master,
                };
                let at = self.yarn.submit(submission).unwrap();
                self.apps.insert(*app, at);
                if master.memory_mb > 0 {
                    let key = SchedulerKey { priority: 0, allocation_request_id: -1 };
                    self.yarn.ask(at, &[AskRow { key, place: Place::Any, size: *master, count: 1, relax: true }]);
                }
            }
            Step::Ask { app, rows } => {
                let rows: Vec<AskRow> = rows.iter().map(|row| self.row(row)).collect();
                self.yarn.ask(self.apps[app], &rows);
            }
            Step::Beat(host) => {
                let node = NodeIdx(intern(&mut self.hosts, host));
                decided = self.yarn.heartbeat(node);
            }
            Step::Release { app, container } => self.yarn.release(self.apps[app], *container),
            Step::Finish(app) => {
                let at = self.apps.remove(app).unwrap();
                self.yarn.finish(at);
            }
            Step::Add(node) => self.add(node),
            Step::Remove(host) => {
                let node = NodeIdx(intern(&mut self.hosts, host));
                self.yarn.remove_node(node);
            }
            Step::Avoid { app, names } => {
                let places: Vec<Place> = names.iter().map(|name| self.place(name)).collect();
                self.yarn.avoid(self.apps[app], places);
            }
        }
        self.yarn.audit().unwrap();
        decided.iter().map(|decision| self.told(decision)).collect()
    }

    fn row(&mut self, row: &RowStep) -> AskRow {
        let key = SchedulerKey { priority: row.priority, allocation_request_id: row.allocation_request_id };
        AskRow { key, place: self.place(&row.name), size: row.size, count: row.count, relax: row.relax }
    }

    fn told(&self, decision: &Decision) -> Value {
        let app = self.apps.iter().find(|(_, at)| **at == decision.app).map(|(app, _)| *app);
        let host = |node: NodeIdx| self.hosts[node.at()].clone();
        let mut told = json!({
            "verdict": decision.verdict, "app": app, "container": decision.container, "node": host(decision.node),
            "priority": decision.key.priority, "allocation_request_id": decision.key.allocation_request_id,
            "size": decision.size,
        });
        if decision.verdict != Verdict::GivenUp {
            told["kind"] = json!(decision.kind as NodeType);
        }
        if let Some(node) = decision.unreserved {
            told["unreserved"] = json!(host(node));
        }
        told
    }

    /// What each queue uses.
    pub(crate) fn used(&self) -> Value {
        self.queues.iter().map(|queue| (queue.clone(), json!(self.yarn.used(queue)))).collect()
    }
}
