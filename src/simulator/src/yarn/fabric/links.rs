//! The links that traffic passes in either grain: which there are, what they carry, the way between two ends.

use super::draw::draw;
use super::{FabricError, TierNow};
use crate::settings::FlowGrain;
use hintd_model::cluster::Snapshot;
use hintd_model::network::maxmin::{MOST_BITS_PER_S, capacities, directed, directions};
use hintd_model::network::optical::OpticalSwitch;
use hintd_model::network::{Network, Tier, Vertex, shortest_path_seeded};
use hintd_model::units::{DirectedLinkIdx, LinkIdx, LinkName, NodeIdx, RackIdx, VertexIdx};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// Links passed.
pub(super) type Way = SmallVec<[DirectedLinkIdx; 6]>;

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Grain `racks`: from one rack to another.
    Racks(RackIdx, RackIdx),
    /// Grain `racks`: from one node to another rack.
    NodeToRack(NodeIdx, RackIdx),
    /// Grain `racks`: from anywhere in the node's rack to the node.
    Into(NodeIdx),
    /// Grain `racks`: from one node of the rack to another.
    NodeInto(NodeIdx, NodeIdx),
    /// Grain `racks`: over the circuit from one rack to another, from anywhere or from one node.
    Circuit(Option<NodeIdx>, RackIdx, RackIdx),
    /// Grain `nodes`.
    Nodes(NodeIdx, NodeIdx),
}

/// The links of a grain.
///
/// Grain `racks`: rack r's uplink is link 2r, its downlink 2r + 1, node n's NIC downwards 2·racks + n, upwards
/// 2·racks + nodes + n; where circuits are chosen, that from rack f to rack t is 2·(racks + nodes) + f·racks + t, and of
/// capacity 0 until it is set. Grain `nodes`: the two directions of each of the network's links. In both, one more link
/// of capacity 0 carries what has no way.
#[derive(Debug, Clone)]
pub(super) struct Links {
    grain: FlowGrain,
    network: Network,
    seed: u64,
    /// By node.
    rack: Vec<RackIdx>,
    /// By node.
    vertex: Vec<VertexIdx>,
    /// By node.
    access: Vec<LinkIdx>,
    /// By rack: links from its switches to others, and whether the link's end `a` is the rack's.
    uplinks: Vec<Vec<(LinkIdx, bool)>>,
    /// Ways found, by sender and receiver; grain `nodes`.
    ways: Vec<Vec<Option<Way>>>,
    count: usize,
}

impl Links {
    pub(super) fn new(cluster: &Snapshot, grain: FlowGrain, seed: u64) -> Result<Self, FabricError> {
        let statics = &cluster.statics;
        let racks = statics.racks.len();
        let Some(network) = cluster.topology.network.as_deref().cloned() else {
            let rack = statics.racks.first().map_or_else(|| "".into(), |rack| rack.0.clone());
            return Err(FabricError::NoNetwork { rack });
        };
        let mut links = Self {
            grain,
            seed,
            rack: statics.rack.clone(),
            vertex: Vec::new(),
            access: Vec::new(),
            uplinks: vec![Vec::new(); racks],
            ways: vec![Vec::new(); if grain == FlowGrain::Nodes { statics.len() } else { 0 }],
            count: match grain {
                FlowGrain::Racks => 2 * (racks + statics.len()) + network.optical().map_or(0, |_| racks * racks),
                FlowGrain::Nodes => 2 * network.link_rows(),
            },
            network,
        };
        for node in statics.indexes() {
            let no_nic = || FabricError::NoNic { host: cluster.host(node).clone() };
            let vertex = cluster.topology.vertex[node.at()].ok_or_else(no_nic)?;
            links.vertex.push(vertex);
            links.access.push(nic(&links.network, vertex).ok_or_else(no_nic)?);
        }
        links.find_uplinks(cluster)?;
        Ok(links)
    }

