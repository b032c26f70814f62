//! A plan as it is written down.

use hintd_model::units::{BitsPerSec, Bytes, Micros, RackPath, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What [`Plan::format`] must say.
pub const PLAN_FORMAT: &str = "hintd.plan/1";

/// Times before this year's end (1980) are no times of this world, but count from a trace's start.
pub(super) const TRACE_TIMES: Timestamp = Timestamp(10 * 366 * 86_400_000_000);

/// Which racks run recurring jobs, in what order, and what is expected of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_FORMAT`].
    pub format: Arc<str>,
    /// The policy that made it.
    pub policy: Arc<str>,
    /// What it was made for.
    pub objective: Objective,
    /// When it was made.
    pub made: Timestamp,
    /// Jobs are expected from here on.
    pub from: Timestamp,
    /// Jobs are expected before this; work may end later.
    pub until: Timestamp,
    /// What its times rest on.
    pub assumptions: Assumptions,
    /// Racks, ascending by path.
    pub racks: Vec<PlannedRack>,
    /// Jobs in the order in which they were given racks.
    pub jobs: Vec<PlannedJob>,
    /// The time for planning was over before it was known when all jobs end: some have no forecast.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// What a plan is to keep small (004 §4.2.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The time until the last job is done.
    Batch,
    /// The mean time from a job's arrival to its end.
    Online,
}

const fn never() -> Bytes {
    Bytes(u64::MAX)
}

fn is_never(elephant: &Bytes) -> bool {
    *elephant == never()
}

/// What a plan's times rest on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumptions {
    /// A rack's uplink into the packet switches, each way.
    pub uplink: BitsPerSec,
    /// A rack's port of the optical switch, each way; none: there is no switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<BitsPerSec>,
    /// Bytes between two racks from which on a job's shuffle rides a circuit; left out of files where nothing does, which
    /// is the largest number here.
    #[serde(default = "never", skip_serializing_if = "is_never")]
    pub elephant: Bytes,
    /// Containers held for a job beyond its tasks, as a share of them.
    pub over_provisioning: f64,
    /// Sub-batches into which a batch was divided.
    pub sub_batches: u32,
    /// Which shuffle term of 004 Eq. 4.1 was used.
    pub shuffle_term: Arc<str>,
    /// Seed of every random draw.
    pub seed: u64,
    /// Mean relative error of the predictor on earlier runs, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_error: Option<f64>,
}

/// A rack, and what runs there in which order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedRack {
    /// Which.
    pub rack: RackPath,
    /// Containers that run there at a time.
    pub containers: u32,
    /// Preferred first: ascending by planned start.
    pub sequence: Vec<Step>,
}

/// All maps or all reduces of a job that a rack runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Whose.
    pub job: JobName,
    /// Which.
    pub stage: Stage,
}

/// One expected run of a recurring job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobName {
    /// The recurring job's key.
    pub key: Arc<str>,
    /// Which of its runs within the plan, from 0.
    pub run: u32,
}

/// Half of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its maps.
    Map,
    /// Its reduces.
    Reduce,
}

/// What is planned of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedJob {
    /// Which run.
    pub job: JobName,
    /// Expected submission.
    pub arrival: Timestamp,
    /// It shuffles at least the elephant threshold and was planned for circuits; else its tasks take what is free.
    pub heavy: bool,
    /// Bytes expected between maps and reduces.
    pub shuffle: Bytes,
    /// Predicted time of the shuffle alone.
    pub shuffle_time: Micros,
    /// Predicted start of its first map.
    pub start: Timestamp,
    /// Predicted end of its last task, by Eq. 4.1.
    pub end: Timestamp,
    /// Maps.
    pub maps: PlannedStage,
    /// Reduces.
    pub reduces: PlannedStage,
    /// Paths that its maps read, where they are known and its key does not say them: who asks where to write one
    /// of them is told where those maps run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_paths: Vec<Arc<str>>,
    /// The same on links that all jobs share, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

/// When a run is expected to be how far: slices are by Eq. 4.1, to which every job has the network for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// Its last map is done.
    pub maps_end: Timestamp,
    /// Its last reduce has its bytes.
    pub shuffled: Timestamp,
    /// Its last task is done.
    pub end: Timestamp,
}

/// Where a stage runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedStage {
    /// Tasks expected.
    pub tasks: u32,
    /// Mean time of one.
    pub task_time: Micros,
    /// Parts of it, ascending by rack and start.
    pub slices: Vec<Slice>,
}

