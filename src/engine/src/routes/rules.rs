//! One pair's rules on switches: which are there, as far as updates tell, and which changes lead to another route.
//!
//! # Why packets never loop
//! Of a new route the rule nearest to the receiver comes first. Whatever part of the changes was applied, the rules of
//! the new route that are there are its last ones: a packet follows the old route up to the first of them, and from
//! there the new one to its end. Rules that neither route has are on switches that neither passes.

use super::messages::{NamedRoute, RuleAction, RuleChange, WatchedPair};
use hintd_model::units::LinkName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rules of one pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PairRules {
    /// From the sender to the receiver.
    hops: Vec<Hop>,
    /// Switches of earlier routes that may have a rule still.
    stale: BTreeMap<Arc<str>, Stale>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hop {
    switch: Arc<str>,
    link: LinkName,
    next: Arc<str>,
}

/// What becomes of a rule that nothing is to use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stale {
    /// It may go once this update is acknowledged.
    After(u64),
    /// This update removes it.
    Removed(u64),
}

impl PairRules {
    /// Whether the switches have nothing of the pair.
    pub(super) fn is_empty(&self) -> bool {
        self.hops.is_empty() && self.stale.is_empty()
    }

    /// Lays the rules of `route` in update `number`, from the receiver's end; rules of before are left where they are.
    /// `anew`: also those that should be there already.
    pub(super) fn install(&mut self, route: &NamedRoute, number: u64, anew: bool, out: &mut Vec<RuleChange>) {
        let hops = hops(route);
        for hop in hops.iter().rev() {
            if anew || !self.hops.contains(hop) {
                let action = RuleAction::Install { link: hop.link.clone(), next: Arc::clone(&hop.next) };
                out.push(RuleChange { switch: Arc::clone(&hop.switch), pair: route.pair.clone(), action });
            }
        }
        for old in std::mem::replace(&mut self.hops, hops) {
            self.stale.insert(old.switch, Stale::After(number));
        }
        for hop in &self.hops {
            self.stale.remove(&hop.switch);
        }
    }

    /// Removes what no route needs, in update `number`: all of it, also what an earlier update should have removed.
    pub(super) fn sweep(&mut self, pair: &WatchedPair, number: u64, out: &mut Vec<RuleChange>) {
        for (switch, stale) in &mut self.stale {
            *stale = Stale::Removed(number);
            out.push(remove(switch, pair));
        }
    }

    /// Removes, in update `number`, what nothing passes once that is applied.
    pub(super) fn drop_old(&mut self, pair: &WatchedPair, number: u64, out: &mut Vec<RuleChange>) {
        self.break_old(pair, u64::MAX, number, out);
    }

    /// Removes what update `acknowledged` or an earlier one made superfluous, in update `number`.
    pub(super) fn break_old(&mut self, pair: &WatchedPair, acknowledged: u64, number: u64, out: &mut Vec<RuleChange>) {
        for (switch, stale) in &mut self.stale {
            if matches!(stale, Stale::After(made) if *made <= acknowledged) {
                *stale = Stale::Removed(number);
                out.push(remove(switch, pair));
            }
        }
    }

    /// Removes everything in update `number`, from the sender's end: whatever part of it was applied, a packet meets
    /// rules that lead it to the receiver, or none.
    pub(super) fn clear(&mut self, pair: &WatchedPair, number: u64, out: &mut Vec<RuleChange>) {
        for hop in std::mem::take(&mut self.hops) {
            out.push(remove(&hop.switch, pair));
            self.stale.insert(hop.switch, Stale::Removed(number));
        }
        for (switch, stale) in &mut self.stale {
            if matches!(stale, Stale::After(_)) {
                *stale = Stale::Removed(number);
                out.push(remove(switch, pair));
            }
        }
    }

    /// Forgets what is certainly removed. Whether something waits to be: rules that a Break may remove now.
    pub(super) fn acknowledged(&mut self, number: u64) -> bool {
        self.stale.retain(|_, stale| !matches!(stale, Stale::Removed(removed) if *removed <= number));
        self.stale.values().any(|stale| matches!(stale, Stale::After(made) if *made <= number))
    }
}

fn remove(switch: &Arc<str>, pair: &WatchedPair) -> RuleChange {
    RuleChange { switch: Arc::clone(switch), pair: pair.clone(), action: RuleAction::Remove }
}

/// The rules that a route needs: one on each switch that it passes.
fn hops(route: &NamedRoute) -> Vec<Hop> {
    let inner = route.vertices.windows(2).zip(&route.links).skip(1);
    let hop = |(ends, link): (&[Arc<str>], &LinkName)| Hop {
        switch: Arc::clone(&ends[0]),
        link: link.clone(),
        next: Arc::clone(&ends[1]),
    };
    inner.map(hop).collect()
}
