//! Records: a busy engine under every policy, and every decision made again from its record alone.

use super::harness::{EngineHarness, container, registration, running};
use crate::records::{DecidedRequest, Kept, Probe, Record, RecordFilter, Records, RequestOutcome, Undelivered};
use crate::testing::{attempt, request};
use crate::{
    CommitOutcome, Mode, PlacerSettings, RecordSettings, Refusal, SelectedPolicy, TaskWhat, Token, may_wait, propose,
    propose_waiting,
};
use hintd_model::cluster::{
    Change, EdgePattern, Gang, GroupEdge, HintRequest, LinkLoad, Measured, NamedBlock, NamedDataset, NamedResource,
    WhenFull,
};
use hintd_model::network::build::{self, FatTreeSpec};
use hintd_model::units::{BitsPerSec, Bytes, DecisionId, GroupIdx, Micros};
use hintd_policy::{Policy, registry};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

const HOSTS: usize = 16;
const PLACERS: [&str; 6] = ["joint", "container", "spread", "capacity", "random", "cross_layer"];
const DISPATCHERS: [&str; 3] = ["fair", "delay", "nas"];

/// A wired cluster that is asked, reported and broken at random, and the records of what it was answered.
struct Busy {
    harness: EngineHarness,
    random: ChaCha8Rng,
    hosts: Vec<String>,
    policies: BTreeMap<&'static str, Arc<dyn Policy>>,
    records: Records,
    /// Proposals that wait, as they will be recorded.
    waiting: Vec<(crate::Proposal, DecidedRequest)>,
    running: BTreeMap<String, Vec<hintd_model::cluster::NamedContainer>>,
    asked: u32,
    recorded: usize,
}

impl Busy {
    fn new(seed: u64, settings: RecordSettings) -> Self {
        let mut harness = EngineHarness::new();
        harness.settings.records = settings.clone();
        harness.engine.reload(harness.settings.clone(), harness.now);
        let built = build::fat_tree(&FatTreeSpec::default()).unwrap();
        harness.change(Change::Network(Some(Arc::new(built.network))));
        let mut hosts = Vec::new();
        for (rack, names) in &built.racks {
            for host in names {
                harness.register(host.as_str(), rack.as_str(), 8192);
                harness.beat(host.as_str(), 0, Some(&[]));
                hosts.push(host.to_string());
            }
        }
        assert_eq!(hosts.len(), HOSTS);
        for (at, path) in ["/in/a", "/in/b/x", "/in/b/y"].into_iter().enumerate() {
            let block = |id: u64| NamedBlock {
                id: id + 100 * at as u64,
                bytes: Bytes(64 << 20),
                hosts: (0..3)
                    .map(|replica| hosts[(id as usize * 5 + replica * 3 + at) % HOSTS].as_str().into())
                    .collect(),
            };
            let blocks = (0..8).map(block).collect();
            harness.change(Change::Dataset(Arc::new(NamedDataset { path: path.into(), blocks })));
        }
        harness.publish();
        let policies = PLACERS.into_iter().chain(DISPATCHERS);
        let policies = policies.map(|name| (name, registry::with_defaults(name).unwrap().into())).collect();
        let (random, records) = (ChaCha8Rng::seed_from_u64(seed), Records::new(settings));
        let (waiting, running) = (Vec::new(), BTreeMap::new());
        Self { harness, random, hosts, policies, records, waiting, running, asked: 0, recorded: 0 }
    }

    fn step(&mut self) {
        match self.random.random_range(0..17) {
            0..=5 => self.ask(),
            6..=9 => self.commit(),
            10..=11 => self.beat(),
            12 => self.start(),
            13 => self.wire(),
            14 => self.lose(),
            15 => self.load(),
            _ => {
                self.harness.pass(Micros::from_millis(self.random.random_range(1..4_000)));
                self.harness.publish();
            }
        }
    }

