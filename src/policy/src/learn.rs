//! Policies that learn from jobs that finished: a narrow trait, pure as the others.
//!
//! What was learnt makes a new policy, and the one before stays as it was: a record of a decision keeps the policy that
//! made it, so it can be made again whatever was learnt since.

use crate::Policy;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, Micros, NodeIdx};
use serde::{Deserialize, Serialize};

/// A job that finished, as history tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedJob {
    /// Its maps, and the mean time of one; 0: not known.
    pub maps: (u64, Micros),
    /// Its reduces, and the mean time that one worked, without the wait for maps; 0: not known.
    pub reduces: (u64, Micros),
    /// Bytes that its maps read; 0: not known.
    pub input: Bytes,
    /// Bytes between maps and reduces; 0: none, or not known.
    pub shuffle: Bytes,
    /// Of a thousand of its containers, how many ran on machines of the class of [`Learn::class`]; `None`: not known.
    pub on_class: Option<u16>,
}

/// How often something was judged, and how often wrongly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Jobs judged.
    pub jobs: u64,
    /// Jobs called what they are not.
    pub wrong: u64,
    /// Of these, large ones called small.
    pub large_called_small: u64,
}

/// What a policy learnt, and how far it is off on jobs that it was not trained from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// Jobs that it was trained from.
    pub jobs: u64,
    /// Small ones among them.
    pub small: u64,
    /// Of these jobs, those whose task times were learnt from: on machines of the class, and on all others.
    pub timed: [u64; 2],
    /// Median error of the predicted time of a task, on the jobs held out, as a share of the time it took; `None`: none of
    /// them tells which machines it ran on.
    pub time_error: Option<f64>,
    /// The classifier on the jobs held out: with their shuffle known, and taken to be 0. None are held out where too few of a
    /// kind would be left to train from.
    pub classifier: [Judged; 2],
    /// A plain regression on the same.
    pub regression: [Judged; 2],
}

/// A class that a node is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldClass {
    /// `feed`, `label NAME`, or the name of a node attribute.
    pub by: String,
    /// Its name.
    pub class: String,
}

/// Why nothing is learnt.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LearnError {
    /// Not enough to learn from.
    #[error("{jobs} finished jobs, fewer than {least}")]
    TooFew {
        /// How many there are.
        jobs: usize,
        /// How many it takes.
        least: usize,
    },
    /// Jobs of one kind, or nearly so.
    #[error("of {jobs} finished jobs {small} are small: fewer than {least} are of the other kind")]
    OneKind {
        /// How many there are.
        jobs: usize,
        /// Small ones among them.
        small: usize,
        /// How many it takes of either.
        least: usize,
    },
    /// What was written down can't be read, or can't be meant.
    #[error("{0}")]
    Damaged(String),
    /// What was written down is of a policy with other parameters.
    #[error("it was trained under other parameters")]
    OtherParameters,
}

/// A policy that learns.
pub trait Learn: Send + Sync {
    /// The name of the machines that history is to tell apart from all others.
    fn class(&self) -> &str;

    /// Whether the node is one of these.
    fn is_of_class(&self, snapshot: &Snapshot, node: NodeIdx) -> bool;

    /// The parameter that names [`Learn::class`].
    fn class_parameter(&self) -> &'static str {
        ""
    }

    /// The classes that a node is told, in the order in which they count: the first decides. Few have more than one.
    fn classes_told(&self, snapshot: &Snapshot, node: NodeIdx) -> Vec<ToldClass> {
        let _ = (snapshot, node);
        Vec::new()
    }

    /// Fewer jobs teach it nothing.
    fn jobs_min(&self) -> usize;

    /// It learns from so many jobs at most, the first that it is given.
    fn jobs_max(&self) -> usize;

    /// The policy with what it learnt from the jobs, and that written down. Bounded in steps; the same jobs and seed give
    /// the same policy. It may take seconds: never on a thread that others wait for.
    ///
    /// # Errors
    /// [`LearnError`]: the policy stays what it is.
    fn learn(&self, jobs: &[FinishedJob], seed: u64) -> Result<(Box<dyn Policy>, String), LearnError>;

    /// The policy with what was written down.
    ///
    /// # Errors
    /// [`LearnError::Damaged`], [`LearnError::OtherParameters`].
    fn read_back(&self, written: &str) -> Result<Box<dyn Policy>, LearnError>;

    /// What it learnt; `None`: it goes by what it is configured with.
    fn lesson(&self) -> Option<Lesson>;
}
