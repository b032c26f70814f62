//! Networks as operators write them: by rack, filled with the hosts that YARN knows.
//!
//! # Code map
//! - `document`: [`RacksDocument`], the file format `hintd.racks/1`; [`NetworkFile`], a file of either format.
//! - `rate`: rates such as `10Gbit`.
//! - `read`: a [`NetworkFile`] off its text, checked, every problem by line and key.
//! - `salvage`: what can be read of a file with unknown keys or values of a wrong kind, and all of these.
//! - `spellings`: hosts that are named twice, in two spellings.
//! - `unused`: what a file says of nothing that is there.
//! - `where_is`: [`NetworkFile::rack_of`], the rack that the file itself says a host is in.
//! - `places`: [`KnownHosts`], and where they hang. `expand`: [`NetworkFile::expand`], the network that a file and the known hosts make together.
//! - `audit`: [`audit()`], racks of hosts by YARN, by HDFS and by the network.
//! - `survey`: [`survey()`], a network's racks in rows; [`differences()`] between two networks.
//!
//! # Invariants
//! - A rate that nobody states is [`UNLIMITED`]: its link never is the one that limits, as without a network.
//! - What is not known to YARN is kept and told, never an error; so is what the file leaves out.

mod audit;
mod document;
mod expand;
mod places;
mod rate;
mod read;
mod salvage;
mod spellings;
mod survey;
mod unused;
mod where_is;

pub use audit::{HostRacks, audit};
pub use document::{HostRow, LinkRow, NetworkFile, RACKS_FORMAT, RackRow, RacksDocument, SwitchRow};
pub use expand::Expanded;
pub use places::KnownHosts;
pub use rate::{RateEntry, parse_rate, show_rate};
pub use read::FileProblem;
pub use spellings::Spellings;
pub use survey::{Difference, RackView, Survey, Uplink, differences, survey};
pub use where_is::RacksSaid;

use super::problem::MOST_CAPACITY;
use crate::units::BitsPerSec;

/// The rate of links that nobody states a rate of: as much as any link is believed to have.
pub const UNLIMITED: BitsPerSec = MOST_CAPACITY;

/// The switch that joins what no declared switch joins.
pub const CORE: &str = "core";

/// Whether a name is meant by a pattern: the same, or one that begins as the pattern does before its `*`.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

/// As TOML writes it: `racks."/rack1".uplink`.
fn dotted(path: &[String]) -> String {
    let bare = |key: &str| key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    let keys: Vec<_> = path.iter().map(|key| if bare(key) { key.clone() } else { format!("{key:?}") }).collect();
    keys.join(".")
}
