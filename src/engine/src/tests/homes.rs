//! Where data goes that recurring jobs read and no plan covers.

use super::harness::{EngineHarness, registration};
use super::plans::{packer, plan};
use crate::plans::homes::{AGE_MAX, DataHomes, GIVEN_MAX, READERS_MAX, UNASKED_MAX};
use crate::plans::input_homes::{InputHomes, InputTasks};
use crate::plans::replicas::{ReplicaPlan, ReplicaRequest, Why};
use crate::prediction::{Run, steady_path};
use crate::testing::attempt;
use crate::{LearnedGroup, LearnedRun, Refusal};
use hintd_model::cluster::{Change, Heartbeat, NamedResource, NodeState, Registration};
use hintd_model::units::{Bytes, Micros, RackPath, Timestamp};
use hintd_policy::{Policy, registry};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const MB: u64 = 1 << 20;
const SECOND: Micros = Micros::from_secs(1);

/// Four racks of two nodes.
fn cluster() -> EngineHarness {
    EngineHarness::with_nodes(8, 8_192)
}

/// Eight maps that read those paths, and four reduces.
fn run(finished: u64, paths: &[&str], shuffle_mb: u64) -> LearnedRun {
    let group = |name: &str, count, paths: &[&str]| {
        let input_paths = paths.iter().map(|path| Arc::from(*path)).collect();
        LearnedGroup { name: name.into(), count, memory_mb: 2_048, input_paths, input: Bytes::ZERO }
    };
    let whole = Run {
        submitted: Timestamp(finished),
        maps: (8, SECOND),
        reduces: (4, SECOND),
        input: Bytes(shuffle_mb * MB),
        shuffle: Bytes(shuffle_mb * MB),
        application: None,
        counted: true,
        ran_on: None,
    };
    let groups = vec![group("p20", 8, paths), group("p10", 4, &[])];
    LearnedRun { finished: Timestamp(finished), groups, edges: vec![], whole: Some(whole) }
}

fn told(harness: &mut EngineHarness, key: &str, run: &LearnedRun) {
    assert!(harness.engine.learnt(&key.into(), run, harness.now));
    harness.drain();
    harness.publish();
}

fn ask(path: &str) -> ReplicaRequest {
    ReplicaRequest { path: path.into(), reader: None, replication: 3, blocks: 4, seed: None }
}

fn advise_as(
    homes: &mut Mutex<DataHomes>,
    harness: &EngineHarness,
    ask: &ReplicaRequest,
) -> Result<ReplicaPlan, Refusal> {
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let packer = packer();
    let policy_of = |name: &str| match name {
        "joint" => Some(&joint),
        "jobpacker" => Some(&packer),
        _ => None,
    };
    DataHomes::advise(homes, &harness.engine.generation(), ask, (&*joint, policy_of), harness.now)
}

fn advise(homes: &mut Mutex<DataHomes>, harness: &EngineHarness, path: &str) -> ReplicaPlan {
    advise_as(homes, harness, &ask(path)).unwrap()
}

fn racks(found: &ReplicaPlan) -> Vec<String> {
    found.racks.iter().map(|(rack, _)| rack.to_string()).collect()
}

#[test]
fn files_of_one_directory_and_their_blocks_go_to_the_homes_of_who_reads_it() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    assert_eq!(advise(&mut homes, &harness, "/in").reason, Why::NoPlan, "nobody is known to read it");
    told(&mut harness, "sort", &run(1, &["/in", "/other"], 1_000));
    let first = advise(&mut homes, &harness, "/in/part-m-00000");
    assert_eq!(
        (first.reason, first.reader.as_deref(), &first.plan, &first.job),
        (Why::Homes, Some("sort"), &None, &None)
    );
    assert_eq!((first.racks.len(), first.racks[0].1.len()), (1, 2), "{:?}", first.racks);
    assert_eq!(first.blocks.len(), 4);
    for block in &first.blocks {
        let placed: Vec<_> = block.iter().map(|replica| replica.place.as_ref().map(|(rack, _)| rack)).collect();
        assert_eq!(placed, [Some(&first.racks[0].0), None, None], "the others are HDFS's");
    }
    for path in ["/in", "/in/part-m-00007", "hdfs://nn:8020/in/x", "/other/2026/11/22"] {
        assert_eq!(racks(&advise(&mut homes, &harness, path)), racks(&first), "{path}");
    }
    for path in ["/in2", "/", "/inn/x", "/out/in"] {
        assert_eq!(advise(&mut homes, &harness, path).reason, Why::NoPlan, "{path}");
    }
    assert_eq!(homes.get_mut().unwrap().len(), 1);
    let named = ReplicaRequest { reader: Some("sort".into()), ..ask("/tmp/x") };
    assert_eq!(racks(&advise_as(&mut homes, &harness, &named).unwrap()), racks(&first));
    let unknown = ReplicaRequest { reader: Some("sord".into()), ..ask("/in") };
    assert_eq!(advise_as(&mut homes, &harness, &unknown).unwrap().reason, Why::NoPlan, "without a plan as before");
}

