//! What a change of the network does to flows: only pairs that it concerns are looked at.

use super::choose::RoutingContext;
use super::pairs::{PairUpdate, is_whole};
use super::settings::RouteSettings;
use super::work::Want;
use super::{Flows, names};
use crate::effects::Counter;
use crate::routes::{Cause, Phase};
use hintd_model::cluster::{NodePair, Snapshot};
use hintd_model::network::Network;
use hintd_model::network::maxmin::directions;
use hintd_model::units::{DirectedLinkIdx, LinkIdx, LinkName, NodeIdx, Timestamp, VertexIdx};
use hintd_policy::flow_index::FlowIndex;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Flows {
    /// These links went down or up, or have another capacity: pairs on them, and pairs whose first route has them, are
    /// put in line, and as many as may be are changed at once.
    pub fn links_changed(&mut self, links: &[LinkIdx], cause: &Cause, at: (&Snapshot, &RouteSettings), now: Timestamp) {
        let Some(network) = at.0.topology.network.as_ref().filter(|_| self.index.is_some()) else { return };
        self.network = Some(Arc::clone(network));
        let Some(index) = &mut self.index else { return };
        let (mut lost, mut back, mut other) = (Vec::new(), Vec::new(), Vec::new());
        index.hold();
        for &link in links {
            let was = directions(link).iter().any(|&direction| index.capacity(direction) > 0.0);
            let is = network.is_usable(link);
            let capacity = if is { network.link_at(link).capacity.as_f64() } else { 0.0 };
            for direction in directions(link) {
                index.set_capacity(direction, capacity);
            }
            match (was, is) {
                (_, false) => lost.push(link),
                (false, true) => back.push(link),
                (true, true) => other.push(link),
            }
            if was != is && self.damping.changed(link, at.1, now) {
                *self.counts.entry(Counter::LinksDamped).or_default() += 1;
            }
        }
        index.recompute_rates();
        self.changed = true;
        for direction in lost.iter().flat_map(|&link| directions(link)) {
            for pair in pairs_on(index, direction) {
                self.failed.push(pair, Want::Route, cause);
            }
        }
        for direction in other.iter().flat_map(|&link| directions(link)) {
            for pair in pairs_on(index, direction) {
                self.planned.push(pair, Want::Better, cause);
            }
        }
        self.came_back(&back, cause);
        self.chained_follow(links, &[], cause, at);
        if self.waits() {
            self.work(at, now);
        }
    }

    /// Links are up again: pairs without a path are tried, and pairs away from a home on them may return.
    fn came_back(&mut self, links: &[LinkIdx], cause: &Cause) {
        if links.is_empty() {
            return;
        }
        for &pair in &self.pairs.cut {
            self.failed.push(pair, Want::Route, cause);
        }
        for pair in links.iter().flat_map(|&link| self.pairs.default_pairs_on(link)) {
            self.planned.push(pair, Want::Home, cause);
        }
    }

    /// The network is another one, or nodes hang elsewhere in it: routes and homes that the new one has under the same
    /// names stay, all pairs without a route are put in line.
    pub fn network_changed(&mut self, cause: &Cause, at: (&Snapshot, &RouteSettings), now: Timestamp) {
        self.remember();
        let topology = &at.0.topology;
        self.network.clone_from(&topology.network);
        self.vertex.clone_from(&topology.vertex);
        self.table = None;
        self.damping = Default::default();
        self.failed.clear();
        self.planned.clear();
        self.pairs.forget_network();
        self.changed = true;
        self.index = None;
        self.refill(at.0);
        self.chained_anew(false, cause, at);
        let pairs: Vec<NodePair> = self.pairs.all.keys().copied().collect();
        // The path table is not made for nothing: whoever places first makes it, elsewhere.
        let Some(ways) = (!pairs.is_empty()).then(|| RoutingContext::of(at.0, at.1, &mut self.table)).flatten() else {
            for pair in pairs {
                self.tell(pair, Phase::Failover, cause);
            }
            return;
        };
        if let Some(index) = &mut self.index {
            index.hold();
        }
        let mut lost = Vec::new();
        for pair in pairs {
            if !self.resume(pair, &ways) {
                self.failed.push(pair, Want::Route, cause);
                lost.push(pair);
            } else if self.pairs.all[&pair].home.is_some() {
                self.planned.push(pair, Want::Home, cause);
            }
        }
        if let Some(index) = &mut self.index {
            index.recompute_rates();
        }
        self.work(at, now);
        // What has none yet has lost the one that watchers know.
        for pair in lost {
            if self.pairs.cut.contains(&pair) {
                self.tell(pair, Phase::Failover, cause);
            }
        }
        // A node that nothing is known of yet may be joined to the network later.
        let cut = &self.pairs.cut;
        self.remembered.retain(|pair, _| cut.contains(pair));
        self.remembered_homes.retain(|pair, _| cut.contains(pair));
    }

    /// Makes the index anew, of jobs and routes. Capacities are left to whoever follows them, where it had them.
    fn refill(&mut self, snapshot: &Snapshot) {
        let Some(network) = snapshot.topology.network.as_deref() else {
            self.jobs.values_mut().for_each(|job| job.slot = None);
            return;
        };
        let mut index = FlowIndex::new(network, &snapshot.topology);
        index.hold();
        for job in self.jobs.values_mut() {
            job.slot = Some(index.add_job(&job.traffic));
        }
        for (pair, talking) in self.pairs.all.iter().filter(|(_, talking)| !talking.route.is_empty()) {
            index.set_route(*pair, Some(&talking.route));
        }
        if let Some(old) = &self.index {
            for direction in (0..2 * network.link_rows()).map(DirectedLinkIdx::new) {
                index.set_capacity(direction, old.capacity(direction));
            }
        }
        index.recompute_rates();
        self.index = Some(index);
    }

    /// Gives a pair the home and the route that it had under the same names, the route if it can be taken: whether it
    /// can.
    fn resume(&mut self, pair: NodePair, ways: &RoutingContext<'_>) -> bool {
        let way = |of: &BTreeMap<NodePair, Vec<LinkName>>| {
            let links = names::links(ways, pair, of.get(&pair)?)?;
            ways.is_way(pair, &links).then_some(links)
        };
        let (known, home) = (way(&self.remembered), way(&self.remembered_homes));
        let carried = self.pairs.all[&pair].carried;
        let Some(route) = known.clone().filter(|route| is_whole(ways.network, route)) else {
            if let Some(home) = home.or(known) {
                let lay = PairUpdate { route: Arc::from([]), home: Some(home), carried };
                self.pairs.lay(pair, lay, Some(ways.network));
            }
            return false;
        };
        if let Some(index) = &mut self.index {
            index.set_route(pair, Some(&route));
        }
        self.install(pair, PairUpdate { route, home, carried }, ways);
        true
    }

    /// Keeps the names of all routes and homes.
    fn remember(&mut self) {
        let Some(network) = &self.network else { return };
        let names = |links: &[DirectedLinkIdx]| -> Vec<LinkName> {
            links.iter().map(|link| network.link_at(LinkIdx(link.0 / 2)).name.clone()).collect()
        };
        for (pair, talking) in &self.pairs.all {
            if !talking.route.is_empty() {
                self.remembered.insert(*pair, names(&talking.route));
                self.remembered_homes.remove(pair);
            }
            if let Some(home) = &talking.home {
                self.remembered_homes.insert(*pair, names(home));
            }
        }
    }

    /// The topology is another one: nodes may have come to hang elsewhere in the same network, or on links of another
    /// rate, whether these are up or down. Nodes without tasks, as those that join, concern no route.
    pub(crate) fn nodes_moved(&mut self, at: (&Snapshot, &RouteSettings), now: Timestamp) {
        let topology = &at.0.topology;
        let moved = self.vertex != topology.vertex;
        let [before, after] = [&self.vertex, &topology.vertex];
        let vertex = |of: &[Option<VertexIdx>], node: NodeIdx| of.get(node.at()).copied().flatten();
        let elsewhere = |node: &NodeIdx| vertex(before, *node) != vertex(after, *node);
        if self.index.is_some() && moved && self.by_node.keys().any(elsewhere) {
            self.network_changed(&Cause::new("topology", ""), at, now);
            return;
        }
        let (Some(before), Some(network)) = (&self.network, &topology.network) else { return };
        let rates = (0..network.link_rows()).map(LinkIdx::new).any(|link| hosts_rate_changed(before, network, link));
        if !rates && !moved {
            return;
        }
        self.network = Some(Arc::clone(network));
        self.vertex.clone_from(&topology.vertex);
        if rates || !self.index.as_mut().is_some_and(|index| index.grow(network, topology)) {
            self.refill(at.0);
        }
    }

    /// Everything that must hold, for tests: what is kept beside jobs and routes is what follows from them.
    #[cfg(test)]
    pub(crate) fn check(&mut self, at: (&Snapshot, &RouteSettings)) {
        use super::job::RoutesHad;
        use super::pairs::{ForwardingMode, switches};
        use hintd_model::cluster::ChainPair;
        let mut carried: BTreeMap<NodePair, (u64, u64)> = BTreeMap::new();
        for flow in self.jobs.values().flat_map(|job| &job.traffic.flows) {
            let sum = carried.entry(flow.pair).or_default();
            *sum = (sum.0 + u64::from(flow.task_pairs), sum.1 + flow.bytes.0);
        }
        let published: BTreeMap<NodePair, (u64, u64)> =
            self.pairs.published.iter().map(|(pair, route)| (*pair, (route.task_pairs, route.bytes.0))).collect();
        assert_eq!(carried, published, "pairs carry what jobs send");
        let had = self.jobs.values().flat_map(|job| job.unheard.values()).map(RoutesHad::pairs).sum::<usize>();
        assert_eq!(self.routes_had, had, "routes kept for repeats are counted");
        for (request, decision) in &self.by_request {
            assert_eq!(self.jobs[decision].request, *request, "requests name their own jobs");
        }
        let Some(network) = at.0.topology.network.as_deref() else {
            return;
        };
        let mut chained: BTreeMap<ChainPair, (u64, u64)> = BTreeMap::new();
        for (key, sent) in self.jobs.values().flat_map(|job| &job.chained) {
            let sum = chained.entry(key.clone()).or_default();
            *sum = (sum.0 + sent.task_pairs, sum.1 + sent.bytes);
        }
        let known = self.chained().routes.iter();
        let known: BTreeMap<ChainPair, (u64, u64)> =
            known.map(|(key, route)| (key.clone(), (route.task_pairs, route.bytes.0))).collect();
        assert_eq!(chained, known, "pairs carry under chains what jobs send under them");
        let mut rules: BTreeMap<usize, u32> = BTreeMap::new();
        for (pair, talking) in &self.pairs.all {
            let known = &self.pairs.published.get(pair).unwrap().links;
            assert_eq!(*known, talking.route);
            assert_eq!(self.index.as_ref().unwrap().route(*pair).unwrap_or(&[]), &*talking.route, "{pair:?}");
            assert_eq!(talking.route.is_empty(), self.pairs.cut.contains(pair));
            if talking.carried == ForwardingMode::Rules {
                switches(network, &talking.route).for_each(|switch| *rules.entry(switch).or_default() += 1);
            }
            if !talking.route.is_empty() && !is_whole(network, &talking.route) {
                assert!(self.failed.is_waiting(*pair), "{pair:?} is on a dead link and nobody cares");
            }
        }
        for switch in 0..network.vertex_rows() {
            assert_eq!(self.pairs.rules_at(switch), rules.get(&switch).copied().unwrap_or(0), "rules of {switch}");
            assert!(self.pairs.rules_at(switch) <= at.1.rules_per_switch);
        }
        let anew = FlowIndex::of(network, &at.0.topology, self.view());
        let utility = self.index.as_ref().unwrap().utility();
        let least = anew.utility().abs().max(1.0) * 1e-9;
        assert!((anew.utility() - utility).abs() <= least, "{utility} is kept, {} is reckoned anew", anew.utility());
    }
}

/// Whether a host may send and receive at another rate than before: the index has that from its making.
fn hosts_rate_changed(before: &Network, now: &Network, link: LinkIdx) -> bool {
    let known = now.link_at(link);
    let hosts = || [known.a, known.b].into_iter().any(|end| now.vertex_at(end).is_host());
    (before.link_at(link).capacity != known.capacity || before.is_removed(link) != now.is_removed(link)) && hosts()
}

fn pairs_on(index: &FlowIndex, link: DirectedLinkIdx) -> Vec<NodePair> {
    let mut pairs: Vec<NodePair> = index.pairs_on(link).collect();
    pairs.sort_unstable();
    pairs
}
