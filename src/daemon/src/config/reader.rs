//! Reads spanned TOML and remembers every problem, so that one run names them all.

use super::urls::{shown, without_secrets};
use hintd_model::solve::nearest;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file's name as given.
    pub file: String,
    /// Counts from 1; 0: of no line.
    pub line: usize,
    /// Dotted key; empty where the text is no TOML.
    pub key: String,
    /// What is wrong, with the value.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key, message } = self;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ":{line}")?;
        }
        if !key.is_empty() {
            write!(f, ": {key}")?;
        }
        write!(f, ": {message}")
    }
}

/// Everything that is wrong with a configuration file, in the order of its lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<Problem>);

/// Where problems are collected while a file is read.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    problems: Vec<Problem>,
    asked: Vec<String>,
}

impl<'t> Reader<'t> {
    pub(super) const fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, problems: Vec::new(), asked: Vec::new() }
    }

    /// Notes a problem at a byte of the text.
    pub(super) fn problem(&mut self, at: usize, key: &str, message: impl Into<String>) {
        let line = self.line(at);
        // What is wrong is told with the value, and goes to logs: a URL's password or token does not.
        let message: String = message.into();
        let message = without_secrets(&message, &mut |_, _| {});
        self.problems.push(Problem { file: self.file.to_owned(), line, key: key.to_owned(), message });
    }

    /// The line of a byte of the text.
    pub(super) fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count()
    }

    /// Every single-valued key that was asked for: what the file may say.
    pub(super) fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// What was noted, by line.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
        self.problems
    }
}

/// One table being read: every key that is asked for is known; the rest is refused at the end.
pub(super) struct Section<'i> {
    path: String,
    at: usize,
    table: DeTable<'i>,
    known: Vec<(&'static str, Option<usize>)>,
}

impl<'i> Section<'i> {
    pub(super) fn root(table: Spanned<DeTable<'i>>) -> Self {
        Self { path: String::new(), at: 0, table: table.into_inner(), known: Vec::new() }
    }

    /// Where the section stands.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Where a key that was read stands, for rules that span several keys; the section where it is absent.
    pub(super) fn place(&self, name: &str) -> usize {
        let found = self.known.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, place)| *place).unwrap_or(self.at)
    }

    /// The dotted name of a key of this section.
    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn take(&mut self, name: &'static str) -> Option<(usize, DeValue<'i>)> {
        let value = self.table.remove(name);
        self.known.push((name, value.as_ref().map(|value| value.span().start)));
        value.map(|value| (value.span().start, value.into_inner()))
    }

    /// A sub-table; empty where it is absent.
    pub(super) fn section(&mut self, reader: &mut Reader<'_>, name: &'static str) -> Section<'i> {
        let path = self.key(name);
        let at = self.at;
        match self.take(name) {
            None => Section { path, at, table: DeTable::default(), known: Vec::new() },
            Some((at, DeValue::Table(table))) => Section { path, at, table, known: Vec::new() },
            Some((at, other)) => {
                reader.problem(at, &path, format!("a table is wanted, and this is {}", article(&other)));
                Section { path, at, table: DeTable::default(), known: Vec::new() }
            }
        }
    }

    /// All sub-tables under free names (queues, policies), in the order of their names.
    pub(super) fn named_sections(&mut self, reader: &mut Reader<'_>) -> Vec<(String, Section<'i>)> {
        let mut named = Vec::new();
        for (name, value) in std::mem::take(&mut self.table) {
            let path = self.key(name.get_ref());
            let at = value.span().start;
            match value.into_inner() {
                DeValue::Table(table) => {
                    let section = Section { path, at, table, known: Vec::new() };
                    named.push((name.get_ref().to_string(), section));
                }
                other => reader.problem(at, &path, format!("a table is wanted, and this is {}", article(&other))),
            }
        }
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named
    }

    /// All keys under free names, in the order of their names.
    pub(super) fn free_keys<T: Key>(&mut self, reader: &mut Reader<'_>) -> Vec<(String, T)> {
        let mut keys = Vec::new();
        for (name, value) in std::mem::take(&mut self.table) {
            match read::<T>(value.get_ref()) {
                Ok(read) => keys.push((name.get_ref().to_string(), read)),
                Err(message) => reader.problem(value.span().start, &self.key(name.get_ref()), message),
            }
        }
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        keys
    }

    /// The rest of the section as a table with spans, for a policy to read its parameters from.
    pub(super) fn into_table(self) -> Spanned<DeTable<'i>> {
        Spanned::new(self.at..self.at, self.table)
    }

    /// Any key of a kind; the default where it is absent or wrong (and then a problem is noted).
    pub(super) fn get<T: Key>(&mut self, reader: &mut Reader<'_>, name: &'static str, default: T) -> T {
        let key = self.key(name);
        reader.asked.push(key.clone());
        let Some((at, value)) = self.take(name) else { return default };
        read::<T>(&value).unwrap_or_else(|message| {
            reader.problem(at, &key, message);
            default
        })
    }

    /// As [`Section::get`], and within bounds.
    pub(super) fn bounded<T: Key + PartialOrd + Bound>(
        &mut self,
        reader: &mut Reader<'_>,
        name: &'static str,
        default: T,
        bounds: std::ops::RangeInclusive<T>,
    ) -> T {
        let at = self.table.get(name).map_or(self.at, |value| value.span().start);
        let value = self.get(reader, name, default.clone());
        if bounds.contains(&value) {
            return value;
        }
        let (low, high) = bounds.into_inner();
        let message = format!("{} is outside {} to {}", value.show(), low.show(), high.show());
        reader.problem(at, &self.key(name), message);
        default
    }

    /// Refuses every key that was not asked for, naming the nearest known one.
    pub(super) fn finish(self, reader: &mut Reader<'_>) {
        for (name, _) in &self.table {
            let near = nearest(name.get_ref(), self.known.iter().map(|(known, _)| *known));
            let hint = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            reader.problem(name.span().start, &self.key(name.get_ref()), format!("unknown key{hint}"));
        }
    }
}

