//! What fuzzing begins with: small inputs that are taken, for each target.

use hintd::runtime::RequestLimits;
use hintd::server::convert::request;
use hintd_client::wire::hadoop::yarn::{PriorityProto, ResourceProto, ResourceRequestProto};
use hintd_client::wire::v1;
use hintd_engine::journal::{Op, Table};
use hintd_engine::{CommitOutcome, Engine, EngineSettings, Mode, PlacerSettings, Rows, SelectedPolicy, Token, propose};
use hintd_model::cluster::document::{ClusterDocument, RequestDocument, Syntax};
use hintd_model::cluster::{Change, Heartbeat, NamedResource, NodeState, Overlay, Registration, SizeRules, Snapshot};
use hintd_model::network::build::{TreeSpec, tree};
use hintd_model::units::Bytes;
use hintd_policy::registry;
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::NOW;

/// Inputs for a target; `root` is the package's folder.
///
/// # Panics
/// Where a file of the package is not there.
#[must_use]
pub fn of(target: &str, root: &Path) -> Vec<Vec<u8>> {
    let read = |name: &str| std::fs::read(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    match target {
        "configuration" => vec![read("config/hintd.toml"), b"[listen]\ngrpc = \"127.0.0.1:7070\"\n".to_vec()],
        "cluster_file" => vec![cluster_text()],
        "request_file" => vec![request_text()],
        "network_file" => vec![network_text(), RACKS.to_vec()],
        "chains_file" => vec![CHAINS.as_bytes().to_vec()],
        "shape_file" => ["nas", "container", "jobpacker", "cross-layer-30"]
            .map(|name| read(&format!("config/clusters/{name}.toml")))
            .to_vec(),
        "script_file" => vec![SCRIPT.as_bytes().to_vec()],
        "swim_trace" => vec![read("tests/data/swim-small.tsv")],
        "json_trace" => vec![read("tests/data/swim-small.tsv"), JOBS.as_bytes().to_vec()],
        "flows_file" => vec![read("tests/data/flows/two-links.json"), read("tests/data/flows/shared-link.json")],
        "plan_file" => vec![read("fuzz/seeds/plan.json")],
        "resource_manager_answers" => ["info", "nodes", "scheduler-conf", "scheduler", "apps", "app", "containers"]
            .map(|name| read(&format!("fuzz/seeds/resource-manager/{name}.json")))
            .to_vec(),
        "name_node_answers" => ["refused", "status", "listing", "located-blocks", "file-blocks"]
            .map(|name| read(&format!("fuzz/seeds/name-node/{name}.json")))
            .to_vec(),
        "history_server_answers" => ["jobs", "job", "counters", "conf", "everything"]
            .map(|name| read(&format!("fuzz/seeds/history-server/{name}.json")))
            .to_vec(),
        "application_master_answers" => ["job", "counters", "reduces"]
            .map(|name| read(&format!("fuzz/seeds/application-master/{name}.json")))
            .into_iter()
            .chain([b"/proxy/application_1795440036575_0002/ws/v1/mapreduce/jobs".to_vec()])
            .collect(),
        "ryu_answers" => RYU.iter().map(|text| text.as_bytes().to_vec()).collect(),
        "request_message" => vec![request_wire().encode_to_vec()],
        "follow_messages" => vec![follow()],
        "feed_messages" => vec![feeds()],
        "journal_rows" => vec![journal()],
        other => panic!("no target is called {other}"),
    }
}

const CHAINS: &str = "groups = [\"web\"]\n[[boxes]]\nname = \"fw-1\"\ntype = \"FW\"\nat = \"edge-1\"\n\
    bits_per_s = 1000000000\n[[boxes]]\nname = \"ips-1\"\ntype = \"IPS\"\nat = \"edge-2\"\nbits_per_s = 7\nup = false\n\
    [[chains]]\nname = \"a\"\npriority = 3\napplication = \"etl-*\"\nqueue = \"root.a\"\ngroup = \"web\"\n\
    direction = \"in\"\nports = [80, 90]\nprotocol = \"tcp\"\nsequence = [\"FW\", \"IPS\"]\nwhen_broken = \"open\"\n";

/// Two racks of two hosts.
#[must_use]
pub fn small_network() -> hintd_model::network::Network {
    tree(&TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() }).expect("a sound tree").network
}

