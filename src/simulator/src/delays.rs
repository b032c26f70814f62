//! What takes time in a Hadoop beside the network and the work on bytes, as measured on a real one.
//!
//! A run has none of it unless it is told: the figures of docs/worth.md and docs/reproduction.md are without. A file
//! (`hintd.delays/1`, docs/formats.md) holds what one cluster was measured to have, each number with its source;
//! `config/delays` has those that are shipped.

use crate::job_model::JobModel;
use hintd_model::cluster::document::{DocumentProblem, Syntax};
use hintd_model::units::{Bytes, Micros};
use hintd_policy::pool::SLOW_START;
use serde::{Deserialize, Serialize};

/// The format of a file of delays.
pub const DELAYS_FORMAT: &str = "hintd.delays/1";

/// Delays of a cluster. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delays {
    /// From a user's command to the job's submission: work of one core. Then the trace's times are those of commands.
    pub client: Micros,
    /// From a job's submission to the first heartbeat of its ApplicationMaster: work of one core.
    pub master: Micros,
    /// From a container's allocation to its task's first byte, a JVM's start: work of one core.
    pub task_start: Micros,
    /// From the end of a job's last task to the end of the job.
    pub job_end: Micros,
    /// Cores that all nodes of the cluster share in equal parts, each task taking one at most; none: every task has a
    /// core of its own.
    pub cores: Option<f64>,
    /// As deployed: share of a job's maps that are done when its reduces are asked for
    /// (`mapreduce.job.reduce.slowstart.completedmaps`).
    pub slow_start: f64,
    /// Bytes that links carry for each byte of input or shuffle: headers, checksums and acknowledgements.
    pub wire: f64,
}

impl Default for Delays {
    fn default() -> Self {
        let none = Micros::ZERO;
        Self {
            client: none,
            master: none,
            task_start: none,
            job_end: none,
            cores: None,
            slow_start: SLOW_START,
            wire: 1.0,
        }
    }
}

impl Delays {
    /// The field that no run can have, and what is wrong with it.
    #[must_use]
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let Self { cores, slow_start, wire, .. } = *self;
        let within = |field, value: f64, (least, most): (f64, f64)| {
            let outside = !(least..=most).contains(&value);
            outside.then(|| (field, format!("{value}: it must lie between {least} and {most}")))
        };
        cores
            .and_then(|cores| within("cores", cores, CORES))
            .or_else(|| within("slow_start", slow_start, (0.0, 1.0)))
            .or_else(|| within("wire", wire, WIRE))
    }
}

/// Fewer cores would make a run last for ever; more than that no cluster has.
const CORES: (f64, f64) = (0.01, 1e6);
/// Nothing is carried for less than itself.
const WIRE: (f64, f64) = (1.0, 10.0);
/// Longest of the times, seconds: an hour.
const MOST_S: f64 = 3600.0;

/// A file of delays, as it stands there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaysFile {
    format: String,
    #[serde(default)]
    client_s: f64,
    #[serde(default)]
    master_s: f64,
    #[serde(default)]
    task_start_s: f64,
    #[serde(default)]
    job_end_s: f64,
    #[serde(default)]
    cores: Option<f64>,
    #[serde(default)]
    slow_start: Option<f64>,
    #[serde(default)]
    wire: Option<f64>,
    #[serde(default)]
    task: Option<TaskWork>,
}

/// How long tasks work on their bytes, in the job model's place.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskWork {
    base_s: f64,
    bytes_per_s: u64,
    sigma: f64,
}

/// Why a file of delays is none.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DelaysError {
    /// Not to be read.
    #[error(transparent)]
    Document(#[from] DocumentProblem),
    /// Another format.
    #[error("format: is \"{0}\", not \"{DELAYS_FORMAT}\"")]
    Format(String),
    /// A value that no run can have.
    #[error("{field}: {problem}")]
    Value {
        /// Which.
        field: &'static str,
        /// What stands there and what is wrong with it.
        problem: String,
    },
}

