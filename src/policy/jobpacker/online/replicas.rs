//! Where replicas of a planned job's input go (004 §4.2.4).

use crate::policy::advise::{DataProblem, ReplicaAdvice};
use crate::units::RackIdx;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// The first in a random rack of those that run the reader's maps, drawn by how many of them it runs: a rack that is to
/// run three of a thousand maps would else hold as many blocks as one that runs five hundred, and the rest read from
/// afar. The second and third together in another rack, as HDFS keeps two racks by default; more, and data that no
/// planned job reads, as HDFS does by itself. Ask for each block, with a seed of its own: else all of a file's first
/// replicas are in one rack.
pub(in crate::policy::jobpacker) fn replicas(problem: &DataProblem<'_>) -> Vec<ReplicaAdvice> {
    let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
    let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
    let Some(first) = by_maps(&map_racks(problem), &mut random) else { return advice };
    let mut draw = |racks: &[RackIdx]| (!racks.is_empty()).then(|| racks[random.random_range(0..racks.len())]);
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

/// A rack, drawn by its maps.
fn by_maps(racks: &[(RackIdx, u32)], random: &mut ChaCha8Rng) -> Option<RackIdx> {
    let all: u64 = racks.iter().map(|&(_, maps)| u64::from(maps)).sum();
    let mut left = random.random_range(0..all.max(1));
    let drawn = racks.iter().find(|&&(_, maps)| {
        let here = left < u64::from(maps);
        left = left.saturating_sub(u64::from(maps));
        here
    });
    drawn.map(|&(rack, _)| rack)
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
