//! Which tasks of a group wait, found by size and by where their input lies.
//!
//! A task's *rank* is its place among its group, ascending by input, of equal ones the lowest number last: the last
//! that waits is the largest, and of the largest the first. Each node that holds input of the group has a row: the
//! ranks of the tasks that may read there. Both ends of a row always are tasks that wait, so that they are found at
//! once; what lies between is passed over once. About 37 bytes a task of three replicas.

use super::Locality;
use super::bits::Bits;
use crate::policy::dispatch::TaskInput;
use crate::units::{Bytes, NodeIdx, RackIdx};
use serde::{Deserialize, Serialize};

/// A node and its rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// The rack.
    pub rack: RackIdx,
    /// The node.
    pub node: NodeIdx,
}

impl Spot {
    /// Row of tasks that nothing is known of: they read as well anywhere.
    const ANYWHERE: Self = Self { rack: RackIdx(u32::MAX), node: NodeIdx(u32::MAX) };
}

/// The part of a row's list outside which nothing waits; empty if nothing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Ends {
    front: u32,
    back: u32,
}

/// The tasks of a group that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiting {
    count: u32,
    left: u32,
    waits: Bits,
    /// Ranks outside of which nothing waits.
    low: u32,
    high: u32,
    /// Task of each rank and rank of each task; empty where all inputs are equal.
    task: Vec<u32>,
    rank: Vec<u32>,
    /// Each size of input, and the rank after the last of that size.
    sizes: Vec<(Bytes, u32)>,
    /// Rows, ascending: where each is, where its list begins in `lists`, and what of that may wait.
    spots: Vec<Spot>,
    begins: Vec<u32>,
    ends: Vec<Ends>,
    lists: Vec<u32>,
    /// Rows of the replicas of each rank.
    rows_of: Vec<u32>,
    rows_from: Vec<u32>,
}

/// Which end of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The largest input, and of equal ones the lowest number.
    Largest,
    /// The smallest input, and of equal ones the highest number.
    Smallest,
    /// The largest input that is no larger.
    AtMost(Bytes),
}

impl Waiting {
    /// All `count` wait. `spot` gives a node's rack, none for nodes that are not known. Without `local` nobody asks
    /// where inputs lie.
    pub(super) fn new(count: u32, inputs: &[TaskInput], local: bool, spot: impl Fn(NodeIdx) -> Option<Spot>) -> Self {
        let input = |task: u32| inputs.get(task as usize).map_or(Bytes::ZERO, |input| input.bytes);
        let mut task: Vec<u32> = (0..count).rev().collect();
        task.sort_by_key(|&task| input(task));
        let mut sizes: Vec<(Bytes, u32)> = Vec::new();
        for (rank, &task) in task.iter().enumerate() {
            match sizes.last_mut().filter(|(bytes, _)| *bytes == input(task)) {
                Some(last) => last.1 = rank as u32 + 1,
                None => sizes.push((input(task), rank as u32 + 1)),
            }
        }
        let mut rank = vec![0; count as usize];
        task.iter().enumerate().for_each(|(at, &task)| rank[task as usize] = at as u32);
        let waits = Bits::full(count as usize);
        let mut new = Self {
            count,
            left: count,
            waits,
            low: 0,
            high: count,
            task,
            rank,
            sizes,
            spots: Vec::new(),
            begins: Vec::new(),
            ends: Vec::new(),
            lists: Vec::new(),
            rows_of: Vec::new(),
            rows_from: Vec::new(),
        };
        if local {
            new.place(inputs, spot);
        }
        if new.sizes.len() <= 1 {
            (new.task, new.rank) = (Vec::new(), Vec::new());
        }
        new
    }

