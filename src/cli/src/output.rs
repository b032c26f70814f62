//! Where a command's words go: one JSON document or tables on standard output, progress on standard error.

use super::colors;
use super::failure::Failure;
use super::printable::{one_line, one_line_strings, printable, printable_json};
use comfy_table::{CellAlignment, Table, presets};
use hintd_client::view;
use prost::{Message, Name};
use serde::Serialize;
use serde_json::Value;
use std::io::{ErrorKind, Write as _};

/// A command's output.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// JSON for scripts, or text for people.
    #[must_use]
    pub const fn new(json: bool) -> Self {
        Self { json }
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
        if self.json { self.document(document) } else { self.text(&text()) }
    }

    /// The command's result, of which scripts get the keys in alphabetical order.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn sorted(self, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.document(&sorted(document)?) } else { self.text(&text()) }
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
        if self.json { Ok(()) } else { self.text(line) }
    }

    /// One JSON document.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(|error| Failure::Work(error.into()))?;
        print(&printable_json(&text))
    }

    /// One document as YAML, its keys in alphabetical order.
    ///
    /// # Errors
    /// As [`Output::result`].
    pub fn yaml(self, document: &impl Serialize) -> Result<(), Failure> {
        let mut text = String::new();
        yaml(&sorted(document)?, 0, &mut text);
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

    fn text(self, text: &str) -> Result<(), Failure> {
        print(&colors::painted(&printable(text), colors::wanted()))
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
        flat => *text += &format!("{indent}{flat}\n"),
    }
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
    laid_out(&header, left, &cells)
}

/// As [`table`] with columns that only the rows' source knows, whose names are not to be trusted either.
#[must_use]
pub fn wide_table(header: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header: Vec<_> = header.iter().map(|name| one_line(name)).collect();
    let header: Vec<&str> = header.iter().map(|name| &**name).collect();
    let mut cells = Vec::new();
    rows.into_iter().for_each(|row| cells.extend(row.iter().map(|cell| one_line(cell).into_owned())));
    laid_out(&header, left, &cells)
}

/// Not generic, so that it is compiled once: the rows stand one after another.
fn laid_out(header: &[&str], left: usize, cells: &[String]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for row in cells.chunks(header.len().max(1)) {
        table.add_row(row);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        let alignment = if at < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
        column.set_padding(if at == 0 { (0, 1) } else { (1, 1) });
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Name and value, one pair a line.
#[must_use]
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = pairs.iter().map(|(name, value)| format!("{name:width$}  {}", one_line(value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Bytes, three digits: `1.23 GB` (decimal, as links count).
#[must_use]
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1e3, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// Bits per second: `10 Gbit/s`.
#[must_use]
pub fn rate(bits_per_s: f64) -> String {
    scaled(bits_per_s, 1e3, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s"])
}

/// Seconds, in the unit that reads best: `340 us`, `2.1 ms`, `1.5 s`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{} s", digits(seconds))
    } else if seconds >= 1e-3 {
        format!("{} ms", digits(seconds * 1e3))
    } else {
        format!("{} us", digits(seconds * 1e6))
    }
}

/// For how long something has been so, from milliseconds.
#[must_use]
pub fn age(ms: u64) -> String {
    seconds(ms as f64 / 1e3)
}

/// A time that was set, in the greatest unit of which it is two or more: `60 s`, `30 min`, `12 h`, `7 d`.
#[must_use]
pub fn whole_time(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min")];
    let whole = units.iter().find(|(unit, _)| ms.is_multiple_of(*unit) && ms / unit >= 2);
    whole.map_or_else(|| seconds(ms as f64 / 1e3), |(unit, name)| format!("{} {name}", ms / unit))
}

/// Three significant digits, no needless zeros.
#[must_use]
pub fn digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(6);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A share in whole percent; what is rounded to nothing has no sign.
#[must_use]
pub fn percent(share: f64) -> String {
    let text = format!("{:.0} %", share * 100.0);
    text.strip_prefix("-0 ").map_or_else(|| text.clone(), |rest| format!("0 {rest}"))
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let (first, mut value, mut unit) = (units[0], value, 0);
    // There is no part of a byte or of a bit: it comes of means.
    if value > 0.0 && value < 1.0 {
        return format!("<1 {first}");
    }
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!([bytes(0.0), bytes(999.0), bytes(1234567.0)], ["0 B", "999 B", "1.23 MB"]);
        assert_eq!(bytes(999_999.0), "1 MB");
        assert_eq!(rate(1e10), "10 Gbit/s");
        assert_eq!([seconds(0.0), seconds(0.0123), seconds(2.5)], ["0 us", "12.3 ms", "2.5 s"]);
        assert_eq!(digits(100.0), "100");
        assert_eq!([digits(-0.0), digits(-1e-9), digits(-0.5)], ["0", "0", "-0.5"]);
        assert_eq!([percent(-0.003), percent(-0.006), percent(0.126)], ["0 %", "-1 %", "13 %"]);
        assert_eq!([bytes(0.477), bytes(1.0), rate(0.2)], ["<1 B", "1 B", "<1 bit/s"]);
        let times = [60_000, 90_000, 1_800_000, 43_200_000, 604_800_000].map(whole_time);
        assert_eq!(times, ["60 s", "90 s", "30 min", "12 h", "7 d"]);
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
    fn tables_have_no_trailing_blanks_and_numbers_stand_right() {
        let text = table(["host", "n"], 1, [["a".to_owned(), "5".to_owned()], ["long".to_owned(), "500".to_owned()]]);
        assert_eq!(text, "host    n\na       5\nlong  500");
    }
}
