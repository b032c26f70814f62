//! One job's inlets and sinks in flat lists.

use hintd_model::cluster::Traffic;
use hintd_model::units::NodeIdx;
use std::ops::Range;

/// A job: what each of its inlets and sinks gets.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Rows of pairs and the pairs of tasks this job has on them.
    flows: Vec<(u32, u32)>,
    inlets: Vec<Inlet>,
    /// Rows of pairs, inlet after inlet.
    inlet_rows: Vec<u32>,
    sinks: Vec<Sink>,
    /// Inlets, sink after sink.
    sink_inlets: Vec<u32>,
    /// By inlet, and one more: where its sinks start in `waiting`.
    waiting_starts: Vec<u32>,
    /// Sinks, inlet after inlet.
    waiting: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Inlet {
    rows: Range<u32>,
    /// NIC rate where an edge stays on the node, else infinite.
    local: f64,
    rate: f64,
    queued: bool,
}

#[derive(Debug, Clone)]
struct Sink {
    inlets: Range<u32>,
    count: u32,
    rate: f64,
    queued: bool,
}

/// What a job has yet to follow; used again for every recompute.
#[derive(Debug, Clone, Default)]
pub(super) struct Follow {
    inlets: Vec<u32>,
    sinks: Vec<u32>,
    fallen: Vec<(u32, f64)>,
}

impl Job {
    pub(super) fn new(
        traffic: &Traffic,
        rows: &[u32],
        weights: impl Iterator<Item = u32>,
        nic: impl Fn(NodeIdx) -> f64,
    ) -> Self {
        let (mut inlets, mut inlet_rows) = (Vec::new(), Vec::new());
        for inlet in &traffic.inlets {
            let start = inlet_rows.len() as u32;
            inlet_rows.extend(inlet.flows.iter().map(|&flow| rows[flow as usize]));
            let local = inlet.local.map_or(f64::INFINITY, &nic);
            inlets.push(Inlet { rows: start..inlet_rows.len() as u32, local, rate: 0.0, queued: false });
        }
        let (mut sinks, mut sink_inlets) = (Vec::new(), Vec::new());
        let mut waiters: Vec<u32> = vec![0; inlets.len() + 1];
        for sink in &traffic.sinks {
            let start = sink_inlets.len() as u32;
            sink_inlets.extend_from_slice(&sink.inlets);
            sink.inlets.iter().for_each(|&inlet| waiters[inlet as usize + 1] += 1);
            sinks.push(Sink { inlets: start..sink_inlets.len() as u32, count: sink.count, rate: 0.0, queued: false });
        }
        for at in 1..waiters.len() {
            waiters[at] += waiters[at - 1];
        }
        let (waiting_starts, mut next) = (waiters.clone(), waiters);
        let mut waiting = vec![0; sink_inlets.len()];
        for (at, sink) in (0_u32..).zip(&traffic.sinks) {
            for &inlet in &sink.inlets {
                waiting[next[inlet as usize] as usize] = at;
                next[inlet as usize] += 1;
            }
        }
        let flows = rows.iter().copied().zip(weights).collect();
        Self { flows, inlets, inlet_rows, sinks, sink_inlets, waiting_starts, waiting }
    }

    /// Rows of its pairs with its pairs of tasks.
    pub(super) fn weights(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.flows.iter().copied()
    }

    /// Every inlet with the rows it waits for.
    pub(super) fn inlet_rows(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0..).zip(&self.inlets).map(|(at, inlet)| (at, self.rows(inlet)))
    }

    /// Everything anew.
    pub(super) fn reckon(&mut self, rates: &[f64]) {
        for at in 0..self.inlets.len() {
            self.inlets[at].rate = self.inlet_rate(at, rates);
        }
        for at in 0..self.sinks.len() {
            self.sinks[at].rate = self.sink_rate(at);
        }
    }

    /// Sum over sinks of tasks × rate.
    pub(super) fn utility(&self) -> f64 {
        self.sinks.iter().map(|sink| f64::from(sink.count) * sink.rate).sum()
    }

    /// An inlet's pair went from one rate to another: a lower one is taken at once, a higher one only matters where
    /// the pair was the slowest.
    pub(super) fn pair_changed(&mut self, inlet: u32, old: f64, new: f64, follow: &mut Follow) {
        let known = &mut self.inlets[inlet as usize];
        if (new < known.rate || old == known.rate) && !std::mem::replace(&mut known.queued, true) {
            follow.inlets.push(inlet);
        }
    }

    /// Makes inlets and sinks fit; whether a sink changed.
    pub(super) fn follow(&mut self, rates: &[f64], follow: &mut Follow) -> bool {
        for inlet in follow.inlets.drain(..) {
            let (old, new) = (self.inlets[inlet as usize].rate, self.inlet_rate(inlet as usize, rates));
            let known = &mut self.inlets[inlet as usize];
            (known.rate, known.queued) = (new, false);
            if old != new {
                follow.fallen.push((inlet, old));
            }
        }
        for (inlet, old) in follow.fallen.drain(..) {
            let new = self.inlets[inlet as usize].rate;
            let waiting = self.waiting_starts[inlet as usize]..self.waiting_starts[inlet as usize + 1];
            for at in waiting {
                let sink = self.waiting[at as usize];
                let known = &mut self.sinks[sink as usize];
                if (new < known.rate || old == known.rate) && !std::mem::replace(&mut known.queued, true) {
                    follow.sinks.push(sink);
                }
            }
        }
        let mut changed = false;
        for sink in follow.sinks.drain(..) {
            let new = self.sink_rate(sink as usize);
            let known = &mut self.sinks[sink as usize];
            changed |= known.rate != new;
            (known.rate, known.queued) = (new, false);
        }
        changed
    }

    fn rows(&self, inlet: &Inlet) -> &[u32] {
        &self.inlet_rows[inlet.rows.start as usize..inlet.rows.end as usize]
    }

    fn inlet_rate(&self, at: usize, rates: &[f64]) -> f64 {
        let inlet = &self.inlets[at];
        self.rows(inlet).iter().map(|&row| rates[row as usize]).fold(inlet.local, f64::min)
    }

    fn sink_rate(&self, at: usize) -> f64 {
        let range = &self.sinks[at].inlets;
        let inlets = &self.sink_inlets[range.start as usize..range.end as usize];
        inlets.iter().map(|&inlet| self.inlets[inlet as usize].rate).fold(f64::INFINITY, f64::min)
    }
}