#[test]
fn what_earlier_runs_read_has_homes_though_the_last_one_read_something_else() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    for (nth, path) in (1..).zip(["/in1", "/in2", "/logs/2026/11/21", "/in2"]) {
        told(&mut harness, "sort", &run(nth, &[path], 1_000));
    }
    for path in ["/in1/part-0", "/in2/part-0", "/logs/2026/11/22/part-0"] {
        assert_eq!(advise(&mut homes, &harness, path).reason, Why::Homes, "{path}");
    }
    let read = |harness: &EngineHarness| harness.engine.generation().history.get(&"sort".into()).unwrap().read.len();
    assert_eq!(read(&harness), 3, "each once, numbers left out");
    for nth in 0..100 {
        told(&mut harness, "sort", &run(10 + nth, &[&format!("/a{nth}")], 1_000));
    }
    assert_eq!(read(&harness), 32, "the latest");
    assert_eq!(advise(&mut homes, &harness, "/a99/part-0").reason, Why::Homes);
    assert_eq!(advise(&mut homes, &harness, "/in1/part-0").reason, Why::NoPlan, "forgotten");
}

#[test]
fn who_reads_data_that_was_sent_home_is_told_where_unless_its_blocks_lie_elsewhere() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    let tasks = |outstanding, racks: &[(&str, u32)]| {
        let by_rack = racks.iter().map(|&(rack, count)| (rack.into(), count)).collect();
        InputTasks { recurring_key: Some("sort".into()), outstanding, by_rack, may_gather: true }
    };
    let of = |homes: &mut Mutex<DataHomes>, harness: &EngineHarness, tasks: &InputTasks| {
        let given =
            |key: &str| homes.get_mut().unwrap().given(attempt(1, 1).application, key, harness.now).map(<[_]>::to_vec);
        InputHomes::of(tasks, given, |_| None, &harness.engine.generation())
    };
    assert_eq!(of(&mut homes, &harness, &tasks(0, &[])), InputHomes::NoneGiven);
    let found = advise(&mut homes, &harness, "/in/part-0");
    let home = found.racks[0].0.to_string();
    let patience = Micros::from_secs(30);
    let at_home = InputHomes::Homes { racks: found.racks.clone(), patience, gathered: false };
    assert_eq!(of(&mut homes, &harness, &tasks(0, &[])), at_home, "none is asked for yet");
    assert_eq!(of(&mut homes, &harness, &tasks(4, &[(&home, 4), ("/else", 4)])), at_home);
    assert_eq!(of(&mut homes, &harness, &tasks(4, &[(&home, 3), ("/else", 4)])), InputHomes::NotAtHome);
    assert_eq!(of(&mut homes, &harness, &tasks(4, &[])), InputHomes::NotAtHome);
    // Without a network the uplink of a rack of two nodes is taken to carry 500 MB a second: 100,000 MiB take longer than 30 s.
    told(&mut harness, "sort", &run(2, &["/in"], 100_000));
    let InputHomes::Homes { patience, .. } = of(&mut homes, &harness, &tasks(0, &[])) else { panic!("it has homes") };
    assert_eq!(patience.as_millis(), 100_000 * MB / 500_000);
    told(&mut harness, "sort", &run(3, &["/in"], 1_000));
    let nobody = InputTasks { recurring_key: None, ..tasks(0, &[]) };
    assert_eq!(of(&mut homes, &harness, &nobody), InputHomes::NoKey);
    harness.now = Timestamp(harness.now.0 + AGE_MAX.0);
    assert_eq!(of(&mut homes, &harness, &tasks(4, &[(&home, 4)])), at_home, "longer than new data would go there");
    harness.now = Timestamp(harness.now.0 + GIVEN_MAX.0);
    assert_eq!(of(&mut homes, &harness, &tasks(4, &[(&home, 4)])), InputHomes::NoneGiven);
}

