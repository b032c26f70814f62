//! The `optical` section of network documents.

use crate::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

/// How the circuits of an optical switch are chosen. Without such a section its ports stay dark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpticalSection {
    /// Name of the switch, one of tier `optical`; its links are the racks' ports, whether they are up or not: a port
    /// without a circuit is dark.
    pub switch: String,
    /// Time between two choices of circuits, ms (004 §4.3.2: 1 s).
    #[serde(default = "OpticalSection::interval_ms")]
    pub interval_ms: u64,
    /// How long all circuits pause when one changes, ms (004 §4.1.1: 10 ms for 3D-MEMS).
    #[serde(default = "OpticalSection::pause_ms")]
    pub pause_ms: u64,
    /// What a job sends from a rack to another is an elephant from so many bytes on; left out: what a circuit carries in
    /// nine pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elephant_bytes: Option<Bytes>,
    /// An elephant that has waited so long for a circuit goes by packets until it gets one, ms; left out: 30 intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
}

impl OpticalSection {
    /// The default of [`Self::interval_ms`].
    #[must_use]
    pub const fn interval_ms() -> u64 {
        1_000
    }

    /// The default of [`Self::pause_ms`].
    #[must_use]
    pub const fn pause_ms() -> u64 {
        10
    }

    /// The defaults, for that switch.
    #[must_use]
    pub fn of(switch: &str) -> Self {
        let (interval_ms, pause_ms) = (Self::interval_ms(), Self::pause_ms());
        Self { switch: switch.to_owned(), interval_ms, pause_ms, elephant_bytes: None, patience_ms: None }
    }

    /// [`Self::interval_ms`].
    #[must_use]
    pub const fn interval(&self) -> Micros {
        Micros::from_millis(self.interval_ms)
    }

    /// [`Self::pause_ms`].
    #[must_use]
    pub const fn pause(&self) -> Micros {
        Micros::from_millis(self.pause_ms)
    }

    /// [`Self::patience_ms`], or its default.
    #[must_use]
    pub const fn patience(&self) -> Micros {
        Micros::from_millis(match self.patience_ms {
            Some(patience_ms) => patience_ms,
            None => self.interval_ms.saturating_mul(30),
        })
    }
}
