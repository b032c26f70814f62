//! The columns of nodes that placements read, in small pieces: a later version shares each piece that did not change.
//!
//! A piece holds 16 nodes as bytes: state, containers, then what is occupied and leased, each as how many kinds there
//! are and the amounts, all in base 128. A node with two kinds and nothing leased takes some 7 bytes where the
//! snapshot takes 69.

use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::cluster::{NodeState, Overlay, Resource, Snapshot};
use hintd_model::units::NodeIdx;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nodes of a piece: a change costs a whole piece, and each piece costs every version a pointer.
const PIECE: usize = 16;

/// Columns of one version.
#[derive(Debug)]
pub(super) struct Columns {
    pieces: Box<[Arc<Piece>]>,
    nodes: usize,
}

#[derive(Debug)]
struct Piece {
    /// Versions that are kept and have it.
    users: AtomicUsize,
    bytes: Box<[u8]>,
}

/// What a version's columns are compared with: those before it, as they were read.
#[derive(Debug)]
pub(super) struct Before<'a> {
    pub(super) columns: &'a Columns,
    pub(super) snapshot: &'a Snapshot,
    pub(super) leases: &'a Overlay,
}

/// Columns read back, by node.
pub(super) struct NodeRows {
    pub(super) states: Vec<NodeState>,
    pub(super) containers: Vec<u32>,
    pub(super) occupied: Vec<Resource>,
    pub(super) leases: Overlay,
}

impl Columns {
    /// The columns of a version; what `before` has as well is shared with it.
    pub(super) fn read(snapshot: &Snapshot, leases: &Overlay, before: Option<&Before<'_>>) -> Self {
        let nodes = snapshot.nodes();
        let piece = |first: usize| {
            let rows = first..nodes.min(first + PIECE);
            let same = before.filter(|before| same(snapshot, leases, before, rows.clone()));
            same.map_or_else(
                || Arc::new(Piece { users: AtomicUsize::new(0), bytes: write(snapshot, leases, rows) }),
                |before| Arc::clone(&before.columns.pieces[first / PIECE]),
            )
        };
        Self { pieces: (0..nodes).step_by(PIECE).map(piece).collect(), nodes }
    }

    /// States, containers and occupied room by node, and what is leased.
    pub(super) fn rows(&self) -> NodeRows {
        let (mut states, mut containers) = (Vec::with_capacity(self.nodes), Vec::with_capacity(self.nodes));
        let (mut occupied, mut overlay) = (Vec::with_capacity(self.nodes), Overlay::default());
        for piece in &self.pieces {
            let mut bytes = &*piece.bytes;
            while !bytes.is_empty() {
                states.push(NodeState::ALL[usize::try_from(number(&mut bytes)).unwrap_or(0) % NodeState::ALL.len()]);
                containers.push(u32::try_from(number(&mut bytes)).unwrap_or(u32::MAX));
                let node = NodeIdx::new(occupied.len());
                occupied.push(amounts(&mut bytes));
                let leased = amounts(&mut bytes);
                if !leased.is_zero() {
                    overlay.set(node, leased);
                }
            }
        }
        NodeRows { states, containers, occupied, leases: overlay }
    }

    /// Takes the version among those that are kept: the bytes that this adds.
    pub(super) fn hold(&self) -> usize {
        let new = self.pieces.iter().filter(|piece| piece.users.fetch_add(1, Ordering::Relaxed) == 0);
        size_of_val(&*self.pieces) + new.map(|piece| weight(piece)).sum::<usize>()
    }

    /// Takes it out: the bytes that this frees.
    pub(super) fn release(&self) -> usize {
        let last = self.pieces.iter().filter(|piece| piece.users.fetch_sub(1, Ordering::Relaxed) == 1);
        size_of_val(&*self.pieces) + last.map(|piece| weight(piece)).sum::<usize>()
    }
}

fn weight(piece: &Piece) -> usize {
    size_of::<Piece>() + 2 * size_of::<usize>() + piece.bytes.len()
}

fn same(snapshot: &Snapshot, leases: &Overlay, before: &Before<'_>, rows: std::ops::Range<usize>) -> bool {
    let was = before.snapshot;
    // The last piece of fewer nodes is the first part of one of more.
    let whole = rows.len() == PIECE || snapshot.nodes() == was.nodes();
    if rows.end > was.nodes() || !whole {
        return false;
    }
    let shared = leases.shares(before.leases, NodeIdx::new(rows.start));
    let leased = |at: usize| {
        let node = NodeIdx::new(at);
        leases.leased(node) == before.leases.leased(node)
    };
    snapshot.state[rows.clone()] == was.state[rows.clone()]
        && snapshot.containers[rows.clone()] == was.containers[rows.clone()]
        && snapshot.occupied[rows.clone()] == was.occupied[rows.clone()]
        && (shared || rows.clone().all(leased))
}

