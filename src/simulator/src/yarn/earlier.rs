//! Jobs that ran before, and what their earlier run was like.

use super::rm::Sim;
use super::shares::Shares;
use super::tables::Kind;
use crate::settings::SimSettings;
use crate::streams::{EARLIER, stream};
use crate::trace::job::TraceJob;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, Micros, RackIdx, Timestamp};
use hintd_policy::PlaceData;
use hintd_policy::advise::{EarlierRun, HomesProblem};
use hintd_policy::joint::homes::HomeBook;
use rand::RngExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where input of recurring jobs was written.
#[derive(Debug, Clone)]
pub(super) struct Homes {
    book: HomeBook,
    /// By path; empty: wherever HDFS put it.
    by_path: BTreeMap<Arc<str>, Vec<RackIdx>>,
}

impl Homes {
    pub(super) fn new(snapshot: &Snapshot, containers: &[u32]) -> Self {
        let members = snapshot.statics.members.iter();
        let slots = |nodes: &[hintd_model::units::NodeIdx]| nodes.iter().map(|node| containers[node.at()]).sum();
        let slots: Vec<u32> = members.map(|nodes| slots(nodes)).collect();
        Self { book: HomeBook::new(snapshot, &slots), by_path: BTreeMap::new() }
    }

    /// Racks of what a job reads: those of who wrote the path first; else the policy chooses.
    fn of(
        &mut self,
        path: Option<&Arc<str>>,
        run: Option<&EarlierRun>,
        policy: &dyn PlaceData,
        (snapshot, seed, now): (&Snapshot, u64, Timestamp),
    ) -> Vec<RackIdx> {
        if let Some(known) = path.and_then(|path| self.by_path.get(path)) {
            if let Some(run) = run {
                self.book.add(known, run);
            }
            return known.clone();
        }
        let choose = |run: &EarlierRun| {
            let racks = self.book.racks(now);
            let homes = {
                let _ = policy;
                super::homes_dev::choose(&HomesProblem { snapshot, run, racks, seed })
            };
            self.book.add(&homes, run);
            homes
        };
        let homes = run.map(choose).unwrap_or_default();
        if let Some(path) = path {
            self.by_path.insert(Arc::clone(path), homes.clone());
        }
        homes
    }
}

impl Sim<'_> {
    /// The job's earlier run, where it has one, and the racks of what it reads.
    pub(super) fn earlier(
        &mut self,
        number: u64,
        job: &TraceJob,
        shares: &Shares,
    ) -> (Option<Arc<EarlierRun>>, Vec<RackIdx>) {
        let settings = self.run.settings;
        let run = earlier_run(settings, number, shares, self.run.model).map(Arc::new);
        let homes = match (self.run.places, &mut self.homes) {
            (Some(policy), Some(homes)) => {
                let at = (&self.snapshot, settings.seed ^ number, Timestamp(self.now.0));
                homes.of(job.input_path.as_ref(), run.as_deref(), policy, at)
            }
            _ => Vec::new(),
        };
        (run, homes)
    }
}

/// By (seed, job) alone, whatever the share of recurring jobs: more of them are those of fewer, and others.
fn earlier_run(
    settings: &SimSettings,
    number: u64,
    shares: &Shares,
    model: &crate::job_model::JobModel,
) -> Option<EarlierRun> {
    if settings.recurring <= 0.0 {
        return None;
    }
    let mut draws = stream([settings.seed, number, EARLIER, 0]);
    if draws.random::<f64>() >= settings.recurring {
        return None;
    }
    let mut factor = || settings.history_error.powf(draws.random_range(-1.0..=1.0));
    let (of_input, of_shuffle, of_times) = (factor(), factor(), factor());
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
    Some(EarlierRun {
        key: format!("job:{number}").into(),
        input: bytes(shares.input(), of_input),
        shuffle: bytes(shares.shuffle(), of_shuffle),
        maps: (tasks(maps, of_input), time(Kind::Map, maps)),
        reduces: (tasks(reduces, of_shuffle), time(Kind::Reduce, reduces)),
    })
}

/// Tasks whose times make the mean.
const TIMES_LOOKED_AT: u32 = 100;
