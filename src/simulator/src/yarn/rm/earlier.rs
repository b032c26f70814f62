//! Jobs that ran before: what their earlier run was like, and where their input was written, or they are gathered, for it.
//!
//! # The model
//! - Whether a job recurs is drawn by the seed and its key: the path that it reads, where the trace has paths, else the
//!   job itself. The earlier run is never this one: its input, shuffle and times of tasks are this one's times factors
//!   drawn for each, log-uniformly between 1 ÷ `history_error` and `history_error`; where history lies, times
//!   `history_lie` as well. Where the trace tells earlier runs ([`Earlier::Told`]), these are known and no others, as they were.
//! - A path is written once, before the trace begins, where the policy says for the first recurring job that reads it.
//!   For what the policy knows of others, jobs are taken in the order in which they come.
//! - Where no data is placed each job is gathered where the policy says when it comes: its input lies where HDFS put it.
//!   The policy hears how many of its blocks each rack has, and how many other recurring jobs with a heavy shuffle run then.

use super::super::shares::{Kind, Shares};
use super::Sim;
use crate::job_model::JobModel;
use crate::settings::{Part, SimSettings};
use crate::streams::{EARLIER, EARLIER_PATHS, stream};
use crate::trace::job::{Earlier, TraceJob};
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, Micros, NodeIdx, RackIdx, Timestamp};
use hintd_policy::PlaceData;
use hintd_policy::advise::{EarlierRun, HomesProblem, InputState, Lies};
use hintd_policy::dispatch::TaskInput;
use hintd_policy::joint::HomeBook;
use rand::RngExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tasks whose times make the mean.
const TIMES_LOOKED_AT: u32 = 100;

/// What the policy decides on.
#[derive(Clone, Copy)]
struct At<'a> {
    snapshot: &'a Snapshot,
    /// Of the job.
    seed: u64,
    now: Timestamp,
}

/// Where input of recurring jobs was written, or they are gathered.
#[derive(Debug, Clone)]
pub(in crate::yarn) struct Homes {
    book: HomeBook,
    /// By path; empty: wherever HDFS put it.
    by_path: BTreeMap<Arc<str>, Vec<RackIdx>>,
    /// Jobs with an earlier run that run, and want the uplinks by it: their numbers in the trace.
    wanting: BTreeSet<u64>,
}

impl Homes {
    /// On a cluster with so many containers by node. Disks are large enough here.
    pub(in crate::yarn) fn new(snapshot: &Snapshot, containers: &[u32]) -> Self {
        let slots = |nodes: &Vec<NodeIdx>| nodes.iter().map(|node| containers[node.at()]).sum();
        let racks = snapshot.statics.members.iter().map(|nodes| (slots(nodes), Bytes(u64::MAX)));
        Self { book: HomeBook::new(snapshot, racks), by_path: BTreeMap::new(), wanting: BTreeSet::new() }
    }

    /// Racks of what a job reads: those of who wrote the path first; else the policy chooses, of which `narrow` takes one in
    /// turns.
    fn written(
        &mut self,
        path: Option<&Arc<str>>,
        run: Option<&EarlierRun>,
        (policy, narrow): (&dyn PlaceData, Option<u64>),
        at: At<'_>,
    ) -> Vec<RackIdx> {
        let At { snapshot, seed, now } = at;
        let racks = self.book.racks(now);
        let choose = || {
            let all = run
                .map(|run| policy.homes(&HomesProblem { snapshot, run, racks, seed, input: InputState::Unwritten }))
                .unwrap_or_default();
            match narrow {
                Some(turn) if !all.is_empty() => vec![all[(turn % all.len() as u64) as usize]],
                _ => all,
            }
        };
        let homes = match path {
            Some(path) => self.by_path.entry(Arc::clone(path)).or_insert_with(choose).clone(),
            None => choose(),
        };
        if let Some(run) = run {
            self.book.add(&homes, run, InputState::Unwritten);
        }
        homes
    }

