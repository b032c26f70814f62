//! What the jobs' containers send each other over the emulated network: fluids at max-min fair rates, and what ports count.
//!
//! # The model
//! - A transfer goes by the route that the SDN controller installed for its two hosts, else by one of the shortest paths, which
//!   its hosts choose. Where there is none, it waits for one.
//! - Others' traffic takes its part of a link first; the rest is shared.
//! - What a machine that stops would send has arrived, as from somewhere else; what it would get is forgotten.
//!
//! Pure: time is an argument, seconds since the cluster began.

use super::cluster::Cluster;
use hintd_client::wire::v1;
use hintd_model::network::maxmin::{capacities, directed, directions};
use hintd_model::network::{Network, shortest_path_seeded};
use hintd_model::units::{AttemptId, Bytes, DirectedLinkIdx, FlowIdx, LinkIdx, VertexIdx};
use hintd_simulator::{Completion, FluidNetwork};
use std::collections::{BTreeMap, BTreeSet};

const BITS_PER_BYTE: f64 = 8.0;

/// Bytes on their way from one machine to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(u64);

/// A transfer whose last byte has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Whose.
    pub owner: AttemptId,
    /// Which.
    pub transfer: TransferId,
}

/// Sender and receiver, by their place among the machines.
type Pair = (usize, usize);

#[derive(Debug)]
struct Transfer {
    owner: AttemptId,
    pair: Pair,
    /// What its flow has to carry in all, and how much of that the links have counted.
    bytes: f64,
    counted: f64,
    path: Vec<DirectedLinkIdx>,
    /// None while there is no way.
    flow: Option<FlowIdx>,
}

/// All transfers under way, and the links' counters.
#[derive(Debug)]
pub struct Traffic {
    network: Network,
    /// By machine.
    hosts: Vec<VertexIdx>,
    machines: BTreeMap<String, usize>,
    stopped: BTreeSet<usize>,
    fluid: FluidNetwork,
    transfers: BTreeMap<TransferId, Transfer>,
    flows: BTreeMap<FlowIdx, TransferId>,
    /// What the controller installed.
    routes: BTreeMap<Pair, Vec<DirectedLinkIdx>>,
    /// bits/s that others take, by directed link.
    others: Vec<f64>,
    /// Bytes of transfers since the counters were read, by directed link.
    carried: Vec<f64>,
    /// Of all links between switches since the beginning.
    between_switches: f64,
    read_s: f64,
    next: u64,
    arrived: Vec<Arrived>,
}