const SCRIPT: &str = "format = \"hintd.script/1\"\n\n[[events]]\nat_s = 1.5\nnode_down = \"host-0001\"\n\n[[events]]\n\
    at_s = 9.0\nnode_up = \"host-0001\"\n\n[[background]]\nfrom_rack = \"/rack-01\"\nto_rack = \"/rack-02\"\nstreams = 2\n\
    start_s = 1.0\nend_s = 3.0\n";

const JOBS: &str = "{\"name\":\"a\",\"submit_s\":0.5,\"input_bytes\":1000,\"shuffle_bytes\":10,\"output_bytes\":5,\
    \"maps\":3,\"reduces\":1}\n{\"name\":\"b\",\"submit_s\":1,\"input_bytes\":7,\"shuffle_bytes\":0,\"output_bytes\":2,\
    \"user\":\"ann\",\"input_path\":\"/in\"}\n";

const RYU: [&str; 6] = [
    r#"[{"dpid":"0000000000000001","ports":[{"dpid":"0000000000000001","port_no":"00000001","hw_addr":"00:00:00:00:00:01","name":"s1-eth1"}]}]"#,
    r#"[{"src":{"dpid":"0000000000000001","port_no":"00000001","hw_addr":"aa","name":"x"},"dst":{"dpid":"0000000000000002","port_no":"00000001","hw_addr":"bb","name":"y"}}]"#,
    r#"[{"mac":"00:00:00:00:00:0a","ipv4":["10.0.0.1"],"ipv6":[],"port":{"dpid":"0000000000000001","port_no":"00000003","hw_addr":"aa","name":"z"}}]"#,
    r#"{"1":[{"port_no":1,"rx_bytes":10,"tx_bytes":20,"duration_sec":5,"duration_nsec":6,"curr_speed":10000,"state":0,"config":0,"name":"p"}]}"#,
    r#"{"1":[{"priority":100,"cookie":5,"table_id":0,"match":{"dl_src":"00:00:00:00:00:0a","dl_dst":"00:00:00:00:00:0b"},"actions":["OUTPUT:2"]}]}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"event_switch_enter","params":[{"dpid":"0000000000000001","ports":[]}]}"#,
];

/// Six hosts in three racks.
///
/// # Panics
/// Never: the specification is sound.
#[must_use]
pub fn small_cluster() -> Snapshot {
    let (engine, _) = engine();
    Snapshot::clone(engine.current_snapshot())
}

fn engine() -> (Engine, Vec<Op>) {
    let (mut engine, _) =
        Engine::new(EngineSettings::default(), SizeRules::default(), Rows::new(), NOW).expect("empty");
    let built = tree(&TreeSpec { racks: 3, hosts_per_rack: 2, ..TreeSpec::default() }).expect("a sound tree");
    engine.change(Change::Network(Some(Arc::new(built.network))), NOW).expect("a network is taken");
    for (rack, hosts) in built.racks {
        for host in hosts {
            let registration = Registration {
                host: host.clone(),
                rack: rack.clone(),
                total: NamedResource { memory_mb: 8192, vcores: 8, named: Vec::new() },
                labels: Vec::new(),
                attributes: BTreeMap::new(),
                class: "".into(),
                aliases: Vec::new(),
                disk_read: Bytes(0),
                state: NodeState::Running,
            };
            let heartbeat = Heartbeat {
                host,
                used: NamedResource::default(),
                used_is_running: false,
                containers: Some(Vec::new()),
                state: NodeState::Running,
            };
            engine.change(Change::Register(registration), NOW).expect("a node is taken");
            engine.change(Change::Heartbeat(heartbeat), NOW).expect("it was registered");
        }
    }
    engine.publish(NOW);
    let asked = Arc::new(request(&request_wire(), &RequestLimits::default()).expect("a sound request"));
    let policy = registry::with_defaults("spread").expect("it is there");
    let chosen = SelectedPolicy { policy: &*policy, baseline: &*policy, mode: Mode::On, name: "spread" };
    let placer = PlacerSettings { steps: 100, ..PlacerSettings::default() };
    let proposal = propose(&engine.generation(), &asked, &chosen, &placer, NOW, &mut || false).expect("there is room");
    let outcome = engine.commit(proposal, Token("secret".into()), NOW);
    assert!(matches!(outcome, CommitOutcome::Committed(_)));
    let written = engine.take_effects().journal;
    (engine, written)
}

