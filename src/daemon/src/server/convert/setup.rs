//! What the ResourceManager shows of itself, on the wire.

use crate::runtime::setup::{ProcessorSeen, SetupSeen};
use hintd_client::wire::v1;
use hintd_model::units::Timestamp;

/// As status shows it.
pub(in crate::server) fn setup(seen: &SetupSeen, now: Timestamp) -> v1::ResourceManagerSetup {
    let (delays, delays_from) = seen.delays();
    let conf = seen.conf.as_ref().and_then(|conf| conf.as_ref().ok());
    let conf_error = seen.conf.as_ref().and_then(|conf| conf.as_ref().err());
    let clock = seen.look.clock;
    let processor = seen.look.processor.as_ref();
    v1::ResourceManagerSetup {
        address: seen.address.clone(),
        looked_ms: now.since(seen.look.at).as_millis(),
        clock_ahead_ms: clock.map(|clock| clock.ahead / 1_000),
        clock_error_ms: clock.map_or(0, |clock| clock.error.as_millis()),
        scheduler: conf.map(|conf| conf.scheduler.clone()).unwrap_or_default(),
        node_locality_delay: delays.node,
        rack_locality_additional_delay: delays.rack_additional,
        delays_from: delays_from.to_owned(),
        conf_error: conf_error.cloned().unwrap_or_default(),
        processor_configured: conf.and_then(|conf| conf.names_processor),
        processor_error: processor.err().cloned().unwrap_or_default(),
        processor: processor.ok().and_then(Option::as_ref).map(view),
    }
}

fn view(seen: &ProcessorSeen) -> v1::RmProcessorView {
    v1::RmProcessorView {
        version: seen.version.clone(),
        modes: seen.modes.clone().into_iter().collect(),
        breaker_open: seen.breaker_open,
        counts: seen.counts.clone().into_iter().collect(),
    }
}
