//! Input files: JSON or TOML by extension, problems told with file, line and field.

use super::connect::GATHERED_BYTES;
use super::failure::Failure;
use hintd_model::cluster::document::Syntax;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a document.
///
/// # Errors
/// [`Failure::Input`] naming the file, and the line where it is no such document.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let syntax = syntax(path)?;
    let text = read_text(path)?;
    syntax.read(&text).map_err(|problem| Failure::in_file(path, problem))
}

/// What standard input is called where something is wrong with it.
pub const STDIN: &str = "standard input";

/// Reads a document from standard input: JSON where it begins with a `{`, else TOML.
///
/// # Errors
/// As [`read`].
pub fn read_stdin<T: DeserializeOwned>() -> Result<T, Failure> {
    let text = text_of(Path::new(STDIN), Ok(std::io::stdin().lock()), INPUT_BYTES)?;
    let syntax = if text.trim_start().starts_with('{') { Syntax::Json } else { Syntax::Toml };
    syntax.read(&text).map_err(|problem| Failure::in_file(Path::new(STDIN), problem))
}

/// Bytes of a file that is read at once: what a snapshot may have.
const INPUT_BYTES: u64 = GATHERED_BYTES;

/// Reads a text file, or what comes out of a pipe, up to a bound: something that never ends is an error, not all memory.
///
/// # Errors
/// [`Failure::Input`] naming the file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    read_text_within(path, INPUT_BYTES)
}

/// The same of a file that may have only so many bytes, whole MiB.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_within(path: &Path, most: u64) -> Result<String, Failure> {
    text_of(path, File::open(path), most)
}

/// `name`: what it comes from, for errors.
fn text_of(name: &Path, from: std::io::Result<impl Read>, most: u64) -> Result<String, Failure> {
    let mut text = String::new();
    match from.and_then(|from| from.take(most + 1).read_to_string(&mut text)) {
        Err(error) => Err(Failure::in_file(name, error)),
        Ok(bytes) if bytes as u64 > most => {
            Err(Failure::in_file(name, format!("it has more than {most} bytes ({} MiB)", most >> 20)))
        }
        Ok(_) => Ok(text),
    }
}

/// Writes a document, JSON or TOML by extension.
///
/// # Errors
/// [`Failure::Input`] for another extension, [`Failure::Work`] where it can't be written.
pub fn write<T: serde::Serialize>(path: &Path, document: &T) -> Result<(), Failure> {
    write_text(path, &text_for(path, document)?)
}

/// What [`write()`] would write.
///
/// # Errors
/// [`Failure::Input`] for another extension.
pub fn text_for<T: serde::Serialize>(path: &Path, document: &T) -> Result<String, Failure> {
    syntax(path)?.write(document).map_err(|problem| Failure::in_file(path, problem))
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

/// How a file is written, by its extension.
///
/// # Errors
/// [`Failure::Input`] for another extension.
pub fn syntax(path: &Path) -> Result<Syntax, Failure> {
    let name = path.to_string_lossy();
    Syntax::of_file(&name)
        .ok_or_else(|| Failure::in_file(path, "the name must end in .json or .toml, which says how it is written"))
}
