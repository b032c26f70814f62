//! The model of the cluster: nodes, resources, racks, datasets, applications, and the [`Snapshot`] that policies read.

pub mod dataset;
pub mod document;
pub mod flows;
pub mod link_mean;
pub mod model;
pub mod node;
pub mod request;
pub mod resource;
pub mod shards;
pub mod snapshot;
pub mod topology;

pub use dataset::{Block, Dataset, Datasets, NamedBlock, NamedDataset, Replicas};
pub use flows::{
    ChainCounts, ChainPair, ChainedFlows, ChainedRoute, Flow, Inlet, JobFlows, NodePair, PairRoute, RunningFlows, Sink,
    Traffic,
};
pub use link_mean::LinkMean;
pub use model::{
    Applied, Change, Heartbeat, Measured, Model, ModelError, NamedContainer, NamedSlowPeer, NamedSlowPeers,
    ReportedContainer,
};
pub use node::{LabelBits, NodeState, NodeStatics, Registration};
pub use request::{
    Ask, Constraints, EdgePattern, Gang, GroupEdge, HintRequest, SurvivorEdge, TaskGroup, Way, WhenFull,
};
pub use resource::{Calculator, NamedResource, Overlay, Resource, ResourceKinds, SizeError, SizeRules};
pub use shards::{Sharded, Shards};
pub use snapshot::{Application, Applications, Container, LastHeard, LinkLoad, Snapshot, Source};
pub use topology::{STEPS_AT_ONCE, Topology};
