//! Circuits of an optical switch: what is wanted, what is reported, what operators see.

use super::field::{invalid, reason};
use hintd_client::wire::v1;
use hintd_engine::{
    CircuitReport, CircuitsReported, CircuitsView, PortReport, PortView, RackDemand, Refusal, WantedCircuit,
    WantedCircuits,
};
use hintd_model::network::optical::PortState;
use hintd_model::units::{LinkName, Timestamp};

/// Circuits and ports that a report may name: no switch has more.
const PORTS_MAX: usize = 10_000;

/// What a controller says of its switch to the daemon's life `instance`. Whether it makes sense there is the engine's to
/// say.
///
/// # Errors
/// [`Refusal::Invalid`].
pub(in crate::server) fn circuit_report(
    wire: &v1::ReportCircuitsRequest,
    instance: &str,
) -> Result<CircuitReport, Refusal> {
    for (field, count) in [("set", wire.set.len()), ("ports", wire.ports.len())] {
        if count > PORTS_MAX {
            return Err(invalid(field, format!("{count}; at most {PORTS_MAX}")));
        }
    }
    let set = wire.set.iter().map(|set| (LinkName::from(set.input.as_str()), LinkName::from(set.output.as_str())));
    let port = |(at, port): (usize, &v1::OpticalPort)| {
        let wrong =
            |what: String| Err(invalid(format!("ports[{at}].state"), format!("{what}: works, failed or stuck")));
        let state = match v1::OpticalPortState::try_from(port.state) {
            Ok(v1::OpticalPortState::Works) => PortState::Works,
            Ok(v1::OpticalPortState::Failed) => PortState::Failed,
            Ok(v1::OpticalPortState::Stuck) => PortState::Stuck,
            Ok(v1::OpticalPortState::Unspecified) => return wrong("is missing".to_owned()),
            Err(_) => return wrong(format!("{} is none that is known", port.state)),
        };
        Ok(PortReport { port: port.port.as_str().into(), state, reason: reason(&port.reason).into() })
    };
    let ports = wire.ports.iter().enumerate().map(port).collect::<Result<_, _>>()?;
    // Versions of another life say nothing in this one; what is set is set all the same.
    let of_this = wire.instance_id.is_empty() || wire.instance_id == instance;
    Ok(CircuitReport { version: if of_this { wire.version } else { 0 }, set: set.collect(), ports })
}

/// A configuration as watchers and operators get it.
#[must_use]
pub(in crate::server) fn wanted_circuits(wanted: &WantedCircuits) -> v1::WantedCircuits {
    let circuit = |circuit: &WantedCircuit| v1::Circuit {
        input: circuit.input.to_string(),
        output: circuit.output.to_string(),
        demand: Some(rack_demand(&circuit.demand)),
    };
    v1::WantedCircuits {
        version: wanted.version,
        switch: wanted.switch.to_string(),
        circuits: wanted.circuits.iter().map(circuit).collect(),
        unserved: wanted.unserved.iter().map(rack_demand).collect(),
        unserved_pairs: wanted.unserved_pairs,
        unserved_bytes: wanted.unserved_bytes.0,
        cause: wanted.cause.to_owned(),
        chosen_at_ms: wanted.at.as_millis(),
    }
}

/// Circuits as operators see them.
#[must_use]
pub(in crate::server) fn circuits_view(view: Option<&CircuitsView>, now: Timestamp) -> v1::CircuitsResponse {
    let Some(view) = view else { return v1::CircuitsResponse::default() };
    let set = |(input, output): &(LinkName, LinkName)| v1::SetCircuit {
        input: input.to_string(),
        output: output.to_string(),
    };
    let reported = |reported: &CircuitsReported| v1::CircuitsReport {
        watcher: reported.watcher.to_string(),
        age_ms: now.since(reported.at).as_millis(),
        version: reported.version,
        set: reported.set.iter().map(set).collect(),
        replaced: view.replaced,
    };
    let port = |port: &PortView| v1::OpticalPortView {
        port: port.port.to_string(),
        rack: port.rack.to_string(),
        state: state(port.state).to_owned(),
        reason: port.reason.to_string(),
    };
    v1::CircuitsResponse {
        wanted: Some(wanted_circuits(&view.wanted)),
        interval_ms: view.interval.as_millis(),
        pause_ms: view.pause.as_millis(),
        elephant_bytes: view.elephant.0,
        reported: view.reported.as_ref().map(reported),
        ports: view.ports.iter().map(port).collect(),
        racks_without_port: view.without_port,
        set: view.is_set(),
        attended: view.attended,
    }
}

const fn state(state: PortState) -> &'static str {
    match state {
        PortState::Works => "works",
        PortState::Failed => "failed",
        PortState::Stuck => "stuck",
    }
}

fn rack_demand(demand: &RackDemand) -> v1::RackDemand {
    v1::RackDemand {
        from_rack: demand.from.to_string(),
        to_rack: demand.to.to_string(),
        expected_bytes: demand.expected.0,
        jobs: demand.jobs,
        since_ms: demand.since.as_millis(),
        reason: demand.reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_a_state_and_reports_without_end_are_refused_by_field() {
        let field = |wire: &v1::ReportCircuitsRequest| match circuit_report(wire, "now") {
            Err(Refusal::Invalid { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        let port = |state: v1::OpticalPortState| v1::OpticalPort {
            port: "p".into(),
            state: state.into(),
            reason: "no\nlight".into(),
        };
        let wire = |ports| v1::ReportCircuitsRequest { ports, ..Default::default() };
        let bad = wire(vec![port(v1::OpticalPortState::Stuck), port(v1::OpticalPortState::Unspecified)]);
        assert_eq!(field(&bad), "ports[1].state");
        let mut unknown = port(v1::OpticalPortState::Stuck);
        unknown.state = 77;
        let Err(refusal) = circuit_report(&wire(vec![unknown]), "now") else { panic!("77 is no state") };
        assert!(refusal.to_string().contains("77 is none that is known"), "{refusal}");
        let set = vec![v1::SetCircuit::default(); PORTS_MAX + 1];
        assert_eq!(field(&v1::ReportCircuitsRequest { set, ..Default::default() }), "set");
        let good = circuit_report(&wire(vec![port(v1::OpticalPortState::Failed)]), "now").unwrap();
        assert_eq!((good.ports[0].state, &*good.ports[0].reason), (PortState::Failed, "nolight"));
    }

    #[test]
    fn a_version_counts_in_the_life_of_the_daemon_that_gave_it() {
        let version = |instance_id: &str| {
            let wire = v1::ReportCircuitsRequest { version: 7, instance_id: instance_id.into(), ..Default::default() };
            circuit_report(&wire, "now").unwrap().version
        };
        assert_eq!((version("now"), version(""), version("before")), (7, 7, 0));
    }
}
