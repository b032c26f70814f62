//! Wishes for receivers of a shuffle, and what they come to.

use super::request::attempt;
use crate::runtime::shuffle_turn::ShuffleAdvice;
use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_engine::holding::wish::{ShuffleWish, WishTurn};
use hintd_engine::holding::{Lane, Shuffle, Teller, Turn, TurnTally};
use hintd_model::cluster::NodeStatics;
use hintd_model::units::{Bytes, QueueName, Timestamp};

/// When who wishes is to ask again: a heartbeat of MapReduce's ApplicationMaster.
const AGAIN_MS: u32 = 1_000;
/// Names are no longer, as in requests.
const NAME_MAX: usize = 1_024;
/// Racks that receivers may be asked for in.
const RACKS_MAX: usize = 10_000;

/// The queue, and the wish.
///
/// # Errors
/// [`Refusal::Invalid`] names the field.
pub(in crate::server) fn shuffle_wish(wire: &v1::ShuffleTurnRequest) -> Result<(QueueName, ShuffleWish), Refusal> {
    let attempt = attempt(&wire.application_id, wire.attempt)?;
    let invalid = |field: &str, message: String| Err(Refusal::Invalid { field: field.to_owned(), message });
    if wire.received > wire.receivers {
        return invalid("received", format!("{} is more than its {} receivers", wire.received, wire.receivers));
    }
    for (field, name) in
        [("queue", &wire.queue), ("group", &wire.group), ("recurring_job_key", &wire.recurring_job_key)]
    {
        if name.len() > NAME_MAX {
            return invalid(field, format!("{} bytes are more than {NAME_MAX}", name.len()));
        }
    }
    let asked_in = wire.asked_in.as_ref().map(|asked| &asked.racks);
    if let Some(racks) = asked_in.filter(|racks| racks.len() > RACKS_MAX) {
        return invalid("asked_in", format!("{} racks are more than {RACKS_MAX}", racks.len()));
    }
    if let Some(long) = asked_in.into_iter().flatten().find(|rack| rack.len() > NAME_MAX) {
        return invalid("asked_in", format!("{} bytes of a rack are more than {NAME_MAX}", long.len()));
    }
    let shuffle = Shuffle {
        bytes: Bytes(wire.shuffle_bytes),
        receivers: wire.receivers,
        received: wire.received,
        fetched: Bytes::ZERO,
    };
    let key = Some(wire.recurring_job_key.as_str()).filter(|key| !key.is_empty());
    let wish = ShuffleWish {
        attempt,
        group: wire.group.as_str().into(),
        recurring_key: key.map(Into::into),
        shuffle,
        seen: None,
        memory_mb: wire.memory_mb,
        asked_in: asked_in.map(|racks| racks.iter().map(|rack| rack.as_str().into()).collect()),
        homes: Vec::new(),
    };
    Ok((wire.queue.as_str().into(), wish))
}

/// What it came to.
pub(in crate::server) fn shuffle_turn(found: ShuffleAdvice) -> v1::ShuffleTurnResponse {
    let WishTurn { turn, bytes, teller } = match found {
        ShuffleAdvice::Turn(turn) => turn,
        ShuffleAdvice::Withheld(reason) => return answer(None, 0, Bytes::ZERO, reason.as_str()),
        ShuffleAdvice::QueueOff => return answer(None, 0, Bytes::ZERO, "queue_off"),
    };
    let told = match turn {
        Turn::Free if bytes == Bytes::ZERO => answer(None, 0, bytes, "not_known"),
        Turn::Free => answer(None, 0, bytes, "free"),
        Turn::AtMost(most) => answer(Some(most), 0, bytes, "turn"),
        Turn::Held { before } => answer(Some(0), before, bytes, "held"),
    };
    v1::ShuffleTurnResponse { bytes_from: teller.map_or("", Teller::as_str).to_owned(), ..told }
}

/// What an attempt was told so far, as operators see it.
pub(in crate::server) fn turn_view(tally: &TurnTally, statics: &NodeStatics, now: Timestamp) -> v1::ShuffleTurnView {
    let (at_most, before, reason) = match tally.turn {
        _ if tally.is_silent(now) => (None, 0, "silent"),
        Turn::Free => (None, 0, "free"),
        Turn::AtMost(most) => (Some(most), 0, "turn"),
        Turn::Held { before } => (Some(0), before, "held"),
    };
    let rack = match tally.lane {
        Lane::Uplinks => None,
        Lane::Rack(rack) => statics.racks.get(rack.at()),
    };
    v1::ShuffleTurnView {
        reason: reason.to_owned(),
        at_most,
        before,
        shuffle_bytes: tally.shuffle.bytes.0,
        left_bytes: tally.left as u64,
        bytes_from: tally.teller.as_str().to_owned(),
        receivers: tally.shuffle.receivers,
        received: tally.shuffle.received,
        rack: rack.map(ToString::to_string).unwrap_or_default(),
        first_ms: now.since(tally.first).as_millis(),
        last_ms: now.since(tally.last).as_millis(),
        answers: tally.asked,
        held: tally.held,
        waited_ms: tally.waited_by(now).as_millis(),
    }
}

fn answer(at_most: Option<u32>, before: u32, bytes: Bytes, reason: &str) -> v1::ShuffleTurnResponse {
    let reason = reason.to_owned();
    v1::ShuffleTurnResponse {
        at_most,
        before,
        shuffle_bytes: bytes.0,
        again_after_ms: AGAIN_MS,
        reason,
        ..Default::default()
    }
}
