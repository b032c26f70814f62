//! The circuits of an optical switch, and which ones are chosen.

use super::demand::{DemandMatrix, RackDemand};
use super::ports::{OpticalPort, ports};
use super::problem::OpticalProblem;
use super::section::OpticalSection;
use crate::network::Network;
use crate::solve::bipartite::{greedy_matching, heaviest_matching_counted, most_steps};
use crate::units::{BitsPerSec, Bytes, LinkIdx, Micros, RackIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BITS_PER_BYTE: u128 = 8;
const MICROS_PER_S: u128 = 1_000_000;
/// A circuit that carries for nine pauses spends a tenth of its time switching (004 §4.1.2).
const ELEPHANT_PAUSES: u64 = 9;

/// How a rack's port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortState {
    /// It can be given any circuit.
    #[default]
    Works,
    /// It carries nothing.
    Failed,
    /// It keeps the circuit that it has, or none.
    Stuck,
}

/// An optical switch: its ports by rack, its circuits.
///
/// At any time every input leads to at most one output and every output is led to from at most one input.
#[derive(Debug, Clone)]
pub struct OpticalSwitch {
    section: OpticalSection,
    /// By rack.
    ports: Vec<Option<OpticalPort>>,
    failed: Vec<bool>,
    stuck: Vec<bool>,
    /// By sender's rack: the receiver's.
    circuits: Vec<Option<RackIdx>>,
    /// Steps of the last choice.
    steps: u64,
}

/// Steps that one choice of circuits may take, where a step is one cell of a matrix of racks that is looked at: 512 racks
/// with demand in both directions, of whatever weights; some tenths of a second.
pub const MATCHING_STEPS: u64 = (1 << 27) + (1 << 18);

/// Pairs of racks with what a circuit between them would carry.
type Weights = BTreeMap<(usize, usize), u64>;

impl OpticalSwitch {
    /// The optical switch of a network, all dark; `None` if the network has no `optical` section. `rack_of` says whose
    /// switch a switch is, of `racks`.
    ///
    /// # Errors
    /// The first thing wrong with the section: see [`OpticalProblem`].
    pub fn new(
        network: &Network,
        racks: usize,
        rack_of: &dyn Fn(VertexIdx) -> Option<RackIdx>,
    ) -> Result<Option<Self>, OpticalProblem> {
        let Some(section) = network.optical() else { return Ok(None) };
        if let Some(problem) = section.problems(network).into_iter().find(|problem| !problem.is_warning()) {
            return Err(problem);
        }
        let switch = network.vertex(&section.switch).expect("a section without problems names a switch");
        let mut by_rack: Vec<Option<OpticalPort>> = vec![None; racks];
        for port in ports(network, switch).0 {
            let (link, far) = (network.link_at(port.link).name.clone(), &network.vertex_at(port.rack_switch).name);
            let Some(rack) = rack_of(port.rack_switch) else {
                return Err(OpticalProblem::UnknownRack { port: link, far: Arc::clone(far) });
            };
            if let Some(first) = by_rack[rack.at()].replace(port) {
                let first = network.link_at(first.link).name.clone();
                return Err(OpticalProblem::TwoPorts { rack_switch: Arc::clone(far), first, second: link });
            }
        }
        let (failed, stuck, circuits) = (vec![false; racks], vec![false; racks], vec![None; racks]);
        Ok(Some(Self { section: section.clone(), ports: by_rack, failed, stuck, circuits, steps: 0 }))
    }

    /// Its times and thresholds.
    #[must_use]
    pub const fn section(&self) -> &OpticalSection {
        &self.section
    }

    /// Racks, with ports or without.
    #[must_use]
    pub fn racks(&self) -> usize {
        self.ports.len()
    }

    /// Racks without a port.
    #[must_use]
    pub fn without_port(&self) -> usize {
        self.ports.iter().filter(|port| port.is_none()).count()
    }

    /// The rack whose port that link is.
    #[must_use]
    pub fn rack_of_port(&self, link: LinkIdx) -> Option<RackIdx> {
        let port = self.ports.iter().position(|port| port.is_some_and(|port| port.link == link));
        port.map(RackIdx::new)
    }

