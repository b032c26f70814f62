//! YARN's CapacityScheduler: what a node's heartbeat gives to whom, decision by decision.
//!
//! A model of Hadoop 3.4.2's `CapacityScheduler`, `AbstractLeafQueue`, `UsersManager`, `RegularContainerAllocator` and
//! `LocalityAppPlacementAllocator` with heartbeat-driven (synchronous) scheduling, the default. It is held against
//! those classes: `tests/hadoop/scheduler` drives them with the same steps, and `tests/scheduler.rs` compares.
//! The simulator, the emulated cluster and the `capacity` baseline all allocate by it.
//!
//! # What a heartbeat does
//! - A node with a reservation serves that reservation or makes it again, and nothing else.
//! - Else the queues are asked from the root down, least used share first; a leaf offers the node to its applications
//!   in their order, an application to its scheduler keys, lowest priority number first.
//! - A key's rows: the host's first; the rack's once more offers were let go by than `node-locality-delay`, at most as
//!   many as there are nodes; `*` once more were than the additional delay says, or, by default, than
//!   min(nodes, outstanding × min((places asked for − 1) ÷ nodes, 1)). Asks for `*` alone never wait.
//! - An offer counts for a key when it is looked at and passed by for locality. It is set back by a container on the
//!   host, and in the rack by default; not by one off-switch.
//! - An application that could go here but has to wait lets the next one be asked; one without room in the node
//!   reserves it.
//! - So on until nothing more is given, a container was reserved, the limit of off-switch containers a heartbeat (1 by
//!   default) or of all (100) is reached.
//!
//! # Not modelled
//! Asynchronous scheduling and multi-node placement; node labels, absolute capacities, weights, user weights;
//! size-based fair weights; preemption; scheduling requests with placement constraints; updates of containers.

mod allocator;
mod asks;
mod commit;
mod java_order;
mod limits;
mod queues;
mod settings;
mod size;
#[cfg(test)]
mod tests;
mod users;

pub use asks::{AskRow, Place};
pub use settings::{AppOrdering, QueueOrdering, QueueSettings, SchedulerSettings};
pub use size::{Calculator, Size};

use asks::{App, KeyAsks, Row};
use hintd_model::units::{NodeIdx, RackIdx, SchedulerKey};
use queues::Queue;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An application that was submitted; given again after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AppIdx(pub u32);

/// A container's number within its application, from 1.
pub type ContainerNo = u64;

impl AppIdx {
    const fn at(self) -> usize {
        self.0 as usize
    }
}

/// How near to what its rows name a container came, as YARN counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeType {
    /// On a host of its rows.
    NodeLocal,
    /// In a rack of its rows.
    RackLocal,
    /// By the row `*`.
    OffSwitch,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A container is given.
    Allocated,
    /// A container is given from the node's reservation.
    FromReservation,
    /// The node is reserved for a container that does not fit yet.
    Reserved,
    /// The reservation stays.
    ReservedAgain,
    /// The reservation is given up: nothing is outstanding for it.
    GivenUp,
    /// What was proposed did not pass the check at the commit.
    Refused,
}

/// One decision at a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// For whom.
    pub app: AppIdx,
    /// Which container; 0 for a refused one.
    pub container: ContainerNo,
    /// Where.
    pub node: NodeIdx,
    /// For which ask.
    pub key: SchedulerKey,
    /// Of what size.
    pub size: Size,
    /// How near.
    pub kind: NodeType,
    /// What.
    pub verdict: Verdict,
    /// Where the same application gave up a reservation for it.
    pub unreserved: Option<NodeIdx>,
}

/// A node that comes, empty.
#[derive(Debug, Clone, Copy)]
pub struct NewNode<'a> {
    /// Its index.
    pub node: NodeIdx,
    /// Its rack.
    pub rack: RackIdx,
    /// Host and port of its NodeId: they decide which of several reservations is given up.
    pub id: (&'a str, u16),
    /// What it has.
    pub total: Size,
}

/// An application to be submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Path of the leaf queue.
    pub queue: String,
    /// Whose.
    pub user: Arc<str>,
    /// Its priority; higher comes first, under fifo ordering.
    pub priority: i32,
    /// Size of its ApplicationMaster, which counts against the queue's share for those; zero: none.
    pub master: Size,
}

