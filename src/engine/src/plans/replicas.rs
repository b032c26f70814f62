//! Where data goes that planned jobs will read (004 §4.2.4): advice for whoever writes it, block by block.
//!
//! The reader is named, or found by path: of the jobs in the plan in force the one whose input, as its last run, the plan or
//! its key says, is that path or a folder above it, dates and numbers in both left out. What nobody is planned to read is
//! HDFS's to place, and the answer says why.

use super::kept::KeptPlan;
use crate::generation::Generation;
use crate::history::JobHistory;
use crate::placer::seed_of;
use crate::prediction::{key_paths, steady_path};
use crate::refusal::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{HostName, NodeIdx, RackIdx, RackPath, Timestamp};
use hintd_policy::advise::{DataProblem, ReplicaAdvice};
use hintd_policy::plan::{JobName, PlannedJob};
use hintd_policy::{Policy, advise::PlaceData};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRequest {
    /// Its path.
    pub path: Arc<str>,
    /// The recurring job that will read it; none: found by path.
    pub reader: Option<Arc<str>>,
    /// Replicas of each block.
    pub replication: u8,
    /// Blocks.
    pub blocks: u32,
    /// Seed of every random draw; none: the path's.
    pub seed: Option<u64>,
}

/// Where it should go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaPlan {
    /// The plan in force.
    pub plan: Option<Arc<str>>,
    /// The planned or recurring job that reads it.
    pub reader: Option<Arc<str>>,
    /// The run of it that the racks are of: the first that has yet to come.
    pub job: Option<JobName>,
    /// Racks that run its maps, in the order in which they are planned to begin, or its homes, or those that its blocks go to,
    /// with their usable hosts.
    pub racks: Vec<(RackPath, Vec<HostName>)>,
    /// By block, first replica first.
    pub blocks: Vec<Vec<Replica>>,
    /// Stable token: why.
    pub reason: Why,
}

/// Where one replica should go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// A rack, and a host of it; none: HDFS's own choice.
    pub place: Option<(RackPath, HostName)>,
}

/// Why replicas go where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// In racks that run the reader's maps, and others beside them as HDFS keeps two.
    Planned,
    /// No plan has it; the first replica in a home of the recurring job that reads it, the others HDFS's.
    Homes,
    /// By what machines are, whoever reads it: one replica for each class.
    Classes,
    /// The reader's earlier runs are not known well enough: bytes and times of tasks were never told.
    NoEarlierRun,
    /// The reader's shuffle is too small, or the cluster too loaded, for homes to be worth it.
    Everywhere,
    /// No plan is in force, and no earlier run is known that read it.
    NoPlan,
    /// The horizon of the plan in force has ended: nothing of it is expected any more.
    PlanExpired,
    /// The plan has no job that reads it.
    NotPlanned,
    /// None of the racks that run its reader's maps has a usable node.
    RacksGone,
    /// The policy that made the plan places no data, or is not known any more.
    PolicyPlacesNoData,
}

impl Why {
    /// Stable token.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Homes => "homes",
            Self::Classes => "classes",
            Self::NoEarlierRun => "no_earlier_run",
            Self::Everywhere => "everywhere",
            Self::NoPlan => "no_plan",
            Self::PlanExpired => "plan_expired",
            Self::NotPlanned => "not_planned",
            Self::RacksGone => "racks_gone",
            Self::PolicyPlacesNoData => "policy_places_no_data",
        }
    }
}

/// Where replicas of new data should go; `policy_of`: policies by name.
///
/// # Errors
/// [`Refusal::Unknown`] for a reader that is named and has no job in the plan in force.
pub fn replicas<'p>(
    generation: &Generation,
    ask: &ReplicaRequest,
    policy_of: impl FnOnce(&str) -> Option<&'p Arc<dyn Policy>>,
    now: Timestamp,
) -> Result<ReplicaPlan, Refusal> {
    let default = |plan: Option<Arc<str>>, reader: Option<Arc<str>>, reason: Why| {
        let block = || vec![Replica { place: None }; ask.replication.into()];
        let blocks = (0..ask.blocks).map(|_| block()).collect();
        ReplicaPlan { plan, reader, job: None, racks: Vec::new(), blocks, reason }
    };
    let Some(kept) = &generation.plan else { return Ok(default(None, None, Why::NoPlan)) };
    let name = Some(Arc::clone(&kept.name));
    if kept.has_expired(now) {
        return Ok(default(name, None, Why::PlanExpired));
    }
    let reader = match &ask.reader {
        Some(key) if kept.has_key(key) => Some(Arc::clone(key)),
        Some(key) => {
            let known = kept.plan.jobs.iter().map(|job| &*job.job.key);
            let nearest = hintd_model::solve::nearest(key, known).map(str::to_owned);
            return Err(Refusal::Unknown { what: "planned job", name: key.to_string(), nearest });
        }
        None => reader_of(&ask.path, kept, |key| generation.history.get(key)),
    };
    let Some(reader) = reader else { return Ok(default(name, None, Why::NotPlanned)) };
    let places = policy_of(&kept.plan.policy).and_then(|policy| policy.as_place_data());
    let Some(places) = places else { return Ok(default(name, Some(reader), Why::PolicyPlacesNoData)) };
    let snapshot = &generation.snapshot;
    let job = kept.plan.next_run(&reader, now);
    let racks = job.map(|job| map_racks(job, snapshot)).unwrap_or_default();
    if racks.is_empty() {
        return Ok(default(name, Some(reader), Why::RacksGone));
    }
    let seed = ask.seed.unwrap_or_else(|| seed_of(&ask.path));
    let problem = |block: u64| DataProblem {
        snapshot,
        path: Arc::clone(&ask.path),
        block,
        reader: Some(Arc::clone(&reader)),
        plan: Some(&kept.plan),
        homes: &[],
        now,
        writer: None,
        replication: ask.replication,
        seed,
    };
    let block = |nth: u32| of_block(places, &problem(nth.into()));
    let named = |rack| named(snapshot, rack);
    Ok(ReplicaPlan {
        plan: name,
        job: job.map(|job| job.job.clone()),
        racks: racks.into_iter().map(named).collect(),
        blocks: (0..ask.blocks).map(block).collect::<Result<_, _>>()?,
        reader: Some(reader),
        reason: Why::Planned,
    })
}

