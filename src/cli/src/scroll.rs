//! Keys of a terminal, and which rows are shown where there is no room for all.

use std::ops::Range;

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(u8),
    Tab,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// A key's bytes, as a terminal sends them one by one: `ESC [ A`.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    sent: Vec<u8>,
}

/// Longer sequences are none of the keys that are known.
const SEQUENCE: usize = 8;

impl Decoder {
    /// The key that this byte completes; one that nobody knows is none.
    pub(super) fn key(&mut self, byte: u8) -> Option<Key> {
        const ESC: u8 = 0x1b;
        match (self.sent.as_slice(), byte) {
            (_, ESC) => self.sent = vec![ESC],
            ([], b'\t') => return Some(Key::Tab),
            ([], letter) => return Some(Key::Letter(letter)),
            // What begins no sequence was Escape, and then a letter.
            ([ESC], letter) if !matches!(letter, b'[' | b'O') => {
                self.sent.clear();
                return Some(Key::Letter(letter));
            }
            ([ESC], _) => self.sent.push(byte),
            (sent, 0x40..=0x7e) => {
                let key = named(&sent[2..], byte);
                self.sent.clear();
                return key;
            }
            (sent, _) if sent.len() < SEQUENCE => self.sent.push(byte),
            _ => self.sent.clear(),
        }
        None
    }
}

fn named(parameter: &[u8], last: u8) -> Option<Key> {
    match (parameter, last) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::First),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::Last),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    }
}

/// Which rows are shown.
#[derive(Debug, Default)]
pub(super) struct Scroll {
    first: usize,
    /// Rows that were shown last.
    room: usize,
}

impl Scroll {
    /// Arrows and `j`, `k` go by one row, `PgUp` and `PgDn` by as many as are shown; how far it goes is known once it is shown.
    pub(super) fn key(&mut self, key: Key) {
        let page = self.room.max(1);
        self.first = match key {
            Key::Up | Key::Letter(b'k') => self.first.saturating_sub(1),
            Key::Down | Key::Letter(b'j') => self.first.saturating_add(1),
            Key::PageUp => self.first.saturating_sub(page),
            Key::PageDown | Key::Letter(b' ') => self.first.saturating_add(page),
            Key::First | Key::Letter(b'g') => 0,
            Key::Last | Key::Letter(b'G') => usize::MAX,
            Key::Letter(_) | Key::Tab => self.first,
        };
    }

    /// The rows of `all` that have room.
    pub(super) fn shown(&mut self, all: usize, room: usize) -> Range<usize> {
        self.room = room;
        self.first = self.first.min(all.saturating_sub(room));
        self.first..all.min(self.first + room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        bytes.iter().filter_map(|byte| decoder.key(*byte)).collect()
    }

    #[test]
    fn keys_are_known_by_what_terminals_send() {
        let arrows = [Key::Up, Key::Down, Key::Up, Key::Down];
        assert_eq!(keys(b"\x1b[A\x1b[B\x1bOA\x1bOB"), arrows, "with and without application mode");
        assert_eq!(keys(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~"), [Key::PageUp, Key::PageDown, Key::First, Key::Last]);
        assert_eq!(keys(b"j\tq"), [Key::Letter(b'j'), Key::Tab, Key::Letter(b'q')]);
        // No key of ours, Escape alone, and a sequence without an end: what comes after them counts.
        assert_eq!(
            keys(b"\x1b[3~q\x1bq\x1b\x1b[Aq"),
            [Key::Letter(b'q'), Key::Letter(b'q'), Key::Up, Key::Letter(b'q')]
        );
        assert_eq!(
            keys(b"\x1b[1111111111q"),
            [Key::Letter(b'1'), Key::Letter(b'1'), Key::Letter(b'1'), Key::Letter(b'q')]
        );
    }

    #[test]
    fn it_scrolls_to_the_last_row_and_no_further() {
        let mut scroll = Scroll::default();
        assert_eq!(scroll.shown(12, 5), 0..5);
        scroll.key(Key::PageDown);
        scroll.key(Key::Down);
        assert_eq!(scroll.shown(12, 5), 6..11);
        scroll.key(Key::PageDown);
        assert_eq!(scroll.shown(12, 5), 7..12);
        scroll.key(Key::Letter(b'k'));
        assert_eq!(scroll.shown(12, 5), 6..11);
        scroll.key(Key::Last);
        scroll.key(Key::Down);
        assert_eq!(scroll.shown(12, 5), 7..12);
        assert_eq!(scroll.shown(3, 5), 0..3, "rows went away");
        scroll.key(Key::First);
        assert_eq!(scroll.shown(0, 5), 0..0);
    }
}
