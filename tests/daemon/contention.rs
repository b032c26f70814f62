//! Many clients on the same scarce slots while YARN does as it likes, checked by an accountant that
//! sees only what goes over the wire.

use crate::world::{SOON, World, heartbeat, request};
use hintd_client::wire::v1;
use hintd_client::{ClientError, FeedSender};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use v1::follow_message::Advice;

const NODES: usize = 8;
/// Slots of 1 GB on each node.
const SLOTS: i64 = 6;
const SLOT_MB: i64 = 1_024;
const CLIENTS: u32 = 64;
const REQUESTS: u32 = 10;
/// What a client gives the daemon.
const DEADLINE: Duration = Duration::from_secs(20);
/// Leases that last: however long a busy machine takes, none ends by itself.
const LASTING: (&str, &str) = ("leases", "time_to_live = \"1h\"");

/// What the wire showed: leases answered and ended, foreign use acknowledged.
#[derive(Debug, Default)]
struct Account {
    /// Live leases by node: granted, not yet withdrawn or released, as far as a client can know.
    leases: BTreeMap<u64, usize>,
    /// Leases that a withdrawal named before their answer was read.
    withdrawn_early: Vec<u64>,
    granted: u64,
    withdrawn: u64,
    released: u64,
    /// Nobody but the clients uses the cluster: then what clients hold must fit at every moment.
    alone: bool,
}

impl Account {
    /// Clients know of a lease after the daemon gave it and forget it before it is given back, so what
    /// they hold is never more than what the daemon has given.
    fn check(&self) {
        let mut by_node = [0; NODES];
        self.leases.values().for_each(|node| by_node[*node] += 1);
        assert!(by_node.iter().all(|held| *held <= SLOTS), "more than {SLOTS} slots: {by_node:?}");
    }

    /// What is asserted once all is at rest.
    fn agrees(&self, status: &v1::StatusResponse, foreign: &[i64; NODES]) -> bool {
        let mut by_node = *foreign;
        self.leases.values().for_each(|node| by_node[*node] += 1);
        let withdrawn = status.counters.get("leases_withdrawn").copied().unwrap_or(0);
        by_node.iter().all(|held| *held <= SLOTS)
            && (status.leases, withdrawn) == (self.leases.len() as u64, self.withdrawn)
    }
}

fn node(host: &str) -> usize {
    host.strip_prefix("r0n").unwrap().parse().unwrap()
}

/// One client: asks, follows, gives back, asks again.
async fn ask(world: Arc<World>, account: Arc<Mutex<Account>>, app: u32, late: Arc<AtomicU64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(app));
    let mut follower = None;
    for round in 0..REQUESTS {
        let mut wire = request(&format!("a{app}r{round}"), app, rng.random_range(1..=3), SLOT_MB);
        if rng.random_bool(0.2) {
            wire.gang = v1::Gang::All.into();
        }
        let began = Instant::now();
        let answer = match world.client.request_hints(wire, DEADLINE).await {
            Ok(answer) => answer,
            Err(ClientError::OutOfTime { .. }) => continue, // said so, in time
            Err(error) => panic!("{error}"),
        };
        // Twice as long: one that came in time is read late by who halts.
        if began.elapsed() > 2 * DEADLINE {
            late.fetch_add(1, Ordering::Relaxed);
        }
        let held: Vec<u64> = {
            let mut account = account.lock().unwrap();
            let hints = &answer.hints.as_ref().unwrap().hints;
            let given = hints.iter().flat_map(|hint| hint.lease_ids.iter().map(|id| (*id, node(&hint.host))));
            let given: Vec<_> = given.collect();
            account.granted += given.len() as u64;
            for (id, node) in &given {
                assert!(!account.leases.contains_key(id), "lease {id} was given twice");
                if let Some(at) = account.withdrawn_early.iter().position(|early| early == id) {
                    account.withdrawn_early.swap_remove(at);
                } else {
                    account.leases.insert(*id, *node);
                }
            }
            if account.alone {
                account.check();
            }
            given.into_iter().map(|(id, _)| id).collect()
        };
        if follower.is_none() {
            follower = Some(tokio::spawn(follow(Arc::clone(&world), Arc::clone(&account), app, answer.token.clone())));
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..20))).await;
        if !held.is_empty() && rng.random_bool(0.7) {
            let release = v1::ReleaseRequest {
                application_id: format!("application_1_{app:04}"),
                attempt: 1,
                token: answer.token,
                lease_ids: held.clone(),
                nonce: Vec::new(),
            };
            // Given back from the moment of asking: the daemon may give it on before its answer is read.
            account.lock().unwrap().leases.retain(|id, _| !held.contains(id));
            let released = world.client.release(release).await.unwrap();
            account.lock().unwrap().released += u64::from(released.released);
        }
    }
    drop(follower); // it ends with the daemon
}

