//! Circuits that an optical switch should have for the shuffles of running jobs, and what became of them.
//!
//! # The model (004 §4.1.2)
//! What a job has gathered in a rack for reduces in another and not moved yet is one *burst*; from the elephant threshold
//! on it is worth a circuit, until nothing of it is left. Once in the network's interval, and when a port changes its
//! state, the circuits are chosen from what elephants have left, by the same matching as in simulations
//! ([`hintd_model::network::optical`]). What is gathered is known from task events (outputs of ended maps, where reduces have
//! containers); what has moved is known when a reduce ends, and estimated before: a circuit that its controller says is
//! set carries as fast as its ports, job after job.
//!
//! # Starts, and controllers
//! A daemon that starts knows neither what is set nor which ports work. It wants nothing until a controller says what is
//! set, or, `LEARNING` after the optical switch became known, until there is demand. What the first report says is set
//! counts as wanted where demand does not say otherwise: a restart as such takes no circuit down. What is set is
//! believed, and shuffles are held back for it, as long as the stream stays open of the controller that said so. Nobody
//! else may report meanwhile.
//!
//! # Code map
//! - `messages`: what controllers and operators are told, and what controllers report.
//! - `ports`: the ports of the network by rack, and how they are. `bursts`: who has how much left between racks.
//! - `shuffle_holds`: shuffles that wait so that they ride; `timing`: when they are asked about, and what is told.
//! - `choice`: which circuits are wanted; `reports`: what a controller says, and how it is taken; `serve`: the
//!   handler of all of it.
//!
//! # Invariants
//! - A wanted configuration leads every input to at most one output and every output from at most one input, and names
//!   no port that failed or is stuck.
//! - Versions count up by one, and no version is ever given to two configurations in one life of the daemon.

mod bursts;
mod choice;
pub mod messages;
mod ports;
mod reports;
pub(crate) mod serve;
mod shuffle_holds;
mod timing;

use bursts::Bursts;
pub(crate) use bursts::JobShuffle;
use messages::{CircuitReport, CircuitsReported, WantedCircuits};
use ports::Ports;
use shuffle_holds::ShuffleHolds;
use std::collections::BTreeMap;
use std::sync::Arc;

use hintd_model::network::optical::PortState;
use hintd_model::units::{LinkName, Micros, Timestamp};

/// So long a controller has to say what is set before circuits are wanted without knowing it: some tries to come back.
const LEARNING: Micros = Micros::from_secs(10);

/// All of it. Without an optical switch nothing is known and nothing is wanted.
#[derive(Debug, Default)]
pub(crate) struct Circuits {
    ports: Option<Ports>,
    /// How ports are that a controller said something of and that do not work, and why, in its words.
    faults: BTreeMap<LinkName, (PortState, Arc<str>)>,
    reported: Option<CircuitsReported>,
    /// A report that came before the network did, and whose.
    early: Option<(Arc<str>, CircuitReport)>,
    /// Who reported has had its stream open ever since.
    attended: bool,
    /// Somebody has reported since the optical switch is known.
    heard: bool,
    /// Since when the optical switch is known; until something is wanted of it.
    learning: Option<Timestamp>,
    bursts: Bursts,
    gathering: ShuffleHolds,
    /// Since when each circuit is wanted, by its ports.
    since: BTreeMap<(LinkName, LinkName), Timestamp>,
    /// The last version, with the figures of the last choice.
    wanted: Option<Arc<WantedCircuits>>,
    /// Versions given so far.
    versions: u64,
    /// The interval of the last look.
    looked: Option<u64>,
}
