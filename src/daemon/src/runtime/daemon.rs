//! The daemon as services see it: one handle, cloned freely.

pub(in crate::runtime) mod commits;
pub mod input_homes;
pub mod listing;
pub mod locate;
pub mod network_file;
mod open_round;
pub mod page;
pub mod place;
mod planning;
pub(in crate::runtime) mod plans;
mod quotas;
pub mod racks;
mod reload;
mod replace;
mod rounds;
pub(in crate::runtime) mod search;
pub mod shuffle_progress;
pub mod training;
mod watching;
mod worth;

use super::answered_requests::AnsweredRequests;
use super::background::BackgroundQueue;
use super::clock::Clock;
use super::command::{Command, EngineHandle, EngineReport, ListCall, gone};
use super::engine_exit::EngineExitNotifier;
use super::engine_thread::{EngineThread, Shared};
use super::follow_event::FollowEvent;
use super::metric_handles::MetricHandles;
use super::options::{Options, ReloadHook, Settings};
use super::outbox::{Outbox, Outboxes};
use super::pool::{JobContext, Pool};
use super::records::Recorder;
use super::registries::FeedRegistries;
use super::servers::Servers;
use super::undelivered::UndeliveredAnswers;
use super::unpacking::{UnpackLimiter, UnpackPermit};
use super::watchers::Watchers;
use super::{Ready, StuckPlacers};
use crate::notice::Notice;
use crate::store::{GroupCommit, GroupCommitHandle, GroupOptions, Journal, OpenOptions, ShutdownError, StoreError};
use crate::telemetry::logs::LogLevel;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::spans::{Spans, SpansError};
use arc_swap::ArcSwap;
use hintd_engine::dispatching::is_pushed;
use hintd_engine::plans::homes::DataHomes;
use hintd_engine::records::{Kept, Record};
use hintd_engine::{AttemptHeld, MoveNote, Proof, RoundOutcome, TaskEvent};
use hintd_engine::{
    Engine, Explained, Generation, LearnedRun, PackedExplained, RecoverError, RecoveredCounts, Refusal, Released,
};
use hintd_model::units::{AttemptId, DecisionId, LeaseId, Micros, Timestamp};
use input_homes::ToldHomes;
use listing::Listing;
use locate::Locator;
use network_file::FollowedNetwork;
use page::PageState;
use plans::REPLICA_QUESTIONS_MAX;
use quotas::Quotas;
use racks::HdfsRacks;
use reload::LastReload;
use rounds::Rounds;
use shuffle_progress::ShuffleProgress;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use training::Training;

