//! Where replicas go, so that jobs of either class read near (004 §5.2.4).

use super::classes;
use crate::advise::{DataProblem, ReplicaAdvice};
use hintd_model::units::RackIdx;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Racks of scale-up machines, and of scale-out machines: the same for all blocks that are written at one moment.
pub(super) struct Racks([Vec<RackIdx>; 2]);

impl Racks {
    pub(super) fn of(problem: &DataProblem<'_>, scale_up: &str) -> Self {
        Self(classes::racks(problem.snapshot, scale_up))
    }

    /// One on scale-up machines and two in one rack of scale-out machines, further ones as HDFS does by itself; everything as
    /// HDFS does where a class has no machine that runs. The one on scale-up machines comes first: of two replicas each class
    /// has one, and whoever follows the first alone brings data where it is rare. A single one goes to scale-out machines,
    /// which have the disks.
    pub(super) fn replicas(&self, problem: &DataProblem<'_>, block: u64) -> Vec<ReplicaAdvice> {
        let mut advice = vec![ReplicaAdvice::Default; problem.replication.into()];
        let [up, out] = &self.0;
        if up.is_empty() || out.is_empty() {
            return advice;
        }
        let mut random = ChaCha8Rng::seed_from_u64(problem.seed);
        random.set_stream(block);
        let mut draw = |racks: &[RackIdx]| ReplicaAdvice::Rack(racks[random.random_range(0..racks.len())]);
        let (on_out, on_up) = (draw(out), draw(up));
        let order = if advice.len() == 1 { [on_out; 3] } else { [on_up, on_out, on_out] };
        for (advice, rack) in advice.iter_mut().zip(order) {
            *advice = rack;
        }
        advice
    }
}
