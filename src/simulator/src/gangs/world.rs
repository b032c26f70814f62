//! The cluster as placers see it while applications come and go.

use super::{GangApp, GangError, GangRun, GangSettings};
use hintd_model::cluster::{Flow, Gang, JobFlows, NodePair, Overlay, PairRoute, Resource, Snapshot, Traffic};
use hintd_model::network::{HostPath, Network, PathTable, host_paths};
use hintd_model::units::{
    ApplicationId, AttemptId, Bytes, DecisionId, DirectedLinkIdx, NodeIdx, RackIdx, SchedulerKey,
};
use hintd_policy::baselines::capacity::Capacity;
use hintd_policy::problem::{Anchor, Degraded, GroupProblem, KnownJob};
use hintd_policy::{Budget, ChosenRoute, IndexedFlows, Place, PlaceProblem, Placement, Share, check, traffic};
use std::sync::Arc;

/// The cluster, what runs on it, and what that sends.
pub(super) struct World<'a> {
    snapshot: Snapshot,
    leases: Overlay,
    running: IndexedFlows,
    network: Arc<Network>,
    table: Arc<PathTable>,
    placer: &'a dyn Place,
    settings: GangSettings,
}

/// Where an application's containers are.
#[derive(Debug)]
pub(super) struct Placed {
    app: usize,
    master: Option<(NodeIdx, Resource)>,
    /// By group.
    pub(super) groups: Vec<Vec<Share>>,
    sizes: Vec<Resource>,
    traffic: Option<Arc<JobFlows>>,
}