async fn follow(world: Arc<World>, account: Arc<Mutex<Account>>, app: u32, token: String) {
    let application_id = format!("application_1_{app:04}");
    let start = v1::FollowStart { application_id, attempt: 1, token, resume_after: 0, nonce: Vec::new() };
    let mut follow = world.client.follow(start).await.unwrap();
    while let Ok(message) = follow.next().await {
        let Some(Advice::Withdraw(withdrawn)) = message.advice else { panic!("{message:?}") };
        assert_eq!(withdrawn.reason, "foreign_use");
        let mut account = account.lock().unwrap();
        for id in withdrawn.lease_ids {
            account.withdrawn += 1;
            match account.leases.remove(&id) {
                Some(on) => assert_eq!(node(&withdrawn.host), on, "withdrawn where it was given"),
                None => account.withdrawn_early.push(id),
            }
        }
    }
}

/// YARN's side: puts foreign containers on nodes at random, takes them away again.
async fn allocate(mut feed: FeedSender<v1::HeartbeatItem>, stop: Arc<AtomicBool>) -> [i64; NODES] {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut foreign = [0_i64; NODES];
    let mut id = 1;
    while !stop.load(Ordering::Relaxed) {
        id += 1;
        let node = rng.random_range(0..NODES);
        foreign[node] = rng.random_range(0..=SLOTS);
        let containers = (0..foreign[node]).map(|n| (format!("container_1_9999_01_{:06}", n + 1), SLOT_MB));
        let item = heartbeat(&format!("r0n{node}"), id, foreign[node] * SLOT_MB, containers.collect());
        feed.send(item).await.unwrap();
        let ack = feed.await_acknowledged().await.unwrap();
        assert!(ack.refused.is_empty(), "{ack:?}");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    foreign
}

/// What the daemon says of its own nodes never adds up to more than they have, at any moment looked at.
async fn watch_nodes(world: Arc<World>, stop: Arc<AtomicBool>) -> u64 {
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) {
        let nodes = world.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
        for node in nodes {
            let memory =
                |resource: &Option<hintd_client::wire::yarn::ResourceProto>| resource.as_ref().unwrap().memory();
            let (used, leased, total) = (memory(&node.used), memory(&node.leased), memory(&node.total));
            assert!(used + leased <= total, "{}: {used} used and {leased} leased of {total}", node.host);
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    looks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_clients_and_a_willful_yarn_never_exceed_capacity() {
    let world = Arc::new(World::with(&[LASTING]).await);
    let feed = world.cluster(1, NODES as u32, SLOTS * SLOT_MB).await;
    let account = Arc::new(Mutex::new(Account::default()));
    let (stop, late) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let yarn = tokio::spawn(allocate(feed, Arc::clone(&stop)));
    let watcher = tokio::spawn(watch_nodes(Arc::clone(&world), Arc::clone(&stop)));
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|app| tokio::spawn(ask(Arc::clone(&world), Arc::clone(&account), app, Arc::clone(&late))))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let foreign = yarn.await.unwrap();
    assert!(watcher.await.unwrap() > 5);
    assert_eq!(late.load(Ordering::Relaxed), 0, "every request is answered within its deadline");

    // At rest the accountant and the daemon agree, and every node holds what it has: once the engine has taken in what was
    // acknowledged last, and followers have read what came of it.
    let began = Instant::now();
    let status = loop {
        let status = world.status().await;
        if account.lock().unwrap().agrees(&status, &foreign) || began.elapsed() > SOON {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let account = account.lock().unwrap();
    let mut by_node = [0_i64; NODES];
    account.leases.values().for_each(|node| by_node[*node] += 1);
    for node in 0..NODES {
        assert!(by_node[node] + foreign[node] <= SLOTS, "node {node}: {by_node:?} beside {foreign:?}");
    }
    assert_eq!(status.leases, account.leases.len() as u64, "{account:?} {status:?}");
    assert_eq!(status.counters["leases_granted"], account.granted);
    assert_eq!(status.counters.get("leases_withdrawn").copied().unwrap_or(0), account.withdrawn);
    assert!(account.granted > 100, "slots were fought for: {account:?}");
    assert!(account.withdrawn > 10, "YARN took some: {account:?}");
    assert!(status.counters.get("commit_conflicts").copied().unwrap_or(0) > 0, "commits collided: {status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_sixty_four_clients_hold_fits_at_every_moment() {
    let world = Arc::new(World::with(&[LASTING]).await);
    let _feed = world.cluster(1, NODES as u32, SLOTS * SLOT_MB).await;
    let account = Arc::new(Mutex::new(Account { alone: true, ..Account::default() }));
    let late = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|app| tokio::spawn(ask(Arc::clone(&world), Arc::clone(&account), app, Arc::clone(&late))))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let leases = world.status().await.leases;
    let account = account.lock().unwrap();
    assert_eq!((late.load(Ordering::Relaxed), account.withdrawn), (0, 0));
    assert_eq!(leases, account.leases.len() as u64, "{account:?}");
    assert!(account.granted > 100 && account.released > 20, "slots were fought for: {account:?}");
}
