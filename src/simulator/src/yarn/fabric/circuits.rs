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
use super::links::Ends;
use crate::report::CircuitReport;
use hintd_model::network::optical::OpticalSwitch;
use hintd_model::units::{Bytes, Micros, NodeIdx, RackIdx};
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
    pub(super) const fn ends(&self, by_circuit: bool) -> (Ends, f64) {
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
    pub(super) switch: OpticalSwitch,
    /// Circuits that carry now; none in a pause.
    pub(super) lit: Vec<(RackIdx, RackIdx)>,
    pub(super) pause_ends_s: Option<f64>,
    pub(super) last_choice: Option<Micros>,
    pub(super) bursts: BTreeMap<Pair, Burst>,
    /// How many bursts are elephants.
    pub(super) elephants: usize,
    pub(super) done: CircuitUse,
}

#[derive(Debug, Clone)]
pub(super) struct Burst {
    pub(super) wires: Vec<u32>,
    pub(super) course: Course,
    /// Since when it has had no circuit; only of elephants on [`Course::Circuits`].
    pub(super) since_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
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

    pub(super) fn elephants(&self) -> impl Iterator<Item = (&Pair, &Burst)> {
        self.bursts.iter().filter(|(_, burst)| burst.course != Course::Mice)
    }

    /// Where a new flow of a burst goes; says whether the burst has become an elephant, whose other flows then move.
    pub(super) fn take_in(&mut self, pair: Pair, gathered: Bytes, now_s: f64) -> (bool, Vec<u32>) {
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
    pub(super) fn give_up(&mut self, now_s: f64) -> Vec<u32> {
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
    pub(super) fn come_back(&mut self, now_s: f64) -> Vec<u32> {
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
