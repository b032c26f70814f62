//! One plan that is kept, and its row of the journal.

use crate::journal::{KeyBuilder, Op, Table};
use hintd_model::units::Timestamp;
use hintd_policy::plan::{JobName, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// First part of keys.
pub(super) const KEPT: &str = "kept";
/// [`KeptPlan::origin`] of plans that the daemon made at its times.
pub const SCHEDULE: &str = "schedule";

/// A plan with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPlan {
    /// What operators call it.
    pub name: Arc<str>,
    /// When it was kept.
    pub kept_at: Timestamp,
    /// Where it is from: `operator`, or `schedule` for the daemon's own.
    pub origin: Arc<str>,
    /// What was of note when it was kept, in words.
    pub warnings: Vec<String>,
    /// It.
    pub plan: Arc<Plan>,
    /// Position of each job.
    by_job: BTreeMap<JobName, u32>,
}

/// How a row of the journal says it.
#[derive(Serialize, Deserialize)]
struct KeptRow<P> {
    kept_at: Timestamp,
    origin: Arc<str>,
    #[serde(default)]
    warnings: Vec<String>,
    plan: P,
}

impl KeptPlan {
    pub(super) fn new(
        name: Arc<str>,
        plan: Arc<Plan>,
        kept_at: Timestamp,
        origin: &str,
        warnings: Vec<String>,
    ) -> Self {
        let by_job = (0_u32..).zip(&plan.jobs).map(|(at, job)| (job.job.clone(), at)).collect();
        Self { name, kept_at, origin: origin.into(), warnings, plan, by_job }
    }

    /// Position of the job in the plan.
    #[must_use]
    pub fn position(&self, job: &JobName) -> Option<u32> {
        self.by_job.get(job).copied()
    }

    /// Whether runs of that job are planned.
    #[must_use]
    pub fn has_key(&self, key: &Arc<str>) -> bool {
        let first = JobName { key: Arc::clone(key), run: 0 };
        self.by_job.range(first..).next().is_some_and(|(job, _)| job.key == *key)
    }

    /// Keys of its jobs, ascending, each once.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_job.keys().filter(|job| job.run == 0).map(|job| &job.key)
    }

    /// Paths that jobs of that key read, as far as the plan says them.
    pub fn input_paths(&self, key: &Arc<str>) -> impl Iterator<Item = &Arc<str>> {
        let first = JobName { key: Arc::clone(key), run: 0 };
        let runs = self.by_job.range(first..).take_while(move |(job, _)| job.key == *key);
        runs.flat_map(|(_, at)| &self.plan.jobs[*at as usize].input_paths)
    }

    /// Whether no more jobs are expected by it.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.plan.until <= now
    }

    /// One of that name, as a row of the journal has it.
    pub(super) fn read(name: Arc<str>, value: &[u8]) -> serde_json::Result<Self> {
        let row: KeptRow<Plan> = serde_json::from_slice(value)?;
        Ok(Self::new(name, Arc::new(row.plan), row.kept_at, &row.origin, row.warnings))
    }

    pub(super) fn put(&self) -> Op {
        let Self { kept_at, origin, warnings, plan, .. } = self;
        let row = KeptRow { kept_at: *kept_at, origin: Arc::clone(origin), warnings: warnings.clone(), plan: &**plan };
        let value = serde_json::to_vec(&row).expect("plans are numbers, texts and lists of them");
        Op::put(Table::Plans, kept_key(&self.name), value)
    }
}

pub(super) fn kept_key(name: &str) -> Vec<u8> {
    KeyBuilder::new().text(KEPT).text(name).build()
}
