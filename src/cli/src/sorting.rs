//! `--sort COLUMN` on lists: rows by what a column holds, and not by how it is written.

use super::failure::Failure;
use clap::Args;
use hintd_model::solve::nearest;
use std::cmp::Ordering;
use tonic::{Response, Status};

/// By which column rows are sorted.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SortArgs {
    /// Sort by this column, ascending, or with a '-' before it descending; the rows that --limit leaves
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<String>,
}

/// What a row has in a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Number(f64),
    Text(String),
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

/// A column's name and what a row has in it.
pub(super) type Column<R> = (&'static str, CellOf<R>);

/// How rows are sorted, and whether down; `None`: as they come.
pub(super) struct Order<R>(Option<(CellOf<R>, bool)>);

impl SortArgs {
    /// What is wanted of these columns.
    ///
    /// # Errors
    /// [`Failure::Input`] for a column that is none, with those that there are.
    pub(super) fn of<R>(&self, columns: &[Column<R>]) -> Result<Order<R>, Failure> {
        let Some(wanted) = &self.sort else { return Ok(Order(None)) };
        let name = wanted.strip_prefix('-').unwrap_or(wanted);
        if let Some((_, cell)) = columns.iter().find(|(known, _)| *known == name) {
            return Ok(Order(Some((*cell, name.len() < wanted.len()))));
        }
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let near =
            nearest(name, names.iter().copied()).map_or(".".to_owned(), |near| format!(", did you mean {near}?"));
        Err(Failure::Input(format!("--sort: there is no column {name:?}{near} There are: {}", names.join(", "))))
    }
}

impl<R> Order<R> {
    /// An answer with its rows sorted.
    pub(super) fn answer<M>(
        &self,
        answer: Result<Response<M>, Status>,
        rows: impl FnOnce(&mut M) -> &mut Vec<R>,
    ) -> Result<Response<M>, Status> {
        answer.map(|mut answer| {
            self.sort(rows(answer.get_mut()));
            answer
        })
    }

    /// Sorts; rows that have the same stay in the order in which they came.
    fn sort(&self, rows: &mut [R]) {
        let Some((cell, descending)) = self.0 else { return };
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
            (Cell::Text(a), Cell::Text(b)) => turned(natural(a, b)),
            (Cell::Number(_), Cell::Text(_)) => turned(Ordering::Less),
            (Cell::Text(_), Cell::Number(_)) => turned(Ordering::Greater),
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
    const COLUMNS: &[Column<Row>] = &[("name", |row| row.0.into()), ("size", |row| row.1.into())];

    fn sorted(by: &str) -> String {
        let mut rows = [("rack10", Some(9)), ("rack2", None), ("rack02", Some(100)), ("Rack1", Some(9)), ("", Some(0))];
        let args = SortArgs { sort: Some(by.to_owned()).filter(|by| !by.is_empty()) };
        args.of(COLUMNS).unwrap().sort(&mut rows);
        rows.map(|row| row.0).join(" ")
    }

    #[test]
    fn rows_stand_by_what_a_column_holds_and_those_with_nothing_last() {
        assert_eq!(sorted(""), "rack10 rack2 rack02 Rack1 ");
        assert_eq!(sorted("name"), "Rack1 rack02 rack2 rack10 ");
        assert_eq!(sorted("-name"), "rack10 rack2 rack02 Rack1 ");
        assert_eq!(sorted("size"), " rack10 Rack1 rack02 rack2", "9 before 100, and equals as they came");
        assert_eq!(sorted("-size"), "rack02 rack10 Rack1  rack2");
    }

    #[test]
    fn a_column_that_is_none_is_refused_with_those_that_there_are() {
        let args = SortArgs { sort: Some("-sise".to_owned()) };
        let said = args.of(COLUMNS).err().unwrap().to_string();
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
