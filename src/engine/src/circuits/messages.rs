//! What controllers and operators are told of circuits, and what controllers report; in names.

use hintd_model::network::optical::PortState;
use hintd_model::units::{Bytes, LinkName, Micros, RackPath, Timestamp};
use std::sync::Arc;

/// Circuits that an optical switch should have: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCircuits {
    /// Counts up by one with every other configuration of this life of the daemon.
    pub version: u64,
    /// When it was chosen, or its figures were last made.
    pub at: Timestamp,
    /// The switch; empty: there is none any more.
    pub switch: Arc<str>,
    /// By input port's rack. Ports that failed or are stuck are not among them.
    pub circuits: Vec<WantedCircuit>,
    /// Pairs of racks with demand that gets no circuit, the largest first; at most [`UNSERVED_MAX`].
    pub unserved: Vec<RackDemand>,
    /// All such pairs.
    pub unserved_pairs: u64,
    /// What all of them have left to send.
    pub unserved_bytes: Bytes,
    /// Why it was chosen: demand, ports (one changed its state), report (the first: what is set), topology.
    pub cause: &'static str,
}

impl WantedCircuits {
    /// As operators see it while nothing is wanted yet; never told to controllers.
    pub(super) fn none_yet(switch: Arc<str>, since: Timestamp) -> Self {
        let (circuits, unserved) = (Vec::new(), Vec::new());
        let (unserved_pairs, unserved_bytes) = (0, Bytes::ZERO);
        Self { version: 0, at: since, switch, circuits, unserved, unserved_pairs, unserved_bytes, cause: "learning" }
    }
}

/// Pairs without a circuit that are named.
pub const UNSERVED_MAX: usize = 100;

/// One circuit that should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCircuit {
    /// Port of the sending rack.
    pub input: LinkName,
    /// Port of the receiving rack.
    pub output: LinkName,
    /// What it is for; its reason is demand, or kept: nobody else needs its ports.
    pub demand: RackDemand,
}

/// What elephants have left to send from a rack to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RackDemand {
    /// Sender; the name of its switch where no node of the rack is known.
    pub from: RackPath,
    /// Receiver.
    pub to: RackPath,
    /// Bytes expected to move.
    pub expected: Bytes,
    /// Jobs whose they are.
    pub jobs: u32,
    /// Of a circuit: since when it is wanted; else since when there is demand.
    pub since: Timestamp,
    /// demand, kept; without a circuit: `outweighed` (others' circuits carry more), `no_port`, `port_failed`, `port_stuck`,
    /// `switch_down`.
    pub reason: &'static str,
}

/// What a controller says of its switch: all of it, each time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CircuitReport {
    /// The last version that it has seen.
    pub version: u64,
    /// Circuits that are set now: input port, output port.
    pub set: Vec<(LinkName, LinkName)>,
    /// Ports that do not work as they should.
    pub ports: Vec<PortReport>,
}

/// A port that does not work as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortReport {
    /// The link.
    pub port: LinkName,
    /// How it is.
    pub state: PortState,
    /// Why, for people.
    pub reason: Arc<str>,
}

/// What a report changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportTaken {
    /// The version that is wanted now; 0: none yet.
    pub wanted_version: u64,
    /// Its sender was not the controller until now, or had been away.
    pub another: bool,
    /// Ports that are otherwise than before, as they are now.
    pub ports: Vec<PortReport>,
}

/// A report that was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitsReported {
    /// Whose.
    pub watcher: Arc<str>,
    /// When it came.
    pub at: Timestamp,
    /// The last version that its sender has seen.
    pub version: u64,
    /// Circuits that are set.
    pub set: Vec<(LinkName, LinkName)>,
}

/// Circuits as operators see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitsView {
    /// What is wanted, with figures of the last choice.
    pub wanted: Arc<WantedCircuits>,
    /// Between two choices.
    pub interval: Micros,
    /// How long circuits stand dark when one of them changes.
    pub pause: Micros,
    /// From so many bytes on a burst is an elephant; of the pair of racks where it is least.
    pub elephant: Bytes,
    /// What a controller said last; none has said anything yet.
    pub reported: Option<CircuitsReported>,
    /// Who said it has its stream open; else nobody knows whether that is still so, and nobody sets anything.
    pub attended: bool,
    /// How often a Watch of its name ended an earlier one whose stream was open: two may call themselves so.
    pub replaced: u64,
    /// All ports, by rack.
    pub ports: Vec<PortView>,
    /// Racks with nodes and without a port.
    pub without_port: u64,
}

/// A port as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortView {
    /// The link.
    pub port: LinkName,
    /// Its rack; the name of the switch that it leads to where no node of the rack is known.
    pub rack: RackPath,
    /// How it is.
    pub state: PortState,
    /// Why, in the controller's words.
    pub reason: Arc<str>,
}

impl CircuitsView {
    /// Wanted circuits that are set, as a controller says whose stream is open.
    pub fn set_circuits(&self) -> impl Iterator<Item = &WantedCircuit> {
        let set = self.reported.as_ref().filter(|_| self.attended).map_or(&[][..], |reported| &reported.set);
        let is = |circuit: &&WantedCircuit| {
            set.iter().any(|(input, output)| (input, output) == (&circuit.input, &circuit.output))
        };
        self.wanted.circuits.iter().filter(is)
    }

    /// Whether a controller whose stream is open said that all that are wanted are set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.attended && self.wanted.version > 0 && self.set_circuits().count() == self.wanted.circuits.len()
    }
}
