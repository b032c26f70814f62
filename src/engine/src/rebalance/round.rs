//! One round: what runs under chains or talks with a root, made into problems for policies, and the moves that they propose. Pure;
//! runs on the worker pool.

use super::settings::RebalanceSettings;
use crate::decision::RememberedRequest;
use crate::dispatching::request::asked;
use crate::monitor;
use crate::placer::may_go;
use hintd_model::cluster::{ChainedFlows, EdgePattern, HintRequest, Overlay, Snapshot, TaskGroup};
use hintd_model::network::chains::BoxLoads;
use hintd_model::units::{
    AttemptId, BitsPerSec, Bytes, ChainIdx, ContainerId, GroupIdx, NodeIdx, RackIdx, SchedulerKey, Timestamp,
};
use hintd_policy::advise::{ContainerTraffic, MovedPerformance, RebalanceProblem, Running, RunningRoot};
use hintd_policy::problem::EdgeProblem;
use hintd_policy::{Budget, Policy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Containers under policies that predict performance, and since when rounds have seen them run.
pub(crate) type Seen = BTreeMap<ContainerId, Timestamp>;

/// What one round looks at: a picture of the engine, so that the search needs nothing of it.
#[derive(Clone)]
pub struct Round {
    /// Which; only what the newest one comes to is taken.
    pub number: u64,
    /// When it began.
    pub(crate) began: Timestamp,
    pub(crate) snapshot: Arc<Snapshot>,
    /// Leases, and room that was proposed to containers which have not come.
    pub(crate) taken: Overlay,
    /// Those with traffic under chains, newest job first.
    pub(crate) applications: Vec<RoundApplication>,
    /// Those whose performance may be predicted by latency.
    pub(crate) rooted: Vec<RoundApplication>,
    /// What earlier rounds saw to run, and since when.
    pub(crate) seen: Arc<Seen>,
    /// Containers that stay, and where they were proposed to go and have not come yet.
    pub(crate) cooling: BTreeMap<ContainerId, Option<NodeIdx>>,
    /// What runs under chains.
    pub(crate) chained: Arc<ChainedFlows>,
    pub(crate) settings: RebalanceSettings,
    /// Pairs of containers that a round looks at.
    pub(crate) pairs_max: usize,
}

impl std::fmt::Debug for Round {
    /// Without the cluster.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut of = f.debug_struct("Round");
        of.field("number", &self.number).field("cooling", &self.cooling.len());
        of.field("applications", &self.applications.len()).finish_non_exhaustive()
    }
}