    /// The circuit from a rack: where it leads.
    #[must_use]
    pub fn circuit(&self, from: RackIdx) -> Option<RackIdx> {
        self.circuits[from.at()]
    }

    /// All circuits, sender first, ascending by sender.
    pub fn circuits(&self) -> impl Iterator<Item = (RackIdx, RackIdx)> + '_ {
        self.circuits.iter().enumerate().filter_map(|(from, to)| Some((RackIdx::new(from), (*to)?)))
    }

    /// What a circuit between two racks carries: the slower port's capacity; 0 where one has no port, or with itself.
    #[must_use]
    pub fn bits_per_s(&self, from: RackIdx, to: RackIdx) -> BitsPerSec {
        match (self.ports.get(from.at()).copied().flatten(), self.ports.get(to.at()).copied().flatten()) {
            (Some(input), Some(output)) if from != to => input.bits_per_s.min(output.bits_per_s),
            _ => BitsPerSec::ZERO,
        }
    }

    /// From so many bytes on what a job sends from a rack to another is an elephant: bw·9δ, unless the section says; at
    /// least 1. `None` where there can never be a circuit.
    #[must_use]
    pub fn elephant(&self, from: RackIdx, to: RackIdx) -> Option<Bytes> {
        let bits_per_s = self.bits_per_s(from, to);
        let nine_pauses = Micros(self.section.pause().0.saturating_mul(ELEPHANT_PAUSES));
        let derived = || carried(bits_per_s, nine_pauses);
        (bits_per_s > BitsPerSec::ZERO).then(|| self.section.elephant_bytes.unwrap_or_else(derived).max(Bytes(1)))
    }

    /// Whether a circuit between the racks can be had or is there: both have ports that have not failed.
    #[must_use]
    pub fn serves(&self, from: RackIdx, to: RackIdx) -> bool {
        let works = |rack: RackIdx| !self.failed[rack.at()];
        self.bits_per_s(from, to) > BitsPerSec::ZERO && works(from) && works(to)
    }

    /// What a circuit could carry of a demand until the next choice: min(demand, bw·(interval − pause)).
    #[must_use]
    pub fn weight(&self, from: RackIdx, to: RackIdx, demand: Bytes) -> Bytes {
        let usable = self.section.interval().saturating_sub(self.section.pause());
        demand.min(carried(self.bits_per_s(from, to), usable))
    }

    /// Chooses the circuits of the next interval, and says whether any of them is new.
    ///
    /// Without demand that could be served nothing changes, and a circuit whose ports nobody else gets stays: to take one
    /// down alone would gain nothing. Of equally good choices the one that keeps most is taken.
    ///
    /// Among more racks than [`MATCHING_STEPS`] allow only those with demand are matched, and where these are too many the
    /// heaviest pairs get their circuits first: no less than half of what could be had.
    pub fn configure(&mut self, demand: &DemandMatrix) -> bool {
        if demand.total() == Bytes::ZERO {
            return false; // and the matching of many racks is spared
        }
        let free = |rack: usize, taken: &[bool]| !taken[rack] && !self.failed[rack];
        let (mut inputs, mut outputs) = (self.stuck.clone(), self.stuck.clone());
        for (from, to) in self.circuits().filter(|&(from, to)| self.stuck[from.at()] || self.stuck[to.at()]) {
            (inputs[from.at()], outputs[to.at()]) = (true, true);
        }
        let mut weights = Weights::new();
        for RackDemand { from, to, bytes } in demand.iter() {
            if free(from.at(), &inputs) && free(to.at(), &outputs) {
                weights.insert((from.at(), to.at()), self.weight(from, to, bytes).0);
            }
        }
        weights.retain(|_, weight| *weight > 0);
        let before: Vec<Option<usize>> = self.circuits.iter().map(|to| to.map(RackIdx::at)).collect();
        let (mut chosen, steps) = matched(self.racks(), &weights, &before);
        self.steps = steps;
        let led_to: BTreeSet<usize> = chosen.iter().copied().flatten().collect();
        for (from, to) in before.iter().enumerate() {
            let Some(to) = *to else { continue };
            if chosen[from].is_none() && !led_to.contains(&to) {
                chosen[from] = Some(to);
            }
        }
        let fresh = chosen.iter().zip(&before).any(|(new, old)| new.is_some() && new != old);
        if fresh {
            self.circuits = chosen.into_iter().map(|to| to.map(RackIdx::new)).collect();
        }
        fresh
    }

    /// Steps that the last choice took, see [`MATCHING_STEPS`].
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes these circuits, sender first, for the ones that are set: as whoever set them says. Those of a rack without a
    /// port and of one whose port failed are left out, and of two that share an input or an output the later.
    pub fn assume(&mut self, circuits: impl IntoIterator<Item = (RackIdx, RackIdx)>) {
        self.circuits.fill(None);
        let mut led_to = vec![false; self.racks()];
        for (from, to) in circuits {
            if self.serves(from, to) && self.circuits[from.at()].is_none() && !led_to[to.at()] {
                (self.circuits[from.at()], led_to[to.at()]) = (Some(to), true);
            }
        }
    }

    /// A port fails, or works again; its circuits are gone, those of others stay. Says whether it has a port.
    pub fn set_failed(&mut self, rack: RackIdx, failed: bool) -> bool {
        if self.ports.get(rack.at()).copied().flatten().is_none() {
            return false;
        }
        self.failed[rack.at()] = failed;
        if failed {
            for (from, to) in self.circuits.iter_mut().enumerate() {
                *to = to.filter(|&to| to != rack && from != rack.at());
            }
        }
        true
    }

    /// A port's mirrors stick, or move again. Says whether it has a port.
    pub fn set_stuck(&mut self, rack: RackIdx, stuck: bool) -> bool {
        let has_port = self.ports.get(rack.at()).copied().flatten().is_some();
        if has_port {
            self.stuck[rack.at()] = stuck;
        }
        has_port
    }

    /// How a rack's port is; `None` if it has none. One that failed is no more than that.
    #[must_use]
    pub fn port(&self, rack: RackIdx) -> Option<PortState> {
        self.ports.get(rack.at()).copied().flatten().map(|_| match (self.failed[rack.at()], self.stuck[rack.at()]) {
            (true, _) => PortState::Failed,
            (_, true) => PortState::Stuck,
            _ => PortState::Works,
        })
    }
}

