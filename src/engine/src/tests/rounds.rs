//! Requests that are decided together, and each answered by itself.

use super::flows::shuffle;
use super::harness::EngineHarness;
use super::rebalance::{MANY, settled};
use crate::decision::WithheldReason;
use crate::records::{DecidedRequest, Probe, RequestOutcome, RoundInputs, RoundPosition};
use crate::rounds::{Gathering, Gathers, RoundSettings};
use crate::testing::{attempt, request};
use crate::{
    Answer, CommitOutcome, Decision, Mode, PlacerSettings, Proposal, RecordSettings, Records, Refusal, RoundMember,
    SelectedPolicy, may_gather, propose_together,
};
use hintd_model::cluster::{Gang, HintRequest, NamedResource, WhenFull};
use hintd_model::units::{DecisionId, Micros, Timestamp};
use hintd_policy::{Ended, Policy, registry};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An application's request for so many workers, whose master runs on a host.
fn of(application: u32, workers: u32, master: &str) -> HintRequest {
    let mut asked = request(&format!("r{application}"), &[("worker", workers)]);
    asked.attempt = attempt(application, 1);
    asked.am_host = Some(master.into());
    asked
}

fn shared(requests: Vec<HintRequest>) -> Vec<Arc<HintRequest>> {
    requests.into_iter().map(Arc::new).collect()
}

fn nomora(hosts: usize, mb: u64) -> EngineHarness {
    let mut harness = EngineHarness::with_nodes(hosts, mb);
    harness.places_by("nomora");
    harness
}

fn hinted(decision: &Decision) -> Vec<(String, u32)> {
    let placed = decision.hints.iter().filter(|hint| hint.expected_wait.is_none());
    placed.map(|hint| (hint.host.to_string(), hint.count)).collect()
}

fn committed(harness: &mut EngineHarness, at: usize, mut proposal: Proposal) -> Arc<Answer> {
    proposal.digest = 1 + at as u64;
    match harness.commit(proposal) {
        CommitOutcome::Committed(answer) => answer,
        other => panic!("not committed: {other:?}"),
    }
}

/// Without what differs from run to run.
fn alone(proposal: &Proposal) -> Decision {
    proposal.preview()
}

#[test]
fn a_round_of_one_is_what_it_would_be_alone() {
    let harness = nomora(4, 4096);
    let asked = shared(vec![of(1, 3, "h0")]);
    let mut together = harness.propose_together(&asked);
    let (one, same) = (together.remove(0).unwrap(), harness.propose(&asked[0]).unwrap());
    assert_eq!((alone(&one), one.preview().round), (alone(&same), None));
}

#[test]
fn each_gets_its_own_leases_of_room_that_is_given_once() {
    let mut harness = nomora(4, 2048);
    let asked = shared((1..=4).map(|app| of(app, 2, "h0")).collect());
    let proposals = harness.propose_together(&asked);
    let mut leased = 0;
    for (at, proposal) in proposals.into_iter().enumerate() {
        let proposal = proposal.unwrap();
        assert_eq!(proposal.preview().round.unwrap().requests, 4);
        let answer = committed(&mut harness, at, proposal);
        assert_eq!(answer.decision.attempt, attempt(at as u32 + 1, 1));
        leased += answer.leases().count();
    }
    assert_eq!(leased, 8, "no commit lost its room to another of the round");
}

#[test]
fn one_that_is_refused_hurts_no_other() {
    let harness = nomora(4, 2048);
    let sound = shared(vec![of(1, 2, "h0"), of(2, 2, "h2")]);
    let expected: Vec<Decision> =
        harness.propose_together(&sound).into_iter().map(|found| found.unwrap().preview()).collect();
    let mut nowhere = of(3, 2, "h0");
    nowhere.groups[0].size = NamedResource { memory_mb: 1 << 40, vcores: 1, named: Vec::new() };
    let none = of(4, 0, "h0");
    let mut full = of(5, 100, "h0");
    (full.gang, full.when_full) = (Gang::All, WhenFull::Fail);
    let mixed = vec![Arc::new(nowhere), Arc::clone(&sound[0]), Arc::new(none), Arc::clone(&sound[1]), Arc::new(full)];
    let found = harness.propose_together(&mixed);
    assert!(matches!(&found[0], Err(Refusal::Invalid { .. })), "{:?}", found[0]);
    assert!(matches!(&found[2], Err(Refusal::Invalid { field, .. }) if field == "groups[0].count"));
    assert!(found[4].is_err(), "{:?}", found[4]);
    let same = [&found[1], &found[3]].map(|found| found.as_ref().unwrap().preview());
    assert_eq!(same.to_vec(), expected);
}

