//! *route*: paths for flows that are told one by one.

use super::routing::{Reroute, reroute};
use super::world::{self, objective};
use super::{CrossLayer, NAME};
use crate::advise::{FlowDemand, Route, RouteProblem, Routes};
use crate::flow_index::FlowIndex;
use crate::{Budget, Ended, PlaceError};
use hintd_model::cluster::{Flow, Inlet, NodePair, Sink, Traffic};
use hintd_model::network::Network;
use hintd_model::network::maxmin::directions;
use hintd_model::units::{DirectedLinkIdx, LinkIdx, VertexIdx};
use std::sync::Arc;

impl Route for CrossLayer {
    /// Every flow is a job of its own, one task to another. Flows of one pair of nodes share its route; one that a
    /// fixed flow has already is kept.
    fn route(&self, problem: &RouteProblem<'_>, budget: &mut Budget<'_>) -> Result<Routes, PlaceError> {
        let topology = &*problem.snapshot.topology;
        let (Some(network), Some(paths)) = (topology.network.as_deref(), topology.paths()) else {
            return Err(PlaceError::NeedsSource { policy: NAME, source_name: "topology" });
        };
        if problem.flows.iter().any(|flow| flow.chain.0.iter().any(Option::is_some)) {
            return Err(PlaceError::Chains { policy: NAME });
        }
        let mut index = FlowIndex::new(network, topology);
        index.hold();
        for flow in problem.fixed.iter().map(|(flow, _)| flow).chain(&problem.flows) {
            index.add_job(&one(flow));
        }
        let vertex = |flow: &FlowDemand| topology.vertex.get(flow.from.at()).copied().flatten();
        for (flow, links) in &problem.fixed {
            let directed = vertex(flow).and_then(|from| direct(network, from, links));
            index.set_route(pair(flow), directed.as_deref());
        }
        index.recompute_rates();
        let open: Vec<NodePair> = problem
            .flows
            .iter()
            .map(pair)
            .filter(|pair| pair.from != pair.to && index.route(*pair).is_none())
            .collect();
        let what = Reroute {
            network,
            paths,
            topology,
            pairs: &open,
            avoid: &world::NOTHING,
            seed: problem.seed,
            planned: false,
        };
        reroute(&mut index, &what, budget);
        let links = |flow: &FlowDemand| -> Option<Arc<[LinkIdx]>> {
            if flow.from == flow.to {
                return Some(Arc::default());
            }
            Some(index.route(pair(flow))?.iter().map(|link| LinkIdx(link.0 / 2)).collect())
        };
        let ended = if budget.stopped() { Ended::Deadline } else { Ended::Budget };
        let objective = objective(index.utility(), index.utility()).value;
        Ok(Routes { paths: problem.flows.iter().map(links).collect(), objective, ended })
    }
}

const fn pair(flow: &FlowDemand) -> NodePair {
    NodePair { from: flow.from, to: flow.to }
}

fn one(flow: &FlowDemand) -> Traffic {
    if flow.from == flow.to {
        return Traffic::default();
    }
    Traffic {
        flows: vec![Flow { pair: pair(flow), task_pairs: 1, bytes: flow.bytes }],
        inlets: vec![Inlet { flows: vec![0], local: None }],
        sinks: vec![Sink { count: 1, inlets: vec![0] }],
    }
}

/// Links walked from a vertex, by direction; `None` where they do not hang together.
fn direct(network: &Network, from: VertexIdx, links: &[LinkIdx]) -> Option<Vec<DirectedLinkIdx>> {
    let mut here = from;
    let walk = links.iter().map(|&index| {
        let link = network.link_at(index);
        let way = if link.a == here {
            0
        } else if link.b == here {
            1
        } else {
            return None;
        };
        here = link.other(here);
        Some(directions(index)[way])
    });
    walk.collect()
}
