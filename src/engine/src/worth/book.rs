//! What is known of applications under way, of queues and of recurring keys; and which keys are stopped.

use super::compare::{KEY_LEVEL, QUEUE_LEVEL, Ratio, Sample, Verdict};
use super::participation::is_plain;
use super::{Arm, Part, StoppedKeys, WorthSettings};
use crate::journal::{KeyBuilder, KeyPart, Op, Table, key_parts};
use hintd_model::cluster::HintRequest;
use hintd_model::units::{ApplicationId, Micros, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Queues of which something is known: more than a configuration names. The longest unseen goes.
const QUEUES_MAX: usize = 1_000;

/// Kinds of rows.
const APPLICATION: &str = "application";
const QUEUE: &str = "queue";
const KEY: &str = "key";

/// What applications are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of one queue.
    Queue,
    /// Runs of one recurring job.
    Key,
}

impl Scope {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => QUEUE,
            Self::Key => KEY,
        }
    }

    const fn level(self) -> f64 {
        match self {
            Self::Queue => QUEUE_LEVEL,
            Self::Key => KEY_LEVEL,
        }
    }
}

/// A queue or a key, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedView {
    /// Its name.
    pub name: Arc<str>,
    /// The share that is held out.
    pub share: f64,
    /// Hinted applications that succeeded.
    pub hinted: u64,
    /// Those held out.
    pub held_out: u64,
    /// How their times compare; `None`: there are fewer than [`WorthSettings::runs`] of either.
    pub ratio: Option<Ratio>,
    /// What that says.
    pub verdict: Verdict,
    /// Since when it gets no hints, for they made it slower; `None`: it gets some.
    pub stopped: Option<Timestamp>,
}

/// A verdict that is another one now.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictChange {
    /// Whose.
    pub scope: Scope,
    /// How it stands now.
    pub now: ComparedView,
}

/// All queues, and how many keys there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorthView {
    /// By name: those that hold somebody out, or did.
    pub queues: Vec<ComparedView>,
    /// Recurring keys that are compared.
    pub keys: usize,
    /// Keys that are stopped.
    pub stopped: usize,
    /// Applications under way: their end is awaited.
    pub under_way: usize,
}

/// An application that has asked and has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct UnderWay {
    queue: Arc<str>,
    key: Option<Arc<str>>,
    share: f64,
    /// `None`: it was on both sides, and counts for nothing.
    arm: Option<Arm>,
    since: Timestamp,
}

/// An application that succeeded.
#[derive(Debug, Clone, Copy)]
struct EndedRun {
    /// What its arm was drawn by.
    share: f64,
    arm: Arm,
    /// From its submission to its end.
    took: Micros,
}

/// Times of applications that succeeded, by side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Compared {
    /// The share that they were drawn by; under another one all begins anew, for the mix of jobs may be another by then.
    share: f64,
    hinted: Sample,
    held_out: Sample,
    updated: Timestamp,
    /// As of the last end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ratio: Option<Ratio>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<Timestamp>,
}

impl Compared {
    fn verdict(&self) -> Verdict {
        Verdict::of(self.ratio.as_ref())
    }

    fn view(&self, name: &Arc<str>) -> ComparedView {
        ComparedView {
            name: Arc::clone(name),
            share: self.share,
            hinted: self.hinted.count,
            held_out: self.held_out.count,
            verdict: self.verdict(),
            ratio: self.ratio,
            stopped: self.stopped,
        }
    }

    fn add(&mut self, run: EndedRun, scope: Scope, runs: u64, now: Timestamp) {
        let EndedRun { share, arm, took } = run;
        if self.share != share {
            *self = Self { share, stopped: self.stopped, ..Self::default() };
        }
        match arm {
            Arm::Hinted => self.hinted.add(took),
            Arm::HeldOut => self.held_out.add(took),
        }
        self.updated = now;
        let enough = self.hinted.count.min(self.held_out.count) >= runs;
        self.ratio = if enough { Ratio::of(&self.hinted, &self.held_out, scope.level()) } else { None };
    }

    /// Whether hints do harm, by more than the margin.
    fn is_harmed(&self, margin: f64) -> bool {
        self.ratio.is_some_and(|ratio| ratio.low > 1.0 + margin)
    }
}

/// What the end of an application comes to.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) ops: Vec<Op>,
    pub(crate) changes: Vec<VerdictChange>,
    /// It counts.
    pub(crate) counted: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Worth {
    under_way: BTreeMap<ApplicationId, UnderWay>,
    by_age: BTreeSet<(Timestamp, ApplicationId)>,
    queues: BTreeMap<Arc<str>, Compared>,
    keys: BTreeMap<Arc<str>, Compared>,
    /// Those that go first, first: stopped ones last, then by when they were seen.
    keys_by_age: BTreeSet<(bool, Timestamp, Arc<str>)>,
    stopped: Arc<StoppedKeys>,
}

