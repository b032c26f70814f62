//! The bounded pool that searches: CPU work never runs on the threads that serve sockets.
//!
//! Under load budgets shrink before requests are refused: each job is told how full the queue was
//! when it began, and scales its steps by that. Full is a queue with no place left, and one whose wait, at the pace of
//! the last jobs, is half of the time that a job has: it is refused at once, not when its time is over. Where the
//! machine or the disk got slower since, who has less time left than a commit takes gives its turn to the next.
//!
//! Plain threads at one queue, first come first served: jobs are far apart, and threads that look for work for a
//! while before they sleep (as work-stealing pools do) cost a fifth of what short placements cost.
//!
//! A job is expected to end by its deadline, as its search looks at a stop probe. One that goes on for `STUCK_AFTER` more
//! counts as stuck: nobody can end it, but readiness and an alert tell.

use super::options::PoolOptions;
use hintd_engine::Refusal;
use hintd_model::units::Micros;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};
use tokio::sync::oneshot;

/// Threads and a bounded queue before them. Clones share both.
#[derive(Debug, Clone)]
pub struct Pool {
    queue: Arc<QueueHandle>,
    load: Arc<Load>,
    newest: Arc<Newest>,
    workers: Arc<[Arc<Worker>]>,
}

type Run = Box<dyn FnOnce() + Send>;

/// What a thread is to run, and when that should be over; `None`: as long after its beginning as [`UNHURRIED`].
struct Job {
    run: Run,
    until: Option<Instant>,
}

/// Beyond its deadline for so long, a job is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);
/// Time of a job that nobody waits for.
const UNHURRIED: Duration = Duration::from_secs(30);

/// Jobs that wait; closed when the last [`Pool`] goes.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// The one job that nobody waits for, while its turn has not come.
#[derive(Default)]
struct Newest(Mutex<Option<Run>>);

impl Newest {
    /// Puts a job in the place of the one that is there, which comes back.
    fn put(&self, job: Run) -> Option<Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(job)
    }

    fn take(&self) -> Option<Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for Newest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Newest").finish_non_exhaustive()
    }
}

/// The pool's end of the queue.
struct QueueHandle(Arc<Queue>);

impl std::fmt::Debug for QueueHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueHandle").finish_non_exhaustive()
    }
}

impl Drop for QueueHandle {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing under this lock can panic half way through a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, until: Option<Instant>, run: Run) {
        self.lock().jobs.push_back(Job { run, until });
        self.arrived.notify_one();
    }

    /// The next job; `None`: there will be none.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work(&self, worker: &Worker) {
        while let Some(Job { run, until }) = self.next() {
            worker.begin(until.unwrap_or_else(|| Instant::now() + UNHURRIED));
            // A policy's bug costs its own request, not the daemon.
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                tracing::error!("a placement panicked; its request is unanswered");
            }
            worker.end();
        }
    }
}

/// A thread of the pool: when what it runs counts as stuck.
#[derive(Debug)]
struct Worker {
    /// What times count from.
    since: Instant,
    /// Microseconds; 0: it runs nothing.
    stuck_from: AtomicU64,
}

impl Worker {
    const fn new(since: Instant) -> Self {
        Self { since, stuck_from: AtomicU64::new(0) }
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.since).as_micros()).unwrap_or(u64::MAX)
    }

    fn begin(&self, until: Instant) {
        // One whose time was over when its turn came is to end at once.
        let stuck_from = self.micros(until.max(Instant::now()) + STUCK_AFTER).max(1);
        self.stuck_from.store(stuck_from, Ordering::Release);
    }

    fn end(&self) {
        self.stuck_from.store(0, Ordering::Release);
    }

    fn is_stuck(&self, now: Instant) -> bool {
        let from = self.stuck_from.load(Ordering::Acquire);
        from != 0 && self.micros(now) >= from
    }
}

#[derive(Debug)]
struct Load {
    /// Jobs waiting or running.
    admitted: AtomicUsize,
    threads: usize,
    queue: usize,
    /// What a job takes.
    pace: MovingAverage,
    /// What comes after a job: the commit and the disk.
    commits: MovingAverage,
}

/// A moving mean of times, of which about the last eight count.
#[derive(Debug, Default)]
struct MovingAverage {
    nanos: AtomicU64,
}

impl MovingAverage {
    fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Two that end together may count as one: it is a mean.
        let mean = self.nanos.load(Ordering::Relaxed);
        let mean = if mean == 0 { took } else { mean - mean / NEWEST + took / NEWEST };
        self.nanos.store(mean, Ordering::Relaxed);
    }
}

/// One time's share in a mean of them.
const NEWEST: u64 = 8;
/// A job is to be through with its search within this part of its time: the rest is for the commit, the disk, and what
/// a mean does not know. With all of it for the queue, 40 % of those who were let in came too late at ten times the
/// capacity.
const FOR_QUEUE: u32 = 2;
/// A wait that is as long can't be told from none: jobs of a few microseconds are no reason to refuse anybody.
const NO_WAIT: Duration = Duration::from_millis(5);

