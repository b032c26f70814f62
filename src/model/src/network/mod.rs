//! The network: graph, builders, checks, paths, distances, loads.
//!
//! # Code map
//! - `tier`: layers of switches; `graph`: [`Network`], hosts and switches joined by undirected links; what is up; names to indexes.
//! - `document`: [`NetworkDocument`], the file format `hintd.network/1` (JSON or TOML) and its reader.
//! - `problem`: [`NetworkProblem`] with severities; `check`: [`check()`] of a whole network, [`summary()`] by tier.
//! - `build`: generated networks of six kinds ([`build::tree()`] to [`build::bcube()`]) with their racks.
//! - `path`: [`shortest_path()`], and [`PathIndex`] that re-paths watched pairs after a change.
//! - `path_table`: [`PathTable`], the k shortest paths of every pair of attachment switches, and which pairs a link
//!   carries.
//! - `host_path`: [`host_paths()`], candidates for routes from host to host, and the [`cut()`] where there are none.
//! - `bridges`: [`bridges()`], links that are the only way between two parts.
//! - `fabric`: the switch layer in compressed rows, and hop counts from many switches at once.
//! - `hops`: the counts that distances and equal-cost multipath share, followed through changes.
//! - `distance`: [`Distances`], the table of core hops between racks.
//! - `chains`: middleboxes, which traffic is to pass them, and routes through them.
//! - `optical`: optical circuit switches: ports, circuits, which ones are chosen ([`optical::OpticalSwitch`]).
//! - `latency`: [`latency::LatencyModel`], round trips as measured between hosts, what they come to by hosts and racks, and whom a host
//!   should measure.
//! - `maxmin`: [`MaxMin`], fair rates of weighted flows over directed links, kept while flows come and go.
//! - `racks`: networks as operators write them, `hintd.racks/1`: by rack, with the hosts that YARN knows.
//! - `spread`: [`EcmpTable`] and [`LinkLoads`], bytes laid on all shortest paths.
//!
//! # Invariants
//! - Hosts never forward: every path's inner vertices are switches.
//! - Indexes of vertices and links stay valid for the life of a [`Network`] and its clones; a removed link
//!   leaves its index behind.
//! - Results depend on the order of vertices and links and on the seed, on nothing else.

mod bridges;
pub mod build;
pub mod chains;
mod check;
mod distance;
mod document;
mod fabric;
mod graph;
mod hops;
mod host_path;
pub mod latency;
pub mod maxmin;
pub mod optical;
mod path;
mod path_table;
mod problem;
pub mod racks;
mod spread;
#[cfg(test)]
mod testing;
mod tier;

pub use bridges::bridges;
pub use check::{NetworkSummary, TierSummary, check, summary};
pub use distance::{Distances, DistancesError};
pub use document::{HostEntry, LinkEntry, NetworkDocument, SwitchEntry};
pub use fabric::{EdgeIdx, MOST_EDGES};
pub use graph::{Link, Network, Vertex, VertexKind};
pub use host_path::{HostPath, cut, host_paths};
pub use maxmin::{MaxMin, MaxMinError};
pub use optical::{OpticalProblem, OpticalSection};
pub use path::{Pair, Path, PathChanges, PathIndex, shortest_path, shortest_path_seeded};
pub use path_table::{LOOK_EVERY, MOST_WALK_STEPS, PairPaths, PathTable, PathTableOptions, TableUpdate};
pub use problem::{NETWORK_FORMAT, NetworkProblem, Severity};
pub use spread::{EcmpTable, LinkLoads, SpreadFlow};
pub use tier::{Tier, TierError};
