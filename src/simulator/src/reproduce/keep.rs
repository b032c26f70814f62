//! Reports that are kept: one JSON file for each entry, and the page generated from them.

use super::error::Scale;
use super::registry::experiments;
use super::render;
use super::report::{Report, ReportError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a report was not kept, or the kept ones give no page.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// Samples are for looking at.
    #[error("only reports of full scale are kept")]
    Quick,
    /// A file that cannot be read or written.
    #[error("{}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A kept file that is no honest report.
    #[error("{}", path.display())]
    Report {
        /// Which.
        path: PathBuf,
        /// Why.
        source: ReportError,
    },
}

/// Writes each entry to `docs`/reproduction/NAME.json and generates `docs`/reproduction.md anew.
///
/// # Errors
/// [`KeepError`] for a report of quick scale, files that cannot be written, and kept ones that cannot be trusted.
pub fn keep(docs: &Path, report: &Report) -> Result<(), KeepError> {
    if report.scale != Scale::Full {
        return Err(KeepError::Quick);
    }
    let folder = docs.join("reproduction");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    for entry in &report.entries {
        let one = Report { entries: vec![entry.clone()], ..report.clone() };
        let path = folder.join(format!("{}.json", entry.entry));
        let text = serde_json::to_string_pretty(&one).map_err(|error| at(&path)(error.into()))?;
        std::fs::write(&path, text + "\n").map_err(at(&path))?;
    }
    let path = docs.join("reproduction.md");
    std::fs::write(&path, render::markdown(&kept(docs)?)).map_err(at(&path))
}

/// The reports kept in `docs`/reproduction, in the order of the registry.
///
/// # Errors
/// [`KeepError`] for files that cannot be read or trusted.
pub fn kept(docs: &Path) -> Result<Vec<Report>, KeepError> {
    let mut reports = Vec::new();
    for experiment in experiments() {
        let path = docs.join("reproduction").join(format!("{}.json", experiment.name));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                reports.push(Report::from_json(&text).map_err(|source| KeepError::Report { path, source })?);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(&path)(error)),
        }
    }
    Ok(reports)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> KeepError {
    let path = path.to_owned();
    move |source| KeepError::File { path, source }
}
