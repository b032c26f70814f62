//! Answers by request id: the same id and body get the same answer, for as long as a retry may come.

use super::answer::Answer;
use super::ended_leases::{EndedLeases, note_end};
use super::lease::LeaseEnd;
use super::packed::pack_text;
use super::packed_answer::PackedAnswer;
use super::refusal::Refusal;
use hintd_model::units::{ApplicationId, AttemptId, DecisionId, LeaseId, Micros, RequestId, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Answers kept, packed: most are never asked for again, and there may be hundreds of thousands.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    entries: BTreeMap<RequestId, Entry>,
    by_decision: BTreeMap<DecisionId, RequestId>,
    /// Answers without live leases, by when they are to be forgotten.
    due: BTreeSet<(Timestamp, RequestId)>,
    by_application: BTreeMap<ApplicationId, OfApplication>,
    /// Applications by how many answers they have, and by their bytes.
    by_count: Order,
    by_bytes: Order,
    /// Of all rows, and of those of answers without live leases.
    bytes: usize,
    idle_bytes: usize,
}

/// An application among the others: the last one loses its oldest answer. Whoever has less than twice as much as another
/// has as much: then the oldest answer goes.
type Rank = (u32, Reverse<Timestamp>, ApplicationId);

/// Applications by one measure of theirs.
#[derive(Debug, Default)]
struct Order {
    /// Those of which some answer may go.
    ranks: BTreeSet<Rank>,
    /// How many applications there are of each size, whether their answers may go or not.
    sizes: BTreeMap<u32, usize>,
}

/// Where an application stands in an [`Order`].
#[derive(Debug, Clone, Copy, PartialEq)]
struct SizeRank {
    /// `None`: it has no answers.
    size: Option<u32>,
    /// `None`: none of its answers may go.
    rank: Option<Rank>,
}

impl Order {
    /// Only what differs is touched: a change moves few applications.
    fn moved(&mut self, before: SizeRank, after: SizeRank) {
        if before.size != after.size {
            if let Some(size) = before.size
                && let Some(count) = self.sizes.get_mut(&size)
            {
                *count -= 1;
                if *count == 0 {
                    self.sizes.remove(&size);
                }
            }
            if let Some(size) = after.size {
                *self.sizes.entry(size).or_default() += 1;
            }
        }
        if before.rank != after.rank {
            if let Some(rank) = before.rank {
                self.ranks.remove(&rank);
            }
            self.ranks.extend(after.rank);
        }
    }

    /// The size of the largest application.
    fn largest(&self) -> Option<u32> {
        self.sizes.last_key_value().map(|(&size, _)| size)
    }
}

/// What is kept of one application.
#[derive(Debug, Default)]
struct OfApplication {
    count: usize,
    bytes: usize,
    idle_bytes: usize,
    /// Those without live leases, as in [`Answers::due`].
    idle: BTreeSet<(Timestamp, RequestId)>,
}

impl OfApplication {
    /// Where it stands by count and by bytes; sizes are powers of two.
    fn size_ranks(&self, application: ApplicationId) -> [SizeRank; 2] {
        let oldest = self.idle.first().map(|(oldest, _)| Reverse(*oldest));
        [self.count, self.bytes].map(|amount| {
            let size = amount.checked_ilog2().unwrap_or(0);
            let rank = oldest.map(|oldest| (size, oldest, application));
            SizeRank { size: (self.count > 0).then_some(size), rank }
        })
    }
}

#[derive(Debug)]
struct Entry {
    packed: Arc<[u8]>,
    /// Of its row in the journal.
    bytes: usize,
    /// Of the answer, to be had without unpacking it.
    decision: DecisionId,
    attempt: AttemptId,
    at: Timestamp,
    digest: u64,
    /// Whether some of its tasks wait for a dispatcher.
    waits: bool,
    live: BTreeSet<LeaseId>,
    /// Ascending.
    ended: Vec<EndedLeases>,
    forget_at: Option<Timestamp>,
}

/// A decision whose answer is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptDecision<'a> {
    pub(crate) decision: DecisionId,
    pub(crate) attempt: AttemptId,
    pub(crate) request: &'a RequestId,
}

/// An answer and what became of its leases.
#[derive(Debug)]
pub(crate) struct KeptLeases<'a> {
    pub(crate) answer: PackedAnswer,
    /// Ascending.
    pub(crate) live: &'a BTreeSet<LeaseId>,
    pub(crate) ended: &'a [EndedLeases],
}

