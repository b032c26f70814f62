//! An optical switch in the daemon: a planned job's shuffle is told to wait and to start, circuits are wanted for it, a
//! controller sets them and says so.

use crate::flows::{Updates, next as next_update};
use crate::streams::{follow_start, next};
use crate::world::{World, hello, refusal, resource};
use hintd_client::wire::v1;
use hintd_client::{FeedSender, Following};
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::Code;
use v1::follow_message::Advice;
use v1::task_event::What;

/// From so many bytes on the network takes a burst for an elephant.
const ELEPHANT: u64 = 10_000_000;
/// What each of the four maps reads and writes.
const BLOCK: u64 = 8_000_000;

/// Three racks of two nodes under a core, and ports of 1 Gbit/s at an optical switch.
fn hybrid() -> v1::TopologyItem {
    let switch = |name: String, tier: &str| v1::NetworkSwitch { name, tier: tier.to_owned() };
    let link = |id: String, a: String, b: &str, up: bool| v1::NetworkLink {
        id,
        a,
        b: b.to_owned(),
        bits_per_s: 1_000_000_000,
        up: Some(up),
    };
    let mut switches = vec![switch("core".to_owned(), "core"), switch("ocs".to_owned(), "optical")];
    let (mut hosts, mut links) = (Vec::new(), Vec::new());
    for rack in 0..3 {
        let edge = format!("edge{rack}");
        switches.push(switch(edge.clone(), "edge"));
        links.push(link(format!("up{rack}"), edge.clone(), "core", true));
        links.push(link(format!("port{rack}"), edge.clone(), "ocs", false));
        for node in 0..2 {
            let name = format!("r{rack}n{node}");
            links.push(link(format!("nic-{name}"), name.clone(), &edge, true));
            hosts.push(v1::NetworkHost { name });
        }
    }
    let optical =
        v1::OpticalSwitch { switch: "ocs".to_owned(), elephant_bytes: Some(ELEPHANT), ..v1::OpticalSwitch::default() };
    let graph = v1::NetworkGraph { switches, hosts, links, optical: Some(optical) };
    v1::TopologyItem { number: 0, item: Some(v1::topology_item::Item::Full(graph)) }
}

/// One heavy job expected now: four maps in /rack0, two reduces in /rack2.
fn plan() -> String {
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap();
    let job = json!({ "key": "daily", "run": 0 });
    let slice = |rack: &str, start: u64, tasks: u32| json!({ "rack": rack, "start": start, "end": start + 10_000_000, "tasks": tasks, "containers": tasks });
    let stage =
        |slice: &serde_json::Value| json!({ "tasks": slice["tasks"], "task_time": 10_000_000, "slices": [slice] });
    let (maps, reduces) = (slice("/rack0", now, 4), slice("/rack2", now + 11_000_000, 2));
    let rack = |rack: &str, containers: u32, stage: &str| json!({ "rack": rack, "containers": containers, "sequence": [{ "job": job, "stage": stage }] });
    json!({
        "format": "hintd.plan/1", "policy": "jobpacker", "objective": "online",
        "made": now, "from": now, "until": now + 3_600_000_000_u64,
        "assumptions": {
            "uplink": 1_000_000_000, "circuit": 1_000_000_000, "elephant": ELEPHANT, "over_provisioning": 0.0,
            "sub_batches": 1, "shuffle_term": "by_width", "seed": 1,
        },
        "racks": [rack("/rack0", 4, "map"), rack("/rack2", 2, "reduce")],
        "jobs": [{
            "job": job, "arrival": now, "heavy": true, "shuffle": 4 * BLOCK, "shuffle_time": 1_000_000,
            "start": now, "end": now + 21_000_000, "maps": stage(&maps), "reduces": stage(&reduces),
        }],
    })
    .to_string()
}

