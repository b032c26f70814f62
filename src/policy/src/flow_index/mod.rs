//! Who shares which link, and what the sinks get of it (000 §2): the one model of utility, kept while jobs, routes
//! and capacities change.
//!
//! # The rule
//! - A directed link grants each pair of tasks that sends over it an equal share of its capacity.
//! - A pair of nodes gets the least share along its route; without a route, nothing.
//! - An inlet gets what the slowest of its pairs gets, and its node's NIC rate where an edge stays on the node.
//! - A sink gets what the slowest of its inlets gets; a job's utility is the sum over sinks of tasks × rate, and the
//!   utility that of all jobs (Algorithm 1; its line 49 is `util += sinkUtil`).
//!
//! # What is guaranteed
//! - Every rate is a minimum over quotients, never a running sum: bit for bit what a reckoning from scratch gives,
//!   whatever the history.
//! - A change costs the pairs on the links it touches, and of jobs only what hangs on pairs whose rate changed.
//!
//! # Code map
//! - `jobs`: inlets and sinks of one job; `recompute`: rates made to fit what changed.

mod jobs;
mod recompute;
#[cfg(test)]
mod tests;

use hintd_model::cluster::{NodePair, RunningFlows, Topology, Traffic};
use hintd_model::network::Network;
use hintd_model::network::maxmin::directions;
use hintd_model::units::{DirectedLinkIdx, NodeIdx};
use jobs::Job;
use recompute::Pending;
use smallvec::SmallVec;

/// A job of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobSlot(u32);

/// Loads, rates and utility of all traffic. A clone is independent.
#[derive(Debug, Clone, Default)]
pub struct FlowIndex {
    /// By directed link, bits/s.
    capacity: Vec<f64>,
    /// By directed link: pairs of tasks.
    load: Vec<u64>,
    /// By directed link: what a pair of tasks gets there, bits/s, as of the last recompute.
    share: Vec<f64>,
    /// By directed link: rows of the pairs routed over it.
    on: Vec<Vec<u32>>,
    /// By node, bits/s.
    nic: Vec<f64>,
    /// By sender: receiver and row, ascending.
    rows: Vec<Vec<(NodeIdx, u32)>>,
    pairs: Vec<Pair>,
    /// By row of a pair: what each of its task pairs gets, bits/s, as of the last recompute.
    rates: Vec<f64>,
    free_pairs: Vec<u32>,
    jobs: Vec<Option<Job>>,
    free_jobs: Vec<u32>,
    /// By job; 0 where none is.
    utilities: Vec<f64>,
    pending: Pending,
    /// Changes are collected while this is above 0.
    held: u32,
    /// What changes have taken since somebody asked: places on links and pairs looked at.
    work: u64,
}

/// A pair of nodes.
#[derive(Debug, Clone)]
struct Pair {
    pair: NodePair,
    /// Empty: none.
    route: SmallVec<[DirectedLinkIdx; 6]>,
    /// Pairs of tasks that send over it.
    weight: u64,
    /// Who sends over it: jobs, and policies that try something.
    users: u32,
    /// Job and inlet that wait for it.
    inlets: SmallVec<[(u32, u32); 2]>,
}

impl FlowIndex {
    /// Of a network without traffic: capacities of usable links, NIC rates of the nodes.
    #[must_use]
    pub fn new(network: &Network, topology: &Topology) -> Self {
        let links = 2 * network.link_rows();
        let mut capacity = vec![0.0; links];
        for (link, known) in network.links().filter(|(link, _)| network.is_usable(*link)) {
            for direction in directions(link) {
                capacity[direction.at()] = known.capacity.as_f64();
            }
        }
        Self {
            share: capacity.clone(),
            load: vec![0; links],
            on: vec![Vec::new(); links],
            capacity,
            nic: nic_rates(network, topology),
            rows: vec![Vec::new(); topology.vertex.len()],
            ..Self::default()
        }
    }

