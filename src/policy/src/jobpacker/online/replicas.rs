//! Where replicas of a planned job's input go (004 §4.2.4).

use crate::advise::{DataProblem, ReplicaAdvice};
use hintd_model::units::RackIdx;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// How the rack of a block's first replica is drawn from those that run the reader's maps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstReplica {
    /// By how many maps each runs, block after block in turn: of as many blocks as the job has maps each rack has
    /// exactly as many as it runs maps, and none is read from afar.
    #[default]
    ByMaps,
    /// At random, each alike: 004 §4.2.4, and `corral`.
    Evenly,
}

/// The first in a rack of those that run the reader's maps, by the rule; the second and third together in another rack,
/// as HDFS keeps two racks by default; more, and data that no planned job reads, as HDFS does by itself.
pub(in crate::jobpacker) fn replicas(problem: &DataProblem<'_>, rule: FirstReplica) -> Vec<ReplicaAdvice> {
    let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
    let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
    random.set_stream(problem.block);
    let racks = map_racks(problem);
    let mut draw = |racks: &[RackIdx]| (!racks.is_empty()).then(|| racks[random.random_range(0..racks.len())]);
    let first = match rule {
        FirstReplica::ByMaps => in_turn(&racks, problem.seed, problem.block),
        FirstReplica::Evenly => draw(&racks.iter().map(|&(rack, _)| rack).collect::<Vec<_>>()),
    };
    let Some(first) = first else { return advice };
    let others: Vec<RackIdx> = usable(problem).filter(|&rack| rack != first).collect();
    let second = draw(&others);
    for (nth, advice) in advice.iter_mut().enumerate().take(3) {
        let rack = if nth == 0 { Some(first) } else { second };
        *advice = rack.map_or(ReplicaAdvice::Default, ReplicaAdvice::Rack);
    }
    advice
}

fn usable<'a>(problem: &'a DataProblem<'_>) -> impl Iterator<Item = RackIdx> + 'a {
    let snapshot = problem.snapshot;
    let racks = snapshot.statics.members.iter().enumerate();
    racks
        .filter(|(_, nodes)| nodes.iter().any(|node| snapshot.state[node.at()].usable()))
        .map(|(rack, _)| RackIdx::new(rack))
}

/// The rack whose turn it is. Turns of one rack lie apart, so that a part of the blocks, too, is spread by maps; where
/// they begin depends on the data, so that many files of one block are.
fn in_turn(racks: &[(RackIdx, u32)], seed: u64, block: u64) -> Option<RackIdx> {
    let all: u64 = racks.iter().map(|&(_, maps)| u64::from(maps)).sum();
    if all == 0 {
        return None;
    }
    let begin = ChaCha8Rng::seed_from_u64(seed).random_range(0..all);
    let mut left = (begin + block % all * stride(all)) % all;
    let turn = racks.iter().find(|&&(_, maps)| {
        let here = left < u64::from(maps);
        left = left.saturating_sub(maps.into());
        here
    });
    turn.map(|&(rack, _)| rack)
}

/// About `all` ÷ the golden ratio, and prime to `all`: multiples of it meet every turn, each far from those before.
fn stride(all: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (all * 5 / 8..all).find(|&step| gcd(step, all) == 1).unwrap_or(1)
}

/// Usable racks with how many of the maps of the reader's next run each runs; none: it is not planned.
fn map_racks(problem: &DataProblem<'_>) -> Vec<(RackIdx, u32)> {
    let planned = problem.plan.zip(problem.reader.as_ref());
    let job = planned.and_then(|(plan, reader)| plan.next_run(reader, problem.now));
    let Some(job) = job else { return Vec::new() };
    let usable: Vec<RackIdx> = usable(problem).collect();
    let by_rack = &problem.snapshot.statics.by_rack;
    let racks = job.maps.racks().into_iter().filter_map(|(path, maps)| Some((by_rack.get(path).copied()?, maps)));
    let mut racks: Vec<(RackIdx, u32)> = racks.filter(|(rack, _)| usable.contains(rack)).collect();
    racks.sort_unstable();
    racks
}
