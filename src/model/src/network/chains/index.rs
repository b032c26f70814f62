//! Flows that keep a route through their chain, followed through failures and repairs of links and boxes.

use super::Chains;
use super::route::{BoxLoads, WaypointInputs, WaypointRoute, best_way, is_whole};
use crate::units::{BitsPerSec, BoxIdx, ChainIdx, LinkIdx, VertexIdx};
use std::collections::{BTreeMap, BTreeSet};

/// A flow under a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainFlow {
    /// Sending host.
    pub from: VertexIdx,
    /// Receiving host; may be the same.
    pub to: VertexIdx,
    /// What it has to pass.
    pub chain: ChainIdx,
    /// What it takes of each box.
    pub rate: BitsPerSec,
}

/// What a change did to flows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rerouted {
    /// Flows that have another route now, or none; ascending.
    pub changed: Vec<u64>,
    /// Flows that a route was looked for.
    pub looked: usize,
}

/// Flows with their routes, by number; which flows a link or box carries; what is taken of each box.
///
/// # Rules
/// - A flow keeps its route until a link or box of it fails or a box no longer has the capacity; then it gets the best
///   there is, and no other flow moves. Of a box that carries too much the flows of highest number go first.
/// - A flow that finds no way has no route (fail closed), or passes what boxes it can where its chain says `open`. It
///   is tried again whenever something comes up or a flow leaves a box.
/// - Once [`WaypointInputs::work`] says to stop, nobody is looked at any more: who was not reached is [`due`](Self::is_due)
///   and has no route until [`go_on`](Self::go_on) comes to it.
#[derive(Debug, Clone)]
pub struct ChainRoutes {
    flows: BTreeMap<u64, (ChainFlow, Option<WaypointRoute>)>,
    by_box: Vec<BTreeSet<u64>>,
    by_link: BTreeMap<LinkIdx, BTreeSet<u64>>,
    /// Flows without a route, or with one that leaves out boxes.
    lacking: BTreeSet<u64>,
    /// Those of them that are still to be looked at.
    due: BTreeSet<u64>,
    /// Somebody passes more boxes since all of them were last put in line.
    rose: bool,
    /// The flow that a go began with and did not come to the end of, and how often.
    cut_short: (u64, u32),
    loads: BoxLoads,
}

impl ChainRoutes {
    /// No flows.
    #[must_use]
    pub fn new(chains: &Chains) -> Self {
        let by_box = vec![BTreeSet::new(); chains.boxes().len()];
        let (flows, by_link, lacking, due) = Default::default();
        Self { flows, by_box, by_link, lacking, due, rose: false, cut_short: (0, 0), loads: BoxLoads::new(chains) }
    }

    /// Takes a flow in under a number of its own and gives its route. One that is known under the number goes first.
    pub fn insert(&mut self, ways: &WaypointInputs<'_>, number: u64, flow: ChainFlow) -> Option<&WaypointRoute> {
        self.remove(number);
        self.flows.insert(number, (flow, None));
        self.find(ways, number);
        self.route(number)
    }

    /// The same, on a route that it had or that was chosen for it, where that can be taken and its boxes have the room;
    /// else on the best there is.
    pub fn insert_on(
        &mut self,
        ways: &WaypointInputs<'_>,
        number: u64,
        flow: ChainFlow,
        wanted: Option<WaypointRoute>,
    ) -> Option<&WaypointRoute> {
        self.remove(number);
        self.flows.insert(number, (flow, None));
        let chain = ways.chains.chain(flow.chain);
        let whole =
            |route: &WaypointRoute| is_whole(ways, (flow.from, flow.to), chain, flow.rate, (&self.loads, route));
        match wanted.filter(whole) {
            Some(route) => self.give(ways, number, Some(route)),
            None => self.find(ways, number),
        }
        self.route(number)
    }

    /// A known flow, with its route.
    #[must_use]
    pub fn flow(&self, number: u64) -> Option<(&ChainFlow, Option<&WaypointRoute>)> {
        self.flows.get(&number).map(|(flow, route)| (flow, route.as_ref()))
    }

    /// Flows that have no route, or one that leaves out boxes; ascending.
    #[must_use]
    pub const fn lacking(&self) -> &BTreeSet<u64> {
        &self.lacking
    }

