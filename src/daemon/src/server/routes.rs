//! The `Routes` service: paths for pairs of hosts, pushed as the network changes.

use super::connection_permits::ConnectionPermit;
use super::convert;
use super::deadline::in_time;
use super::placement::stopping;
use super::status::status;
use crate::runtime::watchers::{WatchCaller, Watching};
use crate::runtime::{Daemon, proof};
use hintd_client::wire::v1;
use hintd_client::wire::v1::routes_server::Routes;
use hintd_engine::{Refusal, RouteUpdate};
use hintd_model::units::Micros;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

/// The service.
#[derive(Debug, Clone)]
pub struct RoutesService {
    daemon: Daemon,
}

/// Updates that wait for a slow reader beyond those its queue holds.
const READ_AHEAD: usize = 4;

impl RoutesService {
    /// The service of a daemon.
    #[must_use]
    pub const fn new(daemon: Daemon) -> Self {
        Self { daemon }
    }
}

#[tonic::async_trait]
impl Routes for RoutesService {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::RouteUpdate, Status>> + Send>>;

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (metadata, extensions, wire) = request.into_parts();
        let peer = extensions.get::<ConnectionPermit>().and_then(ConnectionPermit::quota_peer);
        let watching = async {
            let name = convert::watcher(&wire.watcher)?;
            let scope = convert::watch_scope(&wire, self.daemon.instance())?;
            let most = self.daemon.settings().watch;
            let proof = proof("", &wire.nonce)?;
            let caller = WatchCaller { watcher: Arc::clone(&name), proof, peer };
            let watching = self.daemon.watch(caller, scope, most).await?;
            Ok((name, watching))
        };
        let place = self.daemon.stream_place().map_err(|refusal| status(&refusal))?;
        let (name, watching) = in_time(&self.daemon, &metadata, watching).await?;
        let (down, updates) = mpsc::channel(READ_AHEAD);
        let (daemon, instance) = (self.daemon.clone(), Arc::clone(self.daemon.instance()));
        tokio::spawn(async move {
            let _place = place;
            send_updates(daemon, name, watching, down).await;
        });
        // Made when it is to be sent: what waits for a slow reader is shared with the engine.
        let wire = move |update: Result<Arc<RouteUpdate>, Status>| Ok(convert::route_update(&*update?, &instance));
        Ok(Response::new(Box::pin(ReceiverStream::new(updates).map(wire))))
    }

    async fn acknowledge(
        &self,
        request: Request<v1::AcknowledgeRequest>,
    ) -> Result<Response<v1::AcknowledgeResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let acknowledge = async {
            let watcher = convert::watcher(&wire.watcher)?;
            let refused = convert::refused_routes(&wire.refused)?;
            self.daemon.acknowledge(watcher, proof("", &wire.nonce)?, wire.number, refused).await
        };
        let outstanding = in_time(&self.daemon, &metadata, acknowledge).await?;
        Ok(Response::new(v1::AcknowledgeResponse { outstanding }))
    }

    async fn report_circuits(
        &self,
        request: Request<v1::ReportCircuitsRequest>,
    ) -> Result<Response<v1::ReportCircuitsResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let report = async {
            let watcher = convert::watcher(&wire.watcher)?;
            let shown = proof("", &wire.nonce)?;
            self.daemon.report_circuits(watcher, shown, convert::circuit_report(&wire, self.daemon.instance())?).await
        };
        let wanted_version = in_time(&self.daemon, &metadata, report).await?;
        Ok(Response::new(v1::ReportCircuitsResponse { wanted_version }))
    }
}

async fn send_updates(
    daemon: Daemon,
    name: Arc<str>,
    mut watching: Watching,
    down: mpsc::Sender<Result<Arc<RouteUpdate>, Status>>,
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
        let Some(update) = update else {
            let why = watching.ended.get().map_or("the daemon is shutting down", String::as_str);
            let message = format!("the watch of \"{name}\" ends: {why}");
            let refusal = Refusal::Unavailable { message, retry_after: Micros::from_secs(1) };
            let _ = down.try_send(Err(status(&refusal)));
            break;
        };
        let sent = tokio::select! {
            sent = down.send(Ok(update)) => sent.is_ok(),
            () = daemon.stopping().cancelled() => false,
        };
        if !sent {
            break;
        }
    }
    daemon.unwatch(name, watching.session);
}
