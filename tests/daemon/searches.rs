//! Every call of the admin service, by what it searches: a new call without a row here fails. Searches are held on odd
//! networks by the engine's own tests, which count steps between two looks at the stop probe; rows name them. Calls that
//! only walk are made here, on a daemon with such a network, and no search for paths comes of them.

use crate::flows::talk;
use crate::world::{World, heartbeat, hello, register};
use hintd::server::page;
use hintd_client::FeedSender;
use hintd_client::wire::{DESCRIPTORS, v1};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a call does that could take long.
enum Cost {
    /// It searches, and this test of the engine's holds it.
    Searches(&'static str),
    /// It walks what it says once, and what that is has a bound in docs/limits.md.
    Walks(&'static str),
}
use Cost::{Searches, Walks};

const CALLS: &[(&str, Cost)] = &[
    ("ActivatePlan", Walks("a plan's jobs")),
    ("AllowKey", Walks("one key")),
    ("Calibrate", Walks("nodes and links")),
    ("Chains", Walks("boxes and chains")),
    ("Circuits", Walks("ports of the optical switch")),
    ("DiffNetwork", Walks("links of two networks")),
    ("EndAttempt", Walks("an attempt's leases")),
    ("Explain", Walks("an answer's hints")),
    ("FetchPlan", Walks("a plan's jobs")),
    ("Latency", Walks("paths between hosts that were measured")),
    ("Links", Walks("links")),
    ("ListApplications", Walks("attempts")),
    ("ListAttempts", Walks("attempts")),
    ("ListDecisions", Walks("records kept")),
    ("ListHoldout", Walks("queues and keys")),
    ("ListLeases", Walks("leases")),
    ("ListPlans", Walks("plans kept")),
    ("ListPolicies", Walks("policies")),
    ("LogLevel", Walks("one filter")),
    ("MakePlan", Searches("what_is_predicted_and_planned_ends_soon_after_the_probe")),
    ("Network", Walks("links")),
    ("Nodes", Walks("nodes")),
    ("OpenPage", Walks("keys and sessions of the page")),
    ("Racks", Walks("hosts, and blocks' hosts that are known")),
    ("Reload", Walks("the configuration")),
    ("RemovePlan", Walks("one plan")),
    ("Replay", Searches("replays_end_soon_after_the_probe_of_who_waits_for_them")),
    ("RollBackPlan", Walks("a plan's jobs")),
    ("Snapshot", Walks("the model, in pieces")),
    ("Status", Walks("counters")),
    ("SubmitPlan", Walks("a plan's bytes")),
    ("WhatIf", Searches("every_answer_ends_soon_after_the_probe_and_says_what_it_lacks")),
    ("WhatIfNetwork", Searches("what_if_of_a_network_ends_soon_after_its_probe")),
];

/// The engine's tests of searches, as text.
fn engine_tests() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/src/tests");
    let mut text = std::fs::read_to_string(folder.join("ugly_networks.rs")).unwrap();
    for entry in std::fs::read_dir(folder.join("ugly_networks")).unwrap() {
        text.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    text
}

#[test]
fn every_call_of_the_admin_service_says_what_it_searches_and_who_holds_it() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let services = set.file.iter().flat_map(|file| &file.service);
    let admin = services.into_iter().find(|service| service.name() == "Admin").unwrap();
    let rows: BTreeMap<&str, &Cost> = CALLS.iter().map(|(name, cost)| (*name, cost)).collect();
    assert_eq!(rows.len(), CALLS.len(), "a call has two rows");
    let calls: Vec<&str> = admin.method.iter().map(|method| method.name()).collect();
    for call in &calls {
        assert!(rows.contains_key(call), "Admin.{call} has no row: does it search, and which test holds it?");
    }
    let tests = engine_tests();
    for (call, cost) in rows {
        assert!(calls.contains(&call), "Admin.{call} is gone");
        match cost {
            Searches(test) => assert!(tests.contains(&format!("#[test]\nfn {test}()")), "Admin.{call}: no test {test}"),
            Walks(what) => assert!(!what.is_empty(), "Admin.{call}"),
        }
    }
}

/// So many switches with a host each that their paths are searched for by pair, and no table of all is built.
const SWITCHES: usize = 1_100;
/// Hosts that are nodes.
const NODES: usize = 20;

/// Switches joined as told, a host at each.
fn graph(joined: impl IntoIterator<Item = (usize, usize)>) -> v1::TopologyItem {
    let switch = |at: usize| v1::NetworkSwitch { name: format!("s{at}"), tier: "edge".into() };
    let host = |at: usize| v1::NetworkHost { name: format!("h{at}") };
    let link = |id: String, a: String, b: String| v1::NetworkLink { id, a, b, bits_per_s: 1_000_000_000, up: None };
    let below = (0..SWITCHES).map(|at| link(format!("a{at}"), format!("h{at}"), format!("s{at}")));
    let between = joined.into_iter().enumerate();
    let between = between.map(|(nth, (a, b))| link(format!("l{nth}"), format!("s{a}"), format!("s{b}")));
    let graph = v1::NetworkGraph {
        switches: (0..SWITCHES).map(switch).collect(),
        hosts: (0..SWITCHES).map(host).collect(),
        links: below.chain(between).collect(),
        optical: None,
    };
    v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Full(graph)) }
}

