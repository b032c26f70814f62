//! Input files: JSON or TOML by extension, problems told with file, line and field.

use super::failure::Failure;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads a document.
///
/// # Errors
/// [`Failure::Input`] naming the file, and the line where it is no such document.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = read_text(path)?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::from_str(&text).map_err(|error| Failure::in_file(path, json_problem(&error))),
        Some("toml") => toml::from_str(&text).map_err(|error| Failure::in_file(path, toml_problem(&text, &error))),
        _ => Err(Failure::in_file(path, "the name must end in .json or .toml, which says how to read it")),
    }
}

/// Reads a text file.
///
/// # Errors
/// [`Failure::Input`] naming the file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::in_file(path, error))
}

/// Writes a document, JSON or TOML by extension.
///
/// # Errors
/// [`Failure::Input`] for another extension, [`Failure::Work`] where it can't be written.
pub fn write<T: serde::Serialize>(path: &Path, document: &T) -> Result<(), Failure> {
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => serde_json::to_string_pretty(document).map_err(anyhow::Error::from)? + "\n",
        Some("toml") => toml::to_string(document).map_err(anyhow::Error::from)?,
        _ => return Err(Failure::in_file(path, "the name must end in .json or .toml, which says how to write it")),
    };
    write_text(path, &text)
}

/// Writes a text file.
///
/// # Errors
/// [`Failure::Work`] naming the file.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::work(format!("{}: {error}", path.display())))
}

fn json_problem(error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    // serde_json appends the place itself: said once, in front, is enough.
    let text = error.to_string();
    let bare = text.split(" at line ").next().unwrap_or(&text);
    format!("{place}: {bare}")
}

fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_owned(),
    }
}