/// Containers of one rack that run tasks of a stage one after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Where.
    pub rack: RackPath,
    /// From when.
    pub start: Timestamp,
    /// Until when, exclusive.
    pub end: Timestamp,
    /// Tasks that run in it; 0: containers held beyond the expected tasks (over-provisioning).
    pub tasks: u32,
    /// Containers that it holds all that time.
    pub containers: u32,
}

/// A text that is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanReadError {
    /// Not JSON, or not of this shape.
    #[error("not a plan: {}", escaped(&.0.to_string()))]
    Json(#[from] serde_json::Error),
    /// A name that would speak to a terminal or break a log's line.
    #[error("not a plan: {0:?} holds a control character")]
    Control(String),
    /// A key that no request can have.
    #[error("not a plan: the key of job {at} has {bytes} bytes; requests carry keys of 1 to {KEY_BYTES}")]
    Key {
        /// Its position.
        at: usize,
        /// Its length.
        bytes: usize,
    },
    /// Of another version of the format.
    #[error("format: is {0:?}, not \"{PLAN_FORMAT}\"")]
    Format(String),
}

/// Longest key of a recurring job, as in requests.
const KEY_BYTES: usize = 4_096;

/// What is wrong may be told in the file's own words.
fn escaped(text: &str) -> String {
    let written = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.into() };
    text.chars().map(written).collect()
}

impl Plan {
    /// The run of the key that comes next: of those expected from `now` on the first, else the last; `None`: it has none.
    #[must_use]
    pub fn next_run(&self, key: &str, now: Timestamp) -> Option<&PlannedJob> {
        let runs = self.jobs.iter().filter(|job| *job.job.key == *key);
        runs.min_by_key(|job| match job.arrival < now {
            false => (false, job.arrival.0),
            true => (true, u64::MAX - job.arrival.0),
        })
    }

    /// Whether its times are of this world; else they count from a trace's start.
    #[must_use]
    pub fn has_real_times(&self) -> bool {
        self.from >= TRACE_TIMES
    }

    /// Reads a plan that was written down. Whether it makes sense is for [`super::check()`] to say.
    ///
    /// # Errors
    /// [`PlanReadError`] where the text is no plan of this version.
    pub fn from_json(text: &str) -> Result<Self, PlanReadError> {
        /// The one field that every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.format != PLAN_FORMAT {
            return Err(PlanReadError::Format(head.format));
        }
        let plan: Self = serde_json::from_str(text)?;
        let keys = plan.jobs.iter().map(|job| job.job.key.len()).enumerate();
        if let Some((at, bytes)) = keys.into_iter().find(|(_, bytes)| !(1..=KEY_BYTES).contains(bytes)) {
            return Err(PlanReadError::Key { at, bytes });
        }
        let speaks = plan.names().find(|name| name.chars().any(char::is_control)).map(str::to_owned);
        speaks.map_or(Ok(plan), |name| Err(PlanReadError::Control(name)))
    }

    /// Every text that it has, but for [`Plan::format`].
    fn names(&self) -> impl Iterator<Item = &str> {
        let steps = self.racks.iter().flat_map(|row| row.sequence.iter().map(|step| &*step.job.key));
        let stages = self.jobs.iter().flat_map(|job| Stage::BOTH.map(|stage| job.stage(stage)));
        [&*self.policy, &*self.assumptions.shuffle_term]
            .into_iter()
            .chain(self.racks.iter().map(|row| row.rack.as_str()))
            .chain(steps)
            .chain(self.jobs.iter().map(|job| &*job.job.key))
            .chain(stages.flat_map(|stage| stage.slices.iter().map(|slice| slice.rack.as_str())))
            .chain(self.jobs.iter().flat_map(|job| job.input_paths.iter().map(|path| &**path)))
    }

    /// Writes it down; the same plan gives the same bytes.
    ///
    /// # Panics
    /// Never: every field is a number, a text or a list of such.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plans are numbers, texts and lists of them")
    }

    /// From its beginning to the end of its last task.
    #[must_use]
    pub fn makespan(&self) -> Micros {
        self.jobs.iter().map(|job| job.expected_end().since(self.from)).max().unwrap_or_default()
    }

    /// Mean time from expected arrival to predicted end; 0 without jobs.
    #[must_use]
    pub fn mean_completion(&self) -> Micros {
        let sum: u128 = self.jobs.iter().map(|job| u128::from(job.expected_end().since(job.arrival).0)).sum();
        Micros(sum.checked_div(self.jobs.len() as u128).map_or(0, |mean| mean as u64))
    }

    /// Bytes expected on circuits, and all that is expected to be shuffled between racks.
    #[must_use]
    pub fn circuit_bytes(&self) -> (Bytes, Bytes) {
        self.jobs.iter().fold((Bytes::ZERO, Bytes::ZERO), |(circuit, all), job| {
            let rides = if job.heavy { job.between_racks() } else { Bytes::ZERO };
            (circuit.saturating_add(rides), all.saturating_add(job.between_racks()))
        })
    }
}

