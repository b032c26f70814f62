//! Runs of recurring jobs, noted as they finish, for predictions.

use crate::attempts::Attempt;
use crate::decision::RememberedRequest;
use crate::history::Sample;
use crate::journal::{KeyBuilder, KeyPart, Op, Table, key_parts};
use crate::prediction::{ClassHash, ClassShare, Run, Runs};
use crate::{dispatching, monitor};
use hintd_model::cluster::{NodeStatics, Snapshot, TaskGroup};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, Timestamp};
use hintd_policy::scale_up_out::is_up;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What is noted of one run while it is under way.
#[derive(Debug, Default)]
struct OpenRun {
    began: Option<Timestamp>,
    /// It was under way when the daemon started: what was heard before is not known.
    resumed: bool,
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
pub(crate) struct RunTracker {
    open: BTreeMap<AttemptId, OpenRun>,
    runs: Arc<Runs>,
    /// Where the run of an application is noted.
    noted: BTreeMap<ApplicationId, (Arc<str>, Timestamp)>,
    ran_on: RanOn,
    machines: ClassMachines,
}

/// How much of applications that were under way ran on machines of the class that is told apart: a history server tells of a
/// run when the application has been forgotten.
#[derive(Debug, Default)]
struct RanOn {
    shares: BTreeMap<ApplicationId, ClassShare>,
    /// Oldest first.
    order: VecDeque<ApplicationId>,
}

/// Applications of which it is kept: more than a history server lists at once.
const RAN_ON_MAX: usize = 20_000;

impl RanOn {
    fn note(&mut self, application: ApplicationId, share: ClassShare) {
        if self.shares.insert(application, share).is_none() {
            self.order.push_back(application);
        }
        if self.order.len() > RAN_ON_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.shares.remove(&oldest);
        }
    }

    fn of(&self, application: Option<ApplicationId>) -> Option<ClassShare> {
        self.shares.get(&application?).copied()
    }
}

/// Whether any machine is of the class that is told apart: looked for anew when the class or the machines change.
#[derive(Debug, Default)]
struct ClassMachines {
    of: Option<(Arc<NodeStatics>, Arc<str>)>,
    any: bool,
}

impl ClassMachines {
    fn any(&mut self, snapshot: &Snapshot, class: &Arc<str>) -> bool {
        let same =
            |(statics, known): &(Arc<NodeStatics>, Arc<str>)| Arc::ptr_eq(statics, &snapshot.statics) && known == class;
        if !self.of.as_ref().is_some_and(same) {
            self.any = snapshot.statics.indexes().any(|node| is_up(snapshot, node, class));
            self.of = Some((Arc::clone(&snapshot.statics), Arc::clone(class)));
        }
        self.any
    }
}

/// What the end of a run comes to.
#[derive(Debug, Default)]
pub(crate) struct RunEnd {
    /// What to write.
    pub(crate) ops: Vec<Op>,
    /// It is not noted: it was under way when the daemon started, and of most of its tasks nothing was heard since.
    pub(crate) left_out: bool,
    /// The run itself, where it tells anything.
    pub(crate) run: Option<Run>,
}

/// Runs kept of all keys together: some 20 MB.
const RUNS_MAX: usize = 200_000;
/// Keys kept: clients name them, and one that makes up a key for each run must not fill the memory.
const KEYS_MAX: usize = 10_000;

impl RunTracker {
    /// Finished runs.
    pub(crate) const fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Takes a row of the journal in.
    pub(crate) fn restore(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let parts = key_parts(key);
        let Some([KeyPart::Text(job), KeyPart::Number(_)]) = parts.as_deref() else {
            return Err("the key is not a job's and a number".to_owned());
        };
        let run: Run = serde_json::from_slice(value).map_err(|error| error.to_string())?;
        let key: Arc<str> = job.as_str().into();
        Arc::make_mut(&mut self.runs).note(&key, run);
        self.noted.extend(run.application.map(|application| (application, (key, run.submitted))));
        Ok(())
    }

    /// An attempt of a recurring job asked before the daemon started.
    pub(crate) fn resumed(&mut self, attempt: AttemptId, began: Timestamp) {
        self.began(attempt, began);
        self.open.entry(attempt).or_default().resumed = true;
    }