impl<'a> World<'a> {
    pub(super) fn new(run: &GangRun<'a>) -> Result<Self, GangError> {
        let snapshot = run.cluster.clone();
        let network = snapshot.topology.network.clone().ok_or(GangError::NoNetwork)?;
        let table = snapshot.topology.shared_paths().cloned().ok_or(GangError::NoNetwork)?;
        let running = IndexedFlows::default();
        let (placer, settings) = (run.placer, run.settings);
        Ok(Self { snapshot, leases: Overlay::default(), running, network, table, placer, settings })
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn rack(&self, node: NodeIdx) -> RackIdx {
        self.snapshot.rack(node)
    }

    /// Bytes a second, by node.
    pub(super) fn disks(&self) -> &[Bytes] {
        &self.snapshot.statics.disk_read
    }

    /// Puts down all containers of an application, its master's first, or none where there is no room for all.
    pub(super) fn place(&mut self, at: usize, app: &GangApp) -> Result<Option<Placed>, GangError> {
        if !self.may_fit(app) {
            return Ok(None);
        }
        let master = match app.master {
            None => None,
            Some(size) => match self.place_master(at, size)? {
                Some(node) => Some((node, size)),
                None => return Ok(None),
            },
        };
        if let Some((node, size)) = master {
            self.occupy(node, &size, 1);
        }
        let anchor = master.map(|(node, _)| Anchor { node, count: 1 });
        let groups = app.groups.iter().map(|group| {
            let input = if self.settings.tell_inputs { Arc::clone(&group.input) } else { Arc::default() };
            GroupProblem { input, ..self.group(&group.name, group.count, group.size) }
        });
        let mut problem = self.problem(at, groups.collect(), anchor.into_iter().collect());
        problem.edges.clone_from(&app.edges);
        problem.degraded.no_edges = app.edges.is_empty();
        let placement = self.ask(at, self.placer, &problem)?;
        if placement.placed_all() < problem.containers() {
            if let Some((node, size)) = master {
                self.free(node, &size, 1);
            }
            return Ok(None);
        }
        let traffic =
            traffic(&app.edges, &placement.groups).map_err(|source| GangError::Dataflow { app: at, source })?;
        let sizes: Vec<Resource> = app.groups.iter().map(|group| group.size).collect();
        for (shares, size) in placement.groups.iter().zip(&sizes) {
            shares.iter().for_each(|share| self.occupy(share.node, size, share.count));
        }
        let traffic = self.start(at, traffic, &placement.routes);
        Ok(Some(Placed { app: at, master, groups: placement.groups, sizes, traffic }))
    }

    /// Whether there is room for each group alone, and for all where their containers are of one size: those who wait
    /// are looked at after every event, and a placer need not be asked in vain.
    fn may_fit(&self, app: &GangApp) -> bool {
        let slots = |size: &Resource, most: u64| {
            let mut free = 0;
            let nodes = self.snapshot.statics.indexes().filter(|node| self.snapshot.state[node.at()].usable());
            for node in nodes {
                free += u64::from(self.snapshot.rules.how_many(size, &self.snapshot.room(node, &self.leases)));
                if free >= most {
                    return true;
                }
            }
            false
        };
        let Some(first) = app.groups.first() else { return true };
        if app.groups.iter().all(|group| group.size == first.size) {
            return slots(&first.size, app.groups.iter().map(|group| u64::from(group.count)).sum());
        }
        app.groups.iter().all(|group| slots(&group.size, u64::from(group.count)))
    }

    /// By YARN's default, whoever places the rest.
    fn place_master(&self, at: usize, size: Resource) -> Result<Option<NodeIdx>, GangError> {
        let problem = self.problem(at, vec![self.group(&"master".into(), 1, size)], Vec::new());
        let placement = self.ask(at, &Capacity::default(), &problem)?;
        Ok(placement.groups[0].first().map(|share| share.node))
    }

    fn ask(&self, app: usize, placer: &dyn Place, problem: &PlaceProblem<'_>) -> Result<Placement, GangError> {
        let mut never = || false;
        let placement = placer.place(problem, &mut Budget::new(self.settings.steps, &mut never));
        let placement = placement.map_err(|source| GangError::Place { app, source })?;
        if self.settings.invariants
            && let Some(source) = check(problem, &placement).into_iter().next()
        {
            return Err(GangError::NotAllowed { app, source });
        }
        Ok(placement)
    }

    fn group(&self, name: &Arc<str>, count: u32, size: Resource) -> GroupProblem {
        let fits = |&node: &NodeIdx| {
            let room = self.snapshot.room(node, &self.leases);
            self.snapshot.state[node.at()].usable() && self.snapshot.rules.feasible(&size, &room)
        };
        GroupProblem {
            name: Arc::clone(name),
            role: Arc::clone(name),
            count,
            asked: count,
            size,
            key: SchedulerKey { priority: 0, allocation_request_id: -1 },
            candidates: self.snapshot.statics.indexes().filter(fits).collect(),
            exclusions: Vec::new(),
            input: Arc::default(),
            max_per_node: u32::MAX,
            max_per_rack: u32::MAX,
            planned: None,
            spread: false,
            together: false,
        }
    }

    fn problem(&self, at: usize, mut groups: Vec<GroupProblem>, anchors: Vec<Anchor>) -> PlaceProblem<'_> {
        // Like groups share one list of candidates, as the engine gives it.
        for group in 1..groups.len() {
            if groups[group].candidates == groups[group - 1].candidates {
                groups[group].candidates = Arc::clone(&groups[group - 1].candidates);
            }
        }
        PlaceProblem {
            snapshot: &self.snapshot,
            leases: &self.leases,
            loads: None,
            rates: None,
            groups,
            edges: Vec::new(),
            senders: Vec::new(),
            earlier: Vec::new(),
            scattered: Vec::new(),
            job: KnownJob::default(),
            anchors,
            running: Some(&self.running),
            owner: None,
            gang: Gang::All,
            seed: mix(self.settings.seed ^ mix(at as u64)),
            degraded: Degraded { no_edges: true, ..Degraded::default() },
        }
    }

    fn occupy(&mut self, node: NodeIdx, size: &Resource, count: u32) {
        let occupied = &mut self.snapshot.occupied[node.at()];
        *occupied = occupied.plus(&size.times(u64::from(count)));
        self.snapshot.containers[node.at()] += count;
    }

    fn free(&mut self, node: NodeIdx, size: &Resource, count: u32) {
        let occupied = &mut self.snapshot.occupied[node.at()];
        *occupied = occupied.minus(&size.times(u64::from(count)));
        self.snapshot.containers[node.at()] -= count;
    }

