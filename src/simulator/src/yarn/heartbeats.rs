//! When nodes report: computed from their phases, never queued.
//!
//! Node n reports at phase(n) + k × period, k = 0, 1, …; the phase is drawn by (seed, node). A report at which nothing
//! can happen is skipped: no ended task to tell of, and no free container or nothing that waits. So an idle or a full
//! cluster costs nothing. Reports of one moment come in the order of (phase, node).

use crate::streams::{PHASES, stream};
use hintd_model::units::{Micros, NodeIdx};
use rand::RngExt as _;

const WORD: usize = 64;

/// The ring of reports.
#[derive(Debug)]
pub(super) struct HeartbeatRing {
    period: u64,
    /// By rank, ascending.
    phases: Vec<u64>,
    /// By rank.
    nodes: Vec<NodeIdx>,
    /// By node.
    ranks: Vec<u32>,
    /// Nodes with ended tasks to tell of: one bit a rank.
    tell: Vec<u64>,
    /// Nodes with a free container: one bit a rank.
    free: Vec<u64>,
    /// Moment and rank of the last report handled.
    last: Option<(u64, usize)>,
    skip: bool,
    /// Next report for (whether anything waits), until a bit changes.
    known: Option<(bool, Option<(Micros, NodeIdx)>)>,
}

impl HeartbeatRing {
    /// Of `nodes` nodes; with `skip` off, every node reports at every period.
    pub(super) fn new(nodes: usize, period: Micros, seed: u64, skip: bool) -> Self {
        let phase = |node: usize| stream([seed, node as u64, PHASES, 0]).random_range(0..period.0);
        let mut order: Vec<(u64, NodeIdx)> = (0..nodes).map(|node| (phase(node), NodeIdx::new(node))).collect();
        order.sort_unstable();
        let mut ranks = vec![0; nodes];
        for (rank, &(_, node)) in order.iter().enumerate() {
            ranks[node.at()] = rank as u32;
        }
        let words = nodes.div_ceil(WORD);
        Self {
            period: period.0,
            phases: order.iter().map(|&(phase, _)| phase).collect(),
            nodes: order.iter().map(|&(_, node)| node).collect(),
            ranks,
            tell: vec![0; words],
            free: vec![0; words],
            last: None,
            skip,
            known: None,
        }
    }

    /// Whether the node has ended tasks to tell of.
    pub(super) fn tells(&mut self, node: NodeIdx, yes: bool) {
        let rank = self.ranks[node.at()] as usize;
        if set(&mut self.tell, rank, yes) {
            self.known = None;
        }
    }

    /// Whether the node has a free container.
    pub(super) fn frees(&mut self, node: NodeIdx, yes: bool) {
        let rank = self.ranks[node.at()] as usize;
        if set(&mut self.free, rank, yes) {
            self.known = None;
        }
    }

    /// The next report at or after `now` that is not skipped.
    pub(super) fn next(&mut self, now: Micros, waits: bool) -> Option<(Micros, NodeIdx)> {
        if let Some((for_waits, next)) = self.known
            && for_waits == waits
            && next.is_none_or(|(at, _)| at >= now)
        {
            return next;
        }
        let next = self.find(now.0, waits);
        self.known = Some((waits, next));
        next
    }

    /// Notes that the node's report at `at` was handled.
    pub(super) fn handled(&mut self, at: Micros, node: NodeIdx) {
        self.last = Some((at.0, self.ranks[node.at()] as usize));
        self.known = None;
    }

    fn find(&self, now: u64, waits: bool) -> Option<(Micros, NodeIdx)> {
        let offset = now % self.period;
        let base = now - offset;
        let start = match self.last {
            Some((at, rank)) if at == now => rank + 1,
            _ => self.phases.partition_point(|&phase| phase < offset),
        };
        if let Some(rank) = self.first_from(start, waits) {
            return Some((Micros(base + self.phases[rank]), self.nodes[rank]));
        }
        let rank = self.first_from(0, waits)?;
        Some((Micros(base + self.period + self.phases[rank]), self.nodes[rank]))
    }

    /// The first rank from `start` on that does not skip its report.
    fn first_from(&self, start: usize, waits: bool) -> Option<usize> {
        if !self.skip {
            return (start < self.nodes.len()).then_some(start);
        }
        let active = |word: usize| self.tell[word] | if waits { self.free[word] } else { 0 };
        let mut word = start / WORD;
        let mut bits = if word < self.tell.len() { active(word) & (u64::MAX << (start % WORD)) } else { 0 };
        while bits == 0 {
            word += 1;
            if word >= self.tell.len() {
                return None;
            }
            bits = active(word);
        }
        Some(word * WORD + bits.trailing_zeros() as usize)
    }
}

/// Whether the bit changed.
fn set(bits: &mut [u64], at: usize, yes: bool) -> bool {
    let (word, bit) = (&mut bits[at / WORD], 1 << (at % WORD));
    let before = *word;
    *word = if yes { before | bit } else { before & !bit };
    *word != before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All reports of a ring, in order, each noted as handled.
    fn turn(beats: &mut HeartbeatRing, waits: bool, count: usize) -> Vec<(Micros, NodeIdx)> {
        let mut now = Micros(0);
        let mut out = Vec::new();
        for _ in 0..count {
            let Some((at, node)) = beats.next(now, waits) else { break };
            beats.handled(at, node);
            now = at;
            out.push((at, node));
        }
        out
    }

    #[test]
    fn every_node_reports_once_a_period_at_its_own_phase() {
        let mut beats = HeartbeatRing::new(130, Micros::from_secs(1), 7, false);
        let all = turn(&mut beats, false, 390);
        let mut nodes: Vec<u32> = all[..130].iter().map(|&(_, node)| node.0).collect();
        nodes.sort_unstable();
        assert_eq!(nodes, (0..130).collect::<Vec<_>>());
        for (first, later) in all.iter().zip(&all[130..]) {
            assert_eq!((first.0.0 + 1_000_000, first.1), (later.0.0, later.1));
        }
        assert!(all.is_sorted_by_key(|&(at, _)| at));
    }

    #[test]
    fn a_report_at_which_nothing_can_happen_is_skipped() {
        let mut beats = HeartbeatRing::new(130, Micros::from_secs(1), 7, true);
        assert_eq!(beats.next(Micros(0), true), None, "nothing is free and nothing ended");
        beats.frees(NodeIdx(77), true);
        beats.tells(NodeIdx(3), true);
        assert_eq!(beats.next(Micros(0), false).map(|(_, node)| node), Some(NodeIdx(3)), "nothing waits");
        let both: Vec<u32> = turn(&mut beats, true, 4).iter().map(|&(_, node)| node.0).collect();
        assert_eq!(both[..2], both[2..]);
        let mut two = [both[0], both[1]];
        two.sort_unstable();
        assert_eq!(two, [3, 77]);
    }

    #[test]
    fn what_ends_just_after_a_report_waits_for_the_next_period() {
        let mut beats = HeartbeatRing::new(1, Micros(10), 1, true);
        beats.tells(NodeIdx(0), true);
        let (at, node) = beats.next(Micros(0), false).unwrap();
        beats.tells(node, false);
        beats.handled(at, node);
        beats.tells(node, true);
        assert_eq!(beats.next(at, false), Some((Micros(at.0 + 10), node)));
        assert_eq!(beats.next(Micros(at.0 + 1), false), Some((Micros(at.0 + 10), node)));
    }
}
