//! Deadlines of flows, the earliest first: a binary heap whose entries can be moved.

use crate::units::FlowIdx;

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

/// One deadline for each flow, seconds. Equal ones come in the flows' order.
#[derive(Debug, Clone, Default)]
pub(super) struct Deadlines {
    heap: Vec<(f64, FlowIdx)>,
    /// By flow.
    at: Vec<u32>,
}

impl Deadlines {
    pub(super) fn first(&self) -> Option<(f64, FlowIdx)> {
        self.heap.first().copied()
    }

    /// Sets a flow's deadline, wherever it was before. Not NaN.
    pub(super) fn set(&mut self, flow: FlowIdx, deadline_s: f64) {
        if flow.at() >= self.at.len() {
            self.at.resize(flow.at() + 1, NOWHERE);
        }
        let entry = (deadline_s, flow);
        if self.at[flow.at()] == NOWHERE {
            self.heap.push(entry);
            self.at[flow.at()] = (self.heap.len() - 1) as u32;
        }
        self.settle(self.at[flow.at()] as usize, entry);
    }

    pub(super) fn remove(&mut self, flow: FlowIdx) {
        let Some(at) = self.at.get_mut(flow.at()).filter(|at| **at != NOWHERE) else { return };
        let hole = std::mem::replace(at, NOWHERE) as usize;
        if let Some(last) = self.heap.pop().filter(|last| last.1 != flow) {
            self.settle(hole, last);
        }
    }

    /// Puts `entry` at `at` or where it belongs above or below.
    fn settle(&mut self, mut at: usize, entry: (f64, FlowIdx)) {
        while at > 0 && entry < self.heap[(at - 1) / 2] {
            self.place(at, self.heap[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            let least = children.reduce(|a, b| if self.heap[b] < self.heap[a] { b } else { a });
            let Some(child) = least.filter(|&child| self.heap[child] < entry) else { break };
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: (f64, FlowIdx)) {
        self.heap[at] = entry;
        self.at[entry.1.at()] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_earliest_deadline_is_first_whatever_was_moved(
            steps in prop::collection::vec((0_u32..20, prop::option::weighted(0.7, 0_u32..10)), 1..100),
        ) {
            let (mut heap, mut plain) = (Deadlines::default(), BTreeMap::new());
            for (flow, deadline) in steps {
                let flow = FlowIdx(flow);
                match deadline {
                    Some(deadline) => {
                        heap.set(flow, f64::from(deadline));
                        plain.insert(flow, deadline);
                    }
                    None => {
                        heap.remove(flow);
                        plain.remove(&flow);
                    }
                }
                let first = plain.iter().map(|(&flow, &deadline)| (deadline, flow)).min();
                prop_assert_eq!(heap.first(), first.map(|(deadline, flow)| (f64::from(deadline), flow)));
            }
        }
    }
}