#[test]
fn whose_input_is_not_where_it_was_sent_is_gathered_like_any_and_stays_so() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let learned = run(1, &["/in"], 20_000);
    let whole = learned.whole.map(|whole| Run { input: Bytes(200 * MB), ..whole });
    told(&mut harness, "sort", &LearnedRun { whole, ..learned });
    let home = advise(&mut homes, &harness, "/in/part-0").racks[0].0.clone();
    let generation = harness.engine.generation();
    let racks: Vec<RackPath> = generation.snapshot.statics.racks.clone();
    let other = racks.iter().find(|rack| **rack != home).unwrap().clone();
    let mut of = |number: u32, outstanding: u32, lies: &[(&RackPath, u32)], may_gather: bool| {
        let by_rack = lies.iter().map(|&(rack, count)| (rack.clone(), count)).collect();
        let tasks = InputTasks { recurring_key: Some("sort".into()), outstanding, by_rack, may_gather };
        let attempt = attempt(number, 1);
        let (homes, places) = (homes.get_mut().unwrap(), joint.as_place_data().unwrap());
        let given = homes.given(attempt.application, "sort", harness.now).map(<[_]>::to_vec);
        let gathers = |key: &Arc<str>| homes.gather(&generation, (attempt, key, &tasks), places, harness.now);
        InputHomes::of(&tasks, |_| given, gathers, &generation)
    };
    let racks_of = |found: InputHomes| match found {
        InputHomes::Homes { racks, gathered, .. } => {
            (racks.into_iter().map(|(rack, _)| rack).collect::<Vec<_>>(), gathered)
        }
        other => panic!("{other:?}"),
    };
    // Others want the uplinks.
    for beside in 7..=9 {
        of(beside, 4, &[(&other, 4)], true);
    }
    assert_eq!(racks_of(of(1, 0, &[], true)), (vec![home.clone()], false), "nobody knows yet where its input lies");
    assert_eq!(of(1, 4, &[(&home, 1), (&other, 3)], false), InputHomes::NotAtHome, "who asks can't keep it elsewhere");
    let (first, gathered) = racks_of(of(1, 4, &[(&home, 1), (&other, 3)], true));
    assert!(gathered && first.len() == 1, "{first:?}");
    assert_eq!(racks_of(of(1, 1, &[(&home, 1)], true)), (first.clone(), true), "though what is left lies there");
    assert_eq!(racks_of(of(1, 0, &[], true)), (first, true));
    assert_eq!(
        racks_of(of(2, 4, &[(&home, 4), (&other, 4)], true)),
        (vec![home], false),
        "whose input is there goes there"
    );
}

#[test]
fn attempts_whose_data_was_sent_nowhere_are_gathered_each_in_its_racks_for_good() {
    let (mut harness, mut homes) = (cluster(), DataHomes::default());
    let key: Arc<str> = "sort".into();
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let mut of = |harness: &EngineHarness, number: u32, may_gather: bool| {
        let tasks =
            InputTasks { recurring_key: Some(Arc::clone(&key)), outstanding: 4, may_gather, ..Default::default() };
        let places = joint.as_place_data().unwrap();
        let generation = harness.engine.generation();
        let gathers =
            |key: &Arc<str>| homes.gather(&generation, (attempt(number, 1), key, &tasks), places, harness.now);
        InputHomes::of(&tasks, |_| None, gathers, &generation)
    };
    assert_eq!(of(&harness, 1, true), InputHomes::NoneGiven, "nothing is known of earlier runs");
    // A hundred times as much is shuffled as is read.
    let reads = |last, input_mb: u64, shuffle_mb| LearnedRun {
        whole: run(last, &[], shuffle_mb).whole.map(|whole| Run { input: Bytes(input_mb * MB), ..whole }),
        ..run(last, &[], shuffle_mb)
    };
    told(&mut harness, "sort", &reads(1, 200, 20_000));
    for beside in 7..=9 {
        of(&harness, beside, true);
    }
    let InputHomes::Homes { racks: first, gathered: true, .. } = of(&harness, 1, true) else {
        panic!("it is gathered")
    };
    assert_eq!(first.len(), 1);
    assert_eq!(of(&harness, 2, false), InputHomes::NoneGiven, "who asks can't keep it there");
    let InputHomes::Homes { racks: second, gathered: true, .. } = of(&harness, 2, true) else {
        panic!("so is another")
    };
    assert_ne!(first[0].0, second[0].0, "the first one's rack has much to do");
    // What is learnt meanwhile is for later attempts.
    told(&mut harness, "sort", &reads(2, 40_000, 20_000));
    let InputHomes::Homes { racks: again, .. } = of(&harness, 1, true) else { panic!("it stays gathered") };
    assert_eq!(again, first);
    assert_eq!(of(&harness, 3, true), InputHomes::NoneGiven, "it reads more than it shuffles");
    assert_eq!(InputHomes::Homes { racks: first, patience: Micros(0), gathered: true }.as_str(), "gathered");
}