    /// From now on the application's traffic is there for those who place others.
    fn start(&mut self, at: usize, traffic: Traffic, chosen: &[ChosenRoute]) -> Option<Arc<JobFlows>> {
        if traffic.flows.is_empty() {
            return None;
        }
        for flow in &traffic.flows {
            let known = self.running.routes.get(&flow.pair).map(|route| (**route).clone());
            let mut route = known.unwrap_or_else(|| {
                let found = chosen.binary_search_by_key(&flow.pair, |route| route.pair);
                let links = match found {
                    Ok(at) => Arc::clone(&chosen[at].links),
                    Err(_) => self.shortest(flow.pair).first().map_or_else(|| Arc::from([]), |path| path[..].into()),
                };
                PairRoute { links, installed: found.is_ok(), task_pairs: 0, bytes: Bytes(0) }
            });
            route.task_pairs += u64::from(flow.task_pairs);
            route.bytes = route.bytes.saturating_add(flow.bytes);
            self.running.change().routes.set(&flow.pair, Some(Arc::new(route)));
        }
        let application = ApplicationId { cluster_timestamp: 1, sequence: at as u32 };
        let attempt = AttemptId { application, attempt: 1 };
        let flows = Arc::new(JobFlows { attempt, decision: DecisionId::of(at as u64), traffic });
        let later = self.running.jobs.partition_point(|job| job.decision < flows.decision);
        self.running.change().jobs.insert(later, Arc::clone(&flows));
        Some(flows)
    }

    /// Takes an application's containers and traffic away.
    pub(super) fn release(&mut self, placed: &Placed) {
        if let Some((node, size)) = placed.master {
            self.free(node, &size, 1);
        }
        for (shares, size) in placed.groups.iter().zip(&placed.sizes) {
            shares.iter().for_each(|share| self.free(share.node, size, share.count));
        }
        let Some(flows) = &placed.traffic else { return };
        let decision = DecisionId::of(placed.app as u64);
        self.running.change().jobs.retain(|job| job.decision != decision);
        for flow in &flows.traffic.flows {
            self.stop(flow);
        }
    }

    fn stop(&mut self, flow: &Flow) {
        let route = self.running.routes.get(&flow.pair).expect("a pair has a route while a job uses it");
        let mut route = (**route).clone();
        route.task_pairs -= u64::from(flow.task_pairs);
        route.bytes = Bytes(route.bytes.0.saturating_sub(flow.bytes.0));
        let left = (route.task_pairs > 0).then(|| Arc::new(route));
        self.running.change().routes.set(&flow.pair, left);
    }

    /// The route that was chosen for a pair, by whichever application's placement came first.
    pub(super) fn chosen(&self, pair: NodePair) -> Option<&[DirectedLinkIdx]> {
        let route = self.running.routes.get(&pair).filter(|route| route.installed)?;
        Some(&route.links[..]).filter(|links| !links.is_empty())
    }

    /// All shortest paths of the path table, which holds a few for each pair.
    pub(super) fn shortest(&self, pair: NodePair) -> Vec<HostPath> {
        let vertex = |node: NodeIdx| self.snapshot.topology.vertex.get(node.at()).copied().flatten();
        let (Some(from), Some(to)) = (vertex(pair.from), vertex(pair.to)) else { return Vec::new() };
        let mut paths: Vec<HostPath> = Vec::new();
        for path in host_paths(&self.network, &self.table, from, to) {
            if paths.first().is_some_and(|first| first.len() < path.len()) {
                break;
            }
            paths.push(path);
        }
        paths
    }

    /// What is left of applications that have all ended, in words.
    pub(super) fn leftover(&self) -> Option<String> {
        let taken = |node: &NodeIdx| !self.snapshot.occupied[node.at()].is_zero();
        if let Some(node) = self.snapshot.statics.indexes().find(taken) {
            return Some(format!("node {} is still occupied", node.0));
        }
        let (routes, jobs) = (self.running.routes.len(), self.running.jobs.len());
        (routes + jobs > 0).then(|| format!("{jobs} applications still have traffic, {routes} pairs a route"))
    }
}

/// Finaliser of SplitMix64: every bit of the result hangs on every bit given.
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
