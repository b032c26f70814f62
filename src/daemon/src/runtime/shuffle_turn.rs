//! Whether receivers of a shuffle may be asked for now.

use super::command::Command;
use super::daemon::Daemon;
use hintd_engine::decision::WithheldReason;
use hintd_engine::holding::wish::{ShuffleWish, WishTurn};
use hintd_engine::{Mode, Proof, Refusal};
use hintd_model::units::{Bytes, QueueName};

/// What a wish comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleAdvice {
    /// The queue does not hold, or hints nobody.
    QueueOff,
    /// The application gets no advice: it may ask.
    Withheld(WithheldReason),
    /// What the engine says.
    Turn(WishTurn),
}

impl Daemon {
    /// What a wish comes to. Where the caller does not say in which racks it asks for receivers, an attempt that was told
    /// of its input's homes, and got containers there, is among those that stay there. Where the caller knows no bytes, by what its ApplicationMaster said last; from then on it is
    /// asked.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a queue that the configuration does not have; [`Refusal::NoToken`],
    /// [`Refusal::BadToken`]; [`Refusal::NotListed`] where a ResourceManager lists attempts; [`Refusal::Unavailable`].
    pub async fn shuffle_turn(
        &self,
        queue: &QueueName,
        mut wish: ShuffleWish,
        proof: Proof,
    ) -> Result<ShuffleAdvice, Refusal> {
        let settings = self.settings();
        let (mode, holds) = settings.mode_and_hold(queue)?;
        if !holds || mode != Mode::On {
            return Ok(ShuffleAdvice::QueueOff); // to hold is to change something, which shadow does not
        }
        let attempt = wish.attempt;
        let application = (attempt.application, queue.as_str());
        let stopped = &self.generation().stopped;
        let participation = settings.engine.worth.participation(application, wish.recurring_key.as_ref(), stopped);
        if let Some(reason) = participation.withheld() {
            return Ok(ShuffleAdvice::Withheld(reason));
        }
        let progress = self.shuffle_progress();
        let every = settings.hold_progress.filter(|_| wish.shuffle.bytes == Bytes::ZERO);
        wish.seen = every.and_then(|every| progress.said(attempt, self.clock().now(), every));
        wish.homes = self.0.shared.told_homes.stays(attempt);
        let proof = self.listed_proof(attempt, proof).await?;
        let found = self.0.engine_handle.ask(|reply| Command::ShuffleTurn { wish, proof, reply }).await??;
        // Only now: a stranger to the attempt is refused, and has nobody asked about it.
        if every.is_some() {
            progress.wished(attempt, self.clock().now());
        }
        Ok(ShuffleAdvice::Turn(found))
    }
}
