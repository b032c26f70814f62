//! Clusters, networks, requests, and feeds for the stories.

use crate::grpc::Call;
use crate::notes::Notes;
use crate::programs::Daemon;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const MUCH: u64 = 100 << 20;

/// A feed stream.
pub(crate) struct Feed<'n> {
    call: Call,
    sent: u64,
    kind: &'static str,
    notes: &'n Notes,
}

impl<'n> Feed<'n> {
    /// Opens a feed by its method, such as `Heartbeats`.
    pub(crate) fn open(daemon: &Daemon, kind: &'static str, notes: &'n Notes) -> Self {
        let call = Call::open(&daemon.grpc(), &format!("/hintd.v1.Feed/{kind}")).unwrap();
        let mut feed = Self { call, sent: 0, kind, notes };
        let hello = json!({ "source": "golden", "used_means": "USED_MEANS_ALLOCATED", "names_containers": true });
        feed.send(json!({ "hello": hello }));
        feed
    }

    pub(crate) fn send(&mut self, mut item: Value) {
        self.sent += 1;
        item["number"] = json!(self.sent);
        self.call.send(&item);
    }

    /// Waits until all items are acknowledged; returns the refusals.
    pub(crate) fn await_acknowledged(&mut self) -> Vec<Value> {
        let mut refused = Vec::new();
        loop {
            let ack = self.call.next().unwrap().expect("the stream goes on");
            self.notes.message("hintd.v1.FeedAck", &ack);
            refused.extend(ack["refused"].as_array().into_iter().flatten().cloned());
            if ack["through"].as_u64() >= Some(self.sent) {
                return refused;
            }
        }
    }

    /// Sends an item that must be accepted.
    pub(crate) fn take(&mut self, item: Value) {
        self.send(item);
        let refused = self.await_acknowledged();
        assert!(refused.is_empty(), "{refused:?}");
    }

    /// Sends an item that must be refused and records the reason.
    pub(crate) fn refuse(&mut self, what: &str, item: Value) {
        self.send(item);
        let refused = self.await_acknowledged();
        assert_eq!(refused.len(), 1, "{what}: {refused:?}");
        let reason = refused[0]["reason"].as_str().unwrap();
        self.notes.seen().refusals.insert(format!("Feed.{}: {what}: {reason}", self.kind));
    }

    /// Waits for the next acknowledgement.
    pub(crate) fn ack(&mut self) -> Value {
        let ack = self.call.next().unwrap().expect("the stream goes on");
        self.notes.message("hintd.v1.FeedAck", &ack);
        ack
    }
}

pub(crate) fn size(memory: u64, vcores: u64) -> Value {
    json!({ "memory": memory, "virtual_cores": vcores })
}

pub(crate) fn register(host: &str, rack: &str, memory: u64) -> Value {
    json!({ "register": { "host": host, "port": 45_454, "rack": rack, "total": size(memory, 32) } })
}

/// A heartbeat with containers given by id, MB, and priority.
pub(crate) fn heartbeat(host: &str, response_id: u32, containers: &[(String, u64, i32)]) -> Value {
    let used: u64 = containers.iter().map(|(_, memory, _)| memory).sum();
    let container = |(id, memory, priority): &(String, u64, i32)| {
        json!({
            "container_id": id, "resource": size(*memory, 1), "priority": priority,
        })
    };
    let containers: Vec<Value> = containers.iter().map(container).collect();
    json!({
        "heartbeat": { "host": host, "response_id": response_id, "used": size(used, 0), "containers": containers },
    })
}

pub(crate) fn container(app: u32, sequence: u32) -> String {
    format!("container_1_{app:04}_01_{sequence:06}")
}

/// Registers `racks` × `nodes` idle nodes named `r0n0` and so on, and waits until they are usable.
pub(crate) fn cluster<'n>(daemon: &Daemon, notes: &'n Notes, (racks, nodes): (u32, u32), memory: u64) -> Feed<'n> {
    let mut feed = Feed::open(daemon, "Heartbeats", notes);
    for (rack, node) in (0..racks).flat_map(|rack| (0..nodes).map(move |node| (rack, node))) {
        feed.send(register(&format!("r{rack}n{node}"), &format!("/rack{rack}"), memory));
        feed.send(heartbeat(&format!("r{rack}n{node}"), 1, &[]));
    }
    let refused = feed.await_acknowledged();
    assert!(refused.is_empty(), "{refused:?}");
    daemon.until("all nodes are there", |status| status["nodes_usable"] == json!(racks * nodes));
    feed
}

/// A network of racks under two core switches and an optical switch.
pub(crate) fn graph(racks: u32, nodes: u32) -> Value {
    let link = |id: String, a: String, b: String, up: bool| {
        json!({
            "id": id, "a": a, "b": b, "bits_per_s": 1_000_000_000_u64, "up": up,
        })
    };
    let switch = |name: &str, tier: &str| json!({ "name": name, "tier": tier });
    let mut switches = vec![switch("c0", "core"), switch("c1", "core"), switch("ocs", "optical")];
    let (mut hosts, mut links) = (Vec::new(), Vec::new());
    for rack in 0..racks {
        let edge = format!("e{rack}");
        switches.push(switch(&edge, "edge"));
        for core in 0..2 {
            links.push(link(format!("u{rack}{core}"), edge.clone(), format!("c{core}"), true));
        }
        links.push(link(format!("port{rack}"), edge.clone(), "ocs".into(), false));
        for node in 0..nodes {
            let name = format!("r{rack}n{node}");
            links.push(link(format!("h{rack}{node}"), name.clone(), edge.clone(), true));
            hosts.push(json!({ "name": name }));
        }
    }
    json!({
        "switches": switches, "hosts": hosts, "links": links,
        "optical": { "switch": "ocs", "elephant_bytes": 10_000_000_000_u64 },
    })
}

