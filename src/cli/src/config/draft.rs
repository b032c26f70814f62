//! A configuration that is put together, with the reason of each line.

use std::fmt::Write as _;
use std::path::Path;

/// A line of a section.
#[derive(Debug)]
struct Line {
    key: &'static str,
    value: toml::Value,
    because: String,
}

/// Sections in their order, and what needs a look.
#[derive(Debug, Default)]
pub(super) struct Draft {
    sections: Vec<(&'static str, Vec<Line>)>,
    pub(super) notes: Vec<String>,
}

impl Draft {
    /// A key of a section, and which property says so.
    pub(super) fn set(
        &mut self,
        section: &'static str,
        key: &'static str,
        value: impl Into<toml::Value>,
        because: impl Into<String>,
    ) {
        let line = Line { key, value: value.into(), because: because.into() };
        match self.sections.iter_mut().find(|(name, _)| *name == section) {
            Some((_, lines)) => lines.push(line),
            None => self.sections.push((section, vec![line])),
        }
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// As a file.
    pub(super) fn text(&self, folder: &Path) -> String {
        let mut text = format!(
            "# Made from {}. What is not said here has its default (config/hintd.toml).\n",
            folder.display().to_string().escape_debug()
        );
        for (name, lines) in &self.sections {
            let _ = write!(text, "\n[{name}]\n"); // a String takes all
            for Line { key, value, because } in lines {
                let _ = writeln!(text, "# {}\n{key} = {value}", because.escape_debug());
            }
        }
        text
    }
}
