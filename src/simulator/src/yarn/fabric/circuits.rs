//! Circuits in time: which bursts of shuffle ride them, when they are chosen anew, when they pause.
//!
//! # The model (004 §4.1.2, §6.1.6.2)
//! - What a job has under way or gathered from a rack to another is one *burst*, until nothing of it is under way. From
//!   the elephant threshold on it waits for a circuit of its racks and takes nothing of the packet uplinks; below, and
//!   between racks that can have no circuit, it goes by packets. Reads and traffic of others always do.
//! - Circuits are chosen once an interval while there is an elephant, from what elephants have left to send: what the
//!   racks' switches see gathered, nothing of the future. A circuit that is chosen again goes on without a pause, and
//!   elephants that come ride it at once.
//! - A fetch by packets is held to its share of the reading node's NIC, as five may be under way; a rack has one circuit
//!   at most, so that a fetch by circuit may take what the batch's reduces on its node leave each other, and no less than
//!   by packets.
//! - When a circuit is new, all stand dark for the pause.
//! - An elephant that has waited for the section's patience, or whose port fails, goes by packets until it gets a
//!   circuit.

use super::JobNo;
use super::active_flows::{ActiveFlows, Owner};
use super::links::Ends;
use crate::report::CircuitReport;
use hintd_model::network::optical::{DemandMatrix, OpticalSwitch};
use hintd_model::units::{BitsPerSec, Bytes, LinkIdx, Micros, NodeIdx, RackIdx};
use std::collections::BTreeMap;

/// A job's shuffle from a rack to another.
pub(super) type Pair = (JobNo, RackIdx, RackIdx);

/// A flow of a burst: whose it is, and how it goes on either course.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ride {
    pub(super) pair: Pair,
    /// The only node that sends it.
    pub(super) sender: Option<NodeIdx>,
    /// What each member takes at most by packets, bits/s.
    pub(super) packet_cap: f64,
    /// And by circuit.
    pub(super) circuit_cap: f64,
}

impl Ride {
    const fn ends(&self, by_circuit: bool) -> (Ends, f64) {
        let (_, from, to) = self.pair;
        match (by_circuit, self.sender) {
            (true, sender) => (Ends::Circuit(sender, from, to), self.circuit_cap),
            (false, Some(node)) => (Ends::NodeToRack(node, to), self.packet_cap),
            (false, None) => (Ends::Racks(from, to), self.packet_cap),
        }
    }
}

/// What circuits have done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CircuitUse {
    /// What they carried, of fetches that were broken off later too.
    pub bytes: f64,
    /// Choices with a new circuit; each paused all of them.
    pub changes: u64,
    /// Elephants that went by packets, for want of a circuit or of a port.
    pub by_packets: u64,
    /// Racks without a port.
    pub without_port: u64,
}

impl CircuitUse {
    /// As reports say it, beside all that crossed racks.
    #[must_use]
    pub fn report(&self, cross_rack: Bytes) -> CircuitReport {
        let bytes = self.bytes.round() as u64;
        // Members of a flow carry whole bytes, so that a handful more may ride than was asked for.
        let share = if cross_rack == Bytes::ZERO { 0.0 } else { (self.bytes / cross_rack.as_f64()).min(1.0) };
        let (changes, elephants_by_packets) = (self.changes, self.by_packets);
        CircuitReport { bytes, share, changes, elephants_by_packets, racks_without_port: self.without_port }
    }
}

/// The optical switch and what rides it.
#[derive(Debug, Clone)]
pub(super) struct Circuits {
    switch: OpticalSwitch,
    /// Circuits that carry now; none in a pause.
    lit: Vec<(RackIdx, RackIdx)>,
    pause_ends_s: Option<f64>,
    last_choice: Option<Micros>,
    bursts: BTreeMap<Pair, Burst>,
    /// How many bursts are elephants.
    elephants: usize,
    done: CircuitUse,
}

#[derive(Debug, Clone)]
struct Burst {
    wires: Vec<u32>,
    course: Course,
    /// Since when it has had no circuit; only of elephants on [`Course::Circuits`].
    since_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// No elephant.
    Mice,
    Circuits,
    /// An elephant that has no circuit to hope for, or has hoped for long.
    Packets,
}

impl Circuits {
    pub(super) fn new(switch: OpticalSwitch) -> Self {
        let done = CircuitUse { without_port: switch.without_port() as u64, ..CircuitUse::default() };
        let (lit, pause_ends_s, last_choice) = (Vec::new(), None, None);
        Self { switch, lit, pause_ends_s, last_choice, bursts: BTreeMap::new(), elephants: 0, done }
    }

    fn elephants(&self) -> impl Iterator<Item = (&Pair, &Burst)> {
        self.bursts.iter().filter(|(_, burst)| burst.course != Course::Mice)
    }

