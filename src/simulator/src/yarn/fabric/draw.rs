//! Draws that hang on what is drawn for, not on the order of calls.

/// A number from a seed and what it is drawn for; all 64 bits hang on all that is given.
pub(in crate::yarn) fn draw(seed: u64, what: &[u64]) -> u64 {
    what.iter().fold(mix(seed), |state, &part| mix(state ^ part))
}

/// Finaliser of SplitMix64.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
