//! Hop counts from every attachment switch to every switch, followed through changes.

use super::fabric::{Edges, Fabric, FabricChange};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

/// No path (or one of 65,535 hops and more, which is taken for none).
pub(super) const FAR: u16 = u16::MAX;

/// By attachment switch: hops to it (which are hops from it) by row of the fabric, or [`FAR`]. Versions share the rows
/// that are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hops {
    by_edge: Vec<Arc<[u16]>>,
}

impl Hops {
    pub(super) fn of(fabric: &Fabric, edges: &Edges) -> Self {
        let rows: Vec<usize> = edges.switches.iter().map(|&switch| fabric.row(switch)).collect();
        let mut counts = vec![vec![FAR; fabric.len()]; rows.len()];
        fabric.visit_hop_counts(&rows, |edge, row, level| counts[edge][row] = u16::try_from(level).unwrap_or(FAR));
        Self { by_edge: counts.into_iter().map(Arc::from).collect() }
    }

    /// Hops by row to one attachment switch.
    pub(super) fn to(&self, edge: usize) -> &[u16] {
        &self.by_edge[edge]
    }

    /// Makes the counts those of `fabric`, which has gone through the change, and gives the edges whose counts are
    /// others now. Only switches are met whose count changes, and their neighbours.
    pub(super) fn follow(&mut self, fabric: &Fabric, edges: &Edges, change: &FabricChange) -> Vec<usize> {
        let mut update = Update { fabric, lost: BTreeSet::new(), near: BinaryHeap::new() };
        let mut changed = Vec::new();
        for (edge, &switch) in edges.switches.iter().enumerate() {
            let own = fabric.row(switch);
            let counts = &mut self.by_edge[edge];
            if change.switches.contains(&(own as u32)) {
                let mut anew = vec![FAR; fabric.len()];
                fabric.visit_hop_counts(&[own], |_, row, level| anew[row] = u16::try_from(level).unwrap_or(FAR));
                *counts = anew.into();
                changed.push(edge);
            } else if update.run(counts, change) {
                changed.push(edge);
            }
        }
        changed
    }
}

/// One attachment switch's counts on their way from one version to the next.
struct Update<'a> {
    fabric: &'a Fabric,
    /// Rows that may have lost their way, by the count they had.
    lost: BTreeSet<(u16, u32)>,
    /// Rows that a shorter way was found to, nearest first.
    near: BinaryHeap<Reverse<(u16, u32)>>,
}

impl Update<'_> {
    /// First, in the order of counts, rows without a neighbour one hop nearer lose theirs; then counts are found anew
    /// from the neighbours that have one, as Ramalingam and Reps do ("An Incremental Algorithm for a Generalization
    /// of the Shortest-Path Problem", 1996). Whether any count changed.
    fn run(&mut self, counts: &mut Arc<[u16]>, change: &FabricChange) -> bool {
        for (a, b) in change.lost.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
            let count = counts[b as usize];
            if count != FAR && counts[a as usize].checked_add(1) == Some(count) {
                self.lost.insert((count, b));
            }
        }
        let mut taken = Vec::new();
        while let Some((count, row)) = self.lost.pop_first() {
            let nearer = |near: u32| counts[near as usize].checked_add(1) == Some(count);
            if self.fabric.hops(row as usize).any(|hop| nearer(hop.to)) {
                continue;
            }
            Arc::make_mut(counts)[row as usize] = FAR;
            taken.push((count, row));
            let below = self.fabric.hops(row as usize).map(|hop| hop.to);
            let below = below.filter(|&to| count.checked_add(1) == Some(counts[to as usize]));
            self.lost.extend(below.map(|to| (count + 1, to)));
        }
        let offer = |counts: &[u16], from: u32, to: u32| {
            let through = counts[from as usize].saturating_add(1);
            (through < counts[to as usize]).then_some(Reverse((through, to)))
        };
        for &(_, row) in &taken {
            self.near.extend(self.fabric.hops(row as usize).filter_map(|hop| offer(counts, hop.to, row)));
        }
        let gained = change.gained.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        self.near.extend(gained.filter_map(|(a, b)| offer(counts, a, b)));
        let mut nearer = false;
        while let Some(Reverse((count, row))) = self.near.pop() {
            if count < counts[row as usize] {
                Arc::make_mut(counts)[row as usize] = count;
                nearer = true;
                self.near.extend(self.fabric.hops(row as usize).filter_map(|hop| offer(counts, row, hop.to)));
            }
        }
        nearer || !taken.is_empty()
    }
}
