//! The k shortest loopless paths from many switches to one.

use super::wiring::{NONE, Port, Wiring};
use super::{PathTableOptions, deviations};
use crate::network::path::mix;
use crate::units::VertexIdx;
use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// Links of a path, in order.
pub(super) type Links = SmallVec<[u32; 8]>;

/// Longest walks that are counted.
const LONGEST_WALK: usize = 64;

/// Key of a pair's hashes; the same in both directions.
pub(super) fn pair_key(seed: u64, a: VertexIdx, b: VertexIdx) -> u64 {
    let (low, high) = (a.0.min(b.0), a.0.max(b.0));
    mix(mix(seed) ^ (u64::from(low) << 32 | u64::from(high)))
}

/// What a link adds to a path's hash.
pub(super) fn link_hash(link: u32) -> u64 {
    mix(u64::from(link))
}

/// The hash that breaks ties: of the pair and of the path's links, in any order, so that a path and its reverse
/// have the same.
pub(super) fn path_hash(key: u64, sum: u64) -> u64 {
    mix(key.wrapping_add(sum))
}

/// What was found for a pair.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Links of each path from the source to the target, by (length, hash).
    pub(super) paths: Vec<Links>,
    /// Whether ties were broken step by step.
    pub(super) loose: bool,
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
    target: u32,
    /// Hops to the target by row.
    hops: Vec<u32>,
    /// Walks of each length to the target by row.
    walks: Vec<Vec<u32>>,
    /// Stubs on whose far side the target is, and itself if it is one.
    above_target: Vec<u32>,
    /// By port: a row's ports worth trying, nearest to the target first.
    order: Vec<Port>,
    /// By row: where those end, and for which round of targets that holds.
    sorted: Vec<(u32, u32)>,
    round: u32,
    on_path: Vec<bool>,
    stack: Vec<Step>,
}

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
        Self {
            wiring,
            k: options.k.get(),
            seed: options.seed,
            most_walks: options.most_walks,
            target: NONE,
            hops: Vec::new(),
            walks: Vec::new(),
            above_target: Vec::new(),
            order: vec![Port { to: NONE, link: NONE }; wiring.port_rows()],
            sorted: vec![(0, 0); wiring.len()],
            round: 0,
            on_path: vec![false; wiring.len()],
            stack: Vec::new(),
        }
    }

    /// Turns to a target; rows that are asked for afterwards lead to it.
    pub(super) fn aim(&mut self, target: u32) {
        self.target = target;
        self.round += 1;
        self.wiring.hops_from(target, &mut self.hops);
        self.walks.clear();
        self.above_target.clear();
        let mut stub = Some(target).filter(|&row| self.wiring.is_stub(row));
        while let Some(row) = stub {
            self.above_target.push(row);
            stub = self.wiring.above_stub(row).filter(|&above| self.wiring.is_stub(above));
        }
    }

    /// The k shortest loopless paths from `source`, another row than the target, ties broken by hash; fewer if
    /// there are fewer.
    pub(super) fn find(&mut self, source: u32) -> Found {
        let mut found = Found::default();
        let [from, to] = [source, self.target].map(|row| self.wiring.switches()[row as usize]);
        let key = pair_key(self.seed, from, to);
        let mut length = Some(self.hops[source as usize]).filter(|&hops| hops != NONE);
        while let Some(now) = length {
            if self.too_many_walks(source, now as usize) {
                let paths = deviations::shortest(self.wiring, source, self.target, self.k, key);
                // With fewer there are no others, so nothing was chosen.
                return Found { loose: paths.len() == self.k, paths };
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
        while let Some(step) = self.stack.last_mut() {
            let (row, sum) = (step.row, step.sum);
            if step.next == self.sorted[row as usize].0 {
                self.leave();
                continue;
            }
            let port = self.order[step.next as usize];
            step.next += 1;
            if self.on_path[port.to as usize] {
                continue;
            }
            let walked = self.stack.len() as u32;
            let total = walked + self.hops[port.to as usize];
            if total > length {
                longer = Some(longer.map_or(total, |least| least.min(total)));
                self.leave(); // the ports after this one lead no nearer
                continue;
            }
            let sum = sum.wrapping_add(link_hash(port.link));
            if port.to != self.target {
                self.enter(port.to, port.link, sum);
            } else if walked == length {
                let links = self.stack[1..].iter().map(|step| step.link).chain([port.link]);
                best.offer(path_hash(key, sum), links);
            }
        }
        longer
    }

    fn enter(&mut self, row: u32, link: u32, sum: u64) {
        if self.sorted[row as usize].1 != self.round {
            self.sort_ports(row);
        }
        self.on_path[row as usize] = true;
        self.stack.push(Step { row, next: self.wiring.start(row) as u32, link, sum });
    }

    fn leave(&mut self) {
        if let Some(step) = self.stack.pop() {
            self.on_path[step.row as usize] = false;
        }
    }

    /// Lists a row's ports that can be on a path to the target, nearest first.
    fn sort_ports(&mut self, row: u32) {
        let start = self.wiring.start(row);
        let mut end = start;
        for port in self.wiring.hops(row) {
            let climbs = || self.wiring.is_stub(row) && self.wiring.above_stub(row) == Some(port.to);
            if !self.wiring.is_stub(port.to) || climbs() || self.above_target.contains(&port.to) {
                self.order[end] = port;
                end += 1;
            }
        }
        let hops = &self.hops;
        self.order[start..end].sort_unstable_by_key(|port| (hops[port.to as usize], port.link));
        self.sorted[row as usize] = (end as u32, self.round);
    }

    /// Whether there are more than `most_walks` walks of up to `length` links between `source` and the target.
    /// It bounds the work of [`Self::walk`], as each step of that is the start of such a walk, and unlike the
    /// steps themselves it is the same in both directions.
    fn too_many_walks(&mut self, source: u32, length: usize) -> bool {
        if length > LONGEST_WALK {
            return true;
        }
        while self.walks.len() <= length {
            let next = match self.walks.last() {
                None => {
                    let mut none = vec![0; self.wiring.len()];
                    none[self.target as usize] = 1;
                    none
                }
                Some(last) => (0..self.wiring.len() as u32)
                    .map(|row| {
                        let onwards = self.wiring.hops(row).map(|port| last[port.to as usize]);
                        onwards.fold(0_u32, |sum, walks| sum.saturating_add(walks))
                    })
                    .collect(),
            };
            self.walks.push(next);
        }
        self.walks[..=length].iter().map(|walks| walks[source as usize]).fold(0, u32::saturating_add) > self.most_walks
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