/// A daemon whose network is that one, with an answer, leases, a route and a record; the answer's id.
async fn on(network: v1::TopologyItem) -> (World, FeedSender<v1::HeartbeatItem>, String) {
    let silent = [("model", "stale_after = \"1h\""), ("model", "lost_after = \"2h\"")];
    let world = World::with(&silent).await;
    let mut beats = world.heartbeats().await;
    let nodes: Vec<String> = (0..NODES).map(|at| format!("h{}", at * SWITCHES / NODES)).collect();
    for host in &nodes {
        beats.send(register(host, "/r", 8_192)).await.unwrap();
        beats.send(heartbeat(host, 1, 0, vec![])).await.unwrap();
    }
    assert!(beats.await_acknowledged().await.unwrap().refused.is_empty());
    let mut feed: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    feed.send(network).await.unwrap();
    let refused = feed.await_acknowledged().await.unwrap().refused;
    assert!(refused.is_empty(), "{refused:?}");
    world.until("the network is there", |status| status.links > 0 && status.nodes_usable == NODES as u32).await;
    let mut asked = talk(1, &nodes[0], &nodes[1], 1 << 20);
    for group in &mut asked.groups {
        let own = if group.name == "from" { &nodes[0] } else { &nodes[1] };
        let others = nodes.iter().filter(|node| *node != own).cloned().collect();
        group.constraints = Some(v1::Constraints { avoid_hosts: others, ..v1::Constraints::default() });
    }
    let answer = world.client.request_hints(asked, Duration::from_secs(120)).await.unwrap();
    // To publish a new job may search as well.
    world.until("its flow is published", |status| status.flows.is_some_and(|flows| flows.jobs == 1)).await;
    (world, beats, answer.hints.unwrap().decision_id)
}

