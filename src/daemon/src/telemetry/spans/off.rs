//! A program that was built without OpenTelemetry: no request has a span.

use super::{SpanOptions, SpansError};
use crate::telemetry::registry::Metrics;
use std::fmt::Display;
use std::time::{Duration, Instant};
use tonic::Code;
use tonic::metadata::MetadataMap;

/// Sends nothing.
#[derive(Debug, Clone, Default)]
pub struct Spans;

/// The span of no request.
#[derive(Debug, Clone, Default)]
pub struct RequestSpan(());

impl Spans {
    /// The configuration refuses options where nothing can be sent.
    ///
    /// # Errors
    /// None here.
    pub const fn start(_: Option<&SpanOptions>, _: &Metrics, _: &str) -> Result<Self, SpansError> {
        Ok(Self)
    }

    /// No span.
    #[must_use]
    pub const fn begin(&self, _: &'static str, _: Instant, _: &MetadataMap) -> RequestSpan {
        RequestSpan(())
    }

    /// Nothing waits.
    pub async fn finish(&self, _: Duration) {}
}

impl RequestSpan {
    /// No span.
    #[must_use]
    pub const fn child(&self, _: &'static str, _: Instant) -> Self {
        Self(())
    }

    /// Of no trace.
    #[must_use]
    pub const fn trace_id(&self) -> Option<String> {
        None
    }

    /// Not noted.
    pub fn text(&self, _: &'static str, _: impl Display) {}

    /// Not noted.
    pub const fn count(&self, _: &'static str, _: u64) {}

    /// Not noted.
    pub const fn answered(&self, _: Code) {}

    /// Nothing ends.
    pub const fn end(&self, _: Instant) {}
}
