//! Sockets: binding, serving, and the order of a shutdown.

use super::admin::AdminService;
use super::admin_socket;
use super::bounds::{Budgets, CONNECTION_WINDOW, MessageBounds, STREAM_WINDOW};
use super::closing::Calls;
use super::connection_permits::ConnectionLimiter;
use super::feed::FeedService;
use super::front::Front;
use super::placement::PlacementService;
use super::routes::RoutesService;
use crate::runtime::options::{Listen, Options};
use crate::runtime::{Daemon, Ending, Ready, StartError};
use crate::store::ShutdownError;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::rate_limited_log::RateLimitedLog;
use hintd_client::wire::v1::admin_server::AdminServer;
use hintd_client::wire::v1::feed_server::FeedServer;
use hintd_client::wire::v1::placement_server::PlacementServer;
use hintd_client::wire::v1::routes_server::RoutesServer;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::service::RoutesBuilder;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::layer::util::{Identity, Stack};

/// A peer that does not answer a ping for so long is gone, and its streams with it.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time from the first refusal to the closing of connections, while calls still come; a quarter of
/// `listen.drain` where that is less.
const GRACE: Duration = Duration::from_secs(1);
/// Services whose health is told; "" is the daemon as a whole.
const SERVICES: [&str; 4] = ["", "hintd.v1.Placement", "hintd.v1.Feed", "hintd.v1.Routes"];

/// A daemon that serves.
#[derive(Debug)]
pub struct Running {
    /// Where Placement, Feed and Routes listen, with the port that 0 became.
    pub grpc: SocketAddr,
    /// Admin's socket.
    pub admin: PathBuf,
    /// The daemon itself.
    pub daemon: Daemon,
    servers: Vec<JoinHandle<Result<(), tonic::transport::Error>>>,
    /// Calls to the public address.
    calls: Calls,
    /// Listeners and connections close when it is cancelled.
    closing: CancellationToken,
    health: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    ending: Ending,
    drain: Duration,
}

/// [`Running`], once it can be called.
pub type Starting<'a> = Pin<Box<dyn Future<Output = Result<Running, StartError>> + Send + 'a>>;

/// Starts a daemon and serves it; ready when it can be called. To be called within a tokio runtime.
///
/// Boxed, for the compiler's sake: whoever awaits another crate's `async fn` compiles its body once more, and all that it
/// spawns, here the whole of tonic's server.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start(options: &Options, metrics: Metrics) -> Starting<'_> {
    Box::pin(serve(options, metrics))
}

async fn serve(options: &Options, metrics: Metrics) -> Result<Running, StartError> {
    let listen = &options.listen;
    if !listen.grpc.ip().is_loopback() && !listen.insecure_bind {
        return Err(StartError::Insecure(listen.grpc));
    }
    let tcp = TcpListener::bind(listen.grpc).await.map_err(bind("grpc", listen.grpc.to_string()))?;
    let grpc = tcp.local_addr().map_err(bind("grpc", listen.grpc.to_string()))?;
    let unix = admin_socket::bind(&listen.admin_socket).await?;
    let (daemon, ending) = Daemon::start(options, metrics.clone())?;
    let upkeep = tokio::spawn(metrics.keep_up());
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let now = *daemon.ready().borrow();
    report(&reporter, now).await;
    let health = tokio::spawn(follow_readiness(daemon.clone(), reporter));

    let most = listen.message_bytes;
    let placement = PlacementServer::new(PlacementService::new(daemon.clone())).max_decoding_message_size(most);
    let mut public = RoutesBuilder::default();
    public
        .add_service(placement.clone())
        .add_service(FeedServer::new(FeedService::new(daemon.clone())).max_decoding_message_size(most))
        .add_service(RoutesServer::new(RoutesService::new(daemon.clone())).max_decoding_message_size(most))
        .add_service(health_service.clone())
        .add_service(reflection());
    let mut private = RoutesBuilder::default();
    private
        .add_service(AdminServer::new(AdminService::new(daemon.clone())).max_decoding_message_size(most))
        .add_service(health_service)
        .add_service(reflection());
    // Operators have memory of their own: they are answered whatever applications do.
    let (budgets, operators) = (Budgets::new(listen), Budgets::new(listen));
    let limiter = ConnectionLimiter::new(listen, daemon.clone(), budgets.clone());
    let permitted = move |stream: io::Result<TcpStream>| stream.map(|stream| limiter.permit(stream)).transpose();
    let incoming = TcpIncoming::from(tcp).with_nodelay(Some(true)).filter_map(permitted);
    let (closing, calls) = (CancellationToken::new(), Calls::default());
    let stop = closing.clone().cancelled_owned();
    let bounds = MessageBounds::new(listen, daemon.clone(), &budgets);
    let front = Front::new(calls.clone(), bounds, Some(placement));
    let public = builder(listen, front).add_routes(public.routes());
    let public = tokio::spawn(public.serve_with_incoming_shutdown(incoming, stop));
    let stop = closing.clone().cancelled_owned();
    let bounds = MessageBounds::new(listen, daemon.clone(), &operators);
    let front = Front::new(Calls::default(), bounds, None);
    let private = builder(listen, front).add_routes(private.routes());
    let private = tokio::spawn(private.serve_with_incoming_shutdown(UnixListenerStream::new(unix), stop));
    tracing::info!(%grpc, admin = %listen.admin_socket.display(), instance = %daemon.instance(), "serving");
    Ok(Running {
        grpc,
        admin: listen.admin_socket.clone(),
        daemon,
        servers: vec![public, private],
        calls,
        closing,
        health,
        upkeep,
        ending,
        drain: listen.drain,
    })
}

