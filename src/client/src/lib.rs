//! The Rust client: typed calls, retries that are safe, feeds and follow streams that outlive a restart.
//!
//! An ApplicationMaster asks by [`Client::hints_or_none`], which never fails it: it gets hints or the reason why there
//! are none, within its own time, and a table for YARN in both cases.
//!
//! ```
//! use hintd_client::{Advice, Cause, Client};
//! use hintd_client::wire::{v1, yarn};
//! use std::time::Duration;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! // No daemon needs to be there yet: this only fails for what is no address.
//! let client = Client::lazy("127.0.0.1:1").expect("a host and a port");
//! let map = v1::TaskGroup {
//!     name: "map".into(),
//!     count: 40,
//!     priority: 20,
//!     resource: Some(yarn::ResourceProto { memory: Some(1024), virtual_cores: Some(1), ..Default::default() }),
//!     ..Default::default()
//! };
//! let request = v1::RequestHintsRequest {
//!     request_id: "job-7-1".into(),
//!     application_id: "application_1700000000000_0007".into(),
//!     attempt: 1,
//!     groups: vec![map],
//!     ..Default::default()
//! };
//! let advice = client.hints_or_none(request, Duration::from_millis(50)).await;
//! match &advice {
//!     Advice::Hinted(hinted) => println!("{} hints", hinted.hints.hints.len()),
//!     Advice::Unhinted(unhinted) => {
//!         println!("{unhinted}"); // no hints, for no daemon could be reached: ...
//!         # assert!(matches!(unhinted.because, Cause::Unreachable | Cause::Deadline)); // which, a busy machine decides
//!     }
//! }
//! // Goes to the ResourceManager, hinted or not: without hints it asks for 40 containers anywhere.
//! let table: &[yarn::ResourceRequestProto] = advice.asks();
//! # assert_eq!((table[0].resource_name(), table[0].num_containers()), ("*", 40));
//! # });
//! ```
//!
//! The crate is not on a registry. A program beside a checkout of hintd depends on it by path, and builds nothing of the
//! daemon, its journal, or the command line for it:
//!
//! ```toml
//! [dependencies]
//! hintd-client = { path = "../hintd/src/client" }
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
//! Messages are those of `proto/`, as prost makes them: [`wire`]. Those that `hintctl --json` prints are
//! [`serde::Serialize`], with the same keys: [`view`].
//!
//! A client shows with each call that it is the same one that asked first: by a nonce of the application, which follows from
//! its [`Secret`], or by the token of an answer where the caller gives one. Neither is ever printed.
//!
//! Invariants: only calls that are idempotent are repeated, under the same request id; every wait has an end that the
//! caller chose, by an argument or by [`ClientOptions`].

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an edge: clocks, files and sockets are its work
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr))] // a test that panics is a test that fails

mod acknowledged;
mod address;
mod breaker;
mod decisions;
mod error;
mod feed;
mod follow;
mod hints;
mod retry;
mod secret;
pub mod status;
mod steady;
pub mod view;
pub mod wire;

pub use address::{LEFT_OUT, shown_address, without_unclear, without_values};
pub use breaker::BreakerOptions;
pub use error::{Cause, ClientError};
pub use feed::{FeedItem, FeedSender};
pub use follow::{Follower, Following};
pub use hints::{Advice, Hinted, Unhinted, default_asks};
pub use secret::Secret;
pub use steady::{Full, SteadyFeed};

use crate::wire::v1;
use crate::wire::v1::feed_client::FeedClient;
use crate::wire::v1::placement_client::PlacementClient;
use crate::wire::v1::routes_client::RoutesClient;
use breaker::Breaker;
use decisions::Decisions;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status, Streaming};

/// A daemon, as applications, feeds and SDN controllers see it. Clones share one connection, which is made again when
/// it breaks, and one view of whether the daemon is there.
#[derive(Debug, Clone)]
pub struct Client {
    placement: PlacementClient<Channel>,
    feed: FeedClient<Channel>,
    routes: RoutesClient<Channel>,
    breaker: Arc<Breaker>,
    calls: Duration,
    secret: Arc<Secret>,
    /// Whose the last decisions are, by id: to show the nonce where one is to be explained.
    decisions: Decisions,
}

/// How patient a client is where its caller does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// For a connection to stand.
    pub connect: Duration,
    /// For calls that name no time of their own: releases, explanations, acknowledgements, and to open streams.
    pub calls: Duration,
    /// When [`Client::hints_or_none`] leaves a dead daemon alone.
    pub breaker: BreakerOptions,
    /// What its nonces follow from; `None`: a random one, so that no other process can ask for its applications. Give one
    /// that is kept where a later process is to go on for the same attempts.
    pub secret: Option<Secret>,
}