impl PartialEq for Round {
    /// Rounds of one engine have different numbers.
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// One attempt.
#[derive(Debug, Clone)]
pub(crate) struct RoundApplication {
    pub(crate) attempt: AttemptId,
    /// Oldest first.
    pub(crate) requests: Vec<RememberedRequest>,
    pub(crate) jobs: Vec<RoundJob>,
}

/// A job, with its traffic under chains.
#[derive(Debug, Clone)]
pub(crate) struct RoundJob {
    pub(crate) request: RememberedRequest,
    pub(crate) edges: Arc<[EdgeProblem]>,
    /// By edge: the name of its chain.
    pub(crate) classes: Vec<Option<Arc<str>>>,
    /// Tasks that were placed at first, by group: edges' bytes are theirs.
    pub(crate) placed: Vec<u64>,
}

/// A move that a policy proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedMove {
    /// What.
    pub container: ContainerId,
    /// Where it ran when the round began.
    pub from: NodeIdx,
    /// Where to.
    pub to: NodeIdx,
    /// As [`hintd_policy::advise::Move::gain`].
    pub gain: f64,
    /// Of the chains that its traffic is under, the one with most bytes; empty: none.
    pub chain: Arc<str>,
    /// Where its policy predicts it.
    pub performance: Option<MovedPerformance>,
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoundOutcome {
    /// Moves, by policy and then best first.
    pub moves: Vec<ProposedMove>,
    /// Jobs that were not looked at: their containers make too many pairs, or another request has the same priority and
    /// nobody can say whose a container is, or what it talks with.
    pub left_out: u64,
    /// As the next round takes them over.
    pub(crate) seen: Arc<Seen>,
}

impl Round {
    /// Asks for moves: of each job the policy that `policy_of` names, if that can rebalance. A policy that can't work
    /// on this cluster proposes nothing.
    #[must_use]
    pub fn search(
        &self,
        policy_of: impl Fn(&HintRequest) -> Option<(&'static str, Arc<dyn Policy>)>,
        steps: u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> RoundOutcome {
        let mut by_policy = Drafts::new();
        let mut found = RoundOutcome::default();
        let mut pairs_left = self.pairs_max;
        for application in &self.applications {
            let containers = self.containers(application);
            for (job, containers) in application.jobs.iter().zip(containers) {
                let Some((name, policy)) = policy_of(&job.request).filter(|(_, policy)| rebalances(&**policy, false))
                else {
                    continue;
                };
                let pairs = job.pairs(&containers);
                if pairs > pairs_left || application.shares_keys(job, job.chained_groups()) {
                    found.left_out += 1;
                    continue;
                }
                pairs_left -= pairs;
                let (_, draft) = by_policy.entry(name).or_insert_with(|| (policy, Draft::new(self)));
                draft.add(job, &containers);
            }
        }
        self.add_rooted(policy_of, &mut by_policy, &mut found);
        for (policy, draft) in by_policy.into_values() {
            found.moves.extend(draft.moves(&*policy, &mut Budget::new(steps, stop)));
        }
        found
    }

    /// By job and group of its request: what runs, in the order of ids.
    pub(super) fn containers(&self, application: &RoundApplication) -> Vec<Vec<Vec<Running>>> {
        let jobs = &application.jobs;
        let mut containers: Vec<Vec<Vec<Running>>> =
            jobs.iter().map(|job| vec![Vec::new(); job.request.groups.len()]).collect();
        let running = self.snapshot.applications.get(&application.attempt);
        for (&id, container) in running.into_iter().flat_map(|running| &running.containers) {
            let asked = application.requests.iter().rev().find_map(|request| {
                let group = request.groups.iter().find(|group| group.key == container.key)?;
                Some((monitor::original(&asked(&request.id).into()), &group.name))
            });
            let Some((request, name)) = asked else { continue };
            let Some(job) = jobs.iter().position(|job| job.request.id == request) else { continue };
            let Some(group) = jobs[job].request.groups.iter().position(|group| group.name == *name) else { continue };
            let cooling = self.cooling.contains_key(&id);
            let (node, size) = (container.node, container.size);
            containers[job][group].push(Running { container: id, node, size, cooling, set: 0 });
        }
        containers
    }
}

/// Whether a policy can propose moves, of what talks with a root or of what sends under chains.
pub(super) fn rebalances(policy: &dyn Policy, rooted: bool) -> bool {
    policy.as_rebalance().is_some_and(|rebalance| rebalance.reads_roots() == rooted)
}

impl RoundApplication {
    /// Whether another request of the attempt has a group of the same key as one of these of the job.
    pub(super) fn shares_keys(&self, job: &RoundJob, groups: BTreeSet<usize>) -> bool {
        let original = |request: &RememberedRequest| monitor::original(&asked(&request.id).into());
        let keys: BTreeSet<SchedulerKey> =
            groups.into_iter().filter_map(|at| job.request.groups.get(at)).map(|group| group.key).collect();
        let others = self.requests.iter().filter(|request| original(request) != job.request.id);
        others.flat_map(|request| &request.groups).any(|group| keys.contains(&group.key))
    }
}

impl RoundJob {
    /// One of which no traffic is looked at.
    pub(super) fn without_traffic(request: RememberedRequest) -> Self {
        Self { request, edges: Arc::new([]), classes: Vec::new(), placed: Vec::new() }
    }

    fn chained_groups(&self) -> BTreeSet<usize> {
        self.chained().flat_map(|(edge, _)| [edge.from.at(), edge.to.at()]).collect()
    }

    fn chained(&self) -> impl Iterator<Item = (&EdgeProblem, &Arc<str>)> {
        self.edges.iter().zip(&self.classes).filter_map(|(edge, class)| Some((edge, class.as_ref()?)))
    }

    /// Pairs of containers that talk under chains.
    fn pairs(&self, containers: &[Vec<Running>]) -> usize {
        let of = |edge: &EdgeProblem| {
            let [from, to] = [edge.from, edge.to].map(|group| containers.get(group.at()).map_or(0, Vec::len));
            match edge.pattern {
                EdgePattern::AllToAll => from.saturating_mul(to),
                EdgePattern::OneToOne => from.max(to),
            }
        };
        self.chained().map(|(edge, _)| of(edge)).fold(0, usize::saturating_add)
    }
}

/// Problems in the making, by the policy that is to solve each.
pub(super) type Drafts<'r> = BTreeMap<&'static str, (Arc<dyn Policy>, Draft<'r>)>;

/// A problem in the making.
pub(super) struct Draft<'r> {
    round: &'r Round,
    running: Vec<Running>,
    /// By row of `running`; empty where no policy reads them.
    roots: Vec<Option<RunningRoot>>,
    /// By row of `running`: what bounds where it may go.
    groups: Vec<usize>,
    bounds: Vec<Bounds>,
    traffic: Vec<ContainerTraffic>,
    chains: Vec<Option<ChainIdx>>,
}

/// What a group asks of where its containers are.
struct Bounds {
    allowed: Vec<bool>,
    per_node: u32,
    per_rack: u32,
}

impl<'r> Draft<'r> {
    pub(super) fn new(round: &'r Round) -> Self {
        let (running, roots, groups) = (Vec::new(), Vec::new(), Vec::new());
        Self { round, running, roots, groups, bounds: Vec::new(), traffic: Vec::new(), chains: Vec::new() }
    }

    /// Containers of one group that talk with a root.
    pub(super) fn add_group(&mut self, job: &RoundJob, group: usize, running: &[(Running, RunningRoot)]) {
        let Some(asked) = job.request.groups.get(group).filter(|_| !running.is_empty()) else { return };
        let set = self.bounds.len();
        self.bounds.push(Bounds::of(&self.round.snapshot, &job.request, asked, GroupIdx(group as u32)));
        for (known, root) in running {
            self.running.push(Running { set: set as u32, ..*known });
            self.groups.push(set);
            self.roots.push(Some(root.clone()));
        }
    }

    fn add(&mut self, job: &RoundJob, containers: &[Vec<Running>]) {
        let snapshot = &*self.round.snapshot;
        let chained: BTreeSet<GroupIdx> = job.chained().flat_map(|(edge, _)| [edge.from, edge.to]).collect();
        let mut rows: BTreeMap<GroupIdx, Vec<u32>> = BTreeMap::new();
        for at in chained {
            let Some(group) = job.request.groups.get(at.at()) else { continue };
            let set = self.bounds.len();
            self.bounds.push(Bounds::of(snapshot, &job.request, group, at));
            for known in &containers[at.at()] {
                rows.entry(at).or_default().push(self.running.len() as u32);
                self.running.push(Running { set: set as u32, ..*known });
                self.groups.push(set);
            }
        }
        let none = Vec::new();
        for (edge, name) in job.chained() {
            let chain = snapshot.topology.chains.as_deref().and_then(|chains| chains.find_chain(name));
            let Some(chain) = chain else { continue };
            let [from, to] = [edge.from, edge.to].map(|group| rows.get(&group).unwrap_or(&none));
            let (now, then) = (from.len() as u64, job.placed.get(edge.from.at()).copied().unwrap_or(0).max(1));
            let bytes = u128::from(edge.bytes.0) * u128::from(now.min(then)) / u128::from(then);
            let pairs = pairs(edge.pattern, from, to);
            let each = u64::try_from(bytes / (pairs.len() as u128).max(1)).unwrap_or(u64::MAX);
            self.chains.extend(pairs.iter().map(|_| Some(chain)));
            self.traffic.extend(pairs.into_iter().map(|(from, to)| ContainerTraffic { from, to, bytes: Bytes(each) }));
        }
    }

    /// All moves worth it, for bounds of groups may rule out some of the best: how many are told is the engine's.
    fn moves(self, policy: &dyn Policy, budget: &mut Budget<'_>) -> Vec<ProposedMove> {
        let Some(rebalancer) = policy.as_rebalance() else { return Vec::new() };
        let others = self.others();
        let Self { round, running, roots, groups, bounds, traffic, chains } = self;
        let problem = RebalanceProblem {
            snapshot: &round.snapshot,
            leases: &round.taken,
            allowed: bounds.iter().map(|bounds| bounds.allowed.clone()).collect(),
            moves_max: running.len(),
            application_moves_max: running.len(),
            running,
            traffic,
            chains,
            roots,
            others,
            gain_min: round.settings.gain_min(),
            seed: round.number,
        };
        let Ok(moves) = rebalancer.rebalance(&problem, budget) else { return Vec::new() };
        let mut crowd = ContainerCounts::of(&problem, &groups, &round.cooling);
        let at: BTreeMap<ContainerId, usize> =
            problem.running.iter().enumerate().map(|(at, known)| (known.container, at)).collect();
        let mut proposed = Vec::new();
        for step in moves {
            let Some(&row) = at.get(&step.container) else { continue };
            let (known, group) = (&problem.running[row], groups[row]);
            // What neither passes a middlebox nor talks with a root has no reason to move.
            let chain = chain_of(&problem, row as u32).or_else(|| step.performance.map(|_| "".into()));
            let Some(chain) = chain else { continue };
            if known.cooling || !crowd.moves(group, &bounds[group], known.node, step.to) {
                continue;
            }
            let (container, from) = (known.container, known.node);
            let (to, gain, performance) = (step.to, step.gain, step.performance);
            proposed.push(ProposedMove { container, from, to, gain, chain, performance });
        }
        proposed
    }

    /// What is taken of boxes beside what these containers send: of a pair of nodes that they send between, the part of
    /// its bytes that is others'.
    fn others(&self) -> Option<BoxLoads> {
        let topology = &*self.round.snapshot.topology;
        let chained = Some(&*self.round.chained).filter(|chained| chained.are_of(topology))?;
        let chains = topology.chains.as_deref()?;
        let node = |row: u32| self.running[row as usize].node;
        let mut own: BTreeMap<(NodeIdx, NodeIdx, Option<ChainIdx>), u128> = BTreeMap::new();
        for (&ContainerTraffic { from, to, bytes }, chain) in self.traffic.iter().zip(&self.chains) {
            *own.entry((node(from), node(to), *chain)).or_default() += u128::from(bytes.0);
        }
        let index: BTreeMap<&str, ChainIdx> =
            chains.chains().iter().enumerate().map(|(at, chain)| (&*chain.name, ChainIdx::new(at))).collect();
        let mut loads = BoxLoads::new(chains);
        for (key, route) in chained.routes.iter() {
            let sent = (key.pair.from, key.pair.to, index.get(&*key.chain).copied());
            let all = u128::from(route.bytes.0).max(1);
            let others = all.saturating_sub(own.get(&sent).copied().unwrap_or(0));
            let rate = BitsPerSec((u128::from(route.rate.0) * others / all) as u64);
            route.way.iter().flat_map(|way| &way.boxes).for_each(|&index| loads.add(index, rate));
        }
        Some(loads)
    }
}

impl Bounds {
    /// Containers that are to be spread or together stay: moved one by one they would not be.
    fn of(snapshot: &Snapshot, request: &HintRequest, group: &TaskGroup, at: GroupIdx) -> Self {
        let both = [&request.constraints, &group.constraints];
        let stays = both.iter().any(|bounds| bounds.spread || bounds.together);
        let allowed = if stays { vec![false; snapshot.nodes()] } else { may_go(snapshot, request, at.at()) };
        let tightest = |bounds: [u32; 2]| bounds.into_iter().filter(|&bound| bound > 0).min().unwrap_or(u32::MAX);
        Self {
            allowed,
            per_node: tightest(both.map(|bounds| bounds.max_per_node)),
            per_rack: tightest(both.map(|bounds| bounds.max_per_rack)),
        }
    }
}

/// Containers of each group by node and rack.
struct ContainerCounts<'p> {
    snapshot: &'p Snapshot,
    on_node: BTreeMap<(usize, NodeIdx), u32>,
    in_rack: BTreeMap<(usize, RackIdx), u32>,
}

impl<'p> ContainerCounts<'p> {
    fn of(problem: &RebalanceProblem<'p>, groups: &[usize], promised: &BTreeMap<ContainerId, Option<NodeIdx>>) -> Self {
        let mut crowd = Self { snapshot: problem.snapshot, on_node: BTreeMap::new(), in_rack: BTreeMap::new() };
        for (known, &group) in problem.running.iter().zip(groups) {
            let old = crowd.snapshot.rack(known.node);
            *crowd.on_node.entry((group, known.node)).or_default() += 1;
            *crowd.in_rack.entry((group, old)).or_default() += 1;
            // What was proposed may come yet.
            if let Some(Some(to)) = promised.get(&known.container) {
                let new = crowd.snapshot.rack(*to);
                *crowd.on_node.entry((group, *to)).or_default() += 1;
                *crowd.in_rack.entry((group, new)).or_default() += u32::from(old != new);
            }
        }
        crowd
    }

