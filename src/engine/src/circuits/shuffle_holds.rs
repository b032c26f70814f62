//! When shuffles of planned heavy jobs start, so that what is gathered for a pair of racks rides its circuit
//! (004 §4.2.2): once a second the policy that follows the plan is asked, and its answer is told on Follow.
//!
//! # Why no shuffle waits for ever
//! A wait is told with its latest start, and the earliest that was ever named for it holds. Every wait that was told ends
//! by a start that is told, with the reason: what is gathered reached the threshold, no more can come, its latest start
//! has come; or the plan is not in force any more or has expired, the job follows it no more, a rack has no usable node,
//! its racks can't have a circuit, no controller sets any, or nothing of it is left. Whoever hears nothing starts at the
//! latest start all the same.
//!
//! What moved before its job was timed is not held back afterwards: it counts as started.

use super::bursts::{JobShuffle, Pair};
use hintd_model::units::{AttemptId, Bytes, Timestamp};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of racks of jobs whose shuffles are timed.
#[derive(Debug, Default)]
pub(super) struct ShuffleHolds {
    pairs: BTreeMap<Pair, Timed>,
    /// Shuffles are timed at all; until then they move as they come.
    times: bool,
    /// Attempts that have shuffled without being timed.
    free: BTreeSet<AttemptId>,
    /// The second of the last question.
    asked: Option<u64>,
}

#[derive(Debug, Clone)]
struct Timed {
    /// What was told to start so far.
    started: Bytes,
    said: Said,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Start,
    Wait(Wait),
}

/// A wait as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since: Timestamp,
    pub(super) latest: Timestamp,
    pub(super) why: Cow<'static, str>,
}

/// Between two questions, µs: as often as ApplicationMasters hear of anything.
const ASK_EVERY: u64 = 1_000_000;

impl ShuffleHolds {
    /// Whether it is time to ask.
    pub(super) fn is_due(&mut self, now: Timestamp) -> bool {
        let second = Some(now.0 / ASK_EVERY);
        std::mem::replace(&mut self.asked, second) != second
    }

    pub(super) const fn times(&self) -> bool {
        self.times
    }

    /// From now on shuffles are timed; what these jobs have gathered moves already.
    pub(super) fn begin(&mut self, jobs: &[JobShuffle]) {
        self.times = true;
        self.free = jobs.iter().filter(|job| !job.reduces.is_empty()).map(|job| job.attempt).collect();
    }

    /// No shuffle is timed any more; the pairs that wait.
    pub(super) fn end(&mut self) -> Vec<Pair> {
        self.times = false;
        self.free.clear();
        self.retain(|_| false)
    }

    /// Nobody times the job, which shuffles.
    pub(super) fn frees(&mut self, job: &JobShuffle) {
        if !job.reduces.is_empty() {
            self.free.insert(job.attempt);
        }
    }

    /// The job is timed; if it was not until now, what it has gathered has started.
    pub(super) fn takes(&mut self, job: &JobShuffle) {
        if self.free.remove(&job.attempt) {
            for (from, to) in job.pairs() {
                self.start(Pair { attempt: job.attempt, from, to }, job.gathered(from, to).0);
            }
        }
    }

    /// Forgets attempts that are over.
    pub(super) fn forget(&mut self, jobs: &[JobShuffle]) {
        // Jobs come by attempt.
        self.free.retain(|attempt| jobs.binary_search_by_key(attempt, |job| job.attempt).is_ok());
    }

    /// How much of what is gathered for a pair may move: all of it where nobody times it.
    pub(super) fn started(&self, pair: &Pair, gathered: Bytes) -> Bytes {
        self.pairs.get(pair).map_or(gathered, |timed| timed.started)
    }

    /// What of `gathered` was not told to start. Outputs that were lost are gathered anew.
    pub(super) fn held(&mut self, pair: &Pair, gathered: Bytes) -> Bytes {
        let Some(timed) = self.pairs.get_mut(pair) else { return gathered };
        timed.started = timed.started.min(gathered);
        gathered.saturating_sub(timed.started)
    }

    /// The wait under way.
    pub(super) fn wait(&self, pair: &Pair) -> Option<&Wait> {
        match &self.pairs.get(pair)?.said {
            Said::Wait(wait) => Some(wait),
            Said::Start => None,
        }
    }

    /// All of `gathered` may move; whether that is to be told.
    pub(super) fn start(&mut self, pair: Pair, gathered: Bytes) -> bool {
        let before = self.pairs.insert(pair, Timed { started: gathered, said: Said::Start });
        before.is_none_or(|before| before.said != Said::Start)
    }

    /// What is held waits; whether that is to be told.
    pub(super) fn hold(&mut self, pair: Pair, wait: Wait) -> bool {
        let fresh = Timed { started: Bytes::ZERO, said: Said::Start };
        let known = self.pairs.get(&pair);
        let news = known.is_none_or(|timed| match &timed.said {
            Said::Wait(told) => (told.latest, &told.why) != (wait.latest, &wait.why),
            Said::Start => true,
        });
        self.pairs.entry(pair).or_insert(fresh).said = Said::Wait(wait);
        news
    }

    /// Forgets pairs that are not wanted any more; those of them that wait.
    pub(super) fn retain(&mut self, keep: impl Fn(&Pair) -> bool) -> Vec<Pair> {
        let gone: Vec<(Pair, Timed)> = self.pairs.extract_if(.., |pair, _| !keep(pair)).collect();
        gone.into_iter().filter(|(_, timed)| timed.said != Said::Start).map(|(pair, _)| pair).collect()
    }

    #[cfg(test)]
    pub(crate) fn waits(&self) -> usize {
        self.pairs.values().filter(|timed| timed.said != Said::Start).count()
    }
}
