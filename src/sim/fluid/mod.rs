//! Flows as fluids in time: each takes its max-min fair rate until its bytes are through.
//!
//! # The model
//! Rates are [`MaxMin`]'s, found anew at every start, completion and change of capacity and constant in between. No
//! latency, no headers, no slow start, no limit of a flow's own.
//!
//! # Invariants
//! - Times are f64 seconds. What a flow still has to send is brought up to date only when its rate changes, so
//!   nothing is summed for flows that an event does not reach.
//! - Completion times are, bit for bit, a function of the starts (moment, path, bytes, members) and of the changes of
//!   capacity: the order of calls at one moment does not matter, as [`MaxMin`]'s rates do not depend on it.
//! - All flows whose last bit leaves at one moment end together, before rates are found anew.

mod deadlines;
#[cfg(test)]
mod tests;

use crate::network::{MaxMin, MaxMinError};
use crate::units::{Bytes, DirectedLinkIdx, FlowIdx};
use deadlines::Deadlines;

const BITS_PER_BYTE: f64 = 8.0;

/// A flow's end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Completion {
    /// The flow; its index may be given to a later one.
    pub flow: FlowIdx,
    /// When its last bit left, seconds.
    pub at_s: f64,
}

/// Flows under way on links, and the time.
#[derive(Debug, Clone)]
pub struct FluidNetwork {
    rates: MaxMin,
    now_s: f64,
    /// By flow.
    progress: Vec<Progress>,
    deadlines: Deadlines,
    /// Whether starts, ends or capacities changed since rates were found.
    stale: bool,
    tolerance: f64,
    events: u64,
}

/// How far a flow was when its rate last changed.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Bits still to send, each member.
    left: f64,
    /// Bits/s, each member.
    rate: f64,
    since_s: f64,
    /// What was left at which moment and the rate from then on, before the rate changed at `since_s`.
    before: Option<(f64, f64, f64)>,
}

impl Progress {
    fn advance(&mut self, now_s: f64) {
        self.left = (self.left - self.rate * (now_s - self.since_s)).max(0.0);
        self.since_s = now_s;
    }

    /// Goes on at another rate. Of several changes at one moment only the last counts, and none if it takes the first
    /// back: else completions would hang, in the last bit, on the order of calls at that moment.
    fn change_rate(&mut self, rate: f64, now_s: f64) {
        if let Some((left, rate, since_s)) = self.before.take_if(|_| self.since_s == now_s) {
            (self.left, self.rate, self.since_s) = (left, rate, since_s);
        }
        if self.since_s == now_s {
            self.rate = rate;
        } else if self.rate != rate {
            self.before = Some((self.left, self.rate, self.since_s));
            self.advance(now_s);
            self.rate = rate;
        }
    }

    fn deadline_s(&self) -> f64 {
        // A flow that has sent all is at its end even where its link stands still: 0/0 is no moment.
        if self.left == 0.0 { self.since_s } else { self.since_s + self.left / self.rate }
    }
}

impl FluidNetwork {
    /// Links without flows at moment 0; capacities in bits/s, by index.
    ///
    /// # Errors
    /// [`MaxMinError::Capacity`].
    pub fn new(bits_per_s: &[f64]) -> Result<Self, MaxMinError> {
        Ok(Self {
            rates: MaxMin::new(bits_per_s)?,
            now_s: 0.0,
            progress: Vec::new(),
            deadlines: Deadlines::default(),
            stale: false,
            tolerance: 0.0,
            events: 0,
        })
    }

    /// Rates may be off by this share, for speed; 0 is exact.
    #[must_use]
    pub const fn with_tolerance(mut self, share: f64) -> Self {
        self.tolerance = share;
        self
    }

    /// Starts `members` like flows, each of `bytes`, as one flow of their weight: they get the same rate and end
    /// together, exactly as if each had been started alone.
    ///
    /// # Errors
    /// As [`MaxMin::add`]: a path that is empty, unknown or passes a link twice; no member.
    pub fn start(&mut self, path: &[DirectedLinkIdx], bytes: Bytes, members: u32) -> Result<FlowIdx, MaxMinError> {
        self.start_capped(path, bytes, members, f64::INFINITY)
    }

