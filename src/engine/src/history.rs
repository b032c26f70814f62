//! What finished groups of recurring jobs did: durations, bytes, counts, edges and paths, by key.

use super::decision::RememberedRequest;
use super::journal::{Op, Table, text_key};
use super::prediction::{Run, steady_path};
use hintd_model::cluster::dataset::normal_name;
use hintd_model::cluster::{EdgePattern, Shards};
use hintd_model::units::{Bytes, Micros, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// History by recurring-job key, as one generation sees it.
pub type HistoryView = Shards<Arc<str>, Arc<JobHistory>>;

/// What is known of one recurring job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobHistory {
    /// Its groups by name.
    pub groups: BTreeMap<Arc<str>, GroupHistory>,
    /// Traffic between groups, as the last run that named any said or did.
    pub edges: Vec<EdgeHistory>,
    /// Input paths of the last run that named any.
    pub input_paths: Vec<Arc<str>>,
    /// Runs that came to their end.
    pub runs: u64,
    /// When it was last heard of.
    pub updated: Timestamp,
    /// Runs that a history server told of; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learnt: Option<Learned>,
    /// The last run of which bytes and times are known: what homes of its input are chosen by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Run>,
    /// What earlier runs read, numbers left out, the latest last: a job of one name reads one day's data and then another's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Arc<str>>,
}

/// Runs that a history server told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// How many.
    pub runs: u64,
    /// When the last of them ended; earlier ones are told no more.
    pub last: Timestamp,
}

/// A finished run, as a history server tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRun {
    /// When it ended.
    pub finished: Timestamp,
    /// Its groups.
    pub groups: Vec<LearnedGroup>,
    /// Traffic between them.
    pub edges: Vec<EdgeHistory>,
    /// What the planner's book notes of it; `None`: it does not say how long tasks took.
    pub whole: Option<Run>,
}

impl LearnedRun {
    /// The same, ended by now: its server's clock may be ahead of ours. It ran as long.
    #[must_use]
    pub fn ended_by(mut self, now: Timestamp) -> Self {
        let ahead = self.finished.since(now);
        if let Some(whole) = &mut self.whole {
            whole.submitted.0 = whole.submitted.0.saturating_sub(ahead.0);
        }
        self.finished = self.finished.min(now);
        self
    }
}

/// A group of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedGroup {
    /// Its name: that of its scheduler key, as stock applications' requests have it.
    pub name: Arc<str>,
    /// Its containers.
    pub count: u32,
    /// Memory of each, MB; 0: not known.
    pub memory_mb: u64,
    /// Paths that it read.
    pub input_paths: Vec<Arc<str>>,
    /// Bytes that it read where no paths are told; 0: not known.
    pub input: Bytes,
}

/// Finished tasks of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupHistory {
    /// The last finished tasks, oldest first.
    pub samples: VecDeque<Sample>,
    /// Tasks finished, ever.
    pub finished: u64,
    /// Containers that its last run had, or, as long as no history server told of one, that its last request asked for.
    pub count: u32,
    /// Whether a history server told `count`.
    #[serde(skip_serializing_if = "is_false")]
    pub count_told: bool,
    /// Memory of each, MB; 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_mb: u64,
    /// Input paths of the group's own.
    pub input_paths: Vec<Arc<str>>,
    /// Bytes that its last run read where no paths were told; 0: not known.
    #[serde(skip_serializing_if = "no_bytes")]
    pub input: Bytes,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn no_bytes(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

/// One finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How long it ran.
    pub duration: Micros,
    /// What it read.
    pub input: Bytes,
    /// What it wrote.
    pub output: Bytes,
}

/// Traffic between two groups, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeHistory {
    /// Sender.
    pub from: Arc<str>,
    /// Receiver.
    pub to: Arc<str>,
    /// Who talks to whom.
    pub pattern: EdgePattern,
    /// All bytes of the edge.
    pub bytes: Bytes,
}

/// Groups, edges and paths kept of one job.
const PARTS_MAX: usize = 256;
/// Paths that its runs read are remembered for who writes there next.
const READ_MAX: usize = 32;

impl JobHistory {
    /// Its last run read these.
    fn note_read(&mut self, paths: &[Arc<str>]) {
        for path in paths.iter().take(READ_MAX).map(|path| Arc::<str>::from(steady_path(path))) {
            self.read.retain(|known| *known != path);
            self.read.push(path);
        }
        self.read.drain(..self.read.len().saturating_sub(READ_MAX));
    }

