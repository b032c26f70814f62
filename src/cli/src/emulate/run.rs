//! The emulated cluster at work: heartbeats, jobs, foreign applications, faults.

use super::cluster::Cluster;
use super::controller;
use super::event::EmulationEvent;
use super::hdfs::Namespace;
use super::jobs::Workload;
use super::master;
use super::shared::{Behavior, Shared};
use super::sources::{Facts, FeedError, Sources};
use super::tally::Tally;
use super::traffic::Traffic;
use super::yarn::{MasterMessage, Yarn};
use hintd_client::wire::v1;
use hintd_client::{Client, ClientError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;

/// The seed's stream for loads and watched pairs.
const STREAM: u64 = 3;
/// What happened and was not read yet: all of the demonstrations' and tests' stories.
const HAPPENINGS_MAX: usize = 65_536;

/// Beats between two readings of the links' counters.
const COUNTERS_EVERY: u64 = 5;

/// A link that is mended stays down for so long at least.
const DOWN_AT_LEAST: Duration = Duration::from_millis(1_500);

/// Something that breaks, or is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The machine stops.
    KillNode(String),
    /// The machine with most of the jobs' containers stops.
    KillBusiestNode,
    /// The link goes down.
    FailLink(String),
    /// The link comes up again.
    MendLink(String),
    /// The link between switches with most of the jobs' routes goes down.
    FailBusiestLink,
    /// Links that went down come up again, once they were down for a while.
    MendLinks,
}

/// Faults by the time after the first job may be submitted.
pub type Script = Vec<(Duration, Fault)>;

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// The daemon can't be fed.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A fault names what the cluster does not have.
    #[error("the script names {what} \"{name}\", which the cluster does not have")]
    Unknown {
        /// node, link
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The daemon refuses to tell routes.
    #[error("the daemon refuses Routes.Watch")]
    Routes(#[source] ClientError),
}

/// A cluster at work.
#[derive(Debug)]
pub struct Emulation {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    main: tokio::task::JoinHandle<Result<(), EmulationError>>,
}

impl Emulation {
    /// Tells the daemon of the whole cluster, then sets everything going.
    ///
    /// # Errors
    /// [`EmulationError`] if the daemon takes no feed, or the script names unknown things.
    pub async fn start(
        client: Client,
        cluster: Cluster,
        workload: Workload,
        namespace: Namespace,
        behaviour: Behavior,
        script: Script,
        cluster_timestamp: u64,
    ) -> Result<(Self, mpsc::Receiver<EmulationEvent>), EmulationError> {
        check_script(&script, &cluster)?;
        let facts = Facts::new(cluster, namespace);
        let sources = Sources::open(&client, &facts, behaviour.limit).await?;
        let Facts { cluster, namespace, dead, down } = facts;
        let (happenings, receiver) = mpsc::channel(HAPPENINGS_MAX);
        let tally = Tally {
            jobs: workload.jobs.len() as u64,
            tasks: workload.jobs.iter().map(|job| u64::from(job.maps) + u64::from(job.reduces)).sum(),
            ..Tally::default()
        };
        let shared = Arc::new(Shared {
            yarn: Mutex::new(Yarn::new(
                &cluster,
                cluster_timestamp,
                behaviour.seed,
                behaviour.rack_locality_additional_delay,
            )),
            namespace,
            masters: Mutex::default(),
            tally: Mutex::new(tally),
            leases: Mutex::default(),
            dead,
            link_told: Mutex::default(),
            down,
            tables: Mutex::default(),
            traffic: Mutex::new(Traffic::new(&cluster)),
            traffic_changed: Notify::new(),
            began: Instant::now(),
            happenings,
            cluster,
            workload,
            behaviour,
            client,
        });
        let mut tasks = JoinSet::new();
        watch_routes(&shared, &mut tasks).await?;
        tasks.spawn(carry(Arc::clone(&shared)));
        let main = tokio::spawn(work(Arc::clone(&shared), sources, script));
        Ok((Self { shared, tasks, main }, receiver))
    }

    /// What the parts share.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Waits for the last job, or for the time limit.
    ///
    /// # Errors
    /// [`EmulationError`] if a feed broke.
    pub async fn finish(mut self) -> Result<Tally, EmulationError> {
        let result = (&mut self.main).await.expect("the emulation does not panic");
        self.tasks.abort_all();
        result?;
        Ok(self.shared.tally().clone())
    }
}

fn check_script(script: &Script, cluster: &Cluster) -> Result<(), EmulationError> {
    let uplinks: Vec<String> = cluster.network.links().map(|(_, link)| link.name.to_string()).collect();
    for (_, fault) in script {
        let (what, name, known) = match fault {
            Fault::KillBusiestNode | Fault::FailBusiestLink | Fault::MendLinks => continue,
            Fault::KillNode(host) => ("node", host, cluster.find(host).is_some()),
            Fault::FailLink(id) | Fault::MendLink(id) => ("link", id, uplinks.contains(id)),
        };
        if !known {
            return Err(EmulationError::Unknown { what, name: name.clone() });
        }
    }
    Ok(())
}

/// The main loop: one beat after another until all jobs have ended.
async fn work(shared: Arc<Shared>, mut sources: Sources, mut script: Script) -> Result<(), EmulationError> {
    script.sort_by_key(|(at, _)| *at);
    let mut cast = MainLoopActors { started: Instant::now(), foreign_owed: 0.0, next_job: 0, masters: JoinSet::new() };
    let mut silent: Vec<(Instant, usize)> = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(shared.behaviour.seed);
    rng.set_stream(STREAM);
    let mut beaten = 0_u64;
    let mut beats = tokio::time::interval(shared.behaviour.heartbeat);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let now = cast.started.elapsed();
        while let Some(due) = script.iter().position(|(at, fault)| *at <= now && !waits(&shared, fault)) {
            let (_, fault) = script.remove(due);
            inject_fault(&shared, &mut sources, fault, &mut silent).await?;
        }
        cast.submit(&shared, now);
        cast.foreign(&shared, now);
        give_up_nodes(&shared, &mut sources, &mut silent).await?;
        beat(&shared, &mut sources).await?;
        others_send(&shared, &mut rng);
        beaten += 1;
        if beaten.is_multiple_of(COUNTERS_EVERY) {
            let loads = shared.change_traffic(|traffic, now_s| traffic.read_counters(now_s));
            sources.link_loads(loads).await?;
        }
        while cast.masters.try_join_next().is_some() {}
        let submitted = cast.masters.is_empty() && cast.next(&shared).is_none();
        // With the last job gone, what waits for one to run has nothing left to wait for.
        let done = submitted && script.iter().all(|(_, fault)| idle_fault(&shared, fault));
        if (done && silent.is_empty() && !shared.behaviour.keep) || now > shared.behaviour.limit {
            return close(&shared, &sources, now);
        }
    }
}