impl Traffic {
    /// Nothing is under way on the cluster's network.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        let network = cluster.network.clone();
        let capacities = capacities(&network);
        let vertex = |host: &str| network.vertex(host).expect("every machine is a host of its network");
        Self {
            hosts: cluster.machines.iter().map(|machine| vertex(machine.host.as_str())).collect(),
            machines: cluster.machines.iter().zip(0..).map(|(machine, at)| (machine.host.to_string(), at)).collect(),
            stopped: BTreeSet::new(),
            others: vec![0.0; capacities.len()],
            carried: vec![0.0; capacities.len()],
            between_switches: 0.0,
            fluid: FluidNetwork::new(&capacities).expect("a network's capacities are numbers from 0"),
            transfers: BTreeMap::new(),
            flows: BTreeMap::new(),
            routes: BTreeMap::new(),
            read_s: 0.0,
            next: 0,
            arrived: Vec::new(),
            network,
        }
    }

    /// Starts a transfer. Of no bytes, on one machine, or from one that stopped, it has arrived at once.
    pub fn send(&mut self, now_s: f64, owner: AttemptId, pair: Pair, bytes: Bytes) -> TransferId {
        self.run(now_s);
        let id = TransferId(self.next);
        self.next += 1;
        if bytes == Bytes::ZERO || pair.0 == pair.1 || self.stopped.contains(&pair.0) {
            self.arrived.push(Arrived { owner, transfer: id });
            return id;
        }
        let transfer = Transfer { owner, pair, bytes: bytes.as_f64(), counted: 0.0, path: Vec::new(), flow: None };
        self.transfers.insert(id, transfer);
        self.start(id);
        id
    }

    /// Breaks a transfer off; one that has arrived is left.
    pub fn stop(&mut self, now_s: f64, id: TransferId) {
        self.run(now_s);
        self.halt(id);
        self.transfers.remove(&id);
    }

    /// Lets time pass, and takes what has arrived.
    pub fn advance(&mut self, now_s: f64) -> Vec<Arrived> {
        self.run(now_s);
        std::mem::take(&mut self.arrived)
    }

    /// When the next transfer arrives if nothing else happens, seconds.
    pub fn next_s(&mut self) -> Option<f64> {
        if self.arrived.is_empty() { self.fluid.next_completion_s() } else { Some(self.fluid.now_s()) }
    }

    fn run(&mut self, now_s: f64) {
        let mut ended: Vec<Completion> = Vec::new();
        self.fluid.advance(now_s, &mut ended);
        for Completion { flow, .. } in ended {
            let Some(id) = self.flows.remove(&flow) else { continue };
            let Some(mut transfer) = self.transfers.remove(&id) else { continue };
            let bytes = transfer.bytes;
            self.count(&mut transfer, bytes);
            self.arrived.push(Arrived { owner: transfer.owner, transfer: id });
        }
    }

    /// The links of a transfer have carried so many of its bytes.
    fn count(&mut self, transfer: &mut Transfer, sent: f64) {
        let more = (sent - transfer.counted).max(0.0);
        transfer.counted = sent;
        for &link in &transfer.path {
            self.carried[link.at()] += more;
            if !self.is_access(link) {
                self.between_switches += more;
            }
        }
    }

    fn is_access(&self, link: DirectedLinkIdx) -> bool {
        let link = self.network.link_at(LinkIdx(link.0 / 2));
        [link.a, link.b].into_iter().any(|end| self.network.vertex_at(end).is_host())
    }

    /// Takes a transfer's flow off; it has to carry what is left.
    fn halt(&mut self, id: TransferId) {
        let Some(mut transfer) = self.transfers.remove(&id) else { return };
        if let Some(flow) = transfer.flow.take() {
            let left = self.fluid.left_bytes(flow).unwrap_or(0.0);
            let sent = transfer.bytes - left;
            self.count(&mut transfer, sent);
            self.fluid.cancel(flow);
            self.flows.remove(&flow);
            (transfer.bytes, transfer.counted) = (left, 0.0);
        }
        self.transfers.insert(id, transfer);
    }

    fn start(&mut self, id: TransferId) {
        let Some(pair) = self.transfers.get(&id).map(|transfer| transfer.pair) else { return };
        let path = self.path(pair);
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        transfer.path = path.unwrap_or_default();
        // A flow has a byte left at least: it ends by itself.
        let bytes = Bytes((transfer.bytes.round() as u64).max(1));
        transfer.bytes = bytes.as_f64();
        transfer.flow = self.fluid.start(&transfer.path, bytes, 1).ok();
        self.flows.extend(transfer.flow.map(|flow| (flow, id)));
    }

    /// The installed route where its links are up, else a shortest path.
    fn path(&self, pair: Pair) -> Option<Vec<DirectedLinkIdx>> {
        let up = |path: &&Vec<DirectedLinkIdx>| path.iter().all(|link| self.network.is_usable(LinkIdx(link.0 / 2)));
        if let Some(route) = self.routes.get(&pair).filter(up) {
            return Some(route.clone());
        }
        let path = shortest_path_seeded(&self.network, self.hosts[pair.0], self.hosts[pair.1], 0)?;
        Some(directed(&self.network, &path))
    }

    /// Moves the transfers of these pairs whose path is another now; `None`: of all pairs.
    fn reroute(&mut self, pairs: Option<&BTreeSet<Pair>>) {
        let concerned = |transfer: &Transfer| pairs.is_none_or(|pairs| pairs.contains(&transfer.pair));
        let moves = |transfer: &Transfer| self.path(transfer.pair).as_ref() != Some(&transfer.path);
        let of = self.transfers.iter().filter(|(_, transfer)| concerned(transfer) && moves(transfer));
        let moved: Vec<TransferId> = of.map(|(&id, _)| id).collect();
        for id in moved {
            self.halt(id);
            self.start(id);
        }
    }

    /// The SDN controller installed what an update tells.
    pub fn install(&mut self, now_s: f64, update: &v1::RouteUpdate) {
        self.run(now_s);
        let mut changed = BTreeSet::new();
        if update.snapshot {
            changed.extend(std::mem::take(&mut self.routes).into_keys());
        }
        let removed: Vec<Pair> = update.removed.iter().filter_map(|pair| self.pair(pair)).collect();
        for pair in removed {
            self.routes.remove(&pair);
            changed.insert(pair);
        }
        for route in &update.routes {
            let Some(pair) = route.pair.as_ref().and_then(|pair| self.pair(pair)) else { continue };
            match self.links(pair.0, &route.links).filter(|links| !links.is_empty()) {
                Some(links) => drop(self.routes.insert(pair, links)),
                None => drop(self.routes.remove(&pair)),
            }
            changed.insert(pair);
        }
        self.reroute(Some(&changed));
    }

    fn pair(&self, pair: &v1::HostPair) -> Option<Pair> {
        self.machines.get(&pair.src).copied().zip(self.machines.get(&pair.dst).copied())
    }

    /// The directed links of a route from a machine.
    fn links(&self, from: usize, names: &[String]) -> Option<Vec<DirectedLinkIdx>> {
        let mut at = self.hosts[from];
        let mut links = Vec::with_capacity(names.len());
        for name in names {
            let index = self.network.link(name)?;
            let link = self.network.link_at(index);
            links.push(directions(index)[usize::from(link.a != at)]);
            at = link.other(at);
        }
        Some(links)
    }

    /// A link goes down or comes up: transfers find other ways, or wait.
    pub fn set_link(&mut self, now_s: f64, name: &str, up: bool) {
        self.run(now_s);
        let Some(link) = self.network.link(name) else { return };
        self.network.set_link(link, Some(up), None);
        self.set_capacities(link);
        self.reroute(None);
    }

    /// Others send so much over a link, bits/s each way.
    pub fn set_others(&mut self, now_s: f64, link: LinkIdx, bits_per_s: [f64; 2]) {
        self.run(now_s);
        for (direction, rate) in directions(link).into_iter().zip(bits_per_s) {
            self.others[direction.at()] = rate;
        }
        self.set_capacities(link);
    }

    fn capacity(&self, link: LinkIdx) -> f64 {
        if self.network.is_usable(link) { self.network.link_at(link).capacity.as_f64() } else { 0.0 }
    }

    fn set_capacities(&mut self, link: LinkIdx) {
        for direction in directions(link) {
            let left = (self.capacity(link) - self.others[direction.at()]).max(0.0);
            self.fluid.set_capacity(direction, left).expect("the link is the network's, its capacity a number from 0");
        }
    }

    /// A machine stops.
    pub fn stop_machine(&mut self, now_s: f64, machine: usize) {
        self.run(now_s);
        self.stopped.insert(machine);
        let with = |pair: Pair| pair.0 == machine || pair.1 == machine;
        let all = self.transfers.iter().filter(|(_, transfer)| with(transfer.pair));
        let ended: Vec<TransferId> = all.map(|(&id, _)| id).collect();
        for id in ended {
            self.halt(id);
            let Some(transfer) = self.transfers.remove(&id) else { continue };
            if transfer.pair.1 != machine {
                self.arrived.push(Arrived { owner: transfer.owner, transfer: id });
            }
        }
    }

    /// What each link that is up has carried since the last reading, as rates; nothing where no time has passed.
    pub fn read_counters(&mut self, now_s: f64) -> Vec<v1::LinkLoad> {
        self.run(now_s);
        let seconds = now_s - self.read_s;
        if seconds <= 0.0 {
            return Vec::new();
        }
        let ids: Vec<TransferId> = self.transfers.keys().copied().collect();
        for id in ids {
            let Some(mut transfer) = self.transfers.remove(&id) else { continue };
            if let Some(left) = transfer.flow.and_then(|flow| self.fluid.left_bytes(flow)) {
                let sent = transfer.bytes - left;
                self.count(&mut transfer, sent);
            }
            self.transfers.insert(id, transfer);
        }
        let loads = self.network.links().filter(|(index, _)| self.network.is_usable(*index)).map(|(index, link)| {
            let rates = directions(index).map(|direction| {
                let rate = self.carried[direction.at()] * BITS_PER_BYTE / seconds + self.others[direction.at()];
                rate.min(self.capacity(index)).round() as u64
            });
            v1::LinkLoad { id: link.name.to_string(), a_to_b_bits_per_s: rates[0], b_to_a_bits_per_s: rates[1] }
        });
        let loads = loads.collect();
        self.carried.fill(0.0);
        self.read_s = now_s;
        loads
    }

    /// Bytes of transfers that links between switches have carried, as counted so far.
    #[must_use]
    pub fn between_switches(&self) -> Bytes {
        Bytes(self.between_switches.round() as u64)
    }
}

#[cfg(test)]
mod tests;