fn job() -> v1::RequestHintsRequest {
    let group = |(priority, (name, count)): (i32, (&str, u32))| v1::TaskGroup {
        name: name.to_owned(),
        role: name.to_owned(),
        count,
        resource: Some(resource(1_024, 1)),
        priority,
        input_paths: if name == "map" { vec!["/in".to_owned()] } else { vec![] },
        ..Default::default()
    };
    v1::RequestHintsRequest {
        request_id: "r1".to_owned(),
        application_id: "application_1_0001".to_owned(),
        attempt: 1,
        groups: (1..).zip([("map", 4), ("reduce", 2)]).map(group).collect(),
        policy: "jobpacker".to_owned(),
        recurring_job_key: "daily".to_owned(),
        follows: true,
        ..Default::default()
    }
}

fn event(group: &str, number: u32, what: What) -> v1::TaskEvent {
    v1::TaskEvent {
        application_id: "application_1_0001".to_owned(),
        attempt: 1,
        group: group.to_owned(),
        task: format!("{group}-{number}"),
        what: Some(what),
        ..Default::default()
    }
}

fn begins(group: &str, number: u32, host: &str) -> v1::TaskEvent {
    let container = number + if group == "map" { 2 } else { 100 };
    let container_id = format!("container_1_0001_01_{container:06}");
    event(group, number, What::Allocated(v1::TaskAllocated { host: host.to_owned(), container_id, lease_id: 0 }))
}

fn map_ends(number: u32) -> v1::TaskEvent {
    let finished = v1::TaskFinished {
        host: "r0n0".to_owned(),
        duration_ms: 1_000,
        input_bytes: BLOCK,
        output_bytes: BLOCK,
        failed: false,
    };
    event("map", number, What::Finished(finished))
}

/// The network, and who feeds it.
async fn hybrid_of(world: &World) -> FeedSender<v1::TopologyItem> {
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    network.send(hybrid()).await.unwrap();
    let ack = network.await_acknowledged().await.unwrap();
    assert!(ack.refused.is_empty(), "{ack:?}");
    world.until("the network is there", |status| status.links == 12).await;
    network
}

/// A daemon with the network, the input, and the plan in force.
async fn world() -> (World, FeedSender<v1::TopologyItem>, FeedSender<v1::HeartbeatItem>) {
    let world = World::start().await;
    let beats = world.cluster(3, 2, 16_384).await;
    let network = hybrid_of(&world).await;
    let mut datasets: FeedSender<v1::DatasetItem> = world.client.feed(hello()).await.unwrap();
    let block = |block_id| v1::DatasetBlock { block_id, bytes: BLOCK, hosts: vec!["r0n0".to_owned()] };
    let put = v1::dataset_item::Item::Put(v1::Dataset { path: "/in".to_owned(), blocks: (1..5).map(block).collect() });
    datasets.send(v1::DatasetItem { number: 0, item: Some(put) }).await.unwrap();
    assert!(datasets.await_acknowledged().await.unwrap().refused.is_empty());
    world.until("the input is there", |status| status.blocks == 4).await;
    let piece = v1::SubmitPlanRequest { name: "p".to_owned(), json: plan().into_bytes(), ..Default::default() };
    world.admin.clone().submit_plan(tokio_stream::iter([piece])).await.unwrap();
    world.admin.clone().activate_plan(v1::ActivatePlanRequest { name: "p".to_owned(), replace: false }).await.unwrap();
    (world, network, beats)
}

/// The next message on a shuffle.
async fn word(follow: &mut Following) -> Advice {
    loop {
        match next(follow).await.advice.unwrap() {
            Advice::NotYet(_) | Advice::Hints(_) => {}
            other => return other,
        }
    }
}

/// The next update on circuits that has any.
async fn lit(updates: &mut Updates) -> v1::WantedCircuits {
    loop {
        let wanted = next_update(updates).await.circuits.expect("only circuits are watched");
        if !wanted.circuits.is_empty() {
            return wanted;
        }
    }
}

async fn circuits(world: &World) -> v1::CircuitsResponse {
    world.admin.clone().circuits(v1::CircuitsRequest {}).await.unwrap().into_inner()
}

fn report(version: u64, life: &str, set: &[(&str, &str)], ports: Vec<v1::OpticalPort>) -> v1::ReportCircuitsRequest {
    let circuit = |&(input, output): &(&str, &str)| v1::SetCircuit { input: input.into(), output: output.into() };
    let (watcher, set) = ("ocs".to_owned(), set.iter().map(circuit).collect());
    v1::ReportCircuitsRequest { watcher, version, set, ports, instance_id: life.to_owned(), nonce: Vec::new() }
}