#[test]
fn one_that_is_kept_back_or_placed_as_a_part_takes_nothing_from_the_others() {
    let harness = nomora(2, 2048);
    let policy = registry::with_defaults("nomora").unwrap();
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*policy, mode: Mode::On, name: "nomora" };
    let mut part = of(1, 1, "h0");
    part.groups[0].whole = 4;
    let asked = shared(vec![part, of(2, 4, "h0"), of(3, 4, "h0"), of(4, 1, "h0")]);
    let (own, held_out) =
        (&harness.placer, PlacerSettings { withhold: Some(WithheldReason::Holdout), ..harness.placer.clone() });
    let decide = |members: &[(usize, &PlacerSettings)]| -> Vec<Decision> {
        let members: Vec<_> =
            members.iter().map(|&(at, settings)| RoundMember { request: &asked[at], settings }).collect();
        let found = propose_together(&harness.engine.generation(), &chosen, &members, harness.now, &mut || false);
        found.into_iter().map(|found| found.unwrap().preview()).collect()
    };
    // Four containers have room. What a part is placed with, beside itself, is not leased.
    let found = decide(&[(0, own), (1, own)]);
    assert_eq!((found[1].without_room, found[1].round), (0, None), "{:?}", found[1].blocked);
    assert_eq!((found[0].round, found[0].hints.iter().map(|hint| hint.count).sum::<u32>()), (None, 1));
    let found = decide(&[(2, &held_out), (1, own), (3, own)]);
    assert_eq!((found[0].withheld.unwrap().reason, found[0].round), (WithheldReason::Holdout, None));
    assert_eq!(found[1..].iter().map(|found| found.without_room).collect::<Vec<_>>(), [0, 1]);
    assert!(found[1..].iter().all(|found| found.round.unwrap().requests == 2));
}

#[test]
fn one_whose_traffic_is_under_a_chain_is_decided_alone() {
    let mut harness = settled(MANY, 0, |_| ());
    harness.places_by("nomora");
    let chained = shuffle(1, "job-1", (2, 2), 800 << 20);
    let plain = |application| {
        let mut asked = request(&format!("r{application}"), &[("worker", 2)]);
        asked.attempt = attempt(application, 1);
        asked
    };
    let found = harness.propose_together(&shared(vec![plain(2), chained, plain(3)]));
    let rounds = found.into_iter().map(|found| found.unwrap().preview().round.map(|round| round.requests));
    assert_eq!(rounds.collect::<Vec<_>>(), [Some(2), None, Some(2)]);
}

#[test]
fn one_in_parts_or_that_is_leased_nothing_does_not_gather() {
    let harness = nomora(2, 2048);
    let policy = registry::with_defaults("nomora").unwrap();
    let generation = harness.engine.generation();
    let may = |request: &HintRequest, mode| {
        let chosen = SelectedPolicy { policy: &*policy, baseline: &*policy, mode, name: "nomora" };
        may_gather(&generation, request, &chosen, &harness.placer.chains)
    };
    let mut part = of(1, 1, "h0");
    assert!(may(&part, Mode::On) && !may(&part, Mode::Shadow) && !may(&part, Mode::Off));
    part.groups[0].whole = 2;
    assert!(!may(&part, Mode::On));
    let capacity = registry::with_defaults("capacity").unwrap();
    let chosen = SelectedPolicy { policy: &*capacity, baseline: &*capacity, mode: Mode::On, name: "capacity" };
    assert!(!may_gather(&generation, &of(1, 1, "h0"), &chosen, &harness.placer.chains));
}

