//! Which tasks of a group wait, found by size and by where their input lies.
//!
//! A task's *rank* is its place among its group, ascending by input, of equal ones the lowest number last: the last
//! that waits is the largest, and of the largest the first. Each node that holds input of the group has a row: the
//! ranks of the tasks that may read there. Both ends of a row always are tasks that wait, so that they are found at
//! once; what lies between is passed over once. About 25 bytes a task of three replicas, as most jobs' are.
//!
//! A large job's tasks are launched in no order, so nearly every table asked about one is a cache miss: a row has all
//! that a launch asks in half a cache line, and what can be computed from the number is not stored.

use super::Locality;
use super::bits::Bits;
use crate::dispatch::TaskInput;
use hintd_model::units::{Bytes, NodeIdx, RackIdx};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A node and its rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeLocation {
    /// The rack.
    pub rack: RackIdx,
    /// The node.
    pub node: NodeIdx,
}

impl NodeLocation {
    /// Row of tasks that nothing is known of: they read as well anywhere.
    const ANYWHERE: Self = Self { rack: RackIdx(u32::MAX), node: NodeIdx(u32::MAX) };
}

/// A node's tasks: part of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    spot: NodeLocation,
    /// Where its list begins.
    begin: u32,
    /// The part of it outside which nothing waits, and the ranks at both its ends.
    front: u32,
    back: u32,
    first: u32,
    last: u32,
    /// How many wait; the four before mean nothing at 0.
    waiting: u32,
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
    /// Task of each rank and rank of each task; empty where ranks are the numbers backwards, as where all inputs are
    /// equal but for a smaller last one.
    task: Vec<u32>,
    rank: Vec<u32>,
    /// Each size of input, and the rank after the last of that size.
    sizes: Vec<(Bytes, u32)>,
    /// Where each row is, ascending, and the rows.
    spots: Vec<NodeLocation>,
    rows: Vec<Row>,
    lists: Vec<u32>,
    /// One more than the node of the last row of a node; 0 if there is none.
    nodes_end: u32,
    /// Rows of the replicas of each rank: as many for each, or from where on for each.
    rows_of: Vec<u32>,
    each: u32,
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
    pub(super) fn new(
        count: u32,
        inputs: &[TaskInput],
        local: bool,
        spot: impl Fn(NodeIdx) -> Option<NodeLocation>,
    ) -> Self {
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
            rows: Vec::new(),
            lists: Vec::new(),
            nodes_end: 0,
            rows_of: Vec::new(),
            each: 0,
            rows_from: Vec::new(),
        };
        if local {
            new.place(inputs, spot);
        }
        if new.task.iter().rev().enumerate().all(|(at, &task)| at as u32 == task) {
            (new.task, new.rank) = (Vec::new(), Vec::new());
        }
        new
    }

    fn place(&mut self, inputs: &[TaskInput], spot: impl Fn(NodeIdx) -> Option<NodeLocation>) {
        let mut pairs: Vec<(NodeLocation, u32)> = Vec::new();
        for (rank, &task) in self.task.iter().enumerate() {
            let from = pairs.len();
            let nodes = inputs.get(task as usize).map_or(&[][..], |input| &input.nodes[..]);
            pairs.extend(nodes.iter().filter_map(|&node| Some((spot(node)?, rank as u32))));
            if pairs.len() == from {
                pairs.push((NodeLocation::ANYWHERE, rank as u32));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        self.rows_from = vec![0; self.count as usize + 1];
        self.lists = pairs.iter().map(|pair| pair.1).collect();
        for (at, &(spot, rank)) in pairs.iter().enumerate() {
            self.rows_from[rank as usize + 1] += 1;
            if self.spots.last() != Some(&spot) {
                self.spots.push(spot);
                let at = at as u32;
                self.rows.push(Row { spot, begin: at, front: at, back: at, first: rank, last: rank, waiting: 0 });
            }
            if let Some(row) = self.rows.last_mut() {
                (row.back, row.last, row.waiting) = (row.back + 1, rank, row.waiting + 1);
            }
        }
        let last = self.spots.iter().rfind(|&&last| last != NodeLocation::ANYWHERE);
        self.nodes_end = last.map_or(0, |last| last.node.0 + 1);
        for rank in 0..self.count as usize {
            self.rows_from[rank + 1] += self.rows_from[rank];
        }
        let mut next = self.rows_from.clone();
        self.rows_of = vec![0; self.lists.len()];
        for (at, row) in self.rows.iter().enumerate() {
            for &rank in &self.lists[row.front as usize..row.back as usize] {
                self.rows_of[next[rank as usize] as usize] = at as u32;
                next[rank as usize] += 1;
            }
        }
        let each = self.rows_from.get(1).copied().unwrap_or(0);
        if self.rows_from.windows(2).all(|ends| ends[1] - ends[0] == each) {
            (self.each, self.rows_from) = (each, Vec::new());
        }
    }

    /// Rows of the replicas of a rank; `None` where nobody asks for them.
    fn rows_of(&self, rank: u32) -> Option<Range<usize>> {
        let rank = rank as usize;
        if self.each > 0 {
            let each = self.each as usize;
            return Some(rank * each..(rank + 1) * each);
        }
        let ends = self.rows_from.get(rank..rank + 2)?;
        Some(ends[0] as usize..ends[1] as usize)
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

    /// Where its input lies.
    pub(super) fn replicas(&self, task: u32) -> impl Iterator<Item = NodeLocation> + '_ {
        let rows = self.rows_of(self.rank(task)).map_or(&[][..], |rows| &self.rows_of[rows]);
        rows.iter().map(|&row| self.rows[row as usize].spot).filter(|&spot| spot != NodeLocation::ANYWHERE)
    }

    /// It waits no more; says how far it would read from `spot` and where it would have been local.
    pub(super) fn take(
        &mut self,
        task: u32,
        spot: Option<NodeLocation>,
        mut gone_from: impl FnMut(Option<NodeIdx>),
    ) -> Locality {
        let rank = self.rank(task);
        self.waits.set(rank as usize, false);
        self.left -= 1;
        if rank + 1 == self.high {
            self.high = self.waits.last_below(rank as usize).map_or(0, |last| last as u32 + 1);
        }
        if rank == self.low {
            self.low = self.waits.first_from(rank as usize).map_or(self.count, |first| first as u32);
        }
        let Some(rows) = self.rows_of(rank) else { return Locality::Node };
        let mut locality = Locality::Other;
        for &row in &self.rows_of[rows] {
            let row = &mut self.rows[row as usize];
            row.take(rank, &self.lists, &self.waits);
            gone_from(row.spot.node());
            locality = locality.min(row.spot.locality(spot));
        }
        locality
    }

    /// It waits again; says where it is local.
    pub(super) fn put(&mut self, task: u32, mut back_at: impl FnMut(Option<NodeIdx>)) {
        let rank = self.rank(task);
        self.waits.set(rank as usize, true);
        self.left += 1;
        (self.low, self.high) = (self.low.min(rank), self.high.max(rank + 1));
        let Some(rows) = self.rows_of(rank) else { return };
        for &at in &self.rows_of[rows] {
            let end = self.rows.get(at as usize + 1).map_or(self.lists.len(), |next| next.begin as usize);
            let row = &mut self.rows[at as usize];
            row.put(rank, &self.lists[..end]);
            back_at(row.spot.node());
        }
    }

    /// Each node with tasks that would be local, and how many; none: anywhere.
    pub(super) fn local_counts(&self) -> impl Iterator<Item = (Option<NodeIdx>, u32)> + '_ {
        self.rows.iter().map(|row| (row.spot.node(), row.waiting)).filter(|(_, count)| *count > 0)
    }

    /// How many are local there, those that read as well anywhere left out.
    pub(super) fn local(&self, spot: NodeLocation) -> u32 {
        self.row(spot).map_or(0, |row| self.rows[row].waiting)
    }

    /// One with input on the node, else one that reads as well anywhere.
    pub(super) fn on_node(&self, spot: NodeLocation, pick: Pick) -> Option<u32> {
        let on = || self.of_row(self.row(spot)?, pick);
        let anywhere = || (self.spots.last() == Some(&NodeLocation::ANYWHERE)).then(|| self.spots.len() - 1);
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
    fn row(&self, spot: NodeLocation) -> Option<usize> {
        let rows = self.spots.len() as u64;
        let guess = (u64::from(spot.node.0) * rows).checked_div(self.nodes_end.into())?.min(rows - 1) as usize;
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
        let row = &self.rows[row];
        match pick {
            _ if row.waiting == 0 => None,
            Pick::Largest => Some(row.last),
            Pick::Smallest => Some(row.first),
            Pick::AtMost(bytes) => {
                let limit = self.ranks_up_to(bytes);
                let list = &self.lists[row.front as usize..row.back as usize];
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

impl Row {
    /// `rank` waits no more.
    fn take(&mut self, rank: u32, lists: &[u32], waits: &Bits) {
        self.waiting -= 1;
        if self.waiting == 0 {
            return;
        }
        if rank == self.last {
            while !waits.has(self.last as usize) {
                self.back -= 1;
                self.last = lists[self.back as usize - 1];
            }
        } else if rank == self.first {
            while !waits.has(self.first as usize) {
                self.front += 1;
                self.first = lists[self.front as usize];
            }
        }
    }

    /// `rank` waits again; `lists` ends with the row's.
    fn put(&mut self, rank: u32, lists: &[u32]) {
        let at = self.begin + lists[self.begin as usize..].partition_point(|&other| other < rank) as u32;
        let empty = self.waiting == 0;
        self.waiting += 1;
        if empty || at < self.front {
            (self.front, self.first) = (at, rank);
        }
        if empty || at >= self.back {
            (self.back, self.last) = (at + 1, rank);
        }
    }
}

impl NodeLocation {
    fn node(self) -> Option<NodeIdx> {
        (self != Self::ANYWHERE).then_some(self.node)
    }

    /// How far input that lies here is from there.
    fn locality(self, spot: Option<Self>) -> Locality {
        match spot {
            _ if self == Self::ANYWHERE => Locality::Node,
            Some(spot) if self == spot => Locality::Node,
            Some(spot) if self.rack == spot.rack => Locality::Rack,
            _ => Locality::Other,
        }
    }
}
