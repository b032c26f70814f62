//! *route*: boxes and paths for flows that are told one by one.

use super::{Hit, NAME};
use crate::advise::{FlowDemand, Route, RouteProblem, Routes};
use crate::budget::Budget;
use crate::{Ended, PlaceError};
use hintd_model::network::chains::{BoxLoads, Chains, Sequence, WaypointInputs, WaypointRoute, waypoint_routes};
use hintd_model::units::{BitsPerSec, LinkIdx};
use std::cmp::Reverse;
use std::sync::LazyLock;

static NO_CHAINS: LazyLock<Chains> = LazyLock::new(Chains::default);

impl Route for Hit {
    /// Flows with most bytes first, each by the route of fewest hops through boxes of its chain's types that have room
    /// left for it. Flows that keep theirs are taken to pass the nearest boxes. `None`: no way is left.
    fn route(&self, problem: &RouteProblem<'_>, budget: &mut Budget<'_>) -> Result<Routes, PlaceError> {
        let topology = &*problem.snapshot.topology;
        let (Some(network), Some(table)) = (topology.network.as_deref(), topology.paths()) else {
            return Err(PlaceError::NeedsSource { policy: NAME, source_name: "topology" });
        };
        let chains = topology.chains.as_deref().unwrap_or(&NO_CHAINS);
        let budget = &*budget;
        let ways = WaypointInputs { network, table, chains, work: Some(budget) };
        let mut loads = BoxLoads::new(chains);
        let rate = |flow: &FlowDemand| BitsPerSec((flow.bytes.as_f64() * 8.0 / self.params.transfer_s) as u64);
        let mut find = |flow: &FlowDemand| -> Option<WaypointRoute> {
            let vertex = |node: hintd_model::units::NodeIdx| topology.vertex.get(node.at()).copied().flatten();
            let kinds: Sequence = flow.chain.0.iter().flatten().copied().collect();
            let ends = (vertex(flow.from)?, vertex(flow.to)?);
            let route = waypoint_routes(&ways, ends, &kinds, rate(flow), &loads, 1).pop()?;
            route.boxes.iter().for_each(|&index| loads.add(index, rate(flow)));
            Some(route)
        };
        for (flow, _) in &problem.fixed {
            if budget.over() {
                break;
            }
            find(flow);
        }
        let mut order: Vec<usize> = (0..problem.flows.len()).collect();
        order.sort_by_key(|&at| (Reverse(problem.flows[at].bytes), at));
        let (mut paths, mut cost) = (vec![None; problem.flows.len()], 0.0);
        for at in order {
            let flow = &problem.flows[at];
            if budget.over() {
                break;
            }
            paths[at] = find(flow).map(|route| {
                cost += rate(flow).as_f64() * route.hops() as f64 / super::GIGABIT;
                route.links.iter().map(|link| LinkIdx(link.0 / 2)).collect()
            });
        }
        let ended = if budget.stopped() { Ended::Deadline } else { Ended::Complete };
        Ok(Routes { paths, objective: cost, ended })
    }
}