#[test]
fn an_attempt_is_gathered_anew_once_it_says_where_its_blocks_lie_and_then_for_good() {
    let (mut harness, mut homes) = (cluster(), DataHomes::default());
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let learned = run(1, &[], 20_000);
    let whole = learned.whole.map(|whole| Run { input: Bytes(200 * MB), ..whole });
    told(&mut harness, "sort", &LearnedRun { whole, ..learned });
    // These want the uplinks, and leave next to nothing to be done in any rack.
    let light = run(1, &[], 100);
    let at_once = (1, Micros::ZERO);
    let whole = light.whole.map(|whole| Run { input: Bytes(MB), maps: at_once, reduces: at_once, ..whole });
    told(&mut harness, "light", &LearnedRun { whole, ..light });
    let generation = harness.engine.generation();
    let racks: Vec<RackPath> = generation.snapshot.statics.racks.clone();
    let mut asks = |number: u32, key: &str, blocks: Option<usize>| {
        // Six of six in one rack, one in each of the others.
        let by_rack = |most: usize| {
            racks.iter().enumerate().map(|(at, rack)| (rack.clone(), if at == most { 6 } else { 1 })).collect()
        };
        let tasks = blocks.map_or_else(InputTasks::default, |most| InputTasks {
            outstanding: 6,
            by_rack: by_rack(most),
            ..Default::default()
        });
        let asked = (attempt(number, 1), &key.into(), &tasks);
        homes.gather(&generation, asked, joint.as_place_data().unwrap(), harness.now)
    };
    assert_eq!(asks(6, "sort", None), None, "it is alone");
    for beside in 7..=9 {
        asks(beside, "light", None);
    }
    assert_eq!(asks(6, "sort", Some(0)), None, "and was told so");
    for (number, most) in (1_u32..).zip(0..racks.len()) {
        let first = asks(number, "sort", None).expect("it is gathered");
        assert_eq!(first, asks(number, "sort", None).unwrap());
        let there = vec![racks[most].clone()];
        assert_eq!(asks(number, "sort", Some(most)), Some(there.clone()), "where all of its blocks lie");
        assert_eq!(
            asks(number, "sort", Some((most + 1) % racks.len())),
            Some(there.clone()),
            "what is outstanding later is not looked at"
        );
        assert_eq!(asks(number, "sort", None), Some(there));
    }
}