    /// Of a generation: its jobs in their order and its routes.
    #[must_use]
    pub fn of(network: &Network, topology: &Topology, running: &RunningFlows) -> Self {
        let mut index = Self::new(network, topology);
        index.hold();
        for job in &running.jobs {
            index.add_job(&job.traffic);
        }
        for (pair, route) in running.routes.iter() {
            index.set_route(*pair, Some(&route.links));
        }
        index.recompute_rates();
        index
    }

    /// Takes up nodes that joined the cluster since. Whether it could: if a node known before has another NIC rate now,
    /// nothing is changed, and the index has to be made anew.
    pub fn grow(&mut self, network: &Network, topology: &Topology) -> bool {
        let nic = nic_rates(network, topology);
        let same = nic.starts_with(&self.nic);
        if same {
            self.nic = nic;
        }
        same
    }

    /// Adds a job. Pairs that have no route yet get nothing until they are given one.
    pub fn add_job(&mut self, traffic: &Traffic) -> JobSlot {
        let rows: Vec<u32> = traffic.flows.iter().map(|flow| self.enter(flow.pair)).collect();
        for (&row, flow) in rows.iter().zip(&traffic.flows) {
            self.add_weight(row, i64::from(flow.task_pairs));
        }
        self.recompute_unless_held();
        let slot = self.free_jobs.pop().unwrap_or(self.jobs.len() as u32);
        if slot as usize == self.jobs.len() {
            self.jobs.push(None);
            self.utilities.push(0.0);
        }
        let weights = traffic.flows.iter().map(|flow| flow.task_pairs);
        let mut job = Job::new(traffic, &rows, weights, |node| self.nic(node));
        for (inlet, rows) in job.inlet_rows() {
            for &row in rows {
                self.pairs[row as usize].inlets.push((slot, inlet));
            }
        }
        job.reckon(&self.rates);
        self.utilities[slot as usize] = job.utility();
        self.jobs[slot as usize] = Some(job);
        JobSlot(slot)
    }

    /// Removes a job; a pair that nobody uses any more is forgotten with its route. A job unknown here is none.
    pub fn remove_job(&mut self, slot: JobSlot) {
        let Some(job) = self.jobs.get_mut(slot.0 as usize).and_then(Option::take) else { return };
        self.utilities[slot.0 as usize] = 0.0;
        self.free_jobs.push(slot.0);
        for (_, rows) in job.inlet_rows() {
            for &row in rows {
                self.pairs[row as usize].inlets.retain(|(of, _)| *of != slot.0);
            }
        }
        for (row, weight) in job.weights() {
            self.add_weight(row, -i64::from(weight));
            self.leave(row);
        }
        self.recompute_unless_held();
    }

    /// Routes a pair; `None` or no links: there is no path, and it gets nothing.
    pub fn set_route(&mut self, pair: NodePair, links: Option<&[DirectedLinkIdx]>) {
        let links = links.unwrap_or(&[]);
        match self.row(pair) {
            Some(row) if links.is_empty() && self.pairs[row as usize].users == 0 => self.forget(row),
            Some(row) => self.lay(row, links),
            None if links.is_empty() => {}
            None => {
                let row = self.insert(pair);
                self.lay(row, links);
            }
        }
        self.recompute_unless_held();
    }

    /// The route of a pair; `None`: it has none, or is not known.
    #[must_use]
    pub fn route(&self, pair: NodePair) -> Option<&[DirectedLinkIdx]> {
        self.row(pair).map(|row| self.route_of(row)).filter(|route| !route.is_empty())
    }