    /// As [`Self::start`], each member taking at most `cap_bits_per_s`; ∞: no limit of their own.
    ///
    /// # Errors
    /// As [`MaxMin::add_capped`].
    pub fn start_capped(
        &mut self,
        path: &[DirectedLinkIdx],
        bytes: Bytes,
        members: u32,
        cap_bits_per_s: f64,
    ) -> Result<FlowIdx, MaxMinError> {
        let flow = self.rates.add_capped(path, members, cap_bits_per_s)?;
        if flow.at() >= self.progress.len() {
            self.progress.resize(flow.at() + 1, Progress::default());
        }
        let left = bytes.as_f64() * BITS_PER_BYTE;
        let started = Progress { left, rate: 0.0, since_s: self.now_s, before: None };
        self.progress[flow.at()] = started;
        self.deadlines.set(flow, started.deadline_s());
        self.change();
        Ok(flow)
    }

    /// Takes a flow off before its end and says whether it was there.
    pub fn cancel(&mut self, flow: FlowIdx) -> bool {
        let there = self.rates.remove(flow);
        if there {
            self.deadlines.remove(flow);
            self.change();
        }
        there
    }

    /// Changes a link's capacity, bits/s; at 0 its flows stand still.
    ///
    /// # Errors
    /// As [`MaxMin::set_capacity`].
    pub fn set_capacity(&mut self, link: DirectedLinkIdx, bits_per_s: f64) -> Result<(), MaxMinError> {
        self.rates.set_capacity(link, bits_per_s)?;
        self.change();
        Ok(())
    }

    fn change(&mut self) {
        self.stale = true;
        self.events += 1;
    }

    /// When the next flow ends if nothing else happens, seconds; `None` if none ever does.
    pub fn next_completion_s(&mut self) -> Option<f64> {
        self.settle();
        self.deadlines.first().map(|(at_s, _)| at_s).filter(|at_s| at_s.is_finite())
    }

    /// Lets time pass up to `to_s`, the moment itself included, and adds the flows that ended, in time's order and
    /// those of one moment in the order of their indexes. A moment that has passed already changes nothing;
    /// ∞ lets all end that ever will, and then it is the moment of the last end.
    pub fn advance(&mut self, to_s: f64, ended: &mut Vec<Completion>) {
        while let Some(at_s) = self.next_completion_s().filter(|&at_s| at_s <= to_s) {
            self.now_s = at_s;
            while let Some((_, flow)) = self.deadlines.first().filter(|first| first.0 == at_s) {
                self.deadlines.remove(flow);
                self.rates.remove(flow);
                self.change();
                ended.push(Completion { flow, at_s });
            }
        }
        if to_s.is_finite() {
            self.now_s = self.now_s.max(to_s);
        }
    }

    fn settle(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.rates.settle();
        for &flow in self.rates.told() {
            let rate = self.rates.level(flow).expect("only flows that are there are told");
            let progress = &mut self.progress[flow.at()];
            progress.change_rate(rate, self.now_s);
            self.deadlines.set(flow, progress.deadline_s());
        }
    }

    /// The moment reached, seconds.
    #[must_use]
    pub const fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Rates and loads as of now.
    pub fn rates(&mut self) -> &MaxMin {
        self.settle();
        &self.rates
    }

    /// What the flows of a link take together now, bits/s.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn load(&mut self, link: DirectedLinkIdx) -> f64 {
        self.settle();
        self.rates.load(link)
    }

    /// Number of flows under way, like ones started as one counted once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Whether no flow is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What each member of a flow still has to send, bytes; `None` if it is not there.
    pub fn left_bytes(&mut self, flow: FlowIdx) -> Option<f64> {
        self.settle();
        self.rates.level(flow)?;
        let mut progress = self.progress[flow.at()];
        progress.advance(self.now_s);
        Some(progress.left / BITS_PER_BYTE)
    }

    /// Starts, ends, cancellations and changes of capacity so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }
}
