//! Where replicas go, so that jobs of either class read near (004 §5.2.4).

use super::classes;
use crate::advise::{DataProblem, ReplicaAdvice};
use hintd_model::units::RackIdx;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// The first and second in one rack of scale-out machines, the third on scale-up machines, further ones as HDFS does by
/// itself; everything as HDFS does where a class has no machine that runs.
pub(super) fn replicas(problem: &DataProblem<'_>, scale_up: &str) -> Vec<ReplicaAdvice> {
    let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
    let [up, out] = classes::racks(problem.snapshot, scale_up);
    if up.is_empty() || out.is_empty() {
        return advice;
    }
    let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
    random.set_stream(problem.block);
    let mut draw = |racks: &[RackIdx]| ReplicaAdvice::Rack(racks[random.random_range(0..racks.len())]);
    let (first, third) = (draw(&out), draw(&up));
    for (advice, rack) in advice.iter_mut().zip([first, first, third]) {
        *advice = rack;
    }
    advice
}
