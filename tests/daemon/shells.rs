//! The engine has two shells: the daemon's runtime, and the simulator's hintd in virtual time. An emulated cluster talks to
//! a daemon over gRPC; what the daemon was told is recorded as it came, and played to the simulator's. Both give the same
//! hints, leases and effects, ids, tokens and times aside.
//!
//! The recording lasts as long as the daemon takes for it, some seconds, in which [`JOBS`] applications run from their first
//! map to their end. Leases do not come to the end of their time in it, for that is time, and no node falls silent or is
//! lost, which the simulator does not tell hintd.

use crate::world::{SOON, World, resource};
use hintd::hadoop::history_server::{JobConf, JobCounted, JobSeen, TaskTimes, run as learnt_of};
use hintd_cli::emulate::cluster::graph;
use hintd_client::wire::v1;
use hintd_client::{FeedItem, FeedSender};
use hintd_engine::{Effect, FollowBody};
use hintd_model::cluster::Resource;
use hintd_model::units::{ApplicationId, AttemptId, Bytes, ContainerId, HostName, Micros, Timestamp};
use hintd_policy::advise::EarlierRun;
use hintd_policy::registry;
use hintd_simulator::deployed::Deployed;
use hintd_simulator::deployed::recording::{Decided, RecordedFact, play};
use hintd_simulator::yarn::SimCluster;
use hintd_simulator::{ClusterShape, SimSettings};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use v1::follow_message::Advice;

/// Applications of a recording.
const JOBS: u32 = 24;
/// Of these, so many run at a time.
const AT_ONCE: usize = 6;
const CONTAINER_MB: u64 = 1_024;
const PER_NODE: u64 = 8;
/// Counters of what became of leases and of events.
const COUNTED: [&str; 6] =
    ["leases_granted", "leases_bound", "leases_released", "leases_withdrawn", "leases_expired", "leases_undone"];

/// Four racks of four nodes; uplinks carry a quarter of what access links do.
fn cluster() -> SimCluster {
    let text = "format = \"hintd.shape/1\"\nracks = 4\nnodes_per_rack = 4\ncontainers_per_node = 8\n\
                nic_bits_per_s = 1000000000\nuplink_bits_per_s = 1000000000\nusers = 3\n";
    toml::from_str::<ClusterShape>(text).unwrap().to_cluster().unwrap()
}

/// A hint that can be told from another: containers, host, next best hosts, leases.
type Seen = (u32, String, Vec<String>, usize);

/// How the daemon stood at a question, or at the end.
#[derive(Debug, PartialEq)]
struct Stand {
    hints: Vec<Seen>,
    withheld: Option<String>,
    /// Steps of the search.
    steps: u64,
    leases: BTreeMap<AttemptId, usize>,
    /// By name.
    counters: BTreeMap<String, u64>,
}

/// Leases withdrawn by attempt: host, how many, why.
type Withdrawn = BTreeMap<AttemptId, Vec<Followed>>;

/// What was taken back: host, how many leases, why.
type Followed = (String, usize, String);

struct Job {
    attempt: AttemptId,
    key: Option<String>,
    maps: u32,
    maps_started: u32,
    maps_ended: u32,
    reduces: u32,
    reduces_asked: u32,
    reduces_started: u32,
    next_container: u64,
    /// Host, number, a map's.
    running: Vec<(HostName, u64, bool)>,
    /// Leases that no container came for, by host.
    hinted: Vec<(HostName, u64)>,
}

impl Job {
    fn is_over(&self) -> bool {
        self.reduces_started == self.reduces && self.maps_ended == self.maps && self.running.is_empty()
    }

    /// How many reduces it asks for now: a part once a fifth of its maps are done, the rest with the last.
    fn asks_for(&self) -> u32 {
        let wants = match self.maps_ended {
            all if all == self.maps => self.reduces,
            ended if ended * 5 >= self.maps => self.reduces.div_ceil(2),
            _ => 0,
        };
        wants - self.reduces_asked.min(wants)
    }
}

