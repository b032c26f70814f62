//! Gangs: applications whose containers a placer puts down all at once, and the time that they take.
//!
//! # The model
//! - An application waits, first come first served, until the placer finds room for all its containers; its
//!   ApplicationMaster, where it has one, was put by YARN's default scheduler before and stays. Placers are the
//!   daemon's own, asked through [`PlaceProblem`](hintd_policy::PlaceProblem).
//! - It then goes through its [`Phase`]s, each beginning when the one before has ended for all of its containers.
//! - Every pair of tasks that an edge joins is a flow of its own in a [`FluidNetwork`](super::FluidNetwork); an edge's
//!   bytes are in equal parts those of its pairs, in whole bytes. A pair of nodes goes by the route that the placement
//!   chose for it, or that it has already; else each flow by one of the shortest paths, drawn by seed as equal-cost
//!   multipath does. What stays on a node goes at [`GangSettings::local_bits_per_s`], each pair of tasks alone.
//! - A block is read off a disk that all readers of a node share; from another node its bytes pass the network too.
//!   A free container takes the first block in file order with a replica on its node, else the first that is left; that
//!   one from a replica in its rack where there is one, else from one drawn by seed.
//!
//! # Invariants
//! Checked in every run unless the settings say otherwise: placements stay within room and candidates
//! ([`check`](hintd_policy::check())); no link carries more than its capacity; every byte of an edge and of an input
//! moves exactly once; at the end nothing is occupied, under way or routed.
//!
//! # Code map
//! - `world`: the cluster as placers see it. `spread`: edges to flows. `reading`: who reads which block.
//! - `run`: the events. `report`: what is told.

mod reading;
mod report;
mod run;
mod spread;
#[cfg(test)]
mod tests;
mod world;

pub use report::{AppReport, GangReport};
pub use run::simulate;

use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::network::MaxMinError;
use hintd_model::units::{Bytes, NodeIdx};
use hintd_policy::budget::DEFAULT_STEPS;
use hintd_policy::problem::{EdgeProblem, InputBlocks};
use hintd_policy::{DataflowError, Place, PlaceError, Violation};
use std::sync::Arc;

/// One run: a cluster with a network in which nothing runs, a placer, and settings.
#[derive(Clone, Copy)]
pub struct GangRun<'a> {
    /// The cluster.
    pub cluster: &'a Snapshot,
    /// Who decides where containers go.
    pub placer: &'a dyn Place,
    /// How.
    pub settings: GangSettings,
}

/// Settings of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GangSettings {
    /// Of everything drawn: a placer's search, paths, replicas read from.
    pub seed: u64,
    /// Rate of what two tasks on one node exchange, bits/s; ∞: it takes no time.
    pub local_bits_per_s: f64,
    /// Whether placers are told where inputs lie; not: asks name no hosts, as those of an ApplicationMaster that asks
    /// for containers anywhere.
    pub tell_inputs: bool,
    /// Steps of a decision.
    pub steps: u64,
    /// Check invariants as the run goes.
    pub invariants: bool,
    /// What tasks exchange does not share links, but takes bytes × links ÷ this rate, bits/s, [`FETCHES`] senders of a
    /// receiver at a time: the `DelayFetcher` of 002 §7.1. `None`: it shares links.
    pub delay_bits_per_s: Option<f64>,
}

/// Fetches of a receiver that are under way at a time where they are delayed: Hadoop's `parallelcopies`.
pub const FETCHES: f64 = 5.0;

impl Default for GangSettings {
    /// With the daemon's steps of a decision.
    fn default() -> Self {
        Self {
            seed: 1,
            local_bits_per_s: f64::INFINITY,
            tell_inputs: true,
            steps: DEFAULT_STEPS,
            invariants: true,
            delay_bits_per_s: None,
        }
    }
}

/// An application.
#[derive(Debug, Clone, PartialEq)]
pub struct GangApp {
    /// When it comes, seconds; not negative.
    pub submit_s: f64,
    /// Its ApplicationMaster's container, where it has one.
    pub master: Option<Resource>,
    /// At least one.
    pub groups: Vec<GangGroup>,
    /// What its containers will send, as placers are told.
    pub edges: Vec<EdgeProblem>,
    /// What it does.
    pub phases: Vec<Phase>,
}

/// Like containers.
#[derive(Debug, Clone, PartialEq)]
pub struct GangGroup {
    /// Unique in the application.
    pub name: Arc<str>,
    /// How many, at least one.
    pub count: u32,
    /// Size of each.
    pub size: Resource,
    /// What the group reads; empty: nothing.
    pub input: Arc<InputBlocks>,
}

/// One step of an application, for all its containers.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Every group reads its input, each container one block at a time.
    Read,
    /// Everyone works so long, seconds.
    Compute(f64),
    /// Edges send, all at once.
    Exchange(Vec<EdgeProblem>),
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum GangError {
    /// Flows have nothing to go over.
    #[error("the cluster has no network")]
    NoNetwork,
    /// A disk that is read from, of unknown speed.
    #[error("node {} states no disk rate, and application {app} reads from it", node.0)]
    NoDisk {
        /// Position of the application.
        app: usize,
        /// The node.
        node: NodeIdx,
    },
    /// A block that nobody holds.
    #[error("application {app}: block {block} of group {group} has no replica")]
    NoReplica {
        /// Position of the application.
        app: usize,
        /// Position of its group.
        group: usize,
        /// Position of the block.
        block: usize,
    },
    /// A time that is none.
    #[error("application {app}: {seconds} s is no time")]
    Time {
        /// Position of the application.
        app: usize,
        /// The time.
        seconds: f64,
    },
    /// The placer can't work on the problem.
    #[error("application {app} could not be placed")]
    Place {
        /// Position of the application.
        app: usize,
        /// Why.
        source: PlaceError,
    },
    /// Edges that no utility can be taken of.
    #[error("application {app} has a dataflow without beginning or end")]
    Dataflow {
        /// Position of the application.
        app: usize,
        /// Why.
        source: DataflowError,
    },
    /// Two nodes that are to talk and have no path.
    #[error("application {app}: there is no path from node {} to node {}", from.0, to.0)]
    Cut {
        /// Position of the application.
        app: usize,
        /// Sender.
        from: NodeIdx,
        /// Receiver.
        to: NodeIdx,
    },
    /// A path or capacity that the fluid network refuses.
    #[error("the network refuses a flow or a capacity")]
    Network(#[from] MaxMinError),
    /// A placement that is not allowed.
    #[error("application {app}: the placement is not allowed")]
    NotAllowed {
        /// Position of the application.
        app: usize,
        /// Why.
        source: Violation,
    },
    /// A rule of the simulator itself does not hold.
    #[error("at {now_s} s: {problem}")]
    Broken {
        /// When.
        now_s: f64,
        /// What.
        problem: String,
    },
}

impl GangApp {
    /// Bytes that its edges move, over all phases.
    #[must_use]
    pub fn exchanged(&self) -> Bytes {
        let of = |phase: &Phase| match phase {
            Phase::Exchange(edges) => edges.iter().map(|edge| edge.bytes.0).sum(),
            Phase::Read | Phase::Compute(_) => 0,
        };
        Bytes(self.phases.iter().map(of).sum())
    }
}
