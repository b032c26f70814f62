//! How often each job was passed over, without touching every job that is.
//!
//! A job's count is a sum of what all jobs, its user's jobs and it alone were passed over. An offer that nobody can
//! take adds one to the first; one that a user takes adds to each user before it, and to that user's jobs before the
//! one that took it.

use crate::pool::{Bits, JobIdx, Pool, Task, UserIdx};
use hintd_model::units::NodeIdx;
use serde::{Deserialize, Serialize};

/// Counts of the jobs with waiting maps; a count rests while nothing of its job waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skips {
    /// From so many skips on, a job may launch something that is not local.
    ripe_from: i64,
    all: i64,
    users: Vec<OfUser>,
    /// Of a job that waits: the sum for all and for its user less its count; of one that rests, the count.
    jobs: Vec<i64>,
    waits: Bits,
    /// Users with a job that is ripe.
    ripe: Bits,
    /// No user grows ripe before `all` is this, unless its own sum grows.
    soonest: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct OfUser {
    skips: i64,
    /// None of the jobs is ripe before the user's sum is this.
    ripe_at: i64,
}

impl Skips {
    /// Nobody waits. A job is *ripe* after `ripe_from` skips.
    #[must_use]
    pub fn new(ripe_from: u32) -> Self {
        Self {
            ripe_from: i64::from(ripe_from),
            all: 0,
            users: Vec::new(),
            jobs: Vec::new(),
            waits: Bits::default(),
            ripe: Bits::default(),
            soonest: i64::MAX,
        }
    }

    /// How often the job was passed over.
    #[must_use]
    pub fn of(&self, user: UserIdx, job: JobIdx) -> u64 {
        let kept = self.jobs.get(job.at()).copied().unwrap_or(0);
        u64::try_from(if self.waits.has(job.at()) { self.sum(user) - kept } else { kept }).unwrap_or(0)
    }

    /// After an event of the job: it may have begun or ended to wait.
    pub fn follow(&mut self, pool: &Pool, job: JobIdx) {
        let (user, waits) = (pool.user(job), pool.waits_for_maps(job));
        if waits == self.waits.has(job.at()) {
            return;
        }
        if job.at() >= self.jobs.len() {
            self.jobs.resize(job.at() + 1, 0);
        }
        if user.at() >= self.users.len() {
            self.users.resize(user.at() + 1, OfUser { skips: 0, ripe_at: i64::MAX });
        }
        self.jobs[job.at()] = self.sum(user) - self.jobs[job.at()];
        self.waits.set(job.at(), waits);
        if waits {
            self.ripens(pool, user, job);
        } else if self.ripe.has(user.at()) {
            self.look(pool, user);
        }
    }

    /// The job is gone.
    pub fn forget(&mut self, pool: &Pool, user: UserIdx, job: JobIdx) {
        self.waits.set(job.at(), false);
        if let Some(kept) = self.jobs.get_mut(job.at()) {
            *kept = 0;
        }
        if self.ripe.has(user.at()) {
            self.look(pool, user);
        }
    }

    /// The job's count begins anew.
    pub fn reset(&mut self, pool: &Pool, job: JobIdx) {
        let user = pool.user(job);
        if job.at() < self.jobs.len() {
            self.jobs[job.at()] = if self.waits.has(job.at()) { self.sum(user) } else { 0 };
        }
        if self.ripe.has(user.at()) {
            self.look(pool, user);
        }
    }

    /// Asks jobs with waiting maps, users and jobs in their order, what they launch after so many skips, until one
    /// does, or until the user of `reduce` is reached; those before are passed over. `near` has the users `64 * at ..`
    /// that may launch before they are ripe.
    pub fn ask(
        &mut self,
        pool: &Pool,
        near: impl Fn(usize) -> u64,
        launch: impl Fn(JobIdx, u64) -> Option<Task>,
        reduce: Option<Task>,
    ) -> Option<Task> {
        let with_maps = pool.users_with_maps();
        let may = |skips: &Self, at| with_maps.word(at) & (near(at) | skips.ripe.word(at));
        if reduce.is_none() && (0..with_maps.words()).all(|at| may(self, at) == 0) {
            self.all += 1;
            if self.all >= self.soonest {
                self.look_at_all(pool);
            }
            return None;
        }
        for user in pool.with_maps_before(reduce) {
            if may(self, user.at() / 64) >> (user.at() % 64) & 1 == 1 {
                let jobs = || pool.map_jobs(user);
                if let Some((before, task)) =
                    jobs().enumerate().find_map(|(at, job)| Some((at, launch(job, self.of(user, job))?)))
                {
                    for job in jobs().take(before) {
                        self.jobs[job.at()] -= 1;
                        self.ripens(pool, user, job);
                    }
                    return Some(task);
                }
            }
            self.users[user.at()].skips += 1;
            self.grown(pool, user);
        }
        None
    }

    /// Skips of all and of the user.
    fn sum(&self, user: UserIdx) -> i64 {
        self.all + self.users.get(user.at()).map_or(0, |of| of.skips)
    }

    /// The job's count is new or grew alone.
    fn ripens(&mut self, pool: &Pool, user: UserIdx, job: JobIdx) {
        let of = &mut self.users[user.at()];
        of.ripe_at = of.ripe_at.min(self.jobs[job.at()].saturating_add(self.ripe_from));
        self.grown(pool, user);
    }

    fn grown(&mut self, pool: &Pool, user: UserIdx) {
        if self.ripe.has(user.at()) {
            return;
        }
        let of = self.users[user.at()];
        if self.sum(user) >= of.ripe_at {
            self.look(pool, user);
        } else {
            self.soonest = self.soonest.min(of.ripe_at.saturating_sub(of.skips));
        }
    }

    /// Finds out when the first of the user's jobs grows ripe.
    fn look(&mut self, pool: &Pool, user: UserIdx) {
        let first = pool.map_jobs(user).map(|job| self.jobs[job.at()]).min();
        let of = &mut self.users[user.at()];
        of.ripe_at = first.map_or(i64::MAX, |first| first.saturating_add(self.ripe_from));
        let of = *of;
        let ripe = self.sum(user) >= of.ripe_at;
        self.ripe.set(user.at(), ripe);
        if !ripe {
            self.soonest = self.soonest.min(of.ripe_at.saturating_sub(of.skips));
        }
    }

    fn look_at_all(&mut self, pool: &Pool) {
        self.soonest = i64::MAX;
        for &user in pool.order() {
            if user.at() < self.users.len() && !self.ripe.has(user.at()) {
                self.look(pool, user);
            }
        }
    }
}

/// Users with a map that is local on the node, as [`Skips::ask`] takes them.
pub fn near(pool: &Pool, node: NodeIdx) -> impl Fn(usize) -> u64 + '_ {
    move |at| pool.users_with_local(node, at)
}