    /// Pairs routed over a link, in no order that means anything.
    pub fn pairs_on(&self, link: DirectedLinkIdx) -> impl Iterator<Item = NodePair> + '_ {
        let rows = self.on.get(link.at()).map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&row| self.pairs[row as usize].pair)
    }

    /// Sets a direction's capacity, bits/s; 0: it carries nothing. Links added later are added here.
    pub fn set_capacity(&mut self, link: DirectedLinkIdx, bits_per_s: f64) {
        if link.at() >= self.capacity.len() {
            self.capacity.resize(link.at() + 1, 0.0);
            self.share.resize(link.at() + 1, 0.0);
            self.load.resize(link.at() + 1, 0);
            self.on.resize(link.at() + 1, Vec::new());
        }
        self.capacity[link.at()] = bits_per_s;
        self.pending.touch(link);
        self.recompute_unless_held();
    }

    /// A direction's capacity, bits/s.
    #[must_use]
    pub fn capacity(&self, link: DirectedLinkIdx) -> f64 {
        self.capacity.get(link.at()).copied().unwrap_or(0.0)
    }

    /// What each pair of tasks gets on a link, bits/s; the whole where nobody sends.
    #[must_use]
    pub fn share(&self, link: DirectedLinkIdx) -> f64 {
        self.share.get(link.at()).copied().unwrap_or(0.0)
    }

    /// Pairs of tasks that send over a link.
    #[must_use]
    pub fn load(&self, link: DirectedLinkIdx) -> u64 {
        self.load.get(link.at()).copied().unwrap_or(0)
    }

    /// What each pair of tasks of a pair of nodes gets, bits/s.
    #[must_use]
    pub fn rate(&self, pair: NodePair) -> f64 {
        self.row(pair).map_or(0.0, |row| self.rates[row as usize])
    }

    /// Pairs of tasks that send from one node to another.
    #[must_use]
    pub fn weight(&self, pair: NodePair) -> u64 {
        self.row(pair).map_or(0, |row| self.pairs[row as usize].weight)
    }

    /// What a node's own edges get, bits/s.
    #[must_use]
    pub fn nic(&self, node: NodeIdx) -> f64 {
        self.nic.get(node.at()).copied().unwrap_or(0.0)
    }

    /// Sum over the sinks of all jobs of tasks × rate, bits/s.
    #[must_use]
    pub fn utility(&self) -> f64 {
        self.utilities.iter().sum()
    }

    /// One job's part of [`Self::utility`], bits/s; 0 for one that is not here.
    #[must_use]
    pub fn job_utility(&self, slot: JobSlot) -> f64 {
        self.utilities.get(slot.0 as usize).copied().unwrap_or(0.0)
    }

    /// What changes have taken since this was asked last: about one for each place on a link and each pair looked at.
    /// The same changes take as much, whatever was kept.
    pub(crate) const fn take_work(&mut self) -> u64 {
        std::mem::replace(&mut self.work, 0)
    }

    /// What taking [`Self::utility`] takes.
    pub(crate) const fn utility_work(&self) -> u64 {
        self.utilities.len() as u64
    }

    /// Collects changes until [`Self::recompute_rates`]: rates, shares and utilities stay what they were.
    pub fn hold(&mut self) {
        self.held += 1;
    }

    /// Ends the innermost [`Self::hold`]; the outermost end makes everything fit.
    pub fn recompute_rates(&mut self) {
        self.held = self.held.saturating_sub(1);
        self.recompute_unless_held();
    }
}

/// By rows: for policies that try moves and routes by the thousand.
impl FlowIndex {
    /// The row of a pair that is known.
    pub(crate) fn row(&self, pair: NodePair) -> Option<u32> {
        let rows = self.rows.get(pair.from.at())?;
        rows.binary_search_by_key(&pair.to, |(to, _)| *to).ok().map(|at| rows[at].1)
    }

    /// The row of a pair, with one user more.
    pub(crate) fn enter(&mut self, pair: NodePair) -> u32 {
        let row = self.row_or_new(pair);
        self.pairs[row as usize].users += 1;
        row
    }

    /// The row of a pair, known before or not.
    pub(crate) fn row_or_new(&mut self, pair: NodePair) -> u32 {
        self.row(pair).unwrap_or_else(|| self.insert(pair))
    }

    /// Forgets a pair without users and route.
    pub(crate) fn tidy(&mut self, row: u32) {
        let pair = &self.pairs[row as usize];
        if pair.users == 0 && pair.route.is_empty() {
            self.forget(row);
        }
    }