    fn place(&mut self, inputs: &[TaskInput], spot: impl Fn(NodeIdx) -> Option<Spot>) {
        let mut pairs: Vec<(Spot, u32)> = Vec::new();
        for (rank, &task) in self.task.iter().enumerate() {
            let from = pairs.len();
            let nodes = inputs.get(task as usize).map_or(&[][..], |input| &input.nodes[..]);
            pairs.extend(nodes.iter().filter_map(|&node| Some((spot(node)?, rank as u32))));
            if pairs.len() == from {
                pairs.push((Spot::ANYWHERE, rank as u32));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        self.rows_from = vec![0; self.count as usize + 1];
        self.lists = pairs.iter().map(|pair| pair.1).collect();
        for (at, (spot, rank)) in pairs.iter().enumerate() {
            self.rows_from[*rank as usize + 1] += 1;
            if self.spots.last() != Some(spot) {
                self.spots.push(*spot);
                self.begins.push(at as u32);
            }
        }
        self.begins.push(self.lists.len() as u32);
        self.ends = self.begins.windows(2).map(|list| Ends { front: list[0], back: list[1] }).collect();
        for rank in 0..self.count as usize {
            self.rows_from[rank + 1] += self.rows_from[rank];
        }
        let mut next = self.rows_from.clone();
        self.rows_of = vec![0; self.lists.len()];
        for row in 0..self.spots.len() {
            for &rank in &self.lists[self.begins[row] as usize..self.begins[row + 1] as usize] {
                self.rows_of[next[rank as usize] as usize] = row as u32;
                next[rank as usize] += 1;
            }
        }
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) const fn left(&self) -> u32 {
        self.left
    }

    pub(super) fn waits(&self, task: u32) -> bool {
        task < self.count && self.waits.has(self.rank(task) as usize)
    }

    /// Input of a task; 0 if it is not known.
    pub(super) fn input(&self, task: u32) -> Bytes {
        let rank = self.rank(task);
        let at = self.sizes.partition_point(|(_, end)| *end <= rank);
        self.sizes.get(at).map_or(Bytes::ZERO, |size| size.0)
    }

    /// Input of all tasks.
    pub(super) fn input_of_all(&self) -> Bytes {
        let mut from = 0;
        self.sizes.iter().fold(Bytes::ZERO, |sum, (bytes, end)| {
            let tasks = u64::from(end - std::mem::replace(&mut from, *end));
            sum.saturating_add(Bytes(bytes.0.saturating_mul(tasks)))
        })
    }

    fn rank(&self, task: u32) -> u32 {
        self.rank.get(task as usize).copied().unwrap_or_else(|| self.count - 1 - task)
    }

    fn task(&self, rank: u32) -> u32 {
        self.task.get(rank as usize).copied().unwrap_or_else(|| self.count - 1 - rank)
    }

    /// How far the task would read there.
    pub(super) fn locality(&self, task: u32, spot: Option<Spot>) -> Locality {
        let rank = self.rank(task) as usize;
        let Some(&[from, to]) = self.rows_from.get(rank..rank + 2) else { return Locality::Node };
        let of_row = |&row: &u32| {
            let at = self.spots[row as usize];
            match spot {
                _ if at == Spot::ANYWHERE => Locality::Node,
                Some(spot) if at == spot => Locality::Node,
                Some(spot) if at.rack == spot.rack => Locality::Rack,
                _ => Locality::Other,
            }
        };
        self.rows_of[from as usize..to as usize].iter().map(of_row).min().unwrap_or(Locality::Other)
    }

    /// Where its input lies.
    pub(super) fn replicas(&self, task: u32) -> impl Iterator<Item = Spot> + '_ {
        let rank = self.rank(task) as usize;
        let rows = match self.rows_from.get(rank..rank + 2) {
            Some(&[from, to]) => &self.rows_of[from as usize..to as usize],
            _ => &[],
        };
        rows.iter().map(|&row| self.spots[row as usize]).filter(|&spot| spot != Spot::ANYWHERE)
    }

    /// It waits no more; says where it would have been local.
    pub(super) fn take(&mut self, task: u32, mut gone_from: impl FnMut(Option<NodeIdx>)) {
        let rank = self.rank(task);
        self.waits.set(rank as usize, false);
        self.left -= 1;
        if rank + 1 == self.high {
            self.high = self.waits.last_below(rank as usize).map_or(0, |last| last as u32 + 1);
        }
        if rank == self.low {
            self.low = self.waits.first_from(rank as usize).map_or(self.count, |first| first as u32);
        }
        let Some(&[from, to]) = self.rows_from.get(rank as usize..rank as usize + 2) else { return };
        for &row in &self.rows_of[from as usize..to as usize] {
            self.ends[row as usize].shrink(&self.lists, &self.waits);
            gone_from(self.spots[row as usize].node());
        }
    }

    /// It waits again; says where it is local.
    pub(super) fn put(&mut self, task: u32, mut back_at: impl FnMut(Option<NodeIdx>)) {
        let rank = self.rank(task);
        self.waits.set(rank as usize, true);
        self.left += 1;
        (self.low, self.high) = (self.low.min(rank), self.high.max(rank + 1));
        let Some(&[from, to]) = self.rows_from.get(rank as usize..rank as usize + 2) else { return };
        for &row in &self.rows_of[from as usize..to as usize] {
            let row = row as usize;
            let begin = self.begins[row];
            let list = &self.lists[begin as usize..self.begins[row + 1] as usize];
            self.ends[row].grow(begin + list.partition_point(|&other| other < rank) as u32);
            back_at(self.spots[row].node());
        }
    }

    /// Each node with tasks that would be local, and how many; none: anywhere.
    pub(super) fn local_counts(&self) -> impl Iterator<Item = (Option<NodeIdx>, u32)> + '_ {
        let counts = (0..self.spots.len()).map(|row| (self.spots[row].node(), self.waiting_in(row)));
        counts.filter(|(_, count)| *count > 0)
    }