impl Running {
    /// This life of the daemon.
    #[must_use]
    pub fn instance_id(&self) -> String {
        self.daemon.instance().to_string()
    }

    /// Refuses what is new, ends streams, closes connections once who asks has heard of it and calls in flight have
    /// ended, flushes the journal: all within the configured time.
    ///
    /// # Errors
    /// [`ShutdownError`] where the disk took longer.
    pub async fn shutdown(self) -> Result<(), ShutdownError> {
        let deadline = Instant::now() + self.drain;
        self.daemon.refuse_new();
        // Whoever asks for health sees the change before the sockets close.
        tokio::task::yield_now().await;
        self.daemon.end_streams();
        self.calls.quiet(GRACE.min(self.drain / 4)).await;
        self.closing.cancel();
        for mut server in self.servers {
            // A peer that never ends its connection must not hold the daemon (hyper waits for it).
            if tokio::time::timeout_at(deadline.into(), &mut server).await.is_err() {
                tracing::warn!("connections were cut: they outlived the drain time");
                server.abort();
            }
        }
        self.daemon.spans().finish(deadline.saturating_duration_since(Instant::now())).await;
        self.health.abort();
        self.upkeep.abort();
        admin_socket::remove(&self.admin);
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let ending = self.ending;
        let finished = tokio::task::spawn_blocking(move || ending.finish(left)).await;
        // A panic while flushing was printed by the panic hook; one of the engine's thread does not come here.
        let finished = finished.unwrap_or(Ok(()));
        tracing::info!(clean = finished.is_ok(), "stopped");
        finished
    }
}

fn builder(listen: &Listen, front: Front) -> Server<Stack<Front, Identity>> {
    let streams = u32::try_from(listen.streams_per_connection).unwrap_or(u32::MAX);
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(Some(streams))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_header_list_size(listen.header_bytes)
        .layer(front)
}

fn reflection()
-> tonic_reflection::server::v1::ServerReflectionServer<impl tonic_reflection::server::v1::ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(hintd_client::wire::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were made by the same build")
}

/// "" is live, Placement is ready: each service says whether it can do its work.
async fn report(reporter: &HealthReporter, ready: Ready) {
    let whys = [ready.why_not_live(), ready.why_not(), ready.why_refused(), ready.why_refused()];
    for (service, why_not) in SERVICES.into_iter().zip(whys) {
        let status = if why_not.is_none() { ServingStatus::Serving } else { ServingStatus::NotServing };
        reporter.set_service_status(service, status).await;
    }
}

async fn follow_readiness(daemon: Daemon, reporter: HealthReporter) {
    let mut ready = daemon.ready();
    // A feed that names one node after another could fill a disk with these.
    let nodes_said = RateLimitedLog::default();
    // Each daemon begins without nodes: that is no news.
    let mut was_ready = false;
    loop {
        let now = *ready.borrow_and_update();
        report(&reporter, now).await;
        match (now.why_not(), now.why_refused()) {
            (Some(_), Some(why)) => tracing::warn!(why, "not ready"),
            (Some(why), None) if was_ready => {
                if let Some(count) = nodes_said.due() {
                    tracing::warn!(why, count, "not ready");
                }
            }
            (Some(why), None) => tracing::debug!(why, "not ready yet"),
            (None, _) => tracing::debug!("ready"),
        }
        was_ready |= now.why_not().is_none();
        if ready.changed().await.is_err() {
            return;
        }
    }
}

fn bind(what: &'static str, address: String) -> impl Fn(io::Error) -> StartError {
    move |source| StartError::Bind { what, address: address.clone(), source }
}
