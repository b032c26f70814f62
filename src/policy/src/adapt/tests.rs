//! Both adapters with toy dispatchers and registered placers.

use super::*;
use crate::dispatch::{Advice, Dispatch, DispatchEvent, DynDispatch, Offer, TaskInput, TaskRef, View, WaitingGroup};
use crate::sample::{Sample, cluster};
use crate::{Budget, Place, Placement, check, registry};
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId, Bytes, Micros, NodeIdx, Timestamp};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;
use std::collections::VecDeque;

const UNIT: Resource = Resource::new(1024, 1);

/// Toy: first come, first served, but every task declines its first `picky` offers.
struct Fifo {
    picky: u32,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct FifoState {
    queue: VecDeque<(TaskRef, Resource)>,
    declined: u32,
}

impl Dispatch for Fifo {
    type State = FifoState;

    fn start(&self) -> FifoState {
        FifoState::default()
    }

    fn observe(&self, state: &mut FifoState, event: &DispatchEvent, _view: &View<'_>) {
        match event {
            DispatchEvent::Waiting(group) => {
                let task = |index| TaskRef { attempt: group.attempt, group: group.group.clone(), index };
                state.queue.extend((0..group.count).map(|index| (task(index), group.size)));
            }
            DispatchEvent::Launched { task, .. } => state.queue.retain(|(waiting, _)| waiting != task),
            _ => {}
        }
    }

    fn offer(&self, state: &mut FifoState, offer: &Offer, view: &View<'_>) -> Vec<Advice> {
        let Some((task, size)) = state.queue.front().cloned() else { return Vec::new() };
        if state.declined < self.picky {
            state.declined += 1;
            let (attempt, group) = (task.attempt, task.group);
            return vec![Advice::NotYet { attempt, group, reason: "picky".into(), expected_wait: None }];
        }
        state.declined = 0;
        if view.snapshot.rules.feasible(&size, &offer.free) { vec![Advice::Launch(task)] } else { Vec::new() }
    }
}

fn testbed() -> Sample {
    cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(2), Bytes(1))
}

fn run(place: &dyn Place, sample: &Sample, count: u32) -> Placement {
    let mut problem = sample.problem(vec![sample.group("g", count, UNIT)], vec![], vec![]);
    problem.seed = 3;
    let mut never = || false;
    let placement = place.place(&problem, &mut Budget::new(10_000, &mut never)).unwrap();
    assert_eq!(check(&problem, &placement), []);
    placement
}

#[test]
fn a_dispatcher_answers_a_gang_node_by_node() {
    let sample = testbed();
    let placed = run(&OfferInTurn::new(Fifo { picky: 0 }, 1), &sample, 4);
    let nodes: Vec<u32> = placed.groups[0].iter().map(|share| share.node.0).collect();
    assert_eq!(nodes, [3, 4, 5, 6], "one launch an offer, in turn from the seed's node");
    assert_eq!(run(&OfferInTurn::new(Fifo { picky: 0 }, 1), &sample, 99).placed(0), 16, "all that fit");
}

#[test]
fn a_dispatcher_that_waits_gets_its_offers_but_not_for_ever() {
    let sample = testbed();
    let placed = run(&OfferInTurn::new(Fifo { picky: 20 }, 4), &sample, 3);
    assert_eq!(placed.placed(0), 3);
    assert_eq!(run(&OfferInTurn::new(Fifo { picky: 20 }, 2), &sample, 3).placed(0), 0);
}

fn waiting(sample: &Sample, count: u32) -> WaitingGroup {
    let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };
    let _ = sample;
    WaitingGroup {
        attempt,
        user: "u".into(),
        queue: "q".into(),
        group: "g".into(),
        role: "map".into(),
        count,
        size: UNIT,
        inputs: (0..count).map(|task| TaskInput { bytes: Bytes(10), nodes: smallvec![NodeIdx(task)] }).collect(),
        output_ratio: None,
        since: Timestamp(100),
    }
}

fn launched(advice: &[Advice]) -> Vec<u32> {
    let index = |advice: &Advice| match advice {
        Advice::Launch(task) => task.index,
        other => panic!("{other:?}"),
    };
    advice.iter().map(index).collect()
}

