//! Weighted max-min fair rates of flows over directed links, kept while flows come and go.
//!
//! # The rule
//! A link's *level* is the rate per unit of weight that it grants to the flows it limits; a link that limits none
//! has level ∞. A flow's bottleneck is the link of its path with the lowest (level, index), and its rate is that
//! level times its weight. A link's level depends only on flows whose bottleneck elsewhere lies below it: they take
//! what they get there, the others share what is left. That is progressive filling (Bertsekas and Gallager, *Data
//! Networks*, §6.5.2) written as one equation for each link, so that a change needs to be followed only where it
//! leads: from links whose equation broke, in the order of levels, to links that share a flow whose rate changed.
//!
//! # What is guaranteed
//! - Levels are strictly ordered by (level, index) and each depends on lower ones only. So the equations have one
//!   solution *in floating point*, and rates are, bit for bit, a function of the flows present (path and weight
//!   each) and of the capacities: neither the history, nor the order of calls, nor the flows' indexes matter.
//! - `n` flows of one path and of weight 1 get, bit for bit, the level of one flow of weight `n`.
//! - What is taken from a link is summed in whole units of at most 2⁻⁶⁰ of its capacity: sums are exact, so their
//!   order is of no account and nothing drifts.

mod level;
mod recompute;
#[cfg(test)]
mod tests;

use super::graph::Network;
use super::path::Path;
use crate::units::{DirectedLinkIdx, FlowIdx, LinkIdx};
use level::{Key, Link, NO_LEVEL};
use recompute::Entry;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Smallest capacity other than zero, bits/s.
pub const LEAST_BITS_PER_S: f64 = 1e-3;
/// Largest capacity, bits/s: an exabit a second.
pub const MOST_BITS_PER_S: f64 = 1e18;

/// Why a flow or capacity is not taken. Nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MaxMinError {
    /// A capacity that no link has.
    #[error("capacity {bits_per_s} bit/s of link {} is neither 0 nor from {LEAST_BITS_PER_S} to {MOST_BITS_PER_S}", link.0)]
    Capacity {
        /// The link.
        link: DirectedLinkIdx,
        /// The capacity, bits/s.
        bits_per_s: f64,
    },
    /// A path over a link that is not there.
    #[error("the path names link {}, there are {links}", link.0)]
    UnknownLink {
        /// The link.
        link: DirectedLinkIdx,
        /// How many there are.
        links: usize,
    },
    /// A path without a link: nothing would limit the flow.
    #[error("the path is empty")]
    EmptyPath,
    /// A path that passes a link twice.
    #[error("the path passes link {} twice", link.0)]
    LinkTwice {
        /// The link.
        link: DirectedLinkIdx,
    },
    /// A flow without weight.
    #[error("the weight is 0")]
    ZeroWeight,
    /// More members of one flow than are counted.
    #[error("more than {} like flows", u32::MAX)]
    TooManyMembers,
    /// A limit of a flow's own that is none.
    #[error("a flow's own limit of {bits_per_s} bit/s is not above 0")]
    Cap {
        /// The limit.
        bits_per_s: f64,
    },
}

/// Max-min fair rates of weighted flows, kept while flows and capacities change.
///
/// Changes are collected; [`MaxMin::recompute_rates`] makes the rates fit them.
#[derive(Debug, Clone)]
pub struct MaxMin {
    links: Vec<Link>,
    /// By link, bits/s per unit of weight; after the links, the flows' own limits.
    levels: Vec<f64>,
    /// Where a limit of flows' own stands in `levels`, by its bits.
    caps: BTreeMap<u64, DirectedLinkIdx>,
    flows: Vec<Flow>,
    /// By flow.
    rates: Vec<Rate>,
    free: Vec<FlowIdx>,
    /// Links whose equation does not hold, by the level below which nothing changes any more.
    queue: BinaryHeap<Reverse<Entry>>,
    /// Links with changed inputs, not looked at yet.
    touched: Vec<DirectedLinkIdx>,
    /// Links whose levels changed since the last recompute, and flows whose bottleneck did.
    pending: Changes,
    /// The same of the last recompute.
    recomputed: Changes,
    /// What the last recompute told.
    told: Vec<FlowIdx>,
    tolerance: f64,
    /// Used again by every evaluation.
    inputs: Vec<Rate>,
    evaluations: u64,
}

