//! A job's wish for receivers: whether it may ask for them now, by what it says of its shuffle or what earlier runs tell.

use super::tally::TurnAnswer;
use super::{HoldSettings, Holding, Lane, SHUFFLES_MAX, SILENT, Shuffle, Teller, Turn};
use crate::facts::Facts;
use crate::history::History;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, Bytes, RackIdx, RackPath, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A job's wish for receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShuffleWish {
    /// Whose.
    pub attempt: AttemptId,
    /// The receivers' group, as earlier runs named it.
    pub group: Arc<str>,
    /// Its recurring job; none: it is none.
    pub recurring_key: Option<Arc<str>>,
    /// What it knows itself of the shuffle. Zero bytes: not known; no receivers: it wishes for none yet, and is not in
    /// the order.
    pub shuffle: Shuffle,
    /// What the job's ApplicationMaster says of it, where somebody asked; stands in where `shuffle` has no bytes.
    pub seen: Option<Shuffle>,
    /// Memory of a receiver's container, MB.
    pub memory_mb: u64,
    /// Racks that receivers are asked for in alone, as the caller has it; empty: anywhere. `None`: it does not say.
    pub asked_in: Option<Vec<RackPath>>,
    /// Racks that the job stays in, for its input is there and containers came there; empty: it goes anywhere. Stands in
    /// where `asked_in` is not said.
    pub homes: Vec<RackPath>,
}

/// What a wish came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WishTurn {
    /// Whether it may ask.
    pub turn: Turn,
    /// Bytes that were gone by; zero: nobody knows.
    pub bytes: Bytes,
    /// Who knew them; `None`: nobody does.
    pub teller: Option<Teller>,
}

/// Wishes for receivers. Writes which shuffles are there and whose turn it is; reads the settings, what earlier runs tell and
/// the cluster.
pub(crate) struct HoldHandler<'e> {
    pub(crate) holding: &'e mut Holding,
    pub(crate) history: &'e History,
    pub(crate) settings: &'e HoldSettings,
    pub(crate) facts: &'e Facts,
}

impl HoldHandler<'_> {
    pub(crate) fn turn(&mut self, wish: &ShuffleWish, now: Timestamp) -> WishTurn {
        self.holding.forget_silent(Timestamp(now.0.saturating_sub(SILENT.0)));
        let (shuffle, teller) = known(self.history, wish);
        let (bytes, teller) = (shuffle.bytes, (shuffle.bytes > Bytes::ZERO).then_some(teller));
        let room = self.holding.knows(wish.attempt) || self.holding.len() < SHUFFLES_MAX;
        let Some(by) = teller.filter(|_| wish.shuffle.receivers > 0 && room) else {
            self.holding.told.freed(wish.attempt, now);
            return WishTurn { turn: Turn::Free, bytes, teller };
        };
        let snapshot = &self.facts.snapshot;
        let homes = homes(snapshot, wish);
        let lane = Lane::of(&homes);
        let shuffle = shuffle.over_links_of(homes.len());
        self.holding.wishes(wish.attempt, shuffle, lane, now);
        let capacity = self.facts.scans.fabric().of(snapshot, lane, wish.memory_mb);
        let turn = self.holding.turn(wish.attempt, self.settings, capacity, now);
        self.holding.told.told(wish.attempt, &TurnAnswer { turn, shuffle, lane, teller: by }, now);
        WishTurn { turn, bytes, teller }
    }
}

/// Racks that the job stays in, each once; one that is not there is none.
fn homes(snapshot: &Snapshot, wish: &ShuffleWish) -> Vec<RackIdx> {
    let racks = wish.asked_in.as_ref().unwrap_or(&wish.homes);
    let known: BTreeSet<RackIdx> =
        racks.iter().filter_map(|rack| snapshot.statics.by_rack.get(rack).copied()).collect();
    known.into_iter().collect()
}

/// The shuffle as whoever knows best has it: the caller, then its ApplicationMaster, then earlier runs.
fn known(history: &History, wish: &ShuffleWish) -> (Shuffle, Teller) {
    match (wish.shuffle.bytes, wish.seen) {
        (Bytes::ZERO, Some(seen)) => {
            // Who wishes hears of ends as they come, the ApplicationMaster is asked now and then.
            let received = seen.received.max(wish.shuffle.received).min(seen.receivers);
            (Shuffle { received, ..seen }, Teller::ApplicationMaster)
        }
        (Bytes::ZERO, None) => (Shuffle { bytes: learnt(history, wish), ..wish.shuffle }, Teller::History),
        _ => (wish.shuffle, Teller::Caller),
    }
}

/// What earlier runs sent to the group; zero where none is known.
fn learnt(history: &History, wish: &ShuffleWish) -> Bytes {
    let known = wish.recurring_key.as_ref().and_then(|key| history.view().get(key));
    let to_it = known.into_iter().flat_map(|job| &job.edges).filter(|edge| edge.to == wish.group);
    to_it.fold(Bytes::ZERO, |sum, edge| sum.saturating_add(edge.bytes))
}
