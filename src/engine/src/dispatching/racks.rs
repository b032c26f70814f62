//! How busy racks are: the use of the links that lead up from the switches their nodes hang on.
//!
//! Counters of the SDN come first, as long as they are fresh. Where there are none, the model of running flows stands in;
//! where that knows nothing either, nothing is told and policies do without.

use crate::flows::uses::{LoadSource, Modelled};
use hintd_model::cluster::{LinkLoad, Snapshot, Topology};
use hintd_model::network::maxmin::directions;
use hintd_model::network::{Link, Network};
use hintd_model::units::{LinkIdx, LinkName, Micros, NodeIdx, RackIdx, Timestamp, VertexIdx};
use hintd_policy::IndexedFlows;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change that is told: 1 % of the capacity.
const STEP: u32 = 10;
/// Crossing one of these is always told: congestion begins and ends there.
const BOUNDS: [u32; 2] = [750, 800];
/// The model is asked at most so often.
const MODEL_EVERY: Micros = Micros::from_secs(1);
/// Pairs of hosts beyond which the model takes too long for the engine's thread (some milliseconds).
const MODEL_PAIRS_MAX: usize = 5_000;

/// A link up, and whether its first end is the lower one.
type Uplink = (LinkIdx, bool);
/// By rack.
type Uplinks = BTreeMap<RackIdx, Vec<Uplink>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RackUses {
    /// Uplinks of each rack in this topology.
    uplinks: Option<(Arc<Topology>, Uplinks)>,
    /// What was looked at last.
    loads: Option<Arc<BTreeMap<LinkName, LinkLoad>>>,
    flows: Option<Arc<IndexedFlows>>,
    modelled_at: Timestamp,
    /// Where the uses are from; `None`: nothing is known.
    source: Option<LoadSource>,
    /// Per mille, as policies were told.
    told: BTreeMap<RackIdx, u32>,
}

impl RackUses {
    /// What policies were told.
    pub(super) fn told(&self) -> Vec<(RackIdx, u32)> {
        self.told.iter().map(|(&rack, &use_)| (rack, use_)).collect()
    }

    /// What an answer says of where congestion is known from; `None`: from counters.
    pub(super) const fn degraded(&self) -> Option<&'static str> {
        match self.source {
            Some(LoadSource::Measured) => None,
            Some(LoadSource::Modelled) => Some("link_loads_modelled"),
            None => Some("no_link_stats"),
        }
    }

    /// What changed since the last look, to be told; `fresh`: the counters are.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot,
        flows: &Arc<IndexedFlows>,
        fresh: bool,
        now: Timestamp,
    ) -> Vec<(RackIdx, u32)> {
        let Some(network) = snapshot.topology.network.as_deref() else { return self.none() };
        let moved = self.uplinks.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, &snapshot.topology));
        if moved {
            self.uplinks = Some((Arc::clone(&snapshot.topology), uplinks(snapshot, network)));
        }
        let measured = fresh && !snapshot.link_loads.is_empty();
        let uses = if measured {
            let same = self.loads.as_ref().is_some_and(|known| Arc::ptr_eq(known, &snapshot.link_loads));
            if same && !moved && self.source == Some(LoadSource::Measured) {
                return Vec::new();
            }
            self.loads = Some(Arc::clone(&snapshot.link_loads));
            self.uses(network, |link, _| {
                let load = snapshot.link_loads.get(&link.name);
                load.map_or([0.0; 2], |load| [load.a_to_b.as_f64(), load.b_to_a.as_f64()])
            })
        } else {
            if flows.routes.is_empty() || flows.routes.len() > MODEL_PAIRS_MAX {
                return self.none();
            }
            let same = self.flows.as_ref().is_some_and(|known| Arc::ptr_eq(known, flows));
            let soon = now.since(self.modelled_at) < MODEL_EVERY;
            if self.source == Some(LoadSource::Modelled) && !moved && (same || soon) {
                return Vec::new();
            }
            (self.flows, self.modelled_at) = (Some(Arc::clone(flows)), now);
            let model = Modelled::new(network, &flows.routes);
            self.uses(network, |_, index| directions(index).map(|direction| model.load(direction)))
        };
        self.source = Some(if measured { LoadSource::Measured } else { LoadSource::Modelled });
        self.news(uses)
    }

    /// Nothing is known: a rack that was busy is not any more, as far as anybody can tell.
    fn none(&mut self) -> Vec<(RackIdx, u32)> {
        self.source = None;
        let told = std::mem::take(&mut self.told);
        told.into_iter().filter(|(_, was)| *was > 0).map(|(rack, _)| (rack, 0)).collect()
    }

    /// Per mille by rack: the busier direction's load on all uplinks ÷ their capacity. Links that are down carry nothing.
    fn uses(&self, network: &Network, load: impl Fn(&Link, LinkIdx) -> [f64; 2]) -> BTreeMap<RackIdx, u32> {
        let (_, uplinks) = self.uplinks.as_ref().expect("they are found before they are used");
        let of_rack = |links: &Vec<Uplink>| {
            let (mut up, mut down, mut capacity) = (0.0, 0.0, 0.0);
            for &(index, rises) in links.iter().filter(|(index, _)| network.is_usable(*index)) {
                let link = network.link_at(index);
                let [forth, back] = load(link, index);
                up += if rises { forth } else { back };
                down += if rises { back } else { forth };
                capacity += link.capacity.as_f64();
            }
            let share = if capacity > 0.0 { f64::max(up, down) / capacity } else { 0.0 };
            (share.clamp(0.0, 1.0) * 1_000.0).round() as u32
        };
        uplinks.iter().map(|(&rack, links)| (rack, of_rack(links))).collect()
    }

    fn news(&mut self, uses: BTreeMap<RackIdx, u32>) -> Vec<(RackIdx, u32)> {
        let mut news: Vec<(RackIdx, u32)> = Vec::new();
        for (rack, now) in uses {
            let was = self.told.get(&rack).copied().unwrap_or(0);
            let crossed = BOUNDS.iter().any(|bound| (was < *bound) != (now < *bound));
            if now.abs_diff(was) >= STEP || crossed {
                news.push((rack, now));
                self.told.insert(rack, now);
            }
        }
        news
    }
}