/// Feeds the network and waits until it is known.
pub(crate) fn network<'n>(daemon: &Daemon, notes: &'n Notes, (racks, nodes): (u32, u32)) -> Feed<'n> {
    let mut feed = Feed::open(daemon, "Topology", notes);
    let graph = graph(racks, nodes);
    let links = graph["links"].as_array().unwrap().len();
    feed.take(json!({ "full": graph }));
    daemon.until("the network is there", |status| status["links"] == json!(links));
    feed
}

/// Registers a path with one block on each of these hosts.
pub(crate) fn dataset<'n>(daemon: &Daemon, notes: &'n Notes, path: &str, hosts: &[&str], bytes: u64) -> Feed<'n> {
    let mut feed = Feed::open(daemon, "Datasets", notes);
    let block = |(id, host): (u64, &&str)| json!({ "block_id": id, "bytes": bytes, "hosts": [host] });
    let blocks: Vec<Value> = (1..).zip(hosts).map(block).collect();
    let known = daemon.status()["blocks"].as_u64().unwrap_or(0) + blocks.len() as u64;
    feed.take(json!({ "put": { "path": path, "blocks": blocks } }));
    daemon.until("the blocks are known", |status| status["blocks"] == json!(known));
    feed
}

/// A request for one group of `count` containers, with additional fields.
pub(crate) fn request(id: &str, app: u32, count: u32, memory: u64, further: Value) -> Value {
    let group = json!({ "name": "g", "count": count, "resource": size(memory, 1), "priority": 1 });
    with(
        json!({
            "request_id": id, "application_id": format!("application_1_{app:04}"), "attempt": 1,
            "groups": [group],
        }),
        further,
    )
}

/// The object with additional keys.
pub(crate) fn with(mut object: Value, further: Value) -> Value {
    object.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
    object
}

/// A request for one task on `from` that sends to one task on `to`.
pub(crate) fn talk(app: u32, hosts: &[&str], (from, to): (&str, &str), further: Value) -> Value {
    let group = |name: &str, host: &str, priority: u32| {
        let avoid: Vec<&str> = hosts.iter().copied().filter(|other| *other != host).collect();
        json!({
            "name": name, "count": 1, "resource": size(1_024, 1), "priority": priority,
            "constraints": { "avoid_hosts": avoid },
        })
    };
    let request = json!({
        "request_id": format!("talk-{app}"), "application_id": format!("application_1_{app:04}"), "attempt": 1,
        "groups": [group("from", from, 1), group("to", to, 2)],
        "edges": [{ "from": "from", "to": "to", "bytes": MUCH }],
    });
    with(request, further)
}

/// A request for a job of maps and reduces, 1 GB each, whose application follows.
pub(crate) fn job(id: &str, app: u32, policy: &str, (maps, reduces): (u32, u32), further: Value) -> Value {
    let groups: Vec<Value> = [("map", maps, 1), ("reduce", reduces, 2)]
        .iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(name, count, priority)| {
            json!({
                "name": name, "role": name, "count": count, "resource": size(1_024, 1), "priority": priority,
            })
        })
        .collect();
    let mut request = json!({
        "request_id": id, "application_id": format!("application_1_{app:04}"), "attempt": 1, "user": "ann",
        "groups": groups, "policy": policy, "follows": true,
    });
    if reduces > 0 {
        request["edges"] =
            json!([{ "from": "map", "to": "reduce", "pattern": "EDGE_PATTERN_ALL_TO_ALL", "bytes": 1_u64 << 30 }]);
    }
    with(request, further)
}

/// Requests hints; returns the response with its token.
pub(crate) fn hints(daemon: &Daemon, notes: &Notes, request: &Value) -> Value {
    notes.ask(&daemon.grpc(), "/hintd.v1.Placement/RequestHints", request)
}

/// Opens a Follow stream.
pub(crate) fn follow(daemon: &Daemon, app: u32, answer: &Value, resume_after: u64) -> Call {
    let mut call = Call::open(&daemon.grpc(), "/hintd.v1.Placement/Follow").unwrap();
    let start = json!({
        "application_id": format!("application_1_{app:04}"), "attempt": 1, "token": answer["token"],
        "resume_after": resume_after,
    });
    call.send(&json!({ "start": start }));
    call
}

/// A task event.
pub(crate) fn event(app: u32, group: &str, task: &str, what: Value) -> Value {
    with(
        json!({ "application_id": format!("application_1_{app:04}"), "attempt": 1, "group": group, "task": task }),
        what,
    )
}

/// The hosts of a response's leases, one entry per lease.
pub(crate) fn leased(answer: &Value) -> Vec<String> {
    let hints = answer["hints"]["hints"].as_array().into_iter().flatten();
    let of = |hint: &Value| {
        let leases = hint["lease_ids"].as_array().map_or(0, Vec::len);
        vec![hint["host"].as_str().unwrap().to_owned(); leases]
    };
    hints.flat_map(of).collect()
}

pub(crate) fn now_us() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}