#[test]
fn a_second_attempt_goes_where_the_first_ones_maps_ran_and_a_job_of_another_size_nowhere() {
    let (mut harness, mut homes) = (cluster(), DataHomes::default());
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let learned = run(1, &[], 20_000);
    let whole = learned.whole.map(|whole| Run { input: Bytes(200 * MB), ..whole });
    told(&mut harness, "sort", &LearnedRun { whole, ..learned });
    let generation = harness.engine.generation();
    let racks: Vec<RackPath> = generation.snapshot.statics.racks.clone();
    let mut asks = |(number, attempt_number): (u32, u32), most: usize, blocks: u32| {
        let count = |at: usize| if at == most { blocks } else { blocks / 4 };
        let by_rack = racks.iter().enumerate().map(|(at, rack)| (rack.clone(), count(at))).collect();
        let tasks = InputTasks { outstanding: blocks, by_rack, ..Default::default() };
        let asked = (attempt(number, attempt_number), &"sort".into(), &tasks);
        homes.gather(&generation, asked, joint.as_place_data().unwrap(), harness.now)
    };
    for beside in 7..=9 {
        asks((beside, 1), 0, 8);
    }
    let there = asks((1, 1), 2, 8);
    let elsewhere = racks.iter().position(|rack| !there.iter().flatten().any(|home| home == rack)).unwrap();
    assert!(there.is_some());
    assert_eq!(
        asks((1, 2), elsewhere, 2),
        there,
        "what is left of its blocks lies elsewhere, what its maps wrote does not"
    );
    // The last run had eight maps.
    assert_eq!(asks((2, 1), 2, 17), None);
    assert!(asks((3, 1), 2, 16).is_some());
    assert_eq!(asks((3, 1), 2, 17), None, "what it asked for first was a part");
    assert_eq!(asks((3, 1), 2, 4), None, "for good");
}

#[test]
fn nobody_is_gathered_on_nodes_with_labels() {
    let (mut harness, mut homes) = (EngineHarness::new(), DataHomes::default());
    for node in 0..8 {
        let mut of = registration(&format!("h{node}"), &format!("/rack{}", node / 2), 8_192);
        of.labels = if node < 4 { vec!["gpu".into()] } else { Vec::new() };
        harness.change(Change::Register(of));
        harness.beat(&format!("h{node}"), 0, Some(&[]));
    }
    harness.publish();
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    let learned = run(1, &[], 20_000);
    let whole = learned.whole.map(|whole| Run { input: Bytes(200 * MB), ..whole });
    told(&mut harness, "sort", &LearnedRun { whole, ..learned });
    let generation = harness.engine.generation();
    for number in 1..=8 {
        let asked = (attempt(number, 1), &"sort".into(), &InputTasks::default());
        let found = homes.gather(&generation, asked, joint.as_place_data().unwrap(), harness.now);
        let open = |rack: &RackPath| ["/rack2", "/rack3"].contains(&rack.as_str());
        assert!(found.iter().flatten().all(open), "{found:?}");
        assert!(number < 5 || found.is_some(), "beside others it is gathered");
    }
}

#[test]
fn an_attempt_is_gathered_for_the_sake_of_those_that_run_beside_it() {
    let (mut harness, mut homes) = (cluster(), DataHomes::default());
    let joint: Arc<dyn Policy> = registry::with_defaults("joint").unwrap().into();
    // It reads what it shuffles: alone it ends sooner in all racks.
    for key in ["even", "light"] {
        let learned = run(1, &[], if key == "even" { 2_000 } else { 0 });
        let whole = learned.whole.map(|whole| Run { input: Bytes(2_000 * MB), ..whole });
        told(&mut harness, key, &LearnedRun { whole, ..learned });
    }
    let mut asks = |harness: &EngineHarness, number: u32, key: &str| {
        let places = joint.as_place_data().unwrap();
        let asked = (attempt(number, 1), &key.into(), &InputTasks::default());
        homes.gather(&harness.engine.generation(), asked, places, harness.now)
    };
    assert_eq!(asks(&harness, 1, "light"), None);
    assert_eq!(asks(&harness, 2, "even"), None, "who shuffles nothing does not wait for uplinks");
    assert_eq!(asks(&harness, 3, "even"), None, "one more gains less than it costs");
    let of_three = asks(&harness, 4, "even").expect("two run beside it");
    assert!(!of_three.is_empty());
    // An hour later none of them asks any more.
    harness.now = Timestamp(harness.now.0 + Micros::from_secs(3_600).0);
    assert_eq!(asks(&harness, 5, "even"), None);
    assert_eq!(asks(&harness, 4, "even"), Some(of_three), "what was chosen for an attempt stays");
}

#[test]
fn readers_of_heavy_shuffles_get_racks_of_their_own_in_turns_until_work_is_done() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    let keys = ["a", "b", "c", "d"];
    for key in keys {
        told(&mut harness, key, &run(1, &[&format!("/{key}")], 20_000));
    }
    let mut used = BTreeSet::new();
    for key in keys {
        let found = advise(&mut homes, &harness, &format!("/{key}/part-0"));
        assert_eq!(found.racks.len(), 1, "{found:?}");
        used.extend(racks(&found));
    }
    assert_eq!(used.len(), 4, "what was homed before counts");
}

