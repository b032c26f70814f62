//! How much memory messages take, in and out, over all connections and services.
//!
//! # Code map
//! - `budget`: bytes shared out among connections; `inbound`: bodies of requests; `outbound`: bodies of answers; `pace`: how
//!   fast these have to be read; `shape`: what a message takes once it is read; `shares`: what one connection has of each.

mod budget;
mod inbound;
mod outbound;
mod pace;
mod shape;
mod shares;

use budget::Held;
pub(super) use pace::{Late, Outgoing};
pub(super) use shares::{Budgets, Shares};

use super::connection_permits::ConnectionPermit;
use crate::runtime::Daemon;
use crate::runtime::options::Listen;
use crate::telemetry::metrics::MessageRefusal;
use hintd_client::wire::DESCRIPTORS;
use hintd_model::units::Micros;
use inbound::InboundBody;
use shape::Shapes;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tonic::body::Body;
use tonic::codegen::http;

/// Bytes of one stream that the transport receives ahead of whoever reads them. Half as many made uploads of 8 MiB slow on a busy
/// machine; more would let as many connections as there may be hold more than the process has (docs/operations.md, Size).
pub(super) const STREAM_WINDOW: u32 = 128 * 1_024;
/// And of all streams of a connection.
pub(super) const CONNECTION_WINDOW: u32 = 192 * 1_024;

/// When a caller may try again for whose message or answer there was no memory.
const RETRY_AFTER: Micros = Micros::from_secs(1);

/// Calls that take any number of messages, at any time.
const STREAMED: [&str; 4] =
    ["/hintd.v1.Feed/", "/hintd.v1.Placement/Follow", "/hintd.v1.Admin/SubmitPlan", "/grpc.reflection."];

/// What all calls of a listener share.
#[derive(Debug)]
struct Context {
    daemon: Daemon,
    /// The longest message, bytes.
    message_bytes: usize,
    /// How long one may take to arrive.
    upload: Duration,
    shapes: Shapes,
}

/// A message takes at most so many times the longest one's bytes when it is read.
const READ_TIMES: usize = 16;

/// What is called.
#[derive(Debug)]
struct Call {
    path: http::Uri,
    /// It takes any number of messages, at any time.
    streamed: bool,
}

impl Context {
    fn refused_inbound(&self) {
        self.daemon.metrics().message_refused(MessageRefusal::Inbound);
    }

    fn refused_outbound(&self) {
        self.daemon.metrics().message_refused(MessageRefusal::Outbound);
    }

    fn upload_ended(&self) {
        self.daemon.metrics().message_refused(MessageRefusal::Upload);
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct MessageBounds {
    context: Arc<Context>,
    /// Of calls whose connection has none of its own: those on the admin socket.
    shares: Shares,
}

impl MessageBounds {
    pub(super) fn new(listen: &Listen, daemon: Daemon, budgets: &Budgets) -> Self {
        let shapes = Shapes::new(DESCRIPTORS);
        let context = Context { daemon, message_bytes: listen.message_bytes, upload: listen.upload, shapes };
        Self { context: Arc::new(context), shares: budgets.shares() }
    }
}

/// What an answer needs to be within bounds.
#[derive(Debug)]
pub(super) struct AnswerBounds {
    context: Arc<Context>,
    outbound: Outgoing,
    /// What the request's message holds.
    until_answered: Arc<OnceLock<Held>>,
}

impl MessageBounds {
    /// Bounds a call's message; what its answer has to pass through.
    pub(super) fn bound(&self, request: http::Request<Body>) -> (http::Request<Body>, AnswerBounds) {
        let shares = request.extensions().get().map_or(&self.shares, ConnectionPermit::shares);
        let Shares { inbound, outbound } = shares.clone();
        let context = Arc::clone(&self.context);
        let path = request.uri().path();
        let streamed = STREAMED.iter().any(|prefix| path.starts_with(prefix));
        let until_answered = Arc::new(OnceLock::new());
        let own = Arc::clone(&until_answered);
        let (head, inner) = request.into_parts();
        let call = Call { path: head.uri.clone(), streamed };
        let body = InboundBody::new(inner, Arc::clone(&context), inbound, call, own);
        let request = http::Request::from_parts(head, Body::new(body));
        (request, AnswerBounds { context, outbound, until_answered })
    }
}

impl AnswerBounds {
    /// Bounds the answer; what the request's message holds is given back.
    pub(super) async fn bound(self, response: http::Response<Body>) -> http::Response<Body> {
        let Self { context, outbound, until_answered } = self;
        drop(until_answered);
        outbound::counted(response, context, outbound).await
    }
}
