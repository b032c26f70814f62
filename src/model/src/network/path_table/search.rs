//! The k shortest loopless paths from many switches to one.

use super::PathTableOptions;
use super::deviations::{Asked, Deviated, Deviations};
use super::links::{Links, link_hash, pair_key, path_hash};
use super::wiring::{NONE, Port, Wiring};
use std::collections::BinaryHeap;

/// Longest walks that are counted.
const LONGEST_WALK: usize = 64;

/// What was found for a pair.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Links of each path from the source to the target, by (length, hash).
    pub(super) paths: Vec<Links>,
    /// Whether ties were broken step by step.
    pub(super) loose: bool,
    /// Whether the search ended at its bound; then ties are loose as well.
    pub(super) cut_short: bool,
    /// Whether what was found may hang on links that are nowhere near.
    pub(super) strained: bool,
}

/// Searches towards one target after another.
///
/// Paths are tried length by length and depth first, along ports that leave enough hops to reach the target. All
/// paths of the last length needed are compared by hash, so that the choice among them is free of the order of
/// ports.
pub(super) struct Search<'a> {
    wiring: &'a Wiring,
    k: usize,
    seed: u64,
    most_walks: u32,
    most_steps: u64,
    scratch: Scratch,
}

/// What a search keeps from one source to the next, and may be put aside for: it holds for one wiring.
#[derive(Debug)]
pub(super) struct Scratch {
    target: u32,
    /// Hops to the target by row.
    hops: Vec<u32>,
    /// Walks of each length to the target by row.
    walks: Vec<Vec<u32>>,
    /// By row: the last round in which it was the target, or a stub on whose far side the target is.
    above_target: Vec<u32>,
    /// By port: a row's ports worth trying, nearest to the target first.
    order: Vec<Port>,
    /// By row: where those end, and for which round of targets that holds.
    sorted: Vec<(u32, u32)>,
    round: u32,
    on_path: Vec<bool>,
    stack: Vec<Step>,
    deviations: Deviations,
    /// Ports looked at.
    steps: u64,
}

#[derive(Debug)]
struct Step {
    row: u32,
    /// Position in `order`.
    next: u32,
    /// The link that led here.
    link: u32,
    sum: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(wiring: &'a Wiring, options: &PathTableOptions) -> Self {
        Self::resume(wiring, options, Scratch::of(wiring))
    }

    /// Goes on with what an earlier search of the same wiring left.
    pub(super) fn resume(wiring: &'a Wiring, options: &PathTableOptions, scratch: Scratch) -> Self {
        let (k, seed) = (options.k.get(), options.seed);
        Self { wiring, k, seed, most_walks: options.most_walks, most_steps: options.most_pair_steps, scratch }
    }

    /// Leaves what the next search may go on with.
    pub(super) fn put_aside(self) -> Scratch {
        self.scratch
    }

    /// Ports looked at so far.
    pub(super) const fn steps(&self) -> u64 {
        self.scratch.steps
    }

    /// Turns to a target; rows that are asked for afterwards lead to it.
    pub(super) fn aim(&mut self, target: u32) {
        let scratch = &mut self.scratch;
        if scratch.target == target {
            return;
        }
        scratch.target = target;
        scratch.round += 1;
        self.wiring.hops_from(target, &mut scratch.hops);
        scratch.steps += self.wiring.sweep();
        scratch.walks.clear();
        let mut stub = Some(target).filter(|&row| self.wiring.is_stub(row));
        while let Some(row) = stub {
            scratch.above_target[row as usize] = scratch.round;
            stub = self.wiring.above_stub(row).filter(|&above| self.wiring.is_stub(above));
        }
    }

    /// The k shortest loopless paths from `source`, another row than the target, ties broken by hash; fewer if
    /// there are fewer.
    pub(super) fn find(&mut self, source: u32) -> Found {
        let mut found = Found::default();
        let target = self.scratch.target;
        let [from, to] = [source, target].map(|row| self.wiring.switches()[row as usize]);
        let key = pair_key(self.seed, from, to);
        let mut length = Some(self.scratch.hops[source as usize]).filter(|&hops| hops != NONE);
        while let Some(now) = length {
            if self.too_many_walks(source, now as usize) {
                let asked = Asked { source, target, k: self.k, key, most_steps: self.most_steps };
                let Deviated { paths, cut_short, strained } = self.scratch.deviations.shortest(self.wiring, asked);
                self.scratch.steps += self.scratch.deviations.steps();
                // With fewer there are no others, so nothing was chosen.
                return Found { loose: strained || paths.len() == self.k, paths, cut_short, strained };
            }
            let mut best = Best { most: self.k - found.paths.len(), paths: BinaryHeap::new() };
            length = self.walk(source, now, key, &mut best);
            found.paths.extend(best.paths.into_sorted_vec().into_iter().map(|(_, links)| links));
            if found.paths.len() == self.k {
                break;
            }
        }
        found
    }