/// Steps are never cut below this share: a search that can't move is worth less than a wait.
const SHARE_MIN: f64 = 1.0 / 16.0;
/// The least that a full queue asks a caller to wait: about what a thread needs for a few placements.
const RETRY_AFTER: Micros = Micros::from_millis(50);

/// A running job's view of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct JobContext {
    /// 0: nobody waited when the job began; 1 and more: the queue was full, or who came last would wait for too much of
    /// the time that the job had.
    pub fill: f64,
    /// What the commit and the disk took lately: to be left of the job's time when it ends.
    pub commits: Duration,
}

impl JobContext {
    /// `steps` as the load allows: all of them up to a half-full queue, then linearly fewer.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // a share of a step count needs no 64 bits and is never negative
    pub fn steps(&self, steps: u64) -> u64 {
        let share = (2.0 * (1.0 - self.fill)).clamp(SHARE_MIN, 1.0);
        ((steps as f64 * share) as u64).max(1)
    }
}

/// A commit on its way: the pool learns how long commits take, also where nobody waited for its end.
pub(super) struct CommitInFlight {
    load: Arc<Load>,
    since: Instant,
    counts: bool,
}

impl CommitInFlight {
    /// It never came to the disk: a conflict, or a refusal, says nothing of how long that takes.
    pub(super) fn forget(mut self) {
        self.counts = false;
    }
}

impl Drop for CommitInFlight {
    fn drop(&mut self) {
        if self.counts {
            self.load.commits.add(self.since.elapsed());
        }
    }
}

/// A round's view of the queue.
pub(super) struct QueueView(Arc<Load>);

impl QueueView {
    /// The surroundings of a request that had so much time.
    pub(super) fn job_context(&self, time: Duration) -> JobContext {
        JobContext { fill: self.0.fill(time), commits: self.0.commits.get() }
    }

    /// Why a request's turn is better given to others; `None`: it has the time.
    pub(super) fn in_vain(&self, left: Duration, waited: Duration) -> Option<Refusal> {
        self.0.in_vain(left, waited)
    }

    /// A request took so long.
    pub(super) fn took(&self, each: Duration) {
        self.0.pace.add(each);
    }
}

/// Threads of the pool that run what does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StuckPlacers {
    /// Whose job is past its deadline for 5 s.
    pub stuck: usize,
    /// All.
    pub threads: usize,
}

impl StuckPlacers {
    /// Whether no thread is left that could place.
    #[must_use]
    pub const fn all(&self) -> bool {
        self.stuck > 0 && self.stuck == self.threads
    }
}

/// A place in the queue, given back whatever becomes of the job.
pub(super) struct PlaceInQueue(Arc<Load>);

