//! `--sort COLUMN` on lists: rows by what a column holds, and not by how it is written; of all rows, before `--limit`.

use super::failure::Failure;
use super::output::Output;
use super::width;
use clap::Args;
use hintd_model::solve::nearest;
use std::cell::Cell as Noted;
use std::cmp::Ordering;
use tonic::Response;

/// By which column rows are sorted.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SortArgs {
    /// Sort by this column, ascending, or with a '-' before it descending; --limit takes the first of these. A column that
    /// only -o wide has brings that table
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<String>,
}

/// What a row has in a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Number(f64),
    Text(String),
    /// A number of a better or worse kind: the better kind, of the smaller grade, stands first, whichever way rows are sorted.
    Graded(u8, f64),
    /// Nothing: it stands last, whichever way rows are sorted.
    Nothing,
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(f64::from(number))
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        if text.is_empty() { Self::Nothing } else { Self::Text(text.to_owned()) }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Nothing, Into::into)
    }
}

/// What a row has in a column.
pub(super) type CellOf<R> = fn(&R) -> Cell;

/// A column's name, which is that of its header with '-' for spaces, in any case, and what a row has in it. Further names of
/// one column stand after the first, with '|' between.
pub(super) type Column<R> = (&'static str, CellOf<R>);

/// How rows are sorted, and how many are shown.
pub(super) struct Order<R> {
    /// By what, and whether down; `None`: as they come.
    by: Option<(CellOf<R>, bool)>,
    /// The names of that column.
    names: &'static str,
    limit: u32,
    /// Rows that were sorted, and how many there are, where the daemon did not send all.
    of: Noted<Option<(usize, u64)>>,
}

impl SortArgs {
    #[cfg(test)]
    pub(super) fn by(column: &str) -> Self {
        Self { sort: Some(column.to_owned()) }
    }

    /// What is wanted of these columns.
    ///
    /// # Errors
    /// [`Failure::Input`] for a column that is none, with those that there are.
    pub(super) fn of<R>(&self, columns: &[Column<R>], limit: u32) -> Result<Order<R>, Failure> {
        let order = |by, names| Order { by, names, limit, of: Noted::new(None) };
        let Some(wanted) = &self.sort else { return Ok(order(None, "")) };
        let name = wanted.strip_prefix('-').unwrap_or(wanted);
        let plain = name.trim().replace(' ', "-");
        let has = |names: &str| names.split('|').any(|known| known.eq_ignore_ascii_case(&plain));
        if let Some((names, cell)) = columns.iter().find(|(names, _)| has(names)) {
            return Ok(order(Some((*cell, name.len() < wanted.len())), *names));
        }
        let names: Vec<&str> = columns.iter().filter_map(|(names, _)| names.split('|').next()).collect();
        let near =
            nearest(name, names.iter().copied()).map_or(".".to_owned(), |near| format!(", did you mean {near}?"));
        Err(Failure::Input(format!("--sort: there is no column {name:?}{near} There are: {}", names.join(", "))))
    }
}

impl<R> Order<R> {
    /// How many rows to ask the daemon for: all where they are sorted, for the first may be among the last to come.
    pub(super) const fn asks(&self) -> u32 {
        if self.by.is_some() { 0 } else { self.limit }
    }

    /// Whether only the wide table shows what rows are sorted by; `narrow`: the columns of the other one.
    pub(super) fn is_wide(&self, narrow: &[&str]) -> bool {
        let is_shown = |name: &str| narrow.iter().any(|header| header.replace(' ', "-") == name);
        if let (Some(_), Some(name)) = (&self.by, self.names.split('|').next()) {
            // Either table keeps it, however narrow the terminal is.
            width::keep(&name.replace('-', " "));
        }
        self.by.is_some() && !self.names.split('|').any(is_shown)
    }

    /// An answer with its rows sorted, and no more than are wanted. `all`: how many rows there are.
    pub(super) fn answer<M>(
        &self,
        answer: Result<Response<M>, Failure>,
        rows: impl FnOnce(&mut M) -> (&mut Vec<R>, u64),
    ) -> Result<Response<M>, Failure> {
        answer.map(|mut answer| {
            let (rows, all) = rows(answer.get_mut());
            if self.by.is_some() {
                self.of.set((all > rows.len() as u64).then_some((rows.len(), all)));
                self.sort(rows);
                rows.truncate(if self.limit == 0 { usize::MAX } else { self.limit as usize });
            }
            answer
        })
    }

    /// Says on standard error where the daemon sent only some of the rows, so that greater ones may be among the others.
    pub(super) fn warn(&self, output: Output) {
        if let Some((sorted, all)) = self.of.get() {
            output
                .progress(&format!("--sort: sorted are the first {sorted} of {all} rows, as many as the daemon sends"));
        }
    }

    /// Sorts; rows that have the same stay in the order in which they came.
    fn sort(&self, rows: &mut [R]) {
        let Some((cell, descending)) = self.by else { return };
        rows.sort_by_cached_key(|row| Ordered(cell(row), descending));
    }
}

/// A cell in the order that is wanted.
#[derive(PartialEq)]
struct Ordered(Cell, bool);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        let turned = |order: Ordering| if self.1 { order.reverse() } else { order };
        match (&self.0, &other.0) {
            (Cell::Nothing, Cell::Nothing) => Ordering::Equal,
            (Cell::Nothing, _) => Ordering::Greater,
            (_, Cell::Nothing) => Ordering::Less,
            (Cell::Number(a), Cell::Number(b)) => turned(a.total_cmp(b)),
            (Cell::Graded(one, a), Cell::Graded(other, b)) => one.cmp(other).then_with(|| turned(a.total_cmp(b))),
            (Cell::Text(a), Cell::Text(b)) => turned(natural(a, b)),
            // A column holds one kind of cell.
            (Cell::Number(_), _) | (Cell::Graded(..), Cell::Text(_)) => turned(Ordering::Less),
            (Cell::Text(_), _) | (Cell::Graded(..), Cell::Number(_)) => turned(Ordering::Greater),
        }
    }
}

