//! Files, blocks and replicas as a NameNode keeps them, under HDFS's default block placement.

use super::cluster::Cluster;
use hintd_client::wire::v1;
use hintd_model::units::Bytes;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;

/// HDFS's default block size.
pub const BLOCK: Bytes = Bytes(128 << 20);

/// Block ids of HDFS start here (`SequentialBlockIdGenerator`).
const FIRST_BLOCK: u64 = 1 << 30;

/// The seed's stream for block placement.
const STREAM: u64 = 1;

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockAt {
    /// HDFS block id.
    pub id: u64,
    /// Its length.
    pub bytes: Bytes,
    /// Nodes with a replica: one in a rack, two in another.
    pub replicas: Vec<usize>,
}

/// The namespace.
#[derive(Debug)]
pub struct Namespace {
    files: BTreeMap<String, Vec<BlockAt>>,
    next_block: u64,
    rng: ChaCha8Rng,
}

impl Namespace {
    /// An empty namespace; equal seeds place alike.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        Self { files: BTreeMap::new(), next_block: FIRST_BLOCK, rng }
    }

    /// Writes a file of `bytes`, in blocks of [`BLOCK`]; one that exists is left as it is.
    pub fn create(&mut self, path: &str, bytes: Bytes, cluster: &Cluster) {
        if self.files.contains_key(path) {
            return;
        }
        let mut blocks = Vec::new();
        let mut left = bytes.0;
        while left > 0 {
            let length = left.min(BLOCK.0);
            blocks.push(BlockAt { id: self.next_block, bytes: Bytes(length), replicas: self.replicas(cluster) });
            self.next_block += 1;
            left -= length;
        }
        self.files.insert(path.to_owned(), blocks);
    }

    /// Every file as the datasets feed names it: blocks without hosts, which the block reports tell.
    #[must_use]
    pub fn datasets(&self) -> Vec<v1::Dataset> {
        let block = |block: &BlockAt| v1::DatasetBlock { block_id: block.id, bytes: block.bytes.0, hosts: Vec::new() };
        let files = self.files.iter();
        files
            .map(|(path, blocks)| v1::Dataset { path: path.clone(), blocks: blocks.iter().map(block).collect() })
            .collect()
    }

    /// Full block report of a DataNode: ids, ascending.
    #[must_use]
    pub fn report(&self, node: usize) -> Vec<u64> {
        let blocks = self.files.values().flatten().filter(|block| block.replicas.contains(&node));
        let mut ids: Vec<u64> = blocks.map(|block| block.id).collect();
        ids.sort_unstable();
        ids
    }

    /// A node is gone: each block that had a replica there gets one elsewhere, in a rack that has none where there is
    /// one. Returns (node, block ids it received), ascending by node, as the incremental reports tell them.
    pub fn replicate_without(&mut self, gone: usize, cluster: &Cluster) -> Vec<(usize, Vec<u64>)> {
        let mut received: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for block in self.files.values_mut().flatten().filter(|block| block.replicas.contains(&gone)) {
            block.replicas.retain(|&node| node != gone);
            let free = |node: &usize| *node != gone && !block.replicas.contains(node);
            let candidates: Vec<usize> = (0..cluster.machines.len()).filter(free).collect();
            if let Some(&node) = candidates.choose(&mut self.rng) {
                block.replicas.push(node);
                received.entry(node).or_default().push(block.id);
            }
        }
        received.into_iter().collect()
    }

    /// Bytes of all files and how many blocks they have.
    #[must_use]
    pub fn size(&self) -> (Bytes, usize) {
        let bytes = self.files.values().flatten().map(|block| block.bytes.0).sum();
        (Bytes(bytes), self.files.values().map(Vec::len).sum())
    }

    /// The blocks of a file.
    #[must_use]
    pub fn blocks(&self, path: &str) -> &[BlockAt] {
        self.files.get(path).map_or(&[], Vec::as_slice)
    }

    /// The blocks of files, one file after the other.
    #[must_use]
    pub fn input(&self, paths: &[String]) -> Vec<BlockAt> {
        paths.iter().flat_map(|path| self.blocks(path)).cloned().collect()
    }

    /// `BlockPlacementPolicyDefault` for a writer outside the cluster: a random node, then two nodes of another rack.
    fn replicas(&mut self, cluster: &Cluster) -> Vec<usize> {
        let first = self.rng.random_range(0..cluster.machines.len());
        self.pipeline(first, cluster)
    }

    /// The same for a writer on a node: that node first. Each sends to the next.
    pub fn pipeline(&mut self, first: usize, cluster: &Cluster) -> Vec<usize> {
        let machines = &cluster.machines;
        let elsewhere: Vec<usize> =
            (0..machines.len()).filter(|&node| machines[node].rack_number != machines[first].rack_number).collect();
        let Some(&second) = elsewhere.choose(&mut self.rng) else { return vec![first] };
        let beside: Vec<usize> = elsewhere
            .into_iter()
            .filter(|&node| node != second && machines[node].rack_number == machines[second].rack_number)
            .collect();
        let mut replicas = vec![first, second];
        replicas.extend(beside.choose(&mut self.rng));
        replicas
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::ClusterShape;
    use super::*;

    fn cluster() -> Cluster {
        Cluster::build(ClusterShape::default()).unwrap()
    }

    #[test]
    fn blocks_have_one_replica_in_a_rack_and_two_in_another() {
        let cluster = cluster();
        let mut namespace = Namespace::new(7);
        namespace.create("/in", Bytes(10 * BLOCK.0 + 5), &cluster);
        let blocks = namespace.blocks("/in");
        assert_eq!((blocks.len(), blocks[10].bytes), (11, Bytes(5)));
        for block in blocks {
            let racks: Vec<usize> = block.replicas.iter().map(|&node| cluster.machines[node].rack_number).collect();
            assert_eq!(racks.len(), 3);
            assert!(racks[0] != racks[1] && racks[1] == racks[2], "{racks:?}");
            assert_ne!(block.replicas[1], block.replicas[2]);
        }
    }

    #[test]
    fn the_same_seed_places_alike_and_another_does_not() {
        let placed = |seed| {
            let mut namespace = Namespace::new(seed);
            namespace.create("/in", Bytes(20 * BLOCK.0), &cluster());
            namespace.blocks("/in").to_vec()
        };
        assert_eq!(placed(1), placed(1));
        assert_ne!(placed(1), placed(2));
    }

    #[test]
    fn a_lost_nodes_blocks_are_replicated_elsewhere() {
        let cluster = cluster();
        let mut namespace = Namespace::new(3);
        namespace.create("/in", Bytes(40 * BLOCK.0), &cluster);
        let held = namespace.report(4);
        assert!(!held.is_empty());
        let received = namespace.replicate_without(4, &cluster);
        assert!(namespace.report(4).is_empty());
        let mut told: Vec<u64> = received.iter().flat_map(|(_, ids)| ids.clone()).collect();
        told.sort_unstable();
        assert_eq!(told, held, "each once");
        assert!(received.iter().all(|(node, ids)| ids.iter().all(|id| namespace.report(*node).contains(id))));
    }
}
