//! Which circuits are wanted.

use super::Circuits;
use super::bursts::{Demand, JobShuffle};
use super::ports::Ports;
use super::told::{
    CircuitReport, CircuitsReported, CircuitsView, RackDemand, UNSERVED_MAX, WantedCircuit, WantedCircuits,
};
use crate::cluster::Snapshot;
use crate::engine::decision::Refusal;
use crate::network::optical::{DemandMatrix, PortState};
use crate::units::{Bytes, LinkName, RackIdx, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is wanted between two racks.
type ByRacks = BTreeMap<(RackIdx, RackIdx), Demand>;

impl Circuits {
    /// Takes the network and the racks as they are now: another configuration, where that follows from it.
    pub(super) fn fit(&mut self, snapshot: &Snapshot, now: Timestamp) -> Option<Arc<WantedCircuits>> {
        if self.ports.as_ref().is_some_and(|ports| ports.are_of(snapshot)) {
            return None;
        }
        let optical = snapshot.topology.network.as_ref().is_some_and(|network| network.optical().is_some());
        if !optical && self.ports.is_none() {
            return None;
        }
        let before = self.ports.take();
        self.ports = Ports::new(snapshot);
        if before.is_none() {
            self.bursts.begin(now);
        }
        if self.ports.is_none() {
            self.bursts.clear();
            self.faults.clear();
            self.reported = None;
        }
        self.assume();
        if before.is_none() && self.ports.is_none() { None } else { self.conclude("topology", now) }
    }

    /// Whether it is time to look at jobs.
    pub(super) fn is_due(&mut self, now: Timestamp) -> bool {
        let Some(ports) = &self.ports else { return false };
        let interval = Some(now.0 / ports.switch.section().interval().0.max(1));
        std::mem::replace(&mut self.looked, interval) != interval
    }

    /// Takes in how running jobs stand, all of them, and chooses the circuits of the interval that begins: another
    /// configuration, where it is another one.
    pub(super) fn choose(&mut self, jobs: &[JobShuffle], now: Timestamp) -> Option<Arc<WantedCircuits>> {
        let ports = self.ports.as_ref()?;
        let set = self.reported.as_ref().map(|reported| ports.pairs(&reported.set)).unwrap_or_default();
        self.bursts.carry(&set, ports, now);
        let gathering = &self.gathering;
        self.bursts.look(jobs, ports, |pair, gathered| gathering.started(pair, gathered), now);
        self.configure("demand", now)
    }

    /// Takes a controller's report in: another configuration, where that follows from it.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for a version that was never wanted, a port that is not there, or two circuits of one port.
    pub(super) fn report(
        &mut self,
        watcher: &Arc<str>,
        report: CircuitReport,
        now: Timestamp,
    ) -> Result<Option<Arc<WantedCircuits>>, Refusal> {
        self.check(&report)?;
        let Some(ports) = &self.ports else { return Ok(None) };
        let CircuitReport { version, set, ports: faults } = report;
        let before = self.reported.take().map(|reported| reported.set).unwrap_or_default();
        self.bursts.carry(&ports.pairs(&before), ports, now);
        let works = |state| state == PortState::Works;
        let faults: BTreeMap<LinkName, (PortState, Arc<str>)> = faults
            .into_iter()
            .filter(|fault| !works(fault.state))
            .map(|fault| (fault.port, (fault.state, fault.reason)))
            .collect();
        let states = |faults: &BTreeMap<LinkName, (PortState, Arc<str>)>| -> Vec<(LinkName, PortState)> {
            faults.iter().map(|(link, (state, _))| (link.clone(), *state)).collect()
        };
        let same = states(&faults) == states(&self.faults);
        self.faults = faults;
        let stuck = |link: &LinkName| self.faults.get(link).is_some_and(|(state, _)| *state == PortState::Stuck);
        let held = |set: &[(LinkName, LinkName)]| -> BTreeSet<(LinkName, LinkName)> {
            set.iter().filter(|(input, output)| stuck(input) || stuck(output)).cloned().collect()
        };
        // Else every report would choose anew, as what is set carries away what was chosen for.
        let same = same && held(&before) == held(&set);
        self.reported = Some(CircuitsReported { watcher: Arc::clone(watcher), at: now, version, set });
        if same {
            return Ok(None);
        }
        self.assume();
        Ok(self.configure("ports", now))
    }

    fn check(&self, report: &CircuitReport) -> Result<(), Refusal> {
        let invalid = |field: String, message: String| Err(Refusal::Invalid { field, message });
        let Some(ports) = &self.ports else {
            return invalid("version".to_owned(), "the network has no optical switch".to_owned());
        };
        if report.version > self.versions {
            let message = format!("{} was never wanted; the last is {}", report.version, self.versions);
            return invalid("version".to_owned(), message);
        }
        let (mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new());
        for (at, (input, output)) in report.set.iter().enumerate() {
            for (end, link, taken) in [("input", input, &mut inputs), ("output", output, &mut outputs)] {
                let field = format!("set[{at}].{end}");
                if !ports.has(link) {
                    return invalid(field, format!("\"{link}\" is no port of \"{}\"", ports.name));
                }
                if !taken.insert(link) {
                    return invalid(field, format!("\"{link}\" has another circuit already"));
                }
            }
            if input == output {
                return invalid(format!("set[{at}].output"), format!("\"{output}\" is the input as well"));
            }
        }
        let mut named = BTreeSet::new();
        for (at, fault) in report.ports.iter().enumerate() {
            let field = format!("ports[{at}].port");
            if !ports.has(&fault.port) {
                return invalid(field, format!("\"{}\" is no port of \"{}\"", fault.port, ports.name));
            }
            if !named.insert(&fault.port) {
                return invalid(field, format!("\"{}\" is named twice", fault.port));
            }
        }
        Ok(())
    }

    /// Ports are as was reported, and circuits as they are wanted or held.
    fn assume(&mut self) {
        let Some(ports) = &mut self.ports else { return };
        let wanted = self.wanted.as_ref().map(|wanted| ports.wanted(wanted)).unwrap_or_default();
        let set = self.reported.as_ref().map_or(&[][..], |reported| &reported.set);
        ports.set(&self.faults, set, &wanted);
    }

    fn configure(&mut self, cause: &'static str, now: Timestamp) -> Option<Arc<WantedCircuits>> {
        let ports = self.ports.as_mut()?;
        let mut matrix = DemandMatrix::new(ports.switch.racks());
        for (&(from, to), demand) in &self.bursts.demand() {
            if ports.bar(from, to).is_none() {
                matrix.add(from, to, demand.bytes);
            }
        }
        ports.switch.configure(&matrix);
        self.conclude(cause, now)
    }

    /// The configuration as it is now; one that is to be told, if its circuits are others than those of the last.
    fn conclude(&mut self, cause: &'static str, now: Timestamp) -> Option<Arc<WantedCircuits>> {
        let demand = self.bursts.demand();
        let (switch, circuits) = match &self.ports {
            Some(ports) => (Arc::clone(&ports.name), circuits(ports, &demand)),
            None => (Arc::default(), Vec::new()),
        };
        let names = |circuit: &WantedCircuit| (circuit.input.clone(), circuit.output.clone());
        let wanted: Vec<(LinkName, LinkName)> = circuits.iter().map(names).collect();
        self.since.retain(|circuit, _| wanted.contains(circuit));
        let since = &mut self.since;
        let circuits = circuits.into_iter().map(|mut circuit| {
            circuit.demand.since = *since.entry(names(&circuit)).or_insert(now);
            circuit
        });
        let circuits: Vec<WantedCircuit> = circuits.collect();
        let before = self.wanted.as_ref();
        let same = before.is_some_and(|before| {
            before.switch == switch && before.circuits.iter().map(names).eq(wanted.iter().cloned())
        });
        self.versions += u64::from(!same);
        let cause = before.filter(|_| same).map_or(cause, |before| before.cause);
        let mut unserved = self.ports.as_ref().map(|ports| unserved(ports, &demand)).unwrap_or_default();
        let (pairs, bytes) = (unserved.len() as u64, total(&unserved));
        unserved.truncate(UNSERVED_MAX);
        let wanted = Arc::new(WantedCircuits {
            version: self.versions,
            at: now,
            switch,
            circuits,
            unserved,
            unserved_pairs: pairs,
            unserved_bytes: bytes,
            cause,
        });
        self.wanted = Some(Arc::clone(&wanted));
        (!same).then_some(wanted)
    }

    /// What is wanted; `None`: there never was an optical switch.
    pub(super) const fn wanted(&self) -> Option<&Arc<WantedCircuits>> {
        self.wanted.as_ref()
    }

    /// `None`: there is no optical switch.
    pub(super) fn view(&self) -> Option<CircuitsView> {
        let (ports, wanted) = (self.ports.as_ref()?, self.wanted.as_ref()?);
        let section = ports.switch.section();
        Some(CircuitsView {
            wanted: Arc::clone(wanted),
            interval: section.interval(),
            pause: section.pause(),
            elephant: ports.elephant,
            reported: self.reported.clone(),
            ports: ports.views(&self.faults),
            without_port: ports.without_port(),
        })
    }
}

/// Circuits that are to be set; a stuck port is nobody's to set.
fn circuits(ports: &Ports, demand: &ByRacks) -> Vec<WantedCircuit> {
    let works = |row: RackIdx| ports.switch.port(row) == Some(PortState::Works);
    let circuits = ports.switch.circuits().filter(|&(from, to)| works(from) && works(to));
    let circuit = |(from, to): (RackIdx, RackIdx)| {
        let (input, output) = (ports.link(from)?.clone(), ports.link(to)?.clone());
        let none = Demand { bytes: Bytes::ZERO, jobs: 0, since: Timestamp(0) };
        let found = demand.get(&(from, to));
        let reason = if found.is_some() { "demand" } else { "kept" };
        Some(WantedCircuit { input, output, demand: named(ports, (from, to), found.unwrap_or(&none), reason) })
    };
    circuits.filter_map(circuit).collect()
}

/// Pairs with demand and without a circuit, the largest first.
fn unserved(ports: &Ports, demand: &ByRacks) -> Vec<RackDemand> {
    let without = demand.iter().filter(|&(&(from, to), _)| ports.switch.circuit(from) != Some(to));
    let pair = |(&(from, to), demand): (&(RackIdx, RackIdx), &Demand)| {
        named(ports, (from, to), demand, ports.bar(from, to).unwrap_or("outweighed"))
    };
    let mut pairs: Vec<RackDemand> = without.map(pair).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.expected)); // stable: by racks where they are equal
    pairs
}

fn named(ports: &Ports, (from, to): (RackIdx, RackIdx), demand: &Demand, reason: &'static str) -> RackDemand {
    let (from, to) = (ports.rack(from).clone(), ports.rack(to).clone());
    RackDemand { from, to, expected: demand.bytes, jobs: demand.jobs, since: demand.since, reason }
}

fn total(pairs: &[RackDemand]) -> Bytes {
    pairs.iter().fold(Bytes::ZERO, |sum, pair| sum.saturating_add(pair.expected))
}