impl Worth {
    pub(crate) const fn stopped(&self) -> &Arc<StoppedKeys> {
        &self.stopped
    }

    /// Applications whose end is awaited, ascending.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = ApplicationId> {
        self.under_way.keys().copied()
    }

    /// A request of an application was answered; `part`: its part in the comparison. `first`: nothing was answered before,
    /// else whoever is not known takes no part. At most `most` are known, the oldest go.
    pub(crate) fn answered(
        &mut self,
        application: ApplicationId,
        (part, key): (Option<Part>, Option<&Arc<str>>),
        first: bool,
        most: usize,
        now: Timestamp,
    ) -> Vec<Op> {
        if let Some(known) = self.under_way.get_mut(&application) {
            let arm = match part {
                Some(part) => Some(part.arm).filter(|arm| known.arm == Some(*arm) && known.share == part.share),
                // Whoever is outside gets hints.
                None => known.arm.filter(|arm| *arm == Arm::Hinted),
            };
            if known.arm == arm {
                return Vec::new();
            }
            known.arm = arm;
            return vec![put(APPLICATION, &application.to_string(), known)];
        }
        let Some(Part { queue, share, arm }) = part.filter(|_| first) else { return Vec::new() };
        let new = UnderWay { queue, key: key.cloned(), share, arm: Some(arm), since: now };
        let mut ops = vec![put(APPLICATION, &application.to_string(), &new)];
        self.by_age.insert((now, application));
        self.under_way.insert(application, new);
        while self.under_way.len() > most.max(1) {
            let (_, oldest) = self.by_age.pop_first().expect("it has all that are under way");
            self.under_way.remove(&oldest);
            ops.push(delete(APPLICATION, &oldest.to_string()));
        }
        ops
    }

    /// Whether lost tasks of a request get no hints either: its application is held out, or its key is stopped.
    pub(crate) fn is_kept_back(&self, request: &HintRequest, chained: bool) -> bool {
        let held_out = self.under_way.get(&request.attempt.application);
        let stopped = request.recurring_key.as_ref().is_some_and(|key| self.stopped.contains(key));
        held_out.is_some_and(|known| known.arm == Some(Arm::HeldOut)) || (stopped && is_plain(request) && !chained)
    }

    /// An application is forgotten: what it was told did not hold.
    pub(crate) fn forget(&mut self, application: ApplicationId) -> Option<Op> {
        self.take(application).map(|_| delete(APPLICATION, &application.to_string()))
    }

    fn take(&mut self, application: ApplicationId) -> Option<UnderWay> {
        let known = self.under_way.remove(&application)?;
        self.by_age.remove(&(known.since, application));
        Some(known)
    }

    /// An application has ended; `took`: so long after it was submitted, where it succeeded.
    pub(crate) fn ended(
        &mut self,
        application: ApplicationId,
        took: Option<Micros>,
        settings: &WorthSettings,
        now: Timestamp,
    ) -> Ended {
        let Some(UnderWay { queue, key, share, arm, .. }) = self.take(application) else { return Ended::default() };
        let mut ended = Ended { ops: vec![delete(APPLICATION, &application.to_string())], ..Ended::default() };
        // What was drawn by another share is another mix of jobs.
        let drawn = settings.holdout.get(&queue) == Some(&share);
        let (Some(arm), Some(took), true) = (arm, took, drawn) else { return ended };
        ended.counted = true;
        let known = self.queues.entry(Arc::clone(&queue)).or_default();
        let before = known.verdict();
        let run = EndedRun { share, arm, took };
        known.add(run, Scope::Queue, settings.runs, now);
        if known.verdict() != before {
            ended.changes.push(VerdictChange { scope: Scope::Queue, now: known.view(&queue) });
        }
        ended.ops.push(put(QUEUE, &queue, known));
        if self.queues.len() > QUEUES_MAX
            && let Some(oldest) =
                self.queues.iter().min_by_key(|(_, known)| known.updated).map(|(name, _)| name.clone())
        {
            self.queues.remove(&oldest);
            ended.ops.push(delete(QUEUE, &oldest));
        }
        if let Some(key) = key {
            self.run_ended(&key, run, settings, now, &mut ended);
        }
        ended
    }

    fn run_ended(
        &mut self,
        key: &Arc<str>,
        run: EndedRun,
        settings: &WorthSettings,
        now: Timestamp,
        ended: &mut Ended,
    ) {
        let known = self.keys.entry(Arc::clone(key)).or_default();
        self.keys_by_age.remove(&(known.stopped.is_some(), known.updated, Arc::clone(key)));
        let before = (known.verdict(), known.stopped);
        known.add(run, Scope::Key, settings.runs, now);
        if known.stopped.is_none() && known.is_harmed(settings.margin) {
            known.stopped = Some(now);
            Arc::make_mut(&mut self.stopped).insert(Arc::clone(key));
        }
        if (known.verdict(), known.stopped) != before {
            ended.changes.push(VerdictChange { scope: Scope::Key, now: known.view(key) });
        }
        ended.ops.push(put(KEY, key, known));
        self.keys_by_age.insert((known.stopped.is_some(), now, Arc::clone(key)));
        while self.keys.len() > settings.keys.max(1) {
            let (_, _, oldest) = self.keys_by_age.pop_first().expect("it has all keys");
            self.keys.remove(&oldest);
            self.let_go(&oldest);
            ended.ops.push(delete(KEY, &oldest));
        }
    }

    /// An operator lets a key have hints again, and what is known of it is forgotten; `None`: nothing was known of it.
    pub(crate) fn allow(&mut self, key: &str) -> Option<Op> {
        let (key, known) = self.keys.remove_entry(key)?;
        self.let_go(&key);
        let row = delete(KEY, &key);
        self.keys_by_age.remove(&(known.stopped.is_some(), known.updated, key));
        Some(row)
    }

    fn let_go(&mut self, key: &Arc<str>) {
        if self.stopped.contains(key) {
            Arc::make_mut(&mut self.stopped).remove(key);
        }
    }

    /// Queues, and how many keys there are.
    pub(crate) fn view(&self, settings: &WorthSettings) -> WorthView {
        let new = Compared::default();
        let held = settings.holdout.iter().filter(|(_, share)| **share > 0.0);
        let mut queues: BTreeMap<&Arc<str>, ComparedView> =
            self.queues.iter().map(|(name, known)| (name, ComparedView { share: 0.0, ..known.view(name) })).collect();
        for (name, &share) in held {
            let known = self.queues.get(name).filter(|known| known.share == share).unwrap_or(&new);
            queues.insert(name, ComparedView { share, ..known.view(name) });
        }
        WorthView {
            queues: queues.into_values().collect(),
            keys: self.keys.len(),
            stopped: self.stopped.len(),
            under_way: self.under_way.len(),
        }
    }

    /// Keys, stopped ones first, then by name.
    pub(crate) fn keys(&self) -> Vec<ComparedView> {
        let mut keys: Vec<ComparedView> = self.keys.iter().map(|(name, known)| known.view(name)).collect();
        keys.sort_by_key(|key| key.stopped.is_none());
        keys
    }

    /// Takes a row of the journal in.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn restore(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let parts = key_parts(key);
        let Some([KeyPart::Text(kind), KeyPart::Text(name)]) = parts.as_deref() else {
            return Err("the key is not a kind and a name".to_owned());
        };
        let wrong = |error: serde_json::Error| error.to_string();
        match kind.as_str() {
            APPLICATION => {
                let application = name.parse().map_err(|error| format!("{error}"))?;
                let known: UnderWay = serde_json::from_slice(value).map_err(wrong)?;
                self.by_age.insert((known.since, application));
                self.under_way.insert(application, known);
            }
            QUEUE => _ = self.queues.insert(name.as_str().into(), serde_json::from_slice(value).map_err(wrong)?),
            KEY => {
                let (name, known): (Arc<str>, Compared) =
                    (name.as_str().into(), serde_json::from_slice(value).map_err(wrong)?);
                self.keys_by_age.insert((known.stopped.is_some(), known.updated, Arc::clone(&name)));
                if known.stopped.is_some() {
                    Arc::make_mut(&mut self.stopped).insert(Arc::clone(&name));
                }
                self.keys.insert(name, known);
            }
            other => return Err(format!("\"{other}\" is no kind of row")),
        }
        Ok(())
    }
}

fn row_key(kind: &str, name: &str) -> Vec<u8> {
    KeyBuilder::new().text(kind).text(name).build()
}

fn put(kind: &str, name: &str, row: &impl Serialize) -> Op {
    Op::put(Table::Worth, row_key(kind, name), serde_json::to_vec(row).expect("rows are numbers and names"))
}

fn delete(kind: &str, name: &str) -> Op {
    Op::delete(Table::Worth, row_key(kind, name))
}

#[cfg(test)]
mod tests;
