//! Input files: JSON or TOML by extension, problems told with file, line and field.

use super::failure::Failure;
use hintd_model::cluster::document::Syntax;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::path::Path;

/// Reads a document.
///
/// # Errors
/// [`Failure::Input`] naming the file, and the line where it is no such document.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let syntax = syntax(path)?;
    let text = std::fs::read_to_string(path).map_err(|error| Failure::in_file(path, error))?;
    syntax.read(&text).map_err(|problem| Failure::in_file(path, problem))
}

/// Writes a document, JSON or TOML by extension.
///
/// # Errors
/// [`Failure::Input`] for another extension, [`Failure::Work`] where it can't be written.
pub fn write<T: serde::Serialize>(path: &Path, document: &T) -> Result<(), Failure> {
    let text = syntax(path)?.write(document).map_err(|problem| Failure::in_file(path, problem))?;
    write_text(path, &text)
}

/// Writes a text file.
///
/// # Errors
/// [`Failure::Work`] naming the file.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::work(format!("{}: {error}", path.display())))
}

/// All that is wrong with a file, one line each.
#[must_use]
pub fn problems(path: &Path, problems: &[impl Display]) -> Failure {
    let lines: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", path.display())).collect();
    Failure::Input(lines.join("\n"))
}

fn syntax(path: &Path) -> Result<Syntax, Failure> {
    let name = path.to_string_lossy();
    Syntax::of_file(&name)
        .ok_or_else(|| Failure::in_file(path, "the name must end in .json or .toml, which says how it is written"))
}
