//! Clusters with middleboxes and chained requests: the four networks of 002, failures drawn.

use super::compiled::Settings;
use crate::problem::{EdgeProblem, PlaceProblem};
use crate::sample::{Sample, cluster};
use hintd_model::cluster::{EdgePattern, Resource, Topology};
use hintd_model::network::build::{self, BCubeSpec, BuiltNetwork, FatTreeSpec, TreeSpec, Vl2Spec};
use hintd_model::network::chains::{ChainEntry, Chains, ChainsDocument, sample};
use hintd_model::units::{BitsPerSec, BoxIdx, Bytes, GroupIdx, LinkIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// The containers of all tasks.
pub const UNIT: Resource = Resource::new(2_048, 1);

/// What an edge moves within a minute, with no bound that small clusters reach.
pub(crate) const SETTINGS: Settings = Settings { transfer_s: 60.0, port: 13_562, shortlist: 256, flows_max: 200_000 };

/// Tree of three levels, fat-tree, BCube, VL2.
pub fn networks() -> [BuiltNetwork; 4] {
    let pods = TreeSpec {
        racks: 4,
        hosts_per_rack: 4,
        racks_per_pod: Some(2),
        aggregations_per_pod: 2,
        ..TreeSpec::default()
    };
    [
        build::tree(&pods.with_edge_oversubscription(4.0)).expect("a tree of 16 hosts"),
        build::fat_tree(&FatTreeSpec::default()).expect("a fat-tree of 16 hosts"),
        build::bcube(&BCubeSpec::default()).expect("a BCube of 16 hosts"),
        build::vl2(&Vl2Spec { hosts_per_rack: 4, aggregation_ports: 4, intermediate_ports: 4, ..Vl2Spec::default() })
            .expect("a VL2 of 16 hosts"),
    ]
}

/// A cluster of one of the [`networks`] with Figure 6's boxes, one chain drawn for what maps send to reduces; nodes of
/// eight containers (002 §8.2), partly taken.
pub struct World {
    /// The cluster, with what failed.
    pub sample: Sample,
    /// Before anything failed.
    pub intact: Topology,
    /// Boxes and the chain.
    pub chains: Chains,
}

impl World {
    /// One of the networks with boxes of that capacity; the chain and what is taken are drawn.
    ///
    /// # Panics
    /// If a box finds no switch, which these networks rule out.
    #[must_use]
    pub fn new(built: &BuiltNetwork, capacity: BitsPerSec, seed: u64) -> Self {
        let sequence = sample::sequences(1, seed).remove(0);
        let chain =
            ChainEntry { name: "shuffle".into(), group: Some("reduce".into()), sequence, ..ChainEntry::default() };
        let boxes = sample::figure6(&built.network, capacity);
        let document = ChainsDocument { boxes, chains: vec![chain], ..ChainsDocument::default() };
        let chains = Chains::new(&document, Some(&built.network)).expect("boxes hang on its switches");
        let mut sample = cluster(built, UNIT.times(8), Bytes(1));
        sample.occupy(UNIT, 6, seed);
        let intact = sample.snapshot.topology.with_chains(Some(&chains));
        sample.snapshot.topology = Arc::new(intact.clone());
        Self { sample, intact, chains }
    }

    /// A fat-tree of 16 nodes of which five have room, for one to three containers each: few enough to try everything.
    pub fn small(capacity: BitsPerSec, seed: u64) -> Self {
        let mut world = Self::new(&networks()[1], capacity, seed);
        for (node, occupied) in (0..).zip(&mut world.sample.snapshot.occupied) {
            let open = (node + seed).is_multiple_of(3);
            *occupied = UNIT.times(if open { 5 + (seed / 3 + node) % 3 } else { 8 });
        }
        world
    }

    /// Fails links, switches and boxes, each with that probability in percent.
    pub fn fail(&mut self, percent: u32, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut network = (**self.intact.network.as_ref().expect("it was made with one")).clone();
        let mut links = Vec::new();
        for link in (0..network.link_rows()).map(LinkIdx::new) {
            if random.random_range(0..100) < percent {
                network.set_link(link, Some(false), None);
                links.push(link);
            }
        }
        let switches: Vec<_> = network.vertices().filter(|(_, v)| !v.is_host()).map(|(index, _)| index).collect();
        for switch in switches {
            if random.random_range(0..200) < percent && network.set_switch(switch, false) {
                links.extend(network.links_of(switch).map(|(index, _)| index));
            }
        }
        for index in (0..self.chains.boxes().len()).map(BoxIdx::new) {
            if random.random_range(0..100) < 2 * percent {
                self.chains.set_box(index, Some(false), None);
            }
        }
        let topology = self.intact.follow(Arc::new(network), &links, &self.sample.snapshot.statics);
        self.sample.snapshot.topology = Arc::new(topology.with_chains(Some(&self.chains)));
    }

    /// Maps that shuffle to reduces.
    pub fn job(&self, maps: u32, reduces: u32, shuffle: Bytes, seed: u64) -> PlaceProblem<'_> {
        let groups = vec![self.sample.group("map", maps, UNIT), self.sample.group("reduce", reduces, UNIT)];
        let edge = EdgeProblem { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes: shuffle };
        PlaceProblem { seed, ..self.sample.problem(groups, vec![edge], vec![]) }
    }
}
