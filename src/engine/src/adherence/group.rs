//! One group of a decision: hinted containers on one side, those that appear on the other.
//!
//! A container takes the row of its own host if that has one open, else a row of its rack or one that names its host
//! as next best, else the first open one. Who comes for the host itself displaces who took its row from elsewhere: so
//! what is on its host, and in its rack, does not depend on the order in which containers are heard of.

use super::tally::{Miss, Outcomes};
use crate::lease::LeaseEnd;
use hintd_model::cluster::Resource;
use hintd_model::units::{NodeIdx, RackIdx, SchedulerKey};
use hintd_policy::Share;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a container appeared.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContainerSighting {
    pub(super) node: NodeIdx,
    pub(super) rack: RackIdx,
    /// It was allocated before the hint was given.
    pub(super) late: bool,
    /// The host of the lease that it was allocated for, where its application said so.
    pub(super) hinted: Option<NodeIdx>,
}

/// What a group must be told of the cluster of now.
pub(super) trait Look {
    /// Why a container of `size` is not on `node`, where nothing of its lease is known.
    fn why_not(&self, node: NodeIdx, size: &Resource) -> Miss;
    /// Nodes that the group's hint of this number names as next best.
    fn fallbacks(&self, hint: u32) -> Vec<NodeIdx>;
}

/// How near to its hint a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HintProximity {
    Host,
    Rack,
    Elsewhere,
}

/// A container that took a row of another host.
#[derive(Debug, Clone, Copy)]
struct MisplacedContainer {
    spot: ContainerSighting,
    in_rack: bool,
    why: Miss,
}

/// Containers hinted for one host.
#[derive(Debug)]
pub(super) struct Row {
    /// Position of the hint in its decision.
    pub(super) hint: u32,
    node: NodeIdx,
    rack: RackIdx,
    count: u32,
    on_host: u32,
    /// Leases bound by a rise of use, without a container's name.
    bound_unseen: u32,
    /// Ends of leases that no miss was explained by yet.
    withdrawn: u32,
    expired: u32,
    released: u32,
    astray: Vec<MisplacedContainer>,
    /// Of these, from other racks.
    foreign: u32,
}

impl Row {
    pub(super) const fn new(hint: u32, node: NodeIdx, rack: RackIdx, count: u32) -> Self {
        let (on_host, bound_unseen, withdrawn, expired, released, foreign) = (0, 0, 0, 0, 0, 0);
        let astray = Vec::new();
        Self { hint, node, rack, count, on_host, bound_unseen, withdrawn, expired, released, astray, foreign }
    }

    fn open(&self) -> u32 {
        // A row never takes more containers than its count, which is a u32.
        self.count - self.on_host - u32::try_from(self.astray.len()).unwrap_or(u32::MAX)
    }

    /// Leases whose end is known and explains no miss yet.
    const fn ends(&self) -> u32 {
        self.bound_unseen + self.withdrawn + self.expired + self.released
    }

    /// Nodes on which its containers came to be that are not its own, each with how many, in the order of the nodes.
    pub(super) fn came(&self) -> Vec<(NodeIdx, u32)> {
        let mut came: BTreeMap<NodeIdx, u32> = BTreeMap::new();
        for astray in &self.astray {
            *came.entry(astray.spot.node).or_default() += 1;
        }
        came.into_iter().collect()
    }

    /// What became of its containers, and how many are open still. `ended`: why those will never come.
    pub(super) fn outcomes(&self, ended: Option<Miss>) -> (Outcomes, u64) {
        let mut found = Outcomes { on_host: u64::from(self.on_host), ..Outcomes::default() };
        for astray in &self.astray {
            let sum = if astray.in_rack { &mut found.in_rack } else { &mut found.elsewhere };
            *sum += 1;
            found.miss(astray.why, 1);
        }
        let mut open = self.open();
        let Some(ended) = ended else { return (found, u64::from(open)) };
        let unseen = open.min(self.bound_unseen);
        found.on_host += u64::from(unseen);
        open -= unseen;
        found.never = u64::from(open);
        let ends = [(Miss::Withdrawn, self.withdrawn), (Miss::Expired, self.expired), (Miss::Released, self.released)];
        for (why, count) in ends.into_iter().chain([(ended, u32::MAX)]) {
            let some = open.min(count);
            found.miss(why, u64::from(some));
            open -= some;
        }
        (found, 0)
    }
}