impl Drop for PlaceInQueue {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// Where the system gives none.
    pub fn start(options: &PoolOptions) -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let threads = if options.threads == 0 { cores } else { options.threads };
        let load = Arc::new(Load::new(threads, options.queue));
        let since = Instant::now();
        let workers: Arc<[Arc<Worker>]> = (0..threads).map(|_| Arc::new(Worker::new(since))).collect();
        let pool = Self { queue: Arc::new(QueueHandle(Arc::default())), load, newest: Arc::default(), workers };
        for (number, worker) in pool.workers.iter().enumerate() {
            let (queue, worker) = (Arc::clone(&pool.queue.0), Arc::clone(worker));
            thread::Builder::new().name(format!("placer-{number}")).spawn(move || queue.work(&worker))?;
        }
        Ok(pool)
    }

    /// Runs a job that nobody waits for, behind what is queued. It takes no place in the queue: one that was asked for
    /// before it and has not begun is not run at all, and this one has its turn.
    pub(super) fn run_newest(&self, job: impl FnOnce() + Send + 'static) {
        let newest = Arc::clone(&self.newest);
        if newest.put(Box::new(job)).is_some() {
            return; // it has a turn already
        }
        let run = move || {
            if let Some(job) = newest.take() {
                job();
            }
        };
        self.queue.0.push(None, Box::new(run));
    }

    /// Runs `job`, which is worth nothing after `deadline`, on a thread of the pool. A caller that goes away leaves the
    /// job to its end; `job`'s own stop probe is to end it early.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the queue is full, or so slow that the job's turn would come too late, or came so
    /// late that others who wait can do more with it.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        job: impl FnOnce(JobContext) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let queued = Instant::now();
        let time = deadline.saturating_duration_since(queued);
        let place = self.admit(time)?;
        let (answer, wait) = oneshot::channel();
        let run = move || {
            let began = Instant::now();
            let left = deadline.saturating_duration_since(began);
            if let Some(refusal) = place.0.in_vain(left, began - queued) {
                drop(place);
                let _ = answer.send(Err(refusal)); // the caller may be gone
                return;
            }
            let context = JobContext { fill: place.0.fill(time), commits: place.0.commits.get() };
            let found = job(context);
            // One that is too late ends at once, and says nothing of how long jobs take.
            if !left.is_zero() {
                place.0.pace.add(began.elapsed());
            }
            drop(place);
            let _ = answer.send(Ok(found));
        };
        self.queue.0.push(Some(deadline), Box::new(run));
        let unanswered = |_| Refusal::Unavailable {
            message: "the placement ended without an answer".to_owned(),
            retry_after: RETRY_AFTER,
        };
        wait.await.map_err(unanswered)?
    }

    /// What the commit and the disk took lately.
    pub(super) fn commit_time(&self) -> Duration {
        self.load.commits.get()
    }

    /// Is to be dropped when what was found at `since` is answered, or can't be.
    pub(super) fn commits(&self, since: Instant) -> CommitInFlight {
        CommitInFlight { load: Arc::clone(&self.load), since, counts: true }
    }

    /// Runs a job whose requests have their places already, behind what is queued; it should be over by `until`.
    pub(super) fn run_placed(&self, until: Instant, job: impl FnOnce(QueueView) + Send + 'static) {
        let queue = QueueView(Arc::clone(&self.load));
        self.queue.0.push(Some(until), Box::new(move || job(queue)));
    }

    /// A place in the queue for a job that has so much time.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the queue is full, or so slow that the job's turn would come too late.
    pub(super) fn admit(&self, time: Duration) -> Result<PlaceInQueue, Refusal> {
        let load = &self.load;
        let before = load.admitted.fetch_add(1, Ordering::AcqRel);
        let place = PlaceInQueue(Arc::clone(load));
        // With its own time: an answer that comes too late is none.
        let wait = load.wait(before + 1);
        let retry_after = retry_after(wait);
        if before >= load.threads + load.queue {
            let message =
                format!("{} requests are waiting for a placement, as many as placer.queue allows", load.queue);
            return Err(Refusal::Unavailable { message, retry_after });
        }
        if wait >= time / FOR_QUEUE && wait > NO_WAIT {
            let waiting = before.saturating_sub(load.threads);
            let message = format!(
                "{waiting} requests are waiting for a placement, about {} ms with this one: longer than the deadline allows",
                wait.as_millis()
            );
            return Err(Refusal::Unavailable { message, retry_after });
        }
        Ok(place)
    }

    /// Threads whose job goes on past its deadline as if there were none, and threads in all.
    #[must_use]
    pub fn stuck(&self) -> StuckPlacers {
        self.stuck_at(Instant::now())
    }

    fn stuck_at(&self, now: Instant) -> StuckPlacers {
        StuckPlacers {
            stuck: self.workers.iter().filter(|worker| worker.is_stuck(now)).count(),
            threads: self.workers.len(),
        }
    }

    /// Jobs waiting or running.
    #[must_use]
    pub fn admitted(&self) -> usize {
        self.load.admitted.load(Ordering::Acquire)
    }
}

impl Load {
    fn new(threads: usize, queue: usize) -> Self {
        Self {
            admitted: AtomicUsize::new(0),
            threads,
            queue,
            pace: MovingAverage::default(),
            commits: MovingAverage::default(),
        }
    }

    /// How long the threads have to do with so many admitted jobs; none at all while each has a thread.
    fn wait(&self, admitted: usize) -> Duration {
        if admitted <= self.threads {
            return Duration::ZERO;
        }
        let admitted = u32::try_from(admitted).unwrap_or(u32::MAX);
        let threads = u32::try_from(self.threads).unwrap_or(u32::MAX).max(1);
        self.pace.get().saturating_mul(admitted) / threads
    }

    /// Why a job's turn is better given to the next: it waited, others still do, and what it has left is less than a
    /// commit takes. At the end of a queue, or where nobody waits, it may try.
    fn in_vain(&self, left: Duration, waited: Duration) -> Option<Refusal> {
        let admitted = self.admitted.load(Ordering::Acquire);
        let commits = self.commits.get();
        if left >= commits || waited <= NO_WAIT || admitted <= self.threads {
            return None;
        }
        let message = format!(
            "{} ms are left after {} ms in the queue, and a commit takes {} ms: others wait",
            left.as_millis(),
            waited.as_millis(),
            commits.as_millis()
        );
        Some(Refusal::Unavailable { message, retry_after: retry_after(self.wait(admitted)) })
    }

    /// How full it is for a job that had so much time.
    #[allow(clippy::cast_precision_loss)] // queues are far below 2^52
    fn fill(&self, time: Duration) -> f64 {
        let admitted = self.admitted.load(Ordering::Acquire);
        let waiting = admitted.saturating_sub(self.threads);
        if waiting == 0 {
            return 0.0;
        }
        let places = if self.queue == 0 { 0.0 } else { waiting as f64 / self.queue as f64 };
        let wait = self.wait(admitted);
        let most = (time / FOR_QUEUE).as_secs_f64().max(1e-6);
        let patience = if wait > NO_WAIT { wait.as_secs_f64() / most } else { 0.0 };
        places.max(patience)
    }
}

/// When to come again where so much waits.
fn retry_after(wait: Duration) -> Micros {
    RETRY_AFTER.max(Micros(u64::try_from(wait.as_micros() / 2).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests;