    /// Where a new flow of a burst goes; says whether the burst has become an elephant, whose other flows then move.
    fn take_in(&mut self, pair: Pair, gathered: Bytes, now_s: f64) -> (bool, Vec<u32>) {
        let (_, from, to) = pair;
        let fresh = Burst { wires: Vec::new(), course: Course::Mice, since_s: now_s };
        let burst = self.bursts.entry(pair).or_insert(fresh);
        let threshold = self.switch.elephant(from, to);
        if burst.course != Course::Mice || threshold.is_none_or(|threshold| gathered < threshold) {
            return (burst.course == Course::Circuits, Vec::new());
        }
        burst.since_s = now_s;
        self.elephants += 1;
        if self.switch.serves(from, to) {
            burst.course = Course::Circuits;
            return (true, burst.wires.clone());
        }
        burst.course = Course::Packets;
        self.done.by_packets += 1;
        (false, Vec::new())
    }

    /// A flow is over.
    pub(super) fn leave(&mut self, pair: Pair, wire: u32) {
        let burst = self.bursts.get_mut(&pair).expect("a flow goes with its burst");
        burst.wires.retain(|&other| other != wire);
        if burst.wires.is_empty() {
            self.elephants -= usize::from(burst.course != Course::Mice);
            self.bursts.remove(&pair);
        }
    }

    pub(super) const fn carry(&mut self, bytes: f64) {
        self.done.bytes += bytes;
    }

    /// Elephants that have waited for too long, or wait for a circuit that can't be, give up; their flows.
    fn give_up(&mut self, now_s: f64) -> Vec<u32> {
        let patience_s = self.switch.section().patience().as_secs_f64();
        let mut moved = Vec::new();
        for (&pair, burst) in self.bursts.iter_mut().filter(|(_, burst)| burst.course == Course::Circuits) {
            let (_, from, to) = pair;
            if self.switch.circuit(from) == Some(to) {
                burst.since_s = now_s;
            } else if now_s - burst.since_s >= patience_s || !self.switch.serves(from, to) {
                burst.course = Course::Packets;
                self.done.by_packets += 1;
                moved.extend(&burst.wires);
            }
        }
        moved
    }

    /// Elephants by packets whose circuit is there, and whose patience begins anew; their flows.
    fn come_back(&mut self, now_s: f64) -> Vec<u32> {
        let mut moved = Vec::new();
        for (&pair, burst) in self.bursts.iter_mut().filter(|(_, burst)| burst.course == Course::Packets) {
            if self.switch.circuit(pair.1) == Some(pair.2) {
                (burst.course, burst.since_s) = (Course::Circuits, now_s);
                moved.extend(&burst.wires);
            }
        }
        moved
    }
}

impl ActiveFlows {
    /// Whether so many bytes from a rack to another would make an elephant.
    pub(super) fn would_ride(&self, from: RackIdx, to: RackIdx, bytes: Bytes) -> bool {
        self.elephant(from, to).is_some_and(|elephant| bytes >= elephant)
    }

    /// From so many bytes on it is one; `None`: there can never be a circuit of the two.
    pub(super) fn elephant(&self, from: RackIdx, to: RackIdx) -> Option<Bytes> {
        self.circuits.as_ref()?.switch.elephant(from, to)
    }

    /// Starts a fetch from a rack to another, `bytes` for each of its members; `gathered` is what its job has under way
    /// and gathered for the pair, itself included.
    pub(super) fn start_between(
        &mut self,
        owner: Owner,
        ride: Ride,
        bytes: Bytes,
        members: u32,
        gathered: Bytes,
    ) -> u32 {
        let now_s = self.now_s();
        let taken = self.circuits.as_mut().map(|circuits| circuits.take_in(ride.pair, gathered, now_s));
        let by_circuit = taken.as_ref().is_some_and(|(by_circuit, _)| *by_circuit);
        for wire in taken.into_iter().flat_map(|(_, others)| others) {
            self.divert(wire, by_circuit);
        }
        let (ends, cap_bits_per_s) = ride.ends(by_circuit);
        let wire = self.start(owner, ends, bytes, members, cap_bits_per_s);
        if let Some(circuits) = &mut self.circuits {
            circuits.bursts.get_mut(&ride.pair).expect("it was taken in").wires.push(wire);
            self.set_ride(wire, ride);
        }
        wire
    }

    fn divert(&mut self, wire: u32, by_circuit: bool) {
        if let Some(ride) = self.ride(wire) {
            let (ends, cap_bits_per_s) = ride.ends(by_circuit);
            self.turn_to(wire, ends, cap_bits_per_s);
        }
    }

    /// When circuits should next be chosen, from `now` on; `None` while no elephant is about.
    pub(super) fn next_choice(&self, now: Micros) -> Option<Micros> {
        let circuits = self.circuits.as_ref()?;
        if circuits.elephants == 0 {
            return None;
        }
        let interval = circuits.switch.section().interval().0;
        let next = Micros(now.0.div_ceil(interval) * interval);
        let done = circuits.last_choice.is_some_and(|last| last >= next);
        Some(if done { next.saturating_add(Micros(interval)) } else { next })
    }