    /// Racks in which a job is gathered whose input lies everywhere. `number`: in the trace.
    fn gathered(
        &mut self,
        (number, run, inputs): (u64, &EarlierRun, &[TaskInput]),
        policy: &dyn PlaceData,
        at: At<'_>,
    ) -> Vec<RackIdx> {
        let At { snapshot, seed, now } = at;
        let racks = self.book.racks(now);
        let others = u32::try_from(self.wanting.len()).unwrap_or(u32::MAX);
        let by_rack = by_rack(snapshot, inputs);
        let input = InputState::Written { others, lies: Some(Lies { blocks: inputs.len() as u64, by_rack: &by_rack }) };
        let homes = policy.homes(&HomesProblem { snapshot, run, racks, seed, input });
        self.book.add(&homes, run, input);
        if self.book.wants_uplinks(run) {
            self.wanting.insert(number);
        }
        homes
    }

    /// The job has ended.
    pub(in crate::yarn) fn job_ends(&mut self, number: u64) {
        self.wanting.remove(&number);
    }
}

impl Sim<'_> {
    /// The job's earlier run, where it has one, and the racks that its input was written to for it.
    pub(in crate::yarn) fn earlier(
        &mut self,
        number: u64,
        job: &TraceJob,
        shares: &Shares,
    ) -> (Option<Arc<EarlierRun>>, Vec<RackIdx>) {
        let settings = self.run.settings;
        let run = earlier_run(settings, number, job, shares, self.run.model).map(Arc::new);
        let at = At { snapshot: &self.snapshot, seed: self.run.settings.seed ^ number, now: Timestamp(self.now.0) };
        let homes = match (self.run.places, &mut self.homes) {
            (Some(policy), Some(homes)) if settings.data_placement => {
                let narrow = settings.without.contains(&Part::RackWidth).then_some(number);
                homes.written(job.input_path.as_ref(), run.as_deref(), (policy, narrow), at)
            }
            _ => Vec::new(),
        };
        (run, homes)
    }

    /// Racks in which a job with an earlier run is gathered, which reads those inputs.
    pub(in crate::yarn) fn gathered(&mut self, number: u64, run: &EarlierRun, inputs: &[TaskInput]) -> Vec<RackIdx> {
        let at = At { snapshot: &self.snapshot, seed: self.run.settings.seed ^ number, now: Timestamp(self.now.0) };
        match (self.run.places, &mut self.homes) {
            (Some(policy), Some(homes)) => homes.gathered((number, run, inputs), policy, at),
            _ => Vec::new(),
        }
    }
}

/// By rack: how many of them have a replica there.
fn by_rack(snapshot: &Snapshot, inputs: &[TaskInput]) -> Vec<u64> {
    let mut found = vec![0; snapshot.statics.members.len()];
    for input in inputs {
        let racks: BTreeSet<RackIdx> = input.nodes.iter().map(|node| snapshot.statics.rack[node.at()]).collect();
        racks.iter().for_each(|rack| found[rack.at()] += 1);
    }
    found
}

/// A number that the job's key alone decides.
fn key_number(number: u64, job: &TraceJob) -> [u64; 2] {
    match &job.input_path {
        // FNV-1a: keys need no better, and it is the same on every machine.
        Some(path) => {
            let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            [EARLIER_PATHS, path.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)]
        }
        None => [EARLIER, number],
    }
}

/// What is known of the job's shuffle before it runs: its earlier run's, where it has one.
pub(crate) fn known_shuffle(settings: &SimSettings, number: u64, job: &TraceJob, model: &JobModel) -> Option<Bytes> {
    let shares = Shares::new(number, job, model)?;
    earlier_run(settings, number, job, &shares, model).map(|run| run.shuffle)
}

/// One that the trace tells, but for lies. Its tasks' times are drawn as those of any job, and not as this one's.
fn told_run(
    settings: &SimSettings,
    number: u64,
    (job, before): (&TraceJob, &TraceJob),
    model: &JobModel,
) -> Option<EarlierRun> {
    let shares = Shares::new(!number, before, model)?;
    let lie = settings.history_lie;
    Some(run_of(key_name(number, job), &shares, [lie.bytes, lie.bytes, lie.times], model))
}

