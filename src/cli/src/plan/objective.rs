//! The objective of a plan, as an option.

use clap::ValueEnum;
use hintd_policy::plan::Objective;

/// What a plan is to keep small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectiveArg {
    /// The time until the last job is done; all jobs are there from the start
    Batch,
    /// The mean time from a job's arrival to its end
    Online,
}

impl From<ObjectiveArg> for Objective {
    fn from(argument: ObjectiveArg) -> Self {
        match argument {
            ObjectiveArg::Batch => Self::Batch,
            ObjectiveArg::Online => Self::Online,
        }
    }
}