    /// What a group sends to itself.
    pub(crate) fn within(&self, group: &str) -> Option<&EdgeHistory> {
        self.edges.iter().find(|edge| *edge.from == *group && *edge.to == *group)
    }

    /// Containers of a group in the last run; 0: not known.
    pub(crate) fn count(&self, group: &str) -> u32 {
        self.groups.get(group).map_or(0, |known| known.count)
    }
}

impl GroupHistory {
    /// Median duration of the samples; `None`: there are none.
    #[must_use]
    pub fn duration(&self) -> Option<Micros> {
        let mut durations: Vec<Micros> = self.samples.iter().map(|sample| sample.duration).collect();
        let middle = durations.len() / 2;
        (!durations.is_empty()).then(|| *durations.select_nth_unstable(middle).1)
    }

    /// Bytes that `count` tasks write, by the mean of the samples; `None`: there are none.
    #[must_use]
    pub fn output(&self, count: u32) -> Option<Bytes> {
        let sum: u128 = self.samples.iter().map(|sample| u128::from(sample.output.0)).sum();
        let mean = sum.checked_div(self.samples.len() as u128)?;
        Some(Bytes(u64::try_from(mean.saturating_mul(u128::from(count))).unwrap_or(u64::MAX)))
    }
}

/// The history: bounded, and written when it has changed.
#[derive(Debug, Default)]
pub(crate) struct History {
    jobs: HistoryView,
    by_age: BTreeSet<(Timestamp, Arc<str>)>,
    unwritten: BTreeSet<Arc<str>>,
}

/// Bounds of the history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryLimits {
    pub(crate) keys: usize,
    pub(crate) samples: usize,
}

impl History {
    pub(crate) fn view(&self) -> &HistoryView {
        &self.jobs
    }

    /// Takes a row of the journal in.
    pub(crate) fn restore(&mut self, key: Arc<str>, job: JobHistory) {
        self.by_age.insert((job.updated, Arc::clone(&key)));
        self.jobs.set(&key, Some(Arc::new(job)));
    }

    /// A task finished. Returns the keys that had to go.
    pub(crate) fn finished(
        &mut self,
        key: &Arc<str>,
        group: &Arc<str>,
        sample: Sample,
        limits: HistoryLimits,
        now: Timestamp,
    ) -> Vec<Arc<str>> {
        self.change(key, now, |job| {
            if job.groups.len() >= PARTS_MAX && !job.groups.contains_key(group) {
                return;
            }
            let known = job.groups.entry(Arc::clone(group)).or_default();
            known.finished += 1;
            known.samples.push_back(sample);
            let surplus = known.samples.len().saturating_sub(limits.samples.max(1));
            known.samples.drain(..surplus);
        });
        self.shrink(limits.keys)
    }

    /// A run came to its end: what its requests said of counts, edges and paths is kept, and an edge of unknown
    /// bytes gets what its sender's tasks wrote, if that goes nowhere else; `last`: the run as a whole, where that is known.
    pub(crate) fn ended<'a>(
        &mut self,
        key: &Arc<str>,
        (requests, last): (impl Iterator<Item = &'a RememberedRequest>, Option<Run>),
        limits: HistoryLimits,
        now: Timestamp,
    ) -> Vec<Arc<str>> {
        let requests: Vec<_> = requests.collect();
        self.change(key, now, |job| {
            job.runs += 1;
            job.last = last.or(job.last);
            for request in &requests {
                note_request(job, request);
            }
        });
        self.shrink(limits.keys)
    }

    /// A history server tells of a finished run; `None`: it, or a later one, was told before. Else the keys that had
    /// to go.
    pub(crate) fn learnt(
        &mut self,
        key: &Arc<str>,
        run: &LearnedRun,
        limits: HistoryLimits,
        now: Timestamp,
    ) -> Option<Vec<Arc<str>>> {
        let before = self.jobs.get(key).and_then(|job| job.learnt);
        // A last run of the future, of a journal of before, would keep all that come from being learnt.
        if before.is_some_and(|before| before.last <= now && run.finished <= before.last) {
            return None;
        }
        self.change(key, now, |job| {
            job.learnt = Some(Learned { runs: before.map_or(1, |before| before.runs + 1), last: run.finished });
            job.last = run.whole.or(job.last);
            for group in &run.groups {
                if job.groups.len() >= PARTS_MAX && !job.groups.contains_key(&group.name) {
                    continue;
                }
                let known = job.groups.entry(Arc::clone(&group.name)).or_default();
                (known.count, known.count_told) = (group.count, true);
                known.memory_mb = if group.memory_mb > 0 { group.memory_mb } else { known.memory_mb };
                known.input_paths = group.input_paths.iter().take(PARTS_MAX).map(normal_name).collect();
                known.input = group.input;
                job.note_read(&group.input_paths);
            }
            job.edges = run.edges.iter().take(PARTS_MAX).cloned().collect();
        });
        Some(self.shrink(limits.keys))
    }

