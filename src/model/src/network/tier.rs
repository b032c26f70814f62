//! Layers of switches.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Layer of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Top of a rack: hosts hang here.
    Edge,
    /// Joins the racks of a pod.
    Aggregation,
    /// Joins pods, or racks where there are no pods.
    Core,
    /// A circuit switch beside the packet network.
    Optical,
}

impl Tier {
    /// All tiers, from the hosts upwards.
    pub const ALL: [Self; 4] = [Self::Edge, Self::Aggregation, Self::Core, Self::Optical];

    /// Height above the hosts, which stand at 0. Core and optical switches stand side by side.
    #[must_use]
    pub const fn height(self) -> u8 {
        match self {
            Self::Edge => 1,
            Self::Aggregation => 2,
            Self::Core | Self::Optical => 3,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Aggregation => "aggregation",
            Self::Core => "core",
            Self::Optical => "optical",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no tier: edge, aggregation, core or optical")]
pub struct TierError {
    /// What stood there.
    pub text: String,
}

impl FromStr for Tier {
    type Err = TierError;

    fn from_str(text: &str) -> Result<Self, TierError> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or_else(|| TierError { text: text.to_owned() })
    }
}
