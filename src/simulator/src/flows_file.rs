//! The flows file: links, and flows with their paths, sizes and starts; and the moments at which they end.

use super::fluid::{Completion, FluidNetwork};
use hintd_model::cluster::document::{DocumentProblem, Place};
use hintd_model::network::maxmin::{LEAST_BITS_PER_S, MOST_BITS_PER_S};
use hintd_model::units::{Bytes, DirectedLinkIdx};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Most bytes of a flow: an exbibyte.
pub const MOST_BYTES: u64 = 1 << 60;
/// Latest start, seconds: three centuries, at which microseconds are still told apart.
pub const LATEST_START_S: f64 = 1e10;

/// Links and flows, as `data/flowsim` has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowsDocument {
    /// A label for people.
    #[serde(default)]
    pub topology: String,
    /// Directed links.
    pub links: Vec<LinkEntry>,
    /// Flows, in any order.
    pub flows: Vec<FlowEntry>,
}

/// A directed link; a full-duplex cable is two of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEntry {
    /// Unique.
    pub id: String,
    /// Capacity, bits/s.
    pub capacity_bps: f64,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowEntry {
    /// Unique.
    pub id: String,
    /// Ids of different links.
    pub path: Vec<String>,
    /// Bytes to send, a whole number.
    pub size_bytes: serde_json::Number,
    /// When it starts, seconds.
    pub start_s: f64,
}

/// When the flows end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowsResult {
    /// In the order of the file's flows.
    pub completions: Vec<FlowCompletion>,
    /// When the last flow ends, seconds; 0 without flows.
    pub makespan_s: f64,
}

/// When a flow ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowCompletion {
    /// The flow.
    pub id: String,
    /// When its last bit leaves, seconds.
    pub completion_s: f64,
}

/// A flow that may be started.
struct Start {
    path: Vec<DirectedLinkIdx>,
    bytes: Bytes,
    at_s: f64,
}

impl FlowsDocument {
    /// Lets all flows run to their ends. Flows may stand in any order; those of one start begin together.
    ///
    /// # Errors
    /// All that is wrong with the document, each with the path of its field.
    pub fn run(&self) -> Result<FlowsResult, Vec<DocumentProblem>> {
        let starts = Reader::read(self)?;
        let capacities: Vec<f64> = self.links.iter().map(|link| link.capacity_bps).collect();
        let mut network = FluidNetwork::new(&capacities).expect("capacities were checked");
        let mut order: Vec<usize> = (0..starts.len()).collect();
        order.sort_by(|&a, &b| starts[a].at_s.total_cmp(&starts[b].at_s));
        let mut ends = vec![0.0; starts.len()];
        let (mut running, mut ended): (Vec<usize>, Vec<Completion>) = (Vec::new(), Vec::new());
        for flow in order {
            let Start { path, bytes, at_s } = &starts[flow];
            network.advance(*at_s, &mut ended);
            note(&mut ends, &running, &mut ended);
            let slot = network.start(path, *bytes, 1).expect("paths were checked").at();
            running.resize(running.len().max(slot + 1), 0);
            running[slot] = flow;
        }
        network.advance(f64::INFINITY, &mut ended);
        note(&mut ends, &running, &mut ended);
        let makespan_s = ends.iter().copied().fold(0.0, f64::max);
        let completion =
            |(flow, &completion_s): (&FlowEntry, &f64)| FlowCompletion { id: flow.id.clone(), completion_s };
        Ok(FlowsResult { completions: self.flows.iter().zip(&ends).map(completion).collect(), makespan_s })
    }
}

/// Writes down ends and forgets them; `running` says which of the file's flows each was.
fn note(ends: &mut [f64], running: &[usize], ended: &mut Vec<Completion>) {
    for completion in ended.drain(..) {
        ends[running[completion.flow.at()]] = completion.at_s;
    }
}

/// Checks a document and collects what is wrong with it.
#[derive(Default)]
struct Reader<'d> {
    links: HashMap<&'d str, DirectedLinkIdx>,
    problems: Vec<DocumentProblem>,
}

impl<'d> Reader<'d> {
    fn read(document: &'d FlowsDocument) -> Result<Vec<Start>, Vec<DocumentProblem>> {
        let mut reader = Self::default();
        for (at, link) in document.links.iter().enumerate() {
            reader.link(at, link);
        }
        let mut ids = HashSet::new();
        let mut starts = Vec::with_capacity(document.flows.len());
        for (at, flow) in document.flows.iter().enumerate() {
            if !ids.insert(flow.id.as_str()) {
                reader.add(format_args!("flows[{at}].id"), format_args!("\"{}\" is given twice", flow.id));
            }
            starts.push(Start {
                path: reader.path(at, flow),
                bytes: reader.bytes(at, flow),
                at_s: reader.start(at, flow),
            });
        }
        if reader.problems.is_empty() { Ok(starts) } else { Err(reader.problems) }
    }

    fn add(&mut self, field: fmt::Arguments<'_>, message: fmt::Arguments<'_>) {
        self.problems.push(DocumentProblem { place: Place::Field(field.to_string()), message: message.to_string() });
    }

    fn link(&mut self, at: usize, link: &'d LinkEntry) {
        if self.links.insert(&link.id, DirectedLinkIdx::new(at)).is_some() {
            self.add(format_args!("links[{at}].id"), format_args!("\"{}\" is given twice", link.id));
        }
        if !(LEAST_BITS_PER_S..=MOST_BITS_PER_S).contains(&link.capacity_bps) {
            let (found, range) = (link.capacity_bps, format_args!("{LEAST_BITS_PER_S} to {MOST_BITS_PER_S:e}"));
            self.add(format_args!("links[{at}].capacity_bps"), format_args!("{found} is not from {range} bit/s"));
        }
    }

    fn path(&mut self, at: usize, flow: &FlowEntry) -> Vec<DirectedLinkIdx> {
        if flow.path.is_empty() {
            self.add(format_args!("flows[{at}].path"), format_args!("is empty: a flow passes at least one link"));
        }
        let mut path = Vec::with_capacity(flow.path.len());
        for (hop, name) in flow.path.iter().enumerate() {
            let field = format_args!("flows[{at}].path[{hop}]");
            match self.links.get(name.as_str()).copied() {
                None => self.add(field, format_args!("there is no link \"{name}\"")),
                Some(link) if path.contains(&link) => self.add(field, format_args!("passes \"{name}\" again")),
                Some(link) => path.push(link),
            }
        }
        path
    }

    fn bytes(&mut self, at: usize, flow: &FlowEntry) -> Bytes {
        let found = &flow.size_bytes;
        // A whole number may be written as 1e9.
        let float = found.as_f64().filter(|float| float.fract() == 0.0 && (1.0..=MOST_BYTES as f64).contains(float));
        let bytes = found.as_u64().or(float.map(|float| float as u64));
        let bytes = bytes.filter(|bytes| (1..=MOST_BYTES).contains(bytes));
        if bytes.is_none() {
            let field = format_args!("flows[{at}].size_bytes");
            self.add(field, format_args!("{found} is no whole number from 1 to {MOST_BYTES}"));
        }
        Bytes(bytes.unwrap_or_default())
    }

    fn start(&mut self, at: usize, flow: &FlowEntry) -> f64 {
        if !(0.0..=LATEST_START_S).contains(&flow.start_s) {
            let (found, latest) = (flow.start_s, LATEST_START_S);
            self.add(format_args!("flows[{at}].start_s"), format_args!("{found} is not from 0 to {latest} s"));
        }
        flow.start_s
    }
}
