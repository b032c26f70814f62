//! A daemon with a folder of its own, a client, and an emulated cluster that feeds it.

use hintd::config::Config;
use hintd::server::{Running, start};
use hintd::telemetry::metrics::Metrics;
use hintd_client::wire::{v1, yarn};
use hintd_client::{AdminClient, Client, ClientError, ClientOptions, FeedSender, Secret, admin};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tonic::Code;

/// Longest wait for something that should come at once, on a machine that halts now and then.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// See the module.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    extra: Vec<(&'static str, String)>,
    running: Option<Running>,
    pub(crate) client: Client,
    pub(crate) admin: AdminClient,
}

/// The configuration of a test's daemon; `extra` adds lines to sections, an empty line takes its section away.
pub(crate) fn config_text(folder: &Path, port: u16, extra: &[(&'static str, String)]) -> String {
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut add = |section: &'static str, line: String| sections.entry(section).or_default().push(line);
    add("listen", format!("grpc = \"127.0.0.1:{port}\""));
    add("listen", format!("admin_socket = {:?}", folder.join("admin.sock")));
    add("listen", "metrics = \"\"".to_owned());
    add("store", format!("path = {:?}", folder.join("journal.redb")));
    add("yarn", "maximum_memory_mb = 65536".to_owned());
    add("yarn", "maximum_vcores = 64".to_owned());
    add("policy", "default = \"spread\"".to_owned());
    add("placer", "guard = false".to_owned()); // most tests ask without input or traffic
    // A busy machine may halt for longer than the shipped defaults leave to a request or a silent node.
    add("placer", "deadline_default = \"30s\"".to_owned());
    add("model", "stale_after = \"1h\"".to_owned());
    add("model", "lost_after = \"2h\"".to_owned());
    add("queues.\"*\"", "mode = \"on\"".to_owned());
    for (section, line) in extra {
        if line.is_empty() {
            sections.remove(section);
            continue;
        }
        let key = line.split('=').next().unwrap().trim().to_owned();
        let lines = sections.entry(section).or_default();
        lines.retain(|known| known.split('=').next().unwrap().trim() != key);
        lines.push(line.clone());
    }
    let section = |(name, lines): (&str, Vec<String>)| format!("[{name}]\n{}\n", lines.join("\n"));
    sections.into_iter().map(section).collect()
}

impl World {
    /// A daemon with the shipped defaults (but `spread`) and nothing fed.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A daemon with further configuration.
    pub(crate) async fn with(extra: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let extra: Vec<_> = extra.iter().map(|(section, line)| (*section, (*line).to_owned())).collect();
        let (running, client, admin) = launch(folder.path(), &extra).await;
        Self { folder, extra, running: Some(running), client, admin }
    }

    pub(crate) fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    /// Stops in order; the folder stays.
    pub(crate) async fn stop(&mut self) {
        self.running.take().unwrap().shutdown().await.unwrap();
    }

    /// Stops in order and starts on the same folder.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        let (running, client, admin) = launch(self.folder.path(), &self.extra).await;
        (self.running, self.client, self.admin) = (Some(running), client, admin);
    }

    pub(crate) async fn status(&self) -> v1::StatusResponse {
        self.admin.clone().status(v1::StatusRequest {}).await.unwrap().into_inner()
    }

    /// A counter of status; zero if nothing was counted.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        self.status().await.counters.get(name).copied().unwrap_or(0)
    }

    pub(crate) async fn heartbeats(&self) -> FeedSender<v1::HeartbeatItem> {
        self.client.feed(hello()).await.unwrap()
    }

    /// Registers `racks` × `nodes` nodes of `memory` MB and 32 vcores, all idle; hosts are `r0n0`, ….
    pub(crate) async fn cluster(&self, racks: u32, nodes: u32, memory: i64) -> FeedSender<v1::HeartbeatItem> {
        let mut feed = self.heartbeats().await;
        for (rack, node) in (0..racks).flat_map(|rack| (0..nodes).map(move |node| (rack, node))) {
            let host = format!("r{rack}n{node}");
            feed.send(register(&host, &format!("/rack{rack}"), memory)).await.unwrap();
            feed.send(heartbeat(&host, 1, 0, vec![])).await.unwrap();
        }
        let ack = feed.await_acknowledged().await.unwrap();
        assert!(ack.refused.is_empty(), "{ack:?}");
        self.until("all nodes are there", |status| status.nodes_usable == racks * nodes).await;
        feed
    }

    /// Polls status until it is as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&v1::StatusResponse) -> bool) -> v1::StatusResponse {
        let began = Instant::now();
        loop {
            let status = self.status().await;
            if wanted(&status) {
                return status;
            }
            assert!(began.elapsed() < SOON, "not in time: {what}; {status:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until requests see that so much is used of a node, MB: what is acknowledged is in a later generation.
    pub(crate) async fn until_used(&self, host: &str, used: i64) {
        let began = Instant::now();
        loop {
            let nodes = self.admin.clone().nodes(v1::NodesRequest::default()).await.unwrap().into_inner().nodes;
            let node = nodes.iter().find(|node| node.host == host);
            if node.is_some_and(|node| node.used.as_ref().is_some_and(|found| found.memory() == used)) {
                return;
            }
            assert!(began.elapsed() < SOON, "not in time: {host} uses {used} MB; {nodes:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Hints that must come.
    pub(crate) async fn hints(&self, request: v1::RequestHintsRequest) -> v1::RequestHintsResponse {
        self.client.request_hints(request, SOON).await.unwrap()
    }

    /// A refusal that must come: its code and message; and nothing was leased by it.
    pub(crate) async fn refused(&self, request: v1::RequestHintsRequest) -> (Code, String) {
        let before = self.status().await.leases;
        let found = refusal(self.client.request_hints(request, SOON).await.map(|answer| format!("{answer:?}")));
        assert_eq!(self.status().await.leases, before, "a refused request leases nothing: {found:?}");
        assert_eq!(self.counter("leases_granted").await, before, "nor did it for a moment");
        found
    }
}

/// Code and message of what must be a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(found: Result<T, ClientError>) -> (Code, String) {
    match found {
        Err(ClientError::Refused { code, message, .. }) => (code, message),
        other => panic!("not refused: {other:?}"),
    }
}

async fn launch(folder: &Path, extra: &[(&'static str, String)]) -> (Running, Client, AdminClient) {
    let config = Config::from_text(&config_text(folder, 0, extra), "test.toml").unwrap();
    let running = start(&config.options, Metrics::new()).await.unwrap();
    let client = connect(&running.grpc.to_string()).await.unwrap();
    let admin = admin(&running.admin).await.unwrap();
    (running, client, admin)
}

/// What makes all clients of the tests the same one to the daemon, also after a restart.
pub(crate) fn known() -> ClientOptions {
    ClientOptions { secret: Secret::of(b"a secret of the tests"), ..ClientOptions::default() }
}

/// A client of it.
pub(crate) async fn connect(address: &str) -> Result<Client, ClientError> {
    Client::connect_with(address, &known()).await
}

pub(crate) fn hello() -> v1::FeedHello {
    v1::FeedHello { source: "test".to_owned(), used_means: v1::UsedMeans::Allocated.into(), names_containers: true }
}

pub(crate) fn resource(memory: i64, vcores: i32) -> yarn::ResourceProto {
    yarn::ResourceProto { memory: Some(memory), virtual_cores: Some(vcores), resource_value_map: vec![] }
}

pub(crate) fn register(host: &str, rack: &str, memory: i64) -> v1::HeartbeatItem {
    let register = v1::RegisterNode {
        host: host.to_owned(),
        port: 45_454,
        rack: rack.to_owned(),
        total: Some(resource(memory, 32)),
        ..Default::default()
    };
    v1::HeartbeatItem { number: 0, item: Some(v1::heartbeat_item::Item::Register(register)) }
}

/// A heartbeat with `used` MB in these containers (id, MB).
pub(crate) fn heartbeat(host: &str, response_id: u32, used: i64, containers: Vec<(String, i64)>) -> v1::HeartbeatItem {
    let containers = containers.into_iter().map(|(container_id, memory)| v1::NodeContainer {
        container_id,
        resource: Some(resource(memory, 1)),
        ..Default::default()
    });
    let heartbeat = v1::NodeHeartbeat {
        host: host.to_owned(),
        response_id,
        used: Some(resource(used, 0)),
        containers: containers.collect(),
        state: String::new(),
    };
    v1::HeartbeatItem { number: 0, item: Some(v1::heartbeat_item::Item::Heartbeat(heartbeat)) }
}

/// A request of application `app` for one group `g` of `count` containers of `memory` MB.
pub(crate) fn request(id: &str, app: u32, count: u32, memory: i64) -> v1::RequestHintsRequest {
    v1::RequestHintsRequest {
        request_id: id.to_owned(),
        application_id: format!("application_1_{app:04}"),
        attempt: 1,
        groups: vec![v1::TaskGroup {
            name: "g".to_owned(),
            count,
            resource: Some(resource(memory, 1)),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// An answer as it was said first: a repeat says that it is one, and what has become of its leases.
pub(crate) fn first_said(answer: &v1::RequestHintsResponse) -> v1::RequestHintsResponse {
    v1::RequestHintsResponse { is_repeat: false, leases: Vec::new(), ..answer.clone() }
}

/// Leases of an answer by host.
pub(crate) fn leased(answer: &v1::RequestHintsResponse) -> BTreeMap<String, Vec<u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for hint in &answer.hints.as_ref().unwrap().hints {
        found.entry(hint.host.clone()).or_default().extend(&hint.lease_ids);
    }
    found.retain(|_, leases| !leases.is_empty());
    found
}
