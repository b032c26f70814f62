//! Flows follow containers: where those of a job came elsewhere than hinted, what they send goes from there and to there.

use super::Flows;
use super::job::{self, Job, Move, Moves};
use super::registry::Wanted;
use super::settings::RouteSettings;
use crate::arrivals::{Arrived, ArrivedView};
use crate::routes::Cause;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{AttemptId, DecisionId, GroupIdx, NodeIdx};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Pairs of nodes that one look may work out anew; the rest is for the next one. Jobs of more pairs are looked at as much less
/// often.
const PAIRS_MAX: usize = 20_000;

impl Flows {
    /// Brings jobs up to date with where their containers came.
    pub(crate) fn follow_containers(&mut self, arrived: &ArrivedView, at: (&Snapshot, &RouteSettings)) {
        let mut work = 0;
        self.looks = self.looks.wrapping_add(1);
        let due = self.next_followed; // whose turn it was when the last look ended
        for attempt in self.attempts_in_turn() {
            let Some(now) = arrived.get(&attempt) else { continue };
            if work > PAIRS_MAX {
                self.next_followed = Some(attempt);
                return;
            }
            work += self.follow_attempt(attempt, now, due == Some(attempt), at);
        }
    }

    /// From where the last look ended.
    fn attempts_in_turn(&mut self) -> Vec<AttemptId> {
        let all = || self.by_attempt.keys().copied();
        match self.next_followed.take() {
            Some(first) => all().filter(|of| *of >= first).chain(all().filter(|of| *of < first)).collect(),
            None => all().collect(),
        }
    }

    /// Pairs that were worked out anew, and rows that were looked at.
    fn follow_attempt(
        &mut self,
        attempt: AttemptId,
        now: &Arc<Arrived>,
        due: bool,
        at: (&Snapshot, &RouteSettings),
    ) -> usize {
        let of_it = self.by_attempt.get(&attempt).into_iter().flatten();
        let jobs: Vec<(DecisionId, &Job)> =
            of_it.filter_map(|id| self.jobs.get_key_value(id)).map(|(id, job)| (*id, job)).collect();
        if jobs.iter().all(|(_, job)| job.followed.as_ref().is_some_and(|known| Arc::ptr_eq(known, now))) {
            return 0;
        }
        let pairs: usize = jobs.iter().map(|(_, job)| job.traffic.flows.len()).sum();
        let rows = jobs.len() * now.rows();
        if !due && !self.looks.is_multiple_of(1 + (pairs + rows) / PAIRS_MAX) {
            return 0;
        }
        let is_there = |node: NodeIdx| at.0.state.get(node.at()).is_some_and(|state| !state.gone());
        let alone: Vec<&Job> = jobs.iter().map(|(_, job)| *job).collect();
        let moves = moves(&alone, now, is_there);
        let moves: Vec<(DecisionId, Moves)> = jobs.iter().map(|(id, _)| *id).zip(moves).collect();
        rows + moves.into_iter().map(|(decision, moves)| self.follow_job(decision, moves, now, at)).sum::<usize>()
    }

    fn follow_job(
        &mut self,
        decision: DecisionId,
        moves: Moves,
        now: &Arc<Arrived>,
        at: (&Snapshot, &RouteSettings),
    ) -> usize {
        let Some(job) = self.jobs.get_mut(&decision) else { return 0 }; // others took all room for pairs
        job.followed = Some(Arc::clone(now));
        if job.moves == moves {
            return 0;
        }
        let before = std::mem::replace(&mut job.moves, moves);
        let pairs = job::most_pairs(&job.edges, &job.shares());
        if pairs > at.1.pairs_max {
            job.moves = before;
            return 0;
        }
        for to in job.moves.keys().map(|of| of.to) {
            self.by_node.entry(to).or_default().insert(decision);
        }
        let sends = job.reckon();
        let on: BTreeSet<NodeIdx> = job.nodes().collect();
        for node in before.keys().map(|of| of.to).filter(|node| !on.contains(node)) {
            self.forget_node(node, decision);
        }
        self.sends(decision, sends, Wanted::NONE, &Cause::new("came", decision.to_string()), at);
        self.enforce_limit(decision, at);
        pairs
    }
}

