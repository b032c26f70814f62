//! Round trips that wait for the engine.

use super::{ItemRefusal, Reason};
use hintd_model::cluster::Measured;
use hintd_model::network::latency::KEPT;
use hintd_model::units::{HostName, Micros, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// Pairs that wait for the engine; a drain takes them every few milliseconds.
const WAITING: usize = 1 << 16;

/// What hosts measured since the last drain, and how often they told of it.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    /// By who measured, whom, and over which path; of each the newest round trips.
    waiting: BTreeMap<(HostName, HostName, u8), Measured>,
    /// Items of the running second, by who measured. Of registered hosts only, so that they are bounded.
    rates: HashMap<HostName, (Timestamp, u32)>,
}

impl Measurements {
    /// Takes an item of registered hosts in, of which one host may send so many a second.
    pub(super) fn take(&mut self, measured: Measured, per_s: u32, now: Timestamp) -> Result<(), ItemRefusal> {
        let (since, items) = self.rates.entry(measured.from.clone()).or_insert((now, 0));
        if now.since(*since) >= Micros::from_secs(1) {
            (*since, *items) = (now, 0);
        }
        if *items >= per_s {
            let message =
                format!("\"{}\" has told of {per_s} round trips in a second (latency.items_per_s)", measured.from);
            return Err(ItemRefusal::new(Reason::TooMany, message));
        }
        *items += 1;
        let key = (measured.from.clone(), measured.to.clone(), measured.path);
        if let Some(known) = self.waiting.get_mut(&key) {
            known.rtts.extend(measured.rtts);
            let over = known.rtts.len().saturating_sub(KEPT);
            known.rtts.drain(..over);
            known.at = known.at.max(measured.at);
            return Ok(());
        }
        if self.waiting.len() >= WAITING {
            return Err(ItemRefusal::new(Reason::TooMany, format!("{WAITING} pairs wait to be taken already")));
        }
        self.waiting.insert(key, measured);
        Ok(())
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Measured> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}