/// Why something was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    /// Queues that are no tree.
    #[error("queue {path}: {problem}")]
    Queue {
        /// Which.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A setting out of its range.
    #[error("{key}: {problem}")]
    Setting {
        /// Which.
        key: &'static str,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Debug, Clone)]
struct Node {
    rack: RackIdx,
    total: Size,
    free: Size,
    /// Hash of its name and port in Java.
    hash: i32,
    containers: BTreeSet<(AppIdx, ContainerNo)>,
    reserved: Option<(AppIdx, SchedulerKey)>,
}

/// The scheduler's books.
#[derive(Debug, Clone)]
pub struct CapacityScheduler {
    settings: SchedulerSettings,
    queues: Vec<Queue>,
    by_path: BTreeMap<String, usize>,
    nodes: Vec<Option<Node>>,
    node_count: u32,
    cluster: Size,
    apps: Vec<Option<App>>,
    free: Vec<AppIdx>,
    submitted: u64,
    reservations: u64,
}

impl CapacityScheduler {
    /// Without nodes and applications. Queues come parents first.
    ///
    /// # Errors
    /// [`SchedulerError`]: a queue without its parent, twice, or a second root; a smallest container of no memory.
    pub fn new(settings: SchedulerSettings, queues: Vec<QueueSettings>) -> Result<Self, SchedulerError> {
        if settings.minimum.memory_mb < 1 || settings.minimum.vcores < 0 {
            let problem = format!("{} MB, {} cores", settings.minimum.memory_mb, settings.minimum.vcores);
            return Err(SchedulerError::Setting { key: "minimum", problem });
        }
        let mut scheduler = Self {
            settings,
            queues: Vec::new(),
            by_path: BTreeMap::new(),
            nodes: Vec::new(),
            node_count: 0,
            cluster: Size::ZERO,
            apps: Vec::new(),
            free: Vec::new(),
            submitted: 0,
            reservations: 0,
        };
        for queue in queues {
            scheduler.add_queue(queue)?;
        }
        if scheduler.queues.is_empty() {
            return Err(SchedulerError::Queue { path: "root".to_owned(), problem: "there is none" });
        }
        Ok(scheduler)
    }

    /// One leaf `root.default` with everything.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn single_queue(settings: SchedulerSettings, default: QueueSettings) -> Result<Self, SchedulerError> {
        let default = QueueSettings { path: "root.default".to_owned(), ..default };
        Self::new(settings, vec![QueueSettings::new("root"), default])
    }

    fn add_queue(&mut self, settings: QueueSettings) -> Result<(), SchedulerError> {
        let refuse = |problem| Err(SchedulerError::Queue { path: settings.path.clone(), problem });
        if self.by_path.contains_key(&settings.path) {
            return refuse("is there twice");
        }
        let parent = match settings.path.rsplit_once('.') {
            None if self.queues.is_empty() && settings.path == "root" => None,
            None => return refuse("is no child of root"),
            Some((parent, _)) => match self.by_path.get(parent) {
                Some(&parent) => Some(parent),
                None => return refuse("comes before its parent"),
            },
        };
        let at = self.queues.len();
        self.by_path.insert(settings.path.clone(), at);
        let queue = Queue::new(settings, parent.map(|parent| (parent, &self.queues[parent])));
        self.queues.push(queue);
        if let Some(parent) = parent {
            self.queues[parent].children.push(at);
        }
        Ok(())
    }

    /// A node comes, empty; see [`NewNode`].
    pub fn add_node(&mut self, node: NodeIdx, rack: RackIdx, id: (&str, u16), total: Size) {
        self.add_nodes(std::iter::once(NewNode { node, rack, id, total }));
    }

    /// Nodes come, empty: each as for [`Self::add_node`].
    pub fn add_nodes<'a>(&mut self, nodes: impl Iterator<Item = NewNode<'a>>) {
        for node in nodes {
            self.insert_node(node);
        }
        self.resize_cluster();
    }

    fn insert_node(&mut self, new: NewNode<'_>) {
        let NewNode { node, rack, id: (host, port), total } = new;
        if node.at() >= self.nodes.len() {
            self.nodes.resize_with(node.at() + 1, || None);
        }
        let hash = java_order::node_hash(host, port);
        let new = Node { rack, total, free: total, hash, containers: BTreeSet::new(), reserved: None };
        if self.nodes[node.at()].replace(new).is_none() {
            self.node_count += 1;
            self.cluster = self.cluster.plus(total);
        }
    }

    /// A node has another size; what runs there goes on. Unknown nodes are passed over.
    pub fn resize_node(&mut self, node: NodeIdx, total: Size) {
        let Some(Some(row)) = self.nodes.get_mut(node.at()) else { return };
        if row.total == total {
            return;
        }
        self.cluster = self.cluster.minus(row.total).plus(total);
        row.free = row.free.minus(row.total).plus(total);
        row.total = total;
        self.resize_cluster();
    }

    /// A node is lost with its containers, which are returned.
    pub fn remove_node(&mut self, node: NodeIdx) -> Vec<(AppIdx, ContainerNo)> {
        let Some(Some(row)) = self.nodes.get(node.at()) else { return Vec::new() };
        let (lost, reserved, total) = (row.containers.clone(), row.reserved, row.total);
        for &(app, container) in &lost {
            self.release(app, container);
        }
        if let Some((app, key)) = reserved {
            self.unreserve(app, key, node);
        }
        self.nodes[node.at()] = None;
        self.node_count -= 1;
        self.cluster = self.cluster.minus(total);
        self.resize_cluster();
        lost.into_iter().collect()
    }

    /// Takes an application in; `None` if there is no such leaf queue. It asks for nothing yet, not even for its
    /// ApplicationMaster's container.
    pub fn submit(&mut self, submission: Submission) -> Option<AppIdx> {
        let &queue = self.by_path.get(&submission.queue)?;
        if !self.queues[queue].children.is_empty() {
            return None;
        }
        let app = App {
            serial: self.submitted,
            queue,
            user: submission.user,
            priority: submission.priority,
            master: submission.master,
            active: false,
            used: Size::ZERO,
            ranked_mb: 0,
            reserved: Size::ZERO,
            pending: Size::ZERO,
            keys: BTreeMap::new(),
            live: BTreeMap::new(),
            containers: 0,
            avoids: BTreeSet::new(),
        };
        self.submitted += 1;
        let at = self.free.pop().unwrap_or_else(|| {
            self.apps.push(None);
            AppIdx(self.apps.len() as u32 - 1)
        });
        let leaf = &mut self.queues[queue].leaf;
        leaf.users.submit(&app.user);
        leaf.waiting.insert(Queue::waiting_rank(at, &app));
        self.apps[at.at()] = Some(app);
        if self.settings.calculator.greater(self.cluster, self.cluster, Size::ZERO) {
            self.activate(queue);
        }
        Some(at)
    }

    /// Replaces rows of what an application asks for. A count of 0 for `*` ends all of its key.
    pub fn ask(&mut self, app: AppIdx, rows: &[AskRow]) {
        let (smallest, largest) = (self.settings.minimum, self.settings.maximum);
        let calculator = self.settings.calculator;
        let mut by_key: BTreeMap<SchedulerKey, Vec<AskRow>> = BTreeMap::new();
        for row in rows {
            let size = calculator.normalize(row.size, smallest, largest);
            by_key.entry(row.key).or_default().push(AskRow { size, ..*row });
        }
        for (key, rows) in by_key {
            self.ask_key(app, key, &rows);
        }
    }

    fn ask_key(&mut self, at: AppIdx, key: SchedulerKey, rows: &[AskRow]) {
        let Some(Some(app)) = self.apps.get_mut(at.at()) else { return };
        let asks = app.keys.entry(key).or_default();
        let old = asks.rows.get(&Place::Any).copied();
        for row in rows {
            asks.rows.insert(row.place, Row { count: row.count, size: row.size, relax: row.relax });
        }
        let Some(new) = asks.rows.get(&Place::Any).copied() else { return };
        if !rows.iter().any(|row| row.place == Place::Any) {
            return;
        }
        let (queue, user) = (app.queue, Arc::clone(&app.user));
        if new.count == 0 {
            asks.outstanding = false;
            asks.rows.clear();
            if app.asks_for_nothing() {
                self.queues[queue].leaf.users.asks_no_more(&user, at);
            }
        } else if old.is_none_or(|old| old.count == 0) {
            asks.outstanding = true;
            self.queues[queue].leaf.users.asks(&user, at);
        }
        let was = old.map_or(Size::ZERO, |old| old.size.times(i64::from(old.count)));
        self.add_pending(at, new.size.times(i64::from(new.count)).minus(was));
    }

    /// Places where the application takes nothing; replaces what it said before.
    pub fn avoid(&mut self, app: AppIdx, places: impl IntoIterator<Item = Place>) {
        if let Some(Some(app)) = self.apps.get_mut(app.at()) {
            app.avoids = places.into_iter().collect();
        }
    }

    /// A container ended or was given back. Unknown ones are passed over.
    pub fn release(&mut self, at: AppIdx, container: ContainerNo) {
        let Some(Some(app)) = self.apps.get_mut(at.at()) else { return };
        let Some(live) = app.live.remove(&container) else { return };
        app.used = app.used.minus(live.size);
        let queue = app.queue;
        if let Some(Some(node)) = self.nodes.get_mut(live.node.at()) {
            node.free = node.free.plus(live.size);
            node.containers.remove(&(at, container));
        }
        self.queues[queue].touch(at);
        self.use_less(at, live.size);
    }

    /// The application is over: its containers and reservations are free, what it asked for is forgotten.
    pub fn finish(&mut self, at: AppIdx) {
        let Some(Some(app)) = self.apps.get(at.at()) else { return };
        let live: Vec<ContainerNo> = app.live.keys().copied().collect();
        let reserved: Vec<(SchedulerKey, NodeIdx)> =
            app.keys.iter().flat_map(|(&key, asks)| asks.reservations.keys().map(move |&node| (key, node))).collect();
        live.into_iter().for_each(|container| self.release(at, container));
        reserved.into_iter().for_each(|(key, node)| self.unreserve(at, key, node));
        let Some(app) = self.apps[at.at()].as_ref() else { return };
        let (queue, pending, user, master) = (app.queue, app.pending, Arc::clone(&app.user), app.master);
        self.add_pending(at, Size::ZERO.minus(pending));
        let Some(app) = self.apps[at.at()].take() else { return };
        let row = &mut self.queues[queue];
        let was_active = row.end(at, &app);
        if was_active {
            row.leaf.masters = row.leaf.masters.minus(master);
        } else {
            row.leaf.waiting.remove(&Queue::waiting_rank(at, &app));
        }
        row.leaf.users.finish(&user, was_active.then_some(master));
        self.activate(queue);
        self.queues[queue].leaf.users.asks_no_more(&user, at);
        self.free.push(at);
    }

    /// Containers outstanding under a key, by its row `*`.
    #[must_use]
    pub fn outstanding(&self, app: AppIdx, key: SchedulerKey) -> u32 {
        self.app(app).map_or(0, |app| app.count(key, Place::Any))
    }

    /// Whether the application was activated: applications beyond the share of ApplicationMasters wait for it.
    #[must_use]
    pub fn is_active(&self, app: AppIdx) -> bool {
        self.app(app).is_some_and(|app| app.active)
    }

    /// What is free on a node; reservations take nothing.
    #[must_use]
    pub fn free_on(&self, node: NodeIdx) -> Size {
        self.nodes.get(node.at()).and_then(Option::as_ref).map_or(Size::ZERO, |node| node.free)
    }

    /// What a node has; zero for one that is not there.
    #[must_use]
    pub fn total_of(&self, node: NodeIdx) -> Size {
        self.nodes.get(node.at()).and_then(Option::as_ref).map_or(Size::ZERO, |node| node.total)
    }

    /// For whom a node is reserved.
    #[must_use]
    pub fn reserved_on(&self, node: NodeIdx) -> Option<AppIdx> {
        self.nodes.get(node.at()).and_then(Option::as_ref)?.reserved.map(|(app, _)| app)
    }

    /// What a queue uses, reservations included; `None` if there is no such queue.
    #[must_use]
    pub fn used(&self, queue: &str) -> Option<Size> {
        self.by_path.get(queue).map(|&at| self.queues[at].used)
    }

    /// Every node's containers counted anew.
    ///
    /// # Errors
    /// The first node whose books are not the sum of its containers, or that holds more than it has.
    pub fn audit(&self) -> Result<(), String> {
        for (at, node) in self.nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?))) {
            let sizes = node.containers.iter().filter_map(|&(app, no)| Some(self.app(app)?.live.get(&no)?.size));
            let held = sizes.fold(Size::ZERO, Size::plus);
            if held != node.total.minus(node.free) {
                return Err(format!(
                    "node {at}: {:?} free of {:?}, its containers are {held:?}",
                    node.free, node.total
                ));
            }
            if !self.settings.calculator.fits(held, node.total) {
                return Err(format!("node {at}: holds {held:?} of {:?}", node.total));
            }
        }
        Ok(())
    }

    fn app(&self, app: AppIdx) -> Option<&App> {
        self.apps.get(app.at()).and_then(Option::as_ref)
    }

    fn key_mut(&mut self, app: AppIdx, key: SchedulerKey) -> Option<&mut KeyAsks> {
        self.apps.get_mut(app.at())?.as_mut()?.keys.get_mut(&key)
    }
}