impl PlannedJob {
    /// The part of its shuffle that leaves racks: every reduce reads the same part of every map's output.
    #[must_use]
    pub fn between_racks(&self) -> Bytes {
        let mut reduces: BTreeMap<&RackPath, f64> = BTreeMap::new();
        for slice in &self.reduces.slices {
            *reduces.entry(&slice.rack).or_default() += f64::from(slice.tasks);
        }
        let maps = || self.maps.slices.iter().map(|slice| (&slice.rack, f64::from(slice.tasks)));
        let pairs = maps().map(|(_, tasks)| tasks).sum::<f64>() * reduces.values().sum::<f64>();
        if pairs == 0.0 {
            return Bytes::ZERO;
        }
        let within: f64 = maps().map(|(rack, tasks)| tasks * reduces.get(rack).copied().unwrap_or(0.0)).sum();
        Bytes((self.shuffle.as_f64() * (1.0 - within / pairs)) as u64)
    }

    /// When its last task is expected to end: by the forecast where there is one.
    #[must_use]
    pub fn expected_end(&self) -> Timestamp {
        self.forecast.map_or(self.end, |forecast| forecast.end)
    }

    /// When the stage is expected to end: by its slices or by the forecast, whichever is later; none: it has no tasks.
    #[must_use]
    pub fn stage_end(&self, stage: Stage) -> Option<Timestamp> {
        let slices = self.stage(stage).slices.iter().filter(|slice| slice.tasks > 0);
        let end = slices.map(|slice| slice.end).max()?;
        let forecast = self.forecast.map(|forecast| match stage {
            Stage::Map => forecast.maps_end,
            Stage::Reduce => forecast.end,
        });
        Some(forecast.map_or(end, |forecast| forecast.max(end)))
    }

    /// Its maps or its reduces.
    #[must_use]
    pub const fn stage(&self, stage: Stage) -> &PlannedStage {
        match stage {
            Stage::Map => &self.maps,
            Stage::Reduce => &self.reduces,
        }
    }
}

impl PlannedStage {
    /// Racks that run tasks of it, ascending, each once, with how many.
    #[must_use]
    pub fn racks(&self) -> Vec<(&RackPath, u32)> {
        let mut racks: Vec<(&RackPath, u32)> = Vec::new();
        for slice in self.slices.iter().filter(|slice| slice.tasks > 0) {
            match racks.last_mut().filter(|(rack, _)| *rack == &slice.rack) {
                Some(last) => last.1 = last.1.saturating_add(slice.tasks),
                None => racks.push((&slice.rack, slice.tasks)),
            }
        }
        racks
    }
}

impl Stage {
    /// Both, in the order in which they run.
    pub const BOTH: [Self; 2] = [Self::Map, Self::Reduce];

