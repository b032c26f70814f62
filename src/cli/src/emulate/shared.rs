//! State that the cluster's parts share, and how the cluster behaves.

use super::cluster::Cluster;
use super::event::EmulationEvent;
use super::hdfs::Namespace;
use super::jobs::Workload;
use super::switches::Tables;
use super::tally::Tally;
use super::traffic::{Traffic, TransferId};
use super::yarn::{MasterMessage, Yarn};
use hintd_client::Client;
use hintd_client::wire::v1;
use hintd_model::units::{AttemptId, Bytes, ContainerId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// Transfers that a task has under way at most: a reduce's fetches, or what it writes.
pub(super) const TRANSFERS: usize = 5;

/// As docs/yarn.md tells operators to set it: with YARN's own default (-1) an ask for few containers gets any node after a heartbeat
/// or two, so that hints of small jobs, and those for reduces, are hardly ever followed.
pub const RACK_DELAY: i32 = 20;

/// How the cluster behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Behavior {
    /// Seed of everything drawn.
    pub seed: u64,
    /// Policy that jobs ask for; `None`: the daemon's choice.
    pub policy: Option<String>,
    /// Time between two heartbeats of a node.
    pub heartbeat: Duration,
    /// Containers that foreign applications take, a second.
    pub foreign_per_s: f64,
    /// How long each is held.
    pub foreign_life: Duration,
    /// How long the ResourceManager waits for a silent node.
    pub node_expiry: Duration,
    /// Pairs of hosts in different racks whose routes the SDN controller watches.
    pub watched_pairs: usize,
    /// Time that a job waits for its hints, milliseconds.
    pub deadline_ms: u32,
    /// Whatever is not done by then is given up.
    pub limit: Duration,
    /// `yarn.scheduler.capacity.rack-locality-additional-delay`.
    pub rack_locality_additional_delay: i32,
    /// Nodes go on reporting until the limit, and after its last job the trace begins again.
    pub keep: bool,
}

impl Default for Behavior {
    fn default() -> Self {
        Self {
            seed: 1,
            policy: None,
            heartbeat: Duration::from_millis(200),
            foreign_per_s: 20.0,
            foreign_life: Duration::from_secs(2),
            node_expiry: Duration::from_secs(3),
            watched_pairs: 400,
            deadline_ms: 1_000,
            limit: Duration::from_secs(50),
            rack_locality_additional_delay: RACK_DELAY,
            keep: false,
        }
    }
}

/// State that the cluster's parts share. Locks are held for single steps, never across an await.
#[derive(Debug)]
pub struct Shared {
    /// The machines.
    pub cluster: Arc<Cluster>,
    /// The jobs.
    pub workload: Workload,
    /// How the cluster behaves.
    pub behaviour: Behavior,
    /// To the daemon.
    pub client: Client,
    pub(super) yarn: Mutex<Yarn>,
    pub(super) namespace: Arc<Mutex<Namespace>>,
    pub(super) masters: Mutex<BTreeMap<AttemptId, mpsc::Sender<MasterMessage>>>,
    pub(super) tally: Mutex<Tally>,
    pub(super) leases: Mutex<BTreeMap<u64, usize>>,
    pub(super) dead: Arc<Mutex<BTreeMap<usize, Instant>>>,
    /// The last change of a link that was told, and when.
    pub(super) link_told: Mutex<Option<(String, Instant)>>,
    /// Links that are down, since when.
    pub(super) down: Arc<Mutex<BTreeMap<String, Instant>>>,
    pub(super) tables: Mutex<Tables>,
    pub(super) traffic: Mutex<Traffic>,
    /// Something changed there: the next arrival may be another.
    pub(super) traffic_changed: Notify,
    /// When the cluster began.
    pub(super) began: Instant,
    pub(super) happenings: mpsc::Sender<EmulationEvent>,
}

