//! What a decision starts from: the network, its path table, and the index of what runs.

use crate::budget::Work;
use crate::dataflow::traffic;
use crate::flow_index::FlowIndex;
use crate::place::{Objective, Placement};
use crate::problem::{EdgeProblem, PlaceProblem};
use hintd_model::cluster::{EdgePattern, NodePair, Topology};
use hintd_model::network::{Network, PathTable, host_paths};
use hintd_model::units::{LinkIdx, NodeIdx};
use std::collections::BTreeSet;

/// Utility below this, bits/s, counts as this: the objective stays finite.
const LEAST_UTILITY: f64 = 1.0;
/// Work that the objective of any placement may take where nobody bounds it, a pair's and a link's part of it.
pub(super) const OBJECTIVE_WORK: u64 = 1 << 26;
const PAIR_WORK: u64 = 256;
const LINK_WORK: u64 = 4;
/// Bits in the unit of the objective.
const GIGABIT: f64 = 1e9;

/// The network of a problem that has one.
#[derive(Clone, Copy)]
pub(super) struct World<'p> {
    pub(super) network: &'p Network,
    pub(super) table: &'p PathTable,
    pub(super) topology: &'p Topology,
}

/// No link is to be avoided by a placement: those that flap are left out by the engine when it takes routes.
pub(super) static NOTHING: BTreeSet<LinkIdx> = BTreeSet::new();

impl<'p> World<'p> {
    pub(super) fn of(problem: &'p PlaceProblem<'_>) -> Option<Self> {
        let topology = &*problem.snapshot.topology;
        Some(Self { network: topology.network.as_deref()?, table: topology.paths()?, topology })
    }

    /// Everything that runs, ready for a new job.
    pub(super) fn index(&self, problem: &PlaceProblem<'_>) -> FlowIndex {
        let Some(running) = problem.running else { return FlowIndex::new(self.network, self.topology) };
        running.index(self.network, &problem.snapshot.topology)
    }

    /// The path that default forwarding takes: the table's first.
    pub(super) fn default_path(&self, pair: NodePair) -> Option<impl AsRef<[hintd_model::units::DirectedLinkIdx]>> {
        let vertex = |node: NodeIdx| self.topology.vertex.get(node.at()).copied().flatten();
        host_paths(self.network, self.table, vertex(pair.from)?, vertex(pair.to)?).next()
    }
}

/// The part of the objective that is the job's own utility.
pub(super) const OWN: &str = "job_utility_bits_per_s";

/// Seconds that the sinks of all jobs together need for a gigabit: positive and lower when utility is higher, as
/// gains over the default placement are told in.
pub(super) fn objective(utility: f64, own: f64) -> Objective {
    let parts = [("utility_bits_per_s", utility), (OWN, own)];
    // An empty sum is −0.0, which nobody wants to read.
    let parts = parts.into_iter().map(|(name, value)| (name.to_owned(), value + 0.0)).collect();
    Objective { value: GIGABIT / utility.max(LEAST_UTILITY), parts }
}

/// The objective of any placement, from scratch. Pairs without a chosen route keep that of a running job, or go by
/// default forwarding. `None` without a network or edges, for a dataflow without source or sink, and where `work` says to
/// stop before all ways are looked up.
pub(super) fn rate(problem: &PlaceProblem<'_>, placement: &Placement, work: &dyn Work) -> Option<Objective> {
    let world = World::of(problem)?;
    if problem.edges.is_empty() || pairs(problem, placement) > super::PAIRS_MAX {
        return None;
    }
    let traffic = traffic(&problem.edges, &placement.groups).ok()?;
    let mut index = world.index(problem);
    index.hold();
    let slot = index.add_job(&traffic);
    for flow in &traffic.flows {
        if index.route(flow.pair).is_some() {
            continue;
        }
        match placement.routes.binary_search_by_key(&flow.pair, |route| route.pair) {
            Ok(at) => index.set_route(flow.pair, Some(&placement.routes[at].links)),
            Err(_) => {
                if !work.work(PAIR_WORK) {
                    return None;
                }
                if let Some(path) = world.default_path(flow.pair) {
                    work.work(LINK_WORK * path.as_ref().len() as u64);
                    index.set_route(flow.pair, Some(path.as_ref()));
                }
            }
        }
    }
    index.recompute_rates();
    Some(objective(index.utility(), index.job_utility(slot)))
}

/// Pairs of nodes that edges join, at most.
pub(super) fn pairs(problem: &PlaceProblem<'_>, placement: &Placement) -> u64 {
    let shares = |group: usize| placement.groups.get(group).map_or(&[][..], Vec::as_slice);
    let tasks = |group: usize| shares(group).iter().map(|share| u64::from(share.count)).sum::<u64>();
    let of = |edge: &EdgeProblem| {
        let (from, to) = (edge.from.at(), edge.to.at());
        let all = (shares(from).len() as u64).saturating_mul(shares(to).len() as u64);
        match edge.pattern {
            EdgePattern::AllToAll => all,
            EdgePattern::OneToOne => all.min(tasks(from).max(tasks(to))),
        }
    };
    problem.edges.iter().map(of).fold(0, u64::saturating_add)
}
