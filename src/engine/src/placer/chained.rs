//! Whether a placement keeps the chains of middleboxes that its traffic is under, whichever policy made it.

use super::PlacerSettings;
use super::compile::Compiled;
use crate::flows::{Found, ProposedFlows, classes, fit, sends};
use crate::refusal::Refusal;
use hintd_model::cluster::{ChainPair, HintRequest, RunningFlows};
use hintd_model::network::chains::WaypointRoute;
use hintd_policy::Work;
use hintd_policy::{ChosenRoute, Placement};
use std::sync::Arc;

/// What of a placement is under chains.
#[derive(Debug, Default)]
pub(super) struct ChainedPlacement {
    /// By edge: the name of its chain.
    pub(super) classes: Vec<Option<Arc<str>>>,
    /// The way of each pair of nodes under each chain.
    pub(super) ways: Found,
}

/// Finds the ways of all traffic under chains, those that the policy chose where they can be taken.
///
/// # Errors
/// [`Refusal::Chain`] for the first chain that would be broken; [`Refusal::MissingFeed`] without a network.
pub(super) fn check(
    compiled: &Compiled<'_>,
    request: &HintRequest,
    placement: &Placement,
    running: &RunningFlows,
    settings: &PlacerSettings,
    work: &dyn Work,
) -> Result<ChainedPlacement, Refusal> {
    let (topology, edges) = (&compiled.problem.snapshot.topology, &compiled.problem.edges);
    let classes = classes(topology.chains.as_deref(), request, edges, settings.chains.port);
    if classes.iter().all(Option::is_none) {
        return Ok(ChainedPlacement { classes, ways: Found::new() });
    }
    if ProposedFlows::are_too_many(edges, &placement.groups, settings.pairs_max) {
        let chain = classes.iter().flatten().next().map(Arc::clone).unwrap_or_default();
        let most = settings.pairs_max;
        let why = format!("its flows are of more pairs of hosts than routes.pairs_max keeps track of, {most}");
        return Err(Refusal::Chain { chain, why });
    }
    let sends = sends(edges, &classes, &placement.groups);
    let wanted = chosen(&placement.routes, topology.chains.as_deref());
    let host = |node| compiled.problem.snapshot.host(node).clone();
    let ways =
        fit(topology, topology.paths(), &running.chained, (&sends, &wanted), settings.chains.transfer, host, work)?;
    Ok(ChainedPlacement { classes, ways })
}

/// Ways that the policy chose: of several of one pair and chain the one that carries most.
fn chosen(routes: &[ChosenRoute], chains: Option<&hintd_model::network::chains::Chains>) -> Found {
    let Some(chains) = chains else { return Found::new() };
    let mut order: Vec<&ChosenRoute> = routes.iter().filter(|route| route.chain.is_some()).collect();
    order.sort_by_key(|route| route.rate);
    let way = |route: &ChosenRoute| {
        let chain = Arc::clone(&chains.chain(route.chain?).name);
        let way = WaypointRoute {
            boxes: route.stops.iter().map(|stop| stop.index).collect(),
            stops: route.stops.iter().map(|stop| stop.after).collect(),
            links: route.links.to_vec(),
        };
        Some((ChainPair { pair: route.pair, chain }, way))
    };
    order.into_iter().filter_map(way).collect()
}
