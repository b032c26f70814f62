//! Text for a width: tables whose columns fit, and prose that is broken between words.
//!
//! A table that is too wide first has its long texts shortened (the last column's are broken into lines instead), then its last
//! columns left off: what says most stands first. What rows are sorted by stays, and whose they are. Below stands which were left
//! off, and where they are to be had.

use super::width;
use comfy_table::{CellAlignment, Table, presets};

/// A cell with words in it may be shortened to this; what is no longer stays whole.
const SHORT: usize = 24;
/// The same where only [`LEAST_COLUMNS`] are left, whatever is in it.
const SHORTEST: usize = 8;
/// Columns that a table keeps at least.
const LEAST_COLUMNS: usize = 2;
/// Blanks between columns.
const GAP: usize = 2;
/// A column that stays for as long as another can go: whose the row is.
const WHOSE: &str = "application";
/// Where lines go on below a value, if it begins before this column.
const HANG: usize = 40;

/// What is made for so many columns. `else_where`: who shows what tables leave off.
pub(super) fn fitted(columns: usize, else_where: &str, make: impl FnOnce() -> String) -> String {
    let (text, left_off) = width::within(columns, make);
    if columns == width::ANY {
        return text;
    }
    let mut lines: Vec<String> = text.split('\n').map(|line| broken(line, columns)).collect();
    if !left_off.is_empty() {
        let note = format!("left off: {} ({else_where})", left_off.join(", "));
        lines.push(broken(&note, columns));
    }
    lines.join("\n")
}

/// A line as lines of at most `columns`, broken between words; those after the first stand below its value, where it is a name with
/// a value, else a little further in.
fn broken(line: &str, columns: usize) -> String {
    let mut rest: Vec<char> = line.chars().collect();
    let (hang, mut text, mut room) = (hang(&rest, columns), String::new(), columns);
    let mut from = hang;
    while rest.len() > room {
        let is_blank = |at: &usize| rest[*at] == ' ' && !is_bound(&rest[..*at]);
        let before = (from + 1..=room).rev().find(is_blank);
        let Some(at) = before.or_else(|| (room.max(from + 1)..rest.len()).find(is_blank)) else { break };
        text.extend(&rest[..at]);
        text.truncate(text.trim_end().len());
        rest = rest[at..].iter().copied().skip_while(|letter| *letter == ' ').collect();
        text += &format!("\n{:hang$}", "");
        (room, from) = (columns.saturating_sub(hang).max(1), 0);
    }
    text.extend(rest);
    text.truncate(text.trim_end().len());
    text
}

/// Whether what follows stays with what is before it: a figure has its unit in its line.
fn is_bound(before: &[char]) -> bool {
    let word = before.rsplit(|letter| *letter == ' ').next().unwrap_or_default();
    word.iter().any(char::is_ascii_digit)
        && word.iter().all(|letter| letter.is_ascii_digit() || ".~<>".contains(*letter))
}

