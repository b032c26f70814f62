//! What YARN gives, with and without hints, heartbeat by heartbeat.

use super::*;
use hintd_model::cluster::Resource;
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::{ApplicationId, AttemptId};
use hintd_policy::dispatch::{TaskInput, WaitingGroup};
use hintd_policy::registry;
use hintd_policy::sample::{Sample, cluster};
use smallvec::smallvec;

const UNIT: Resource = Resource::new(1024, 1);
/// Node 0 and 1 share a rack.
const HOME: NodeIdx = NodeIdx(0);
const NEIGHBOUR: NodeIdx = NodeIdx(1);
const FAR: NodeIdx = NodeIdx(7);
const SECOND: u64 = 1_000_000;

/// A dispatcher with a clock, and the cluster that it serves.
struct DispatchHarness<'p> {
    sample: Sample,
    yarn: HintedYarn<'p>,
    state: DispatchState,
    now: Timestamp,
}

impl<'p> DispatchHarness<'p> {
    fn new(policy: &str, dispatch: &'p dyn DynDispatch) -> Self {
        let sample = cluster(&tree(&TreeSpec::default()).unwrap(), UNIT.times(4), Bytes(1));
        let yarn = HintedYarn::new(policy, dispatch, Delays::of(&SimSettings::default()));
        let state = yarn.start();
        Self { sample, yarn, state, now: Timestamp(0) }
    }

    fn at(&mut self, now_s: f64) -> &mut Self {
        self.now = Timestamp((now_s * SECOND as f64) as u64);
        self
    }

    fn tell(&mut self, event: &DispatchEvent) {
        let view = View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: false };
        self.yarn.observe(&mut self.state, event, &view);
    }

    /// A job of so many maps, with the input of each at home.
    fn submit(&mut self, sequence: u32, maps: u32) -> AttemptId {
        self.submit_as("map", sequence, maps)
    }

    /// Tasks of a role; maps have the input of each at home.
    fn submit_as(&mut self, role: &str, sequence: u32, count: u32) -> AttemptId {
        let attempt = AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence }, attempt: 1 };
        let inputs = (0..count).map(|_| TaskInput { bytes: Bytes(10), nodes: smallvec![HOME] }).collect();
        self.tell(&DispatchEvent::Waiting(WaitingGroup {
            attempt,
            user: format!("user{sequence}").into(),
            queue: "default".into(),
            group: role.into(),
            role: role.into(),
            count,
            size: UNIT,
            inputs,
            output_ratio: None,
            since: self.now,
        }));
        attempt
    }

    /// The node reports: tasks launched on it, all taken.
    fn heartbeat(&mut self, node: NodeIdx, containers: u64) -> Vec<TaskRef> {
        // No node reports twice at one moment.
        self.now = self.now.plus(Micros(1));
        let mut launched = Vec::new();
        loop {
            let free = UNIT.times(containers - launched.len() as u64);
            let view =
                View { snapshot: &self.sample.snapshot, leases: &self.sample.leases, now: self.now, explain: false };
            let advice = self.yarn.offer(&mut self.state, &Offer { node, free }, &view);
            let Some(Advice::Launch(task)) = advice.into_iter().next() else { return launched };
            self.tell(&DispatchEvent::Launched { task: task.clone(), node });
            launched.push(task);
        }
    }
}

fn fair() -> Box<dyn hintd_policy::Policy> {
    registry::with_defaults("fair").unwrap()
}

#[test]
fn yarn_by_itself_reads_at_home_at_once_and_elsewhere_only_after_offers_missed() {
    let fair = fair();
    let mut harness = DispatchHarness::new("capacity", fair.as_dispatch().unwrap());
    harness.submit(1, 6);
    assert!(harness.heartbeat(HOME, 1).is_empty(), "the ApplicationMaster has not asked yet");
    harness.at(1.5);
    assert_eq!(harness.heartbeat(HOME, 1).len(), 1, "its input lies there");
    // 5 outstanding × (host, rack and * less one) ÷ 8 nodes = 1.25 offers to let go by.
    let missed = (0..20).take_while(|_| harness.heartbeat(NEIGHBOUR, 1).is_empty()).count();
    assert_eq!(missed, 1);
    assert_eq!(harness.yarn.outcome(), HintOutcome { unhinted: 2, ..HintOutcome::default() });
}

#[test]
fn a_heartbeat_gives_one_reduce_and_as_many_maps_at_home_as_fit() {
    let fair = fair();
    let mut harness = DispatchHarness::new("capacity", fair.as_dispatch().unwrap());
    harness.submit_as("reduce", 1, 8);
    harness.at(1.5);
    let spread: Vec<usize> = (0..8).map(|node| harness.heartbeat(NodeIdx(node), 4).len()).collect();
    assert_eq!(spread, [1; 8], "asks for any node spread by themselves");
    harness.submit(2, 4);
    harness.at(3.0);
    assert_eq!(harness.heartbeat(HOME, 3).len(), 3);
}

