//! Which circuits are wanted.

use super::bursts::{Demand, JobShuffle};
use super::messages::{CircuitsView, RackDemand, UNSERVED_MAX, WantedCircuit, WantedCircuits};
use super::ports::Ports;
use super::{Circuits, LEARNING};
use hintd_model::cluster::Snapshot;
use hintd_model::network::optical::{DemandMatrix, PortState};
use hintd_model::units::{Bytes, LinkName, RackIdx, Timestamp};
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
        match (before, &self.ports) {
            (None, None) => return None,
            (None, Some(_)) => {
                self.bursts.begin(now);
                self.learning = Some(now);
            }
            (Some(_), Some(_)) => self.assume(false),
            (Some(_), None) => {
                self.bursts.clear();
                self.faults.clear();
                (self.reported, self.attended, self.heard) = (None, false, false);
            }
        }
        let learnt = if self.ports.is_some() { self.learning.is_none() } else { self.learning.take().is_none() };
        if learnt { self.conclude("topology", now) } else { None }
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
        self.bursts.carry(&self.carrying(ports), ports, now);
        let gathering = &self.gathering;
        let jobs = largest(jobs);
        self.bursts.look(&jobs, ports, |pair, gathered| gathering.started(pair, gathered), now);
        // Without demand nothing is to be gained by not waiting.
        let waits = |since| now.since(since) < LEARNING || self.servable(ports).total() == Bytes::ZERO;
        if self.learning.is_some_and(waits) {
            return None;
        }
        self.learning = None;
        self.configure("demand", now)
    }

    /// What elephants have left between racks that can have circuits.
    fn servable(&self, ports: &Ports) -> DemandMatrix {
        let mut matrix = DemandMatrix::new(ports.switch.racks());
        for (&(from, to), demand) in &self.bursts.demand() {
            if ports.bar(from, to).is_none() {
                matrix.add(from, to, demand.bytes);
            }
        }
        matrix
    }

    /// Circuits that carry, as far as anybody knows.
    pub(super) fn carrying(&self, ports: &Ports) -> Vec<(RackIdx, RackIdx)> {
        let reported = self.reported.as_ref().filter(|_| self.attended);
        reported.map(|reported| ports.pairs(&reported.set)).unwrap_or_default()
    }

    /// Ports are as was reported, and circuits as they are wanted or held. `first`: and as they are set, where nobody
    /// wants their ports otherwise.
    pub(super) fn assume(&mut self, first: bool) {
        let Some(ports) = &mut self.ports else { return };
        let set = self.reported.as_ref().map_or(&[][..], |reported| &reported.set);
        let mut wanted = self.wanted.as_ref().map(|wanted| ports.wanted(wanted)).unwrap_or_default();
        if first {
            wanted.extend(ports.pairs(set)); // of two circuits of a port the first counts
        }
        ports.set(&self.faults, set, &wanted);
    }

    pub(super) fn configure(&mut self, cause: &'static str, now: Timestamp) -> Option<Arc<WantedCircuits>> {
        let demand = self.servable(self.ports.as_ref()?);
        self.ports.as_mut()?.switch.configure(&demand);
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
        // Their order is that of racks, which nodes that join change.
        let pairs = |circuits: &[WantedCircuit]| circuits.iter().map(names).collect::<BTreeSet<_>>();
        let same = before.is_some_and(|before| before.switch == switch && pairs(&before.circuits) == pairs(&circuits));
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

    /// `None`: there is no optical switch.
    pub(super) fn view(&self) -> Option<CircuitsView> {
        let ports = self.ports.as_ref()?;
        let section = ports.switch.section();
        let wanted = match self.learning {
            Some(since) => Arc::new(WantedCircuits::none_yet(Arc::clone(&ports.name), since)),
            None => Arc::clone(self.wanted.as_ref()?),
        };
        Some(CircuitsView {
            wanted,
            attended: self.attended,
            interval: section.interval(),
            pause: section.pause(),
            elephant: ports.elephant,
            reported: self.reported.clone(),
            replaced: 0,
            ports: ports.views(&self.faults),
            without_port: ports.without_port(),
        })
    }
}

/// Pairs of racks that one choice looks at, all jobs together.
pub(crate) const PAIRS_LOOKED_AT: usize = 1 << 20;

/// The jobs whose maps put out most, as many as may be looked at in one go: few of the others would get a circuit.
fn largest(jobs: &[JobShuffle]) -> Vec<&JobShuffle> {
    let mut order: Vec<&JobShuffle> = jobs.iter().collect();
    if order.iter().map(|job| job.pairs_most()).sum::<usize>() <= PAIRS_LOOKED_AT {
        return order;
    }
    order.sort_by_key(|job| (std::cmp::Reverse(job.total()), job.attempt));
    let mut left = PAIRS_LOOKED_AT;
    order.retain(|job| {
        let fits = job.pairs_most() <= left;
        left -= if fits { job.pairs_most() } else { 0 };
        fits
    });
    order
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempt;

    #[test]
    fn of_more_shuffles_than_one_choice_may_look_at_the_largest_count() {
        let racks = |count: usize| (0..count).map(RackIdx::new);
        let job = |application: u32, bytes: u64| JobShuffle {
            attempt: attempt(application, 1),
            output: racks(512).map(|rack| (rack, Bytes(bytes))).collect(),
            reduces: racks(512).map(|rack| (rack, (1, 0))).collect(),
            tasks: 512,
            maps_done: true,
            reduces_placed: true,
        };
        let jobs: Vec<JobShuffle> = (1..=6).map(|nth| job(nth, u64::from(nth))).collect();
        let of = |jobs: &[JobShuffle]| -> Vec<u32> {
            largest(jobs).into_iter().map(|job| job.attempt.application.sequence).collect()
        };
        assert_eq!(of(&jobs[..4]), [1, 2, 3, 4], "as many as may be, as they come");
        assert_eq!(of(&jobs), [6, 5, 4, 3]);
        let pairs: usize = largest(&jobs).into_iter().map(JobShuffle::pairs_most).sum();
        assert!(pairs <= PAIRS_LOOKED_AT, "{pairs}");
    }
}
