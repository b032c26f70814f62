//! Shuffles that wait to be told to start: once a second, as ApplicationMasters hear the RM, the policy is asked.

use super::super::fabric::Gathered;
use super::Sim;
use hintd_model::units::{Bytes, RackIdx, Timestamp};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk, View};
use std::collections::BTreeMap;

/// A job's number and the racks of one of its shuffles.
type Pair = (u64, RackIdx, RackIdx);

/// What rack pairs of jobs were told.
#[derive(Debug, Default)]
pub(in crate::yarn) struct ShuffleHolds {
    /// To wait: since when, and until when at the latest.
    waits: BTreeMap<Pair, (Timestamp, Timestamp)>,
    /// To start: how much, of jobs that are not over.
    started: BTreeMap<Pair, Bytes>,
}

impl ShuffleHolds {
    /// Whether nothing waits for a start.
    pub(in crate::yarn) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    fn started(&self, pair: Pair) -> Bytes {
        self.started.get(&pair).copied().unwrap_or(Bytes::ZERO)
    }

    fn start(&mut self, pair: Pair, bytes: Bytes) {
        let sum = self.started.entry(pair).or_insert(Bytes::ZERO);
        *sum = sum.saturating_add(bytes);
    }

    pub(in crate::yarn) fn job_ends(&mut self, number: u64) {
        let rack = |at| RackIdx(at);
        let of = (number, rack(0), rack(0))..=(number, rack(u32::MAX), rack(u32::MAX));
        self.started.extract_if(of, |_, _| true).for_each(drop);
    }
}

impl Sim<'_> {
    /// Asks about every pair that holds something back. The latest start that was ever named for a wait holds, so that
    /// a policy can't let a job wait for ever.
    pub(in crate::yarn) fn time_shuffles(&mut self) {
        let Some(times) = self.run.dispatch.as_times_shuffles() else { return };
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
                started: self.gathering.started(pair),
                threshold: self.fabric.elephant(from, to),
                maps_done: of.maps.ended == of.maps.len(),
                reduces_placed: of.reduces.waiting == 0,
                since: waited.map_or(now, |(since, _)| since),
            };
            let bound = waited.map_or(Timestamp(u64::MAX), |(_, latest)| latest);
            let view = View { snapshot: &self.snapshot, leases: &self.leases, now, explain: false };
            match times.shuffle(&mut self.state, &ask, &view) {
                ShuffleAdvice::Wait { latest, .. } if latest.min(bound) > now => {
                    self.gathering.waits.insert(pair, (ask.since, latest.min(bound)));
                }
                _ => {
                    self.moved = self.now;
                    self.gathering.start(pair, bytes);
                    self.fabric.start_shuffle(self.now.as_secs_f64(), job, from, to);
                }
            }
        }
    }
}