/// Rows by number, of which the first open one is asked for again and again. A row that is full stays full: who is
/// displaced makes room for another.
#[derive(Debug, Default)]
struct Queue {
    rows: Vec<u32>,
    /// Those before it are full.
    next: usize,
}

impl Queue {
    fn first_open(&mut self, rows: &[Row]) -> Option<usize> {
        let full = self.rows[self.next..].iter().take_while(|&&at| rows[at as usize].open() == 0).count();
        self.next += full;
        self.rows.get(self.next).map(|&at| at as usize)
    }
}

/// Rows by where they are, so that a container of thousands does not look at each. Made when first needed: most
/// decisions' rows are never looked for twice.
#[derive(Debug, Default)]
struct Index {
    rows: usize,
    by_node: Vec<(NodeIdx, u32)>,
    all: Queue,
    by_rack: BTreeMap<RackIdx, Queue>,
    by_fallback: BTreeMap<NodeIdx, Queue>,
    /// Rows that somebody from another rack has.
    foreign: BTreeSet<(RackIdx, u32)>,
}

impl Index {
    fn new(rows: &[Row], look: &dyn Look) -> Self {
        let mut index = Self { rows: rows.len(), ..Self::default() };
        for (at, row) in (0_u32..).zip(rows) {
            index.by_node.push((row.node, at));
            index.all.rows.push(at);
            index.by_rack.entry(row.rack).or_default().rows.push(at);
            for node in look.fallbacks(row.hint) {
                index.by_fallback.entry(node).or_default().rows.push(at);
            }
            if row.foreign > 0 {
                index.foreign.insert((row.rack, at));
            }
        }
        index.by_node.sort_unstable();
        index
    }

    /// Rows of the node, in order.
    fn of_node(&self, node: NodeIdx) -> impl Iterator<Item = usize> {
        let first = self.by_node.partition_point(|&(of, _)| of < node);
        self.by_node[first..].iter().take_while(move |&&(of, _)| of == node).map(|&(_, at)| at as usize)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Arc<str>,
    pub(super) key: SchedulerKey,
    size: Resource,
    /// In the order of the hints.
    pub(super) rows: Vec<Row>,
    /// Once a container appeared.
    index: Option<Box<Index>>,
    count: u32,
    open: u32,
    /// Came to their host, as far as containers are known by name.
    on_host: u32,
}

impl Group {
    pub(super) const fn new(name: Arc<str>, key: SchedulerKey, size: Resource) -> Self {
        Self { name, key, size, rows: Vec::new(), index: None, count: 0, open: 0, on_host: 0 }
    }

    pub(super) fn push(&mut self, row: Row) {
        self.count += row.count;
        self.open += row.count;
        self.rows.push(row);
    }

    /// Containers that were not seen yet.
    pub(super) const fn open(&self) -> u32 {
        self.open
    }

    /// All that are hinted, and of these those that came to their host.
    pub(super) const fn followed(&self) -> (u32, u32) {
        (self.count, self.on_host)
    }

    /// Open ones whose leases were given back.
    pub(super) fn given_back(&self) -> u32 {
        self.rows.iter().map(|row| row.released.min(row.open())).sum()
    }

    /// Gives up what only serves containers still to come.
    pub(super) fn close(&mut self) {
        self.index = None;
    }

    /// How near a container on this spot could get; `None`: all are seen.
    pub(super) fn nearest(&mut self, spot: ContainerSighting, look: &dyn Look) -> Option<HintProximity> {
        if self.open == 0 {
            return None;
        }
        if self.of_host(spot.node, look).is_some() {
            return Some(HintProximity::Host);
        }
        Some(if self.of_rack(spot, look).is_some() { HintProximity::Rack } else { HintProximity::Elsewhere })
    }