#[test]
fn application_masters_have_phases_of_their_own_by_the_seed() {
    let asks = |seed| {
        let settings = SimSettings { seed, ..SimSettings::default() };
        let delays = Delays::of(&settings);
        let attempt =
            |sequence| AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence }, attempt: 1 };
        (0..1000).map(|sequence| delays.first_ask(attempt(sequence)).0).collect::<Vec<_>>()
    };
    let first = asks(1);
    assert_eq!(first, asks(1), "a run repeats");
    assert_ne!(first, asks(2));
    assert!(first.iter().all(|ask| (500_000..=1_500_000).contains(ask)), "half a heartbeat about the mean delay");
    let mean = first.iter().sum::<u64>() / 1000;
    assert!((970_000..1_030_000).contains(&mean), "{mean}");
}

#[test]
fn a_hint_reaches_yarn_late_and_is_met_when_its_node_reports() {
    let fair = fair();
    let mut harness = DispatchHarness::new("fair", fair.as_dispatch().unwrap());
    harness.submit(1, 1);
    assert!(harness.at(1.0).heartbeat(FAR, 1).is_empty(), "hinted now, asked for in 1.1 s");
    assert!(harness.at(2.0).heartbeat(FAR, 1).is_empty());
    assert!(harness.at(2.05).heartbeat(HOME, 1).is_empty(), "other nodes are not asked for");
    assert_eq!(harness.at(2.1).heartbeat(FAR, 1).len(), 1);
    assert_eq!(harness.yarn.outcome(), HintOutcome { followed: 1, ..HintOutcome::default() });
}

#[test]
fn hints_take_no_more_of_a_node_than_it_has() {
    let fair = fair();
    let mut harness = DispatchHarness::new("fair", fair.as_dispatch().unwrap());
    harness.submit(1, 5);
    harness.at(1.0).heartbeat(FAR, 2);
    harness.at(1.5).heartbeat(FAR, 2);
    let yarn = own(&mut harness.state);
    assert_eq!(yarn.hints.on(FAR), UNIT.times(2));
}

#[test]
fn a_hint_that_is_not_met_ends_and_the_task_goes_where_yarn_likes() {
    let fair = fair();
    let mut harness = DispatchHarness::new("fair", fair.as_dispatch().unwrap());
    harness.submit(1, 1);
    harness.at(1.0).heartbeat(FAR, 1);
    // The node never reports again; another one does, at home of the input, when the group is past its patience.
    assert!(harness.at(20.0).heartbeat(HOME, 1).is_empty(), "held back for its hint");
    harness.at(33.0);
    assert_eq!(harness.heartbeat(HOME, 1).len(), 1);
    assert_eq!(harness.yarn.outcome(), HintOutcome { expired: 1, unhinted: 1, ..HintOutcome::default() });
}

#[test]
fn yarn_may_launch_elsewhere_than_hinted_and_hintd_hears_of_it() {
    let fair = fair();
    let mut harness = DispatchHarness::new("fair", fair.as_dispatch().unwrap());
    let attempt = harness.submit(1, 2);
    harness.at(1.0).heartbeat(FAR, 2);
    let task = TaskRef { attempt, group: "map".into(), index: 0 };
    assert_eq!(own(&mut harness.state).hints.of(&task), Some(FAR));
    harness.at(3.0).tell(&DispatchEvent::Launched { task: task.clone(), node: HOME });
    assert_eq!(own(&mut harness.state).hints.of(&task), None);
    assert_eq!(harness.yarn.outcome().elsewhere, 1);
    assert_eq!(own(&mut harness.state).inbox.len(), 2, "not there, but here");
}

/// Gives no hint at all.
struct Silent;

impl hintd_policy::Dispatch for Silent {
    type State = ();

    fn start(&self) {}

    fn observe(&self, (): &mut (), _: &DispatchEvent, _: &View<'_>) {}

    fn offer(&self, (): &mut (), _: &Offer, _: &View<'_>) -> Vec<Advice> {
        Vec::new()
    }
}

#[test]
fn a_group_that_nobody_hints_asks_by_itself_after_its_patience() {
    let mut harness = DispatchHarness::new("silent", &Silent);
    let attempt = harness.submit(1, 2);
    let asked_s = harness.yarn.delays.first_ask(attempt).as_secs_f64();
    assert!(harness.at(asked_s + 4.9).heartbeat(HOME, 1).is_empty(), "patient for 5 s");
    assert_eq!(harness.at(asked_s + 5.0).heartbeat(HOME, 1).len(), 1);
    assert!(harness.at(asked_s + 6.0).heartbeat(HOME, 1).is_empty(), "the group was just served");
    assert_eq!(harness.at(asked_s + 10.1).heartbeat(HOME, 1).len(), 1);
}

#[test]
fn what_a_done_application_was_hinted_is_forgotten() {
    let fair = fair();
    let mut harness = DispatchHarness::new("fair", fair.as_dispatch().unwrap());
    let attempt = harness.submit(1, 3);
    harness.at(1.0).heartbeat(FAR, 3);
    harness.tell(&DispatchEvent::Done(attempt));
    assert_eq!(own(&mut harness.state).hints.on(FAR), Resource::ZERO);
    assert!(harness.at(40.0).heartbeat(FAR, 3).is_empty());
}
