//! Policies to compare with: what clusters do without the network in view, and what papers compare with.

pub mod capacity;
pub mod delay;
pub mod fair;
pub mod pna;
pub mod random;
pub mod shufflewatcher;
pub mod spread;
#[cfg(test)]
mod tests;

use super::params::Invalid;

/// Offers passed over before a job takes one without local input, in the comparisons of 004 (§3.3.1: D^m).
const SKIPS: u32 = 135;

/// More offers are a wait of hours in a cluster of one node: surely a slip.
const SKIPS_MAX: u32 = 1_000_000;

pub(crate) fn skips(key: &'static str, value: u32) -> Result<(), Invalid> {
    if value <= SKIPS_MAX {
        return Ok(());
    }
    Err(Invalid { key, message: format!("{value} offers passed over are more than {SKIPS_MAX}") })
}

pub(crate) fn share(key: &'static str, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Invalid { key, message: format!("{value} is no share: from 0 to 1") })
}