/// Who gets a circuit to whom, by sender, and the steps that it took.
fn matched(racks: usize, weights: &Weights, before: &[Option<usize>]) -> (Vec<Option<usize>>, u64) {
    if most_steps(racks, racks) <= MATCHING_STEPS {
        let mut cells = vec![0; racks * racks];
        weights.iter().for_each(|(&(from, to), &weight)| cells[from * racks + to] = weight);
        return heaviest_matching_counted(racks, racks, |from, to| cells[from * racks + to], before);
    }
    let rows: Vec<usize> = weights.keys().map(|pair| pair.0).collect::<BTreeSet<_>>().into_iter().collect();
    let columns: Vec<usize> = weights.keys().map(|pair| pair.1).collect::<BTreeSet<_>>().into_iter().collect();
    if most_steps(rows.len(), columns.len()) > MATCHING_STEPS {
        return greedy_matching(racks, weights, before);
    }
    let kept = |row: &usize| before[*row].and_then(|column| columns.binary_search(&column).ok());
    let kept: Vec<Option<usize>> = rows.iter().map(kept).collect();
    let weight = |row: usize, column: usize| weights.get(&(rows[row], columns[column])).copied().unwrap_or(0);
    let (found, steps) = heaviest_matching_counted(rows.len(), columns.len(), weight, &kept);
    let mut chosen = vec![None; racks];
    for (row, column) in found.into_iter().enumerate() {
        chosen[rows[row]] = column.map(|column| columns[column]);
    }
    (chosen, steps)
}

/// What a rate carries in a time, rounded down.
fn carried(rate: BitsPerSec, time: Micros) -> Bytes {
    let bytes = u128::from(rate.0) * u128::from(time.0) / MICROS_PER_S / BITS_PER_BYTE;
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
