//! Reading and writing documents, and saying where a problem is.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

impl Syntax {
    /// The syntax that a file's extension says.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    /// Reads a document of any format.
    ///
    /// # Errors
    /// The first thing that is not as the format says, with line and column.
    pub fn read<T: DeserializeOwned>(self, text: &str) -> Result<T, DocumentProblem> {
        match self {
            Self::Json => serde_json::from_str(text).map_err(|error| {
                // serde_json ends its messages with the place, which is told apart here.
                let (whole, place) =
                    (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
                let message = whole.strip_suffix(&place).unwrap_or(&whole).to_owned();
                DocumentProblem { place: Place::Text { line: error.line(), column: error.column() }, message }
            }),
            Self::Toml => toml::from_str(text).map_err(|error| {
                let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
                let line = before.matches('\n').count() + 1;
                let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
                DocumentProblem { place: Place::Text { line, column }, message: error.message().to_owned() }
            }),
        }
    }

    /// Writes a document of any format.
    ///
    /// # Errors
    /// A number that the syntax can't hold: TOML's end at 2^63 − 1.
    pub fn write<T: Serialize>(self, document: &T) -> Result<String, DocumentProblem> {
        let problem = |message| DocumentProblem { place: Place::Field("document".to_owned()), message };
        match self {
            Self::Json => serde_json::to_string_pretty(document).map_err(|error| problem(error.to_string())),
            Self::Toml => toml::to_string(document).map_err(|error| problem(error.to_string())),
        }
    }
}

/// One thing wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct DocumentProblem {
    /// Where.
    pub place: Place,
    /// What is wrong, with the value.
    pub message: String,
}

/// Where in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the text; both count from 1.
    Text {
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
    /// By path, as `nodes[1].rack`; entries count from 0.
    Field(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::Field(path) => f.write_str(path),
        }
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<DocumentProblem>);

impl Problems {
    pub(super) fn add(&mut self, field: impl fmt::Display, message: impl fmt::Display) {
        self.0.push(DocumentProblem { place: Place::Field(field.to_string()), message: message.to_string() });
    }

    /// The value, if the problem was not that it could not be had.
    pub(super) fn keep<T, E: fmt::Display>(&mut self, field: impl fmt::Display, value: Result<T, E>) -> Option<T> {
        value.map_err(|error| self.add(field, error)).ok()
    }

    pub(super) fn format(&mut self, found: &str, wanted: &str) {
        if found != wanted {
            self.add("format", format_args!("is \"{found}\", not \"{wanted}\""));
        }
    }

    /// A name that must be there.
    pub(super) fn name(&mut self, field: impl fmt::Display, name: &str) {
        if name.is_empty() || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.add(
                field,
                format_args!("{name:?} is no name: it is empty or holds white space or a control character"),
            );
        }
    }

    pub(super) fn done(self) -> Result<(), Vec<DocumentProblem>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}
