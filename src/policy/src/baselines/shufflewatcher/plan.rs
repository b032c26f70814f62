//! Racks for a job at its submission: those from which least would cross racks.

use crate::dispatch::TaskInput;
use crate::pool::Bits;
use hintd_model::cluster::{Resource, Snapshot};
use hintd_model::units::{NodeIdx, RackIdx};
use serde::{Deserialize, Serialize};

/// Where the maps of a job should run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RackPlan {
    /// The racks.
    pub(super) racks: Bits,
    /// Maps without input in any of them, ascending: they read from afar whichever of them it is.
    pub(super) remote: Vec<u32>,
}

/// What racks there are for a job, and what it needs of them.
#[derive(Debug)]
pub(super) struct Places<'a> {
    /// By node.
    rack: &'a [RackIdx],
    /// By rack: containers for the job's maps, and for its reduces, if nothing else ran there.
    containers: Vec<[u64; 2]>,
    /// Its maps and reduces.
    tasks: [u64; 2],
    /// From which rack on racks that are as good are taken, in a circle.
    turn: usize,
}

impl<'a> Places<'a> {
    /// For `tasks` maps and reduces in containers of these `sizes`.
    pub(super) fn of(snapshot: &'a Snapshot, turn: usize, sizes: [Resource; 2], tasks: [u32; 2]) -> Self {
        let statics = &snapshot.statics;
        let on = |size: &Resource, node: &NodeIdx| u64::from(snapshot.rules.how_many(size, &statics.total[node.at()]));
        let in_rack = |nodes: &Vec<NodeIdx>| sizes.map(|size| nodes.iter().map(|node| on(&size, node)).sum());
        let containers = statics.members.iter().map(in_rack).collect();
        Self { rack: &statics.rack, containers, tasks: tasks.map(u64::from), turn }
    }
}