    /// Moves one, unless there would be too many then.
    fn moves(&mut self, group: usize, bounds: &Bounds, from: NodeIdx, to: NodeIdx) -> bool {
        let (old, new) = (self.snapshot.rack(from), self.snapshot.rack(to));
        let on_node = self.on_node.get(&(group, to)).copied().unwrap_or(0);
        let in_rack = self.in_rack.get(&(group, new)).copied().unwrap_or(0);
        let fits = on_node < bounds.per_node && (old == new || in_rack < bounds.per_rack);
        if !fits || !bounds.allowed.get(to.at()).copied().unwrap_or(false) {
            return false;
        }
        // What moves is counted on both sides until it has: advice need not be followed.
        *self.on_node.entry((group, to)).or_default() += 1;
        *self.in_rack.entry((group, new)).or_default() += u32::from(old != new);
        true
    }
}

fn pairs(pattern: EdgePattern, from: &[u32], to: &[u32]) -> Vec<(u32, u32)> {
    if from.is_empty() || to.is_empty() {
        return Vec::new();
    }
    let all: Vec<(u32, u32)> = match pattern {
        EdgePattern::AllToAll => from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b))).collect(),
        EdgePattern::OneToOne => {
            (0..from.len().max(to.len())).map(|at| (from[at % from.len()], to[at % to.len()])).collect()
        }
    };
    all.into_iter().filter(|(a, b)| a != b).collect()
}

/// Of the chains of a row's traffic the one with most bytes.
fn chain_of(problem: &RebalanceProblem<'_>, row: u32) -> Option<Arc<str>> {
    let mut bytes: BTreeMap<ChainIdx, u128> = BTreeMap::new();
    let own = problem.traffic.iter().zip(&problem.chains).filter(|(of, _)| of.from == row || of.to == row);
    for (sent, chain) in own {
        *bytes.entry((*chain)?).or_default() += u128::from(sent.bytes.0);
    }
    let most = bytes.into_iter().max_by_key(|&(index, bytes)| (bytes, std::cmp::Reverse(index)))?.0;
    Some(Arc::clone(&problem.snapshot.topology.chains.as_deref()?.chain(most).name))
}
