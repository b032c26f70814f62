//! Weights of the three terms, and their derivation from the cluster (paper 001 §IV-C leaves it to future work).

use crate::params::Invalid;
use hintd_model::cluster::Snapshot;
use hintd_model::units::{Bytes, NodeIdx};
use serde::{Deserialize, Serialize};

/// How much each term counts; in [0, 1], together 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Of T.
    pub togetherness: f64,
    /// Of L.
    pub locality: f64,
    /// Of B; the paper gives it little: a tie-breaker.
    pub balance: f64,
}

/// Weight of balance where weights are derived: enough to choose among placements that are else alike.
const BALANCE: f64 = 0.1;
/// No main term falls below this: the model that says it costs nothing is rough.
const LEAST: f64 = 0.05;
/// Disk rate where no node states its own, bytes a second: one SATA disk, as in the paper's testbed (§V-A).
const DISK_FALLBACK: f64 = 150e6;
/// Host link where no topology is known, bits a second (§V-A).
const HOST_FALLBACK: f64 = 1e9;
/// Oversubscription of racks where no topology is known: the paper's blocking factor of 1:5 (§V-A).
const OVERSUBSCRIPTION_FALLBACK: f64 = 5.0;
/// Nodes looked at; medians of so many, evenly picked, are good enough for weights and cheap per request.
const SAMPLE: usize = 64;

impl Default for Weights {
    /// Both objectives alike, balance as tie-breaker.
    fn default() -> Self {
        Self { togetherness: 0.45, locality: 0.45, balance: BALANCE }
    }
}

impl Weights {
    /// Whether each is finite, within [0, 1], and their sum is 1 within a millionth.
    ///
    /// # Errors
    /// All three and the sum.
    pub fn validate(&self) -> Result<(), Invalid> {
        let Self { togetherness, locality, balance } = *self;
        let each = [("togetherness", togetherness), ("locality", locality), ("balance", balance)];
        for (name, value) in each {
            if !value.is_finite() || !(0.0..=1.0).contains(&value) {
                return Err(Invalid { key: "weights", message: format!("{name} = {value} is not within [0, 1]") });
            }
        }
        let sum = togetherness + locality + balance;
        if (sum - 1.0).abs() > 1e-6 {
            let parts = format!("togetherness = {togetherness}, locality = {locality}, balance = {balance}");
            return Err(Invalid { key: "weights", message: format!("{parts} sum to {sum}, not to 1") });
        }
        Ok(())
    }

    /// The same proportions of the other two where locality is unknown.
    #[must_use]
    pub fn without_locality(&self) -> Self {
        let rest = self.togetherness + self.balance;
        if rest > 0.0 {
            Self { togetherness: self.togetherness / rest, locality: 0.0, balance: self.balance / rest }
        } else {
            Self { togetherness: 0.0, locality: 0.0, balance: 1.0 }
        }
    }
}

/// What an application moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CalibrateInput {
    /// Bytes read from the file system.
    pub input_bytes: Option<Bytes>,
    /// Bytes between containers; `None`: taken to be as many as are read.
    pub exchanged_bytes: Option<Bytes>,
    /// Containers, at least 1.
    pub containers: u64,
}

/// Weights and why they are these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The weights.
    pub weights: Weights,
    /// One line a fact, with its source or its fallback.
    pub because: Vec<String>,
}

/// What the cluster can carry, and which of it is only assumed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rates {
    /// Median disk, bytes a second.
    disk: f64,
    disk_known: bool,
    /// Median host link, bytes a second.
    host: f64,
    /// A host's part of its rack's uplinks, bytes a second.
    uplink: f64,
    network_known: bool,
}