impl Default for ClientOptions {
    /// 5 s to connect (a local daemon either listens or does not, a remote one answers within a second), 10 s for
    /// calls.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            calls: Duration::from_secs(10),
            breaker: BreakerOptions::default(),
            secret: None,
        }
    }
}

/// Operators' calls, over the daemon's Unix socket.
pub type AdminClient = v1::admin_client::AdminClient<Channel>;

/// Answers of 100,000 hints stay below it.
const MESSAGE_BYTES: usize = 64 << 20;

/// Share of a request's time that is left for the way back.
const WAY_BACK: u32 = 20; // a twentieth

impl Client {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Connect`].
    pub async fn connect(address: &str) -> Result<Self, ClientError> {
        Self::connect_with(address, &ClientOptions::default()).await
    }

    /// As [`Self::connect`], with options of the caller's choice.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Connect`].
    pub async fn connect_with(address: &str, options: &ClientOptions) -> Result<Self, ClientError> {
        let (bare, endpoint) = endpoint(address, options)?;
        let channel = endpoint.connect().await;
        let channel = channel.map_err(|source| ClientError::Connect { address: shown_address(bare), source })?;
        Ok(Self::over(channel, options))
    }

    /// A client that connects when it is first used: no daemon needs to be there yet. To be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn lazy(address: &str) -> Result<Self, ClientError> {
        Self::lazy_with(address, &ClientOptions::default())
    }

    /// As [`Self::lazy`], with options of the caller's choice.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn lazy_with(address: &str, options: &ClientOptions) -> Result<Self, ClientError> {
        let (_, endpoint) = endpoint(address, options)?;
        Ok(Self::over(endpoint.connect_lazy(), options))
    }

    /// The client of a connection that stands.
    #[must_use]
    pub fn over(channel: Channel, options: &ClientOptions) -> Self {
        Self {
            placement: PlacementClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES),
            feed: FeedClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES),
            routes: RoutesClient::new(channel).max_decoding_message_size(MESSAGE_BYTES),
            breaker: Arc::new(Breaker::new(options.breaker.clone())),
            calls: options.calls,
            secret: Arc::new(options.secret.clone().unwrap_or_else(Secret::random)),
            decisions: Decisions::default(),
        }
    }

    /// Asks for hints, and again while the daemon is overloaded, restarts or can't be reached: the request id makes
    /// that safe. `patience` bounds all tries together; the request's own deadline is set from what is left.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::OutOfTime`] with the last refusal.
    pub async fn request_hints(
        &self,
        request: v1::RequestHintsRequest,
        patience: Duration,
    ) -> Result<v1::RequestHintsResponse, ClientError> {
        let request = self.shown(request);
        let answer = retry::until(Instant::now() + patience, |left| self.try_hints(request.clone(), left)).await;
        let decision = match &answer {
            Ok(answer) => answer.hints.as_ref().map(|hints| &hints.decision_id),
            Err(ClientError::Refused { why, .. }) => why.as_ref().map(|why| &why.decision_id),
            Err(_) => None,
        };
        self.decisions.note(decision.map_or("", String::as_str), &request.application_id);
        answer
    }

    /// A request with the nonce of its application, unless its caller shows something else.
    fn shown(&self, mut request: v1::RequestHintsRequest) -> v1::RequestHintsRequest {
        if request.nonce.is_empty() && request.token.is_empty() {
            request.nonce = self.secret.nonce(&request.application_id);
        }
        request
    }

    /// Asks for hints once, whatever comes, and leaves the request's deadline as it is: for measuring.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn request_hints_once(
        &self,
        request: v1::RequestHintsRequest,
    ) -> Result<v1::RequestHintsResponse, ClientError> {
        let (mut placement, request) = (self.placement(), self.shown(request));
        once(self.calls, async move { placement.request_hints(request).await.map(Response::into_inner) }).await
    }

    /// Gives leases back; none named: all of the attempt. Repeated where needed: what was given back stays so.
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::OutOfTime`].
    pub async fn release(&self, mut request: v1::ReleaseRequest) -> Result<v1::ReleaseResponse, ClientError> {
        if request.nonce.is_empty() && request.token.is_empty() {
            request.nonce = self.secret.nonce(&request.application_id);
        }
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.release(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// A decision and what became of its leases: one of the last 1,024 that this client was given. Others are the
    /// operator's to explain, over the admin socket, or of who shows the attempt's token: [`Self::explain_with`].
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::OutOfTime`].
    pub async fn explain(&self, decision_id: &str) -> Result<v1::ExplainResponse, ClientError> {
        let owner = self.decisions.application_of(decision_id);
        let nonce = owner.map(|application_id| self.secret.nonce(&application_id)).unwrap_or_default();
        let decision_id = decision_id.to_owned();
        self.explain_with(v1::ExplainRequest { decision_id, token: String::new(), nonce }).await
    }

    /// As [`Self::explain`], with what the caller shows.
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::OutOfTime`].
    pub async fn explain_with(&self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, ClientError> {
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.explain(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// Whether receivers of the attempt's shuffle should be asked for now; an empty token: the client's nonce stands in.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for another's attempt; [`ClientError::OutOfTime`]. Then receivers are asked for as before.
    pub async fn shuffle_turn(
        &self,
        mut request: v1::ShuffleTurnRequest,
    ) -> Result<v1::ShuffleTurnResponse, ClientError> {
        if request.token.is_empty() && request.nonce.is_empty() {
            request.nonce = self.secret.nonce(&request.application_id);
        }
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.shuffle_turn(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// Where replicas of data that a planned job will read should go; advice for who writes it.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for a job that is not planned; [`ClientError::OutOfTime`].
    pub async fn replicas(&self, request: v1::ReplicasRequest) -> Result<v1::ReplicasResponse, ClientError> {
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.replicas(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// Racks to which the attempt's input was sent; an empty token: the client's nonce stands in.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for another's attempt; [`ClientError::OutOfTime`]. Then asks go on as they are.
    pub async fn input_homes(&self, mut request: v1::InputHomesRequest) -> Result<v1::InputHomesResponse, ClientError> {
        if request.token.is_empty() && request.nonce.is_empty() {
            request.nonce = self.secret.nonce(&request.application_id);
        }
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.input_homes(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// The racks that the daemon's network file puts hosts in, in the order of the question; empty: it does not say.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for more than 1,000 hosts; [`ClientError::OutOfTime`].
    pub async fn resolve_racks(
        &self,
        request: v1::ResolveRacksRequest,
    ) -> Result<v1::ResolveRacksResponse, ClientError> {
        let call = |_| {
            let (mut placement, request) = (self.placement(), request.clone());
            async move { placement.resolve_racks(request).await.map(Response::into_inner) }
        };
        retry::until(Instant::now() + self.calls, call).await
    }

    /// Whom an agent of a host should measure; notes where it answers probes itself. Asked once: agents ask again anyhow.
    ///
    /// # Errors
    /// [`ClientError::Refused`] for a host that is not registered; [`ClientError::OutOfTime`].
    pub async fn probe_targets(
        &self,
        request: v1::ProbeTargetsRequest,
    ) -> Result<v1::ProbeTargetsResponse, ClientError> {
        let mut feed = self.feed.clone();
        once(self.calls, async move { feed.probe_targets(request).await.map(Response::into_inner) }).await
    }

    /// Follows an attempt on one stream: events up, advice down. To resume, give the last number seen.
    ///
    /// # Errors
    /// [`ClientError::Refused`], as for a token that is not the attempt's; [`ClientError::Broken`].
    pub async fn follow(&self, start: v1::FollowStart) -> Result<Following, ClientError> {
        once(self.calls, Following::start(self.placement(), self.shown_start(start), self.decisions.clone())).await
    }

    /// Follows an attempt over restarts of the daemon, which is waited for at most `patience` at a time.
    #[must_use]
    pub fn follower(&self, start: v1::FollowStart, patience: Duration) -> Follower {
        Follower::start(self.clone(), self.shown_start(start), patience)
    }

    fn shown_start(&self, mut start: v1::FollowStart) -> v1::FollowStart {
        if start.nonce.is_empty() && start.token.is_empty() {
            start.nonce = self.secret.nonce(&start.application_id);
        }
        start
    }

    /// Opens a feed; its hello is sent first.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::Broken`].
    pub async fn feed<I: FeedItem>(&self, hello: v1::FeedHello) -> Result<FeedSender<I>, ClientError> {
        once(self.calls, FeedSender::open(self.feed.clone(), Arc::clone(&self.secret), hello)).await
    }

    /// Opens a feed that is opened again when it breaks. `full` says everything that its source knows: it is sent at
    /// once, and again to a new life of the daemon. The daemon is waited for at most `patience` at a time.
    ///
    /// # Errors
    /// [`ClientError::Refused`], [`ClientError::OutOfTime`].
    pub async fn steady_feed<I: FeedItem>(
        &self,
        hello: v1::FeedHello,
        full: Full<I>,
        patience: Duration,
    ) -> Result<SteadyFeed<I>, ClientError> {
        SteadyFeed::open(self.clone(), hello, full, patience).await
    }

    /// Watches routes; the first update is the snapshot.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::Broken`].
    pub async fn watch(&self, mut request: v1::WatchRequest) -> Result<Streaming<v1::RouteUpdate>, ClientError> {
        if request.nonce.is_empty() {
            request.nonce = self.secret.watch_nonce(&request.watcher);
        }
        let mut routes = self.routes.clone();
        once(self.calls, async move { routes.watch(request).await.map(Response::into_inner) }).await
    }

    /// Acknowledges every update up to `number`, but for the routes `refused`; returns how many are outstanding. Not
    /// repeated: a number is acknowledged once.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::Broken`].
    pub async fn acknowledge(
        &self,
        watcher: &str,
        number: u64,
        refused: Vec<v1::RouteRefusal>,
    ) -> Result<u64, ClientError> {
        let request = v1::AcknowledgeRequest {
            watcher: watcher.to_owned(),
            number,
            refused,
            nonce: self.secret.watch_nonce(watcher),
        };
        let mut routes = self.routes.clone();
        let call = async move { routes.acknowledge(request).await.map(Response::into_inner) };
        Ok(once(self.calls, call).await?.outstanding)
    }

    /// Says what is set on an optical switch and which ports do not work; returns the version that is wanted now.
    ///
    /// # Errors
    /// [`ClientError::Refused`]; [`ClientError::Broken`].
    pub async fn report_circuits(&self, mut request: v1::ReportCircuitsRequest) -> Result<u64, ClientError> {
        if request.nonce.is_empty() {
            request.nonce = self.secret.watch_nonce(&request.watcher);
        }
        let mut routes = self.routes.clone();
        let call = async move { routes.report_circuits(request).await.map(Response::into_inner) };
        Ok(once(self.calls, call).await?.wanted_version)
    }

    fn placement(&self) -> PlacementClient<Channel> {
        self.placement.clone()
    }

    /// One try that the daemon is to answer a little before the time is over.
    fn try_hints(
        &self,
        mut request: v1::RequestHintsRequest,
        left: Duration,
    ) -> impl Future<Output = Result<v1::RequestHintsResponse, Status>> + use<> {
        let mut placement = self.placement();
        let deadline = u32::try_from((left - left / WAY_BACK).as_millis()).unwrap_or(u32::MAX).max(1);
        request.deadline_ms = if request.deadline_ms == 0 { deadline } else { request.deadline_ms.min(deadline) };
        async move { placement.request_hints(request).await.map(Response::into_inner) }
    }

    async fn feed_within<I: FeedItem>(
        &self,
        hello: v1::FeedHello,
        patience: Duration,
    ) -> Result<FeedSender<I>, ClientError> {
        let open = |_| FeedSender::open(self.feed.clone(), Arc::clone(&self.secret), hello.clone());
        retry::until(Instant::now() + patience, open).await
    }
}

