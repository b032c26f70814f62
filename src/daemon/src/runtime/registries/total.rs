//! What all of a kind comes to, beside what each of them may.

use super::refusal::{ItemRefusal, Reason};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a name takes beside its bytes: its length, its count of owners, its place in a list or map.
const NAME: usize = 64;

/// So much of something.
#[derive(Debug, Default)]
pub(super) struct Total(AtomicUsize);

impl Total {
    /// One that had `before` has `now`.
    ///
    /// # Errors
    /// [`Reason::TooMany`] where that makes more than `most`, which `limits.{limit}` allows; nothing changed then.
    pub(super) fn change(&self, before: usize, now: usize, most: usize, limit: &str) -> Result<(), ItemRefusal> {
        let Some(more) = now.checked_sub(before) else {
            self.0.fetch_sub(before - now, Ordering::AcqRel);
            return Ok(());
        };
        let grown = |total: usize| total.checked_add(more).filter(|&total| more == 0 || total <= most);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, grown).map(drop).map_err(|total| {
            let message = format!("{more} more than {total} in all: at most {most} (limits.{limit})");
            ItemRefusal::new(Reason::TooMany, message)
        })
    }

    /// One that had so much is no more.
    pub(super) fn gone(&self, before: usize) {
        self.0.fetch_sub(before, Ordering::AcqRel);
    }
}

/// What names take.
pub(super) fn bytes_of_names<'n>(all: impl Iterator<Item = &'n str>) -> usize {
    all.map(|name| name.len() + NAME).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_have_together_is_bounded_and_what_is_refused_changes_nothing() {
        let total = Total::default();
        let left = || 10 - total.0.load(Ordering::Acquire);
        assert!(total.change(0, 6, 10, "x").is_ok() && total.change(0, 4, 10, "x").is_ok());
        let refusal = total.change(4, 5, 10, "x").unwrap_err();
        assert_eq!(refusal.reason, Reason::TooMany);
        assert!(refusal.message.contains("at most 10 (limits.x)"), "{}", refusal.message);
        assert_eq!(left(), 0);
        assert!(total.change(6, 6, 10, "x").is_ok(), "as much as before");
        assert!(total.change(6, 1, 10, "x").is_ok());
        assert_eq!(left(), 5);
        total.gone(4);
        assert_eq!(left(), 9);
    }
}
