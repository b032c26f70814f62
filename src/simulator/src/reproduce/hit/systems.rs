//! What is compared, and jobs in virtual time with what their placements cost.

use super::workload::{DISK, UNIT};
use crate::gangs::{GangApp, GangError, GangReport, GangRun, GangSettings, simulate};
use crate::reproduce::ReproduceError;
use hintd_model::cluster::{Snapshot, Topology};
use hintd_model::network::Tier;
use hintd_model::network::build::{BuildError, BuiltNetwork, TreeSpec, tree};
use hintd_model::units::{BitsPerSec, NodeIdx};
use hintd_policy::baselines::capacity::Capacity;
use hintd_policy::baselines::pna::{Pna, PnaParams};
use hintd_policy::hit::Hit;
use hintd_policy::pat::Pat;
use hintd_policy::sample::{Sample, cluster};
use hintd_policy::{Budget, Definition, Place, PlaceError, PlaceProblem, Placement};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use std::error::Error;
use std::sync::{Arc, Mutex};

pub(in crate::reproduce) type Failure = Box<dyn Error + Send + Sync>;

/// Why an entry has no figures.
pub(in crate::reproduce) fn failed(entry: &str, source: Failure) -> ReproduceError {
    ReproduceError::Failed { entry: entry.to_owned(), source }
}

/// A policy of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reproduce) enum System {
    Hit,
    Pat,
    Pna,
    /// Offered one slot of a node, then one of the next.
    PnaSpread,
    Capacity,
}

impl System {
    /// With its defaults.
    pub(in crate::reproduce) fn placer(self) -> Box<dyn Place> {
        match self {
            Self::Hit => Box::new(Hit::default()),
            Self::Pat => Box::new(Pat::default()),
            Self::Pna => Box::new(Pna::default()),
            Self::PnaSpread => Box::new(Pna::new(PnaParams { gang_slots: 1, ..PnaParams::default() })),
            Self::Capacity => Box::new(Capacity::default()),
        }
    }
}

/// The systems of §8.5 to §8.7, the best by the paper first.
pub(super) const COMPARED: [System; 3] = [System::Hit, System::Pna, System::Capacity];

/// A tree of three levels in which every link has the same bandwidth: §8.7 prints one, and no oversubscription.
pub(super) fn plain_tree(
    racks: usize,
    hosts: usize,
    racks_per_pod: usize,
    rate: BitsPerSec,
) -> Result<BuiltNetwork, BuildError> {
    tree(&TreeSpec {
        racks,
        hosts_per_rack: hosts,
        racks_per_pod: Some(racks_per_pod),
        aggregations_per_pod: 1,
        cores: 1,
        host_bits_per_s: rate,
        uplink_bits_per_s: rate,
        aggregation_bits_per_s: rate,
    })
}