/// Placer that a test can own: the registry's, behind the trait.
struct Registered(&'static str);

impl Place for Registered {
    fn place(
        &self,
        problem: &crate::PlaceProblem<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Placement, crate::PlaceError> {
        registry::with_defaults(self.0).unwrap().as_place().unwrap().place(problem, budget)
    }
}

#[test]
fn a_placer_answers_heartbeats_from_what_it_placed() {
    let sample = testbed();
    let dispatcher = PlacedFirst::new(Registered("spread"), 1_000, Micros(50));
    let view = |now| View { snapshot: &sample.snapshot, leases: &sample.leases, now: Timestamp(now), explain: true };
    let mut state = DynDispatch::start(&dispatcher);
    let dispatcher: &dyn DynDispatch = &dispatcher;
    dispatcher.observe(&mut state, &DispatchEvent::Waiting(waiting(&sample, 8)), &view(100));
    // A State goes through JSON and back without loss.
    let mut state = dispatcher.restore(&state.to_json().unwrap()).unwrap();
    let mut all = Vec::new();
    for node in 0..8 {
        let offer = Offer { node: NodeIdx(node), free: UNIT.times(2) };
        let tasks = launched(&dispatcher.offer(&mut state, &offer, &view(110)));
        assert_eq!(tasks.len(), 1, "spread puts one on each");
        for index in tasks {
            all.push(index);
            let attempt = waiting(&sample, 1).attempt;
            let task = TaskRef { attempt, group: "g".into(), index };
            dispatcher.observe(&mut state, &DispatchEvent::Launched { task, node: NodeIdx(node) }, &view(110));
        }
        assert!(dispatcher.offer(&mut state, &offer, &view(110)).is_empty(), "and no more");
    }
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
}

#[test]
fn a_task_whose_node_never_reports_goes_elsewhere_after_the_patience() {
    let sample = testbed();
    let dispatcher = PlacedFirst::new(Registered("container"), 1_000, Micros(50));
    let view = |now| View { snapshot: &sample.snapshot, leases: &sample.leases, now: Timestamp(now), explain: true };
    let mut state = Dispatch::start(&dispatcher);
    Dispatch::observe(&dispatcher, &mut state, &DispatchEvent::Waiting(waiting(&sample, 1)), &view(100));
    let elsewhere = Offer { node: NodeIdx(7), free: UNIT };
    assert!(Dispatch::offer(&dispatcher, &mut state, &elsewhere, &view(150)).is_empty(), "placed on node 0");
    assert_eq!(launched(&Dispatch::offer(&dispatcher, &mut state, &elsewhere, &view(151))), [0]);
    let attempt = waiting(&sample, 1).attempt;
    Dispatch::observe(&dispatcher, &mut state, &DispatchEvent::Done(attempt), &view(160));
    assert_eq!(state, PlacedFirstState::default());
}

#[test]
fn every_policy_that_places_or_dispatches_is_a_dispatcher() {
    let sample = testbed();
    for entry in registry::entries() {
        let policy = registry::with_defaults(entry.name).unwrap();
        let dispatcher = dispatcher_of(&*policy).expect("all of them place or dispatch");
        let mut state = dispatcher.start();
        let view =
            |now| View { snapshot: &sample.snapshot, leases: &sample.leases, now: Timestamp(now), explain: false };
        dispatcher.observe(&mut state, &DispatchEvent::Waiting(waiting(&sample, 8)), &view(100));
        let mut state = dispatcher.restore(&state.to_json().unwrap()).unwrap();
        let mut left = 8;
        // Long enough for any patience, often enough for any count of skips.
        for heartbeat in 0..200 * sample.snapshot.nodes() as u64 {
            let node = NodeIdx((heartbeat % sample.snapshot.nodes() as u64) as u32);
            let at = view(100 + heartbeat * 100_000);
            for index in launched(&dispatcher.offer(&mut state, &Offer { node, free: UNIT.times(2) }, &at)) {
                let task = TaskRef { attempt: waiting(&sample, 1).attempt, group: "g".into(), index };
                dispatcher.observe(&mut state, &DispatchEvent::Launched { task, node }, &at);
                left -= 1;
            }
        }
        assert_eq!(left, 0, "{}", entry.name);
    }
}

#[test]
fn every_dispatcher_answers_a_gang_with_maps_and_reduces() {
    let sample = testbed();
    for name in ["fair", "delay", "shufflewatcher", "pna"] {
        let policy = registry::with_defaults(name).unwrap();
        let groups = vec![sample.group("map", 4, UNIT), sample.group("reduce", 3, UNIT)];
        let mut problem = sample.problem(groups, vec![], vec![]);
        problem.groups[0].input = sample.input(12, Bytes(100), 1);
        let mut never = || false;
        let placement = policy.as_place().unwrap().place(&problem, &mut Budget::new(100_000, &mut never)).unwrap();
        assert_eq!((check(&problem, &placement), placement.placed_all()), (vec![], 7), "{name}");
    }
}
