//! A round that is not over.

use super::Daemon;

/// Held by all who have something of a round, until it is committed or can't be: then the next one may begin.
#[derive(Debug)]
pub(in crate::runtime) struct OpenRound(pub(in crate::runtime) Daemon);

impl Drop for OpenRound {
    fn drop(&mut self) {
        self.0.0.rounds.ended();
    }
}