#[test]
fn numbered_files_go_to_several_homes_in_turns() {
    let (mut harness, mut homes) = (EngineHarness::with_nodes(6, 8_192), Mutex::<DataHomes>::default());
    // Two of three racks: one wave of maps, and fewer bytes on uplinks than in all.
    let mut wide = run(1, &["/in"], 400);
    wide.whole.as_mut().unwrap().maps = (16, Micros::from_secs(60));
    told(&mut harness, "wide", &wide);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let homes_of = racks(&advise(&mut homes, &harness, "/in"));
    assert_eq!(homes_of.len(), 2, "{homes_of:?}");
    for file in 0..homes_of.len() * 3 {
        let found =
            advise_as(&mut homes, &harness, &ReplicaRequest { blocks: 1, ..ask(&format!("/in/part-{file:05}")) });
        let (rack, _) = found.unwrap().blocks[0][0].place.clone().unwrap();
        *counts.entry(rack.to_string()).or_default() += 1;
    }
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), homes_of.into_iter().map(|rack| (rack, 3)).collect::<Vec<_>>());
}

#[test]
fn a_reader_of_little_shuffle_or_unknown_runs_leaves_it_to_hdfs_and_the_answer_says_why() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "light", &run(1, &["/light"], 1));
    told(&mut harness, "untold", &LearnedRun { whole: None, ..run(1, &["/untold"], 1_000) });
    for (path, why) in [("/light/x", Why::Everywhere), ("/untold/x", Why::NoEarlierRun)] {
        let found = advise(&mut homes, &harness, path);
        assert_eq!((found.reason, found.racks.len(), found.blocks.len()), (why, 0, 4), "{path}");
        assert!(found.reader.is_some() && found.blocks.iter().flatten().all(|replica| replica.place.is_none()));
    }
    let random = registry::with_defaults("random").unwrap();
    let policies = (&*random, |_: &str| None);
    let nothing = DataHomes::advise(&homes, &harness.engine.generation(), &ask("/light/x"), policies, harness.now);
    assert_eq!(nothing.unwrap().reason, Why::PolicyPlacesNoData);
}

#[test]
fn where_queues_go_by_classes_of_machines_each_class_gets_a_replica_whoever_reads() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    let by_class = registry::with_defaults("scale_up_out").unwrap();
    let advise = |harness: &EngineHarness, homes: &Mutex<DataHomes>, ask: &ReplicaRequest| {
        let policies = (&*by_class, |_: &str| None);
        DataHomes::advise(homes, &harness.engine.generation(), ask, policies, harness.now).unwrap()
    };
    let none = advise(&harness, &homes, &ask("/in/x"));
    assert_eq!((none.reason, none.racks.len()), (Why::RacksGone, 0), "all machines are of one class");
    for host in ["h0", "h1"] {
        let attributes = BTreeMap::from([("nm.yarn.io/hintd-class".into(), "scale-up".into())]);
        harness.change(Change::Register(Registration { attributes, ..registration(host, "/r0", 8_192) }));
        harness.beat(host, 0, Some(&[]));
    }
    harness.publish();
    for path in ["/in/x", "/nobody/reads/this"] {
        let found = advise(&harness, &homes, &ask(path));
        assert_eq!((found.reason, found.blocks.len()), (Why::Classes, 4), "{path}");
        for block in &found.blocks {
            let racks: Vec<&str> = block.iter().map(|replica| &*replica.place.as_ref().unwrap().0.0).collect();
            assert!(racks[0] == "/r0" && racks[1] != "/r0" && racks[1] == racks[2], "{racks:?}");
        }
        assert!(found.racks.iter().any(|(rack, hosts)| &*rack.0 == "/r0" && hosts.len() == 2), "{:?}", found.racks);
    }
    assert_eq!(homes.get_mut().unwrap().len(), 0, "nobody has homes by that");
}