fn cluster_text() -> Vec<u8> {
    let document = ClusterDocument::from_snapshot(&small_cluster(), &Overlay::default());
    serde_json::to_vec(&document).expect("documents are JSON")
}

fn request_text() -> Vec<u8> {
    let asked = request(&request_wire(), &RequestLimits::default()).expect("a sound request");
    let text = serde_json::to_string(&RequestDocument::from_request(&asked)).expect("documents are JSON");
    assert!(Syntax::Json.read::<RequestDocument>(&text).is_ok());
    text.into_bytes()
}

/// A network by rack.
const RACKS: &[u8] = b"format = \"hintd.racks/1\"\nnic = \"1Gbit\"\n[racks.\"/p1/*\"]\noversubscription = 4\n\
    [racks.\"/a\"]\nswitch = \"tor\"\nhosts = [\"n1\", \"n2*\"]\n[switches.tor]\nuplink = 40000000000\n\
    [switches.pod]\nabove = [\"/p1/*\"]\nuplink = \"1Tbit\"\n[hosts.n3]\nrack = \"/b\"\n\
    [[links]]\na = \"/c\"\nb = \"pod\"\nrate = \"1Gbit\"\n[racks.\"/c\"]\n";

fn network_text() -> Vec<u8> {
    let built = tree(&TreeSpec { racks: 2, hosts_per_rack: 2, ..TreeSpec::default() }).expect("a sound tree");
    serde_json::to_vec(&built.network.to_document()).expect("documents are JSON")
}

fn resource(memory: i64) -> Option<ResourceProto> {
    Some(ResourceProto { memory: Some(memory), virtual_cores: Some(1), ..ResourceProto::default() })
}

fn request_wire() -> v1::RequestHintsRequest {
    let ask = |priority: i32, count: i32| ResourceRequestProto {
        priority: Some(PriorityProto { priority: Some(priority) }),
        resource_name: Some("*".to_owned()),
        capability: resource(1024),
        num_containers: Some(count),
        relax_locality: Some(true),
        ..ResourceRequestProto::default()
    };
    v1::RequestHintsRequest {
        request_id: "r1".to_owned(),
        application_id: "application_1700000000000_0001".to_owned(),
        attempt: 1,
        queue: "default".to_owned(),
        user: "ann".to_owned(),
        framework: "mapreduce".to_owned(),
        asks: vec![ask(20, 4), ask(10, 2)],
        recurring_job_key: "daily".to_owned(),
        ..v1::RequestHintsRequest::default()
    }
}

fn event() -> v1::TaskEvent {
    v1::TaskEvent {
        application_id: "application_1700000000000_0001".to_owned(),
        attempt: 1,
        group: "map".to_owned(),
        ..v1::TaskEvent::default()
    }
}

/// A message with its length before it.
fn framed(message: &impl Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let length = u16::try_from(body.len()).expect("seeds are small");
    [&length.to_le_bytes()[..], &body].concat()
}

fn follow() -> Vec<u8> {
    let start = v1::FollowStart {
        application_id: "application_1700000000000_0001".to_owned(),
        attempt: 1,
        token: "secret".to_owned(),
        resume_after: 0,
        nonce: Vec::new(),
    };
    let first = v1::FollowRequest { start: Some(start), events: vec![event()] };
    [framed(&first), framed(&v1::FollowRequest { start: None, events: vec![event(), event()] })].concat()
}