    /// An attempt of a recurring job asked.
    pub(crate) fn began(&mut self, attempt: AttemptId, now: Timestamp) {
        self.open.entry(attempt).or_default().began.get_or_insert(now);
    }

    /// When an attempt of a recurring job that is under way first asked.
    pub(crate) fn began_at(&self, attempt: AttemptId) -> Option<Timestamp> {
        self.open.get(&attempt)?.began
    }

    /// A task of it finished.
    pub(crate) fn finished(&mut self, attempt: AttemptId, group: &Arc<str>, sample: Sample) {
        let Some(open) = self.open.get_mut(&attempt) else { return };
        if open.groups.len() >= GROUPS_MAX && !open.groups.contains_key(group) {
            return;
        }
        let tally = open.groups.entry(Arc::clone(group)).or_default();
        tally.tasks += 1;
        tally.duration += u128::from(sample.duration.0);
        tally.input += u128::from(sample.input.0);
        tally.output += u128::from(sample.output.0);
    }

    /// Its containers ran on these machines, each with how many. Nothing is noted while no machine is of the class: who names
    /// machines later must not find all that ran before counted as run elsewhere.
    pub(crate) fn ran_on(
        &mut self,
        application: ApplicationId,
        class: &Arc<str>,
        snapshot: &Snapshot,
        nodes: impl Iterator<Item = (NodeIdx, u32)>,
    ) {
        if class.is_empty() || !self.machines.any(snapshot, class) {
            return;
        }
        let (mut all, mut of_class) = (0_u64, 0_u64);
        for (node, count) in nodes {
            all += u64::from(count);
            of_class += if is_up(snapshot, node, class) { u64::from(count) } else { 0 };
        }
        if let Some(share) = (1_000 * of_class).checked_div(all) {
            let per_mille = u16::try_from(share).expect("a part of the whole");
            self.ran_on.note(application, ClassShare { class: ClassHash::of(class), per_mille });
        }
    }

    /// It is over without being a run: it failed, or was forgotten.
    pub(crate) fn forget(&mut self, attempt: AttemptId) {
        self.open.remove(&attempt);
    }

    /// It came to its end. A run of which no map's end was heard tells nothing and is not noted; nor is one that the
    /// daemon's start cut in two, unless half of each stage's tasks were heard of: the last ones are not like the rest.
    pub(crate) fn ended(&mut self, attempt: AttemptId, key: &Arc<str>, known: &Attempt) -> RunEnd {
        let Some(open) = self.open.remove(&attempt) else { return RunEnd::default() };
        let Some((began, [maps, reduces])) = open.began.map(|began| (began, stages(&open.groups, known))) else {
            return RunEnd::default();
        };
        if open.resumed && !(maps.is_known() && reduces.is_known()) {
            return RunEnd { left_out: true, ..RunEnd::default() };
        }
        let run = run_of(attempt.application, began, [&maps, &reduces], known);
        let run = run.map(|run| self.with_told(run));
        RunEnd { ops: run.map_or_else(Vec::new, |run| self.note(key, run)), left_out: false, run }
    }

    /// A history server tells of a run: what to write. One that is noted already was told before, or by itself: that knows
    /// its key and when it began better, and the server what it read, shuffled and took.
    pub(crate) fn learnt(&mut self, key: &Arc<str>, run: Run) -> Vec<Op> {
        let ran_on = self.ran_on.of(run.application);
        match self.noted_run(run.application) {
            None => self.note(key, Run { ran_on, ..run }),
            Some((key, noted)) if run.counted && !noted.counted => {
                self.note(&key, Run { submitted: noted.submitted, ran_on: noted.ran_on.or(ran_on), ..run })
            }
            Some(_) => Vec::new(),
        }
    }

    /// With what was told of it otherwise: on which machines it ran, and what a history server counted that was first.
    fn with_told(&self, run: Run) -> Run {
        let told = self.noted_run(run.application).map(|(_, noted)| noted).filter(|noted| noted.counted);
        Run { submitted: run.submitted, ran_on: self.ran_on.of(run.application), ..told.unwrap_or(run) }
    }