impl DelaysFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`DelaysError`].
    pub fn read(text: &str) -> Result<Self, DelaysError> {
        let file: Self = Syntax::Toml.read(text)?;
        if file.format != DELAYS_FORMAT {
            return Err(DelaysError::Format(file.format));
        }
        let times = [
            ("client_s", file.client_s),
            ("master_s", file.master_s),
            ("task_start_s", file.task_start_s),
            ("job_end_s", file.job_end_s),
        ];
        let base = file.task.map(|task| ("task.base_s", task.base_s));
        let wrong = times.into_iter().chain(base).find(|(_, seconds)| !(0.0..=MOST_S).contains(seconds));
        if let Some((field, seconds)) = wrong {
            return Err(DelaysError::Value {
                field,
                problem: format!("{seconds}: it must lie between 0 and {MOST_S}"),
            });
        }
        if let Some((field, problem)) = file.delays().problem() {
            return Err(DelaysError::Value { field, problem });
        }
        match file.model(JobModel::default()).check() {
            Ok(()) => Ok(file),
            Err(error) => Err(DelaysError::Value { field: "task", problem: error.to_string() }),
        }
    }

    /// What a run takes of it.
    #[must_use]
    pub fn delays(&self) -> Delays {
        let none = Delays::default();
        Delays {
            client: micros(self.client_s),
            master: micros(self.master_s),
            task_start: micros(self.task_start_s),
            job_end: micros(self.job_end_s),
            cores: self.cores,
            slow_start: self.slow_start.unwrap_or(none.slow_start),
            wire: self.wire.unwrap_or(none.wire),
        }
    }

    /// The job model with the file's work of tasks, where it has any.
    #[must_use]
    pub fn model(&self, model: JobModel) -> JobModel {
        match self.task {
            Some(TaskWork { base_s, bytes_per_s, sigma }) => {
                JobModel { base: micros(base_s), rate: Bytes(bytes_per_s), sigma, ..model }
            }
            None => model,
        }
    }
}

fn micros(seconds: f64) -> Micros {
    Micros((seconds * 1e6).round() as u64)
}

/// Delays that are shipped: name, and the file's text.
pub const SHIPPED_DELAYS: [(&str, &str); 1] =
    [("small-cluster", include_str!("../../../config/delays/small-cluster.toml"))];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_sound_and_nothing_is_delayed_by_default() {
        for (name, text) in SHIPPED_DELAYS {
            let file = DelaysFile::read(text).unwrap();
            assert_ne!(file.delays(), Delays::default(), "{name}");
        }
        let empty = DelaysFile::read("format = \"hintd.delays/1\"").unwrap();
        assert_eq!((empty.delays(), empty.model(JobModel::default())), (Delays::default(), JobModel::default()));
    }

    #[test]
    fn a_bad_file_is_refused_with_the_value_that_was_wrong() {
        for (line, message) in [
            ("master_s = -1", "master_s: -1: it must lie between 0 and 3600"),
            ("task_start_s = nan", "task_start_s: NaN: it must lie between 0 and 3600"),
            ("cores = 0", "cores: 0: it must lie between 0.01 and 1000000"),
            ("slow_start = 1.5", "slow_start: 1.5: it must lie between 0 and 1"),
            ("wire = 0.9", "wire: 0.9: it must lie between 1 and 10"),
            (
                "task = { base_s = 9e9, bytes_per_s = 1, sigma = 0 }",
                "task.base_s: 9000000000: it must lie between 0 and 3600",
            ),
            (
                "task = { base_s = 1, bytes_per_s = 0, sigma = 0 }",
                "task: rate is 0: it divides, so it must be at least 1",
            ),
        ] {
            let error = DelaysFile::read(&format!("format = \"hintd.delays/1\"\n{line}")).unwrap_err();
            assert_eq!(error.to_string(), message, "{line}");
        }
        assert!(DelaysFile::read("format = \"hintd.delays/1\"\nmaster = 1").is_err(), "an unknown field");
        let other = DelaysFile::read("format = \"hintd.shape/1\"").unwrap_err().to_string();
        assert_eq!(other, "format: is \"hintd.shape/1\", not \"hintd.delays/1\"");
    }
}