    fn request(&mut self) -> HintRequest {
        self.asked += 1;
        let random = &mut self.random;
        let (maps, reduces) = (random.random_range(1..12), random.random_range(0..4));
        let groups: &[(&str, u32)] = if reduces > 0 { &[("map", maps), ("reduce", reduces)] } else { &[("map", maps)] };
        let mut asked = request(&format!("r{}", self.asked), groups);
        asked.attempt = attempt(random.random_range(1..6), 1);
        if reduces > 0 && random.random_bool(0.8) {
            let bytes = Bytes(random.random_range(0..2_000_u64) << 20);
            asked.edges = vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes }];
        }
        let paths = [None, Some("/in/a"), Some("/in/b"), Some("/in/none")];
        asked.input_paths.extend(paths.choose(random).unwrap().map(Into::into));
        asked.recurring_key = random.random_bool(0.3).then(|| "daily".into());
        asked.gang = if random.random_bool(0.2) { Gang::All } else { Gang::UpTo };
        asked.when_full = if random.random_bool(0.2) { WhenFull::Fail } else { WhenFull::Advise };
        asked.constraints.spread = random.random_bool(0.3);
        asked.constraints.max_per_node = if random.random_bool(0.2) { 2 } else { 0 };
        if random.random_bool(0.2) {
            asked.constraints.avoid_hosts.push(self.hosts.choose(random).unwrap().as_str().into());
        }
        let memory_mb = *[1024, 1024, 1024, 2000, 8192, 9000].choose(random).unwrap();
        asked.groups[0].size = NamedResource { memory_mb, vcores: 1, named: Vec::new() };
        asked
    }

    fn ask(&mut self) {
        let asked = Arc::new(self.request());
        let follows = self.random.random_bool(0.4);
        let name = if follows { DISPATCHERS.choose(&mut self.random) } else { PLACERS.choose(&mut self.random) };
        self.ask_for(&asked, name.unwrap(), follows);
    }

    fn ask_for(&mut self, asked: &Arc<HintRequest>, name: &'static str, follows: bool) {
        let (policy, baseline) = (Arc::clone(&self.policies[name]), Arc::clone(&self.policies["capacity"]));
        let mode = if self.random.random_bool(0.1) { Mode::Shadow } else { Mode::On };
        let settings = PlacerSettings { steps: 300, ..self.harness.placer.clone() };
        // The deadline comes somewhere in the search, or after it.
        let until = if self.random.random_bool(0.3) { self.random.random_range(1..12) } else { u64::MAX };
        let chosen = SelectedPolicy { policy: &*policy, baseline: &*baseline, mode, name };
        let generation = self.harness.engine.generation();
        let mut probe = Probe::default();
        let mut looks = 0;
        let mut stop = || {
            looks += 1;
            probe.look(looks >= until)
        };
        let found = if follows && may_wait(asked, &chosen) {
            propose_waiting(&generation, asked, &chosen, &policy, &settings, self.harness.now)
        } else {
            propose(&generation, asked, &chosen, &settings, self.harness.now, &mut stop)
        };
        let id = DecisionId::of(10_000 + u64::from(self.asked));
        let seen = |read, came| DecidedRequest {
            request: Arc::clone(asked),
            queue_named: false,
            policy: Arc::clone(&policy),
            name: name.into(),
            baseline: Arc::clone(&baseline),
            mode,
            settings: settings.clone(),
            now: self.harness.now,
            stopped: probe.stopped(),
            follows,
            generation: Arc::clone(&generation),
            read,
            round: None,
            came,
        };
        match found {
            Err(refusal) => {
                let seen = seen(None, RequestOutcome::Refused { decision: id, at: self.harness.now, refusal });
                self.records.take(seen);
                self.recorded += 1;
            }
            Ok(mut proposal) => {
                proposal.decision = Some(id);
                proposal.digest = 7;
                // What came of it is put in its place when it is committed.
                let refusal = Refusal::DeadlineExceeded(Micros(0));
                let seen = seen(
                    Some(proposal.paths_read()),
                    RequestOutcome::Refused { decision: id, at: self.harness.now, refusal },
                );
                self.waiting.push((proposal, seen));
            }
        }
    }

    fn commit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.waiting.len());
        let (mut proposal, mut seen) = self.waiting.swap_remove(at);
        proposal.last_try = self.random.random_bool(0.5);
        let draft = proposal.to_compare();
        let outcome = self.harness.engine.commit(proposal, Token("secret".into()), self.harness.now);
        let harness = self.harness.engine.take_dispatcher();
        self.harness.drain();
        if let CommitOutcome::Committed(answer) = outcome {
            seen.came = RequestOutcome::Answered { answer, draft, dispatcher: harness };
            self.records.take(seen);
            self.recorded += 1;
        }
        if self.random.random_bool(0.7) {
            self.harness.publish();
        }
    }

    fn beat(&mut self) {
        let host = self.hosts.choose(&mut self.random).unwrap().clone();
        let mine = self.running.entry(host.clone()).or_default();
        if self.random.random_bool(0.3) && !mine.is_empty() {
            let gone = mine.swap_remove(0);
            let what = TaskWhat::Finished {
                host: host.as_str().into(),
                duration: Micros::from_secs(self.random.random_range(1..60)),
                input: Bytes(1 << 20),
                output: Bytes(1 << 20),
                failed: false,
            };
            let event = crate::TaskEvent {
                attempt: gone.id.attempt,
                group: "map".into(),
                task: "t".into(),
                what,
                recurring_key: Some("daily".into()),
                at: self.harness.now,
            };
            self.harness.engine.event(event, self.harness.now).unwrap();
        }
        let foreign = self.random.random_range(0..4_u64) * 1024;
        let used = foreign + mine.iter().map(|container| container.size.memory_mb).sum::<u64>();
        let mine = mine.clone();
        self.harness.change(Change::Register(registration(&host, &self.rack(&host), 8192)));
        self.harness.beat(&host, used, Some(&mine));
        self.harness.publish();
    }

    fn rack(&self, host: &str) -> String {
        let statics = &self.harness.engine.current_snapshot().statics;
        statics.racks[statics.rack[statics.find(host).unwrap().at()].at()].to_string()
    }

    fn start(&mut self) {
        let leases: Vec<_> = self.harness.engine.leases().cloned().collect();
        let Some(lease) = leases.choose(&mut self.random) else {
            return;
        };
        let host = self.harness.engine.current_snapshot().host(lease.node).to_string();
        self.asked += 1;
        let id = container(lease.attempt, u64::from(self.asked));
        self.running.entry(host.clone()).or_default().push(running(id));
        self.harness.allocated(&host, id, Some(lease.id));
    }

    fn wire(&mut self) {
        let network = self.harness.engine.current_snapshot().topology.network.clone().unwrap();
        let links: Vec<_> = network.links().map(|(_, link)| (link.name.clone(), link.up)).collect();
        let down: Vec<_> = links.iter().filter(|(_, up)| !up).cloned().collect();
        let (link, up) = if down.len() > 2 { &down } else { &links }.choose(&mut self.random).unwrap().clone();
        self.harness.change(Change::Link { link, up: Some(!up), capacity: None });
        self.harness.publish();
    }

    fn load(&mut self) {
        let network = self.harness.engine.current_snapshot().topology.network.clone().unwrap();
        for (_, link) in network.links() {
            let mut carried = || BitsPerSec(self.random.random_range(0..=link.capacity.0));
            let load = LinkLoad::steady(carried(), carried());
            self.harness.change(Change::LinkLoad(link.name.clone(), load));
        }
        self.harness.publish();
    }

    fn lose(&mut self) {
        let host = self.hosts.choose(&mut self.random).unwrap().clone();
        self.running.remove(&host);
        self.harness.change(Change::Gone(host.as_str().into()));
        self.harness.publish();
        self.harness.out.clear();
    }

    fn all(&self) -> Vec<Arc<Record>> {
        let ids = (10_000..=10_000 + u64::from(self.asked)).map(DecisionId::of);
        ids.filter_map(|id| self.records.get(id, self.harness.now).ok()).collect()
    }
}