/// Who acts in the main loop.
struct MainLoopActors {
    started: Instant,
    foreign_owed: f64,
    next_job: usize,
    masters: JoinSet<()>,
}

impl MainLoopActors {
    /// Starts the masters whose time has come.
    fn submit(&mut self, shared: &Arc<Shared>, now: Duration) {
        while let Some((job, _)) = self.next(shared).filter(|(_, submit)| *submit <= now) {
            self.next_job += 1;
            let sequence = u32::try_from(self.next_job).unwrap_or(u32::MAX);
            if self.next_job > shared.workload.jobs.len() {
                shared.tally().jobs += 1; // of a further round
            }
            self.masters.spawn(master::run(Arc::clone(shared), job, sequence));
        }
    }

    /// What is submitted next: its place in the trace, and when.
    fn next(&self, shared: &Shared) -> Option<(usize, Duration)> {
        shared.workload.submission(self.next_job, shared.behaviour.keep)
    }

    /// Foreign applications come and go.
    fn foreign(&mut self, shared: &Shared, now: Duration) {
        let behaviour = &shared.behaviour;
        let mut yarn = shared.yarn();
        yarn.end_foreign(now);
        self.foreign_owed += behaviour.foreign_per_s * behaviour.heartbeat.as_secs_f64();
        while self.foreign_owed >= 1.0 {
            self.foreign_owed -= 1.0;
            yarn.take_foreign(now + behaviour.foreign_life);
        }
    }
}

