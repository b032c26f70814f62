//! Servers that the daemon asks, to wire.

use crate::runtime::servers::ServerView;
use hintd_client::wire::v1;
use std::time::Duration;

/// How one stands.
pub(in crate::server) fn server(view: &ServerView) -> v1::ServerView {
    v1::ServerView {
        source: view.source.to_owned(),
        address: view.address.clone(),
        state: view.status.as_str().to_owned(),
        in_use: view.in_use,
        since_ms: millis(view.since),
        heard_ms: view.heard.map(millis),
        asked_ms: view.asked.map(millis),
        error: view.error.clone(),
        advice: view.advice.clone(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