impl Shared {
    /// The ResourceManager.
    pub fn yarn(&self) -> MutexGuard<'_, Yarn> {
        self.yarn.lock().expect("no holder of this lock panics")
    }

    /// The NameNode.
    pub fn namespace(&self) -> MutexGuard<'_, Namespace> {
        self.namespace.lock().expect("no holder of this lock panics")
    }

    /// The counts.
    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().expect("no holder of this lock panics")
    }

    /// The switches' rules.
    pub fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no holder of this lock panics")
    }

    /// What is on its way over the network.
    pub(crate) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().expect("no holder of this lock panics")
    }

    /// Seconds since the cluster began, as the traffic counts them.
    pub(super) fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Something happens to the traffic, now.
    pub(super) fn change_traffic<T>(&self, change: impl FnOnce(&mut Traffic, f64) -> T) -> T {
        let mut traffic = self.traffic();
        let done = change(&mut traffic, self.now_s());
        drop(traffic);
        self.traffic_changed.notify_one();
        done
    }

    /// A machine sends another something for a container of `owner`, which hears when it is there.
    pub(super) fn send(&self, owner: AttemptId, from: usize, to: usize, bytes: Bytes) -> TransferId {
        self.change_traffic(|traffic, now_s| traffic.send(now_s, owner, (from, to), bytes))
    }

    /// Routes that the SDN controller installed.
    pub(super) fn install(&self, update: &v1::RouteUpdate) {
        self.change_traffic(|traffic, now_s| traffic.install(now_s, update));
    }

    /// Machines that stopped.
    pub(super) fn stopped(&self) -> Vec<usize> {
        self.dead.lock().expect("no holder of this lock panics").keys().copied().collect()
    }

    /// Time since the change that an update is about was told, if it is about the last one.
    pub fn since_told(&self, update: &v1::RouteUpdate) -> Option<Duration> {
        let told = self.link_told.lock().expect("no holder of this lock panics");
        told.as_ref().filter(|(id, _)| *id == update.subject).map(|(_, at)| at.elapsed())
    }

    /// Links that are down, and since when.
    pub(crate) fn down(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.down.lock().expect("no holder of this lock panics")
    }

    /// Tells the watcher, if there still is one; who is `HAPPENINGS_MAX` behind misses what happens.
    pub fn tell(&self, happening: EmulationEvent) {
        let _ = self.happenings.try_send(happening);
    }

    /// Lets a master of so many tasks hear of its containers: that one was given, and that it was lost, and what arrived for
    /// it. One more is asked for when a loss was heard, so few tables cross what was given by an earlier one.
    pub fn register_master(&self, attempt: AttemptId, tasks: u32) -> mpsc::Receiver<MasterMessage> {
        let (sender, receiver) = mpsc::channel((4 + TRANSFERS) * tasks as usize + 64);
        self.masters.lock().expect("no holder of this lock panics").insert(attempt, sender);
        receiver
    }

    /// The master is done.
    pub fn remove_master(&self, attempt: AttemptId) {
        self.masters.lock().expect("no holder of this lock panics").remove(&attempt);
    }

    /// Whether a host is a machine that stopped.
    pub fn is_dead(&self, host: &str) -> bool {
        let dead = self.dead.lock().expect("no holder of this lock panics");
        self.cluster.find(host).is_some_and(|node| dead.contains_key(&node))
    }

    /// Checks the promises of an answer: leases are given once, and never on machines known to be gone.
    pub fn check(&self, hints: &v1::HintSet) {
        let mut broken = Vec::new();
        let dead = self.dead.lock().expect("no holder of this lock panics");
        let mut leases = self.leases.lock().expect("no holder of this lock panics");
        for hint in &hints.hints {
            let Some(node) = self.cluster.find(&hint.host) else {
                broken.push(format!("{} hints at \"{}\", which is no host", hints.request_id, hint.host));
                continue;
            };
            let given_up = |killed: &Instant| killed.elapsed() > self.behaviour.node_expiry;
            if dead.get(&node).is_some_and(given_up) {
                broken.push(format!("{} hints at {}, which is gone", hints.request_id, hint.host));
            }
            for &lease in &hint.lease_ids {
                if leases.insert(lease, node).is_some() {
                    broken.push(format!("lease {lease} was given twice"));
                }
            }
        }
        drop((dead, leases));
        self.tally().violations.extend(broken);
    }

    pub(super) fn deliver(&self, attempt: AttemptId, news: MasterMessage) {
        let master = self.masters.lock().expect("no holder of this lock panics").get(&attempt).cloned();
        let full = |master: mpsc::Sender<MasterMessage>| matches!(master.try_send(news), Err(TrySendError::Full(_)));
        // A master that just ended needs no news.
        if master.is_some_and(full) {
            self.tally().violations.push(format!("{attempt} left the news of all its containers unread"));
        }
    }

    pub(super) fn lose(&self, lost: Vec<ContainerId>) {
        for container in lost {
            self.deliver(container.attempt, MasterMessage::Lost(container));
        }
    }
}