/// What all records say themselves, one by one.
fn told_refused(busy: &Busy) -> (BTreeMap<&'static str, u64>, Vec<DecisionId>) {
    let (mut counts, mut ids) = (BTreeMap::new(), Vec::new());
    for record in busy.all().iter().rev() {
        if let Some(token) = record.refused() {
            *counts.entry(token).or_default() += 1;
            ids.push(record.decision());
        }
    }
    (counts, ids)
}

#[test]
fn refusals_are_counted_and_listed_as_records_say_whenever_answers_come_late_are_fetched_or_records_go() {
    for bytes in [RecordSettings::default().bytes, 200_000] {
        let mut busy = Busy::new(7, RecordSettings { bytes, ..RecordSettings::default() });
        let mut late = 0;
        for _ in 0..300 {
            busy.step();
            let all = busy.all();
            if let Some(record) = all.choose(&mut busy.random) {
                let why = [None, Some(Undelivered::Deadline), Some(Undelivered::HungUp)];
                busy.records.delivery(record.decision(), *why.choose(&mut busy.random).unwrap());
            }
            let (counts, ids) = told_refused(&busy);
            late += counts.get("deadline").copied().unwrap_or(0);
            assert_eq!(busy.records.refusals(), counts);
            let of = |most| {
                let filter = RecordFilter { refused_only: true, ..RecordFilter::default() };
                let (found, total) = busy.records.listed(&filter, most);
                (found.iter().map(|record| record.decision()).collect::<Vec<_>>(), total)
            };
            assert_eq!(of(usize::MAX), (ids.clone(), ids.len()));
            assert_eq!(of(3), (ids.iter().take(3).copied().collect(), ids.len()));
            let (newest, total) = busy.records.listed(&RecordFilter::default(), 5);
            let all: Vec<DecisionId> = busy.all().iter().rev().map(|record| record.decision()).collect();
            assert!(newest.iter().map(|record| record.decision()).eq(all.iter().take(5).copied()));
            assert_eq!(total, all.len());
        }
        assert!(late > 0, "no answer was late");
        assert_eq!(busy.records.kept().dropped > 0, bytes == 200_000, "{:?}", busy.records.kept());
    }
}

