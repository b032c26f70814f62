//! What the installer does to switches, against a controller of the test's own: one that takes entries, refuses them, says
//! that it took them and did not, or is away.

use super::super::graph::Capacities;
use super::super::names::Names;
use super::super::table::FlowEntryMarks;
use super::super::testing::{at, graph, inventory, mac, ms};
use super::*;
use crate::runtime::tests::{SOON, running};
use crate::server::Running;
use crate::telemetry::metrics::Metrics;
use hintd_engine::RuleChange;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::sync::Mutex;
use tempfile::TempDir;
use tokio::net::TcpListener;

const MARKS: FlowEntryMarks = FlowEntryMarks { cookie: 0x6869_0000, priority: 1_000, base_priority: 10 };
const EGRESS: u64 = 2;
const SPINE: u64 = 18;
const INGRESS: u64 = 1;

/// Switches behind a controller as Ryu's `ofctl_rest` shows them.
#[derive(Default)]
struct Switches {
    /// Entries by switch, as they are shown.
    tables: BTreeMap<u64, Vec<Value>>,
    /// What was asked, in order: `add 2`, `remove 2`, `read 2`.
    asked: Vec<String>,
    /// Switches that are told and do nothing.
    deaf: BTreeSet<u64>,
    /// Switches that the controller answers 404 about.
    unknown: BTreeSet<u64>,
    /// The controller answers nobody.
    away: bool,
}

impl Switches {
    fn answer(&mut self, path: &str, body: &Value) -> Result<String, StatusCode> {
        let same = |entry: &Value| entry["priority"] == body["priority"] && entry["match"] == body["match"];
        let of_path = path.strip_prefix("/stats/flow/").map(|switch| switch.parse().unwrap());
        let switch: u64 = of_path.unwrap_or_else(|| body["dpid"].as_u64().unwrap());
        let what = match path {
            "/stats/flowentry/add" => "add",
            "/stats/flowentry/delete_strict" => "remove",
            _ => "read",
        };
        self.asked.push(format!("{what} {switch}"));
        if self.unknown.contains(&switch) {
            return Err(StatusCode::NOT_FOUND);
        }
        let table = self.tables.entry(switch).or_default();
        match what {
            "read" => return Ok(json!({ switch.to_string(): table }).to_string()),
            _ if self.deaf.contains(&switch) => {}
            "add" => {
                table.retain(|entry| !same(entry));
                let port = &body["actions"][0]["port"];
                table.push(entry(body["cookie"].as_u64().unwrap(), &body["priority"], &body["match"], port));
            }
            _ => table.retain(|entry| !same(entry)),
        }
        Ok(String::new())
    }

    /// Ports that entries of a switch lead to.
    fn ports(&self, switch: u64) -> Vec<String> {
        let entries = self.tables.get(&switch).into_iter().flatten();
        entries.map(|entry| entry["actions"][0].as_str().unwrap().to_owned()).collect()
    }

    fn adds(&self) -> Vec<&str> {
        self.asked.iter().filter_map(|asked| asked.strip_prefix("add ")).collect()
    }
}

fn entry(cookie: u64, priority: &Value, matches: &Value, port: &Value) -> Value {
    let actions = [format!("OUTPUT:{port}")];
    json!({ "table_id": 0, "cookie": cookie, "priority": priority, "match": matches, "actions": actions })
}

type Shared = Arc<Mutex<Switches>>;

/// Serves until the test ends.
async fn controller() -> (String, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let switches = Shared::default();
    let shared = Arc::clone(&switches);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            let serve = service_fn(move |request| answer(Arc::clone(&shared), request));
            // A controller that is away breaks the connection.
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
        }
    });
    (address, switches)
}

async fn answer(switches: Shared, request: Request<Incoming>) -> std::io::Result<Response<Full<Bytes>>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut switches = switches.lock().unwrap();
    if switches.away {
        return Err(std::io::ErrorKind::ConnectionReset.into());
    }
    let body: Value = serde_json::from_slice(&body).unwrap();
    let (status, text) = match switches.answer(&path, &body) {
        Ok(text) => (StatusCode::OK, text),
        Err(status) => (status, "no such switch".to_owned()),
    };
    Ok(Response::builder().status(status).body(Full::from(text)).unwrap())
}