#[test]
fn a_plan_that_has_the_reader_goes_first_and_others_go_home_beside_it() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "daily", &run(1, &["/logs/2026/11/21"], 1_000));
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    harness.keep("monday", plan(harness.now, &[("daily", "/r2", 4)])).unwrap();
    harness.activate("monday", true).unwrap();
    let planned = advise(&mut homes, &harness, "/logs/2026/11/22/part-0");
    assert_eq!((planned.reason, racks(&planned)), (Why::Planned, vec!["/r2".to_owned()]));
    let home = advise(&mut homes, &harness, "/in/part-0");
    assert_eq!((home.reason, home.plan.as_deref(), home.reader.as_deref()), (Why::Homes, Some("monday"), Some("sort")));
    assert_eq!(advise(&mut homes, &harness, "/nobody").reason, Why::NotPlanned);
    let typo = ReplicaRequest { reader: Some("dayly".into()), ..ask("/x") };
    assert!(advise_as(&mut homes, &harness, &typo).unwrap_err().to_string().contains("did you mean \"daily\""));
}

#[test]
fn homes_end_unasked_with_age_and_with_their_last_node() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    told(&mut harness, "other", &run(1, &["/other"], 1_000));
    advise(&mut homes, &harness, "/in/x");
    advise(&mut homes, &harness, "/other/x");
    let began = harness.now;
    let before = Micros(UNASKED_MAX.0 - 1);
    harness.now = began.plus(before);
    advise(&mut homes, &harness, "/in/x");
    assert_eq!(homes.get_mut().unwrap().len(), 2);
    harness.now = began.plus(UNASKED_MAX);
    advise(&mut homes, &harness, "/in/x");
    assert_eq!(homes.get_mut().unwrap().len(), 1, "nobody asked for the other's");
    let mut asked = 0;
    while harness.now.since(began) < AGE_MAX {
        harness.now = harness.now.plus(before);
        asked += usize::from(advise(&mut homes, &harness, "/in/x").reason == Why::Homes);
    }
    assert!(asked >= 24);
    let home = racks(&advise(&mut homes, &harness, "/in/x"));
    let rack: usize = home[0].trim_start_matches("/r").parse().unwrap();
    for host in [2 * rack, 2 * rack + 1] {
        harness.change(Change::Gone(format!("h{host}").as_str().into()));
    }
    harness.publish();
    let moved = advise(&mut homes, &harness, "/in/x");
    assert_eq!((moved.reason, racks(&moved) == home), (Why::Homes, false), "{moved:?}");
}

#[test]
fn while_no_node_is_usable_nothing_is_chosen_and_what_was_chosen_stays() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    told(&mut harness, "other", &run(1, &["/other"], 1_000));
    let before = racks(&advise(&mut homes, &harness, "/in/x"));
    let state = |harness: &mut EngineHarness, state| {
        for at in 0..8 {
            let host = format!("h{at}").as_str().into();
            let used = NamedResource { memory_mb: 0, vcores: 0, named: Vec::new() };
            let beat = Heartbeat { host, used, used_is_running: false, containers: None, state };
            harness.change(Change::Heartbeat(beat));
        }
        harness.publish();
    };
    state(&mut harness, NodeState::Unhealthy);
    for path in ["/in/x", "/other/x"] {
        assert_eq!(advise(&mut homes, &harness, path).reason, Why::RacksGone, "{path}");
    }
    state(&mut harness, NodeState::Running);
    assert_eq!(racks(&advise(&mut homes, &harness, "/in/x")), before);
    assert_eq!(advise(&mut homes, &harness, "/other/x").reason, Why::Homes, "not everywhere for an hour");
}

#[test]
fn no_more_readers_are_remembered_than_the_bound_and_the_longest_unasked_goes() {
    let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
    for reader in 0..=READERS_MAX {
        let (key, path) = (letters(reader), format!("/{}", letters(reader)));
        assert!(harness.engine.learnt(&key.as_str().into(), &run(1, &[&path], 1_000), harness.now));
    }
    harness.publish();
    for reader in 0..=READERS_MAX {
        harness.now = harness.now.plus(Micros(1));
        assert!(advise(&mut homes, &harness, &format!("/{}/x", letters(reader))).reader.is_some());
    }
    assert_eq!(homes.get_mut().unwrap().len(), READERS_MAX);
}

