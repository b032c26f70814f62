//! Streams of random numbers by what they are drawn for, so that policies meet the same draws in whatever order they ask.

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

/// Tells the phases of nodes' heartbeats from other draws of a seed.
pub(crate) const PHASES: u64 = 3;
/// Users of jobs.
pub(crate) const USERS: u64 = 2;
/// First asks of applications, as `capacity` has them.
pub(crate) const FIRST_ASKS: u64 = 5;
/// Heartbeats of ApplicationMasters, as `deployed` has them.
pub(crate) const MASTER_BEATS: u64 = 17;
/// Which jobs ran before, and how.
pub(crate) const EARLIER: u64 = 19;
/// The same by the path that they read.
pub(crate) const EARLIER_PATHS: u64 = 23;

/// The stream of these four numbers: the generator's 256-bit key holds all of them as they are, so that no two share one.
pub(crate) fn stream(numbers: [u64; 4]) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (part, number) in key.chunks_exact_mut(8).zip(numbers) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}
