//! Files: a cluster (`hintd.cluster/1`) and a request (`hintd.request/1`), as JSON or TOML; docs/formats.md has the tables.
//!
//! # Code map
//! - `text`: [`Syntax`], reading and writing, [`DocumentProblem`] with its line or field.
//! - `cluster`: [`ClusterDocument`], to and from a snapshot with its leases.
//! - `request`: [`RequestDocument`], to and from a [`super::HintRequest`].
//!
//! # Invariants
//! - A document is taken whole, or refused with all its problems at once.
//! - Fields that the format does not have are refused: a misspelt one must not be ignored.

mod amount;
mod cluster;
mod request;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub use amount::Amount;
pub use cluster::{CLUSTER_FORMAT, ClusterDocument};
pub use request::{AskEntry, DEFAULT_ID, EdgeEntry, GroupEntry, REQUEST_FORMAT, RequestDocument};
pub use rows::{BlockEntry, ContainerEntry, DatasetEntry, LatencyEntry, LinkLoadEntry, NodeEntry, RulesEntry};
pub use text::{DocumentProblem, Place, Syntax};
