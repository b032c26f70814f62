//! Answers by request id: the same id and body get the same answer, for as long as a retry may come.

use super::attempts::Token;
use super::decision::{Decision, Refusal};
use super::journal::{Op, Table, text_key};
use super::lease::LeaseEnd;
use crate::units::{DecisionId, LeaseId, Micros, RequestId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A committed answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What was decided.
    pub decision: Decision,
    /// The attempt's token.
    pub token: Token,
    /// Of the request's body, by the caller's own stable hash.
    pub digest: u64,
}

impl Answer {
    /// Leases it granted.
    pub fn leases(&self) -> impl Iterator<Item = LeaseId> {
        self.decision.hints.iter().flat_map(|hint| &hint.leases).copied()
    }

    pub(crate) fn put(&self) -> Op {
        let value = serde_json::to_vec(self).expect("an answer has only texts, numbers and string-keyed maps");
        Op::put(Table::Answers, text_key(self.decision.request.as_str()), value)
    }
}

/// Answers kept.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    entries: BTreeMap<RequestId, Entry>,
    by_decision: BTreeMap<DecisionId, RequestId>,
    /// Answers without live leases, by when they are to be forgotten.
    due: BTreeSet<(Timestamp, RequestId)>,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Answer>,
    live: BTreeSet<LeaseId>,
    ended: BTreeMap<LeaseId, LeaseEnd>,
    forget_at: Option<Timestamp>,
}

impl Answers {
    /// The answer of an id; refused if it was another body's.
    pub(crate) fn lookup(&self, id: &RequestId, digest: u64) -> Option<Result<Arc<Answer>, Refusal>> {
        let entry = self.entries.get(id)?;
        if entry.answer.digest == digest {
            Some(Ok(Arc::clone(&entry.answer)))
        } else {
            Some(Err(Refusal::IdReused { id: id.clone() }))
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &RequestId> {
        self.entries.keys()
    }

    /// Answers in the order of their decisions.
    pub(crate) fn by_age(&self) -> Vec<Arc<Answer>> {
        let entries = self.by_decision.values().filter_map(|id| self.entries.get(id));
        entries.map(|entry| Arc::clone(&entry.answer)).collect()
    }

    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.entries.contains_key(id)
    }

    /// Keeps an answer; `live` are those of its leases that run.
    pub(crate) fn insert(&mut self, answer: Arc<Answer>, live: BTreeSet<LeaseId>, now: Timestamp, keep: Micros) {
        let id = answer.decision.request.clone();
        self.by_decision.insert(answer.decision.id, id.clone());
        let forget_at = live.is_empty().then(|| now.plus(keep));
        if let Some(at) = forget_at {
            self.due.insert((at, id.clone()));
        }
        self.entries.insert(id, Entry { answer, live, ended: BTreeMap::new(), forget_at });
    }

    /// A lease of the answer ended.
    pub(crate) fn lease_ended(&mut self, id: &RequestId, lease: LeaseId, end: LeaseEnd, forget_at: Timestamp) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if entry.live.remove(&lease) {
            entry.ended.insert(lease, end);
            if entry.live.is_empty() {
                entry.forget_at = Some(forget_at);
                self.due.insert((forget_at, id.clone()));
            }
        }
    }

    /// How a lease of the answer ended, if it did in this process.
    pub(crate) fn ended(&self, id: &RequestId, lease: LeaseId) -> Option<LeaseEnd> {
        self.entries.get(id)?.ended.get(&lease).copied()
    }

    pub(crate) fn by_decision(&self, decision: DecisionId) -> Option<&Arc<Answer>> {
        Some(&self.entries.get(self.by_decision.get(&decision)?)?.answer)
    }

    /// When an id was answered.
    pub(crate) fn decided(&self, id: &RequestId) -> Option<Timestamp> {
        Some(self.entries.get(id)?.answer.decision.at)
    }

    /// Keeps an answer that has no live leases until then.
    pub(crate) fn keep(&mut self, id: &RequestId, until: Timestamp) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.live.is_empty()) else { return };
        if let Some(before) = entry.forget_at.replace(until) {
            self.due.remove(&(before, id.clone()));
        }
        self.due.insert((until, id.clone()));
    }

    pub(crate) fn get(&self, id: &RequestId) -> Option<&Arc<Answer>> {
        self.entries.get(id).map(|entry| &entry.answer)
    }

    /// Forgets an answer.
    pub(crate) fn remove(&mut self, id: &RequestId) -> Option<Arc<Answer>> {
        let entry = self.entries.remove(id)?;
        self.by_decision.remove(&entry.answer.decision.id);
        if let Some(at) = entry.forget_at {
            self.due.remove(&(at, id.clone()));
        }
        Some(entry.answer)
    }

    /// Answers to forget now: their time has come.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<RequestId> {
        self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// Answers to forget so that at most `most` stay; those with live leases stay whatever their number,
    /// which the room of the cluster bounds.
    pub(crate) fn too_many(&self, most: usize) -> Vec<RequestId> {
        let surplus = self.entries.len().saturating_sub(most);
        self.due.iter().take(surplus).map(|(_, id)| id.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::answer;

    const KEEP: Micros = Micros::from_secs(600);

    #[test]
    fn an_answer_is_kept_until_some_time_after_its_last_lease() {
        let mut answers = Answers::default();
        let kept = answer("r1", 7);
        answers.insert(Arc::clone(&kept), BTreeSet::from([LeaseId(1), LeaseId(2)]), Timestamp(0), KEEP);
        let end = |second: u64| Timestamp(0).plus(Micros::from_secs(second)).plus(KEEP);
        answers.lease_ended(&"r1".into(), LeaseId(1), LeaseEnd::Bound, end(10));
        assert!(answers.due(end(10_000)).is_empty(), "one lease still runs");
        answers.lease_ended(&"r1".into(), LeaseId(2), LeaseEnd::Expired, end(20));
        answers.lease_ended(&"r1".into(), LeaseId(2), LeaseEnd::Expired, end(30));
        assert!(answers.due(end(19)).is_empty());
        assert_eq!(answers.due(end(20)), [RequestId::from("r1")]);
        assert_eq!(answers.ended(&"r1".into(), LeaseId(1)), Some(LeaseEnd::Bound));
        assert_eq!(answers.lookup(&"r1".into(), 7), Some(Ok(kept)));
        assert_eq!(answers.lookup(&"r1".into(), 8), Some(Err(Refusal::IdReused { id: "r1".into() })));
    }

    #[test]
    fn of_too_many_answers_the_oldest_without_leases_go() {
        let mut answers = Answers::default();
        answers.insert(answer("leased", 1), BTreeSet::from([LeaseId(1)]), Timestamp(0), KEEP);
        answers.insert(answer("old", 2), BTreeSet::new(), Timestamp(1), KEEP);
        answers.insert(answer("new", 3), BTreeSet::new(), Timestamp(2), KEEP);
        assert_eq!(answers.too_many(2), [RequestId::from("old")]);
        assert_eq!(answers.too_many(0).len(), 2, "the leased one stays");
    }
}
