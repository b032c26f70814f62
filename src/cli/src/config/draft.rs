//! A configuration that is put together, with the reason of each line.

use super::super::printable::one_line;
use std::fmt::Write as _;
use std::path::Path;

/// A line of a section.
#[derive(Debug)]
struct Line {
    key: &'static str,
    value: toml::Value,
    because: String,
}

impl Line {
    fn written(&self) -> String {
        format!("{} = {}", self.key, self.value)
    }
}

/// A section: what is said, and what may have to be added by hand.
#[derive(Debug)]
struct Section {
    name: &'static str,
    lines: Vec<Line>,
    hints: Vec<String>,
}

/// Sections in their order, and what needs a look.
#[derive(Debug, Default)]
pub(super) struct Draft {
    sections: Vec<Section>,
    pub(super) notes: Vec<String>,
    /// Values that Hadoop itself could not read.
    pub(super) problems: Vec<String>,
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
        match self.sections.iter_mut().find(|of| of.name == section) {
            Some(of) => of.lines.push(line),
            None => self.sections.push(Section { name: section, lines: vec![line], hints: Vec::new() }),
        }
    }

    /// A comment at the end of a section that is there: what no key says. Whether it is there.
    pub(super) fn hint(&mut self, section: &str, hint: impl Into<String>) -> bool {
        let section = self.sections.iter_mut().find(|of| of.name == section);
        section.map(|of| of.hints.push(hint.into())).is_some()
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Which properties say what stands in this line of [`Self::text`]; `None`: none do.
    pub(super) fn because(&self, text: &str, line: usize) -> Option<&str> {
        let written = text.lines().nth(line.checked_sub(1)?)?;
        let section = text.lines().take(line).filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')).last()?;
        let of = self.sections.iter().find(|of| of.name == section)?;
        of.lines.iter().find(|of| written == of.written()).map(|of| &*of.because)
    }

    /// As a file.
    pub(super) fn text(&self, folder: &Path) -> String {
        let mut text = format!(
            "# Made from {}. What is not said here has its default (config/hintd.toml).\n",
            folder.display().to_string().escape_debug()
        );
        if !self.notes.is_empty() {
            text += "#\n# What needs a look:\n";
        }
        for note in &self.notes {
            let _ = writeln!(text, "# - {}", one_line(note)); // a stranger's value makes no lines
        }
        for Section { name, lines, hints } in &self.sections {
            let _ = write!(text, "\n[{name}]\n"); // a String takes all
            for line in lines {
                let _ = writeln!(text, "# {}\n{}", line.because.escape_debug(), line.written());
            }
            for hint in hints {
                let _ = writeln!(text, "# {hint}");
            }
        }
        text
    }
}