    /// Takes a container in; `None`: all are seen.
    pub(super) fn take(&mut self, spot: ContainerSighting, look: &dyn Look) -> Option<HintProximity> {
        let near = self.nearest(spot, look)?;
        self.open -= 1;
        match near {
            HintProximity::Host => {
                let at = self.of_host(spot.node, look).expect("it was just found");
                let displaced = (self.rows[at].open() == 0).then(|| self.pull(at));
                self.rows[at].on_host += 1;
                self.on_host += 1;
                if let Some(displaced) = displaced {
                    self.find_other_row(displaced, look);
                }
            }
            HintProximity::Rack => {
                let at = self.of_rack(spot, look).expect("it was just found");
                let displaced = (self.rows[at].open() == 0).then(|| self.pull(at));
                self.lay(at, spot, true, look);
                if let Some(displaced) = displaced {
                    self.find_other_row(displaced, look);
                }
            }
            HintProximity::Elsewhere => self.anywhere(spot, look),
        }
        Some(near)
    }

    /// A lease of a row of this node ended without a container that is known by name.
    pub(super) fn lease_ended(&mut self, node: NodeIdx, end: LeaseEnd, look: &dyn Look) {
        let (index, rows) = self.indexed(look);
        let Some(at) = index.of_node(node).find(|&at| rows[at].ends() < rows[at].count) else { return };
        let row = &mut self.rows[at];
        match end {
            LeaseEnd::Bound => row.bound_unseen += 1,
            LeaseEnd::Withdrawn => row.withdrawn += 1,
            LeaseEnd::Expired => row.expired += 1,
            LeaseEnd::Released => row.released += 1,
        }
    }

    /// Where the first `most` of its containers are, in the order of the hints; `None`: fewer are known.
    pub(super) fn realised(&self, most: u32) -> Option<Vec<Share>> {
        let mut shares: Vec<Share> = Vec::new();
        let mut left = most;
        let mut add = |node: NodeIdx, count: u32, left: &mut u32| {
            let count = count.min(*left);
            *left -= count;
            match shares.last_mut() {
                Some(last) if last.node == node => last.count += count,
                _ if count > 0 => shares.push(Share { node, count }),
                _ => {}
            }
        };
        for row in &self.rows {
            add(row.node, row.on_host + row.bound_unseen.min(row.open()), &mut left);
            for astray in &row.astray {
                add(astray.spot.node, 1, &mut left);
            }
        }
        (left == 0).then_some(shares)
    }

    fn indexed(&mut self, look: &dyn Look) -> (&mut Index, &[Row]) {
        let index = self.index.get_or_insert_default();
        if index.rows != self.rows.len() {
            **index = Index::new(&self.rows, look);
        }
        (index, &self.rows)
    }

    /// The first row of the host with a place that nobody on it has.
    fn of_host(&mut self, node: NodeIdx, look: &dyn Look) -> Option<usize> {
        let (index, rows) = self.indexed(look);
        index.of_node(node).find(|&at| rows[at].on_host < rows[at].count)
    }

    /// The first open row of the rack; else one that somebody has from another rack; else an open one that names the
    /// node as next best.
    fn of_rack(&mut self, spot: ContainerSighting, look: &dyn Look) -> Option<usize> {
        let (index, rows) = self.indexed(look);
        if let Some(open) = index.by_rack.get_mut(&spot.rack).and_then(|queue| queue.first_open(rows)) {
            return Some(open);
        }
        let taken = index.foreign.range((spot.rack, 0)..=(spot.rack, u32::MAX)).next().map(|&(_, at)| at as usize);
        taken.or_else(|| index.by_fallback.get_mut(&spot.node)?.first_open(rows))
    }

