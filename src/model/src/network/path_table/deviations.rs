//! k shortest loopless paths where there are too many to try them all: deviations from those found (Yen, "Finding
//! the K Shortest Loopless Paths in a Network", 1971), with each link of a parallel bundle on its own.

use super::search::{Links, link_hash, path_hash};
use super::wiring::{NONE, Wiring};
use crate::network::path::mix;
use std::collections::{BTreeSet, VecDeque};

/// Links of the k shortest loopless paths between two rows, in order from `source`, by (length, hash). Of equal
/// ones each deviation takes, step by step, the port with the least hash of pair and link: lengths are exact, the
/// choice among the last length is not by the hash of whole paths.
///
/// The same for both directions: it is always searched from the lower row.
pub(super) fn shortest(wiring: &Wiring, source: u32, target: u32, k: usize, key: u64) -> Vec<Links> {
    let (low, high) = (source.min(target), source.max(target));
    let mut yen = Yen { wiring, target: high, key, labels: Vec::new(), queue: VecDeque::new() };
    let mut found = yen.run(low, k);
    found.sort_by_key(|links| (links.len(), hash(key, links)));
    if source != low {
        found.iter_mut().for_each(|links| links.reverse());
    }
    found
}

fn hash(key: u64, links: &[u32]) -> u64 {
    path_hash(key, links.iter().fold(0, |sum, &link| sum.wrapping_add(link_hash(link))))
}

struct Yen<'a> {
    wiring: &'a Wiring,
    target: u32,
    key: u64,
    /// Hops to the target by row, of the current search.
    labels: Vec<u32>,
    queue: VecDeque<u32>,
}

impl Yen<'_> {
    fn run(&mut self, source: u32, k: usize) -> Vec<Links> {
        let mut found: Vec<Links> = Vec::new();
        // By length and hash; paths found from several deviations stand once.
        let mut waiting = BTreeSet::new();
        let first = self.spur(&[], source, &BTreeSet::new());
        waiting.extend(first.map(|links| (links.len(), hash(self.key, &links), links)));
        while found.len() < k {
            let Some((_, _, links)) = waiting.pop_first() else { break };
            let rows = self.rows(source, &links);
            for at in 0..links.len() {
                let root = &links[..at];
                let taken = found.iter().chain([&links]).filter(|path| path.starts_with(root));
                let taken: BTreeSet<u32> = taken.map(|path| path[at]).collect();
                if let Some(rest) = self.spur(&rows[..at], rows[at], &taken) {
                    let whole: Links = root.iter().copied().chain(rest).collect();
                    waiting.insert((whole.len(), hash(self.key, &whole), whole));
                }
            }
            found.push(links);
        }
        found
    }

    /// The shortest way on from `from` that meets none of `passed` and starts with none of `taken`.
    fn spur(&mut self, passed: &[u32], from: u32, taken: &BTreeSet<u32>) -> Option<Links> {
        self.label(passed, from);
        let fitting = self.wiring.hops(from).filter(|port| !taken.contains(&port.link));
        let known = fitting.filter(|port| self.labels[port.to as usize] < BLOCKED);
        let mut here = known.min_by_key(|port| (self.labels[port.to as usize], self.tie(port.link), port.link))?;
        let mut links = Links::from_slice(&[here.link]);
        while here.to != self.target {
            let nearer = self.labels[here.to as usize] - 1;
            let ports = self.wiring.hops(here.to).filter(|port| self.labels[port.to as usize] == nearer);
            here = ports
                .min_by_key(|port| (self.tie(port.link), port.link))
                .expect("a row that many hops away has a neighbour one hop nearer");
            links.push(here.link);
        }
        Some(links)
    }

    fn label(&mut self, passed: &[u32], from: u32) {
        self.labels.clear();
        self.labels.resize(self.wiring.len(), NONE);
        for &row in passed.iter().chain([&from]) {
            self.labels[row as usize] = BLOCKED;
        }
        self.labels[self.target as usize] = 0;
        self.queue.push_back(self.target);
        while let Some(near) = self.queue.pop_front() {
            for port in self.wiring.hops(near) {
                if self.labels[port.to as usize] == NONE {
                    self.labels[port.to as usize] = self.labels[near as usize] + 1;
                    self.queue.push_back(port.to);
                }
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

/// Label of a row that may not be met; less than [`NONE`], more than any distance.
const BLOCKED: u32 = NONE - 1;