    /// How many are local there, those that read as well anywhere left out.
    pub(super) fn local(&self, spot: Spot) -> u32 {
        self.row(spot).map_or(0, |row| self.waiting_in(row))
    }

    fn waiting_in(&self, row: usize) -> u32 {
        let Ends { front, back } = self.ends[row];
        let list = &self.lists[front as usize..back as usize];
        list.iter().filter(|&&rank| self.waits.has(rank as usize)).count() as u32
    }

    /// One with input on the node, else one that reads as well anywhere.
    pub(super) fn on_node(&self, spot: Spot, pick: Pick) -> Option<u32> {
        let on = || self.of_row(self.row(spot)?, pick);
        let anywhere = || (self.spots.last() == Some(&Spot::ANYWHERE)).then(|| self.spots.len() - 1);
        on().or_else(|| self.of_row(anywhere()?, pick)).map(|rank| self.task(rank))
    }

    /// One with input in the rack.
    pub(super) fn in_rack(&self, rack: RackIdx, pick: Pick) -> Option<u32> {
        let from = self.spots.partition_point(|spot| spot.rack < rack);
        let rows = (from..self.spots.len()).take_while(|&row| self.spots[row].rack == rack);
        let ranks = rows.filter_map(|row| self.of_row(row, pick));
        let best = if pick == Pick::Smallest { ranks.min() } else { ranks.max() };
        best.map(|rank| self.task(rank))
    }

    /// One, wherever its input lies.
    pub(super) fn any(&self, pick: Pick) -> Option<u32> {
        let rank = match pick {
            _ if self.left == 0 => None,
            Pick::Largest => Some(self.high - 1),
            Pick::Smallest => Some(self.low),
            Pick::AtMost(bytes) => {
                let limit = self.ranks_up_to(bytes).min(self.high);
                self.waits.last_below(limit as usize).map(|rank| rank as u32)
            }
        };
        rank.map(|rank| self.task(rank))
    }

    /// The row there. Nodes are numbered rack by rack in most clusters, and large jobs have input everywhere: a guess
    /// from the number is near, and is looked around in steps that double.
    fn row(&self, spot: Spot) -> Option<usize> {
        let last = self.spots.iter().rfind(|&&last| last != Spot::ANYWHERE)?;
        let rows = self.spots.len() as u64;
        let guess = (u64::from(spot.node.0) * rows / (u64::from(last.node.0) + 1)).min(rows - 1) as usize;
        let (mut from, mut to, mut step) = (guess, guess + 1, 1);
        while from > 0 && self.spots[from] > spot {
            from = from.saturating_sub(step);
            step *= 2;
        }
        while to < self.spots.len() && self.spots[to - 1] < spot {
            to = (to + step).min(self.spots.len());
            step *= 2;
        }
        self.spots[from..to].binary_search(&spot).ok().map(|at| from + at)
    }

    fn of_row(&self, row: usize, pick: Pick) -> Option<u32> {
        let Ends { front, back } = self.ends[row];
        let list = &self.lists[front as usize..back as usize];
        match pick {
            Pick::Largest => list.last().copied(),
            Pick::Smallest => list.first().copied(),
            Pick::AtMost(bytes) => {
                let limit = self.ranks_up_to(bytes);
                let to = list.partition_point(|&rank| rank < limit);
                list[..to].iter().copied().rfind(|&rank| self.waits.has(rank as usize))
            }
        }
    }

    /// Ranks of inputs no larger.
    fn ranks_up_to(&self, bytes: Bytes) -> u32 {
        let at = self.sizes.partition_point(|(size, _)| *size <= bytes);
        at.checked_sub(1).map_or(0, |at| self.sizes[at].1)
    }
}

impl Ends {
    fn shrink(&mut self, lists: &[u32], waits: &Bits) {
        while self.back > self.front && !waits.has(lists[self.back as usize - 1] as usize) {
            self.back -= 1;
        }
        while self.back > self.front && !waits.has(lists[self.front as usize] as usize) {
            self.front += 1;
        }
    }

    fn grow(&mut self, at: u32) {
        let empty = self.front == self.back;
        (self.front, self.back) = if empty { (at, at + 1) } else { (self.front.min(at), self.back.max(at + 1)) };
    }
}

impl Spot {
    fn node(self) -> Option<NodeIdx> {
        (self != Self::ANYWHERE).then_some(self.node)
    }
}
