//! Flows under way, whose they are, and their ways: what shuffle, reads and background share.

mod bursts;

use super::circuits::{Circuits, Ride};
use super::links::{Ends, Links, Way};
use super::{FabricError, TierNow};
use crate::fluid::{Completion, FluidNetwork};
use hintd_model::units::{BitsPerSec, Bytes, FlowIdx, LinkIdx, LinkName, RackIdx};

/// No wire.
pub(super) const NO_WIRE: u32 = u32::MAX;

/// Bytes of a stream without end; one that ends all the same is started again.
const ENDLESS: Bytes = Bytes(u64::MAX);

/// Whose a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A batch's fetch from a source of its job, to its members on one node where they are told apart.
    Fetch { batch: u32, source: u32, group: u32 },
    /// A map's input.
    Read(u32),
    /// Traffic of others.
    Background,
}

/// A flow under way. Its number stays while its flow is replaced by another: on another way, or of another size.
#[derive(Debug, Clone)]
struct Wire {
    owner: Owner,
    ends: Ends,
    way: Way,
    members: u32,
    cap_bits_per_s: f64,
    /// `None`: the number is free.
    flow: Option<FlowIdx>,
    /// Of a burst, where there are circuits.
    ride: Option<Ride>,
    /// What each member had left when it was laid, or last counted; on circuits.
    counted: f64,
}

/// All flows.
#[derive(Debug, Clone)]
pub(super) struct ActiveFlows {
    pub(super) links: Links,
    net: FluidNetwork,
    wire: f64,
    pub(super) circuits: Option<Circuits>,
    wires: Vec<Wire>,
    free: Vec<u32>,
    /// Wire by flow.
    by_flow: Vec<u32>,
    /// Wires that end some day.
    ending: usize,
    /// Used again by every step.
    ended: Vec<Completion>,
}

impl ActiveFlows {
    /// `wire`: bytes that links carry for each byte of a flow.
    pub(super) fn new(links: Links, tolerance: f64, wire: f64) -> Result<Self, FabricError> {
        let usable: Vec<f64> = links.capacities().into_iter().map(|bits_per_s| bits_per_s / wire).collect();
        let net = FluidNetwork::new(&usable)?.with_tolerance(tolerance);
        let (wires, free, by_flow, ended) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let circuits = links.optical_switch()?.map(Circuits::new);
        Ok(Self { links, net, wire, circuits, wires, free, by_flow, ending: 0, ended })
    }

    /// Starts `members` like flows of `bytes` each, each taking at most the cap.
    pub(super) fn start(&mut self, owner: Owner, ends: Ends, bytes: Bytes, members: u32, cap_bits_per_s: f64) -> u32 {
        let wire = self.free.pop().unwrap_or(self.wires.len() as u32);
        let (way, flow, ride, counted) = (Way::new(), None, None, 0.0);
        let fresh = Wire { owner, ends, way, members, cap_bits_per_s, flow, ride, counted };
        if wire as usize == self.wires.len() {
            self.wires.push(fresh);
        } else {
            self.wires[wire as usize] = fresh;
        }
        self.ending += usize::from(owner != Owner::Background);
        self.lay(wire, bytes);
        wire
    }

    /// A stream without end.
    pub(super) fn stream(&mut self, ends: Ends, members: u32, cap_bits_per_s: f64) -> u32 {
        self.start(Owner::Background, ends, ENDLESS, members, cap_bits_per_s)
    }

    fn lay(&mut self, wire: u32, bytes: Bytes) {
        let Wire { ends, members, cap_bits_per_s, .. } = self.wires[wire as usize];
        let way = self.links.way(ends);
        let flow = self.net.start_capped(&way, bytes, members, cap_bits_per_s);
        let flow = flow.expect("ways are over known links, each once, and there is a member");
        if flow.at() >= self.by_flow.len() {
            self.by_flow.resize(flow.at() + 1, NO_WIRE);
        }
        self.by_flow[flow.at()] = wire;
        let of = &mut self.wires[wire as usize];
        (of.flow, of.way, of.counted) = (Some(flow), way, bytes.as_f64());
    }

    /// Notes whose burst a flow is of.
    pub(super) fn set_ride(&mut self, wire: u32, ride: Ride) {
        self.wires[wire as usize].ride = Some(ride);
    }

    pub(super) fn ride(&self, wire: u32) -> Option<Ride> {
        self.wires[wire as usize].ride
    }

    /// Goes on another way, each member taking at most the cap.
    pub(super) fn turn_to(&mut self, wire: u32, ends: Ends, cap_bits_per_s: f64) {
        self.count_circuit(wire);
        let of = &mut self.wires[wire as usize];
        (of.ends, of.cap_bits_per_s) = (ends, cap_bits_per_s);
        self.replace(wire, 1.0);
    }

    /// What a flow has left, all members together, bytes.
    pub(super) fn left_bytes(&mut self, wire: u32) -> f64 {
        let Wire { flow, members, .. } = self.wires[wire as usize];
        flow.and_then(|flow| self.net.left_bytes(flow)).unwrap_or(0.0) * f64::from(members)
    }

    /// Counts what circuits have carried of a flow.
    fn count_circuit(&mut self, wire: u32) {
        let Wire { ends: Ends::Circuit(..), flow, members, counted, .. } = self.wires[wire as usize] else { return };
        let left = flow.and_then(|flow| self.net.left_bytes(flow)).unwrap_or(0.0);
        self.wires[wire as usize].counted = left;
        if let Some(circuits) = &mut self.circuits {
            circuits.carry((counted - left).max(0.0) * f64::from(members));
        }
    }

