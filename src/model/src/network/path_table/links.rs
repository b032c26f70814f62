//! A path as its links, and the seeded hashes that break ties among paths of one length.

use crate::network::path::mix;
use crate::units::VertexIdx;
use smallvec::SmallVec;

/// Links of a path, in order.
pub(super) type Links = SmallVec<[u32; 8]>;

/// Key of a pair's hashes; the same in both directions.
pub(super) fn pair_key(seed: u64, a: VertexIdx, b: VertexIdx) -> u64 {
    let (low, high) = (a.0.min(b.0), a.0.max(b.0));
    mix(mix(seed) ^ (u64::from(low) << 32 | u64::from(high)))
}

/// What a link adds to a path's hash.
pub(super) fn link_hash(link: u32) -> u64 {
    mix(u64::from(link))
}

/// The hash that breaks ties: of the pair and of the path's links, in any order, so that a path and its reverse
/// have the same.
pub(super) fn path_hash(key: u64, sum: u64) -> u64 {
    mix(key.wrapping_add(sum))
}