/// Which jobs have one is the seed's and the key's affair, whatever the share: more of them are those of fewer, and others.
fn earlier_run(
    settings: &SimSettings,
    number: u64,
    job: &TraceJob,
    shares: &Shares,
    model: &JobModel,
) -> Option<EarlierRun> {
    if settings.recurring <= 0.0 {
        return None;
    }
    if let Earlier::Told(before) = &job.earlier {
        return told_run(settings, number, (job, before.as_deref()?), model);
    }
    let [kind, key] = key_number(number, job);
    if stream([settings.seed, key, kind, 0]).random::<f64>() >= settings.recurring {
        return None;
    }
    let mut draws = stream([settings.seed, number, EARLIER, 1]);
    let mut factor = || settings.history_error.powf(draws.random_range(-1.0..=1.0));
    let lie = settings.history_lie;
    let factors = [factor() * lie.bytes, factor() * lie.bytes, factor() * lie.times];
    Some(run_of(key_name(number, job), shares, factors, model))
}

fn key_name(number: u64, job: &TraceJob) -> String {
    match &job.input_path {
        Some(path) => format!("path:{path}"),
        None => format!("job:{number}"),
    }
}

/// A job's run, its input, shuffle and tasks' times off by factors.
fn run_of(key: String, shares: &Shares, [of_input, of_shuffle, of_times]: [f64; 3], model: &JobModel) -> EarlierRun {
    let bytes = |bytes: Bytes, factor: f64| Bytes((bytes.as_f64() * factor).round() as u64);
    let tasks = |count: u32, factor: f64| match count {
        0 => 0,
        count => ((f64::from(count) * factor).round() as u32).max(1),
    };
    let time = |kind: Kind, count: u32| {
        let looked_at = count.min(TIMES_LOOKED_AT);
        let sum: u64 = (0..looked_at).map(|index| shares.time(kind, index, model).0).sum();
        Micros((sum.checked_div(u64::from(looked_at)).unwrap_or(0) as f64 * of_times).round() as u64)
    };
    let (maps, reduces) = (shares.maps(), shares.reduces());
    EarlierRun {
        key: key.into(),
        input: bytes(shares.input(), of_input),
        shuffle: bytes(shares.shuffle(), of_shuffle),
        maps: (tasks(maps, of_input), time(Kind::Map, maps)),
        reduces: (tasks(reduces, of_shuffle), time(Kind::Reduce, reduces)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::HistoryLie;

    fn job(path: Option<&str>) -> TraceJob {
        TraceJob {
            name: "job".into(),
            submit: Micros::ZERO,
            input: Bytes(40 << 30),
            shuffle: Bytes(20 << 30),
            output: Bytes(1 << 30),
            input_path: path.map(Into::into),
            blocks: None,
            user: None,
            maps: None,
            reduces: None,
            map_time: None,
            reduce_time: None,
            earlier: Earlier::Untold,
        }
    }

    fn earlier(settings: &SimSettings, number: u64, path: Option<&str>) -> Option<EarlierRun> {
        let (job, model) = (job(path), JobModel::default());
        earlier_run(settings, number, &job, &Shares::new(number, &job, &model).unwrap(), &model)
    }

    fn recurring(recurring: f64, history_error: f64) -> SimSettings {
        SimSettings { recurring, history_error, ..SimSettings::default() }
    }

    #[test]
    fn the_share_is_met_and_a_larger_one_has_the_jobs_of_a_smaller() {
        let of =
            |share| (0..1_000).filter(|&job| earlier(&recurring(share, 2.0), job, None).is_some()).collect::<Vec<_>>();
        let [none, some, more, all] = [0.0, 0.4, 0.7, 1.0].map(of);
        assert_eq!((none.len(), all.len()), (0, 1_000));
        // Drawn: standard deviations of 15.
        assert!(some.len().abs_diff(400) < 75 && more.len().abs_diff(700) < 75, "{} {}", some.len(), more.len());
        assert!(some.iter().all(|job| more.contains(job)));
    }

    #[test]
    fn jobs_of_a_path_recur_together_and_each_is_off_by_factors_of_its_own() {
        let settings = recurring(0.5, 2.0);
        for path in ["/a", "/b", "/c", "/d"] {
            let runs: Vec<_> = (0..20).map(|job| earlier(&settings, job, Some(path))).collect();
            assert!(runs.iter().all(|run| run.is_some() == runs[0].is_some()), "{path}");
        }
        let runs: Vec<EarlierRun> =
            (0..500).map(|job| earlier(&recurring(1.0, 2.0), job, Some("/a")).unwrap()).collect();
        assert!(runs.iter().all(|run| &*run.key == "path:/a"));
        let factors: Vec<f64> = runs.iter().map(|run| run.shuffle.as_f64() / (20_u64 << 30) as f64).collect();
        assert!(factors.iter().all(|factor| (0.5..=2.0).contains(factor)));
        let below = factors.iter().filter(|factor| **factor < 1.0).count();
        assert!(below.abs_diff(250) < 60, "as often too little as too much: {below} of 500");
        let same = runs.iter().filter(|run| run.shuffle.0 * 2 == run.input.0).count();
        assert_eq!(same, 0, "input and shuffle are off independently");
        assert_eq!(earlier(&recurring(1.0, 2.0), 7, Some("/a")).unwrap(), runs[7], "by seed and job alone");
    }

    #[test]
    fn what_the_trace_tells_of_earlier_runs_is_known_and_nothing_else() {
        let before = TraceJob { input: Bytes(10 << 30), shuffle: Bytes(30 << 30), ..job(Some("/a")) };
        let run = |settings: &SimSettings, told: Option<TraceJob>| {
            let job = TraceJob { earlier: Earlier::Told(told.map(Arc::new)), ..job(Some("/a")) };
            let model = JobModel::default();
            earlier_run(settings, 7, &job, &Shares::new(7, &job, &model).unwrap(), &model)
        };
        let known = run(&recurring(1.0, 2.0), Some(before.clone())).unwrap();
        assert_eq!((known.input, known.shuffle, &*known.key), (before.input, before.shuffle, "path:/a"), "as it was");
        assert_eq!((known.maps.0, known.reduces.0), (80, 30));
        assert_eq!(run(&recurring(1.0, 2.0), None), None, "nothing is drawn");
        assert_eq!(run(&recurring(0.0, 2.0), Some(before.clone())), None, "levers without history know none");
        let lie = HistoryLie { bytes: 10.0, ..HistoryLie::NONE };
        let lied = run(&SimSettings { history_lie: lie, ..recurring(1.0, 2.0) }, Some(before)).unwrap();
        assert_eq!(lied.input, Bytes(100 << 30));
    }

    #[test]
    fn a_lie_is_told_beside_the_error() {
        let told = |lie: HistoryLie| {
            let settings = SimSettings { history_lie: lie, ..recurring(1.0, 2.0) };
            earlier(&settings, 7, None).unwrap()
        };
        let [truth, bytes, times] = [
            HistoryLie::NONE,
            HistoryLie { bytes: 10.0, ..HistoryLie::NONE },
            HistoryLie { times: 5.0, ..HistoryLie::NONE },
        ]
        .map(told);
        let ratio = |one: Bytes, other: Bytes| (one.as_f64() / other.as_f64() * 1000.0).round() as u32;
        assert_eq!((ratio(bytes.input, truth.input), ratio(bytes.shuffle, truth.shuffle)), (10_000, 10_000));
        assert_eq!((bytes.maps.1, bytes.reduces.1), (truth.maps.1, truth.reduces.1), "times are told right");
        assert!(bytes.maps.0.abs_diff(10 * truth.maps.0) <= 10, "{} of {}", bytes.maps.0, truth.maps.0);
        assert_eq!((times.input, times.shuffle, times.maps.0), (truth.input, truth.shuffle, truth.maps.0));
        assert!(times.maps.1.0.abs_diff(5 * truth.maps.1.0) <= 5, "{:?} of {:?}", times.maps, truth.maps);
    }

    #[test]
    fn without_error_an_earlier_run_is_this_one() {
        let run = earlier(&recurring(1.0, 1.0), 7, None).unwrap();
        assert_eq!((run.input, run.shuffle, run.maps.0, run.reduces.0), (Bytes(40 << 30), Bytes(20 << 30), 320, 20));
    }
}
