//! What the ResourceManager that leads shows of itself, and whether hints can be followed with that: its clock, its
//! scheduler's delays, hintd's processor. Kept for status; nothing is decided by it.
//!
//! # Invariants
//! - Whatever is not shown is not known, and never guessed.
//! - Parts that come from different ResourceManagers are never shown as one's.

use hintd_model::units::{Micros, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How the ResourceManager's clock differs from the daemon's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockDifference {
    /// Its clock less the daemon's, microseconds.
    pub ahead: i64,
    /// By how much that may be wrong.
    pub error: Micros,
}

/// A `Date` leaves a second open.
const DATE_STEP: u64 = 1_000_000;

impl ClockDifference {
    /// Of an answer that was asked for and came at these times of the daemon's clock. The date is of a moment between the two,
    /// and is cut to whole seconds.
    #[must_use]
    pub fn of(date: SystemTime, asked: Timestamp, came: Timestamp) -> Option<Self> {
        let date = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let theirs = i64::try_from(date.as_micros()).ok()?.checked_add((DATE_STEP / 2) as i64)?;
        let took = came.since(asked).0;
        let ours = i64::try_from(asked.0 + took / 2).ok()?;
        Some(Self { ahead: theirs.checked_sub(ours)?, error: Micros(DATE_STEP / 2 + took.div_ceil(2)) })
    }
}

/// How long YARN waits for hosts and racks, in heartbeats of nodes; `None`: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays {
    /// `yarn.scheduler.capacity.node-locality-delay`.
    pub node: Option<i64>,
    /// `yarn.scheduler.capacity.rack-locality-additional-delay`.
    pub rack_additional: Option<i64>,
}

/// What `/conf` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfSeen {
    /// The scheduler's class, without the package; empty: not said.
    pub scheduler: String,
    /// Only where they stand in yarn-site.xml: capacity-scheduler.xml is not shown.
    pub delays: Delays,
    /// Whether hintd's processor is named; `None`: no processors are.
    pub names_processor: Option<bool>,
}

/// hintd's processor in the ResourceManager.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessorSeen {
    /// Of its jar; empty: not said.
    pub version: String,
    /// `off`, `shadow` or `on` by queue; `*`: all others.
    pub modes: BTreeMap<String, String>,
    /// It does not ask for the moment.
    pub breaker_open: bool,
    /// Since the ResourceManager's start.
    pub counts: BTreeMap<String, u64>,
    /// As the scheduler has them now.
    pub delays: Delays,
}

/// One look at a ResourceManager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When, by the daemon's clock.
    pub at: Timestamp,
    /// `None`: it said no date.
    pub clock: Option<ClockDifference>,
    /// `Ok(None)`: it is not loaded; or why that is not known.
    pub processor: Result<Option<ProcessorSeen>, String>,
}

/// What there is to show of one ResourceManager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupSeen {
    /// Its address.
    pub address: String,
    /// Its last look.
    pub look: Look,
    /// Its configuration, or why it is not known; `None`: it was not asked for yet.
    pub conf: Option<Result<ConfSeen, String>>,
}

/// A part, and the address of whom it is.
type Of<T> = Mutex<Option<(String, T)>>;

/// What was shown last.
#[derive(Debug, Default)]
pub struct Setup {
    look: Of<Look>,
    conf: Of<Result<ConfSeen, String>>,
}

impl Setup {
    /// A look at the one that leads.
    pub fn looked(&self, address: String, look: Look) {
        *lock(&self.look) = Some((address, look));
    }

    /// Its configuration, or why it does not say it.
    pub fn conf(&self, address: String, conf: Result<ConfSeen, String>) {
        *lock(&self.conf) = Some((address, conf));
    }

    /// All of it; `None`: nobody was looked at.
    #[must_use]
    pub fn seen(&self) -> Option<SetupSeen> {
        let (address, look) = lock(&self.look).clone()?;
        let conf = lock(&self.conf).clone().filter(|(of, _)| *of == address).map(|(_, conf)| conf);
        Some(SetupSeen { address, look, conf })
    }
}

impl SetupSeen {
    /// The delays, and who says them: of the processor they are those of now.
    #[must_use]
    pub fn delays(&self) -> (Delays, &'static str) {
        let none = Delays::default();
        let processor = self.look.processor.as_ref().ok().and_then(Option::as_ref).map_or(none, |seen| seen.delays);
        if processor != none {
            return (processor, "processor");
        }
        match self.conf.as_ref().and_then(|conf| conf.as_ref().ok()).map(|conf| conf.delays) {
            Some(delays) if delays != none => (delays, "conf"),
            _ => (none, ""),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_is_known_to_half_a_second_and_half_the_time_of_the_answer() {
        let date = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let between = |asked: u64, came: u64, seconds| {
            ClockDifference::of(date(seconds), Timestamp(asked), Timestamp(came)).unwrap()
        };
        assert_eq!(between(100_400_000, 100_600_000, 100), ClockDifference { ahead: 0, error: Micros(600_000) });
        assert_eq!(between(95_500_000, 95_500_000, 100), ClockDifference { ahead: 5_000_000, error: Micros(500_000) });
        assert_eq!(between(103_000_000, 104_000_000, 100).ahead, -3_000_000);
        let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(ClockDifference::of(before_1970, Timestamp(0), Timestamp(1)), None);
    }

    #[test]
    fn parts_of_two_resource_managers_are_not_mixed_and_the_processor_is_believed_first() {
        let setup = Setup::default();
        let delays = |node| Delays { node: Some(node), rack_additional: None };
        setup.conf("rm1".into(), Ok(ConfSeen { delays: delays(1), ..ConfSeen::default() }));
        assert_eq!(setup.seen(), None, "nobody was looked at");
        let look = |processor| Look { at: Timestamp(1), clock: None, processor: Ok(processor) };
        setup.looked("rm1".into(), look(None));
        assert_eq!(setup.seen().unwrap().delays(), (delays(1), "conf"));
        setup.looked("rm1".into(), look(Some(ProcessorSeen { delays: delays(2), ..ProcessorSeen::default() })));
        assert_eq!(setup.seen().unwrap().delays(), (delays(2), "processor"));
        setup.looked("rm2".into(), look(None));
        let seen = setup.seen().unwrap();
        assert_eq!((seen.delays(), seen.conf), ((Delays::default(), ""), None));
    }
}
