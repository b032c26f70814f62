//! One decision that is watched: its groups, until when, and what came of it.

use super::group::{ContainerSighting, Group, HintProximity, Look, Row};
use super::lately::Followed;
use super::tally::{GroupTally, Miss, Outcomes, Tally, TallyKey, Term, TermRow, TermSums};
use super::trial::{self, Trial};
use crate::answer::Answer;
use crate::decision::{Decision, Hint};
use crate::lease::LeaseEnd;
use crate::packed::{pack, unpack};
use crate::placer;
use hintd_model::cluster::{Overlay, Snapshot};
use hintd_model::units::{HostName, Micros, NodeIdx, SchedulerKey, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clocks of applications and of this process may be so far apart.
const CLOCKS_APART: Micros = Micros::from_secs(1);

/// What a container is for, as far as is told.
#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    /// By its node.
    Key(SchedulerKey),
    /// By its application.
    Group(&'a str),
}

impl Kind<'_> {
    fn is_of(&self, group: &Group) -> bool {
        match self {
            Self::Key(key) => group.key == *key,
            Self::Group(name) => *group.name == **name,
        }
    }
}

/// How far a record has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Containers may still come.
    Open,
    /// None may; it waits for its turn to be costed.
    Closed,
    /// Counted.
    Finalized,
}

/// Hinted, realised and default value of one term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TermCompared {
    /// Which.
    pub term: Term,
    /// Of the placement that was hinted.
    pub hinted: f64,
    /// Of where YARN put the containers.
    pub realised: f64,
    /// Of the default placement, where there was time to make one.
    pub default: Option<f64>,
}

/// What became of one hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintOutcome {
    /// Group.
    pub group: Arc<str>,
    /// Host that was hinted.
    pub host: HostName,
    /// Containers.
    pub count: u32,
    /// Not seen yet.
    pub open: u64,
    /// The others.
    pub outcomes: Outcomes,
    /// Where those of them came that are not on its host: nodes, and how many. Of a settled decision no more than
    /// [`PLACES_KEPT`], so that there may be fewer than came in its rack or elsewhere.
    pub came: Vec<(NodeIdx, u32)>,
}

/// Nodes that are kept of a settled decision, by hint, beside its counts.
pub const PLACES_KEPT: usize = 256;

/// What became of one decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionOutcome {
    /// Whether nothing more is expected.
    pub settled: bool,
    /// In the order of the decision's hints.
    pub hints: Vec<HintOutcome>,
    /// Terms that could be compared; empty before it is settled, and where not all placed containers were seen.
    pub terms: Vec<TermCompared>,
}

/// What is known of a decision's outcome, not unpacked.
#[derive(Debug)]
pub(crate) enum KeptOutcome {
    /// More is expected.
    Open(DecisionOutcome),
    /// A [`Kept`], packed.
    Settled(Box<[u8]>),
}

/// What is kept of a settled outcome: by hint its outcomes and misses without the zeros at the end; terms by position; the
/// hint's position, a node, and how many of its containers came there, of the first so many. Rows without names, for these
/// are packed by the hundred thousand.
type Kept = (Vec<Vec<u64>>, Vec<(usize, f64, f64, Option<f64>)>, Vec<(u32, u32, u32)>);

