//! k shortest loopless paths where there are too many to try them all: deviations from those found (Yen, "Finding
//! the K Shortest Loopless Paths in a Network", 1971), with each link of a parallel bundle on its own.
//!
//! Two things keep a long path cheap. A path is left only at and after the place where it left its own parent: before
//! that, the deviations are its parent's (Lawler, 1972). And a deviation is searched forwards from where it leaves,
//! nearest to the target first (A* with hops in the whole network as the bound), so that it costs about its own length
//! where the way is free, and what lies behind the place where there is none: not the network.

use super::links::{Links, link_hash, path_hash};
use super::wiring::{NONE, Wiring};
use crate::network::path::mix;
use std::collections::BTreeMap;

/// What is kept from one pair to the next, so that a pair costs what it looks at and not what there is.
#[derive(Debug, Clone, Default)]
pub(super) struct Deviations {
    target: Option<u32>,
    /// Hops to the target by row, whatever is passed.
    hops: Vec<u32>,
    /// By row: the last round in which a path may not pass it.
    passed: Vec<u32>,
    /// By row: the last search that reached it, and hops from where that began.
    reached: Vec<(u32, u32)>,
    /// By row: the last search that has it on a shortest way.
    ahead: Vec<u32>,
    round: u32,
    search: u32,
    /// Rows that wait, by how much longer a way through them is at least than the shortest there might be.
    waiting: Vec<Vec<u32>>,
    /// Levels of `waiting` that the search has used.
    levels: usize,
    backwards: Vec<u32>,
    /// Usable ports looked at since the pair began, whatever is kept: a pair is cut short whenever it is asked for, or
    /// never.
    steps: u64,
    /// Steps of turning to the target, if the last pair had another.
    turned: u64,
}

/// What was found for a pair.
#[derive(Debug)]
pub(super) struct Deviated {
    /// Links of each path in order from the source, by (length, hash).
    pub(super) paths: Vec<Links>,
    /// Whether the search ended at its bound: then these are paths, and not all of them need be the shortest.
    pub(super) cut_short: bool,
    /// Whether it came so near to its bound that a change anywhere may have it cut short, or not any more.
    pub(super) strained: bool,
}

/// A pair is strained beyond this part of its bound. One change would have to make its search so many times as long to
/// have it cut short unseen.
const STRAIN: u64 = 16;

/// A pair's question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) source: u32,
    pub(super) target: u32,
    /// Paths wanted.
    pub(super) k: usize,
    /// Of its hashes.
    pub(super) key: u64,
    /// Ports looked at, at most; it may be exceeded by one deviation.
    pub(super) most_steps: u64,
}

impl Deviations {
    /// Links of the k shortest loopless paths between two rows, in order from `source`, by (length, hash). Of equal
    /// ones each deviation takes, step by step, the port with the least hash of pair and link: lengths are exact, the
    /// choice among the last length is not by the hash of whole paths. Cut short, the paths found are the shortest, and
    /// those that wait fill up the rest.
    ///
    /// The same for both directions: it is always searched from the lower row.
    pub(super) fn shortest(&mut self, wiring: &Wiring, asked: Asked) -> Deviated {
        let (low, high) = (asked.source.min(asked.target), asked.source.max(asked.target));
        self.aim(wiring, high);
        let mut yen = Yen { scratch: self, wiring, key: asked.key, most_steps: asked.most_steps };
        let mut found = yen.run(low, asked.k);
        found.paths.sort_by_key(|links| (links.len(), hash(asked.key, links)));
        if asked.source != low {
            found.paths.iter_mut().for_each(|links| links.reverse());
        }
        found
    }

