//! The report: JSON that scripts read and that is committed at full scale, and the verdict computed from its rows.

use super::error::{ReproduceError, Scale};
use super::row::{Role, Row};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How an entry stands against its paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every figure reaches the paper's.
    Reached,
    /// Not every one does, but one single stated assumption, changed in the same run, reaches all that fall short.
    Explained,
    /// Neither.
    Short,
}

/// One experiment's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The experiment's name.
    pub entry: String,
    /// The paper.
    pub paper: String,
    /// Its figure.
    pub figure: String,
    /// What it ran under.
    pub settings: Vec<(String, String)>,
    /// How many seeds.
    pub seeds: usize,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Computed from the rows.
    pub verdict: Verdict,
}

impl Entry {
    /// Checks that every row has one value for each seed.
    pub(super) fn check_values(&self) -> Result<(), ReproduceError> {
        match self.rows.iter().find(|row| row.values.len() != self.seeds) {
            Some(row) => Err(ReproduceError::Values {
                entry: self.entry.clone(),
                row: row.name.clone(),
                found: row.values.len(),
                seeds: self.seeds,
            }),
            None => Ok(()),
        }
    }
}

/// All entries of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Sample size.
    pub scale: Scale,
    /// The command that made it, for a report that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The source's commit, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// In the order run.
    pub entries: Vec<Entry>,
}

/// A report that cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No report at all.
    #[error("not a reproduction report")]
    Json(#[source] serde_json::Error),
    /// Rows that no verdict can be computed from.
    #[error("a report's rows cannot be judged")]
    Rows(#[source] ReproduceError),
    /// A row that says other than its values.
    #[error("{entry}, row \"{row}\": median, spread or `reached` are not what its values give")]
    Row {
        /// The entry.
        entry: String,
        /// The row.
        row: String,
    },
    /// A verdict that its rows do not give.
    #[error("{entry}: the verdict says {found:?}, its rows give {computed:?}")]
    Verdict {
        /// The entry.
        entry: String,
        /// What the file says.
        found: Verdict,
        /// What it should say.
        computed: Verdict,
    },
}

impl Report {
    /// The JSON document, indented, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has text keys and finite numbers only");
        text.push('\n');
        text
    }

    /// Reads a report and computes its medians, spreads and verdicts again.
    ///
    /// # Errors
    /// If it is no report, or says other than its values give.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let report: Self = serde_json::from_str(text).map_err(ReportError::Json)?;
        for entry in &report.entries {
            entry.check_values().map_err(ReportError::Rows)?;
            for row in &entry.rows {
                let made = row.recomputed().map_err(|error| ReportError::Rows(error.into()))?;
                if made != *row {
                    return Err(ReportError::Row { entry: entry.entry.clone(), row: row.name.clone() });
                }
            }
            let computed = verdict(&entry.entry, &entry.rows).map_err(ReportError::Rows)?;
            if computed != entry.verdict {
                return Err(ReportError::Verdict { entry: entry.entry.clone(), found: entry.verdict, computed });
            }
        }
        Ok(report)
    }
}

/// The verdict that `rows` give.
///
/// # Errors
/// If two rows share a name, none is a figure, or an assumption explains no figure or under another bar.
pub(super) fn verdict(entry: &str, rows: &[Row]) -> Result<Verdict, ReproduceError> {
    let wrong = |problem: String| ReproduceError::Rows { entry: entry.to_owned(), problem };
    let mut names = BTreeSet::new();
    if let Some(row) = rows.iter().find(|row| !names.insert(row.name.as_str())) {
        return Err(wrong(format!("two rows are called \"{}\"", row.name)));
    }
    let figures: Vec<&Row> = rows.iter().filter(|row| row.role == Role::Figure && row.bar().is_some()).collect();
    if figures.is_empty() {
        return Err(wrong("no row is a figure of the paper".to_owned()));
    }
    // (what was changed, the row that it explains), of those that reach the figure.
    let mut reaching = BTreeSet::new();
    for row in rows {
        let Role::Assumption { explains, changed } = &row.role else { continue };
        let same_bar = |figure: &&&Row| figure.name == *explains && figure.bar() == row.bar();
        if figures.iter().find(same_bar).is_none() {
            return Err(wrong(format!("row \"{}\" explains no figure called \"{explains}\" with its bar", row.name)));
        }
        if row.reached == Some(true) {
            reaching.insert((changed.as_str(), explains.as_str()));
        }
    }
    let short: Vec<&str> =
        figures.iter().filter(|row| row.reached == Some(false)).map(|row| row.name.as_str()).collect();
    let explains_all = |changed: &str| short.iter().all(|name| reaching.contains(&(changed, *name)));
    Ok(if short.is_empty() {
        Verdict::Reached
    } else if reaching.iter().any(|&(changed, _)| explains_all(changed)) {
        Verdict::Explained
    } else {
        Verdict::Short
    })
}