#[derive(Debug, Clone)]
struct Flow {
    /// Empty where no flow is.
    path: SmallVec<[DirectedLinkIdx; 6]>,
    /// The flow's own limit.
    cap: Key,
    /// Level and bottleneck at the last recompute; a NaN level for a new flow.
    was: Key,
    /// Whether it stands among the pending changes.
    listed: bool,
}

#[derive(Debug, Clone, Default)]
struct Changes {
    shifted: Vec<DirectedLinkIdx>,
    moved: Vec<FlowIdx>,
}

/// What a flow gets, and where.
#[derive(Debug, Clone, Copy)]
struct Rate {
    level: f64,
    bottleneck: DirectedLinkIdx,
    weight: u32,
}

impl Rate {
    const fn key(&self) -> Key {
        Key { level: self.level, link: self.bottleneck }
    }
}

impl MaxMin {
    /// Links without flows; capacities in bits/s, by index. 0 is a link that carries nothing: its flows stand still.
    ///
    /// # Errors
    /// [`MaxMinError::Capacity`].
    pub fn new(bits_per_s: &[f64]) -> Result<Self, MaxMinError> {
        let links = bits_per_s.iter().enumerate().map(|(at, &bits)| Link::new(DirectedLinkIdx::new(at), bits));
        Ok(Self {
            links: links.collect::<Result<_, _>>()?,
            levels: vec![NO_LEVEL; bits_per_s.len()],
            caps: BTreeMap::new(),
            flows: Vec::new(),
            rates: Vec::new(),
            free: Vec::new(),
            queue: BinaryHeap::new(),
            touched: Vec::new(),
            pending: Changes::default(),
            recomputed: Changes::default(),
            told: Vec::new(),
            tolerance: 0.0,
            inputs: Vec::new(),
            evaluations: 0,
        })
    }

    /// Adds a flow over the links of `path`, whose order does not matter. Its rate is there after [`Self::recompute_rates`].
    ///
    /// # Errors
    /// [`MaxMinError::EmptyPath`], [`MaxMinError::ZeroWeight`], [`MaxMinError::UnknownLink`],
    /// [`MaxMinError::LinkTwice`].
    pub fn add(&mut self, path: &[DirectedLinkIdx], weight: u32) -> Result<FlowIdx, MaxMinError> {
        self.add_capped(path, weight, f64::INFINITY)
    }

