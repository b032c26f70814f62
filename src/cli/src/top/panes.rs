//! The live frame: its tables share the terminal's lines, and each scrolls.

use super::super::scroll::{Key, Scroll};
use super::frame::Frame;
use super::text::{self, Pane};

/// Rows that links and applications have before anything else gets lines.
const ROWS_FIRST: usize = 5;
/// Lines of a table that are no rows.
const TITLE: usize = 2;
/// Who gets a line first, by the order of [`text::panes`]: applications, then links.
const ORDER: [usize; 2] = [1, 0];
/// The same once these have their first rows: whether hints were followed.
const ORDER_THEN: [usize; 3] = [2, 1, 0];

/// Which table scrolls, and how far each has.
#[derive(Debug, Default)]
pub(super) struct Panes {
    chosen: usize,
    scrolls: [Scroll; 3],
}

impl Panes {
    pub(super) fn key(&mut self, key: Key) {
        match key {
            Key::Tab => self.chosen = (self.chosen + 1) % self.scrolls.len(),
            key => self.scrolls[self.chosen].key(key),
        }
    }

    /// Lines for so many lines and columns; of each table no more than `rows` rows.
    pub(super) fn lines(&mut self, frame: &Frame, (height, width): (usize, usize), rows: usize) -> Vec<String> {
        let mut lines = text::head(frame, width);
        let mut panes = text::panes(frame);
        let of_first = |pane: &Pane<'_>| pane.row_count().min(rows).min(ROWS_FIRST);
        let first = lines.len() + TITLE * panes.len() + panes.iter().take(2).map(of_first).sum::<usize>();
        if panes.len() > 2 && height <= first {
            panes.pop(); // without a row it says nothing
        }
        self.chosen %= panes.len();
        let wanted: Vec<usize> = panes.iter().map(|pane| pane.row_count().min(rows)).collect();
        let titles: usize = panes.iter().map(|pane| 1 + usize::from(pane.has_header())).sum();
        let room = height.saturating_sub(lines.len() + titles);
        // Blanks between tables only where nothing is left off for them.
        let blank = room >= wanted.iter().sum::<usize>() + panes.len();
        let given = share(&wanted, room);
        for (at, pane) in panes.iter().enumerate() {
            if blank {
                lines.push(String::new());
            }
            self.show(at, pane, given[at], width, &mut lines);
        }
        lines
    }

    fn show(&mut self, at: usize, pane: &Pane<'_>, room: usize, width: usize, lines: &mut Vec<String>) {
        let Pane { title, total, by, .. } = pane;
        let shown = self.scrolls[at].shown(pane.row_count(), room);
        let mark = if at == self.chosen { '>' } else { ' ' };
        let range = match (shown.len(), shown.start + 1, shown.end) {
            (0, ..) => "0".to_owned(),
            (1, first, _) => first.to_string(),
            (_, first, last) => format!("{first} to {last}"),
        };
        lines.push(format!("{mark} {title}: {range} of {total}, {by}").chars().take(width).collect());
        lines.extend(pane.lines(shown, width));
    }
}

/// Lines for the rows of each table: links and applications have their first few, then each one after another.
fn share(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut left = room;
    for (order, most) in [(&ORDER[..], ROWS_FIRST), (&ORDER_THEN[..], usize::MAX)] {
        loop {
            let before = left;
            for &at in order.iter().filter(|at| **at < wanted.len()) {
                if left > 0 && given[at] < wanted[at].min(most) {
                    given[at] += 1;
                    left -= 1;
                }
            }
            if left == before {
                break;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_and_links_have_their_first_rows_and_the_rest_is_shared() {
        assert_eq!(share(&[50, 44, 3], 11), [5, 5, 1]);
        assert_eq!(share(&[50, 44, 3], 9), [4, 5, 0]);
        assert_eq!(share(&[2, 44, 3], 20), [2, 15, 3]);
        assert_eq!(share(&[10, 10, 1], 90), [10, 10, 1]);
        assert_eq!(share(&[50, 44], 0), [0, 0]);
        assert_eq!(share(&[1, 0], 7), [1, 0]);
    }
}
