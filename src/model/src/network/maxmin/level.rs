//! One link: what its flows take, in exact units, and the level that its equation gives.

use super::{Flow, LEAST_BITS_PER_S, MOST_BITS_PER_S, MaxMin, MaxMinError, Rate};
use crate::units::{DirectedLinkIdx, FlowIdx};

/// The level of a link that limits no flow.
pub(super) const NO_LEVEL: f64 = f64::INFINITY;
/// A capacity is from 2^60 to 2^61 units.
const UNIT_BITS: i32 = 60;
/// A link whose flows leave this part (2⁻⁴⁰) of it free limits none of them, whatever was rounded.
const SLACK_BITS: u32 = 40;

/// Order of levels; equal ones are told apart by the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Key {
    pub(super) level: f64,
    pub(super) link: DirectedLinkIdx,
}

impl Key {
    /// Of a flow that no recompute has seen.
    pub(super) const NEW: Self = Self { level: f64::NAN, link: DirectedLinkIdx(u32::MAX) };
    /// Limited by nothing.
    pub(super) const NONE: Self = Self { level: NO_LEVEL, link: DirectedLinkIdx(u32::MAX) };

    pub(super) fn is_below(self, other: Self) -> bool {
        self.level < other.level || (self.level == other.level && self.link < other.link)
    }
}

/// A directed link and its flows.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) bits_per_s: f64,
    /// Units in a bit/s, a power of two, so that scaling is exact.
    units: f64,
    capacity: i64,
    /// Sum over the flows of what each takes. Beyond `i64` while flows without a rate yet stand in it.
    load: i128,
    weight: u64,
    /// Weight of the flows whose bottleneck it is.
    pub(super) held: u64,
    pub(super) members: Vec<FlowIdx>,
    /// Grows with every entry in the queue: older entries count no more.
    pub(super) stamp: u32,
    pub(super) queued: bool,
    pub(super) touched: bool,
    /// Whether the level may fall, so that it must be evaluated before its place in the queue is known.
    pub(super) may_fall: bool,
    /// The level to come, if it is known.
    pub(super) next: Option<f64>,
    /// The level at the last recompute.
    pub(super) was: f64,
    /// Whether it stands among the pending changes.
    pub(super) listed: bool,
}

impl Link {
    pub(super) fn new(link: DirectedLinkIdx, bits_per_s: f64) -> Result<Self, MaxMinError> {
        if bits_per_s != 0.0 && !(LEAST_BITS_PER_S..=MOST_BITS_PER_S).contains(&bits_per_s) {
            return Err(MaxMinError::Capacity { link, bits_per_s });
        }
        let exponent = if bits_per_s == 0.0 { 0 } else { bits_per_s.log2().floor() as i32 };
        let units = 2_f64.powi(UNIT_BITS - exponent);
        Ok(Self {
            bits_per_s,
            units,
            capacity: (bits_per_s * units) as i64,
            load: 0,
            weight: 0,
            held: 0,
            members: Vec::new(),
            stamp: 0,
            queued: false,
            touched: false,
            may_fall: false,
            next: None,
            was: NO_LEVEL,
            listed: false,
        })
    }

    /// Takes over capacity and sums of `new`, and stays where it is in the queue.
    pub(super) fn resize(&mut self, new: Self) {
        let Self { bits_per_s, units, capacity, load, weight, members, .. } = new;
        (self.bits_per_s, self.units, self.capacity) = (bits_per_s, units, capacity);
        (self.load, self.weight, self.members) = (load, weight, members);
    }

    /// Whole units that a flow of weight 1 takes at `level`; twice the capacity stands for all that is more.
    fn taken(&self, level: f64) -> i64 {
        (level.min(2.0 * self.bits_per_s) * self.units) as i64
    }

    pub(super) fn join(&mut self, flow: FlowIdx, weight: u32, level: f64) {
        self.load += i128::from(self.taken(level)) * i128::from(weight);
        self.weight += u64::from(weight);
        self.members.push(flow);
    }

    pub(super) fn leave(&mut self, flow: FlowIdx, weight: u32, level: f64) {
        self.load -= i128::from(self.taken(level)) * i128::from(weight);
        self.weight -= u64::from(weight);
        let at = self.members.iter().position(|&member| member == flow).expect("a flow is a member of its links");
        self.members.swap_remove(at);
    }

    pub(super) fn reweigh(&mut self, old: u32, new: u32, level: f64) {
        self.load += i128::from(self.taken(level)) * (i128::from(new) - i128::from(old));
        self.weight = self.weight - u64::from(old) + u64::from(new);
    }

    pub(super) fn reload(&mut self, weight: u32, old: f64, new: f64) {
        self.load += i128::from(self.taken(new) - self.taken(old)) * i128::from(weight);
    }