#[test]
fn other_hosts_that_are_named_have_room_beside_the_round() {
    let harness = nomora(3, 1024);
    // One container on each host: of the third host nobody may be told who took the first or the second.
    let asked = shared(vec![of(1, 1, "h0"), of(2, 1, "h1")]);
    let found = harness.propose_together(&asked);
    for found in found {
        let decision = found.unwrap().preview();
        let fallbacks: Vec<_> = decision.hints[0].fallbacks.iter().map(ToString::to_string).collect();
        assert_eq!((decision.round.unwrap().requests, fallbacks), (2, vec!["h2".to_owned()]));
    }
}

#[test]
fn who_gets_less_is_told_why_and_how_long_beside_what_the_others_take() {
    let mut harness = nomora(2, 2048);
    let asked = shared(vec![of(1, 3, "h0"), of(2, 3, "h0")]);
    let proposals: Vec<Proposal> = harness.propose_together(&asked).into_iter().map(Result::unwrap).collect();
    let short = proposals[1].preview();
    assert_eq!((proposals[0].preview().without_room, short.without_room), (0, 2));
    assert_eq!((&*short.blocked[0].constraint, short.blocked[0].count), ("leased", 2), "{:?}", short.blocked);
    let waits: u32 = short.hints.iter().map(|hint| hint.count).sum();
    assert_eq!(waits, 3, "the others are told where to wait");
    // As if it had been asked for after the first.
    let first = proposals.into_iter().next().unwrap();
    committed(&mut harness, 0, first);
    harness.publish();
    let after = harness.propose(&asked[1]).unwrap().preview();
    assert_eq!((hinted(&after), after.blocked, after.hints.len()), (hinted(&short), short.blocked, short.hints.len()));
}

#[test]
fn a_gang_that_can_not_come_whole_leaves_its_room_to_the_others() {
    let harness = nomora(2, 2048);
    let mut gang = of(1, 4, "h0");
    gang.gang = Gang::All;
    let wanted = |requests: Vec<HintRequest>| -> Vec<u64> {
        let found = harness.propose_together(&shared(requests));
        found.iter().map(|found| found.as_ref().unwrap().wanted()).collect()
    };
    assert_eq!(wanted(vec![of(2, 1, "h0"), gang.clone(), of(3, 3, "h0")]), [1, 0, 3]);
    assert_eq!(wanted(vec![gang, of(2, 1, "h0")]), [4, 0]);
}

/// What a round and the same requests one after the other cost, in the policy's objective.
fn costs(seed: u64) -> Option<(f64, f64)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let hosts = random.random_range(2..8);
    let mut harness = nomora(hosts, 1024 * random.random_range(1..5));
    let requests = (1..random.random_range(3..8)).map(|app| {
        let mut asked = of(app, random.random_range(1..5), &format!("h{}", random.random_range(0..hosts)));
        asked.groups[0].size.memory_mb = 1024 * random.random_range(1..3);
        asked.queue = ["a", "b"][random.random_range(0..2)].into();
        asked
    });
    let requests = shared(requests.collect());
    let cost = |decision: &Decision| decision.terms.objective.unwrap_or(0.0) + 10.01 * f64::from(decision.without_room);
    let found = harness.propose_together(&requests);
    let found: Vec<Proposal> = found.into_iter().map(Result::ok).collect::<Option<_>>()?;
    let together: f64 = found.iter().map(|found| cost(&found.preview())).sum();
    if let Some(note) = found[0].preview().round.filter(|note| note.requests as usize == requests.len()) {
        assert!((note.cost - together).abs() < 1e-6, "seed {seed}: {note:?}, {together}");
    }
    let mut in_turn = 0.0;
    for (at, asked) in requests.iter().enumerate() {
        let proposal = harness.propose(asked).ok()?;
        in_turn += cost(&committed(&mut harness, at, proposal).decision);
        harness.publish();
    }
    Some((together, in_turn))
}