/// The running daemon.
#[derive(Clone)]
pub struct Daemon(pub(super) Arc<Inner>);

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon").field("instance", &self.0.instance).finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    pub(super) engine_handle: EngineHandle,
    pub(super) shared: Arc<Shared>,
    pub(super) pool: Pool,
    /// Requests that gather to be decided together.
    pub(super) rounds: Rounds,
    pub(super) recorder: Recorder,
    /// Answers that nobody has.
    pub(super) undelivered: UndeliveredAnswers,
    pub(super) settings: ArcSwap<Settings>,
    pub(super) clock: Clock,
    instance: Arc<str>,
    /// The next decision's id: drawn when a request comes in, so that every line it logs can carry it.
    decisions: AtomicU64,
    /// The first one of this life.
    first_decision: DecisionId,
    stopping: CancellationToken,
    engine_ended: CancellationToken,
    pub(super) reload: Option<ReloadHook>,
    /// Reloads run one after another.
    pub(super) reloading: Mutex<LastReload>,
    /// Why what is on disk is refused while what was read before is in force.
    pub(super) config_refused: std::sync::Mutex<Option<Arc<str>>>,
    /// Keys that are otherwise on disk and need a restart.
    pub(super) restart_keys: ArcSwap<Vec<String>>,
    journal: GroupCommitHandle,
    journal_file: PathBuf,
    /// Of requests, for whoever collects them.
    spans: Spans,
    /// Places of streams.
    streams: Arc<Semaphore>,
    streams_max: usize,
    /// Turns of those who unpack kept answers.
    pub(super) repeats: UnpackLimiter,
    explanations: UnpackLimiter,
    /// What each application may take of requests and lines of log.
    pub(super) quotas: Quotas,
    /// Whether a policy is being prepared.
    pub(super) preparing: AtomicBool,
    /// What policies learnt.
    pub(super) training: Training,
    /// Who says where requests' input lies, if somebody is asked.
    pub(super) locator: OnceLock<Arc<dyn Locator>>,
    /// Who says which attempts there are, if somebody is asked.
    pub(super) listing: OnceLock<Arc<dyn Listing>>,
    /// The operator's page.
    pub(super) page: PageState,
    /// The process's log level, where its logs are the daemon's.
    pub(super) log_level: OnceLock<Arc<LogLevel>>,
    /// Shuffles that ApplicationMasters are to be asked about.
    pub(super) shuffle_progress: ShuffleProgress,
    /// What was made of the network file.
    pub(super) network: std::sync::Mutex<FollowedNetwork>,
    /// Racks of DataNodes, as HDFS has them.
    pub(super) hdfs_racks: Arc<HdfsRacks>,
    /// Where data of recurring jobs goes. Whoever asks for replicas takes it, and for a look whoever asks for homes of input.
    pub(super) data_homes: std::sync::Mutex<DataHomes>,
    /// Places of questions for replicas.
    pub(super) replica_places: Arc<Semaphore>,
    /// What an operator should know, by matter.
    notices: std::sync::Mutex<BTreeMap<&'static str, Vec<Notice>>>,
}

