//! What became of hints, in figures that add up: by decision, and by policy, queue and mode.

use crate::decision::Mode;
use hintd_model::units::QueueName;
use std::sync::Arc;

/// Why a container is not on the host that was hinted for it. Tokens are stable: scripts read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Miss {
    /// The hinted host had no room for it by what the model knew when the container appeared elsewhere.
    NoRoom,
    /// Its lease had reached its time-to-live before.
    Expired,
    /// Its lease had been withdrawn before: others took the room, or the node was gone.
    Withdrawn,
    /// The hinted host had room, and YARN, or the application's ask, chose otherwise.
    YarnChose,
    /// YARN had allocated the container before the hint was given.
    LateHint,
    /// The hinted host was not RUNNING when the container appeared elsewhere.
    NodeNotRunning,
    /// Never allocated: the application gave the lease back.
    Released,
    /// Never allocated: the application was over.
    AttemptDone,
    /// Never allocated in the time that hints are watched for.
    NotSeen,
    /// Never allocated while it was watched, which ended early: too many decisions were.
    Forgotten,
}

impl Miss {
    /// Every reason, in the order of their positions.
    pub const ALL: [Self; 10] = [
        Self::NoRoom,
        Self::Expired,
        Self::Withdrawn,
        Self::YarnChose,
        Self::LateHint,
        Self::NodeNotRunning,
        Self::Released,
        Self::AttemptDone,
        Self::NotSeen,
        Self::Forgotten,
    ];

    /// The token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::YarnChose => "yarn_chose",
            Self::LateHint => "late_hint",
            Self::NodeNotRunning => "node_not_running",
            Self::Released => "released",
            Self::AttemptDone => "attempt_done",
            Self::NotSeen => "not_seen",
            Self::Forgotten => "forgotten",
        }
    }
}

/// Hinted containers by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// Followed: on the hinted host.
    pub on_host: u64,
    /// Followed as far as the rack: on another host of its rack, or on one that was named as next best.
    pub in_rack: u64,
    /// Anywhere else.
    pub elsewhere: u64,
    /// Never allocated.
    pub never: u64,
    /// Of all that are not on their host, by [`Miss`].
    pub misses: [u64; Miss::ALL.len()],
}

impl Outcomes {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.on_host + self.in_rack + self.elsewhere + self.never
    }

    /// Whether there are some, and none came to its host or its rack.
    pub(super) const fn none_near(&self) -> bool {
        self.all() > 0 && self.on_host + self.in_rack == 0
    }

    /// Those of one reason.
    #[must_use]
    pub const fn missed(&self, why: Miss) -> u64 {
        self.misses[why as usize]
    }

    /// Adds containers that are not on their host.
    pub(super) const fn miss(&mut self, why: Miss, count: u64) {
        self.misses[why as usize] += count;
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.on_host += other.on_host;
        self.in_rack += other.in_rack;
        self.elsewhere += other.elsewhere;
        self.never += other.never;
        self.misses.iter_mut().zip(other.misses).for_each(|(sum, more)| *sum += more);
    }
}

/// A cost term that is compared between hints, reality and the default placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// Input bytes read from another host.
    RemoteBytes,
    /// Bytes that leave a rack.
    CrossRackBytes,
    /// Switches above the edge layer, summed over pairs of containers.
    CoreHops,
}

impl Term {
    /// Every term, in the order of their positions.
    pub const ALL: [Self; 3] = [Self::RemoteBytes, Self::CrossRackBytes, Self::CoreHops];

    /// Its name, as answers have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RemoteBytes => "remote_bytes",
            Self::CrossRackBytes => "cross_rack_bytes",
            Self::CoreHops => "core_hops",
        }
    }
}

/// Values of the compared terms; absent where one could not be computed.
pub(super) type TermRow = [Option<f64>; Term::ALL.len()];

