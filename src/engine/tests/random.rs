//! Random sequences of everything that may happen, with the ledger's invariants after every step.

use super::desk::{Desk, container, maps, running};
use crate::cluster::{Change, Gang, NamedContainer, NodeState, Resource};
use crate::engine::journal::Table;
use crate::engine::testing::attempt;
use crate::engine::{Answer, CommitOutcome, Counter, Engine, Proposal, Token};
use crate::units::{ContainerId, LeaseId, Micros, NodeIdx, RequestId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const HOSTS: u8 = 4;
const NODE_MB: u64 = 4096;

#[derive(Debug, Clone)]
enum Step {
    /// A node registers, perhaps with less than before.
    Register {
        host: u8,
        small: bool,
    },
    /// A node reports what YARN runs on it and what others use.
    Beat {
        host: u8,
        foreign_mb: u64,
        named: bool,
    },
    /// Some application proposes on the generation of now, and waits.
    Propose {
        app: u8,
        second: bool,
        count: u8,
        gang: bool,
    },
    /// A waiting proposal is committed, on whatever the ledger is by then.
    Commit {
        which: u8,
        last_try: bool,
        store_fails: bool,
    },
    /// A committed request is sent again.
    Retry {
        which: u8,
    },
    /// YARN starts a container for a lease: on its host or the next.
    Start {
        lease: u8,
        elsewhere: bool,
        told: bool,
    },
    /// A container ends.
    End {
        which: u8,
    },
    Release {
        which: u8,
    },
    Done {
        app: u8,
    },
    Publish,
    Pass {
        seconds: u8,
    },
    Gone {
        host: u8,
    },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let host = 0..HOSTS;
    let step = prop_oneof![
        1 => (host.clone(), any::<bool>()).prop_map(|(host, small)| Step::Register { host, small }),
        4 => (host.clone(), prop_oneof![Just(0), 0..NODE_MB], prop::bool::weighted(0.8))
            .prop_map(|(host, foreign_mb, named)| Step::Beat { host, foreign_mb, named }),
        5 => (0..3_u8, prop::bool::weighted(0.1), 1..8_u8, any::<bool>())
            .prop_map(|(app, second, count, gang)| Step::Propose { app, second, count, gang }),
        6 => (any::<u8>(), prop::bool::weighted(0.2), prop::bool::weighted(0.1))
            .prop_map(|(which, last_try, store_fails)| Step::Commit { which, last_try, store_fails }),
        1 => any::<u8>().prop_map(|which| Step::Retry { which }),
        4 => (any::<u8>(), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(lease, elsewhere, told)| Step::Start { lease, elsewhere, told }),
        2 => any::<u8>().prop_map(|which| Step::End { which }),
        1 => any::<u8>().prop_map(|which| Step::Release { which }),
        1 => (0..3_u8).prop_map(|app| Step::Done { app }),
        4 => Just(Step::Publish),
        2 => (1..25_u8).prop_map(|seconds| Step::Pass { seconds }),
        1 => host.prop_map(|host| Step::Gone { host }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// The desk, YARN's side, and what must stay true.
struct World {
    desk: Desk,
    waiting: Vec<Proposal>,
    answered: BTreeMap<RequestId, Arc<Answer>>,
    granted: BTreeSet<LeaseId>,
    /// What YARN runs, by host.
    runs: BTreeMap<u8, BTreeMap<ContainerId, NamedContainer>>,
    foreign: BTreeMap<u8, u64>,
    heard: BTreeSet<ContainerId>,
    replaced: BTreeSet<RequestId>,
    next: u64,
    restarts: usize,
}

impl World {
    fn new() -> Self {
        Self {
            desk: Desk::with_nodes(usize::from(HOSTS), NODE_MB),
            waiting: Vec::new(),
            answered: BTreeMap::new(),
            granted: BTreeSet::new(),
            runs: BTreeMap::new(),
            foreign: BTreeMap::new(),
            heard: BTreeSet::new(),
            replaced: BTreeSet::new(),
            next: 2,
            restarts: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Register { host, small } => {
                let mb = if small { NODE_MB / 2 } else { NODE_MB };
                self.desk.register(&format!("h{host}"), "/r0", mb);
            }
            Step::Beat { host, foreign_mb, named } => self.beat(host, foreign_mb, named),
            Step::Propose { app, second, count, gang } => self.propose(app, second, count, gang),
            Step::Commit { which, last_try, store_fails } => self.commit(which, last_try, store_fails),
            Step::Retry { which } => self.retry(which),
            Step::Start { lease, elsewhere, told } => self.start(lease, elsewhere, told),
            Step::End { which } => {
                let all: Vec<_> =
                    self.runs.iter().flat_map(|(&host, runs)| runs.keys().map(move |&id| (host, id))).collect();
                if let Some((host, id)) = pick(&all, which) {
                    self.runs.get_mut(host).unwrap().remove(id);
                }
            }
            Step::Release { which } => {
                let all: Vec<_> = self.desk.engine.leases().map(|lease| (lease.id, lease.attempt)).collect();
                if let Some(&(id, of)) = pick(&all, which) {
                    let released = self.desk.engine.release(of, &Token("secret".into()), &[id], self.desk.now).unwrap();
                    assert_eq!(released.released, 1);
                }
            }
            Step::Done { app } => {
                let what = crate::engine::TaskWhat::Done { failed: false };
                self.desk.event(attempt(u32::from(app), 1), "", what);
            }
            Step::Publish => drop(self.desk.publish()),
            Step::Pass { seconds } => self.desk.pass(Micros::from_secs(u64::from(seconds))),
            Step::Gone { host } => {
                self.runs.remove(&host);
                // Unknown to a daemon that has just started.
                drop(self.desk.engine.change(Change::Gone(format!("h{host}").into()), self.desk.now));
            }
            Step::Restart => {
                self.desk.restart();
                self.waiting.clear(); // proposals die with the process
                self.restarts += 1;
            }
        }
        self.desk.drain();
    }

    fn beat(&mut self, host: u8, foreign_mb: u64, named: bool) {
        self.foreign.insert(host, foreign_mb);
        let runs: Vec<NamedContainer> =
            self.runs.get(&host).into_iter().flat_map(|runs| runs.values()).cloned().collect();
        self.heard.extend(runs.iter().map(|container| container.id));
        let used: u64 = foreign_mb + runs.iter().map(|container| container.size.memory_mb).sum::<u64>();
        let heartbeat = crate::cluster::Heartbeat {
            host: format!("h{host}").into(),
            used: super::desk::mb(used),
            used_is_running: false,
            containers: named.then_some(runs),
            state: NodeState::Running,
        };
        // Refused where the node has not registered (again): then nothing changes.
        drop(self.desk.engine.change(Change::Heartbeat(heartbeat), self.desk.now));
    }

    fn propose(&mut self, app: u8, second: bool, count: u8, gang: bool) {
        self.next += 1;
        let mut request = maps(&format!("r{}", self.next), u32::from(count));
        request.attempt = attempt(u32::from(app), if second { 2 } else { 1 });
        request.gang = if gang { Gang::All } else { Gang::UpTo };
        if let Ok(proposal) = self.desk.propose(&Arc::new(request)) {
            self.waiting.push(proposal);
        }
    }

    fn commit(&mut self, which: u8, last_try: bool, store_fails: bool) {
        if self.waiting.is_empty() {
            return;
        }
        let mut proposal = self.waiting.remove(usize::from(which) % self.waiting.len());
        proposal.last_try = last_try;
        let gang = proposal.request.gang;
        let before = self.leased();
        let outcome = self.desk.engine.commit(proposal, Token("secret".into()), self.desk.now);
        let CommitOutcome::Committed(answer) = outcome else {
            assert_eq!(self.leased(), before, "what is not committed takes nothing");
            return;
        };
        self.check_commit(&answer, gang);
        if store_fails {
            // What was in the same batch (a superseded attempt's leases, say) stays in the journal until it expires.
            self.desk.engine.undo(answer.decision.id, self.desk.now);
        } else {
            self.answered.insert(answer.decision.request.clone(), answer);
        }
    }

    /// The invariant of all: no commit exceeds what was settled.
    fn check_commit(&mut self, answer: &Answer, gang: Gang) {
        let snapshot = Arc::clone(self.desk.engine.settled());
        for hint in answer.decision.hints.iter().filter(|hint| !hint.leases.is_empty()) {
            let node = snapshot.statics.find(hint.host.as_str()).unwrap();
            let sum = self.desk.engine.leased().leased(node).plus(&snapshot.occupied[node.at()]);
            assert!(
                sum.memory_mb() <= snapshot.statics.total[node.at()].memory_mb(),
                "{} is over its total",
                hint.host
            );
            assert_eq!(hint.leases.len(), hint.count as usize);
        }
        for lease in answer.leases() {
            assert!(self.granted.insert(lease), "lease {lease} was granted twice");
        }
        let (leased, wanted): (usize, u32) =
            (answer.leases().count(), answer.decision.hints.iter().map(|hint| hint.count).sum());
        if gang == Gang::All && leased > 0 {
            assert_eq!(leased, wanted as usize, "a gang is leased whole");
            assert_eq!(answer.decision.without_room, 0);
        }
    }

    fn retry(&mut self, which: u8) {
        let known: Vec<_> = self.answered.values().cloned().collect();
        let Some(answer) = pick(&known, which) else { return };
        let id = &answer.decision.request;
        match self.desk.engine.lookup(id, 0) {
            Some(same) => assert_eq!(same.as_ref(), Ok(answer)),
            None => assert!(answer.leases().all(|lease| self.desk.engine.leases().all(|live| live.id != lease))),
        }
    }

    fn start(&mut self, lease: u8, elsewhere: bool, told: bool) {
        let all: Vec<_> = self.desk.engine.leases().cloned().collect();
        let Some(lease) = pick(&all, lease) else { return };
        self.next += 1;
        let host = self.desk.engine.settled().host(lease.node).to_string();
        let number: u8 = host[1..].parse().unwrap();
        let number = if elsewhere { (number + 1) % HOSTS } else { number };
        let id = container(lease.attempt, self.next);
        self.runs.entry(number).or_default().insert(id, running(id));
        let known = self.desk.engine.settled().statics.find(&format!("h{number}")).is_some();
        if told && known {
            self.desk.allocated(&format!("h{number}"), id, Some(lease.id));
        }
    }

    fn leased(&self) -> Vec<u64> {
        (0..HOSTS).map(|at| self.desk.engine.leased().leased(NodeIdx(u32::from(at))).memory_mb()).collect()
    }

    fn check(&mut self) {
        let engine = &self.desk.engine;
        let snapshot = engine.settled();
        let mut sums: BTreeMap<NodeIdx, Resource> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for lease in engine.leases() {
            assert!(ids.insert(lease.id));
            assert!(self.granted.contains(&lease.id), "a lease that nobody was granted");
            let sum = sums.entry(lease.node).or_default();
            *sum = sum.plus(&lease.size);
        }
        for node in snapshot.statics.indexes() {
            let sum = sums.get(&node).copied().unwrap_or_default();
            assert_eq!(engine.leased().leased(node), sum, "the overlay is the sum of the leases");
            if !snapshot.statics.total[node.at()].is_zero() {
                let fits = snapshot.rules.feasible(&sum, &snapshot.unoccupied(node));
                assert!(fits, "foreign use has withdrawn what does not fit on {}", snapshot.host(node));
            }
        }
        self.check_replay();
        self.check_replaced();
    }

    /// The journal's rows alone give the same ledger.
    fn check_replay(&self) {
        let told = |engine: &Engine| {
            let live = engine.leases().filter(|lease| lease.expires > self.desk.now);
            let host = |node| engine.settled().host(node).clone();
            let told = live.map(|lease| (lease.id, lease.attempt, host(lease.node), lease.size, lease.confirmed));
            told.collect::<Vec<_>>()
        };
        let recovered = self.desk.recovered();
        assert_eq!(told(&recovered), told(&self.desk.engine));
        let rows = self.desk.rows.keys().filter(|(table, _)| *table == Table::Leases).count();
        assert_eq!(rows, self.desk.engine.leases().count());
        for answer in self.answered.values() {
            let id = &answer.decision.request;
            assert_eq!(recovered.lookup(id, 0), self.desk.engine.lookup(id, 0));
        }
    }

    /// What is placed anew was heard of or leased before, and no request for it is made twice.
    fn check_replaced(&mut self) {
        for request in self.desk.replaced() {
            self.replaced.insert(request.id.clone());
        }
        assert!(self.replaced.len() == self.desk.replaced().len() || self.restarts > 0);
        let placed = self.desk.count(Counter::TasksReplaced);
        if self.restarts == 0 {
            assert!(placed <= (self.heard.len() + self.desk.count(Counter::LeasesWithdrawn) as usize) as u64);
        }
    }
}

fn pick<T>(from: &[T], which: u8) -> Option<&T> {
    from.get(usize::from(which) % from.len().max(1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_no_commit_exceeds_the_cluster_and_the_journal_gives_the_ledger_again(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