/// By rack: links from the switches that its nodes hang on to higher ones; of a switch without any, to other switches.
fn uplinks(snapshot: &Snapshot, network: &Network) -> Uplinks {
    let topology = &snapshot.topology;
    let mut switches: BTreeMap<RackIdx, BTreeSet<VertexIdx>> = BTreeMap::new();
    for node in (0..snapshot.nodes()).map(NodeIdx::new) {
        let edge = topology.edge.get(node.at()).copied().flatten();
        if let Some(switch) = edge.and_then(|edge| topology.distances.switch_of(edge)) {
            switches.entry(snapshot.rack(node)).or_default().insert(switch);
        }
    }
    let of_switch = |&switch: &VertexIdx| {
        let height = |vertex: VertexIdx| network.vertex_at(vertex).tier().map(hintd_model::network::Tier::height);
        let among = network.links_of(switch).filter(|(_, link)| !network.vertex_at(link.other(switch)).is_host());
        let among: Vec<(Uplink, bool)> = among
            .map(|(index, link)| ((index, link.a == switch), height(link.other(switch)) > height(switch)))
            .collect();
        let rising = among.iter().any(|(_, higher)| *higher);
        among.into_iter().filter(move |(_, higher)| *higher || !rising).map(|(link, _)| link)
    };
    switches.into_iter().map(|(rack, switches)| (rack, switches.iter().flat_map(of_switch).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(per_mille: &[u32]) -> BTreeMap<RackIdx, u32> {
        (0..).map(RackIdx).zip(per_mille.iter().copied()).collect()
    }

    #[test]
    fn small_changes_are_told_only_where_congestion_begins_or_ends() {
        let mut racks = RackUses::default();
        assert_eq!(racks.news(busy(&[9, 795, 0])), [(RackIdx(1), 795)]);
        assert_eq!(racks.news(busy(&[15, 799, 0])), [(RackIdx(0), 15)]);
        assert_eq!(racks.news(busy(&[15, 801, 0])), [(RackIdx(1), 801)]);
        assert_eq!(racks.news(busy(&[15, 795, 0])), [(RackIdx(1), 795)]);
        assert_eq!(racks.none(), [(RackIdx(0), 0), (RackIdx(1), 0)]);
        assert_eq!((racks.none(), racks.degraded()), (vec![], Some("no_link_stats")));
    }
}
