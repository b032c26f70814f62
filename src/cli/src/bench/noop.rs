//! The peer: a gRPC server of the same stack and the same bytes that does nothing with them.

use super::super::connect::block_on;
use super::super::failure::Failure;
use hintd_client::wire::v1;
use hintd_client::wire::v1::feed_server::{Feed, FeedServer};
use hintd_client::wire::v1::placement_server::{Placement, PlacementServer};
use prost::Message as _;
use std::io::{Read as _, Write as _};
use std::pin::Pin;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Items of a feed stream that one acknowledgement covers.
const ITEMS_PER_ACK: u64 = 256;

type AckStream = Pin<Box<dyn Stream<Item = Result<v1::FeedAck, Status>> + Send>>;
type FollowStream = Pin<Box<dyn Stream<Item = Result<v1::FollowMessage, Status>> + Send>>;

/// Answers every request with the same message.
struct Noop {
    answer: v1::RequestHintsResponse,
}

/// Reads the answer from standard input, says where it listens on standard output, serves until it is killed.
///
/// # Errors
/// [`Failure`] if the answer is no message or no port is free.
pub fn serve() -> Result<(), Failure> {
    let mut encoded = Vec::new();
    std::io::stdin().read_to_end(&mut encoded).map_err(anyhow::Error::from)?;
    let answer = v1::RequestHintsResponse::decode(encoded.as_slice()).map_err(anyhow::Error::from)?;
    block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(anyhow::Error::from)?;
        let address = listener.local_addr().map_err(anyhow::Error::from)?;
        let mut out = std::io::stdout();
        writeln!(out, "{address}").and_then(|()| out.flush()).map_err(anyhow::Error::from)?;
        // The server's own `tcp_nodelay` holds only for sockets that it bound itself.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let served = tonic::transport::Server::builder()
            .add_service(PlacementServer::new(Noop { answer }))
            .add_service(FeedServer::new(Reader))
            .serve_with_incoming(incoming)
            .await;
        served.map_err(|error| Failure::Work(error.into()))
    })
}

#[tonic::async_trait]
impl Placement for Noop {
    type FollowStream = FollowStream;

    async fn request_hints(
        &self,
        _: Request<v1::RequestHintsRequest>,
    ) -> Result<Response<v1::RequestHintsResponse>, Status> {
        Ok(Response::new(self.answer.clone()))
    }

    async fn follow(&self, _: Request<Streaming<v1::FollowRequest>>) -> Result<Response<FollowStream>, Status> {
        Err(Status::unimplemented("the no-op server follows nothing"))
    }

    async fn release(&self, _: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseResponse>, Status> {
        Ok(Response::new(v1::ReleaseResponse::default()))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented("the no-op server explains nothing"))
    }

    async fn shuffle_turn(
        &self,
        _: Request<v1::ShuffleTurnRequest>,
    ) -> Result<Response<v1::ShuffleTurnResponse>, Status> {
        Err(Status::unimplemented("the no-op server holds nobody"))
    }

    async fn replicas(&self, _: Request<v1::ReplicasRequest>) -> Result<Response<v1::ReplicasResponse>, Status> {
        Err(Status::unimplemented("the no-op server advises nothing"))
    }

    async fn input_homes(&self, _: Request<v1::InputHomesRequest>) -> Result<Response<v1::InputHomesResponse>, Status> {
        Err(Status::unimplemented("the no-op server knows no homes"))
    }

    async fn resolve_racks(
        &self,
        _: Request<v1::ResolveRacksRequest>,
    ) -> Result<Response<v1::ResolveRacksResponse>, Status> {
        Err(Status::unimplemented("the no-op server knows no racks"))
    }
}

/// Reads feed streams and acknowledges them.
struct Reader;

/// Reads one stream to its end.
fn read<T: Send + 'static>(items: Streaming<T>, number: fn(&T) -> u64) -> Result<Response<AckStream>, Status> {
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        let mut items = items;
        let (mut through, mut since) = (0, 0);
        while let Some(Ok(item)) = items.next().await {
            through = number(&item);
            since += 1;
            if since == ITEMS_PER_ACK {
                since = 0;
                let ack = v1::FeedAck { through, ..v1::FeedAck::default() };
                if sender.send(Ok(ack)).await.is_err() {
                    return;
                }
            }
        }
        let _ = sender.send(Ok(v1::FeedAck { through, ..v1::FeedAck::default() })).await;
    });
    Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
}

/// One method per feed; they differ in nothing but the item's type.
macro_rules! feeds {
    ($($method:ident($item:ident) -> $stream:ident;)*) => {
        #[tonic::async_trait]
        impl Feed for Reader {
            $(
                type $stream = AckStream;

                async fn $method(&self, request: Request<Streaming<v1::$item>>) -> Result<Response<AckStream>, Status> {
                    read(request.into_inner(), |item| item.number)
                }
            )*

            async fn probe_targets(
                &self,
                _: Request<v1::ProbeTargetsRequest>,
            ) -> Result<Response<v1::ProbeTargetsResponse>, Status> {
                Err(Status::unimplemented("the no-op server knows no agents"))
            }
        }
    };
}

feeds! {
    heartbeats(HeartbeatItem) -> HeartbeatsStream;
    block_reports(BlockReportItem) -> BlockReportsStream;
    datasets(DatasetItem) -> DatasetsStream;
    topology(TopologyItem) -> TopologyStream;
    link_stats(LinkStatsItem) -> LinkStatsStream;
    latency(LatencyItem) -> LatencyStream;
    events(EventItem) -> EventsStream;
}
