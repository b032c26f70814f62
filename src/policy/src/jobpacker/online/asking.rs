//! The policy's side of runs that are answered at once, and wait for nothing here: they take their places in the plan as all others do.
//!
//! Unchanged applications are such: their ResourceManager asks for them, and nothing can be pushed to them.

use super::active_plan::PlaceClaimant;
use super::state::{Asking, FollowState};
use crate::dispatch::View;
use crate::plan::Stage;
use crate::pool::JobIdx;
use hintd_model::units::{AttemptId, Timestamp};

impl FollowState {
    /// A request is answered at once. Of an attempt that has waited here this is no news.
    pub(super) fn asks(&mut self, attempt: AttemptId, came: Timestamp, tasks: [u32; 2], view: &View<'_>) {
        if self.pool.find(attempt).is_some() {
            return;
        }
        self.look(view);
        let new = !self.asking.contains_key(&attempt);
        let asking = self.asking.entry(attempt).or_insert(Asking { row: None, came, last: view.now, tasks: [0; 2] });
        asking.last = view.now;
        for (sum, more) in asking.tasks.iter_mut().zip(tasks) {
            *sum = sum.saturating_add(more);
        }
        if new { self.claim_place(attempt, view.now) } else { self.tell_asked(attempt) }
    }

    /// The run takes its place in the plan, where there is one for it.
    pub(super) fn claim_place(&mut self, attempt: AttemptId, now: Timestamp) {
        let coming = self.asking.get(&attempt).map(|asking| self.coming(asking.came, now));
        let key = self.key(attempt).cloned();
        let asking = self.asking.get_mut(&attempt).filter(|asking| asking.row.is_none());
        let (Some(key), Some(asking), Some(book), Some(coming)) = (key, asking, &mut self.book, coming) else { return };
        asking.row = book.claim_place((attempt, &key), &coming, PlaceClaimant::Asks, &mut self.stats);
        self.tell_asked(attempt);
    }

    /// How many tasks the run has, as far as it asked: until it asks for a stage as many as planned.
    fn tell_asked(&mut self, attempt: AttemptId) {
        let (Some(asking), Some(book)) = (self.asking.get(&attempt), &mut self.book) else { return };
        let Some(row) = asking.row else { return };
        let planned = Stage::BOTH.map(|stage| book.plan.jobs[row as usize].stage(stage).tasks);
        let told = |at: usize| if asking.tasks[at] == 0 { planned[at] } else { asking.tasks[at] };
        book.told(row, [told(0), told(1)]);
    }

    /// The attempt of the job asked before it began to wait: it goes on in its place. Gives whether it did.
    pub(super) fn asked_before(&mut self, job: JobIdx) -> bool {
        let Some(asked) = self.asking.remove(&self.pool.attempt(job)) else { return false };
        (self.jobs[job.at()].came, self.jobs[job.at()].row) = (asked.came, asked.row);
        if let (Some(row), Some(book)) = (asked.row, &mut self.book) {
            book.take(row, self.pool.attempt(job), PlaceClaimant::Waits(job));
        }
        true
    }

    /// The application is over. Its place stays taken.
    pub(super) fn asks_no_more(&mut self, attempt: AttemptId) {
        let asked = self.asking.remove(&attempt);
        if let (Some(row), Some(book)) = (asked.and_then(|asked| asked.row), &mut self.book) {
            book.gone(row, |place| place.taken == Some(attempt));
        }
    }
}
