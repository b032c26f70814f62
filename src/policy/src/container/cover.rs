//! Which blocks of one group's input its nodes cover, kept current node by node.

use crate::problem::InputBlocks;

/// Covered input of one group.
#[derive(Debug, Clone)]
pub(super) struct Cover<'g> {
    input: &'g InputBlocks,
    /// Used nodes with a replica, by block.
    nodes: Vec<u32>,
    /// Bytes of blocks with at least one.
    pub(super) blocks: u64,
    /// Bytes of all replicas on used nodes.
    pub(super) replicas: u64,
}

impl<'g> Cover<'g> {
    pub(super) fn new(input: &'g InputBlocks) -> Self {
        Self { input, nodes: vec![0; input.blocks.len()], blocks: 0, replicas: 0 }
    }

    fn bytes(&self, block: u32) -> u64 {
        self.input.blocks[block as usize].bytes.0
    }

    /// A node with these blocks is used now.
    pub(super) fn add(&mut self, blocks: &[u32]) {
        for &block in blocks {
            self.replicas += self.bytes(block);
            if self.nodes[block as usize] == 0 {
                self.blocks += self.bytes(block);
            }
            self.nodes[block as usize] += 1;
        }
    }

    /// A node with these blocks is no more used.
    pub(super) fn remove(&mut self, blocks: &[u32]) {
        for &block in blocks {
            self.replicas -= self.bytes(block);
            self.nodes[block as usize] -= 1;
            if self.nodes[block as usize] == 0 {
                self.blocks -= self.bytes(block);
            }
        }
    }

    /// What covered blocks and replicas would change by if a node with the blocks `left` were left and one with
    /// `entered` entered; both ascending.
    pub(super) fn change(&self, left: &[u32], entered: &[u32]) -> (i64, i64) {
        let (mut blocks, mut replicas) = (0_i64, 0_i64);
        for &block in left {
            let bytes = self.bytes(block) as i64;
            replicas -= bytes;
            if self.nodes[block as usize] == 1 && entered.binary_search(&block).is_err() {
                blocks -= bytes;
            }
        }
        for &block in entered {
            let bytes = self.bytes(block) as i64;
            replicas += bytes;
            blocks += if self.nodes[block as usize] == 0 { bytes } else { 0 };
        }
        (blocks, replicas)
    }
}
