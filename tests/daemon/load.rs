//! Load on a program, and the account that is held against it: every answered lease is there, none twice.

use crate::program::Program;
use crate::world::{SOON, first_said, leased, request};
use hintd_client::Client;
use hintd_client::wire::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A program that halts for a second is there; one that was killed is waited for so long.
const PATIENCE: Duration = Duration::from_secs(2);
/// Memory of each container asked for, MB.
const CONTAINER_MB: i64 = 1_024;

type Asked = BTreeMap<(String, u32), Option<v1::RequestHintsResponse>>;

/// What was asked and answered, by request id and application; `None`: the answer never came.
#[derive(Clone, Default)]
pub(crate) struct Account(Arc<Mutex<Asked>>);

/// The request of an id: 1 to 3 containers, by its number.
fn wire(id: &str, app: u32) -> v1::RequestHintsRequest {
    let n: u32 = id.rsplit('n').next().unwrap().parse().unwrap();
    request(id, app, 1 + n % 3, CONTAINER_MB)
}

impl Account {
    pub(crate) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap()
    }

    /// Starts clients that ask one request after the other until the program does not answer in time, or `stop`.
    pub(crate) fn load(&self, client: &Client, clients: u32, round: u32, stop: &Stop) -> Vec<JoinHandle<()>> {
        self.load_within(PATIENCE, client, clients, round, stop)
    }

    /// The same where an answer may take longer.
    pub(crate) fn load_within(
        &self,
        patience: Duration,
        client: &Client,
        clients: u32,
        round: u32,
        stop: &Stop,
    ) -> Vec<JoinHandle<()>> {
        let ask = |app| tokio::spawn(self.clone().ask(client.clone(), (round, app), patience, stop.clone()));
        (1..=clients).map(ask).collect()
    }

    async fn ask(self, client: Client, (round, app): (u32, u32), patience: Duration, stop: Stop) {
        for n in 0.. {
            if stop.is_set() {
                return;
            }
            let id = format!("k{round}a{app}n{n}");
            self.asked().insert((id.clone(), app), None);
            let Ok(answer) = client.request_hints(wire(&id, app), patience).await else {
                return; // killed, or shutting down
            };
            self.asked().insert((id, app), Some(answer));
        }
    }

    /// Requests answered, and those whose answer never came.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let asked = self.asked();
        let answered = asked.values().flatten().count();
        (answered, asked.len() - answered)
    }

    /// Leases that were answered.
    pub(crate) fn leases(&self) -> usize {
        self.asked().values().flatten().map(|answer| leased(answer).into_values().flatten().count()).sum()
    }

    /// Every answer of rounds from `since` on is given again as it was, all leases ever answered are held and no
    /// others, and none was given twice. What was never answered is asked for again, and counts from now on.
    pub(crate) async fn check(&self, program: &Program, since: u32) {
        let all: Vec<_> = self.asked().iter().map(|(key, answer)| (key.clone(), answer.clone())).collect();
        let mut leases = BTreeSet::new();
        let mut by_node: BTreeMap<String, i64> = BTreeMap::new();
        for ((id, app), known) in all {
            let round: u32 = id[1..id.find('a').unwrap()].parse().unwrap();
            let answer = match &known {
                Some(known) if round < since => known.clone(),
                _ => program.client.request_hints(wire(&id, app), SOON).await.unwrap(),
            };
            if let Some(known) = known {
                assert_eq!(first_said(&known), first_said(&answer), "the answer of {id} is kept");
            }
            for (host, held) in leased(&answer) {
                *by_node.entry(host).or_default() += CONTAINER_MB * held.len() as i64;
                for lease in held {
                    assert!(leases.insert(lease), "lease {lease} was given twice");
                }
            }
            self.asked().insert((id, app), Some(answer));
        }
        assert_eq!(program.status().await.leases, leases.len() as u64, "all are there and no others");
        // Nodes are shown as of the last generation, which the engine publishes after it has answered.
        let began = Instant::now();
        loop {
            let nodes = program.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
            let held = |node: &v1::NodeView| (node.host.clone(), node.leased.as_ref().unwrap().memory());
            let held: BTreeMap<_, _> = nodes.iter().map(held).filter(|(_, held)| *held > 0).collect();
            if held == by_node {
                return;
            }
            assert!(began.elapsed() < SOON, "nodes hold {held:?}, and {by_node:?} was answered");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until so many were answered: there is load.
    pub(crate) async fn until_answered(&self, least: usize) {
        let began = Instant::now();
        while self.counts().0 < least {
            assert!(began.elapsed() < 2 * SOON, "{least} are to be answered: {:?}", self.counts());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Account {
    /// Asks for every answer again, where some may be gone: returns how many were made anew. No lease is given twice,
    /// and none is held that was not answered now.
    pub(crate) async fn count_lost(&self, program: &Program) -> usize {
        let all: Vec<_> = self.asked().iter().map(|(key, answer)| (key.clone(), answer.clone())).collect();
        let (mut lost, mut leases) = (0, BTreeSet::new());
        for ((id, app), known) in all {
            let answer = program.client.request_hints(wire(&id, app), SOON).await.unwrap();
            let decision = |answer: &v1::RequestHintsResponse| answer.hints.as_ref().unwrap().decision_id.clone();
            if let Some(known) = known.filter(|known| first_said(known) != first_said(&answer)) {
                assert_ne!(decision(&known), decision(&answer), "{id} is made anew, or as it was");
                lost += 1;
            }
            for lease in leased(&answer).into_values().flatten() {
                assert!(leases.insert(lease), "lease {lease} was given twice");
            }
        }
        assert_eq!(program.status().await.leases, leases.len() as u64, "all are there and no others");
        lost
    }
}

/// Ends clients.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<std::sync::atomic::AtomicBool>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Waits for clients.
pub(crate) async fn joined(clients: Vec<JoinHandle<()>>) {
    for client in clients {
        client.await.unwrap();
    }
}
