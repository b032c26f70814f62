//! A job's finished output: where it lies, and which of its reduces have it all.

use super::super::links::Links;
use super::OUTSIDE;
use hintd_model::units::NodeIdx;

/// A place without output.
const NO_SOURCE: u32 = u32::MAX;

/// Output of one job's maps.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) reduces: u32,
    /// What all maps' output makes up.
    pub(super) shuffle: u64,
    /// Least bytes, of the whole job, that a batch fetches while maps run.
    pub(super) portion: u64,
    /// Whether all maps are done and their output is there.
    pub(super) complete: bool,
    /// All that its sources hold.
    pub(super) held: u64,
    /// In the order in which they first held something.
    pub(super) sources: Vec<Source>,
    /// Place to source; empty before the first output.
    source_of: Vec<u32>,
    places: usize,
    /// Output by node, ascending; grain `racks`.
    by_node: Vec<(NodeIdx, u64)>,
    /// By map; nothing where it is not done.
    outputs: Vec<Output>,
    /// Batches that have not got all.
    pub(super) batches: Vec<u32>,
    /// By reduce: its batch, [`OUTSIDE`] or [`super::ARRIVED`].
    at: Vec<u32>,
    /// Reduces that have arrived.
    pub(super) arrived: u32,
    /// Maps whose output was lost when no reduce needed it.
    pub(super) missing: Vec<u32>,
    /// Maps whose output was lost and may be with some batches.
    pub(super) lost: Vec<u32>,
}

/// What a map put out.
#[derive(Debug, Clone, Copy, Default)]
struct Output {
    bytes: u64,
    /// Its turn among its source's outputs.
    turn: u32,
}

/// A map's output that is gone.
pub(super) struct LostOutput {
    /// Where it lay, among the job's sources.
    pub(super) source: usize,
    /// Its turn among its source's outputs.
    pub(super) turn: u32,
    pub(super) bytes: u64,
}

/// What lies in one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) place: u32,
    pub(super) held: u64,
    /// The only node that ever held any of it; none: several, or not told apart.
    pub(super) only: Option<NodeIdx>,
    /// Turns given.
    pub(super) turn: u32,
    /// No batch that could fetch needs less than this held.
    pub(super) wake: u64,
}

impl Job {
    pub(super) fn new(reduces: u32, shuffle: u64, portion: u64, places: usize) -> Self {
        Self {
            reduces,
            shuffle,
            portion,
            complete: false,
            held: 0,
            sources: Vec::new(),
            source_of: Vec::new(),
            places,
            by_node: Vec::new(),
            outputs: Vec::new(),
            batches: Vec::new(),
            at: Vec::new(),
            arrived: 0,
            missing: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Takes a map's output in; gives its source, and whether an earlier output of the map was lost.
    pub(super) fn take_output(&mut self, map: u32, place: u32, node: Option<NodeIdx>, bytes: u64) -> (usize, bool) {
        let source = self.source_at(place);
        let of = &mut self.sources[source];
        of.only = if of.turn == 0 { node } else { of.only.filter(|_| of.only == node) };
        of.held += bytes;
        of.turn += 1;
        self.held += bytes;
        let at = map as usize;
        if at >= self.outputs.len() {
            self.outputs.resize(at + 1, Output::default());
        }
        self.outputs[at] = Output { bytes, turn: of.turn };
        if let Some(node) = node {
            match self.find(node) {
                Ok(at) => self.by_node[at].1 += bytes,
                Err(at) => self.by_node.insert(at, (node, bytes)),
            }
        }
        let again = self.lost.iter().position(|&lost| lost == map);
        if let Some(at) = again {
            self.lost.swap_remove(at);
            self.missing.retain(|&missing| missing != map);
        }
        (source, again.is_some())
    }

    fn source_at(&mut self, place: u32) -> usize {
        if self.source_of.is_empty() {
            self.source_of.resize(self.places, NO_SOURCE);
        }
        let source = &mut self.source_of[place as usize];
        if *source == NO_SOURCE {
            *source = self.sources.len() as u32;
            self.sources.push(Source { place, held: 0, only: None, turn: 0, wake: self.portion });
        }
        *source as usize
    }

    /// Takes a map's output away, if there was any.
    pub(super) fn lose_output(&mut self, map: u32, place: u32, node: NodeIdx) -> Option<LostOutput> {
        let output = self.outputs.get_mut(map as usize)?;
        let (bytes, turn) = (std::mem::take(&mut output.bytes), output.turn);
        if bytes == 0 {
            return None;
        }
        let source = self.source_at(place);
        self.sources[source].held -= bytes;
        // Batches' levels fall with it: whoever waits for more looks again at the next output.
        self.sources[source].wake = 0;
        self.held -= bytes;
        if let Ok(at) = self.find(node) {
            self.by_node[at].1 = self.by_node[at].1.saturating_sub(bytes);
        }
        self.lost.push(map);
        Some(LostOutput { source, turn, bytes })
    }

    pub(super) fn held_on(&self, node: NodeIdx) -> u64 {
        self.find(node).map_or(0, |at| self.by_node[at].1)
    }

    /// Where the node's output stands, or belongs. A large job has some on nearly every node: there its number says.
    fn find(&self, node: NodeIdx) -> Result<usize, usize> {
        let near = self.by_node.last().map_or(0, |last| node.at() * self.by_node.len() / (last.0.at() + 1));
        match self.by_node.get(near) {
            Some(entry) if entry.0 == node => Ok(near),
            _ => self.by_node.binary_search_by_key(&node, |entry| entry.0),
        }
    }

    /// The node whose NIC may hold back what the source sends: the only one that holds any, if it takes a second or
    /// more to send it. Several nodes' NICs together are as good as the rack's uplink, and less is sent at once.
    pub(super) fn sender(&self, source: usize, links: &Links) -> Option<NodeIdx> {
        let source = self.sources[source];
        source.only.filter(|&node| source.held as f64 * 8.0 >= links.nic_bits_per_s(node))
    }

    /// Where a reduce is.
    pub(super) fn at_reduce(&mut self, reduce: u32) -> &mut u32 {
        if reduce as usize >= self.at.len() {
            self.at.resize(reduce as usize + 1, OUTSIDE);
        }
        &mut self.at[reduce as usize]
    }
}