    /// Links from a rack's attachment switches to other switches. Between two racks there has to be at least one, and
    /// a switch may be of one rack only: else the rack's use would be another's.
    fn find_uplinks(&mut self, cluster: &Snapshot) -> Result<(), FabricError> {
        let mut owner: BTreeMap<VertexIdx, RackIdx> = BTreeMap::new();
        for (node, &access) in self.access.iter().enumerate() {
            let (rack, switch) = (self.rack[node], self.network.link_at(access).other(self.vertex[node]));
            let other = *owner.entry(switch).or_insert(rack);
            if other != rack && self.grain == FlowGrain::Racks {
                let [first, second] = [other, rack].map(|rack| cluster.statics.racks[rack.at()].0.clone());
                let switch = self.network.vertex_at(switch).name.clone();
                return Err(FabricError::SharedSwitch { switch, first, second });
            }
        }
        for (&switch, &rack) in &owner {
            let up = self.network.links_of(switch).filter(|(_, link)| {
                let far = link.other(switch);
                let kind = self.network.vertex_at(far);
                !kind.is_host() && kind.tier() != Some(Tier::Optical) && owner.get(&far) != Some(&rack)
            });
            self.uplinks[rack.at()].extend(up.map(|(index, link)| (index, link.a == switch)));
        }
        let with_nodes = |rack: &usize| !cluster.statics.members[*rack].is_empty();
        let lonely = (0..self.uplinks.len()).filter(with_nodes).find(|&rack| self.uplinks[rack].is_empty());
        match lonely {
            Some(rack) if (0..self.uplinks.len()).filter(with_nodes).count() > 1 => {
                Err(FabricError::NoUplink { rack: cluster.statics.racks[rack].0.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Capacities of all links, bits/s.
    pub(super) fn capacities(&self) -> Vec<f64> {
        let mut bits_per_s = match self.grain {
            FlowGrain::Nodes => capacities(&self.network),
            FlowGrain::Racks => {
                let racks = (0..self.uplinks.len()).flat_map(|rack| [self.uplink_bits_per_s(rack); 2]);
                let nics = self.access.iter().map(|&link| self.usable_bits_per_s(link));
                let dark = self.circuits_from()..self.count;
                racks.chain(nics.clone()).chain(nics).chain(dark.map(|_| 0.0)).collect()
            }
        };
        bits_per_s.push(0.0);
        bits_per_s
    }

    fn uplink_bits_per_s(&self, rack: usize) -> f64 {
        self.uplinks[rack].iter().map(|&(link, _)| self.usable_bits_per_s(link)).sum::<f64>().min(MOST_BITS_PER_S)
    }

    fn usable_bits_per_s(&self, link: LinkIdx) -> f64 {
        let usable = self.network.is_usable(link);
        if usable { self.network.link_at(link).capacity.as_f64().min(MOST_BITS_PER_S) } else { 0.0 }
    }

    pub(super) const fn grain(&self) -> FlowGrain {
        self.grain
    }

    pub(super) fn rack(&self, node: NodeIdx) -> RackIdx {
        self.rack[node.at()]
    }

    pub(super) fn racks(&self) -> usize {
        self.uplinks.len()
    }

    pub(super) fn nodes(&self) -> usize {
        self.rack.len()
    }

    /// Capacity of a node's NIC, up or down, bits/s: what a fetch's or read's own limit is made from.
    pub(super) fn nic_bits_per_s(&self, node: NodeIdx) -> f64 {
        self.network.link_at(self.access[node.at()]).capacity.as_f64()
    }

    /// The links between two ends; where there are none, the one that carries nothing.
    pub(super) fn way(&mut self, ends: Ends) -> Way {
        match ends {
            Ends::Racks(from, to) => smallvec![DirectedLinkIdx(2 * from.0), DirectedLinkIdx(2 * to.0 + 1)],
            Ends::NodeToRack(node, to) => {
                let from = self.rack(node);
                smallvec![self.nic_up(node), DirectedLinkIdx(2 * from.0), DirectedLinkIdx(2 * to.0 + 1)]
            }
            Ends::Into(node) => smallvec![self.nic_down(node)],
            Ends::NodeInto(from, to) => smallvec![self.nic_up(from), self.nic_down(to)],
            Ends::Circuit(sender, from, to) => {
                sender.map(|node| self.nic_up(node)).into_iter().chain([self.circuit(from, to)]).collect()
            }
            Ends::Nodes(from, to) => self.path(from, to),
        }
    }

    const fn circuits_from(&self) -> usize {
        2 * (self.uplinks.len() + self.rack.len())
    }

    /// The circuit from one rack to another.
    pub(super) const fn circuit(&self, from: RackIdx, to: RackIdx) -> DirectedLinkIdx {
        DirectedLinkIdx((self.circuits_from() + from.at() * self.uplinks.len() + to.at()) as u32)
    }

    /// The optical switch, where the network says how its circuits are chosen. Only grain `racks` knows circuits.
    pub(super) fn optical_switch(&self) -> Result<Option<OpticalSwitch>, FabricError> {
        if self.network.optical().is_some() && self.grain == FlowGrain::Nodes {
            return Err(FabricError::CircuitsByNode);
        }
        let mut owner = BTreeMap::new();
        for (node, &access) in self.access.iter().enumerate() {
            owner.insert(self.network.link_at(access).other(self.vertex[node]), self.rack[node]);
        }
        Ok(OpticalSwitch::new(&self.network, self.racks(), &|switch| owner.get(&switch).copied())?)
    }

    /// The link of that name.
    pub(super) fn number(&self, name: &str) -> Option<LinkIdx> {
        self.network.link(name)
    }

    const fn nic_down(&self, node: NodeIdx) -> DirectedLinkIdx {
        DirectedLinkIdx(2 * self.uplinks.len() as u32 + node.0)
    }

    const fn nic_up(&self, node: NodeIdx) -> DirectedLinkIdx {
        DirectedLinkIdx((2 * self.uplinks.len() + self.rack.len()) as u32 + node.0)
    }

    /// Equal-cost multipath: of all shortest paths one drawn by seed and pair.
    fn path(&mut self, from: NodeIdx, to: NodeIdx) -> Way {
        let nodes = self.nodes();
        let row = &mut self.ways[from.at()];
        if row.is_empty() {
            row.resize(nodes, None);
        }
        if let Some(way) = &row[to.at()] {
            return way.clone();
        }
        let seed = draw(self.seed, &[u64::from(from.0), u64::from(to.0)]);
        let path = shortest_path_seeded(&self.network, self.vertex[from.at()], self.vertex[to.at()], seed);
        let way: Way = match path {
            Some(path) => directed(&self.network, &path).into(),
            None => smallvec![self.nowhere()],
        };
        self.ways[from.at()][to.at()] = Some(way.clone());
        way
    }

    /// The link that carries nothing.
    pub(super) fn nowhere(&self) -> DirectedLinkIdx {
        DirectedLinkIdx::new(self.count)
    }

    /// Takes a link up or down and gives the links whose capacity is another now. `None`: the network has no such
    /// link. In grain `racks` a link above the racks' uplinks changes nothing.
    pub(super) fn set(&mut self, name: &str, up: bool) -> Option<Vec<(DirectedLinkIdx, f64)>> {
        let link = self.network.link(name)?;
        if !self.network.set_link(link, Some(up), None) {
            return Some(Vec::new());
        }
        self.ways.iter_mut().for_each(Vec::clear);
        let mut changed = Vec::new();
        match self.grain {
            FlowGrain::Nodes => changed.extend(directions(link).map(|way| (way, self.usable_bits_per_s(link)))),
            FlowGrain::Racks => {
                for rack in 0..self.racks() {
                    if self.uplinks[rack].iter().any(|&(of, _)| of == link) {
                        let bits_per_s = self.uplink_bits_per_s(rack);
                        changed.extend([0, 1].map(|way| (DirectedLinkIdx::new(2 * rack + way), bits_per_s)));
                    }
                }
                for node in (0..self.nodes()).filter(|&node| self.access[node] == link).map(NodeIdx::new) {
                    let bits_per_s = self.usable_bits_per_s(link);
                    changed.extend([self.nic_down(node), self.nic_up(node)].map(|nic| (nic, bits_per_s)));
                }
            }
        }
        Some(changed)
    }

    /// Larger share of a rack's capacity in use, of what leaves it and of what comes; `load` in bits/s.
    pub(super) fn rack_use(&self, rack: RackIdx, load: &mut dyn FnMut(DirectedLinkIdx) -> f64) -> f64 {
        let capacity = self.uplink_bits_per_s(rack.at());
        let [up, down] = match self.grain {
            FlowGrain::Racks => [0, 1].map(|way| load(DirectedLinkIdx(2 * rack.0 + way))),
            FlowGrain::Nodes => self.uplinks[rack.at()].iter().fold([0.0; 2], |sum, &(link, a_is_ours)| {
                let [from_a, from_b] = directions(link).map(&mut *load);
                let (up, down) = if a_is_ours { (from_a, from_b) } else { (from_b, from_a) };
                [sum[0] + up, sum[1] + down]
            }),
        };
        share(up.max(down), capacity)
    }

    /// What each link carries, bits/s by direction; `load` in bits/s. Grain `racks` knows racks' links and NICs only, and the links
    /// up from a rack share what it sends and gets by their capacity.
    pub(super) fn loads(&self, load: &mut dyn FnMut(DirectedLinkIdx) -> f64) -> Vec<(LinkIdx, [f64; 2])> {
        if self.grain == FlowGrain::Nodes {
            return self.network.links().map(|(link, _)| (link, directions(link).map(&mut *load))).collect();
        }
        let mut loads = Vec::new();
        for (rack, links) in self.uplinks.iter().enumerate() {
            let both = [0, 1].map(|way| load(DirectedLinkIdx::new(2 * rack + way)));
            let whole = self.uplink_bits_per_s(rack);
            for &(link, a_is_ours) in links {
                let [up, down] = both.map(|bits| bits * share(self.usable_bits_per_s(link), whole));
                loads.push((link, if a_is_ours { [up, down] } else { [down, up] }));
            }
        }
        for node in (0..self.nodes()).map(NodeIdx::new) {
            let (link, vertex) = (self.access[node.at()], self.vertex[node.at()]);
            let [up, down] = [self.nic_up(node), self.nic_down(node)].map(&mut *load);
            let a_is_host = self.network.link_at(link).a == vertex;
            loads.push((link, if a_is_host { [up, down] } else { [down, up] }));
        }
        loads
    }

    /// A link's name.
    pub(super) fn name(&self, link: LinkIdx) -> &LinkName {
        &self.network.link_at(link).name
    }

    /// Use by tier. Grain `racks` knows the racks' links only.
    pub(super) fn tiers(&self, load: &mut dyn FnMut(DirectedLinkIdx) -> f64) -> Vec<TierNow> {
        let mut tiers = [TierNow::of("host"), TierNow::of("rack"), TierNow::of("core")];
        match self.grain {
            FlowGrain::Racks => {
                for rack in 0..self.racks() {
                    let capacity = self.uplink_bits_per_s(rack);
                    for way in [0, 1] {
                        tiers[1].add(share(load(DirectedLinkIdx::new(2 * rack + way)), capacity));
                    }
                }
            }
            FlowGrain::Nodes => {
                let mut of_rack: Vec<LinkIdx> = self.uplinks.iter().flatten().map(|&(link, _)| link).collect();
                of_rack.sort_unstable();
                for (index, link) in self.network.links() {
                    let hosts = [link.a, link.b].map(|end| self.network.vertex_at(end)).into_iter();
                    let host = hosts.clone().any(Vertex::is_host);
                    let tier = if host { 0 } else { 1 + usize::from(of_rack.binary_search(&index).is_err()) };
                    let capacity = self.usable_bits_per_s(index);
                    directions(index).into_iter().for_each(|way| tiers[tier].add(share(load(way), capacity)));
                }
            }
        }
        tiers.into_iter().filter(|tier| tier.links > 0).collect()
    }
}

/// The link that carries a host's traffic; where none is usable, its first.
fn nic(network: &Network, host: VertexIdx) -> Option<LinkIdx> {
    let to_switches = network.links_of(host).filter(|(_, link)| !network.vertex_at(link.other(host)).is_host());
    network.access_link(host).or_else(|| to_switches.map(|(index, _)| index).min())
}

/// Of a link without capacity nothing is in use.
fn share(load: f64, capacity: f64) -> f64 {
    if capacity > 0.0 { load / capacity } else { 0.0 }
}
