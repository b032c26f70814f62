//! Where loops within a search count what they do, and learn that the time is over.

/// Counts work: a unit is some ten nanoseconds, counted before or after a loop and not within it.
pub trait Work: std::fmt::Debug {
    /// Counts work; false: stop now.
    fn work(&self, units: u64) -> bool;

    /// A pair of switches was looked up whose paths are not known to be the shortest, or was not looked up at all.
    fn note_cut_short_paths(&self) {}
}