fn busy(seed: u64, steps: usize) -> Busy {
    let mut busy = Busy::new(seed, RecordSettings::default());
    for _ in 0..steps {
        busy.step();
    }
    busy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn every_decision_of_a_busy_engine_is_made_again_byte_by_byte_whatever_happened_since(seed in any::<u64>()) {
        let mut busy = busy(seed, 90);
        let first = busy.all();
        prop_assert_eq!(first.len(), busy.recorded);
        for _ in 0..40 {
            busy.step();
        }
        let live = Arc::clone(busy.harness.engine.current_snapshot());
        for record in first.iter().chain(&busy.all()) {
            for live in [None, Some(&*live)] {
                let again = record.replay(live);
                prop_assert!(again.same, "{:?} {:?}: {:?}", record.request(), record.policy().0, again.differences);
                prop_assert_eq!(again.outcome.as_ref().err(), record.answered().err());
                if let (Ok(made), Ok(said)) = (&again.outcome, record.answered()) {
                    prop_assert_eq!(made, &said.decision);
                }
            }
        }
    }
}

#[test]
fn the_busy_engine_meets_what_records_must_stand() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..10 {
        let busy = busy(seed, 90);
        for record in busy.all() {
            let mut note = |what| *seen.entry(what).or_default() += 1;
            match record.answered() {
                Err(Refusal::Full { .. }) => note("full"),
                Err(Refusal::Unknown { .. }) => note("unknown"),
                Err(Refusal::Invalid { .. } | Refusal::TooLarge { .. }) => note("invalid"),
                Err(_) => note("another refusal"),
                Ok(answer) => {
                    let decision = &answer.decision;
                    let dispatched = DISPATCHERS.contains(&&*decision.policy);
                    note(if dispatched { "dispatched" } else { "placed" });
                    for (what, is) in [
                        ("pending", !decision.pending.is_empty()),
                        ("routes", !decision.routes.is_empty()),
                        ("deadline", decision.ended == hintd_policy::Ended::Deadline),
                        ("without room", decision.without_room > 0),
                        ("blocked", !decision.blocked.is_empty()),
                        ("history", decision.degraded.iter().any(|token| token.ends_with("from_history"))),
                        ("expected wait", decision.hints.iter().any(|hint| hint.expected_wait.is_some())),
                    ] {
                        if is {
                            note(what);
                        }
                    }
                }
            }
        }
    }
    let wanted = [
        "full",
        "unknown",
        "invalid",
        "dispatched",
        "placed",
        "pending",
        "routes",
        "deadline",
        "without room",
        "blocked",
        "expected wait",
    ];
    for what in wanted {
        assert!(seen.contains_key(what), "no {what} among {seen:?}");
    }
}