/// A cluster of that network whose nodes have registered, and so report, in an order drawn by seed: in that of their
/// names, which is that of racks, whoever takes nodes in turn would stay in a rack by accident.
pub(in crate::reproduce) fn registered(built: &BuiltNetwork, slots: u64, seed: u64) -> Sample {
    let mut sample = cluster(built, UNIT.times(slots), DISK);
    let mut statics = (*sample.snapshot.statics).clone();
    let mut order: Vec<usize> = (0..statics.host.len()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    statics.host = order.iter().map(|&at| statics.host[at].clone()).collect();
    statics.rack = order.iter().map(|&at| statics.rack[at]).collect();
    statics.by_host = (0..).zip(&statics.host).map(|(at, host)| (host.clone(), NodeIdx(at))).collect();
    statics.members.iter_mut().for_each(Vec::clear);
    for (at, rack) in (0..).zip(&statics.rack) {
        statics.members[rack.at()].push(NodeIdx(at));
    }
    sample.snapshot.topology = Arc::new(Topology::new(sample.snapshot.topology.network.clone(), &statics));
    sample.snapshot.statics = Arc::new(statics);
    sample
}

/// How the order of nodes is told in settings.
pub(in crate::reproduce) const REPORTS: &str = "nodes report in an order drawn by seed, not rack by rack";

/// Links between switches at a part of their capacity.
pub(super) fn slower(mut built: BuiltNetwork, part: f64) -> BuiltNetwork {
    let network = &built.network;
    let is_switch = |end| network.vertex_at(end).tier().is_some_and(|tier| tier != Tier::Optical);
    let between = network.links().filter(|(_, link)| is_switch(link.a) && is_switch(link.b));
    let between: Vec<_> = between.map(|(at, link)| (at, link.capacity)).collect();
    for (at, capacity) in between {
        built.network.set_link(at, None, Some(BitsPerSec((capacity.as_f64() * part) as u64)));
    }
    built
}

/// A run and, of the jobs' placements, the mean route.
pub(super) struct Ran {
    pub(super) report: GangReport,
    /// Links of a flow, weighted by bytes, mean over jobs; 0 between tasks of one node.
    pub(super) mean_hops: f64,
}

/// Lets the jobs run under a system; `delay`: fetches do not share links, but take bytes × links ÷ this rate (§7.1).
pub(super) fn run(
    cluster: &Snapshot,
    system: System,
    apps: &[GangApp],
    delay: Option<BitsPerSec>,
    seed: u64,
) -> Result<Ran, GangError> {
    let placer = Watched { placer: system.placer(), hops: Mutex::new((0.0, 0)) };
    let delay_bits_per_s = delay.map(BitsPerSec::as_f64);
    let settings = GangSettings { seed, delay_bits_per_s, ..GangSettings::default() };
    let report = simulate(&GangRun { cluster, placer: &placer, settings }, apps)?;
    let (sum, count) = *placer.hops.lock().expect("its holders only add");
    Ok(Ran { report, mean_hops: sum / f64::from(count.max(1)) })
}

/// A placer whose whole placements are looked at.
struct Watched {
    placer: Box<dyn Place>,
    /// Sum of mean hops, and of how many placements.
    hops: Mutex<(f64, u32)>,
}

impl Place for Watched {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let placement = self.placer.place(problem, budget)?;
        let mean = |(name, value): &(String, f64)| (name == "mean_hops").then_some(*value);
        if placement.placed_all() == problem.containers()
            && problem.snapshot.statics.host.len() <= LOOKED_AT
            && let Some(objective) = Hit::default().objective(problem, &placement)
            && let Some(hops) = objective.parts.iter().find_map(mean)
        {
            let mut sum = self.hops.lock().expect("its holders only add");
            *sum = (sum.0 + hops, sum.1 + 1);
        }
        Ok(placement)
    }
}

/// `hit`'s objective looks at so many nodes.
const LOOKED_AT: usize = 256;

/// Mean completion time of the jobs, seconds.
pub(super) fn mean_completion_s(report: &GangReport) -> f64 {
    report.apps.iter().map(|app| app.completion_s()).sum::<f64>() / report.apps.len().max(1) as f64
}

/// Mean time from the end of phase `before` (from the start, for `None`) to the end of phase `last`, seconds.
pub(super) fn mean_phase_s(report: &GangReport, before: Option<usize>, last: usize) -> f64 {
    let time = |app: &crate::gangs::AppReport| {
        let start = before.map_or(Some(app.start_s), |at| app.phase_end_s.get(at).copied());
        app.phase_end_s.get(last).copied().unwrap_or(0.0) - start.unwrap_or(0.0)
    };
    report.apps.iter().map(time).sum::<f64>() / report.apps.len().max(1) as f64
}

/// Per cent by which `ours` is below `theirs`.
pub(in crate::reproduce) fn less(ours: f64, theirs: f64) -> f64 {
    if theirs > 0.0 { 100.0 * (1.0 - ours / theirs) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_register_in_any_order_keep_their_racks_and_switches() {
        let built = plain_tree(4, 2, 2, BitsPerSec(1)).unwrap();
        let (plain, drawn) = (cluster(&built, UNIT, DISK), registered(&built, 1, 3));
        let (a, b) = (&plain.snapshot, &drawn.snapshot);
        assert_ne!(a.statics.host, b.statics.host);
        for (at, host) in (0..).map(NodeIdx).zip(&a.statics.host) {
            let other = b.statics.by_host[host];
            assert_eq!(&b.statics.host[other.at()], host);
            assert_eq!(a.rack(at), b.rack(other));
            assert!(b.statics.members[b.rack(other).at()].contains(&other));
            assert_eq!(a.topology.vertex[at.at()], b.topology.vertex[other.at()]);
        }
    }
}
