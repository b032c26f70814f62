//! Random sequences of what applications, nodes and disks do to tasks that wait.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Ask { app: u32, maps: u32, reduces: u32, local: u8 },
    Beat { host: u8, foreign_mb: u64 },
    Start { which: u8, elsewhere: bool, told: bool },
    End { which: u8, failed: bool, told: bool },
    Pass { ms: u64 },
    Done { app: u32 },
    Gone { host: u8 },
    Undo { which: u8 },
}

const HOSTS: u8 = 4;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1..4_u32, 1..5_u32, 0..3_u32, 0..6_u8)
            .prop_map(|(app, maps, reduces, local)| Step::Ask { app, maps, reduces, local }),
        4 => (0..HOSTS, prop_oneof![3 => Just(0), 1 => 0..4096_u64])
            .prop_map(|(host, foreign_mb)| Step::Beat { host, foreign_mb }),
        3 => (any::<u8>(), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(which, elsewhere, told)| Step::Start { which, elsewhere, told }),
        2 => (any::<u8>(), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(which, failed, told)| Step::End { which, failed, told }),
        2 => (1..40_000_u64).prop_map(|ms| Step::Pass { ms }),
        1 => (1..4_u32).prop_map(|app| Step::Done { app }),
        1 => (0..HOSTS).prop_map(|host| Step::Gone { host }),
        1 => any::<u8>().prop_map(|which| Step::Undo { which }),
    ]
}

/// YARN as it runs: containers by host.
#[derive(Default)]
struct Yarn {
    running: BTreeMap<hintd_model::units::ContainerId, (String, String)>,
    next: u64,
    foreign: BTreeMap<String, u64>,
    asked: u32,
    answers: Vec<Arc<Answer>>,
}

impl Yarn {
    fn beat(&self, harness: &mut EngineHarness, host: &str) {
        let mine: Vec<_> = self.running.iter().filter(|(_, (on, _))| on == host).map(|(&id, _)| running(id)).collect();
        let used = 1024 * mine.len() as u64 + self.foreign.get(host).copied().unwrap_or(0);
        harness.register_once(host);
        harness.beat(host, used, Some(&mine));
    }
}

impl EngineHarness {
    fn register_once(&mut self, host: &str) {
        let snapshot = Arc::clone(self.engine.current_snapshot());
        let node = snapshot.statics.find(host).unwrap();
        if snapshot.state[node.at()].gone() {
            self.register(host, &format!("/r{}", node.at() / 2), 4096);
        }
    }

    /// No node promises more than it has beside what it reported when its lease was granted.
    fn check(&self) {
        let snapshot = self.engine.current_snapshot();
        for node in (0..snapshot.nodes()).map(NodeIdx::new) {
            let leased = self.engine.leased().leased(node);
            let free = snapshot.unoccupied(node);
            assert!(snapshot.rules.feasible(&leased, &free) || leased == Resource::ZERO, "{leased:?} in {free:?}");
        }
        let by_task: BTreeSet<LeaseId> = self.engine.leases().map(|lease| lease.id).collect();
        assert_eq!(by_task.len(), self.leases().len());
    }
}