#[test]
fn records_stay_within_their_bytes_and_the_oldest_go_first() {
    let bytes = 256 << 10;
    let mut busy = Busy::new(3, RecordSettings { per_million: 1_000_000, bytes });
    for _ in 0..400 {
        busy.step();
        let kept = busy.records.kept();
        assert!(kept.bytes <= bytes, "{kept:?}");
        assert_eq!(kept.decisions + kept.dropped as usize, busy.recorded);
    }
    let kept = busy.records.kept();
    assert!(kept.dropped > 10 && kept.decisions > 3, "{kept:?}");
    let (oldest, _) = kept.oldest.unwrap();
    let ids: Vec<DecisionId> = busy.all().iter().map(|record| record.decision()).collect();
    assert!(ids.contains(&oldest));
    let now = busy.harness.now;
    let refusal = busy.records.get(DecisionId::of(10_001), now).unwrap_err().to_string();
    let text = "decision 0000000000002711 is not recorded: records go back ";
    assert!(refusal.starts_with(text) && refusal.contains(&oldest.to_string()), "{refusal}");
    busy.records.reload(RecordSettings { per_million: 1_000_000, bytes: 0 });
    let none = Kept { dropped: busy.recorded as u64, ..Kept::default() };
    assert_eq!(busy.records.kept(), none, "every byte was given back");
}

#[test]
fn refusals_of_one_user_under_many_applications_leave_what_was_decided() {
    let bytes = 256 << 10;
    let mut busy = Busy::new(4, RecordSettings { per_million: 1_000_000, bytes });
    while busy.all().iter().filter(|record| record.answered().is_ok()).count() < 12 {
        busy.step();
    }
    let decided: Vec<DecisionId> =
        busy.all().iter().filter(|record| record.answered().is_ok()).map(|record| record.decision()).collect();
    let dropped = busy.records.kept().dropped;
    let generation = busy.harness.engine.generation();
    let policy: Arc<dyn Policy> = Arc::clone(&busy.policies["spread"]);
    for sequence in 0..4_000 {
        let mut asked = request(&format!("loop{sequence}"), &[("gang", 4_000)]);
        asked.attempt = attempt(100_000 + sequence, 1);
        asked.user = "loop".into();
        let refusal = Refusal::DeadlineExceeded(Micros(0));
        let decision = DecisionId::of(1_000_000 + u64::from(sequence));
        busy.records.take(DecidedRequest {
            request: Arc::new(asked),
            queue_named: false,
            policy: Arc::clone(&policy),
            name: "spread".into(),
            baseline: Arc::clone(&policy),
            mode: Mode::On,
            settings: PlacerSettings::default(),
            round: None,
            now: busy.harness.now,
            stopped: None,
            follows: false,
            generation: Arc::clone(&generation),
            read: None,
            came: RequestOutcome::Refused { decision, at: busy.harness.now, refusal },
        });
    }
    let kept = busy.records.kept();
    assert!(kept.bytes <= bytes && kept.dropped > dropped + 1_000, "{kept:?}");
    let now = busy.harness.now;
    for id in decided {
        assert!(busy.records.get(id, now).is_ok(), "{id} is an application's own, and it went");
    }
}

#[test]
fn a_record_keeps_the_parameters_that_its_policy_had() {
    let mut busy = Busy::new(5, RecordSettings::default());
    let asked = Arc::new(request("one", &[("map", 4)]));
    busy.ask_for(&asked, "container", false);
    busy.waiting[0].0.last_try = true;
    while busy.recorded == 0 {
        busy.commit();
    }
    let table = toml::de::DeTable::parse("weights = { togetherness = 0.0, locality = 0.0, balance = 1.0 }\n").unwrap();
    let other: Arc<dyn Policy> = (registry::find("container").unwrap().build)(table).unwrap().into();
    busy.policies.insert("container", Arc::clone(&other));
    let record = busy.all().remove(0);
    assert_ne!(record.policy().1.params_toml(), other.params_toml());
    assert!(record.replay(None).same);
    let beside = record.compare_with("container", &other, None, &mut || false).unwrap();
    assert!(beside.other.is_ok() && beside.rated.len() == 2);
}

