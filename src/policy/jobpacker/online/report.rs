//! How runs stand to the plan, for whoever asks.

use super::book::{Book, at};
use super::state::FollowState;
use crate::policy::plan::{Deviation, PlanCounts, PlanStand, Stage};
use crate::policy::pool::JobIdx;
use crate::units::{AttemptId, Bytes, Micros, Timestamp};

impl FollowState {
    /// How the attempt stands to the plan in force.
    pub(in crate::policy::jobpacker) fn stands(&self, attempt: AttemptId) -> Option<PlanStand> {
        let book = self.book.as_ref()?;
        let job = self.pool.find(attempt)?;
        let row = self.jobs.get(job.at())?.row;
        let deviations = match (row, self.key(attempt)) {
            (Some(row), _) => self.deviations(book, row, job),
            (None, Some(key)) => vec![book.why_not(key)],
            (None, None) => vec![Deviation::NoKey],
        };
        Some(PlanStand { place: row, deviations })
    }

    /// When the stage is expected to end, as late as the run came late.
    pub(in crate::policy::jobpacker) fn planned_until(&self, attempt: AttemptId, stage: Stage) -> Option<Timestamp> {
        let job = self.pool.find(attempt).filter(|&job| self.planned(job, stage))?;
        let row = self.jobs[job.at()].row?;
        let planned = &self.book.as_ref()?.plan.jobs[row as usize];
        Some(planned.stage_end(stage)?.plus(self.jobs[job.at()].came.since(planned.arrival)))
    }

    /// How well the plan in force is followed.
    pub(in crate::policy::jobpacker) fn plan_counts(&self, now: Timestamp) -> Option<PlanCounts> {
        let book = self.book.as_ref()?;
        let mut counts = PlanCounts { unplanned: self.standing().unplanned, ..PlanCounts::default() };
        counts.released = self.standing().released;
        for (at, row) in (0_u32..).zip(&book.rows) {
            let passed = now.since(book.plan.jobs[at as usize].arrival) > self.manner.late;
            match row.taken {
                true => counts.followed += 1,
                false if passed => counts.missed += 1,
                false => counts.expected += 1,
            }
            let run = row.run.filter(|&run| !self.deviations(book, at, run).is_empty());
            counts.deviating += u32::from(run.is_some());
        }
        Some(counts)
    }

    fn deviations(&self, book: &Book, row: u32, job: JobIdx) -> Vec<Deviation> {
        let (planned, stages) = (&book.plan.jobs[row as usize], &book.rows[row as usize].stages);
        let came = self.jobs[job.at()].came;
        let away = came.since(planned.arrival).max(planned.arrival.since(came));
        let of = |stage: Stage, odd: Deviation, gone: Deviation| {
            let stage = &stages[at(stage)];
            [(stage.is_odd(), odd), (stage.has_lost_racks(), gone)]
        };
        let mut found = vec![(away > Micros::from_secs(Deviation::LATE_S), Deviation::OffTime)];
        found.extend(of(Stage::Map, Deviation::MapCount, Deviation::MapRackGone));
        found.extend(of(Stage::Reduce, Deviation::ReduceCount, Deviation::ReduceRackGone));
        // Until a request or an ended map tells, the pool takes a job to shuffle what it reads.
        let shuffle = self.pool.ratio(job).map_or(planned.shuffle, |_| self.pool.shuffle(job));
        let apart = |less: Bytes, more: Bytes| less.0.saturating_mul(2) < more.0;
        found.push((apart(shuffle, planned.shuffle) || apart(planned.shuffle, shuffle), Deviation::ShuffleSize));
        let mut found: Vec<Deviation> = found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        found.sort_unstable();
        found
    }
}