/// The emulated cluster, and what it tells the daemon.
struct Cluster {
    world: World,
    model: SimCluster,
    rng: ChaCha8Rng,
    heartbeats: FeedSender<v1::HeartbeatItem>,
    events: FeedSender<v1::EventItem>,
    recording: Vec<(Timestamp, RecordedFact)>,
    stands: Vec<Stand>,
    /// By host: containers of our jobs, and of others.
    used: BTreeMap<HostName, [u64; 2]>,
    beats: u32,
    asked: u64,
    followers: BTreeMap<AttemptId, JoinHandle<Vec<Followed>>>,
    /// Messages that the followers have got.
    heard: Arc<AtomicUsize>,
}

fn container_of(attempt: AttemptId, id: u64) -> String {
    ContainerId { attempt, id }.to_string()
}

fn hello() -> v1::FeedHello {
    let used_means = v1::UsedMeans::Allocated.into();
    v1::FeedHello { source: "emulated".to_owned(), used_means, names_containers: false }
}

async fn tell<I: FeedItem>(feed: &mut FeedSender<I>, item: I) {
    feed.send(item).await.unwrap();
    let ack = feed.await_acknowledged().await.unwrap();
    assert!(ack.refused.is_empty(), "{ack:?}");
}

impl Cluster {
    async fn start(seed: u64) -> Self {
        let model = cluster();
        // In the simulator nobody falls silent; and a busy machine may take longer for it all than leases live.
        let settings = [
            ("policy", "default = \"joint\""),
            ("placer", "guard = true"),
            ("model", "stale_after = \"1h\""),
            ("model", "lost_after = \"2h\""),
            ("leases", "time_to_live = \"24h\""),
        ];
        let world = World::with(&settings).await;
        let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
        let mut heartbeats: FeedSender<v1::HeartbeatItem> = world.client.feed(hello()).await.unwrap();
        let events: FeedSender<v1::EventItem> = world.client.feed(hello()).await.unwrap();
        let snapshot = &model.snapshot;
        let mut used = BTreeMap::new();
        for node in snapshot.statics.indexes() {
            let register = v1::RegisterNode {
                host: snapshot.host(node).to_string(),
                port: 8_041,
                rack: snapshot.statics.racks[snapshot.rack(node).at()].to_string(),
                total: Some(resource((CONTAINER_MB * PER_NODE) as i64, PER_NODE as i32)),
                disk_read_bytes_per_s: snapshot.statics.disk_read[node.at()].0,
                ..Default::default()
            };
            let item = Some(v1::heartbeat_item::Item::Register(register));
            tell(&mut heartbeats, v1::HeartbeatItem { number: 0, item }).await;
            used.insert(snapshot.host(node).clone(), [0, 0]);
        }
        let full = graph(snapshot.topology.network.as_ref().unwrap());
        let item = Some(v1::topology_item::Item::Full(full));
        tell(&mut network, v1::TopologyItem { number: 0, item }).await;
        let links = snapshot.topology.network.as_ref().unwrap().links().count() as u32;
        world.until("the network is there", |status| status.links == links).await;
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let (recording, stands, followers) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut cluster = Self {
            world,
            model,
            rng,
            heartbeats,
            events,
            recording,
            stands,
            used,
            beats: 0,
            asked: 0,
            followers,
            heard: Arc::default(),
        };
        for host in cluster.used.keys().cloned().collect::<Vec<_>>() {
            cluster.beat(&host).await;
        }
        cluster
    }

    fn record(&mut self, told: RecordedFact) {
        // A millisecond each, whatever the machine takes for it.
        let at = Timestamp(1_000 * (self.recording.len() as u64 + 1));
        self.recording.push((at, told));
    }

