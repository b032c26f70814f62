//! Flows as fluids in time: each takes its max-min fair rate until its bytes are through.
//!
//! # The model
//! Rates are [`MaxMin`]'s, found anew at every start, completion and change of capacity and constant in between. No
//! latency, no headers, no slow start.
//!
//! # Invariants
//! - Times are f64 seconds; what was sent is counted in whole 2⁻³² bits, so that nothing drifts. Nothing is summed for
//!   flows that an event does not reach, nor for each of the flows that one link holds (see `classes`).
//! - Completion times are, bit for bit, a function of the starts (moment, path, bytes, members, limit) and of the
//!   changes of capacity: the order of calls at one moment does not matter, as [`MaxMin`]'s rates do not depend on it,
//!   nor does whether like flows are started as one.
//! - All flows whose last bit leaves at one moment end together, before rates are found anew.
//! - With a tolerance ([`FluidNetwork::with_tolerance`]) the second is weaker: the same calls in the same order give
//!   the same times, another order at one moment gives times within the tolerance's reach.

mod classes;
mod clock;
mod heap;
#[cfg(test)]
mod tests;

use classes::{Classes, Kind};
use hintd_model::network::{MaxMin, MaxMinError};
use hintd_model::units::{Bytes, DirectedLinkIdx, FlowIdx};
use smallvec::SmallVec;

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
    /// One flow for each class.
    rates: MaxMin,
    now_s: f64,
    classes: Classes,
    /// Whether starts, ends or capacities changed since rates were found.
    stale: bool,
    events: u64,
}

impl FluidNetwork {
    /// Links without flows at moment 0; capacities in bits/s, by index.
    ///
    /// # Errors
    /// [`MaxMinError::Capacity`].
    pub fn new(bits_per_s: &[f64]) -> Result<Self, MaxMinError> {
        let rates = MaxMin::new(bits_per_s)?;
        Ok(Self { rates, now_s: 0.0, classes: Classes::default(), stale: false, events: 0 })
    }

    /// Trades exactness for speed, as [`MaxMin::set_tolerance`] does; 0 is exact.
    #[must_use]
    pub fn with_tolerance(mut self, share: f64) -> Self {
        self.rates.set_tolerance(share);
        self
    }

    /// Starts `members` like flows, each of `bytes`, as one flow of their weight: they get the same rate and end
    /// together, exactly as if each had been started alone.
    ///
    /// # Errors
    /// As [`MaxMin::add`]: a path that is empty, unknown or passes a link twice; no member, or too many.
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
        let kind = Kind { path: SmallVec::from_slice(path), cap_bits: cap_bits_per_s.to_bits() };
        let class = match self.classes.by_kind.get(&kind).copied() {
            Some(class) => {
                self.join(class, members)?;
                class
            }
            None => {
                let class = self.rates.add_capped(path, members, cap_bits_per_s)?;
                self.classes.open(class, kind);
                class
            }
        };
        self.change();
        Ok(self.classes.start(class, bytes.as_f64() * BITS_PER_BYTE, members, self.now_s))
    }

    fn join(&mut self, class: FlowIdx, members: u32) -> Result<(), MaxMinError> {
        if members == 0 {
            return Err(MaxMinError::ZeroWeight);
        }
        let sum = self.classes.class(class).members.checked_add(members).ok_or(MaxMinError::TooManyMembers)?;
        self.rates.set_members(class, sum);
        Ok(())
    }

    /// Takes a flow off before its end and says whether it was there.
    pub fn cancel(&mut self, flow: FlowIdx) -> bool {
        let there = self.classes.flow(flow).is_some();
        if there {
            self.end(flow);
        }
        there
    }

    fn end(&mut self, flow: FlowIdx) {
        let (class, left) = self.classes.end(flow);
        self.rates.set_members(class, left);
        self.change();
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
        self.recompute_rates();
        self.classes.next_s().filter(|at_s| at_s.is_finite()).map(|at_s| at_s.max(self.now_s))
    }

    /// Lets time pass up to `to_s`, the moment itself included, and adds the flows that ended, in time's order and
    /// those of one moment in the order of their indexes. A moment that has passed already changes nothing;
    /// ∞ lets all end that ever will, and then it is the moment of the last end.
    pub fn advance(&mut self, to_s: f64, ended: &mut Vec<Completion>) {
        while let Some(at_s) = self.next_completion_s().filter(|&at_s| at_s <= to_s) {
            self.now_s = at_s;
            let first = ended.len();
            while let Some(flow) = self.classes.due(at_s) {
                self.end(flow);
                ended.push(Completion { flow, at_s });
            }
            ended[first..].sort_unstable_by_key(|end| end.flow);
        }
        if to_s.is_finite() {
            self.now_s = self.now_s.max(to_s);
        }
    }

    fn recompute_rates(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let Self { rates, classes, now_s, .. } = self;
        rates.recompute_levels();
        for &limit in rates.shifted() {
            // A link that holds nobody serves nobody.
            let level = rates.level_of(limit);
            classes.change_rate(limit, if level.is_finite() { level } else { 0.0 }, *now_s);
        }
        for &class in rates.moved() {
            let Some(limit) = rates.limit(class) else { continue };
            classes.change_rate(limit, rates.level_of(limit), *now_s); // told of links already, not of own limits
            classes.hand_over(class, limit, *now_s);
        }
    }

    /// The moment reached, seconds.
    #[must_use]
    pub const fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Rates and loads as of now; its flows are the classes of like flows here.
    pub fn rates(&mut self) -> &MaxMin {
        self.recompute_rates();
        &self.rates
    }

    /// What the flows of a link take together now, bits/s.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn load(&mut self, link: DirectedLinkIdx) -> f64 {
        self.recompute_rates();
        self.rates.load(link)
    }

    /// Number of flows under way, like ones started as one counted once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether no flow is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What each member of a flow still has to send, bytes; `None` if it is not there.
    pub fn left_bytes(&mut self, flow: FlowIdx) -> Option<f64> {
        self.recompute_rates();
        let flow = self.classes.flow(flow)?;
        Some(clock::bits(self.classes.left(flow, self.now_s)) / BITS_PER_BYTE)
    }

    /// Starts, ends, cancellations and changes of capacity so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }
}