/// Every node offers its room to YARN and reports to the daemon.
async fn beat(shared: &Shared, sources: &mut Sources) -> Result<(), EmulationError> {
    sources.keep_up().await?;
    for host in sources.heartbeats.stream().take_resync() {
        if let Some(node) = shared.cluster.find(&host) {
            shared.yarn().restart_heartbeats(node);
            sources.register(&shared.cluster, node).await?;
        }
    }
    for datanode in sources.blocks.stream().take_reports_wanted() {
        let node = shared.cluster.machines.iter().position(|m| m.datanode == datanode || m.host.as_str() == datanode);
        if let Some(node) = node.filter(|&node| !shared.is_dead(shared.cluster.machines[node].host.as_str())) {
            let blocks = shared.namespace().report(node);
            sources.full_report(&shared.cluster, node, blocks).await?;
        }
    }
    for node in 0..shared.cluster.machines.len() {
        let (given, heartbeat) = {
            let mut yarn = shared.yarn();
            (yarn.offer(node), yarn.heartbeat(node))
        };
        for allocation in given {
            shared.deliver(allocation.attempt, MasterMessage::Given(allocation));
        }
        if let Some(heartbeat) = heartbeat {
            sources.heartbeat(heartbeat).await?;
        }
    }
    if let Err(violation) = shared.yarn().audit() {
        shared.tally().violations.push(violation);
    }
    Ok(())
}

/// Lets what is sent arrive at its time.
async fn carry(shared: Arc<Shared>) {
    loop {
        let (arrived, next_s) = {
            let mut traffic = shared.traffic();
            (traffic.advance(shared.now_s()), traffic.next_s())
        };
        for arrived in arrived {
            shared.deliver(arrived.owner, MasterMessage::Arrived(arrived.transfer));
        }
        let next = next_s.and_then(|at_s| Duration::try_from_secs_f64(at_s).ok());
        let due = next.and_then(|next| shared.began.checked_add(next));
        tokio::select! {
            () = shared.traffic_changed.notified() => {}
            () = master::sleep_until(due) => {}
        }
    }
}

/// Traffic that no job of ours makes: 5 to 30 % of an uplink's capacity, of another uplink each beat.
fn others_send(shared: &Shared, rng: &mut ChaCha8Rng) {
    let uplinks = shared.cluster.uplinks();
    if uplinks.is_empty() {
        return;
    }
    let id = &uplinks[rng.random_range(0..uplinks.len())];
    let index = shared.cluster.network.link(id).expect("uplinks are the network's own");
    let capacity = shared.cluster.network.link_at(index).capacity.0;
    let mut percent = || (rng.random_range(5..=30) * (capacity / 100)) as f64;
    let rates = [percent(), percent()];
    shared.change_traffic(|traffic, now_s| traffic.set_others(now_s, index, rates));
}

/// Faults that have nothing to strike once no job runs.
fn idle_fault(shared: &Shared, fault: &Fault) -> bool {
    match fault {
        Fault::KillBusiestNode | Fault::FailBusiestLink => true,
        Fault::MendLinks => shared.down().is_empty(),
        _ => false,
    }
}

/// The death of a node that runs nothing would show nothing, nor would that of a link that nobody's route has: they
/// wait until there is something to strike.
fn waits(shared: &Shared, fault: &Fault) -> bool {
    match fault {
        Fault::KillBusiestNode => {
            let yarn = shared.yarn();
            yarn.running(yarn.busiest()).0 == 0
        }
        Fault::FailBusiestLink => shared.tables().busiest(&shared.cluster.uplinks()).is_none(),
        Fault::MendLinks => !shared.down().values().any(|since| since.elapsed() >= DOWN_AT_LEAST),
        _ => false,
    }
}

async fn inject_fault(
    shared: &Shared,
    sources: &mut Sources,
    fault: Fault,
    dirty: &mut Vec<(Instant, usize)>,
) -> Result<(), EmulationError> {
    match fault {
        Fault::KillNode(host) => kill(shared, shared.cluster.find(&host).expect("the script was checked"), dirty),
        Fault::KillBusiestNode => {
            let node = shared.yarn().busiest();
            kill(shared, node, dirty);
        }
        Fault::FailLink(id) => turn_link(shared, sources, id, false).await?,
        Fault::MendLink(id) => turn_link(shared, sources, id, true).await?,
        Fault::FailBusiestLink => {
            let busiest = shared.tables().busiest(&shared.cluster.uplinks());
            if let Some((id, _)) = busiest {
                turn_link(shared, sources, id, false).await?;
            }
        }
        Fault::MendLinks => {
            let down: Vec<String> = shared.down().keys().cloned().collect();
            for id in down {
                turn_link(shared, sources, id, true).await?;
            }
        }
    }
    Ok(())
}

