//! The workloads of 000 as task groups and edges: Storm topologies (§4.1) and Hadoop jobs (§4.2).

use crate::problem::EdgeProblem;
use hintd_model::cluster::EdgePattern;
use hintd_model::units::{Bytes, GroupIdx};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

/// Spouts of a topology.
const SPOUTS: usize = 2;
/// Bolts of a topology.
const BOLTS: usize = 10;

/// A job: tasks by group, and who talks to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Name and tasks of each group.
    pub groups: Vec<(String, u32)>,
    /// Traffic between them.
    pub edges: Vec<EdgeProblem>,
}

/// A Storm topology as §4.1 generates them: two spouts, ten bolts, children drawn from N(2, 2), 1 to 100 MB from each
/// spout, bolts that forward what they get.
///
/// The paper leaves open who the children are: here bolts that come later, so that every topology has a sink; a draw
/// below 0 counts as 0, a spout has at least one child, and a bolt that nobody drew hangs on someone before it. Each
/// vertex is one task, as in the paper's simulation.
#[must_use]
pub fn storm_job(seed: u64) -> Job {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let children = Normal::new(2.0, 2.0).expect("the deviation is positive");
    let count = SPOUTS + BOLTS;
    let mut sent: Vec<u64> = vec![0; count];
    let mut fed = [false; SPOUTS + BOLTS];
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for from in 0..count {
        let mut later: Vec<usize> = (SPOUTS.max(from + 1)..count).collect();
        later.shuffle(&mut random);
        let drawn: f64 = children.sample(&mut random);
        let drawn = drawn.round().max(0.0) as usize;
        let drawn = if from < SPOUTS { drawn.max(1) } else { drawn };
        for &to in later.iter().take(drawn) {
            fed[to] = true;
            pairs.push((from, to));
        }
        // All earlier vertices have drawn by now.
        if from + 1 >= SPOUTS && from + 1 < count && !fed[from + 1] {
            pairs.push((random.random_range(0..=from), from + 1));
            fed[from + 1] = true;
        }
    }
    for bytes in sent.iter_mut().take(SPOUTS) {
        *bytes = random.random_range(1..=100) * 1_000_000;
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut edges = Vec::new();
    for (from, to) in pairs {
        sent[to] += sent[from];
        edges.push(all_to_all(from, to, sent[from]));
    }
    let name = |at: usize| if at < SPOUTS { format!("spout-{at}") } else { format!("bolt-{}", at - SPOUTS) };
    Job { groups: (0..count).map(|at| (name(at), 1)).collect(), edges }
}

/// A Hadoop job (§4.2): all maps send to all reduces.
#[must_use]
pub fn hadoop_job(maps: u32, reduces: u32, shuffle: Bytes) -> Job {
    let groups = vec![("map".to_owned(), maps), ("reduce".to_owned(), reduces)];
    Job { groups, edges: vec![all_to_all(0, 1, shuffle.0)] }
}

/// A Hadoop job drawn as §4.2 says: 100 B to 10 GB of shuffle, evenly on a log scale; 4 maps and 4 reduces, as the
/// paper's WordCount has, up to 16 and 8 where there is more to move.
#[must_use]
pub fn drawn_hadoop_job(seed: u64) -> Job {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let exponent: f64 = random.random_range(2.0..10.0);
    let bytes = Bytes(10_f64.powf(exponent) as u64);
    let (maps, reduces) = if bytes.0 > 1_000_000_000 { (16, 8) } else { (4, 4) };
    hadoop_job(maps, reduces, bytes)
}

fn all_to_all(from: usize, to: usize, bytes: u64) -> EdgeProblem {
    let (from, to) = (GroupIdx::new(from), GroupIdx::new(to));
    EdgeProblem { from, to, pattern: EdgePattern::AllToAll, bytes: Bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::check_dataflow;

    #[test]
    fn topologies_have_two_roots_ten_bolts_and_about_two_children_each() {
        let (mut edges, mut jobs) = (0, 0);
        for seed in 0..200 {
            let job = storm_job(seed);
            assert_eq!((job.groups.len(), check_dataflow(&job.edges)), (12, Ok(())));
            let fed = |group: usize| job.edges.iter().any(|edge| edge.to.at() == group);
            assert_eq!((0..12).filter(|&group| !fed(group)).collect::<Vec<_>>(), [0, 1], "seed {seed}");
            assert!(job.edges.iter().all(|edge| edge.from < edge.to && edge.bytes.0 >= 1_000_000));
            edges += job.edges.len();
            jobs += 1;
        }
        let mean = edges as f64 / f64::from(jobs * 12);
        assert!((1.4..2.4).contains(&mean), "{mean} children: N(2, 2) cut at 0, fewer for the last bolts");
        assert_eq!(storm_job(7), storm_job(7));
        assert_ne!(storm_job(7), storm_job(8));
    }
}