    /// One user fewer; without any a pair is forgotten with its route.
    pub(crate) fn leave(&mut self, row: u32) {
        let at = row as usize;
        self.pairs[at].users -= 1;
        if self.pairs[at].users == 0 {
            self.forget(row);
        }
    }

    fn forget(&mut self, row: u32) {
        self.lay(row, &[]);
        let pair = self.pairs[row as usize].pair;
        let rows = &mut self.rows[pair.from.at()];
        if let Ok(found) = rows.binary_search_by_key(&pair.to, |(to, _)| *to) {
            rows.remove(found);
        }
        self.free_pairs.push(row);
    }

    /// More or fewer pairs of tasks; does not recompute.
    pub(crate) fn add_weight(&mut self, row: u32, more: i64) {
        let pair = &mut self.pairs[row as usize];
        pair.weight = pair.weight.saturating_add_signed(more);
        for link in &pair.route {
            let load = &mut self.load[link.at()];
            *load = load.saturating_add_signed(more);
            self.pending.touch(*link);
        }
    }

    /// Gives a pair another route; does not recompute.
    pub(crate) fn lay(&mut self, row: u32, links: &[DirectedLinkIdx]) {
        let pair = &mut self.pairs[row as usize];
        if &*pair.route == links {
            return;
        }
        for link in std::mem::take(&mut pair.route) {
            let on = &mut self.on[link.at()];
            self.work += 1 + on.len() as u64 / 8; // looked through, not computed with
            let found = on.iter().position(|other| *other == row).expect("a routed pair stands on its links");
            on.swap_remove(found);
            self.load[link.at()] -= pair.weight;
            self.pending.touch(link);
        }
        pair.route = links.iter().copied().collect();
        self.work += links.len() as u64;
        for link in links {
            self.on[link.at()].push(row);
            self.load[link.at()] += pair.weight;
            self.pending.touch(*link);
        }
        self.pending.reroute(row);
    }

    pub(crate) fn route_of(&self, row: u32) -> &[DirectedLinkIdx] {
        &self.pairs[row as usize].route
    }

    pub(crate) fn rate_of(&self, row: u32) -> f64 {
        self.rates[row as usize]
    }

    pub(crate) fn weight_of(&self, row: u32) -> u64 {
        self.pairs[row as usize].weight
    }

    fn insert(&mut self, pair: NodePair) -> u32 {
        let fresh = Pair { pair, route: SmallVec::new(), weight: 0, users: 0, inlets: SmallVec::new() };
        let row = match self.free_pairs.pop() {
            Some(row) => {
                self.pairs[row as usize] = fresh;
                self.rates[row as usize] = 0.0;
                row
            }
            None => {
                self.pairs.push(fresh);
                self.rates.push(0.0);
                self.pending.grow(self.pairs.len());
                self.pairs.len() as u32 - 1
            }
        };
        if pair.from.at() >= self.rows.len() {
            self.rows.resize(pair.from.at() + 1, Vec::new());
        }
        let rows = &mut self.rows[pair.from.at()];
        let at = rows.partition_point(|(to, _)| *to < pair.to);
        rows.insert(at, (pair.to, row));
        row
    }
}

/// The rate of the links that nodes hang on, up or down: an edge that stays on a node does not need them. A node
/// that the network does not name counts as the slowest of the others.
fn nic_rates(network: &Network, topology: &Topology) -> Vec<f64> {
    let rate = |vertex| {
        network.links_of(vertex).map(|(index, link)| (index, link.capacity.as_f64())).min_by_key(|(index, _)| *index)
    };
    let known: Vec<Option<f64>> =
        topology.vertex.iter().map(|vertex| Some(rate((*vertex)?)?.1).filter(|rate| *rate > 0.0)).collect();
    let least = known.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { least } else { 0.0 };
    known.into_iter().map(|rate| rate.unwrap_or(least)).collect()
}
