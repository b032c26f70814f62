//! The `Feed` service: one pump for all feeds; `feed` says what items mean.

use super::codec::of_stream;
use super::connection_permits::ConnectionPermit;
use super::placement::stopping;
use super::status::status;
use crate::feed::{FeedStream, blocks, datasets, events, heartbeats, latency, link_stats, topology};
use crate::runtime::Daemon;
use crate::runtime::registries::{FeedRegistries, ItemRefusal};
use hintd_client::wire::v1;
use hintd_client::wire::v1::feed_server::Feed;
use hintd_engine::{Proof, TaskEvent};
use hintd_model::cluster::Source;
use hintd_model::text::Shown;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// The service.
#[derive(Debug, Clone)]
pub struct FeedService {
    daemon: Daemon,
}

/// Items that share an acknowledgement, at most.
const ACK_EVERY: u64 = 256;
/// Longest time from an item to its acknowledgement.
const ACK_WITHIN: Duration = Duration::from_millis(10);
/// Acknowledgements that wait for a source that does not read them; then it is not read either.
const ACKS_AHEAD: usize = 16;

type Acks = ReceiverStream<Result<v1::FeedAck, Status>>;
/// Takes one item in; the event it held, if any, goes to the engine.
type Ingest<I> = fn(&Daemon, &mut FeedStream, I) -> Option<(TaskEvent, Proof)>;

impl FeedService {
    /// The service of a daemon.
    #[must_use]
    pub const fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }

    fn pump<I: Send + 'static>(
        &self,
        source: Source,
        request: Request<Streaming<I>>,
        ingest: Ingest<I>,
    ) -> Result<Response<Acks>, Status> {
        let place = self.daemon.stream_place().map_err(|refusal| status(&refusal))?;
        let (acks, stream) = mpsc::channel(ACKS_AHEAD);
        let daemon = self.daemon.clone();
        let pump = Pump { daemon, stream: FeedStream::new(source), acks, waiting: 0, _place: place };
        tokio::spawn(pump.run(request.into_inner(), ingest));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// One stream's task.
struct Pump {
    daemon: Daemon,
    stream: FeedStream,
    acks: mpsc::Sender<Result<v1::FeedAck, Status>>,
    /// Items since the last acknowledgement.
    waiting: u64,
    _place: OwnedSemaphorePermit,
}

impl Pump {
    async fn run<I>(mut self, mut items: Streaming<I>, ingest: Ingest<I>) {
        let stopped = self.daemon.stopping().clone();
        let mut wanted = self.daemon.registries().full_reports_wanted();
        let due = sleep_until(Instant::now());
        tokio::pin!(due);
        loop {
            let next = tokio::select! {
                next = items.message() => next,
                () = &mut due, if self.waiting > 0 => {
                    if !self.acknowledge().await { return }
                    continue;
                }
                // DataNodes on an idle stream learn here that their full report is wanted.
                Ok(()) = wanted.changed() => {
                    if !self.acknowledge().await { return }
                    continue;
                }
                () = stopped.cancelled() => return self.end(Some(stopping())).await,
                () = self.acks.closed() => return,
            };
            match next {
                Ok(Some(item)) => {
                    if self.waiting == 0 {
                        due.as_mut().reset(Instant::now() + ACK_WITHIN);
                    }
                    self.waiting += 1;
                    if let Some((event, proof)) = ingest(&self.daemon, &mut self.stream, item)
                        && self.daemon.event(event, proof).await.is_err()
                    {
                        return self.end(Some(stopping())).await;
                    }
                    if self.waiting >= ACK_EVERY && !self.acknowledge().await {
                        return;
                    }
                }
                Ok(None) => return self.end(None).await,
                Err(status) => return self.end(Some(of_stream(status))).await,
            }
        }
    }

    /// Sends an acknowledgement; false: nobody reads it.
    async fn acknowledge(&mut self) -> bool {
        self.waiting = 0;
        let ack = self.stream.acknowledge(self.daemon.registries(), self.daemon.instance());
        let stopped = self.daemon.stopping().clone();
        tokio::select! {
            sent = self.acks.send(Ok(ack)) => sent.is_ok(),
            () = stopped.cancelled() => false,
        }
    }

    async fn end(mut self, status: Option<Status>) {
        if self.waiting > 0 {
            let ack = self.stream.acknowledge(self.daemon.registries(), self.daemon.instance());
            let _ = self.acks.try_send(Ok(ack));
        }
        if let Some(status) = status {
            let _ = self.acks.try_send(Err(status));
        }
    }
}

/// An ingest of facts: what is refused is noted in the stream's acknowledgement.
fn facts<I>(
    daemon: &Daemon,
    stream: &mut FeedStream,
    item: I,
    ingest: fn(&FeedRegistries, &mut FeedStream, I) -> Result<(), ItemRefusal>,
) -> Option<(TaskEvent, Proof)> {
    if let Err(refusal) = ingest(daemon.registries(), stream, item) {
        tracing::debug!(refusal = %Shown(&refusal), "a feed's item was refused");
    }
    None
}

#[tonic::async_trait]
impl Feed for FeedService {
    type HeartbeatsStream = Acks;
    async fn heartbeats(&self, request: Request<Streaming<v1::HeartbeatItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Heartbeats, request, |d, s, item| facts(d, s, item, heartbeats::ingest))
    }

    type BlockReportsStream = Acks;
    async fn block_reports(&self, request: Request<Streaming<v1::BlockReportItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Blocks, request, |d, s, item| facts(d, s, item, blocks::ingest))
    }

    type DatasetsStream = Acks;
    async fn datasets(&self, request: Request<Streaming<v1::DatasetItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Blocks, request, |d, s, item| facts(d, s, item, datasets::ingest))
    }

    type TopologyStream = Acks;
    async fn topology(&self, request: Request<Streaming<v1::TopologyItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Topology, request, |daemon, stream, item| {
            let event = facts(daemon, stream, item, topology::ingest);
            daemon.hurry();
            event
        })
    }

    type LinkStatsStream = Acks;
    async fn link_stats(&self, request: Request<Streaming<v1::LinkStatsItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::LinkStats, request, |d, s, item| facts(d, s, item, link_stats::ingest))
    }

    type LatencyStream = Acks;
    async fn latency(&self, request: Request<Streaming<v1::LatencyItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Latency, request, |daemon, stream, item| {
            let bounds = daemon.settings().latency_bounds();
            if let Err(refusal) = latency::ingest(daemon.registries(), stream, item, bounds, daemon.clock().now()) {
                tracing::debug!(refusal = %Shown(&refusal), "a feed's item was refused");
            }
            None
        })
    }

    async fn probe_targets(
        &self,
        request: Request<v1::ProbeTargetsRequest>,
    ) -> Result<Response<v1::ProbeTargetsResponse>, Status> {
        let peer = request.extensions().get::<ConnectionPermit>().and_then(ConnectionPermit::peer);
        let found = self.daemon.probe_targets(request.get_ref(), peer).map_err(|refusal| status(&refusal))?;
        Ok(Response::new(found))
    }

    type EventsStream = Acks;
    async fn events(&self, request: Request<Streaming<v1::EventItem>>) -> Result<Response<Acks>, Status> {
        self.pump(Source::Events, request, |daemon, stream, item| {
            events::ingest(daemon.registries(), stream, item, daemon.clock().now()).ok().flatten()
        })
    }
}
