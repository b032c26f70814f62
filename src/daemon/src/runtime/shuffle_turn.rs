//! Whether receivers of a shuffle may be asked for now.

use super::command::Command;
use super::daemon::Daemon;
use hintd_engine::holding::serve::{ShuffleWish, WishTurn};
use hintd_engine::{Proof, Refusal};
use hintd_model::units::{Bytes, QueueName};

impl Daemon {
    /// What the engine says of a wish; `None`: the queue does not hold. Where the caller knows no bytes, by what its
    /// ApplicationMaster said last; from then on it is asked.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue that the configuration does not have; [`Refusal::NoToken`],
    /// [`Refusal::BadToken`]; [`Refusal::NotListed`] where a ResourceManager lists attempts; [`Refusal::Unavailable`].
    pub async fn shuffle_turn(
        &self,
        queue: &QueueName,
        mut wish: ShuffleWish,
        proof: Proof,
    ) -> Result<Option<WishTurn>, Refusal> {
        let settings = self.settings();
        if !settings.holds(queue)? {
            return Ok(None);
        }
        let (attempt, progress) = (wish.attempt, self.shuffle_progress());
        let every = settings.hold_progress.filter(|_| wish.shuffle.bytes == Bytes::ZERO);
        wish.seen = every.and_then(|every| progress.said(attempt, self.clock().now(), every));
        let proof = self.looked_up(attempt, proof).await?;
        let found = self.0.engine_handle.ask(|reply| Command::ShuffleTurn { wish, proof, reply }).await??;
        // Only now: a stranger to the attempt is refused, and has nobody asked about it.
        if every.is_some() {
            progress.wished(attempt, self.clock().now());
        }
        Ok(Some(found))
    }
}
