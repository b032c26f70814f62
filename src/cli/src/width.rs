//! How wide text may be: asked for in one place, and in force while it is made.

use rustix::termios::{Winsize, tcgetwinsize};
use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _};

/// No bound.
pub(super) const ANY: usize = usize::MAX;
/// Lines and columns of a terminal that does not say how large it is.
const TERMINAL: (usize, usize) = (24, 80);
/// Text is made for no fewer columns: words would stand one below another.
const NARROWEST: usize = 40;

/// Columns for text on standard output: a terminal's, else those of COLUMNS, else any. A pipe is read by programs: nothing is cut
/// there unless it is asked for.
pub(super) fn of_output() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    chosen(io::stdout().is_terminal(), told(), columns.as_deref())
}

fn chosen(is_terminal: bool, told: Option<(usize, usize)>, columns: Option<&str>) -> usize {
    let told = told.filter(|_| is_terminal).map(|(_, width)| width);
    let given = columns.and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
    told.or(given).map_or(if is_terminal { TERMINAL.1 } else { ANY }, |columns: usize| columns.max(NARROWEST))
}

/// Lines and columns of the terminal.
pub(super) fn of_terminal() -> (usize, usize) {
    told().unwrap_or(TERMINAL)
}

fn told() -> Option<(usize, usize)> {
    let Winsize { ws_row, ws_col, .. } = tcgetwinsize(io::stdout()).ok()?;
    (ws_row > 0 && ws_col > 0).then_some((usize::from(ws_row), usize::from(ws_col)))
}

thread_local! {
    static COLUMNS: Cell<usize> = const { Cell::new(ANY) };
    static KEPT: RefCell<String> = const { RefCell::new(String::new()) };
    static LEFT_OFF: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What is made for so many columns, with the names of columns that tables left off for it.
pub(super) fn within<T>(columns: usize, make: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = COLUMNS.replace(columns);
    let (kept, others) = (KEPT.take(), LEFT_OFF.take());
    let made = make();
    COLUMNS.set(before);
    KEPT.replace(kept);
    (made, LEFT_OFF.replace(others))
}

/// The columns that text may have which is being made.
pub(super) fn in_force() -> usize {
    COLUMNS.get()
}

/// Tables of what is being made keep this column, however narrow they have to be.
pub(super) fn keep(column: &str) {
    KEPT.replace(column.to_owned());
}

pub(super) fn is_kept(column: &str) -> bool {
    KEPT.with_borrow(|kept| !column.is_empty() && *kept == column)
}

pub(super) fn left_off<'a>(columns: impl Iterator<Item = &'a str>) {
    LEFT_OFF.with_borrow_mut(|all| {
        for column in columns.filter(|name| !name.is_empty()) {
            if !all.iter().any(|known| known == column) {
                all.push(column.to_owned());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_has_its_own_width_and_a_pipe_that_of_columns_or_any() {
        let size = Some((24, 120));
        assert_eq!(chosen(true, size, Some("90")), 120);
        assert_eq!([chosen(true, None, Some("90")), chosen(true, None, None)], [90, 80]);
        assert_eq!([chosen(false, size, Some("90")), chosen(false, size, None)], [90, ANY]);
        assert_eq!(["", "0", "wide", "-1"].map(|columns| chosen(false, None, Some(columns))), [ANY; 4]);
        assert_eq!(chosen(false, None, Some("3")), NARROWEST);
    }

    #[test]
    fn a_width_is_in_force_while_text_is_made_and_no_longer() {
        let (made, left) = within(80, || {
            keep("gain");
            left_off(["hosts", "", "hosts"].into_iter());
            (in_force(), is_kept("gain"), within(7, in_force).0)
        });
        assert_eq!((made, left), ((80, true, 7), vec!["hosts".to_owned()]));
        assert_eq!((in_force(), is_kept("gain"), within(80, || ()).1), (ANY, false, vec![]));
    }
}