struct World {
    _folder: TempDir,
    running: Running,
    switches: Shared,
    installer: Installer,
    watching: Watching,
    /// Number of the update that the daemon waits for.
    number: u64,
}

fn options(authority: String) -> RyuOptions {
    RyuOptions {
        authority,
        poll: ms(1_000),
        counters: ms(1_000),
        timeout: ms(20_000), // no controller here is late
        backoff: ms(20),
        answer_bytes: 1 << 20,
        debounce: ms(5),
        settle: ms(3_000),
        install: true,
        forward: false,
        confirm: ms(1_000),
        audit: ms(60_000),
        orphans: ms(0),
        marks: MARKS,
        capacities: Capacities::default(),
        names: Names::default(),
        hosts_file: None,
    }
}

impl World {
    async fn new() -> Self {
        let (folder, running) = running().await;
        let (authority, switches) = controller().await;
        let view = View { graph: graph(&inventory()), known: true, ..View::default() };
        let (_, views) = watch::channel(Arc::new(view));
        let metrics = Metrics::new().sdn();
        let mut installer = Installer::new(Arc::new(options(authority)), running.daemon.clone(), metrics, views);
        installer.look_at_view();
        installer.suspects.clear();
        let mut watching = installer.watch().await.unwrap();
        let first = tokio::time::timeout(SOON, watching.updates.recv()).await.unwrap().unwrap();
        Self { _folder: folder, running, switches, installer, watching, number: first.number }
    }

    /// An update of so many rules.
    fn update(&self, phase: Phase, rules: Vec<RuleChange>) -> RouteUpdate {
        RouteUpdate {
            number: self.number,
            snapshot: matches!(phase, Phase::Initial | Phase::Resync),
            routes: vec![],
            removed: vec![],
            rules,
            phase,
            cause: "placed",
            subject: "".into(),
            untouched: 0,
            circuits: None,
        }
    }

    /// From host 1 to host 2 over the second spine, from the egress.
    fn route(&self) -> Vec<RuleChange> {
        let graph = &self.installer.view.borrow().graph;
        let rule = |(dpid, port): (u64, u32)| {
            let (switch, _) = graph.switches.iter().find(|(_, at)| at.dpid == Dpid(dpid)).unwrap();
            let link = graph.links.keys().find(|link| graph.port(switch, link) == Some(at(dpid, port))).unwrap();
            let action = RuleAction::Install { link: link.as_str().into(), next: "next".into() };
            RuleChange { switch: switch.as_str().into(), pair: pair(), action }
        };
        [(EGRESS, 3), (SPINE, 2), (INGRESS, 2)].map(rule).into()
    }

    /// Until which update the daemon knows that rules are installed.
    async fn acknowledged(&self) -> u64 {
        self.running.daemon.engine_report().await.unwrap().watchers[0].acknowledged
    }

    fn switches<T>(&self, look: impl FnOnce(&mut Switches) -> T) -> T {
        look(&mut self.switches.lock().unwrap())
    }

    fn no_entry_is_left(&self) {
        let left = self.switches(|switches| switches.tables.values().map(Vec::len).sum::<usize>());
        assert_eq!((left, self.installer.laid.len()), (0, 0), "half a path is none");
    }

    async fn end(self) {
        drop(self.watching);
        self.running.shutdown().await.unwrap();
    }
}

