//! Where a command's words go: one JSON document or tables on standard output, progress on standard error.

pub use hintd::findings::count;
pub use hintd::findings::quantities::{age, bytes, digits, percent, rate, seconds, whole_time};

use super::colors;
use super::failure::Failure;
use super::layout;
use super::pager;
use super::printable::{one_line, one_line_strings, printable, printable_json};
use super::width;
use hintd_client::view;
use prost::{Message, Name};
use serde::Serialize;
use serde_json::{Number, Value};
use std::io::{ErrorKind, Write as _};

/// A figure in the unit that its name ends with.
pub fn in_units(name: &str, value: f64) -> String {
    match name {
        _ if !value.is_finite() => "-".to_owned(),
        name if name.ends_with("_bytes") => bytes(value),
        name if name.ends_with("_s") => seconds(value),
        _ => digits(value),
    }
}

/// A cost term's name for people: as JSON, metrics and docs/policies.md have it, without its unit and underscores. The page says
/// the same.
#[must_use]
pub fn term(name: &str) -> String {
    let name = name.strip_prefix("part.").unwrap_or(name);
    let bare = name.strip_suffix("_bits_per_s").or_else(|| name.strip_suffix("_s")).unwrap_or(name);
    bare.replace("cross_rack", "cross-rack").replace('_', " ")
}

/// Words in lines of at most `width`.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Where columns are that a table had no room for.
const ELSEWHERE: &str = "a wider terminal has them, and a pipe";
const IN_WIDE: &str = "-o wide has them";

/// A list as it is shown in so many columns; with `is_wide` all of it, however wide it is.
#[must_use]
pub fn list(columns: usize, is_wide: bool, make: impl FnOnce() -> String) -> String {
    layout::fitted(if is_wide { width::ANY } else { columns }, IN_WIDE, make)
}

/// A command's output. Tables fit the terminal, or what COLUMNS says, and prose is broken between words there.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    /// Documents are YAML.
    in_yaml: bool,
    /// Texts that are longer than the terminal go through a pager.
    paged: bool,
}

impl Output {
    /// JSON for scripts, or text for people.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self { json, in_yaml: false, paged: false }
    }

    /// YAML for scripts.
    #[must_use]
    pub const fn yaml() -> Self {
        Self { json: true, in_yaml: true, paged: false }
    }

    /// The same with a pager for texts that are longer than the terminal, or without.
    #[must_use]
    pub const fn paged(self, paged: bool) -> Self {
        Self { paged, ..self }
    }

    /// Whether a script reads.
    #[must_use]
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// The command's result: the document for scripts, the text for people.
    ///
    /// # Errors
    /// If standard output can't be written, other than closed by its reader.
    pub fn result(self, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.document(document) } else { self.text(text) }
    }

    /// The command's result, of which scripts get the keys in alphabetical order.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn sorted(self, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.document(&sorted(document)?) } else { self.text(text) }
    }

    /// A daemon's answer: the document for scripts; for people what `text` makes of it, of which no string can pretend to
    /// be a line of its own, or to be something else than it is.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn answer<M>(self, answer: &M, text: impl FnOnce(&M) -> String) -> Result<(), Failure>
    where
        M: Message + Name + Default + Serialize,
    {
        self.result(answer, || text(&one_line_strings(answer)))
    }

    /// The same, of which scripts get the keys in alphabetical order.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn sorted_answer<M>(self, answer: &M, text: impl FnOnce(&M) -> String) -> Result<(), Failure>
    where
        M: Message + Name + Default + Serialize,
    {
        self.sorted(answer, || text(&one_line_strings(answer)))
    }

    /// A line for people only, before the result.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn line(self, line: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { self.paged(false).text(|| line.to_owned()) }
    }

    /// A list for people, of which `is_wide` has all, however wide it is.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn list(self, is_wide: bool, text: impl FnOnce() -> String) -> Result<(), Failure> {
        self.as_it_is(&list(width::of_output(), is_wide, text))
    }

    /// The command's result: the document for scripts, else a text that is a file of its own and stays as it is.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn file(self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        if self.json { self.document(document) } else { self.as_it_is(text) }
    }

    /// The command's result, of which scripts get the keys in alphabetical order; people get a text, and below it lines of a file
    /// that stay as they are.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn sorted_with_file(
        self,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
        file: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            return self.document(&sorted(document)?);
        }
        let text = layout::fitted(width::of_output(), ELSEWHERE, text);
        self.as_it_is(&format!("{text}\n{}", file()))
    }

    /// One document: JSON, or YAML with its keys in alphabetical order.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        if self.in_yaml {
            let mut text = String::new();
            yaml(&sorted(document)?, 0, &mut text);
            return print(&printable_json(&text));
        }
        let text = serde_json::to_string_pretty(document).map_err(|error| Failure::Work(error.into()))?;
        print(&printable_json(&text))
    }

    /// One JSON document of many, on a line of its own.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn row(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(|error| Failure::Work(error.into()))?;
        print(&printable_json(&text))
    }

    /// A word on how things go.
    pub fn progress(self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{}", printable(line)); // nobody may be reading
    }

    fn text(self, text: impl FnOnce() -> String) -> Result<(), Failure> {
        self.as_it_is(&layout::fitted(width::of_output(), ELSEWHERE, text))
    }

    fn as_it_is(self, text: &str) -> Result<(), Failure> {
        let text = printable(text);
        let painted = colors::painted(&text, colors::wanted());
        if self.paged && pager::shows(&text, &painted) { Ok(()) } else { print(&painted) }
    }
}

