//! A set of small numbers, one bit each.

use serde::{Deserialize, Serialize};

/// Numbers from 0 up to the largest ever put in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// Every number below `count`.
    #[must_use]
    pub fn full(count: usize) -> Self {
        let mut words = vec![u64::MAX; count.div_ceil(64)];
        if let Some(last) = words.last_mut().filter(|_| !count.is_multiple_of(64)) {
            *last = (1 << (count % 64)) - 1;
        }
        Self(words)
    }

    /// Whether it is in.
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Puts it in or takes it out.
    pub fn set(&mut self, at: usize, to: bool) {
        if to && at / 64 >= self.0.len() {
            self.0.resize(at / 64 + 1, 0);
        }
        if let Some(word) = self.0.get_mut(at / 64) {
            let bit = 1 << (at % 64);
            *word = if to { *word | bit } else { *word & !bit };
        }
    }

    /// Whether nothing is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// 64 numbers from `64 * at` on, lowest first.
    #[must_use]
    pub fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    /// Words in use.
    #[must_use]
    pub fn words(&self) -> usize {
        self.0.len()
    }

    /// Largest number below `limit`.
    #[must_use]
    pub fn last_below(&self, limit: usize) -> Option<usize> {
        let limit = limit.min(self.0.len() * 64);
        let mut at = limit / 64;
        let mut word = if limit.is_multiple_of(64) { 0 } else { self.0[at] & ((1 << (limit % 64)) - 1) };
        while word == 0 {
            at = at.checked_sub(1)?;
            word = self.0[at];
        }
        Some(at * 64 + 63 - word.leading_zeros() as usize)
    }

    /// Smallest number from `from` on.
    #[must_use]
    pub fn first_from(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.0.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_found_as_by_looking_at_every_number() {
        for numbers in [vec![], vec![0], vec![63], vec![64], vec![1, 62, 63, 64, 65, 130, 191]] {
            let mut bits = Bits::default();
            numbers.iter().for_each(|&at| bits.set(at, true));
            for at in 0..260 {
                assert_eq!(bits.has(at), numbers.contains(&at));
                assert_eq!(
                    bits.last_below(at),
                    numbers.iter().copied().rfind(|&number| number < at),
                    "{numbers:?} {at}"
                );
                assert_eq!(bits.first_from(at), numbers.iter().copied().find(|&number| number >= at));
            }
        }
        let full = Bits::full(70);
        assert_eq!((full.last_below(1_000), full.has(70), Bits::full(64).words()), (Some(69), false, 1));
    }
}