fn kill(shared: &Shared, node: usize, dirty: &mut Vec<(Instant, usize)>) {
    let (containers, elsewhere) = {
        let mut yarn = shared.yarn();
        yarn.kill(node);
        yarn.running(node)
    };
    let now = Instant::now();
    shared.dead.lock().expect("no holder of this lock panics").insert(node, now);
    shared.change_traffic(|traffic, now_s| traffic.stop_machine(now_s, node));
    dirty.push((now + shared.behaviour.node_expiry, node));
    let host = shared.cluster.machines[node].host.to_string();
    shared.tell(EmulationEvent::NodeKilled { host, containers, elsewhere });
}

async fn turn_link(shared: &Shared, sources: &mut Sources, id: String, up: bool) -> Result<(), EmulationError> {
    let now = Instant::now();
    if up {
        shared.down().remove(&id);
    } else {
        shared.down().insert(id.clone(), now);
    }
    shared.change_traffic(|traffic, now_s| traffic.set_link(now_s, &id, up));
    let routes = shared.tables().on(&id);
    shared.tell(EmulationEvent::Link { id: id.clone(), up, routes });
    *shared.link_told.lock().expect("no holder of this lock panics") = Some((id.clone(), Instant::now()));
    sources.link(&id, up).await?;
    Ok(())
}

/// ResourceManager and NameNode give up nodes that were silent for long enough.
async fn give_up_nodes(
    shared: &Shared,
    sources: &mut Sources,
    silent: &mut Vec<(Instant, usize)>,
) -> Result<(), EmulationError> {
    let now = Instant::now();
    let (due, rest): (Vec<_>, Vec<_>) = silent.drain(..).partition(|(at, _)| *at <= now);
    *silent = rest;
    for (_, node) in due {
        let lost = shared.yarn().expire(node);
        let host = shared.cluster.machines[node].host.to_string();
        shared.tell(EmulationEvent::NodeGivenUp { host, containers: lost.len() });
        shared.lose(lost);
        let moved = shared.namespace().replicate_without(node, &shared.cluster);
        for (receiver, blocks) in moved {
            sources.received(&shared.cluster, receiver, blocks).await?;
        }
    }
    Ok(())
}

fn close(shared: &Shared, sources: &Sources, now: Duration) -> Result<(), EmulationError> {
    let (refused, complaints) = sources.refused();
    let yarn = shared.yarn().tally();
    let between_switches = shared.traffic().between_switches();
    let mut tally = shared.tally();
    tally.feed_refused = refused;
    tally.feed_complaints = complaints;
    tally.yarn = yarn;
    tally.between_switches = between_switches;
    tally.took = now;
    Ok(())
}

/// The SDN controller installs routes of flows; a monitor watches routes of pairs that need not talk.
async fn watch_routes(shared: &Arc<Shared>, tasks: &mut JoinSet<()>) -> Result<(), EmulationError> {
    const MONITOR: &str = "emulated-monitor";
    tasks.spawn(controller::start(shared).await.map_err(EmulationError::Routes)?);
    let request = v1::WatchRequest { watcher: MONITOR.to_owned(), pairs: pairs(shared), ..Default::default() };
    let mut updates = shared.client.watch(request).await.map_err(EmulationError::Routes)?;
    let shared = Arc::clone(shared);
    tasks.spawn(async move {
        while let Some(Ok(update)) = updates.next().await {
            let took = shared.since_told(&update);
            shared.tell(EmulationEvent::Routes { update: Box::new(update), took });
        }
    });
    Ok(())
}

/// Distinct pairs of hosts in different racks, drawn evenly; fewer where the cluster has fewer.
fn pairs(shared: &Shared) -> Vec<v1::HostPair> {
    let machines = &shared.cluster.machines;
    let mut rng = ChaCha8Rng::seed_from_u64(shared.behaviour.seed);
    rng.set_stream(STREAM + 1);
    let mut drawn = std::collections::BTreeSet::new();
    for _ in 0..shared.behaviour.watched_pairs.saturating_mul(4) {
        if drawn.len() == shared.behaviour.watched_pairs {
            break;
        }
        let pair = (rng.random_range(0..machines.len()), rng.random_range(0..machines.len()));
        if machines[pair.0].rack_number != machines[pair.1].rack_number {
            drawn.insert(pair);
        }
    }
    let name = |node: usize| machines[node].host.to_string();
    drawn.into_iter().map(|(src, dst)| v1::HostPair { src: name(src), dst: name(dst), class: String::new() }).collect()
}