    fn anywhere(&mut self, spot: ContainerSighting, look: &dyn Look) {
        let (index, rows) = self.indexed(look);
        let found = spot.hinted.and_then(|node| index.of_node(node).find(|&at| rows[at].open() > 0));
        let at = found.or_else(|| index.all.first_open(rows)).expect("the group has an open place");
        self.lay(at, spot, false, look);
    }

    /// A container takes a row of another host.
    fn lay(&mut self, at: usize, spot: ContainerSighting, in_rack: bool, look: &dyn Look) {
        let row = &mut self.rows[at];
        let why = if spot.late {
            Miss::LateHint
        } else if row.withdrawn > 0 {
            row.withdrawn -= 1;
            Miss::Withdrawn
        } else if row.expired > 0 {
            row.expired -= 1;
            Miss::Expired
        } else {
            look.why_not(row.node, &self.size)
        };
        row.astray.push(MisplacedContainer { spot, in_rack, why });
        if spot.rack != row.rack {
            row.foreign += 1;
            self.note_foreign(at);
        }
    }

    fn note_foreign(&mut self, at: usize) {
        let (row, Some(index)) = (&self.rows[at], &mut self.index) else { return };
        let key = (row.rack, u32::try_from(at).expect("hints are numbered by u32"));
        if row.foreign > 0 {
            index.foreign.insert(key);
        } else {
            index.foreign.remove(&key);
        }
    }

    /// Takes the container off the row that has least to do with it.
    fn pull(&mut self, at: usize) -> ContainerSighting {
        let row = &mut self.rows[at];
        let rank = |astray: &MisplacedContainer| (astray.spot.rack == row.rack, astray.in_rack);
        let worst = (0..row.astray.len()).min_by_key(|&at| rank(&row.astray[at]));
        let astray = row.astray.swap_remove(worst.expect("a full row without its host's containers has others"));
        match astray.why {
            Miss::Withdrawn => row.withdrawn += 1,
            Miss::Expired => row.expired += 1,
            _ => {}
        }
        if astray.spot.rack != row.rack {
            row.foreign -= 1;
            self.note_foreign(at);
        }
        astray.spot
    }

    /// A container that lost its row finds another: there is one, for the group had an open place.
    fn find_other_row(&mut self, spot: ContainerSighting, look: &dyn Look) {
        match self.of_rack(spot, look) {
            Some(at) if self.rows[at].open() > 0 => self.lay(at, spot, true, look),
            Some(at) => {
                let other = self.pull(at);
                self.lay(at, spot, true, look);
                self.anywhere(other, look);
            }
            None => self.anywhere(spot, look),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A cluster in which every hint names the same three nodes as next best.
    struct Plain;

    impl Look for Plain {
        fn why_not(&self, _node: NodeIdx, _size: &Resource) -> Miss {
            Miss::YarnChose
        }

        fn fallbacks(&self, _hint: u32) -> Vec<NodeIdx> {
            [0, 1, 2].map(NodeIdx).into()
        }
    }

    #[test]
    fn a_decision_of_twenty_thousand_hints_takes_in_its_containers_without_a_look_at_each_hint() {
        const HINTS: u32 = 20_000;
        let key = SchedulerKey { priority: 1, allocation_request_id: -1 };
        let mut group = Group::new("map".into(), key, Resource::ZERO);
        (0..HINTS).for_each(|at| group.push(Row::new(at, NodeIdx(10 + at), RackIdx(at / 40), 1)));
        let began = Instant::now();
        for at in 0..HINTS {
            // A quarter each: on its host, in a hinted rack, on a next best host, elsewhere.
            let (node, rack) = match at % 4 {
                0 => (10 + at, at / 40),
                1 => (9, at / 40),
                2 => (at % 3, 100_000),
                _ => (5, 100_000),
            };
            let spot = ContainerSighting { node: NodeIdx(node), rack: RackIdx(rack), late: false, hinted: None };
            assert!(group.take(spot, &Plain).is_some());
        }
        assert_eq!(group.open(), 0);
        let took = began.elapsed();
        assert!(took.as_secs() < 4, "{took:?}");
    }
}