/// A call that is not repeated.
async fn once<T>(limit: Duration, call: impl Future<Output = Result<T, Status>>) -> Result<T, ClientError> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(ClientError::from),
        Err(_) => {
            let last = "the time was over".to_owned();
            Err(ClientError::OutOfTime { waited: limit, cause: Cause::Deadline, last })
        }
    }
}

/// A daemon whose machine is gone sends nothing more: streams to it end after both together, as the daemon's do.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

fn endpoint<'a>(address: &'a str, options: &ClientOptions) -> Result<(&'a str, Endpoint), ClientError> {
    let bare = address.strip_prefix("http://").unwrap_or(address);
    let endpoint = Endpoint::from_shared(format!("http://{bare}"))
        .map_err(|source| ClientError::Address { address: shown_address(address), source })?;
    let endpoint = endpoint.http2_keep_alive_interval(KEEPALIVE_EVERY).keep_alive_timeout(KEEPALIVE_TIMEOUT);
    Ok((bare, endpoint.connect_timeout(options.connect).tcp_nodelay(true)))
}

/// Connects to a daemon's admin socket.
///
/// # Errors
/// [`ClientError::Connect`].
pub async fn admin(socket: &Path) -> Result<AdminClient, ClientError> {
    let path = socket.to_path_buf();
    let connect = tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    });
    // The URI is for the protocol only: the connector knows where to go.
    let endpoint = Endpoint::from_static("http://admin.socket").connect_timeout(ClientOptions::default().connect);
    let channel = endpoint.connect_with_connector(connect).await;
    let channel = channel.map_err(|source| ClientError::Connect { address: socket.display().to_string(), source })?;
    Ok(AdminClient::new(channel).max_decoding_message_size(MESSAGE_BYTES))
}
