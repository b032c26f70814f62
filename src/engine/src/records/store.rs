//! All records: bounded in bytes; whose go first is in `shares`.

use super::RecordSettings;
use super::frame::{Frame, LastVersion, Source};
use super::record::{DecidedRequest, Record, RequestOutcome, Undelivered};
use super::shares::Shares;
use super::tally::Tally;
use crate::dispatching::{StoredDispatcher, is_pushed};
use crate::generation::Releases;
use crate::refusal::Refusal;
use hintd_model::units::{ApplicationId, DecisionId, Timestamp};
use hintd_policy::{IndexedFlows, Place, Policy};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// Records of decisions.
#[derive(Debug, Default)]
pub struct Records {
    settings: RecordSettings,
    by_decision: BTreeMap<DecisionId, Arc<Record>>,
    /// Those whose callers were told that they are refused, with the token: they are counted each second, and are few.
    told_refused: BTreeMap<DecisionId, &'static str>,
    /// Who loses records of decisions, and of refusals and of answers of queues that are off.
    decided: Shares,
    refused: Shares,
    tally: Tally,
    /// Frames that decisions may still be of, each with its generation and whether it was asked for with latency: those of the last
    /// few generations come mixed.
    recent: VecDeque<((u64, bool), Weak<Frame>)>,
    last: Option<LastVersion>,
    /// Records so far.
    taken: u64,
    /// Records that went because there were too many bytes.
    dropped: u64,
    /// Decisions that were too large to record.
    too_large: u64,
}

/// Of the bytes of all records refusals have one part in so many at most, where there is no room for all: they cost who asks
/// nothing, and a loop of them would leave nothing of what was decided.
const REFUSED_PART: usize = 4;

/// Frames of generations whose decisions may come mixed: of 16 with latency and without.
const RECENT: usize = 32;

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordFilter {
    /// Only of this application.
    pub application: Option<ApplicationId>,
    /// Only of this attempt of an application; 0: of any.
    pub attempt: u32,
    /// Only of this queue; empty: of any.
    pub queue: String,
    /// Only those with a hint for a host whose name contains this.
    pub host: String,
    /// Only those decided from then on.
    pub from: Option<Timestamp>,
    /// Only those decided up to then.
    pub until: Option<Timestamp>,
    /// Only refusals, and answers that came after their request was refused for its deadline.
    pub refused_only: bool,
}

impl RecordFilter {
    fn means(&self, record: &Record) -> bool {
        let on_host = || {
            let hints = record.answered().map(|answer| &*answer.decision.hints).unwrap_or_default();
            hints.iter().any(|hint| hint.host.as_str().contains(&self.host))
        };
        self.application.is_none_or(|meant| record.application() == meant)
            && (self.attempt == 0 || record.request().attempt.attempt == self.attempt)
            && (self.queue.is_empty() || record.request().queue.as_str() == self.queue)
            && (self.host.is_empty() || on_host())
            && self.from.is_none_or(|from| record.at() >= from)
            && self.until.is_none_or(|until| record.at() <= until)
            && (!self.refused_only || record.refused().is_some())
    }
}

/// How far records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Decisions.
    pub decisions: usize,
    /// Bytes.
    pub bytes: usize,
    /// The bound on bytes.
    pub most: usize,
    /// When the oldest was decided; `None`: there is none.
    pub oldest: Option<(DecisionId, Timestamp)>,
    /// Records that went to make room.
    pub dropped: u64,
    /// Decisions that were too large to record.
    pub too_large: u64,
}

impl Records {
    /// No records yet.
    #[must_use]
    pub fn new(settings: RecordSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// New settings; too many bytes go at once.
    pub fn reload(&mut self, settings: RecordSettings) {
        self.settings = settings;
        self.enforce_limit(0); // none has just come: records are numbered from 1
    }

    /// Records a decision.
    pub fn take(&mut self, mut seen: DecidedRequest) {
        let frame = self.frame(&seen);
        let dispatcher = match &mut seen.came {
            RequestOutcome::Answered { dispatcher, .. } => dispatcher.take(),
            RequestOutcome::Refused { .. } | RequestOutcome::RefusedEarly { .. } => None,
        };
        let attempt = seen.request.attempt;
        let dispatcher = dispatcher.and_then(|dispatcher| {
            let (snapshot, leases) = dispatcher.room();
            // Dispatcher instances decide by rooms alone.
            let (releases, flows) = (Releases::default(), Arc::<IndexedFlows>::default());
            let source = Source { number: 0, snapshot, leases, releases: &releases, flows: &flows, latency: false };
            let kept: StoredDispatcher = dispatcher.keep(attempt)?;
            Some((kept, LastVersion::read(&source, self.last.as_ref()).frame))
        });
        let record = Arc::new(Record::new(seen, frame, dispatcher));
        if record.own() > self.settings.bytes {
            // Others would go first, and it in the end.
            self.too_large += 1;
            return;
        }
        let id = record.decision();
        self.remove(id);
        record.hold(&mut self.tally);
        self.taken += 1;
        let number = self.taken;
        self.shares_of(&record).add(&record.path(), number, id, record.own());
        self.note_refused(&record);
        self.by_decision.insert(id, record);
        self.enforce_limit(number);
        if !self.by_decision.contains_key(&id) {
            self.too_large += 1;
        }
    }

    /// Whether somebody has the answer of a decision; where nobody has, why.
    pub fn delivery(&mut self, decision: DecisionId, undelivered: Option<Undelivered>) {
        if let Some(record) = self.by_decision.get(&decision).cloned() {
            record.set_undelivered(undelivered);
            self.note_refused(&record);
        }
    }

    fn note_refused(&mut self, record: &Record) {
        match record.refused() {
            Some(token) => self.told_refused.insert(record.decision(), token),
            None => self.told_refused.remove(&record.decision()),
        };
    }

    /// The record of a decision.
    ///
    /// # Errors
    /// [`Refusal::NotRecorded`], with how far back records go at `now`.
    pub fn get(&self, decision: DecisionId, now: Timestamp) -> Result<Arc<Record>, Refusal> {
        let found = self.by_decision.get(&decision).cloned();
        let why = || match is_pushed(decision) {
            true => "hints that a dispatcher pushes when a node has room never are".to_owned(),
            false => self.kept_text(now),
        };
        found.ok_or_else(|| Refusal::NotRecorded { decision, kept: why() })
    }

    /// How far records go.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let first = self.decided.oldest().into_iter().chain(self.refused.oldest()).min();
        let oldest = first.and_then(|(_, id)| Some((id, self.by_decision.get(&id)?.at())));
        Kept {
            decisions: self.by_decision.len(),
            bytes: self.tally.bytes,
            most: self.settings.bytes,
            oldest,
            dropped: self.dropped,
            too_large: self.too_large,
        }
    }