/// Makes the call by that name. A refusal is an answer too: what is counted is what came of it.
async fn call(world: &World, name: &str, decision: &str) -> bool {
    macro_rules! calls {
        ($($call:literal => $method:ident $request:expr),* $(,)?) => {
            match name {
                $($call => drop(world.admin.clone().$method($request).await),)*
                _ => return false,
            }
        };
    }
    let explained = v1::ExplainRequest { decision_id: decision.to_owned(), ..v1::ExplainRequest::default() };
    let plan = "a-plan".to_owned();
    calls! {
        "ActivatePlan" => activate_plan v1::ActivatePlanRequest { name: plan, ..Default::default() },
        "AllowKey" => allow_key v1::AllowKeyRequest::default(),
        "Calibrate" => calibrate v1::CalibrateRequest { input_bytes: 1 << 30, exchanged_bytes: 1 << 30, containers: 10 },
        "Chains" => chains v1::ChainsRequest::default(),
        "Circuits" => circuits v1::CircuitsRequest::default(),
        "DiffNetwork" => diff_network v1::DiffNetworkRequest { text: b"[[link]]\n".to_vec(), json: false },
        "EndAttempt" => end_attempt v1::EndAttemptRequest::default(),
        "Explain" => explain explained,
        "FetchPlan" => fetch_plan v1::FetchPlanRequest { name: plan },
        "Latency" => latency v1::LatencyRequest::default(),
        "Links" => links v1::LinksRequest { users: 10, ..Default::default() },
        "ListApplications" => list_applications v1::ListApplicationsRequest { host: "h".into(), ..Default::default() },
        "ListAttempts" => list_attempts v1::ListAttemptsRequest::default(),
        "ListDecisions" => list_decisions v1::ListDecisionsRequest::default(),
        "ListHoldout" => list_holdout v1::ListHoldoutRequest::default(),
        "ListLeases" => list_leases v1::ListLeasesRequest::default(),
        "ListPlans" => list_plans v1::ListPlansRequest::default(),
        "ListPolicies" => list_policies v1::ListPoliciesRequest::default(),
        "LogLevel" => log_level v1::LogLevelRequest::default(),
        "Network" => network v1::NetworkRequest::default(),
        "Nodes" => nodes v1::NodesRequest::default(),
        "OpenPage" => open_page v1::OpenPageRequest::default(),
        "Racks" => racks v1::RacksRequest { differences: false },
        "Reload" => reload v1::ReloadRequest::default(),
        "RemovePlan" => remove_plan v1::RemovePlanRequest { name: plan },
        "RollBackPlan" => roll_back_plan v1::RollBackPlanRequest::default(),
        "Snapshot" => snapshot v1::SnapshotRequest::default(),
        "Status" => status v1::StatusRequest::default(),
        "SubmitPlan" => submit_plan tokio_stream::iter([v1::SubmitPlanRequest { name: plan, json: b"{}".to_vec(), ..Default::default() }]),
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_walk_search_no_path_on_networks_that_make_searches_long() {
    let ring: Vec<_> = (0..SWITCHES).map(|at| (at, (at + 1) % SWITCHES)).collect();
    let ladder: Vec<_> =
        (2..SWITCHES).map(|at| (at - 2, at)).chain((0..SWITCHES / 2).map(|at| (2 * at, 2 * at + 1))).collect();
    let star_of_stars: Vec<_> = (1..SWITCHES).map(|at| (if at <= 30 { 0 } else { 1 + at % 30 }, at)).collect();
    // One link each, to one before: what is in pieces is refused.
    let jellyfish: Vec<_> = (1..SWITCHES).map(|at| (at, at * 31 % 7_919 % at)).collect();
    for (name, joined) in
        [("ring", ring), ("ladder", ladder), ("star of stars", star_of_stars), ("jellyfish", jellyfish)]
    {
        let (world, _beats, decision) = on(graph(joined)).await;
        let daemon = &world.running().daemon;
        let steps = || daemon.generation().snapshot.topology.made_paths().map_or(0, |paths| paths.steps());
        let searched = steps();
        assert!(searched > 0, "{name}: the request searched for its way, and it was counted");
        for (walks, cost) in CALLS {
            if matches!(cost, Searches(_)) {
                continue;
            }
            assert!(call(&world, walks, &decision).await, "Admin.{walks} is not called here");
            assert_eq!(steps(), searched, "{name}: Admin.{walks} searches");
        }
        let links = Arc::default();
        page::page_document(daemon, &links).await.unwrap();
        page::page_nodes(daemon, &links, "/r".to_owned()).await.unwrap();
        page::page_explain(daemon, &decision).await.unwrap();
        page::page_settings(daemon).await;
        assert_eq!(steps(), searched, "{name}: the page searches");
    }
}

/// Ten browsers on the network ask for racks twenty times a second, and what links carry is of the whole network.
#[tokio::test(flavor = "multi_thread")]
async fn what_links_carry_is_worked_out_once_a_second_for_all_racks_that_are_asked_for() {
    let (world, _beats, _) = on(graph((0..SWITCHES).map(|at| (at, (at + 1) % SWITCHES)))).await;
    let (generation, links, began) =
        (world.running().daemon.generation(), page::RecentLinks::default(), Instant::now());
    let first = links.recent(&generation, began);
    assert!(!first.is_empty());
    let later = |ms| links.recent(&generation, began + Duration::from_millis(ms));
    assert!(Arc::ptr_eq(&first, &later(999)));
    assert!(!Arc::ptr_eq(&first, &later(1_000)));
}

/// What a policy can do that searches, and the tests that walk all policies for it.
#[test]
fn every_capability_that_searches_is_walked_for_all_policies() {
    let tests = engine_tests();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/src");
    let policy = std::fs::read_to_string(source.join("lib.rs")).unwrap();
    let capabilities = policy.match_indices("fn as_").map(|(at, _)| policy[at + 3..].split('(').next().unwrap());
    let capabilities: Vec<&str> = capabilities.collect();
    assert!(capabilities.len() >= 6, "{capabilities:?}");
    for capability in capabilities {
        let walked = format!("policy.{capability}()");
        assert!(tests.contains(&walked), "{capability}: no test walks the registry for it");
    }
    // Those that search long are told when to stop.
    let traits: String = ["place.rs", "advise.rs", "plan/problem.rs"]
        .map(|file| std::fs::read_to_string(source.join(file)).unwrap())
        .concat();
    for method in ["fn place(", "fn route(", "fn rebalance(", "fn plan("] {
        let at = traits.find(method).unwrap_or_else(|| panic!("{method} is elsewhere"));
        let signature = &traits[at..at + traits[at..].find(';').unwrap()];
        assert!(signature.contains("Budget"), "{signature}");
    }
}
