//! Following a change from link to link, in the order of levels.

use super::MaxMin;
use super::level::{Key, NO_LEVEL};
use crate::units::{DirectedLinkIdx, FlowIdx};
use std::cmp::Reverse;

/// A link in the queue. Levels are not negative, so their bits are ordered as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    level_bits: u64,
    link: DirectedLinkIdx,
    stamp: u32,
}

impl MaxMin {
    /// Makes the rates fit all changes since the last call, and returns the flows whose rates per unit of weight
    /// changed, new ones among them, in no order.
    pub fn recompute_rates(&mut self) -> &[FlowIdx] {
        self.recompute_levels();
        let Self { recomputed, links, levels, flows, rates, told, .. } = self;
        told.clear();
        for &flow in &recomputed.moved {
            let slot = &mut flows[flow.at()];
            if !slot.path.is_empty() && !slot.listed && slot.was.level != rates[flow.at()].level {
                told.push(flow);
            }
            slot.listed = true; // until the flows that stayed are told too
        }
        for &at in &recomputed.shifted {
            if links[at.at()].was != levels[at.at()] {
                let stayed = |flow: &FlowIdx| rates[flow.at()].bottleneck == at && !flows[flow.at()].listed;
                told.extend(links[at.at()].members.iter().copied().filter(stayed));
            }
        }
        recomputed.moved.iter().for_each(|flow| flows[flow.at()].listed = false);
        told
    }

    /// As [`Self::recompute_rates`], but tells only the links [`Self::shifted`] and the flows [`Self::moved`], which costs
    /// nothing for each flow that a link holds.
    ///
    /// The lowest link whose equation does not hold is always taken first: all below it is final. If its level is
    /// to fall, its new level is final too. If it is to rise, it gets what its equation gives with the flows as they
    /// are, and is asked again if one of them changes.
    pub fn recompute_levels(&mut self) {
        self.sweep();
        while let Some(Reverse(entry)) = self.queue.pop() {
            let at = entry.link;
            let link = &mut self.links[at.at()];
            if !link.queued || link.stamp != entry.stamp {
                continue;
            }
            link.queued = false;
            let next = link.next.take();
            let level = next.unwrap_or_else(|| self.evaluate(at));
            if level != self.levels[at.at()] {
                self.set_level(at, level);
                self.sweep();
            }
        }
        std::mem::swap(&mut self.pending, &mut self.recomputed);
        self.pending.shifted.clear();
        self.pending.moved.clear();
        self.recomputed.moved.iter().for_each(|flow| self.flows[flow.at()].listed = false);
        self.recomputed.shifted.iter().for_each(|link| self.links[link.at()].listed = false);
    }

    /// Marks a link whose flows or capacity changed.
    pub(super) fn touch(&mut self, at: DirectedLinkIdx, may_fall: bool) {
        let link = &mut self.links[at.at()];
        link.may_fall |= may_fall;
        if !link.touched {
            link.touched = true;
            self.touched.push(at);
        }
    }

    /// Notes that a flow leaves `was`.
    pub(super) fn list(&mut self, flow: FlowIdx, was: Key) {
        let slot = &mut self.flows[flow.at()];
        if slot.listed {
            if was.level.is_nan() {
                slot.was = was; // a new flow in the place of one that ended since the last recompute
            }
            return;
        }
        // Its link may have shifted since the last recompute, with the flow.
        let shifted = self.links.get(was.link.at()).filter(|link| link.listed);
        let level = shifted.map_or(was.level, |link| link.was);
        (slot.listed, slot.was) = (true, Key { level, ..was });
        self.pending.moved.push(flow);
    }

    /// Gives every touched link its place in the queue.
    fn sweep(&mut self) {
        while let Some(at) = self.touched.pop() {
            let link = &mut self.links[at.at()];
            link.touched = false;
            let level = self.levels[at.at()];
            let may_fall = std::mem::take(&mut link.may_fall) || link.queued;
            if !may_fall && level == NO_LEVEL {
                continue;
            }
            if self.tolerance > 0.0 && !link.queued && link.is_balanced(level, self.tolerance) {
                continue;
            }
            // A level that can only rise is left until its turn: much may change before.
            let next = may_fall.then(|| self.evaluate(at));
            let link = &mut self.links[at.at()];
            link.stamp = link.stamp.wrapping_add(1);
            link.queued = next != Some(level);
            link.next = next.filter(|&next| next < level);
            if link.queued {
                let level_bits = next.map_or(level, |next| next.min(level)).to_bits();
                self.queue.push(Reverse(Entry { level_bits, link: at, stamp: link.stamp }));
            }
        }
    }

    fn set_level(&mut self, at: DirectedLinkIdx, level: f64) {
        let was = std::mem::replace(&mut self.levels[at.at()], level);
        let link = &mut self.links[at.at()];
        if !std::mem::replace(&mut link.listed, true) {
            link.was = was;
            self.pending.shifted.push(at);
        }
        let own = Key { level, link: at };
        let members = std::mem::take(&mut self.links[at.at()].members);
        for &flow in &members {
            let old = self.rates[flow.at()].key();
            let new = if old.link == at {
                // A level that falls keeps whom it held.
                if level < was { own } else { self.lowest(flow, None) }
            } else if own.is_below(old) {
                own
            } else {
                continue;
            };
            if new != old {
                self.set_rate(flow, old, new, at);
            }
        }
        self.links[at.at()].members = members;
    }

    /// Moves a flow to another level or bottleneck and tells the links of its path, but for the cause.
    fn set_rate(&mut self, flow: FlowIdx, old: Key, new: Key, cause: DirectedLinkIdx) {
        let rate = &mut self.rates[flow.at()];
        (rate.level, rate.bottleneck) = (new.level, new.link);
        let weight = rate.weight;
        if old.link != new.link {
            self.list(flow, old);
        }
        for hop in 0..self.flows[flow.at()].path.len() {
            let at = self.flows[flow.at()].path[hop];
            let link = &mut self.links[at.at()];
            link.reload(weight, old.level, new.level);
            if old.link != new.link {
                link.held -= if old.link == at { u64::from(weight) } else { 0 };
                link.held += if new.link == at { u64::from(weight) } else { 0 };
            }
            let own = Key { level: self.levels[at.at()], link: at };
            // A link's equation knows only what lies below the link's level.
            let concerned = if self.tolerance > 0.0 {
                link.queued || !link.is_balanced(own.level, self.tolerance)
            } else {
                link.queued || own.level == NO_LEVEL || old.is_below(own) || new.is_below(own)
            };
            if at != cause && concerned {
                let may_fall = own.level == NO_LEVEL || old.is_below(new);
                self.touch(at, may_fall);
            }
        }
    }
}
