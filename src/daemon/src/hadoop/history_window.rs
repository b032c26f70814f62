//! Which part of the time a history server is asked for: all of it, or, where that is more than an answer may have, one part
//! after the other; no I/O, no clock.

/// Parts of the time, which go round.
#[derive(Debug, Default)]
pub(super) struct HistoryWindow {
    /// How long a part is, ms; `None`: there are no parts.
    span: Option<u64>,
    /// Where the next one begins, ms; before the beginning: there.
    next: u64,
    /// When the first part of this round was listed, ms.
    began: u64,
}

/// A part, ms since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: u64,
    /// `None`: what ended since `from`.
    pub(super) until: Option<u64>,
    /// It begins where all begins.
    first: bool,
}

impl Part {
    /// Whether it is all that there is.
    pub(super) const fn is_whole(self) -> bool {
        self.first && self.until.is_none()
    }
}

/// No part is shorter, ms.
const SPAN_MIN: u64 = 1_000;
/// The next part is twice as long where this one took no more than this part of what an answer may have.
const ROOM: usize = 4;

impl HistoryWindow {
    /// The part that is to be listed, of what ended since `from`.
    pub(super) fn due(&mut self, from: u64, now: u64) -> Part {
        let begins = self.next.max(from);
        let first = begins == from;
        if first {
            self.began = now;
        }
        let until = self.span.map(|span| begins.saturating_add(span)).filter(|until| *until < now);
        Part { from: begins, until, first }
    }

    /// A part came, with so many bytes of those that an answer may have.
    pub(super) fn came(&mut self, bytes: usize, most: usize) {
        if bytes <= most / ROOM {
            self.span = self.span.map(|span| span.saturating_mul(2));
        }
    }

    /// A part was too large: half of it is due. Of the shortest nothing is to be had, and what follows is due; whether it was.
    pub(super) fn too_large(&mut self, part: Part, now: u64) -> bool {
        let span = part.until.unwrap_or(now).saturating_sub(part.from);
        self.span = Some((span / 2).max(SPAN_MIN));
        let shortest = span <= SPAN_MIN;
        if shortest {
            self.next = part.until.unwrap_or(now);
        }
        shortest
    }

    /// Nothing is open of a part: the next one is due. Where it was all that there is there are no parts any more.
    pub(super) fn done(&mut self, part: Part, from: u64) {
        self.next = part.until.unwrap_or(from);
        if part.is_whole() {
            self.span = None;
        }
    }

    /// All that ended by then was there to be listed in this round, where the last job ended at `latest`.
    pub(super) fn complete_at(&self, latest: u64) -> u64 {
        latest.min(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists what ended at these moments by a server whose answers have room for `most`, until a whole round is over.
    fn round(window: &mut HistoryWindow, ended: &[u64], (from, now): (u64, u64), most: usize) -> (Vec<u64>, u32, u32) {
        let (mut found, mut asked, mut refused) = (Vec::new(), 0, 0);
        loop {
            let part = window.due(from, now);
            let meant = |at: &&u64| **at >= part.from && part.until.is_none_or(|until| **at <= until);
            let rows: Vec<u64> = ended.iter().filter(meant).copied().collect();
            asked += 1;
            assert!(asked < 1_000, "it comes to an end");
            if rows.len() > most {
                refused += 1;
                window.too_large(part, now);
                continue;
            }
            window.came(rows.len(), most);
            found.extend(rows);
            window.done(part, from);
            if part.until.is_none() {
                found.sort_unstable();
                found.dedup();
                return (found, asked, refused);
            }
        }
    }

    #[test]
    fn what_is_too_much_for_one_answer_comes_in_parts_and_in_one_again_when_it_is_less() {
        let (mut window, from, now) = (HistoryWindow::default(), 1_000_000, 5_000_000);
        let ended: Vec<u64> = (0..1_000).map(|at| from + 4_000 * at).collect();
        assert_eq!(round(&mut window, &ended, (from, now), 1_000), (ended.clone(), 1, 0));
        let (found, asked, refused) = round(&mut window, &ended, (from, now), 100);
        assert_eq!((found, refused), (ended.clone(), 4), "1,000, 500, 250, 125 rows are too many");
        assert!(asked > 14, "{asked}");
        let (found, _, refused) = round(&mut window, &ended, (from, now), 100);
        assert_eq!((found, refused), (ended.clone(), 0), "the next round begins with what was right");
        let few = &ended[..10];
        let (found, ..) = round(&mut window, few, (from, now), 100);
        assert_eq!(found, few);
        assert_eq!(window.span, Some(8_000_000), "longer from part to part");
        assert_eq!(round(&mut window, few, (from, now), 100), (few.to_vec(), 1, 0));
        assert_eq!((window.span, window.due(from, now).is_whole()), (None, true));
    }

    #[test]
    fn of_the_shortest_part_that_is_too_large_nothing_is_had_and_the_others_are() {
        let (mut window, from, now) = (HistoryWindow::default(), 1_000_000, 1_100_000);
        let mut ended = vec![1_050_500; 50];
        ended.extend([1_000_000, 1_049_000, 1_060_000, 1_099_999]);
        let (found, ..) = round(&mut window, &ended, (from, now), 10);
        assert_eq!(found, [1_000_000, 1_049_000, 1_060_000, 1_099_999]);
    }

    #[test]
    fn a_round_is_complete_as_of_its_beginning() {
        let mut window = HistoryWindow { span: Some(10_000), ..HistoryWindow::default() };
        let part = window.due(100_000, 115_000);
        assert_eq!((part.from, part.until), (100_000, Some(110_000)));
        window.done(part, 100_000);
        let last = window.due(100_000, 119_000);
        assert_eq!((last.from, last.until, last.is_whole()), (110_000, None, false));
        assert_eq!((window.complete_at(118_000), window.complete_at(112_000)), (115_000, 112_000));
    }
}
