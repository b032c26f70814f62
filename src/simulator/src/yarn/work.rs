//! What processors do: ApplicationMasters and tasks that start, tasks that work.
//!
//! # The model
//! - Each piece of work takes one core at most. Where [`Delays::cores`](crate::delays::Delays::cores) are fewer than pieces, all get equal
//!   parts of them: one machine that runs all nodes. Without a number of cores each piece has its own.
//!
//! # Invariants
//! - Served work is one number, for all pieces are served alike: a piece ends when that number has grown by its length.
//!   At one core each it is a whole number of microseconds, so that ends are exact.

use hintd_model::units::Micros;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Whose work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// The client of the trace's job of that number starts.
    Client(u64),
    /// The ApplicationMaster of the trace's job of that number starts.
    Master(u64),
    /// A task: the serial number of its launch, and its row.
    Task(u64, u32),
}

/// A piece under way.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Served {
    /// What will have been served when it ends, microseconds.
    until: f64,
    piece: Piece,
}

impl Eq for Served {}

impl Ord for Served {
    /// What ends first is greatest, of one moment what comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.until.total_cmp(&self.until).then_with(|| other.piece.cmp(&self.piece))
    }
}

impl PartialOrd for Served {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All work under way.
#[derive(Debug)]
pub(super) struct Work {
    cores: f64,
    pieces: BinaryHeap<Served>,
    /// What each piece that was there all the time has been served, microseconds.
    served: f64,
    at: Micros,
}

impl Work {
    pub(super) fn new(cores: Option<f64>) -> Self {
        Self { cores: cores.unwrap_or(f64::INFINITY), pieces: BinaryHeap::new(), served: 0.0, at: Micros::ZERO }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Of a core, by piece.
    fn rate(&self) -> f64 {
        (self.cores / self.pieces.len().max(1) as f64).min(1.0)
    }

    fn advance(&mut self, now: Micros) {
        self.served += now.saturating_sub(self.at).0 as f64 * self.rate();
        self.at = now;
    }

    pub(super) fn begin(&mut self, now: Micros, piece: Piece, length: Micros) {
        self.advance(now);
        self.pieces.push(Served { until: self.served + length.0 as f64, piece });
    }

    /// When the next piece ends, if nothing else begins or stops.
    pub(super) fn next(&self) -> Option<Micros> {
        let first = self.pieces.peek()?;
        let left = (first.until - self.served).max(0.0) / self.rate();
        Some(self.at.saturating_add(Micros(left.ceil() as u64)))
    }

    /// The piece that ends now: the one whose end [`Self::next`] told.
    pub(super) fn end(&mut self, now: Micros) -> Option<Piece> {
        self.advance(now);
        let Served { until, piece } = self.pieces.pop()?;
        self.served = self.served.max(until);
        Some(piece)
    }

    /// A task stops before its end.
    pub(super) fn stop(&mut self, now: Micros, serial: u64) {
        self.advance(now);
        self.pieces.retain(|served| !matches!(served.piece, Piece::Task(of, _) if of == serial));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(cores: Option<f64>, pieces: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut work, mut found) = (Work::new(cores), Vec::new());
        let mut coming = pieces.iter().enumerate().peekable();
        loop {
            let due = work.next();
            match coming.peek() {
                Some(&(serial, &(at, length))) if due.is_none_or(|due| at < due.0) => {
                    work.begin(Micros(at), Piece::Task(serial as u64, 0), Micros(length));
                    coming.next();
                }
                _ => match due {
                    Some(at) => {
                        let Some(Piece::Task(serial, _)) = work.end(at) else { panic!("only tasks are there") };
                        found.push((serial, at.0));
                    }
                    None => return found,
                },
            }
        }
    }

    #[test]
    fn with_cores_of_their_own_pieces_end_when_their_length_has_passed() {
        assert_eq!(ends(None, &[(0, 5), (1, 4), (1, 9), (7, 1)]), [(0, 5), (1, 5), (3, 8), (2, 10)]);
    }

    #[test]
    fn cores_are_shared_in_equal_parts_and_none_takes_more_than_one() {
        // Three on two cores at 2/3 each; the last has one of its own.
        assert_eq!(ends(Some(2.0), &[(0, 600), (0, 600), (0, 1000)]), [(0, 900), (1, 900), (2, 1300)]);
        assert_eq!(ends(Some(2.0), &[(0, 600), (100, 600)]), [(0, 600), (1, 700)]);
        assert_eq!(ends(Some(0.5), &[(0, 600), (600, 100)]), [(1, 1000), (0, 1400)]);
    }

    #[test]
    fn what_stops_leaves_its_part_to_others() {
        let mut work = Work::new(Some(1.0));
        work.begin(Micros(0), Piece::Task(1, 0), Micros(100));
        work.begin(Micros(0), Piece::Task(2, 1), Micros(100));
        assert_eq!(work.next(), Some(Micros(200)));
        work.stop(Micros(100), 1);
        assert_eq!(work.next(), Some(Micros(150)));
        assert_eq!((work.end(Micros(150)), work.is_empty()), (Some(Piece::Task(2, 1)), true));
    }
}
