//! Every call of the admin service, by what it searches: a new call without a row here fails. Searches are held on odd
//! networks by the engine's own tests, which count steps between two looks at the stop probe; rows name them.

use hintd_client::wire::DESCRIPTORS;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::collections::BTreeMap;
use std::path::Path;

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

/// What a policy can do that searches, and the tests that walk all policies for it.
#[test]
fn every_capability_that_searches_is_walked_for_all_policies() {
    let tests = engine_tests();
    for capability in ["as_place", "as_route", "as_rebalance", "as_plan"] {
        let walked = format!("policy.{capability}()");
        assert!(tests.contains(&walked), "{capability}: no test walks the registry for it");
    }
    // Each of them is told when to stop: a new one without a budget is seen here.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/src");
    let traits: String = ["place.rs", "advise.rs", "plan/problem.rs"]
        .map(|file| std::fs::read_to_string(source.join(file)).unwrap())
        .concat();
    for method in ["fn place(", "fn route(", "fn rebalance(", "fn plan("] {
        let at = traits.find(method).unwrap_or_else(|| panic!("{method} is elsewhere"));
        let signature = &traits[at..at + traits[at..].find(';').unwrap()];
        assert!(signature.contains("Budget"), "{signature}");
    }
}