    pub(super) fn load_bits_per_s(&self) -> f64 {
        i64::try_from(self.load).map_or_else(|_| self.load as f64, |small| small as f64) / self.units
    }

    /// Whether the flows, limited elsewhere, leave so much that no rounding makes this a bottleneck.
    pub(super) fn has_slack(&self) -> bool {
        self.load < i128::from(self.capacity - (self.capacity >> SLACK_BITS))
    }

    /// Whether what its flows take together fits its level, but for a share of what those that it holds take.
    pub(super) fn is_balanced(&self, level: f64, share: f64) -> bool {
        if self.capacity == 0 {
            // What flows take of it is no whole unit, whatever they are given: only their being held tells.
            return if self.weight == 0 { level == NO_LEVEL } else { level == 0.0 && self.held > 0 };
        }
        let free = self.free();
        if level == NO_LEVEL {
            return free >= -share * self.capacity as f64;
        }
        let taken = self.held as f64 * level * self.units;
        self.held > 0 && free.abs() <= share * taken.min(self.capacity as f64)
    }

    /// Units that the flows leave, or take too much.
    fn free(&self) -> f64 {
        let free = i128::from(self.capacity) - self.load;
        i64::try_from(free).map_or_else(|_| free as f64, |small| small as f64)
    }

    fn share(&self, left: i64, weight: u64) -> f64 {
        left.max(0) as f64 / weight as f64 / self.units
    }
}

impl MaxMin {
    /// The level that a link's equation gives for what its flows get elsewhere, as of now.
    ///
    /// From an equal share among all, flows that get less elsewhere are taken out until none is left to take out.
    /// The level never falls on the way (in exact numbers it could not, in rounded ones it is kept from it), so all
    /// that were taken out lie below the result, and flows above it had no part in it.
    pub(super) fn evaluate(&mut self, at: DirectedLinkIdx) -> f64 {
        if self.levels[at.at()] == NO_LEVEL && self.links[at.at()].has_slack() {
            return NO_LEVEL;
        }
        self.evaluations += 1;
        if let Some(level) = self.nudge(at).filter(|_| self.tolerance > 0.0) {
            return level;
        }
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.clear();
        inputs.extend(self.links[at.at()].members.iter().map(|&flow| self.elsewhere(flow, at)));
        let link = &self.links[at.at()];
        let (mut left, mut weight) = (link.capacity, link.weight);
        let mut level = if weight == 0 { NO_LEVEL } else { link.share(left, weight) };
        loop {
            let (own, before) = (Key { level, link: at }, inputs.len());
            inputs.retain(|input| {
                let below = input.key().is_below(own);
                if below {
                    left -= link.taken(input.level) * i64::from(input.weight);
                    weight -= u64::from(input.weight);
                }
                !below
            });
            if inputs.is_empty() {
                level = NO_LEVEL;
            }
            if inputs.is_empty() || inputs.len() == before {
                break;
            }
            level = level.max(link.share(left, weight));
        }
        self.inputs = inputs;
        level
    }

    /// The level that fits if the link goes on to hold the flows that it holds and no others; `None` if it does not.
    ///
    /// In exact numbers that is what the equation gives; in the last bits it hangs on the level before.
    fn nudge(&self, at: DirectedLinkIdx) -> Option<f64> {
        let (link, level) = (&self.links[at.at()], self.levels[at.at()]);
        if level == NO_LEVEL || link.held == 0 || link.capacity == 0 {
            return None;
        }
        let next = level + link.free() / (link.held as f64 * link.units);
        let own = Key { level: next, link: at };
        let mut rates = link.members.iter().map(|&flow| (flow, &self.rates[flow.at()]));
        let stays = if next < level {
            next >= 0.0 && rates.all(|(_, rate)| rate.bottleneck == at || rate.key().is_below(own))
        } else {
            rates.all(|(flow, rate)| rate.bottleneck != at || own.is_below(self.lowest(flow, Some(at))))
        };
        stays.then_some(next)
    }

    /// What the flow would get without that link.
    fn elsewhere(&self, flow: FlowIdx, without: DirectedLinkIdx) -> Rate {
        let rate = self.rates[flow.at()];
        if rate.bottleneck != without {
            return rate;
        }
        let lowest = self.lowest(flow, Some(without));
        Rate { level: lowest.level, bottleneck: lowest.link, ..rate }
    }

    /// The lowest of a flow's path and its own limit; beside `without`, if there is another.
    pub(super) fn lowest(&self, flow: FlowIdx, without: Option<DirectedLinkIdx>) -> Key {
        let Flow { path, cap, .. } = &self.flows[flow.at()];
        let mut lowest = *cap;
        for &link in path.iter().filter(|&&link| Some(link) != without) {
            let key = Key { level: self.levels[link.at()], link };
            if key.is_below(lowest) {
                lowest = key;
            }
        }
        lowest
    }
}
