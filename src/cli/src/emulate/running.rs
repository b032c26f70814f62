//! How a container gets on with its task: what it waits for, and when its work is done.

use hintd_model::units::Bytes;
use tokio::time::Instant;

/// A container with its task.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) group: usize,
    pub(super) task: u32,
    pub(super) host: String,
    pub(super) node: usize,
    pub(super) since: Instant,
    pub(super) phase: Phase,
    /// Transfers that it waits for.
    pub(super) under_way: usize,
    /// What a reduce has to fetch still: from which machine, how much.
    pub(super) to_fetch: Vec<(usize, Bytes)>,
}

/// Where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A reduce whose job has maps that have not ended.
    Waits,
    /// A map gets its block, or a reduce its part of the maps' output.
    Reads,
    /// Until then it works through that; a reduce writes meanwhile.
    Works(Instant),
    /// What it wrote is on its way still.
    Worked,
}

impl Running {
    pub(super) fn new(group: usize, task: u32, host: String, node: usize) -> Self {
        let (phase, since) = (Phase::Waits, Instant::now());
        Self { group, task, host, node, since, phase, under_way: 0, to_fetch: Vec::new() }
    }
}
