//! How runs stand to the plan, for whoever asks.

use super::active_plan::{ActivePlan, Row, at};
use super::state::Asking;
use super::state::FollowState;
use crate::dispatch::PlanReservation;
use crate::plan::{Deviation, JobProgress, JobState, PlanCounts, RunPlanStatus, Stage, StageProgress};
use crate::pool::JobIdx;
use hintd_model::units::{AttemptId, Bytes, Micros, Timestamp};

impl FollowState {
    /// How the attempt stands to the plan in force.
    pub(in crate::jobpacker) fn plan_status(&self, attempt: AttemptId) -> Option<RunPlanStatus> {
        let book = self.book.as_ref()?;
        let run = self.run_of(attempt)?;
        let deviations = match (run.row, self.key(attempt)) {
            (Some(row), _) => deviations(book, row, &run),
            (None, Some(key)) => vec![book.why_not(key)],
            (None, None) => vec![Deviation::NoKey],
        };
        Some(RunPlanStatus { place: run.row, deviations })
    }

    /// When the stage of a run that is here is expected to end.
    pub(in crate::jobpacker) fn planned_until(&self, attempt: AttemptId, stage: Stage) -> Option<Timestamp> {
        until(self.book.as_ref()?, &self.run_of(attempt)?, stage)
    }

    /// How a run of the key stands, or would stand if it took its place now.
    pub(in crate::jobpacker) fn preview_plan_status(
        &self,
        (attempt, key): (AttemptId, &str),
        came: Timestamp,
        now: Timestamp,
    ) -> Option<PlanReservation> {
        let book = self.book.as_ref()?;
        let known = self.run_of(attempt);
        let seated = known.filter(|run| run.row.is_some() || self.key(attempt).is_some_and(|told| **told == *key));
        let new = || {
            let came = self.run_of(attempt).map_or(came, |run| run.came);
            Run { row: book.place_of((attempt, key), &self.coming(came, now)), came, shuffle: None }
        };
        let run = seated.unwrap_or_else(new);
        let deviations = run.row.map_or_else(|| vec![book.why_not(key)], |row| deviations(book, row, &run));
        let until = Stage::BOTH.map(|stage| until(book, &run, stage));
        Some(PlanReservation { stand: RunPlanStatus { place: run.row, deviations }, until })
    }

    /// How well the plan in force is followed.
    pub(in crate::jobpacker) fn plan_counts(&self, now: Timestamp) -> Option<PlanCounts> {
        let book = self.book.as_ref()?;
        let mut counts = PlanCounts { released: self.stats().released, ..PlanCounts::default() };
        for (at, row) in (0_u32..).zip(&book.rows) {
            let passed = now.since(book.plan.jobs[at as usize].arrival) > self.manner.late;
            match row.taken.is_some() {
                true => counts.followed += 1,
                false if passed => counts.missed += 1,
                false => counts.expected += 1,
            }
        }
        let waits = self.pool.jobs().filter_map(|job| Some((self.pool.attempt(job), self.of_job(job)?)));
        for (attempt, run) in waits.chain(self.asking.iter().map(|(&attempt, asking)| (attempt, Run::from(asking)))) {
            match run.row {
                Some(row) => counts.deviating += u32::from(!deviations(book, row, &run).is_empty()),
                None => counts.unplanned += u32::from(self.key(attempt).is_some()),
            }
        }
        Some(counts)
    }

    /// How far each job of the plan in force is, by position.
    pub(in crate::jobpacker) fn plan_progress(&self, now: Timestamp) -> Option<Vec<JobProgress>> {
        let book = self.book.as_ref()?;
        Some((0_u32..).zip(&book.rows).map(|(job, row)| self.job_progress(book, (job, row), now)).collect())
    }

    fn job_progress(&self, book: &ActivePlan, (job, row): (u32, &Row), now: Timestamp) -> JobProgress {
        let run = row.taken.filter(|_| row.is_here()).and_then(|attempt| self.run_of(attempt));
        let passed = now.since(book.plan.jobs[job as usize].arrival) > self.manner.late;
        let state = match (row.taken.is_some(), run.is_some()) {
            (true, true) => JobState::Running,
            (true, false) => JobState::Over,
            (false, _) if passed => JobState::Missed,
            (false, _) => JobState::Expected,
        };
        let maps_done = row.run.filter(|_| run.is_some()).map(|job| self.pool.maps(job).done);
        let stage = |stage: Stage| StageProgress {
            done: maps_done.filter(|_| matches!(stage, Stage::Map)),
            ..row.stages[at(stage)].progress(row.is_here(), row.asked_at_once())
        };
        JobProgress {
            job,
            state,
            attempt: row.taken,
            came: run.as_ref().map(|run| run.came),
            stages: Stage::BOTH.map(stage),
            deviations: run.map_or_else(Vec::new, |run| deviations(book, job, &run)),
        }
    }

    fn run_of(&self, attempt: AttemptId) -> Option<Run> {
        match self.pool.find(attempt) {
            Some(job) => self.of_job(job),
            None => self.asking.get(&attempt).map(Run::from),
        }
    }

    fn of_job(&self, job: JobIdx) -> Option<Run> {
        let row = self.jobs.get(job.at())?;
        // Until a request or an ended map tells, the pool takes a job to shuffle what it reads.
        let shuffle = self.pool.ratio(job).map(|_| self.pool.shuffle(job));
        Some(Run { row: row.row, came: row.came, shuffle })
    }
}

/// What is known of a run that the plan's figures are held against.
struct Run {
    /// Its place.
    row: Option<u32>,
    came: Timestamp,
    /// `None`: nobody told.
    shuffle: Option<Bytes>,
}

impl From<&Asking> for Run {
    fn from(asking: &Asking) -> Self {
        Self { row: asking.row, came: asking.came, shuffle: None }
    }
}

/// When the stage is expected to end, as much later or earlier as the run came; `None`: it does not go by the plan.
fn until(book: &ActivePlan, run: &Run, stage: Stage) -> Option<Timestamp> {
    let row = run.row.filter(|&row| book.goes_by_plan(row, stage))?;
    let planned = &book.plan.jobs[row as usize];
    Some(run.came.plus(planned.stage_end(stage)?.since(planned.arrival)))
}

fn deviations(book: &ActivePlan, row: u32, run: &Run) -> Vec<Deviation> {
    let (planned, stages) = (&book.plan.jobs[row as usize], &book.rows[row as usize].stages);
    let away = run.came.since(planned.arrival).max(planned.arrival.since(run.came));
    let of = |stage: Stage, odd: Deviation, gone: Deviation| {
        let stage = &stages[at(stage)];
        [(stage.is_odd(), odd), (stage.has_lost_racks(), gone)]
    };
    let mut found = vec![(away > Micros::from_secs(Deviation::LATE_S), Deviation::OffTime)];
    found.extend(of(Stage::Map, Deviation::MapCount, Deviation::MapRackGone));
    found.extend(of(Stage::Reduce, Deviation::ReduceCount, Deviation::ReduceRackGone));
    let shuffle = run.shuffle.unwrap_or(planned.shuffle);
    let apart = |less: Bytes, more: Bytes| less.0.saturating_mul(2) < more.0;
    found.push((apart(shuffle, planned.shuffle) || apart(planned.shuffle, shuffle), Deviation::ShuffleSize));
    let mut found: Vec<Deviation> = found.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
    found.sort_unstable();
    found
}