    /// The node's heartbeat.
    async fn beat(&mut self, host: &HostName) {
        self.beats += 1;
        let containers: u64 = self.used[host].iter().sum();
        let heartbeat = v1::NodeHeartbeat {
            host: host.to_string(),
            response_id: self.beats,
            used: Some(resource((CONTAINER_MB * containers) as i64, containers as i32)),
            ..Default::default()
        };
        let item = Some(v1::heartbeat_item::Item::Heartbeat(heartbeat));
        tell(&mut self.heartbeats, v1::HeartbeatItem { number: 0, item }).await;
        self.record(RecordedFact::Holds {
            host: host.clone(),
            used: Resource::new(CONTAINER_MB * containers, containers),
        });
        self.until_published().await;
    }

    /// Waits until requests see what nodes were said to hold, and with it all that was told before.
    async fn until_published(&self) {
        let began = Instant::now();
        loop {
            // Commands are taken in order: the engine has heard all events by now.
            self.world.running().daemon.attempts_held().await.unwrap();
            let generation = self.world.running().daemon.generation();
            let snapshot = &generation.snapshot;
            let holds = |(host, used): (&HostName, &[u64; 2])| {
                let node = snapshot.statics.find(host.as_str());
                let containers: u64 = used.iter().sum();
                node.is_some_and(|node| snapshot.occupied[node.at()].memory_mb() == CONTAINER_MB * containers)
            };
            // Before all nodes have reported, what the others hold is not known.
            let known = if self.beats < self.used.len() as u32 { true } else { self.used.iter().all(holds) };
            if known {
                return;
            }
            assert!(began.elapsed() < SOON, "requests do not see what nodes hold");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn event(&mut self, job: &Job, (group, task): (&str, &str), what: v1::task_event::What, told: RecordedFact) {
        let event = v1::TaskEvent {
            application_id: job.attempt.application.to_string(),
            attempt: job.attempt.attempt,
            group: group.to_owned(),
            task: task.to_owned(),
            what: Some(what),
            ..Default::default()
        };
        let item = Some(v1::event_item::Item::Event(event));
        tell(&mut self.events, v1::EventItem { number: 0, item }).await;
        self.record(told);
    }

    /// A job, and what the JobHistoryServer has of an earlier run.
    async fn submit(&mut self, number: u32) -> Job {
        let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: number }, attempt: 1 };
        let (maps, reduces) = (self.rng.random_range(2..14_u32), self.rng.random_range(1..9_u32));
        let key = (!number.is_multiple_of(3)).then(|| format!("mapreduce:u{}:job {number} #", number % 3));
        if let Some(key) = &key {
            let shuffle = Bytes(self.rng.random_range(1_u64..40) << 27);
            let (map, reduce) = (Micros::from_secs(4), Micros::from_secs(3));
            let seen = JobSeen {
                id: format!("job_0_{number:04}"),
                name: format!("job {number} 1"),
                user: format!("u{}", number % 3),
                submitted_ms: Some(1_000),
                finished_ms: 60_000,
                maps,
                reduces,
            };
            let counted = JobCounted { shuffled: Some(shuffle), read: Some(Bytes(1 << 30)) };
            let learnt = learnt_of(&seen, &JobConf::default(), counted, Some(TaskTimes { map, reduce }));
            self.world.running().daemon.learnt(key.as_str().into(), learnt).await.unwrap();
            let (maps, reduces, input) = ((maps, map), (reduces, reduce), Bytes(1 << 30));
            self.record(RecordedFact::Recurs {
                attempt,
                run: EarlierRun { key: key.as_str().into(), input, shuffle, maps, reduces },
            });
        }
        Job {
            attempt,
            key,
            maps,
            maps_started: 0,
            maps_ended: 0,
            reduces,
            reduces_asked: 0,
            reduces_started: 0,
            next_container: 2,
            running: Vec::new(),
            hinted: Vec::new(),
        }
    }

    /// A node with room; none where all are full.
    fn any_room(&mut self) -> Option<HostName> {
        let free = |used: &[u64; 2]| used.iter().sum::<u64>() < PER_NODE;
        let hosts: Vec<HostName> =
            self.used.iter().filter(|(_, used)| free(used)).map(|(host, _)| host.clone()).collect();
        (!hosts.is_empty()).then(|| hosts[self.rng.random_range(0..hosts.len())].clone())
    }