/// A name without numbers, which paths leave out.
fn letters(mut number: usize) -> String {
    let mut name = String::from("p");
    while number > 0 {
        name.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
        number /= 26;
    }
    name
}

#[test]
fn what_a_history_server_told_holds_after_a_restart() {
    let mut harness = cluster();
    told(&mut harness, "sort", &run(1, &["/in"], 1_000));
    let engine = harness.recovered();
    let job = Arc::clone(engine.generation().history.get(&Arc::from("sort")).unwrap());
    assert_eq!(job.last, run(1, &["/in"], 1_000).whole);
    assert_eq!(job.groups["p20"].memory_mb, 2_048);
}

/// The reader by looking at every path of every job.
fn reader_of(jobs: &BTreeMap<String, (BTreeSet<String>, u64)>, path: &str) -> Option<String> {
    let path = steady_path(path);
    let reads = |input: &String| {
        let input = steady_path(input);
        let rest = path.strip_prefix(input.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some(input.len())
    };
    let candidates = jobs.iter().filter_map(|(key, (paths, shuffle))| {
        Some((paths.iter().filter_map(reads).max()?, *shuffle, std::cmp::Reverse(key.clone())))
    });
    candidates.max().map(|(_, _, key)| key.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_reader_is_who_names_most_of_the_path_whatever_was_told_before(
        told_in_turn in prop::collection::vec(
            ("[a-e]{1,2}", prop::collection::btree_set("(/[abc]){1,3}(/2026-11-21)?", 1..3), 1_u64..9), 1..24),
        asked in prop::collection::vec("(/[abc]){1,4}(/2026-11-22)?", 1..12),
    ) {
        let mut harness = cluster();
        let mut jobs: BTreeMap<String, (BTreeSet<String>, u64)> = BTreeMap::new();
        let mut earlier = jobs.clone();
        // One index all along, that follows what changes.
        let mut homes = Mutex::<DataHomes>::default();
        for (at, (key, paths, shuffle)) in told_in_turn.into_iter().enumerate() {
            let named: Vec<&str> = paths.iter().map(String::as_str).collect();
            told(&mut harness, &key, &LearnedRun { whole: None, ..run(at as u64 + 1, &named, shuffle) });
            earlier.entry(key.clone()).or_default().0.extend(paths.clone());
            jobs.insert(key, (paths, 0));
            for path in &asked {
                let found = advise(&mut homes, &harness, path);
                let wanted = reader_of(&jobs, path).or_else(|| reader_of(&earlier, path));
                prop_assert_eq!(found.reader.as_deref().map(str::to_owned), wanted, "{}", path);
            }
        }
    }

    #[test]
    fn every_block_has_one_replica_in_a_home_and_asked_again_the_same(
        shuffles in prop::collection::vec(1_u64..40_000, 1..8), blocks in 1_u32..9, replication in 1_u8..5,
    ) {
        let (mut harness, mut homes) = (cluster(), Mutex::<DataHomes>::default());
        for (at, shuffle) in shuffles.iter().enumerate() {
            let name = letters(at);
            told(&mut harness, &name, &run(1, &[&format!("/{name}")], *shuffle));
        }
        for at in 0..shuffles.len() {
            let ask = ReplicaRequest { replication, blocks, ..ask(&format!("/{}/part-r-00003", letters(at))) };
            let found = advise_as(&mut homes, &harness, &ask).unwrap();
            prop_assert_eq!(&advise_as(&mut homes, &harness, &ask).unwrap(), &found);
            prop_assert_eq!(found.reason == Why::Homes, !found.racks.is_empty());
            prop_assert!(found.racks.len() < 4, "all racks are no home");
            prop_assert_eq!(found.blocks.len(), blocks as usize);
            for (nth, block) in found.blocks.iter().enumerate() {
                prop_assert_eq!(block.len(), usize::from(replication));
                prop_assert!(block[1..].iter().all(|replica| replica.place.is_none()));
                let wanted = (!found.racks.is_empty()).then(|| &found.racks[(3 + nth) % found.racks.len()]);
                let place = block[0].place.as_ref();
                prop_assert_eq!(place.map(|(rack, _)| rack), wanted.map(|(rack, _)| rack));
                prop_assert!(place.is_none_or(|(_, host)| wanted.unwrap().1.contains(host)));
            }
        }
    }
}