impl DecisionOutcome {
    /// A settled one in few bytes; the rest is its decision's.
    pub(super) fn pack(&self) -> Box<[u8]> {
        let hint = |hint: &HintOutcome| {
            let Outcomes { on_host, in_rack, elsewhere, never, misses } = hint.outcomes;
            let mut counts: Vec<u64> = [on_host, in_rack, elsewhere, never].into_iter().chain(misses).collect();
            counts.truncate(counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
            counts
        };
        let term = |found: &TermCompared| (found.term as usize, found.hinted, found.realised, found.default);
        let places = (0_u32..).zip(&self.hints).flat_map(|(at, hint)| {
            let place = move |&(node, count): &(NodeIdx, u32)| (at, node.0, count);
            hint.came.iter().map(place)
        });
        let kept: Kept = (
            self.hints.iter().map(hint).collect(),
            self.terms.iter().map(term).collect(),
            places.take(PLACES_KEPT).collect(),
        );
        pack(&kept)
    }

    /// The outcome of a decision; `None`: it is not this decision's.
    pub(crate) fn of_kept(kept: KeptOutcome, decision: &Decision) -> Option<Self> {
        match kept {
            KeptOutcome::Open(outcome) => Some(outcome),
            KeptOutcome::Settled(bytes) => Self::unpack(&bytes, decision),
        }
    }

    /// The outcome again; `None`: the bytes are not this decision's.
    pub(super) fn unpack(bytes: &[u8], decision: &Decision) -> Option<Self> {
        let (hints, terms, places): Kept = unpack(bytes)?;
        let mut came: BTreeMap<usize, Vec<(NodeIdx, u32)>> = BTreeMap::new();
        places
            .into_iter()
            .for_each(|(at, node, count)| came.entry(at as usize).or_default().push((NodeIdx(node), count)));
        let hint = |(at, (counts, hint)): (usize, (Vec<u64>, &Hint))| {
            let count = |at: usize| counts.get(at).copied().unwrap_or(0);
            let mut outcomes = Outcomes {
                on_host: count(0),
                in_rack: count(1),
                elsewhere: count(2),
                never: count(3),
                misses: Default::default(),
            };
            outcomes.misses.iter_mut().zip(4..).for_each(|(miss, at)| *miss = count(at));
            HintOutcome {
                group: Arc::clone(&hint.group),
                host: hint.host.clone(),
                count: hint.count,
                open: 0,
                outcomes,
                came: came.remove(&at).unwrap_or_default(),
            }
        };
        let term = |(term, hinted, realised, default): (usize, _, _, _)| {
            Some(TermCompared { term: *Term::ALL.get(term)?, hinted, realised, default })
        };
        let terms = terms.into_iter().map(term).collect::<Option<_>>()?;
        let hints = hints.into_iter().zip(&decision.hints).enumerate().map(hint).collect();
        Some(Self { settled: true, hints, terms })
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) answer: Arc<Answer>,
    pub(super) stage: Stage,
    /// When it closes by itself.
    pub(super) closes: Timestamp,
    /// Why what has not come by then never will.
    pub(super) because: Miss,
    /// Its answer was forgotten: nobody will ask for it once it is counted.
    pub(super) orphan: bool,
    /// Its caller was gone when the answer was made, and nobody has fetched it since: nothing of it could be followed.
    pub(super) unheard: bool,
    /// Leases given back.
    released: u32,
    groups: Vec<Group>,
    trial: Option<Box<Trial>>,
    terms: Vec<TermCompared>,
}

impl Record {
    /// `rows` are the containers of the hints, position by position.
    pub(super) fn new(
        answer: &Arc<Answer>,
        rows: &[placer::Row],
        trial: Option<Box<Trial>>,
        snapshot: &Snapshot,
        closes: Timestamp,
    ) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for ((at, hint), row) in (0_u32..).zip(&answer.decision.hints).zip(rows) {
            let known = groups.iter().rposition(|group| group.name == hint.group);
            let group = known.unwrap_or_else(|| {
                groups.push(Group::new(Arc::clone(&hint.group), row.key, row.size));
                groups.len() - 1
            });
            groups[group].push(Row::new(at, row.node, snapshot.rack(row.node), row.count));
        }
        let hinted = |name: &Arc<str>| groups.iter().filter(|group| group.name == *name).map(Group::open).sum::<u32>();
        // What was cut after it was costed can't be compared with what it cost.
        let whole = |trial: &Trial| trial.groups.iter().all(|group| hinted(&group.name) >= group.placed);
        let trial = trial.filter(|trial| whole(trial));
        let (stage, because, released, terms) = (Stage::Open, Miss::NotSeen, 0, Vec::new());
        let (answer, orphan, unheard) = (Arc::clone(answer), false, false);
        Self { answer, stage, closes, because, orphan, unheard, released, groups, trial, terms }
    }