    /// The same in words.
    #[must_use]
    pub fn kept_text(&self, now: Timestamp) -> String {
        let RecordSettings { per_million, bytes } = self.settings;
        if per_million == 0 || bytes == 0 {
            return "nothing is recorded (records.sample or records.bytes is 0)".to_owned();
        }
        let kept = self.kept();
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        let size = format!("{} decisions in {:.1} of {:.1} MiB", kept.decisions, mib(kept.bytes), mib(bytes));
        let back = kept.oldest.map_or_else(
            || format!("there are no records yet ({size})"),
            |(oldest, at)| format!("records go back {:.1} s, to {oldest} ({size})", now.since(at).as_f64() / 1e6),
        );
        let sampled = format!("; of 100 decisions {} are recorded", f64::from(per_million) / 1e4);
        let large = format!("; {} decisions were larger than that", kept.too_large);
        let also = |text: String, said: bool| if said { text } else { String::new() };
        format!("{back}{}{}", also(sampled, per_million < 1_000_000), also(large, kept.too_large > 0))
    }

    /// Records that are meant, newest first, at most `most`, and how many there are in all.
    #[must_use]
    pub fn listed(&self, filter: &RecordFilter, most: usize) -> (Vec<Arc<Record>>, usize) {
        if *filter == RecordFilter::default() {
            return (self.by_decision.values().rev().take(most).cloned().collect(), self.by_decision.len());
        }
        if filter.refused_only {
            let refused = self.told_refused.keys().rev().filter_map(|id| self.by_decision.get(id));
            return first(refused.filter(|record| filter.means(record)), most);
        }
        first(self.by_decision.values().rev().filter(|record| filter.means(record)), most)
    }

    /// Refusals that are recorded, by their tokens.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<&'static str, u64> {
        let mut refusals = BTreeMap::new();
        self.told_refused.values().for_each(|token| *refusals.entry(*token).or_default() += 1);
        refusals
    }

    fn frame(&mut self, seen: &DecidedRequest) -> Arc<Frame> {
        let generation = &seen.generation;
        let reads = |policy: &Arc<dyn Policy>| policy.as_place().is_some_and(Place::reads_latency);
        let latency = reads(&seen.policy) || reads(&seen.baseline);
        let key = (generation.number, latency);
        let known = self.recent.iter().find(|(known, _)| *known == key);
        if let Some(frame) = known.and_then(|(_, frame)| frame.upgrade()) {
            return frame;
        }
        let source = Source {
            number: generation.number,
            snapshot: &generation.snapshot,
            leases: &generation.leases,
            releases: &generation.releases,
            flows: &generation.flows,
            latency,
        };
        let last = LastVersion::read(&source, self.last.as_ref());
        let frame = Arc::clone(&last.frame);
        self.last = Some(last);
        self.recent.retain(|(known, _)| *known != key);
        self.recent.push_back((key, Arc::downgrade(&frame)));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        frame
    }

    /// Lets go what there are too many bytes of; the record of number `newest`, which has just come, last.
    fn enforce_limit(&mut self, newest: u64) {
        while self.tally.bytes > self.settings.bytes {
            let Some(next) = self.next(newest) else { return };
            self.remove(next);
            self.dropped += 1;
        }
    }

    /// The record that is to go next.
    fn next(&self, newest: u64) -> Option<DecisionId> {
        let (refused, all) = (self.refused.bytes(), self.refused.bytes() + self.decided.bytes());
        let (first, then) = match refused.saturating_mul(REFUSED_PART) > all {
            true => (&self.refused, &self.decided),
            false => (&self.decided, &self.refused),
        };
        let itself = || self.decided.oldest().or_else(|| self.refused.oldest()).map(|(_, id)| id);
        first.next(newest).or_else(|| then.next(newest)).or_else(itself)
    }

    fn shares_of(&mut self, record: &Record) -> &mut Shares {
        if record.is_free() { &mut self.refused } else { &mut self.decided }
    }

    fn remove(&mut self, id: DecisionId) {
        let Some(record) = self.by_decision.remove(&id) else { return };
        self.told_refused.remove(&id);
        record.release(&mut self.tally);
        self.shares_of(&record).remove(&record.path(), id, record.own());
    }
}

/// At most so many of them, and how many there are.
fn first<'r>(records: impl Iterator<Item = &'r Arc<Record>> + Clone, most: usize) -> (Vec<Arc<Record>>, usize) {
    (records.clone().take(most).cloned().collect(), records.count())
}
