//! What a run counted.

use super::yarn::YarnTally;
use hintd_model::units::Bytes;
use std::time::Duration;

/// What it all came to.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Jobs submitted.
    pub jobs: u64,
    /// Jobs whose tasks all ended.
    pub jobs_ended: u64,
    /// Tasks that ended, each once.
    pub tasks_ended: u64,
    /// Tasks of all jobs.
    pub tasks: u64,
    /// Containers hinted.
    pub hinted: u64,
    /// Containers that YARN put on a hint's preferred host.
    pub followed: u64,
    /// Containers that YARN put on a host that a hint named as next best.
    pub on_fallback: u64,
    /// Leases withdrawn.
    pub withdrawn: u64,
    /// Requests that got no hints.
    pub refused: u64,
    /// Why the first of them got none; empty: all did.
    pub refused_first: String,
    /// Containers placed anew after a loss.
    pub replaced: u64,
    /// Containers whose hint came on Follow, after they had waited for it.
    pub dispatched: u64,
    /// Times that a group was told why it waits.
    pub told_to_wait: u64,
    /// Requests for hints, by how long the answer took.
    pub latencies: Vec<Duration>,
    /// The ResourceManager's counts.
    pub yarn: YarnTally,
    /// Feed items refused.
    pub feed_refused: u64,
    /// What the feeds said about them.
    pub feed_complaints: Vec<String>,
    /// Promises that were broken; must be empty.
    pub violations: Vec<String>,
    /// Bytes that links between switches carried for jobs.
    pub between_switches: Bytes,
    /// Of all jobs that ended, from submission.
    pub completions: Duration,
    /// From the first submission to the last end.
    pub took: Duration,
}
