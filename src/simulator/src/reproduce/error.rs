//! How large a sample is, and why there is no report.

use super::row::RowError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How large a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A stated sample, the cluster scaled alike; seconds, or a few minutes.
    Quick,
    /// As the paper.
    Full,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No experiment of that name.
    #[error("no experiment is called \"{name}\"; {}", meant(*.near, .known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The one whose name is nearest, if any is near.
        near: Option<&'static str>,
        /// What there is.
        known: String,
    },
    /// Too few seeds to show a spread.
    #[error("{found} seeds: {scale} scale needs at least {needed}")]
    Seeds {
        /// How many were given.
        found: usize,
        /// How many are needed.
        needed: usize,
        /// The scale asked for.
        scale: Scale,
    },
    /// A row without one value for each seed.
    #[error("{entry}: row \"{row}\" has {found} values for {seeds} seeds")]
    Values {
        /// The experiment.
        entry: String,
        /// The row.
        row: String,
        /// Its values.
        found: usize,
        /// The seeds run.
        seeds: usize,
    },
    /// Rows that no verdict can be computed from.
    #[error("{entry}: {problem}")]
    Rows {
        /// The experiment.
        entry: String,
        /// What is wrong with them.
        problem: String,
    },
    /// Values that no row can be made of.
    #[error("a row cannot be judged")]
    Row(#[from] RowError),
    /// An experiment broke.
    #[error("{entry} failed")]
    Failed {
        /// Which.
        entry: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn meant(near: Option<&str>, known: &str) -> String {
    near.map_or_else(|| format!("there are: {known}"), |near| format!("did you mean \"{near}\"?"))
}
