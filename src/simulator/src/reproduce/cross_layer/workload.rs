//! Clusters, jobs and running traffic of 000's experiments.

use crate::reproduce::ReproduceError;
use hintd_model::cluster::{Flow, JobFlows, PairRoute, Resource, RunningFlows};
use hintd_model::network::build::{BuiltNetwork, FatTreeSpec, JellyfishSpec, fat_tree, jellyfish};
use hintd_model::units::{ApplicationId, AttemptId, BitsPerSec, Bytes, DecisionId};
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::cross_layer::sample::{Job, drawn_hadoop_job, storm_job};
use hintd_policy::problem::PlaceProblem;
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, IndexedFlows, Place, Placement, traffic};
use std::error::Error;
use std::sync::Arc;

/// §4.1 and §4.3: all links have 100 MB/s.
pub(super) const LINK: BitsPerSec = BitsPerSec(800_000_000);
/// A task's container.
pub(super) const UNIT: Resource = Resource::new(1024, 1);
/// Containers that a host holds; the paper does not say.
pub(super) const SLOTS: u64 = 4;

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stream processing, §4.1.
    Storm,
    /// Batch processing, §4.2.
    Hadoop,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Storm, Self::Hadoop];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Storm => "Storm",
            Self::Hadoop => "Hadoop",
        }
    }

    /// A job as the paper draws it.
    pub(super) fn job(self, seed: u64) -> Job {
        match self {
            Self::Storm => storm_job(seed),
            Self::Hadoop => drawn_hadoop_job(seed),
        }
    }
}

/// What the hosts hang on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    FatTree,
    Jellyfish,
}

impl Shape {
    pub(super) const ALL: [Self; 2] = [Self::FatTree, Self::Jellyfish];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FatTree => "fat-tree",
            Self::Jellyfish => "jellyfish",
        }
    }

    /// The smallest fat-tree with so many hosts, cut down to them; or a jellyfish of 15-port switches with 5 hosts each.
    pub(super) fn network(self, hosts: usize, seed: u64) -> Result<BuiltNetwork, Box<dyn Error + Send + Sync>> {
        Ok(match self {
            Self::FatTree => {
                let k = (1..).map(|half| 2 * half).find(|k: &usize| k.pow(3) / 4 >= hosts).unwrap_or(2);
                fat_tree(&FatTreeSpec { k, hosts: Some(hosts), bits_per_s: LINK })?
            }
            Self::Jellyfish => {
                let switches = hosts.div_ceil(5);
                let spec = JellyfishSpec { switches, ports: 15, to_switches: 10, bits_per_s: LINK, seed, hosts: None };
                jellyfish(&spec)?
            }
        })
    }
}

/// A cluster on the network, its path table built: the paper's TOPOLOGY-MAP is there before jobs come.
pub(super) fn on(built: &BuiltNetwork) -> Sample {
    let sample = cluster(built, UNIT.times(SLOTS), Bytes(150_000_000));
    let table = sample.snapshot.topology.paths();
    debug_assert!(table.is_some(), "it has a network");
    sample
}

/// The job as a request to the cluster.
pub(super) fn problem<'s>(sample: &'s Sample, job: &Job, running: &'s IndexedFlows, seed: u64) -> PlaceProblem<'s> {
    let mut groups: Vec<_> = job.groups.iter().map(|(name, count)| sample.group(name, *count, UNIT)).collect();
    // One list of candidates for all, as the engine gives it.
    let candidates = Arc::clone(&groups[0].candidates);
    groups.iter_mut().for_each(|group| group.candidates = Arc::clone(&candidates));
    let mut problem = sample.problem(groups, job.edges.clone(), vec![]);
    (problem.seed, problem.running) = (seed, Some(running));
    problem
}

/// Places by steps alone, so that the answer is the same on every machine.
pub(super) fn place(policy: &dyn Place, problem: &PlaceProblem<'_>) -> Result<Placement, Box<dyn Error + Send + Sync>> {
    let mut never = || false;
    Ok(policy.place(problem, &mut Budget::new(DEFAULT_STEPS, &mut never))?)
}

/// The job runs where it was placed: its traffic is there for those after it.
pub(super) fn start(
    running: &mut IndexedFlows,
    number: u64,
    job: &Job,
    placement: &Placement,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let traffic = traffic(&job.edges, &placement.groups)?;
    let flows = running.change();
    for flow in &traffic.flows {
        let chosen = placement.routes.binary_search_by_key(&flow.pair, |route| route.pair);
        let links = chosen.map_or_else(|_| Arc::from([]), |at| Arc::clone(&placement.routes[at].links));
        add(flows, flow, links);
    }
    let application = ApplicationId { cluster_timestamp: 1, sequence: number as u32 };
    let attempt = AttemptId { application, attempt: 1 };
    flows.jobs.push(Arc::new(JobFlows { attempt, decision: DecisionId::of(number), traffic }));
    Ok(())
}

/// A pair that a job uses already keeps its route.
fn add(flows: &mut RunningFlows, flow: &Flow, links: Arc<[hintd_model::units::DirectedLinkIdx]>) {
    let known = flows.routes.get(&flow.pair).map(|route| (**route).clone());
    let mut route = known.unwrap_or(PairRoute { links, installed: true, task_pairs: 0, bytes: Bytes(0) });
    route.task_pairs += u64::from(flow.task_pairs);
    route.bytes = route.bytes.saturating_add(flow.bytes);
    flows.routes.set(&flow.pair, Some(Arc::new(route)));
}

/// Why an entry has no figures.
pub(super) fn failed(entry: &str, source: Box<dyn Error + Send + Sync>) -> ReproduceError {
    ReproduceError::Failed { entry: entry.to_owned(), source }
}