/// The racks of a job that shuffles `shuffle` bytes. With maps and reduces spread evenly over k racks, input without a
/// replica there crosses racks once, and of the shuffle all but 1 ÷ k. Racks are taken one by one, each that adds most
/// input that was not covered (of equal ones the next of the circle: else the jobs of few blocks would all meet in the
/// first racks), and of the k whose racks have containers for all maps, and for all reduces, that with least traffic
/// wins, of equal ones the largest.
pub(super) fn least_traffic(inputs: &[TaskInput], shuffle: f64, places: &Places<'_>) -> RackPlan {
    let (racks, turn) = (places.containers.len(), places.turn);
    let rack = |node: NodeIdx| places.rack.get(node.at()).copied();
    let of = |input: &TaskInput| {
        let mut racks: Vec<usize> = input.nodes.iter().filter_map(|&node| rack(node)).map(RackIdx::at).collect();
        racks.sort_unstable();
        racks.dedup();
        racks
    };
    let mut gain = vec![0.0; racks];
    let mut in_rack: Vec<Vec<u32>> = vec![Vec::new(); racks];
    let mut uncovered = 0.0;
    for (map, input) in inputs.iter().enumerate() {
        let racks = of(input);
        // Input without replicas crosses racks nowhere, or everywhere alike.
        uncovered += if racks.is_empty() { 0.0 } else { input.bytes.as_f64() };
        for rack in racks {
            gain[rack] += input.bytes.as_f64();
            in_rack[rack].push(map as u32);
        }
    }
    let mut covered = Bits::default();
    let mut order: Vec<usize> = Vec::new();
    let (mut best, mut best_traffic) = (0, f64::INFINITY);
    let (mut room, mut enough) = ([0; 2], false);
    while order.len() < racks {
        let circle = (0..racks).map(|at| (turn + at) % racks);
        let left = circle.filter(|rack| !order.contains(rack));
        let Some(next) = left.reduce(|a, b| if gain[b] > gain[a] { b } else { a }) else { break };
        order.push(next);
        for &map in &in_rack[next] {
            if covered.has(map as usize) {
                continue;
            }
            covered.set(map as usize, true);
            let input = &inputs[map as usize];
            uncovered -= input.bytes.as_f64();
            of(input).into_iter().for_each(|rack| gain[rack] -= input.bytes.as_f64());
        }
        let traffic = uncovered + shuffle * (1.0 - 1.0 / order.len() as f64);
        // Fewer racks than hold its tasks are no placement; all racks are the most there is.
        if !enough || traffic <= best_traffic {
            (best, best_traffic) = (order.len(), traffic);
        }
        for (sum, more) in room.iter_mut().zip(places.containers[next]) {
            *sum += more;
        }
        enough = (0..2).all(|kind| room[kind] >= places.tasks[kind]);
    }
    let mut plan = RackPlan::default();
    order[..best].iter().for_each(|&rack| plan.racks.set(rack, true));
    let remote = |(_, input): &(usize, &TaskInput)| {
        let racks = of(input);
        !racks.is_empty() && racks.iter().all(|&rack| !plan.racks.has(rack))
    };
    plan.remote = inputs.iter().enumerate().filter(remote).map(|(map, _)| map as u32).collect();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::Bytes;
    use smallvec::smallvec;

    /// Node n is in rack n, of four, which has 6 containers for maps and 3 for reduces.
    const RACKS: [RackIdx; 4] = [RackIdx(0), RackIdx(1), RackIdx(2), RackIdx(3)];

    fn places(turn: usize, tasks: [u64; 2]) -> Places<'static> {
        Places { rack: &RACKS, containers: vec![[6, 3]; 4], tasks, turn }
    }

    fn racks_of(inputs: &[(u64, &[u32])], shuffle: f64) -> (Vec<usize>, Vec<u32>) {
        let input = |(bytes, nodes): &(u64, &[u32])| {
            let mut input = TaskInput { bytes: Bytes(*bytes), nodes: smallvec![] };
            input.nodes.extend(nodes.iter().map(|&node| NodeIdx(node)));
            input
        };
        let inputs: Vec<TaskInput> = inputs.iter().map(input).collect();
        let plan = least_traffic(&inputs, shuffle, &places(0, [0, 0]));
        ((0..4).filter(|&rack| plan.racks.has(rack)).collect(), plan.remote)
    }

    #[test]
    fn a_heavy_shuffle_draws_the_maps_into_the_rack_with_most_input() {
        let inputs: &[(u64, &[u32])] = &[(10, &[0, 1]), (10, &[1, 2]), (10, &[3])];
        assert_eq!(racks_of(inputs, 100.0), (vec![1], vec![2]));
    }

    #[test]
    fn of_racks_that_are_as_good_each_job_takes_another() {
        let input = TaskInput { bytes: Bytes(10), nodes: smallvec![NodeIdx(1), NodeIdx(3)] };
        let of_turn = |turn| {
            let plan = least_traffic(std::slice::from_ref(&input), 9.0, &places(turn, [1, 1]));
            (0..4).filter(|&rack| plan.racks.has(rack)).collect::<Vec<usize>>()
        };
        assert_eq!([0, 1, 2, 3].map(of_turn), [[1], [1], [3], [3]]);
    }

    #[test]
    fn a_job_gets_racks_for_all_its_maps_and_for_all_its_reduces() {
        let inputs = [TaskInput { bytes: Bytes(10), nodes: smallvec![NodeIdx(1)] }];
        for (tasks, racks) in [([6, 3], 1), ([7, 3], 2), ([6, 4], 2), ([6, 10], 4), ([1_000, 1], 4)] {
            let plan = least_traffic(&inputs, 100.0, &places(0, tasks));
            assert_eq!((0..4).filter(|&rack| plan.racks.has(rack)).count(), racks, "{tasks:?}");
            assert!(plan.racks.has(1), "where its input is, in any case");
        }
    }

    #[test]
    fn a_light_shuffle_goes_where_the_input_is() {
        let inputs: &[(u64, &[u32])] = &[(10, &[0, 1]), (10, &[1, 2]), (10, &[3])];
        assert_eq!(racks_of(inputs, 6.0), (vec![1, 3], vec![]));
    }

    #[test]
    fn a_job_without_shuffle_may_use_every_rack() {
        assert_eq!(racks_of(&[(10, &[0])], 0.0), (vec![0, 1, 2, 3], vec![]));
    }

    #[test]
    fn no_other_set_of_racks_has_less_traffic_where_each_block_lies_in_one_rack() {
        let inputs: &[(u64, &[u32])] = &[(7, &[0]), (5, &[1]), (3, &[2]), (2, &[3])];
        for shuffle in [0.0, 1.0, 4.0, 9.0, 12.0, 20.0] {
            let traffic = |racks: &[usize]| {
                let remote: u64 =
                    inputs.iter().filter(|input| !racks.contains(&(input.1[0] as usize))).map(|i| i.0).sum();
                remote as f64 + shuffle * (1.0 - 1.0 / racks.len() as f64)
            };
            let sets = (1..16_u32).map(|set| (0..4).filter(|rack| set >> rack & 1 == 1).collect::<Vec<usize>>());
            let least = sets.map(|racks| traffic(&racks)).fold(f64::INFINITY, f64::min);
            assert!((traffic(&racks_of(inputs, shuffle).0) - least).abs() < 1e-9, "{shuffle}");
        }
    }
}