    /// Adds a flow of `members` like ones, each of which takes at most `cap_bits_per_s`; ∞: no limit of their own.
    ///
    /// Different limits are remembered for good, as if each were a link.
    ///
    /// # Errors
    /// As [`Self::add`], and [`MaxMinError::Cap`].
    pub fn add_capped(
        &mut self,
        path: &[DirectedLinkIdx],
        members: u32,
        cap_bits_per_s: f64,
    ) -> Result<FlowIdx, MaxMinError> {
        let weight = members;
        self.check(path, weight)?;
        if cap_bits_per_s.is_nan() || cap_bits_per_s <= 0.0 {
            return Err(MaxMinError::Cap { bits_per_s: cap_bits_per_s });
        }
        let cap = self.cap(cap_bits_per_s);
        let flow = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow { path: SmallVec::new(), cap: Key::NONE, was: Key::NEW, listed: false });
            self.rates.push(Rate { level: NO_LEVEL, bottleneck: path[0], weight });
            FlowIdx::new(self.flows.len() - 1)
        });
        let slot = &mut self.flows[flow.at()];
        slot.path = SmallVec::from_slice(path);
        slot.cap = cap;
        let lowest = self.lowest(flow, None);
        self.rates[flow.at()] = Rate { level: lowest.level, bottleneck: lowest.link, weight };
        self.list(flow, Key::NEW);
        for &link in path {
            self.links[link.at()].join(flow, weight, lowest.level);
            self.touch(link, true);
        }
        if let Some(link) = self.links.get_mut(lowest.link.at()) {
            link.held += u64::from(weight);
        }
        Ok(flow)
    }

    fn cap(&mut self, bits_per_s: f64) -> Key {
        if bits_per_s == f64::INFINITY {
            return Key::NONE;
        }
        let next = DirectedLinkIdx::new(self.levels.len());
        let link = *self.caps.entry(bits_per_s.to_bits()).or_insert(next);
        if link == next {
            self.levels.push(bits_per_s);
        }
        Key { level: bits_per_s, link }
    }

    /// Gives a flow another number of members and says whether it was there; 0 removes it.
    pub fn set_members(&mut self, flow: FlowIdx, members: u32) -> bool {
        if members == 0 {
            return self.remove(flow);
        }
        let Some(slot) = self.flows.get(flow.at()).filter(|slot| !slot.path.is_empty()) else { return false };
        let Rate { level, weight, bottleneck } = self.rates[flow.at()];
        if weight == members {
            return true;
        }
        if let Some(link) = self.links.get_mut(bottleneck.at()) {
            link.held = link.held - u64::from(weight) + u64::from(members);
        }
        for link in slot.path.clone() {
            self.links[link.at()].reweigh(weight, members, level);
            self.touch(link, members > weight);
        }
        self.rates[flow.at()].weight = members;
        true
    }

    fn check(&self, path: &[DirectedLinkIdx], weight: u32) -> Result<(), MaxMinError> {
        if path.is_empty() {
            return Err(MaxMinError::EmptyPath);
        }
        if weight == 0 {
            return Err(MaxMinError::ZeroWeight);
        }
        for (at, &link) in path.iter().enumerate() {
            if link.at() >= self.links.len() {
                return Err(MaxMinError::UnknownLink { link, links: self.links.len() });
            }
            if path[..at].contains(&link) {
                return Err(MaxMinError::LinkTwice { link });
            }
        }
        Ok(())
    }

    /// Removes a flow and says whether it was there. Its index may be given to a later flow.
    pub fn remove(&mut self, flow: FlowIdx) -> bool {
        let Some(slot) = self.flows.get_mut(flow.at()) else { return false };
        let path = std::mem::take(&mut slot.path);
        if path.is_empty() {
            return false;
        }
        let Rate { level, weight, bottleneck } = self.rates[flow.at()];
        if let Some(link) = self.links.get_mut(bottleneck.at()) {
            link.held -= u64::from(weight);
        }
        for &link in &path {
            self.links[link.at()].leave(flow, weight, level);
            self.touch(link, false);
        }
        self.free.push(flow);
        true
    }

    /// Changes a link's capacity, bits/s; 0 stops its flows.
    ///
    /// # Errors
    /// [`MaxMinError::UnknownLink`], [`MaxMinError::Capacity`].
    pub fn set_capacity(&mut self, link: DirectedLinkIdx, bits_per_s: f64) -> Result<(), MaxMinError> {
        let Some(old) = self.links.get_mut(link.at()) else {
            return Err(MaxMinError::UnknownLink { link, links: self.links.len() });
        };
        let mut new = Link::new(link, bits_per_s)?;
        for flow in std::mem::take(&mut old.members) {
            let Rate { level, weight, .. } = self.rates[flow.at()];
            new.join(flow, weight, level);
        }
        old.resize(new);
        self.touch(link, true);
        Ok(())
    }

    /// Lets [`Self::recompute_rates`] leave a link as it is while what its flows take differs from what it would give them by no
    /// more than this share: a change is then followed only as far as it matters. No link carries more than its
    /// capacity and this share of it, none that limits flows leaves more than this share of it free; rates are a function of
    /// the calls and their order, no longer of the flows alone. 0, the default, is exact; above a half is taken for a half.
    pub fn set_tolerance(&mut self, share: f64) {
        self.tolerance = share.clamp(0.0, 0.5);
    }

    /// Links whose levels the last recompute changed.
    #[must_use]
    pub fn shifted(&self) -> &[DirectedLinkIdx] {
        &self.recomputed.shifted
    }

    /// Flows that the last recompute gave another [`Self::limit`], new ones among them; flows that ended since, and
    /// ones that came back to theirs, may be named too.
    #[must_use]
    pub fn moved(&self) -> &[FlowIdx] {
        &self.recomputed.moved
    }

    /// What holds a flow, as of the last recompute: its bottleneck, or an index beyond all links that stands for the flows'
    /// own limit of so many bits/s; `None` if the flow is not there.
    #[must_use]
    pub fn limit(&self, flow: FlowIdx) -> Option<DirectedLinkIdx> {
        self.level(flow).map(|_| self.rates[flow.at()].bottleneck)
    }

    /// The level of a link or a limit of flows' own, bits/s per unit of weight; ∞ if it limits none.
    ///
    /// # Panics
    /// If there is no such link or limit.
    #[must_use]
    pub fn level_of(&self, limit: DirectedLinkIdx) -> f64 {
        self.levels[limit.at()]
    }

    /// The flow's rate, bits/s, as of the last recompute; `None` if it is not there.
    #[must_use]
    pub fn rate(&self, flow: FlowIdx) -> Option<f64> {
        self.level(flow).map(|level| level * f64::from(self.rates[flow.at()].weight))
    }

    /// The flow's rate per unit of weight, bits/s, as of the last recompute; `None` if it is not there.
    #[must_use]
    pub fn level(&self, flow: FlowIdx) -> Option<f64> {
        let there = self.flows.get(flow.at()).is_some_and(|slot| !slot.path.is_empty());
        there.then(|| self.rates[flow.at()].level)
    }

    /// The link that limits the flow, as of the last recompute; `None` if the flow is not there or nothing but its own
    /// limit holds it.
    #[must_use]
    pub fn bottleneck(&self, flow: FlowIdx) -> Option<DirectedLinkIdx> {
        self.limit(flow).filter(|limit| limit.at() < self.links.len())
    }

    /// Number of members of a flow; 0 if it is not there.
    #[must_use]
    pub fn members(&self, flow: FlowIdx) -> u32 {
        self.level(flow).map_or(0, |_| self.rates[flow.at()].weight)
    }

    /// What the flows of a link take together, bits/s, as of the last recompute.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn load(&self, link: DirectedLinkIdx) -> f64 {
        self.links[link.at()].load_bits_per_s()
    }

    /// A link's capacity, bits/s.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn capacity(&self, link: DirectedLinkIdx) -> f64 {
        self.links[link.at()].bits_per_s
    }

    /// The flows over a link, in no order.
    ///
    /// # Panics
    /// If there is no such link.
    #[must_use]
    pub fn flows_of(&self, link: DirectedLinkIdx) -> &[FlowIdx] {
        &self.links[link.at()].members
    }

    /// Number of flows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Whether there is no flow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a link's flows were looked through since the start: the work done, whatever the machine.
    #[must_use]
    pub const fn evaluations(&self) -> u64 {
        self.evaluations
    }
}

/// The directed links of a network's link: from its end `a` to `b`, and back.
#[must_use]
pub fn directions(link: LinkIdx) -> [DirectedLinkIdx; 2] {
    [DirectedLinkIdx(2 * link.0), DirectedLinkIdx(2 * link.0 + 1)]
}

/// Capacities of all [`directions`] of a network's links, bits/s; 0 where a link is not usable.
#[must_use]
pub fn capacities(network: &Network) -> Vec<f64> {
    let each = (0..network.link_rows()).map(LinkIdx::new).map(|link| {
        let usable = network.is_usable(link);
        if usable { network.link_at(link).capacity.as_f64().min(MOST_BITS_PER_S) } else { 0.0 }
    });
    each.flat_map(|bits_per_s| [bits_per_s; 2]).collect()
}

/// The directed links that a path passes.
#[must_use]
pub fn directed(network: &Network, path: &Path) -> Vec<DirectedLinkIdx> {
    let hops = path.links.iter().zip(&path.vertices);
    hops.map(|(&link, &from)| directions(link)[usize::from(network.link_at(link).a != from)]).collect()
}