fn pair() -> WatchedPair {
    WatchedPair { src: "10.0.0.1".into(), dst: "10.0.0.2".into(), class: "".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_route_is_laid_from_the_egress_hop_by_hop_and_acknowledged_when_switches_show_it() {
    let mut world = World::new().await;
    let update = world.update(Phase::Make, world.route());
    world.installer.update(&update).await;
    let asked = world.switches(|switches| switches.asked.clone());
    assert_eq!(asked, ["add 2", "read 2", "add 18", "read 18", "add 1", "read 1"]);
    let ports = world.switches(|switches| [EGRESS, SPINE, INGRESS].map(|switch| switches.ports(switch)));
    assert_eq!(ports, [["OUTPUT:3"], ["OUTPUT:2"], ["OUTPUT:2"]]);
    assert_eq!(world.acknowledged().await, world.number);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_all_hops_are_sent_at_once_and_a_removal_takes_them_away() {
    let mut world = World::new().await;
    let update = world.update(Phase::Failover, world.route());
    world.installer.update(&update).await;
    let asked = world.switches(|switches| std::mem::take(&mut switches.asked));
    assert_eq!(asked[..3], ["add 2", "add 18", "add 1"]);
    let remove = |rule| RuleChange { action: RuleAction::Remove, ..rule };
    let update = world.update(Phase::Break, world.route().into_iter().map(remove).collect());
    world.installer.update(&update).await;
    world.no_entry_is_left();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_sends_only_what_switches_do_not_show_already() {
    let mut world = World::new().await;
    let update = world.update(Phase::Make, world.route());
    world.installer.update(&update).await;
    world.switches(|switches| {
        switches.asked.clear();
        switches.tables.remove(&SPINE);
    });
    let update = world.update(Phase::Resync, world.route());
    world.installer.update(&update).await;
    world.switches(|switches| assert_eq!(switches.adds(), ["18"]));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_whose_entry_is_not_taken_or_not_shown_keeps_none_at_all() {
    let mut world = World::new().await;
    let update = world.update(Phase::Make, world.route());
    world.switches(|switches| switches.deaf.insert(SPINE));
    world.installer.update(&update).await;
    world.switches(|switches| assert_eq!(switches.adds(), ["2", "18"], "the ingress is not told of half a path"));
    world.no_entry_is_left();
    world.switches(|switches| {
        switches.deaf.clear();
        switches.unknown.insert(INGRESS);
    });
    world.installer.update(&update).await;
    world.no_entry_is_left();
    assert!(!world.installer.behind, "that a switch refuses is an answer");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_controller_that_is_away_missed_is_not_acknowledged_until_all_is_sent_again() {
    let mut world = World::new().await;
    world.switches(|switches| switches.away = true);
    let update = world.update(Phase::Make, world.route());
    world.installer.update(&update).await;
    assert!(world.installer.behind);
    let suspects: Vec<u64> = world.installer.suspects.iter().map(|switch| switch.0).collect();
    assert_eq!(suspects, [INGRESS, EGRESS, SPINE], "they are looked at when it is back");
    world.switches(|switches| switches.away = false);
    let later = world.update(Phase::Make, vec![]);
    world.installer.update(&later).await;
    assert_eq!(world.acknowledged().await, 0, "an acknowledgement is of all before it, too");
    let again = world.update(Phase::Resync, world.route());
    world.installer.update(&again).await;
    assert_eq!(world.acknowledged().await, world.number);
    world.switches(|switches| assert_eq!(switches.ports(INGRESS), ["OUTPUT:2"]));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_mends_own_entries_takes_orphans_away_and_leaves_those_of_others() {
    let mut world = World::new().await;
    let update = world.update(Phase::Make, world.route());
    world.installer.update(&update).await;
    let own = |last: u8, cookie: u64| {
        let matches = json!({ "dl_dst": mac(last).to_string() });
        entry(cookie, &json!(MARKS.priority), &matches, &json!(4))
    };
    world.switches(|switches| {
        let table = switches.tables.get_mut(&INGRESS).unwrap();
        *table = vec![own(7, MARKS.cookie | 1), own(8, 0xbeef)];
    });
    world.installer.suspects.insert(Dpid(INGRESS));
    world.installer.audit_one().await.unwrap();
    let left = |world: &World| world.switches(|switches| switches.ports(INGRESS));
    assert_eq!(left(&world), ["OUTPUT:4", "OUTPUT:4", "OUTPUT:2"], "nobody knows yet whether a route wants it");
    world.installer.routes_known = true;
    world.installer.suspects.insert(Dpid(INGRESS));
    world.installer.audit_one().await.unwrap();
    let cookies = world.switches(|switches| {
        let cookies = switches.tables[&INGRESS].iter().map(|entry| entry["cookie"].as_u64().unwrap());
        cookies.collect::<Vec<_>>()
    });
    assert_eq!(cookies, [0xbeef, MARKS.cookie | 1], "another's stays, the orphan is gone, the route's is back");
    assert!(world.installer.suspects.is_empty());
    world.end().await;
}