fn take(harness: &mut EngineHarness, yarn: &mut Yarn, policy: &Arc<dyn Policy>, step: &Step) {
    match step {
        Step::Ask { app, maps, reduces, local } => {
            yarn.asked += 1;
            let id = format!("r{}", yarn.asked);
            let hosts: Vec<String> = (0..*maps).map(|map| format!("h{}", (u32::from(*local) + map) % 6)).collect();
            let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
            let mut asked = reading(harness, &id, &hosts);
            asked.attempt = attempt(*app, 1);
            if *reduces > 0 {
                asked.groups.extend(request("x", &[("map", 1), ("reduce", *reduces)]).groups.pop());
            }
            let answer = harness.wait(policy, asked);
            yarn.answers.push(answer);
        }
        Step::Beat { host, foreign_mb } => {
            let host = format!("h{host}");
            yarn.foreign.insert(host.clone(), *foreign_mb);
            yarn.beat(harness, &host);
            harness.publish();
        }
        Step::Start { which, elsewhere, told } => {
            let leases: Vec<_> = harness.engine.leases().filter(|lease| lease.confirmed.is_none()).cloned().collect();
            let Some(lease) = leases.get(usize::from(*which) % leases.len().max(1)) else { return };
            let at = (lease.node.at() + usize::from(*elsewhere)) % usize::from(HOSTS);
            let host = format!("h{at}");
            yarn.next += 1;
            let id = container(lease.attempt, yarn.next);
            yarn.running.insert(id, (host.clone(), lease.group.to_string()));
            if *told {
                let what = TaskWhat::Allocated { host: host.as_str().into(), container: id, lease: Some(lease.id) };
                harness.event(lease.attempt, &lease.group, what);
            } else {
                yarn.beat(harness, &host);
                harness.publish();
            }
        }
        Step::End { which, failed, told } => {
            let ids: Vec<_> = yarn.running.keys().copied().collect();
            let Some(&id) = ids.get(usize::from(*which) % ids.len().max(1)) else { return };
            let (host, group) = yarn.running.remove(&id).unwrap();
            if *told {
                harness.event(id.attempt, &group, finished(&host, *failed));
            }
            yarn.beat(harness, &host);
            harness.publish();
        }
        Step::Pass { ms } => {
            harness.pass(Micros::from_millis(*ms));
            for late in harness.late() {
                let _ = harness.place_late(&late);
            }
        }
        Step::Done { app } => {
            yarn.running.retain(|id, _| id.attempt != attempt(*app, 1));
            harness.event(attempt(*app, 1), "", TaskWhat::Done { failed: false });
        }
        Step::Gone { host } => {
            let host = format!("h{host}");
            yarn.running.retain(|_, (on, _)| *on != host);
            let node = harness.engine.current_snapshot().statics.find(&host).unwrap();
            if !harness.engine.current_snapshot().state[node.at()].gone() {
                harness.change(Change::Gone(host.as_str().into()));
                harness.publish();
            }
        }
        Step::Undo { which } => {
            yarn.answers.extend(harness.pushed());
            let at = usize::from(*which) % yarn.answers.len().max(1);
            if at < yarn.answers.len() {
                let answer = yarn.answers.swap_remove(at);
                harness.engine.undo(answer.decision.id, harness.now);
                harness.drain();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_happens_no_task_is_launched_twice_and_no_node_promises_more_than_it_has(
        steps in prop::collection::vec(step(), 1..60),
        fair in any::<bool>(),
    ) {
        let policy: Arc<dyn Policy> =
            if fair { registry::with_defaults("fair").unwrap().into() } else { choosy() };
        let mut harness = EngineHarness::with_nodes(usize::from(HOSTS), 4096);
        let mut yarn = Yarn::default();
        for step in &steps {
            take(&mut harness, &mut yarn, &policy, step);
            harness.publish();
            harness.check();
        }
        for app in 1..4 {
            harness.event(attempt(app, 1), "", TaskWhat::Done { failed: false });
        }
        prop_assert_eq!((harness.waiting(), harness.leases().len()), (0, 0), "nothing of what is over stays");
    }
}

#[test]
fn a_task_that_runs_on_a_node_which_registered_this_moment_is_told_with_the_node() {
    let fair: Arc<dyn Policy> = registry::with_defaults("fair").unwrap().into();
    let mut harness = EngineHarness::with_nodes(1, 1024);
    harness.wait(&fair, request("a", &[("map", 2)]));
    assert_eq!((harness.waiting(), harness.leases().len()), (1, 1));
    harness.register("h7", "/r7", 4096);
    harness.allocated("h7", container(attempt(1, 1), 9), None);
    harness.publish();
    assert_eq!(harness.waiting(), 0, "the node had room, and a task is known to run there");
}