/// A value in YAML's block style. Strings and keys are written as in JSON, which YAML 1.2 takes for the same: whatever is in them,
/// they are strings.
fn yaml(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                *text += &format!("{indent}{}:", yaml_key(key));
                yaml_below(value, depth + 1, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut below = String::new();
                yaml(item, depth + 1, &mut below);
                // The first line of the item stands behind its dash.
                *text += &format!("{indent}- {}", below.trim_start());
            }
        }
        Value::Number(number) => *text += &format!("{indent}{}\n", yaml_number(number)),
        flat => *text += &format!("{indent}{flat}\n"),
    }
}

/// A number that YAML 1.1 takes for one, too: what has an exponent has a point before it and a sign in it.
fn yaml_number(number: &Number) -> String {
    let text = number.to_string();
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{digits}{point}e{sign}{exponent}")
}

/// What a key has: below it, or in its line.
fn yaml_below(value: &Value, depth: usize, text: &mut String) {
    let nested = match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    *text += if nested { "\n" } else { " " };
    yaml(value, if nested { depth } else { 0 }, text);
}

/// A key as it is, where nothing in it could be read as something else.
fn yaml_key(key: &str) -> String {
    let plain = key.starts_with(|letter: char| letter.is_ascii_lowercase())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !matches!(key, "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain { key.to_owned() } else { Value::from(key).to_string() }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = write!(out, "{text}{end}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Work(error.into())),
        _ => Ok(()), // a reader that has seen enough, as `head`
    }
}

/// A document with its keys in alphabetical order, to be part of another.
///
/// # Errors
/// For what is no JSON.
pub fn sorted(document: &impl Serialize) -> Result<Value, Failure> {
    view::sorted(document).map_err(|error| Failure::Work(error.into()))
}

/// A plain table; columns after the first `left` are aligned right.
#[must_use]
pub fn table<const N: usize>(header: [&str; N], left: usize, rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut cells = Vec::new();
    rows.into_iter().for_each(|row| cells.extend(row.iter().map(|cell| one_line(cell).into_owned())));
    layout::table(&header, left, &cells)
}

/// As [`table`] with columns that only the rows' source knows, whose names are not to be trusted either.
#[must_use]
pub fn wide_table(header: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header: Vec<_> = header.iter().map(|name| one_line(name)).collect();
    let header: Vec<&str> = header.iter().map(|name| &**name).collect();
    let mut cells = Vec::new();
    rows.into_iter().for_each(|row| cells.extend(row.iter().map(|cell| one_line(cell).into_owned())));
    layout::table(&header, left, &cells)
}

/// Name and value, one pair a line.
#[must_use]
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = pairs.iter().map(|(name, value)| format!("{name:width$}  {}", one_line(value)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("overlong word", 4), ["overlong", "word"]);
    }

    #[test]
    fn yaml_is_in_blocks_and_strings_are_strings_whatever_is_in_them() {
        let value = serde_json::json!({
            "empty": [], "list": [{ "a": 1, "b": ["x", null] }, "no"], "off": "a: b\n", "nothing": {}, "x.y": true
        });
        let mut text = String::new();
        yaml(&value, 0, &mut text);
        let expected = "empty: []\nlist:\n  - a: 1\n    b:\n      - \"x\"\n      - null\n  - \"no\"\nnothing: {}\n\
            \"off\": \"a: b\\n\"\n\"x.y\": true\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn numbers_with_an_exponent_are_numbers_in_yaml_1_1() {
        let of = |value: f64| yaml_number(&Number::from_f64(value).unwrap());
        assert_eq!([of(1e-7), of(-2.5e-9), of(1e300), of(1.5e300)], ["1.0e-7", "-2.5e-9", "1.0e+300", "1.5e+300"]);
        assert_eq!([of(0.25), of(3.0), yaml_number(&7.into())], ["0.25", "3.0", "7"]);
        let mut text = String::new();
        yaml(&serde_json::json!({ "a": [1e-7] }), 0, &mut text);
        assert_eq!(text, "a:\n  - 1.0e-7\n");
    }

    #[test]
    fn tables_have_no_trailing_blanks_and_numbers_stand_right() {
        let text = table(["host", "n"], 1, [["a".to_owned(), "5".to_owned()], ["long".to_owned(), "500".to_owned()]]);
        assert_eq!(text, "host    n\na       5\nlong  500");
    }
}