pub(super) fn of_block(places: &dyn PlaceData, problem: &DataProblem<'_>) -> Result<Vec<Replica>, Refusal> {
    let snapshot = problem.snapshot;
    let advice = places.place_data(problem).map_err(|error| {
        let message = error.to_string();
        Refusal::Invalid { field: "path".to_owned(), message }
    })?;
    let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
    random.set_stream(problem.block);
    let mut taken: BTreeSet<NodeIdx> = BTreeSet::new();
    let mut host_in = |rack: RackIdx| {
        let mut nodes: Vec<NodeIdx> = usable(snapshot, rack).filter(|node| !taken.contains(node)).collect();
        nodes.shuffle(&mut random);
        let node = nodes.first().copied()?;
        taken.insert(node);
        Some(node)
    };
    let place = |advice: ReplicaAdvice| {
        let node = match advice {
            ReplicaAdvice::Rack(rack) => host_in(rack),
            ReplicaAdvice::Node(node) => Some(node),
            ReplicaAdvice::Default => None,
        };
        let named = |node: NodeIdx| {
            let rack = snapshot.statics.racks[snapshot.rack(node).at()].clone();
            (rack, snapshot.host(node).clone())
        };
        Replica { place: node.map(named) }
    };
    Ok(advice.into_iter().map(place).collect())
}

/// Racks with usable nodes that run the job's maps, in the order in which these are planned to begin.
fn map_racks(job: &PlannedJob, snapshot: &Snapshot) -> Vec<RackIdx> {
    let mut slices: Vec<_> = job.maps.slices.iter().filter(|slice| slice.tasks > 0).collect();
    slices.sort_by(|a, b| (a.start, &a.rack).cmp(&(b.start, &b.rack)));
    let mut racks = Vec::new();
    for rack in slices.into_iter().filter_map(|slice| snapshot.statics.by_rack.get(&slice.rack).copied()) {
        if !racks.contains(&rack) && usable(snapshot, rack).next().is_some() {
            racks.push(rack);
        }
    }
    racks
}

/// The rack's name and usable hosts.
pub(super) fn named(snapshot: &Snapshot, rack: RackIdx) -> (RackPath, Vec<HostName>) {
    let hosts = usable(snapshot, rack).map(|node| snapshot.host(node).clone()).collect();
    (snapshot.statics.racks[rack.at()].clone(), hosts)
}

pub(super) fn usable(snapshot: &Snapshot, rack: RackIdx) -> impl Iterator<Item = NodeIdx> + '_ {
    let nodes = snapshot.statics.members.get(rack.at()).map(Vec::as_slice).unwrap_or_default();
    nodes.iter().copied().filter(|node| snapshot.state.get(node.at()).is_some_and(|state| state.usable()))
}

/// The planned job that reads the path: the one that names most of it, of several the first by key.
fn reader_of<'h>(
    path: &str,
    kept: &KeptPlan,
    history: impl Fn(&Arc<str>) -> Option<&'h Arc<JobHistory>>,
) -> Option<Arc<str>> {
    let path = steady_path(path);
    let reads = |input: &str| {
        let input = steady_path(input);
        let rest = path.strip_prefix(input.as_str())?;
        (!input.is_empty() && (rest.is_empty() || rest.starts_with('/'))).then_some(input.len())
    };
    let mut best: Option<(usize, Arc<str>)> = None;
    for key in kept.keys() {
        let of_history = history(key).into_iter().flat_map(|job| {
            let groups = job.groups.values().flat_map(|group| &group.input_paths);
            job.input_paths.iter().chain(groups)
        });
        let longest =
            of_history.chain(kept.input_paths(key)).map(|path| &**path).chain(key_paths(key)).filter_map(reads).max();
        let Some(length) = longest else { continue };
        if best.as_ref().is_none_or(|(known, _)| length > *known) {
            best = Some((length, Arc::clone(key)));
        }
    }
    best.map(|(_, key)| key)
}