    /// As plans and messages spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Reduce => "reduce",
        }
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.key, self.run)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.stage.as_str(), self.job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        let plan = sample::plan(1);
        assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    }

    #[test]
    fn the_plan_in_the_docs_is_one_and_nothing_is_wrong_with_it() {
        let docs = include_str!("../../../../docs/formats.md");
        let (_, section) = docs.split_once("## Plans").unwrap();
        let text = section.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let plan = Plan::from_json(text).unwrap();
        assert_eq!(super::super::check(&plan, &super::super::Facts::default()), []);
    }

    #[test]
    fn a_plan_of_another_version_or_with_an_unknown_field_is_refused_by_name() {
        let text = sample::plan(1).to_json();
        let later = text.replacen("hintd.plan/1", "hintd.plan/2", 1);
        let error = Plan::from_json(&later).unwrap_err();
        assert_eq!(error.to_string(), "format: is \"hintd.plan/2\", not \"hintd.plan/1\"");
        let odd = text.replacen("\"format\":", "\"colour\": 3, \"format\":", 1);
        assert!(Plan::from_json(&odd).unwrap_err().to_string().contains("unknown field `colour`"));
        assert!(Plan::from_json("{}").unwrap_err().to_string().contains("missing field `format`"));
        let loud = text.replacen("\"format\":", "\"\\u001b[2J\": 3, \"format\":", 1);
        assert!(Plan::from_json(&loud).unwrap_err().to_string().contains("unknown field `\\u{1b}[2J`"));
    }

    #[test]
    fn names_that_would_speak_to_a_terminal_are_refused_and_shown_escaped() {
        let plant: [fn(&mut Plan, &str); 7] = [
            |plan, name| plan.policy = name.into(),
            |plan, name| plan.assumptions.shuffle_term = name.into(),
            |plan, name| plan.racks[0].rack = name.into(),
            |plan, name| plan.racks[0].sequence[0].job.key = name.into(),
            |plan, name| plan.jobs[0].job.key = name.into(),
            |plan, name| plan.jobs[0].maps.slices[0].rack = name.into(),
            |plan, name| plan.jobs[0].input_paths.push(name.into()),
        ];
        for name in ["etl\u{1b}[2J", "etl\nplan in force", "\u{9b}31m"] {
            for plant in plant {
                let mut plan = sample::plan(2);
                plant(&mut plan, name);
                let error = Plan::from_json(&plan.to_json()).unwrap_err().to_string();
                assert!(error.contains("holds a control character") && !error.contains(char::is_control), "{error:?}");
            }
        }
    }

    #[test]
    fn keys_that_no_request_can_have_are_refused_by_their_length() {
        for (key, fine) in [("", false), ("k", true), (&*"k".repeat(4_096), true), (&*"k".repeat(4_097), false)] {
            let mut plan = sample::plan(2);
            plan.jobs[1].job.key = key.into();
            let read = Plan::from_json(&plan.to_json());
            assert_eq!(read.is_ok(), fine, "{} bytes", key.len());
            let words = format!("the key of job 1 has {} bytes", key.len());
            assert!(read.err().is_none_or(|error| error.to_string().contains(&words)));
        }
    }

    #[test]
    fn what_maps_and_reduces_of_a_rack_tell_each_other_leaves_no_rack() {
        let mut job = sample::plan(1).jobs[0].clone();
        let slice = |rack: &str, tasks: u32| Slice { rack: rack.into(), tasks, ..job.maps.slices[0].clone() };
        // A rack may stand twice; of 4 × 5 pairs 1 × 3 and 3 × 2 stay in theirs.
        let maps = vec![slice("/r0", 1), slice("/r1", 2), slice("/r1", 1)];
        let reduces = vec![slice("/r0", 1), slice("/r1", 2), slice("/r0", 2)];
        (job.maps.slices, job.reduces.slices, job.shuffle) = (maps, reduces, Bytes(2_000));
        assert_eq!(job.between_racks(), Bytes(1_100));
        job.reduces.slices.clear();
        assert_eq!(job.between_racks(), Bytes::ZERO);
    }

    #[test]
    fn a_plan_forecasts_by_its_jobs() {
        let mut plan = sample::plan(1);
        plan.jobs.truncate(2);
        let (first, second) = (&mut plan.jobs[0], Timestamp(plan.from.0 + 10));
        (first.arrival, first.end, first.heavy, first.shuffle) =
            (plan.from, plan.from.plus(Micros(30)), true, Bytes(7));
        let job = &mut plan.jobs[1];
        (job.arrival, job.end, job.heavy, job.shuffle) = (second, second.plus(Micros(50)), false, Bytes(5));
        assert_eq!((plan.makespan(), plan.mean_completion()), (Micros(60), Micros(40)));
        assert_eq!(plan.circuit_bytes(), (Bytes(7), Bytes(10)), "of the second two in five stay in their racks");
        let later = |by: u64| plan.from.plus(Micros::from_secs(100_000 + by));
        let forecast = Forecast { maps_end: later(1), shuffled: later(2), end: later(3) };
        let stages = |job: &PlannedJob| Stage::BOTH.map(|stage| job.stage_end(stage).unwrap());
        assert!(stages(&plan.jobs[0]).into_iter().all(|end| end < later(0)), "by slices without a forecast");
        plan.jobs[0].forecast = Some(forecast);
        assert_eq!(
            (plan.makespan(), stages(&plan.jobs[0])),
            (Micros::from_secs(100_003), [forecast.maps_end, forecast.end])
        );
        plan.jobs[0].forecast = Some(Forecast { maps_end: plan.from, shuffled: plan.from, end: plan.from });
        assert!(stages(&plan.jobs[0]).into_iter().all(|end| end > plan.from), "never before the slices");
        plan.jobs.clear();
        assert_eq!((plan.makespan(), plan.mean_completion()), (Micros(0), Micros(0)));
    }
}
