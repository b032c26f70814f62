//! One toy policy with every capability: proves that each trait can be written and called as an object.

use super::advise::{
    Chain, DataProblem, FlowDemand, Move, RebalanceProblem, ReplicaAdvice, RouteProblem, Routes, Running,
};
use super::dispatch::{Advice, DispatchEvent, Offer, TaskRef, View, WaitingGroup};
use super::plan::{self, ExpectedJob, Fabric, JobName, Plan, PlanError, PlanProblem, PlannedJob, PlannedStage, Slice};
use super::sample::{Sample, cluster};
use super::*;
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::network::shortest_path_seeded;
use hintd_model::units::{
    ApplicationId, AttemptId, BitsPerSec, Bytes, ContainerId, Micros, NodeIdx, RackIdx, Timestamp,
};
use std::sync::Arc;

const UNIT: Resource = Resource::new(1024, 1);

/// First fit; last come, first served; shortest paths; home to node 0; racks in turn; one rack for replicas.
struct Toy;

impl Policy for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn summary(&self) -> &'static str {
        "every capability, as little as possible"
    }

    fn params_toml(&self) -> String {
        String::new()
    }

    fn as_place(&self) -> Option<&dyn Place> {
        Some(self)
    }

    fn as_dispatch(&self) -> Option<&dyn DynDispatch> {
        Some(self)
    }

    fn as_route(&self) -> Option<&dyn Route> {
        Some(self)
    }

    fn as_rebalance(&self) -> Option<&dyn Rebalance> {
        Some(self)
    }

    fn as_plan(&self) -> Option<&dyn Planner> {
        Some(self)
    }

    fn as_place_data(&self) -> Option<&dyn PlaceData> {
        Some(self)
    }
}

impl Place for Toy {
    fn place(&self, problem: &PlaceProblem<'_>, budget: &mut Budget<'_>) -> Result<Placement, PlaceError> {
        let first = |group: &GroupProblem| group.candidates.first().map(|&node| Share { node, count: 1 });
        let groups = problem.groups.iter().map(|group| first(group).into_iter().collect()).collect();
        let steps = u64::from(budget.step());
        Ok(Placement {
            groups,
            routes: Vec::new(),
            objective: 0.0,
            parts: vec![],
            ended: Ended::Complete,
            gap: None,
            steps,
        })
    }
}

impl Dispatch for Toy {
    type State = Vec<TaskRef>;

    fn start(&self) -> Vec<TaskRef> {
        Vec::new()
    }

    fn observe(&self, state: &mut Vec<TaskRef>, event: &DispatchEvent, _view: &View<'_>) {
        if let DispatchEvent::Waiting(group) = event {
            let task = |index| TaskRef { attempt: group.attempt, group: group.group.clone(), index };
            state.extend((0..group.count).map(task));
        }
    }

    fn offer(&self, state: &mut Vec<TaskRef>, _offer: &Offer, _view: &View<'_>) -> Vec<Advice> {
        state.pop().map(Advice::Launch).into_iter().collect()
    }
}

impl Route for Toy {
    fn route(&self, problem: &RouteProblem<'_>, _budget: &mut Budget<'_>) -> Result<Routes, PlaceError> {
        let topology = &problem.snapshot.topology;
        let missing = PlaceError::NeedsSource { policy: "toy", source_name: "topology" };
        let network = topology.network.as_ref().ok_or(missing)?;
        let path = |flow: &FlowDemand| {
            let (from, to) = (topology.vertex[flow.from.at()]?, topology.vertex[flow.to.at()]?);
            shortest_path_seeded(network, from, to, problem.seed).map(|path| path.links.into())
        };
        Ok(Routes { paths: problem.flows.iter().map(path).collect(), objective: 0.0, ended: Ended::Complete })
    }
}

impl Rebalance for Toy {
    fn rebalance(&self, problem: &RebalanceProblem<'_>, _budget: &mut Budget<'_>) -> Result<Vec<Move>, PlaceError> {
        let away = problem.running.iter().filter(|running| running.node != NodeIdx(0));
        let home =
            |running: &Running| Move { container: running.container, to: NodeIdx(0), gain: 0.5, performance: None };
        Ok(away.map(home).filter(|step| step.gain >= problem.gain_min).take(problem.moves_max).collect())
    }
}

impl Planner for Toy {
    fn plan(&self, problem: &PlanProblem, _budget: &mut Budget<'_>) -> Result<Plan, PlanError> {
        problem.validate()?;
        let racks = &problem.racks;
        let job = |(at, expected): (usize, &ExpectedJob)| {
            let ((tasks, task_time), start) = (expected.maps, expected.arrival);
            let end = start.plus(Micros(task_time.0 * u64::from(tasks)));
            let slices = vec![Slice { rack: racks[at % racks.len()].rack.clone(), start, end, tasks, containers: 1 }];
            PlannedJob {
                job: JobName { key: expected.key.clone(), run: expected.run },
                arrival: start,
                heavy: false,
                shuffle: expected.shuffle,
                shuffle_time: Micros(0),
                start,
                end,
                maps: PlannedStage { tasks, task_time, slices },
                reduces: PlannedStage { tasks: 0, task_time: Micros(0), slices: vec![] },
                input_paths: Vec::new(),
                forecast: None,
            }
        };
        let jobs: Vec<PlannedJob> = problem.jobs.iter().enumerate().map(job).collect();
        Ok(Plan { jobs, ..plan::sample::plan(1) })
    }
}

impl PlaceData for Toy {
    fn place_data(&self, problem: &DataProblem<'_>) -> Result<Vec<ReplicaAdvice>, PlaceError> {
        Ok((0..problem.replication)
            .map(|nth| if nth == 0 { ReplicaAdvice::Rack(RackIdx(0)) } else { ReplicaAdvice::Default })
            .collect())
    }
}