/// Bytes of what was recorded of one decision of each of these policies, with as many pairs measured or none.
fn with_latency(names: &[&'static str], pairs: usize) -> (Busy, usize) {
    let mut busy = Busy::new(5, RecordSettings::default());
    busy.policies.insert("nomora", registry::with_defaults("nomora").unwrap().into());
    for at in 0..pairs {
        let [from, to] = [at / (HOSTS - 1), at % (HOSTS - 1)];
        let to = if to >= from { to + 1 } else { to };
        let (from, to) = (busy.hosts[from].as_str().into(), busy.hosts[to].as_str().into());
        let rtts = [30 + at as u32].into_iter().collect();
        busy.harness.change(Change::Latency(Measured { from, to, path: 0, rtts, at: busy.harness.now }));
    }
    busy.harness.publish();
    for (at, name) in names.iter().enumerate() {
        let mut asked = request(&format!("r{at}"), &[("server", 1), ("worker", 4)]);
        asked.am_host = Some(busy.hosts[2].as_str().into());
        busy.asked += 1;
        busy.ask_for(&Arc::new(asked), name, false);
    }
    for _ in 0..100 {
        busy.commit();
    }
    assert_eq!(busy.recorded, names.len());
    let bytes = busy.records.kept().bytes;
    (busy, bytes)
}

#[test]
fn measured_latency_is_kept_for_the_policy_that_reads_it_alone_and_others_say_that_it_is_not() {
    let of = |names: &[&'static str], pairs| with_latency(names, pairs).1;
    let rows = of(&["nomora"], 240) - of(&["nomora"], 0);
    assert!(rows > 240 * 24, "{rows}");
    assert!(of(&["container"], 240).abs_diff(of(&["container"], 0)) < rows / 4);
    let (busy, _) = with_latency(&["container", "nomora", "spread"], 240);
    let all = busy.all();
    assert_eq!(all.len(), 3);
    for record in &all {
        let again = record.replay(None);
        assert!(again.same, "{:?}: {:?}", record.policy().0, again.differences);
    }
    let nomora = &busy.policies["nomora"];
    let beside = all[0].compare_with("nomora", nomora, None, &mut || false).unwrap();
    let said = beside.other.unwrap_err().to_string();
    assert!(
        said.contains("no measured latency was kept with it, for container reads none, and nomora places by it"),
        "{said}"
    );
    // Where nobody measured there was nothing to keep.
    let (unmeasured, _) = with_latency(&["container"], 0);
    assert!(unmeasured.all()[0].compare_with("nomora", nomora, None, &mut || false).unwrap().other.is_ok());
    let container = &busy.policies["container"];
    assert!(all[1].compare_with("container", container, None, &mut || false).unwrap().other.is_ok());
}

#[test]
fn performance_is_predicted_from_the_record_by_the_latency_that_it_was_decided_by() {
    let (mut busy, _) = with_latency(&["container", "nomora"], HOSTS * (HOSTS - 1));
    // What is measured afterwards says nothing of it.
    let [from, to] = [2, 3].map(|at: usize| busy.hosts[at].as_str().into());
    let rtts = [9_000].into_iter().collect();
    busy.harness.change(Change::Latency(Measured { from, to, path: 0, rtts, at: busy.harness.now }));
    busy.harness.publish();
    let all = busy.all();
    assert_eq!(all[0].predict(None, 3), None, "container predicts nothing");
    let live = busy.harness.engine.generation();
    let found = all[1].predict(Some(&live.snapshot), 3).unwrap();
    assert_eq!((found.root.as_str(), &found.root_group, &*found.curve), (&*busy.hosts[2], &None, "memcached"));
    let names: Vec<&str> = found.groups.iter().map(|group| &*group.group).collect();
    let counts: Vec<u32> = found.groups.iter().map(|group| group.placed.iter().map(|at| at.count).sum()).collect();
    assert_eq!((names, counts), (vec!["server", "worker"], vec![1, 4]));
    let pair = |from: usize, to: usize| 30 + (from * (HOSTS - 1) + to - usize::from(to > from)) as u64;
    for group in &found.groups {
        assert!(group.alternatives.len() == 3 && group.alternatives.iter().all(|at| at.count == 0), "{group:?}");
        for place in group.placed.iter().chain(&group.alternatives) {
            let at = busy.hosts.iter().position(|host| *host == place.host.as_str()).unwrap();
            let expected = if at == 2 {
                (10, "same_host", None)
            } else {
                (pair(2, at).max(pair(at, 2)), "hosts", Some(Micros::ZERO))
            };
            assert_eq!((place.rtt.0, place.basis, place.age), expected, "{}", place.host);
        }
        let worst = group.placed.iter().map(|at| at.performance).fold(1.0, f64::min);
        assert!(group.alternatives.iter().all(|at| at.performance <= worst), "the placement is optimal: {group:?}");
    }
}

#[test]
fn the_same_request_under_another_policy_stands_beside_with_both_objectives() {
    let mut busy = Busy::new(9, RecordSettings::default());
    let mut asked = request("one", &[("map", 6), ("reduce", 2)]);
    asked.input_paths = vec!["/in/a".into()];
    let bytes = Bytes(1 << 30);
    asked.edges = vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes }];
    let asked = Arc::new(asked);
    busy.ask_for(&asked, "spread", false);
    while busy.recorded == 0 {
        busy.commit();
    }
    let leases = busy.harness.leases();
    let record = busy.all().remove(0);
    let container = Arc::clone(&busy.policies["container"]);
    let beside = record.compare_with("container", &container, None, &mut || false).unwrap();
    let other = beside.other.unwrap();
    assert_eq!((&*other.policy, other.hints.iter().map(|hint| hint.count).sum::<u32>()), ("container", 8));
    let [spread, by_container] = &beside.rated[..] else { panic!("{:?}", beside.rated) };
    assert_eq!((&*spread.policy, &*by_container.policy), ("spread", "container"));
    let (then, now) = (by_container.recorded.unwrap(), by_container.other.unwrap());
    assert_eq!(Some(now), other.terms.objective, "its own objective of its own placement");
    assert!(now <= then, "it is at least as good by its own measure: {now} {then}");
    assert_eq!(by_container.gain, Some((then - now) / then));
    assert_eq!(busy.harness.leases(), leases, "nothing was leased");
}

