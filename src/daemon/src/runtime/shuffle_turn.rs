//! Whether receivers of a shuffle may be asked for now.

use super::command::Command;
use super::daemon::Daemon;
use hintd_engine::holding::serve::{ShuffleWish, WishTurn};
use hintd_engine::{Proof, Refusal};
use hintd_model::units::QueueName;

impl Daemon {
    /// What the engine says of a wish; `None`: the queue does not hold.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue that the configuration does not have; [`Refusal::NoToken`],
    /// [`Refusal::BadToken`]; [`Refusal::NotListed`] where a ResourceManager lists attempts; [`Refusal::Unavailable`].
    pub async fn shuffle_turn(
        &self,
        queue: &QueueName,
        wish: ShuffleWish,
        proof: Proof,
    ) -> Result<Option<WishTurn>, Refusal> {
        if !self.settings().holds(queue)? {
            return Ok(None);
        }
        let proof = self.looked_up(wish.attempt, proof).await?;
        self.0.engine_handle.ask(|reply| Command::ShuffleTurn { wish, proof, reply }).await?.map(Some)
    }
}
