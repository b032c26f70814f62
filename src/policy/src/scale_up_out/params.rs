//! Parameters of `scale_up_out`.

use super::time::TimeModel;
use crate::baselines;
use crate::class_speed::{ClassSpeed, LargeJobs};
use crate::params::{Invalid, Params};
use crate::pool;
use hintd_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// Which jobs come first within a class (004 §5.2.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As `fair` has it.
    #[default]
    Fair,
    /// As `delay` has it.
    Delay,
}

/// When scale-out machines take a job that waits for scale-up machines (004 §5.2.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steal {
    /// Never, while there are scale-up machines.
    Never,
    /// While no scale-up machine has room for it.
    WhenFull,
    /// The same; and before any machine is idle, as the job comes, if the backlog of scale-up machines would make it end later
    /// than it does on scale-out machines.
    #[default]
    WhenSooner,
    /// At once, as 004 §5.2.3 has it.
    Always,
}

/// Which machines are of which class, how jobs are told apart, and what may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScaleUpOutParams {
    /// Scale-up machines: those of this machine class, with this node label, or with this value of the attribute
    /// [`ATTRIBUTE`](super::ATTRIBUTE) or [`YARN_ATTRIBUTES`](super::YARN_ATTRIBUTES). All others are scale-out machines.
    pub scale_up: String,
    /// Which jobs come first within a class.
    pub order: Order,
    /// When jobs are stolen.
    pub steal: Steal,
    /// Whether jobs are kept to a class at all.
    pub queues: bool,
    /// Whether replicas go where both classes can read them.
    pub replicas: bool,
    /// As of [`FairParams`](baselines::fair::FairParams).
    pub slow_start: f64,
    /// As of [`FairParams`](baselines::fair::FairParams), of each class's containers.
    pub early_reduces: f64,
    /// As of [`DelayParams`](baselines::delay::DelayParams), where the order is `delay`.
    pub node_skips: u32,
    /// Speed of a scale-up machine against a scale-out one, for jobs that are not large.
    pub speed: f64,
    /// For large ones.
    pub large_speed: f64,
    /// Input above which a job that shuffles nothing is large, bytes.
    pub large_input_bytes: u64,
    /// The same for one that shuffles all that it reads, bytes.
    pub large_shuffling_input_bytes: u64,
    /// Containers of one scale-up machine.
    pub scale_up_containers: u32,
    /// Containers of as many scale-out machines as cost as much.
    pub scale_out_containers: u32,
    /// Jobs that the classifier is trained from.
    pub training_jobs: u32,
}

impl Default for ScaleUpOutParams {
    /// Speeds, crosspoints and containers after Figure 5.1 and its text (docs/policies.md).
    fn default() -> Self {
        Self {
            scale_up: "scale-up".to_owned(),
            order: Order::default(),
            steal: Steal::default(),
            queues: true,
            replicas: true,
            slow_start: pool::SLOW_START,
            early_reduces: pool::EARLY_REDUCES,
            node_skips: 135,
            speed: 1.7,
            large_speed: 1.083,
            large_input_bytes: 32 << 30,
            large_shuffling_input_bytes: 64 << 30,
            scale_up_containers: 24,
            scale_out_containers: 40,
            training_jobs: 400,
        }
    }
}

/// Fewer jobs teach nothing, more than the solver takes are no use.
const TRAINING: std::ops::RangeInclusive<u32> = 50..=2_000;

impl ScaleUpOutParams {
    /// How fast scale-up machines work.
    #[must_use]
    pub const fn class_speed(&self) -> ClassSpeed {
        let large = LargeJobs {
            input_bytes: Bytes(self.large_input_bytes),
            shuffling_input_bytes: Bytes(self.large_shuffling_input_bytes),
            speed: self.large_speed,
        };
        ClassSpeed { speed: self.speed, large: Some(large) }
    }

    /// The time model that labels jobs.
    #[must_use]
    pub const fn time_model(&self) -> TimeModel {
        TimeModel {
            speed: self.class_speed(),
            scale_up_containers: self.scale_up_containers,
            scale_out_containers: self.scale_out_containers,
        }
    }
}

impl Params for ScaleUpOutParams {
    fn validate(&self) -> Result<(), Invalid> {
        let refuse = |key, message| Err(Invalid { key, message });
        if self.scale_up.is_empty() {
            return refuse("scale_up", "\"\": machines of no class are scale-out machines".to_owned());
        }
        if let Some((field, why)) = self.class_speed().problem() {
            return refuse(if field == "speed" { "speed" } else { "large_speed" }, why);
        }
        for (key, count) in
            [("scale_up_containers", self.scale_up_containers), ("scale_out_containers", self.scale_out_containers)]
        {
            if count == 0 {
                return refuse(key, "0: nothing could run there".to_owned());
            }
        }
        if !TRAINING.contains(&self.training_jobs) {
            let (from, to) = (TRAINING.start(), TRAINING.end());
            return refuse("training_jobs", format!("{}, not from {from} to {to}", self.training_jobs));
        }
        baselines::skips("node_skips", self.node_skips)?;
        baselines::share("slow_start", self.slow_start)?;
        baselines::share("early_reduces", self.early_reduces)
    }
}