    pub(super) fn key(&self) -> TallyKey {
        let decision = &self.answer.decision;
        TallyKey { policy: Arc::clone(&decision.policy), queue: decision.queue.clone(), mode: decision.mode }
    }

    /// How near a container comes to a hint of a group that it may be for, and the group's position.
    pub(super) fn nearest(
        &mut self,
        kind: &Kind<'_>,
        spot: ContainerSighting,
        snapshot: &Snapshot,
    ) -> Option<(HintProximity, usize)> {
        let now = Now { snapshot, answer: &self.answer };
        let of_kind = self.groups.iter_mut().enumerate().filter(|(_, group)| kind.is_of(group));
        of_kind.filter_map(|(at, group)| Some((group.nearest(spot, &now)?, at))).min()
    }

    /// Takes a container into the group at this position. `allocated`: when, where its application said so.
    pub(super) fn take(
        &mut self,
        group: usize,
        mut spot: ContainerSighting,
        allocated: Option<Timestamp>,
        snapshot: &Snapshot,
    ) {
        let now = Now { snapshot, answer: &self.answer };
        spot.late = allocated.is_some_and(|at| at.plus(CLOCKS_APART) < self.answer.decision.at);
        self.groups[group].take(spot, &now);
    }

    /// Containers that were not seen yet.
    pub(super) fn open(&self) -> u32 {
        self.groups.iter().map(Group::open).sum()
    }

    /// How many came to their host so far, without a look at each hint.
    pub(super) fn followed(&self) -> Followed {
        let sum = |of: fn(&Group) -> u32| self.groups.iter().map(|group| u64::from(of(group))).sum();
        let (hinted, on_host) = (sum(|group| group.followed().0), sum(|group| group.followed().1));
        Followed {
            on_host,
            in_rack: 0,
            hinted,
            awaited: sum(Group::open),
            settled: false,
            why: None,
            realised_gain: None,
        }
    }

    /// What keeping it takes, in rows and blocks.
    pub(super) fn weight(&self) -> usize {
        let rows: usize = self.groups.iter().map(|group| group.rows.len()).sum();
        rows + self.trial.as_ref().map_or(0, |trial| trial.blocks())
    }

    /// A lease ended without a container that is known by name; whether all that was not seen yet is given back by now.
    pub(super) fn lease_ended(&mut self, group: &str, node: NodeIdx, end: LeaseEnd, snapshot: &Snapshot) -> bool {
        let now = Now { snapshot, answer: &self.answer };
        if let Some(group) = self.groups.iter_mut().find(|known| *known.name == *group) {
            group.lease_ended(node, end, &now);
        }
        if end != LeaseEnd::Released {
            return false;
        }
        self.released += 1;
        // Looking at each row only when it may be so: leases are given back many at a time.
        self.released >= self.open() && self.groups.iter().all(|group| group.open() == group.given_back())
    }

    /// It is not to be compared: there is no time for it.
    pub(super) fn spare(&mut self) {
        self.trial = None;
    }

    /// What costing it takes.
    pub(super) fn work(&self) -> usize {
        self.trial.as_ref().map_or(0, |trial| trial.work())
    }

    /// Ends the watch.
    pub(super) fn close(&mut self) {
        self.stage = Stage::Closed;
        self.groups.iter_mut().for_each(Group::close);
    }