fn failed(port: &str) -> v1::OpticalPort {
    let state = v1::OpticalPortState::Failed.into();
    v1::OpticalPort { port: port.to_owned(), state, reason: "no light".to_owned() }
}

/// A controller that watches, and has said that nothing is set.
async fn controller(world: &World) -> Updates {
    let watch = v1::WatchRequest { watcher: "ocs".to_owned(), circuits: true, ..Default::default() };
    let mut updates = world.client.watch(watch).await.unwrap();
    let first = next_update(&mut updates).await;
    assert!(first.snapshot && first.circuits.is_none(), "nothing is wanted before anybody said what is set: {first:?}");
    world.client.report_circuits(report(0, &first.instance_id, &[], vec![])).await.unwrap();
    updates
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_shuffle_waits_starts_and_rides() {
    let (world, _network, _beats) = world().await;
    let mut updates = controller(&world).await;
    let answer = world.hints(job()).await;
    assert_eq!(answer.hints.as_ref().unwrap().plan.as_ref().unwrap().job, "daily#0");
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let mut events: Vec<v1::TaskEvent> = (0..4).map(|map| begins("map", map, "r0n0")).collect();
    events.extend((0..2).map(|reduce| begins("reduce", reduce, "r2n0")));
    events.push(map_ends(0));
    follow.tell(events).await.unwrap();
    let Advice::WaitShuffle(wait) = word(&mut follow).await else { panic!("a wait comes first") };
    assert_eq!((wait.from_rack.as_str(), wait.to_rack.as_str()), ("/rack0", "/rack2"));
    assert_eq!((wait.reason.as_str(), wait.gathered_bytes, wait.threshold_bytes), ("below_threshold", BLOCK, ELEPHANT));
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    assert!(wait.latest_ms > now && wait.latest_ms <= now + 600_000, "{wait:?}");
    assert!(circuits(&world).await.wanted.unwrap().circuits.is_empty(), "what waits asks for no circuit");

    follow.tell(vec![map_ends(1)]).await.unwrap();
    let Advice::StartShuffle(start) = word(&mut follow).await else { panic!("then a start") };
    assert_eq!((start.from_rack.as_str(), start.to_rack.as_str()), ("/rack0", "/rack2"));
    assert_eq!((start.reason.as_str(), start.gathered_bytes), ("threshold", 2 * BLOCK));
    let wanted = lit(&mut updates).await;
    let circuit = &wanted.circuits[0];
    assert_eq!((circuit.input.as_str(), circuit.output.as_str(), wanted.switch.as_str()), ("port0", "port2", "ocs"));
    let demand = circuit.demand.as_ref().unwrap();
    assert_eq!((demand.expected_bytes, demand.jobs, demand.reason.as_str()), (2 * BLOCK, 1, "demand"));
    assert!(!circuits(&world).await.set, "nobody has said that it is");

    assert_eq!(world.counter("shuffles_held").await, 1);

    let set = [("port0", "port2")];
    let version = world.client.report_circuits(report(wanted.version, "", &set, vec![])).await.unwrap();
    assert_eq!(version, wanted.version);
    let seen = circuits(&world).await;
    assert!(seen.set && seen.reported.unwrap().watcher == "ocs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_fails_is_left_out_at_once_and_one_that_is_not_there_is_refused() {
    let (world, _network, _beats) = world().await;
    let mut updates = controller(&world).await;
    world.client.report_circuits(report(0, "", &[], vec![failed("port1")])).await.unwrap();
    let (code, message) = refusal(world.client.report_circuits(report(0, "", &[], vec![failed("port9")])).await);
    assert!(code == Code::InvalidArgument && message.contains("port9"), "{message}");
    let ports = circuits(&world).await.ports;
    assert_eq!((ports[1].state.as_str(), ports[1].reason.as_str()), ("failed", "no light"));
    let answer = world.hints(job()).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    let mut events: Vec<v1::TaskEvent> = (0..4).flat_map(|map| [begins("map", map, "r0n0"), map_ends(map)]).collect();
    events.extend((0..2).map(|reduce| begins("reduce", reduce, "r2n0")));
    follow.tell(events).await.unwrap();
    let wanted = lit(&mut updates).await;
    let version = world.client.report_circuits(report(wanted.version, "", &[], vec![failed("port2")])).await.unwrap();
    let dark = next_update(&mut updates).await;
    assert_eq!((dark.cause.as_str(), dark.subject.as_str()), ("circuits", "ports"));
    let dark = dark.circuits.unwrap();
    assert_eq!((dark.version, dark.circuits.len()), (version, 0), "at once, without the failed port");
    assert_eq!(world.counter("circuit_reports").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_the_plan_is_rolled_back() {
    let (world, _network, _beats) = world().await;
    let _updates = controller(&world).await;
    let answer = world.hints(job()).await;
    let mut follow = world.client.follow(follow_start(&answer, 0)).await.unwrap();
    follow.tell(vec![begins("map", 0, "r0n0"), begins("reduce", 0, "r2n0"), map_ends(0)]).await.unwrap();
    assert!(matches!(word(&mut follow).await, Advice::WaitShuffle(_)));
    world.admin.clone().roll_back_plan(v1::RollBackPlanRequest { to_none: true }).await.unwrap();
    let Advice::StartShuffle(start) = word(&mut follow).await else { panic!("a start") };
    assert_eq!(start.reason, "no_plan");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_takes_no_circuit_down() {
    let mut world = World::start().await;
    let set = [("port0", "port1")];
    let mut life = String::new();
    for version in [0, 1] {
        let (_beats, _network) = (world.cluster(3, 2, 16_384).await, hybrid_of(&world).await);
        let watch = v1::WatchRequest { watcher: "ocs".to_owned(), circuits: true, ..Default::default() };
        let mut updates = world.client.watch(watch).await.unwrap();
        let first = next_update(&mut updates).await;
        assert_eq!(first.circuits, None, "nobody is told to take anything down");
        assert_eq!(world.client.report_circuits(report(version, &life, &set, vec![])).await.unwrap(), 1);
        let wanted = next_update(&mut updates).await.circuits.unwrap();
        assert_eq!((wanted.version, wanted.cause.as_str(), wanted.circuits.len()), (1, "report", 1));
        let circuit = &wanted.circuits[0];
        assert_eq!((circuit.input.as_str(), circuit.output.as_str()), set[0]);
        assert_eq!(circuit.demand.as_ref().unwrap().reason, "kept");
        life = first.instance_id;
        world.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_optical_switch_nothing_is_wanted_and_strangers_report_nothing() {
    let world = World::start().await;
    let report = v1::ReportCircuitsRequest { watcher: "ocs".to_owned(), ..Default::default() };
    assert_eq!(refusal(world.client.report_circuits(report.clone()).await).0, Code::NotFound);
    let watch = v1::WatchRequest { watcher: "ocs".to_owned(), circuits: true, ..Default::default() };
    let mut updates = world.client.watch(watch).await.unwrap();
    assert_eq!(next_update(&mut updates).await.circuits, None);
    assert_eq!(world.client.report_circuits(report.clone()).await.unwrap(), 0, "kept until a network is known");
    let mut network: FeedSender<v1::TopologyItem> = world.client.feed(hello()).await.unwrap();
    let mut dark = hybrid();
    if let Some(v1::topology_item::Item::Full(graph)) = &mut dark.item {
        graph.optical = None;
    }
    network.send(dark).await.unwrap();
    assert!(network.await_acknowledged().await.unwrap().refused.is_empty());
    world.until("the network is there", |status| status.links == 12).await;
    assert_eq!(refusal(world.client.report_circuits(report).await).0, Code::InvalidArgument);
    assert_eq!(circuits(&world).await, v1::CircuitsResponse::default());
    let more = tokio::time::timeout(Duration::from_millis(1_300), updates.message()).await;
    assert!(more.is_err(), "{more:?}");
}