    /// A container comes: of reduces mostly where one was hinted.
    async fn container(&mut self, job: &mut Job, map: bool) {
        let followed = (!map && self.rng.random_bool(0.7)).then(|| {
            let has_room = |(host, _): &(HostName, u64)| self.used[host].iter().sum::<u64>() < PER_NODE;
            let at = job.hinted.iter().position(has_room)?;
            Some(job.hinted.remove(at))
        });
        let (host, lease_id) = match followed.flatten() {
            Some((host, lease)) => (host, lease),
            None => match self.any_room() {
                // Where it comes to a hinted host by chance, it is taken for that hint's.
                Some(host) => {
                    let hinted = job.hinted.iter().position(|(hinted, _)| !map && *hinted == host);
                    let lease = hinted.map_or(0, |at| job.hinted.remove(at).1);
                    (host, lease)
                }
                None => return,
            },
        };
        let id = job.next_container;
        job.next_container += 1;
        let container_id = container_of(job.attempt, id);
        // As the ResourceManager's processor tells it.
        let allocated = v1::TaskAllocated { host: host.to_string(), container_id: container_id.clone(), lease_id };
        let what = v1::task_event::What::Allocated(allocated);
        let told = RecordedFact::Came { attempt: job.attempt, id, map, host: host.clone() };
        self.event(job, (if map { "p20" } else { "p10" }, &container_id), what, told).await;
        self.used.get_mut(&host).unwrap()[0] += 1;
        job.running.push((host.clone(), id, map));
        if map {
            job.maps_started += 1;
        } else {
            job.reduces_started += 1;
        }
        self.beat(&host).await;
    }

    /// One of its containers ends.
    async fn ends(&mut self, job: &mut Job) {
        let at = self.rng.random_range(0..job.running.len());
        let (host, id, map) = job.running.swap_remove(at);
        let task = container_of(job.attempt, id);
        let finished = v1::TaskFinished { host: host.to_string(), duration_ms: 4_000, ..Default::default() };
        let told = RecordedFact::Ended { attempt: job.attempt, id, map, host: host.clone(), failed: false };
        self.event(job, (if map { "p20" } else { "p10" }, &task), v1::task_event::What::Finished(finished), told).await;
        job.maps_ended += u32::from(map);
        self.used.get_mut(&host).unwrap()[0] -= 1;
        self.beat(&host).await;
    }

    /// Others' containers come or go on some node: leases there may have to give way.
    async fn others(&mut self) {
        let hosts: Vec<HostName> = self.used.keys().cloned().collect();
        let host = hosts[self.rng.random_range(0..hosts.len())].clone();
        let ours = self.used[&host][0];
        self.used.get_mut(&host).unwrap()[1] = self.rng.random_range(0..=PER_NODE - ours);
        self.beat(&host).await;
    }

    async fn ask(&mut self, job: &mut Job, count: u32) {
        self.until_published().await;
        self.asked += 1;
        let request_id = format!("r{}", self.asked);
        let group = v1::TaskGroup {
            name: "p10".to_owned(),
            role: "reduce".to_owned(),
            count,
            resource: Some(resource(CONTAINER_MB as i64, 1)),
            priority: 10,
            ..Default::default()
        };
        let request = v1::RequestHintsRequest {
            request_id: request_id.clone(),
            application_id: job.attempt.application.to_string(),
            attempt: job.attempt.attempt,
            queue: "root.default".to_owned(),
            user: "u".to_owned(),
            framework: "mapreduce".to_owned(),
            groups: vec![group],
            recurring_job_key: job.key.clone().unwrap_or_default(),
            gang: v1::Gang::UpTo.into(),
            when_full: v1::WhenFull::Advise.into(),
            ..Default::default()
        };
        let (attempt, user) = (job.attempt, "u".into());
        self.record(RecordedFact::Asked { id: request_id, attempt, user, count, whole: 0 });
        let answer = self.world.hints(request).await;
        let hints = answer.hints.as_ref().unwrap();
        let leases = |hint: &v1::Hint| {
            let host = HostName::from(hint.host.as_str());
            hint.lease_ids.iter().map(move |&lease| (host.clone(), lease)).collect::<Vec<_>>()
        };
        job.hinted.extend(hints.hints.iter().flat_map(leases));
        job.reduces_asked += count;
        let seen = |hint: &v1::Hint| (hint.count, hint.host.clone(), hint.fallbacks.clone(), hint.lease_ids.len());
        let withheld = hints.withheld.as_ref().map(|withheld| withheld.reason.clone());
        let hints = (hints.hints.iter().map(seen).collect(), withheld, hints.steps);
        self.stand(hints).await;
        self.follow(attempt, &answer).await;
    }