fn write(snapshot: &Snapshot, leases: &Overlay, rows: std::ops::Range<usize>) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(rows.len() * 8);
    for at in rows {
        let state = NodeState::ALL.iter().position(|state| *state == snapshot.state[at]);
        put(&mut bytes, state.expect("every state is among all") as u64);
        put(&mut bytes, u64::from(snapshot.containers[at]));
        put_amounts(&mut bytes, &snapshot.occupied[at]);
        put_amounts(&mut bytes, &leases.leased(NodeIdx::new(at)));
    }
    bytes.into()
}

fn put_amounts(bytes: &mut Vec<u8>, row: &Resource) {
    let kinds = row.0.iter().rposition(|&amount| amount > 0).map_or(0, |last| last + 1);
    put(bytes, kinds as u64);
    row.0[..kinds].iter().for_each(|&amount| put(bytes, amount));
}

fn amounts(bytes: &mut &[u8]) -> Resource {
    let kinds = usize::try_from(number(bytes)).unwrap_or(0).min(KINDS_MAX);
    let mut row = Resource::ZERO;
    row.0[..kinds].iter_mut().for_each(|amount| *amount = number(bytes));
    row
}

/// Base 128, the lowest digits first; the highest bit: more follows.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn number(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0_u64, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 || shift > 63 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::network::build::{TreeSpec, tree};
    use hintd_model::units::Bytes;
    use hintd_policy::sample::cluster;
    use proptest::prelude::*;

    const UNIT: Resource = Resource::new(1024, 1);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_is_written_reads_back_and_versions_share_what_they_have_in_common(
            seed in any::<u64>(), changes in prop::collection::vec((0_u32..70, 0_u64..5, any::<bool>()), 0..12),
        ) {
            let spec = TreeSpec { racks: 7, hosts_per_rack: 10, ..TreeSpec::default() };
            let mut sample = cluster(&tree(&spec).unwrap(), UNIT.times(4), Bytes(1));
            sample.occupy(UNIT, 4, seed);
            let (first, leases) = (sample.snapshot.clone(), sample.leases.clone());
            let one = Columns::read(&first, &leases, None);
            let mut touched = std::collections::BTreeSet::new();
            for (node, amount, lease) in changes {
                touched.insert(node as usize / PIECE);
                if lease {
                    sample.leases.set(NodeIdx(node), Resource([amount, 0, amount << 40, 0, 0, 0, 0, 1]));
                } else {
                    sample.snapshot.occupied[node as usize] = UNIT.times(amount);
                    sample.snapshot.state[node as usize] = NodeState::Lost;
                }
            }
            let before = Before { columns: &one, snapshot: &first, leases: &leases };
            let two = Columns::read(&sample.snapshot, &sample.leases, Some(&before));
            let NodeRows { states, containers, occupied, leases: overlay } = two.rows();
            prop_assert_eq!(&states, &sample.snapshot.state);
            prop_assert_eq!(&containers, &sample.snapshot.containers);
            prop_assert_eq!(&occupied, &sample.snapshot.occupied);
            for node in sample.snapshot.statics.indexes() {
                prop_assert_eq!(overlay.leased(node), sample.leases.leased(node));
            }
            let shared = one.pieces.iter().zip(&two.pieces).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
            prop_assert!(shared >= one.pieces.len() - touched.len());
            let (whole, more) = (one.hold(), two.hold());
            prop_assert_eq!(whole, one.hold() + weights(&one) );
            one.release();
            prop_assert_eq!(two.release() + one.release(), whole + more);
        }
    }

    fn weights(columns: &Columns) -> usize {
        columns.pieces.iter().map(|piece| weight(piece)).sum()
    }

    #[test]
    fn numbers_read_back_at_the_edges() {
        let mut bytes = Vec::new();
        let all = [0, 1, 127, 128, 16_383, 16_384, u64::MAX - 1, u64::MAX];
        all.iter().for_each(|&value| put(&mut bytes, value));
        let mut left = &*bytes;
        assert_eq!(all.map(|_| number(&mut left)), all);
        assert!(left.is_empty());
    }
}
