//! A collector as OpenTelemetry's protocol has them (opentelemetry-proto 1.x, `collector/trace/v1`), as far as the tests read it:
//! messages by their field numbers, so that what is sent is held against the protocol and not against its sender's own code.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// What it does with what it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    /// Answers nothing.
    Hangs,
}

/// A span, readable.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedSpan {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty: it is the first of its trace.
    pub(crate) parent: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) failed: bool,
    /// Whose it is.
    pub(crate) service: String,
}

/// A collector that listens.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    received: Received,
}

#[derive(Debug, Clone, Default)]
struct Received(Arc<Mutex<(usize, Vec<ReceivedSpan>)>>);

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, received) = (listener.local_addr().unwrap(), Received::default());
        let service = TraceService { manner, received: received.clone() };
        let served = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(served.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { address, received }
    }

    pub(crate) fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.0.lock().unwrap().1.clone()
    }

    /// Waits until something was sent.
    pub(crate) async fn until_asked(&self) {
        let began = Instant::now();
        while self.received.0.lock().unwrap().0 == 0 {
            assert!(began.elapsed() < crate::world::SOON, "nothing was sent");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[derive(Clone)]
struct TraceService {
    manner: Manner,
    received: Received,
}

impl NamedService for TraceService {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl tonic::codegen::Service<http::Request<Body>> for TraceService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        assert_eq!(request.uri().path(), format!("/{}/Export", Self::NAME));
        let service = self.clone();
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(service, request).await) })
    }
}

impl UnaryService<ExportRequest> for TraceService {
    type Response = ExportResponse;
    type Future = BoxFuture<Response<ExportResponse>, Status>;

    fn call(&mut self, request: Request<ExportRequest>) -> Self::Future {
        {
            let mut received = self.received.0.lock().unwrap();
            received.0 += 1;
            received.1.extend(request.into_inner().spans());
        }
        let manner = self.manner;
        Box::pin(async move {
            match manner {
                Manner::Takes => Ok(Response::new(ExportResponse {})),
                Manner::Hangs => std::future::pending().await,
            }
        })
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExportResponse {}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<SpanStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SpanStatus {
    /// 2: an error.
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Count(i64),
    #[prost(double, tag = "4")]
    Number(f64),
}

impl ExportRequest {
    fn spans(self) -> Vec<ReceivedSpan> {
        let mut found = Vec::new();
        for of_one in self.resource_spans {
            let service = notes(of_one.resource.unwrap().attributes).remove("service.name").unwrap();
            let spans = of_one.scope_spans.into_iter().flat_map(|scope| scope.spans);
            found.extend(spans.map(|span| ReceivedSpan {
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                began: span.start_time_unix_nano,
                ended: span.end_time_unix_nano,
                notes: notes(span.attributes),
                failed: span.status.is_some_and(|status| status.code == 2),
                service: service.clone(),
            }));
        }
        found
    }
}

fn notes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let shown = |value: Value| match value {
        Value::Text(text) => text,
        Value::Flag(flag) => flag.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
    };
    let read = |pair: KeyValue| (pair.key, pair.value.and_then(|value| value.value).map(shown).unwrap_or_default());
    attributes.into_iter().map(read).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