#[test]
fn a_round_costs_no_more_than_its_requests_one_after_the_other() {
    let mut held = 0;
    for seed in 0..300 {
        let Some((together, in_turn)) = costs(seed) else { continue };
        assert!(together <= in_turn + 1e-6, "seed {seed}: {together} together, {in_turn} in turn");
        held += 1;
    }
    assert!(held > 200, "{held} rounds were compared");
}

/// Decides a round, stopped at a look, and records each decision under an id of its own.
fn recorded(harness: &EngineHarness, requests: &[Arc<HintRequest>], until: u64) -> (Records, Vec<DecisionId>) {
    let [policy, baseline]: [Arc<dyn Policy>; 2] =
        ["nomora", "capacity"].map(|name| registry::with_defaults(name).unwrap().into());
    let (generation, settings) = (harness.engine.generation(), PlacerSettings { steps: 300, ..harness.placer.clone() });
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*baseline, mode: Mode::On, name: "nomora" };
    let member = |request| RoundMember { request, settings: &settings };
    let members: Vec<RoundMember<'_>> = requests.iter().map(member).collect();
    let (mut probe, mut looks) = (Probe::default(), 0);
    let mut stop = || {
        looks += 1;
        probe.look(looks >= until)
    };
    let found = propose_together(&generation, &chosen, &members, harness.now, &mut stop);
    let inputs = Arc::new(RoundInputs::new(&generation, &members));
    let mut records = Records::new(RecordSettings::default());
    let mut ids = Vec::new();
    for (at, found) in found.into_iter().enumerate() {
        let id = DecisionId::of(1 + at as u64);
        let read = found.as_ref().ok().map(Proposal::paths_read);
        let came = match found {
            Err(refusal) => RequestOutcome::Refused { decision: id, at: harness.now, refusal },
            Ok(proposal) => {
                let mut answer = (*crate::testing::answer("r", 1)).clone();
                answer.decision = Decision { id, ..proposal.preview() };
                RequestOutcome::Answered { answer: Arc::new(answer), draft: None, dispatcher: None }
            }
        };
        records.take(DecidedRequest {
            request: Arc::clone(&requests[at]),
            queue_named: false,
            policy: Arc::clone(&policy),
            name: "nomora".into(),
            baseline: Arc::clone(&baseline),
            mode: Mode::On,
            settings: settings.clone(),
            now: harness.now,
            stopped: probe.stopped(),
            follows: false,
            generation: Arc::clone(&generation),
            read,
            round: Some(RoundPosition { inputs: Arc::clone(&inputs), at }),
            came,
        });
        ids.push(id);
    }
    (records, ids)
}

#[test]
fn a_record_makes_its_decision_again_with_the_others_of_the_round() {
    let mut harness = nomora(4, 2048);
    harness.ask(of(9, 1, "h3"));
    let mut invalid = of(3, 1, "h1");
    invalid.input_paths.push("/nowhere".into());
    let mut full = of(4, 50, "h0");
    (full.gang, full.when_full) = (Gang::All, WhenFull::Fail);
    let asked = vec![of(1, 3, "h0"), of(2, 3, "h0"), invalid, full, of(5, 4, "h2"), of(9, 2, "h3")];
    let asked = shared(asked);
    for until in [1, 2, 4, 9, u64::MAX] {
        let (mut records, ids) = recorded(&harness, &asked, until);
        for &id in &ids {
            let record = records.get(id, harness.now).unwrap();
            let again = record.replay(None);
            assert!(again.same, "{id:?}, stopped at {until}: {:?}", again.differences);
            // Another policy decides it alone.
            let spread: Arc<dyn Policy> = registry::with_defaults("spread").unwrap().into();
            if record.answered().is_ok() {
                let compared = record.compare_with("spread", &spread, None, &mut || false).unwrap();
                assert!(compared.other.unwrap().round.is_none());
            }
        }
        assert!(records.kept().bytes > 0);
        records.reload(RecordSettings { bytes: 0, ..RecordSettings::default() });
        assert_eq!((records.kept().decisions, records.kept().bytes), (0, 0), "all that was held is given back");
    }
}

