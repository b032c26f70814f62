//! Classes of like flows, and the clocks that they follow.
//!
//! All flows of one path and limit are a *class*: one weighted flow of [`MaxMin`](hintd_model::network::MaxMin), whose
//! members come and go. Every class is held by one limit at a time (its bottleneck, or its own), and all classes under
//! one limit are served alike, member by member. So a limit has one clock, a heap of its classes by the service at
//! which their next flow ends, and one deadline: a change of its level costs the same however many flows it holds.

use super::clock::{Clock, Service, service};
use super::heap::{Heap, NOWHERE};
use hintd_model::units::{DirectedLinkIdx, FlowIdx};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What makes flows alike: their path and the bits of their own limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) path: SmallVec<[DirectedLinkIdx; 6]>,
    pub(super) cap_bits: u64,
}

/// Paths are ours, not an attacker's: one multiplication a word will do.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KindHasher(u64);

impl Hasher for KindHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Like flows.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) kind: Kind,
    pub(super) members: u32,
    /// Flows by the class's own service at which they end.
    flows: Heap<Service>,
    /// The limit that holds it; [`NOWHERE`] before rates are found.
    limit: u32,
    /// What the limit's clock is ahead of the class's.
    ahead: Service,
}

/// A flow: `members` like ones that end together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) class: FlowIdx,
    pub(super) members: u32,
    /// The class's service at its end.
    end: Service,
}

/// A link's level, or a limit of flows' own.
#[derive(Debug, Clone, Default)]
struct Limit {
    clock: Clock,
    /// Classes by this clock's service at which their next flow ends.
    classes: Heap<Service>,
    /// Whether its deadline is to be found anew.
    stale: bool,
}

/// All flows under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    pub(super) by_kind: HashMap<Kind, FlowIdx, BuildHasherDefault<KindHasher>>,
    /// By the class's index among the rates.
    classes: Vec<Class>,
    class_places: Vec<u32>,
    flows: Vec<Flow>,
    flow_places: Vec<u32>,
    free: Vec<FlowIdx>,
    limits: Vec<Limit>,
    limit_places: Vec<u32>,
    /// Limits by the moment of the next end.
    deadlines: Heap<f64>,
    stale: Vec<u32>,
}

impl Classes {
    pub(super) fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    pub(super) fn class(&self, class: FlowIdx) -> &Class {
        &self.classes[class.at()]
    }

    /// The flow, if it is under way.
    pub(super) fn flow(&self, flow: FlowIdx) -> Option<Flow> {
        let there = self.flow_places.get(flow.at()).is_some_and(|&place| place != NOWHERE);
        there.then(|| self.flows[flow.at()])
    }

    /// Opens a class without flows.
    pub(super) fn open(&mut self, class: FlowIdx, kind: Kind) {
        self.by_kind.insert(kind.clone(), class);
        if class.at() == self.classes.len() {
            self.class_places.push(NOWHERE);
            self.classes.push(Class { kind, members: 0, flows: Heap::default(), limit: NOWHERE, ahead: 0 });
        } else {
            let slot = &mut self.classes[class.at()];
            (slot.kind, slot.members, slot.limit, slot.ahead) = (kind, 0, NOWHERE, 0);
        }
    }

    pub(super) fn start(&mut self, class: FlowIdx, bits: f64, members: u32, now_s: f64) -> FlowIdx {
        let end = self.position(class, now_s) + service(bits);
        let flow = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow { class, members, end });
            self.flow_places.push(NOWHERE);
            FlowIdx::new(self.flows.len() - 1)
        });
        self.flows[flow.at()] = Flow { class, members, end };
        let slot = &mut self.classes[class.at()];
        slot.members += members;
        slot.flows.set(&mut self.flow_places, flow.0, end);
        self.rank(class);
        flow
    }

    /// Takes a flow off and returns its class and how many members stay in it: at 0 the class is gone.
    pub(super) fn end(&mut self, flow: FlowIdx) -> (FlowIdx, u32) {
        let Flow { class, members, .. } = self.flows[flow.at()];
        let slot = &mut self.classes[class.at()];
        slot.flows.remove(&mut self.flow_places, flow.0);
        slot.members -= members;
        let left = slot.members;
        self.free.push(flow);
        if left == 0 {
            self.by_kind.remove(&slot.kind);
        }
        self.rank(class);
        (class, left)
    }

    /// How much a class has been served.
    fn position(&self, class: FlowIdx, now_s: f64) -> Service {
        let Class { limit, ahead, .. } = self.classes[class.at()];
        if limit == NOWHERE { -ahead } else { self.limits[limit as usize].clock.at(now_s) - ahead }
    }

    /// What each member of a flow has still to be served.
    pub(super) fn left(&self, flow: Flow, now_s: f64) -> Service {
        (flow.end - self.position(flow.class, now_s)).max(0)
    }

    /// Gives a class its place among those of its limit.
    fn rank(&mut self, class: FlowIdx) {
        let Class { limit, ahead, ref flows, .. } = self.classes[class.at()];
        let Some(slot) = self.limits.get_mut(limit as usize) else { return };
        match flows.first() {
            Some((end, _)) => slot.classes.set(&mut self.class_places, class.0, end + ahead),
            None => slot.classes.remove(&mut self.class_places, class.0),
        }
        self.spoil(limit);
    }

    fn spoil(&mut self, limit: u32) {
        let slot = &mut self.limits[limit as usize];
        if !std::mem::replace(&mut slot.stale, true) {
            self.stale.push(limit);
        }
    }

    /// From now on a limit serves at `rate`, bits/s for each member.
    pub(super) fn change_rate(&mut self, limit: DirectedLinkIdx, rate: f64, now_s: f64) {
        if limit.at() >= self.limits.len() {
            self.limits.resize_with(limit.at() + 1, Limit::default);
            self.limit_places.resize(limit.at() + 1, NOWHERE);
        }
        self.limits[limit.at()].clock.change_rate(rate, now_s);
        self.spoil(limit.0);
    }

    /// From now on a class is held by another limit.
    pub(super) fn hand_over(&mut self, class: FlowIdx, limit: DirectedLinkIdx, now_s: f64) {
        let old = self.classes[class.at()].limit;
        if old == limit.0 {
            return;
        }
        let position = self.position(class, now_s);
        if old != NOWHERE {
            self.limits[old as usize].classes.remove(&mut self.class_places, class.0);
            self.spoil(old);
        }
        let slot = &mut self.classes[class.at()];
        (slot.limit, slot.ahead) = (limit.0, self.limits[limit.at()].clock.at(now_s) - position);
        self.rank(class);
    }

    /// The moment of the next end, ∞ if none is in sight. Rates must be up to date.
    pub(super) fn next_s(&mut self) -> Option<f64> {
        while let Some(limit) = self.stale.pop() {
            let slot = &mut self.limits[limit as usize];
            slot.stale = false;
            match slot.classes.first() {
                Some((end, _)) => self.deadlines.set(&mut self.limit_places, limit, slot.clock.when_s(end)),
                None => self.deadlines.remove(&mut self.limit_places, limit),
            }
        }
        self.deadlines.first().map(|first| first.0)
    }

    /// A flow that ends at `now_s` or should have, if there is one.
    pub(super) fn due(&mut self, now_s: f64) -> Option<FlowIdx> {
        self.next_s().filter(|&next| next <= now_s)?;
        let (_, limit) = self.deadlines.first()?;
        let (_, class) = self.limits[limit as usize].classes.first()?;
        self.classes[class as usize].flows.first().map(|(_, flow)| FlowIdx(flow))
    }
}