    /// The run that is noted of an application, and its key.
    fn noted_run(&self, application: Option<ApplicationId>) -> Option<(Arc<str>, Run)> {
        let (key, submitted) = self.noted.get(&application?)?;
        let runs = self.runs.of(key);
        let at = runs.binary_search_by_key(submitted, |run| run.submitted).ok()?;
        Some((Arc::clone(key), runs[at]))
    }

    fn note(&mut self, key: &Arc<str>, run: Run) -> Vec<Op> {
        let (mut ops, runs) = (Vec::new(), Arc::make_mut(&mut self.runs));
        if let Some((key, submitted)) = run.application.and_then(|application| self.noted.remove(&application)) {
            runs.forget(&key, submitted);
            ops.push(Op::delete(Table::Runs, run_key(&key, submitted)));
        }
        let gone = runs.note(key, run);
        if let Some(application) = gone.and_then(|gone| gone.application) {
            self.noted.remove(&application);
        }
        if let Some(gone) = gone.filter(|gone| gone.submitted != run.submitted) {
            ops.push(Op::delete(Table::Runs, run_key(key, gone.submitted)));
        }
        // One older than all that are kept went at once.
        if runs.of(key).binary_search_by_key(&run.submitted, |kept| kept.submitted).is_ok() {
            let value = serde_json::to_vec(&run).expect("a run is numbers and a name");
            ops.push(Op::put(Table::Runs, run_key(key, run.submitted), value));
            self.noted.extend(run.application.map(|application| (application, (Arc::clone(key), run.submitted))));
        }
        if (runs.keys() > KEYS_MAX || runs.total() > RUNS_MAX)
            && let Some((key, gone)) = runs.forget_oldest()
        {
            gone.iter().filter_map(|run| run.application).for_each(|of| drop(self.noted.remove(&of)));
            ops.extend(gone.iter().map(|run| Op::delete(Table::Runs, run_key(&key, run.submitted))));
        }
        ops
    }
}

fn run_key(key: &str, submitted: Timestamp) -> Vec<u8> {
    KeyBuilder::new().text(key).number(submitted.0).build()
}

/// Maps and reduces, as requests ask for them and as far as they were heard of.
fn stages(heard: &BTreeMap<Arc<str>, Tally>, known: &Attempt) -> [Stage; 2] {
    let mut groups: BTreeMap<&Arc<str>, &TaskGroup> = BTreeMap::new();
    for group in own_requests(known).flat_map(|request| &request.groups) {
        let most = groups.entry(&group.name).or_insert(group);
        if group.count > most.count {
            *most = group;
        }
    }
    let [mut maps, mut reduces] = [Stage::default(), Stage::default()];
    for (name, group) in groups {
        let stage = if &*group.role == "reduce" { &mut reduces } else { &mut maps };
        stage.add(group.count, heard.get(name));
    }
    [maps, reduces]
}

/// Requests that the application made itself: what was placed anew, or late, is a part of one of them.
fn own_requests(known: &Attempt) -> impl Iterator<Item = &RememberedRequest> {
    let own = |known: &&RememberedRequest| {
        monitor::original(&known.id) == known.id && dispatching::late_of(&known.id).is_none()
    };
    known.requests.iter().filter(own)
}

/// The run that requests and finished tasks tell of. Counts are those of the requests; times and bytes the means of the
/// tasks that were heard of.
fn run_of(
    application: ApplicationId,
    submitted: Timestamp,
    [maps, reduces]: [&Stage; 2],
    known: &Attempt,
) -> Option<Run> {
    let bytes = |request: &RememberedRequest| {
        request.edges.iter().map(|edge| edge.bytes).fold(Bytes::ZERO, Bytes::saturating_add)
    };
    let between = own_requests(known).map(bytes).max().unwrap_or(Bytes::ZERO);
    let wrote = maps.bytes(maps.output);
    let shuffle = if between > Bytes::ZERO { between } else { wrote };
    (maps.heard > 0).then(|| Run {
        submitted,
        maps: (maps.tasks, maps.time()),
        reduces: (reduces.tasks, reduces.time()),
        input: maps.bytes(maps.input),
        shuffle: if reduces.tasks > 0 { shuffle } else { Bytes::ZERO },
        application: Some(application),
        counted: false,
        ran_on: None,
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

    /// At least half of its tasks were heard of.
    fn is_known(&self) -> bool {
        2 * self.heard >= u64::from(self.tasks)
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
