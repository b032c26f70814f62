//! Spans by OpenTelemetry's SDK, sent over OTLP.
//!
//! Spans are made by hand and not from log spans (`tracing-opentelemetry`): what a search, a commit and the journal took is
//! known when they are over, from other threads, and a request's log span is not there for each request.

use super::queue::{SpanCounters, SpanQueue, send};
use super::traceparent::TraceParent;
use super::{SpanOptions, SpansError};
use crate::telemetry::registry::Metrics;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, SpanExporter as _};
use std::fmt::Display;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::metadata::MetadataMap;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// Vendors' own part of a trace's context is passed on up to this, as the standard asks for.
const TRACESTATE_MAX: usize = 512;

/// Gives requests their spans; clones share one queue. The default gives none.
#[derive(Debug, Clone, Default)]
pub struct Spans(Option<Arc<Sending>>);

#[derive(Debug)]
struct Sending {
    tracer: SdkTracer,
    counters: Arc<SpanCounters>,
    closing: CancellationToken,
    sender: Mutex<Option<JoinHandle<()>>>,
    /// How long one sending may take.
    timeout: Duration,
}

/// The span of a request, or a part of it; of none where it is not sampled.
#[derive(Debug, Clone, Default)]
pub struct RequestSpan(Option<Arc<Active>>);

#[derive(Debug)]
struct Active {
    tracer: SdkTracer,
    /// Ends the span when it is dropped.
    context: Context,
    /// One moment by both clocks: a step of the wall's meanwhile moves no part of the request.
    at: (Instant, SystemTime),
}

impl Spans {
    /// Begins to send, where there are options. To be called within a tokio runtime.
    ///
    /// # Errors
    /// [`SpansError`] where the exporter does not take the endpoint.
    pub fn start(options: Option<&SpanOptions>, metrics: &Metrics, instance: &str) -> Result<Self, SpansError> {
        let Some(options) = options else { return Ok(Self(None)) };
        let built = SpanExporter::builder().with_tonic().with_endpoint(&options.endpoint).with_timeout(options.timeout);
        let mut exporter = built
            .build()
            .map_err(|error| SpansError { endpoint: options.endpoint.clone(), message: error.to_string() })?;
        let resource = Resource::builder()
            .with_service_name("hintd")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", instance.to_owned()))
            .build();
        exporter.set_resource(&resource);
        let (waiting, taken) = mpsc::channel(options.queue);
        let (counters, closing) = (Arc::new(SpanCounters::new(metrics)), CancellationToken::new());
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(options.sample_ratio)));
        let provider = SdkTracerProvider::builder()
            .with_sampler(sampler)
            .with_resource(resource)
            .with_span_processor(SpanQueue { waiting, counters: Arc::clone(&counters) })
            .build();
        let sender = send(taken, exporter, options.clone(), Arc::clone(&counters), closing.clone());
        let sender = Mutex::new(Some(tokio::spawn(sender)));
        let tracer = provider.tracer("hintd");
        tracing::info!(endpoint = options.endpoint, sample_ratio = options.sample_ratio, "spans of requests are sent");
        Ok(Self(Some(Arc::new(Sending { tracer, counters, closing, sender, timeout: options.timeout }))))
    }

    /// The span of a call that came at `received` with these headers, where it is sampled.
    #[must_use]
    pub fn begin(&self, method: &'static str, received: Instant, headers: &MetadataMap) -> RequestSpan {
        let Some(sending) = &self.0 else { return RequestSpan(None) };
        let at = (received, SystemTime::now().checked_sub(received.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH));
        let span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_start_time(at.1)
            .with_attributes([KeyValue::new("rpc.system.name", "grpc"), KeyValue::new("rpc.method", method)]);
        RequestSpan::of(&sending.tracer, span, &sending.parent(headers), at)
    }

    /// Sends what waits, for as long as one sending may take, and at most as long as `limit`.
    pub async fn finish(&self, limit: Duration) {
        let Some(sending) = &self.0 else { return };
        sending.closing.cancel();
        let sender = sending.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut sender) = sender
            && tokio::time::timeout(limit.min(sending.timeout), &mut sender).await.is_err()
        {
            sender.abort();
        }
    }
}

impl Sending {
    /// The caller's span; an empty context where it tells of none, or of one that makes no sense.
    fn parent(&self, headers: &MetadataMap) -> Context {
        let mut said = headers.get_all(TRACEPARENT).iter();
        let Some(first) = said.next() else { return Context::new() };
        let read = first.to_str().ok().and_then(TraceParent::read).filter(|_| said.next().is_none());
        let Some(parent) = read else {
            self.counters.malformed.add(1);
            return Context::new();
        };
        self.counters.valid.add(1);
        let state = headers.get(TRACESTATE).and_then(|state| state.to_str().ok());
        let state = state.filter(|state| state.len() <= TRACESTATE_MAX).map(TraceState::from_str);
        let (trace, span) = (TraceId::from(parent.trace), SpanId::from(parent.span));
        let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let state = state.and_then(Result::ok).unwrap_or_default();
        Context::new().with_remote_span_context(SpanContext::new(trace, span, flags, true, state))
    }
}

impl RequestSpan {
    fn of(tracer: &SdkTracer, span: SpanBuilder, parent: &Context, at: (Instant, SystemTime)) -> Self {
        let span = tracer.build_with_context(span, parent);
        let context = Context::new().with_span(span);
        let sampled = context.span().span_context().is_sampled();
        Self(sampled.then(|| Arc::new(Active { tracer: tracer.clone(), context, at })))
    }

    /// A part of it that began then. It ends at [`Self::end`], or with its last clone.
    #[must_use]
    pub fn child(&self, name: &'static str, began: Instant) -> Self {
        let Some(Active { tracer, context, at }) = self.0.as_deref() else { return Self(None) };
        Self::of(tracer, SpanBuilder::from_name(name).with_start_time(wall(*at, began)), context, *at)
    }

    /// Which trace it belongs to.
    #[must_use]
    pub fn trace_id(&self) -> Option<String> {
        self.0.as_ref().map(|active| active.context.span().span_context().trace_id().to_string())
    }

    /// Notes a text.
    pub fn text(&self, key: &'static str, value: impl Display) {
        if let Some(active) = &self.0 {
            active.context.span().set_attribute(KeyValue::new(key, value.to_string()));
        }
    }

    /// Notes a number.
    pub fn count(&self, key: &'static str, value: u64) {
        if let Some(active) = &self.0 {
            active.context.span().set_attribute(KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX)));
        }
    }

    /// Ends the span of a call that was answered with this code.
    pub fn answered(&self, code: Code) {
        let Some(active) = &self.0 else { return };
        let (span, name) = (active.context.span(), code_name(code));
        span.set_attribute(KeyValue::new("rpc.response.status_code", name));
        if is_servers_fault(code) {
            span.set_attribute(KeyValue::new("error.type", name));
            span.set_status(Status::error(name));
        }
        self.end(Instant::now());
    }

    /// Ends it.
    pub fn end(&self, at: Instant) {
        if let Some(active) = &self.0 {
            active.context.span().end_with_timestamp(wall(active.at, at));
        }
    }
}

/// What the wall's clock showed at a moment, or shows.
fn wall((then, shown): (Instant, SystemTime), moment: Instant) -> SystemTime {
    let since = moment.saturating_duration_since(then);
    shown.checked_add(since).unwrap_or(shown)
}

/// As OpenTelemetry's conventions have gRPC servers: what is the caller's own fault is no error of the server's.
const fn is_servers_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// As gRPC's specification writes it.
const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
