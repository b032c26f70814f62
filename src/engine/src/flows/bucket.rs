//! At most so many changes a second.

use hintd_model::units::Timestamp;

/// A token bucket: a second's worth at one time, filled again as time passes.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Millionths of a token.
    filled: u64,
    at: Option<Timestamp>,
}

const TOKEN: u64 = 1_000_000;

impl Bucket {
    pub(super) const fn new() -> Self {
        Self { filled: 0, at: None }
    }

    /// Tokens there are.
    pub(super) fn tokens(&mut self, per_s: u32, now: Timestamp) -> u64 {
        let most = u64::from(per_s) * TOKEN;
        self.filled = match self.at {
            None => most,
            // Microseconds times tokens a second are millionths of a token.
            Some(at) => self.filled.saturating_add(now.since(at).0.saturating_mul(u64::from(per_s))).min(most),
        };
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        self.filled / TOKEN
    }

    /// Takes tokens that are there.
    pub(super) fn take(&mut self, tokens: u64) {
        self.filled = self.filled.saturating_sub(tokens.saturating_mul(TOKEN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Micros;

    #[test]
    fn tokens_come_back_with_time_and_never_exceed_a_seconds_worth() {
        let start = Timestamp(7);
        let mut bucket = Bucket::new();
        assert_eq!(bucket.tokens(100, start), 100);
        bucket.take(100);
        assert_eq!(bucket.tokens(100, start), 0);
        assert_eq!(bucket.tokens(100, start.plus(Micros(9_999))), 0);
        assert_eq!(bucket.tokens(100, start.plus(Micros(10_000))), 1, "parts of a token are not lost");
        assert_eq!(bucket.tokens(100, start), 1, "a clock that goes back gives none");
        assert_eq!(bucket.tokens(100, start.plus(Micros::from_secs(60))), 100);
    }
}
