//! Runs of recurring jobs, noted as they finish, for predictions.

use crate::cluster::TaskGroup;
use crate::engine::attempts::Attempt;
use crate::engine::journal::{KeyBuilder, KeyPart, Op, Table, key_parts};
use crate::engine::prediction::{Run, Runs};
use crate::engine::{dispatching, monitor};
use crate::units::{AttemptId, Bytes, Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is noted of one run while it is under way.
#[derive(Debug, Default)]
struct Open {
    began: Option<Timestamp>,
    /// Finished tasks by group name.
    groups: BTreeMap<Arc<str>, Tally>,
}

/// Sums over finished tasks.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    tasks: u64,
    duration: u128,
    input: u128,
    output: u128,
}

/// Groups of one run that are told apart.
const GROUPS_MAX: usize = 256;

/// Runs under way and finished ones.
#[derive(Debug, Default)]
pub(crate) struct RunBook {
    open: BTreeMap<AttemptId, Open>,
    runs: Arc<Runs>,
}

/// Runs kept of all keys together: some 20 MB.
const RUNS_MAX: usize = 200_000;
/// Keys kept: clients name them, and one that makes up a key for each run must not fill the memory.
const KEYS_MAX: usize = 10_000;

impl RunBook {
    /// Finished runs.
    pub(in crate::engine) const fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Takes a row of the journal in.
    pub(in crate::engine) fn restore(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let parts = key_parts(key);
        let Some([KeyPart::Text(job), KeyPart::Number(_)]) = parts.as_deref() else {
            return Err("the key is not a job's and a number".to_owned());
        };
        let run: Run = serde_json::from_slice(value).map_err(|error| error.to_string())?;
        Arc::make_mut(&mut self.runs).note(&job.as_str().into(), run);
        Ok(())
    }

    /// An attempt of a recurring job asked.
    pub(in crate::engine) fn began(&mut self, attempt: AttemptId, now: Timestamp) {
        self.open.entry(attempt).or_default().began.get_or_insert(now);
    }

    /// A task of it finished.
    pub(in crate::engine) fn finished(
        &mut self,
        attempt: AttemptId,
        group: &Arc<str>,
        (duration, input, output): (Micros, Bytes, Bytes),
    ) {
        let Some(open) = self.open.get_mut(&attempt) else { return };
        if open.groups.len() >= GROUPS_MAX && !open.groups.contains_key(group) {
            return;
        }
        let tally = open.groups.entry(Arc::clone(group)).or_default();
        tally.tasks += 1;
        tally.duration += u128::from(duration.0);
        tally.input += u128::from(input.0);
        tally.output += u128::from(output.0);
    }

    /// It is over without being a run: it failed, or was forgotten.
    pub(in crate::engine) fn forget(&mut self, attempt: AttemptId) {
        self.open.remove(&attempt);
    }

    /// It came to its end: what to write. A run of which no task's end was heard tells nothing and is not noted.
    pub(in crate::engine) fn ended(&mut self, attempt: AttemptId, key: &Arc<str>, known: &Attempt) -> Vec<Op> {
        let Some(open) = self.open.remove(&attempt) else { return Vec::new() };
        let Some(run) = open.began.and_then(|began| run_of(began, &open.groups, known)) else { return Vec::new() };
        let before = self.runs.of(key).first().map(|run| run.submitted);
        Arc::make_mut(&mut self.runs).note(key, run);
        let after = self.runs.of(key).first().map(|run| run.submitted);
        let mut ops = Vec::new();
        // One older than all that are kept went at once.
        if self.runs.of(key).iter().any(|kept| kept.submitted == run.submitted) {
            let value = serde_json::to_vec(&run).expect("a run is numbers");
            ops.push(Op::put(Table::Runs, run_key(key, run.submitted), value));
        }
        if let Some(gone) = before.filter(|before| Some(*before) < after) {
            ops.push(Op::delete(Table::Runs, run_key(key, gone)));
        }
        if (self.runs.keys() > KEYS_MAX || self.runs.total() > RUNS_MAX)
            && let Some((key, gone)) = Arc::make_mut(&mut self.runs).forget_oldest()
        {
            ops.extend(gone.iter().map(|run| Op::delete(Table::Runs, run_key(&key, run.submitted))));
        }
        ops
    }
}

fn run_key(key: &str, submitted: Timestamp) -> Vec<u8> {
    KeyBuilder::new().text(key).number(submitted.0).build()
}

/// The run that requests and finished tasks tell of. Counts are those of the requests; times and bytes the means of the
/// tasks that were heard of.
fn run_of(submitted: Timestamp, heard: &BTreeMap<Arc<str>, Tally>, known: &Attempt) -> Option<Run> {
    let mut groups: BTreeMap<&Arc<str>, &TaskGroup> = BTreeMap::new();
    let mut between = Bytes::ZERO;
    let own = known.requests.iter();
    for request in
        own.filter(|known| monitor::original(&known.id) == known.id && dispatching::late_of(&known.id).is_none())
    {
        for group in &request.groups {
            let most = groups.entry(&group.name).or_insert(group);
            if group.count > most.count {
                *most = group;
            }
        }
        let bytes = request.edges.iter().map(|edge| edge.bytes).fold(Bytes::ZERO, Bytes::saturating_add);
        between = between.max(bytes);
    }
    let (mut maps, mut reduces) = (Stage::default(), Stage::default());
    for (name, group) in groups {
        let stage = if &*group.role == "reduce" { &mut reduces } else { &mut maps };
        stage.add(group.count, heard.get(name));
    }
    let wrote = maps.bytes(maps.output);
    let shuffle = if between > Bytes::ZERO { between } else { wrote };
    (maps.heard > 0).then(|| Run {
        submitted,
        maps: (maps.tasks, maps.time()),
        reduces: (reduces.tasks, reduces.time()),
        input: maps.bytes(maps.input),
        shuffle: if reduces.tasks > 0 { shuffle } else { Bytes::ZERO },
    })
}

/// All groups of a stage.
#[derive(Debug, Default)]
struct Stage {
    tasks: u32,
    heard: u64,
    duration: u128,
    input: u128,
    output: u128,
}

impl Stage {
    fn add(&mut self, tasks: u32, tally: Option<&Tally>) {
        self.tasks = self.tasks.saturating_add(tasks);
        if let Some(tally) = tally {
            self.heard += tally.tasks;
            self.duration += tally.duration;
            self.input += tally.input;
            self.output += tally.output;
        }
    }

    fn time(&self) -> Micros {
        Micros(self.duration.checked_div(u128::from(self.heard)).map_or(0, |mean| mean as u64))
    }

    /// Of all tasks, by the mean of those that were heard of.
    fn bytes(&self, sum: u128) -> Bytes {
        let all = sum.saturating_mul(u128::from(self.tasks)).checked_div(u128::from(self.heard)).unwrap_or(0);
        Bytes(u64::try_from(all).unwrap_or(u64::MAX))
    }
}
