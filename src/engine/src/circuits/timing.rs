//! Shuffles that are timed: who is asked about, and what applications are told.

use super::Circuits;
use super::bursts::{JobShuffle, Pair};
use super::shuffle_holds::Wait;
use crate::attempts::Attempts;
use crate::dispatching::{Dispatching, view};
use crate::effects::{Counter, Effect, Effects, FollowBody};
#[cfg(test)]
use crate::engine::Engine;
use crate::ledger::Ledger;
use crate::plans::kept::KeptPlan;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, RackIdx, Timestamp};
use hintd_policy::dispatch::{ShuffleAdvice, ShuffleAsk};
use std::collections::{BTreeMap, BTreeSet};

/// Why messages on shuffles are sent.
const CAUSE: &str = "shuffle";

/// Which shuffles wait for more bytes. Of circuits it writes what is held back; asks dispatchers, and tells applications.
pub(crate) struct ShuffleHandler<'e> {
    pub(crate) circuits: &'e mut Circuits,
    pub(crate) dispatching: &'e mut Dispatching,
    /// The plan that is followed.
    pub(crate) plan: Option<&'e KeptPlan>,
    pub(crate) attempts: &'e Attempts,
    pub(crate) ledger: &'e Ledger,
    pub(crate) snapshot: &'e Snapshot,
    pub(crate) effects: &'e mut Effects,
}

