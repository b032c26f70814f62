//! *rebalance*: moves of running containers towards the boxes that their flows pass.

use super::field::{Field, InOrder, Mover, NO_WAY, Run};
use super::{NAME, Pat, counted};
use crate::advise::{ContainerTraffic, Move, Rebalance, RebalanceProblem};
use crate::{Budget, PlaceError};
use hintd_model::cluster::resource::KINDS_MAX;
use hintd_model::network::Network;
use hintd_model::network::chains::{BoxLoads, Chains, HopTable};
use hintd_model::units::{ApplicationId, BitsPerSec, BoxIdx, NodeIdx, VertexIdx};
use std::collections::BTreeMap;

impl Rebalance for Pat {
    /// Containers that have moved a short while ago stay, and so do those whose flows pass nothing. The boxes of a flow
    /// are those of fewest hops with room for it, the flows in the order told.
    fn rebalance(&self, problem: &RebalanceProblem<'_>, budget: &mut Budget<'_>) -> Result<Vec<Move>, PlaceError> {
        let topology = &*problem.snapshot.topology;
        let Some(network) = topology.network.as_deref() else {
            return Err(PlaceError::NeedsSource { policy: NAME, source_name: "topology" });
        };
        let Some(chains) = topology.chains.as_deref() else { return Ok(Vec::new()) };
        let places = Places::new(problem, network, chains);
        let pulls = self.pulls(problem, &places);
        let field = places.field(problem, &pulls);
        let mut run = Run::new(&field);
        run.play(self.params.window, &mut InOrder::default(), || budget.step());
        let below = |at: u32, server: u32| field.cost_below(at, field.switch_of[server as usize]);
        let mut before: BTreeMap<ApplicationId, u64> = BTreeMap::new();
        // Of all that it runs, what stays for now included: else the same gain would look larger from round to round.
        for ((at, task), pulls) in (0..).zip(&field.tasks).zip(&pulls) {
            let sum = before.entry(application(problem, at)).or_default();
            *sum = sum.saturating_add(field.cost_of(pulls, field.switch_of[task.server as usize]).unwrap_or(0));
        }
        let mut moves: Vec<Candidate> = Vec::new();
        for (at, task) in (0..).zip(&run.tasks).filter(|(at, task)| task.server != field.tasks[*at as usize].server) {
            let old = below(at, field.tasks[at as usize].server);
            // What reaches its boxes only where it goes to saves all that others cost: no share of a cost tells that.
            let gain = old.map_or(1.0, |old| {
                let saved = old.saturating_sub(below(at, task.server).unwrap_or(old));
                saved as f64 / before[&application(problem, at)].max(1) as f64
            });
            moves.push(Candidate { gain, task: at, server: task.server });
        }
        moves.sort_unstable_by(|a, b| b.gain.total_cmp(&a.gain).then((a.task, a.server).cmp(&(b.task, b.server))));
        Ok(chosen(problem, &field, &moves))
    }
}

/// A move that may be proposed.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// As a share of the application's cost before.
    gain: f64,
    /// Position among what runs.
    task: u32,
    server: u32,
}

/// Whose a running container is.
fn application(problem: &RebalanceProblem<'_>, at: u32) -> ApplicationId {
    problem.running[at as usize].container.attempt.application
}

/// Moves worth it, the best first, within the bounds of the round, each of which fits once those before it are made.
fn chosen(problem: &RebalanceProblem<'_>, field: &Field<KINDS_MAX>, moves: &[Candidate]) -> Vec<Move> {
    let mut left = Run::new(field).servers;
    let mut by_application: BTreeMap<ApplicationId, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for &Candidate { gain, task, server } in moves {
        let running = problem.running[task as usize];
        let count = by_application.entry(running.container.attempt.application).or_default();
        let mover = &field.tasks[task as usize];
        let fits = mover.size.iter().zip(&left[server as usize].left).all(|(size, left)| size <= left);
        let within = chosen.len() < problem.moves_max && *count < problem.application_moves_max;
        if !within || !fits || gain < problem.gain_min {
            continue;
        }
        *count += 1;
        for (kind, size) in mover.size.iter().enumerate() {
            left[server as usize].left[kind] -= size;
            left[mover.server as usize].left[kind] += size;
        }
        chosen.push(Move { container: running.container, to: NodeIdx(server), gain, performance: None });
    }
    chosen
}

/// Switches of nodes and boxes, and how far they are from each other.
struct Places<'p> {
    chains: &'p Chains,
    /// By node.
    switch_of: Vec<Option<u32>>,
    /// By box that can be used.
    of_box: Vec<Option<usize>>,
    list: Vec<VertexIdx>,
    hops: HopTable,
}

