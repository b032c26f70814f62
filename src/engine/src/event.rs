//! What happened to a task, as Follow and the event feed tell it: one core type for both.

use hintd_model::units::{AttemptId, Bytes, ContainerId, HostName, LeaseId, Micros, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One task event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    /// Whose.
    pub attempt: AttemptId,
    /// Group name; empty in events of the whole application.
    pub group: Arc<str>,
    /// The application's own name for the task.
    pub task: Arc<str>,
    /// What happened.
    pub what: TaskWhat,
    /// Recurring-job key, where the application has one.
    pub recurring_key: Option<Arc<str>>,
    /// When, by the sender's clock; the time of receipt where it gave none.
    pub at: Timestamp,
}

/// What may happen to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskWhat {
    /// It could start, and this is what it reads.
    Ready {
        /// Paths it reads.
        input_paths: Vec<Arc<str>>,
        /// Bytes it reads; zero: unknown.
        input: Bytes,
    },
    /// It was given a container.
    Allocated {
        /// Where.
        host: HostName,
        /// Which container.
        container: ContainerId,
        /// The lease it was hinted with, if known.
        lease: Option<LeaseId>,
    },
    /// It ended.
    Finished {
        /// Where it ran.
        host: HostName,
        /// How long.
        duration: Micros,
        /// What it read.
        input: Bytes,
        /// What it wrote.
        output: Bytes,
        /// It must run again.
        failed: bool,
    },
    /// The application is done: its leases end, its history is kept.
    Done {
        /// Whether it failed.
        failed: bool,
    },
}