/// The parts that only a shutdown needs.
#[derive(Debug)]
pub struct Ending {
    engine: JoinHandle<()>,
    daemon: Daemon,
    /// What the journal held.
    pub recovered: RecoveredCounts,
}

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal holds what the engine can't read.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The system gives no threads.
    #[error("the placer's threads can't be started")]
    Pool(#[source] std::io::Error),
    /// The system gives no thread.
    #[error("the thread that keeps records can't be started")]
    Records(#[source] std::io::Error),
    /// Spans can't be sent.
    #[error(transparent)]
    Spans(#[from] SpansError),
    /// The system gives no thread.
    #[error("the engine's thread can't be started")]
    Thread(#[source] std::io::Error),
    /// An address can't be taken.
    #[error("{what} can't listen on {address}")]
    Bind {
        /// grpc or admin.
        what: &'static str,
        /// The address or path.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An address that others can reach, unencrypted.
    #[error(
        "{0} can be reached from other machines, unencrypted: take a loopback address or set listen.insecure_bind = true"
    )]
    Insecure(SocketAddr),
    /// Another daemon serves this admin socket.
    #[error("another daemon answers on {0}")]
    AlreadyRunning(PathBuf),
}

fn shared(options: &Options, engine: &Engine, metrics: MetricHandles, background: BackgroundQueue) -> Shared {
    let known = AnsweredRequests::default();
    let registries = FeedRegistries::new(options.feeds.clone());
    registries.observe_chains(engine.owns_chains(), &engine.generation());
    engine.requests_answered().for_each(|id| known.note(id));
    Shared {
        generation: ArcSwap::new(engine.generation()),
        registries: Arc::new(registries),
        servers: Servers::default(),
        outboxes: Outboxes::default(),
        follow: ArcSwap::from_pointee(options.settings.follow.clone()),
        watchers: Watchers::default(),
        told_homes: ToldHomes::default(),
        metrics,
        known,
        ready: watch::Sender::new(Ready { store: true, engine: true, placers: true, stopping: false, nodes: false }),
        urgent: AtomicBool::new(false),
        background,
    }
}

/// Memory of the journal's reader is left at its default; recovery after a failure is tried each second.
fn group_options(options: &Options, metrics: &MetricHandles) -> GroupOptions {
    GroupOptions {
        max_wait: options.store.commit_wait,
        max_batch: options.store.commit_batch,
        observer: Some(metrics.commit_observer()),
        ..GroupOptions::default()
    }
}

fn log_recovered(engine: &mut Engine, recovered: &RecoveredCounts, now: Timestamp) {
    let RecoveredCounts { leases, expired, answers, plans, .. } = *recovered;
    tracing::info!(leases, expired, answers, plans, "recovered from the journal");
    if let Some(plan) = engine.plan_in_force(now).map(|view| view.kept) {
        let left_s = plan.plan.until.since(now).as_secs_f64();
        tracing::info!(plan = %plan.name, expired = plan.has_expired(now), left_s, "a plan is in force");
    }
}

impl Daemon {
    /// Opens the journal, recovers what was promised, and starts the engine's thread and the pool.
    /// Nothing listens yet. To be called within a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(options: &Options, metrics: Metrics) -> Result<(Self, Ending), StartError> {
        let mut settings = options.settings.clone();
        let training = Training::restore(&mut settings, &options.store.path);
        settings.prepare_policies();
        let clock = Clock::start();
        let instance: Arc<str> = format!("{:016x}", rand::random::<u64>()).into();
        let spans = Spans::start(options.tracing.as_ref(), &metrics, &instance)?;
        let (journal, found) = Journal::open(&options.store.path, OpenOptions::default())?;
        if found.created {
            tracing::warn!(path = %options.store.path.display(), "the journal was not there and was made");
        }
        let engine = options.settings.engine.clone();
        let (mut engine, recovered) = Engine::new(engine, options.rules.clone(), found.rows, clock.now())?;
        log_recovered(&mut engine, &recovered, clock.now());
        let decisions = AtomicU64::new(engine.next_decision().number);
        metrics.journal_file(&options.store.path);
        let metrics = MetricHandles::new(metrics);
        let journal = GroupCommit::start(journal, group_options(options, &metrics))?;
        let pool = Pool::start(&options.pool).map_err(StartError::Pool)?;
        let recorder = Recorder::start(options.settings.engine.records.clone()).map_err(StartError::Records)?;
        let (engine_handle, commands) = EngineHandle::new();
        let (background, waiting) = BackgroundQueue::queue();
        let shared = Arc::new(shared(options, &engine, metrics, background));
        let mine = (&engine_handle, commands);
        let engine_thread =
            EngineThread::new(engine, clock, Arc::clone(&shared), mine, options.publish_every, pool.clone());
        let own = journal.clone();
        let thread = std::thread::Builder::new().name("engine".to_owned());
        let engine_ended = CancellationToken::new();
        let end = EngineExitNotifier { shared: Arc::clone(&shared), ended: engine_ended.clone() };
        let body = move || {
            let _end = end; // dropped after the engine thread and all that waits for it, be it by a panic
            engine_thread.run(own);
        };
        let engine = thread.spawn(body).map_err(StartError::Thread)?;
        let daemon = Self(Arc::new(Inner {
            engine_handle,
            shared,
            pool,
            rounds: Rounds::default(),
            recorder,
            undelivered: UndeliveredAnswers::default(),
            settings: ArcSwap::from_pointee(settings),
            clock,
            instance,
            first_decision: DecisionId::of(decisions.load(Ordering::Relaxed)),
            decisions,
            stopping: CancellationToken::new(),
            engine_ended,
            reload: options.reload.clone(),
            reloading: Mutex::default(),
            config_refused: std::sync::Mutex::default(),
            restart_keys: ArcSwap::default(),
            journal,
            journal_file: options.store.path.clone(),
            spans,
            streams: Arc::new(Semaphore::new(options.listen.streams.min(Semaphore::MAX_PERMITS))),
            streams_max: options.listen.streams,
            repeats: UnpackLimiter::new(),
            explanations: UnpackLimiter::new(),
            quotas: Quotas::default(),
            preparing: AtomicBool::new(false),
            training,
            locator: OnceLock::new(),
            listing: OnceLock::new(),
            page: PageState::new(options.page),
            log_level: OnceLock::new(),
            shuffle_progress: ShuffleProgress::default(),
            network: std::sync::Mutex::default(),
            hdfs_racks: Arc::default(),
            data_homes: std::sync::Mutex::default(),
            replica_places: Arc::new(Semaphore::new(REPLICA_QUESTIONS_MAX)),
            notices: std::sync::Mutex::default(),
        }));
        daemon.follow_network();
        tokio::spawn(replace::run(daemon.clone(), waiting));
        tokio::spawn(rounds::run(daemon.clone()));
        tokio::spawn(planning::run(daemon.clone()));
        tokio::spawn(training::run(daemon.clone()));
        tokio::spawn(network_file::run(daemon.clone()));
        Ok((daemon.clone(), Ending { engine, daemon, recovered }))
    }

    /// Draws the id of a decision to be made, which nobody can guess.
    #[must_use]
    pub fn next_decision(&self) -> DecisionId {
        let number = self.0.decisions.fetch_add(1, Ordering::Relaxed);
        DecisionId { number, salt: rand::random_range(1..=u64::MAX) }
    }

    /// What requests load: one consistent picture.
    #[must_use]
    pub fn generation(&self) -> Arc<Generation> {
        self.0.shared.generation.load_full()
    }

    /// The journal's file, as the configuration of the start names it.
    #[must_use]
    pub fn journal_file(&self) -> &Path {
        &self.0.journal_file
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.0.settings.load_full()
    }

    /// Where feeds leave their facts.
    #[must_use]
    pub fn registries(&self) -> &Arc<FeedRegistries> {
        &self.0.shared.registries
    }

    /// This life of the daemon; another after every start.
    #[must_use]
    pub fn instance(&self) -> &Arc<str> {
        &self.0.instance
    }

    /// The daemon's clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.0.clock
    }

    /// What is measured and counted.
    #[must_use]
    pub fn metrics(&self) -> &MetricHandles {
        &self.0.shared.metrics
    }

    /// Gives requests their spans.
    #[must_use]
    pub fn spans(&self) -> &Spans {
        &self.0.spans
    }

    /// Whether requests are taken, and its changes.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<Ready> {
        self.0.shared.ready.subscribe()
    }

    /// Placer threads whose search goes on past its deadline.
    #[must_use]
    pub fn stuck_placers(&self) -> StuckPlacers {
        self.0.pool.stuck()
    }

    /// Cancelled when the daemon shuts down: every stream ends by it.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Cancelled when the engine's thread has ended. Where nobody stopped the daemon it can only be started anew.
    #[must_use]
    pub fn engine_ended(&self) -> &CancellationToken {
        &self.0.engine_ended
    }

    /// Runs something on the engine's thread.
    #[cfg(test)]
    pub(crate) fn on_engine(&self, run: impl FnOnce() + Send + 'static) {
        self.0.engine_handle.tell(Command::Run(Box::new(run)));
    }

    /// A decision and what became of its leases; nobody else's is unpacked as long as the permit is held.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a decision that is not remembered.
    pub async fn explain(&self, decision: DecisionId) -> Result<(Explained, UnpackPermit), Refusal> {
        let permit = self.0.explanations.permit().await?;
        let found = self.kept(decision).await?;
        permit.unpack(move || found.unpack()).await
    }

    /// Moves that an attempt was told of lately.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the engine has ended.
    pub async fn moves_told(&self, attempt: AttemptId) -> Result<Vec<MoveNote>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::MovesTold { attempt, reply }).await
    }

    /// The permit to explain something that needs no unpacking.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where too many wait for it.
    pub async fn explanation_permit(&self) -> Result<UnpackPermit, Refusal> {
        self.0.explanations.permit().await
    }

    pub(super) async fn kept(&self, decision: DecisionId) -> Result<PackedExplained, Refusal> {
        let found = self.0.engine_handle.ask(|reply| Command::Explain { decision, reply }).await?;
        found.ok_or_else(|| Refusal::Unknown { what: "decision", name: decision.to_string(), nearest: None })
    }

    /// What a decision, or a refusal, was made of.
    ///
    /// # Errors
    /// [`Refusal::NotRecorded`], with how far back records go.
    pub async fn record(&self, decision: DecisionId) -> Result<Arc<Record>, Refusal> {
        let found = self.0.recorder.get(decision, self.0.clock.now()).await;
        found.map_err(|refusal| match refusal {
            Refusal::NotRecorded { decision, kept } => {
                Refusal::NotRecorded { decision, kept: self.elsewhen(decision).unwrap_or(kept) }
            }
            other => other,
        })
    }

    /// Why an id can't be of a decision of this life of the daemon; `None`: it can. Ids have the start above a counter.
    fn elsewhen(&self, decision: DecisionId) -> Option<String> {
        let before = decision.number >> 32 < self.0.first_decision.number >> 32;
        match self.had(decision) {
            _ if before => {
                Some("its id is of before the daemon's last start, and records end with a process".to_owned())
            }
            false => Some("no decision has had this id yet".to_owned()),
            true => None,
        }
    }

    /// Whether this life of the daemon, or one before it, may have made a decision of this id.
    pub(crate) fn had(&self, decision: DecisionId) -> bool {
        let pushed = is_pushed(decision) && decision.number >> 32 == self.0.first_decision.number >> 32;
        pushed || decision.number < self.0.decisions.load(Ordering::Relaxed)
    }

    /// How far records go, and decisions that came faster than they could be recorded.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn records_kept(&self) -> Result<(Kept, u64), Refusal> {
        Ok((self.0.recorder.kept().await?, self.0.recorder.left_out()))
    }

    /// Gives leases back; none named: all of the attempt.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`]; [`Refusal::Unavailable`].
    pub async fn release(&self, attempt: AttemptId, proof: Proof, leases: Vec<LeaseId>) -> Result<Released, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Release { attempt, proof, leases, reply }).await?
    }

    /// Ends an attempt for an operator: its leases are given back.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for an attempt that is not known; [`Refusal::Unavailable`].
    pub async fn end_attempt(&self, attempt: AttemptId) -> Result<(), Refusal> {
        let known = self.0.engine_handle.ask(|reply| Command::EndAttempt { attempt, reply }).await??;
        let unknown = || Refusal::Unknown { what: "application attempt", name: attempt.to_string(), nearest: None };
        known.then_some(()).ok_or_else(unknown)
    }

    /// Attempts that asked and are not over, ascending, and what each holds.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn attempts_held(&self) -> Result<Vec<AttemptHeld>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::List(ListCall::Attempts(reply))).await
    }

    /// The `most` of these that hold most leases, and how many there are in all.
    ///
    /// # Errors
    /// As [`Self::attempts_held`].
    pub async fn attempts_that_hold_most(&self, most: usize) -> Result<(Vec<AttemptHeld>, usize), Refusal> {
        self.0.engine_handle.ask(|reply| Command::List(ListCall::BusiestAttempts { most, reply })).await
    }

    /// Takes a task event in; one that names an unknown host, or whose teller does not show that it may tell of the
    /// attempt, is counted and dropped. Waits while the engine is behind.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn event(&self, event: TaskEvent, proof: Proof) -> Result<(), Refusal> {
        self.0.engine_handle.pass(Command::Event(event, proof)).await
    }

    /// Takes in a finished run of a recurring job, as a history server tells it. Waits while the engine is behind.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn learnt(&self, key: Arc<str>, run: LearnedRun) -> Result<(), Refusal> {
        self.0.engine_handle.pass(Command::Learned { key, run }).await
    }

    /// The outbox of an attempt, for who shows that it is the attempt's.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`]; [`Refusal::Unknown`] for an attempt that never asked.
    pub async fn follow(&self, attempt: AttemptId, proof: Proof) -> Result<Arc<Outbox<FollowEvent>>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Follow { attempt, proof, reply }).await?
    }

    /// Whether somebody follows the attempt right now.
    pub(super) fn follows(&self, attempt: AttemptId) -> bool {
        self.0.shared.outboxes.is_followed(attempt)
    }

    /// Runs a search that no request waits for, on the pool.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where the pool has no place for it.
    pub(super) async fn search<T: Send + 'static>(
        &self,
        deadline: Instant,
        job: impl FnOnce(JobContext) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.0.pool.run(deadline, job).await
    }

    /// Hands the engine what a round of rebalancing came to.
    pub(super) fn rebalanced(&self, round: u64, found: RoundOutcome) {
        self.0.engine_handle.tell(Command::Rebalanced { round, found });
    }

    /// Puts a message on an attempt's Follow stream, unless the attempt is over.
    pub(super) fn tell(&self, attempt: AttemptId, message: FollowEvent) {
        let shared = &self.0.shared;
        shared.outboxes.push_if_open(attempt, message, &shared.follow.load(), self.0.clock.now());
    }

    /// Sizes of the engine's tables, and names that no node claims.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn engine_report(&self) -> Result<EngineReport, Refusal> {
        self.0.engine_handle.ask(Command::EngineReport).await
    }

    /// Attempts that asked for hints and are not known to be over, ascending.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn attempts(&self) -> Result<Vec<AttemptId>, Refusal> {
        self.0.engine_handle.ask(Command::Attempts).await
    }

    /// Leaves what an operator should know of one matter in the place of what was left of it before; nothing: it is in
    /// order.
    pub fn notice(&self, matter: &'static str, notices: Vec<Notice>) {
        let mut known = self.0.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.is_empty() {
            known.remove(matter);
        } else {
            known.insert(matter, notices);
        }
    }

    /// What an operator should know, matter by matter.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let known = self.0.notices.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().flatten().cloned().collect()
    }

    /// Servers that are asked from here, and how each stands.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.0.shared.servers
    }

    /// When each node was last heard, by its row; rows of nodes named since are missing.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn last_heard(&self) -> Result<Vec<Option<Timestamp>>, Refusal> {
        self.0.engine_handle.ask(Command::Heard).await
    }

    /// A place for a stream, held as long as it lasts.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] where all are taken.
    pub fn stream_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.0.streams).try_acquire_owned().map_err(|_| {
            self.metrics().stream_refused(self.0.streams_max);
            let message = format!("{} streams are open, as many as limits.streams allows", self.0.streams_max);
            Refusal::Unavailable { message, retry_after: Micros::from_secs(1) }
        })
    }

    /// Refuses who asks while requests are not taken.
    pub(super) fn check_ready(&self) -> Result<(), Refusal> {
        match self.0.shared.ready.borrow().why_refused() {
            None => Ok(()),
            Some(_) if self.0.stopping.is_cancelled() => Err(gone()),
            Some(why) => Err(Refusal::Unavailable { message: why.to_owned(), retry_after: Micros::from_secs(1) }),
        }
    }

    /// First step of a shutdown: requests are refused and health says so; streams go on.
    pub fn refuse_new(&self) {
        self.0.shared.ready.send_modify(|ready| ready.stopping = true);
    }

    /// Second step: every stream ends.
    pub fn end_streams(&self) {
        self.0.stopping.cancel();
    }
}

impl Ending {
    /// Last step of a shutdown: what is in flight ends, the journal is flushed. Blocks, at most `limit`.
    ///
    /// # Errors
    /// [`ShutdownError`] where the disk took longer.
    pub fn finish(self, limit: Duration) -> Result<(), ShutdownError> {
        let deadline = Instant::now() + limit;
        self.daemon.refuse_new();
        self.daemon.end_streams();
        self.daemon.0.engine_handle.tell(Command::Stop);
        while !self.engine.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        self.daemon.0.journal.shutdown(left)
    }
}
