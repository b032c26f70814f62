//! How runs stand to a plan that is followed, as dispatchers tell it.

use hintd_model::units::{AttemptId, RackIdx, Timestamp};
use serde::{Deserialize, Serialize};

/// How one attempt stands to the plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunPlanStatus {
    /// Its place: the job's position in the plan; none: nothing of it goes by the plan.
    pub place: Option<u32>,
    /// Where reality leaves the plan, each once, ascending.
    pub deviations: Vec<Deviation>,
}

/// One way in which reality leaves a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    /// The attempt is known by no recurring-job key.
    NoKey,
    /// The plan has no job of its key.
    NotPlanned,
    /// The plan's free jobs of its key are expected too far from when it came.
    OutOfTime,
    /// Other runs have all of the plan's places of its key.
    PlaceTaken,
    /// It came more than [`Deviation::LATE_S`] seconds from its expected arrival, and has its place all the same.
    OffTime,
    /// It has less than half or more than twice the maps that the plan expects.
    MapCount,
    /// The same of reduces.
    ReduceCount,
    /// Less than half or more than twice the shuffle, as far as requests and ended maps tell.
    ShuffleSize,
    /// A rack of its maps is dead or not in the cluster: those that wait go anywhere.
    MapRackGone,
    /// The same of reduces.
    ReduceRackGone,
    /// Tasks waited longer than the plan and its patience let them, and were placed anywhere.
    WaitedTooLong,
}

impl Deviation {
    /// The paper's own runs come up to 200 s from when they are expected (004 §4.3.5).
    pub const LATE_S: u64 = 200;

    /// All, ascending.
    pub const ALL: [Self; 11] = [
        Self::NoKey,
        Self::NotPlanned,
        Self::OutOfTime,
        Self::PlaceTaken,
        Self::OffTime,
        Self::MapCount,
        Self::ReduceCount,
        Self::ShuffleSize,
        Self::MapRackGone,
        Self::ReduceRackGone,
        Self::WaitedTooLong,
    ];

    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoKey => "no_key",
            Self::NotPlanned => "not_planned",
            Self::OutOfTime => "out_of_time",
            Self::PlaceTaken => "place_taken",
            Self::OffTime => "off_time",
            Self::MapCount => "map_count",
            Self::ReduceCount => "reduce_count",
            Self::ShuffleSize => "shuffle_size",
            Self::MapRackGone => "map_rack_gone",
            Self::ReduceRackGone => "reduce_rack_gone",
            Self::WaitedTooLong => "waited_too_long",
        }
    }
}

/// How well a plan is followed, since it is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanCounts {
    /// Jobs of the plan that a run took the place of.
    pub followed: u32,
    /// Jobs of the plan whose time has passed without a run.
    pub missed: u32,
    /// Jobs of the plan that are still to come.
    pub expected: u32,
    /// Runs with a key and without a place in it that are here now.
    pub unplanned: u32,
    /// Stages that go by the plan no more because of a dead rack.
    pub released: u32,
    /// Runs with a place that are here now and leave the plan in some way.
    pub deviating: u32,
}

/// How far one job of a plan in force is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProgress {
    /// Position in the plan.
    pub job: u32,
    /// Where it stands.
    pub state: JobState,
    /// The attempt that took its place last.
    pub attempt: Option<AttemptId>,
    /// When that one came; only while it is here.
    pub came: Option<Timestamp>,
    /// Maps, reduces.
    pub stages: [StageProgress; 2],
    /// Where it leaves the plan; only while it is here.
    pub deviations: Vec<Deviation>,
}

/// Where a job of a plan in force stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// No run has come, and one may come still.
    Expected,
    /// No run has come, and its time has passed.
    Missed,
    /// A run has its place.
    Running,
    /// A run had its place and is over.
    Over,
}

impl JobState {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expected => "expected",
            Self::Missed => "missed",
            Self::Running => "running",
            Self::Over => "over",
        }
    }
}

/// How far one stage of a job is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageProgress {
    /// Tasks that the run has, as far as it told; of one that is answered at once those planned where it asked for none yet.
    pub tasks: u32,
    /// Of these launched in racks of the plan; none: nobody tells, as of a run that is answered at once.
    pub launched: Option<u32>,
    /// These by rack of the plan, by index; empty where nobody tells.
    pub launched_in: Vec<(RackIdx, u32)>,
    /// Of these done; none where nobody counts them, which is so of reduces and of runs that are over.
    pub done: Option<u32>,
    /// It goes by the plan no more, because of a dead rack.
    pub released: bool,
}
