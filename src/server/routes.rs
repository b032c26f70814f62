//! The `Routes` service: paths for pairs of hosts, pushed as the network changes.

use super::deadline::in_time;
use super::placement::stopping;
use super::status::status;
use crate::engine::{NamedRoute, Refusal, RouteUpdate, WatchedPair};
use crate::runtime::Daemon;
use crate::runtime::watchers::Watching;
use crate::units::Micros;
use crate::wire::v1;
use crate::wire::v1::routes_server::Routes;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

/// The service.
#[derive(Debug, Clone)]
pub struct RoutesService {
    daemon: Daemon,
}

/// Updates that wait for a slow reader beyond those its queue holds.
const READ_AHEAD: usize = 4;
/// The longest name of a watcher or class, bytes.
const NAME_BYTES: usize = 256;

impl RoutesService {
    /// The service of a daemon.
    #[must_use]
    pub const fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }
}

#[tonic::async_trait]
impl Routes for RoutesService {
    type WatchStream = ReceiverStream<Result<v1::RouteUpdate, Status>>;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let watching = async {
            let name = watcher(&wire.watcher)?;
            let pairs = pairs(&wire.pairs)?;
            let most = self.daemon.settings().watched_pairs;
            let watching = self.daemon.watch(Arc::clone(&name), pairs, most).await?;
            Ok((name, watching))
        };
        let (name, watching) = in_time(&self.daemon, &metadata, watching).await?;
        let (down, updates) = mpsc::channel(READ_AHEAD);
        tokio::spawn(send_updates(self.daemon.clone(), name, watching, down));
        Ok(Response::new(ReceiverStream::new(updates)))
    }

    async fn acknowledge(
        &self,
        request: Request<v1::AcknowledgeRequest>,
    ) -> Result<Response<v1::AcknowledgeResponse>, Status> {
        let wire = request.into_inner();
        let outstanding = self.daemon.acknowledge(&wire.watcher, wire.number).map_err(|refusal| status(&refusal))?;
        Ok(Response::new(v1::AcknowledgeResponse { outstanding }))
    }
}

async fn send_updates(
    daemon: Daemon,
    name: Arc<str>,
    mut watching: Watching<Arc<RouteUpdate>>,
    down: mpsc::Sender<Result<v1::RouteUpdate, Status>>,
) {
    loop {
        let update = tokio::select! {
            update = watching.updates.recv() => update,
            () = down.closed() => break,
            () = daemon.stopping().cancelled() => {
                let _ = down.try_send(Err(stopping()));
                break;
            }
        };
        let Some((number, update)) = update else {
            let message = format!("a later Watch replaced \"{name}\", or it left too many updates unread");
            let refusal = Refusal::Unavailable { message, retry_after: Micros::from_secs(1) };
            let _ = down.try_send(Err(status(&refusal)));
            break;
        };
        let sent = tokio::select! {
            sent = down.send(Ok(update_to_wire(number, &update))) => sent.is_ok(),
            () = daemon.stopping().cancelled() => false,
        };
        if !sent {
            break;
        }
    }
    daemon.unwatch(name, watching.session);
}

fn watcher(name: &str) -> Result<Arc<str>, Refusal> {
    if name.trim().is_empty() || name.len() > NAME_BYTES {
        let message = format!("a watcher's name has 1 to {NAME_BYTES} bytes, not {}", name.len());
        return Err(invalid("watcher", message));
    }
    Ok(name.into())
}

fn pairs(wire: &[v1::HostPair]) -> Result<Vec<WatchedPair>, Refusal> {
    if wire.is_empty() {
        return Err(invalid("pairs", "is empty: nothing is watched".to_owned()));
    }
    let mut pairs = Vec::with_capacity(wire.len());
    for (at, pair) in wire.iter().enumerate() {
        for (end, host) in [("src", &pair.src), ("dst", &pair.dst)] {
            if host.is_empty() {
                return Err(invalid(&format!("pairs[{at}].{end}"), "is missing".to_owned()));
            }
        }
        if pair.src == pair.dst {
            let message = format!("\"{}\" needs no path to itself", pair.src);
            return Err(invalid(&format!("pairs[{at}].dst"), message));
        }
        if pair.class.len() > NAME_BYTES {
            let message = format!("{} bytes; at most {NAME_BYTES}", pair.class.len());
            return Err(invalid(&format!("pairs[{at}].class"), message));
        }
        pairs.push(WatchedPair {
            src: pair.src.as_str().into(),
            dst: pair.dst.as_str().into(),
            class: pair.class.as_str().into(),
        });
    }
    Ok(pairs)
}

fn invalid(field: &str, message: String) -> Refusal {
    Refusal::Invalid { field: field.to_owned(), message }
}

fn update_to_wire(number: u64, update: &RouteUpdate) -> v1::RouteUpdate {
    v1::RouteUpdate {
        number,
        snapshot: update.snapshot,
        routes: update.routes.iter().map(route).collect(),
        cause: update.cause.to_owned(),
        subject: update.subject.to_string(),
        untouched: update.untouched,
        ..v1::RouteUpdate::default()
    }
}

fn route(route: &NamedRoute) -> v1::Route {
    v1::Route {
        pair: Some(v1::HostPair {
            src: route.pair.src.to_string(),
            dst: route.pair.dst.to_string(),
            class: route.pair.class.to_string(),
        }),
        vertices: route.vertices.iter().map(ToString::to_string).collect(),
        links: route.links.iter().map(ToString::to_string).collect(),
    }
}
