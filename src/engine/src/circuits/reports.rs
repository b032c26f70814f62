//! What a controller says of its optical switch, and how it is taken.

use super::Circuits;
use super::messages::{CircuitReport, CircuitsReported, PortReport, ReportTaken, WantedCircuits};
use super::ports::Ports;
use crate::refusal::Refusal;
use hintd_model::network::optical::PortState;
use hintd_model::units::{LinkName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Ports that do not work: how they are, and why, in a controller's words.
type Faults = BTreeMap<LinkName, (PortState, Arc<str>)>;

impl Circuits {
    /// Who reported last.
    fn controller(&self) -> Option<&str> {
        Some(&*self.reported.as_ref()?.watcher)
    }

    /// Keeps a report until the network is known; the last counts.
    pub(super) fn hold(&mut self, watcher: &Arc<str>, report: CircuitReport) -> ReportTaken {
        self.early = Some((Arc::clone(watcher), report));
        ReportTaken { wanted_version: self.versions, another: false, ports: Vec::new() }
    }

    /// A report that was kept, once there are ports that it may be of.
    pub(super) fn take_early(&mut self) -> Option<(Arc<str>, CircuitReport)> {
        self.ports.as_ref()?;
        self.early.take()
    }

    /// A watcher's stream has ended, or is another one: its name, if it was believed until now.
    pub(crate) fn left(&mut self, watcher: &str, now: Timestamp) -> Option<Arc<str>> {
        self.early.take_if(|(early, _)| **early == *watcher);
        let reported = self.reported.as_ref().filter(|reported| self.attended && *reported.watcher == *watcher)?;
        let name = Arc::clone(&reported.watcher);
        if let Some(ports) = &self.ports {
            let carrying = self.carrying(ports);
            self.bursts.carry(&carrying, ports, now);
        }
        self.attended = false;
        Some(name)
    }

    /// Takes a report in: what it changes, and another configuration, where that follows from it.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for a report that can't be, and beside another controller.
    pub(super) fn report(
        &mut self,
        watcher: &Arc<str>,
        report: CircuitReport,
        now: Timestamp,
    ) -> Result<(ReportTaken, Option<Arc<WantedCircuits>>), Refusal> {
        self.check(watcher, &report)?;
        let ports = self.ports.as_ref().expect("it was checked for them");
        let carrying = self.carrying(ports);
        self.bursts.carry(&carrying, ports, now);
        let CircuitReport { version, set, ports: faults } = report;
        let (changed, states_same) = self.take_faults(faults);
        let another = !std::mem::replace(&mut self.attended, true) || self.controller() != Some(watcher);
        let before = self.reported.take().map(|reported| reported.set).unwrap_or_default();
        // Else every report would choose anew, as what is set carries away what was chosen for.
        let first = !std::mem::replace(&mut self.heard, true);
        let same = states_same && self.held(&before) == self.held(&set) && !first;
        self.reported = Some(CircuitsReported { watcher: Arc::clone(watcher), at: now, version, set });
        let wanted = if same { None } else { self.choose_by_report(first, now) };
        Ok((ReportTaken { wanted_version: self.versions, another, ports: changed }, wanted))
    }

    fn choose_by_report(&mut self, first: bool, now: Timestamp) -> Option<Arc<WantedCircuits>> {
        self.learning = None;
        self.assume(first);
        self.configure(if first { "report" } else { "ports" }, now)
    }

    /// Circuits of stuck ports.
    fn held(&self, set: &[(LinkName, LinkName)]) -> BTreeSet<(LinkName, LinkName)> {
        let stuck = |link: &LinkName| self.faults.get(link).is_some_and(|(state, _)| *state == PortState::Stuck);
        set.iter().filter(|(input, output)| stuck(input) || stuck(output)).cloned().collect()
    }

    /// Takes in how ports are: those that are otherwise than before, and whether there are none.
    fn take_faults(&mut self, reported: Vec<PortReport>) -> (Vec<PortReport>, bool) {
        let bad = reported.into_iter().filter(|port| port.state != PortState::Works);
        let faults: Faults = bad.map(|port| (port.port, (port.state, port.reason))).collect();
        let before = std::mem::replace(&mut self.faults, faults);
        let state = |faults: &Faults, port: &LinkName| faults.get(port).map_or(PortState::Works, |(state, _)| *state);
        let all: BTreeSet<&LinkName> = before.keys().chain(self.faults.keys()).collect();
        let changed = all.into_iter().filter(|&port| state(&before, port) != state(&self.faults, port));
        let changed: Vec<PortReport> = changed
            .map(|port| {
                let reason = self.faults.get(port).map(|(_, reason)| Arc::clone(reason)).unwrap_or_default();
                PortReport { port: port.clone(), state: state(&self.faults, port), reason }
            })
            .collect();
        let none = changed.is_empty();
        (changed, none)
    }

    /// Whether the report makes sense for the ports there are.
    fn check(&self, watcher: &str, report: &CircuitReport) -> Result<(), Refusal> {
        let Some(ports) = &self.ports else {
            return Err(invalid("version".to_owned(), "the network has no optical switch".to_owned()));
        };
        let other = self.controller().filter(|&controller| self.attended && controller != watcher);
        if let Some(other) = other {
            let message = format!("\"{other}\" reports circuits already; one watcher does at a time");
            return Err(invalid("watcher".to_owned(), message));
        }
        if report.version > self.versions {
            let message = format!("{} was never wanted; the last is {}", report.version, self.versions);
            return Err(invalid("version".to_owned(), message));
        }
        let mut failed = BTreeSet::new();
        let mut named = BTreeSet::new();
        for (at, fault) in report.ports.iter().enumerate() {
            let field = format!("ports[{at}].port");
            if !ports.has(&fault.port) {
                return Err(invalid(field, format!("\"{}\" is no port of \"{}\"", fault.port, ports.name)));
            }
            if !named.insert(&fault.port) {
                return Err(invalid(field, format!("\"{}\" is named twice", fault.port)));
            }
            if fault.state == PortState::Failed {
                failed.insert(&fault.port);
            }
        }
        check_set(&report.set, ports, &failed)
    }
}

fn check_set(set: &[(LinkName, LinkName)], ports: &Ports, failed: &BTreeSet<&LinkName>) -> Result<(), Refusal> {
    let (mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new());
    for (at, (input, output)) in set.iter().enumerate() {
        for (end, link, taken) in [("input", input, &mut inputs), ("output", output, &mut outputs)] {
            let field = format!("set[{at}].{end}");
            if !ports.has(link) {
                return Err(invalid(field, format!("\"{link}\" is no port of \"{}\"", ports.name)));
            }
            if !taken.insert(link) {
                return Err(invalid(field, format!("\"{link}\" has another circuit already")));
            }
            if failed.contains(link) {
                let message = format!("\"{link}\" has failed, by the same report, and carries nothing");
                return Err(invalid(field, message));
            }
        }
        if input == output {
            return Err(invalid(format!("set[{at}].output"), format!("\"{output}\" is the input as well")));
        }
    }
    Ok(())
}

const fn invalid(field: String, message: String) -> Refusal {
    Refusal::Invalid { field, message }
}