impl<'p> Places<'p> {
    fn new(problem: &RebalanceProblem<'_>, network: &Network, chains: &'p Chains) -> Self {
        let topology = &*problem.snapshot.topology;
        let above = |node: &Option<VertexIdx>| node.and_then(|host| network.attachment(host));
        let switches: Vec<Option<VertexIdx>> = topology.vertex.iter().map(above).collect();
        let at = |index: usize| chains.boxes()[index].at.filter(|_| chains.is_usable(network, BoxIdx::new(index)));
        let boxes: Vec<Option<VertexIdx>> = (0..chains.boxes().len()).map(at).collect();
        let mut list: Vec<VertexIdx> = switches.iter().chain(&boxes).copied().flatten().collect();
        list.sort_unstable();
        list.dedup();
        let place = |switch: &Option<VertexIdx>| switch.and_then(|switch| list.binary_search(&switch).ok());
        let switch_of = switches.iter().map(|switch| place(switch).map(|at| at as u32)).collect();
        let of_box = boxes.iter().map(place).collect();
        let hops = HopTable::new(network, &list, &list);
        Self { chains, switch_of, of_box, list, hops }
    }

    /// Fewest hops through a box of each type with room; its boxes. `None`: there is no way.
    fn list(
        &self,
        ends: (usize, usize),
        chain: hintd_model::units::ChainIdx,
        rate: u64,
        loads: &BoxLoads,
    ) -> Option<Vec<BoxIdx>> {
        let mut ways: Vec<(u32, usize, Vec<BoxIdx>)> = vec![(0, ends.0, Vec::new())];
        let hops = |a: usize, b: usize| match self.hops.get(a, b) {
            HopTable::NONE => None,
            hops => Some(u32::from(hops)),
        };
        for &kind in &self.chains.chain(chain).sequence {
            let mut next = Vec::new();
            for &index in self.chains.of_kind(kind) {
                let Some(place) = self.of_box[index.at()] else { continue };
                if loads.room(self.chains, index).0 < rate {
                    continue;
                }
                let best =
                    ways.iter().filter_map(|(so_far, from, list)| Some((so_far + hops(*from, place)?, list))).min();
                if let Some((so_far, list)) = best {
                    next.push((so_far, place, [&list[..], &[index]].concat()));
                }
            }
            ways = next;
        }
        let last = ways.into_iter().filter_map(|(so_far, from, list)| Some((so_far + hops(from, ends.1)?, list)));
        last.min().map(|(_, list)| list)
    }

    fn field(&self, problem: &RebalanceProblem<'_>, pulls: &[Vec<(u32, u64)>]) -> Field<KINDS_MAX> {
        let snapshot = problem.snapshot;
        let nowhere = self.list.len() as u32;
        let mut rooms: Vec<[u64; KINDS_MAX]> = (0..snapshot.nodes())
            .map(|node| {
                let node = NodeIdx::new(node);
                let usable = snapshot.state[node.at()].usable();
                if usable { counted(snapshot, &snapshot.room(node, problem.leases)) } else { [0; KINDS_MAX] }
            })
            .collect();
        let mut tasks = Vec::with_capacity(problem.running.len());
        for (running, pulls) in problem.running.iter().zip(pulls) {
            let size = counted(snapshot, &running.size);
            let room = &mut rooms[running.node.at()];
            room.iter_mut().zip(&size).for_each(|(room, size)| *room += size);
            let pulls = if running.cooling { Vec::new() } else { pulls.clone() };
            tasks.push(Mover { size, server: running.node.0, pulls, set: running.set });
        }
        let switch_of = self.switch_of.iter().map(|switch| switch.unwrap_or(nowhere)).collect();
        let row = |place: usize| self.hops.row(place).iter().copied().chain([NO_WAY]).collect();
        Field {
            switch_of,
            rooms,
            tasks,
            hops: (0..self.list.len()).map(row).collect(),
            allowed: problem.allowed.clone(),
        }
    }
}

impl Pat {
    /// By running container: places of its ingress and egress boxes, and rates.
    fn pulls(&self, problem: &RebalanceProblem<'_>, places: &Places<'_>) -> Vec<Vec<(u32, u64)>> {
        let mut pulls: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); problem.running.len()];
        let mut loads = problem.others.clone().unwrap_or_else(|| BoxLoads::new(places.chains));
        for (&ContainerTraffic { from, to, bytes }, chain) in problem.traffic.iter().zip(&problem.chains) {
            let Some(chain) = *chain else { continue };
            let rate = ((bytes.as_f64() * 8.0 / self.params.transfer_s) as u64).max(1);
            let end = |at: u32| places.switch_of[problem.running[at as usize].node.at()].map(|place| place as usize);
            let (Some(start), Some(end)) = (end(from), end(to)) else { continue };
            let Some(list) = places.list((start, end), chain, rate, &loads) else { continue };
            list.iter().for_each(|&index| loads.add(index, BitsPerSec(rate)));
            for (task, index) in [(from, list.first()), (to, list.last())] {
                let place = index.and_then(|index| places.of_box[index.at()]);
                if let Some(place) = place {
                    *pulls[task as usize].entry(place as u32).or_default() += rate;
                }
            }
        }
        pulls.into_iter().map(|pulls| pulls.into_iter().collect()).collect()
    }
}
