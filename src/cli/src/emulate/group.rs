//! A job's tasks of one kind: which wait, what was hinted for them, and where YARN put their containers.

use super::cluster::Cluster;
use super::hdfs::BlockAt;
use hintd_client::wire::v1;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One group of tasks.
#[derive(Debug)]
pub(super) struct Group {
    /// Tasks without a container.
    pub(super) waiting: VecDeque<u32>,
    /// Tasks that were never hinted: a later wave's.
    pub(super) unhinted: u32,
    /// Tasks that the daemon holds back: their hints come on Follow, and YARN is not asked for them before.
    pub(super) pending: u32,
    /// Containers to ask for by row, as the hints say; `*` is computed when asking.
    pub(super) rows: BTreeMap<String, u32>,
    /// Leases not yet used, by host.
    pub(super) leases: BTreeMap<String, VecDeque<u64>>,
    /// Hosts hinted, with how many containers are still expected there.
    pub(super) hinted: BTreeMap<String, u32>,
    /// Hosts hinted as next best.
    fallbacks: BTreeSet<String>,
    /// Tasks that ended.
    pub(super) ended: u32,
    /// All tasks.
    pub(super) count: u32,
}

/// Where YARN put a container, beside where it was hinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    Preferred,
    Fallback,
    Elsewhere,
}

impl Group {
    pub(super) fn new(count: u32) -> Self {
        Self {
            waiting: (0..count).collect(),
            unhinted: count,
            pending: 0,
            rows: BTreeMap::new(),
            leases: BTreeMap::new(),
            hinted: BTreeMap::new(),
            fallbacks: BTreeSet::new(),
            ended: 0,
            count,
        }
    }

    /// The next task for a container on a node: one whose block lies there, else in its rack, as MapReduce's ApplicationMaster
    /// chooses; else the first. Without blocks the first.
    pub(super) fn next_for(&mut self, node: usize, input: &[BlockAt], cluster: &Cluster) -> Option<u32> {
        let rack = |node: usize| cluster.machines[node].rack_number;
        let block = |task: u32| input.get(task as usize).map_or(&[][..], |block| &block.replicas);
        let here = |task: &u32| block(*task).contains(&node);
        let beside = |task: &u32| block(*task).iter().any(|&other| rack(other) == rack(node));
        let near = if input.is_empty() { None } else { self.waiting.iter().position(here) };
        let near = near.or_else(|| if input.is_empty() { None } else { self.waiting.iter().position(beside) });
        self.waiting.remove(near.unwrap_or(0))
    }

    /// The rows that MapReduce's ApplicationMaster asks for: hosts and racks of the blocks of the last `count` that wait.
    pub(super) fn input_rows(&self, count: u32, input: &[BlockAt], cluster: &Cluster) -> BTreeMap<String, u32> {
        let mut rows: BTreeMap<String, u32> = BTreeMap::new();
        for block in self.waiting.iter().rev().take(count as usize).filter_map(|&task| input.get(task as usize)) {
            let machines = block.replicas.iter().map(|&node| &cluster.machines[node]);
            let names: BTreeSet<&str> = machines.flat_map(|of| [of.host.as_str(), of.rack.as_str()]).collect();
            for name in names {
                *rows.entry(name.to_owned()).or_default() += 1;
            }
        }
        rows
    }

    /// Tasks that YARN is asked for.
    pub(super) fn open(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX).saturating_sub(self.unhinted).saturating_sub(self.pending)
    }

    /// Takes hints in: where containers are expected, and with which leases.
    pub(super) fn learn(&mut self, hint: &v1::Hint) {
        *self.hinted.entry(hint.host.clone()).or_default() += hint.count;
        self.leases.entry(hint.host.clone()).or_default().extend(&hint.lease_ids);
        self.fallbacks.extend(hint.fallbacks.iter().cloned());
    }

    /// A container came on `host`: what of the hints that follows, and the lease it uses up.
    pub(super) fn use_hint(&mut self, host: &str) -> (Followed, u64) {
        let followed = match self.hinted.get_mut(host) {
            Some(count) if *count > 0 => {
                *count -= 1;
                Followed::Preferred
            }
            _ if self.fallbacks.contains(host) => Followed::Fallback,
            _ => Followed::Elsewhere,
        };
        let lease = self.leases.get_mut(host).and_then(VecDeque::pop_front).unwrap_or(0);
        (followed, lease)
    }

    /// Forgets what was hinted on hosts that are gone.
    pub(super) fn forget(&mut self, gone: &BTreeSet<String>) {
        self.rows.retain(|name, _| !gone.contains(name));
        self.hinted.retain(|name, _| !gone.contains(name));
        self.leases.retain(|name, _| !gone.contains(name));
    }
}

pub(super) fn take_row(rows: &mut BTreeMap<String, u32>, name: &str) {
    if let Some(count) = rows.get_mut(name) {
        *count = count.saturating_sub(1);
    }
}

pub(super) fn host_rows(hints: &v1::HintSet, group: &str) -> BTreeMap<String, u32> {
    let mut rows = BTreeMap::new();
    for hint in hints.hints.iter().filter(|hint| hint.group == group) {
        *rows.entry(hint.host.clone()).or_default() += hint.count;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::cluster::ClusterShape;
    use super::*;
    use hintd_model::units::Bytes;

    #[test]
    fn a_container_gets_the_task_whose_block_is_nearest() {
        // Two racks of two nodes.
        let cluster = Cluster::build(ClusterShape { nodes: 4, racks: 2, ..ClusterShape::default() }).unwrap();
        let block = |replicas: &[usize]| BlockAt { id: 0, bytes: Bytes(1), replicas: replicas.to_vec() };
        let input = [block(&[2]), block(&[0, 2]), block(&[0]), block(&[3])];
        let mut group = Group::new(5);
        let mut next = |node| group.next_for(node, &input, &cluster);
        assert_eq!([next(0), next(1)], [Some(1), Some(2)], "one on the node, then one in its rack");
        assert_eq!(
            [next(0), next(3), next(3), next(3)],
            [Some(0), Some(3), Some(4), None],
            "the first; its own; what is left"
        );
        assert_eq!(Group::new(2).next_for(3, &[], &cluster), Some(0));
        let group = Group::new(4);
        let rows = group.input_rows(3, &input, &cluster);
        let name = |node: usize| cluster.machines[node].host.to_string();
        let rack = |node: usize| cluster.machines[node].rack.to_string();
        let expected = [(name(0), 2), (name(2), 1), (name(3), 1), (rack(0), 2), (rack(2), 2)];
        assert_eq!(rows, expected.into_iter().collect(), "the last three; a rack once a block");
    }
}