    fn change(&mut self, key: &Arc<str>, now: Timestamp, change: impl FnOnce(&mut JobHistory)) {
        let mut job = self.jobs.get(key).map(Arc::clone).unwrap_or_default();
        self.by_age.remove(&(job.updated, Arc::clone(key)));
        let inner = Arc::make_mut(&mut job);
        inner.updated = now;
        change(inner);
        self.by_age.insert((now, Arc::clone(key)));
        self.jobs.set(key, Some(job));
        self.unwritten.insert(Arc::clone(key));
    }

    fn shrink(&mut self, most: usize) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        while self.by_age.len() > most.max(1) {
            let (_, key) = self.by_age.pop_first().expect("it holds more than one");
            self.jobs.set(&key, None);
            self.unwritten.insert(Arc::clone(&key));
            gone.push(key);
        }
        gone
    }

    /// Operations for what changed since the last call.
    pub(crate) fn write(&mut self) -> Vec<Op> {
        let write = |key: Arc<str>| match self.jobs.get(&key) {
            Some(job) => {
                let value = serde_json::to_vec(&**job).expect("a history has only numbers and string-keyed maps");
                Op::put(Table::History, text_key(&key), value)
            }
            None => Op::delete(Table::History, text_key(&key)),
        };
        std::mem::take(&mut self.unwritten).into_iter().map(write).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_age.len()
    }
}