    /// What a circuit carries from now on.
    pub(super) fn set_circuit(&mut self, from: RackIdx, to: RackIdx, bits_per_s: BitsPerSec) {
        let link = self.links.circuit(from, to);
        self.net
            .set_capacity(link, bits_per_s.as_f64() / self.wire)
            .expect("circuits are links with capacities of the network's");
    }

    /// What moves over a circuit now, bits/s.
    pub(super) fn circuit_load(&mut self, from: RackIdx, to: RackIdx) -> f64 {
        let link = self.links.circuit(from, to);
        self.net.load(link)
    }

    /// Breaks a flow off.
    pub(super) fn stop(&mut self, wire: u32) {
        self.count_circuit(wire);
        if let Some(flow) = self.wires[wire as usize].flow.take() {
            self.net.cancel(flow);
            self.give_back(wire);
        }
    }

    fn give_back(&mut self, wire: u32) {
        self.ending -= usize::from(self.wires[wire as usize].owner != Owner::Background);
        if let (Some(ride), Some(circuits)) = (self.wires[wire as usize].ride.take(), &mut self.circuits) {
            circuits.leave(ride.pair, wire);
        }
        self.free.push(wire);
    }

    /// Goes on with other members, what each has left staying the same.
    pub(super) fn set_members(&mut self, wire: u32, members: u32) {
        self.count_circuit(wire);
        self.wires[wire as usize].members = members;
        self.replace(wire, 1.0);
    }

    /// Goes on with a share of what is left.
    pub(super) fn shorten(&mut self, wire: u32, share: f64) {
        self.count_circuit(wire);
        self.replace(wire, share);
    }

    /// What is left goes on as a new flow, on the way of now.
    fn replace(&mut self, wire: u32, share: f64) {
        if let Some(flow) = self.wires[wire as usize].flow.take() {
            let left = self.net.left_bytes(flow).unwrap_or(0.0) * share;
            self.net.cancel(flow);
            let endless = self.wires[wire as usize].owner == Owner::Background;
            self.lay(wire, if endless { ENDLESS } else { Bytes(left.ceil() as u64) });
        }
    }

    /// When the next flow ends if nothing else happens, seconds.
    pub(super) fn next_s(&mut self) -> Option<f64> {
        if self.ending == 0 { None } else { self.net.next_completion_s() }
    }

    /// Lets time pass and tells whose flows ended, in time's order. Their wires are free.
    pub(super) fn advance(&mut self, to_s: f64, owners: &mut Vec<Owner>) {
        let mut ended = std::mem::take(&mut self.ended);
        self.net.advance(to_s, &mut ended);
        for Completion { flow, .. } in ended.drain(..) {
            let wire = self.by_flow[flow.at()];
            self.wires[wire as usize].flow = None;
            self.count_circuit(wire);
            match self.wires[wire as usize].owner {
                Owner::Background => self.lay(wire, ENDLESS),
                owner => {
                    self.give_back(wire);
                    owners.push(owner);
                }
            }
        }
        self.ended = ended;
    }

    /// The moment reached, seconds.
    pub(super) const fn now_s(&self) -> f64 {
        self.net.now_s()
    }

    /// Takes a link up or down. Flows that had no way, or whose way is broken, go on where there is one now, else they
    /// stand still; nothing else moves. Says whether there is such a link.
    pub(super) fn set_link(&mut self, link: &LinkName, up: bool) -> bool {
        if self.links.number(link.as_str()).is_some_and(|port| self.set_port(port, up)) {
            return true;
        }
        let Some(changed) = self.links.set(link.as_str(), up) else { return false };
        for &(link, bits_per_s) in &changed {
            self.net
                .set_capacity(link, bits_per_s / self.wire)
                .expect("links and their capacities come from one network");
        }
        for wire in 0..self.wires.len() as u32 {
            if matches!(self.wires[wire as usize].ends, Ends::Nodes(..)) && self.stands(wire) {
                self.replace(wire, 1.0);
            }
        }
        true
    }

    /// As [`Links::rack_use`], now.
    pub(super) fn rack_use(&mut self, rack: RackIdx) -> f64 {
        let Self { links, net, wire, .. } = self;
        links.rack_use(rack, &mut |link| net.load(link) * *wire)
    }

    /// As [`Links::loads`], now.
    pub(super) fn loads(&mut self) -> Vec<(LinkIdx, [f64; 2])> {
        let Self { links, net, wire, .. } = self;
        links.loads(&mut |link| net.load(link) * *wire)
    }

    /// As [`Links::name`].
    pub(super) fn link_name(&self, link: LinkIdx) -> &LinkName {
        self.links.name(link)
    }

    /// As [`Links::tiers`], now.
    pub(super) fn tiers(&mut self) -> Vec<TierNow> {
        let Self { links, net, wire, .. } = self;
        links.tiers(&mut |link| net.load(link) * *wire)
    }

    /// Flows that wait for a link or node to come back.
    pub(super) fn stalled(&mut self) -> usize {
        (0..self.wires.len() as u32).filter(|&wire| self.stands(wire)).count()
    }

    /// Whether the flow's way has a link without capacity.
    fn stands(&mut self, wire: u32) -> bool {
        let Wire { flow, way, .. } = &self.wires[wire as usize];
        let rates = self.net.rates();
        flow.is_some() && way.iter().any(|&link| rates.capacity(link) == 0.0)
    }

    pub(super) const fn events(&self) -> u64 {
        self.net.events()
    }

    /// Flows under way.
    pub(super) const fn ending(&self) -> usize {
        self.ending
    }
}
