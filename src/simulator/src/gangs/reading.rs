//! Who reads which block from where.

use hintd_model::units::{Bytes, NodeIdx, RackIdx};
use hintd_policy::problem::InputBlocks;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The blocks of one group that nobody has taken yet.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    input: Arc<InputBlocks>,
    left: BTreeSet<u32>,
}

/// A block to read and where from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) from: NodeIdx,
    pub(super) bytes: Bytes,
}

impl Reading {
    /// The position of the first block without a replica: nobody could read it.
    pub(super) fn of(input: &Arc<InputBlocks>) -> Result<Self, usize> {
        match input.blocks.iter().position(|block| block.nodes.is_empty()) {
            Some(block) => Err(block),
            None => Ok(Self { input: Arc::clone(input), left: (0..input.blocks.len() as u32).collect() }),
        }
    }

    /// The next block for a container on `node`; `draw` is of the replica, where none is near.
    pub(super) fn take(&mut self, node: NodeIdx, rack: &dyn Fn(NodeIdx) -> RackIdx, draw: u64) -> Option<Taken> {
        let here = self.input.on(node).iter().copied().find(|block| self.left.contains(block));
        let block = here.or_else(|| self.left.first().copied())?;
        self.left.remove(&block);
        let block = &self.input.blocks[block as usize];
        let near = |replica: &&NodeIdx| rack(**replica) == rack(node);
        let from = match here {
            Some(_) => node,
            None => *block.nodes.iter().find(near).unwrap_or(&block.nodes[(draw % block.nodes.len() as u64) as usize]),
        };
        Some(Taken { from, bytes: block.bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_policy::problem::InputBlock;

    fn input(blocks: &[&[u32]]) -> Arc<InputBlocks> {
        let block =
            |nodes: &&[u32]| InputBlock { bytes: Bytes(10), nodes: nodes.iter().map(|&n| NodeIdx(n)).collect() };
        Arc::new(InputBlocks::new(blocks.iter().map(block).collect()))
    }

    #[test]
    fn a_container_takes_what_lies_on_its_node_then_what_is_left_from_its_rack_if_it_can() {
        let rack = |node: NodeIdx| RackIdx(node.0 / 2);
        let mut reading = Reading::of(&input(&[&[2, 3], &[0, 2], &[1, 2], &[2, 3]])).unwrap();
        let mut from = |draw| reading.take(NodeIdx(0), &rack, draw).map(|taken| taken.from.0);
        assert_eq!(from(0), Some(0), "block 1 lies there");
        assert_eq!(from(1), Some(3), "block 0 is the first left, its second replica was drawn");
        assert_eq!(from(1), Some(1), "block 2 lies in the rack");
        assert_eq!((from(0), from(0)), (Some(2), None));
    }

    #[test]
    fn a_block_that_nobody_holds_can_not_be_read() {
        assert_eq!(Reading::of(&input(&[&[0], &[]])).unwrap_err(), 1);
    }
}
