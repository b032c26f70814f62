//! Rates as people write them: `10Gbit`, `2.5 Gbit/s`, `10Gbps`, or a number of bits a second.

use super::super::problem::{LEAST_CAPACITY, MOST_CAPACITY};
use crate::units::BitsPerSec;
use serde::{Deserialize, Serialize};

/// A rate as it stands in a file; [`RateEntry::read`] says what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a rate is a text, as \"10Gbit\", or a whole number of bits per second")]
pub enum RateEntry {
    /// Bits a second.
    Number(i64),
    /// A number and a unit.
    Text(String),
}

impl RateEntry {
    /// A rate in the largest unit that needs no fraction.
    #[must_use]
    pub fn of(rate: BitsPerSec) -> Self {
        Self::Text(show_rate(rate))
    }

    /// Bits a second.
    ///
    /// # Errors
    /// In words, with what was written.
    pub fn read(&self) -> Result<BitsPerSec, String> {
        match self {
            Self::Text(text) => parse_rate(text),
            Self::Number(bits) => match u64::try_from(*bits).map(BitsPerSec) {
                Ok(rate) => within(rate, &format!("{bits} bit/s")),
                Err(_) => Err(format!("{bits} is below 0")),
            },
        }
    }
}

/// Prefixes of `bit`, the smallest first.
const UNITS: [(&str, u64); 5] =
    [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];

/// Reads a rate: a number and `bit`, `kbit`, `Mbit`, `Gbit` or `Tbit`, with `/s` or not; `Gbps` is the same.
///
/// # Errors
/// In words, with what was written: bytes, other units, rates below 1 Mbit/s or above 100 Tbit/s.
pub fn parse_rate(text: &str) -> Result<BitsPerSec, String> {
    let no_rate = || format!("\"{text}\" is no rate, as in \"10Gbit\" or \"2.5Gbit\"");
    let trimmed = text.trim();
    let end = trimmed.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number: f64 = number.parse().map_err(|_| no_rate())?;
    let unit = unit.trim_start();
    // What is told by a capital letter alone is too easily meant the other way.
    if unit.contains('B') {
        return Err(format!("\"{text}\": is B byte or bit? Write bits, as in \"10Gbit\""));
    }
    let unit = unit.to_ascii_lowercase();
    let known = UNITS.iter().find(|(prefix, _)| {
        let rest = unit.strip_prefix(&prefix.to_ascii_lowercase());
        rest.is_some_and(|rest| ["bit", "bits", "bit/s", "bits/s", "bps"].contains(&rest))
    });
    let (_, factor) = known.ok_or_else(no_rate)?;
    within(BitsPerSec((number * *factor as f64).round() as u64), &format!("\"{text}\""))
}

/// A rate in the largest unit that needs no fraction, as [`parse_rate`] reads it.
#[must_use]
pub fn show_rate(rate: BitsPerSec) -> String {
    let fits = |(_, factor): &&(&str, u64)| rate.0 >= *factor && rate.0.is_multiple_of(*factor);
    let (prefix, factor) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
    format!("{}{prefix}bit", rate.0 / factor)
}

fn within(rate: BitsPerSec, written: &str) -> Result<BitsPerSec, String> {
    if (LEAST_CAPACITY..=MOST_CAPACITY).contains(&rate) {
        return Ok(rate);
    }
    Err(format!("{written} is outside {} to {}", show_rate(LEAST_CAPACITY), show_rate(MOST_CAPACITY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them_and_shown_as_they_are_read() {
        for (text, bits) in [
            ("10Gbit", 10_000_000_000),
            ("10 Gbit/s", 10_000_000_000),
            ("10gbps", 10_000_000_000),
            ("2.5Gbit", 2_500_000_000),
            ("500Mbits/s", 500_000_000),
            ("100Tbit", 100_000_000_000_000),
            ("1000000bit", 1_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(BitsPerSec(bits)), "{text}");
            assert_eq!(parse_rate(&show_rate(BitsPerSec(bits))), Ok(BitsPerSec(bits)), "{text}");
        }
        assert_eq!(show_rate(BitsPerSec(2_500_000_000)), "2500Mbit");
        assert_eq!(RateEntry::Number(1_000_000_000).read(), Ok(BitsPerSec(1_000_000_000)));
    }

    #[test]
    fn what_is_no_rate_is_said_with_what_was_written() {
        for (text, words) in [
            ("10", "\"10\" is no rate"),
            ("fast", "\"fast\" is no rate"),
            ("10GB", "is B byte or bit"),
            ("10GBps", "is B byte or bit"),
            ("1.2.3Gbit", "\"1.2.3Gbit\" is no rate"),
            ("10Xbit", "\"10Xbit\" is no rate"),
            ("1kbit", "\"1kbit\" is outside 1Mbit to 100Tbit"),
            ("1000Tbit", "\"1000Tbit\" is outside"),
            ("", "\"\" is no rate"),
        ] {
            assert!(parse_rate(text).unwrap_err().contains(words), "{text}: {:?}", parse_rate(text));
        }
        assert_eq!(RateEntry::Number(-5).read().unwrap_err(), "-5 is below 0");
        assert!(RateEntry::Number(5).read().unwrap_err().contains("5 bit/s is outside"));
    }
}
