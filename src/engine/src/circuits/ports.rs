//! The ports of the network's optical switch, by rack.

use super::messages::{PortView, WantedCircuits};
use hintd_model::cluster::{NodeStatics, Snapshot, Topology};
use hintd_model::network::optical::{OpticalSwitch, PortState, ports};
use hintd_model::units::{Bytes, LinkName, RackIdx, RackPath, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An optical switch with its ports, in one version of topology and nodes.
///
/// Ports of racks of which no node is known have rows of their own behind the cluster's racks: nothing is sent from or to
/// these, and a controller may speak of them.
#[derive(Debug)]
pub(super) struct Ports {
    topology: Arc<Topology>,
    statics: Arc<NodeStatics>,
    /// Its circuits are those that are wanted, or held by stuck ports.
    pub(super) switch: OpticalSwitch,
    pub(super) name: Arc<str>,
    /// The network says that the whole switch is down.
    pub(super) down: bool,
    /// By row.
    links: Vec<Option<LinkName>>,
    /// By row.
    racks: Vec<RackPath>,
    rows: BTreeMap<LinkName, RackIdx>,
    /// The least elephant threshold of any pair.
    pub(super) elephant: Bytes,
}

impl Ports {
    /// `None`: the network has no `optical` section, or none that makes sense.
    pub(super) fn new(snapshot: &Snapshot) -> Option<Self> {
        let network = snapshot.topology.network.as_ref()?;
        let optical = network.vertex(&network.optical()?.switch)?;
        let owners = owners(snapshot);
        let mut racks: Vec<RackPath> = snapshot.statics.racks.clone();
        let (mut links, mut rows) = (vec![None; racks.len()], BTreeMap::new());
        let (mut row_of, mut taken, mut rates) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for port in ports(network, optical).0 {
            // A rack has one port: where it has several switches, the first counts.
            let rack = owners.get(&port.rack_switch).copied().filter(|&rack| taken.insert(rack));
            let row = rack.unwrap_or_else(|| {
                racks.push(RackPath(Arc::clone(&network.vertex_at(port.rack_switch).name)));
                links.push(None);
                RackIdx::new(racks.len() - 1)
            });
            let link = &network.link_at(port.link).name;
            links[row.at()] = Some(link.clone());
            rows.insert(link.clone(), row);
            rates.push((port.bits_per_s, row));
            row_of.insert(port.rack_switch, row);
        }
        let switch = OpticalSwitch::new(network, racks.len(), &|vertex| row_of.get(&vertex).copied()).ok()??;
        // A circuit is as fast as the slower of its ports: the least threshold is that of the slowest with any other.
        rates.sort_unstable();
        let elephant = match rates[..] {
            [(_, slowest), (_, other), ..] => switch.elephant(slowest, other),
            _ => None,
        };
        let elephant = elephant.unwrap_or(Bytes(u64::MAX));
        let (topology, statics) = (Arc::clone(&snapshot.topology), Arc::clone(&snapshot.statics));
        let (name, down) = (Arc::clone(&network.vertex_at(optical).name), !network.switch_up(optical));
        Some(Self { topology, statics, switch, name, down, links, racks, rows, elephant })
    }

    /// Whether they were made of these.
    pub(super) fn are_of(&self, snapshot: &Snapshot) -> bool {
        Arc::ptr_eq(&self.topology, &snapshot.topology) && Arc::ptr_eq(&self.statics, &snapshot.statics)
    }

    /// Sets how ports are, and which circuits there are: what was set where a port is stuck, else what was wanted.
    pub(super) fn set(
        &mut self,
        faults: &BTreeMap<LinkName, (PortState, Arc<str>)>,
        set: &[(LinkName, LinkName)],
        wanted: &[(RackIdx, RackIdx)],
    ) {
        for (link, &row) in &self.rows {
            let state = faults.get(link).map_or(PortState::Works, |(state, _)| *state);
            self.switch.set_failed(row, self.down || state == PortState::Failed);
            self.switch.set_stuck(row, state == PortState::Stuck);
        }
        let stuck = |row: RackIdx| self.switch.port(row) == Some(PortState::Stuck);
        let held = self.pairs(set).into_iter().filter(|&(from, to)| stuck(from) || stuck(to));
        let free = wanted.iter().copied().filter(|&(from, to)| !stuck(from) && !stuck(to));
        let circuits: Vec<(RackIdx, RackIdx)> = held.chain(free).collect();
        self.switch.assume(circuits);
    }

    /// Circuits by row; those of ports that are not there are left out.
    pub(super) fn pairs(&self, circuits: &[(LinkName, LinkName)]) -> Vec<(RackIdx, RackIdx)> {
        let row = |link: &LinkName| self.rows.get(link).copied();
        circuits.iter().filter_map(|(input, output)| Some((row(input)?, row(output)?))).collect()
    }

    /// The circuits of a configuration by row.
    pub(super) fn wanted(&self, wanted: &WantedCircuits) -> Vec<(RackIdx, RackIdx)> {
        let names = wanted.circuits.iter().map(|circuit| (circuit.input.clone(), circuit.output.clone()));
        self.pairs(&names.collect::<Vec<_>>())
    }

    pub(super) fn has(&self, link: &LinkName) -> bool {
        self.rows.contains_key(link)
    }

    pub(super) fn link(&self, row: RackIdx) -> Option<&LinkName> {
        self.links.get(row.at())?.as_ref()
    }

    pub(super) fn rack(&self, row: RackIdx) -> &RackPath {
        &self.racks[row.at()]
    }

    /// From so many bytes on a burst is an elephant; where there can never be a circuit, from the least of all pairs.
    pub(super) fn threshold(&self, from: RackIdx, to: RackIdx) -> Bytes {
        self.switch.elephant(from, to).unwrap_or(self.elephant)
    }

    /// Why a pair can't be given a circuit; `None`: it can.
    pub(super) fn bar(&self, from: RackIdx, to: RackIdx) -> Option<&'static str> {
        if self.down {
            return Some("switch_down");
        }
        let ends = [self.switch.port(from), self.switch.port(to)];
        let any = |state| ends.contains(&state);
        if any(None) {
            Some("no_port")
        } else if any(Some(PortState::Failed)) {
            Some("port_failed")
        } else if any(Some(PortState::Stuck)) && self.switch.circuit(from) != Some(to) {
            Some("port_stuck")
        } else {
            None
        }
    }

    /// Racks of the cluster with nodes and without a port.
    pub(super) fn without_port(&self) -> u64 {
        let racks = self.links.iter().zip(&self.statics.members);
        racks.filter(|(link, nodes)| link.is_none() && !nodes.is_empty()).count() as u64
    }

    pub(super) fn views(&self, faults: &BTreeMap<LinkName, (PortState, Arc<str>)>) -> Vec<PortView> {
        let view = |(link, rack): (&Option<LinkName>, &RackPath)| {
            let port = link.clone()?;
            let (state, reason) = match self.down {
                true => (PortState::Failed, Arc::from("the switch is down")),
                false => faults.get(&port).cloned().unwrap_or_default(),
            };
            Some(PortView { port, rack: rack.clone(), state, reason })
        };
        self.links.iter().zip(&self.racks).filter_map(view).collect()
    }
}

/// The rack of each switch that nodes hang on: that of the first of them.
fn owners(snapshot: &Snapshot) -> BTreeMap<VertexIdx, RackIdx> {
    let mut owners = BTreeMap::new();
    let Some(network) = &snapshot.topology.network else { return owners };
    for (vertex, &rack) in snapshot.topology.vertex.iter().zip(&snapshot.statics.rack) {
        let Some(host) = *vertex else { continue };
        // Whether its links are up or not: a rack's port is no other's because of that.
        let switches = network.links_of(host).map(|(_, link)| link.other(host));
        for switch in switches.filter(|&far| !network.vertex_at(far).is_host()) {
            owners.entry(switch).or_insert(rack);
        }
    }
    owners
}