    /// Chooses the circuits of the interval that begins.
    pub(super) fn choose(&mut self, now: Micros) {
        let Some(mut circuits) = self.circuits.take() else { return };
        let mut demand = DemandMatrix::new(circuits.switch.racks());
        for (&(_, from, to), burst) in circuits.elephants() {
            let left: f64 = burst.wires.iter().map(|&wire| self.left_bytes(wire)).sum();
            demand.add(from, to, Bytes(left.ceil() as u64));
        }
        circuits.last_choice = Some(now);
        if circuits.switch.configure(&demand) {
            circuits.done.changes += 1;
            for (from, to) in std::mem::take(&mut circuits.lit) {
                self.set_circuit(from, to, BitsPerSec::ZERO);
            }
            let dark_until = now.saturating_add(circuits.switch.section().pause());
            circuits.pause_ends_s = Some(dark_until.as_secs_f64());
        }
        let moved = circuits.give_up(self.now_s());
        self.circuits = Some(circuits);
        for wire in moved {
            self.divert(wire, false);
        }
        self.light();
    }

    /// When the pause under way ends, seconds.
    pub(super) fn pause_ends_s(&self) -> Option<f64> {
        self.circuits.as_ref()?.pause_ends_s
    }

    /// Ends the pause if it is over.
    pub(super) fn light(&mut self) {
        let now_s = self.now_s();
        let Some(circuits) = &mut self.circuits else { return };
        if circuits.pause_ends_s.take_if(|ends_s| *ends_s <= now_s).is_none() {
            return;
        }
        circuits.lit = circuits.switch.circuits().collect();
        let moved = circuits.come_back(now_s);
        let lit: Vec<_> =
            circuits.lit.iter().map(|&(from, to)| (from, to, circuits.switch.bits_per_s(from, to))).collect();
        for (from, to, bits_per_s) in lit {
            self.set_circuit(from, to, bits_per_s);
        }
        for wire in moved {
            self.divert(wire, true);
        }
    }

    /// If the link is an optical port: it fails or works again.
    pub(super) fn set_port(&mut self, link: LinkIdx, up: bool) -> bool {
        let now_s = self.now_s();
        let Some(circuits) = &mut self.circuits else { return false };
        let Some(rack) = circuits.switch.rack_of_port(link) else { return false };
        circuits.switch.set_failed(rack, !up);
        let (gone, lit) = std::mem::take(&mut circuits.lit)
            .into_iter()
            .partition(|&(from, to): &(RackIdx, RackIdx)| !up && (from == rack || to == rack));
        circuits.lit = lit;
        let moved = if up { Vec::new() } else { circuits.give_up(now_s) };
        for (from, to) in gone {
            self.set_circuit(from, to, BitsPerSec::ZERO);
        }
        for wire in moved {
            self.divert(wire, false);
        }
        true
    }

    /// If the link is an optical port: its mirrors stick or move again. Says whether it is one.
    pub(super) fn stick_port(&mut self, link: LinkIdx, stuck: bool) -> bool {
        let Some(circuits) = &mut self.circuits else { return false };
        circuits.switch.rack_of_port(link).is_some_and(|rack| circuits.switch.set_stuck(rack, stuck))
    }

    /// What circuits have done so far; `None` without an optical switch.
    pub(super) fn circuit_use(&self) -> Option<CircuitUse> {
        self.circuits.as_ref().map(|circuits| circuits.done)
    }

    /// What does not hold of: an input and an output have one circuit at most, only circuits that are set carry, nothing
    /// moves in a pause.
    pub(super) fn check_circuits(&mut self) -> Result<(), String> {
        let Some(circuits) = self.circuits.clone() else { return Ok(()) };
        let mut outputs: Vec<RackIdx> = circuits.switch.circuits().map(|(_, to)| to).collect();
        outputs.sort_unstable();
        if let Some(two) = outputs.windows(2).find(|two| two[0] == two[1]) {
            return Err(format!("two circuits lead to rack {}", two[0].0));
        }
        if circuits.elephants != circuits.elephants().count() {
            return Err(format!("{} elephants were counted", circuits.elephants));
        }
        if circuits.pause_ends_s.is_some() && !circuits.lit.is_empty() {
            return Err(format!("{} circuits carry in a pause", circuits.lit.len()));
        }
        for from in (0..circuits.switch.racks()).map(RackIdx::new) {
            for to in (0..circuits.switch.racks()).map(RackIdx::new) {
                let load = self.circuit_load(from, to);
                let set = circuits.lit.contains(&(from, to)) && circuits.switch.circuit(from) == Some(to);
                let most = if set { circuits.switch.bits_per_s(from, to).as_f64() * 1.5 } else { 0.0 };
                if load > most {
                    return Err(format!("{load} bit/s from rack {} to rack {} over a circuit of {most}", from.0, to.0));
                }
            }
        }
        Ok(())
    }
}
