//! An emulated Hadoop cluster that talks to a daemon as the real one would: over gRPC only.
//!
//! # Code map
//! - `cluster`: nodes, racks and the network between them.
//! - `controller`: an SDN controller, which fills the tables of its `switches` rule by rule from route updates.
//! - `hdfs`: files, blocks and replicas under HDFS's default placement.
//! - `yarn`: a ResourceManager that allocates from ask tables, beside foreign applications; it watches over itself.
//! - `jobs`: a trace turned into jobs that the cluster can run in the time there is.
//! - `traffic`: what its containers send each other, as fluids on the network, and what links count of it.
//! - `sources`: NodeManagers, NameNode and SDN controller, each feeding the daemon.
//! - `master`: one ApplicationMaster: asks for hints, follows them, reports its tasks; its `group`s of tasks, and how a container
//!   gets on with its task: `running`.
//! - `run`: all of it together, with a script of faults, as a stream of [`EmulationEvent`]s (`event`); `shared`: what its parts share;
//!   `tally`: what it came to.
//!
//! # Invariants
//! - Everything drawn at random comes from one seed; every queue and loop is bounded.
//! - The emulated ResourceManager never puts more on a node than it has, and says so if it did.

pub mod cluster;
pub mod controller;
pub mod event;
mod group;
pub mod hdfs;
pub mod jobs;
pub mod master;
pub mod run;
mod running;
pub mod shared;
pub mod sources;
pub mod switches;
pub mod tally;
pub mod traffic;
pub mod yarn;

pub use cluster::{Cluster, ClusterError, ClusterShape};
pub use event::EmulationEvent;
pub use jobs::{JobPlan, Workload, WorkloadError};
pub use run::{Emulation, EmulationError, Fault, Script};
pub use tally::Tally;
