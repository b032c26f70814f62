//! Nodes that report at a steady rate, all together, what runs on them.

use super::windows::Recorder;
use crate::emulate::cluster::resource;
use hintd_client::wire::v1;
use hintd_client::wire::v1::heartbeat_item::Item;
use hintd_client::{Client, ClientError, FeedSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// Memory of a container, MB: YARN's default minimum.
pub(super) const CONTAINER_MB: u64 = 1_024;
/// Scheduler priority of every container.
pub(super) const PRIORITY: i32 = 1;
const NODE_MB: u64 = 128 * 1_024;
const NODE_VCORES: u32 = 128;
/// Nodes of one rack.
const RACK: usize = 40;
const PREFIX: &str = "soak-";

/// Heartbeats are sent in small lots at this pace.
const TICK: Duration = Duration::from_millis(5);
/// Most heartbeats of one lot: after a pause they catch up, but not all at once.
const LOT: u64 = 512;
/// A feed that broke is opened anew after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// What runs where.
#[derive(Debug)]
pub(super) struct Cluster {
    nodes: Vec<Mutex<Node>>,
}

#[derive(Debug, Default)]
struct Node {
    response_id: u32,
    running: Vec<(String, Instant)>,
}

impl Cluster {
    /// Idle nodes.
    pub(super) fn new(nodes: u32) -> Self {
        Self { nodes: (0..nodes).map(|_| Mutex::default()).collect() }
    }

    /// A container runs on the host until then; of a host that is not ours nothing is kept.
    pub(super) fn start(&self, host: &str, container: String, until: Instant) {
        let number = host.strip_prefix(PREFIX).and_then(|number| number.parse::<usize>().ok());
        if let Some(node) = number.and_then(|number| self.nodes.get(number.checked_sub(1)?)) {
            node.lock().unwrap_or_else(PoisonError::into_inner).running.push((container, until));
        }
    }

    fn beat(&self, at: usize) -> Item {
        let mut node = self.nodes[at].lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        node.running.retain(|(_, until)| *until > now);
        node.response_id += 1;
        let container = |(id, _): &(String, Instant)| v1::NodeContainer {
            container_id: id.clone(),
            resource: Some(resource(CONTAINER_MB, 1)),
            priority: PRIORITY,
            ..v1::NodeContainer::default()
        };
        let count = node.running.len();
        Item::Heartbeat(v1::NodeHeartbeat {
            host: host(at),
            response_id: node.response_id,
            used: Some(resource(CONTAINER_MB * count as u64, u32::try_from(count).unwrap_or(u32::MAX))),
            containers: node.running.iter().map(container).collect(),
            state: String::new(),
        })
    }
}

fn host(at: usize) -> String {
    format!("{PREFIX}{:05}", at + 1)
}

/// One stream's part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) stream: u32,
    pub(super) streams: u32,
    /// Heartbeats a second.
    pub(super) rate: f64,
}

/// Reports until it is aborted; a stream that breaks is opened anew and its nodes register again.
pub(super) async fn report(cluster: Arc<Cluster>, client: Client, share: Share, recorder: Arc<Recorder>) {
    loop {
        if let Err(error) = stream(&cluster, &client, share, &recorder).await {
            recorder.feed_broke(&error.to_string());
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn stream(cluster: &Cluster, client: &Client, share: Share, recorder: &Recorder) -> Result<(), ClientError> {
    let hello =
        v1::FeedHello { source: "soak".to_owned(), used_means: v1::UsedMeans::Running.into(), names_containers: true };
    let mut feed: FeedSender<v1::HeartbeatItem> = client.feed(hello).await?;
    let mine: Vec<usize> =
        (0..cluster.nodes.len()).filter(|at| at % share.streams as usize == share.stream as usize).collect();
    if mine.is_empty() {
        return std::future::pending().await;
    }
    for &at in &mine {
        feed.send(item(register(at))).await?;
        feed.send(item(cluster.beat(at))).await?;
    }
    let mut through = feed.await_acknowledged().await?.through;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (begin, mut sent) = (Instant::now(), 0_u64);
    let mut next = mine.iter().cycle();
    loop {
        tokio::select! {
            ack = feed.ack() => {
                let ack = ack?;
                recorder.acknowledged(ack.through.saturating_sub(through), ack.refused.len() as u64);
                through = through.max(ack.through);
            }
            _ = tick.tick() => {
                let due = (begin.elapsed().as_secs_f64() * share.rate) as u64;
                let until = due.min(sent + LOT);
                while sent < until {
                    let at = *next.next().expect("a share without nodes does not come here");
                    feed.send(item(cluster.beat(at))).await?;
                    sent += 1;
                }
            }
        }
    }
}

fn register(at: usize) -> Item {
    Item::Register(v1::RegisterNode {
        host: host(at),
        port: 45_454,
        rack: format!("/soak-{:04}", at / RACK + 1),
        total: Some(resource(NODE_MB, NODE_VCORES)),
        ..v1::RegisterNode::default()
    })
}

const fn item(item: Item) -> v1::HeartbeatItem {
    v1::HeartbeatItem { number: 0, item: Some(item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_node_names_its_containers_until_they_end() {
        let cluster = Cluster::new(2);
        let soon = Instant::now() + Duration::from_secs(60);
        cluster.start("soak-00002", "c1".to_owned(), soon);
        cluster.start("soak-00002", "c2".to_owned(), Instant::now());
        cluster.start("soak-00003", "c3".to_owned(), soon);
        cluster.start("elsewhere", "c4".to_owned(), soon);
        let beat = |at| match cluster.beat(at) {
            Item::Heartbeat(beat) => (beat.response_id, beat.used.unwrap().memory(), beat.containers.len()),
            other => panic!("{other:?}"),
        };
        assert_eq!((beat(0), beat(1), beat(1)), ((1, 0, 0), (1, 1_024, 1), (2, 1_024, 1)));
    }
}