fn feeds() -> Vec<u8> {
    use v1::heartbeat_item::Item;
    let beat = |number, item| [vec![0], framed(&v1::HeartbeatItem { number, item: Some(item) })].concat();
    let host = || "host-0001".to_owned();
    let hello = v1::FeedHello { source: "seed".to_owned(), used_means: 1, names_containers: true };
    let register = v1::RegisterNode {
        host: host(),
        rack: "/rack-1".to_owned(),
        total: resource(8192),
        labels: vec!["gpu".to_owned()],
        ..v1::RegisterNode::default()
    };
    let container = v1::NodeContainer {
        container_id: "container_1700000000000_0001_01_000002".to_owned(),
        resource: resource(1024),
        priority: 20,
        ..v1::NodeContainer::default()
    };
    let heartbeat = v1::NodeHeartbeat {
        host: host(),
        used: resource(1024),
        containers: vec![container],
        state: "RUNNING".to_owned(),
        ..v1::NodeHeartbeat::default()
    };
    let block = v1::DatasetBlock { block_id: 7, bytes: 1 << 20, hosts: vec![host()] };
    let put = v1::Dataset { path: "/in".to_owned(), blocks: vec![block] };
    let link = |id: &str, a: &str| v1::NetworkLink {
        id: id.to_owned(),
        a: a.to_owned(),
        b: "s1".to_owned(),
        bits_per_s: 1_000_000_000,
        up: None,
    };
    let graph = v1::NetworkGraph {
        switches: vec![v1::NetworkSwitch { name: "s1".to_owned(), tier: "edge".to_owned() }],
        hosts: vec![v1::NetworkHost { name: host() }],
        links: vec![link("l1", "host-0001")],
        optical: None,
    };
    let load = v1::LinkLoad { id: "l1".to_owned(), a_to_b_bits_per_s: 5, b_to_a_bits_per_s: 6 };
    let sample = v1::LatencySample { from_host: host(), to_host: host(), rtt_us: 90, measured_at_ms: 0 };
    let (dataset, full) = (v1::dataset_item::Item::Put(put), v1::topology_item::Item::Full(graph));
    let (load, sample) = (v1::link_stats_item::Item::Load(load), v1::latency_item::Item::Sample(sample));
    let report = v1::FullBlockReport { datanode: host(), block_ids: vec![7, 8] };
    let report = v1::block_report_item::Item::Full(report);
    [
        beat(1, Item::Hello(hello)),
        beat(2, Item::Register(register)),
        beat(3, Item::Heartbeat(heartbeat)),
        [vec![2], framed(&v1::DatasetItem { number: 1, item: Some(dataset) })].concat(),
        [vec![1], framed(&v1::BlockReportItem { number: 2, item: Some(report) })].concat(),
        [vec![3], framed(&v1::TopologyItem { number: 1, item: Some(full) })].concat(),
        vec![7],
        [vec![4], framed(&v1::LinkStatsItem { number: 1, item: Some(load) })].concat(),
        [vec![5], framed(&v1::LatencyItem { number: 1, item: Some(sample) })].concat(),
        [vec![6], framed(&v1::EventItem { number: 1, item: Some(v1::event_item::Item::Event(event())) })].concat(),
        beat(4, Item::Gone(v1::NodeGone { host: host() })),
    ]
    .concat()
}

/// Rows as bytes: the table's number, then key and value, each with two bytes of length before it.
fn journal() -> Vec<u8> {
    let (_, written) = engine();
    let mut bytes = Vec::new();
    for op in written {
        let Op::Put { table, key, value } = op else { continue };
        bytes.push(Table::ALL.iter().position(|known| *known == table).expect("it is one of them") as u8);
        for part in [key, value] {
            bytes.extend(u16::try_from(part.len()).expect("seeds are small").to_le_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

/// The rows that such bytes stand for: by key, each key once, as a journal has them.
#[must_use]
pub fn rows(bytes: &[u8]) -> Rows {
    let mut rows: BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
    let mut rest = bytes;
    let part = |rest: &mut &[u8]| -> Option<Vec<u8>> {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (part, after) = after.split_at(usize::from(u16::from_le_bytes(*length)).min(after.len()));
        *rest = after;
        Some(part.to_vec())
    };
    while let Some((&table, after)) = rest.split_first() {
        rest = after;
        let (Some(key), Some(value)) = (part(&mut rest), part(&mut rest)) else { break };
        rows.entry(Table::ALL[usize::from(table) % Table::ALL.len()]).or_default().insert(key, value);
    }
    rows.into_iter().map(|(table, rows)| (table, rows.into_iter().collect())).collect()
}