/// Which tasks of each of an attempt's jobs moved: a container that came where a job hinted one is that one; of those that are
/// left each is one of the oldest job's that still waits for some of its group.
fn moves(jobs: &[&Job], now: &Arrived, is_there: impl Fn(NodeIdx) -> bool) -> Vec<Moves> {
    let groups: BTreeSet<&Arc<str>> = jobs.iter().flat_map(|job| job.groups.iter()).collect();
    let came = |group: &str| now.of(group).filter(|(node, _)| is_there(*node)).collect::<BTreeMap<NodeIdx, u32>>();
    let mut found = vec![Moves::new(); jobs.len()];
    for name in groups {
        let mut left = came(name);
        let of_group = |job: &&Job| job.groups.iter().position(|group| group == name);
        let waiting = jobs.iter().enumerate().filter_map(|(at, job)| Some((at, Waiting::of(job, of_group(job)?, now))));
        let mut waiting: Vec<(usize, Waiting)> = waiting.collect();
        for (_, job) in &mut waiting {
            job.take_hinted(&mut left);
        }
        for (at, job) in &mut waiting {
            job.take_others(&mut left, &mut found[*at]);
        }
    }
    found
}

/// One job's tasks of one group that have not come.
struct Waiting {
    group: GroupIdx,
    /// By node where they were hinted.
    hinted: BTreeMap<NodeIdx, u32>,
    /// By node: containers that came since the decision and are not known to be another job's.
    since: BTreeMap<NodeIdx, u32>,
}

impl Waiting {
    fn of(job: &Job, group: usize, now: &Arrived) -> Self {
        let name = &job.groups[group];
        let mut hinted = BTreeMap::new();
        // YARN never saw the hints of the others: what comes is not theirs.
        for share in job.heard().flat_map(|part| &part[group]) {
            *hinted.entry(share.node).or_default() += share.count;
        }
        let mut since: BTreeMap<NodeIdx, u32> = now.of(name).collect();
        for (node, before) in job.before.iter().flat_map(|before| before.of(name)) {
            if let Some(count) = since.get_mut(&node) {
                *count = count.saturating_sub(before);
            }
        }
        Self { group: GroupIdx::new(group), hinted, since }
    }

    fn take_hinted(&mut self, left: &mut BTreeMap<NodeIdx, u32>) {
        for (node, waits) in &mut self.hinted {
            let (Some(came), Some(since)) = (left.get_mut(node), self.since.get_mut(node)) else { continue };
            let taken = (*waits).min(*came).min(*since);
            (*waits, *came, *since) = (*waits - taken, *came - taken, *since - taken);
        }
    }

    fn take_others(&mut self, left: &mut BTreeMap<NodeIdx, u32>, moves: &mut Moves) {
        // Nobody says which hint a container elsewhere stands for: where most are waited for, most will not come.
        let mut waiting: Vec<(NodeIdx, u32)> = self.hinted.iter().map(|(node, waits)| (*node, *waits)).collect();
        waiting.retain(|(_, waits)| *waits > 0);
        waiting.sort_by_key(|(node, waits)| (Reverse(*waits), *node));
        let mut waiting = waiting.into_iter();
        let mut next = waiting.next();
        for (&to, came) in left {
            let mut taken = self.since.get(&to).copied().unwrap_or(0).min(*came);
            while let Some((from, waits)) = next.filter(|_| taken > 0) {
                let many = taken.min(waits);
                (taken, *came) = (taken - many, *came - many);
                *moves.entry(Move { group: self.group, from, to }).or_default() += many;
                next = if waits > many { Some((from, waits - many)) } else { waiting.next() };
            }
        }
    }
}