#[test]
fn the_placement_that_is_rated_is_the_one_that_is_shown_wherever_its_time_ended() {
    let mut busy = Busy::new(9, RecordSettings::default());
    let mut asked = request("one", &[("map", 6), ("reduce", 2)]);
    asked.input_paths = vec!["/in/a".into()];
    let bytes = Bytes(1 << 30);
    asked.edges = vec![GroupEdge { from: GroupIdx(0), to: GroupIdx(1), pattern: EdgePattern::AllToAll, bytes }];
    busy.ask_for(&Arc::new(asked), "spread", false);
    while busy.recorded == 0 {
        busy.commit();
    }
    let record = busy.all().remove(0);
    let container = Arc::clone(&busy.policies["container"]);
    let mut looks = 0;
    record
        .compare_with("container", &container, None, &mut || {
            looks += 1;
            false
        })
        .unwrap()
        .other
        .unwrap();
    let mut costs = std::collections::BTreeSet::new();
    for end in (0..=looks).step_by((looks / 16).max(1)) {
        let mut looked = 0;
        let mut stop = || {
            looked += 1;
            looked > end
        };
        let beside = record.compare_with("container", &container, None, &mut stop).unwrap();
        let other = beside.other.unwrap();
        assert_eq!(beside.rated[1].other, other.terms.objective, "stopped after {end} of {looks} looks");
        costs.insert(other.terms.objective.map(f64::to_bits));
    }
    assert!(costs.len() > 1, "where it is stopped matters, or nothing is tested");
}

#[test]
fn a_dispatched_decision_is_made_by_another_dispatcher_or_by_a_placer_from_the_same_record() {
    let mut busy = Busy::new(11, RecordSettings::default());
    let mut asked = request("one", &[("map", 8)]);
    asked.input_paths = vec!["/in/a".into()];
    busy.ask_for(&Arc::new(asked), "delay", true);
    while busy.recorded == 0 {
        busy.commit();
    }
    let record = busy.all().remove(0);
    assert!(record.replay(None).same);
    for name in ["nas", "fair", "container", "capacity"] {
        let policy = Arc::clone(&busy.policies[name]);
        let beside = record.compare_with(name, &policy, None, &mut || false).unwrap();
        let other = beside.other.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!(&*other.policy, name);
        assert!(!other.hints.is_empty(), "{name}");
        assert!(beside.terms.unwrap().iter().all(|terms| terms.remote_bytes.is_some()), "{name}");
    }
}

#[test]
fn a_sample_of_decisions_is_chosen_by_their_ids() {
    let tenth = RecordSettings { per_million: 100_000, ..RecordSettings::default() };
    let taken = (0..100_000).filter(|&id| tenth.takes(DecisionId::of(id))).count();
    assert!((9_500..10_500).contains(&taken), "{taken}");
    let none = RecordSettings { per_million: 0, ..tenth };
    assert!(
        (0..1_000).all(|id| !none.takes(DecisionId::of(id)) && RecordSettings::default().takes(DecisionId::of(id)))
    );
}
