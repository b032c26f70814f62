//! Attempts of which nothing is heard any more are over: where no ResourceManager says so, nobody else does.

use super::follow_event::FollowEvent;
use super::outbox::Outboxes;
use hintd_engine::Engine;
use hintd_model::units::Timestamp;

/// Ends them. Whoever follows an attempt speaks for it, however silent it is.
pub(super) fn end(engine: &mut Engine, outboxes: &Outboxes<FollowEvent>, now: Timestamp) {
    let mut ended = 0_u32;
    for attempt in engine.silent_attempts(now) {
        match outboxes.is_followed(attempt) {
            true => engine.attempt_alive(attempt, now),
            false => ended += u32::from(engine.end_attempt(attempt, now)),
        }
    }
    if ended > 0 {
        tracing::info!(ended, "nothing was heard of attempts for limits.attempt_silence: they are over");
    }
}