    /// Ports looked at for the last pair.
    pub(super) const fn steps(&self) -> u64 {
        self.steps + self.turned
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.hops) + size_of_val(&*self.passed) + size_of_val(&*self.reached) + size_of_val(&*self.ahead)
    }

    fn aim(&mut self, wiring: &Wiring, target: u32) {
        (self.steps, self.turned) = (0, 0);
        if self.target != Some(target) {
            self.target = Some(target);
            wiring.hops_from(target, &mut self.hops);
            self.turned = wiring.sweep();
        }
        if self.passed.len() != wiring.len() || self.round > NONE / 2 || self.search > NONE / 2 {
            (self.round, self.search) = (0, 0);
            self.passed = vec![0; wiring.len()];
            self.reached = vec![(0, 0); wiring.len()];
            self.ahead = vec![0; wiring.len()];
        }
    }
}

fn hash(key: u64, links: &[u32]) -> u64 {
    path_hash(key, links.iter().fold(0, |sum, &link| sum.wrapping_add(link_hash(link))))
}

/// A path in the order in which paths are taken: the shortest first, then by hash.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RankedPath {
    length: usize,
    hash: u64,
    links: Links,
}

impl RankedPath {
    fn of(key: u64, links: Links) -> Self {
        Self { length: links.len(), hash: hash(key, &links), links }
    }
}

/// Paths that wait, with where each left its parent; one that is found from several deviations stands once.
type WaitingPaths = BTreeMap<RankedPath, usize>;

struct Yen<'a> {
    scratch: &'a mut Deviations,
    wiring: &'a Wiring,
    key: u64,
    most_steps: u64,
}