    /// Notes how the daemon stands.
    async fn stand(&mut self, (hints, withheld, steps): (Vec<Seen>, Option<String>, u64)) {
        let held = self.world.running().daemon.attempts_held().await.unwrap();
        let held = held.into_iter().filter(|held| held.leases > 0);
        let leases = held.map(|held| (held.attempt, held.leases)).collect();
        let status = self.world.status().await;
        let count = |name: &str| (name.to_owned(), status.counters.get(name).copied().unwrap_or(0));
        let counters = COUNTED.into_iter().map(count).collect();
        self.stands.push(Stand { hints, withheld, steps, leases, counters });
    }

    /// Gathers what the attempt is told, until the daemon stops.
    async fn follow(&mut self, attempt: AttemptId, answer: &v1::RequestHintsResponse) {
        if self.followers.contains_key(&attempt) {
            return;
        }
        let start = v1::FollowStart {
            application_id: attempt.application.to_string(),
            attempt: attempt.attempt,
            token: answer.token.clone(),
            resume_after: 0,
            nonce: Vec::new(),
        };
        let mut following = self.world.client.follow(start).await.unwrap();
        let heard = Arc::clone(&self.heard);
        self.followers.insert(
            attempt,
            tokio::spawn(async move {
                let mut withdrawn = Vec::new();
                while let Ok(message) = following.next().await {
                    match message.advice {
                        Some(Advice::Withdraw(found)) => {
                            withdrawn.push((found.host, found.lease_ids.len(), found.reason));
                            heard.fetch_add(1, Ordering::Relaxed);
                        }
                        other => panic!("told of what nobody expects: {other:?}"),
                    }
                }
                withdrawn
            }),
        );
    }

    /// Goes on with a job by one step.
    async fn advance(&mut self, job: &mut Job) {
        let more = job.asks_for();
        if more > 0 {
            self.others().await;
            self.ask(job, more).await;
        } else if job.maps_started < job.maps && (job.running.is_empty() || self.rng.random_bool(0.5)) {
            self.container(job, true).await;
        } else if job.reduces_started < job.reduces_asked && self.rng.random_bool(0.6) {
            self.container(job, false).await;
        } else if !job.running.is_empty() {
            self.ends(job).await;
        } else if job.maps_started < job.maps {
            self.container(job, true).await;
        } else {
            self.container(job, false).await;
        }
        if self.used.values().all(|used| used.iter().sum::<u64>() == PER_NODE) {
            self.others().await;
        }
    }

    /// All jobs, to their end.
    async fn run(&mut self) {
        let (mut submitted, mut running) = (0, Vec::new());
        while submitted < JOBS || !running.is_empty() {
            while running.len() < AT_ONCE && submitted < JOBS {
                submitted += 1;
                running.push(self.submit(submitted).await);
            }
            let at = self.rng.random_range(0..running.len());
            let mut job = running.swap_remove(at);
            self.advance(&mut job).await;
            if job.is_over() {
                let done = v1::task_event::What::Done(v1::ApplicationDone { failed: false });
                let told = RecordedFact::Done(job.attempt);
                self.event(&job, ("", ""), done, told).await;
            } else {
                running.push(job);
            }
        }
        self.until_published().await;
        self.stand((Vec::new(), None, 0)).await;
    }
}

