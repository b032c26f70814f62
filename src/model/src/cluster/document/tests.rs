//! Documents there and back, and what is wrong with bad ones.

use super::super::model::tests::{T, any_change};
use super::super::model::{Change, Model};
use super::super::node::NodeState;
use super::super::resource::{Overlay, Resource};
use super::super::snapshot::{LinkLoad, Snapshot};
use super::*;
use crate::network::{Network, NetworkDocument};
use crate::units::{BitsPerSec, NodeIdx};
use proptest::prelude::*;
use std::collections::BTreeMap;

const DOCS: &str = include_str!("../../../../../docs/formats.md");

/// The first example below a heading, with its syntax.
fn example(heading: &str) -> (Syntax, &'static str) {
    let (_, section) = DOCS.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, block) = section.split_once("\n```").unwrap();
    let (language, body) = block.split_once('\n').unwrap();
    let (body, _) = body.split_once("```").unwrap();
    (Syntax::of_file(&format!("x.{language}")).unwrap(), body)
}

fn cluster() -> ClusterDocument {
    let (syntax, text) = example("Cluster");
    syntax.read(text).unwrap()
}

fn request() -> RequestDocument {
    let (syntax, text) = example("Request");
    syntax.read(text).unwrap()
}

fn problems<T: std::fmt::Debug>(result: Result<T, Vec<DocumentProblem>>) -> Vec<String> {
    result.unwrap_err().iter().map(ToString::to_string).collect()
}

/// What placement depends on, in names and in row order.
fn picture(snapshot: &Snapshot, leases: &Overlay) -> Vec<String> {
    let statics = &snapshot.statics;
    let kinds = |row: &Resource| Amount::of_row(row, &snapshot.kinds);
    let mut lines: Vec<_> = statics
        .indexes()
        .map(|node| {
            let at = node.at();
            let bits = statics.labels[at].0;
            let labels = statics.label_names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            format!(
                "{} {} {:?} {:?} {:?} {} {:?} {:?} {:?} {} {:?}",
                statics.host[at],
                statics.racks[statics.rack[at].at()],
                snapshot.state[at],
                kinds(&statics.total[at]),
                kinds(&snapshot.occupied[at]),
                snapshot.containers[at],
                kinds(&leases.leased(node)),
                labels.map(|(_, name)| name).collect::<Vec<_>>(),
                statics.attributes[at],
                statics.class_names[statics.class[at].at()],
                statics.disk_read[at],
            )
        })
        .collect();
    let aliases: BTreeMap<_, _> = statics.by_alias.iter().collect();
    let datasets: BTreeMap<_, _> = snapshot.datasets.iter().collect();
    let applications: BTreeMap<_, _> = snapshot.applications.iter().collect();
    let network = snapshot.topology.network.as_ref().map(|network| network.to_document());
    lines.push(format!("{aliases:?} {datasets:?} {applications:?} {network:?}"));
    lines.push(format!("{:?} {:?} {:?}", snapshot.kinds, snapshot.rules, snapshot.link_loads));
    lines
}