impl ShuffleHandler<'_> {
    /// Whether shuffles are to be asked about now: never where nothing is timed and nothing can be.
    pub(super) fn asks(&mut self, now: Timestamp) -> bool {
        self.begin(now);
        self.circuits.gathering.times() && self.circuits.gathering.is_due(now)
    }

    /// Times shuffles from now on, if that can be: those of jobs that come.
    pub(super) fn begin(&mut self, now: Timestamp) {
        if !self.circuits.gathering.times() && self.nobody_waits(now).is_none() {
            let jobs = self.dispatching.shuffles(self.snapshot);
            self.circuits.gathering.begin(&jobs);
        }
    }

    /// Asks about every pair of racks of planned heavy jobs that holds something back.
    pub(super) fn time_all(&mut self, jobs: &[JobShuffle], now: Timestamp) {
        if let Some(reason) = self.nobody_waits(now) {
            return self.start_all(jobs, reason);
        }
        self.circuits.gathering.forget(jobs);
        let (mut timed, mut follows) = (BTreeSet::new(), BTreeSet::new());
        for job in jobs {
            let Some(policy) = self.dispatching.shuffle_policy(job.attempt) else {
                self.circuits.gathering.frees(job);
                continue;
            };
            self.circuits.gathering.takes(job);
            follows.insert(job.attempt);
            for (from, to) in job.pairs() {
                if job.gathered(from, to).0 > Bytes::ZERO {
                    timed.insert(Pair { attempt: job.attempt, from, to });
                    self.time(job, (from, to), &policy, now);
                }
            }
        }
        for pair in self.circuits.gathering.retain(|pair| timed.contains(pair)) {
            let known = follows.contains(&pair.attempt) || self.dispatching.shuffle_policy(pair.attempt).is_some();
            let reason = match () {
                () if !self.lives(pair.from) || !self.lives(pair.to) => "rack_gone",
                () if known => "nothing_gathered",
                () => "not_planned",
            };
            self.start_told(&pair, Bytes::ZERO, reason);
        }
    }

    /// Nothing waits any more: all that does is told to start.
    fn start_all(&mut self, jobs: &[JobShuffle], reason: &'static str) {
        let all = jobs.iter().flat_map(|job| job.pairs().map(move |(from, to)| (job, from, to)));
        let pairs = all.map(|(job, from, to)| {
            let pair = Pair { attempt: job.attempt, from, to };
            (pair, self.circuits.gathering.held(&pair, job.gathered(from, to).0))
        });
        let held: BTreeMap<Pair, Bytes> = pairs.collect();
        for pair in self.circuits.gathering.end() {
            self.start_told(&pair, held.get(&pair).copied().unwrap_or(Bytes::ZERO), reason);
        }
    }

    /// Why no shuffle is timed now.
    fn nobody_waits(&self, now: Timestamp) -> Option<&'static str> {
        match self.plan {
            None => Some("no_plan"),
            Some(plan) if plan.has_expired(now) => Some("plan_expired"),
            Some(_) if self.circuits.ports.is_none() => Some("no_circuit"),
            Some(_) => (!self.circuits.attended).then_some("no_controller"),
        }
    }

    /// Whether a rack has a usable node.
    fn lives(&self, rack: RackIdx) -> bool {
        let nodes = self.snapshot.statics.members.get(rack.at());
        nodes.is_some_and(|nodes| nodes.iter().any(|node| self.snapshot.state[node.at()].usable()))
    }

    fn time(&mut self, job: &JobShuffle, (from, to): (RackIdx, RackIdx), policy: &str, now: Timestamp) {
        let pair = Pair { attempt: job.attempt, from, to };
        let (all, _) = job.gathered(from, to);
        let gathered = self.circuits.gathering.held(&pair, all);
        let waits = self.circuits.gathering.wait(&pair).cloned();
        if gathered == Bytes::ZERO {
            if waits.is_some() && self.circuits.gathering.start(pair, all) {
                self.start_told(&pair, gathered, "nothing_gathered");
            }
            return;
        }
        let gone = !self.lives(from) || !self.lives(to);
        let barred = self.circuits.ports.as_ref().is_none_or(|ports| ports.bar(from, to).is_some());
        let (attempt, maps_done, reduces_placed) = (job.attempt, job.maps_done, job.reduces_placed);
        let since = waits.as_ref().map_or(now, |wait| wait.since);
        let (started, threshold) = (self.circuits.gathering.started(&pair, Bytes::ZERO), self.threshold(from, to));
        let ask = ShuffleAsk { attempt, from, to, gathered, started, threshold, maps_done, reduces_placed, since };
        let advice = if gone || barred {
            ShuffleAdvice::Start
        } else {
            self.dispatching.ask_shuffle(policy, &ask, &view(self.snapshot, self.ledger, now))
        };
        let bound = waits.map_or(Timestamp(u64::MAX), |wait| wait.latest);
        let reason = match advice {
            ShuffleAdvice::Wait { latest, why } if latest.min(bound) > now => {
                let wait = Wait { since, latest: latest.min(bound), why };
                return self.hold(pair, wait, (gathered, threshold));
            }
            _ if gone => "rack_gone",
            _ if barred => "no_circuit",
            _ if bound <= now => "latest_start",
            _ if threshold.is_some_and(|threshold| gathered >= threshold) => "threshold",
            _ if maps_done && reduces_placed => "no_more",
            _ => "not_worth_waiting",
        };
        if self.circuits.gathering.start(pair, all) {
            self.start_told(&pair, gathered, reason);
        }
    }

    fn hold(&mut self, pair: Pair, wait: Wait, (gathered, threshold): (Bytes, Option<Bytes>)) {
        let Wait { latest, why, .. } = wait.clone();
        if !self.circuits.gathering.hold(pair, wait) {
            return;
        }
        self.effects.count(Counter::ShufflesHeld, 1);
        let path = |rack: RackIdx| self.snapshot.statics.racks[rack.at()].clone();
        let (from_rack, to_rack) = (path(pair.from), path(pair.to));
        let message = FollowBody::WaitShuffle { from_rack, to_rack, latest, reason: why, gathered, threshold };
        self.effects.out.push(Effect::Follow { attempt: pair.attempt, message, cause: CAUSE });
    }

    fn start_told(&mut self, pair: &Pair, gathered: Bytes, reason: &'static str) {
        if self.attempts.get(pair.attempt).is_none() {
            return; // it is over, and nobody follows
        }
        self.effects.count(Counter::ShufflesStarted, 1);
        let path = |rack: RackIdx| self.snapshot.statics.racks[rack.at()].clone();
        let (from_rack, to_rack, threshold) = (path(pair.from), path(pair.to), self.threshold(pair.from, pair.to));
        let message = FollowBody::StartShuffle { from_rack, to_rack, reason, gathered, threshold };
        self.effects.out.push(Effect::Follow { attempt: pair.attempt, message, cause: CAUSE });
    }

    fn threshold(&self, from: RackIdx, to: RackIdx) -> Option<Bytes> {
        self.circuits.ports.as_ref()?.switch.elephant(from, to)
    }
}

#[cfg(test)]
impl Engine {
    /// Asks now, whatever else is due.
    pub(crate) fn time_shuffles_for_test(&mut self, now: Timestamp) {
        let mut circuits = self.circuit_handler();
        let jobs = circuits.dispatching.shuffles(circuits.snapshot);
        circuits.shuffles().time_all(&jobs, now);
    }

    /// Shuffles that were told to wait and not to start since.
    pub(crate) fn shuffles_held(&mut self) -> usize {
        self.circuit_handler().circuits.gathering.waits()
    }
}