/// A value that a key may have.
pub(super) trait Key: Clone {
    fn read(value: &DeValue<'_>) -> Result<Self, String>;
}

/// Reads a value; a password that it may have in it, whatever it was to be, is not in the message.
fn read<T: Key>(value: &DeValue<'_>) -> Result<T, String> {
    fn without(message: String, value: &DeValue<'_>) -> String {
        match value {
            DeValue::String(text) if text.contains(['@', '?', '#']) => message.replace(&**text, &shown(text)),
            DeValue::Array(rows) => rows.iter().fold(message, |message, row| without(message, row.get_ref())),
            _ => message,
        }
    }
    T::read(value).map_err(|message| without(message, value))
}

/// A value with bounds, printable for the message.
pub(super) trait Bound {
    fn show(&self) -> String;
}

fn article(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", shown(text)),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(flag) => format!("the flag {flag}"),
        DeValue::Datetime(when) => format!("the date {when}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

impl Key for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("true or false is wanted, and this is {}", article(value)))
    }
}

impl Key for u64 {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let number =
            value.as_integer().ok_or_else(|| format!("a whole number is wanted, and this is {}", article(value)))?;
        Self::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| format!("{} is no whole number from 0 to {}", number.as_str(), Self::MAX))
    }
}

impl Bound for u64 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Key for Vec<String> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let rows = value.as_array().ok_or_else(|| format!("a list is wanted, and this is {}", article(value)))?;
        rows.iter().map(|row| String::read(row.get_ref())).collect()
    }
}

impl Key for u32 {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        u64::read(value).and_then(|number| Self::try_from(number).map_err(|error| error.to_string()))
    }
}

impl Bound for u32 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Key for usize {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        u64::read(value).and_then(|number| Self::try_from(number).map_err(|error| error.to_string()))
    }
}

impl Bound for usize {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Key for f64 {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = match value {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return Err(format!("a number is wanted, and this is {}", article(other))),
        };
        text.parse::<Self>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or_else(|| format!("{text} is no finite number"))
    }
}

impl Bound for f64 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Key for String {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("a text is wanted, and this is {}", article(value)))
    }
}

impl Key for SocketAddr {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value)?;
        text.parse().map_err(|_| format!("\"{text}\" is no address and port, as in \"127.0.0.1:8470\""))
    }
}

/// An address that may be switched off by the empty text.
impl Key for Option<SocketAddr> {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        if value.as_str() == Some("") { Ok(None) } else { SocketAddr::read(value).map(Some) }
    }
}

impl Key for Duration {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let text = String::read(value).map_err(|_| format!("{} needs a unit, as in \"30s\"", article(value)))?;
        duration(&text)
            .ok_or_else(|| format!("\"{text}\" is no duration, as in \"250ms\", \"30s\", \"10m\" or \"24h\""))
    }
}

impl Bound for Duration {
    fn show(&self) -> String {
        show_duration(*self)
    }
}

/// A whole number and a unit: ms, s, m, h.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let amount: u64 = text[..digits].parse().ok()?;
    let millis = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    amount.checked_mul(millis).map(Duration::from_millis)
}

/// As it would be written in the file.
pub(super) fn show_duration(span: Duration) -> String {
    let millis = span.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_print_as_they_are_written() {
        for text in ["0s", "2ms", "30s", "10m", "24h", "1500ms"] {
            assert_eq!(show_duration(duration(text).unwrap()), text);
        }
        for text in ["30", "s", "-1s", "1.5s", "1 s", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
    #[test]
    fn a_password_in_a_value_of_any_kind_is_left_out() {
        fn said<T: Key>(value: &str) -> String {
            read::<T>(&DeValue::String(value.into())).err().expect("refused")
        }
        for value in ["ann:hunter2@h:8470", "http://ann:hun/ter2@h:1", "http://ann:hun'ter2@h:1"] {
            let all = [said::<SocketAddr>(value), said::<Duration>(value), said::<u64>(value), said::<bool>(value)];
            for said in all {
                assert!(!said.contains("ter2") && said.contains("(left out)@h:"), "{said}");
            }
        }
    }
}