/// Where the last value begins that stands behind two blanks or more; else two further in than the line.
fn hang(line: &[char], columns: usize) -> usize {
    let begins = line.iter().position(|letter| *letter != ' ').unwrap_or(0);
    let most = HANG.min(columns / 2).min(line.len().saturating_sub(1));
    let is_value = |at: &usize| line[*at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ';
    (begins + GAP + 1..=most).rev().find(is_value).unwrap_or((begins + GAP).min(columns / 2))
}

/// At most `width` letters: words end in an ellipsis, a name has it in its middle; of an application's ID goes what all have.
pub(super) fn shortened(cell: &str, width: usize) -> String {
    let letters: Vec<char> = cell.chars().collect();
    if letters.len() <= width {
        return cell.to_owned();
    }
    if let Some(id) = cell.strip_prefix("application_").filter(|id| id.chars().count() < width && !id.contains(' ')) {
        return format!("…{id}");
    }
    let room = width.saturating_sub(1);
    let tail = if letters.contains(&' ') { 0 } else { room / 2 };
    let head: String = letters[..room - tail].iter().collect();
    head.trim_end().to_owned() + "…" + &letters[letters.len() - tail..].iter().collect::<String>()
}

/// A table for the width in force, of rows one after another; columns after the first `left` are aligned right. Not generic, so
/// that it is compiled once.
pub(super) fn table(header: &[&str], left: usize, cells: &[String]) -> String {
    let rows: Vec<&[String]> = cells.chunks(header.len().max(1)).collect();
    let columns: Vec<Column> = header.iter().enumerate().map(|(at, name)| Column::of(at, name, &rows)).collect();
    let (kept, widths) = fit(&columns, width::in_force());
    width::left_off((0..header.len()).filter(|at| !kept.contains(at)).map(|at| header[at]));
    let last = kept.last().copied();
    let cell = |(at, most): (usize, usize), text: &str| match Some(at) == last && at < left && columns[at].is_words {
        true if text.chars().count() > most => in_lines(text, most),
        _ => shortened(text, most),
    };
    let sized = || kept.iter().copied().zip(widths.iter().copied());
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(sized().map(|column| cell(column, header[column.0])));
    for row in rows {
        table.add_row(sized().map(|column| cell(column, row.get(column.0).map_or("", String::as_str))));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        let alignment = if kept[at] < left { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
        column.set_padding(if at == 0 { (0, 1) } else { (1, 1) });
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A cell's words in lines of at most so many letters.
fn in_lines(text: &str, most: usize) -> String {
    let mut lines = vec![String::new()];
    for words in bound(text) {
        let words = shortened(&words, most);
        let line = lines.last_mut().expect("there is always a line");
        let length = line.chars().count();
        if length > 0 && length + 1 + words.chars().count() > most {
            lines.push(words);
        } else {
            *line += &format!("{}{words}", if length > 0 { " " } else { "" });
        }
    }
    lines.join("\n")
}

/// Words, those that stay together as one.
fn bound(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match all.last_mut() {
            Some(last) if is_bound(&last.chars().collect::<Vec<_>>()) => *last += &format!(" {word}"),
            _ => all.push(word.to_owned()),
        }
    }
    all
}

/// What its cells need.
struct Column {
    width: usize,
    /// Some cell is long and has words, so that it is still read if it is shortened.
    is_words: bool,
    is_wanted: bool,
}

impl Column {
    fn of(at: usize, name: &str, rows: &[&[String]]) -> Self {
        let cells = || rows.iter().filter_map(|row| row.get(at)).map(String::as_str);
        let length = |text: &str| text.chars().count();
        Self {
            width: cells().map(length).max().unwrap_or(0).max(length(name)),
            is_words: cells().any(|cell| length(cell) > SHORT && cell.contains(' ')),
            is_wanted: width::is_kept(name) || name == WHOSE,
        }
    }

    const fn least(&self) -> usize {
        if self.is_words && self.width > SHORT { SHORT } else { self.width }
    }
}

/// Which columns are kept, and how wide they are.
fn fit(columns: &[Column], room: usize) -> (Vec<usize>, Vec<usize>) {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    loop {
        let may_drop = kept.len() > LEAST_COLUMNS;
        let least = |column: &Column| if may_drop { column.least() } else { column.width.min(SHORTEST) };
        let mut widths: Vec<usize> = kept.iter().map(|at| columns[*at].width).collect();
        let bounds: Vec<usize> = kept.iter().map(|at| least(&columns[*at])).collect();
        if shrink(&mut widths, &bounds, room) || !may_drop {
            return (kept, widths);
        }
        // The first says what the row is of.
        let last = kept.iter().rposition(|at| !columns[*at].is_wanted).filter(|at| *at > 0);
        kept.remove(last.unwrap_or(kept.len() - 1));
    }
}

/// Takes from the widest until they fit; whether they do.
fn shrink(widths: &mut [usize], least: &[usize], room: usize) -> bool {
    while widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) > room {
        let may = (0..widths.len()).filter(|at| widths[*at] > least[*at]);
        let Some(widest) = may.max_by_key(|at| widths[*at]) else { return false };
        widths[widest] -= 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "application_1700000000000_0007";

    fn cells(rows: &[&[&str]]) -> Vec<String> {
        rows.iter().flat_map(|row| row.iter().map(|cell| (*cell).to_owned())).collect()
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_table_fits_by_shortening_words_then_by_leaving_off_its_last_columns() {
        let header = ["application", "outcome", "queue", "decision", "hinted"];
        let row = [ID, "withheld: it would gain nothing at all", "default", "0960749575d3025c40960749575d3025c4", "12"];
        let made = |columns| fitted(columns, "-o wide has them", || table(&header, 4, &cells(&[&row])));
        let whole = made(width::ANY);
        assert!(row.iter().all(|cell| whole.contains(cell)) && !whole.contains("left off"), "{whole}");
        let narrow = made(80);
        assert!(widest(&narrow) <= 80 && narrow.contains(ID) && narrow.contains("withheld: it would gain"), "{narrow}");
        assert!(narrow.ends_with("left off: decision, hinted (-o wide has them)"), "{narrow}");
        assert!(!narrow.contains("0960749575d3025c4"), "{narrow}");
    }

    #[test]
    fn the_last_column_goes_on_below_itself_and_the_one_that_is_sorted_by_stays() {
        let words = "unknown 90 % of what is measured there, and nobody knows whose it is";
        let text = fitted(60, "", || table(&["link", "whose"], 2, &cells(&[&["edge-03--core-1", words]])));
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(widest(&text) <= 60 && said.ends_with(words) && text.lines().count() > 2, "{text}");
        assert!(text.lines().last().unwrap().starts_with("                 "), "{text}");
        let long = "a".repeat(30);
        let rows = cells(&[&[&long, &long, "3 %"]]);
        let sorted = fitted(40, "", || {
            width::keep("gain");
            table(&["a", "b", "gain"], 2, &rows)
        });
        assert!(sorted.contains("3 %") && sorted.contains("left off: b") && widest(&sorted) <= 40, "{sorted}");
        let rows = cells(&[&["0960749575d3025c40960749575d3025", "2026-11-28 13:43:18 UTC", ID, "joint", "3 %"]]);
        let sorted = fitted(80, "", || {
            width::keep("gain");
            table(&["decision", "at", "application", "policy", "gain"], 4, &rows)
        });
        assert!(sorted.contains(ID) && sorted.contains("left off: at, policy"), "{sorted}");
    }

    #[test]
    fn prose_goes_on_below_its_value() {
        let line = "links        50, 1 down: edge-01--core-1 for 50 s, since 04:35:20 UTC (as the controller said)";
        let expected = "links        50, 1 down: edge-01--core-1 for\n             50 s, since 04:35:20 UTC (as the\n             \
                        controller said)";
        assert_eq!(broken(line, 48), expected);
        assert_eq!(broken("one two three four five", 12), "one two\n  three four\n  five");
        assert_eq!(broken("   -> do what is to be done", 20), "   -> do what is to\n     be done");
        let whole = format!("{} b", "a".repeat(50));
        assert_eq!(broken(&whole, 40), format!("{}\n  b", "a".repeat(50)), "no word is broken");
        assert_eq!(broken(line, 100), line);
        assert_eq!(in_lines("unknown 90 %, others", 11), "unknown\n90 %,\nothers", "a figure keeps its unit");
    }

    #[test]
    fn what_is_shortened_keeps_what_tells_it_apart() {
        assert_eq!(shortened(ID, 19), "…1700000000000_0007");
        assert_eq!(shortened("0960749575d3025c40", 9), "0960…5c40");
        assert_eq!(shortened("unknown 90 %, others", 12), "unknown 90…");
        assert_eq!(shortened("short", 5), "short");
    }
}