/// Names as people sort them: rack2 before rack10.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (one, other) = (part(left), part(right));
        let number = |text: &str| text.starts_with(|letter: char| letter.is_ascii_digit());
        let order = match (number(one), number(other)) {
            (true, true) => {
                let plain = |text: &str| text.trim_start_matches('0').to_owned();
                let (one, other) = (plain(one), plain(other));
                one.len().cmp(&other.len()).then(one.cmp(&other))
            }
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
        if one.is_empty() {
            return a.cmp(b);
        }
        (left, right) = (&left[one.len()..], &right[other.len()..]);
    }
}

/// The digits that a text begins with, or all before its first digit.
fn part(text: &str) -> &str {
    let digit = |letter: char| letter.is_ascii_digit();
    let ends = if text.starts_with(digit) { text.find(|letter| !digit(letter)) } else { text.find(digit) };
    &text[..ends.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (&'static str, Option<u64>);
    const COLUMNS: &[Column<Row>] = &[("name", |row| row.0.into()), ("size|mass-of-it", |row| row.1.into())];

    fn sorted(by: &str) -> String {
        let mut rows = [("rack10", Some(9)), ("rack2", None), ("rack02", Some(100)), ("Rack1", Some(9)), ("", Some(0))];
        let args = SortArgs { sort: Some(by.to_owned()).filter(|by| !by.is_empty()) };
        args.of(COLUMNS, 0).unwrap().sort(&mut rows);
        rows.map(|row| row.0).join(" ")
    }

    #[test]
    fn rows_stand_by_what_a_column_holds_and_those_with_nothing_last() {
        assert_eq!(sorted(""), "rack10 rack2 rack02 Rack1 ");
        assert_eq!(sorted("name"), "Rack1 rack02 rack2 rack10 ");
        assert_eq!(sorted("-name"), "rack10 rack2 rack02 Rack1 ");
        assert_eq!(sorted("size"), " rack10 Rack1 rack02 rack2", "9 before 100, and equals as they came");
        assert_eq!(sorted("-size"), "rack02 rack10 Rack1  rack2");
        assert_eq!([sorted("-Size"), sorted("-mass of it")], [sorted("-size"), sorted("-size")], "as headers have it");
    }

    #[test]
    fn the_first_by_the_column_are_shown_and_not_the_first_that_come() {
        let asked = |sort: Option<&str>, total: u64| {
            let order = SortArgs { sort: sort.map(str::to_owned) }.of(COLUMNS, 2).unwrap();
            let answer = Response::new(vec![("a", Some(3)), ("b", Some(1)), ("c", Some(7)), ("d", Some(5))]);
            let shown = order.answer(Ok(answer), |rows| (rows, total)).unwrap().into_inner();
            let names: Vec<&str> = shown.iter().map(|row| row.0).collect();
            (order.asks(), names.join(" "), order.of.get())
        };
        assert_eq!(asked(Some("-size"), 4), (0, "c d".to_owned(), None), "all are asked for, and two are shown");
        assert_eq!(asked(Some("size"), 9), (0, "b a".to_owned(), Some((4, 9))), "of nine the daemon sent four");
        assert_eq!(asked(None, 4), (2, "a b c d".to_owned(), None), "as they come they are limited by the daemon");
    }

    #[test]
    fn a_column_that_the_narrow_table_lacks_is_shown_by_the_wide_one() {
        let is_wide = |sort: Option<&str>, narrow: &[&str]| {
            SortArgs { sort: sort.map(str::to_owned) }.of(COLUMNS, 0).unwrap().is_wide(narrow)
        };
        assert!(is_wide(Some("-size"), &["name"]) && is_wide(Some("mass of it"), &["name", "of it"]));
        assert!(!is_wide(Some("-mass-of-it"), &["name", "size"]) && !is_wide(Some("Size"), &["mass of it"]));
        assert!(!is_wide(None, &["name"]), "nothing is sorted");
    }

    #[test]
    fn a_column_that_is_none_is_refused_with_those_that_there_are() {
        let args = SortArgs { sort: Some("-sise".to_owned()) };
        let said = args.of(COLUMNS, 0).err().unwrap().to_string();
        assert_eq!(said, "--sort: there is no column \"sise\", did you mean size? There are: name, size");
    }

    #[test]
    fn numbers_within_names_are_of_any_length() {
        let long = "9".repeat(400);
        assert_eq!(natural(&format!("a{long}"), "a10"), Ordering::Greater);
        assert_eq!(natural("a1b", "a1"), Ordering::Greater);
        assert_eq!(natural("ä1", "ä2"), Ordering::Less);
        assert_eq!(natural("", ""), Ordering::Equal);
    }
}
