//! What a request took, as spans of an OpenTelemetry trace: begun by the caller's `traceparent`, sent to a collector.
//!
//! Only where the cargo feature `opentelemetry` is on; else the types here are empty and their methods do nothing, so that
//! nobody else has to ask.

use super::metric::{Kind, Metric, metric};
use metrics::Unit;
use std::time::Duration;

#[cfg(not(feature = "opentelemetry"))]
mod off;
#[cfg(feature = "opentelemetry")]
mod otlp;
#[cfg(feature = "opentelemetry")]
mod queue;
#[cfg(any(feature = "opentelemetry", test))]
mod traceparent;

#[cfg(not(feature = "opentelemetry"))]
pub use off::{RequestSpan, Spans};
#[cfg(feature = "opentelemetry")]
pub use otlp::{RequestSpan, Spans};

/// Whether this program can send spans at all.
pub const COMPILED_IN: bool = cfg!(feature = "opentelemetry");

const SPANS: &str = "hintd_trace_spans_total";
const TRACEPARENTS: &str = "hintd_trace_parents_total";

/// Their entries in the list of all; a program that can send no spans records none.
pub(super) const ROWS: &[Metric] = if COMPILED_IN {
    &[
        metric(SPANS, Kind::Counter, Unit::Count, "Spans of sampled requests: sent, failed to be sent, dropped."),
        metric(TRACEPARENTS, Kind::Counter, Unit::Count, "Requests that brought a traceparent: valid, or malformed."),
    ]
} else {
    &[]
};

/// Records each of them, where there are any.
#[cfg(test)]
pub(super) fn record(metrics: &super::registry::Metrics) {
    #[cfg(feature = "opentelemetry")]
    queue::SpanCounters::new(metrics);
    #[cfg(not(feature = "opentelemetry"))]
    let _ = metrics;
}

/// `[tracing]`, where it names an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanOptions {
    /// Where the collector listens, as `http://127.0.0.1:4317`.
    pub endpoint: String,
    /// Share of requests without a `traceparent` that are sampled; the others are as their caller says.
    pub sample_ratio: f64,
    /// How long one sending may take.
    pub timeout: Duration,
    /// Spans that may wait to be sent; one more is dropped.
    pub queue: usize,
}

/// Spans can't be sent.
#[derive(Debug, thiserror::Error)]
#[error("tracing.endpoint {endpoint}: {message}")]
pub struct SpansError {
    /// Where to.
    pub endpoint: String,
    /// Why not.
    pub message: String,
}