/// Runs of ids that follow each other, as first and last; nothing lies within a run but what is told.
pub(crate) fn runs(ids: &BTreeSet<LeaseId>) -> Vec<(LeaseId, LeaseId)> {
    let mut runs: Vec<(LeaseId, LeaseId)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if last.0.checked_add(1) == Some(id.0) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    runs
}

impl Entry {
    fn answer(&self) -> PackedAnswer {
        PackedAnswer::new(self.decision, Arc::clone(&self.packed))
    }
}

impl Answers {
    /// The answer of an id; refused if it was another body's.
    pub(crate) fn of(&self, id: &RequestId, digest: u64) -> Option<Result<PackedAnswer, Refusal>> {
        let entry = self.entries.get(id)?;
        if entry.digest == digest { Some(Ok(entry.answer())) } else { Some(Err(Refusal::IdReused { id: id.clone() })) }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &RequestId> {
        self.entries.keys()
    }

    /// Decisions in their order.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = KeptDecision<'_>> {
        let entry = |(&decision, request)| {
            let attempt = self.entries.get(request)?.attempt;
            Some(KeptDecision { decision, attempt, request })
        };
        self.by_decision.iter().filter_map(entry)
    }

    /// Whether a decision's answer is kept, for a repeat.
    pub(crate) fn keeps(&self, decision: DecisionId) -> bool {
        self.by_decision.contains_key(&decision)
    }

    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.entries.contains_key(id)
    }

    /// Keeps an answer, of which `row` is the row; `live` are those of its leases that run.
    pub(crate) fn insert(
        &mut self,
        (answer, row): (&Answer, &[u8]),
        live: BTreeSet<LeaseId>,
        now: Timestamp,
        keep: Micros,
    ) {
        let decision = &answer.decision;
        let id = decision.request.clone();
        self.remove(&id); // a row that was written twice counts once
        self.by_decision.insert(decision.id, id.clone());
        let forget_at = live.is_empty().then(|| now.plus(keep));
        self.bytes += row.len();
        self.of_application(decision.attempt.application, |of| {
            of.count += 1;
            of.bytes += row.len();
        });
        if let Some(at) = forget_at {
            self.rest(decision.attempt.application, at, &id, row.len());
        }
        let entry = Entry {
            packed: pack_text(row).into(),
            bytes: row.len(),
            decision: decision.id,
            attempt: decision.attempt,
            at: decision.at,
            digest: answer.digest,
            waits: !decision.pending.is_empty(),
            live,
            ended: Vec::new(),
            forget_at,
        };
        self.entries.insert(id, entry);
    }

    /// A lease of the answer ended.
    pub(crate) fn lease_ended(&mut self, id: &RequestId, lease: LeaseId, end: LeaseEnd, forget_at: Timestamp) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if !entry.live.remove(&lease) {
            return;
        }
        note_end(&mut entry.ended, lease, end);
        if entry.live.is_empty() {
            entry.ended.shrink_to_fit();
            entry.forget_at = Some(forget_at);
            let (application, bytes) = (entry.attempt.application, entry.bytes);
            self.rest(application, forget_at, id, bytes);
        }
    }

    /// An answer has no live leases: it may go when there are too many, and does at its time.
    fn rest(&mut self, application: ApplicationId, until: Timestamp, id: &RequestId, bytes: usize) {
        self.due.insert((until, id.clone()));
        self.idle_bytes += bytes;
        self.of_application(application, |of| {
            of.idle_bytes += bytes;
            of.idle.insert((until, id.clone()));
        });
    }

    /// It may not go, or not at that time.
    fn rouse(&mut self, application: ApplicationId, until: Timestamp, id: &RequestId, bytes: usize) {
        let row = (until, id.clone());
        self.due.remove(&row);
        self.idle_bytes -= bytes;
        self.of_application(application, |of| {
            of.idle_bytes -= bytes;
            of.idle.remove(&row);
        });
    }

    /// Changes what is noted of an application, and where that puts it among the others.
    fn of_application(&mut self, application: ApplicationId, change: impl FnOnce(&mut OfApplication)) {
        let of = self.by_application.entry(application).or_default();
        let before = of.size_ranks(application);
        change(of);
        let after = of.size_ranks(application);
        if of.count == 0 {
            self.by_application.remove(&application);
        }
        self.by_count.moved(before[0], after[0]);
        self.by_bytes.moved(before[1], after[1]);
    }

    /// A decision's answer, the first and the last of its leases that run, and how the others ended.
    pub(crate) fn explain(&self, decision: DecisionId) -> Option<KeptLeases<'_>> {
        let entry = self.entries.get(self.by_decision.get(&decision)?)?;
        Some(KeptLeases { answer: entry.answer(), live: &entry.live, ended: &entry.ended })
    }

    /// A decision's answer; unpacked, so not to be called for many at a time.
    pub(crate) fn by_decision(&self, decision: DecisionId) -> Option<Arc<Answer>> {
        self.get(self.by_decision.get(&decision)?)
    }

    /// When an id was answered.
    pub(crate) fn decided(&self, id: &RequestId) -> Option<Timestamp> {
        Some(self.entries.get(id)?.at)
    }

    /// Keeps an answer that has no live leases until then.
    pub(crate) fn keep(&mut self, id: &RequestId, until: Timestamp) {
        let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.live.is_empty()) else { return };
        let (before, application, bytes) = (entry.forget_at.replace(until), entry.attempt.application, entry.bytes);
        if let Some(before) = before {
            self.rouse(application, before, id, bytes);
        }
        self.rest(application, until, id, bytes);
    }

    /// An answer; unpacked, so not to be called for many at a time.
    pub(crate) fn get(&self, id: &RequestId) -> Option<Arc<Answer>> {
        Some(self.entries.get(id)?.answer().unpack())
    }

    /// An answer some of whose tasks waited for a dispatcher.
    pub(crate) fn waiting(&self, id: &RequestId) -> Option<Arc<Answer>> {
        Some(self.entries.get(id).filter(|entry| entry.waits)?.answer().unpack())
    }

    /// Forgets an answer; returns its decision.
    pub(crate) fn remove(&mut self, id: &RequestId) -> Option<DecisionId> {
        let entry = self.entries.remove(id)?;
        self.by_decision.remove(&entry.decision);
        let application = entry.attempt.application;
        if let Some(at) = entry.forget_at {
            self.rouse(application, at, id, entry.bytes);
        }
        self.bytes -= entry.bytes;
        self.of_application(application, |of| {
            of.count -= 1;
            of.bytes -= entry.bytes;
        });
        Some(entry.decision)
    }

    /// Answers to forget now: their time has come.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<RequestId> {
        self.due.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// The answer to forget next so that at most `most` stay, of `bytes` in all: of the application that has most of
    /// them, the oldest. So a flood of one pushes out its own. Those with live leases stay, and where they are what is
    /// too much, others stay too, as long as those without are within the limits by themselves.
    pub(crate) fn surplus(&self, most: usize, bytes: usize) -> Option<RequestId> {
        let (order, idle_fit) = match () {
            () if self.entries.len() > most => (&self.by_count, self.due.len() <= most),
            () if self.bytes > bytes => (&self.by_bytes, self.idle_bytes <= bytes),
            () => return None,
        };
        let ((size, _, application), largest) = (order.ranks.last()?, order.largest()?);
        if *size < largest && idle_fit {
            return None;
        }
        self.by_application.get(application)?.idle.first().map(|(_, id)| id.clone())
    }

    /// Bytes of an application's rows with live leases, and those that all others leave of `most`.
    pub(crate) fn live_bytes(&self, application: ApplicationId, most: usize) -> (usize, usize) {
        let own = self.by_application.get(&application).map_or(0, |of| of.bytes - of.idle_bytes);
        (own, most.saturating_sub(self.bytes - self.idle_bytes))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ended_leases::end_of;
    use super::*;
    use crate::testing::answer;

    const KEEP: Micros = Micros::from_secs(600);

    fn ended(answers: &Answers, id: &str, lease: LeaseId) -> Option<LeaseEnd> {
        end_of(&answers.entries.get(&RequestId::from(id))?.ended, lease)
    }

    fn keep(answers: &mut Answers, answer: &Answer, live: BTreeSet<LeaseId>, now: Timestamp) {
        answers.insert((answer, &answer.row()), live, now, KEEP);
    }

    #[test]
    fn runs_of_leases_hold_nobody_elses() {
        let told = |ids: &[u64]| -> Vec<(u64, u64)> {
            let ids = ids.iter().copied().map(LeaseId).collect();
            runs(&ids).into_iter().map(|(first, last)| (first.0, last.0)).collect()
        };
        assert_eq!(told(&[]), []);
        assert_eq!(
            told(&[1, 2, 3, 9, 400_000, 400_001, u64::MAX]),
            [(1, 3), (9, 9), (400_000, 400_001), (u64::MAX, u64::MAX)]
        );
    }

    #[test]
    fn an_answer_is_kept_until_some_time_after_its_last_lease() {
        let mut answers = Answers::default();
        let kept = answer("r1", 7);
        keep(&mut answers, &kept, BTreeSet::from([LeaseId(1), LeaseId(2)]), Timestamp(0));
        let end = |second: u64| Timestamp(0).plus(Micros::from_secs(second)).plus(KEEP);
        answers.lease_ended(&"r1".into(), LeaseId(1), LeaseEnd::Bound, end(10));
        assert!(answers.due(end(10_000)).is_empty(), "one lease still runs");
        answers.lease_ended(&"r1".into(), LeaseId(2), LeaseEnd::Expired, end(20));
        answers.lease_ended(&"r1".into(), LeaseId(2), LeaseEnd::Expired, end(30));
        assert!(answers.due(end(19)).is_empty());
        assert_eq!(answers.due(end(20)), [RequestId::from("r1")]);
        assert_eq!(ended(&answers, "r1", LeaseId(1)), Some(LeaseEnd::Bound));
        assert_eq!(answers.of(&"r1".into(), 7).map(|found| found.map(|found| found.unpack())), Some(Ok(kept)));
        assert_eq!(answers.of(&"r1".into(), 8).and_then(Result::err), Some(Refusal::IdReused { id: "r1".into() }));
    }

    #[test]
    fn how_leases_ended_is_known_in_whichever_order_they_did_and_takes_a_row_a_run() {
        let mut answers = Answers::default();
        let all: BTreeSet<LeaseId> = (10..40).map(LeaseId).collect();
        let end = |lease: LeaseId| if lease.0 / 10 == 2 { LeaseEnd::Expired } else { LeaseEnd::Bound };
        for step in [1, 7, 11, 29] {
            keep(&mut answers, &answer("r", 1), all.clone(), Timestamp(0));
            let order: BTreeSet<(u64, LeaseId)> = all.iter().map(|lease| (lease.0 * step % 30, *lease)).collect();
            for (done, (_, lease)) in order.iter().enumerate() {
                let known = all.iter().filter(|lease| ended(&answers, "r", **lease).is_some()).count();
                assert_eq!(known, done, "steps of {step}");
                answers.lease_ended(&"r".into(), *lease, end(*lease), Timestamp(1));
            }
            assert!(all.iter().all(|lease| ended(&answers, "r", *lease) == Some(end(*lease))));
            assert_eq!(answers.entries[&RequestId::from("r")].ended.len(), 3, "steps of {step}");
            for other in [9, 40] {
                assert_eq!(ended(&answers, "r", LeaseId(other)), None);
            }
            answers.remove(&"r".into());
        }
    }

    /// What goes so that at most so many stay.
    fn trimmed(answers: &mut Answers, most: usize, bytes: usize) -> Vec<String> {
        let mut gone = Vec::new();
        while let Some(id) = answers.surplus(most, bytes) {
            answers.remove(&id);
            gone.push(id.to_string());
        }
        gone
    }

    #[test]
    fn of_too_many_answers_the_oldest_without_leases_go() {
        let mut answers = Answers::default();
        keep(&mut answers, &answer("leased", 1), BTreeSet::from([LeaseId(1)]), Timestamp(0));
        keep(&mut answers, &answer("old", 2), BTreeSet::new(), Timestamp(1));
        keep(&mut answers, &answer("new", 3), BTreeSet::new(), Timestamp(2));
        assert_eq!(trimmed(&mut answers, 2, usize::MAX), ["old"]);
        assert_eq!(trimmed(&mut answers, 0, usize::MAX), ["new"], "the leased one stays");
    }

    #[test]
    fn a_flood_of_one_application_pushes_out_its_own_answers_by_count_and_by_bytes() {
        let of = |application: u32, name: &str, hints: u64| {
            let mut answer = (*crate::testing::long_answer(name, "g", hints)).clone();
            answer.decision.attempt = crate::testing::attempt(application, 1);
            answer.decision.id = DecisionId::of(u64::from(application) << 32 | hints << 16 | name.len() as u64);
            answer
        };
        for (most, bytes) in [(10, usize::MAX), (usize::MAX, 20_000)] {
            let mut answers = Answers::default();
            for other in 2..5_u32 {
                keep(&mut answers, &of(other, &format!("other{other}"), 1), BTreeSet::new(), Timestamp(0));
            }
            for n in 0..500_u64 {
                let name = format!("flood{}", "x".repeat(n as usize));
                keep(&mut answers, &of(1, &name, 2), BTreeSet::new(), Timestamp(1 + n));
                trimmed(&mut answers, most, bytes);
                assert!(answers.len() <= most && answers.bytes <= bytes);
            }
            for other in 2..5_u32 {
                assert!(answers.contains(&format!("other{other}").as_str().into()), "{most} {bytes}: {other}");
            }
            let ids: Vec<RequestId> = answers.ids().cloned().collect();
            for id in &ids {
                answers.remove(id);
            }
            assert_eq!((answers.bytes, answers.idle_bytes, answers.by_application.len()), (0, 0, 0));
            for order in [&answers.by_count, &answers.by_bytes] {
                assert_eq!((order.ranks.len(), order.sizes.len()), (0, 0));
            }
        }
    }

    #[test]
    fn a_flood_whose_leases_live_pushes_out_nobody_and_is_told_when_it_holds_too_much() {
        let mut answers = Answers::default();
        let of = |application: u32, number: u64| {
            let mut answer = (*answer(&format!("{application}-{number}"), 1)).clone();
            answer.decision.attempt = crate::testing::attempt(application, 1);
            answer.decision.id = DecisionId::of(u64::from(application) << 32 | number);
            answer
        };
        for other in 2..7 {
            keep(&mut answers, &of(other, 0), BTreeSet::new(), Timestamp(0));
        }
        for number in 0..100 {
            keep(&mut answers, &of(1, number), BTreeSet::from([LeaseId(number)]), Timestamp(1));
        }
        assert_eq!(trimmed(&mut answers, 10, usize::MAX), [""; 0], "the five are within the limit by themselves");
        assert_eq!(trimmed(&mut answers, 4, usize::MAX).len(), 1, "and go where they are not");
        let application = |sequence| crate::testing::attempt(sequence, 1).application;
        let (own, free) = answers.live_bytes(application(1), 1 << 20);
        assert_eq!(own + free, 1 << 20);
        assert_eq!(answers.live_bytes(application(3), own), (0, 0));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn where_applications_stand_is_as_if_it_were_counted_anew(
            steps in proptest::collection::vec((0_u8..4, 1_u32..5, 0_u32..6, 1_u64..9), 1..80)
        ) {
            let mut answers = Answers::default();
            for (now, (what, sequence, number, hints)) in steps.into_iter().enumerate() {
                let (id, now) = (RequestId::from(&*format!("{sequence}-{number}")), Timestamp(now as u64));
                match what {
                    0 | 1 => {
                        let mut of = (*crate::testing::long_answer(id.as_str(), "g", hints)).clone();
                        of.decision.attempt = crate::testing::attempt(sequence, 1);
                        of.decision.id = DecisionId::of(u64::from(sequence) << 8 | u64::from(number));
                        let live = (0..u64::from(what)).map(LeaseId).collect();
                        keep(&mut answers, &of, live, now);
                    }
                    2 => answers.lease_ended(&id, LeaseId(0), LeaseEnd::Bound, now),
                    _ => drop(answers.remove(&id)),
                }
                for (at, order) in [&answers.by_count, &answers.by_bytes].into_iter().enumerate() {
                    let all = answers.by_application.iter().map(|(&of, known)| known.size_ranks(of)[at]);
                    let (mut ranks, mut sizes) = (BTreeSet::new(), BTreeMap::new());
                    for one in all {
                        ranks.extend(one.rank);
                        one.size.into_iter().for_each(|size| *sizes.entry(size).or_default() += 1);
                    }
                    proptest::prop_assert_eq!((&order.ranks, &order.sizes), (&ranks, &sizes));
                }
                let rows = answers.by_application.values().map(|of| of.bytes).sum::<usize>();
                proptest::prop_assert_eq!(answers.bytes, rows);
            }
        }
    }
}