/// Sums of one term over decisions of which both the hinted and the realised value are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TermSums {
    /// Decisions.
    pub decisions: u64,
    /// Of the placement that was hinted.
    pub hinted: f64,
    /// Of where YARN put the containers.
    pub realised: f64,
    /// Decisions that know the default placement's value as well; what follows is theirs alone.
    pub beside: u64,
    /// Of the default placement.
    pub default: f64,
    /// Of the placement that was hinted.
    pub beside_hinted: f64,
    /// Of where YARN put the containers.
    pub beside_realised: f64,
}

impl TermSums {
    pub(super) fn of(hinted: f64, realised: f64, default: Option<f64>) -> Self {
        let both = Self { decisions: 1, hinted, realised, ..Self::default() };
        match default {
            None => both,
            Some(default) => Self { beside: 1, default, beside_hinted: hinted, beside_realised: realised, ..both },
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.decisions += other.decisions;
        self.hinted += other.hinted;
        self.realised += other.realised;
        self.beside += other.beside;
        self.default += other.default;
        self.beside_hinted += other.beside_hinted;
        self.beside_realised += other.beside_realised;
    }

    /// What hints promised against the default placement: share of its cost that they save.
    #[must_use]
    pub fn expected_gain(&self) -> Option<f64> {
        saved(self.default, self.beside_hinted)
    }

    /// What came of it: share of the default placement's cost that reality saved.
    #[must_use]
    pub fn realised_gain(&self) -> Option<f64> {
        saved(self.default, self.beside_realised)
    }

    /// Had the hints been followed to the letter: share of the real cost that they would have saved.
    #[must_use]
    pub fn had_followed(&self) -> Option<f64> {
        saved(self.realised, self.hinted)
    }
}

/// Share of `of` that `by` saves; of nothing nothing can be saved.
fn saved(of: f64, by: f64) -> Option<f64> {
    (of > 0.0).then(|| (of - by) / of)
}

/// What became of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// Decisions that are settled; under mode `off`, requests that were let through.
    pub decisions: u64,
    /// Of these, compared in at least one term: all their placed containers were seen.
    pub compared: u64,
    /// Their hinted containers.
    pub outcomes: Outcomes,
    /// Input bytes of the decisions compared in remote bytes.
    pub input_bytes: f64,
    /// By [`Term`].
    pub terms: [TermSums; Term::ALL.len()],
    /// Sum of the expected gains under the deciding policies' own objectives ...
    pub objective_gain: f64,
    /// ... over so many decisions that had one. Of a group that is asked for in parts the first part counts, with the whole's; where that was kept back, none.
    pub objective_gains: u64,
    /// Of the decisions with hints those of which no container came to its host or its rack.
    pub not_followed: u64,
}

/// What became of the hinted containers of groups of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupTally {
    /// Decisions that have such a group.
    pub decisions: u64,
    /// Of these, those of which no container of the group came to its host or its rack.
    pub not_followed: u64,
    /// Containers.
    pub outcomes: Outcomes,
}

impl GroupTally {
    /// Of one decision.
    pub(super) fn of(outcomes: Outcomes) -> Self {
        Self { decisions: 1, not_followed: u64::from(outcomes.none_near()), outcomes }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.decisions += other.decisions;
        self.not_followed += other.not_followed;
        self.outcomes.add(&other.outcomes);
    }
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.decisions += other.decisions;
        self.compared += other.compared;
        self.outcomes.add(&other.outcomes);
        self.input_bytes += other.input_bytes;
        self.terms.iter_mut().zip(&other.terms).for_each(|(sum, more)| sum.add(more));
        self.objective_gain += other.objective_gain;
        self.objective_gains += other.objective_gains;
        self.not_followed += other.not_followed;
    }

    /// The sums of one term.
    #[must_use]
    pub const fn term(&self, term: Term) -> &TermSums {
        &self.terms[term as usize]
    }
}

/// Whose figures these are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TallyKey {
    /// The policy that decided.
    pub policy: Arc<str>,
    /// The queue; `(other)` for those beyond a bound.
    pub queue: QueueName,
    /// What the queue got.
    pub mode: Mode,
}