fn testbed() -> Sample {
    cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(2), Bytes(1))
}

fn attempt() -> AttemptId {
    AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 }
}

#[test]
fn a_placer_and_a_dispatcher_are_called_as_objects() {
    let (sample, policy): (Sample, Box<dyn Policy>) = (testbed(), Box::new(Toy));
    let mut never = || false;
    let mut budget = Budget::new(10, &mut never);
    let problem = sample.problem(vec![sample.group("g", 1, UNIT)], vec![], vec![]);
    let placed = policy.as_place().unwrap().place(&problem, &mut budget).unwrap();
    assert_eq!((placed.placed_all(), policy.as_place().unwrap().objective(&problem, &placed)), (1, None));

    let dispatch = policy.as_dispatch().unwrap();
    let view = View { snapshot: &sample.snapshot, leases: &sample.leases, now: Timestamp(1), explain: true };
    let mut state = dispatch.start();
    let waiting = DispatchEvent::Waiting(WaitingGroup {
        attempt: attempt(),
        user: "u".into(),
        queue: "q".into(),
        group: "g".into(),
        role: "map".into(),
        count: 2,
        size: UNIT,
        inputs: vec![],
        output_ratio: None,
        since: Timestamp(0),
    });
    dispatch.observe(&mut state, &waiting, &view);
    let offer = Offer { node: NodeIdx(3), free: UNIT };
    // What-if: a cloned State goes its own way.
    let mut other = state.clone();
    assert_eq!(dispatch.offer(&mut other, &offer, &view), dispatch.offer(&mut state, &offer, &view));
    assert_eq!(dispatch.offer(&mut state, &offer, &view).len(), 1);
    assert!(dispatch.offer(&mut state, &offer, &view).is_empty());
}

#[test]
fn routes_and_moves_are_given_as_objects() {
    let (sample, policy): (Sample, Box<dyn Policy>) = (testbed(), Box::new(Toy));
    let mut never = || false;
    let mut budget = Budget::new(10, &mut never);
    let snapshot = &sample.snapshot;
    let flow = |to| FlowDemand { from: NodeIdx(0), to: NodeIdx(to), bytes: Bytes(1), chain: Chain::default() };
    let problem = RouteProblem { snapshot, flows: vec![flow(1), flow(2)], fixed: vec![], seed: 1 };
    let routes = policy.as_route().unwrap().route(&problem, &mut budget).unwrap();
    let hops: Vec<usize> = routes.paths.iter().map(|path| path.as_ref().unwrap().len()).collect();
    assert_eq!(hops, [2, 4], "in the rack, and over a core switch");

    let container = |id| ContainerId { attempt: attempt(), id };
    let running =
        |id, node| Running { container: container(id), node: NodeIdx(node), size: UNIT, cooling: false, set: 0 };
    let running = vec![running(1, 0), running(2, 3), running(3, 4)];
    let (leases, traffic) = (&sample.leases, vec![]);
    let problem = RebalanceProblem {
        snapshot,
        leases,
        running,
        allowed: vec![],
        traffic,
        chains: vec![],
        roots: vec![],
        others: None,
        moves_max: 1,
        application_moves_max: 1,
        gain_min: 0.1,
        seed: 1,
    };
    let moves = policy.as_rebalance().unwrap().rebalance(&problem, &mut budget).unwrap();
    assert_eq!(moves, [Move { container: container(2), to: NodeIdx(0), gain: 0.5, performance: None }]);
}

#[test]
fn plans_and_replicas_are_given_as_objects() {
    let (sample, policy): (Sample, Box<dyn Policy>) = (testbed(), Box::new(Toy));
    let snapshot = &sample.snapshot;
    let job = ExpectedJob {
        key: "nightly".into(),
        run: 0,
        arrival: Timestamp(5),
        input: Bytes(0),
        maps: (10, Micros(7)),
        reduces: (2, Micros(9)),
        shuffle: Bytes(100),
    };
    let problem = PlanProblem {
        racks: plan::rack_rooms(snapshot, &UNIT),
        fabric: Fabric { uplink: BitsPerSec(1), circuits: None, nodes: None },
        jobs: vec![job],
        objective: plan::Objective::Online,
        made: Timestamp(0),
        from: Timestamp(0),
        until: Timestamp(9),
        prediction_error: None,
        seed: 1,
    };
    let plan = policy.as_plan().unwrap().plan(&problem, &mut Budget::new(0, &mut || false)).unwrap();
    assert_eq!((plan.jobs[0].start, plan.jobs[0].end), (Timestamp(5), Timestamp(75)));

    let (path, reader) = (Arc::from("/out"), Some(Arc::from("nightly")));
    let writer = Some(attempt());
    let problem = DataProblem {
        snapshot,
        path,
        block: 0,
        reader,
        plan: None,
        homes: &[],
        now: Timestamp(0),
        writer,
        replication: 2,
        seed: 1,
    };
    let advice = policy.as_place_data().unwrap().place_data(&problem).unwrap();
    assert_eq!(advice, [ReplicaAdvice::Rack(RackIdx(0)), ReplicaAdvice::Default]);
}

#[test]
fn a_policy_that_lacks_a_source_says_which() {
    let mut sample = testbed();
    sample.snapshot.topology = Arc::new(hintd_model::cluster::Topology::new(None, &sample.snapshot.statics));
    let mut never = || false;
    let problem = RouteProblem { snapshot: &sample.snapshot, flows: vec![], fixed: vec![], seed: 1 };
    let error = Toy.route(&problem, &mut Budget::new(1, &mut never)).unwrap_err();
    assert_eq!(error.to_string(), "policy toy needs topology, and nothing was heard of it");
}
