//! What is wrong with an `optical` section in its network.

use super::ports::ports;
use super::problem::{MOST_MS, OpticalProblem};
use super::section::OpticalSection;
use crate::network::{Network, Tier};
use crate::units::Bytes;

impl OpticalSection {
    /// All that is wrong with the section in that network.
    #[must_use]
    pub fn problems(&self, network: &Network) -> Vec<OpticalProblem> {
        let mut problems = Vec::new();
        if self.interval_ms == 0 || self.interval_ms > MOST_MS {
            problems.push(OpticalProblem::Interval { interval_ms: self.interval_ms });
        }
        if self.pause_ms >= self.interval_ms {
            problems.push(OpticalProblem::Pause { pause_ms: self.pause_ms, interval_ms: self.interval_ms });
        }
        if self.elephant_bytes == Some(Bytes::ZERO) {
            problems.push(OpticalProblem::NoElephant);
        }
        if self.patience_ms.is_some_and(|patience_ms| patience_ms > MOST_MS) {
            problems.push(OpticalProblem::Patience { patience_ms: self.patience_ms.unwrap_or_default() });
        }
        let found = network.vertex(&self.switch);
        match found.map(|vertex| (vertex, network.vertex_at(vertex).tier())) {
            None => problems.push(OpticalProblem::UnknownSwitch { switch: self.switch.clone() }),
            Some((_, None)) => problems.push(OpticalProblem::UnknownSwitch { switch: self.switch.clone() }),
            Some((vertex, Some(Tier::Optical))) => problems.extend(ports(network, vertex).1),
            Some((_, Some(tier))) => {
                problems.push(OpticalProblem::NotOptical { switch: self.switch.clone(), tier });
            }
        }
        problems
    }
}
