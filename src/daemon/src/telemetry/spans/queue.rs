//! Spans on their way to the collector: a bounded queue that never waits, and the task that empties it.

use super::{SPANS, SpanOptions, TRACEPARENTS};
use crate::telemetry::rate_limited_log::RateLimitedLog;
use crate::telemetry::registry::{Metrics, SharedCounter};
use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Spans sent together.
const BATCH: usize = 512;
/// A batch that is not full leaves after this.
const GATHER: Duration = Duration::from_secs(1);

/// What becomes of spans, and what callers said of theirs.
pub(super) struct SpanCounters {
    sent: SharedCounter,
    failed: SharedCounter,
    dropped: SharedCounter,
    pub(super) valid: SharedCounter,
    pub(super) malformed: SharedCounter,
}

impl std::fmt::Debug for SpanCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpanCounters")
    }
}

impl SpanCounters {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let spans = |result| metrics.counter(SPANS, &[("result", result)]);
        let parents = |result| metrics.counter(TRACEPARENTS, &[("result", result)]);
        Self {
            sent: spans("sent"),
            failed: spans("failed"),
            dropped: spans("dropped"),
            valid: parents("valid"),
            malformed: parents("malformed"),
        }
    }
}

/// Takes spans as they end. The SDK's own queue does the same, but what it drops it only logs.
#[derive(Debug)]
pub(super) struct SpanQueue {
    pub(super) waiting: Sender<SpanData>,
    pub(super) counters: Arc<SpanCounters>,
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        // Full, or its reader has ended: a request waits for neither.
        if self.waiting.try_send(span).is_err() {
            self.counters.dropped.add(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sends batches until `closing` is cancelled and the queue is empty.
pub(super) async fn send(
    mut waiting: Receiver<SpanData>,
    exporter: SpanExporter,
    options: SpanOptions,
    counters: Arc<SpanCounters>,
    closing: CancellationToken,
) {
    let failures = RateLimitedLog::default();
    let mut batch = Vec::new();
    while gather(&mut waiting, &mut batch, &closing).await {
        let count = batch.len() as u64;
        // The exporter's own time limit does not end a sending that is under way.
        let sent = timeout(options.timeout, exporter.export(std::mem::take(&mut batch))).await;
        let error = match sent {
            Ok(Ok(())) => {
                counters.sent.add(count);
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {:?}", options.timeout),
        };
        counters.failed.add(count);
        if let Some(times) = failures.due() {
            tracing::warn!(endpoint = %options.endpoint, error, times, "spans could not be sent");
        }
    }
}

/// Fills a batch, for as long as [`GATHER`] from its first span on; false where none will come.
async fn gather(waiting: &mut Receiver<SpanData>, batch: &mut Vec<SpanData>, closing: &CancellationToken) -> bool {
    let first = tokio::select! {
        first = waiting.recv() => first,
        () = closing.cancelled() => {
            waiting.close();
            waiting.recv().await
        }
    };
    let Some(first) = first else { return false };
    batch.push(first);
    let until = Instant::now() + GATHER;
    while batch.len() < BATCH {
        let more = tokio::select! {
            more = timeout_at(until, waiting.recv_many(batch, BATCH - batch.len())) => more.unwrap_or(0),
            () = closing.cancelled() => {
                waiting.close();
                waiting.recv_many(batch, BATCH - batch.len()).await
            }
        };
        if more == 0 {
            break;
        }
    }
    true
}
