//! What hints are worth in production: a share of each queue's applications is held out, gets no hints, and its completion
//! times are compared with those of hinted ones.
//!
//! # Code map
//! - Here: on which side an application is; `participation`: how a request stands; `settings`: what operators set. `compare`: samples, and the interval of their ratio.
//! - `book`: applications under way, what is known of queues and recurring keys, and which keys are stopped; `serve`: the
//!   engine's calls.
//!
//! # Invariants
//! - The side of an application hangs on its id, the seed and the share alone: neither a restart, nor another attempt, nor
//!   another daemon of the same configuration changes it.
//! - An application counts once, when a server says that it succeeded; one that was on both sides counts for nothing.
//! - A key that is stopped stays so until an operator allows it.

pub mod book;
pub mod compare;
pub(crate) mod participation;
pub mod serve;
pub(crate) mod settings;

pub use settings::WorthSettings;

use super::decision::WithheldReason;
use hintd_model::units::ApplicationId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that stands for all queues that have none of their own.
const OTHER_QUEUES: &str = "*";

/// Keys that are stopped.
pub type StoppedKeys = BTreeSet<Arc<str>>;

/// Whether an application gets hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// It does.
    Hinted,
    /// It does not, so that others can be compared with it.
    HeldOut,
}

/// An application's part in the comparison of its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The queue, as the configuration calls it: `*` for those that it does not name.
    pub queue: Arc<str>,
    /// The share that was drawn by.
    pub share: f64,
    /// What was drawn.
    pub arm: Arm,
}

/// Whether a request takes part in the comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Participation {
    /// It takes no part: nobody is held out in its queue, or it asks for what YARN can't do by itself.
    Outside,
    /// Its key is stopped.
    Stopped,
    /// It takes part.
    Drawn(Part),
}

impl Participation {
    /// Why its hints are kept back; `None`: they are given.
    #[must_use]
    pub fn withheld(&self) -> Option<WithheldReason> {
        match self {
            Self::Stopped => Some(WithheldReason::Slower),
            Self::Drawn(Part { arm: Arm::HeldOut, .. }) => Some(WithheldReason::Holdout),
            Self::Drawn(_) | Self::Outside => None,
        }
    }

    /// Its part, if it has one.
    #[must_use]
    pub fn part(self) -> Option<Part> {
        match self {
            Self::Drawn(part) => Some(part),
            Self::Stopped | Self::Outside => None,
        }
    }
}

impl WorthSettings {
    /// How an application of a queue takes part, whatever it asks for.
    #[must_use]
    pub fn participation(
        &self,
        (application, queue): (ApplicationId, &str),
        key: Option<&Arc<str>>,
        stopped: &StoppedKeys,
    ) -> Participation {
        if key.is_some_and(|key| stopped.contains(key)) {
            return Participation::Stopped;
        }
        match self.share(queue) {
            Some((queue, share)) if share > 0.0 => {
                let arm = if draw(self.seed, application) < share { Arm::HeldOut } else { Arm::Hinted };
                Participation::Drawn(Part { queue: Arc::clone(queue), share, arm })
            }
            _ => Participation::Outside,
        }
    }

    /// Whether somebody is held out anywhere.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.holdout.values().any(|share| *share > 0.0)
    }

    fn share(&self, queue: &str) -> Option<(&Arc<str>, f64)> {
        let found = self.holdout.get_key_value(queue).or_else(|| self.holdout.get_key_value(OTHER_QUEUES));
        found.map(|(queue, share)| (queue, *share))
    }
}

/// A number from 0 to below 1 for an application, the same wherever and whenever it is asked for. A larger share holds out
/// all that a smaller one does, and more.
fn draw(seed: u64, application: ApplicationId) -> f64 {
    let bits = mix(mix(mix(seed) ^ application.cluster_timestamp) ^ u64::from(application.sequence));
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Finaliser of SplitMix64: every bit of the result hangs on every bit given.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn application(sequence: u32) -> ApplicationId {
        ApplicationId { cluster_timestamp: 1_700_000_000_000, sequence }
    }

    fn settings(share: f64) -> WorthSettings {
        WorthSettings { holdout: BTreeMap::from([("*".into(), share)]), ..WorthSettings::default() }
    }

    fn held_out(settings: &WorthSettings) -> BTreeSet<u32> {
        let participation = |sequence| settings.participation((application(sequence), "q"), None, &StoppedKeys::new());
        (1..=10_000).filter(|&sequence| participation(sequence).withheld().is_some()).collect()
    }

    #[test]
    fn the_share_that_is_asked_for_is_held_out_and_a_larger_one_holds_out_the_same_and_more() {
        let (tenth, half) = (held_out(&settings(0.1)), held_out(&settings(0.5)));
        assert!((900..1_100).contains(&tenth.len()) && (4_800..5_200).contains(&half.len()), "{}", tenth.len());
        assert!(tenth.is_subset(&half));
        assert_eq!(tenth, held_out(&settings(0.1)), "a draw is no chance");
        let other = held_out(&WorthSettings { seed: 1, ..settings(0.1) });
        assert!(tenth.intersection(&other).count() < 200, "another seed draws others");
        assert!(held_out(&settings(0.0)).is_empty());
    }

    #[test]
    fn a_queue_of_its_own_has_its_own_share_and_a_stopped_key_no_draw() {
        let mut settings = settings(0.0);
        settings.holdout.insert("etl".into(), 0.5);
        let key: Arc<str> = "daily".into();
        let participation =
            |queue, stopped: &StoppedKeys| settings.participation((application(1), queue), Some(&key), stopped);
        assert_eq!(participation("other", &StoppedKeys::new()), Participation::Outside);
        let part = participation("etl", &StoppedKeys::new()).part().unwrap();
        assert_eq!((&*part.queue, part.share), ("etl", 0.5));
        let stopped = StoppedKeys::from([Arc::clone(&key)]);
        for queue in ["etl", "other"] {
            assert_eq!(participation(queue, &stopped).withheld(), Some(WithheldReason::Slower));
        }
    }
}