fn note_request(job: &mut JobHistory, request: &RememberedRequest) {
    for group in &request.groups {
        if job.groups.len() >= PARTS_MAX && !job.groups.contains_key(&group.name) {
            continue;
        }
        let known = job.groups.entry(Arc::clone(&group.name)).or_default();
        // With dynamic allocation a request asks for a part of the run's containers.
        if !known.count_told {
            known.count = group.count;
        }
        known.memory_mb = group.size.memory_mb;
        if !group.input_paths.is_empty() {
            known.input_paths = group.input_paths.iter().take(PARTS_MAX).map(normal_name).collect();
            job.note_read(&group.input_paths);
        }
    }
    if !request.input_paths.is_empty() {
        job.note_read(&request.input_paths);
        job.input_paths = request.input_paths.iter().take(PARTS_MAX).map(normal_name).collect();
    }
    if request.edges.is_empty() {
        return;
    }
    let senders = |from| request.edges.iter().filter(|edge| edge.from == from).count();
    let name = |group: hintd_model::units::GroupIdx| Arc::clone(&request.groups[group.at()].name);
    let edge = |edge: &hintd_model::cluster::GroupEdge| {
        let (from, to) = (name(edge.from), name(edge.to));
        let wrote = job.groups.get(&from).and_then(|group| group.output(group.count));
        let measured = wrote.filter(|_| senders(edge.from) == 1);
        let bytes = if edge.bytes == Bytes::ZERO { measured.unwrap_or_default() } else { edge.bytes };
        EdgeHistory { from, to, pattern: edge.pattern, bytes }
    };
    job.edges = request.edges.iter().take(PARTS_MAX).map(edge).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request;
    use hintd_model::cluster::GroupEdge;
    use hintd_model::units::GroupIdx;

    const LIMITS: HistoryLimits = HistoryLimits { keys: 2, samples: 3 };

    fn sample(seconds: u64) -> Sample {
        Sample { duration: Micros::from_secs(seconds), input: Bytes(10), output: Bytes(seconds) }
    }

    #[test]
    fn the_median_duration_is_that_of_the_last_samples() {
        let mut history = History::default();
        for seconds in [100, 1, 2, 9] {
            history.finished(&"daily".into(), &"map".into(), sample(seconds), LIMITS, Timestamp(seconds));
        }
        let job = history.view().get(&Arc::from("daily")).unwrap();
        let group = &job.groups["map"];
        assert_eq!((group.duration(), group.finished), (Some(Micros::from_secs(2)), 4));
        assert_eq!(group.output(10), Some(Bytes(40)), "mean of 1, 2 and 9, ten times");
    }

    #[test]
    fn the_longest_unused_key_goes_first_and_its_row_with_it() {
        let mut history = History::default();
        for (at, key) in [(1, "a"), (2, "b"), (3, "a")] {
            assert!(history.finished(&key.into(), &"map".into(), sample(1), LIMITS, Timestamp(at)).is_empty());
        }
        history.write();
        let gone = history.finished(&"c".into(), &"map".into(), sample(1), LIMITS, Timestamp(4));
        assert_eq!(gone, [Arc::from("b")]);
        assert!(history.write().contains(&Op::delete(Table::History, text_key("b"))));
        assert_eq!(history.len(), 2);
    }

    #[test]
    fn a_run_of_the_future_ends_now_and_one_that_was_kept_keeps_none_from_being_learnt() {
        let told = |finished| LearnedRun {
            finished: Timestamp(finished),
            groups: Vec::new(),
            edges: Vec::new(),
            whole: Some(Run {
                submitted: Timestamp(finished - 50),
                maps: (1, Micros(20)),
                reduces: (1, Micros(30)),
                input: Bytes(1),
                shuffle: Bytes(1),
                application: None,
                counted: true,
                ran_on: None,
            }),
        };
        let now = Timestamp(1_000);
        assert_eq!(told(900).ended_by(now), told(900));
        assert_eq!(told(9_000).ended_by(now), told(1_000));
        let (mut history, key) = (History::default(), Arc::from("daily"));
        history.learnt(&key, &told(9_000), LIMITS, now).unwrap();
        assert!(history.learnt(&key, &told(1_100), LIMITS, Timestamp(1_200)).is_some(), "a journal of before had it");
        assert!(history.learnt(&key, &told(1_100), LIMITS, Timestamp(1_300)).is_none());
    }

    #[test]
    fn a_count_that_a_finished_run_told_is_not_replaced_by_what_a_request_asks_for() {
        let (mut history, key) = (History::default(), Arc::from("spark"));
        let ask = |count| [Arc::new(request("r", &[("p0.0", count)]))];
        history.ended(&key, (ask(2).iter(), None), LIMITS, Timestamp(1));
        let count = |history: &History| history.view().get(&key).unwrap().count("p0.0");
        assert_eq!(count(&history), 2, "nothing better is known");
        let told = |finished, count| {
            let (name, input_paths) = ("p0.0".into(), Vec::new());
            let group = LearnedGroup { name, count, memory_mb: 0, input_paths, input: Bytes::ZERO };
            LearnedRun { finished: Timestamp(finished), groups: vec![group], edges: Vec::new(), whole: None }
        };
        history.learnt(&key, &told(2, 8), LIMITS, Timestamp(2)).unwrap();
        history.ended(&key, (ask(1).iter(), None), LIMITS, Timestamp(3));
        assert_eq!(count(&history), 8);
        let rows = history.write();
        let [Op::Put { value, .. }] = &rows[..] else { panic!("one row: {rows:?}") };
        let mut restarted = History::default();
        restarted.restore(Arc::clone(&key), serde_json::from_slice(value).unwrap());
        restarted.ended(&key, (ask(1).iter(), None), LIMITS, Timestamp(4));
        assert_eq!(count(&restarted), 8, "the journal has it");
        restarted.learnt(&key, &told(5, 6), LIMITS, Timestamp(5)).unwrap();
        assert_eq!(count(&restarted), 6, "the last run counts");
    }

    #[test]
    fn an_edge_of_unknown_bytes_gets_what_its_sender_wrote() {
        let mut history = History::default();
        history.finished(&"daily".into(), &"map".into(), sample(5), LIMITS, Timestamp(1));
        let mut run = request("r", &[("map", 4), ("reduce", 2)]);
        let edge = GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: Bytes(0) };
        run.edges = vec![edge];
        run.input_paths = vec!["//in/".into()];
        history.ended(&"daily".into(), ([Arc::new(run)].iter(), None), LIMITS, Timestamp(2));
        let job = history.view().get(&Arc::from("daily")).unwrap();
        assert_eq!((job.edges[0].bytes, &*job.edges[0].to, job.runs), (Bytes(20), "reduce", 1));
        assert_eq!(job.input_paths, [Arc::from("/in")]);
    }
}
