//! Metrics of who finds no place: connections, streams, messages, and lines of log.

use super::labels::{ConnectionRefusal, LabelValue as _, MessageRefusal};
use super::registry::{Metrics, SharedCounter};

pub(super) const CONNECTIONS_REFUSED: &str = "hintd_connections_refused_total";
pub(super) const STREAMS_REFUSED: &str = "hintd_streams_refused_total";
pub(super) const MESSAGES_REFUSED: &str = "hintd_messages_refused_total";
pub(super) const LINES_LEFT_OUT: &str = "hintd_request_lines_left_out_total";

/// Records who is refused a connection, a stream, the memory of a message, or a line of log.
#[derive(Clone)]
pub struct AdmissionMetrics {
    connections: Vec<SharedCounter>,
    streams: SharedCounter,
    messages: Vec<SharedCounter>,
    lines: SharedCounter,
}

impl Metrics {
    /// Handles for who is turned away.
    pub fn admission(&self) -> AdmissionMetrics {
        let connection = |&turned: &ConnectionRefusal| self.counter(CONNECTIONS_REFUSED, &[("result", turned.label())]);
        let message = |&refused: &MessageRefusal| self.counter(MESSAGES_REFUSED, &[("result", refused.label())]);
        AdmissionMetrics {
            connections: ConnectionRefusal::ALL.iter().map(connection).collect(),
            streams: self.counter(STREAMS_REFUSED, &[]),
            messages: MessageRefusal::ALL.iter().map(message).collect(),
            lines: self.counter(LINES_LEFT_OUT, &[]),
        }
    }
}

impl AdmissionMetrics {
    /// A connection has no permit, or is closed.
    pub fn connection(&self, turned: ConnectionRefusal) {
        self.connections[turned as usize].add(1);
    }

    /// A stream is beyond the limit.
    pub fn stream(&self) {
        self.streams.add(1);
    }

    /// A message took too much, or too long.
    pub fn message(&self, refused: MessageRefusal) {
        self.messages[refused as usize].add(1);
    }

    /// A line about a request was not written.
    pub fn line(&self) {
        self.lines.add(1);
    }
}
