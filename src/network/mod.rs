//! The network: graph, builders, checks, paths, distances.
#![allow(missing_docs, unused)] // replaced whole by the network branch

use crate::units::{BitsPerSec, LinkIdx, RackPath, VertexIdx};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeIdx(pub u32);

#[derive(Debug, Clone)]
pub struct Network {}

#[derive(Debug, Clone)]
pub struct Link {
    pub capacity: BitsPerSec,
    pub up: bool,
}

#[derive(Debug, Clone)]
pub struct Vertex {}

impl Vertex {
    pub fn is_host(&self) -> bool {
        false
    }
}

impl Network {
    pub fn vertex(&self, name: &str) -> Option<VertexIdx> {
        None
    }
    pub fn vertex_at(&self, index: VertexIdx) -> Vertex {
        Vertex {}
    }
    pub fn link(&self, name: &str) -> Option<LinkIdx> {
        None
    }
    pub fn link_at(&self, index: LinkIdx) -> Link {
        Link { capacity: BitsPerSec(0), up: true }
    }
    pub fn links_of(&self, vertex: VertexIdx) -> impl Iterator<Item = (LinkIdx, Link)> {
        std::iter::empty()
    }
    pub fn is_usable(&self, index: LinkIdx) -> bool {
        true
    }
    pub fn switch_up(&self, switch: VertexIdx) -> bool {
        true
    }
    pub fn set_link(&mut self, index: LinkIdx, up: Option<bool>, capacity: Option<BitsPerSec>) -> bool {
        false
    }
    pub fn set_switch(&mut self, switch: VertexIdx, up: bool) -> bool {
        false
    }
    pub fn remove_link(&mut self, index: LinkIdx) {}
}

#[derive(Debug, Clone, Default)]
pub struct Distances {}

impl Distances {
    pub fn build(network: &Network) -> Self {
        Self {}
    }
    pub fn from_racks(racks: &[RackPath]) -> Self {
        Self {}
    }
    pub fn core_hops(&self, a: EdgeIdx, b: EdgeIdx) -> Option<u8> {
        None
    }
    pub fn edge_of(&self, host: VertexIdx) -> Option<EdgeIdx> {
        None
    }
}