/// Weights in proportion to the seconds that each term can cost: what reading all input from other racks takes
/// beyond reading it locally, against what exchanging all bytes across racks takes beyond exchanging them under
/// one switch. A second counts whether the application waits for it or keeps an uplink busy for others meanwhile:
/// input streamed from other racks at a slow disk's pace stalls nobody, and still fills the core.
#[must_use]
pub fn calibrate(snapshot: &Snapshot, input: &CalibrateInput) -> Calibrated {
    let rates = Rates::of(snapshot);
    let (reading, exchanging) = seconds(&rates, input);
    let weights = weigh(reading, exchanging);
    let source = |known, yes: &str, no: &str| if known { yes.to_owned() } else { no.to_owned() };
    let megabytes = |rate: f64| format!("{:.0} MB/s", rate / 1e6);
    let bytes = |bytes: Option<Bytes>| bytes.map_or("unknown".to_owned(), |bytes| format!("{} bytes", bytes.0));
    let disk = source(rates.disk_known, "median of the nodes", "no node states its rate: assumed");
    let network = source(rates.network_known, "median of the topology", "no topology: assumed");
    let because = vec![
        format!("disk reads {} ({disk})", megabytes(rates.disk)),
        format!("host link carries {} ({network})", megabytes(rates.host)),
        format!(
            "a host's part of its rack's uplinks is {} (oversubscribed {:.1} times)",
            megabytes(rates.uplink),
            rates.host / rates.uplink
        ),
        format!("{} containers read {}", input.containers, bytes(input.input_bytes)),
        match input.exchanged_bytes {
            Some(known) => format!("they exchange {} bytes", known.0),
            None => "what they exchange is not known: taken to be as much as they read".to_owned(),
        },
        format!("reading all of it across racks costs {reading:.1} s of waiting and of busy uplinks"),
        format!("exchanging all of it across racks costs {exchanging:.1} s of waiting and of busy uplinks"),
    ];
    Calibrated { weights, because }
}

/// As [`calibrate`], without the reasons: cheap enough for every request.
pub(super) fn calibrated(snapshot: &Snapshot, input: &CalibrateInput) -> Weights {
    let (reading, exchanging) = seconds(&Rates::of(snapshot), input);
    weigh(reading, exchanging)
}

fn seconds(rates: &Rates, input: &CalibrateInput) -> (f64, f64) {
    let containers = input.containers.max(1) as f64;
    let read = input.input_bytes.map_or(0.0, Bytes::as_f64);
    let exchanged = input.exchanged_bytes.map_or(read, Bytes::as_f64);
    let remote = rates.disk.min(rates.host).min(rates.uplink);
    let occupied = 1.0 / rates.uplink;
    let reading = read / containers * (occupied + (1.0 / remote - 1.0 / rates.disk).max(0.0));
    let exchanging = exchanged / containers * (occupied + (1.0 / rates.uplink - 1.0 / rates.host).max(0.0));
    (reading, exchanging)
}

fn weigh(reading: f64, exchanging: f64) -> Weights {
    let rest = 1.0 - BALANCE;
    let both = reading + exchanging;
    if both <= 0.0 {
        return Weights::default();
    }
    let togetherness = (rest * exchanging / both).clamp(LEAST, rest - LEAST);
    Weights { togetherness, locality: rest - togetherness, balance: BALANCE }
}

impl Rates {
    fn of(snapshot: &Snapshot) -> Self {
        let nodes = snapshot.nodes();
        let picked = (0..nodes).step_by(nodes.div_ceil(SAMPLE).max(1)).map(NodeIdx::new);
        let (mut disks, mut hosts, mut uplinks) = (Vec::new(), Vec::new(), Vec::new());
        for node in picked {
            disks.extend(Some(snapshot.statics.disk_read[node.at()].as_f64()).filter(|&rate| rate > 0.0));
            if let Some((host, uplink)) = links_of(snapshot, node) {
                hosts.push(host / 8.0);
                uplinks.push(uplink / 8.0);
            }
        }
        let network_known = !hosts.is_empty();
        let host = median(hosts).unwrap_or(HOST_FALLBACK / 8.0);
        // A rack without uplinks is the whole network: nothing is farther than its own switch.
        let uplink = median(uplinks).unwrap_or(host / OVERSUBSCRIPTION_FALLBACK).min(host);
        let disk = median(disks);
        Self { disk: disk.unwrap_or(DISK_FALLBACK), disk_known: disk.is_some(), host, uplink, network_known }
    }
}

/// A host's link and its part of its switch's usable uplinks, bits a second; the host's own where there are none.
fn links_of(snapshot: &Snapshot, node: NodeIdx) -> Option<(f64, f64)> {
    let network = snapshot.topology.network.as_ref()?;
    let host = snapshot.topology.vertex.get(node.at()).copied().flatten()?;
    let access = network.link_at(network.access_link(host)?).capacity.as_f64();
    let switch = network.attachment(host)?;
    let (mut below, mut up) = (0, 0.0);
    for (index, link) in network.links_of(switch) {
        if network.vertex_at(link.other(switch)).is_host() {
            below += 1;
        } else if network.is_usable(index) {
            up += link.capacity.as_f64();
        }
    }
    Some((access, if up > 0.0 { up / f64::from(below.max(1)) } else { access }))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
