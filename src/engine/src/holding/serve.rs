//! The engine's call: whether a job may ask for receivers now.

use super::wish::{ShuffleWish, WishTurn};
use crate::engine::Engine;
use crate::proof::Proof;
use crate::refusal::Refusal;
use hintd_model::units::Timestamp;

impl Engine {
    /// Whether the job may ask for receivers now.
    ///
    /// # Errors
    /// [`Refusal::NoToken`] and [`Refusal::BadToken`] for another's attempt.
    pub fn shuffle_turn(&mut self, wish: &ShuffleWish, proof: &Proof, now: Timestamp) -> Result<WishTurn, Refusal> {
        self.may_tell(wish.attempt, proof)?;
        Ok(self.hold_handler().turn(wish, now))
    }
}