    /// Costs where its containers are, and counts.
    pub(super) fn finalize(&mut self, snapshot: &Snapshot, leases: &Overlay) -> Tally {
        self.stage = Stage::Finalized;
        let mut tally = Tally { decisions: 1, ..Tally::default() };
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            tally.outcomes.add(&row.outcomes(Some(self.because)).0);
        }
        tally.not_followed = u64::from(tally.outcomes.none_near());
        let decision = &self.answer.decision;
        // The whole's gain comes with its first part; what comes after it is no other gain.
        let is_first = decision.terms_of_whole.is_none_or(|whole| whole.earlier == 0);
        if let Some(gain) = decision.expected_gain.filter(|_| is_first) {
            (tally.objective_gain, tally.objective_gains) = (gain, 1);
        }
        let Some(trial) = self.trial.take() else { return tally };
        let Some(realised) = self.realised(&trial) else { return tally };
        let realised = trial.evaluate(realised, snapshot, leases);
        let hinted = trial::compared(&decision.terms);
        let default = decision.baseline.as_ref().map(trial::compared).unwrap_or_default();
        self.terms = compare(&hinted, &realised, &default);
        for found in &self.terms {
            tally.terms[found.term as usize] = TermSums::of(found.hinted, found.realised, found.default);
        }
        tally.compared = u64::from(!self.terms.is_empty());
        if tally.term(Term::RemoteBytes).decisions > 0 {
            tally.input_bytes = trial.input_bytes();
        }
        tally
    }

    /// What became of its groups, now that no more is expected.
    pub(super) fn by_group(&self) -> Vec<(Arc<str>, GroupTally)> {
        let of = |group: &Group| {
            let mut all = Outcomes::default();
            group.rows.iter().for_each(|row| all.add(&row.outcomes(Some(self.because)).0));
            (Arc::clone(&group.name), GroupTally::of(all))
        };
        self.groups.iter().map(of).collect()
    }

    /// By group of the trial, as many containers as its hints placed; `None`: some were never seen.
    fn realised(&self, trial: &Trial) -> Option<Vec<Vec<hintd_policy::Share>>> {
        let group = |name: &Arc<str>| self.groups.iter().find(|group| group.name == *name);
        let places = trial.groups.iter().map(|known| match group(&known.name) {
            Some(group) => group.realised(known.placed),
            None => (known.placed == 0).then(Vec::new),
        });
        places.collect()
    }

    /// What became of it so far.
    pub(super) fn outcome(&self) -> DecisionOutcome {
        let ended = (self.stage != Stage::Open).then_some(self.because);
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let mut rows: Vec<&Row> = rows.collect();
        rows.sort_by_key(|row| row.hint);
        let hint = |row: &Row| {
            let hint = &self.answer.decision.hints[row.hint as usize];
            let (outcomes, open) = row.outcomes(ended);
            let (group, host, came) = (Arc::clone(&hint.group), hint.host.clone(), row.came());
            HintOutcome { group, host, count: hint.count, open, outcomes, came }
        };
        let hints = rows.into_iter().map(hint).collect();
        DecisionOutcome { settled: self.stage == Stage::Finalized, hints, terms: self.terms.clone() }
    }
}

fn compare(hinted: &TermRow, realised: &TermRow, default: &TermRow) -> Vec<TermCompared> {
    let term = |term: Term| {
        let at = term as usize;
        Some(TermCompared { term, hinted: hinted[at]?, realised: realised[at]?, default: default[at] })
    };
    Term::ALL.into_iter().filter_map(term).collect()
}

/// What a record's groups must be told of the cluster of now.
struct Now<'a> {
    snapshot: &'a Snapshot,
    answer: &'a Answer,
}

impl Look for Now<'_> {
    fn why_not(&self, node: NodeIdx, size: &hintd_model::cluster::Resource) -> Miss {
        let snapshot = self.snapshot;
        if !snapshot.state.get(node.at()).is_some_and(|state| state.usable()) {
            return Miss::NodeNotRunning;
        }
        // YARN knows nothing of leases: to it, their room is room.
        let room = snapshot.rules.feasible(size, &snapshot.unoccupied(node));
        if room { Miss::YarnChose } else { Miss::NoRoom }
    }

    fn fallbacks(&self, hint: u32) -> Vec<NodeIdx> {
        let hosts = self.answer.decision.hints[hint as usize].fallbacks.iter();
        hosts.filter_map(|host| self.snapshot.statics.by_host.get(host).copied()).collect()
    }
}