#[test]
fn the_examples_of_the_documentation_are_what_they_say() {
    let (snapshot, _) = cluster().to_snapshot(T).unwrap();
    assert_eq!(snapshot.state, [NodeState::Running, NodeState::Running, NodeState::Unhealthy]);
    assert_eq!((snapshot.occupied[0].memory_mb(), snapshot.containers[0]), (4096, 1));
    assert_eq!(snapshot.datasets["/data/in"].blocks[1].replicas[..], [NodeIdx(0)]);
    let request = request().to_request().unwrap();
    assert_eq!((request.containers(), request.groups[1].key.priority, request.seed), (3, 2, Some(7)));
    let (syntax, text) = example("Network");
    let network: NetworkDocument = syntax.read(text).unwrap();
    assert_eq!(Network::from_document(&network).unwrap().switches(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_cluster_reads_back_as_it_was_written(
        changes in proptest::collection::vec(any_change(), 1..40),
        leased in proptest::collection::vec(0..3_u64, 0..6),
        leftover in "n[0-9]",
    ) {
        let mut model = Model::default();
        model.intern_host(&leftover.as_str().into());
        let (syntax, network) = example("Network");
        let network = Network::from_document(&syntax.read::<NetworkDocument>(network).unwrap()).unwrap();
        model.apply(Change::Network(Some(network.into())), T).unwrap();
        for change in changes {
            // Through an alias, a heartbeat would name another node's containers, and a file has each once.
            let own = |host: &str| model.statics().by_host.contains_key(host);
            if matches!(&change, Change::Heartbeat(said) if !own(said.host.as_str())) {
                continue;
            }
            _ = model.apply(change, T);
        }
        let snapshot = model.publish(T);
        let mut leases = Overlay::default();
        for (node, amount) in snapshot.statics.indexes().zip(leased) {
            leases.set(node, Resource::new(amount, amount));
        }
        let document = ClusterDocument::from_snapshot(&snapshot, &leases);
        for syntax in [Syntax::Json, Syntax::Toml] {
            let text = syntax.write(&document).unwrap();
            let read: ClusterDocument = syntax.read(&text).unwrap();
            prop_assert_eq!(&read, &document);
            let (again, again_leases) = read.to_snapshot(T).unwrap();
            prop_assert_eq!(picture(&again, &again_leases), picture(&snapshot, &leases));
        }
    }
}

#[test]
fn a_request_reads_back_as_it_was_written() {
    let mut document = request();
    document.groups[0].constraints.spread = true;
    document.groups[1].label = Some("ssd".into());
    document.asks = vec![AskEntry {
        priority: 1,
        allocation_request_id: -1,
        resource_name: "*".into(),
        count: 2,
        relax_locality: true,
        label: String::new(),
        size: document.groups[0].size.clone(),
    }];
    let request = document.to_request().unwrap();
    for syntax in [Syntax::Json, Syntax::Toml] {
        let text = syntax.write(&RequestDocument::from_request(&request)).unwrap();
        assert_eq!(syntax.read::<RequestDocument>(&text).unwrap().to_request().unwrap(), request);
    }
}

#[test]
fn a_seed_may_be_text_as_answers_have_it() {
    let read = |seed: &str| {
        let text = format!(r#"{{ "format": "hintd.request/1", "groups": [], "seed": {seed} }}"#);
        Syntax::Json.read::<RequestDocument>(&text).map(|found| found.seed).map_err(|error| error.to_string())
    };
    for (seed, expected) in [("7", Some(7)), ("\"18446744073709551615\"", Some(u64::MAX)), ("null", None)] {
        assert_eq!(read(seed).unwrap(), expected, "{seed}");
    }
    for seed in ["\"\"", "\"+7\"", "\"18446744073709551616\"", "-1", "1.5", "[]"] {
        let said = read(seed).unwrap_err();
        assert!(said.contains("a whole number from 0 to 18446744073709551615"), "{seed}: {said}");
    }
}

#[test]
fn all_problems_of_a_cluster_are_reported_at_once() {
    let mut document = cluster();
    document.format = "hintd.cluster/9".into();
    document.nodes.push(document.nodes[0].clone());
    document.nodes[1].memory_mb = 0;
    document.nodes[1].rack = "rack2".into();
    document.nodes[1].resources.insert("huge".into(), u64::MAX);
    document.containers.push(document.containers[0].clone());
    document.containers[1].host = "nobody".into();
    document.datasets[0].blocks[1].id = document.datasets[0].blocks[0].id;
    document.datasets[0].blocks[1].hosts.push("nowhere".into());
    let load = LinkLoad::steady(BitsPerSec(1), BitsPerSec(1));
    document.link_loads.push(LinkLoadEntry::of(&"l".into(), &load));
    let found = problems(document.to_model(T));
    for part in [
        "format: is \"hintd.cluster/9\"",
        "nodes[3].host: \"worker-1\"",
        "nodes[1].memory_mb: is 0",
        "nodes[1].rack: \"rack2\"",
        "nodes[1].huge: 18446744073709551615",
        "containers[1].id:",
        "containers[1].host: \"nobody\"",
        "datasets[0].blocks[1].id:",
        "datasets[0].blocks[1].hosts: \"nowhere\"",
        "link_loads[0].link: the network has no link \"l\"",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(part)), "{part}: {found:#?}");
    }
}

#[test]
fn all_problems_of_a_request_are_reported_at_once() {
    let mut document = request();
    document.attempt = 0;
    document.groups[0].count = 0;
    document.groups[0].size.memory_mb = 0;
    document.groups[1].name = "map".into();
    document.groups[1].size.vcores = u64::MAX;
    document.edges[0].bytes = u64::MAX;
    document.input_paths.push("in".into());
    let found = problems(document.to_request());
    for part in [
        "attempt: is 0",
        "groups[0].count: is 0",
        "groups[0].size.memory_mb: is 0",
        "groups[1].name: \"map\"",
        "groups[1].size.vcores: 18446744073709551615",
        "edges[0].to: \"reduce\"",
        "edges[0].bytes: 18446744073709551615",
        "input_paths[0]: \"in\"",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(part)), "{part}: {found:#?}");
    }
    document.groups.clear();
    assert!(problems(document.to_request()).iter().any(|problem| problem.starts_with("groups: is empty")));
}

#[test]
fn what_does_not_parse_is_reported_with_its_line() {
    let json = "{\n  \"format\": \"hintd.request/1\",\n  \"grups\": []\n}";
    let problem = Syntax::Json.read::<RequestDocument>(json).unwrap_err();
    assert_eq!(problem.place, Place::Text { line: 3, column: 9 });
    assert!(problem.message.contains("grups") && !problem.message.contains("line"), "{problem}");
    let toml = "format = \"hintd.cluster/1\"\n[[nodes]]\nhost = \"a\"\nmemory_mb = -1\n";
    let problem = Syntax::Toml.read::<ClusterDocument>(toml).unwrap_err();
    assert_eq!(problem.place, Place::Text { line: 4, column: 13 });
    assert!(problem.to_string().starts_with("line 4, column 13: "), "{problem}");
    assert_eq!([Syntax::of_file("a.b/c.TOML"), Syntax::of_file("json")], [Some(Syntax::Toml), None]);
}