/// The same of the simulator's.
fn stands(decided: &[Decided]) -> Vec<Stand> {
    let mut counters: BTreeMap<String, u64> = COUNTED.iter().map(|&name| (name.to_owned(), 0)).collect();
    let of = |decided: &Decided| {
        for effect in &decided.effects {
            if let Effect::Count(counter, by) = effect
                && let Some(count) = counters.get_mut(counter.as_str())
            {
                *count += by;
            }
        }
        let answer = decided.answer.as_ref().map(|answer| &answer.decision);
        let seen = |hint: &hintd_engine::Hint| {
            let fallbacks = hint.fallbacks.iter().map(ToString::to_string).collect();
            (hint.count, hint.host.to_string(), fallbacks, hint.leases.len())
        };
        Stand {
            hints: answer.map(|found| found.hints.iter().map(seen).collect()).unwrap_or_default(),
            withheld: answer.and_then(|found| Some(found.withheld.as_ref()?.reason.as_str().to_owned())),
            steps: answer.map_or(0, |found| found.steps),
            leases: decided.leases.clone(),
            counters: counters.clone(),
        }
    };
    decided.iter().map(of).collect()
}

fn withdrawn(decided: &[Decided]) -> Withdrawn {
    let mut found = Withdrawn::new();
    for effect in decided.iter().flat_map(|decided| &decided.effects) {
        match effect {
            Effect::Follow { attempt, message: FollowBody::Withdraw { leases, host, reason }, .. } => {
                found.entry(*attempt).or_default().push((host.to_string(), leases.len(), (*reason).to_owned()));
            }
            Effect::Follow { .. } | Effect::Replace { .. } | Effect::Hints { .. } => panic!("not expected: {effect:?}"),
            _ => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_daemon_was_told_gives_the_same_in_the_simulators_shell() {
    let mut cluster = Cluster::start(7).await;
    cluster.run().await;
    let (own, baseline) = (registry::with_defaults("joint").unwrap(), registry::with_defaults("capacity").unwrap());
    let deployed = Deployed::new(&cluster.model, Some((&*own, &*baseline)), &SimSettings::default());
    let decided = play(&deployed, &cluster.recording);
    // A daemon that stops does not wait for messages that are on their way.
    let (expected, began) = (withdrawn(&decided), Instant::now());
    let messages: usize = expected.values().map(Vec::len).sum();
    while cluster.heard.load(Ordering::Relaxed) < messages && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    cluster.world.stop().await;
    let mut told = Withdrawn::new();
    for (attempt, follower) in std::mem::take(&mut cluster.followers) {
        let found = follower.await.unwrap();
        if !found.is_empty() {
            told.insert(attempt, found);
        }
    }
    let played = stands(&decided);
    assert_eq!(played.len(), cluster.stands.len());
    for (at, (daemon, simulator)) in cluster.stands.iter().zip(&played).enumerate() {
        assert_eq!(simulator, daemon, "question {at} of {}: simulator, daemon", played.len());
    }
    assert_eq!(expected, told, "Follow: simulator, daemon");
    // There was something to agree on.
    let all = |wanted: &dyn Fn(&Stand) -> bool| cluster.stands.iter().filter(|stand| wanted(stand)).count();
    let hinted = all(&|stand| !stand.hints.is_empty());
    let kinds: BTreeSet<&Option<String>> = cluster.stands.iter().map(|stand| &stand.withheld).collect();
    assert!(hinted >= 5 && kinds.len() >= 2, "{hinted} answers with hints, withheld: {kinds:?}");
    let last = &cluster.stands.last().unwrap().counters;
    assert!(last["leases_bound"] > 0 && last["leases_released"] > 0, "{last:?}");
}