#[test]
fn a_round_that_is_over_its_time_gives_everybody_an_answer() {
    let harness = nomora(4, 4096);
    let asked = shared((1..=3).map(|app| of(app, 2, "h0")).collect());
    let placed = |until| -> Vec<u32> {
        let (records, ids) = recorded(&harness, &asked, until);
        assert_eq!(ids.len(), 3);
        let one = |id: &DecisionId| {
            let record = records.get(*id, harness.now).unwrap();
            let decision = &record.answered().unwrap().decision;
            let (placed, cut_short) = (hinted(decision), decision.ended == Ended::Deadline);
            let placed: u32 = placed.iter().map(|(_, count)| count).sum();
            assert!(placed == 2 || cut_short, "{placed} of 2, and {:?}", decision.ended);
            assert_eq!(decision.round.unwrap().requests, 3);
            placed
        };
        ids.iter().map(one).collect()
    };
    assert_eq!(placed(1), [0; 3]);
    assert_eq!(placed(u64::MAX), [2; 3]);
    let between: BTreeSet<Vec<u32>> = (2..20).map(placed).collect();
    assert!(between.len() > 1, "{between:?}");
}

/// A request on its way, in virtual time.
struct OnItsWay {
    request: Arc<HintRequest>,
    deadline: Timestamp,
}

impl Gathers for OnItsWay {
    type Key = hintd_model::units::RequestId;

    fn key(&self) -> Self::Key {
        self.request.id.clone()
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }
}

#[test]
fn in_virtual_time_rounds_gather_are_decided_one_by_one_and_all_are_in_time() {
    let (mut harness, mut random) = (nomora(8, 8192), ChaCha8Rng::seed_from_u64(3));
    let settings = RoundSettings { every: Micros::from_millis(50), requests: 8 };
    let each = Micros::from_millis(2);
    let mut arrivals: Vec<u64> = (0..60).map(|_| random.random_range(0..400_000)).collect();
    arrivals.sort_unstable();
    let mut arrivals: std::collections::VecDeque<Timestamp> =
        arrivals.into_iter().map(|at| harness.now.plus(Micros(at))).collect();
    let mut gathering: Gathering<OnItsWay> = Gathering::default();
    let mut decided: Option<(Timestamp, Vec<OnItsWay>)> = None;
    let (mut asked, mut answered, mut sizes) = (0, 0, Vec::new());
    loop {
        let ends = decided.as_ref().map(|(at, _)| *at);
        let Some(next) = [arrivals.front().copied(), gathering.next(), ends].into_iter().flatten().min() else { break };
        harness.now = harness.now.max(next);
        if ends == Some(next) {
            let (_, round) = decided.take().unwrap();
            let requests: Vec<_> = round.iter().map(|member| Arc::clone(&member.request)).collect();
            for (member, found) in round.iter().zip(harness.propose_together(&requests)) {
                assert!(harness.now <= member.deadline, "it is in time");
                answered += 1;
                committed(&mut harness, answered, found.unwrap());
            }
            gathering.decided(round.len(), Micros(each.0 * round.len() as u64));
            gathering.ended();
            harness.publish();
        } else if arrivals.front() == Some(&next) {
            arrivals.pop_front();
            asked += 1;
            let request = Arc::new(of(asked, 1, &format!("h{}", asked % 8)));
            let deadline = harness.now.plus(Micros::from_millis(random.random_range(150..1_000)));
            assert!(gathering.has_time(harness.now, deadline, &settings));
            gathering.join(OnItsWay { request, deadline }, harness.now, deadline, settings);
        } else {
            assert!(decided.is_none(), "one at a time");
            let round = gathering.begin(harness.now);
            sizes.push(round.len());
            decided = Some((harness.now.plus(Micros(each.0 * round.len() as u64)), round));
        }
    }
    assert_eq!((asked, answered, gathering.waiting()), (60, 60, 0));
    assert!(sizes.iter().all(|size| (1..=8).contains(size)) && sizes.iter().max() > Some(&4), "{sizes:?}");
}
