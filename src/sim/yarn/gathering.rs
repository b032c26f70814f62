//! Shuffles that wait to be told to start: once a second, as ApplicationMasters hear the RM, the policy is asked.

use super::fabric::Gathered;
use super::rm::Sim;
use crate::policy::dispatch::{ShuffleAdvice, ShuffleAsk, View};
use crate::units::{RackIdx, Timestamp};
use std::collections::BTreeMap;

/// Rack pairs of jobs that were told to wait: since when, and until when at the latest.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    waits: BTreeMap<(u64, RackIdx, RackIdx), (Timestamp, Timestamp)>,
}

impl Gathering {
    /// Whether nothing waits for a start.
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}

impl Sim<'_> {
    /// Asks about every pair that holds something back. The latest start that was ever named for a wait holds, so that
    /// a policy can't let a job wait for ever.
    pub(super) fn time_shuffles(&mut self) {
        if !self.run.dispatch.times_shuffles() {
            return;
        }
        let now = Timestamp(self.now.0);
        let before = std::mem::take(&mut self.gathering.waits);
        for Gathered { job, from, to, bytes } in self.fabric.held_shuffles() {
            let of = self.jobs.at(job.0);
            let pair = (of.number, from, to);
            let waited = before.get(&pair).copied();
            let ask = ShuffleAsk {
                attempt: of.attempt,
                from,
                to,
                gathered: bytes,
                maps_done: of.maps.ended == of.maps.len(),
                reduces_placed: of.reduces.waiting == 0,
                since: waited.map_or(now, |(since, _)| since),
            };
            let bound = waited.map_or(Timestamp(u64::MAX), |(_, latest)| latest);
            let view = View { snapshot: &self.snapshot, leases: &self.leases, now, explain: false };
            match self.run.dispatch.shuffle(&mut self.state, &ask, &view) {
                ShuffleAdvice::Wait { latest, .. } if latest.min(bound) > now => {
                    self.gathering.waits.insert(pair, (ask.since, latest.min(bound)));
                }
                _ => {
                    self.moved = self.now;
                    self.fabric.start_shuffle(self.now.as_secs_f64(), job, from, to);
                }
            }
        }
    }
}