impl Yen<'_> {
    fn run(&mut self, source: u32, k: usize) -> Deviated {
        let mut found: Vec<Links> = Vec::new();
        let mut waiting = WaitingPaths::new();
        self.begin_path();
        self.pass(source);
        let first = self.spur(source, &[]);
        waiting.extend(first.map(|links| (RankedPath::of(self.key, links), 0)));
        let mut cut_short = false;
        while found.len() < k {
            let Some((RankedPath { links, .. }, left_at)) = waiting.pop_first() else { break };
            cut_short = !self.deviate(source, (&links, left_at), &found, &mut waiting);
            found.push(links);
            if cut_short {
                break;
            }
        }
        // Full without them is whole all the same.
        cut_short &= found.len() < k;
        while cut_short && found.len() < k {
            let Some((RankedPath { links, .. }, _)) = waiting.pop_first() else { break };
            found.push(links);
        }
        let strained = cut_short || self.scratch.steps > self.most_steps / STRAIN;
        Deviated { paths: found, cut_short, strained }
    }

    /// Adds the ways that leave a path at `left_at` or later; whether the bound allowed all of them.
    fn deviate(
        &mut self,
        source: u32,
        (links, left_at): (&Links, usize),
        found: &[Links],
        waiting: &mut WaitingPaths,
    ) -> bool {
        let rows = self.rows(source, links);
        let mut alike: Vec<&Links> = found.iter().filter(|path| path.starts_with(&links[..left_at])).collect();
        self.begin_path();
        rows[..left_at].iter().for_each(|&row| self.pass(row));
        let mut taken = Vec::new();
        for at in left_at..links.len() {
            if self.scratch.steps >= self.most_steps {
                return false;
            }
            self.pass(rows[at]);
            taken.clear();
            taken.push(links[at]);
            taken.extend(alike.iter().map(|path| path[at]));
            if let Some(rest) = self.spur(rows[at], &taken) {
                let whole: Links = links[..at].iter().copied().chain(rest).collect();
                waiting.entry(RankedPath::of(self.key, whole)).or_insert(at);
            }
            alike.retain(|path| path[at] == links[at]);
            self.scratch.steps += 1;
        }
        true
    }

    /// Nothing is passed yet.
    fn begin_path(&mut self) {
        self.scratch.round += 1;
    }

    fn pass(&mut self, row: u32) {
        self.scratch.passed[row as usize] = self.scratch.round;
    }

    fn is_passed(&self, row: u32) -> bool {
        self.scratch.passed[row as usize] == self.scratch.round
    }

    /// Hops from where the search began, where it was.
    fn reached(&self, row: u32) -> Option<u32> {
        let (search, hops) = self.scratch.reached[row as usize];
        (search == self.scratch.search).then_some(hops)
    }

    /// The shortest way on from `from`, a row that is passed, that meets no passed row and starts with none of `taken`.
    fn spur(&mut self, from: u32, taken: &[u32]) -> Option<Links> {
        let target = self.scratch.target?;
        self.spread(from, taken, target)?;
        self.mark_ahead(target);
        let length = self.reached(target)?;
        let wiring = self.wiring;
        let mut links = Links::new();
        let mut here = from;
        for walked in 1..=length {
            let ports = wiring.hops(here).filter(|port| {
                let on = self.scratch.ahead[port.to as usize] == self.scratch.search;
                on && self.reached(port.to) == Some(walked) && (walked > 1 || !taken.contains(&port.link))
            });
            let port = ports
                .min_by_key(|port| (self.tie(port.link), port.link))
                .expect("every row on a shortest way has the next one beside it");
            self.scratch.steps += 1;
            links.push(port.link);
            here = port.to;
        }
        Some(links)
    }

    /// Reaches rows in the order of the least length that a way through them may have, until all are reached that a
    /// shortest one passes. `None`: there is no way.
    fn spread(&mut self, from: u32, taken: &[u32], target: u32) -> Option<()> {
        let wiring = self.wiring;
        let least = self.scratch.hops[from as usize];
        if least == NONE {
            return None;
        }
        self.scratch.search += 1;
        let used = std::mem::take(&mut self.scratch.levels);
        self.scratch.waiting[..used].iter_mut().for_each(Vec::clear);
        for port in wiring.hops(from) {
            if !taken.contains(&port.link) {
                self.reach(port.to, 1, least);
            }
            self.scratch.steps += 1;
        }
        let mut level = 0;
        while level < self.scratch.levels {
            let mut arrived = false;
            while let Some(row) = self.scratch.waiting[level].pop() {
                let Some(hops) = self.reached(row) else { continue };
                if (hops + self.scratch.hops[row as usize] - least) as usize != level {
                    continue; // it was reached on a shorter way since
                }
                if row == target {
                    arrived = true;
                    continue;
                }
                for port in wiring.hops(row) {
                    self.reach(port.to, hops + 1, least);
                    self.scratch.steps += 1;
                }
            }
            if arrived {
                return Some(());
            }
            level += 1;
        }
        self.scratch.levels = 0; // all of them are empty
        None
    }

    fn reach(&mut self, row: u32, hops: u32, least: u32) {
        let ahead = self.scratch.hops[row as usize];
        if ahead == NONE || self.is_passed(row) || self.reached(row).is_some_and(|known| known <= hops) {
            return;
        }
        let scratch = &mut *self.scratch;
        scratch.reached[row as usize] = (scratch.search, hops);
        let level = (hops + ahead - least) as usize;
        if scratch.waiting.len() <= level {
            scratch.waiting.resize_with(level + 1, Vec::new);
        }
        scratch.waiting[level].push(row);
        scratch.levels = scratch.levels.max(level + 1);
    }

    /// Marks what is on a shortest way to the target, from its end.
    fn mark_ahead(&mut self, target: u32) {
        let wiring = self.wiring;
        let search = self.scratch.search;
        self.scratch.ahead[target as usize] = search;
        self.scratch.backwards.push(target);
        while let Some(row) = self.scratch.backwards.pop() {
            let Some(hops) = self.reached(row) else { continue };
            for port in wiring.hops(row) {
                let before = self.reached(port.to).is_some_and(|known| known + 1 == hops);
                if before && self.scratch.ahead[port.to as usize] != search {
                    self.scratch.ahead[port.to as usize] = search;
                    self.scratch.backwards.push(port.to);
                }
                self.scratch.steps += 1;
            }
        }
    }

    fn tie(&self, link: u32) -> u64 {
        mix(self.key ^ link_hash(link))
    }

    fn rows(&self, source: u32, links: &[u32]) -> Vec<u32> {
        let mut rows = vec![source];
        for &link in links {
            let here = rows[rows.len() - 1];
            rows.push(self.wiring.ports(here)[self.wiring.port_of(here, link)].to);
        }
        rows
    }
}