    /// Looks again for better routes of all flows that lack something, as when other paths have become known. Those that
    /// found one, ascending.
    pub fn retry(&mut self, ways: &WaypointInputs<'_>) -> Vec<u64> {
        self.put_in_line();
        self.work_off(ways, false).changed
    }

    /// Whether flows are still to be looked at.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Goes on with flows that nobody has looked at for lack of time. One that is not come to the end of in
    /// [`Self::GOES`] goes of its own has no way. Those that found one, ascending.
    pub fn go_on(&mut self, ways: &WaypointInputs<'_>) -> Vec<u64> {
        self.work_off(ways, true).changed
    }

    /// So often a go may begin with the same flow: paths that were found in one are known in the next.
    pub const GOES: u32 = 64;

    /// Ends a flow; whether it was known.
    pub fn remove(&mut self, number: u64) -> bool {
        self.withdraw(number);
        self.lacking.remove(&number);
        self.due.remove(&number);
        self.flows.remove(&number).is_some()
    }

    /// A flow's route; `None` if it has none or is not known.
    #[must_use]
    pub fn route(&self, number: u64) -> Option<&WaypointRoute> {
        self.flows.get(&number)?.1.as_ref()
    }

    /// Flows by number, each with its route.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &ChainFlow, Option<&WaypointRoute>)> {
        self.flows.iter().map(|(&number, (flow, route))| (number, flow, route.as_ref()))
    }

    /// What is taken of each box.
    #[must_use]
    pub const fn loads(&self) -> &BoxLoads {
        &self.loads
    }

    /// Flows by chain: which chains are in use.
    #[must_use]
    pub fn in_use(&self, chains: &Chains) -> BTreeMap<std::sync::Arc<str>, u64> {
        let mut counts = BTreeMap::new();
        for (flow, _) in self.flows.values() {
            *counts.entry(chains.chain(flow.chain).name.clone()).or_default() += 1;
        }
        counts
    }

    /// Follows a change: `links` and `boxes` are those whose use or capacity may have changed; a switch's are all of
    /// its links and all boxes that hang on it. The chains are the ones that the flows were taken in under.
    pub fn on_change(&mut self, ways: &WaypointInputs<'_>, links: &[LinkIdx], boxes: &[BoxIdx]) -> Rerouted {
        let (network, chains) = (ways.network, ways.chains);
        let mut hit: BTreeSet<u64> = BTreeSet::new();
        for link in links.iter().filter(|link| !network.is_usable(**link)) {
            hit.extend(self.by_link.get(link).into_iter().flatten());
        }
        for &index in boxes {
            if chains.is_usable(network, index) {
                hit.extend(self.too_much(chains, index, &hit));
            } else {
                hit.extend(&self.by_box[index.at()]);
            }
        }
        let before: BTreeMap<u64, Option<WaypointRoute>> =
            hit.union(&self.lacking).map(|&number| (number, self.flows[&number].1.clone())).collect();
        hit.iter().for_each(|&number| self.withdraw(number));
        // Those that had a way come first, then those that have waited for one.
        hit.iter().for_each(|&number| self.find(ways, number));
        // A host on two switches is behind the other one once its first link is down: that may open a way, too.
        let of_host = |link: LinkIdx| {
            let link = network.link_at(link);
            network.vertex_at(link.a).is_host() || network.vertex_at(link.b).is_host()
        };
        let opens = |&link: &LinkIdx| network.is_usable(link) || of_host(link);
        let better = !hit.is_empty() || !boxes.is_empty() || links.iter().any(opens);
        let mut looked = hit.len();
        if better {
            self.put_in_line();
            looked += self.work_off(ways, false).looked;
        }
        let changed = before.into_iter().filter(|(number, route)| self.flows[number].1 != *route);
        Rerouted { changed: changed.map(|(number, _)| number).collect(), looked }
    }

    /// All that lack something are to be looked at.
    fn put_in_line(&mut self) {
        self.due.clone_from(&self.lacking);
        self.rose = false;
    }

    /// Looks for better routes of the flows in line, until nobody finds one: a flow that passes other boxes now may have
    /// left one that another waits for. Each round but the last passes more boxes, so there is a last. `whole`: with all the
    /// time that there ever is.
    fn work_off(&mut self, ways: &WaypointInputs<'_>, whole: bool) -> Rerouted {
        let passed = |route: &Option<WaypointRoute>| route.as_ref().map_or(0, |route| 1 + route.boxes.len());
        let (mut looked, mut before) = (0, BTreeMap::new());
        loop {
            let Some(&number) = self.due.first() else {
                if !std::mem::take(&mut self.rose) || self.lacking.is_empty() {
                    break;
                }
                self.due.clone_from(&self.lacking);
                continue;
            };
            if ways.spend(0) {
                break;
            }
            let old = self.flows[&number].1.clone();
            self.withdraw(number);
            let new = self.best(ways, number);
            looked += 1;
            let cut_short = ways.spend(0);
            let rises = !cut_short && passed(&new) > passed(&old);
            self.give(ways, number, if rises { new } else { old.clone() });
            if cut_short {
                if !(whole && looked == 1 && self.is_hopeless(number)) {
                    self.due.insert(number);
                }
                break;
            }
            self.rose |= rises;
            if rises {
                before.entry(number).or_insert(old);
            }
        }
        let changed = before.into_iter().filter(|(number, route)| self.flows[number].1 != *route);
        Rerouted { changed: changed.map(|(number, _)| number).collect(), looked }
    }

    /// A whole go was not enough for a flow: whether that was so too often.
    fn is_hopeless(&mut self, number: u64) -> bool {
        let goes = if self.cut_short.0 == number { self.cut_short.1 + 1 } else { 1 };
        self.cut_short = (number, goes);
        goes >= Self::GOES
    }

    /// Flows of highest number that have to leave a box for the others to fit, `gone` not counted.
    fn too_much(&self, chains: &Chains, index: BoxIdx, gone: &BTreeSet<u64>) -> Vec<u64> {
        let rate = |number: &u64| self.flows[number].0.rate;
        let of_box = &self.by_box[index.at()];
        let mut load = of_box.difference(gone).map(rate).fold(BitsPerSec::ZERO, BitsPerSec::saturating_add);
        let mut found = Vec::new();
        for &number in of_box.difference(gone).collect::<Vec<_>>().into_iter().rev() {
            if load <= chains.boxes()[index.at()].capacity {
                break;
            }
            load = load.saturating_sub(rate(&number));
            found.push(number);
        }
        found
    }

    /// Looks for a route of a flow that has none; where the time is over before it is found, later.
    fn find(&mut self, ways: &WaypointInputs<'_>, number: u64) {
        let route = self.best(ways, number).filter(|_| !ways.spend(0));
        self.give(ways, number, route);
        if ways.spend(0) {
            self.due.insert(number);
        }
    }

    fn best(&self, ways: &WaypointInputs<'_>, number: u64) -> Option<WaypointRoute> {
        let flow = self.flows[&number].0;
        best_way(ways, (flow.from, flow.to), ways.chains.chain(flow.chain), flow.rate, &self.loads)
    }

    /// Puts a flow that has no route on one, if there is one.
    fn give(&mut self, ways: &WaypointInputs<'_>, number: u64, route: Option<WaypointRoute>) {
        let flow = self.flows[&number].0;
        let chain = ways.chains.chain(flow.chain);
        if route.as_ref().is_none_or(|route| route.boxes.len() < chain.sequence.len()) {
            self.lacking.insert(number);
        }
        let Some(route) = route else { return };
        for &index in &route.boxes {
            self.loads.add(index, flow.rate);
            self.by_box[index.at()].insert(number);
        }
        for link in &route.links {
            self.by_link.entry(LinkIdx(link.0 / 2)).or_default().insert(number);
        }
        if let Some(known) = self.flows.get_mut(&number) {
            known.1 = Some(route);
        }
    }

    /// Takes a flow's route from it.
    fn withdraw(&mut self, number: u64) {
        let Some((flow, route)) = self.flows.get_mut(&number) else { return };
        let (rate, route) = (flow.rate, route.take());
        self.lacking.remove(&number);
        self.due.remove(&number);
        for &index in route.iter().flat_map(|route| &route.boxes) {
            self.loads.remove(index, rate);
            self.by_box[index.at()].remove(&number);
        }
        for link in route.iter().flat_map(|route| &route.links) {
            if let Some(listed) = self.by_link.get_mut(&LinkIdx(link.0 / 2)) {
                listed.remove(&number);
            }
        }
    }
}
