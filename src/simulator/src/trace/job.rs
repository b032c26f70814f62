//! A job as the simulator takes it, whichever format it was read from.

use super::swim::SwimJob;
use hintd_model::units::{Bytes, HostName, Micros};
use std::sync::Arc;

/// One job. What is left out comes from [`crate::JobModel`] and the run's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceJob {
    /// As the trace names it.
    pub name: Arc<str>,
    /// Submit time since the trace's start.
    pub submit: Micros,
    /// Map input.
    pub input: Bytes,
    /// Map output that goes to the reduces; 0 for a map-only job.
    pub shuffle: Bytes,
    /// Reduce output.
    pub output: Bytes,
    /// What it reads: jobs with equal paths read the same blocks.
    pub input_path: Option<Arc<str>>,
    /// Hosts with a replica of each map's input; left out: as HDFS places them.
    pub blocks: Option<Arc<[Vec<HostName>]>>,
    /// Whose it is; left out: drawn.
    pub user: Option<Arc<str>>,
    /// Maps.
    pub maps: Option<u64>,
    /// Reduces.
    pub reduces: Option<u64>,
    /// Time of each map beyond reading from afar.
    pub map_time: Option<Micros>,
    /// Time of each reduce beyond its shuffle.
    pub reduce_time: Option<Micros>,
    /// Its earlier run.
    pub earlier: Earlier,
}

/// What a trace tells of a job's earlier run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Earlier {
    /// Nothing: whether it has one is drawn, and what that was like.
    #[default]
    Untold,
    /// The last job of those learnt from that read the same path; none: none of them did.
    Told(Option<Arc<TraceJob>>),
}

impl From<SwimJob> for TraceJob {
    fn from(job: SwimJob) -> Self {
        let SwimJob { name, submit, input, shuffle, output, input_path } = job;
        let (blocks, user, maps, reduces, map_time, reduce_time) = (None, None, None, None, None, None);
        let earlier = Earlier::Untold;
        Self {
            name,
            submit,
            input,
            shuffle,
            output,
            input_path,
            blocks,
            user,
            maps,
            reduces,
            map_time,
            reduce_time,
            earlier,
        }
    }
}
