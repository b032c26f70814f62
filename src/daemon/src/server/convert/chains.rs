//! Middleboxes and chains, for operators and on routes.

use hintd_client::wire::v1;
use hintd_engine::{Generation, NamedStop};
use hintd_model::network::Network;
use hintd_model::network::chains::{BoxLoads, Chains, Unmet, WhenBroken, unmet};
use hintd_model::units::BoxIdx;

/// A middlebox on a route.
#[must_use]
pub(in crate::server) fn stop(stop: &NamedStop) -> v1::BoxStop {
    v1::BoxStop {
        r#box: stop.name.to_string(),
        r#type: stop.kind.to_string(),
        at: stop.at.to_string(),
        after: stop.after,
    }
}

/// All that is declared, and how it stands.
#[must_use]
pub(in crate::server) fn chains(generation: &Generation, owned: bool) -> v1::ChainsResponse {
    let topology = &generation.snapshot.topology;
    let network = topology.network.as_deref();
    let network_known = network.is_some();
    let Some(chains) = topology.chains.as_deref() else {
        return v1::ChainsResponse { network_known, ..v1::ChainsResponse::default() };
    };
    let flows = &generation.flows.chained;
    // Loads of boxes that were declared anew are counted with the next generation.
    let loads = if flows.are_of(topology) { flows.loads.clone() } else { BoxLoads::new(chains) };
    let boxes = (0..chains.boxes().len()).map(|at| box_view(chains, network, &loads, BoxIdx::new(at)));
    let found = network.map(|network| unmet(chains, network, &loads)).unwrap_or_default();
    v1::ChainsResponse {
        declared_by: if owned { "configuration" } else { "feed" }.to_owned(),
        network_known,
        boxes: boxes.collect(),
        chains: chain_views(chains, generation),
        unmet: found.iter().map(unmet_view).collect(),
    }
}

fn box_view(chains: &Chains, network: Option<&Network>, loads: &BoxLoads, index: BoxIdx) -> v1::BoxView {
    let known = &chains.boxes()[index.at()];
    let state = match (known.up, known.at, network) {
        (false, ..) => "down",
        (true, Some(at), Some(network)) if network.switch_up(at) => "up",
        (true, Some(_), Some(_)) => "switch_down",
        (true, ..) => "nowhere",
    };
    v1::BoxView {
        name: known.name.to_string(),
        r#type: chains.kind_name(known.kind).to_string(),
        at: chains.switch_name(index).to_string(),
        bits_per_s: known.capacity.0,
        used_bits_per_s: loads.of(index).0,
        state: state.to_owned(),
    }
}

fn chain_views(chains: &Chains, generation: &Generation) -> Vec<v1::ChainView> {
    let counts = generation.flows.chained.counts();
    let view = |chain: &hintd_model::network::chains::Chain| {
        let of = counts.get(&chain.name).copied().unwrap_or_default();
        v1::ChainView {
            name: chain.name.to_string(),
            priority: chain.priority,
            sequence: chain.sequence.iter().map(|&kind| chains.kind_name(kind).to_string()).collect(),
            when_broken: match chain.when_broken {
                WhenBroken::Closed => "closed",
                WhenBroken::Open => "open",
            }
            .to_owned(),
            flows: of.flows,
            broken: of.broken,
            bypassing: of.bypassing,
        }
    };
    chains.chains().iter().map(view).collect()
}

/// A chain that flows of some hosts can't pass.
#[must_use]
pub fn unmet_view(found: &Unmet) -> v1::UnmetView {
    v1::UnmetView {
        chain: found.name.to_string(),
        r#type: found.kind.to_string(),
        hosts: found.hosts as u64,
        example: found.example.to_string(),
        reason: found.why.reason().to_owned(),
        between: found.why.names().iter().map(ToString::to_string).collect(),
        message: found.to_string(),
    }
}