    /// Offers all loopless paths of exactly `length`. Gives the least length at which there may be more.
    fn walk(&mut self, source: u32, length: u32, key: u64, best: &mut Best) -> Option<u32> {
        let mut longer: Option<u32> = None;
        self.enter(source, NONE, 0);
        while let Some(step) = self.scratch.stack.last_mut() {
            self.scratch.steps += 1;
            let (row, sum) = (step.row, step.sum);
            if step.next == self.scratch.sorted[row as usize].0 {
                self.leave();
                continue;
            }
            let port = self.scratch.order[step.next as usize];
            step.next += 1;
            if self.scratch.on_path[port.to as usize] {
                continue;
            }
            let walked = self.scratch.stack.len() as u32;
            let total = walked + self.scratch.hops[port.to as usize];
            if total > length {
                longer = Some(longer.map_or(total, |least| least.min(total)));
                self.leave(); // the ports after this one lead no nearer
                continue;
            }
            let sum = sum.wrapping_add(link_hash(port.link));
            if port.to != self.scratch.target {
                self.enter(port.to, port.link, sum);
            } else if walked == length {
                let links = self.scratch.stack[1..].iter().map(|step| step.link).chain([port.link]);
                best.offer(path_hash(key, sum), links);
            }
        }
        longer
    }

    fn enter(&mut self, row: u32, link: u32, sum: u64) {
        if self.scratch.sorted[row as usize].1 != self.scratch.round {
            self.sort_ports(row);
        }
        self.scratch.on_path[row as usize] = true;
        self.scratch.stack.push(Step { row, next: self.wiring.start(row) as u32, link, sum });
    }

    fn leave(&mut self) {
        if let Some(step) = self.scratch.stack.pop() {
            self.scratch.on_path[step.row as usize] = false;
        }
    }

    /// Lists a row's ports that can be on a path to the target, nearest first.
    fn sort_ports(&mut self, row: u32) {
        let start = self.wiring.start(row);
        let mut end = start;
        self.scratch.steps += self.wiring.ports(row).len() as u64;
        for port in self.wiring.hops(row) {
            let climbs = || self.wiring.is_stub(row) && self.wiring.above_stub(row) == Some(port.to);
            if !self.wiring.is_stub(port.to)
                || climbs()
                || self.scratch.above_target[port.to as usize] == self.scratch.round
            {
                self.scratch.order[end] = port;
                end += 1;
            }
        }
        let hops = &self.scratch.hops;
        self.scratch.order[start..end].sort_unstable_by_key(|port| (hops[port.to as usize], port.link));
        self.scratch.sorted[row as usize] = (end as u32, self.scratch.round);
    }

    /// Whether there are more than `most_walks` walks of up to `length` links between `source` and the target.
    /// It bounds the work of [`Self::walk`], as each step of that is the start of such a walk, and unlike the
    /// steps themselves it is the same in both directions.
    fn too_many_walks(&mut self, source: u32, length: usize) -> bool {
        if length > LONGEST_WALK {
            return true;
        }
        while self.scratch.walks.len() <= length {
            let next = match self.scratch.walks.last() {
                None => {
                    let mut none = vec![0; self.wiring.len()];
                    none[self.scratch.target as usize] = 1;
                    none
                }
                Some(last) => (0..self.wiring.len() as u32)
                    .map(|row| {
                        let onwards = self.wiring.hops(row).map(|port| last[port.to as usize]);
                        onwards.fold(0_u32, |sum, walks| sum.saturating_add(walks))
                    })
                    .collect(),
            };
            self.scratch.steps += self.wiring.sweep();
            self.scratch.walks.push(next);
        }
        self.scratch.walks[..=length].iter().map(|walks| walks[source as usize]).fold(0, u32::saturating_add)
            > self.most_walks
    }
}

impl Scratch {
    fn of(wiring: &Wiring) -> Self {
        Self {
            target: NONE,
            hops: Vec::new(),
            walks: Vec::new(),
            above_target: vec![0; wiring.len()],
            order: vec![Port { to: NONE, link: NONE }; wiring.port_rows()],
            sorted: vec![(0, 0); wiring.len()],
            round: 0,
            on_path: vec![false; wiring.len()],
            stack: Vec::new(),
            deviations: Deviations::default(),
            steps: 0,
        }
    }

    /// The row that it is turned to.
    pub(super) const fn target(&self) -> u32 {
        self.target
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let walks: usize = self.walks.iter().map(|walks| size_of_val(&**walks)).sum();
        let columns = size_of_val(&*self.hops) + size_of_val(&*self.order) + size_of_val(&*self.sorted);
        walks + columns + size_of_val(&*self.on_path) + self.deviations.bytes()
    }
}

/// The least so many by hash.
struct Best {
    most: usize,
    paths: BinaryHeap<(u64, Links)>,
}

impl Best {
    fn offer(&mut self, hash: u64, links: impl Iterator<Item = u32>) {
        if self.paths.len() == self.most {
            match self.paths.peek_mut() {
                Some(mut worst) if hash < worst.0 => *worst = (hash, links.collect()),
                _ => {}
            }
        } else {
            self.paths.push((hash, links.collect()));
        }
    }
}
